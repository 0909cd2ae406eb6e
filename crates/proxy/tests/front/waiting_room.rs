//! The waiting room over the wire: who draws a number, what clients are told in which form, and
//! what no stranger can bring about.

use crate::support::{
    ASK_EVERY, Answer, Gateway, PATIENCE, app, ask_over, asked_until, connect, gateway, get, params, request,
    soon, until,
};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use suimon_control::SessionLawKind;
use suimon_gate::KindParams;
use suimon_params::{Params, SessionKind, WaitingStatus};
use suimon_proxy::LineCommand;

mod called;
mod counts;
mod networks;
mod operators;
mod passes;

pub(crate) const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
const JSON: (&str, &str) = ("accept", "application/json");
/// What a page's script sends when it asks how things stand.
pub(crate) const POLL: (&str, &str) = ("suimon-poll", "waiting");

/// A gateway that lets one session be, and has a waiting room for the rest.
pub(crate) fn room(app: SocketAddr) -> Params {
    let mut params = params(app);
    params.sessions.kinds = vec![SessionKind {
        gate: KindParams {
            line: Some(suimon_line::Params::default()),
            // A called visitor who cannot begin is told so at once.
            hold: Some(Duration::from_millis(10)),
            ..KindParams::default()
        },
        ..SessionKind::default()
    }];
    params.gate.session_law = SessionLawKind::Static(1);
    params
}

impl Gateway {
    fn say(&self, command: &LineCommand) {
        self.observer.command_line(None, command).unwrap();
    }

    /// Returns how many numbers were drawn.
    fn drawn(&self) -> u64 {
        self.observer.lines()[0].view.issued
    }

    /// Returns how many sessions were admitted.
    fn admitted(&self) -> u64 {
        self.view().kinds[0].1.admitted
    }

    /// Begins the one session there may be, and returns its cookie.
    pub(crate) async fn taken(&self) -> String {
        self.get("/login").await.cookie("JSESSIONID=").expect("the first is let in")
    }

    /// Returns once the gateway knows that somebody waits, as it tells the application.
    pub(crate) async fn knows_of_waiting(&self) {
        asked_until("the application is told", ASK_EVERY, async || {
            self.get("/robots.txt").await.headers.contains_key("x-was-told").then_some(())
        })
        .await;
    }

    /// Asks for the status of a place until that is answered: a client that asks again at once is
    /// told to come later.
    async fn poll(&self, ticket: (&str, &str)) -> Answer {
        asked_until("not too early", Duration::from_millis(50), async || {
            let answer = self.ask(get("/page", &[ticket, POLL])).await;
            (answer.status != 429).then_some(answer)
        })
        .await
    }
}

impl Answer {
    pub(crate) fn place(&self) -> Option<String> {
        self.cookie("suimon-ticket-")
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", self.text()))
    }

    fn position(&self) -> u64 {
        self.json()["position"].as_u64().unwrap_or_else(|| panic!("{}", self.text()))
    }
}

/// Returns the text with its letter at `at` made another one.
fn edited(text: &str, at: usize) -> String {
    let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
    format!("{}{other}{}", &text[..at], &text[at + 1..])
}

#[tokio::test]
async fn while_there_is_room_nobody_gets_a_cookie_or_a_number() {
    let app = app().await;
    let mut params = room(app.address);
    params.gate.session_law = SessionLawKind::Open;
    let gateway = gateway(params);
    for headers in [&[HTML] as &[_], &[JSON], &[], &[("sec-purpose", "prefetch"), HTML]] {
        let answer = gateway.ask(get("/page", headers)).await;
        assert_eq!((answer.status, answer.cookies().len()), (200, 0), "{headers:?}");
    }
    assert_eq!(gateway.drawn(), 0);
    let nothing = gateway.ask(get("/page", &[JSON, ("suimon-poll", "closed")])).await;
    assert_eq!((nothing.status, nothing.header("cache-control")), (204, "no-store"));
}

