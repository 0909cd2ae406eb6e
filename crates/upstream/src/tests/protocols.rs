//! What is spoken to a node: TLS, HTTP/2 over TLS and without.

use super::backend::{Backend, certificate};
use super::*;
use std::io::Write;

const SLOW_TEST: Duration = Duration::from_millis(100);

fn over(scheme: Scheme, protocol: Protocol, backend: &Backend) -> UpstreamParams {
    let mut params = params(&[backend.address]);
    params.nodes[0] = NodeParams {
        scheme,
        protocol,
        address: NodeAddress::Tcp { host: "localhost".to_owned(), port: backend.address.port() },
    };
    params
}

fn trusting(pem: &str, mut params: UpstreamParams) -> (UpstreamParams, tempfile::NamedTempFile) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    params.tls.ca_file = Some(file.path().to_owned());
    (params, file)
}

#[tokio::test]
async fn http2_without_tls_shares_one_connection() {
    let backend = Backend::http2(None, 200).await;
    let upstream = Upstream::new(over(Scheme::Http, Protocol::Http2, &backend)).unwrap();
    let requests: Vec<_> = (0..50)
        .map(|i| {
            let upstream = upstream.clone();
            tokio::spawn(async move {
                let path = format!("/items/{i}");
                (get(&upstream, &path).await.unwrap(), format!("GET {path} shop.example "))
            })
        })
        .collect();
    for request in requests {
        let (answer, expected) = within(request).await.unwrap();
        assert_eq!(answer, expected);
    }
    assert_eq!(post(&upstream, "/order", "two").await.unwrap(), "POST /order shop.example two");
    assert_eq!((backend.connections(), backend.requests(), in_flight(&upstream)), (1, 51, 0));
}

#[tokio::test]
async fn the_node_s_limit_of_streams_is_respected_and_all_are_served() {
    let backend = Backend::http2(None, 2).await;
    let params = UpstreamParams { h2_connections_max: 2, ..over(Scheme::Http, Protocol::Http2, &backend) };
    let upstream = Upstream::new(params).unwrap();
    get(&upstream, "/").await.unwrap();
    let requests: Vec<_> = (0..40)
        .map(|_| {
            let upstream = upstream.clone();
            tokio::spawn(async move { post(&upstream, "/", "order").await })
        })
        .collect();
    for request in requests {
        within(request).await.unwrap().unwrap();
    }
    assert_eq!((backend.connections(), backend.requests(), in_flight(&upstream)), (2, 41, 0));
}

