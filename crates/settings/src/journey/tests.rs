use super::*;
use suimon_workload::Source;

const SHOP: &str = include_str!("../../../crowd/journeys/shop.toml");

/// The least file there can be, with `more` behind it.
fn least(more: &str) -> String {
    format!(
        "[arrivals.closed]\nusers = 2\n[[journey]]\nname = \"j\"\n[[journey.steps]]\nname = \"a\"\npath = \"/\"\n{more}"
    )
}

fn faults(text: &str) -> Vec<String> {
    read(text).expect_err("it has faults").iter().map(ToString::to_string).collect()
}

fn step_fault(line: &str) -> String {
    let faults = faults(&least(line));
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.into_iter().next().expect("there is one")
}

#[test]
fn the_shop_file_reads_as_the_paper_says() {
    let workload = read(SHOP).unwrap();
    let journey = workload.journey(suimon_model::KindId(0));
    let names: Vec<&str> = journey.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["login", "browse-1", "browse-2", "browse-3", "search", "buy", "logout"]);
    assert_eq!(journey.think, Think::Exponential { mean: Duration::from_secs(3) });
    assert_eq!(journey.patience, Patience::Constant(Duration::from_secs(60)));
    let OnFailure::Retry(retry) = &journey.on_failure else { panic!("the paper's visitors try again") };
    assert_eq!((retry.from, retry.from_after_error, retry.pause_after_timeout), (1, 0, Duration::ZERO));
    assert_eq!(journey.on_refusal.wait_default, Duration::from_secs(3));
    assert_eq!(journey.steps[0].method, "POST", "a form is posted");
    assert!(journey.steps[4].captures.iter().any(|kept| kept.source == Source::Input("token".into())));
    assert_eq!(workload.arrivals.users_max(), 100);
    assert!(workload.arrivals.is_endless());
}

#[test]
fn the_least_file_has_defaults_for_everything() {
    let workload = read(&least("")).unwrap();
    let journey = &workload.kinds[0];
    assert_eq!(journey.steps[0], Step::get("a", "/"));
    assert_eq!(journey.weight.to_bits(), 1f64.to_bits());
    assert_eq!(journey.leave.to_bits(), 0f64.to_bits());
    assert_eq!(journey.on_refusal, OnRefusal::default());
    assert_eq!(workload.seed, DEFAULT_SEED);
}

#[test]
fn all_that_is_wrong_is_reported_together() {
    let text = r#"
        seed = -4
        [arrivals.closed]
        users = 0
        start_over = "soon"
        [visitor]
        think = { mean = "-1s", shape = "wavy" }
        [[journey]]
        name = "one"
        weight = 0
        [[journey.steps]]
        name = "a"
        path = "no-slash"
        [[journey.steps]]
        name = "a"
        path = "/b?t={token}"
        think = { mean = -1 }
    "#;
    let faults = faults(text);
    let wanted = [
        "seed = -4: must be a whole number from 0 to 9223372036854775807",
        "arrivals.closed.users = 0: must be a whole number from 1 to 2000000",
        "arrivals.closed.start_over = \"soon\": must be a duration such as \"750ms\", \"15s\" or \"2m\"",
        "journey[0].weight = 0: must be a number above 0 and at most 1000000",
        "journey[0].steps[0].path = \"no-slash\": must be a path beginning with \"/\"",
        "journey[0].steps[1].name = a: must be unlike every other step's of this journey",
        "journey[0].steps[1] = {token}: must be captured by an earlier step (known: {address}, {session}, {user})",
        "journey[0].steps[1].think.mean = -1: must be at or above 0 s",
        "visitor.think.mean = \"-1s\": must be at or above 0 s",
        "visitor.think.shape = \"wavy\": must be \"constant\", \"exponential\" or \"lognormal\"",
    ];
    for wanted in wanted {
        assert!(
            faults.iter().any(|fault| fault.starts_with(wanted)),
            "{wanted}\nnot in\n{}",
            faults.join("\n")
        );
    }
    assert_eq!(faults.len(), wanted.len(), "{}", faults.join("\n"));
}

