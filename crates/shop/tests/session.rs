//! The shop over real sockets: what a visitor can do, what is refused, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test ends by panicking, helpers included")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use suimon_shop::{Options, Shop};

/// A shop with almost no work, serving until dropped.
struct Open {
    shop: Shop,
    serving: Option<thread::JoinHandle<()>>,
}

impl Open {
    fn new() -> Self {
        Open::with(&Options::default())
    }

    fn with(options: &Options) -> Self {
        let quick = Options {
            port: 0,
            light_work: Some(1),
            search_repeats: Some(1),
            catalogue_bytes: 20_000,
            ..options.clone()
        };
        let shop = Shop::bind(&quick).unwrap();
        let serving = thread::spawn({
            let shop = shop.clone();
            move || shop.serve()
        });
        Open { shop, serving: Some(serving) }
    }

    fn visitor(&self) -> Visitor {
        Visitor::new(self.shop.local_addr())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shop.shutdown();
        self.serving.take().unwrap().join().unwrap();
    }
}

/// One connection, with a cookie jar for one cookie.
struct Visitor {
    stream: BufReader<TcpStream>,
    cookie: Option<String>,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn token(&self) -> &str {
        let (_, behind) = self.body.split_once("<input type=\"hidden\" name=\"token\" value=\"").unwrap();
        behind.split_once('"').unwrap().0
    }
}

impl Visitor {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Visitor { stream: BufReader::new(stream), cookie: None }
    }

    fn send(&mut self, bytes: &str) {
        self.stream.get_mut().write_all(bytes.as_bytes()).unwrap();
    }

    fn cookie_line(&self) -> String {
        self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n")).unwrap_or_default()
    }

    fn get(&mut self, target: &str) -> Answer {
        let cookie = self.cookie_line();
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: shop\r\n{cookie}\r\n"));
        self.answer()
    }

    fn post(&mut self, target: &str, form: &str) -> Answer {
        let (cookie, length) = (self.cookie_line(), form.len());
        self.send(&format!(
            "POST {target} HTTP/1.1\r\nHost: shop\r\n{cookie}Content-Length: {length}\r\n\r\n{form}"
        ));
        self.answer()
    }

    fn log_in(&mut self) -> Answer {
        let answer = self.post("/login", "user=ann&password=secret");
        self.cookie = answer.header("set-cookie").map(|set| set.split(';').next().unwrap().to_owned());
        answer
    }

    fn answer(&mut self) -> Answer {
        self.answer_to(true)
    }

    fn answer_to(&mut self, with_body: bool) -> Answer {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status =
            line.split(' ').nth(1).unwrap_or_else(|| panic!("no status line: {line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut answer = Answer { status, headers, body: String::new() };
        let length: u64 = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        if with_body {
            (&mut self.stream).take(length).read_to_string(&mut answer.body).unwrap();
        }
        answer
    }

    /// Returns what is left on the connection once the shop has closed it.
    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).unwrap();
        rest
    }
}

#[test]
fn a_visitor_logs_in_browses_searches_buys_and_leaves() {
    let open = Open::new();
    let mut visitor = open.visitor();
    let welcome = visitor.log_in();
    assert_eq!(welcome.status, 200);
    assert!(welcome.body.contains("Welcome, ann"));
    assert!(welcome.header("set-cookie").unwrap().starts_with("SHOPSESSION="));
    for page in 1..=3 {
        let answer = visitor.get(&format!("/browse?page={page}"));
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains(&format!("Catalogue page {page}")));
    }
    let results = visitor.get("/search?q=red+lantern");
    assert_eq!(results.status, 200);
    assert!(results.body.contains("Results for red lantern"));
    let order = visitor.post("/buy", &format!("item=1&token={}", results.token()));
    assert_eq!(order.status, 200);
    assert!(order.body.contains("Thank you, order 1"));
    let goodbye = visitor.post("/logout", "");
    assert_eq!(goodbye.status, 200);
    assert!(goodbye.body.contains("Goodbye"));
    assert_eq!(visitor.get("/browse?page=1").status, 403, "the session is over, whatever cookie still comes");
}

