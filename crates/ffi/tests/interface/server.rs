//! What each function does.

use crate::support::{Server, Told, open, open_at, quiet, until, with_room};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use suimon::c::*;

const SOON: Duration = Duration::from_secs(30);
const NOW: Duration = Duration::ZERO;
/// One request at a time at one route.
const ONE_SLOT: &str = "[[route]]\nmatch = \"GET /hold\"\nmode = 1\n";
/// One session, and nobody is held.
const ONE_SESSION: &str = "[[session]]\nkind = \"shopping\"\nhold = \"0s\"\nwaiting_room = false\n[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n";

/// The same, and others wait in line.
const WITH_LINE: &str = "[[session]]\nkind = \"shopping\"\nhold = \"0s\"\n[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n";

fn server(settings: &str) -> Server {
    open(&quiet(settings)).unwrap()
}

fn let_in(told: &Told) -> u64 {
    assert_eq!(told.code, SUIMON_OK, "{told:?}");
    told.request
}

/// Returns the answer to a visitor who is not let in, and may be held first.
fn answered(server: &Server, head: &str) -> String {
    let entered = server.enter_head(head, "198.51.100.7", 1 << 16);
    let told = if entered.code == SUIMON_WAITS { server.next(SOON) } else { entered };
    assert_eq!(told.code, SUIMON_ANSWERED, "{told:?}");
    told.text
}

#[test]
fn a_request_is_let_in_answered_and_ended_once() {
    let server = server("");
    let told = server.enter("/", "");
    let request = let_in(&told);
    let id = told.text.strip_prefix("x-request-id: ").unwrap().strip_suffix("\r\n").unwrap();
    assert_eq!(id.len(), 32, "{told:?}");
    assert_eq!(server.count("in_flight"), 1);
    assert_eq!(server.result(request).code, SUIMON_NOTHING);
    let told = server.answer(request, 200, "content-type: text/html\r\n");
    assert_eq!((told.code, &*told.text), (SUIMON_OK, ""));
    assert_eq!(server.end(request), SUIMON_OK);
    assert_eq!([server.end(request), server.leave(request)], [SUIMON_UNKNOWN; 2]);
    assert_eq!([server.answer(request, 200, "").code, server.result(request).code], [SUIMON_UNKNOWN; 2]);
    assert_eq!((server.count("in_flight"), server.count("completed")), (0, 1));
}

#[test]
fn work_that_is_not_answered_has_failed_and_an_error_has_too() {
    let server = server("");
    let ended = |status: Option<u32>| {
        let request = let_in(&server.enter("/", ""));
        status.map(|status| server.answer(request, status, ""));
        server.end(request);
    };
    ended(None);
    ended(Some(500));
    // Declined, which is as much work as any.
    ended(Some(404));
    assert_eq!((server.count("failed"), server.count("completed")), (2, 1));
}

#[test]
fn work_that_fails_in_the_middle_of_its_answer_has_failed() {
    let server = server("");
    let request = let_in(&server.enter("/", ""));
    assert_eq!(server.answer(request, 200, "").code, SUIMON_OK);
    assert_eq!([server.fail(request), server.fail(request)], [SUIMON_OK, SUIMON_UNKNOWN]);
    assert_eq!(server.end(request), SUIMON_UNKNOWN);
    assert_eq!((server.count("failed"), server.count("completed"), server.count("in_flight")), (1, 0, 0));
}

#[test]
fn an_answer_that_streams_is_told_from_others_by_its_head() {
    let server = server("");
    let streams = |status: u32, lines: &str| {
        let request = let_in(&server.enter("/", ""));
        assert_eq!(server.streams(request), SUIMON_NOTHING, "it has no head yet");
        assert_eq!(server.answer(request, status, lines).code, SUIMON_OK);
        let told = server.streams(request);
        assert_eq!(server.end(request), SUIMON_OK);
        assert_eq!(server.streams(request), SUIMON_UNKNOWN);
        told
    };
    assert_eq!(streams(200, "content-type: text/event-stream\r\n"), SUIMON_OK);
    assert_eq!(streams(200, "content-type: application/grpc\r\n"), SUIMON_OK);
    assert_eq!(streams(200, "x-accel-buffering: no\r\n"), SUIMON_OK);
    assert_eq!(streams(101, ""), SUIMON_OK);
    assert_eq!(streams(200, "content-type: text/html\r\n"), SUIMON_NOTHING);
    assert_eq!((server.count("completed"), server.count("in_flight")), (5, 0));
}