#[test]
fn unknown_keys_are_refused_with_their_place() {
    let told = faults(&least("pathh = \"/x\"\nmetod = 1"));
    assert_eq!(
        told,
        [
            "journey[0].steps[0].metod = 1: there is no such key; did you mean method?",
            "journey[0].steps[0].pathh = \"/x\": there is no such key; did you mean path?"
        ]
    );
    assert_eq!(
        step_fault("[visitor]\nthink = { mean = \"1s\", mode = 3 }"),
        "visitor.think.mode: unknown key, known are mean, shape, cv"
    );
}

#[test]
fn the_rush_has_everybody_in_it() {
    let workload = read(include_str!("../../../crowd/journeys/rush.toml")).unwrap();
    let in_line = &workload.kinds[0].in_line;
    assert!(in_line.farm.share > 0.0 && in_line.forge.share > 0.0 && in_line.away > 0.0);
    assert!(in_line.patience.is_some() && !workload.arrivals.is_endless());
}

#[test]
fn those_who_farm_are_described_within_bounds() {
    let text = "[visitor.in_line.farm]\nshare = 0.25\nnumbers = 4\nevery = \"1s\"";
    let farm = read(&least(text)).unwrap().kinds[0].in_line.farm.clone();
    assert_eq!(farm, Farm { share: 0.25, numbers: 4, jars: 4, every: Duration::from_secs(1) });
    for (line, wanted) in [
        ("share = 2", "visitor.in_line.farm.share = 2: must be a number at or above 0 and at most 1"),
        ("numbers = 1001", "visitor.in_line.farm.numbers = 1001: must be a whole number from 1 to 1000"),
        ("jars = 21", "visitor.in_line.farm.jars = 21: must be a whole number from 0 to 20"),
        ("every = \"0s\"", "visitor.in_line.farm.every = \"0s\": must be above 0 s"),
        ("jar = 1", "visitor.in_line.farm.jar = 1: there is no such key; did you mean jars?"),
    ] {
        assert_eq!(faults(&least(&format!("[visitor.in_line.farm]\n{line}"))), [wanted]);
    }
}

#[test]
fn those_who_forge_are_described_within_bounds() {
    let text = "[visitor.in_line.forge]\nshare = 0.25\ntickets = 4\nevery = \"1s\"";
    let forge = read(&least(text)).unwrap().kinds[0].in_line.forge.clone();
    assert_eq!(forge, Forge { share: 0.25, tickets: 4, every: Duration::from_secs(1) });
    for (line, wanted) in [
        ("share = -1", "visitor.in_line.forge.share = -1: must be a number at or above 0 and at most 1"),
        ("tickets = 0", "visitor.in_line.forge.tickets = 0: must be a whole number from 1 to 1000"),
        ("every = \"0s\"", "visitor.in_line.forge.every = \"0s\": must be above 0 s"),
        (
            "share = 0.5\n[visitor.in_line.farm]\nshare = 0.6",
            "visitor.in_line.forge.share = 0.5: must be with farm.share at most 1",
        ),
    ] {
        assert_eq!(faults(&least(&format!("[visitor.in_line.forge]\n{line}"))), [wanted]);
    }
}

#[test]
fn what_many_journeys_share_is_reported_once() {
    let second = "[[journey]]\nname = \"k\"\n[[journey.steps]]\nname = \"a\"\npath = \"/\"\n";
    assert_eq!(faults(&least(&format!("{second}[visitor]\npatience = 7"))).len(), 1);
}