#[tokio::test]
async fn an_edited_ticket_is_none_and_an_edited_lease_lets_nobody_in() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let first = gateway.ask(get("/page", &[JSON])).await;
    let (ticket, header) = (first.place().unwrap(), first.header("suimon-ticket").to_owned());
    assert!(ticket.ends_with(&header), "the same, as cookie and as header");
    let begun = app.state.begun.load(SeqCst);

    let value = ticket.find('=').unwrap() + 1;
    let mut drawn = gateway.drawn();
    for at in [0, 1, 5, 12, 20, 40, 52, 60, 70] {
        let forged = edited(&ticket, value + at);
        let answer = gateway.ask(get("/page", &[JSON, ("cookie", &forged)])).await;
        drawn += 1;
        assert_eq!((answer.status, answer.position(), gateway.drawn()), (503, drawn, drawn), "letter {at}");
        // Nor does it tell how the true one stands.
        let asked = gateway.ask(get("/page", &[("cookie", &forged), POLL])).await;
        assert_eq!((asked.status, asked.header("retry-after"), asked.body.len()), (429, "60", 0));
        let asked = gateway.ask(get("/page", &[("suimon-ticket", &edited(&header, at)), POLL])).await;
        assert_eq!((asked.status, asked.body.len()), (429, 0));
    }
    // The name of another kind's, a lease in its stead, and the ticket as a lease.
    for cookie in [
        format!("suimon={header}"),
        format!("suimon-ticket-0000={header}x"),
        format!("__Host-suimon={header}"),
    ] {
        let answer = gateway.ask(get("/page", &[JSON, ("cookie", &cookie)])).await;
        drawn += 1;
        assert_eq!((answer.status, answer.position()), (503, drawn), "{cookie}");
    }
    let answer = gateway.ask(get("/page", &[JSON, ("cookie", &ticket)])).await;
    assert_eq!(answer.position(), 1, "the true one is what it was");
    assert_eq!(app.state.begun.load(SeqCst), begun, "and nobody was let in");
}

#[tokio::test]
async fn the_twin_at_the_same_address_says_all_there_is_to_say_and_its_ticket_lets_a_program_in() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    let session = gateway.taken().await;
    let first = gateway.ask(get("/buy?x=1", &[JSON])).await;
    for _ in 0..2 {
        assert_eq!(gateway.ask(get("/buy?x=1", &[JSON])).await.json()["state"], "next", "called ahead");
    }
    let weights = [
        ("application/json", "application/json"),
        ("text/html;q=0.4, application/json;q=0.5", "application/json"),
        ("application/json, text/plain;q=0.9, */*;q=0.1", "application/json"),
        ("text/html, application/json;q=0.9", "text/html; charset=utf-8"),
        ("application/json;q=0.2,text/html;q=0.21", "text/html; charset=utf-8"),
    ];
    for (position, (accept, form)) in (4..).zip(weights) {
        let answer = gateway.ask(get("/buy?x=1", &[("accept", accept)])).await;
        assert_eq!((answer.status, answer.header("content-type")), (503, form), "{accept}");
        let vary = answer.headers.get_all("vary").iter().map(|name| name.to_str().unwrap().to_lowercase());
        assert!(vary.collect::<Vec<_>>().join(",").contains("accept,accept-language,cookie"));
        assert!(answer.place().is_some(), "{accept}");
        if form == "application/json" {
            let told = answer.json();
            assert_eq!((&told["state"], answer.position()), (&Value::from("waiting"), position));
            let ahead = told["ahead_present"].as_u64().unwrap();
            assert!((1..position).contains(&ahead), "{told}");
            let nobody_knows = told.get("eta_low_s").is_none() && told.get("eta_high_s").is_none();
            assert!(nobody_knows, "nobody has begun from the line, and this law foresees nothing: {told}");
            assert_eq!(told["poll_after_s"].to_string(), answer.header("retry-after"));
            assert!(told["updated_at"].as_str().unwrap().ends_with('Z') && told.get("expires_at").is_none());
        }
    }
    for accept in ["*/*", "application/problem+json", "image/avif,image/webp,*/*", "text/html;q=0, */*"] {
        let answer = gateway.ask(get("/buy?x=1", &[("accept", accept)])).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (503, "application/problem+json"),
            "{accept}"
        );
        assert_eq!((answer.cookies().len(), answer.header("suimon-ticket")), (0, ""), "{accept}: no place");
    }
    assert_eq!(gateway.drawn(), 8);

    // Their turn has come; while the session law lets nobody in, they stay where they are.
    let asked = gateway.poll(("suimon-ticket", first.header("suimon-ticket"))).await;
    let told = asked.json();
    assert_eq!((asked.status, &told["state"], asked.position()), (200, &Value::from("next"), 1));
    assert!(told["expires_at"].as_str().unwrap() > told["updated_at"].as_str().unwrap(), "{told}");
    let ticket = asked.header("suimon-ticket").to_owned();
    let answer = gateway.ask(get("/buy?x=1", &[JSON, ("suimon-ticket", &ticket)])).await;
    assert_eq!((answer.status, answer.position()), (503, 1));
    gateway.ask(get("/bye", &[("cookie", &session), ("x-say-suimon-session", "end")])).await;
    let admitted = gateway.admitted();
    let inside = gateway.ask(get("/head", &[JSON, ("suimon-ticket", &ticket)])).await;
    assert_eq!(inside.status, 200, "{}", inside.text());
    assert!(!inside.text().contains("suimon-ticket"), "that is between them and us");
    assert!(inside.cookie("suimon=").is_some(), "by which the session is known from now on");
    assert_eq!(gateway.admitted(), admitted + 1);
}