#[test]
fn a_stream_that_is_ended_with_its_head_leaves_its_slot_to_others() {
    let server = server(ONE_SLOT);
    let first = let_in(&server.enter("/hold", ""));
    let second = server.enter("/hold", "").request;
    server.answer(first, 200, "content-type: text/event-stream\r\n");
    assert_eq!([server.streams(first), server.streams(second)], [SUIMON_OK, SUIMON_UNKNOWN]);
    assert_eq!(server.next(NOW).code, SUIMON_NOTHING);
    assert_eq!(server.end(first), SUIMON_OK);
    assert_eq!(let_in(&server.next(SOON)), second);
    server.serve(second);
}

#[test]
fn the_time_of_a_client_is_none_of_the_work() {
    let took = |client_time: Duration| {
        let server = server("");
        let request = let_in(&server.enter("/", ""));
        server.answer(request, 200, "");
        let begun = Instant::now();
        until("some time has passed", || begun.elapsed() > Duration::from_millis(100));
        assert_eq!(server.end_without(request, client_time), SUIMON_OK);
        assert_eq!(server.end_without(request, client_time), SUIMON_UNKNOWN);
        assert_eq!((server.count("completed"), server.count("in_flight")), (1, 0));
        let state = server.state();
        let routes = state["routes"].as_array().unwrap();
        routes.iter().find_map(|route| route["upstream"]["p99"].as_f64()).unwrap()
    };
    assert!(took(NOW) > 0.05);
    // More than it can have been: then there was no work at all.
    assert!(took(SOON) < 0.05);
}

#[test]
fn whoever_waits_is_told_by_next_when_it_is_let_in() {
    let server = server(ONE_SLOT);
    let first = let_in(&server.enter("/hold", ""));
    let [second, third] = [(); 2].map(|()| server.enter("/hold", ""));
    assert_eq!([second.code, third.code], [SUIMON_WAITS; 2]);
    assert_eq!(server.result(second.request).code, SUIMON_WAITS);
    assert_eq!(server.next(NOW).code, SUIMON_NOTHING);
    // A client leaves while it waits: it is over.
    assert_eq!(server.leave(second.request), SUIMON_OK);
    assert_eq!(server.leave(second.request), SUIMON_UNKNOWN);
    until("one waits", || server.count("queued") == 1);
    server.serve(first);
    let told = server.next(SOON);
    assert_eq!((told.code, told.request), (SUIMON_OK, third.request));
    let held = told.text.lines().find_map(|line| line.strip_prefix("suimon-held: ")).unwrap();
    held.parse::<u64>().unwrap();
    // One that leaves while it is worked on keeps its slot.
    assert_eq!([server.leave(told.request), server.leave(told.request)], [SUIMON_OK; 2]);
    assert_eq!(server.count("orphaned"), 1);
    server.serve(told.request);
    assert_eq!((server.count("in_flight"), server.count("abandoned")), (0, 2));
}

#[test]
fn a_thread_that_waits_for_a_result_is_woken() {
    let server = server(ONE_SLOT);
    let first = let_in(&server.enter("/hold", ""));
    let second = server.enter("/hold", "").request;
    std::thread::scope(|scope| {
        let told = scope.spawn(|| server.next(SOON));
        server.serve(first);
        assert_eq!(let_in(&told.join().unwrap()), second);
    });
}

#[test]
fn who_ends_a_request_is_told_of_the_next_one_at_once() {
    let server = server(ONE_SLOT);
    let first = let_in(&server.enter("/hold", ""));
    let [second, third] = [(); 2].map(|()| server.enter("/hold", "").request);
    assert_eq!(let_in(&server.end_and_next(first)), second);
    // It is told once, and one that is over makes nobody start.
    assert_eq!(server.next(NOW).code, SUIMON_NOTHING);
    assert_eq!(server.end_and_next(first).code, SUIMON_UNKNOWN);
    assert_eq!(let_in(&server.end_and_next(second)), third);
    assert_eq!(server.end_and_next(third).code, SUIMON_NOTHING);
    assert_eq!((server.count("in_flight"), server.count("queued")), (0, 0));
}

