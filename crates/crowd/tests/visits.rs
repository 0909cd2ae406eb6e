//! The crowd against real sockets: what it sends, how it reads responses, and what it reports.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod support;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_crowd::{CrowdError, Ended, Options, Report, run};
use suimon_workload::{
    Arrivals, Body, Capture, InLine, Journey, OnFailure, OnRefusal, Patience, Phase, Retry, Source, Spacing,
    Step, Think, Workload,
};
use support::{Reply, Server, page, status};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(150);

/// Returns a workload of one user with one session and no think time. The user's patience is longer
/// than the test's, and the user gives up at the first failure.
fn workload(steps: Vec<Step>) -> Workload {
    let journey = Journey {
        name: "visit".into(),
        weight: 1.0,
        users: None,
        steps,
        think: Think::Constant(Duration::ZERO),
        patience: Patience::Constant(LONG),
        on_failure: OnFailure::GiveUp,
        leave: 0.0,
        on_refusal: OnRefusal { retries_max: 3, wait_default: SHORT, wait_max: LONG },
        in_line: InLine::default(),
    };
    Workload { kinds: vec![Arc::new(journey)], arrivals: closed(1, Some(1)), returning: false, seed: 7 }
}

fn closed(users: u32, sessions_each: Option<u32>) -> Arrivals {
    Arrivals::Closed {
        users,
        start_over: Duration::ZERO,
        spacing: Spacing::Even,
        sessions_each,
        pause: Think::Constant(Duration::ZERO),
    }
}

fn gets(paths: &[&str]) -> Vec<Step> {
    paths.iter().map(|path| Step::get(path.trim_start_matches('/'), path)).collect()
}

fn post(path: &str, fields: &[(&str, &str)]) -> Step {
    let fields = fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Step { method: "POST".into(), body: Body::Form(fields), ..Step::get(path.trim_start_matches('/'), path) }
}

fn journey(workload: &mut Workload) -> &mut Journey {
    Arc::make_mut(&mut workload.kinds[0])
}

fn options(url: String, workload: Workload) -> Options {
    Options { base_url: url, workload, seed: None, warmup: Duration::ZERO, measure: None, progress: None }
}

fn visit(server: &Server, workload: Workload) -> Report {
    let report = run(options(server.url(), workload), std::future::pending()).unwrap();
    assert_eq!(report.ended, Ended::AllDone);
    assert_adds_up(&report);
    report
}

fn assert_adds_up(report: &Report) {
    let failures = report.first_step_failures + report.mid_session_failures;
    assert_eq!(report.failures_by_step.values().sum::<u64>(), failures, "{report:#?}");
    assert_eq!(report.failures_by_kind.values().sum::<u64>(), failures, "{report:#?}");
    let ended = report.sessions_completed + report.sessions_gave_up;
    assert_eq!(report.sessions_begun, ended + report.sessions_under_way);
}

fn kind(report: &Report, kind: &str) -> u64 {
    report.failures_by_kind.get(kind).copied().unwrap_or(0)
}

#[test]
fn a_visit_keeps_its_connection_its_cookies_and_its_token() {
    let server = Server::start(|request, _| match request.path.as_str() {
        "/login" => status(200, &[("Set-Cookie", "sid=s1; HttpOnly; Path=/"), ("Set-Cookie", "old=1")]),
        "/search?q=tea" => Reply::Answer {
            status: 200,
            headers: vec![("Set-Cookie", "old=; Max-Age=0".into())],
            body: "<form><input type=hidden name=token value=\"a&amp;b\"></form>".into(),
        },
        _ => page("Thank you"),
    });
    let mut search = Step::get("search", "/search?q=tea");
    search.captures = vec![Capture { name: "token".into(), source: Source::Input("token".into()) }];
    let mut buy = post("/buy", &[("item", "{user}-{session}"), ("token", "{token}")]);
    buy.expect.texts = vec!["Thank".into()];
    let report = visit(&server, workload(vec![post("/login", &[("user", "u")]), search, buy]));

    assert_eq!((report.sessions_completed, report.requests, report.wasted_requests), (1, 3, 0));
    let seen = server.seen();
    assert_eq!(server.lines(), ["POST /login", "GET /search?q=tea", "POST /buy"]);
    assert!(seen.iter().all(|request| request.connection == 0), "one connection is enough");
    assert_eq!(seen[0].header("cookie"), None);
    assert_eq!(seen[1].header("cookie"), Some("sid=s1; old=1"));
    assert_eq!(seen[2].header("cookie"), Some("sid=s1"), "the deleted cookie is gone");
    assert_eq!(seen[2].body, "item=1-1&token=a%26b");
    assert_eq!(seen[2].header("host"), Some(server.address.to_string().as_str()));
    assert_eq!(report.session_time.count, 1);
    assert_eq!(report.first_step_wait.count, 1);
}

