use super::*;
use suimon_gate::RouteMode;
use suimon_model::Limit;
use suimon_sim::{Curve, Efficiency, Metric};

/// The least a scenario must say, and `more`.
fn least(more: &str) -> String {
    format!(
        "{more}\n[arrivals.closed]\nusers = 3\n[[journey]]\nname = \"j\"\nsteps = [\n  {{ name = \"a\", path = \"/a?x=1\" }},\n  {{ name = \"b\", method = \"POST\", path = \"/b\" }},\n]\n"
    )
}

fn told(text: &str) -> String {
    read("file", text).expect_err("it has a fault").to_string()
}

#[test]
fn what_is_not_said_has_a_default_that_runs() {
    let scenario = read("file", &least("")).unwrap();
    assert_eq!(
        scenario.routes.iter().map(|route| route.name.as_str()).collect::<Vec<_>>(),
        ["GET /a", "POST /b"]
    );
    assert_eq!(scenario.steps, [[RouteId(0), RouteId(1)]]);
    assert_eq!(
        (scenario.seeds.as_slice(), scenario.nodes, scenario.gate.params.cores),
        (&[1, 2, 3][..], 1, 2)
    );
    assert_eq!((scenario.warm_up, scenario.measure), (WARM_UP, MEASURE));
    assert!((scenario.bound(Duration::ZERO) - 2.0 / 0.06).abs() < 1e-9);
}

