use super::*;
use crate::schema;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use suimon_model::{Duration, Limit, PoolId};
use suimon_params::Params;

fn parse(text: &str) -> Settings {
    Settings::parse("test.toml", text).unwrap()
}

fn faults(text: &str) -> String {
    Settings::parse("test.toml", text).unwrap_err().to_string()
}

#[test]
fn load_that_nodes_report_is_taken_where_it_is_asked_for() {
    let upstream = |text: &str| parse(text).proxy.upstream;
    let off = upstream("");
    assert_eq!((off.balance, off.load_reports), (Balance::Shares, LoadReportParams::default()));
    let on = upstream(
        "[upstream]\nbalance = \"reported\"\n[upstream.load_reports]\nlisten = \"10.0.0.1:8002\"\nkeys = \"/k\"\n",
    );
    assert_eq!(on.balance, Balance::Reported);
    assert_eq!(on.load_reports.listen, Some("10.0.0.1:8002".parse().unwrap()));
    assert_eq!(on.load_reports.keys_file.as_deref(), Some(Path::new("/k")));
    assert_eq!((on.load_reports.clock_skew_max, on.load_reports.orca), (Duration::from_secs(10), false));
    let orca = upstream("[upstream]\nbalance = \"reported\"\n[upstream.load_reports]\norca = true\n");
    assert!(orca.load_reports.orca && orca.load_reports.listen.is_none());
    let asked = upstream("[upstream]\nbalance = \"reported\"\n[upstream.load_reports]\nagent_check = 8003\n");
    assert_eq!(asked.load_reports.agent_check, Some(8003));
    for (text, fault) in [
        ("[upstream]\nbalance = \"reported\"", "upstream.balance = \"reported\": must be \"shares\", or"),
        (
            "[upstream]\nbalance = \"paper\"\n[upstream.load_reports]\norca = true",
            "upstream.balance = \"paper\": must be \"shares\", or",
        ),
        ("[upstream.load_reports]\nlisten = \"127.0.0.1:8002\"", "upstream.load_reports.keys"),
        (
            "[upstream.load_reports]\norca = true\nagent_check = 8003",
            "upstream.load_reports.agent_check = 8003: must be left out",
        ),
        ("[upstream]\nbalance = \"random\"", "must be \"shares\", \"reported\" or \"paper\""),
    ] {
        let faults = Settings::parse("test", text).unwrap_err().to_string();
        assert!(faults.contains(fault), "{text}: {faults}");
    }
}

#[test]
fn the_defaults_are_those_of_the_rooms() {
    let mut settings = Settings::default();
    settings.proxy.gate.cores = suimon_gate::Params::default().cores;
    settings.proxy.upstream.nodes.clear();
    assert_eq!(format!("{:#?}", settings.proxy), format!("{:#?}", suimon_params::Params::default()));

    let text = "[gate]\nroute_law = \"paper\"\nsession_law = \"paper\"";
    let gate = parse(text).proxy.gate;
    assert_eq!(gate.route_law, RouteLawKind::Paper(PaperRouteParams::default()));
    assert_eq!(gate.session_law, SessionLawKind::Paper(PaperSessionParams::default()));
}

#[test]
fn the_same_file_says_the_same_though_the_process_may_use_other_cores_now() {
    let before = Settings::default().proxy.gate.cores;
    let all = sched_getaffinity(None).expect("a thread may ask where it runs");
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).expect("it runs somewhere");
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).expect("a thread may run on fewer");
    assert_eq!(std::thread::available_parallelism().map_or(0, std::num::NonZero::get), 1);
    let after = Settings::default().proxy.gate.cores;
    sched_setaffinity(None, &all).expect("and on those of before");
    assert_eq!(after, before);
}

