//! Routes, exceptions, and sets of requests.

use super::*;
use crate::DeclaredRoute;
use crate::found::SIBLINGS_MAX;
use crate::spelling::decoded;
use proptest::prelude::*;
use suimon_gate::RouteMode;

fn pattern(method: Option<&str>, path: &str) -> RoutePattern {
    RoutePattern { method: method.map(str::to_owned), path: path.to_owned() }
}

fn table(declared: &[RoutePattern], discovered_max: usize) -> Table {
    let declared = declared
        .iter()
        .map(|p| DeclaredRoute { pattern: p.clone(), query: None, mode: RouteMode::Enforce })
        .collect();
    Table::new(&params::Routes { declared, discovered_max, ..params::Routes::default() })
}

fn learn(table: &Table, path: &str) -> Option<String> {
    learn_at(table, path, Instant::now(), &[]).map(|(_, name)| name)
}

/// Notes a good answer to a path, with `uses` as the good answers of the routes so far. Returns the
/// place and the name that the path gets.
fn learn_at(table: &Table, path: &str, now: Instant, uses: &[u64]) -> Option<(TableSlot, String)> {
    let mut got = None;
    let uses = |route: RouteId| uses.get(row(route)).copied().unwrap_or(0);
    table.learn(&Method::GET, path, now, uses, |seat, _, name| {
        got = Some((seat, name.to_owned()));
        true
    });
    got
}

fn get(table: &Table, path: &str) -> Class {
    table.classify(&Method::GET, path, None)
}

fn is_unknown(class: Class) -> bool {
    matches!(class, Class::Unknown(_))
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
        assert!(is_unknown(get(&table, path)));
        assert_eq!(learn(&table, path).as_deref(), Some(template));
        assert_eq!(get(&table, path), Class::Known(route_of(1)), "{path}");
        assert_eq!(learn(&table, path), None, "known already");
    }
}

#[test]
fn a_route_declared_for_head_is_that_of_get() {
    let table = table(&[written("HEAD /status")], 10);
    for method in [Method::HEAD, Method::GET] {
        assert_eq!(table.classify(&method, "/status", None).route().map(row), Some(1), "{method}");
    }
    assert!(is_unknown(table.classify(&Method::POST, "/status", None)));
}

#[test]
fn routes_differ_by_method_but_head_is_get() {
    let table = table(&[], 10);
    learn(&table, "/cart");
    assert_eq!(table.classify(&Method::HEAD, "/cart", None), Class::Known(route_of(1)));
    assert!(is_unknown(table.classify(&Method::POST, "/cart", None)));
}

#[test]
fn where_all_places_are_taken_a_path_gets_that_of_a_route_asked_for_much_less() {
    let table = table(&[], 2);
    learn(&table, "/a");
    learn(&table, "/b/7");
    let now = Instant::now();
    let uses = [0, 90, 2];
    for _ in 0..7 {
        assert_eq!(learn_at(&table, "/c", now, &uses), None);
        assert_eq!(get(&table, "/c").route().map(row), Some(row(OTHER)));
    }
    assert_eq!(learn_at(&table, "/c", now, &uses), Some((TableSlot::Of(route_of(2)), "GET /c".to_owned())));
    assert_eq!(
        (get(&table, "/a"), get(&table, "/c")),
        (Class::Known(route_of(1)), Class::Known(route_of(2)))
    );
    assert!(is_unknown(get(&table, "/b/8")), "its place is another's");
}

#[test]
fn made_up_paths_push_out_no_route_that_is_asked_for() {
    let table = table(&[], 200);
    let now = Instant::now();
    let path = |n: usize| {
        format!("/{}/{}", char::from(b'a' + (n % 26) as u8), char::from(b'a' + (n / 26 % 26) as u8))
    };
    let found = (0..300).filter(|n| learn_at(&table, &path(*n), now, &[]).is_some()).count();
    assert_eq!(found, 100 + 30, "half of the places at once, and then some per minute");
    let later = now + std::time::Duration::from_secs(6000);
    for n in 0..300 {
        let at = later + std::time::Duration::from_secs(3 * n as u64);
        learn_at(&table, &path(n), at, &[]);
    }
    let uses = [20; 201];
    let end = later + std::time::Duration::from_secs(2000);
    for n in 0..10_000 {
        let path = format!("/{}/{}/{}", n % 25, path(n), char::from(b'a' + (n % 23) as u8));
        assert_eq!(learn_at(&table, &path.replace(char::is_numeric, "x"), end, &uses), None, "{path}");
    }
}