#[test]
fn a_base_path_stands_before_every_path() {
    let server = Server::start(|_, _| page(""));
    let report =
        run(options(server.url() + "/app/", workload(gets(&["/a"]))), std::future::pending()).unwrap();
    assert_eq!((report.sessions_completed, server.lines()), (1, vec!["GET /app/a".to_owned()]));
}

#[test]
fn each_session_is_a_stranger_unless_visitors_return() {
    for returning in [false, true] {
        let server = Server::start(|_, _| status(200, &[("Set-Cookie", "sid=1")]));
        let mut workload = workload(gets(&["/a"]));
        workload.arrivals = closed(1, Some(3));
        workload.returning = returning;
        visit(&server, workload);
        let seen = server.seen();
        let cookies: Vec<bool> = seen.iter().map(|request| request.header("cookie").is_some()).collect();
        let connections: Vec<usize> = seen.iter().map(|request| request.connection).collect();
        if returning {
            assert_eq!((cookies, connections), (vec![false, true, true], vec![0, 0, 0]));
        } else {
            assert_eq!((cookies, connections), (vec![false; 3], vec![0, 1, 2]));
        }
    }
}

#[test]
fn a_visitor_out_of_patience_closes_his_connection_and_goes_back() {
    let server = Server::start(|request, before| match request.path.as_str() {
        "/c" if before == 2 => Reply::Hang,
        _ => page(""),
    });
    let mut workload = workload(gets(&["/a", "/b", "/c"]));
    let journey = journey(&mut workload);
    journey.steps[2].patience = Some(Patience::Constant(SHORT));
    journey.on_failure = OnFailure::Retry(Retry {
        from: 1,
        from_after_error: 0,
        retries_max: 5,
        pause_after_timeout: Duration::ZERO,
        pause_after_error: SHORT,
    });
    let report = visit(&server, workload);

    assert_eq!(server.lines(), ["GET /a", "GET /b", "GET /c", "GET /b", "GET /c"]);
    let seen = server.seen();
    let left = server.client_left();
    let waited = left.duration_since(seen[2].at);
    assert!(waited >= SHORT - Duration::from_millis(20) && waited < LONG / 4, "he waited {waited:?}");
    assert_ne!(seen[3].connection, seen[2].connection);
    assert_eq!((report.mid_session_failures, report.first_step_failures), (1, 0));
    assert_eq!((kind(&report, "timeout"), report.failures_by_step["c"]), (1, 1));
    assert_eq!((report.sessions_completed, report.sessions_failed_inside), (1, 1));
    assert_eq!(report.wasted_requests, 1, "/b had to be asked again");
}

#[test]
fn patience_covers_the_whole_answer() {
    let server = Server::start(|_, _| Reply::HangHalfway);
    let mut workload = workload(gets(&["/a"]));
    journey(&mut workload).patience = Patience::Constant(SHORT);
    let report = visit(&server, workload);
    assert_eq!(kind(&report, "timeout"), 1);
    server.client_left();
}