#[test]
fn who_asks_for_one_result_alone_gets_it() {
    let server = server(ONE_SLOT);
    let first = let_in(&server.enter("/hold", ""));
    let second = server.enter("/hold", "").request;
    assert_eq!(server.result(second).code, SUIMON_WAITS);
    server.serve(first);
    assert_eq!(server.result(second).code, SUIMON_OK);
    assert_eq!(server.next(NOW).code, SUIMON_NOTHING);
    server.serve(second);
}

#[test]
fn threads_that_end_and_threads_that_hear_lose_nobody() {
    const REQUESTS: u64 = 2000;
    let server = server("[[route]]\nmatch = \"GET /hold\"\nmode = 3\n");
    let told = AtomicU64::new(0);
    // Whoever ends one goes on with the next one that is told. Some are refused: too many wait.
    let go_on = |mut next: Told| {
        while [SUIMON_OK, SUIMON_ANSWERED].contains(&next.code) {
            told.fetch_add(1, Relaxed);
            let is_let_in = next.code == SUIMON_OK;
            next = if is_let_in { server.end_and_next(next.request) } else { server.next(NOW) };
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..REQUESTS / 4).for_each(|_| go_on(server.enter("/hold", ""))));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while told.load(Relaxed) < REQUESTS {
                    go_on(server.next(Duration::from_millis(100)));
                }
            });
        }
    });
    assert_eq!(told.into_inner(), REQUESTS);
    assert_eq!(["in_flight", "queued"].map(|what| server.count(what)), [0; 2]);
    assert_eq!(["failed", "refused"].map(|what| server.count(what)).iter().sum::<u64>(), REQUESTS);
}

#[test]
fn nothing_is_lost_where_a_buffer_is_too_small() {
    let server = server(ONE_SLOT);
    let head = "GET /hold HTTP/1.1\r\nhost: shop\r\n\r\n";
    let told = server.enter_head(head, "192.0.2.7", 3);
    assert_eq!((told.code, told.length), (SUIMON_TOO_SMALL, "x-request-id: \r\n".len() + 32));
    // It holds its slot, and nobody was told that it may be worked on.
    let first = told.request;
    assert_eq!(server.count("in_flight"), 1);
    assert_eq!(server.answer(first, 200, "").code, SUIMON_UNKNOWN);
    let_in(&server.result(first));

    // The same where it waited.
    let second = server.enter("/hold", "").request;
    let told = server.answer_in(first, 200, "suimon-session: end\r\n", 3);
    assert_eq!((told.code, told.length), (SUIMON_TOO_SMALL, "-suimon-session\r\n".len()));
    assert_eq!(server.answer(first, 500, "").text, "-suimon-session\r\n", "what was said first counts");
    assert_eq!(server.answer(first, 500, "").text, "");
    server.end(first);
    let told = server.next_in(SOON, 0);
    assert_eq!((told.code, told.request), (SUIMON_TOO_SMALL, second));
    let_in(&server.result(second));

    // Whoever cannot have the result gives it up.
    server.serve(second);
    let third = server.enter_head(head, "192.0.2.7", 0).request;
    assert_eq!([server.end(third), server.end(third)], [SUIMON_OK, SUIMON_UNKNOWN]);
    let fourth = server.enter_head(head, "192.0.2.7", 0).request;
    assert_eq!([server.leave(fourth), server.end(fourth)], [SUIMON_OK, SUIMON_UNKNOWN]);
    let fifth = server.enter_head(head, "192.0.2.7", 0).request;
    assert_eq!([server.fail(fifth), server.fail(fifth)], [SUIMON_OK, SUIMON_UNKNOWN]);
    assert_eq!((server.count("in_flight"), server.count("completed"), server.count("abandoned")), (0, 2, 3));
}

