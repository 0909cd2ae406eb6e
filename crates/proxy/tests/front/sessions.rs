//! Sessions at the gate, over the wire: leases, application cookies, refusals.

use crate::support::{ASK_EVERY, Answer, Gateway, app, asked_until, gateway, get, params, request, until};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use suimon_control::{PaperSessionParams, SessionLawKind};
use suimon_gate::KindParams;
use suimon_params::LeaseIssued;
use suimon_params::{Params, RoutePattern, SessionKind};

/// A gate that closes a moment after the start and stays closed: from then on only those inside are
/// served.
pub(crate) fn closing(app: SocketAddr) -> Params {
    let mut params = params(app);
    params.sessions.kinds = vec![SessionKind {
        ends: vec![RoutePattern { method: None, path: "/logout".to_owned() }],
        // Held no longer than this before being refused.
        gate: KindParams { patience: Some(Duration::from_millis(50)), ..KindParams::default() },
        ..SessionKind::default()
    }];
    let up = Duration::from_secs(3600);
    let always =
        PaperSessionParams { threshold: 0.0, up, down: Duration::ZERO, period: Duration::from_millis(10) };
    params.gate.session_law = SessionLawKind::Paper(always);
    params
}

/// Begins a session and returns its cookie of the application, once newcomers are refused.
async fn inside(gateway: &Gateway) -> String {
    let session = cookie(&gateway.get("/login").await, "JSESSIONID=").expect("let in at the start");
    asked_until("the gate closes", ASK_EVERY, async || {
        (gateway.get("/start").await.status == 503).then_some(())
    })
    .await;
    session
}

fn cookie(answer: &Answer, name: &str) -> Option<String> {
    answer.cookie(name)
}

#[tokio::test]
async fn whoever_is_in_stays_in_and_others_are_told_when_to_come_back() {
    let app = app().await;
    let gateway = gateway(closing(app.address));
    let session = inside(&gateway).await;
    let begun = app.state.begun.load(SeqCst);
    let refused = gateway.get("/start").await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert_eq!(refused.header("cache-control"), "no-store");
    assert!(refused.header("proxy-status").starts_with("suimon; error=http_request_denied"));
    assert_eq!(refused.header("content-type"), "application/problem+json");
    let page = gateway.ask(get("/start", &[("accept", "text/html")])).await;
    assert!(
        page.text().contains("<h1>Too many people at once</h1>")
            && page.text().contains("Please try again in about")
    );
    assert_eq!(app.state.begun.load(SeqCst), begun, "nobody refused reached the application");

    let answer = gateway.ask(get("/head", &[("cookie", &session)])).await;
    assert_eq!(answer.status, 200);
    let lease = cookie(&answer, "suimon=").expect("a lease, now that it is of use");
    assert!(answer.header("set-cookie").ends_with("; HttpOnly; SameSite=Lax"));
    assert_eq!(gateway.view().gate.leased_sessions, 0, "nobody has come with it yet");
    for _ in 0..3 {
        let answer = gateway.ask(get("/head", &[("cookie", &lease)])).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.headers.contains_key("set-cookie") && !answer.text().contains("cookie"));
    }
    assert_eq!(gateway.view().gate.leased_sessions, 1);
    let last = lease.len() - 1;
    let forged = format!("{}{}", &lease[..last], if lease.ends_with('A') { 'E' } else { 'A' });
    assert_eq!(gateway.ask(get("/more", &[("cookie", &forged)])).await.status, 503);
    assert_eq!(gateway.ask(get("/more", &[("cookie", "JSESSIONID=s2-0123456789")])).await.status, 503);

    let both = format!("{lease}; {session}");
    let bye = gateway.ask(request("POST", "/logout", &[("cookie", &both)], "")).await;
    assert_eq!(bye.status, 200);
    assert!(bye.header("set-cookie").starts_with("suimon=; Path=/; Max-Age=0"), "{:?}", bye.headers);
    assert_eq!(gateway.ask(get("/more", &[("cookie", &session)])).await.status, 503, "it has ended");
    let view = gateway.view();
    assert_eq!(view.kinds[0].0, "visit");
    assert!(view.refusals.iter().map(|(_, count)| count).sum::<u64>() >= 6);
}

