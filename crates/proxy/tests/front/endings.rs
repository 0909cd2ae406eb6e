//! What ends a session: the visitor's lease and the place in the application, both or neither.

use crate::support::{app, gateway, get, params};
use std::time::Duration;
use suimon_control::SessionLawKind;
use suimon_gate::KindParams;
use suimon_params::{RoutePattern, SessionKind};

#[tokio::test]
async fn a_log_out_that_the_application_refuses_ends_the_session_neither_here_nor_there() {
    let app = app().await;
    let mut params = params(app.address);
    params.gate.session_law = SessionLawKind::Static(1);
    let ends = vec![RoutePattern { method: None, path: "/logout".to_owned() }];
    // A newcomer who finds no place is refused soon.
    let gate = KindParams { hold: Some(Duration::from_millis(50)), ..KindParams::default() };
    params.sessions.kinds = vec![SessionKind { ends, gate, ..SessionKind::default() }];
    let gateway = gateway(params);
    let cookie = gateway.get("/login").await.cookie("JSESSIONID=").expect("let in");
    let asks = async |path, status| {
        gateway.ask(get(path, &[("cookie", cookie.as_str()), ("x-status", status)])).await.status
    };
    // From now on there is a lease.
    assert_eq!(gateway.get("/other").await.status, 503, "one is inside, and one may be");
    assert_eq!(asks("/page", "200").await, 200);
    for refused in ["403", "404", "500"] {
        assert_eq!(asks("/logout", refused).await.to_string(), refused);
        assert_eq!(gateway.get("/other").await.status, 503, "they are still inside, after {refused}");
        assert_eq!(asks("/page", "200").await, 200, "and may go on, after {refused}");
    }
    assert_eq!(asks("/logout", "200").await, 200);
    assert_eq!(gateway.get("/other").await.status, 200, "their place is free");
    assert_eq!(asks("/page", "200").await, 503, "and they have none");
}
