//! Passes: the application says who may draw a number.

use super::*;
use crate::support::read_until;
use suimon_params::PassFor;
use suimon_params::{Network, PassPage};
use tokio::io::AsyncWriteExt;

/// A gateway whose visitors are to show a pass, where one waits already.
async fn asking(needed_by: PassFor, app: SocketAddr) -> Gateway {
    let mut params = room(app);
    params.trusted_proxies = vec![Network { address: "127.0.0.0".parse().unwrap(), prefix: 8 }];
    params.waiting_room.pass = Some(PassPage { page: "/human".to_owned(), needed_by });
    (params.waiting_room.tickets_burst, params.waiting_room.tickets_per_second) = (1, 1e-6);
    let gateway = gateway(params);
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    // While nobody waits nothing is asked. It comes from no network that has a bucket.
    let first = gateway.ask(get("/page", &[JSON, ("x-forwarded-for", "10.0.0.1")])).await;
    assert!(first.place().is_some());
    gateway.knows_of_waiting().await;
    gateway
}

/// Comes from a network of this number.
async fn visit(gateway: &Gateway, network: u8, headers: &[(&str, &str)]) -> Answer {
    let from = format!("198.51.{network}.1");
    let headers: Vec<_> = headers.iter().copied().chain([JSON, ("x-forwarded-for", from.as_str())]).collect();
    gateway.ask(get("/page?a=b", &headers)).await
}

/// Gets a pass from the application, which says so.
async fn pass(gateway: &Gateway, word: &str) -> String {
    let answer = gateway.ask(get("/human", &[("x-say-suimon-pass", word)])).await;
    assert_eq!(
        (answer.status, answer.header("suimon-pass")),
        (200, ""),
        "its page passes the gate, its word does not"
    );
    assert_eq!(answer.header("cache-control"), "private");
    answer.cookie("suimon-pass=").expect("a pass")
}

#[tokio::test]
async fn whoever_has_no_pass_is_sent_for_one_and_it_is_good_for_one_number() {
    let app = app().await;
    let gateway = asking(PassFor::Everybody, app.address).await;
    let asked = visit(&gateway, 2, &[]).await;
    assert_eq!((asked.status, asked.place()), (503, None));
    assert_eq!(asked.json()["state"], "pass");
    assert_eq!(asked.json()["pass_url"], "/human?back=%2Fpage%3Fa%3Db");
    let page = gateway.ask(get("/page", &[HTML])).await.text();
    assert!(page.contains(r#"href="/human?back=%2Fpage">Continue</a>"#), "{page}");

    let once = pass(&gateway, "once").await;
    let asks = ("suimon-poll", "pass");
    assert_eq!(gateway.ask(get("/page", &[asks, JSON])).await.status, 429, "nothing has changed");
    let changed = gateway.ask(get("/page", &[asks, JSON, ("cookie", &once)])).await;
    assert_eq!(changed.status, 204, "the page has only to be loaded anew");
    let place = visit(&gateway, 2, &[("cookie", &once)]).await.place().expect("a number");
    assert_eq!(visit(&gateway, 2, &[("cookie", &once)]).await.json()["state"], "pass", "it was used");
    assert!(visit(&gateway, 2, &[("cookie", &place)]).await.place().is_some(), "who has a place needs none");
    let forged = edited(&once, once.len() - 4);
    assert_eq!(visit(&gateway, 2, &[("cookie", &forged)]).await.json()["state"], "pass");
    let head = gateway.ask(get("/human", &[("cookie", &once)])).await;
    assert_eq!(head.status, 200);
}

#[tokio::test]
async fn an_account_has_one_place_whatever_browser_it_comes_with() {
    let app = app().await;
    let gateway = asking(PassFor::Everybody, app.address).await;
    let (here, there) = (pass(&gateway, "account=4711").await, pass(&gateway, "account=4711").await);
    let other = pass(&gateway, "account=4712").await;
    let first = visit(&gateway, 2, &[("cookie", &here)]).await;
    let drawn = gateway.drawn();
    let second = visit(&gateway, 3, &[("cookie", &there)]).await;
    assert_eq!((second.position(), gateway.drawn()), (first.position(), drawn), "the same place");
    assert!(second.place().is_some());
    assert_ne!(visit(&gateway, 3, &[("cookie", &other)]).await.position(), first.position());
}

#[tokio::test]
async fn only_those_of_a_network_that_has_drawn_many_are_asked_and_only_the_page_gives_passes() {
    let app = app().await;
    let gateway = asking(PassFor::OverQuota, app.address).await;
    assert!(visit(&gateway, 7, &[]).await.place().is_some(), "the first of a network");
    assert_eq!(visit(&gateway, 7, &[]).await.json()["state"], "pass");
    // One other may share the bucket by chance.
    let mut others = 0;
    for network in [8, 9, 10] {
        others += u32::from(visit(&gateway, network, &[]).await.place().is_some());
    }
    assert!(others >= 2, "{others} of 3 others");
    let once = pass(&gateway, "once").await;
    assert!(visit(&gateway, 7, &[("cookie", &once)]).await.place().is_some());
    for (path, word) in
        [("/robots.txt", "once"), ("/human/x", "once"), ("/human", "twice"), ("/human", "account=")]
    {
        let answer = gateway.ask(get(path, &[("x-say-suimon-pass", word)])).await;
        assert_eq!((answer.cookies().len(), answer.header("suimon-pass")), (0, ""), "{path} {word}");
    }
}

#[tokio::test]
async fn log_ins_that_are_still_being_sent_keep_nobody_from_logging_in() {
    let app = app().await;
    let mut params = room(app.address);
    params.waiting_room.pass = Some(PassPage { page: "/echo".to_owned(), needed_by: PassFor::Everybody });
    let gateway = gateway(params);
    let mut slow = Vec::new();
    let asked_for = "Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n";
    let chunked = format!("Transfer-Encoding: chunked\r\n\r\n11170\r\n{}\r\n", "x".repeat(70_000));
    // More than are read to tell how fast the client is.
    let declared = format!("Content-Length: 300000\r\n\r\n{}", "x".repeat(290_000));
    for begin in [asked_for, &chunked, &declared] {
        let before = gateway.view().requests;
        for _ in 0..6 {
            let mut stream = connect(gateway.plain).await;
            stream.write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\n").await.unwrap();
            stream.write_all(begin.as_bytes()).await.unwrap();
            if begin == asked_for {
                read_until(&mut stream, "100 Continue").await;
            }
            slow.push(stream);
        }
        until("all have come", || gateway.view().requests == before + 6).await;
        for _ in 0..2 {
            let answer = gateway.ask(request("POST", "/echo", &[], "hello")).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        slow.clear();
        until("nothing is left", || gateway.view().connections_open == 0).await;
        until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
    }
    assert_eq!(app.state.begun.load(SeqCst), 6, "the application knows of none of the others");
}
