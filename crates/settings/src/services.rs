//! Services: what is wished for groups of routes, and the faults of wishes that contradict each
//! other.

use crate::Faults;
use crate::read::{Sections, Values};
use crate::route::pattern_and_query;
use crate::shape::amount;
use suimon_gate::{Amount, DegradationMode, PausePlace, RouteMode, ServiceWish};
use suimon_params::{DeclaredRoute, DeclaredService, Routes, Services};

/// Reads the services. A route that is in one and was not declared is declared by it.
pub(crate) fn services(sections: &Sections, routes: &mut Routes, faults: &mut Faults) -> Services {
    let degradation = sections.once("degradation");
    let mut services: Vec<DeclaredService> = vec![];
    // Declared routes, and the section and name of the service that has each.
    let mut owners: Vec<(usize, usize, String)> = vec![];
    for (index, values) in sections.repeated("service").iter().enumerate() {
        let Some(name) = values.given_text("name") else { continue };
        if services.iter().any(|service| service.name == name) {
            let allowed = "another name; an earlier service has this one";
            faults.value(format!("service[{index}].name"), format!("{name:?}"), allowed);
        }
        let mut own = vec![];
        for text in values.given_texts("routes") {
            let route = place_of(&text, routes);
            if let Some((_, section, owner)) = owners.iter().find(|(owned, ..)| *owned == route) {
                let allowed = if *section == index {
                    "listed once".to_owned()
                } else {
                    format!("in one service only, and {owner:?} has it, too: remove it from one")
                };
                faults.value(format!("service[{index}].routes"), format!("{text:?}"), allowed);
            }
            if let Some(before) = takes_all_before(route, routes, &own) {
                let allowed = format!(
                    "before {before:?}, which takes all its requests: write a [[route]] for it above that one"
                );
                faults.value(format!("service[{index}].routes"), format!("{text:?}"), allowed);
            }
            owners.push((route, index, name.to_owned()));
            own.push(route);
        }
        if own.is_empty() {
            faults.missing(
                format!("service[{index}].routes"),
                "name at least one route, such as \"GET /quote\"",
            );
        }
        services.push(DeclaredService {
            name: name.to_owned(),
            routes: own,
            wish: wish(index, values, faults),
            pause: values.time("pause"),
            pause_ratio: values.number("pause_ratio"),
            pauses: values.choice("pauses", PausePlace::of),
        });
    }
    let mode = mode_of(degradation, &services);
    contradictions(mode, &services, faults);
    let lag_guard = degradation.flag("lag_guard");
    if lag_guard && sections.once("upstream.health").given_text("path").is_none() {
        faults.missing(
            "upstream.health.path",
            "degradation.lag_guard measures how late health checks are answered: give the path of something that is no work, or set lag_guard = false",
        );
    }
    Services { mode, lag_guard, services }
}

/// Returns what the split goes by: what is said, else nothing where there is no service, else the
/// slowdowns.
fn mode_of(values: &Values, services: &[DeclaredService]) -> DegradationMode {
    let said = values
        .given_text("mode")
        .map(|word| DegradationMode::of(word).expect("the schema takes no other word"));
    said.unwrap_or(if services.is_empty() { DegradationMode::Off } else { DegradationMode::Slowdown })
}

/// Returns where among the declared routes the one that `text` names is, declaring it if need be.
fn place_of(text: &str, routes: &mut Routes) -> usize {
    let (pattern, query) = pattern_and_query(text);
    let is_it = |route: &DeclaredRoute| route.pattern == pattern && route.query == query;
    routes.declared.iter().position(is_it).unwrap_or_else(|| {
        routes.declared.push(DeclaredRoute { pattern, query, mode: RouteMode::Enforce });
        routes.declared.len() - 1
    })
}

/// Returns the name of a declared route that no request gets past to `route`, unless that is of the
/// same service: the first that fits takes a request, or of the same path the one that asks more of
/// the query.
fn takes_all_before(route: usize, routes: &Routes, same_service: &[usize]) -> Option<String> {
    let own = &routes.declared[route];
    let takes_all = |earlier: &DeclaredRoute| earlier.query.is_none() && earlier.pattern.covers(&own.pattern);
    let (place, first) =
        routes.declared[..route].iter().enumerate().find(|(_, earlier)| takes_all(earlier))?;
    let is_finer = own.query.is_some() && own.pattern.shares_path_with(&first.pattern);
    (!is_finer && !same_service.contains(&place)).then(|| first.name())
}

fn wish(index: usize, values: &Values, faults: &mut Faults) -> ServiceWish {
    let amount = |key: &str| {
        let text = values.given_text(key)?;
        Some(match amount(text).expect("the schema takes no other text") {
            (value, true) => Amount::OfHost(value / 100.0),
            (value, false) => Amount::PerSecond(value),
        })
    };
    let (floor, ceiling) = (amount("floor"), amount("ceiling"));
    let contradict = match (floor, ceiling) {
        (Some(Amount::OfHost(floor)), Some(Amount::OfHost(ceiling)))
        | (Some(Amount::PerSecond(floor)), Some(Amount::PerSecond(ceiling))) => floor > ceiling,
        _ => false,
    };
    if contradict {
        let said = |key| format!("{:?}", values.given_text(key).unwrap_or_default());
        let allowed = format!("at least its floor, which is {}", said("floor"));
        faults.value(format!("service[{index}].ceiling"), said("ceiling"), allowed);
    }
    ServiceWish {
        weight: values.number("weight"),
        floor,
        ceiling,
        slowdown: values.number("slowdown"),
        alone: values.given_time("alone").map(|alone| alone.as_secs_f64()),
    }
}

