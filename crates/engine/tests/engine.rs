//! Exchanges with a real server.

use std::time::{Duration, Instant as Clock};
use suimon_engine::{Ask, Engine, EngineError, EngineParams, EngineUrl, TIMEOUT};
use suimon_model::Instant;
use suimon_sharing::{Block, GatewayId, NUMBERS_END, Record, Wanted};
use suimon_testing::engine::EngineServer;

fn engine(server: &EngineServer, group: &str, me: u64) -> Engine {
    let url = EngineUrl::parse(&server.url()).expect("an address");
    Engine::new(&EngineParams { url, group: group.to_owned(), me: GatewayId(me) }).expect("a group")
}

fn record(number: u64) -> Record {
    Record { number, life: 9, ..Record::default() }
}

fn ask(count: u64, least: u64) -> Ask {
    Ask { lane: "visit.2".to_owned(), wanted: Wanted { count, heard: 0, least } }
}

/// Connects; the first exchange may take longer than others on a busy machine.
async fn join(engine: &mut Engine, now: Instant, number: u64) {
    let until = Clock::now() + Duration::from_secs(10);
    while let Err(error) = engine.exchange(now, &record(number), &[]).await {
        assert!(Clock::now() < until, "{error}");
    }
}

/// As often as a busy machine needs it.
async fn exchange(engine: &mut Engine, now: Instant, number: u64, asks: &[Ask]) -> suimon_engine::Reply {
    let until = Clock::now() + Duration::from_secs(10);
    loop {
        match engine.exchange(now, &record(number), asks).await {
            Ok(reply) => return reply,
            Err(error) => assert!(Clock::now() < until, "{error}"),
        }
    }
}

#[tokio::test]
async fn each_sees_the_records_of_all_of_its_group_and_of_nobody_else() {
    let (server, now) = (EngineServer::start(), Instant::ORIGIN);
    let (mut a, mut b) = (engine(&server, "shop", 1), engine(&server, "shop", 2));
    let mut other = engine(&server, "other", 3);
    join(&mut a, now, 1).await;
    join(&mut other, now, 1).await;
    let reply = exchange(&mut b, now, 5, &[]).await;
    let mut seen: Vec<_> = reply.exchange.seen.iter().map(|seen| (seen.member, seen.record.number)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(GatewayId(1), 1), (GatewayId(2), 5)]);
    b.leave(now).await.unwrap();
    let reply = exchange(&mut a, now, 2, &[]).await;
    assert_eq!(reply.exchange.seen.len(), 1, "one that leaves is gone at once");
}

#[tokio::test]
async fn numbers_are_handed_out_once_and_never_below_what_a_gateway_knows() {
    let (server, now) = (EngineServer::start(), Instant::ORIGIN);
    let (mut a, mut b) = (engine(&server, "shop", 1), engine(&server, "shop", 2));
    join(&mut a, now, 1).await;
    join(&mut b, now, 1).await;
    let first = exchange(&mut a, now, 2, &[ask(64, 0)]).await.blocks[0];
    let second = exchange(&mut b, now, 2, &[ask(16, 0)]).await.blocks[0];
    assert!(second.from >= first.to && second.to - second.from == 16, "{first:?} {second:?}");
    let third = exchange(&mut a, now, 3, &[ask(16, 5000)]).await.blocks[0];
    assert!(third.from >= 5000, "{third:?}");
    assert_eq!(Block { from: third.from, to: third.from + 16 }, third);
}

#[tokio::test]
async fn a_server_that_lost_its_count_hands_out_nothing_that_another_may_still_draw() {
    let (server, now) = (EngineServer::start(), Instant::ORIGIN);
    let (mut a, mut b) = (engine(&server, "shop", 1), engine(&server, "shop", 2));
    join(&mut a, now, 1).await;
    join(&mut b, now, 1).await;
    exchange(&mut a, now, 2, &[ask(64, 5000)]).await;
    let out = exchange(&mut b, now, 2, &[ask(64, 0)]).await.blocks[0];
    forget_numbers(&server).await;
    // B has drawn six of its block.
    let wanted = Wanted { count: 64, heard: out.from + 6, least: out.from + 6 };
    let lane = "visit.2".to_owned();
    let next = exchange(&mut a, now, 3, &[Ask { lane, wanted }]).await.blocks[0];
    assert!(next.from >= out.to, "{next:?} {out:?}");
    let behind = exchange(&mut b, now, 3, &[ask(64, 0)]).await.blocks[0];
    assert!(behind.from >= next.to, "it counts on from there: {behind:?} {next:?}");
}