#[tokio::test]
async fn a_ticket_that_goes_from_hand_to_hand_begins_one_session() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    let session = gateway.taken().await;
    let ticket = gateway.ask(get("/page", &[JSON])).await.place().unwrap();
    gateway.ask(get("/bye", &[("cookie", &session), ("x-say-suimon-session", "end")])).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let (address, ticket) = (gateway.plain, ticket.clone());
        asking.spawn(async move {
            ask_over(connect(address).await, get("/page", &[JSON, ("cookie", &ticket)])).await
        });
    }
    let answers = soon(asking.join_all()).await;
    let inside: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert!(!inside.is_empty());
    assert_eq!(gateway.admitted(), 2, "one for all of them, beside the first");
    assert_eq!(gateway.view().gate.sessions, 1);
    // Once that is over the number is nobody's, even if a client still has it.
    let lease = inside[0].cookie("suimon=").unwrap();
    gateway.ask(get("/bye", &[("cookie", &lease), ("x-say-suimon-session", "end")])).await;
    gateway.say(&LineCommand::Pause);
    let late = gateway.ask(get("/page", &[JSON, ("cookie", &ticket)])).await;
    assert_eq!((late.status, late.position()), (503, 2), "another number");
}

#[tokio::test]
async fn whoever_asks_again_at_once_is_told_to_come_later_and_loses_nothing() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let mut ticket = gateway.ask(get("/page", &[HTML])).await.place().unwrap();
    // On a slow machine "at once" may take several goes: a page that is loaded anew says anew when
    // its visitor was heard of.
    let early = soon(async {
        loop {
            let early = gateway.ask(get("/page", &[("cookie", &ticket), POLL])).await;
            if early.status == 429 {
                break early;
            }
            ticket = gateway.ask(get("/page", &[HTML, ("cookie", &ticket)])).await.place().unwrap();
        }
    })
    .await;
    assert_eq!((early.status, early.header("retry-after")), (429, "2"));
    assert_eq!((early.header("cache-control"), early.body.len()), ("no-store", 0));
    assert!(early.cookies().is_empty());
    // A page that is loaded anew at once is shown all the same.
    let again = gateway.ask(get("/page", &[JSON, ("cookie", &ticket)])).await;
    assert_eq!((again.status, again.position()), (503, 1));
    let later = gateway.poll(("cookie", &ticket)).await;
    assert_eq!((later.status, later.position(), &later.json()["state"]), (200, 1, &Value::from("paused")));
    assert!(later.place().is_some_and(|renewed| renewed != ticket), "when it was last heard of is in it");
}

#[tokio::test]
async fn a_form_of_another_sites_draws_no_number_and_a_form_of_ours_is_kept() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let holder = gateway.ask(get("/page", &[HTML])).await.place().unwrap();
    let form = ("content-type", "application/x-www-form-urlencoded");
    let navigates = ("sec-fetch-mode", "navigate");
    for from in [
        &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), navigates] as &[_],
        &[("origin", "https://evil.example")],
        &[("origin", "null"), navigates],
        &[("sec-fetch-site", "same-site"), navigates],
    ] {
        let headers: Vec<_> = from.iter().copied().chain([HTML, form]).collect();
        let answer = gateway.ask(request("POST", "/buy", &headers, "seats=2")).await;
        assert_eq!((answer.status, answer.cookies().len()), (503, 0), "{from:?}");
        assert!(!answer.text().contains("name=\"seats\""), "{from:?}");
    }
    assert_eq!(gateway.drawn(), 1);
    for from in [
        &[("origin", "http://shop.example"), ("sec-fetch-site", "same-origin"), navigates] as &[_],
        &[("origin", "http://shop.example")],
        &[],
    ] {
        let headers: Vec<_> = from.iter().copied().chain([HTML, form]).collect();
        let answer = gateway.ask(request("POST", "/buy", &headers, "seats=2%3C")).await;
        assert!(answer.status == 503 && answer.place().is_some(), "{from:?}");
        assert!(
            answer.text().contains("<textarea hidden name=\"seats\">\n2&lt;</textarea>"),
            "{}",
            answer.text()
        );
    }
    assert_eq!(gateway.drawn(), 4);
    // A visitor with a place keeps it, wherever the form comes from.
    let headers = [HTML, form, ("origin", "https://bank.example"), ("cookie", &holder)];
    gateway.ask(request("POST", "/buy", &headers, "paid=1")).await;
    assert_eq!(gateway.drawn(), 4);
}