fn contradictions(mode: DegradationMode, services: &[DeclaredService], faults: &mut Faults) {
    if mode != DegradationMode::Off && services.is_empty() {
        faults.other(format!(
            "degradation.mode = \"{}\": there is no [[service]] to split work among; add one, or remove the mode",
            mode.word()
        ));
    }
    let floors: f64 = services
        .iter()
        .filter_map(
            |service| if let Some(Amount::OfHost(share)) = service.wish.floor { Some(share) } else { None },
        )
        .sum();
    if floors > 1.0 + 1e-9 && mode != DegradationMode::Bands {
        faults.other(format!(
            "service: their floors are {:.0} % of the work together; at most 100 % can be kept. Lower one, or set degradation.mode = \"bands\", which keeps them in the order written",
            100.0 * floors
        ));
    }
    if mode == DegradationMode::Bands && services.iter().all(|service| service.wish.floor.is_none()) {
        faults.missing(
            "service.floor",
            "degradation.mode = \"bands\" keeps floors in order, and no service has one: give one a floor, or set mode = \"shares\"",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    fn faults(text: &str) -> String {
        Settings::parse("test.toml", text).expect_err("it has a fault").to_string()
    }

    #[test]
    fn wishes_are_read_and_their_routes_declared() {
        let text = r#"
            [[route]]
            match = "GET /search"
            mode = 4
            [[service]]
            name = "quote"
            routes = ["GET /quote", "GET /rate"]
            weight = 3
            floor = "30 %"
            [[service]]
            name = "search"
            routes = ["GET /search"]
            slowdown = 4
            ceiling = "60%"
            floor = "2/s"
            pause = "2s"
            pause_ratio = 1.5
            pauses = "inside"
            alone = "350ms"
        "#;
        let params = Settings::parse("test.toml", text).unwrap().proxy;
        let names: Vec<_> = params.routes.declared.iter().map(super::DeclaredRoute::name).collect();
        assert_eq!(names, ["GET /search", "GET /quote", "GET /rate"]);
        assert_eq!(params.services.mode, super::DegradationMode::Slowdown);
        let [quote, search] = &params.services.services[..] else { panic!("two services") };
        assert_eq!((&quote.routes[..], &search.routes[..]), (&[1, 2][..], &[0][..]));
        assert_eq!(quote.wish.floor, Some(super::Amount::OfHost(0.3)));
        assert_eq!(search.wish.floor, Some(super::Amount::PerSecond(2.0)));
        assert_eq!((search.wish.slowdown, search.wish.alone), (4.0, Some(0.35)));
        assert_eq!((search.pause.as_secs(), search.pause_ratio), (2, 1.5));
        assert_eq!((quote.pauses, search.pauses), (super::PausePlace::Around, super::PausePlace::Inside));
    }

    #[test]
    fn without_a_service_nothing_is_split() {
        let services = Settings::parse("test.toml", "").unwrap().proxy.services;
        assert_eq!((services.mode, services.services.len()), (super::DegradationMode::Off, 0));
    }

    #[test]
    fn wishes_that_contradict_each_other_are_faults() {
        let two = |one: &str, other: &str| {
            format!(
                "[[service]]\nname = \"a\"\nroutes = [\"GET /a\"]\n{one}\n[[service]]\nname = \"b\"\nroutes = [\"GET /b\"]\n{other}\n"
            )
        };
        let over = faults(&two("floor = \"70 %\"", "floor = \"40 %\""));
        assert!(over.contains("110 %") && over.contains("bands"), "{over}");
        let no_floor = faults(&format!("[degradation]\nmode = \"bands\"\n{}", two("", "")));
        assert!(no_floor.contains("service.floor"), "{no_floor}");
        let none = faults("[degradation]\nmode = \"shares\"\n");
        assert!(none.contains("no [[service]]") && none.contains("shares"), "{none}");
        let twice = faults(&two("", "").replace("GET /b", "GET /a"));
        assert!(twice.contains("in one service only") && twice.contains("\"a\" has it"), "{twice}");
        let again = faults("[[service]]\nname = \"a\"\nroutes = [\"GET /a\", \"GET /a\"]\n");
        assert!(again.contains("listed once"), "{again}");
        let upside_down = faults(&two("floor = \"50 %\"\nceiling = \"20 %\"", ""));
        assert!(upside_down.contains("at least its floor, which is \"50 %\""), "{upside_down}");
        let same = faults(&two("", "").replace("\"b\"", "\"a\""));
        assert!(
            same.contains("service[1].name") && same.contains("an earlier service has this one"),
            "{same}"
        );
        let wide = "[[route]]\nmatch = \"GET /*\"\n";
        let never = faults(&format!("{wide}{}", two("", "")));
        assert!(never.contains("service[0].routes") && never.contains("takes all its requests"), "{never}");
        let same_path = two("", "").replace("GET /a", "GET /x/{a}").replace("GET /b", "GET /x/{b}");
        assert!(faults(&same_path).contains("service[1].routes"), "{same_path}");
        let finer = two("", "").replace("GET /b", "GET /a?q=1");
        Settings::parse("test.toml", &finer).expect("what asks more of the query goes first");
        let both = format!("[[route]]\nmatch = \"GET /a\"\n{wide}{finer}");
        Settings::parse("test.toml", &both).expect("and so it does before what is wider than both");
        for bad in ["0 %", "101 %", "-1/s", "many", "5"] {
            let bad = faults(&two(&format!("floor = \"{bad}\""), ""));
            assert!(bad.contains("a rate such as"), "{bad}");
        }
        let empty = faults("[[service]]\nname = \"a\"\nroutes = []\n");
        assert!(empty.contains("at least one route"), "{empty}");
    }
}