#[test]
fn what_is_set_reaches_its_room() {
    let settings = parse(
        r#"
        [listen]
        http = "127.0.0.1:0"
        trusted_proxies = ["10.0.0.0/8"]
        tls = { cert = "c.pem", key = "k.pem" }
        [upstream]
        nodes = ["http://10.1.1.1:8080", "https://10.1.1.2"]
        protocol = "http2"
        on_client_disconnect = "cancel"
        [[session]]
        kind = "shopping"
        begins = ["POST /login", "GET /"]
        ends = ["POST /logout"]
        app_cookie = "JSESSIONID"
        patience = "30s"
        hold = "10s"
        [[session]]
        kind = "rest"
        mode = "off"
        [[route]]
        match = "GET /search"
        mode = 3
        [[route]]
        match = "* /api/*"
        mode = "observe"
        [[route]]
        match = "GET /index.php?page=search&q"
        mode = 2
        [gate]
        session_law = "static"
        static_sessions = 35
        order = "fifo"
        cores = 4
        [lease]
        keys = "/tmp/keys"
        [timeouts]
        first_byte = "2m"
        [limits]
        body_bytes = "1MiB"
        [admin]
        listen = "off"
        "#,
    );
    let proxy = &settings.proxy;
    assert_eq!(proxy.listen.plain, Some("127.0.0.1:0".parse().unwrap()));
    assert_eq!(proxy.listen.tls.as_ref().unwrap().cert, Path::new("c.pem"));
    assert_eq!(proxy.trusted_proxies, [Network { address: "10.0.0.0".parse().unwrap(), prefix: 8 }]);
    assert_eq!(proxy.on_client_disconnect, Some(OnClientDisconnect::Cancel));
    assert_eq!(proxy.sessions.kinds.len(), 2);
    let shopping = &proxy.sessions.kinds[0];
    assert_eq!(shopping.begins[0], RoutePattern { method: Some("POST".into()), path: "/login".into() });
    assert_eq!(shopping.gate.patience, Some(Duration::from_secs(30)));
    assert_eq!(shopping.gate.hold, Some(Duration::from_secs(10)));
    assert_eq!(proxy.sessions.kinds[1].gate.mode, KindMode::Off);
    assert_eq!(proxy.routes.declared[0].mode, RouteMode::Fixed(Limit::of(3)));
    assert_eq!(proxy.routes.declared[1].pattern, RoutePattern { method: None, path: "/api/*".into() });
    assert_eq!(proxy.routes.declared[1].query, None);
    let search = &proxy.routes.declared[2];
    assert_eq!(search.pattern, RoutePattern { method: Some("GET".into()), path: "/index.php".into() });
    assert_eq!(search.query, QueryPattern::parse("q&page=search").ok());
    assert_eq!(search.name(), "GET /index.php?page=search&q");
    assert_eq!(proxy.gate.session_law, SessionLawKind::Static(35));
    assert_eq!(proxy.gate.order, QueueOrder::FirstIn);
    assert_eq!(proxy.gate.cores, 4);
    assert_eq!(proxy.limits.body_bytes, Some(1 << 20));
    assert_eq!(settings.lease_keys, StatePath::File("/tmp/keys".into()));
    assert_eq!(settings.proxy.upstream.nodes[1].to_string(), "https://10.1.1.2:443");
    assert_eq!(settings.proxy.upstream.nodes[0].protocol, Protocol::Http2);
    assert_eq!(settings.proxy.upstream.first_byte_timeout, Duration::from_secs(120));
    assert_eq!(settings.admin_listen, None);
}