#[test]
fn without_a_login_nothing_is_shown_and_nothing_sold() {
    let open = Open::new();
    let mut stranger = open.visitor();
    for answer in [
        stranger.get("/browse?page=1"),
        stranger.get("/search?q=silk"),
        stranger.post("/buy", "item=1&token=x"),
        stranger.post("/logout", ""),
    ] {
        assert_eq!(answer.status, 403);
        assert!(answer.body.contains("Please log in"));
    }
    stranger.cookie = Some("SHOPSESSION=forged".to_owned());
    assert_eq!(stranger.get("/browse?page=1").status, 403);
    assert_eq!(stranger.post("/login", "user=ann").status, 400);
    assert_eq!(stranger.get("/").status, 200);
    assert_eq!(stranger.get("/healthz").body, "ok\n");
}

#[test]
fn an_order_needs_a_full_cart_and_the_token_of_the_search() {
    let open = Open::new();
    let mut visitor = open.visitor();
    visitor.log_in();
    assert_eq!(visitor.post("/buy", "item=1&token=x").status, 409, "nothing was chosen yet");
    let token = visitor.get("/search?q=silk").token().to_owned();
    assert_eq!(visitor.post("/buy", "item=1&token=forged").status, 403);
    assert_eq!(visitor.post("/buy", "item=1").status, 403);
    assert_eq!(
        visitor.post("/buy", &format!("item=7&token={token}")).status,
        409,
        "a line the cart does not have"
    );
    assert_eq!(visitor.post("/buy", &format!("item=1&token={token}")).status, 200);
    assert_eq!(visitor.post("/buy", &format!("item=1&token={token}")).status, 409, "sold is sold");
}