#[test]
fn who_is_not_let_in_gets_a_whole_answer() {
    let server = server(ONE_SESSION);
    let first = let_in(&server.enter("/", "cookie: JSESSIONID=AAAAAAAAAAAAAAAAAAAA\r\n"));
    let refused = server.enter_head("GET / HTTP/1.1\r\nhost: shop\r\n\r\n", "198.51.100.7", 1 << 16);
    assert_eq!(refused.code, SUIMON_ANSWERED, "{refused:?}");
    let (head, body) = refused.text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
    assert!(head.contains("\r\nretry-after: "), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())), "{head}");
    assert!(body.contains("\"reason\":"), "{body}");
    // It is over.
    assert_eq!([server.end(refused.request), server.leave(refused.request)], [SUIMON_UNKNOWN; 2]);

    let page = server.enter_head(
        "GET / HTTP/1.1\r\nhost: shop\r\naccept: text/html\r\n\r\n",
        "198.51.100.7",
        1 << 16,
    );
    assert!(page.text.contains("<h1>Too many people at once</h1>"), "{}", page.text);
    let bare = server.enter_head("HEAD / HTTP/1.1\r\nhost: shop\r\n\r\n", "198.51.100.7", 1 << 16);
    assert!(bare.code == SUIMON_ANSWERED && bare.text.ends_with("\r\n\r\n"), "{bare:?}");

    // The answer to the one who is in gets its lease, as somebody waits to be let in.
    let told = server.answer(first, 200, "cache-control: public\r\ncontent-type: text/html\r\n");
    assert!(told.text.contains("=cache-control: private\r\n"), "{told:?}");
    let lease = told.text.lines().find_map(|line| line.strip_prefix("+set-cookie: ")).unwrap();
    server.end(first);
    let lease = lease.split(';').next().unwrap();
    assert!(lease.starts_with("suimon="), "{lease}");
    let again = server.enter_head(
        &format!("GET / HTTP/1.1\r\nhost: shop\r\ncookie: {lease}\r\n\r\n"),
        "203.0.113.7",
        1 << 16,
    );
    server.serve(let_in(&again));

    // A small buffer: the answer is kept.
    let refused = server.enter_head("GET / HTTP/1.1\r\nhost: shop\r\n\r\n", "198.51.100.7", 10);
    assert_eq!(refused.code, SUIMON_TOO_SMALL);
    let told = server.result(refused.request);
    assert_eq!((told.code, told.length), (SUIMON_ANSWERED, refused.length));
    assert_eq!(server.result(refused.request).code, SUIMON_UNKNOWN);
}