#[test]
fn half_an_answer_is_none() {
    let server = Server::start(|_, _| Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"));
    let report = visit(&server, workload(gets(&["/a"])));
    assert_eq!((kind(&report, "connection_lost"), report.first_step_failures), (1, 1));
}

#[test]
fn a_refusal_is_waited_out_as_told_and_is_no_failure() {
    let server = Server::start(|_, before| match before {
        0 => status(503, &[("Retry-After", "1")]),
        _ => page(""),
    });
    let report = visit(&server, workload(gets(&["/a"])));
    let seen = server.seen();
    let waited = seen[1].at.duration_since(seen[0].at);
    assert!(waited >= Duration::from_millis(980), "{waited:?}");
    assert_eq!((report.refusals, report.first_step_failures, report.sessions_completed), (1, 0, 1));
    assert!(report.first_step_wait.min_s >= 0.98, "the wait shows");
    assert_eq!(seen[0].connection, seen[1].connection, "a refusal is an answer; the connection is kept");
}

#[test]
fn a_503_without_a_time_is_a_failure_and_asked_again_after_the_default() {
    let server = Server::start(|_, before| if before == 0 { status(503, &[]) } else { page("") });
    let report = visit(&server, workload(gets(&["/a"])));
    let seen = server.seen();
    assert!(seen[1].at.duration_since(seen[0].at) >= SHORT - Duration::from_millis(20));
    assert_eq!((report.refusals, report.first_step_failures, report.sessions_completed), (0, 1, 1));
    assert_eq!(kind(&report, "status_503"), 1);
}

#[test]
fn a_refusal_inside_a_session_is_a_failure_of_it() {
    let server = Server::start(|request, before| match request.path.as_str() {
        "/b" if before == 1 => status(429, &[("Retry-After", "0")]),
        _ => page(""),
    });
    let report = visit(&server, workload(gets(&["/a", "/b"])));
    assert_eq!(server.lines(), ["GET /a", "GET /b", "GET /b"]);
    assert_eq!((report.refusals, report.mid_session_failures, report.wasted_requests), (0, 1, 0));
    assert_eq!(kind(&report, "refused"), 1);
}

#[test]
fn the_first_failures_are_reported_with_what_was_answered() {
    let oh = "<html><head><style>p { }</style></head><body><p>Out of <b>te\u{1b}a</b></p></body>";
    let server = Server::start(move |request, before| match request.path.as_str() {
        "/b" if before < 31 => Reply::Answer { status: 500, headers: Vec::new(), body: oh.repeat(2000) },
        _ => page("good"),
    });
    let mut workload = workload(gets(&["/a", "/b"]));
    journey(&mut workload).on_failure = OnFailure::Retry(Retry {
        from: 1,
        from_after_error: 1,
        retries_max: 30,
        pause_after_timeout: Duration::ZERO,
        pause_after_error: Duration::ZERO,
    });
    let report = visit(&server, workload);
    assert_eq!((report.mid_session_failures, report.sessions_completed), (30, 1));
    assert_eq!(report.first_failures.len(), 20, "they are bounded");
    let first = &report.first_failures[0];
    assert_eq!((first.step.as_str(), first.failure.as_str()), ("b", "status_500"));
    assert!(first.said.starts_with("Out of tea Out of tea") && first.said.len() == 400, "{}", first.said);
    assert_eq!(report.table(100).matches("b at 0.").count(), 3, "{}", report.table(100));
}

#[test]
fn refusals_without_end_are_given_up() {
    let server = Server::start(|_, _| status(503, &[("Retry-After", "0")]));
    let report = visit(&server, workload(gets(&["/a"])));
    assert_eq!((report.refusals, report.sessions_gave_up, report.requests), (4, 1, 4));
}

#[test]
fn errors_are_told_apart() {
    for (reply, wanted) in [
        ("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "status_404"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nBye", "text_missing"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello", "value_missing"),
        ("nonsense\r\n\r\n", "bad_answer"),
        ("", "connection_lost"),
    ] {
        let server =
            Server::start(move |_, _| if reply.is_empty() { Reply::Close } else { Reply::Bytes(reply) });
        let mut step = Step::get("a", "/a");
        step.expect.texts = vec!["Hello".into()];
        step.captures = vec![Capture { name: "x".into(), source: Source::Header("X".into()) }];
        let report = visit(&server, workload(vec![step]));
        assert_eq!((kind(&report, wanted), report.sessions_gave_up), (1, 1), "{wanted}: {report:#?}");
    }
}

#[test]
fn nobody_there_is_a_failure_to_connect() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report =
        run(options(format!("http://{free}"), workload(gets(&["/a"]))), std::future::pending()).unwrap();
    assert_eq!((kind(&report, "not_connected"), report.first_step_failures), (1, 1));
    assert_eq!(report.sessions_gave_up, 1);
}

#[test]
fn a_kept_connection_that_died_is_replaced_once_as_browsers_do() {
    let server = Server::start(|request, _| match (request.path.as_str(), request.connection) {
        ("/b", 0) => Reply::Close,
        _ => page(""),
    });
    let report = visit(&server, workload(gets(&["/a", "/b"])));
    assert_eq!(server.lines(), ["GET /a", "GET /b", "GET /b"]);
    assert_eq!((report.sessions_completed, report.reconnects, report.mid_session_failures), (1, 1, 0));

    let server = Server::start(|request, _| if request.path == "/b" { Reply::Close } else { page("") });
    let report = visit(&server, workload(gets(&["/a", "/b"])));
    assert_eq!((report.reconnects, report.mid_session_failures), (1, 1), "once, not for ever");
    assert_eq!(kind(&report, "connection_lost"), 1);
}

#[test]
fn a_connection_closed_while_thinking_is_simply_replaced() {
    let server = Server::start(|_, before| if before == 0 { Reply::AnswerAndClose } else { page("") });
    let mut workload = workload(gets(&["/a", "/b"]));
    journey(&mut workload).think = Think::Constant(SHORT);
    let report = visit(&server, workload);
    assert_eq!((report.sessions_completed, report.requests, server.lines().len()), (1, 2, 2));
    assert_eq!(report.reconnects, 0, "nothing had to be sent twice");
}

#[test]
fn a_body_too_long_to_look_into_is_a_failure_but_can_be_passed_by() {
    let long = || page(&"x".repeat(5 * 1024 * 1024));
    let server = Server::start(move |_, _| long());
    let mut looking = gets(&["/a"]);
    looking[0].expect.texts = vec!["y".into()];
    assert_eq!(kind(&visit(&server, workload(looking)), "answer_too_long"), 1);
    assert_eq!(visit(&server, workload(gets(&["/a"]))).sessions_completed, 1);
}

#[test]
fn the_run_ends_on_time_with_sessions_under_way() {
    let server = Server::start(|_, _| Reply::Hang);
    let mut workload = workload(gets(&["/a"]));
    workload.arrivals = closed(3, None);
    let options = Options { measure: Some(SHORT), ..options(server.url(), workload) };
    let report = run(options, std::future::pending()).unwrap();
    assert_eq!((report.ended, report.sessions_under_way, report.sessions_completed), (Ended::TimeOver, 3, 0));
    assert_adds_up(&report);
    for _ in 0..3 {
        server.client_left();
    }
}

#[test]
fn the_warm_up_is_played_but_not_measured() {
    let server = Server::start(|_, _| page(""));
    let mut workload = workload(gets(&["/a"]));
    workload.arrivals = closed(1, Some(5));
    let options = Options { warmup: LONG, ..options(server.url(), workload) };
    let report = run(options, std::future::pending()).unwrap();
    assert_eq!((report.requests, report.sessions_completed, server.lines().len()), (0, 0, 5));
    assert_eq!(report.measured_s.to_bits(), 0f64.to_bits());
    assert_eq!(report.series.iter().map(|second| second.completed).sum::<u32>(), 5);
}

#[test]
fn a_run_told_to_stop_stops() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = Mutex::new(Some(tell));
    let server = Server::start(move |_, _| {
        if let Some(tell) = tell.lock().unwrap().take() {
            let _ = tell.send(());
        }
        Reply::Hang
    });
    let options = options(server.url(), workload(gets(&["/a"])));
    let report = run(options, async { drop(told.await) }).unwrap();
    assert_eq!((report.ended, report.sessions_under_way), (Ended::Interrupted, 1));
    server.client_left();
}