#[tokio::test]
async fn a_count_that_is_none_is_not_followed_and_numbers_end_where_those_of_tickets_do() {
    let (server, now) = (EngineServer::start(), Instant::ORIGIN);
    let mut a = engine(&server, "shop", 1);
    join(&mut a, now, 1).await;
    for count in ["18446744073709551615", "nan", "-7", "lots"] {
        run(&server, redis::cmd("HSET").arg("suimon:1:{shop}:numbers").arg("visit.2").arg(count)).await;
        let block = exchange(&mut a, now, 2, &[ask(64, 5000)]).await.blocks[0];
        assert_eq!(block, Block { from: 5000, to: 5064 }, "{count}");
    }
    let last = exchange(&mut a, now, 3, &[ask(64, NUMBERS_END - 64)]).await.blocks[0];
    assert_eq!(last.to, NUMBERS_END);
    let error = a.exchange(now, &record(4), &[ask(64, 0)]).await.unwrap_err();
    assert!(matches!(error, EngineError::NumbersEnd | EngineError::Timeout), "{error}");
}

async fn run(server: &EngineServer, command: &redis::Cmd) -> u32 {
    let client = redis::Client::open(server.url()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it is there");
    command.query_async(&mut connection).await.expect("it is a server")
}

/// Somebody removes the count, and nothing else.
async fn forget_numbers(server: &EngineServer) {
    assert_eq!(run(server, redis::cmd("DEL").arg("suimon:1:{shop}:numbers")).await, 1);
}

#[tokio::test]
async fn a_server_that_stands_still_costs_the_timeout_and_nothing_late_is_carried_out() {
    let (server, now) = (EngineServer::start(), Instant::ORIGIN);
    let (mut a, mut b) = (engine(&server, "shop", 1), engine(&server, "shop", 2));
    join(&mut a, now, 1).await;
    join(&mut b, now, 1).await;
    server.pause(true);
    let begun = Clock::now();
    let error = a.exchange(now, &record(77), &[]).await.unwrap_err();
    assert!(matches!(error, EngineError::Timeout), "{error}");
    assert!(begun.elapsed() < 20 * TIMEOUT, "{:?}", begun.elapsed());
    // Longer than a command may be held up.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    server.pause(false);
    let later = now + Duration::from_millis(1500);
    let reply = exchange(&mut b, later, 2, &[]).await;
    let of_a = reply.exchange.seen.iter().find(|seen| seen.member == GatewayId(1)).unwrap();
    assert_eq!(of_a.record.number, 1, "what was sent while it stood still says what was true then");
    assert!(of_a.age >= Duration::from_millis(1400), "{:?}", of_a.age);
    let reply = exchange(&mut a, later, 78, &[]).await;
    assert_eq!(reply.exchange.seen.len(), 2, "and it goes on by itself");
}

#[tokio::test]
async fn one_that_comes_back_with_nothing_is_used_again() {
    let (server, now) = (EngineServer::start(), Instant::ORIGIN);
    let mut a = engine(&server, "shop", 1);
    join(&mut a, now, 1).await;
    exchange(&mut a, now, 2, &[ask(64, 0)]).await;
    let port = server.port();
    drop(server);
    a.exchange(now, &record(3), &[]).await.unwrap_err();
    let _server = EngineServer::start_at(port);
    let reply = exchange(&mut a, now, 4, &[ask(16, 900)]).await;
    assert_eq!((reply.exchange.seen.len(), reply.blocks[0].from), (1, 900));
}