#[test]
fn an_address_that_a_proxy_has_written_its_way_is_no_fault_of_its_visitor() {
    let server = server(ONE_SESSION);
    let head = "GET / HTTP/1.1\r\nhost: shop\r\n\r\n";
    let enter = |address: &str| server.enter_head(head, address, 1 << 16);
    server.serve(let_in(&enter("203.0.113.7")));
    for same in ["203.0.113.7:5678", "[::ffff:203.0.113.7]:5678"] {
        server.serve(let_in(&enter(same)));
    }
    for unknown in ["unknown", "", "198.51.100.7:5678"] {
        let told = enter(unknown);
        assert_eq!(told.code, SUIMON_ANSWERED, "another visitor, for whom there is no place: {told:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let server = server("");
    let told = server.enter_head("GET / HTTP/1.1\r\n", "192.0.2.7", 1000);
    assert_eq!((told.code, &*told.text), (SUIMON_INVALID, "head: it does not end in an empty line"));
    // Of a long text comes what there is room for.
    let told = server.enter_head("GET / HTTP/1.1\r\n", "192.0.2.7", 4);
    assert_eq!((&*told.text, told.length), ("head", "head: it does not end in an empty line".len()));
    let request = let_in(&server.enter("/", ""));
    assert_eq!(server.answer(request, 99, "").text, "status: must be from 100 to 999");
    assert_eq!(server.answer(request, 70_000, "").code, SUIMON_INVALID);
    assert_eq!(server.answer(request, 200, "a: b").text, "lines: the last one has no end");
    server.serve(request);

    let mut number = 0_u64;
    // SAFETY: NULL is what is tried; all else is as it should be.
    unsafe {
        assert_eq!(suimon_server_end(ptr::null(), 1), SUIMON_INVALID);
        assert_eq!(suimon_server_end_without(ptr::null(), 1, 1), SUIMON_INVALID);
        assert_eq!(suimon_server_fail(ptr::null(), 1), SUIMON_INVALID);
        assert_eq!(suimon_server_streams(ptr::null(), 1), SUIMON_INVALID);
        assert_eq!(suimon_server_next(server.0, 0, &raw mut number, ptr::null_mut()), SUIMON_INVALID);
        let (code, why, _) = with_room(100, |out| suimon_server_next(server.0, 0, ptr::null_mut(), out));
        assert_eq!((code, &*why), (SUIMON_INVALID, "request: NULL"));
        let (code, why, _) = with_room(100, |out| {
            suimon_server_enter(server.0, ptr::null(), 5, b"::1".as_ptr(), 3, 0, &raw mut number, out)
        });
        assert_eq!((code, &*why), (SUIMON_INVALID, "head: NULL, or longer than there is memory"));
        suimon_server_close(ptr::null_mut());
        assert!(suimon_server_open(b"\xff".as_ptr(), 1, ptr::null_mut()).is_null());
        let (_, why, _) = with_room(1000, |out| {
            let opened = suimon_server_open_at(ptr::null(), 0, b"\xff".as_ptr(), 1, out);
            i32::from(opened.is_null())
        });
        assert!(why.starts_with("mount_path: invalid utf-8"), "{why}");
    }
    let bad = "GET /a%zz HTTP/1.1\r\n\r\n";
    // What a client may have done wrong has an answer.
    let told = server.enter_head(bad, "192.0.2.7", 1 << 16);
    assert!(told.code == SUIMON_ANSWERED && told.text.starts_with("HTTP/1.1 400 "), "{told:?}");
}

#[test]
fn settings_that_are_wrong_are_told_together_and_nothing_is_opened() {
    let why = open("gate.order = \"last\"\n[limits]\nheaders = 0\n").err().unwrap();
    assert!(why.contains("gate.order") && why.contains("limits.headers"), "{why}");
    assert!(why.contains("settings:1"), "{why}");
}

#[test]
fn the_waiting_page_of_a_process_below_a_path_links_to_what_answers_there() {
    let settings = quiet(WITH_LINE);
    let server = open_at(&settings, "/shop").unwrap();
    server.serve(let_in(&server.enter("/shop/", "cookie: JSESSIONID=AAAAAAAAAAAAAAAAAAAA\r\n")));
    let ask = |path: &str, lines: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: shop\r\naccept: text/html\r\n{lines}\r\n");
        answered(&server, &head)
    };
    let page = ask("/shop/", "");
    assert!(page.contains("action=\"/shop/.well-known/suimon/language\""), "{page}");
    assert!(page.contains("href=\"/shop/.well-known/suimon/refresh?off\""), "{page}");
    let from = "referer: http://shop/shop/page?a=1\r\n";
    let chosen = ask("/shop/.well-known/suimon/language?to=de", from);
    assert!(
        chosen.starts_with("HTTP/1.1 303 ") && chosen.contains("\r\nlocation: /shop/page?a=1\r\n"),
        "{chosen}"
    );
    assert!(chosen.contains("\r\nset-cookie: suimon-language=de; Path=/;"), "{chosen}");
    // From nowhere the way leads to the first page.
    let chosen = ask("/shop/.well-known/suimon/language?to=de", "");
    assert!(chosen.contains("\r\nlocation: /shop/\r\n"), "{chosen}");
    for path in ["/shop/.well-known/suimon/refresh?off", "/.well-known/suimon/refresh?off"] {
        let stopped = ask(path, "");
        assert!(stopped.starts_with("HTTP/1.1 204 "), "{path}: {stopped}");
    }

    // Visitors see another path, if the settings say so: a proxy makes it this one, or does not.
    let other = open_at(&format!("waiting_room.base_path = \"/other\"\n{settings}"), "/shop").unwrap();
    other.serve(let_in(&other.enter("/shop/third/.well-known/suimon/refresh?off", "")));
    for path in ["/shop", "/other", ""] {
        let told = other.enter(&format!("{path}/.well-known/suimon/refresh?off"), "");
        assert!(told.code == SUIMON_ANSWERED && told.text.starts_with("HTTP/1.1 204 "), "{path}: {told:?}");
    }
    let head = "GET /shop/ HTTP/1.1\r\nhost: shop\r\naccept: text/html\r\n\r\n";
    let page = answered(&other, head);
    assert!(page.contains("action=\"/other/.well-known/suimon/language\""), "{page}");

    let why = open_at(&settings, "shop").err().unwrap();
    assert!(why.contains("mount_path = \"shop\": must be"), "{why}");
}

#[test]
fn a_place_comes_by_the_code_that_the_process_puts_into_the_head() {
    let server = server(WITH_LINE);
    server.serve(let_in(&server.enter("/", "cookie: JSESSIONID=AAAAAAAAAAAAAAAAAAAA\r\n")));
    let ask = |target: &str, lines: &str| {
        let head = format!("{target} HTTP/1.1\r\nhost: shop\r\naccept: application/json\r\n{lines}\r\n");
        answered(&server, &head)
    };
    let ticket_in = |answer: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix("set-cookie: suimon-ticket-"));
        line.map(|line| format!("cookie: suimon-ticket-{}\r\n", line.split(';').next().unwrap()))
    };
    let ticket = ticket_in(&ask("GET /", "")).expect("a place");
    let given = ask("POST /.well-known/suimon/code", &ticket);
    let code = given.split("\"code\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(ticket_in(&ask("POST /.well-known/suimon/position?code=ZZZ-999", "")), None);
    assert_eq!(ticket_in(&ask("POST /.well-known/suimon/position", "")), None);
    let entered = ask(&format!("POST /.well-known/suimon/position?code={code}"), "");
    let there = ticket_in(&entered).unwrap_or_else(|| panic!("{entered}"));
    assert!(ask("GET /", &there).contains("\"position\":1,"), "{}", ask("GET /", &there));
}

