//! Nobody enters by a trick: what an old cookie, an old lease and the lease of another kind are
//! worth, and what is believed of a stranger's headers.

use crate::support::{ASK_EVERY, Answer, Gateway, app, asked_until, gateway, get, params, request, until};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};
use suimon_control::SessionLawKind;
use suimon_gate::{KindMode, KindParams};
use suimon_params::{Params, RoutePattern, SessionKind};
use suimon_proxy::LineCommand;

mod headers;
mod kinds;
mod limits;
mod openings;

const JSON: (&str, &str) = ("accept", "application/json");

/// A gateway with a waiting room that lets everybody in as long as its line moves.
fn open(app: SocketAddr) -> Params {
    let mut params = params(app);
    params.sessions.kinds = vec![kind("visit", &[])];
    params.gate.session_law = SessionLawKind::Open;
    params
}

fn kind(name: &str, begins: &[&str]) -> SessionKind {
    let pattern = |path: &&str| RoutePattern { method: None, path: (*path).to_owned() };
    SessionKind {
        name: name.to_owned(),
        begins: begins.iter().map(pattern).collect(),
        ends: vec![pattern(&"/logout")],
        gate: KindParams {
            line: Some(suimon_line::Params::default()),
            hold: Some(Duration::from_millis(10)),
            ..KindParams::default()
        },
        ..SessionKind::default()
    }
}

fn opening() -> LineCommand {
    LineCommand::Open { at: SystemTime::now() + Duration::from_secs(3600), by_lot: true }
}

impl Gateway {
    fn tell(&self, kind: Option<&str>, command: &LineCommand) {
        self.observer.command_line(kind, command).unwrap();
    }

    async fn ask_with(&self, path: &str, cookie: &str) -> Answer {
        self.ask(get(path, &[JSON, ("cookie", cookie)])).await
    }

    async fn forgets_all(&self) {
        until("the gate has forgotten all sessions", || self.view().gate.sessions == 0).await;
    }
}

/// Returns the state that a place in line is told; the status, where none is.
fn state(answer: &Answer) -> String {
    let json = serde_json::from_slice::<Value>(&answer.body).ok();
    json.and_then(|json| Some(json["state"].as_str()?.to_owned())).unwrap_or(answer.status.to_string())
}

fn lease(answer: &Answer) -> Option<String> {
    answer.cookie("suimon=").filter(|cookie| cookie != "suimon=")
}

#[tokio::test]
async fn an_ended_session_is_not_entered_again_by_another_of_its_cookies() {
    let app = app().await;
    let gateway = gateway(open(app.address));
    let (one, other) = ("PHPSESSID=a0123456789abc", "xsess=b0123456789abc");
    assert_eq!(gateway.ask_with("/page", &format!("{one}; {other}")).await.status, 200);
    gateway.tell(None, &LineCommand::Pause);
    assert_eq!(gateway.ask_with("/page", other).await.status, 200, "it is inside");
    let bye = gateway.ask(request("POST", "/logout", &[("cookie", one)], "")).await;
    assert_eq!(bye.status, 200);
    for cookie in [one, other] {
        assert_eq!(state(&gateway.ask_with("/page", cookie).await), "paused", "{cookie}");
    }
    assert_eq!(gateway.view().gate.sessions, 0);
}
