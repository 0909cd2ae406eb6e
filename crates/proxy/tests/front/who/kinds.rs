//! Several kinds of session, of one visitor.

use super::*;
use suimon_params::LeaseIssued;

const OWN: &str = "PHPSESSID=a0123456789abc";

#[tokio::test]
async fn a_session_of_an_open_kind_opens_no_closed_one() {
    let app = app().await;
    let mut params = open(app.address);
    params.sessions.kinds = vec![kind("buying", &["/buy/*"]), kind("browsing", &[])];
    params.sessions.kinds[1].gate.mode = KindMode::Off;
    let gateway = gateway(params);
    gateway.tell(Some("buying"), &LineCommand::Pause);
    assert_eq!(state(&gateway.ask_with("/buy/x", OWN).await), "paused");
    assert_eq!(gateway.ask_with("/home", OWN).await.status, 200);
    assert_eq!(state(&gateway.ask_with("/buy/x", OWN).await), "paused", "known, and a newcomer all the same");
    assert_eq!(gateway.ask_with("/home", OWN).await.status, 200);
}

#[tokio::test]
async fn a_visitor_may_have_sessions_of_several_kinds() {
    let app = app().await;
    let mut params = open(app.address);
    params.sessions.kinds = vec![kind("a", &["/a/*"]), kind("b", &["/b/*"])];
    params.lease.issued = LeaseIssued::Always;
    let gateway = gateway(params);
    // By the application's cookie alone.
    for path in ["/a/1", "/b/1", "/a/2", "/b/2", "/x"] {
        assert_eq!(gateway.ask_with(path, OWN).await.status, 200, "{path}");
    }
    assert_eq!(gateway.view().gate.sessions, 2);
    // By leases: each kind has its own.
    let (one, other) = (gateway.get("/a/1").await, gateway.get("/b/1").await);
    let both: Vec<String> = [&one, &other].iter().map(|it| it.cookie("suimon-").expect("a lease")).collect();
    let name = |cookie: &str| cookie.split('=').next().unwrap().to_owned();
    assert_ne!(name(&both[0]), name(&both[1]));
    gateway.tell(None, &LineCommand::Pause);
    let both = both.join("; ");
    for path in ["/a/1", "/b/1", "/a/2", "/b/2", "/x"] {
        assert_eq!(gateway.ask_with(path, &both).await.status, 200, "{path}");
        assert_eq!(gateway.ask_with(path, OWN).await.status, 200, "{path}");
    }
    assert_eq!(gateway.view().gate.sessions, 4);
    assert_eq!(state(&gateway.ask_with("/a/1", "PHPSESSID=b0123456789abc").await), "paused");
}
