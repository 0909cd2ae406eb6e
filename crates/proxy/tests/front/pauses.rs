//! Pauses inside requests: what the application is told, and what it says of them.

use crate::support::{Answer, App, Gateway, app, asked_until, gateway, get, params};
use std::time::Duration;
use suimon_gate::{DegradationMode, PausePlace, RouteMode, ServiceView, ServiceWish};
use suimon_params::{DeclaredRoute, DeclaredService, RoutePattern, Services};

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
