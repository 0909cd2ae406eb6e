//! Pauses inside requests: what the application is told, and what it says of them.

use crate::support::{Answer, App, Gateway, app, asked_until, gateway, get, params, raw, read_until};
use std::net::SocketAddr;
use std::time::Duration;
use suimon_gate::{DegradationMode, PausePlace, RouteMode, ServiceView, ServiceWish};
use suimon_params::{DeclaredRoute, DeclaredService, RoutePattern, Services};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Returns a gateway with one service of these routes, with two seconds of pause for each of work.
fn with_pauses(app: &App, pauses: PausePlace) -> Gateway {
    let mut params = params(app.address);
    params.routes.declared = ["/head", "/work"]
        .map(|path| DeclaredRoute {
            pattern: RoutePattern { method: None, path: path.to_owned() },
            query: None,
            mode: RouteMode::Enforce,
        })
        .to_vec();
    let service = DeclaredService {
        name: "heavy".to_owned(),
        routes: vec![0, 1],
        wish: ServiceWish::default(),
        pause: Duration::ZERO,
        pause_ratio: 2.0,
        pauses,
    };
    params.services = Services { mode: DegradationMode::Off, lag_guard: false, services: vec![service] };
    gateway(params)
}

/// Works for 0.3 s, of which the application says that 0.2 s were pauses.
async fn work(gateway: &Gateway) -> Answer {
    gateway.ask(get("/work?300", &[("x-say-suimon-paused", "0.2")])).await
}

/// Returns the service once the gateway knows how long its requests take.
async fn known(gateway: &Gateway) -> ServiceView {
    asked_until("requests are known", Duration::from_millis(5), async || {
        work(gateway).await;
        gateway.view().gate.services.pop().filter(|service| service.standing.service > 0.0)
    })
    .await
}

#[tokio::test]
async fn the_application_is_told_the_ratio_and_nobody_waits() {
    let app = app().await;
    let gateway = with_pauses(&app, PausePlace::Inside);
    known(&gateway).await;
    let answer = gateway.ask(get("/head", &[("suimon-pause", "9")])).await;
    let text = answer.text();
    let told: Vec<_> = text.lines().filter(|line| line.starts_with("suimon-")).collect();
    assert_eq!(told, ["suimon-pause: 2"], "and what the client says is not passed on");
    assert_eq!(answer.header("server-timing"), "", "it was not held");
}

#[tokio::test]
async fn what_the_application_has_paused_is_no_work_and_no_word_for_clients() {
    let app = app().await;
    let gateway = with_pauses(&app, PausePlace::Inside);
    let took = known(&gateway).await.standing.service;
    assert!((0.1..0.2).contains(&took), "it took 0.3 s, and paused for 0.2 of them: {took}");
    let answer = work(&gateway).await;
    assert_eq!((answer.status, answer.header("suimon-paused")), (200, ""));
}

/// An application that says everything it may say to a gateway in an interim response and in trailers.
async fn says_it_beside_the_head() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_until(&mut stream, "\r\n\r\n").await;
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nSuimon-Paused: 0.1\r\n\r\n";
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum, suimon-paused\r\n\r\n";
        let rest = "2\r\nhi\r\n0\r\nx-sum: 42\r\nSuimon-Paused: 0.1\r\nsuimon_session: end\r\n\r\n";
        stream.write_all(format!("{interim}{head}{rest}").as_bytes()).await.unwrap();
        // It stays open until the gateway has read all.
        let _ = stream.read(&mut [0]).await;
    });
    address
}

#[tokio::test]
async fn no_word_for_the_gateway_passes_beside_the_head() {
    let gateway = gateway(params(says_it_beside_the_head().await));
    let asked = "GET /page HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close\r\n\r\n";
    let answer = raw(gateway.plain, asked.as_bytes()).await.to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 200 ok\r\n"), "the interim response is dropped: {answer}");
    assert!(answer.contains("\r\nx-sum: 42\r\n"), "trailers pass: {answer}");
    assert!(!answer.contains("\nsuimon"), "but not these: {answer}");
}

#[tokio::test]
async fn pauses_around_are_the_gateways_own() {
    let app = app().await;
    let gateway = with_pauses(&app, PausePlace::Around);
    let took = known(&gateway).await.standing.service;
    let answer = gateway.ask(get("/head", &[])).await;
    assert!(!answer.text().contains("suimon-pause"), "{}", answer.text());
    let waited = answer.header("server-timing");
    assert!(waited.contains("waited"), "held for twice {took} s: {waited:?}");
}
