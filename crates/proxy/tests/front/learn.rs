//! Nobody is taught lies: what becomes a route, what passes without a slot, and how much of it at
//! once.

use crate::support::*;
use std::sync::atomic::Ordering::SeqCst;
use suimon_params::PassFor;
use suimon_params::{PassPage, Routes};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What may be there at once of what looks like static assets, before it is known how quickly it
/// ends.
const ASSETS: usize = 64;

fn names(gateway: &Gateway) -> Vec<String> {
    gateway.view().routes.into_iter().map(|route| route.name).collect()
}

fn undeclared(app: &App, discovered_max: usize) -> suimon_params::Params {
    let mut params = params(app.address);
    params.routes = Routes { discovered_max, ..Routes::default() };
    params
}

#[tokio::test]
async fn what_redirects_every_path_teaches_no_route_and_a_form_that_is_taken_does() {
    let app = app().await;
    let gateway = gateway(undeclared(&app, 200));
    for n in 0..20 {
        let path = format!("/{}", char::from(b'a' + n));
        assert_eq!(gateway.ask(get(&path, &[("x-status", "302")])).await.status, 302);
    }
    assert_eq!(gateway.ask(request("POST", "/cart", &[("x-status", "303")], "")).await.status, 303);
    assert_eq!(gateway.get("/search").await.status, 200);
    assert_eq!(gateway.ask(get("/news", &[("x-status", "304")])).await.status, 304);
    assert_eq!(names(&gateway), ["other", "POST /cart", "GET /search", "GET /news"]);
}

#[tokio::test]
async fn a_path_that_is_asked_for_gets_the_place_of_a_route_that_is_not() {
    let app = app().await;
    let gateway = gateway(undeclared(&app, 2));
    for path in ["/a", "/b", "/b", "/b", "/b", "/b"] {
        gateway.get(path).await;
    }
    assert_eq!(names(&gateway), ["other", "GET /a", "GET /b"]);
    for _ in 0..4 {
        gateway.get("/new").await;
    }
    assert_eq!(names(&gateway), ["other", "GET /new", "GET /b"]);
    gateway.get("/new").await;
    let view = gateway.view();
    assert_eq!((view.routes[1].statuses[1], view.routes[1].gate.counts.completed), (1, 1));
    assert_eq!(view.routes[2].gate.counts.completed, 4, "the first was for a path not known yet");
}

#[tokio::test]
async fn another_spelling_of_a_declared_path_has_no_limit_of_its_own() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let first = gateway.occupy(&app).await;
    let mut asking = JoinSet::new();
    for path in ["/%68old", "/./hold", "/x/../hold", "/hold%3Fx"] {
        let address = gateway.plain;
        asking
            .spawn(async move { ask_over(TcpStream::connect(address).await.unwrap(), get(path, &[])).await });
    }
    until("all of them wait for the one slot", || gateway.waiting() == 4).await;
    assert_eq!(app.state.held.load(SeqCst), 1);
    app.state.release(5);
    soon(first).await.unwrap();
    soon(asking.join_all()).await;
}

/// Asks for each path on a connection of its own.
fn ask_all(gateway: &Gateway, paths: impl Iterator<Item = String>) -> JoinSet<u16> {
    let mut asking = JoinSet::new();
    for path in paths {
        let address = gateway.plain;
        asking.spawn(async move {
            ask_over(TcpStream::connect(address).await.unwrap(), get(&path, &[])).await.status
        });
    }
    asking
}

#[tokio::test]
async fn slow_answers_to_what_looks_like_assets_are_held_to_a_limit() {
    let app = app().await;
    let gateway = gateway(undeclared(&app, 200));
    let mut asking = ask_all(&gateway, (0..ASSETS + 20).map(|n| format!("/hold/{n}.css")));
    until("as many as may be there are", || app.state.held.load(SeqCst) == ASSETS).await;
    for _ in 0..20 {
        let status = soon(asking.join_next()).await.unwrap().unwrap();
        assert_eq!(status, 503, "nothing ends, and the others do not wait for long");
    }
    assert_eq!(app.state.held.load(SeqCst), ASSETS);
    assert_eq!(gateway.get("/health").await.status, 200, "what is listed has a limit of its own");
    app.state.release(ASSETS);
    assert!(soon(asking.join_all()).await.into_iter().all(|status| status == 200));
    assert_eq!(gateway.get("/site.css").await.status, 200);
}

#[tokio::test]
async fn hundreds_of_assets_that_are_answered_at_once_all_pass() {
    let app = app().await;
    let gateway = gateway(undeclared(&app, 200));
    let asking = ask_all(&gateway, (0..400).map(|n| format!("/{n}.png")));
    let answers = soon(asking.join_all()).await;
    assert_eq!(answers.into_iter().filter(|status| *status == 200).count(), 400);
}

#[tokio::test]
async fn what_looks_like_an_asset_and_is_a_page_is_gated_from_then_on() {
    let app = app().await;
    let gateway = gateway(undeclared(&app, 200));
    let page = || get("/checkout.js", &[("x-say-content-type", "text/html; charset=utf-8")]);
    for _ in 0..3 {
        gateway.ask(page()).await;
    }
    gateway.get("/site.js").await;
    let view = gateway.view();
    assert_eq!(view.ungated.statuses[1], 2, "the first time, and a file that is one");
    assert_eq!(names(&gateway), ["other", "GET /checkout.js"]);
}

#[tokio::test]
async fn what_is_sent_to_the_pass_page_is_held_to_a_limit_and_reading_it_is_not() {
    let app = app().await;
    let mut params = undeclared(&app, 200);
    params.waiting_room.pass =
        Some(PassPage { page: "/hold/login".to_owned(), needed_by: PassFor::OverQuota });
    let gateway = gateway(params);
    let mut asking = JoinSet::new();
    for _ in 0..12 {
        let address = gateway.plain;
        asking.spawn(async move {
            let form = request("POST", "/hold/login", &[], "name=x");
            ask_over(TcpStream::connect(address).await.unwrap(), form).await.status
        });
    }
    until("four log in", || app.state.held.load(SeqCst) == 4).await;
    let reading = ask_all(&gateway, (0..3).map(|_| "/hold/login".to_owned()));
    until("others read the page meanwhile", || app.state.held.load(SeqCst) == 7).await;
    app.state.release(15);
    assert!(soon(asking.join_all()).await.into_iter().all(|status| status == 200));
    soon(reading.join_all()).await;
}

#[tokio::test]
async fn polls_of_a_path_without_a_route_hold_up_neither_each_other_nor_other_paths() {
    const POLLS: usize = 30;
    let app = app().await;
    let gateway = gateway(undeclared(&app, 200));
    let not_there = |n: usize| get(&format!("/missing/{}", "a".repeat(n + 1)), &[("x-status", "404")]);
    for n in 0..40 {
        assert_eq!(gateway.ask(not_there(n)).await.status, 404);
    }
    let mut polls = JoinSet::new();
    for _ in 0..POLLS {
        let address = gateway.plain;
        polls.spawn(async move {
            ask_over(TcpStream::connect(address).await.unwrap(), get("/hold", &[])).await.status
        });
    }
    until("all polls are there", || app.state.held.load(SeqCst) == POLLS).await;
    for n in 0..40 {
        assert_eq!(gateway.ask(not_there(n)).await.status, 404);
    }
    let other = &gateway.view().routes[0];
    assert_eq!((other.name.as_str(), other.gate.in_flight), ("other", POLLS));
    app.state.release(POLLS);
    while let Some(status) = polls.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    assert_eq!(names(&gateway), ["other", "GET /hold"]);
}
