use super::file::{KEPT_ASIDE, content, parse};
use super::*;
use proptest::prelude::*;
use std::fs;
use suimon_gate::{
    KnownDistribution, KnownMean, RouteKnowledge, RouteVisits, ServiceTimeStats, SessionKnowledge,
};

const NOW: u64 = 1_700_000_000;

fn nodes() -> Vec<String> {
    vec!["http://127.0.0.1:8080".to_owned(), "http://127.0.0.1:8081".to_owned()]
}

fn remembered() -> Remembered {
    let known = |value| KnownMean { value, observations: 20 };
    let route = |name: &str, limit: Option<u32>| RememberedRoute {
        name: name.to_owned(),
        asked: NOW - 5,
        known: KnownRoute {
            came: 0,
            law: limit.map(|limit| RouteKnowledge {
                limit,
                settled: true,
                service: Some(known(0.1)),
                service_least: None,
                share: Some(0.3),
            }),
            capacity: limit.map(|_| known(1.0 / 3.0)),
            took: Some(ServiceTimeStats { count: 9, mean: 0.2, variation: 1e-300 }),
            took_alone: None,
        },
    };
    let place = |after| VisitsAfter {
        after,
        seen: 99,
        further: vec![(RouteId(1), 0.7), (RouteId(2), 1.25)],
        next: vec![(RouteId(2), 0.5)],
        returned: [known(0.25); suimon_control::STAGES],
    };
    Remembered {
        workers: [("shop".to_owned(), 18)].into(),
        program: "9.9.9".to_owned(),
        started: 77,
        nodes: nodes(),
        nodes_up: Some(3),
        written: NOW,
        routes: vec![route("other", None), route("GET /", Some(4)), route("GET /items/{id}", Some(40))],
        kinds: vec![
            RememberedKind { name: "visit".to_owned(), known: KnownKind { patience: Some(9.5), law: None } },
            RememberedKind {
                name: "api \"v2\"\n".to_owned(),
                known: KnownKind { patience: None, law: Some(SessionKnowledge { rate: 2.5 }) },
            },
        ],
        visits: VisitsKnowledge {
            routes: vec![RouteVisits { visits: known(1.5), delay: 12.0, rank: 1.25 }; 3],
            kinds: vec![vec![place(None), place(Some(RouteId(2)))], vec![]],
            thinks: KnownDistribution { count: 500, shares: vec![(0.5, 0.25), (3.0, 0.75)] },
        },
    }
}

