//! A dead application: the line stands still by itself, nobody is sent into it, and what belongs to
//! a session waits for its return.

use crate::support::{
    ASK_EVERY, App, Gateway, app, app_at, ask_over, asked_until, connect, gateway, get, params, request,
    soon, until,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use suimon_control::SessionLawKind;
use suimon_gate::KindParams;
use suimon_params::{Params, SessionKind};
use tokio::net::TcpListener;

const JSON: (&str, &str) = ("accept", "application/json");
const POLL: (&str, &str) = ("suimon-poll", "waiting");

/// A gateway with a maximum of `sessions` sessions, and a waiting room for the rest.
fn room(app: SocketAddr, sessions: u32) -> Params {
    let mut params = params(app);
    params.sessions.kinds = vec![SessionKind {
        gate: KindParams {
            line: Some(suimon_line::Params::default()),
            hold: Some(Duration::from_millis(10)),
            ..KindParams::default()
        },
        ..SessionKind::default()
    }];
    params.gate.session_law = SessionLawKind::Static(sessions);
    params
}

impl Gateway {
    fn is_away(&self) -> bool {
        self.observer.lines()[0].view.away
    }

    fn begun(&self) -> u64 {
        self.view().kinds[0].1.admitted
    }

    /// Begins a session and returns its cookie.
    async fn inside(&self) -> String {
        self.get("/login").await.cookie("JSESSIONID=").expect("there is room")
    }
}

/// Ends the application, and returns once the gateway knows.
async fn end(app: App, gateway: &Gateway) -> SocketAddr {
    let address = app.address;
    app.kill().await;
    until("the gateway knows", || gateway.is_away()).await;
    address
}

#[tokio::test]
async fn the_line_stands_still_by_itself_and_goes_on_by_itself() {
    let app = app().await;
    let gateway = gateway(room(app.address, 2));
    let inside = gateway.inside().await;
    let address = end(app, &gateway).await;
    assert!(!gateway.observer.is_ready());
    let begun = gateway.begun();
    let mut tickets = Vec::new();
    for number in 1..=5 {
        let browser = format!("browser {number}");
        let told = gateway.ask(get("/page", &[JSON, ("user-agent", &browser)])).await;
        let json: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
        assert_eq!(
            (told.status, &json["state"], &json["position"]),
            (503, &"application_down".into(), &number.into())
        );
        assert!(json.get("eta_high_s").is_none(), "{json}");
        tickets.push(told.cookie("suimon-ticket-").unwrap());
    }
    let page = gateway
        .ask(get("/page", &[("accept", "text/html"), ("cookie", &tickets[0]), ("accept-language", "de")]))
        .await;
    assert!(page.text().contains("shop.example antwortet im Moment nicht"), "{}", page.text());
    assert_eq!(
        (gateway.begun(), gateway.observer.lines()[0].view.called),
        (begun, 0),
        "nobody is sent into it"
    );

    let _app = app_at(address).await;
    until("the gateway knows", || !gateway.is_away()).await;
    asked_until("the first is in", Duration::from_millis(50), async || {
        let told = gateway.ask(get("/page", &[POLL, ("cookie", &tickets[0])])).await;
        if !told.text().contains("\"next\"") {
            return None;
        }
        let inside = gateway.ask(get("/page", &[JSON, ("cookie", &tickets[0])])).await;
        (inside.status == 200).then_some(())
    })
    .await;
    assert_eq!(
        gateway.ask(get("/page", &[("cookie", &inside)])).await.status,
        200,
        "the visitor who was inside still is"
    );
}

#[tokio::test]
async fn requests_of_a_session_wait_for_the_application_and_reach_it() {
    let app = app().await;
    let gateway = gateway(room(app.address, 2));
    let inside = gateway.inside().await;
    let address = end(app, &gateway).await;
    let plain = gateway.plain;
    let asks = |method: &'static str| {
        let inside = inside.clone();
        tokio::spawn(async move {
            let request = request(method, "/echo", &[("cookie", inside.as_str())], "twelve bytes");
            ask_over(connect(plain).await, request).await
        })
    };
    let waiting = [asks("POST"), asks("PUT")];
    until("they wait", || gateway.waiting() == 2).await;
    assert_eq!(gateway.in_flight(), 0, "without a slot");
    let _app = app_at(address).await;
    for waiting in waiting {
        let answer = soon(waiting).await.unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.text().starts_with("12 "), "with all of their body: {}", answer.text());
    }
}

#[tokio::test]
async fn a_session_whose_application_stays_away_is_told_so_and_lives_on() {
    let app = app().await;
    let mut params = room(app.address, 2);
    params.sessions.kinds[0].gate.patience = Some(Duration::from_millis(500));
    let gateway = gateway(params);
    let inside = gateway.inside().await;
    let address = end(app, &gateway).await;
    let answer = gateway.ask(request("POST", "/echo", &[("cookie", &inside), JSON], "x")).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("application_down"), "{}", answer.text());
    assert!(answer.header("retry-after").parse::<u32>().unwrap() >= 3);
    let _app = app_at(address).await;
    until("the gateway knows", || !gateway.is_away()).await;
    assert_eq!(gateway.ask(get("/page", &[("cookie", &inside)])).await.status, 200);
    assert_eq!(gateway.begun(), 1);
}

