use super::*;
use std::collections::BTreeMap;
use suimon_admin::{Percentiles, Refusals, Totals};

fn route(name: &str, offered: u64) -> RouteState {
    RouteState {
        name: name.to_string(),
        mode: Some("enforce".to_string()),
        limit: Some(3),
        in_flight: 3,
        ghosts: 1,
        waiting: 12,
        rate: 4.12,
        service_seconds: 0.412,
        offered,
        completed: 90,
        failed: 2,
        abandoned: 5,
        refused: 3,
        statuses: BTreeMap::new(),
        waited: Percentiles::default(),
        upstream: Percentiles { count: 97, p50: Some(0.4), p99: Some(0.9) },
        added: Percentiles::default(),
    }
}

fn state() -> State {
    State {
        version: "9.9.9".to_string(),
        uptime_seconds: 100.0,
        ready: true,
        not_ready_because: None,
        recalled: Some(suimon_admin::RecalledState { age_seconds: 90.0, routes: 3, by: "9.9.8".to_string() }),
        totals: Totals {
            requests: 120,
            bad_requests: 0,
            upstream_errors: 0,
            connections_open: 8,
            connections: 40,
            waiting: 12,
            in_flight: 3,
            sessions: 20,
            gone_while_waiting: 4,
            ghosts: 1,
            buffered_bytes: 0,
        },
        refusals: vec![Refusals {
            reason: "wait_too_long".into(),
            explanation: "the wait would be longer than most visitors stay".into(),
            count: 3,
        }],
        probing: Some("GET /search".to_string()),
        kinds: vec![KindState {
            name: "visit".to_string(),
            open: false,
            interval_seconds: Some(0.62),
            waiting: 12,
            in_line: Some(140),
            active: 35,
            admitted: 310,
            refused: 20,
            rate: 1.61,
            predicted_wait_seconds: Some(4.2),
            patience_seconds: Some(30.0),
            patience_source: "learned".to_string(),
        }],
        routes: vec![route("other", 0), route("GET /search", 112)],
        ungated: route("ungated", 0),
        nodes: vec![NodeState {
            address: "http://127.0.0.1:8080".to_string(),
            status: "up".to_string(),
            reason: "checks_passed".to_string(),
            explanation: "health checks pass".to_string(),
            for_seconds: 99.0,
            ejected_for_seconds: None,
            in_flight: 3,
            picked: 100,
            failures_in_a_row: 0,
            connections: 5,
        }],
        decisions: (0..30)
            .map(|at| DecisionState {
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

#[test]
fn the_picture_says_what_is_so_and_why() {
    let text = draw(&state(), 2);
    for wanted in [
        "suimon 9.9.9, up 100 s, ready\n",
        "12 requests waiting, 3 in the application; 20 sessions; 8 connections; 120 requests in all",
        "4 clients left while they waited to be let in",
        "one in 620 ms    12      140      35",
        "30 s learned",
        "limit on trial",
        "3  the wait would be longer than most visitors stay",
        "limit 2 to 3  paired windows favour the new limit (gain 0.123)",
        "71 s ago",
        "up  3 in flight",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    assert_eq!(text.matches("limit 2 to 3").count(), 2, "{text}");
    assert!(!text.contains("other"), "a route nobody asked for is not shown\n{text}");
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
    assert!(draw(&state, 5).contains("no gated request has come yet"));
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

#[test]
fn times_are_told_in_the_unit_people_would_use() {
    let told: Vec<String> =
        [0.0, 0.00002, 0.0123, 0.412, 4.23, 61.0, 600.0, 90_000.0].into_iter().map(time).collect();
    assert_eq!(told, ["0", "20 us", "12.3 ms", "412 ms", "4.2 s", "61 s", "10 min", "25.0 h"]);
}
