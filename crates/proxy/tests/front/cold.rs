//! A cold gateway, rushed from its first moment: a visitor served once is never sent back, whatever
//! cookies the application sets; and on a calm site no cookie of ours is set for it.

use crate::support::{
    ASK_EVERY, Answer, Gateway, PATIENCE, app, asked_until, collected, gateway, get, params, until,
};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use suimon_model::Rng;
use suimon_params::{Network, Params, RoutePattern, SessionKind};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

const VISITORS: usize = 900;
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// What the application does about cookies.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Cookies {
    None,
    /// With the second page, and it is needed for the third.
    AfterLogIn,
    /// With the first page, under a name that nobody knows, which ends in a hash.
    Odd,
    /// With the first page, the same for everybody.
    Alike,
}

/// How the visitors are told apart.
#[derive(Clone, Copy, PartialEq, Debug)]
enum From {
    /// Each has an address of its own, and opens a connection for each request.
    Addresses,
    /// All come from one, with one browser, and keep their connections, as behind the router of a
    /// school.
    OneRouter,
    /// The same, and they open a connection for each request.
    OneRouterAnew,
    /// All come through a balancer that says who they are and is believed.
    Balancer,
    /// The same, and the gateway was told of no balancer.
    UnknownBalancer,
}

fn open(app: SocketAddr) -> Params {
    let mut params = params(app);
    params.sessions.kinds = vec![SessionKind::default()];
    params
}

struct Visitor {
    number: usize,
    gateway: SocketAddr,
    cookies: Cookies,
    from: From,
    jar: Vec<String>,
    kept: Option<SendRequest<Full<Bytes>>>,
}

impl Visitor {
    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let socket = TcpSocket::new_v4().unwrap();
        if self.from == From::Addresses {
            let [high, low] = u16::try_from(self.number).unwrap().to_be_bytes();
            let own = Ipv4Addr::new(127, 1, high, low);
            socket.bind(SocketAddr::new(IpAddr::V4(own), 0)).unwrap();
        }
        let stream: TcpStream = socket.connect(self.gateway).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Asks for the `page`-th page, as a browser does: with the cookies it was given.
    async fn page(&mut self, page: usize, millis: u64) -> Answer {
        let mut headers = vec![("user-agent", BROWSER.to_owned()), ("accept", "text/html".to_owned())];
        if matches!(self.from, From::Balancer | From::UnknownBalancer) {
            headers.push(("x-forwarded-for", format!("203.0.{}.{}", self.number >> 8, self.number & 255)));
        }
        if !self.jar.is_empty() {
            headers.push(("cookie", self.jar.join("; ")));
        }
        let value = blake3::hash(&self.number.to_le_bytes()).to_hex();
        let sets = match (self.cookies, page) {
            (Cookies::AfterLogIn, 1) => Some(format!("PHPSESSID={value}; Path=/; HttpOnly")),
            (Cookies::Odd, 0) => Some(format!("wordpress_auth_5c016e8f0f95f039={value}; Path=/; HttpOnly")),
            (Cookies::Alike, 0) => Some("session_state=not-logged-in-yet; Path=/; HttpOnly".to_owned()),
            _ => None,
        };
        headers.extend(sets.map(|cookie| ("x-say-set-cookie", cookie)));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let request: Request<_> = get(&format!("/work?{millis}"), &headers);
        let mut sender = match self.kept.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await,
        };
        let response = tokio::time::timeout(PATIENCE, sender.send_request(request)).await;
        let answer = collected(response.expect("an answer in time").unwrap()).await;
        if self.from == From::OneRouter {
            self.kept = Some(sender);
        }
        for cookie in answer.cookies() {
            let name = &cookie[..=cookie.find('=').unwrap()];
            self.jar.retain(|old| !old.starts_with(name));
            self.jar.push(cookie.to_owned());
        }
        answer
    }
}

/// What came of a rush.
#[derive(Default, Debug)]
struct Tally {
    served: AtomicUsize,
    /// Served without any cookie of ours.
    unmarked: AtomicUsize,
    sent_back: AtomicUsize,
}

