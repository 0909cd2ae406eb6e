use super::*;
use std::collections::BTreeMap;
use suimon_admin::RouteState;
use suimon_admin::{Percentiles, PhpState, Rates, Refusals, Totals, Verdict, WaitState};

fn route(name: &str, offered: u64) -> RouteState {
    RouteState {
        name: name.to_string(),
        mode: Some("enforce".to_string()),
        limit: Some(3),
        in_flight: 3,
        orphaned: 1,
        suspended: 0,
        queued: 12,
        rate: 4.12,
        service_seconds: 0.412,
        offered,
        completed: 90,
        failed: 2,
        abandoned: 5,
        refused: 3,
        waiting_pages: 9,
        statuses: BTreeMap::new(),
        waited: Percentiles::default(),
        upstream: Percentiles { count: 97, p50: Some(0.4), p99: Some(0.9) },
        added: Percentiles::default(),
    }
}

fn state() -> State {
    State {
        config: None,
        overrides: Vec::new(),
        takes_commands: true,
        scaling: None,
        version: "9.9.9".to_string(),
        site: None,
        now: 1000.0,
        started_at: 900.0,
        verdict: Verdict {
            level: "busy".to_string(),
            situation: "line".to_string(),
            sentence:
                "140 visitors wait, 4–5 min for a newcomer; 1.0 begin per second, 35 sessions are under way."
                    .to_string(),
            since: 940.0,
        },
        uptime_seconds: 100.0,
        route_times_window_seconds: 60.0,
        ready: true,
        not_ready_because: None,
        sharing: None,
        recalled: Some(suimon_admin::RecalledState {
            age_seconds: 90.0,
            routes: 3,
            version: "9.9.8".to_string(),
        }),
        totals: Totals {
            requests: 120,
            bad_requests: 0,
            upstream_errors: 0,
            retried: 0,
            retries_withheld: 0,
            connections_open: 1,
            connections: 40,
            connections_displaced: 0,
            in_line: 140,
            held: 5,
            queued: 12,
            in_flight: 3,
            suspended: 0,
            sessions_active: 35,
            sessions_remembered: 43,
            refused: 3,
            waiting_pages: 728,
            polls: 1734,
            disconnects_waiting: 4,
            disconnects_upstream: 1,
            buffered_bytes: 0,
        },
        refusals: vec![Refusals {
            reason: "predicted_wait_too_long".into(),
            explanation: "the wait would be longer than most visitors stay".into(),
            count: 3,
        }],
        probing: Some("GET /search".to_string()),
        services: vec![],
        kinds: vec![KindState {
            name: "visit".to_string(),
            open: false,
            gate: "paced".to_string(),
            law: "flow".to_string(),
            sessions_max: None,
            interval_seconds: Some(0.62),
            held: 5,
            in_line: Some(140),
            active: 35,
            remembered: 43,
            newcomers: 470,
            admitted: 310,
            finished: 200,
            silent: 71,
            abandoned: 3,
            failed: 1,
            reopened: 0,
            refused: 2,
            waiting_pages: 728,
            polls: 1734,
            last_10s: Rates { seconds: 10.0, admitted: 1.0, ..Rates::default() },
            last_minute: Rates { seconds: 60.0, finished: 0.9, silent: 0.2, ..Rates::default() },
            admission_rate_per_second: Some(1.61),
            wait: WaitState {
                low_seconds: Some(250.0),
                high_seconds: Some(290.0),
                held_seconds: Some(4.2),
                waited_count: 40,
                waited_window_seconds: 300.0,
                waited_p50_seconds: Some(194.0),
                waited_p95_seconds: Some(290.0),
            },
            line: None,
            patience_seconds: Some(30.0),
            patience_source: "learned".to_string(),
        }],
        routes: vec![route("other", 0), route("GET /search", 112)],
        ungated: route("ungated", 0),
        nodes: vec![NodeState {
            address: "http://127.0.0.1:8080".to_string(),
            in_process: false,
            status: "up".to_string(),
            reason: "checks_passed".to_string(),
            explanation: "health checks pass".to_string(),
            for_seconds: 99.0,
            ejected_for_seconds: None,
            slow_start_for_seconds: None,
            in_flight: 3,
            share: 1.0,
            sessions: None,
            released_sessions: None,
            picked: 100,
            failures_in_a_row: 0,
            connections: 5,
            report: Some(suimon_admin::NodeReportState {
                source: "agent".to_string(),
                load: 1.5,
                age_seconds: 0.05,
                is_current: true,
                run_queue: Some(4),
                run_queue_mean_100ms: Some(3.0),
                run_queue_mean_1s: Some(2.5),
                processors: Some(2),
                pressure: Some(0.25),
                in_flight: None,
                every_seconds: Some(0.1),
            }),
            php: Some(PhpState { active: 4, idle: 1, total: 5, listen_queue: 7, max_children_reached: 2 }),
        }],
        load_reports: None,
        pools: vec![],
        decisions: (0_u32..30)
            .map(|at| DecisionState {
                id: u64::from(at) + 1,
                at: 900.0 + f64::from(at),
                for_route: None,
                at_seconds: f64::from(at),
                subject: "route".to_string(),
                name: "GET /search".to_string(),
                quantity: "limit".to_string(),
                old: Some(2.0),
                new: Some(3.0),
                reason: "trial_better".to_string(),
                explanation: "paired windows favour the new limit".to_string(),
                signals: BTreeMap::from([("gain".to_string(), Some(0.1234))]),
            })
            .collect(),
    }
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| line.written(usize::MAX, false) + "\n").collect()
}