#[test]
fn what_there_is_not_is_said_with_the_right_status() {
    let open = Open::new();
    let mut visitor = open.visitor();
    visitor.log_in();
    assert_eq!(visitor.get("/nowhere").status, 404);
    assert_eq!(visitor.get("/browse?page=4").status, 404);
    assert_eq!(visitor.get("/browse").status, 400);
    assert_eq!(visitor.get("/search?q=").status, 400);
    let refused = visitor.get("/login");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")));
    let refused = visitor.post("/browse?page=1", "");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn a_word_that_is_markup_stays_text() {
    let open = Open::new();
    let mut visitor = open.visitor();
    visitor.log_in();
    let results = visitor.get("/search?q=%3Cscript%3E");
    assert!(results.body.contains("Results for &lt;script&gt;") && !results.body.contains("<script>"));
}

#[test]
fn requests_sent_in_one_piece_are_answered_in_order() {
    let open = Open::new();
    let mut visitor = open.visitor();
    visitor.send(
        "POST /login HTTP/1.1\r\nHost: shop\r\nContent-Length: 24\r\n\r\nuser=ann&password=secret\
         GET /healthz HTTP/1.1\r\nHost: shop\r\n\r\nHEAD /healthz HTTP/1.1\r\nHost: shop\r\n\r\n\
         GET /healthz HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n",
    );
    assert!(visitor.answer().body.contains("Welcome"));
    assert_eq!(visitor.answer().body, "ok\n");
    let head = visitor.answer_to(false);
    assert_eq!((head.status, head.header("content-length")), (200, Some("3")));
    let last = visitor.answer();
    assert_eq!((last.body.as_str(), last.header("connection")), ("ok\n", Some("close")));
    assert_eq!(visitor.rest(), "");
}

#[test]
fn http_1_0_gets_one_answer_a_connection() {
    let open = Open::new();
    let mut visitor = open.visitor();
    visitor.send("GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(visitor.answer().header("connection"), Some("close"));
    assert_eq!(visitor.rest(), "");
}

#[test]
fn a_client_that_waits_to_be_told_sends_its_body_then() {
    let open = Open::new();
    let mut visitor = open.visitor();
    visitor.send("POST /login HTTP/1.1\r\nHost: shop\r\nContent-Length: 24\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(visitor.answer().status, 100);
    visitor.send("user=ann&password=secret");
    assert_eq!(visitor.answer().status, 200);
}

#[test]
fn what_is_no_request_is_refused_and_ends_the_connection() {
    let open = Open::new();
    let long_header = format!("GET / HTTP/1.1\r\nHost: shop\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let many_headers = format!("GET / HTTP/1.1\r\nHost: shop\r\n{}\r\n", "X: y\r\n".repeat(200));
    for (status, bytes) in [
        (400, "rubbish\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: shop\r\nX: a\r\n folded\r\n\r\n"),
        (400, "GET shop HTTP/1.1\r\nHost: shop\r\n\r\n"),
        (400, "POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"),
        (400, "POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Length: -1\r\n\r\n"),
        (400, "POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Length: 1, 1\r\n\r\nx"),
        (
            400,
            "POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (411, "POST /buy HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        (413, "POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Length: 70000\r\n\r\n"),
        (413, "POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
        (417, "POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Length: 1\r\nExpect: cake\r\n\r\n"),
        (431, long_header.as_str()),
        (431, many_headers.as_str()),
        (505, "GET / HTTP/2.0\r\nHost: shop\r\n\r\n"),
    ] {
        let mut client = open.visitor();
        client.send(bytes);
        let answer = client.answer();
        assert_eq!(answer.status, status, "{bytes:.60}");
        assert_eq!(answer.header("connection"), Some("close"), "{bytes:.60}");
        assert_eq!(client.rest(), "", "{bytes:.60}");
    }
}

#[test]
fn a_body_cut_short_is_nobodys_order() {
    let open = Open::new();
    let mut client = open.visitor();
    client.send("POST /login HTTP/1.1\r\nHost: shop\r\nContent-Length: 24\r\n\r\nuser=ann");
    client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "");
}

#[test]
fn beyond_the_last_thread_a_connection_waits_for_a_place() {
    let open = Open::with(&Options { threads_max: 1, ..Options::default() });
    let mut first = open.visitor();
    assert_eq!(first.get("/healthz").status, 200);
    let mut second = open.visitor();
    second.send("GET /healthz HTTP/1.1\r\nHost: shop\r\n\r\n");
    // The first visitor still holds the only thread.
    assert_eq!(first.get("/healthz").status, 200);
    drop(first);
    assert_eq!(second.answer().status, 200);
}

#[test]
fn many_visitors_at_once_each_get_their_own_order() {
    let open = Open::with(&Options { pool_shelves: 5, ..Options::default() });
    let address = open.shop.local_addr();
    let shoppers: Vec<_> = (0..20)
        .map(|_| {
            thread::spawn(move || {
                let mut visitor = Visitor::new(address);
                visitor.log_in();
                let token = visitor.get("/search?q=rose").token().to_owned();
                let order = visitor.post("/buy", &format!("item=1&token={token}"));
                assert_eq!(order.status, 200);
                let (_, behind) = order.body.split_once("<h1>Thank you, order ").unwrap();
                behind.split_once('<').unwrap().0.parse::<u32>().unwrap()
            })
        })
        .collect();
    let mut orders: Vec<u32> = shoppers.into_iter().map(|shopper| shopper.join().unwrap()).collect();
    orders.sort_unstable();
    assert_eq!(orders, (1..=20).collect::<Vec<_>>());
}

#[test]
fn shutting_down_ends_idle_connections_and_frees_the_port() {
    let open = Open::new();
    let address = open.shop.local_addr();
    let mut idle = open.visitor();
    assert_eq!(idle.get("/healthz").status, 200);
    drop(open);
    assert_eq!(idle.rest(), "");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn shutting_down_with_every_thread_taken_still_ends() {
    let open = Open::with(&Options { threads_max: 1, ..Options::default() });
    let mut idle = open.visitor();
    assert_eq!(idle.get("/healthz").status, 200);
    let waiting = open.visitor();
    drop(open);
    assert_eq!(idle.rest(), "");
    drop(waiting);
}

#[test]
fn a_port_in_use_or_an_option_out_of_range_is_an_error() {
    let open = Open::new();
    let taken = Options { port: open.shop.local_addr().port(), ..Options::default() };
    assert_eq!(Shop::bind(&taken).err().unwrap().kind(), std::io::ErrorKind::AddrInUse);
    for wrong in [
        Options { scale: 0.0, ..Options::default() },
        Options { scale: f64::NAN, ..Options::default() },
        Options { threads_max: 0, ..Options::default() },
        Options { light_work: Some(0), ..Options::default() },
        Options { catalogue_bytes: 1, ..Options::default() },
        Options { pool_shelves: 0, ..Options::default() },
    ] {
        assert_eq!(Shop::bind(&wrong).err().unwrap().kind(), std::io::ErrorKind::InvalidInput);
    }
}

#[test]
fn work_that_is_not_named_is_measured_and_divided_by_the_scale() {
    let options =
        Options { port: 0, scale: 100.0, light_work: None, search_repeats: None, ..Options::default() };
    let work = Shop::bind(&options).unwrap().work();
    assert!(work.light_work >= 1 && work.search_repeats >= 1);
    let named = Options { light_work: Some(3), search_repeats: Some(4), ..options };
    let work = Shop::bind(&named).unwrap().work();
    assert_eq!((work.light_work, work.search_repeats), (3, 4));
}
