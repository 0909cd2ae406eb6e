#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use super::*;
use crate::gatekeeper::Gatekeeper;
use crate::telemetry::Telemetry;
use std::future::ready;
use suimon_cluster::{Wires, begin};
use suimon_identity::keys::Keys;
use suimon_identity::session_tags::SessionTags;
use suimon_params::Params;
use suimon_params::upstream::{NodeParams, UpstreamParams};
use suimon_upstream::NodeReportView;
use tokio::sync::oneshot;

/// Long enough for a busy machine: anything slower hangs.
const HANGS: Duration = Duration::from_secs(20);

/// A provider whose other end the test has.
struct Played(oneshot::Sender<Wires>);

impl Provider for Played {
    fn name(&self) -> &'static str {
        "observe"
    }

    fn begin(self: Box<Self>, wanted: u32) -> Provided {
        begin(wanted, |wires| {
            let mut wanted = wires.wanted.clone();
            let _ = self.0.send(wires);
            async move { while wanted.changed().await.is_ok() {} }
        })
    }
}

fn params(law: ScalingLaw) -> NodesParams {
    NodesParams {
        law,
        least: 1,
        most: 9,
        provider: suimon_params::nodes::ProviderParams::Observe,
        lifecycle: suimon_params::nodes::LifecycleParams {
            parked: 0,
            most: 9,
            start_within: HANGS,
            drain_within: HANGS,
        },
        processors: 1.0,
    }
}

fn backend() -> Arc<Backend> {
    let upstream = UpstreamParams { grows: true, ..UpstreamParams::default() };
    let params = Params::default();
    let upstreams = vec![Upstream::new(upstream).unwrap()];
    let keeper = Gatekeeper::new(params.gate.clone(), params.routes.discovered_mode);
    let tags = SessionTags::of(&Keys::fresh().unwrap());
    Backend::new(&params, keeper, upstreams, Arc::new(Telemetry::new(8, vec![])), tags, None)
}

fn keeper(law: ScalingLaw) -> Keeper {
    let (backend, params) = (backend(), params(law));
    Keeper {
        law: law_of(&params, 3),
        has_begun: true,
        meter: ScalingMeter::new(1.0),
        began: std::time::Instant::now(),
        borrowed: Roster::new(backend.upstream(PoolId(0)).clone()),
        lost: None,
        last: None,
        stay: 0,
        name: "observe",
        upstream: backend.upstream(PoolId(0)).clone(),
        backend,
        params,
    }
}

fn node(port: u16) -> NodeParams {
    NodeParams::parse(&format!("http://127.0.0.1:{port}")).unwrap()
}

fn statuses(keeper: &Keeper) -> Vec<(u32, &'static str)> {
    keeper.upstream.view().iter().map(|node| (node.node.0, node.status)).collect()
}

#[tokio::test]
async fn a_gateway_that_ends_before_it_is_known_what_runs_does_not_wait_for_that() {
    let (give, _wires) = oneshot::channel();
    let kept = keep(backend(), params(ScalingLaw::Fixed(5)), Box::new(Played(give)), ready(()));
    tokio::time::timeout(HANGS, kept).await.expect("it waits");
}