#[test]
fn progress_is_told_each_second() {
    let server = Server::start(|_, _| Reply::Hang);
    let (tell, told) = channel();
    let options = Options {
        measure: Some(Duration::from_millis(1300)),
        progress: Some(Box::new(move |progress| tell.send(progress.clone()).unwrap())),
        ..options(server.url(), workload(gets(&["/a"])))
    };
    run(options, std::future::pending()).unwrap();
    let progress = told.recv().unwrap();
    assert!(progress.measuring && progress.left_s.is_some_and(|left| left < 0.4));
    assert_eq!(
        (progress.users, progress.sessions_under_way, progress.in_flight, progress.requests),
        (1, 1, 1, 1)
    );
    assert!(!progress.to_string().contains('\n'), "it is one line");
}

#[test]
fn users_beyond_the_bound_of_an_open_crowd_are_not_started() {
    let server = Server::start(|_, _| Reply::Hang);
    let mut workload = workload(gets(&["/a"]));
    let phase = Phase { lasts: Duration::from_millis(500), from_per_s: 20.0, to_per_s: 20.0 };
    workload.arrivals = Arrivals::Open { phases: vec![phase], spacing: Spacing::Even, users_max: 4 };
    let options = Options { measure: Some(Duration::from_millis(700)), ..options(server.url(), workload) };
    let report = run(options, std::future::pending()).unwrap();
    assert_eq!((report.sessions_begun, report.users_not_started), (4, 6));
}