#[tokio::test]
async fn what_is_no_visit_of_a_page_draws_no_number_and_sets_no_cookie() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    let navigates = ("sec-fetch-mode", "navigate");
    let others: &[&[(&str, &str)]] = &[
        &[HTML, navigates, ("sec-purpose", "prefetch")],
        &[HTML, navigates, ("sec-purpose", "prefetch;prerender")],
        &[HTML, ("purpose", "prefetch")],
        &[HTML, navigates, ("sec-fetch-dest", "iframe")],
        &[
            ("sec-fetch-dest", "image"),
            ("sec-fetch-mode", "no-cors"),
            ("accept", "image/avif,image/webp,*/*"),
        ],
        &[("sec-fetch-dest", "script"), ("sec-fetch-mode", "no-cors"), ("accept", "*/*")],
        &[("sec-fetch-dest", "style"), ("sec-fetch-mode", "no-cors"), ("accept", "text/css,*/*;q=0.1")],
        &[("sec-fetch-dest", "empty"), ("sec-fetch-mode", "cors"), HTML],
        &[("sec-fetch-dest", "empty"), ("sec-fetch-mode", "cors"), ("sec-fetch-site", "cross-site"), JSON],
        &[("accept", "*/*")],
        &[],
    ];
    // The line moves: they are held for a moment, and told no place when that is over. Then it does
    // not.
    for is_paused in [false, true] {
        if is_paused {
            gateway.say(&LineCommand::Pause);
            gateway.ask(get("/page", &[HTML])).await;
        }
        let drawn = gateway.observer.lines()[0].view.present;
        for headers in others {
            let answer = gateway.ask(get("/picture", headers)).await;
            assert_eq!((answer.status, answer.cookies().len()), (503, 0), "{headers:?}");
            assert_eq!(answer.header("suimon-ticket"), "", "{headers:?}");
            assert_eq!(answer.header("cache-control"), "no-store", "{headers:?}");
        }
        let head = gateway.ask(request("HEAD", "/page", &[HTML, navigates], "")).await;
        assert_eq!((head.status, head.cookies().len()), (503, 0));
        for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
            let answer = gateway.ask(request(method, "/page", &[HTML], "")).await;
            assert_eq!((answer.status, answer.cookies().len()), (503, 0), "{method}");
        }
        assert_eq!(gateway.observer.lines()[0].view.present, drawn, "nobody more is taken to be there");
    }
    for path in ["/favicon.ico", "/robots.txt", "/.well-known/x", "/site.css", "/logo.png"] {
        let answer = gateway.ask(get(path, &[("sec-fetch-dest", "image"), ("accept", "image/*")])).await;
        assert_eq!((answer.status, answer.cookies().len()), (200, 0), "{path} passes");
    }
    let program =
        gateway.ask(get("/page", &[("sec-fetch-mode", "cors"), ("sec-fetch-site", "same-origin"), JSON]));
    assert!(program.await.place().is_some(), "a script of ours that asks for JSON by name does");
}