/// Lets [`VISITORS`] come within a second to a gateway that has just started; each that is served
/// asks for two pages more.
async fn rush(cookies: Cookies, from: From, seed: u64) -> Tally {
    let app = app().await;
    let mut params = open(app.address);
    if from == From::Balancer {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        params.trusted_proxies = vec![Network { address, prefix: 32 }];
    }
    let gateway = gateway(params);
    let tally = Arc::new(Tally::default());
    let mut visitors = JoinSet::new();
    let mut rng = Rng::stream(seed, 0);
    for number in 0..VISITORS {
        let tally = Arc::clone(&tally);
        let (starts, thinks) = (rng.between(0.0, 1.0), [rng.between(0.2, 2.0), rng.between(0.2, 2.0)]);
        let millis = rng.between(2.0, 40.0) as u64;
        let plain = gateway.plain;
        let mut visitor = Visitor { number, gateway: plain, cookies, from, jar: vec![], kept: None };
        visitors.spawn(async move {
            tokio::time::sleep(Duration::from_secs_f64(starts)).await;
            if visitor.page(0, millis).await.status != 200 {
                return;
            }
            tally.served.fetch_add(1, SeqCst);
            if !visitor.jar.iter().any(|cookie| cookie.starts_with("suimon=")) {
                tally.unmarked.fetch_add(1, SeqCst);
            }
            for (page, think) in thinks.into_iter().enumerate() {
                tokio::time::sleep(Duration::from_secs_f64(think)).await;
                let answer = visitor.page(page + 1, millis).await;
                if answer.status != 200 {
                    tally.sent_back.fetch_add(1, SeqCst);
                    return;
                }
            }
        });
    }
    while let Some(visitor) = visitors.join_next().await {
        visitor.unwrap();
    }
    drop(gateway);
    Arc::into_inner(tally).unwrap()
}