#[tokio::test]
async fn without_any_check_requests_that_do_not_reach_it_stop_the_line_and_its_return_is_seen() {
    let app = app().await;
    let mut params = room(app.address, 2);
    params.upstream.health.interval = Duration::ZERO;
    let gateway = gateway(params);
    let inside = gateway.inside().await;
    let address = app.address;
    app.kill().await;
    let plain = gateway.plain;
    let asked =
        tokio::spawn(
            async move { ask_over(connect(plain).await, get("/page", &[("cookie", &inside)])).await },
        );
    until("one was enough to look", || gateway.is_away()).await;
    let _app = app_at(address).await;
    until("it is seen", || !gateway.is_away()).await;
    assert_eq!(soon(asked).await.unwrap().status, 200);
}

#[tokio::test]
async fn requests_that_could_not_be_connected_for_wait_for_the_application_and_reach_it() {
    let app = app().await;
    let mut params = room(app.address, 10);
    params.upstream.health.interval = Duration::ZERO;
    let gateway = gateway(params);
    let inside = gateway.inside().await;
    let (plain, address) = (gateway.plain, app.address);
    app.kill().await;
    assert!(!gateway.is_away(), "nobody has noticed");
    let asks = |method: &'static str, name: &'static str, value: String| {
        tokio::spawn(async move {
            let request = request(method, "/echo", &[(name, value.as_str())], "twelve bytes");
            ask_over(connect(plain).await, request).await
        })
    };
    let newcomer = asks("POST", "user-agent", "a newcomer".to_owned());
    until("it waits", || gateway.view().gate.suspended == 1).await;
    let insider = asks("PUT", "cookie", inside);
    until("it waits", || gateway.view().gate.suspended + gateway.waiting() == 2).await;
    assert_eq!(gateway.in_flight(), 0, "without a slot");
    let _app = app_at(address).await;
    for asked in [newcomer, insider] {
        let answer = soon(asked).await.unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.text().starts_with("12 "), "with all of their body: {}", answer.text());
    }
    assert_eq!((gateway.view().gate.suspended, gateway.in_flight()), (0, 0));
}

#[tokio::test]
async fn a_request_that_could_not_be_connected_for_is_told_so_once_it_has_waited_and_holds_nothing() {
    let app = app().await;
    let mut params = room(app.address, 2);
    params.upstream.health.interval = Duration::ZERO;
    params.sessions.kinds[0].gate.patience = Some(Duration::from_millis(500));
    let gateway = gateway(params);
    let inside = gateway.inside().await;
    app.kill().await;
    let began = std::time::Instant::now();
    assert_eq!(gateway.ask(get("/page", &[("cookie", &inside)])).await.status, 502);
    assert!(began.elapsed() >= Duration::from_millis(350), "{:?}", began.elapsed());
    until("it holds nothing", || gateway.view().gate.suspended + gateway.in_flight() == 0).await;
    // A client that leaves meanwhile holds nothing either.
    let mut left = connect(gateway.plain).await;
    let sent = format!("GET /page HTTP/1.1\r\nhost: shop.example\r\ncookie: {inside}\r\n\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut left, sent.as_bytes()).await.unwrap();
    drop(left);
    until("it holds nothing", || {
        gateway.view().gate.suspended + gateway.in_flight() + gateway.waiting() == 0
    })
    .await;
}

#[tokio::test]
async fn a_port_that_is_forwarded_to_nobody_is_no_application() {
    let app = app().await;
    let gateway = gateway(room(app.address, 2));
    let inside = gateway.inside().await;
    let address = app.address;
    app.kill().await;
    // It accepts, so that a plain check passes, and closes.
    let listener = TcpListener::bind(address).await.unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&accepted);
    let nobody = tokio::spawn(async move {
        loop {
            drop(listener.accept().await.unwrap());
            counted.fetch_add(1, Relaxed);
        }
    });
    asked_until("the gateway knows", ASK_EVERY, async || {
        if !gateway.is_away() {
            let asked = tokio::time::timeout(
                Duration::from_secs(1),
                gateway.ask(get("/page", &[("cookie", &inside)])),
            );
            let _ = asked.await;
        }
        gateway.is_away().then_some(())
    })
    .await;
    let before = accepted.load(Relaxed);
    // The first of them may have been on its way already; when the third comes the one before it
    // has been judged.
    until("it is looked at again", || accepted.load(Relaxed) >= before + 3).await;
    assert!(gateway.is_away(), "that it accepts is no sign of life");
    nobody.abort();
    let _ = nobody.await;
    let _app = app_at(address).await;
    until("it is seen", || !gateway.is_away()).await;
}