#[test]
fn what_was_written_is_read_again_to_the_last_bit() {
    assert_eq!(parse(&content(&remembered())).map_err(|_| ()), Ok(remembered()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned");
    assert!(matches!(find(&path, &nodes()), LoadResult::Nothing));
    assert_eq!(write(&path, &remembered()).unwrap(), WriteResult::Done);
    let LoadResult::Ours(found) = find(&path, &nodes()[1..]) else { panic!("one node is the same") };
    assert_eq!(*found, remembered());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_used_is_set_aside_and_said() {
    let whole = content(&remembered());
    let text = String::from_utf8(whole.clone()).unwrap();
    let of_another_site = content(&Remembered { nodes: vec!["http://10.0.0.1".to_owned()], ..remembered() });
    for (bytes, ending, said) in [
        (vec![], "damaged", "it is no learned file"),
        (b"{}\n".to_vec(), "damaged", "it is no learned file"),
        (whole[..whole.len() - 1].to_vec(), "damaged", "cut or changed"),
        (text.replacen("0.25", "0.26", 1).into_bytes(), "damaged", "cut or changed"),
        (text.replacen("learned 1 ", "learned 2 ", 1).into_bytes(), "newer", "version 2"),
        (b"suimon learned 3 1 something else\n".to_vec(), "newer", "version 3"),
        (of_another_site, "foreign", "http://10.0.0.1; this one is http://127.0.0.1:8080 and 1 more"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned");
        fs::write(&path, &bytes).unwrap();
        let LoadResult::SetAside { why, aside: set_aside } = find(&path, &nodes()) else { panic!("{said}") };
        let aside = set_aside.aside().to_owned();
        set_aside.keep();
        assert!(why.contains(said), "{why}");
        assert_eq!(aside, folder.path().join(format!("learned.{ending}")));
        assert!(KEPT_ASIDE.contains(&ending) && !path.exists() && fs::read(&aside).unwrap() == bytes);
        assert!(matches!(find(&path, &nodes()), LoadResult::Nothing), "the next start is a new one");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(find(folder.path(), &nodes()), LoadResult::InTheWay { .. }), "a folder is no file");
}

#[test]
fn files_of_before_nodes_came_and_went_are_read_and_where_none_stays_there_is_none_to_compare() {
    let old = remembered().text().replace("\"nodes_up\": 3,\n", "");
    let expected = Remembered { nodes_up: None, started: 0, ..remembered() };
    assert_eq!(Remembered::parse(old.as_bytes()), Ok(expected));
    let borrowed = Remembered { nodes: vec![], ..remembered() };
    assert!(borrowed.is_of(&[]) && !borrowed.is_of(&nodes()) && !remembered().is_of(&[]));
}

#[test]
fn what_a_newer_gateway_has_learned_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned");
    let of = |started| Remembered { started, ..remembered() };
    assert_eq!(write(&path, &of(5)).unwrap(), WriteResult::Done);
    assert_eq!(write(&path, &of(6)).unwrap(), WriteResult::Done, "the one before has ended");
    assert_eq!(write(&path, &of(5)).unwrap(), WriteResult::BelongsToANewer);
    let LoadResult::Ours(found) = find(&path, &nodes()) else { panic!("it is whole") };
    assert_eq!(found.started, 6);
    fs::write(&path, "suimon learned 2 1 who knows\n").unwrap();
    assert_eq!(write(&path, &of(9)).unwrap(), WriteResult::BelongsToANewer, "of a newer version");
    fs::write(&path, "nonsense").unwrap();
    assert_eq!(write(&path, &of(9)).unwrap(), WriteResult::Done);
    assert!(write(&folder.path().join("nowhere/learned"), &of(9)).is_err());
}

#[test]
fn numbers_that_cannot_be_are_not_believed_though_the_checksum_holds() {
    let good = remembered();
    let mut bad = vec![];
    let mut with = |change: fn(&mut Remembered)| {
        let mut changed = good.clone();
        change(&mut changed);
        bad.push(changed);
    };
    with(|it| it.routes[1].known.capacity = Some(KnownMean { value: f64::NAN, observations: 1 }));
    with(|it| it.routes[1].known.capacity = Some(KnownMean { value: -1.0, observations: 1 }));
    with(|it| it.routes[1].known.law.as_mut().unwrap().limit = 0);
    with(|it| it.routes[1].known.law.as_mut().unwrap().limit = u32::MAX);
    with(|it| it.routes[1].known.law.as_mut().unwrap().share = Some(1.5));
    with(|it| it.visits.kinds[0][0].after = Some(RouteId(3)));
    with(|it| it.visits.kinds[0][0].further.push((RouteId(3), 1.0)));
    with(|it| it.visits.kinds[0][0].returned[2].value = 2.0);
    with(|it| it.visits.kinds.push(vec![VisitsAfter::default()]));
    with(|it| it.visits.thinks.shares.push((f64::INFINITY, 0.5)));
    with(|it| it.kinds[0].known.patience = Some(1e300));
    with(|it| it.nodes_up = Some(0));
    with(|it| it.nodes_up = Some(u32::MAX));
    with(|it| it.routes[0].name = "x".repeat(2000));
    with(|it| it.routes = vec![RememberedRoute::default(); ROUTES_MAX + 1]);
    for (number, bad) in bad.iter().enumerate() {
        assert!(parse(&content(bad)).is_err(), "change {number}");
    }
}

#[test]
fn knowledge_goes_by_names() {
    // Another order, a route less and one more, a kind less.
    let routes: Vec<(String, RouteId)> = ["GET /items/{id}", "other", "GET /new"]
        .iter()
        .map(|name| (*name).to_owned())
        .zip((0..).map(RouteId))
        .collect();
    let known = remembered().knowledge_of(&routes, &["visit".to_owned(), "new".to_owned()]);
    assert_eq!(
        known.routes.iter().map(|route| route.law.map(|law| law.limit)).collect::<Vec<_>>(),
        [Some(40), None, None]
    );
    let places = &known.visits.kinds[0];
    assert_eq!(places.iter().map(|place| place.after).collect::<Vec<_>>(), [None, Some(RouteId(0))]);
    assert_eq!(places[0].further, [(RouteId(0), 1.25)]);
    assert_eq!((known.kinds[0].patience, known.kinds.len()), (Some(9.5), 2));
    assert!(known.visits.kinds[1].is_empty());
}

#[test]
fn only_routes_that_are_asked_for_are_remembered() {
    let routes: Vec<(String, RouteId)> = ["other", "GET /declared", "GET /busy", "GET /junk", "GET /old"]
        .iter()
        .map(|name| (*name).to_owned())
        .zip((0..).map(RouteId))
        .collect();
    let knowledge = |came: [u64; 5]| {
        let place = VisitsAfter {
            seen: 3,
            further: vec![(RouteId(2), 1.0), (RouteId(3), 1.0)],
            ..VisitsAfter::default()
        };
        Knowledge {
            routes: came.map(|came| KnownRoute { came, ..KnownRoute::default() }).to_vec(),
            kinds: vec![KnownKind::default()],
            visits: VisitsKnowledge { kinds: vec![vec![place]], ..VisitsKnowledge::default() },
        }
    };
    let before = Remembered {
        routes: vec![RememberedRoute {
            name: "GET /old".to_owned(),
            asked: NOW - 1000,
            ..RememberedRoute::default()
        }],
        ..remembered()
    };
    let mut memory = DemandMemory::new(Some(&before));
    let mut names = |came: [u64; 5], at: u64| {
        let kept = memory.remember(knowledge(came), &routes, &["visit".to_owned()], 2, at);
        assert_eq!(kept.visits.routes.len(), kept.routes.len());
        assert_eq!(
            kept.visits.kinds[0][0].further,
            [(RouteId(2), 1.0)],
            "one is left, of another number perhaps"
        );
        kept.routes.iter().map(|route| (route.name.clone(), route.asked)).collect::<Vec<_>>()
    };
    let named = |name: &str, asked| (name.to_owned(), asked);
    assert_eq!(
        names([0, 0, 50, 2, 0], NOW),
        [
            named("other", 0),
            named("GET /declared", 0),
            named("GET /busy", NOW),
            named("GET /old", NOW - 1000)
        ]
    );
    let week = NOW + ASKED_WITHIN;
    assert_eq!(
        names([0, 0, 51, 2, 0], week),
        [named("other", 0), named("GET /declared", 0), named("GET /busy", week)],
        "nobody asks for the old one any more"
    );
}

proptest! {
    #[test]
    fn any_number_is_read_again_to_the_last_bit(number in 0.0..1e7) {
        let mut it = remembered();
        it.kinds[0].known.patience = Some(number);
        prop_assert_eq!(parse(&content(&it)).map_err(|_| ()), Ok(it));
    }

    /// One changed byte anywhere: never a panic, never believed.
    #[test]
    fn a_changed_byte_is_noticed(at in any::<prop::sample::Index>(), change in 1_u8..) {
        let mut bytes = content(&remembered());
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(parse(&bytes).is_err());
    }

    #[test]
    fn a_part_is_not_believed(at in any::<prop::sample::Index>()) {
        let bytes = content(&remembered());
        prop_assert!(parse(&bytes[..at.index(bytes.len())]).is_err());
    }

    /// Text that somebody has made up and given the right checksum.
    #[test]
    fn made_up_text_is_no_reason_to_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..8),
        of in prop::sample::select(&[b"0", b"9", b"-", b"e", b".", b"[", b"]", b"{", b",", b"\"", b"n"][..]),
    ) {
        let whole = content(&remembered());
        let start = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let mut text = whole[start..].to_vec();
        for (from, to) in changes {
            let at = from.index(text.len());
            text[at] = if to.index(2) == 0 { of[0] } else { text[to.index(text.len())] };
        }
        if let Ok(read) = Remembered::parse(&text) {
            let names: Vec<_> = read.routes.iter().map(|route| route.name.clone()).zip((0..).map(RouteId)).collect();
            let known = read.knowledge_of(&names, &["visit".to_owned()]);
            let mut gate = suimon_gate::Gate::new(suimon_gate::Params::default(), suimon_model::Instant::ORIGIN);
            for _ in &names {
                gate.declare_route(suimon_model::Instant::ORIGIN, suimon_gate::RouteMode::Enforce);
            }
            gate.declare_kind(suimon_model::Instant::ORIGIN, suimon_gate::KindParams::default());
            gate.recall(suimon_model::Instant::ORIGIN, &known, suimon_model::Duration::ZERO);
            gate.handle_timeout(suimon_model::Instant::ORIGIN + suimon_model::seconds(1.0));
        }
    }
}