async fn rushes(cookies: Cookies, from: From) {
    let runs = std::env::var("SUIMON_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1);
    let mut sent_back = 0;
    for seed in 1..=runs {
        let tally = rush(cookies, from, seed).await;
        eprintln!("{cookies:?} {from:?} seed {seed}: {tally:?}");
        assert!(tally.served.load(SeqCst) < VISITORS, "the gate never closed");
        sent_back += tally.sent_back.load(SeqCst);
    }
    assert_eq!(sent_back, 0, "were served once and sent back");
}

#[tokio::test]
async fn nobody_served_is_sent_back_by_an_application_without_cookies() {
    rushes(Cookies::None, From::Addresses).await;
}

#[tokio::test]
async fn nobody_served_is_sent_back_by_an_application_with_a_cookie_after_log_in() {
    rushes(Cookies::AfterLogIn, From::Addresses).await;
}

#[tokio::test]
async fn nobody_served_is_sent_back_by_an_application_with_an_odd_cookie() {
    rushes(Cookies::Odd, From::Addresses).await;
}

#[tokio::test]
async fn nobody_served_is_sent_back_by_an_application_with_the_same_cookie_for_all() {
    rushes(Cookies::Alike, From::Addresses).await;
}

#[tokio::test]
async fn nobody_served_is_sent_back_from_behind_one_router() {
    rushes(Cookies::None, From::OneRouter).await;
}

#[tokio::test]
async fn nobody_served_is_sent_back_from_behind_one_router_with_a_connection_for_each_request() {
    rushes(Cookies::None, From::OneRouterAnew).await;
}

#[tokio::test]
async fn nobody_served_is_sent_back_behind_a_balancer() {
    rushes(Cookies::None, From::Balancer).await;
    rushes(Cookies::None, From::UnknownBalancer).await;
}

/// Waits until one more newcomer, at this pace, is no rush: a pace of half of what could begin may
/// be one.
async fn newcomers_are_few(gateway: &Gateway) {
    let start = std::time::Instant::now();
    let could_begin = || start.elapsed().as_secs_f64() * gateway.view().kinds[0].1.rate;
    until("four sessions could have begun", || could_begin() >= 4.0).await;
}

/// A visitor who came while there was nothing to do has no cookie at all, and the rush comes later.
#[tokio::test]
async fn nobody_served_while_it_was_calm_is_sent_back_when_a_rush_comes() {
    let app = app().await;
    let gateway = gateway(open(app.address));
    let mut calm = Vec::new();
    for (number, from) in [From::Addresses, From::Addresses, From::UnknownBalancer].into_iter().enumerate() {
        let mut visitor = visitor(gateway.plain, 1000 + number, from);
        assert_eq!(visitor.page(0, 20).await.status, 200);
        assert!(visitor.jar.is_empty(), "it is calm: {:?}", visitor.jar);
        calm.push(visitor);
        newcomers_are_few(&gateway).await;
    }
    let mut rush = JoinSet::new();
    for number in 0..VISITORS {
        let mut visitor = visitor(gateway.plain, number, From::Addresses);
        rush.spawn(async move { visitor.page(0, 20).await.status });
    }
    until("newcomers are sent into the line", || gateway.observer.lines()[0].view.issued > 0).await;
    for visitor in &mut calm {
        for page in 1..4 {
            assert_eq!(visitor.page(page, 20).await.status, 200, "page {page}");
        }
    }
    let statuses = rush.join_all().await;
    assert!(statuses.contains(&503), "the gate closed");
}

/// A gate that closes for good after the first `seconds`.
fn closing(app: SocketAddr) -> Params {
    let mut params = open(app);
    params.sessions.kinds[0].ends = vec![RoutePattern { method: None, path: "/logout".to_owned() }];
    params.sessions.kinds[0].gate.patience = Some(Duration::from_millis(50));
    params.sessions.kinds[0].gate.line = None;
    let always = suimon_control::PaperSessionParams {
        threshold: 0.0,
        up: Duration::from_secs(3600),
        down: Duration::ZERO,
        period: Duration::from_millis(10),
    };
    params.gate.session_law = suimon_control::SessionLawKind::Paper(always);
    params
}

/// Asks until strangers are refused.
async fn closed(gateway: &Gateway) {
    let stranger = [("user-agent", "prober"), ("x-forwarded-for", "198.51.100.9")];
    asked_until("the gate closes", ASK_EVERY, async || {
        (gateway.ask(get("/start", &stranger)).await.status == 503).then_some(())
    })
    .await;
}

fn visitor(gateway: SocketAddr, number: usize, from: From) -> Visitor {
    Visitor { number, gateway, cookies: Cookies::None, from, jar: vec![], kept: None }
}

#[tokio::test]
async fn a_visitor_without_cookies_on_a_calm_site_is_one_session_and_gets_none() {
    let app = app().await;
    let gateway = gateway(open(app.address));
    let admitted = |gateway: &Gateway| gateway.view().kinds[0].1.admitted;
    for (from, pages, pause) in
        [(From::UnknownBalancer, 8, 0), (From::OneRouter, 50, 0), (From::Addresses, 4, 250)]
    {
        let before = admitted(&gateway);
        let mut visitor = visitor(gateway.plain, 7, from);
        for page in 0..pages {
            let answer = visitor.page(page, 1).await;
            assert_eq!((answer.status, answer.cookies().len()), (200, 0), "{from:?}, page {page}");
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        assert_eq!(admitted(&gateway) - before, 1, "{from:?}");
        newcomers_are_few(&gateway).await;
    }
}

#[tokio::test]
async fn a_robot_that_keeps_no_cookies_is_one_session_whatever_cookies_it_is_given() {
    let app = app().await;
    let gateway = gateway(open(app.address));
    for page in 0..6 {
        let cookie = format!("PHPSESSID={}; HttpOnly", blake3::hash(&[page]).to_hex());
        let headers =
            [("user-agent", "bot"), ("x-forwarded-for", "203.0.113.9"), ("x-say-set-cookie", &*cookie)];
        assert_eq!(gateway.ask(get("/work?1", &headers)).await.status, 200);
    }
    assert_eq!(gateway.view().kinds[0].1.admitted, 1);
    // Another browser of the same address, and one that has the cookie of a visit before.
    for headers in [("user-agent", "other"), ("cookie", "PHPSESSID=0123456789abcdef")] {
        let headers = [("x-forwarded-for", "203.0.113.9"), headers];
        assert_eq!(gateway.ask(get("/work?1", &headers)).await.status, 200);
    }
    assert_eq!(gateway.view().kinds[0].1.admitted, 3);
}

#[tokio::test]
async fn a_client_that_keeps_no_cookies_stays_in_and_strangers_of_its_network_do_not_come_in_by_it() {
    let app = app().await;
    let gateway = gateway(closing(app.address));
    let mut inside = visitor(gateway.plain, 1, From::OneRouter);
    assert_eq!(inside.page(0, 1).await.status, 200);
    closed(&gateway).await;
    for _ in 0..5 {
        inside.jar.clear();
        assert_eq!(inside.page(1, 1).await.status, 200, "known by its connection");
        let mut stranger = visitor(gateway.plain, 2, From::OneRouter);
        assert_eq!(stranger.page(0, 1).await.status, 503, "the one who is inside has a connection open");
    }
}

#[tokio::test]
async fn what_the_memory_lets_in_is_bounded_where_many_share_an_address_and_a_browser() {
    let app = app().await;
    let gateway = gateway(closing(app.address));
    // Gone again, connection and all.
    assert_eq!(visitor(gateway.plain, 1, From::OneRouter).page(0, 1).await.status, 200);
    closed(&gateway).await;
    let mut strangers = JoinSet::new();
    for _ in 0..200 {
        let mut stranger = visitor(gateway.plain, 2, From::OneRouter);
        strangers.spawn(async move { stranger.page(0, 1).await.status == 200 });
    }
    let let_in = strangers.join_all().await.into_iter().filter(|is_in| *is_in).count();
    assert!((1..=12).contains(&let_in), "{let_in} of 200");
    let mut other = visitor(gateway.plain, 3, From::UnknownBalancer);
    assert_eq!(other.page(0, 1).await.status, 503, "of another address");
}

#[tokio::test]
async fn whoever_has_logged_out_is_nobody_s_memory() {
    let app = app().await;
    let gateway = gateway(closing(app.address));
    let mut inside = visitor(gateway.plain, 1, From::UnknownBalancer);
    assert_eq!(inside.page(0, 1).await.status, 200);
    closed(&gateway).await;
    let headers = [("user-agent", BROWSER), ("x-forwarded-for", "203.0.0.1")];
    assert_eq!(gateway.ask(get("/logout", &headers)).await.status, 200);
    assert_eq!(gateway.ask(get("/work?1", &headers)).await.status, 503);
}
