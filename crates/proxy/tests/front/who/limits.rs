//! What one ticket may ask for, and one network draw.

use super::*;
use std::net::Ipv4Addr;
use suimon_params::Network;

#[tokio::test]
async fn the_same_old_ticket_asks_so_often_and_no_more() {
    let app = app().await;
    let gateway = gateway(open(app.address));
    gateway.tell(None, &LineCommand::Pause);
    let ticket = gateway.ask(get("/page", &[JSON])).await.header("suimon-ticket").to_owned();
    let poll = async || {
        gateway.ask(get("/page", &[("suimon-ticket", &ticket), ("suimon-poll", "paused")])).await.status
    };
    asked_until("it is old", Duration::from_millis(100), async || (poll().await == 200).then_some(())).await;
    let began = std::time::Instant::now();
    let mut answered = 0;
    for _ in 0..60 {
        answered += u32::from(poll().await == 200);
    }
    let due = 8 + 1 + began.elapsed().as_secs() as u32;
    assert!(answered <= due, "{answered} answers, {due} due");
    // It is a delay and no ban.
    asked_until("it may ask again", Duration::from_millis(200), async || (poll().await == 200).then_some(()))
        .await;
}

#[tokio::test]
async fn a_network_draws_so_many_numbers_for_an_opening_and_is_told_when_there_are_more() {
    let app = app().await;
    let mut params = open(app.address);
    params.trusted_proxies = vec![Network { address: Ipv4Addr::LOCALHOST.into(), prefix: 8 }];
    params.waiting_room.tickets_for_opening = 5;
    let gateway = gateway(params);
    gateway.tell(None, &opening());
    let asks = |from: &'static str| gateway.ask(get("/page", &[JSON, ("x-forwarded-for", from)]));
    // Of no network that is counted.
    asks("10.0.0.1").await;
    asked_until("the gateway knows of them", ASK_EVERY, async || {
        gateway.get("/robots.txt").await.headers.contains_key("x-was-told").then_some(())
    })
    .await;
    for _ in 0..5 {
        assert_eq!(state(&asks("198.51.100.7").await), "opening");
    }
    let full = asks("198.51.100.8").await;
    assert_eq!(state(&full), "full");
    let after: u32 = full.header("retry-after").parse().unwrap();
    assert!((3500..=3600).contains(&after), "when it opens: {after}");
    let asked = [("x-forwarded-for", "198.51.100.8"), ("suimon-poll", "full")];
    let asked = gateway.ask(get("/page", &asked)).await;
    assert_eq!(asked.status, 429, "nor does its page come again meanwhile");
    assert!(asked.header("retry-after").parse::<u32>().unwrap() > 3000);
    // One other may share the count by chance.
    let mut others = 0;
    for host in ["203.0.113.2", "192.0.2.2", "198.18.0.2"] {
        others += u32::from(state(&asks(host).await) == "opening");
    }
    assert!(others >= 2, "{others} of 3 others draw as before");
    gateway.tell(None, &LineCommand::Resume);
    assert_ne!(state(&asks("198.51.100.8").await), "full", "it moves");
}