#[test]
fn routes_of_a_query_are_not_simulated_and_that_is_told() {
    let told = told(&least("[[route]]\nmatch = \"GET /a\"\n[[route]]\nmatch = \"GET /a?x=1\""));
    assert!(told.contains("route[1].match = \"GET /a?x=1\": must be without a query"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn server_gate_changes_and_bands_are_read() {
    let text = least(
        r#"
        seeds = [7, 9]
        [server]
        cores = 4
        nodes = 2
        sharing = "even"
        threads = 200
        connections = 12
        efficiency = { contention = 0.02, best = 10 }
        [[server.route]]
        match = "* /*"
        cpu = "10ms"
        [[server.route]]
        match = "POST /b"
        memory = 3
        own_pool = 1
        [[change]]
        at = "60s"
        server = { cores = 1 }
        route = [{ match = "GET /a", errors = 0.5 }]
        weights = { j = 2.5 }
        [[session]]
        kind = "first"
        begins = ["POST /c"]
        [[session]]
        kind = "second"
        ends = ["POST /b"]
        patience = "20s"
        [[route]]
        match = "GET /a"
        mode = 7
        [expect]
        goodput_share = { min = 0.9 }
        refusals = 0
        [[expect.between]]
        from = "60s"
        to = "90s"
        bound_share = { max = 1.1 }
        "#,
    );
    let scenario = read("file", &text).unwrap();
    assert_eq!(scenario.seeds, [7, 9]);
    let Efficiency::Scalability { coherency, .. } = scenario.machine.efficiency else {
        panic!("{scenario:?}")
    };
    assert!((coherency - 0.0098).abs() < 1e-12);
    assert_eq!((scenario.machine.threads, scenario.machine.even, scenario.nodes), (Some(200), true, 2));
    assert_eq!((scenario.machine.connections, scenario.routes[1].cost.own_pool), (Some(12), Some(1)));
    assert_eq!(scenario.routes[0].cost.own_pool, None);
    assert!(scenario.routes.iter().all(|route| route.cost.cpu.to_bits() == 0.01f64.to_bits()));
    assert_eq!(scenario.routes[1].cost.memory.to_bits(), 3f64.to_bits());
    assert_eq!(
        (scenario.routes[0].mode, scenario.routes[1].mode),
        (RouteMode::Fixed(Limit::of(7)), RouteMode::Enforce)
    );
    assert_eq!(scenario.changes.len(), 3);
    assert!(matches!(&scenario.changes[2].what, What::Weights(weights) if weights[..] == [2.5]));
    assert_eq!(scenario.gate.kind_of, [KindId(1)], "the first kind begins elsewhere");
    assert_eq!(scenario.gate.kinds[1].ends, [RouteId(1)]);
    assert_eq!(scenario.gate.params.cores, 8, "the cores of all nodes");
    let metrics: Vec<Metric> = scenario.expect.iter().map(|band| band.metric).collect();
    assert_eq!(metrics, [Metric::GoodputShare, Metric::Refusals, Metric::BoundShare]);
    assert_eq!(scenario.expect[2].between, Some((60.0, 90.0)));
}

#[test]
fn a_change_weighs_journeys_that_there_are_and_not_all_of_them_with_nothing() {
    let with = |weights: &str| told(&least(&format!("[[change]]\nat = \"1s\"\nweights = {weights}")));
    assert!(
        with("{ k = 1 }").contains("change[0].weights.k = 1: must be the weight of a journey of this file")
    );
    assert!(with("{ j = 0 }").contains("at least one journey that is begun"));
    assert!(with("{ j = -1 }").contains("a number at or above 0"));
    assert!(told(&least("[[change]]\nat = \"1s\"")).contains("what changes"));
}

#[test]
fn a_measured_curve_is_read_and_a_bent_one_is_refused() {
    let with = |points: &str| least(&format!("[server]\nefficiency = {{ measured = {points} }}"));
    let curve = Curve::through(&[(1.0, 1.0), (8.0, 0.5)]).unwrap();
    let scenario = read("file", &with("[[1, 1.0], [8, 0.5]]")).unwrap();
    assert_eq!(scenario.machine.efficiency, Efficiency::Measured(curve));
    for bent in ["[[8, 1.0], [1, 0.5]]", "[[1, 0]]", "[[1]]", "[]", "7"] {
        let told = told(&with(bent));
        assert!(told.starts_with("file:2: server.efficiency.measured = "), "{told}");
        assert!(told.contains("1 to 16 pairs [memory, efficiency]"), "{told}");
    }
    let two = told(&least("[server]\nefficiency = { knee = 4, best = 3, contention = 0.1 }"));
    assert!(two.contains("must be \"flat\" or one of {"), "{two}");
}

#[test]
fn all_that_is_wrong_is_told_together_with_file_line_and_key() {
    let text = least(
        "seeds = 0\nmesure = \"3s\"\n[server]\ncores = 0\nefficiency = { heap = 3, resting = 4 }\n[[server.route]]\nmatch = \"GET /nowhere\"\n[[change]]\nat = \"2000s\"\nserver = { speed = 2 }\n[gate]\nroute_law = \"magic\"\n[expect]\nrefusals = { min = 3, max = 2 }\ngoodput_share = { min = 7 }\n[[expect.between]]\nfrom = \"5s\"\nto = \"1s\"",
    );
    let told = told(&text);
    let wanted = [
        "file:2: mesure = \"3s\": there is no such key; did you mean measure?",
        "file:1: seeds = 0: must be a whole number from 1 to 1000",
        "file:4: server.cores = 0: must be a number above 0",
        "file:5: server.efficiency.resting = 4: must be below server.efficiency.heap (3)",
        "file:7: server.route[0].match = \"GET /nowhere\": must be a route that some step asks for: GET /a, POST /b",
        "file:9: change[0].at = 2000s: must be not before the change before it",
        "file:12: gate.route_law = \"magic\": must be ",
        "file:14: expect.refusals = { min = 3, max = 2 }: must be a band: its min is above its max",
        "file:15: expect.goodput_share = { ... }: must be a share",
        "file:16: expect.between[0] = from 5 s to 1 s: must be a second or more",
        "file:16: expect.between[0] is missing: what is expected between the two",
    ];
    for wanted in wanted {
        assert!(told.lines().any(|line| line.starts_with(wanted)), "{wanted}\nnot in\n{told}");
    }
    assert_eq!(told.lines().count(), wanted.len(), "{told}");
}

#[test]
fn broken_syntax_names_the_line() {
    assert!(
        told("question = \"?\"\n[server\n").starts_with("file:2:"),
        "{}",
        told("question = \"?\"\n[server\n")
    );
}

#[test]
fn a_base_is_stood_on_and_a_circle_of_them_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("_base.toml", &least("measure = \"50s\"\n[server]\ncores = 3\nefficiency = { knee = 2 }"));
    write(
        "own.toml",
        "base = \"_base.toml\"\n[server]\nspeed = 2\nefficiency = { contention = 0.1 }\n[arrivals.open]\nrate_per_s = 1\n",
    );
    let scenario = load(&folder.path().join("own.toml")).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.measure), ("own", Duration::from_secs(50)));
    assert_eq!((scenario.machine.cores, scenario.machine.speed), (3.0, 2.0));
    assert!(
        matches!(scenario.machine.efficiency, Efficiency::Scalability { .. }),
        "a curve replaces the other as a whole"
    );
    assert!(!matches!(scenario.workload.arrivals, suimon_workload::Arrivals::Closed { .. }));
    write("round.toml", "base = \"round.toml\"");
    let told = load(&folder.path().join("round.toml")).expect_err("it goes in a circle").to_string();
    assert!(told.contains("at most 4 files may stand on one another"), "{told}");
    write("lost.toml", "base = \"gone.toml\"");
    let told = load(&folder.path().join("lost.toml")).expect_err("its base is not there").to_string();
    assert!(told.contains("gone.toml: cannot be read"), "{told}");
}