#[tokio::test]
async fn until_it_is_known_what_runs_the_number_is_held() {
    let (give, given) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    let backend = backend();
    let mut report = backend.nodes.subscribe();
    let end_comes = async { _ = ended.await };
    let kept = tokio::spawn(keep(backend, params(ScalingLaw::Fixed(5)), Box::new(Played(give)), end_comes));
    let mut wires = given.await.unwrap();
    for _ in 0..3 {
        tokio::time::timeout(HANGS, report.changed()).await.expect("it is shown meanwhile").unwrap();
    }
    assert_eq!(*wires.wanted.borrow(), 1, "the least");
    wires.view.send_modify(|view| view.found = Some(3));
    let told = tokio::time::timeout(HANGS, wires.wanted.wait_for(|wanted| *wanted == 5)).await;
    told.expect("the law begins").unwrap();
    drop((end, wires));
    tokio::time::timeout(HANGS, kept).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn what_begins_at_the_address_of_one_that_is_gone_is_another_node() {
    let mut keeper = keeper(ScalingLaw::default());
    keeper.handle(&NodeEvent::Ready(node(1)));
    keeper.handle(&NodeEvent::Gone(node(1)));
    keeper.handle(&NodeEvent::Ready(node(1)));
    assert_eq!(statuses(&keeper), [(0, "draining"), (1, "up")]);
    keeper.look(|word| panic!("{word:?}"));
    assert_eq!(statuses(&keeper), [(1, "up")]);
    keeper.handle(&NodeEvent::Draining(node(1)));
    keeper.handle(&NodeEvent::Ready(node(1)));
    assert_eq!(statuses(&keeper), [(1, "up")], "one that drains comes back");
}

#[tokio::test]
async fn the_provider_is_told_which_node_is_down() {
    let mut keeper = keeper(ScalingLaw::default());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let up = node(listener.local_addr().unwrap().port());
    // Nobody listens there: it is reserved.
    let down = node(1);
    keeper.handle(&NodeEvent::Ready(up));
    keeper.handle(&NodeEvent::Ready(down.clone()));
    let upstream = keeper.upstream.clone();
    let runs = tokio::spawn(async move { upstream.run(std::future::pending()).await });
    let told = async {
        let mut words = vec![];
        while words.is_empty() {
            tokio::time::sleep(LOOK_EVERY).await;
            keeper.look(|word| {
                words.push(word);
                true
            });
        }
        words
    };
    let words = tokio::time::timeout(HANGS, told).await.expect("nobody is told");
    assert_eq!(words, [NodeWord::Down(down)]);
    runs.abort();
}

#[tokio::test]
async fn the_papers_rule_goes_by_run_queues_where_nodes_report_them_and_holds_without() {
    let law = ScalingLaw::Seed { interval: Duration::from_millis(500), load_max: 5.0 };
    let ticked = |has_reports: bool| {
        let mut keeper = keeper(law);
        (1..4).for_each(|port| keeper.handle(&NodeEvent::Ready(node(port))));
        if has_reports {
            let keys = suimon_agent::keyring::Keyring::new([(1, [7; 32])]).unwrap();
            keeper.upstream.listen_for_reports("127.0.0.1:0".parse().unwrap(), keys).unwrap();
        }
        let (give, _given) = oneshot::channel();
        keeper.tick(&Box::new(Played(give)).begin(3));
        keeper.law.wanted()
    };
    assert_eq!((ticked(true), ticked(false)), (3, 2), "no requests are no load, no reports are none");
}

#[tokio::test]
async fn the_load_is_the_mean_run_queue_of_all_nodes_if_all_have_said_it_of_late() {
    let mut keeper = keeper(ScalingLaw::default());
    (1..3).for_each(|port| keeper.handle(&NodeEvent::Ready(node(port))));
    let report = |mean_100ms_milli, is_current| {
        let agent = suimon_agent::datagram::Load {
            every: Duration::from_secs(1),
            run_queue: 9,
            mean_100ms_milli,
            mean_1s_milli: 9000,
            pressure: None,
            in_flight: None,
            processors: 2,
        };
        let age = Duration::ZERO;
        Some(NodeReportView { source: "agent", load: 1.0, age, is_current, agent: Some(agent) })
    };
    let load = |of_first, of_second| {
        let mut nodes = keeper.upstream.view();
        (nodes[0].report, nodes[1].report) = (of_first, of_second);
        run_queue(&nodes.iter().collect::<Vec<_>>())
    };
    assert_eq!(load(report(3000, true), report(6000, true)), Some(4.5));
    assert_eq!(load(report(3000, true), report(6000, false)), None);
    assert_eq!(load(report(3000, true), None), None);
    assert_eq!(run_queue(&[]), None);
}