#[tokio::test]
async fn no_answer_of_the_room_may_be_stored() {
    let app = app().await;
    let mut params = room(app.address);
    params.waiting_room.status = WaitingStatus::Ok;
    let gateway = gateway(params);
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let page = gateway.ask(get("/page", &[HTML])).await;
    assert_eq!((page.status, page.header("x-robots-tag")), (200, "noindex"), "as the operator wishes");
    let ticket = page.place().unwrap();
    let own = ("cookie", ticket.as_str());
    let mut answers = vec![
        page,
        gateway.ask(get("/page", &[JSON])).await,
        gateway.ask(get("/page", &[own, POLL])).await,
        gateway.ask(get("/page", &[POLL])).await,
        gateway.ask(get("/page", &[("suimon-poll", "full")])).await,
        gateway.ask(get("/page", &[])).await,
        gateway.ask(get("/.well-known/suimon/language?to=ja", &[])).await,
        gateway.ask(get("/.well-known/suimon/refresh?off", &[])).await,
        gateway.ask(request("POST", "/.well-known/suimon/code", &[own, JSON], "")).await,
        gateway.ask(request("POST", "/.well-known/suimon/position", &[], "code=2345-6789")).await,
        gateway.ask(get("/.well-known/suimon/draw", &[])).await,
        gateway.ask(get("/.well-known/suimon/code", &[])).await,
        gateway.poll(own).await,
    ];
    gateway.say(&LineCommand::Close);
    answers.push(gateway.ask(get("/page", &[HTML])).await);
    answers.push(gateway.ask(get("/page", &[("suimon-poll", "closed")])).await);
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(
            answer.header("cache-control"),
            "no-store",
            "{index}: {} {:?}",
            answer.status,
            answer.headers
        );
    }
}

#[tokio::test]
async fn once_all_is_sold_nobody_gets_a_cookie_and_whoever_has_one_keeps_it() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    let session = gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let ticket = gateway.ask(get("/page", &[HTML])).await.place().unwrap();
    // The application says so.
    let said = gateway.ask(get("/stock", &[("cookie", &session), ("x-say-suimon-line", "closed")])).await;
    assert_eq!((said.status, said.header("suimon-line")), (200, ""), "which is for us alone");
    for headers in [&[HTML] as &[_], &[JSON], &[], &[HTML, ("sec-purpose", "prefetch")]] {
        let answer = gateway.ask(get("/page", headers)).await;
        assert_eq!((answer.status, answer.cookies().len()), (503, 0), "{headers:?}");
        assert_eq!(answer.header("suimon-ticket"), "", "{headers:?}");
    }
    assert_eq!(gateway.ask(get("/page", &[JSON])).await.json()["state"], "closed");
    assert_eq!(gateway.drawn(), 1);
    assert_eq!(
        gateway.poll(("cookie", &ticket)).await.json()["state"],
        "closed",
        "everybody who waits is told"
    );
    assert_eq!(
        gateway.ask(get("/stock", &[("cookie", &session)])).await.status,
        200,
        "an admitted visitor stays admitted"
    );
    // And the contrary.
    gateway.ask(get("/stock", &[("cookie", &session), ("x-say-suimon-line", "open")])).await;
    gateway.say(&LineCommand::Pause);
    let again = gateway.ask(get("/page", &[JSON, ("cookie", &ticket)])).await;
    assert_eq!(again.position(), 1);
}

#[tokio::test]
async fn a_cookie_of_ours_stands_on_no_answer_that_a_cache_may_share() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    for caching in [
        "public",
        "public, max-age=600",
        "max-age=600",
        "Max-Age=600, PUBLIC",
        "s-maxage=600",
        "must-revalidate, max-age=600, S-MaxAge=1",
        "private=\"x-user\", max-age=600",
        "no-cache=\"set-cookie\", max-age=600",
        "immutable",
        "",
    ] {
        let session = gateway.taken().await;
        let ticket = gateway.ask(get("/page", &[JSON])).await.place().unwrap();
        gateway.ask(get("/bye", &[("cookie", &session), ("x-say-suimon-session", "end")])).await;
        let mut headers = vec![
            ("cookie", ticket.as_str()),
            HTML,
            ("x-say-expires", "Thu, 01 Jan 2099 00:00:00 GMT"),
            ("x-say-cdn-cache-control", "max-age=600"),
            ("x-say-surrogate-control", "max-age=600"),
        ];
        if !caching.is_empty() {
            headers.push(("x-say-cache-control", caching));
        }
        let inside = gateway.ask(get("/page", &headers)).await;
        assert_eq!(inside.status, 200, "{}", inside.text());
        let lease = inside.cookie("suimon=").expect("it has begun by a ticket");
        let lines = inside.headers.get_all("cache-control").iter().map(|line| line.to_str().unwrap());
        let words = lines.collect::<Vec<_>>().join(",").to_lowercase();
        let words: Vec<_> = words.split(',').map(str::trim).collect();
        assert!(words.contains(&"private"), "{caching}: {words:?}");
        assert!(
            !words.contains(&"public") && !words.iter().any(|word| word.starts_with("s-maxage")),
            "{words:?}"
        );
        for name in ["cdn-cache-control", "surrogate-control"] {
            assert!(!inside.headers.contains_key(name), "{caching}: {name}");
        }
        // What carries no cookie of ours is the application's own affair.
        let next = gateway.ask(get("/page", &[("cookie", &lease), ("x-say-cache-control", "public")])).await;
        assert_eq!((next.header("cache-control"), next.cookies().len()), ("public", 0));
        gateway.ask(get("/bye", &[("cookie", &lease), ("x-say-suimon-session", "end")])).await;
    }
}