#[test]
fn pauses_of_a_route_are_read_and_bounded() {
    let with = |pause: &str| least(&format!("[[server.route]]\nmatch = \"POST /b\"\npause = {pause}"));
    let scenario = read("file", &with("{ before = \"2s\", inside = \"1s\", pieces = 100 }")).unwrap();
    let pauses = suimon_sim::Pauses { before: 2.0, inside: 1.0, pieces: 100, after: 0.0 };
    assert_eq!(
        (scenario.routes[0].cost.pauses, scenario.routes[1].cost.pauses),
        (Default::default(), pauses)
    );
    for (pause, expected) in [
        ("{ after = \"2h\" }", "server.route[0].pause.after = \"2h\": must be at most an hour"),
        ("{ pieces = 0 }", "server.route[0].pause.pieces = 0: must be a whole number from 1 to 10000"),
        ("{ middle = \"1s\" }", "server.route[0].pause.middle"),
    ] {
        let told = told(&with(pause));
        assert!(told.contains(expected) && told.lines().count() == 1, "{told}");
    }
}

#[test]
fn what_users_begin_who_keep_to_their_journeys_follows_from_how_long_they_take() {
    let text = r#"
        [arrivals.closed]
        [[server.route]]
        match = "GET /a"
        cpu = "10ms"
        [[server.route]]
        match = "GET /b"
        cpu = "100ms"
        pause = { after = "900ms" }
        [[journey]]
        name = "light"
        users = 3
        steps = [{ name = "a", path = "/a" }]
        [[journey]]
        name = "heavy"
        users = 10
        steps = [{ name = "b", path = "/b" }]
    "#;
    let scenario = read("file", text).unwrap();
    let offered = scenario.offered(Duration::ZERO);
    assert!((offered - (300.0 + 10.0)).abs() < 1e-6, "{offered} sessions per second");
    let bound = scenario.bound(Duration::ZERO);
    assert!((bound - 2.0 / ((300.0 * 0.01 + 10.0 * 0.1) / 310.0)).abs() < 1e-6, "{bound}");
    let told = told(&format!("{text}[[change]]\nat = \"1s\"\nweights = {{ light = 2 }}"));
    assert!(told.contains("change[0].weights = given: must be left out"), "{told}");
}

#[test]
fn what_is_expected_of_a_service_names_one_of_the_file() {
    let service = "[[service]]\nname = \"a\"\nroutes = [\"GET /a\"]\n";
    let with = |expected: &str| least(&format!("{service}[[expect.service]]\n{expected}"));
    let scenario =
        read("file", &with("name = \"a\"\nfrom = \"130s\"\nslowdown = { max = 3 }\nshare = 1")).unwrap();
    let bands: Vec<String> = scenario.expect.iter().map(ToString::to_string).collect();
    assert_eq!(
        bands,
        ["a: slowdown from 130 s to 720 s at most 3", "a: share from 130 s to 720 s exactly 1"]
    );
    for (expected, fault) in [
        ("name = \"b\"\nshare = 1", "expect.service[0].name = \"b\": must be the name of a [[service]]"),
        ("share = 1", "expect.service[0].name = nothing: must be the name of a [[service]]"),
        ("name = \"a\"", "what is expected of it"),
        ("name = \"a\"\ngoodput_share = 1", "there is no such key"),
        ("name = \"a\"\nshare = 1\nto = \"900s\"", "before the end of the run"),
    ] {
        let told = told(&with(expected));
        assert!(told.contains(fault), "{expected}: {told}");
    }
}