#[test]
fn a_step_says_what_it_cannot_be() {
    for (line, wanted) in [
        ("method = \"get\"", "journey[0].steps[0].method = \"get\": must be a method in capitals"),
        (
            "expect = { status = 99 }",
            "journey[0].steps[0].expect.status = 99: must be a status from 200 to 599",
        ),
        ("expect = { status = [\"500-200\"] }", "journey[0].steps[0].expect.status = \"500-200\""),
        ("expect = { text = 7 }", "journey[0].steps[0].expect.text = 7: must be text in quotes"),
        ("headers = { Host = \"x\" }", "journey[0].steps[0].headers.Host = \"x\": must be left out"),
        ("headers = { \"a b\" = \"x\" }", "journey[0].steps[0].headers.a b = a b: must be a header's name"),
        ("body = \"x\"", "journey[0].steps[0].content_type is missing"),
        ("content_type = \"x\"", "journey[0].steps[0].content_type = \"x\": must be left out"),
        ("patience = \"0s\"", "journey[0].steps[0].patience = \"0s\": must be above 0 s"),
        (
            "patience = [{ for = \"1s\", weight = -1 }]",
            "journey[0].steps[0].patience[0].weight = -1: must be a number above 0",
        ),
        ("patience = []", "journey[0].steps[0].patience = 0 parts: must be 1 to 16 parts"),
        (
            "capture = { t = { input = \"a\", header = \"b\" } }",
            "journey[0].steps[0].capture.t is missing: exactly one",
        ),
        ("capture = { t = { between = [\"a\"] } }", "journey[0].steps[0].capture.t.between"),
        (
            "capture = { user = { input = \"a\" } }",
            "journey[0].steps[0].capture.user = user: must be another name",
        ),
    ] {
        let fault = step_fault(line);
        assert!(fault.starts_with(wanted), "{line}: {fault}");
    }
    assert!(
        step_fault("think = \"1s\"").starts_with("journey[0].steps[0].think = given: must be left out"),
        "nobody thinks before the first step"
    );
}

#[test]
fn values_of_a_step_are_read() {
    let workload = read(&least(
        r#"
        method = "PUT"
        body = '{"user": "{user}"}'
        content_type = "application/json"
        headers = { Accept-Language = "de" }
        expect = { status = [200, "300-303"], text = ["a", "b"] }
        capture = { place = { header = "Location" }, id = { between = ["id=", "&"] } }
        patience = [{ for = "30s" }, { for = "60s", weight = 3 }]
        [[journey.steps]]
        name = "b"
        path = "/{id}"
        think = { mean = "2s", shape = "lognormal", cv = 0.5 }
        patience = "endless"
        "#,
    ))
    .unwrap();
    let [a, b] = workload.kinds[0].steps.as_slice() else { panic!("two steps") };
    assert_eq!(a.method, "PUT");
    assert!(a.expect.allows(301) && a.expect.allows(200) && !a.expect.allows(201));
    assert_eq!(a.expect.texts, ["a", "b"]);
    assert_eq!(a.captures.len(), 2);
    assert_eq!(
        a.patience,
        Some(Patience::Mixture(vec![(1.0, Duration::from_secs(30)), (3.0, Duration::from_secs(60))]))
    );
    assert_eq!(b.path.names().collect::<Vec<_>>(), ["id"]);
    assert_eq!(b.think, Some(Think::Lognormal { mean: Duration::from_secs(2), cv: 0.5 }));
    assert_eq!(b.patience, Some(Patience::Endless));
}

fn arrivals(text: &str) -> Result<Arrivals, Faults> {
    read(&least("").replace("[arrivals.closed]\nusers = 2\n", text)).map(|workload| workload.arrivals)
}

#[test]
fn open_arrivals_are_a_rate_or_phases() {
    let Arrivals::Open { phases, spacing, .. } = arrivals("[arrivals.open]\nrate_per_s = 5\n").unwrap()
    else {
        panic!("open")
    };
    assert_eq!((phases[0].from_per_s, phases[0].lasts, spacing), (5.0, Duration::MAX, Spacing::Poisson));
    let text = "[arrivals.open]\nspacing = \"even\"\nphases = [{ for = \"10s\", from_per_s = 0, to_per_s = 5 }, { rate_per_s = 5 }]\n";
    let Arrivals::Open { phases, .. } = arrivals(text).unwrap() else { panic!("open") };
    assert_eq!((phases.len(), phases[0].to_per_s, phases[1].lasts), (2, 5.0, Duration::MAX));
}

