//! Those who are called: they stay on their page until they are admitted.

use super::*;

/// What a page's script sends when its visitor is next.
const ENTER: (&str, &str) = ("suimon-poll", "enter");

/// A room that holds called visitors for as long as the test takes.
fn patient_room(app: SocketAddr) -> Params {
    let mut params = room(app);
    params.sessions.kinds[0].gate.hold = Some(PATIENCE);
    params.gate.session_law = SessionLawKind::Static(1);
    params
}

impl Gateway {
    /// Draws a number while nobody is admitted, and returns its ticket.
    async fn drawn_while_paused(&self) -> String {
        self.say(&LineCommand::Pause);
        let ticket = self.ask(get("/page", &[HTML])).await.place().expect("a number was drawn");
        self.say(&LineCommand::Resume);
        ticket
    }

    /// Asks to begin, on a connection of its own.
    async fn asks_to_begin(&self, ticket: &str) -> tokio::task::JoinHandle<Answer> {
        let request = get("/page?x=1", &[("cookie", ticket), ENTER]);
        let connection = connect(self.plain).await;
        tokio::spawn(async move { ask_over(connection, request).await })
    }
}

#[tokio::test]
async fn whoever_is_next_is_held_until_they_are_let_in_and_only_then_is_it_their_turn() {
    let app = app().await;
    let gateway = gateway(patient_room(app.address));
    let inside = gateway.taken().await;
    let ticket = gateway.drawn_while_paused().await;
    let next = gateway.poll(("cookie", &ticket)).await;
    assert_eq!(next.json()["state"], "next", "they are called, and nobody has let them in: {}", next.text());
    assert_eq!(next.json()["ahead_present"], 0);
    let ticket = next.place().unwrap();

    let begun = app.state.begun.load(SeqCst);
    let held = gateway.asks_to_begin(&ticket).await;
    until("it is held", || gateway.waiting() == 1).await;
    assert!(!held.is_finished());
    gateway.ask(get("/bye", &[("cookie", &inside), ("x-say-suimon-session", "end")])).await;
    let let_in = soon(held).await.unwrap();
    assert_eq!(
        (let_in.status, &let_in.json()["state"]),
        (200, &Value::from("your_turn")),
        "{}",
        let_in.text()
    );
    assert!(let_in.json()["enter_after_s"].as_u64().unwrap() < 10);
    assert_eq!(app.state.begun.load(SeqCst), begun + 1, "the application has seen the other's goodbye alone");
    assert_eq!((gateway.admitted(), gateway.in_flight()), (2, 0), "and no slot is taken");
    assert!(
        let_in.cookies().iter().any(|cookie| cookie.starts_with("suimon-ticket-") && cookie.ends_with('='))
    );

    // With the lease, and without cookies by the ticket, they are inside.
    let lease = let_in.cookie("suimon=").expect("it proves that their session has begun");
    assert_eq!(gateway.ask(get("/page?x=1", &[HTML, ("cookie", &lease)])).await.status, 200);
    let by_ticket =
        gateway.ask(get("/page?x=1", &[JSON, ("suimon-ticket", let_in.header("suimon-ticket"))])).await;
    assert_eq!(by_ticket.status, 200);
    assert_eq!(gateway.admitted(), 2, "both are one session");
}

#[tokio::test]
async fn whoever_is_next_and_cannot_be_let_in_is_told_how_many_are_ahead_and_draws_nothing() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let first = gateway.ask(get("/page", &[JSON])).await.place().unwrap();
    let second = gateway.ask(get("/page", &[JSON])).await.place().unwrap();
    gateway.say(&LineCommand::Resume);
    for (ticket, ahead) in [(&first, 0), (&second, 1)] {
        let told = gateway.poll(("cookie", ticket)).await;
        let ticket = told.place().unwrap();
        let told = soon(gateway.asks_to_begin(&ticket).await).await.unwrap();
        assert_eq!((told.status, &told.json()["state"]), (200, &Value::from("next")), "{}", told.text());
        assert_eq!(told.json()["ahead_present"], ahead, "{}", told.text());
        // A page written now says the same.
        let page = gateway.ask(get("/page", &[HTML, ("cookie", &ticket)])).await;
        assert!(page.status == 503 && page.text().contains("You are next in line"), "{}", page.text());
        assert!(page.text().contains(&format!("People waiting ahead of you: {ahead}")), "{}", page.text());
    }
    assert_eq!((gateway.drawn(), gateway.admitted()), (2, 1));
}

