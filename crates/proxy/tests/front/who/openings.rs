//! Who visited before, and an opening, a pause and a close.

use super::*;
use suimon_params::LeaseIssued;

/// A gateway whose sessions are forgotten soon, with a line that survives a restart in `folder`.
fn forgetful(app: SocketAddr, folder: &std::path::Path) -> Params {
    let mut params = open(app);
    params.gate.session_idle = Duration::from_millis(300);
    params.lease.keys_file = Some(folder.join("keys"));
    params.waiting_room.state_file = Some(folder.join("room.json"));
    params
}

#[tokio::test]
async fn who_visited_before_does_not_walk_through_an_opening_a_pause_or_a_close() {
    let app = app().await;
    let mut params = open(app.address);
    params.gate.session_idle = Duration::from_millis(300);
    for (command, told) in
        [(opening(), "opening"), (LineCommand::Pause, "paused"), (LineCommand::Close, "closed")]
    {
        let gateway = gateway(params.clone());
        let farm: Vec<String> = (0..5).map(|n| format!("PHPSESSID=a0123456789{n}")).collect();
        for cookie in &farm {
            assert_eq!(gateway.ask_with("/page", cookie).await.status, 200);
        }
        gateway.forgets_all().await;
        let again = gateway.ask_with("/page", &farm[0]).await;
        assert_eq!(again.status, 200, "while nobody waits, it begins as anybody does");
        gateway.forgets_all().await;
        gateway.tell(None, &command);
        for cookie in &farm {
            assert_eq!(state(&gateway.ask_with("/page", cookie).await), told, "{cookie}");
        }
    }
}

#[tokio::test]
async fn who_is_inside_when_a_line_stops_stays_inside() {
    let app = app().await;
    for command in [opening(), LineCommand::Pause, LineCommand::Close] {
        let gateway = gateway(open(app.address));
        let own = "PHPSESSID=a0123456789abc";
        assert_eq!(gateway.ask_with("/page", own).await.status, 200);
        gateway.tell(None, &command);
        let known = gateway.ask_with("/page", own).await;
        assert_eq!(known.status, 200, "{command:?}");
        let lease = lease(&known).expect("its cookie may not be known for long");
        assert_eq!(gateway.ask_with("/page", &lease).await.status, 200, "{command:?}");
        assert_eq!(gateway.ask_with("/page", "PHPSESSID=b0123456789abc").await.status, 503);
    }
}

/// Asks with a lease until it is given no newer one, and returns the newest.
async fn renewed(gateway: &Gateway, lease_before: &str) -> String {
    let mut newest = lease_before.to_owned();
    asked_until("the lease is of now", Duration::from_millis(50), async || {
        let answer = gateway.ask_with("/page", &newest).await;
        assert_eq!(answer.status, 200, "inside all the time");
        match lease(&answer) {
            Some(newer) => {
                newest = newer;
                None
            }
            None => Some(()),
        }
    })
    .await;
    newest
}

#[tokio::test]
async fn an_opening_ends_the_leases_from_before_it_but_for_sessions_that_are_inside() {
    let app = app().await;
    let folder = tempfile::tempdir().unwrap();
    let mut params = forgetful(app.address, folder.path());
    params.lease.issued = LeaseIssued::Always;
    let gateway = gateway(params);
    let (one, other) =
        (gateway.get("/page").await, gateway.ask(get("/page", &[("user-agent", "other")])).await);
    let (absent, present) = (lease(&one).expect("given always"), lease(&other).expect("given always"));
    gateway.forgets_all().await;
    assert_eq!(gateway.ask_with("/page", &absent).await.status, 200, "a lease is good while it is");
    gateway.tell(None, &LineCommand::Pause);
    gateway.forgets_all().await;
    assert_eq!(gateway.ask_with("/page", &present).await.status, 200, "a pause ends none");
    gateway.tell(None, &opening());
    let newest = renewed(&gateway, &present).await;
    assert_ne!(newest, present);
    gateway.forgets_all().await;
    assert_eq!(state(&gateway.ask_with("/page", &absent).await), "opening", "of before, and not inside");
    assert_eq!(
        state(&gateway.ask_with("/page", &present).await),
        "opening",
        "what was renewed is worth nothing"
    );
    assert_eq!(gateway.ask_with("/page", &newest).await.status, 200, "thought for long, and is inside");
}