#[tokio::test]
async fn words_between_gateway_and_application_are_theirs_alone() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    let session = gateway.taken().await;
    gateway.ask(get("/page", &[HTML])).await;
    gateway.knows_of_waiting().await;
    // A stranger's words do not reach the application, and do nothing here.
    let words = [
        ("suimon-session", "end"),
        ("suimon-line", "closed"),
        ("suimon-waiting", "0"),
        ("suimon-held", "0"),
        ("suimon-anything", "x"),
        ("cookie", session.as_str()),
    ];
    let seen = gateway.ask(get("/head", &words)).await.text();
    let own: Vec<_> = seen.lines().filter(|line| line.starts_with("suimon-")).collect();
    assert_eq!(own, ["suimon-waiting: 1"], "what we tell it ourselves");
    assert_eq!(gateway.observer.lines()[0].view.state, suimon_line::LineStatus::Moving);
    assert_eq!(gateway.ask(get("/head", &[("cookie", &session)])).await.status, 200, "nothing has ended");
    // The application's do not reach the visitor.
    let said = [
        ("x-say-suimon-session", "checkout, weight=3"),
        ("x-say-suimon-line", "open"),
        ("x-say-suimon-anything", "x"),
        ("cookie", session.as_str()),
    ];
    let answer = gateway.ask(get("/page", &said)).await;
    let names: Vec<_> = answer.headers.keys().filter(|name| name.as_str().starts_with("suimon-")).collect();
    assert!(answer.status == 200 && names.is_empty(), "{names:?}");
}

#[tokio::test]
async fn a_place_goes_to_another_device_once_and_leaves_the_first() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let ticket = gateway.ask(get("/page", &[HTML])).await.place().unwrap();
    let own = ("cookie", ticket.as_str());
    let evil = [own, JSON, ("origin", "https://evil.example")];
    assert_eq!(gateway.ask(request("POST", "/.well-known/suimon/code", &evil, "")).await.status, 403);
    let given = gateway.ask(request("POST", "/.well-known/suimon/code", &[own, JSON], "")).await;
    let code = given.json()["code"].as_str().unwrap().to_owned();
    let evil = [("origin", "https://evil.example")];
    let sent = format!("code={code}");
    assert_eq!(
        gateway.ask(request("POST", "/.well-known/suimon/position", &evil, sent.clone())).await.status,
        403
    );
    let taken = gateway.ask(request("POST", "/.well-known/suimon/position", &[], sent.clone())).await;
    let moved = taken.place().expect("the place, on the other device");
    let again = gateway.ask(request("POST", "/.well-known/suimon/position", &[], sent)).await;
    assert_eq!((again.status, again.cookies().len()), (303, 0), "once");
    assert_eq!(gateway.ask(get("/page", &[JSON, ("cookie", &moved)])).await.position(), 1);
    assert_eq!(
        gateway.ask(get("/page", &[JSON, own])).await.position(),
        2,
        "what was left behind is worth nothing"
    );
}

#[tokio::test]
async fn an_invitation_is_good_for_one_place_in_a_lane_of_its_own() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    for _ in 0..5 {
        gateway.ask(get("/sale", &[HTML])).await;
    }
    let invite = gateway.observer.invite(None, 1, PATIENCE).unwrap().remove(0);
    let letter = invite.len() - 3;
    let forged = gateway.ask(get(&format!("/sale?{}", edited(&invite, letter)), &[JSON])).await;
    assert_eq!(forged.position(), 6, "behind all others");
    let invited = gateway.ask(get(&format!("/sale?{invite}"), &[JSON])).await;
    assert_eq!((invited.position(), &invited.json()["ahead_present"]), (1, &Value::from(0)));
    let again = gateway.ask(get(&format!("/sale?{invite}"), &[JSON])).await;
    assert_eq!(again.position(), 7, "it has been used");
    until("nobody was let in", || gateway.admitted() == 1).await;
}