#[tokio::test]
async fn whoever_goes_away_from_the_gate_keeps_the_place_and_takes_no_turn() {
    let app = app().await;
    let gateway = gateway(patient_room(app.address));
    let inside = gateway.taken().await;
    let ticket = gateway.drawn_while_paused().await;
    let ticket = gateway.poll(("cookie", &ticket)).await.place().unwrap();
    let held = gateway.asks_to_begin(&ticket).await;
    until("it is held", || gateway.waiting() == 1).await;
    held.abort();
    until("its leaving is noticed", || gateway.waiting() == 0).await;
    gateway.ask(get("/bye", &[("cookie", &inside), ("x-say-suimon-session", "end")])).await;
    assert_eq!(gateway.admitted(), 1, "nobody was there");
    let back = soon(gateway.asks_to_begin(&ticket).await).await.unwrap();
    assert_eq!(back.json()["state"], "your_turn");
}

#[tokio::test]
async fn no_more_than_a_share_of_the_connections_is_held_at_the_gate() {
    let app = app().await;
    let mut params = patient_room(app.address);
    params.limits.connections = 8;
    let gateway = gateway(params);
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let mut tickets = Vec::new();
    for _ in 0..3 {
        tickets.push(gateway.ask(get("/page", &[JSON])).await.place().unwrap());
    }
    gateway.say(&LineCommand::Resume);
    for ticket in &mut tickets {
        *ticket = gateway.poll(("cookie", ticket)).await.place().unwrap();
    }
    let mut held = Vec::new();
    for (count, ticket) in (1..).zip(&tickets[..2]) {
        held.push(gateway.asks_to_begin(ticket).await);
        until("it is held", || gateway.waiting() == count).await;
    }
    let told = soon(gateway.asks_to_begin(&tickets[2]).await).await.unwrap();
    assert_eq!((told.status, &told.json()["state"]), (200, &Value::from("next")), "{}", told.text());
    assert!(told.json()["poll_after_s"].as_u64().unwrap() > 0, "and is told to come again a little later");
    assert_eq!(gateway.waiting(), 2);
}

#[tokio::test]
async fn a_code_that_is_none_is_said_to_be_none_once_and_in_the_visitors_language() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let japanese = ("accept-language", "ja");
    let ticket = gateway.ask(get("/page", &[HTML])).await.place().unwrap();
    let form = [HTML, ("cookie", ticket.as_str()), ("referer", "http://shop.example/page")];
    let wrong = gateway.ask(request("POST", "/.well-known/suimon/position", &form, "code=ZZZ-999")).await;
    assert_eq!((wrong.status, wrong.header("location")), (303, "/page"));
    let said = format!("{ticket}; {}", wrong.cookie("suimon-code=").unwrap());
    let page = gateway.ask(get("/page", &[HTML, japanese, ("cookie", &said)])).await;
    assert!(page.text().contains("コードが正しくないか"), "{}", page.text());
    assert!(page.text().contains("aria-invalid=true"), "{}", page.text());
    assert!(page.cookies().contains(&"suimon-code="), "it is said once");
    let again = gateway.ask(get("/page", &[HTML, japanese, ("cookie", &ticket)])).await;
    assert!(!again.text().contains("コードが正しくないか"));
}

#[tokio::test]
async fn the_way_back_never_leads_to_another_host() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    for (referer, to) in [
        ("http://shop.example/page?a=1", "/page?a=1"),
        ("http://shop.example//evil.example", "/"),
        ("http://shop.example/\\evil.example", "/"),
        ("http://evil.example/page", "/"),
    ] {
        let answer = gateway.ask(get("/.well-known/suimon/language?de", &[HTML, ("referer", referer)])).await;
        assert_eq!((answer.status, answer.header("location")), (303, to), "{referer}");
    }
}

#[tokio::test]
async fn where_the_law_foresees_nothing_whoever_is_let_in_stays_in_from_the_first_session_on() {
    let app = app().await;
    let mut params = room(app.address);
    params.gate.session_law = SessionLawKind::Static(3);
    let gateway = gateway(params);
    // The application sets no cookie.
    let mut inside = Vec::new();
    for browser in ["one", "two", "three"] {
        let answer = gateway.ask(get("/page", &[HTML, ("user-agent", browser)])).await;
        assert_eq!(answer.status, 200);
        inside.push(answer.cookie("suimon=").expect("a lease, though nobody waits yet"));
    }
    assert_eq!(gateway.ask(get("/page", &[HTML, ("user-agent", "four")])).await.status, 503);
    for lease in &inside {
        // On another network, too.
        let answer = gateway.ask(get("/buy", &[HTML, ("user-agent", "another"), ("cookie", lease)])).await;
        assert_eq!(answer.status, 200, "nobody is sent back");
    }
    assert_eq!(gateway.admitted(), 3);
}