#[test]
fn the_same_seed_plays_the_same_sessions() {
    let play = |seed: u64| {
        let server = Server::start(|_, _| page(""));
        let mut workload = workload(gets(&["/a"]));
        let other =
            Journey { name: "other".into(), steps: gets(&["/b", "/c"]), ..(*workload.kinds[0]).clone() };
        workload.kinds.push(Arc::new(other));
        workload.arrivals = closed(1, Some(30));
        let options = Options { seed: Some(seed), ..options(server.url(), workload) };
        let report = run(options, std::future::pending()).unwrap();
        assert!(report.failures_by_step.contains_key("other/c"), "several kinds are told apart");
        assert_eq!(report.seed, seed);
        server.lines()
    };
    assert_eq!(play(1), play(1));
    assert_ne!(play(1), play(2));
}

#[test]
fn a_report_survives_json_and_can_be_read() {
    let server = Server::start(|request, before| match request.path.as_str() {
        "/a" if before == 0 => status(500, &[]),
        _ => page(""),
    });
    let mut workload = workload(gets(&["/a", "/b"]));
    workload.arrivals = closed(1, Some(4));
    let report = visit(&server, workload);
    let back: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!((back.sessions_completed, &back.failures_by_step), (3, &report.failures_by_step));
    let table = report.table(100);
    for wanted in ["sessions completed              3", "status_500 1", "first-step failures             1"] {
        assert!(table.contains(wanted), "{wanted} in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn what_cannot_begin_says_why() {
    let refused = |url: &str, workload: Workload| {
        run(options(url.into(), workload), std::future::pending()).expect_err("it cannot begin")
    };
    let https = refused("https://127.0.0.1", workload(gets(&["/a"])));
    assert!(https.is_usage() && https.to_string().contains("does not speak TLS"), "{https}");
    let mut endless = workload(gets(&["/a"]));
    endless.arrivals = closed(1, None);
    assert!(matches!(refused("http://127.0.0.1", endless), CrowdError::Endless));
    assert!(matches!(refused("http://127.0.0.1", workload(Vec::new())), CrowdError::NothingToDo));
    let mut many = workload(gets(&["/a"]));
    many.arrivals = closed(u32::MAX, Some(1));
    let many = refused("http://127.0.0.1", many);
    assert!(!many.is_usage() && many.to_string().contains("play fewer users"), "{many}");
}

#[test]
fn many_users_are_held_at_once() {
    let server = Server::start(|_, _| page("ok"));
    let mut workload = workload(gets(&["/a", "/b", "/c"]));
    journey(&mut workload).think = Think::Exponential { mean: Duration::from_millis(20) };
    workload.arrivals = closed(100, Some(3));
    let began = Instant::now();
    let report = visit(&server, workload);
    assert_eq!((report.sessions_completed, report.requests), (300, 900));
    assert!(began.elapsed() < LONG);
    let under_way = report.series.iter().map(|second| second.begun).sum::<u32>();
    assert_eq!(under_way, 300);
}