#[test]
fn a_route_that_is_asked_for_gets_the_place_of_one_that_is_not_any_more() {
    let table = table(&[], 1);
    let now = Instant::now();
    learn_at(&table, "/old", now, &[]);
    let uses = [0, 5000];
    let at = |minutes: u64| now + std::time::Duration::from_secs(60 * minutes);
    for minute in [1, 11, 22] {
        assert_eq!(learn_at(&table, "/new", at(minute), &uses), None);
    }
    let got: Vec<_> = (0..4).filter_map(|_| learn_at(&table, "/new", at(23), &uses)).collect();
    assert_eq!(
        got,
        [(TableSlot::Of(route_of(1)), "GET /new".to_owned())],
        "twice ten minutes without a good answer"
    );
}

#[test]
fn a_place_that_cannot_be_had_now_stays_as_it_is() {
    let table = table(&[], 1);
    learn(&table, "/old");
    (0..9).for_each(|_| table.learn(&Method::GET, "/new", Instant::now(), |_| 0, |_, _, _| false));
    assert_eq!((get(&table, "/old"), is_unknown(get(&table, "/new"))), (Class::Known(route_of(1)), true));
    assert!(learn(&table, "/new").is_some());
}

#[test]
fn an_asset_that_is_answered_with_a_page_is_gated_until_it_is_none() {
    let table = table(&[], 10);
    let note = |path: &str, is_page| {
        let asset = table.asset_of(get(&table, path), &Method::GET, path).expect("it looks like one");
        table.note_answer(asset, is_page);
    };
    note("/site.css", false);
    note("/checkout.js", true);
    assert_eq!(get(&table, "/site.css"), Class::Ungated(Exempt::Static));
    assert!(is_unknown(get(&table, "/checkout.js")));
    note("/checkout.js", false);
    assert_eq!(get(&table, "/checkout.js"), Class::Ungated(Exempt::Static));
}

#[test]
fn what_is_sent_to_the_pass_page_is_told_from_what_reads_it() {
    let table = table(&[], 10).with_pass_page(Some("/login".to_owned()));
    assert_eq!(get(&table, "/login"), Class::Ungated(Exempt::Listed));
    assert_eq!(table.classify(&Method::POST, "/login", None), Class::Ungated(Exempt::PassForm));
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
    assert_eq!(
        get(&table, &name(0)),
        Class::Known(route_of(1)),
        "those that were there first keep their route"
    );
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
    assert_eq!(get(&table, "/items/new"), Class::Known(route_of(1)));
    assert_eq!(get(&table, "/items/blue"), Class::Known(route_of(2)));
    assert!(is_unknown(get(&table, "/items/blue/more")));
    assert_eq!(table.classify(&Method::PUT, "/admin", None), Class::Known(route_of(3)));
    assert_eq!(table.classify(&Method::PUT, "/admin/a/b", None), Class::Known(route_of(3)));
    assert_eq!(get(&table, "/big.css"), Class::Known(route_of(4)));
    assert_eq!(learn(&table, "/x").as_deref(), Some("GET /x"));
    assert_eq!(get(&table, "/x"), Class::Known(route_of(5)));
}

#[test]
fn another_spelling_of_a_path_is_the_same_route() {
    let table = table(&[pattern(Some("GET"), "/slow")], 20);
    learn(&table, "/search/all");
    learn(&table, "/files/7/edit");
    for path in [
        "/slow",
        "/%73low",
        "/./slow",
        "/x/../slow",
        "//slow/",
        "/%2573low",
        "/slow%3Fx",
        "/x%2F..%2Fslow",
        "/slow;a",
    ] {
        assert_eq!(get(&table, path), Class::Known(route_of(1)), "{path}");
    }
    for path in [
        "/search/all",
        "/se%61rch/all",
        "/search/./%61ll",
        "/search%2Fall",
        "/search\\all",
        "/x/%2e%2e/search/all",
    ] {
        assert_eq!(get(&table, path), Class::Known(route_of(2)), "{path}");
    }
    assert_eq!(
        get(&table, "/files/group%2Fproject/edit"),
        Class::Known(route_of(3)),
        "one name, to most servers"
    );
    assert!(is_unknown(get(&table, "/Slow")), "to most servers this is another path");
    assert_eq!(learn(&table, "/c%61fe").as_deref(), Some("GET /cafe"));
    assert_eq!(learn(&table, "/y/../cafe"), None);
    assert_eq!(get(&table, "/cafe"), Class::Known(route_of(4)));
    assert_eq!(learn(&table, "/find/caf%C3%A9").as_deref(), Some("GET /find/{id}"));
    assert_eq!(get(&table, "/find/a%20b"), Class::Known(route_of(5)));
}