#[test]
fn after_its_end_a_server_answers_closed() {
    let server = server(ONE_SLOT);
    let first = let_in(&server.enter("/hold", ""));
    let second = server.enter("/hold", "").request;
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| server.close());
        // What is under way goes on to its end.
        until("it drains", || {
            let told = server.enter("/other", "");
            match told.code {
                SUIMON_OK => server.serve(told.request),
                // It has come just as the drain began, and is to have no result below.
                SUIMON_WAITS => _ = server.leave(told.request),
                _ => {}
            }
            told.code == SUIMON_ANSWERED
        });
        server.serve(first);
        assert_eq!(let_in(&server.next(SOON)), second);
        // Whoever waits for results is told the end.
        let last = scope.spawn(|| server.next(SOON));
        server.serve(second);
        closing.join().unwrap();
        assert_eq!(last.join().unwrap().code, SUIMON_CLOSED);
    });
    assert_eq!(server.enter("/", "").code, SUIMON_CLOSED);
    assert_eq!(server.next(NOW).code, SUIMON_CLOSED);
    assert_eq!([server.end(first), server.leave(first), server.fail(first)], [SUIMON_CLOSED; 3]);
    assert_eq!([server.streams(first), server.end_without(first, NOW)], [SUIMON_CLOSED; 2]);
}

#[test]
fn what_is_not_ended_when_the_time_is_over_is_abandoned() {
    let server = server(ONE_SLOT);
    let first = let_in(&server.enter("/hold", ""));
    server.enter("/hold", "");
    server.close();
    assert_eq!(server.end(first), SUIMON_CLOSED);
}

#[test]
fn the_admin_listener_shows_what_the_state_says() {
    let settings = "lease.keys = \"none\"\nlearned.state = \"none\"\nadmin.listen = \"127.0.0.1:0\"\nlog.filter = \"warn\"\n";
    let server = open(settings).unwrap();
    server.serve(let_in(&server.enter("/", "")));
    let address = server.admin().unwrap();
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("/readyz").starts_with("HTTP/1.1 200 "));
    assert!(ask("/metrics").contains("suimon_route_ended_requests_total"));
    let shown = ask("/api/state");
    let shown: serde_json::Value = serde_json::from_str(shown.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(shown["routes"], server.state()["routes"]);
    assert_eq!(server.count("completed"), 1);
}