#[test]
fn settings_that_do_not_go_together_are_refused_with_both_names() {
    let cases = [
        ("[gate]\nsession_law = \"static\"", "gate.static_sessions is missing"),
        (
            "[[session]]\nkind = \"a\"\npatience = \"5s\"\nhold = \"6s\"",
            "session[0].hold = \"6s\": must be at most its patience (\"5s\")",
        ),
        (
            "[[session]]\nkind = \"a\"\nbegins = [\"GET /\"]\n[[session]]\nkind = \"a\"",
            "session[1].kind = \"a\": must be unlike",
        ),
        (
            "[[session]]\nkind = \"a\"\n[[session]]\nkind = \"b\"",
            "session[0].begins = []: must be given here",
        ),
        (
            "[[route]]\nmatch = \"GET /\"\n[[route]]\nmatch = \"GET /\"",
            "route[1].match = \"GET /\": must be unlike that of route[0]",
        ),
        (
            "[[route]]\nmatch = \"GET /?a&b\"\n[[route]]\nmatch = \"GET /\"\n[[route]]\nmatch = \"GET /?%62&a\"",
            "route[2].match = \"GET /?%62&a\": must be unlike that of route[0]",
        ),
        (
            "[[route]]\nmatch = \"GET /?s=%\"",
            "route[0].match = \"GET /?s=%\": must be a route with two hexadecimal digits behind each %",
        ),
        (
            "[[session]]\nkind = \"a\"\nbegins = [\"GET /?s\"]",
            "session[0].begins[0] = \"GET /?s\": must be a method (or *) and a path without a query",
        ),
        ("[upstream]\nnodes = []", "upstream.nodes = []: must be at least one node"),
        (
            "[upstream]\nnodes = [\"http://a\", \"http://a:80\"]",
            "upstream.nodes[1] = \"http://a:80\": must be named once",
        ),
        (
            "[upstream.ejection]\nbase = \"2m\"",
            "upstream.ejection.base = \"2m\": must be at most upstream.ejection.max (\"1m\")",
        ),
        ("[listen]\nhttp = \"off\"", "listen.http = \"off\": must be an address"),
        (
            "[admin]\nlisten = \"127.0.0.1:8000\"",
            "admin.listen = \"127.0.0.1:8000\": must be another address than listen.http",
        ),
        (
            "[upstream]\nnodes = [\"http://localhost:8000\"]",
            "upstream.nodes = \"http://localhost:8000\": must be the application",
        ),
        (
            "[limits]\nresponse_buffer_bytes = \"1GiB\"",
            "limits.response_buffer_bytes = 1073741824: must be at most limits.buffered_bytes",
        ),
    ];
    for (text, wanted) in cases {
        let faults = faults(text);
        assert!(faults.contains(wanted) && !faults.contains('\n'), "{wanted}\n{faults}");
    }
}

#[test]
fn faults_of_form_and_faults_between_settings_come_together() {
    let faults = faults(
        "[upstream]\nnodes = []\n[timeouts]\nconnect = 3\n[gate]\nlaw = \"seed\"\nsession_law = \"static\"",
    );
    assert_eq!(faults.lines().count(), 4, "{faults}");
}

#[test]
fn a_health_check_is_over_before_the_next_begins_unless_it_is_told_otherwise() {
    let timeout = |text: &str| parse(text).proxy.upstream.health.timeout.as_millis();
    assert_eq!(timeout("[upstream.health]\ninterval = \"10s\""), 2000);
    assert_eq!(timeout("[upstream.health]\ninterval = \"500ms\""), 500);
    assert_eq!(timeout("[upstream.health]\ninterval = \"0s\""), 2000);
    assert_eq!(timeout("[upstream.health]\ninterval = \"10s\"\ntimeout = \"5s\""), 5000);
}

#[test]
fn port_zero_is_never_taken() {
    parse("[listen]\nhttp = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"");
}

#[test]
fn a_file_that_is_named_and_not_there_is_a_fault_of_loading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("suimon.toml");
    std::fs::write(&path, "[listen.tls]\ncert = \"/nowhere/cert.pem\"\nkey = \"/nowhere/key.pem\"\n")
        .unwrap();
    let faults = Settings::load(&path).unwrap_err().to_string();
    assert_eq!(faults.lines().count(), 2, "{faults}");
    let named = format!(
        "{}:2: listen.tls.cert = \"/nowhere/cert.pem\": must be a file that can be read",
        path.display()
    );
    assert!(faults.starts_with(&named), "{faults}");

    let missing = Settings::load(&folder.path().join("absent.toml")).unwrap_err().to_string();
    assert!(missing.contains("absent.toml: cannot be read"), "{missing}");
}

