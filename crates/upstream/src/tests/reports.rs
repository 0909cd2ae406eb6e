//! Load that nodes report, while nodes come and go.

use super::*;
use std::time::{SystemTime, UNIX_EPOCH};
use suimon_agent::datagram::{Load, Report};
use suimon_agent::keyring::Keyring;
use suimon_model::NodeId;
use suimon_params::upstream::LoadReportParams;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UdpSocket};

fn ring() -> Keyring {
    Keyring::new([(0, [3; 32])]).unwrap()
}

/// A report of a node of this name; numbers count up.
fn report(name: String, number: u64, tasks: u32) -> Vec<u8> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let load = Load {
        every: Duration::from_secs(1),
        run_queue: tasks,
        mean_100ms_milli: 1000 * tasks,
        mean_1s_milli: 0,
        pressure: None,
        in_flight: None,
        processors: 2,
    };
    let since_boot = Duration::from_secs(number);
    let report = Report { name, boot_us: 1, sequence: number, since_boot, clock_us: clock, load };
    report.encode(&ring()).unwrap()
}

fn count(upstream: &Upstream, result: &str) -> u64 {
    let counts = upstream.load_report_counts().datagrams;
    counts.iter().find(|(name, _)| *name == result).unwrap().1
}

#[tokio::test]
async fn a_node_that_comes_in_the_place_of_another_reports_for_itself() {
    let [first, other] = [9, 10].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let upstream = Upstream::new(UpstreamParams { grows: true, ..params(&[first]) }).unwrap();
    let address = upstream.listen_for_reports("127.0.0.1:0".parse().unwrap(), ring()).unwrap();
    assert_eq!(upstream.reports_address(), Some(address));
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let runs = tokio::spawn({
        let upstream = upstream.clone();
        async move { upstream.run(async { _ = ended.await }).await }
    });
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let name = |address: SocketAddr| format!("http://{address}");

    socket.send_to(&report(name(first), 1, 6), address).await.unwrap();
    until("it is believed", || count(&upstream, "accepted") == 1).await;
    until("it is seen", || upstream.view()[0].report.is_some()).await;
    let seen = upstream.view()[0].report.unwrap();
    assert_eq!((seen.source, seen.is_current, seen.agent.unwrap().run_queue), ("agent", true, 6));
    assert!((seen.load - 3.0).abs() < 1e-9, "for each of two processors");

    upstream.drain(NodeId(0), true);
    assert!(upstream.remove_node(NodeId(0)));
    socket.send_to(&report(name(first), 2, 6), address).await.unwrap();
    until("it is gone", || count(&upstream, "unknown_node") == 1).await;
    assert_eq!(upstream.add_node(&node(other)), Ok(NodeId(0)));
    assert_eq!(upstream.view()[0].report, None, "it has said nothing yet");
    socket.send_to(&report(name(other), 1, 1), address).await.unwrap();
    until("it is believed", || upstream.view()[0].report.is_some_and(|seen| seen.load < 1.0)).await;
    drop(end);
    within(runs).await.unwrap();
}

#[tokio::test]
async fn without_a_socket_there_are_no_counts() {
    let upstream = Upstream::new(params(&[SocketAddr::from(([127, 0, 0, 1], 9))])).unwrap();
    assert_eq!(upstream.load_report_counts(), LoadReportCounts::default());
    assert_eq!((upstream.reports_address(), upstream.pins_connections()), (None, false));
}

#[tokio::test]
async fn a_node_is_asked_for_its_load_as_haproxy_asks() {
    let agent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = agent.local_addr().unwrap().port();
    let of_node = params(&[SocketAddr::from(([127, 0, 0, 1], 9))]);
    let load_reports = LoadReportParams { agent_check: Some(port), ..LoadReportParams::default() };
    let upstream = Upstream::new(UpstreamParams { load_reports, ..of_node }).unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let runs = tokio::spawn({
        let upstream = upstream.clone();
        async move { upstream.run(async { _ = ended.await }).await }
    });
    let count = |result: &str| {
        let counts = upstream.load_report_counts().checks;
        counts.iter().find(|(name, _)| *name == result).unwrap().1
    };
    let says = async |line: &'static str, result: &'static str| {
        let before = count(result);
        let (mut asked, _) = within(agent.accept()).await.unwrap();
        asked.write_all(line.as_bytes()).await.unwrap();
        drop(asked);
        until("it is counted", || count(result) > before).await;
    };
    says("up 25%\n", "accepted").await;
    until("it is seen", || upstream.view()[0].report.is_some()).await;
    let seen = upstream.view()[0].report.unwrap();
    assert_eq!((seen.source, seen.load), ("agent_check", 0.0), "it has nothing to do");
    for line in ["hello\n", "no end", ""] {
        says(line, "unreadable").await;
    }
    drop(agent);
    until("nobody is there", || count("unreachable") > 0).await;
    drop(end);
    within(runs).await.unwrap();
}
