//! What is a route, an exception, and one of a set.

use super::*;
use crate::params::DeclaredRoute;
use proptest::prelude::*;
use suimon_gate::Mode;

fn pattern(method: Option<&str>, path: &str) -> RoutePattern {
    RoutePattern { method: method.map(str::to_owned), path: path.to_owned() }
}

fn table(declared: &[RoutePattern], discovered_max: usize) -> Table {
    let declared = declared
        .iter()
        .map(|p| DeclaredRoute { pattern: p.clone(), query: None, mode: Mode::Enforce })
        .collect();
    Table::new(&params::Routes { declared, discovered_max, ..params::Routes::default() })
}

fn learn(table: &Table, path: &str) -> Option<String> {
    let mut name = None;
    table.learn(&Method::GET, path, |_, new| name = Some(new.to_owned()));
    name
}

fn get(table: &Table, path: &str) -> Class {
    table.classify(&Method::GET, path, None)
}

#[test]
fn identifiers_become_one_segment() {
    for (path, template) in [
        ("/", "GET /"),
        ("/items/42", "GET /items/{id}"),
        ("/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301/cart", "GET /u/{id}/cart"),
        ("/c/d41d8cd98f00b204e9800998ecf8427e", "GET /c/{id}"),
        ("/t/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "GET /t/{id}"),
        ("/blog/2024-10-01", "GET /blog/{id}"),
        ("/a/red-shoe-1234", "GET /a/{id}"),
        ("/find/a%20b", "GET /find/{id}"),
        ("/api/v2/orders;jsessionid=ABC123456789", "GET /api/v2/orders"),
        ("/reset-your-password-now-please", "GET /reset-your-password-now-please"),
    ] {
        let table = table(&[], 10);
        assert_eq!(get(&table, path), Class::Unknown);
        assert_eq!(learn(&table, path).as_deref(), Some(template));
        assert_eq!(get(&table, path), Class::Known(1), "{path}");
        assert_eq!(learn(&table, path), None, "known already");
    }
}

#[test]
fn routes_differ_by_method_but_head_is_get() {
    let table = table(&[], 10);
    learn(&table, "/cart");
    assert_eq!(table.classify(&Method::HEAD, "/cart", None), Class::Known(1));
    assert_eq!(table.classify(&Method::POST, "/cart", None), Class::Unknown);
}

#[test]
fn a_full_table_sends_the_rest_to_other() {
    let table = table(&[], 2);
    learn(&table, "/a");
    learn(&table, "/b");
    assert_eq!(learn(&table, "/c"), None);
    assert_eq!(get(&table, "/c"), Class::Other);
    assert_eq!(get(&table, "/c").route(), Some(OTHER));
    assert_eq!(get(&table, "/b"), Class::Known(2));
}

#[test]
fn a_place_with_many_names_holds_identifiers() {
    let table = table(&[], 200);
    let name = |n: usize| {
        format!(
            "/shoes/{}",
            "abcdefghijklmnopqrstuvwxyz".chars().cycle().skip(n % 26).take(1 + n).collect::<String>()
        )
    };
    for n in 0..SIBLINGS_MAX {
        learn(&table, &name(n));
    }
    assert_eq!(learn(&table, "/shoes/zebra").as_deref(), Some("GET /shoes/{id}"));
    assert_eq!(get(&table, "/shoes/okapi"), get(&table, "/shoes/zebra"));
    assert_eq!(get(&table, &name(0)), Class::Known(1), "those that were there first keep their route");
}

#[test]
fn declared_routes_come_first_and_in_order() {
    let table = table(
        &[
            pattern(Some("GET"), "/items/new"),
            pattern(Some("GET"), "/items/{id}"),
            pattern(None, "/admin/*"),
            pattern(Some("GET"), "/big.css"),
        ],
        10,
    );
    assert_eq!(get(&table, "/items/new"), Class::Known(1));
    assert_eq!(get(&table, "/items/blue"), Class::Known(2));
    assert_eq!(get(&table, "/items/blue/more"), Class::Unknown);
    assert_eq!(table.classify(&Method::PUT, "/admin", None), Class::Known(3));
    assert_eq!(table.classify(&Method::PUT, "/admin/a/b", None), Class::Known(3));
    assert_eq!(get(&table, "/big.css"), Class::Known(4));
    assert_eq!(learn(&table, "/x").as_deref(), Some("GET /x"));
    assert_eq!(get(&table, "/x"), Class::Known(5));
}

/// A table of these routes, each `METHOD /path?query`.
fn declared(routes: &[&str]) -> Table {
    let route = |text: &&str| {
        let (path, query) = text.split_once('?').map_or((*text, None), |(path, query)| (path, Some(query)));
        let (method, path) = path.split_once(' ').unwrap();
        let pattern = pattern((method != "*").then_some(method), path);
        let query = query.map(|query| QueryPattern::parse(query).unwrap());
        let route = DeclaredRoute { pattern, query, mode: Mode::Enforce };
        assert_eq!(route.name(), *text);
        route
    };
    let declared = routes.iter().map(route).collect();
    Table::new(&params::Routes { declared, discovered_max: 10, ..params::Routes::default() })
}

#[test]
fn the_route_that_asks_most_of_the_query_goes_first_whatever_the_order() {
    let routes = ["GET /", "GET /?s", "GET /?s&page=2", "GET /?p", "GET /?p=7", "GET /?page=2"];
    let wanted = [
        ("", "GET /"),
        ("x=1", "GET /"),
        ("s=x", "GET /?s"),
        ("x&%73=x", "GET /?s"),
        ("page=2&s=x", "GET /?s&page=2"),
        ("page=2", "GET /?page=2"),
        ("p=7", "GET /?p=7"),
        ("p=8", "GET /?p"),
    ];
    for turned in 0..routes.len() {
        let mut routes = routes;
        routes.rotate_left(turned);
        let at = |text: &str| routes.iter().position(|route| *route == text).unwrap();
        let table = declared(&routes);
        for (query, own) in wanted {
            for method in [Method::GET, Method::HEAD] {
                let class = table.classify(&method, "/", Some(query));
                assert_eq!(class, Class::Known(1 + at(own)), "{method} /?{query} of {routes:?}");
            }
        }
        assert_eq!(get(&table, "/"), Class::Known(1 + at("GET /")), "no query at all");
        assert_eq!(table.classify(&Method::POST, "/", Some("s=x")), Class::Unknown);
    }
    let table = declared(&["GET /?a", "GET /?b"]);
    assert_eq!(table.classify(&Method::GET, "/", Some("b&a")), Class::Known(1), "as much: by order");
}

#[test]
fn another_path_keeps_its_turn_however_much_is_asked_there() {
    let table =
        declared(&["GET /items/new", "GET /items/{id}?a&b", "* /items/{name}", "GET /items/new?c", "* /*"]);
    let class = |path, query| table.classify(&Method::GET, path, Some(query));
    assert_eq!(class("/items/new", "b&a"), Class::Known(1));
    assert_eq!(class("/items/new", "c"), Class::Known(4), "the same path, and asks more");
    assert_eq!(class("/items/7", "b&a"), Class::Known(2));
    assert_eq!(class("/items/7", "b"), Class::Known(3));
    assert_eq!(class("/x", "a&b"), Class::Known(5));
    assert_eq!(table.classify(&Method::PUT, "/items/7", Some("a&b")), Class::Known(3));
}

#[test]
fn what_no_declared_query_takes_is_found_from_traffic_by_its_path() {
    let table = declared(&["GET /?s"]);
    assert_eq!(table.classify(&Method::GET, "/", Some("p=1")), Class::Unknown);
    assert_eq!(learn(&table, "/").as_deref(), Some("GET /"));
    assert_eq!(table.classify(&Method::GET, "/", Some("p=1")), Class::Known(2));
    assert_eq!(table.classify(&Method::GET, "/", Some("p=1&s")), Class::Known(1));
    assert_eq!(table.classify(&Method::GET, "/x.css", Some("s=1")), Class::Ungated);
}

#[test]
fn assets_and_health_checks_pass_ungated() {
    let table = table(&[], 10);
    for path in ["/a/site.CSS", "/robots.txt", "/.well-known/acme/x", "/favicon.ico", "/healthz"] {
        assert_eq!(get(&table, path), Class::Ungated, "{path}");
    }
    assert_eq!(table.classify(&Method::POST, "/a/site.css", None), Class::Unknown);
    assert_eq!(get(&table, "/healthz/more"), Class::Unknown);
    assert_eq!(get(&table, "/css"), Class::Unknown);
    assert_eq!(get(&table, &"/a".repeat(DEPTH_MAX + 1)), Class::Other);
}

/// A table with every kind of exception: paths, everything below one, endings and beginnings.
fn with_exceptions() -> Table {
    let static_prefixes = vec!["/assets/".to_owned()];
    Table::new(&params::Routes { static_prefixes, discovered_max: 10, ..params::Routes::default() })
}

#[test]
fn a_path_that_some_servers_read_otherwise_is_never_an_exception() {
    let table = with_exceptions();
    for path in [
        "/.well-known/../checkout",
        "/.well-known/./../checkout",
        "/assets/..",
        "/.well-known/%2e%2e/checkout",
        "/.well-known/%2E%2e/checkout",
        "/.well-known/.%2E/checkout",
        "/.well-known/..%2fcheckout",
        "/.well-known/..%2Fcheckout",
        "/.well-known/%252e%252e/checkout",
        "/.well-known/%c0%ae%c0%ae/checkout",
        "/.well-known/%u002e%u002e/checkout",
        "/.well-known/x\\..\\..\\checkout",
        "/.well-known/%5c..%5C..%5Ccheckout",
        "/.well-known/..;/checkout",
        "/.well-known/x;/../checkout",
        "/.well-known//checkout",
        "//checkout/a.css",
        "/checkout;a.css",
        "/checkout;/a.css",
        "/checkout%3ba.css",
        "/checkout%3Ba.css",
        "/checkout%00.css",
        "/checkout%0a.css",
        "/checkout%3f.css",
        "/checkout%23.css",
        "/checkout%2ecss",
        "/checkout%25.css",
        "/checkout%zz.css",
        "/checkout.css%",
        "/checkout%2.css",
        "/checkout%ff.css",
        "/buy.php/x.css",
        "/shop/Buy.PHP/assets/x.css",
        "/assets/%2e%2e%2fcheckout",
    ] {
        for method in [Method::GET, Method::HEAD, Method::POST] {
            let class = table.classify(&method, path, None);
            assert_ne!(class, Class::Ungated, "{method} {path}");
            assert!(class.route().is_some(), "{method} {path}");
        }
    }
    for path in ["/pictures/%E5%86%99%E7%9C%9F%20(2).png", "/assets/a%2Bb", "/.well-known/a%20b"] {
        assert_eq!(get(&table, path), Class::Ungated, "{path}");
    }
}

#[test]
fn a_set_has_what_some_servers_take_for_one_of_it() {
    let start = Pattern::new(&pattern(Some("GET"), "/Sale/start"));
    for path in [
        "/Sale/start",
        "//Sale/./start/",
        "/sale/START",
        "/Sale/%73tart",
        "/Sale/%2573tart",
        "/x/../Sale/start",
        "/x/..;a=b/Sale/start;c",
        "/x/%2e%2E/Sale%2Fstart",
        "/x\\..\\Sale%5Cstart",
        "/Sale/start%3Fx",
        "/Sale/start%00.css",
    ] {
        assert!(start.may_match(&Method::GET, &Readings::of(path)), "{path}");
        assert!(
            start.may_match(&Method::HEAD, &Readings::of(path))
                && !start.may_match(&Method::POST, &Readings::of(path)),
            "{path}"
        );
    }
    for path in ["/", "/Sale", "/Sale/start/x", "/Sale/start/../x", "/Sale%2Fstart%2Fx", "/x?/Sale/start"] {
        assert!(!start.may_match(&Method::GET, &Readings::of(path)), "{path}");
    }
    let encoded = Pattern::new(&pattern(None, "/caf%C3%A9"));
    assert!(encoded.may_match(&Method::GET, &Readings::of("/caf%C3%A9")), "as it is written");
}

/// What servers do to a path before they look at it. Each may do any of it, in this order.
fn read_by(habits: &[bool; 6], path: &str) -> String {
    let [twice, overlong, backslashes, parameters, empties, cuts] = *habits;
    let mut bytes = decoded(path).0;
    if twice {
        bytes = decoded(&String::from_utf8_lossy(&bytes)).0;
    }
    let mut text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    if overlong {
        text = text.replace("\u{c0}\u{ae}", ".").replace("\u{c0}\u{af}", "/");
    }
    if cuts {
        text.truncate(text.find(['?', '#', '\0', '\n']).unwrap_or(text.len()));
    }
    if backslashes {
        text = text.replace('\\', "/");
    }
    let mut kept: Vec<&str> = Vec::new();
    for segment in text.split('/').skip(1) {
        let segment = if parameters { segment.split(';').next().unwrap_or_default() } else { segment };
        match segment {
            "." => {}
            ".." => _ = kept.pop(),
            "" if empties => {}
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

fn disguised() -> impl Strategy<Value = String> {
    let marks = ["/", "//", "/", ".", "..", "%2e", "%2E", "%252e", "%2f", "%2F", "%5C", "\\", ";"];
    let more = ["%3b", "%00", "%3f", "%23", "%0a", "%25", "%c0%ae", "%c0%af", "%", "%2", "%41", "%20"];
    let names = ["checkout", ".well-known", "assets", "a.css", "robots.txt", "health", "x"];
    let piece = prop_oneof![
        3 => prop::sample::select(marks.to_vec()),
        1 => prop::sample::select(more.to_vec()),
        3 => prop::sample::select(names.to_vec()),
    ];
    let beginning = prop::sample::select(vec!["/", "/.well-known/", "/assets/", "/checkout", "/checkout/"]);
    let end = prop::sample::select(vec!["", "", "a.css", ".css", "/a.css", "robots.txt"]);
    (beginning, prop::collection::vec(piece, 0..7), end)
        .prop_map(|(beginning, pieces, end)| format!("{beginning}{}{end}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn what_passes_as_an_exception_is_one_to_every_server(path in disguised(), habits in any::<[bool; 6]>()) {
        let table = with_exceptions();
        if get(&table, &path) == Class::Ungated {
            let read = read_by(&habits, &path);
            prop_assert!(
                table.is_exception(&Method::GET, &read) || table.is_exception(&Method::GET, &format!("{read}/")),
                "{} is read as {}", path, read
            );
        }
    }

    #[test]
    fn no_disguise_takes_a_path_out_of_its_set(
        segments in prop::collection::vec("[a-z]{1,5}", 1..4),
        disguises in prop::collection::vec((0..9_usize, any::<prop::sample::Index>()), 0..8),
    ) {
        let plain = format!("/{}", segments.join("/"));
        let own = Pattern::new(&pattern(None, &plain));
        let mut path = plain;
        for (how, at) in disguises {
            let letters: Vec<usize> = path
                .char_indices()
                .filter(|(at, letter)| letter.is_ascii_lowercase() && !path[..*at].ends_with(['%', '2', '5']))
                .map(|(at, _)| at)
                .collect();
            let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
            let (slash, letter) = (slashes.get(at.index(slashes.len().max(1))), letters.get(at.index(letters.len().max(1))));
            match (how, slash, letter) {
                (0, Some(at), _) => path.insert(*at, '/'),
                (1, Some(at), _) => path.insert_str(*at, "/."),
                (2, Some(at), _) => path.insert_str(*at, "/x/.."),
                (3, Some(at), _) => path.insert_str(*at, "/x/..;y"),
                (4, Some(at), _) if *at > 0 => path.replace_range(*at..=*at, "%2F"),
                (5, Some(at), _) if *at > 0 => path.replace_range(*at..=*at, "\\"),
                (6, _, Some(at)) => path.replace_range(*at..=*at, &format!("%{:02X}", path.as_bytes()[*at])),
                (7, _, Some(at)) => path.replace_range(*at..=*at, &path[*at..=*at].to_uppercase()),
                _ => path.push_str(";z"),
            }
        }
        prop_assert!(own.may_match(&Method::GET, &Readings::of(&path)), "{}", path);
    }
}