#[test]
fn a_process_below_a_path_gives_it_to_sites_that_have_no_base_path() {
    let bases = |settings: &Settings| {
        let sites = settings.proxy.sites.iter().map(|site| &site.params);
        let rooms = [&settings.proxy].into_iter().chain(sites).map(|params| params.waiting_room.base());
        rooms.map(str::to_owned).collect::<Vec<_>>()
    };
    let text = "[waiting_room]\nbase_path = \"/a\"\n[[site]]\nname = \"b\"\nhosts = [\"b\"]\n[[site]]\nname = \"c\"\nhosts = [\"c\"]\n[site.waiting_room]\nbase_path = \"\"\n";
    assert_eq!(bases(&parse(text)), ["/a", "", ""]);
    assert_eq!(bases(&parse(text).mounted_at("/shop").unwrap()), ["/a", "/shop", ""]);
    assert_eq!(bases(&parse("").mounted_at("/shop").unwrap()), ["/shop"]);
    assert_eq!(bases(&parse("").mounted_at("").unwrap()), [""]);
    let Params { waiting_room, sites, .. } = parse(text).mounted_at("/shop").unwrap().proxy;
    let mounts = sites.iter().map(|site| &site.params.waiting_room).chain([&waiting_room]);
    assert!(mounts.into_iter().all(|room| room.mount_path == "/shop"));
    let wrong = parse("").mounted_at("shop/").unwrap_err().to_string();
    assert!(wrong.starts_with("mount_path = \"shop/\": must be \"\", or a path"), "{wrong}");
    let wrong = faults("[waiting_room]\nbase_path = \"/shop/\"\n");
    assert!(wrong.contains("waiting_room.base_path = \"/shop/\": must be \"\", or a path"), "{wrong}");
}

#[test]
fn keys_can_be_kept_nowhere() {
    assert_eq!(parse("[lease]\nkeys = \"none\"").lease_keys, StatePath::Nowhere);
    assert_eq!(parse("").lease_keys, StatePath::StateFolder);
}

#[test]
fn no_value_of_any_key_panics_and_every_fault_names_its_key() {
    let values = [
        "true",
        "-1",
        "0",
        "1",
        "9223372036854775807",
        "1.5",
        "-0.0",
        "nan",
        "inf",
        "\"\"",
        "\"x\"",
        "\"off\"",
        "\"none\"",
        "\"0s\"",
        "\"1h\"",
        "\"1KiB\"",
        "\"GET /\"",
        "\"GET /?s&page=x\"",
        "\"/\"",
        "\"*\"",
        "\"http://h\"",
        "\"127.0.0.1:1\"",
        "\"::/0\"",
        "[]",
        "[1]",
        "[\"x\"]",
        "[\"GET /a\"]",
        "[[]]",
        "{}",
        "{ a = 1 }",
        "[{ a = 1 }]",
        "2026-11-21",
        "\"\\u0000\"",
        "\"a\\nb\"",
    ];
    let mut right = 0;
    for section in schema::SECTIONS {
        let heading = match section.form {
            schema::Form::Repeated(_) => format!("[[{}]]", section.path),
            schema::Form::Table | schema::Form::Optional => format!("[{}]", section.path),
        };
        for key in section.keys {
            for value in values {
                let text = format!("{heading}\n{} = {value}\n", key.name);
                match Settings::parse("test.toml", &text) {
                    Ok(_) => right += 1,
                    Err(faults) => assert!(
                        faults.to_string().contains(key.name) || faults.to_string().contains("missing"),
                        "{text}\n{faults}"
                    ),
                }
            }
        }
    }
    assert!(right > 100, "{right}");
}

#[test]
fn a_file_of_many_kinds_and_routes_is_bounded() {
    use std::fmt::Write;
    let mut text = String::new();
    for index in 0..=suimon_params::KINDS_MAX {
        let _ = writeln!(text, "[[session]]\nkind = \"k{index}\"\nbegins = [\"GET /{index}\"]");
    }
    assert_eq!(
        faults(&text),
        format!(
            "session: there are {} of them; at most {} are allowed",
            suimon_params::KINDS_MAX + 1,
            suimon_params::KINDS_MAX
        )
    );
}