/// A table of these routes, each `METHOD /path?query`.
fn declared(routes: &[&str]) -> Table {
    let route = |text: &&str| {
        let (path, query) = text.split_once('?').map_or((*text, None), |(path, query)| (path, Some(query)));
        let (method, path) = path.split_once(' ').unwrap();
        let pattern = pattern((method != "*").then_some(method), path);
        let query = query.map(|query| QueryPattern::parse(query).unwrap());
        let route = DeclaredRoute { pattern, query, mode: RouteMode::Enforce };
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
                assert_eq!(class, Class::Known(route_of(1 + at(own))), "{method} /?{query} of {routes:?}");
            }
        }
        assert_eq!(get(&table, "/"), Class::Known(route_of(1 + at("GET /"))), "no query at all");
        assert!(is_unknown(table.classify(&Method::POST, "/", Some("s=x"))));
    }
    let table = declared(&["GET /?a", "GET /?b"]);
    assert_eq!(
        table.classify(&Method::GET, "/", Some("b&a")),
        Class::Known(route_of(1)),
        "as much: by order"
    );
}

#[test]
fn another_path_keeps_its_turn_however_much_is_asked_there() {
    let table =
        declared(&["GET /items/new", "GET /items/{id}?a&b", "* /items/{name}", "GET /items/new?c", "* /*"]);
    let class = |path, query| table.classify(&Method::GET, path, Some(query));
    assert_eq!(class("/items/new", "b&a"), Class::Known(route_of(1)));
    assert_eq!(class("/items/new", "c"), Class::Known(route_of(4)), "the same path, and asks more");
    assert_eq!(class("/items/7", "b&a"), Class::Known(route_of(2)));
    assert_eq!(class("/items/7", "b"), Class::Known(route_of(3)));
    assert_eq!(class("/x", "a&b"), Class::Known(route_of(5)));
    assert_eq!(table.classify(&Method::PUT, "/items/7", Some("a&b")), Class::Known(route_of(3)));
}

#[test]
fn what_no_declared_query_takes_is_found_from_traffic_by_its_path() {
    let table = declared(&["GET /?s"]);
    assert!(is_unknown(table.classify(&Method::GET, "/", Some("p=1"))));
    assert_eq!(learn(&table, "/").as_deref(), Some("GET /"));
    assert_eq!(table.classify(&Method::GET, "/", Some("p=1")), Class::Known(route_of(2)));
    assert_eq!(table.classify(&Method::GET, "/", Some("p=1&s")), Class::Known(route_of(1)));
    assert_eq!(table.classify(&Method::GET, "/x.css", Some("s=1")), Class::Ungated(Exempt::Static));
}

#[test]
fn assets_and_health_checks_pass_ungated() {
    let table = table(&[], 10);
    for path in ["/a/site.CSS", "/robots.txt", "/.well-known/acme/x", "/favicon.ico", "/healthz"] {
        assert!(matches!(get(&table, path), Class::Ungated(_)), "{path}");
    }
    assert!(is_unknown(table.classify(&Method::POST, "/a/site.css", None)));
    assert!(is_unknown(get(&table, "/healthz/more")));
    assert!(is_unknown(get(&table, "/css")));
    assert!(matches!(get(&table, &"/a".repeat(DEPTH_MAX + 1)), Class::Other(_)));
}