#[tokio::test]
async fn https_nodes_speak_http1_or_http2_as_declared() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let (pem, config) = certificate(&[if protocol == Protocol::Http2 { b"h2" } else { b"http/1.1" }]);
        let backend = match protocol {
            Protocol::Http1 => Backend::https(config).await,
            Protocol::Http2 => Backend::http2(Some(config), 100).await,
        };
        let (params, _file) = trusting(&pem, over(Scheme::Https, protocol, &backend));
        let upstream = Upstream::new(params).unwrap();
        for _ in 0..5 {
            assert_eq!(get(&upstream, "/secret").await.unwrap(), "GET /secret shop.example ");
            assert_eq!(post(&upstream, "/order", "two").await.unwrap(), "POST /order shop.example two");
        }
        assert_eq!((backend.connections(), in_flight(&upstream)), (1, 0), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_certificate_nobody_vouches_for_is_refused_unless_told_otherwise() {
    let (_, config) = certificate(&[]);
    let backend = Backend::https(config).await;
    let mut params = over(Scheme::Https, Protocol::Http1, &backend);
    let upstream = Upstream::new(params.clone()).unwrap();
    let error = get(&upstream, "/").await.unwrap_err();
    assert_eq!(error.kind(), UpstreamErrorKind::TlsHandshake, "{error}");
    params.tls.verify = false;
    let upstream = Upstream::new(params).unwrap();
    assert_eq!(get(&upstream, "/").await.unwrap(), "GET / shop.example ");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_unless_that_name_is_given() {
    let (pem, config) = certificate(&[]);
    let backend = Backend::https(config).await;
    let (mut params, _file) = trusting(&pem, over(Scheme::Https, Protocol::Http1, &backend));
    params.tls.server_name = Some("other.example".to_owned());
    let upstream = Upstream::new(params.clone()).unwrap();
    assert_eq!(kind(get(&upstream, "/").await), UpstreamErrorKind::TlsHandshake);
    params.tls.server_name = Some("localhost".to_owned());
    let upstream = Upstream::new(params).unwrap();
    assert_eq!(get(&upstream, "/").await.unwrap(), "GET / shop.example ");
}

#[tokio::test]
async fn a_node_without_http2_is_told_apart() {
    let (pem, config) = certificate(&[]);
    let backend = Backend::https(config).await;
    let (params, _file) = trusting(&pem, over(Scheme::Https, Protocol::Http2, &backend));
    let upstream = Upstream::new(params).unwrap();
    let error = get(&upstream, "/").await.unwrap_err();
    assert_eq!(error.kind(), UpstreamErrorKind::TlsHandshake);
    assert!(error.to_string().contains("h2"), "{error}");
}

#[tokio::test]
async fn a_node_that_never_finishes_the_handshake_ends_in_time() {
    let backend = Backend::talking(|mut talk, _| async move { talk.closed().await }).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let params = UpstreamParams { connect_timeout: SLOW_TEST, ..over(Scheme::Https, protocol, &backend) };
        let upstream = Upstream::new(params).unwrap();
        let requests: Vec<_> = (0..10)
            .map(|_| {
                let upstream = upstream.clone();
                tokio::spawn(async move { get(&upstream, "/").await })
            })
            .collect();
        for request in requests {
            assert_eq!(kind(within(request).await.unwrap()), UpstreamErrorKind::ConnectTimeout);
        }
        assert_eq!(in_flight(&upstream), 0);
    }
}

#[tokio::test]
async fn a_dropped_http2_request_leaves_the_connection_to_the_others() {
    let backend = Backend::http2(None, 100).await;
    let upstream = Upstream::new(over(Scheme::Http, Protocol::Http2, &backend)).unwrap();
    get(&upstream, "/").await.unwrap();
    let (_pieces, body) = piped();
    let waiting = tokio::spawn(upstream.send(head(Method::POST, "/"), body, None));
    until("it is under way", || in_flight(&upstream) == 1).await;
    waiting.abort();
    until("its place is given back", || in_flight(&upstream) == 0).await;
    get(&upstream, "/").await.unwrap();
    assert_eq!(backend.connections(), 1);
}

#[tokio::test]
async fn a_lost_http2_connection_is_replaced() {
    let backend = Backend::http2(None, 100).await;
    let address = backend.address;
    let upstream = Upstream::new(over(Scheme::Http, Protocol::Http2, &backend)).unwrap();
    get(&upstream, "/").await.unwrap();
    drop(backend);
    until("the loss is noticed", || idle(&upstream) == 0).await;
    assert_eq!(kind(get(&upstream, "/").await), UpstreamErrorKind::Connect);
    let backend = Backend::http2_on(tokio::net::TcpListener::bind(address).await.unwrap(), None, 100);
    get(&upstream, "/").await.unwrap();
    assert_eq!((backend.connections(), in_flight(&upstream)), (1, 0));
}

#[tokio::test]
async fn http2_health_checks_work_too() {
    let backend = Backend::http2(None, 100).await;
    let mut params = over(Scheme::Http, Protocol::Http2, &backend);
    params.health.path = Some("/health".to_owned());
    params.health.interval = Duration::from_millis(10);
    params.health.down_after = 1;
    let upstream = Upstream::new(params).unwrap();
    let runner = upstream.clone();
    let running = tokio::spawn(async move { runner.run(std::future::pending()).await });
    until("checks are made", || backend.requests() > 3).await;
    assert!(upstream.is_up());
    running.abort();
}

#[tokio::test]
async fn ca_files_that_cannot_be_used_are_refused_by_name() {
    let backend = Backend::answering(b"").await;
    let (mut params, _file) = trusting("no certificate", over(Scheme::Https, Protocol::Http1, &backend));
    let error = Upstream::new(params.clone()).unwrap_err();
    assert!(error.contains("CA file") && error.contains("no usable certificate"), "{error}");
    params.tls.ca_file = Some("/no/such/file.pem".into());
    let error = Upstream::new(params).unwrap_err();
    assert!(error.contains("/no/such/file.pem"), "{error}");
}