#[test]
fn what_routes_ask_of_queries_is_bounded() {
    use std::fmt::Write;
    let mut text = String::new();
    for index in 0..=QueryPattern::ALL_MAX / QueryPattern::PARAMETERS_MAX {
        let parameters: Vec<_> =
            (0..QueryPattern::PARAMETERS_MAX).map(|number| format!("p{number}=v{index}")).collect();
        let _ = writeln!(text, "[[route]]\nmatch = \"GET /?{}\"", parameters.join("&"));
    }
    assert_eq!(
        faults(&text),
        "route: their queries name 1032 different parameters or values; at most 1024 are allowed"
    );
}

#[test]
fn a_recording_is_made_only_where_its_file_is_named() {
    let parse = |text: &str| Settings::parse("test.toml", text).unwrap();
    assert_eq!(parse("").proxy.record, None);
    assert_eq!(parse("[record]\nbytes_max = \"16MiB\"").record_bytes_max, 16 << 20);
    let recording = parse("[record]\nfile = \"gate.rec\"").proxy.record.unwrap();
    assert_eq!((recording.file, recording.bytes_max), ("gate.rec".into(), 1 << 30));
    let faults = Settings::parse("test.toml", "[record]\nbytes_max = \"1MiB\"").unwrap_err();
    assert!(
        faults.to_string().contains("record.bytes_max = \"1MiB\": must be a size from \"8MiB\""),
        "{faults}"
    );
}

#[test]
fn pools_take_the_requests_of_their_routes_and_one_takes_the_rest() {
    let settings = parse(
        "[gate]\ncores = 4\n\
         [[pool]]\nname = \"reports\"\nroutes = [\"* /reports/*\", \"POST /export\"]\ncommand = [\"a\", \"{socket}\"]\n\
         [[pool]]\nname = \"shop\"\nkind = \"fastcgi\"\ncommand = [\"php-cgi\"]\ndirectory = \"/srv/shop\"\n\
         [[pool]]\nname = \"old\"\nroutes = [\"* /cgi-bin/*\"]\nkind = \"cgi\"\ndirectory = \"/srv/old\"\n",
    );
    let proxy = settings.proxy;
    let names = |upstream: &UpstreamParams| {
        upstream.workers.as_ref().map(|workers| workers.pool.name.to_string()).unwrap_or_default()
    };
    assert_eq!(proxy.upstreams().map(names).collect::<Vec<_>>(), ["shop", "reports", "old"]);
    let pools: Vec<_> = proxy.routes.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(pools, ["reports", "old"], "in the same order");
    assert_eq!(proxy.routes.pools[0].patterns[1].name(), "POST /export");
    assert_eq!(proxy.gate.finds_workers, [PoolId(0), PoolId(1)], "not how many processes of CGI run");
    let root = |upstream: &UpstreamParams| match upstream.fastcgi.as_ref().map(|it| &it.mapping) {
        Some(Mapping::Folder { root, .. }) => root.clone(),
        _ => String::new(),
    };
    assert_eq!(proxy.upstreams().map(root).skip(2).collect::<Vec<_>>(), ["/srv/old"]);
    assert_eq!(root(&proxy.upstream), "/srv/shop");
}