#[test]
fn arrivals_that_cannot_be_are_refused() {
    for (text, wanted) in [
        ("", "arrivals is missing: [arrivals.closed] with users"),
        ("[arrivals.open]\n", "arrivals.open.rate_per_s is missing"),
        (
            "[arrivals.open]\nrate_per_s = 1\n[arrivals.closed]\nusers = 1\n",
            "arrivals = closed and open: must be one",
        ),
        (
            "[arrivals.open]\nphases = [{ for = \"1s\" }]\n",
            "arrivals.open.phases[0] is missing: either rate_per_s",
        ),
        (
            "[arrivals.open]\nphases = [{ rate_per_s = 1 }, { rate_per_s = 1 }]\n",
            "arrivals.open.phases[0].for is missing",
        ),
        (
            "[arrivals.open]\nrate_per_s = 1\nphases = [{ rate_per_s = 1 }]\n",
            "arrivals.open.rate_per_s = given beside",
        ),
    ] {
        let fault = arrivals(text).expect_err("it has a fault").to_string();
        assert!(fault.starts_with(wanted), "{text}: {fault}");
    }
}

#[test]
fn a_retry_goes_back_to_a_name_or_a_number() {
    let from = |value: &str| {
        let text = least(&format!(
            "[[journey.steps]]\nname = \"b\"\npath = \"/\"\n[[journey.steps]]\nname = \"c\"\npath = \"/\"\n\
             [visitor.on_failure]\nretry_from = {value}\n"
        ));
        read(&text).map(|workload| match &workload.kinds[0].on_failure {
            OnFailure::Retry(retry) => retry.from,
            OnFailure::GiveUp => panic!("it retries"),
        })
    };
    assert_eq!(from("\"c\""), Ok(2));
    assert_eq!(from("2"), Ok(1));
    assert_eq!(from("9"), Ok(2), "past the last step means the last");
    let fault = from("\"d\"").expect_err("there is no d").to_string();
    assert_eq!(
        fault,
        "visitor.on_failure.retry_from = \"d\": must be the name of a step (a, b, c) or its number from 1"
    );
}

#[test]
fn no_retries_is_giving_up() {
    let workload = read(&least("[visitor.on_failure]\nretries_max = 0\n")).unwrap();
    assert_eq!(workload.kinds[0].on_failure, OnFailure::GiveUp);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let fault = load(Path::new("/nowhere/journey.toml")).expect_err("it is not there").to_string();
    assert!(fault.starts_with("/nowhere/journey.toml: cannot be read"), "{fault}");
}

#[test]
fn faults_of_a_file_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j.toml");
    std::fs::write(&path, least("method = \"get\"")).unwrap();
    let fault = load(&path).expect_err("it has a fault").to_string();
    assert!(fault.contains("j.toml:8: journey[0].steps[0].method"), "{fault}");
}

#[test]
fn users_of_a_closed_crowd_may_keep_to_their_journeys() {
    let file = |arrivals: &str, a: &str, b: &str| {
        let journey = |name: &str, more: &str| {
            format!("[[journey]]\nname = \"{name}\"\n{more}\nsteps = [{{ name = \"x\", path = \"/\" }}]\n")
        };
        format!("[arrivals.{arrivals}\n{}{}", journey("a", a), journey("b", b))
    };
    let workload = read(&file("closed]", "users = 3", "users = 2")).unwrap();
    assert_eq!(workload.arrivals.users_max(), 5);
    assert_eq!(workload.kinds.iter().map(|kind| kind.users).collect::<Vec<_>>(), [Some(3), Some(2)]);
    for (file, expected) in [
        (
            file("closed]\nusers = 5", "users = 3", "users = 2"),
            "arrivals.closed.users = 5: must be left out where the journeys say how many users play them",
        ),
        (file("closed]", "users = 3", ""), "journey[1].users"),
        (file("closed]", "users = 3", "users = 2\nweight = 2"), "journey[1].weight = 2: must be left out"),
        (file("open]\nrate_per_s = 1", "users = 3", "users = 2"), "journey[].users = 5: must be left out"),
        (
            file("closed]", "users = 2000000", "users = 1"),
            "journey[].users = 2000001: must be together 1 to 2000000",
        ),
    ] {
        let faults = faults(&file);
        assert!(faults.len() == 1 && faults[0].contains(expected), "{faults:?}");
    }
}