#[tokio::test]
async fn an_opening_is_remembered_over_a_restart() {
    let app = app().await;
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut params = forgetful(app.address, folder.path());
        params.lease.issued = LeaseIssued::Always;
        gateway(params)
    };
    let mut first = start();
    let before = lease(&first.get("/page").await).expect("given always");
    first.tell(None, &opening());
    let newest = renewed(&first, &before).await;
    first.stop().await.unwrap();
    let second = start();
    assert_eq!(state(&second.ask_with("/page", &before).await), "opening");
    assert_eq!(second.ask_with("/page", &newest).await.status, 200);
}

#[tokio::test]
async fn whoever_waits_with_an_old_lease_is_told_how_their_place_stands() {
    let app = app().await;
    let folder = tempfile::tempdir().unwrap();
    let mut params = forgetful(app.address, folder.path());
    params.lease.issued = LeaseIssued::Always;
    let gateway = gateway(params);
    let old = lease(&gateway.get("/page").await).expect("given always");
    gateway.tell(None, &opening());
    gateway.forgets_all().await;
    let waits = gateway.ask_with("/page", &old).await;
    assert_eq!(state(&waits), "opening");
    let both = format!("{old}; {}", waits.cookie("suimon-ticket-").expect("a place"));
    let told = asked_until("not too early", Duration::from_millis(100), async || {
        let answer = gateway.ask(get("/page", &[("cookie", &both), ("suimon-poll", "opening")])).await;
        (answer.status != 429).then_some(answer)
    })
    .await;
    assert_eq!((told.status, state(&told)), (200, "opening".to_owned()));
}

#[tokio::test]
async fn a_number_begins_one_session_however_often_its_ticket_comes() {
    let app = app().await;
    let gateway = gateway(open(app.address));
    gateway.tell(None, &LineCommand::Pause);
    let waits = gateway.get("/page").await;
    assert_eq!(waits.status, 503);
    let waits = gateway.ask(get("/page", &[JSON])).await;
    let ticket = waits.cookie("suimon-ticket-").expect("a place");
    gateway.tell(None, &LineCommand::Resume);
    asked_until("its turn", ASK_EVERY, async || {
        (gateway.ask_with("/page", &ticket).await.status == 200).then_some(())
    })
    .await;
    let admitted = gateway.view().kinds[0].1.admitted;
    for n in 0..5 {
        let header = ticket.split_once('=').unwrap().1;
        let copy =
            gateway.ask(get("/page", &[("suimon-ticket", header), ("user-agent", &n.to_string())])).await;
        assert_eq!(copy.status, 200, "it belongs to the session that the number has begun");
    }
    assert_eq!(gateway.view().kinds[0].1.admitted, admitted);
}

#[tokio::test]
async fn a_ticket_of_another_line_is_a_newcomers() {
    let app = app().await;
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let start = || {
        let mut params = open(app.address);
        params.lease.keys_file = Some(keys.clone());
        let gateway = gateway(params);
        gateway.tell(None, &LineCommand::Pause);
        gateway
    };
    let first = start();
    let ticket = first.ask(get("/page", &[JSON])).await.cookie("suimon-ticket-").expect("a place");
    drop(first);
    // It keeps no state: this is another line.
    let second = start();
    let answer = second.ask_with("/page", &ticket).await;
    assert_eq!((answer.status, state(&answer)), (503, "paused".to_owned()));
    assert!(answer.cookie("suimon-ticket-").is_some_and(|own| own != ticket), "a place of its own");
    let asked = second.ask(get("/page", &[("cookie", &ticket), ("suimon-poll", "paused")])).await;
    assert!(matches!(asked.status, 204 | 429), "it asks for its page anew: {}", asked.status);
}