#[test]
fn the_root_is_that_of_the_only_one_that_runs_programs() {
    let folder = |upstream: &UpstreamParams| match upstream.fastcgi.as_ref().map(|it| &it.mapping) {
        Some(Mapping::Folder { root, .. }) => root.clone(),
        _ => String::new(),
    };
    let root = "[upstream.fastcgi]\nroot = \"/srv/shop/public\"\n";
    let shop =
        "[[pool]]\nname = \"shop\"\nkind = \"fastcgi\"\ncommand = [\"php-cgi\"]\ndirectory = \"/srv/shop\"\n";
    let reports = "[[pool]]\nname = \"reports\"\nroutes = [\"* /reports/*\"]\n";
    let http = reports.to_owned() + "command = [\"a\", \"{socket}\"]\n";
    let proxy = parse(&(root.to_owned() + shop + &http)).proxy;
    assert_eq!(folder(&proxy.upstream), "/srv/shop/public", "the other one speaks HTTP");

    let cgi = reports.to_owned() + "kind = \"cgi\"\ndirectory = \"/srv/reports\"\n";
    let nodes = "[upstream]\nnodes = [\"fastcgi:/run/php.sock\"]\n";
    let proxy = parse(&(nodes.to_owned() + root + &cgi)).proxy;
    assert_eq!((&*folder(&proxy.upstream), &*folder(&proxy.pools[0])), ("/srv/shop/public", "/srv/reports"));

    let faults = faults(&(root.to_owned() + shop + &cgi));
    assert!(faults.contains("upstream.fastcgi.root = given: must be left out"), "{faults}");
}

#[test]
fn a_pool_with_routes_stands_beside_nodes() {
    let settings = parse(
        "[upstream]\nnodes = [\"http://127.0.0.1:9000\"]\n\
         [[pool]]\nname = \"reports\"\nroutes = [\"* /reports/*\"]\ncommand = [\"a\", \"{socket}\"]\n",
    );
    assert_eq!(settings.proxy.upstream.nodes[0].to_string(), "http://127.0.0.1:9000");
    assert_eq!(settings.proxy.upstream.workers, None);
    assert_eq!(settings.proxy.pools[0].nodes[0].to_string(), "pool:reports");
    assert_eq!(settings.proxy.gate.finds_workers, [PoolId(1)]);
}

#[test]
fn requests_that_could_be_for_two_pools_are_refused() {
    let pool = |name: &str, routes: &str| {
        format!("[[pool]]\nname = \"{name}\"\nroutes = [{routes}]\ncommand = [\"a\", \"{{socket}}\"]\n")
    };
    for (text, words) in [
        (pool("a", "") + &pool("b", ""), "pool[1].routes = []: must be given"),
        (pool("a", "\"* /x/*\"") + &pool("a", "\"* /y\""), "pool[1].name = \"a\": must be unlike"),
        (
            pool("a", "\"* /x/*\"") + &pool("b", "\"GET /{name}\""),
            "pool[1].routes = \"GET /{name}\": must be routes that the pool \"a\" has no part of",
        ),
        (
            "[[route]]\nmatch = \"GET /{page}\"\n".to_owned() + &pool("a", "\"* /x/*\""),
            "pool[0].routes = \"* /x/*\": must be routes that hold all of the declared route \"GET /{page}\"",
        ),
        (
            "[upstream]\nnodes = [\"http://127.0.0.1:9000\"]\n".to_owned() + &pool("a", ""),
            "upstream.nodes = given: must be left out",
        ),
        (pool("a", "\"* /x/*\""), "all pools have routes"),
        (
            "[upstream.fastcgi]\nprogram = \"/srv/a.pl\"\n".to_owned()
                + "[[pool]]\nname = \"a\"\nkind = \"fastcgi\"\ncommand = [\"a\"]\n"
                + "[[pool]]\nname = \"b\"\nkind = \"cgi\"\nroutes = [\"* /x/*\"]\n",
            "upstream.fastcgi.program = given: must be left out",
        ),
        (
            "[upstream]\nnodes = [\"fastcgi:/run/php.sock\"]\n[upstream.fastcgi]\nprogram = \"/srv/a.php\"\n"
                .to_owned()
                + "[[pool]]\nname = \"b\"\nkind = \"cgi\"\nroutes = [\"* /x/*\"]\ndirectory = \"/srv\"\n",
            "upstream.fastcgi.program = given: must be left out",
        ),
    ] {
        let faults = faults(&text);
        assert!(faults.contains(words), "{text}: {faults}");
    }
}
