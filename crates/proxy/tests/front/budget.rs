//! One lease in many hands, over the wire.

use crate::support::{
    ASK_EVERY, Gateway, app, ask_over, asked_until, connect, gateway, get, params, soon, until,
};
use std::sync::atomic::Ordering::SeqCst;
use suimon_control::SessionLawKind;
use suimon_gate::{KindParams, RouteMode};
use suimon_model::Limit;
use suimon_params::{DeclaredRoute, RoutePattern, SessionKind};
use suimon_proxy::LineCommand;
use tokio::task::JoinSet;

/// Requests that the application may be at, at once.
const SLOTS: usize = 12;
const OTHERS: usize = 20;
const SHARING: usize = 100;

/// Returns leases, each of a session of its own: every client with a ticket gets one.
async fn leases(gateway: &Gateway, count: usize) -> Vec<String> {
    gateway.observer.command_line(None, &LineCommand::Pause).unwrap();
    let mut tickets = Vec::new();
    for _ in 0..count {
        let answer = gateway.ask(get("/page", &[("accept", "application/json")])).await;
        tickets.push(answer.cookie("suimon-ticket-").expect("a place"));
    }
    gateway.observer.command_line(None, &LineCommand::Resume).unwrap();
    let mut leases = Vec::new();
    for ticket in tickets {
        let cookie = [("cookie", ticket.as_str()), ("accept", "application/json")];
        let lease = asked_until("a lease", ASK_EVERY, async || {
            gateway.ask(get("/page", &cookie)).await.cookie("suimon=")
        });
        leases.push(lease.await);
    }
    leases
}

#[tokio::test]
async fn a_hundred_clients_with_one_lease_get_what_one_visitor_gets() {
    let app = app().await;
    let mut params = params(app.address);
    params.routes.declared = vec![DeclaredRoute {
        pattern: RoutePattern { method: None, path: "/hold".to_owned() },
        query: None,
        mode: RouteMode::Fixed(Limit::of(SLOTS as u32)),
    }];
    params.sessions.kinds = vec![SessionKind {
        gate: KindParams { line: Some(suimon_line::Params::default()), ..KindParams::default() },
        ..SessionKind::default()
    }];
    params.gate.session_law = SessionLawKind::Open;
    // Less than all who share: what goes beyond a visitor's budget fills no gate.
    params.gate.waiting_max = 60;
    let gateway = gateway(params);
    let mut leases = leases(&gateway, 1 + SLOTS + OTHERS).await;
    let lease = leases.pop().unwrap();

    let mut asking = JoinSet::new();
    let mut ask = |lease: &str, who: &'static str| {
        let (address, lease) = (gateway.plain, lease.to_owned());
        asking.spawn(async move {
            ask_over(connect(address).await, get("/hold", &[("cookie", &lease), ("x-who", who)])).await.status
        });
    };
    leases[..SLOTS].iter().for_each(|lease| ask(lease, "first"));
    until("all slots are taken", || app.state.held.load(SeqCst) == SLOTS).await;
    (0..SHARING).for_each(|_| ask(&lease, "shared"));
    until("all who share wait", || gateway.waiting() == SHARING).await;
    leases[SLOTS..].iter().for_each(|lease| ask(lease, "other"));
    until("others wait, too", || gateway.waiting() == SHARING + OTHERS).await;
    ask("a=b", "newcomer");
    until("and a newcomer", || gateway.waiting() == SHARING + OTHERS + 1).await;

    let came = |from: usize| app.state.who.lock().unwrap()[from..].to_vec();
    let count = |who: &str, from: usize| came(from).iter().filter(|one| *one == who).count();
    app.state.release(SLOTS);
    until("as many more are in", || came(SLOTS).len() == SLOTS).await;
    // At once: eight of a hundred, though they were all there before the others.
    assert_eq!((count("shared", SLOTS), count("other", SLOTS)), (8, SLOTS - 8));
    app.state.release(OTHERS + 1 + 8 - SLOTS);
    until("everybody else is or was in", || came(SLOTS).len() == OTHERS + 1 + 8).await;
    assert_eq!((count("shared", SLOTS), count("other", SLOTS), count("newcomer", SLOTS)), (8, OTHERS, 1));
    app.state.release(SHARING + SLOTS);
    // In all: what nobody else wants is theirs, and none of them is turned away, as an admitted
    // visitor stays admitted.
    let answers = soon(asking.join_all()).await;
    assert_eq!(answers.len(), SLOTS + SHARING + OTHERS + 1);
    assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    assert_eq!(count("shared", 0), SHARING);
    until("nothing is left", || gateway.in_flight() == 0).await;
}
