//! What the law of nodes is told, made of what a gate shows.

use suimon_fleet::scaling::{Scaling, ScalingLaw, ScalingMeter, ScalingParams, ScalingSample, ScalingSeen};
use suimon_gate::{Counts, GateState, KindView, RouteMode, RouteView, Snapshot};
use suimon_line::LineStatus;
use suimon_model::{Instant, Limit, NodeId, PoolId, seconds};

/// What is seen at one moment.
struct Seen {
    gate: Snapshot,
    cpu_s: Option<f64>,
    picked: Vec<(NodeId, u64)>,
    picked_of_borrowed: Vec<(NodeId, u64)>,
    serving: u32,
}

/// The meter, told of a gate.
struct Meter(ScalingMeter);

impl Meter {
    fn new(processors: f64) -> Self {
        Meter(ScalingMeter::new(processors))
    }

    fn measure(&mut self, now: Instant, seen: &Seen, visits: impl Fn() -> Vec<f64>) -> Option<ScalingSample> {
        let seen = ScalingSeen {
            asked: seen.gate.asked(),
            cpu_s: seen.cpu_s,
            picked: seen.picked.clone(),
            picked_of_borrowed: seen.picked_of_borrowed.clone(),
            serving: seen.serving,
            ..ScalingSeen::default()
        };
        self.0.measure(now, &seen, visits)
    }

    fn busy(&self) -> Option<f64> {
        self.0.busy()
    }
}

/// What is seen after `requests` requests and so much CPU time, with `waiting` in line.
fn seen(requests: u64, cpu_s: Option<f64>, waiting: usize) -> Seen {
    let counts = Counts { offered: requests + 5, refused: 5, completed: requests, ..Counts::default() };
    let route = RouteView { counts, limit: Some(8), in_flight: 2, ..RouteView::default() };
    let kind = KindView { waiting, ..KindView::default() };
    let gate = Snapshot {
        routes: vec![route],
        kinds: vec![kind],
        services: vec![],
        pools: vec![],
        waiting: 0,
        in_flight: 2,
        suspended: 0,
        sessions: 0,
        leased_sessions: 0,
        records: vec![],
        recorded: 0,
        probing: None,
    };
    let picked = vec![(NodeId(0), requests / 2), (NodeId(1), requests / 2)];
    Seen { gate, cpu_s, picked_of_borrowed: vec![(NodeId(1), requests / 2)], picked, serving: 2 }
}

