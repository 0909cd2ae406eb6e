//! Several nodes: refused connections, ejection, health checks, draining.

use super::backend::Backend;
use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tokio::net::TcpListener;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Returns an address on which nothing listens.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn a_refused_connection_costs_no_request_and_ejects_the_node() {
    let (nobody, lives) = (nobody().await, Backend::answering(OK).await);
    let upstream = Upstream::new(params(&[nobody, lives.address])).unwrap();
    for _ in 0..50 {
        // Nothing was sent to the missing node, so even a POST may go to the other one.
        assert_eq!(post(&upstream, "/", "order").await.unwrap(), "ok");
    }
    let view = upstream.view();
    assert_eq!((view[0].status, view[0].reason), ("ejected", "requests_failed"));
    assert!(view[0].ejected_for.unwrap() <= Duration::from_secs(5));
    assert_eq!((view[1].status, view[1].picked), ("up", 50));
    assert_eq!(view[0].picked, 5, "five failures were enough");
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn a_single_node_that_is_not_there_is_said_so_and_asked_again_next_time() {
    let address = nobody().await;
    let upstream = Upstream::new(params(&[address])).unwrap();
    for _ in 0..10 {
        let error = get(&upstream, "/").await.unwrap_err();
        assert_eq!(error.kind(), UpstreamErrorKind::Connect, "{error}");
        assert!(error.retry_may_help() && error.to_string().contains("refused"), "{error}");
    }
    let backend = Backend::on(TcpListener::bind(address).await.unwrap(), |mut talk, _| async move {
        talk.request().await?;
        talk.answer("ok").await
    });
    assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
    assert_eq!((backend.requests(), in_flight(&upstream)), (1, 0));
}

#[tokio::test]
async fn a_name_nobody_knows_is_a_failure_to_connect() {
    let mut params = params(&[]);
    params.nodes = vec![NodeParams::parse("http://no-such-host.invalid:80").unwrap()];
    params.connect_timeout = HANGS;
    let upstream = Upstream::new(params).unwrap();
    assert_eq!(kind(get(&upstream, "/").await), UpstreamErrorKind::Connect);
}

#[tokio::test]
async fn a_node_that_answers_with_errors_at_once_attracts_nobody() {
    let broken = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\nno";
    let nodes =
        [Backend::answering(OK).await, Backend::answering(broken).await, Backend::answering(OK).await];
    let upstream = Upstream::new(params(&nodes.each_ref().map(|node| node.address))).unwrap();
    for _ in 0..100 {
        let head = RequestHead::from(head(Method::GET, "/")).of_route(Some(RouteId(0)), false);
        let answer = within(upstream.send(head, Full::new(Bytes::new()), None)).await.unwrap();
        text(answer).await.unwrap();
    }
    let asked = nodes.each_ref().map(Backend::requests);
    assert!(asked[1] <= 5 && asked[0] > 30 && asked[2] > 30, "{asked:?}");
    let shares: Vec<f64> = upstream.view().iter().map(|node| node.share).collect();
    assert!(shares[1] < shares[0] && shares[1] < shares[2], "{shares:?}");
}

#[tokio::test]
async fn what_waits_for_a_node_that_hangs_is_answered_by_another() {
    let hangs = Backend::talking(|mut talk, _| async move {
        loop {
            talk.request().await?;
        }
    });
    let nodes = [hangs.await, Backend::answering(OK).await];
    let mut params = params(&nodes.each_ref().map(|node| node.address));
    params.health = HealthParams {
        interval: Duration::from_millis(200),
        timeout: Duration::from_millis(200),
        ..HealthParams::default()
    };
    let upstream = Upstream::new(params).unwrap();
    let running = tokio::spawn({
        let upstream = upstream.clone();
        async move { upstream.run(std::future::pending()).await }
    });
    // As many as come meanwhile: each is answered, and some were at the node that hangs.
    let visitors = (0..4).map(|_| {
        let upstream = upstream.clone();
        tokio::spawn(async move {
            for _ in 0..200 {
                assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    });
    for visitor in visitors.collect::<Vec<_>>() {
        visitor.await.unwrap();
    }
    assert!(nodes[0].requests() > 0);
    let view = upstream.view();
    assert_eq!((view[0].reason, view[1].status), ("silent", "up"));
    running.abort();
}

#[tokio::test]
async fn an_upload_whose_client_is_waited_for_is_not_given_up_with_a_node_that_hangs() {
    let hangs = Backend::talking(|mut talk, _| async move {
        loop {
            talk.request().await?;
        }
    });
    let nodes = [hangs.await, Backend::answering(OK).await];
    let mut params = params(&nodes.each_ref().map(|node| node.address));
    params.health.interval = Duration::from_millis(200);
    params.health.timeout = Duration::from_millis(200);
    params.ejection.base = Duration::from_millis(200);
    let upstream = Upstream::new(params).unwrap();
    let running = tokio::spawn({
        let upstream = upstream.clone();
        async move { upstream.run(std::future::pending()).await }
    });
    let at_the_first = || (head(Method::POST, "/"), Some(NodeId(1)));
    let (pieces, body) = piped();
    // A slow client, but one that sends.
    let client = tokio::spawn(async move {
        while pieces.send(Ok(Bytes::from_static(b"."))).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let upload = tokio::spawn({
        let (upstream, (head, avoid)) = (upstream.clone(), at_the_first());
        async move { upstream.send(head, body, avoid).await.map(drop) }
    });
    let (head, avoid) = at_the_first();
    let post = upstream.send(head, Full::new(Bytes::from_static(b"all of it")), avoid);
    // Others are answered all the time, which shows that it is the node.
    let visits = tokio::spawn({
        let upstream = upstream.clone();
        async move {
            loop {
                get(&upstream, "/").await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    let given_up = within(post).await.map(drop).unwrap_err();
    assert_eq!(given_up.kind(), UpstreamErrorKind::FirstByteTimeout);
    assert!(!upload.is_finished(), "its client is slow, the node may not be");
    client.abort();
    let error = within(upload).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), UpstreamErrorKind::FirstByteTimeout, "now it is the node");
    visits.abort();
    running.abort();
}

#[tokio::test]
async fn an_answer_without_a_body_is_one() {
    for answer in [
        &b"HTTP/1.1 204 No Content\r\n\r\n"[..],
        b"HTTP/1.1 303 See Other\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
        OK,
    ] {
        let node = Backend::answering(answer).await;
        let upstream = Upstream::new(params(&[node.address])).unwrap();
        upstream.shared.note_failure(NodeId(0));
        assert_eq!(upstream.view()[0].failures_in_a_row, 1);
        get(&upstream, "/").await.unwrap();
        assert_eq!(upstream.view()[0].failures_in_a_row, 0, "{}", String::from_utf8_lossy(answer));
    }
}

#[tokio::test]
async fn the_avoided_node_is_avoided() {
    let (one, other) = (Backend::answering(OK).await, Backend::answering(OK).await);
    let upstream = Upstream::new(params(&[one.address, other.address])).unwrap();
    for _ in 0..20 {
        let response = within(upstream.send(head(Method::GET, "/"), Empty::<Bytes>::new(), Some(NodeId(0))))
            .await
            .unwrap();
        assert_eq!((response.body().node(), response.body().tries()), (NodeId(1), 1));
    }
    assert_eq!(one.connections(), 0);
}

#[tokio::test]
async fn draining_nodes_get_nothing_and_with_all_draining_it_is_said_so() {
    let (one, other) = (Backend::answering(OK).await, Backend::answering(OK).await);
    let upstream = Upstream::new(params(&[one.address, other.address])).unwrap();
    upstream.drain(NodeId(0), true);
    for _ in 0..10 {
        get(&upstream, "/").await.unwrap();
    }
    assert_eq!((one.requests(), other.requests()), (0, 10));
    upstream.drain(NodeId(1), true);
    let error = get(&upstream, "/").await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (UpstreamErrorKind::NoNode, Blame::Gateway));
    upstream.drain(NodeId(0), false);
    assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
}

#[tokio::test]
async fn nodes_come_and_go_while_requests_run() {
    let upstream = Upstream::new(UpstreamParams { grows: true, ..params(&[]) }).unwrap();
    assert_eq!(kind(get(&upstream, "/").await), UpstreamErrorKind::NoNode);
    assert!(!upstream.is_up() && !*upstream.watch_up().borrow());

    let (release, released) = tokio::sync::watch::channel(false);
    let slow = Backend::talking(move |mut talk, _| {
        let mut released = released.clone();
        async move {
            talk.request().await?;
            released.wait_for(|it| *it).await.ok()?;
            talk.answer("slow").await
        }
    });
    let slow = slow.await;
    let id = upstream.add_node(&node(slow.address)).unwrap();
    assert!(*upstream.watch_up().borrow());
    let under_way = tokio::spawn({
        let upstream = upstream.clone();
        async move { get(&upstream, "/").await }
    });
    until("the request is there", || slow.requests() == 1).await;
    upstream.drain(id, true);
    assert!(!upstream.remove_node(id), "a request is there");

    let other = Backend::answering(OK).await;
    assert_eq!(upstream.add_node(&node(other.address)), Ok(NodeId(1)));
    assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
    release.send_replace(true);
    assert_eq!(under_way.await.unwrap().unwrap(), "slow", "nobody lost it");
    until("it is gone", || upstream.remove_node(id)).await;

    assert_eq!(upstream.add_node(&node(other.address)), Ok(id), "its place is free");
    assert_eq!(upstream.view().len(), 2);
    assert!(upstream.view().iter().all(|node| node.address == format!("http://{}", other.address)));
}

#[tokio::test]
async fn a_check_of_a_node_that_is_gone_says_nothing_of_the_next_one() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let well = Backend::answering(OK).await;
    let mut of_checks = checked(&[silent.local_addr().unwrap()], Some("/"));
    (of_checks.health.down_after, of_checks.health.timeout) = (1, HANGS);
    let upstream = Upstream::new(of_checks).unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let runs = tokio::spawn({
        let upstream = upstream.clone();
        async move { upstream.run(async { _ = ended.await }).await }
    });
    let (checked, _) = within(silent.accept()).await.unwrap();
    upstream.drain(NodeId(0), true);
    assert!(upstream.remove_node(NodeId(0)));
    assert_eq!(upstream.add_node(&node(well.address)), Ok(NodeId(0)));
    drop(checked);
    until("the new one is checked often", || well.requests() > 5).await;
    assert_eq!(upstream.view()[0].status, "up");
    drop(end);
    within(runs).await.unwrap();
}

/// Parameters with checks of `path` every few milliseconds.
fn checked(addresses: &[SocketAddr], path: Option<&str>) -> UpstreamParams {
    let interval = Duration::from_millis(10);
    let health = HealthParams { path: path.map(str::to_owned), interval, ..HealthParams::default() };
    UpstreamParams { health, ..params(addresses) }
}

#[tokio::test]
async fn a_failing_health_check_takes_a_node_out_and_a_passing_one_back() {
    let well = Arc::new(AtomicBool::new(true));
    let says = Arc::clone(&well);
    let sick = Backend::talking(move |mut talk, _| {
        let well = Arc::clone(&says);
        async move {
            loop {
                let request = talk.request().await?;
                let check = request.head.starts_with("GET /health?deep=1 HTTP/1.1\r\n");
                if check && !well.load(SeqCst) {
                    talk.send(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await?;
                } else {
                    talk.answer("ok").await?;
                }
            }
        }
    })
    .await;
    let other = Backend::answering(OK).await;
    let mut params = checked(&[sick.address, other.address], Some("/health?deep=1"));
    params.slow_start = Duration::from_secs(3600);
    let upstream = Upstream::new(params).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let runner = upstream.clone();
    let running = tokio::spawn(async move { runner.run(async { drop(stopped.await) }).await });
    until("checks are made", || sick.requests() > 2).await;
    assert_eq!(upstream.view()[0].slow_start_for, None, "the first nodes are all as cold");
    assert!(upstream.view().iter().all(|node| node.status == "up"));
    well.store(false, SeqCst);
    until("the sick node is out", || upstream.view()[0].status == "down").await;
    assert_eq!(upstream.view()[0].reason, "checks_failed");
    assert!(upstream.is_up());
    for _ in 0..20 {
        let response = send(&upstream, Method::GET, "/").await.unwrap();
        assert_eq!(response.body().node(), NodeId(1));
    }
    well.store(true, SeqCst);
    until("it is back", || upstream.view()[0].status == "up").await;
    assert_eq!(upstream.view()[0].reason, "checks_passed");
    assert!(upstream.view()[0].slow_start_for.is_some_and(|left| left > Duration::from_secs(3000)));
    assert_eq!(upstream.view()[1].slow_start_for, None);
    drop(stop);
    within(running).await.unwrap();
}

#[tokio::test]
async fn without_a_path_a_check_is_a_connection() {
    let address = nobody().await;
    let upstream = Upstream::new(checked(&[address], None)).unwrap();
    let runner = upstream.clone();
    let running = tokio::spawn(async move { runner.run(std::future::pending()).await });
    until("nobody listens", || !upstream.is_up()).await;
    assert_eq!(kind(get(&upstream, "/").await), UpstreamErrorKind::Connect, "it is asked all the same");
    let backend = Backend::on(TcpListener::bind(address).await.unwrap(), |mut talk, _| async move {
        talk.request().await?;
        talk.answer("ok").await
    });
    until("somebody listens", || upstream.is_up()).await;
    assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
    drop(backend);
    running.abort();
}

#[tokio::test]
async fn a_check_that_hangs_has_failed() {
    let backend = Backend::talking(|mut talk, _| async move { talk.closed().await }).await;
    let mut params = checked(&[backend.address], Some("/health"));
    params.health.timeout = Duration::from_millis(20);
    let upstream = Upstream::new(params).unwrap();
    let runner = upstream.clone();
    let running = tokio::spawn(async move { runner.run(std::future::pending()).await });
    until("it is out", || !upstream.is_up()).await;
    running.abort();
}

#[tokio::test]
async fn parameters_that_cannot_work_are_refused_with_the_remedy() {
    let error = Upstream::new(UpstreamParams::default()).unwrap_err();
    assert!(error.contains("at least one"), "{error}");
    let many = vec!["127.0.0.1:1".parse().unwrap(); suimon_params::upstream::NODES_MAX + 1];
    let error = Upstream::new(params(&many)).unwrap_err();
    assert!(error.contains("at most 256"), "{error}");
}
