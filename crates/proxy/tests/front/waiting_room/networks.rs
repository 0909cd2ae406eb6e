//! Who is slowed down, or has a lane of their own, by where they come from.

use super::*;
use suimon_params::Network;

#[tokio::test]
async fn one_network_gets_its_numbers_later_and_no_header_of_its_own_makes_it_another() {
    let app = app().await;
    let mut params = room(app.address);
    params.trusted_proxies = vec![Network { address: "127.0.0.0".parse().unwrap(), prefix: 8 }];
    (params.waiting_room.tickets_burst, params.waiting_room.tickets_per_second) = (3, 0.5);
    let gateway = gateway(params);
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    let asks = |from: String| gateway.ask(get("/page", &[JSON, ("x-forwarded-for", &from)]));
    // Of no network that has a bucket.
    asks("10.0.0.1".to_owned()).await;
    gateway.knows_of_waiting().await;

    let began = std::time::Instant::now();
    let (mut given, mut later, mut ticket) = (0.0, 0, None);
    for host in 0..20 {
        // Whatever stands before the address that the balancer saw is made up.
        let answer = asks(format!("198.18.{host}.1, 198.51.100.{host}")).await;
        assert_eq!(answer.status, 503);
        if let Some(place) = answer.place() {
            given += 1.0;
            ticket = Some(place);
            continue;
        }
        later += 1;
        assert_eq!((&answer.json()["state"], answer.header("retry-after")), (&Value::from("full"), "10"));
        assert_eq!((answer.cookies().len(), answer.header("suimon-ticket")), (0, ""));
    }
    let due = 3.0 + 0.5 * began.elapsed().as_secs_f64();
    assert!(given >= 3.0 && given <= due && later > 0, "{given} numbers of {due} due");
    let page = gateway.ask(get("/page", &[HTML, ("x-forwarded-for", "198.51.100.77")])).await;
    assert!(page.place().is_some() || page.text().contains("class=full>"), "people are told the same");
    // Others are not slowed down, but for one that by chance shares the bucket, and a visitor with a
    // number needs no other.
    let mut others = 0;
    for host in ["203.0.113.9", "192.0.2.9", "198.18.0.9"] {
        others += u32::from(asks(host.to_owned()).await.place().is_some());
    }
    assert!(others >= 2, "{others} of 3 others");
    let holder = [JSON, ("x-forwarded-for", "198.51.100.1"), ("cookie", ticket.as_deref().unwrap())];
    assert!(gateway.ask(get("/page", &holder)).await.place().is_some());
    // It is a delay and no ban.
    asked_until("a place", Duration::from_millis(50), async || {
        asks("198.51.100.200".to_owned()).await.place()
    })
    .await;
}

#[tokio::test]
async fn search_engines_come_by_a_lane_of_their_own() {
    let app = app().await;
    let mut params = room(app.address);
    params.trusted_proxies = vec![Network { address: "127.0.0.0".parse().unwrap(), prefix: 8 }];
    params.waiting_room.crawlers = vec![Network { address: "192.0.2.0".parse().unwrap(), prefix: 24 }];
    let gateway = gateway(params);
    let session = gateway.taken().await;
    let asks = |from: &'static str| gateway.ask(get("/page", &[HTML, ("x-forwarded-for", from)]));
    for _ in 0..20 {
        asks("203.0.113.1").await;
    }
    gateway.knows_of_waiting().await;
    let counts = || {
        let line = gateway.observer.lines()[0].view;
        (line.issued, line.admitted)
    };
    let (issued, admitted) = counts();
    gateway.ask(get("/bye", &[("cookie", &session), ("x-say-suimon-session", "end")])).await;
    // Behind twenty others in the normal lane, and the first in its own; it keeps no cookie.
    assert_eq!(asks("192.0.2.7").await.status, 200);
    assert_eq!(counts(), (issued + 1, admitted + 1));
}

#[tokio::test]
async fn a_stranger_who_names_an_address_is_counted_by_their_own() {
    let app = app().await;
    let mut params = room(app.address);
    // No number more would be given to a network that is believed to be this one.
    (params.waiting_room.tickets_burst, params.waiting_room.tickets_per_second) = (1, 1e-6);
    let gateway = gateway(params);
    gateway.taken().await;
    gateway.say(&LineCommand::Pause);
    gateway.ask(get("/page", &[HTML])).await;
    gateway.knows_of_waiting().await;
    for _ in 0..5 {
        let named = [HTML, ("x-forwarded-for", "198.51.100.7"), ("forwarded", "for=198.51.100.7")];
        assert!(gateway.ask(get("/page", &named)).await.place().is_some());
    }
}