fn at(second: f64) -> Instant {
    Instant::ORIGIN + seconds(second)
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

#[test]
fn nodes_that_stay_do_as_much_for_a_request_as_those_that_are_measured() {
    let mut meter = Meter::new(0.5);
    assert_eq!(meter.measure(at(0.0), &seen(0, Some(0.0), 0), Vec::new), None, "nothing is known yet");
    let sample = meter.measure(at(1.0), &seen(100, Some(0.25), 0), Vec::new).unwrap();
    assert_eq!((sample.begun, sample.ended), (100, 100), "the refused did not begin");
    // Half a second of the one, as it has half a processor, and as much of the other.
    assert!(close(sample.work_s, 1.0), "{}", sample.work_s);
    assert!(close(sample.to_come_s, 2.0 * 0.01), "{}", sample.to_come_s);
}

#[test]
fn those_in_line_are_as_much_work_as_sessions_have_been() {
    let mut meter = Meter::new(1.0);
    meter.measure(at(0.0), &seen(0, Some(0.0), 0), || vec![5.0]);
    let sample = meter.measure(at(1.0), &seen(100, Some(0.5), 40), || vec![5.0]).unwrap();
    assert!(close(sample.to_come_s, 0.01 * (2.0 + 40.0 * 5.0)), "{}", sample.to_come_s);
    assert!(sample.is_held);
}

#[test]
fn where_nobody_tells_cpu_time_limits_say_how_busy_nodes_are() {
    let mut meter = Meter::new(1.0);
    meter.measure(at(0.0), &seen(0, None, 0), Vec::new);
    let sample = meter.measure(at(2.0), &seen(100, None, 0), Vec::new).unwrap();
    assert!(close(sample.work_s, 2.0 * 2.0 * 0.25), "{}", sample.work_s);
    let mut unlimited = seen(200, None, 0);
    unlimited.gate.routes[0].limit = None;
    assert_eq!(meter.measure(at(3.0), &unlimited, Vec::new), None);
    assert_eq!(meter.busy(), None);
}

/// What is seen of routes, each with its mode, limit, requests in the application and waiting ones.
fn of_routes(routes: &[(RouteMode, Option<u32>, usize, usize)]) -> Seen {
    let mut seen = seen(100, None, 0);
    let counts = seen.gate.routes[0].counts;
    let route = |&(mode, limit, in_flight, waiting)| RouteView {
        mode,
        limit,
        in_flight,
        waiting,
        counts,
        ..RouteView::default()
    };
    seen.gate.routes = routes.iter().map(route).collect();
    seen
}

/// The sample of one second of this.
fn sample_of(seen: &Seen) -> Option<ScalingSample> {
    let mut meter = Meter::new(1.0);
    let mut before = of_routes(&[]);
    before.cpu_s = seen.cpu_s.map(|_| 0.0);
    meter.measure(at(0.0), &before, || vec![5.0]);
    meter.measure(at(1.0), seen, || vec![5.0])
}

const FOUND: RouteMode = RouteMode::Enforce;

fn pinned(limit: u32) -> RouteMode {
    RouteMode::Fixed(Limit::of(limit))
}

#[test]
fn routes_count_by_the_requests_that_they_have_in_the_application() {
    let work = |routes: &[_]| sample_of(&of_routes(routes)).unwrap().work_s / 2.0;
    // One slow page with a limit of 1 beside others.
    assert!(close(work(&[(FOUND, Some(1), 1, 9), (FOUND, Some(36), 9, 0)]), 0.1 * 1.0 + 0.9 * 0.25));
    // Answers of twelve seconds are nearly all that is done.
    assert!(close(work(&[(FOUND, Some(100), 90, 0), (FOUND, Some(40), 10, 0)]), 0.9 * 0.9 + 0.1 * 0.25));
    assert!(close(work(&[(FOUND, Some(4), 0, 0)]), 0.0));
    assert!(close(work(&[(FOUND, Some(4), 9, 0)]), 1.0), "no node is busier than it can be");
}

#[test]
fn a_declared_limit_that_is_full_asks_for_no_nodes_and_gives_none_back_if_most_requests_are_there() {
    let few = sample_of(&of_routes(&[(pinned(5), Some(5), 5, 70), (FOUND, Some(40), 10, 0)])).unwrap();
    assert!(close(few.work_s, 2.0 * 0.25) && close(few.to_come_s, 0.0) && !few.is_held, "{few:?}");
    // Long polls, of which as many are held as is declared.
    let most = sample_of(&of_routes(&[(pinned(500), Some(500), 500, 70), (FOUND, Some(40), 10, 0)])).unwrap();
    assert!(close(most.work_s, 2.0 * 0.25) && close(most.to_come_s, 0.0) && most.is_held, "{most:?}");
    assert_eq!(
        sample_of(&of_routes(&[(pinned(5), Some(5), 5, 70)])),
        None,
        "nobody knows how busy nodes are"
    );
}

#[test]
fn what_is_within_limits_is_no_work_that_waits_where_limits_say_how_busy_nodes_are() {
    let full = sample_of(&of_routes(&[(FOUND, Some(8), 8, 0)])).unwrap();
    assert!(close(full.to_come_s, 0.0), "{full:?}");
    let waited_for = sample_of(&of_routes(&[(FOUND, Some(8), 8, 8)])).unwrap();
    assert!(close(waited_for.to_come_s, 8.0 * 2.0 / 100.0), "{waited_for:?}");
}

#[test]
fn routes_of_a_pool_of_workers_say_nothing_of_nodes() {
    let mut seen = of_routes(&[(FOUND, Some(8), 2, 0), (FOUND, Some(8), 8, 50)]);
    seen.gate.routes[1].pool = PoolId(1);
    let sample = sample_of(&seen).unwrap();
    assert_eq!((sample.requests, sample.begun), (2, 100));
    assert!(close(sample.work_s, 2.0 * 0.25) && close(sample.to_come_s, 0.0), "{sample:?}");
}

#[test]
fn those_in_line_count_while_the_gate_holds_them_and_nodes_are_busy() {
    let line = |state| {
        let mut line = suimon_line::Line::new(suimon_line::Params::default(), Instant::ORIGIN).view();
        (line.state, line.waiting, line.uncalled) = (state, 40, 40);
        line
    };
    let kind = |state, line| KindView { gate_state: state, line: Some(line), ..KindView::default() };
    let told = |cpu_s, kind| {
        let mut seen = of_routes(&[(FOUND, Some(8), 0, 0)]);
        (seen.cpu_s, seen.gate.kinds) = (Some(cpu_s), vec![kind]);
        let sample = sample_of(&seen).unwrap();
        (sample.to_come_s > 0.0, sample.is_held)
    };
    let moving = line(LineStatus::Moving);
    assert_eq!(told(0.9, kind(GateState::Paced, moving)), (true, true));
    assert_eq!(told(0.1, kind(GateState::Paced, moving)), (false, true), "nodes are not what they wait for");
    assert_eq!(told(0.9, kind(GateState::Full, moving)), (false, false), "a declared number of sessions");
    for state in [LineStatus::Paused, LineStatus::Closed, LineStatus::Opening(at(9.0))] {
        assert_eq!(told(0.9, kind(GateState::Shut, line(state))), (false, false), "{state:?}");
    }
}

/// Plays five minutes of requests that take so long each, where a node more has limits of its own.
fn number_after_long(
    took_s: f64,
    routes: impl Fn(u32) -> Vec<(RouteMode, Option<u32>, usize, usize)>,
) -> u32 {
    let params = ScalingParams { present: 2, least: 1, most: 64 };
    let (mut law, mut meter) = (Scaling::new(ScalingLaw::default(), params), Meter::new(1.0));
    let mut ended = vec![0.0; routes(1).len()];
    for tick in 0..600 {
        let mut seen = of_routes(&routes(law.wanted()));
        seen.serving = law.wanted();
        for (route, ended) in seen.gate.routes.iter_mut().zip(&mut ended) {
            *ended += 0.5 * route.in_flight as f64 / took_s;
            let ended = *ended as u64;
            route.counts = Counts { offered: ended, completed: ended, ..Counts::default() };
        }
        let now = at(0.5 * f64::from(tick));
        if let Some(sample) = meter.measure(now, &seen, Vec::new) {
            let _ = law.on_tick(now, &sample);
        }
    }
    law.wanted()
}

#[test]
fn however_long_a_declared_limit_or_a_slow_page_is_full_no_node_is_added() {
    let light = |nodes: u32| (FOUND, Some(20 * nodes), 10, 0);
    let number = |other: &dyn Fn(u32) -> _| number_after_long(0.5, |nodes| vec![other(nodes), light(nodes)]);
    assert_eq!(number(&|_| (pinned(5), Some(5), 5, 70)), 1);
    assert_eq!(number(&|_| (pinned(500), Some(500), 500, 70)), 2, "held");
    assert_eq!(number(&|_| (FOUND, Some(1), 1, 3)), 1, "a slow page");
    assert_eq!(number(&|nodes| (FOUND, Some(256 * nodes), 200, 0)), 1, "long polls");
}

#[test]
fn answers_that_take_long_have_as_many_nodes_as_their_limits_need() {
    // 24 of them, of which a node does 8 at once.
    let answers = |nodes: u32| {
        let at_once = (8 * nodes as usize).min(24);
        vec![(FOUND, Some(8 * nodes), at_once, 24 - at_once)]
    };
    assert_eq!(number_after_long(12.0, answers), 3);
}