fn draw(state: &State, decisions: usize) -> String {
    text(&whole(state, &[], decisions, usize::MAX))
}

#[test]
fn the_picture_says_what_is_so_and_why() {
    let text = draw(&state(), 2);
    for wanted in [
        "suimon 9.9.9, up 100 s, ready\n",
        "LINE: 140 visitors wait, 4–5 min for a newcomer; 1.0 begin per second, 35 sessions are under way. (for 60 s)",
        "140 in line, 5 held, 12 queued, 3 in the application; 1 connection; 120 requests in all",
        "4 client disconnects while the request was held or queued",
        "one in 620 ms      140     5      35  1.0 of 1.6      1.1  4–5 min",
        "310 admitted: 271 ended, 3 abandoned, 1 failed; 2 refused",
        "waited in line: half 3 min, 95 of 100 5 min; 728 waiting pages",
        "held for up to 4.2 s; patience 30 s (learned)",
        "5 idle connections kept open",
        "health checks pass; reported load 1.50 per processor, pressure 25 %; php-fpm: 4 of 5 children busy, 7 queued, 2 times at its maximum",
        "in line: has a position in the waiting room",
        "limit under trial",
        "3  the wait would be longer than most visitors stay",
        "limit 2 to 3  paired windows favour the new limit (gain 0.123)",
        "71 s ago",
        "up  3 in flight",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    assert_eq!(text.matches("limit 2 to 3").count(), 2, "{text}");
    assert!(text.find("71 s ago").unwrap() < text.find("72 s ago").unwrap(), "the latest first\n{text}");
    assert!(!text.contains("  other"), "a route nobody asked for is not shown\n{text}");
}

#[test]
fn connections_displaced_and_requests_suspended_are_named_where_there_are_any() {
    let mut state = state();
    let (displaced, suspended) = ("closed to make room for others", "suspended: no slot");
    let text = draw(&state, 0);
    assert!(!text.contains(displaced) && !text.contains(suspended), "{text}");
    (state.totals.connections_displaced, state.totals.suspended) = (5, 1);
    let text = draw(&state, 0);
    assert!(text.contains(&format!("5 connections {displaced}")), "{text}");
    assert!(text.contains(&format!("1 request {suspended}")), "{text}");
}

#[test]
fn a_gateway_that_is_not_ready_says_so_first() {
    let mut state = state();
    state.not_ready_because = Some("the gateway is shutting down".to_string());
    assert!(draw(&state, 0).lines().next().unwrap().ends_with("NOT READY: the gateway is shutting down"));
}

#[test]
fn a_gateway_nobody_came_to_says_that() {
    let mut state = state();
    state.routes.clear();
    assert!(draw(&state, 5).contains("no gated request so far"));
}

#[test]
fn many_routes_are_cut_to_the_busiest() {
    let mut state = state();
    state.routes = (0..50).map(|at| route(&format!("GET /r{at}"), at + 1)).collect();
    let text = draw(&state, 0);
    assert!(
        text.contains("GET /r49") && !text.contains("GET /r1 ") && text.contains("and 30 quieter ones"),
        "{text}"
    );
}

/// Returns what a terminal of this size shows.
fn grid(state: &State, columns: usize, lines: usize) -> String {
    let picture = fitted(state, &[], 10, Size { columns, lines });
    assert!(picture.len() <= lines, "{} lines", picture.len());
    assert!(picture.iter().all(|line| !line.written(columns, true).is_empty() || line.is_empty()));
    picture.iter().map(|line| line.written(columns - 1, false) + "\n").collect()
}

/// Returns a state with more of everything than a small terminal has room for.
fn crowded() -> State {
    let mut state = state();
    state.routes = (0..50).map(|at| route(&format!("GET /departments/{at}"), at + 1)).collect();
    state.routes.push(RouteState { failed: 7, queued: 40, ..route("GET /検索/{水門}", 3) });
    state.routes.push(RouteState { queued: 30, ..route("GET /a\u{1b}[2J/departments/with/a/long/name", 3) });
    let node = state.nodes[0].clone();
    state.nodes = (0..5)
        .map(|at| NodeState {
            address: format!("http://10.0.0.{at}:8080"),
            php: None,
            report: None,
            ..node.clone()
        })
        .collect();
    state.nodes[3].status = "ejected".to_string();
    state.nodes[3].explanation = "5 requests in a row failed".to_string();
    state.nodes[3].ejected_for_seconds = Some(12.0);
    state.decisions[29].explanation =
        "fewer sessions end than before, so the limit goes back to what it was".into();
    state
}

#[test]
fn a_terminal_of_80_columns_and_30_lines_is_filled_and_not_exceeded() {
    assert_eq!(grid(&crowded(), 80, 30), include_str!("grids/80x30.txt"));
}

#[test]
fn a_terminal_of_40_columns_and_10_lines_shows_the_verdict_and_what_hurts() {
    assert_eq!(grid(&crowded(), 40, 10), include_str!("grids/40x10.txt"));
}

#[test]
fn of_many_kinds_those_for_which_most_wait_are_shown() {
    let mut state = crowded();
    let kind = state.kinds[0].clone();
    state.kinds = (0..9).map(|at| KindState { name: format!("kind-{at}"), ..kind.clone() }).collect();
    state.kinds[7].in_line = Some(900);
    let grid = grid(&state, 80, 24);
    let first = grid.lines().skip_while(|line| !line.starts_with("  kind ")).nth(1).unwrap();
    assert!(first.starts_with("  kind-7"), "{grid}");
    assert!(grid.contains("more kinds of session"), "{grid}");
}

#[test]
fn nothing_is_cut_where_there_is_room() {
    let mut state = state();
    state.nodes[0].php = None;
    let grid = grid(&state, 140, 60);
    assert!(!grid.contains('…') && !grid.contains("no room") && !grid.contains("more routes"), "{grid}");
    assert!(grid.contains("(gain 0.123)"), "{grid}");
}

#[test]
fn an_application_with_its_gateway_inside_is_in_this_process() {
    let mut state = state();
    state.nodes[0].address = "http://this-process:80".to_owned();
    state.nodes[0].in_process = true;
    for shown in [text(&whole(&state, &[], 10, 100)), grid(&state, 100, 60)] {
        assert!(shown.contains("\nApplication\n  in this process\n"), "{shown}");
        assert!(!shown.contains("this-process"), "{shown}");
    }
}

#[test]
fn whatever_the_size_nothing_wraps_and_the_verdict_is_shown() {
    let state = crowded();
    let mut down = crowded();
    let each = "http://127.0.0.1:19011 is down: health checks failed in a row; ".repeat(12);
    down.not_ready_because = Some(format!("no node of the application is up ({each})"));
    for columns in [20, 40, 60, 80, 100, 120, 200] {
        for lines in [3, 5, 10, 20, 24, 30, 40, 100] {
            let grid = grid(&state, columns, lines);
            assert!(grid.lines().all(|line| width(line) < columns), "{columns}x{lines}\n{grid}");
            assert!(grid.contains("LINE: "), "{columns}x{lines}\n{grid}");
            let grid = self::grid(&down, columns, lines);
            assert!(grid.lines().nth(1).unwrap().starts_with("LINE: "), "{columns}x{lines}\n{grid}");
        }
    }
    for columns in [40, 80, 120] {
        let whole = whole(&state, &[], 10, columns);
        // A name of a route with its limit has to be somewhere, and sentences are wrapped.
        let wide = whole.iter().filter(|line| line.width() > columns).count();
        assert_eq!(wide, 0, "{columns}: {}", text(&whole));
    }
}

#[test]
fn nobody_waits_and_nothing_is_said_twice_on_a_calm_day() {
    let mut state = state();
    state.verdict.situation = "application_down".to_string();
    state.verdict.level = "critical".to_string();
    state.decisions.clear();
    state.refusals.clear();
    let grid = grid(&state, 80, 30);
    assert!(grid.contains("APPLICATION DOWN: ") && !grid.contains("Refused") && !grid.contains("decisions"));
}

#[test]
fn of_several_sites_it_is_said_which_one_is_seen_and_how_the_others_are() {
    let mut state = state();
    assert!(!draw(&state, 0).contains("site"), "nothing of it where there is one");
    state.site = Some("main".to_string());
    let site = |name: &str| SiteState {
        name: name.to_string(),
        serves: Vec::new(),
        verdict: state.verdict.clone(),
        waiting: 140,
        in_flight: 3,
        ready: true,
        not_ready_because: None,
    };
    let sites: Vec<SiteState> = ["main", "tickets", "a", "b", "c", "d"].map(site).into();
    let whole = text(&whole(&state, &sites, 0, usize::MAX));
    assert!(whole.starts_with("Sites\n  main     LINE: 140 visitors wait, 4–5 min"), "{whole}");
    assert!(whole.contains("\n\nsuimon 9.9.9, site main, up 100 s, ready\n"), "{whole}");
    state.routes = (0..50).map(|at| route(&format!("GET /{at}"), at + 1)).collect();
    let lines = fitted(&state, &sites, 10, Size { columns: 80, lines: 40 });
    assert!(lines.len() <= 40 && text(&lines).contains("  and 2 more"), "{}", text(&lines));
    assert!(text(&lines).contains("more routes"), "{}", text(&lines));
    let mut sites = sites;
    sites[3].verdict.level = "critical".to_string();
    sites[3].verdict.situation = "application_down".to_string();
    let lines = text(&fitted(&state, &sites, 10, Size { columns: 40, lines: 10 }));
    assert!(lines.starts_with("b APPLICATION DOWN\nsuimon 9.9.9, site main"), "{lines}");
}

#[test]
fn a_gate_is_told_by_what_happens_to_the_next() {
    let mut kind = state().kinds.remove(0);
    let mut told = |gate: &str, interval| {
        (kind.gate, kind.interval_seconds, kind.sessions_max) = (gate.to_string(), interval, Some(3));
        kind.remembered = 3;
        super::gate(&kind)
    };
    assert_eq!(told("full", Some(0.0)), "3 of 3 in");
    assert_eq!(
        [told("paced", Some(0.0)), told("open", Some(0.0)), told("shut", None)],
        ["in turn", "open", "shut"]
    );
}

#[test]
fn times_are_told_in_the_unit_people_would_use() {
    let told: Vec<String> =
        [0.0, 0.00002, 0.0123, 0.412, 4.23, 61.0, 600.0, 90_000.0].into_iter().map(time).collect();
    assert_eq!(told, ["0", "20 us", "12.3 ms", "412 ms", "4.2 s", "61 s", "10 min", "25.0 h"]);
}

#[test]
fn a_pool_of_workers_is_shown_with_its_last_move_and_what_it_lacks() {
    let mut state = state();
    assert!(!draw(&state, 0).contains("Workers"), "there is none");
    let moved = suimon_admin::PoolChangeState {
        id: 1,
        at: 988.0,
        what: "wanted".to_string(),
        worker: None,
        old: Some(2),
        new: Some(3),
        reason: Some("requests wait, and no worker is idle".to_string()),
    };
    state.pools = vec![suimon_admin::PoolState {
        name: "shop".to_string(),
        wanted: 3,
        fixed: Some(3),
        ready: 2,
        idle: 1,
        busy: 1,
        starting: 1,
        memory_bytes: 20 << 20,
        start_seconds: Some(0.04),
        unhealthy: Some("6 starts in a row failed".to_string()),
        last_move: Some(moved),
        ..suimon_admin::PoolState::default()
    }];
    let text = draw(&state, 0);
    for wanted in [
        "Workers\n  pool   wanted  ready  idle  busy  starting  stopping    memory    start\n",
        "  shop  3 fixed      2     1     1         1         0  20.0 MiB  40.0 ms\n",
        "  UNHEALTHY: 6 starts in a row failed\n",
        "  last move, 12 s ago: 2 to 3, requests wait, and no worker is idle\n",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}
