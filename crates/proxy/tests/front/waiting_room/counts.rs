//! What is counted of a line, for those who look.

use super::*;
use suimon_gate::GateState;
use suimon_model::Reason;

#[tokio::test]
async fn waiting_pages_and_polls_are_neither_refusals_nor_errors_of_a_route() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let page = gateway.ask(get("/page", &[HTML])).await;
    let twin = gateway.ask(get("/page", &[JSON])).await;
    assert_eq!((page.status, twin.status), (503, 503));
    let place = page.place().unwrap();
    gateway.poll(("cookie", &place)).await;

    let view = gateway.view();
    let statuses: Vec<_> = view.routes.iter().map(|route| (route.statuses[3], route.statuses[4])).collect();
    assert!(statuses.iter().all(|errors| *errors == (0, 0)), "{statuses:?}");
    assert_eq!((view.lines[0].pages, view.lines[0].refused), (2, 0));
    assert!(view.lines[0].polls >= 1);
    assert_eq!((view.kinds[0].1.refused, view.refusals.len()), (0, 0));
    let placed: u64 = view.routes.iter().map(|route| route.gate.placed).sum();
    assert_eq!(placed, 2);
}

#[tokio::test]
async fn whoever_is_sent_away_without_a_place_is_counted_as_refused_and_with_the_reason() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Close);
    assert_eq!(gateway.ask(get("/page", &[HTML])).await.status, 503);
    let view = gateway.view();
    assert_eq!((view.lines[0].pages, view.lines[0].refused), (0, 1));
    assert_eq!(view.refusals, [(Reason::LineClosed, 1)]);
}

#[tokio::test]
async fn a_gate_with_all_its_sessions_taken_is_not_shown_as_open() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    assert!(gateway.view().kinds[0].1.open);
    gateway.taken().await;
    let kind = gateway.view().kinds[0].1.clone();
    assert_eq!(
        (kind.gate_state, kind.open, kind.remembered, kind.sessions_max),
        (GateState::Full, false, 1, Some(1))
    );
    assert!(gateway.view().gate.records.is_empty());
    let told = async || {
        gateway.ask(get("/page", &[HTML])).await;
        let records = gateway.view().gate.records;
        records.into_iter().find(|record| record.reason == Reason::SessionsFull)
    };
    let record = asked_until("it is told why somebody waits", ASK_EVERY, told).await;
    assert_eq!(record.signals.iter().next(), Some(("sessions", 1.0)));
}