#[tokio::test]
async fn of_an_application_without_cookies_visitors_get_a_lease_at_once_where_that_is_asked_for() {
    let app = app().await;
    let mut params = params(app.address);
    params.sessions.kinds = vec![SessionKind::default()];
    params.lease.issued = LeaseIssued::Always;
    let gateway = gateway(params);
    let first = gateway.get("/about").await;
    let lease = cookie(&first, "suimon=").expect("nothing else tells this visitor from others");
    let known = gateway.ask(get("/about", &[("cookie", &lease)])).await;
    assert!(!known.headers.contains_key("set-cookie"));
    let public = gateway.ask(get("/about", &[("x-say-cache-control", "public, max-age=60")])).await;
    assert_eq!(public.header("cache-control"), "public, max-age=60", "what caches may keep for all stays so");
    assert!(!public.headers.contains_key("set-cookie"));
    let login = gateway.get("/login").await;
    assert!(cookie(&login, "suimon=").is_none(), "the application's own cookie does: {:?}", login.headers);
    let session = cookie(&login, "JSESSIONID=").unwrap();
    let known = gateway.ask(get("/about", &[("cookie", &session)])).await;
    assert!(!known.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn requests_that_begin_nothing_are_not_held_back_by_the_session_gate() {
    let app = app().await;
    let mut params = closing(app.address);
    params.sessions.kinds[0].begins = ["/login", "/start"]
        .map(|path| RoutePattern { method: Some("GET".into()), path: path.into() })
        .to_vec();
    let gateway = gateway(params);
    inside(&gateway).await;
    assert_eq!(gateway.get("/login").await.status, 503);
    assert_eq!(gateway.get("/about").await.status, 200);
    assert_eq!(gateway.get("/robots.txt").await.status, 200);
}

#[tokio::test]
async fn behind_tls_the_lease_is_for_this_host_and_path_alone() {
    let app = app().await;
    let mut params = closing(app.address);
    params.lease.secure = true;
    let gateway = gateway(params);
    let session = inside(&gateway).await;
    let answer = gateway.ask(get("/more", &[("cookie", &session)])).await;
    let lease = cookie(&answer, "__Host-suimon=").expect("a lease");
    assert!(answer.header("set-cookie").ends_with("; HttpOnly; Secure; SameSite=None"));
    assert_eq!(gateway.ask(get("/more", &[("cookie", &lease)])).await.status, 200);
}

#[tokio::test]
async fn a_lease_outlives_the_gateway_and_its_keys_file_may_be_rotated() {
    let app = app().await;
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    let start = async || {
        let mut params = closing(app.address);
        params.lease.keys_file = Some(keys.clone());
        let gateway = gateway(params);
        let session = inside(&gateway).await;
        (gateway, session)
    };
    let (first, session) = start().await;
    let lease = cookie(&first.ask(get("/more", &[("cookie", &session)])).await, "suimon=").unwrap();
    drop(first);

    let (second, _) = start().await;
    assert_eq!(second.ask(get("/more", &[("cookie", &lease)])).await.status, 200);

    rotate(&keys, 9);
    let (third, _) = start().await;
    let answer = third.ask(get("/more", &[("cookie", &lease)])).await;
    assert_eq!(answer.status, 200);
    let renewed = cookie(&answer, "suimon=").expect("signed anew by the new key");
    assert_ne!(renewed, lease);

    let both = std::fs::read_to_string(&keys).unwrap();
    let without_old: Vec<_> = both.lines().filter(|line| line.starts_with("9 ")).collect();
    std::fs::write(&keys, without_old.join("\n")).unwrap();
    let (fourth, _) = start().await;
    assert_eq!(fourth.ask(get("/more", &[("cookie", &renewed)])).await.status, 200);
    assert_eq!(fourth.ask(get("/more", &[("cookie", &lease)])).await.status, 503, "its key is gone");
}

fn rotate(keys: &Path, id: u8) {
    let old = std::fs::read_to_string(keys).unwrap();
    std::fs::write(keys, format!("{id} {}\n{old}", "5a".repeat(32))).unwrap();
}

#[tokio::test]
async fn under_capacity_nobody_gets_a_cookie_or_waits() {
    let app = app().await;
    let mut params = params(app.address);
    params.sessions.kinds = vec![SessionKind::default()];
    let gateway = gateway(params);
    let session = cookie(&gateway.get("/login").await, "JSESSIONID=").unwrap();
    for at in 0..20 {
        let answer = gateway.ask(get(&format!("/page/{at}"), &[("cookie", &session)])).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.headers.contains_key("set-cookie") && !answer.headers.contains_key("server-timing"));
    }
    until("nothing is left", || gateway.in_flight() == 0).await;
}

#[tokio::test]
async fn an_answer_that_waited_says_how_long() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let holder = gateway.occupy(&app).await;
    let waits = async {
        until("one waits", || gateway.waiting() == 1).await;
        app.state.release(2);
    };
    let (answer, ()) = tokio::join!(gateway.get("/hold"), waits);
    assert!(
        answer.header("server-timing").starts_with("suimon;desc=\"waited\";dur="),
        "{:?}",
        answer.headers
    );
    assert!(!holder.await.unwrap().headers.contains_key("server-timing"));
}