/// A table with every kind of exception: paths, whole subtrees, extensions and prefixes.
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
            assert!(class.route().is_some(), "{method} {path}");
        }
    }
    for path in ["/pictures/%E5%86%99%E7%9C%9F%20(2).png", "/assets/a%2Bb", "/.well-known/a%20b"] {
        assert!(matches!(get(&table, path), Class::Ungated(_)), "{path}");
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

/// What servers do to a path before they use it. A server may do any of it, in this order.
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
        if matches!(get(&table, &path), Class::Ungated(_)) {
            let read = read_by(&habits, &path);
            prop_assert!(
                table.exception(&Method::GET, &read).is_some() || table.exception(&Method::GET, &format!("{read}/")).is_some(),
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

/// As settings write it.
fn written(text: &str) -> RoutePattern {
    let (method, path) = text.split_once(' ').unwrap();
    pattern(Some(method).filter(|method| *method != "*"), path)
}

fn pool(name: &str, routes: &[&str]) -> PoolRoutes {
    PoolRoutes { name: name.to_owned(), patterns: routes.iter().map(|text| written(text)).collect() }
}

#[test]
fn each_pool_has_routes_of_its_own() {
    let declared =
        DeclaredRoute { pattern: written("GET /reports/sales"), query: None, mode: RouteMode::Enforce };
    let pools = vec![pool("reports", &["* /reports/*"]), pool("jobs", &["POST /jobs/{job}"])];
    let table =
        Table::new(&Routes { declared: vec![declared], pools, discovered_max: 20, ..Routes::default() });
    let at = |method: &Method, path: &str| table.classify_at_pool(method, path, None);
    let get = |path: &str| at(&Method::GET, path);
    let (rest, reports, jobs) = (PoolId(0), PoolId(1), PoolId(2));
    let first = SHARES as u32;
    assert_eq!(get("/reports/sales"), (Class::Known(RouteId(first)), reports), "the declared one");
    assert_eq!(get("/reports"), (Class::Unknown(RouteId(first + 1)), reports));
    assert_eq!(get("/reports/7"), (Class::Unknown(RouteId(first + 1)), reports));
    assert_eq!(get("/reports/logo.png"), (Class::Ungated(Exempt::Static), reports));
    assert_eq!(get("/a/../reports/7").1, reports, "as servers read it");
    assert_eq!(at(&Method::POST, "/jobs/7"), (Class::Unknown(RouteId(first + 2)), jobs));
    assert_eq!(get("/jobs/7").1, rest);
    assert!(matches!(get("/x"), (Class::Unknown(RouteId(share)), PoolId(0)) if share < first));
    assert_eq!(get("/logo.png"), (Class::Ungated(Exempt::Static), rest));
}

#[test]
fn a_route_found_for_one_pool_takes_no_requests_of_another() {
    let pools = vec![pool("old", &["* /2024/*", "* /help"])];
    let table = Table::new(&Routes { pools, discovered_max: 100, ..Routes::default() });
    let at = |path: &str| table.classify_at_pool(&Method::GET, path, None);
    let find = |path: &str| {
        let mut found = None;
        table.learn(
            &Method::GET,
            path,
            Instant::now(),
            |_| 0,
            |seat, pool, name| {
                found = Some((seat, pool, name.to_owned()));
                true
            },
        );
        found
    };
    let route = |found: u32| RouteId(SHARES as u32 + 1 + found);
    let seat = |found, pool, name: &str| Some((TableSlot::New(route(found)), PoolId(pool), name.to_owned()));
    assert_eq!(find("/2025/x"), seat(0, 0, "GET /{id}/x"));
    assert_eq!(find("/2024/x"), seat(1, 1, "GET /2024/x"), "no name is of two programs");
    assert_eq!(find("/help"), seat(2, 1, "GET /help"));
    // In a full place an unknown name counts as an identifier: not that of another pool.
    for n in 0..SIBLINGS_MAX as u8 {
        find(&format!("/p{}{}", char::from(b'a' + n / 26), char::from(b'a' + n % 26)));
    }
    assert_eq!(at("/2025/x"), (Class::Known(route(0)), PoolId(0)));
    assert_eq!(at("/2024/x"), (Class::Known(route(1)), PoolId(1)));
    assert_eq!(at("/help"), (Class::Known(route(2)), PoolId(1)));
    assert_eq!(at("/2023/x"), (Class::Known(route(0)), PoolId(0)));
}

#[test]
fn what_is_remembered_is_of_the_pool_that_it_is_of_now() {
    let pools = vec![pool("reports", &["* /reports/*"])];
    let table = Table::new(&Routes { pools, discovered_max: 20, ..Routes::default() });
    let mut seen = vec![];
    for name in ["GET /reports/{id}", "GET /items/{id}", "other of reports"] {
        table.remember(name, |_, pool, name| seen.push((pool, name.to_owned())));
    }
    let of = |pool, name: &str| (PoolId(pool), name.to_owned());
    assert_eq!(seen, [of(1, "GET /reports/{id}"), of(0, "GET /items/{id}")]);
    assert_eq!(table.classify_at_pool(&Method::GET, "/reports/9", None).1, PoolId(1));
    assert!(matches!(table.classify(&Method::GET, "/reports/9", None), Class::Known(_)));
}

#[test]
fn patterns_overlap_where_some_request_belongs_to_both() {
    for (one, other, do_overlap) in [
        ("* /a/*", "GET /a/b", true),
        ("* /a/*", "GET /a", true),
        ("* /a/*", "GET /b", false),
        ("GET /a", "POST /a", false),
        ("GET /a", "HEAD /a", true),
        ("HEAD /a", "HEAD /a", true),
        ("GET /{x}", "GET /a", true),
        ("GET /{x}", "GET /a/b", false),
        ("GET /{x}/b", "GET /a/{y}", true),
        ("GET /{x}/b/*", "GET /a/c", false),
        ("* /*", "GET /a/b/c", true),
        ("* /a/b/*", "* /a/*", true),
    ] {
        assert_eq!(written(one).overlaps(&written(other)), do_overlap, "{one} and {other}");
        assert_eq!(written(other).overlaps(&written(one)), do_overlap, "{other} and {one}");
    }
}
