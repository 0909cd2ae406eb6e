//! The demo's results. The JSON file has these names, so they must not change.

use crate::numbers::{rate, share};
use serde::Serialize;
use std::collections::BTreeMap;
use suimon_admin::{KindState, State};
use suimon_crowd::Report;

/// The longest beginning of a run that its rate leaves out, seconds. It leaves out a quarter of the
/// run at most.
const SETTLE_S_MAX: f64 = 10.0;
/// If other programs take more than this share of the shop's core, the report mentions it.
const OTHERS_NOTED: f64 = 0.08;

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct DemoResult {
    /// Version of Suimon.
    pub(super) version: &'static str,
    /// When it began, as an HTTP date.
    pub(super) began: String,
    /// Whether Suimon kept its promise.
    pub(super) holds: bool,
    /// Visitors at once.
    pub(super) clients: u32,
    /// Divisor of all times.
    pub(super) scale: f64,
    /// Seed of both runs.
    pub(super) seed: u64,
    /// Length of a run.
    pub(super) seconds: u32,
    /// Its beginning that rates leave out (all other numbers include it).
    pub(super) settle_s: f64,
    /// Who ran where, in words.
    pub(super) cores: String,
    /// Cores the shop could use.
    pub(super) cores_of_the_shop: usize,
    /// The most the shop could do.
    #[serde(flatten)]
    pub(super) bound: Bound,
    /// Without Suimon and with it, in this order.
    pub(super) runs: [Run; 2],
}

/// The most the shop could do, and the numbers behind it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Bound {
    /// CPU seconds of one session in the warmed-up shop, with one visitor at a time.
    pub(super) cpu_s_per_session: f64,
    /// Sessions played to measure that.
    #[serde(rename = "bound_sessions")]
    pub(super) sessions: u64,
    /// Cores ÷ CPU seconds of a session: no more can be done.
    #[serde(rename = "bound_sessions_per_s")]
    pub(super) per_s: f64,
    /// Visitors that just keep the shop busy, with their usual think times and without any waiting.
    #[serde(rename = "visitors_at_the_bound")]
    pub(super) visitors: f64,
}

/// Which run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Name {
    /// Directly to the shop.
    None,
    /// Through a gateway.
    Suimon,
}

impl Name {
    /// Returns the name for people.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Name::None => "without Suimon",
            Name::Suimon => "with Suimon",
        }
    }
}

/// One run of the crowd.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Run {
    /// Which.
    pub(super) name: Name,
    /// Sessions completed per second, without the beginning.
    pub(super) sessions_per_s: f64,
    /// That ÷ the bound.
    pub(super) goodput_share: f64,
    /// Failures after the first step, of the whole run.
    pub(super) mid_session_failures: u64,
    /// Failures at the first step, of the whole run.
    pub(super) first_step_failures: u64,
    /// The two above, by step.
    pub(super) failures_by_step: BTreeMap<String, u64>,
    /// Good responses in sessions that failed later.
    pub(super) wasted_requests: u64,
    /// CPU time of the shop during the run, seconds, if the system reports it.
    pub(super) shop_cpu_s: Option<f64>,
    /// Share of the shop's own core that other programs took during the run, if it has one and the
    /// system reports it.
    pub(super) others_on_the_shops_core: Option<f64>,
    /// Everything the visitors saw.
    pub(super) visitors: Report,
    /// The gateway's state each second.
    pub(super) gateway: Vec<Sample>,
}

/// Measurements of one run of the crowd.
pub(super) struct Seen {
    /// By the visitors.
    pub(super) visitors: Report,
    /// By the gateway, each second.
    pub(super) gateway: Vec<Sample>,
    /// CPU time of the shop, seconds, if the system reports it.
    pub(super) shop_cpu_s: Option<f64>,
    /// How long the shop's own core was busy with any work, seconds, if it has one.
    pub(super) shops_core_busy_s: Option<f64>,
}

/// The gateway at one moment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Sample {
    /// Seconds since the crowd began.
    pub(super) at_s: f64,
    /// Admission interval, seconds; 0 while the gate is open; absent if nobody is admitted.
    pub(super) interval_s: Option<f64>,
    /// Newcomers held at the session gate, or in line.
    pub(super) newcomers_waiting: usize,
    /// Active sessions.
    pub(super) sessions: usize,
    /// Sessions admitted since the start.
    pub(super) admitted: u64,
    /// Newcomers refused since the start.
    pub(super) refused: u64,
    /// Requests in the application.
    pub(super) in_flight: usize,
    /// Every gated route with a request so far.
    pub(super) routes: Vec<Route>,
}

/// A route at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Route {
    /// Its name.
    pub(super) name: String,
    /// Requests that may be in the application at once.
    pub(super) limit: Option<u32>,
    /// Requests waiting for a slot.
    pub(super) waiting: usize,
    /// Requests in the application.
    pub(super) in_flight: usize,
}

impl Sample {
    /// Returns the numbers that the demo shows, of all kinds of session together. The longest
    /// interval of a kind stands for all; the demo has one kind.
    pub(super) fn of(state: &State, at_s: f64) -> Sample {
        let kinds = &state.kinds;
        let interval = kinds.iter().map(|kind| kind.interval_seconds);
        let waiting = |kind: &KindState| {
            kind.in_line.and_then(|people| usize::try_from(people).ok()).unwrap_or(kind.held)
        };
        Sample {
            at_s,
            interval_s: interval.reduce(|a, b| Some(a?.max(b?))).flatten(),
            newcomers_waiting: kinds.iter().map(waiting).sum(),
            sessions: kinds.iter().map(|kind| kind.active).sum(),
            admitted: kinds.iter().map(|kind| kind.admitted).sum(),
            refused: kinds.iter().map(|kind| kind.refused).sum(),
            in_flight: state.totals.in_flight,
            routes: state
                .routes
                .iter()
                .filter(|route| route.offered > 0)
                .map(|route| Route {
                    name: route.name.clone(),
                    limit: route.limit,
                    waiting: route.queued,
                    in_flight: route.in_flight,
                })
                .collect(),
        }
    }
}

impl Run {
    /// Returns the run as the visitors saw it; the first `settle_s` seconds are left out of its
    /// rate.
    pub(super) fn new(name: Name, seen: Seen, settle_s: f64, bound: f64) -> Run {
        let Seen { visitors, gateway, shop_cpu_s, shops_core_busy_s } = seen;
        let others =
            shops_core_busy_s.zip(shop_cpu_s).map(|(busy, shop)| (busy - shop) / visitors.duration_s);
        let counted_s = visitors.duration_s.floor() - settle_s;
        let counted = visitors.series.iter().filter(|second| {
            let at = second.at_s as f64;
            at >= settle_s && at + 1.0 <= visitors.duration_s.floor()
        });
        let completed: u32 = counted.map(|second| second.completed).sum();
        let sessions_per_s = if counted_s > 0.0 { f64::from(completed) / counted_s } else { 0.0 };
        Run {
            name,
            sessions_per_s,
            goodput_share: if bound > 0.0 { sessions_per_s / bound } else { 0.0 },
            mid_session_failures: visitors.mid_session_failures,
            first_step_failures: visitors.first_step_failures,
            failures_by_step: visitors.failures_by_step.clone(),
            wasted_requests: visitors.wasted_requests,
            shop_cpu_s,
            others_on_the_shops_core: others
                .filter(|share| share.is_finite())
                .map(|share| share.clamp(0.0, 1.0)),
            visitors,
            gateway,
        }
    }
}

/// Returns how much of a run's beginning its rate leaves out, in whole seconds.
pub(super) fn settle_s(seconds: u32) -> f64 {
    (f64::from(seconds) / 4.0).min(SETTLE_S_MAX).floor()
}

/// Returns whether Suimon kept its promise: no admitted session was lost, and more sessions were
/// finished.
pub(super) fn holds([none, suimon]: &[Run; 2]) -> bool {
    suimon.mid_session_failures == 0 && suimon.goodput_share > none.goodput_share
}

impl DemoResult {
    /// Returns what readers should know before they trust the figures, if anything.
    pub(super) fn caution(&self) -> Option<String> {
        let most = self.runs.iter().filter_map(|run| Some((run.others_on_the_shops_core?, run.name)));
        let (share_taken, name) = most.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (share_taken > OTHERS_NOTED).then(|| {
            format!(
                "This machine was busy: {}, other programs took {} of the shop's core, so that no more than about {} of the bound could be reached.",
                name.title(),
                share(share_taken),
                share(1.0 - share_taken)
            )
        })
    }

    /// Returns the verdict, in a sentence or two.
    pub(super) fn verdict(&self) -> String {
        let [none, suimon] = &self.runs;
        let rates = format!(
            "{} sessions a second were finished with it, {} without, of at most {}",
            rate(suimon.sessions_per_s),
            rate(none.sessions_per_s),
            rate(self.bound.per_s)
        );
        if self.holds {
            return format!(
                "Suimon held: {rates}. No session that was let in failed; without it: {}.",
                failures(none)
            );
        }
        let lost = match suimon.mid_session_failures {
            0 => String::new(),
            1 => format!(" With it there was {}, and there should have been none.", failures(suimon)),
            _ => format!(" With it there were {}, and there should have been none.", failures(suimon)),
        };
        format!("Suimon did not hold: {rates}.{lost}")
    }
}

fn failures(run: &Run) -> String {
    match run.mid_session_failures {
        0 => "no failures inside sessions".to_owned(),
        1 => "1 failure inside a session".to_owned(),
        count => format!("{count} failures inside sessions"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Returns a made-up run that finishes `per_s` sessions each second from its third on.
    pub(in super::super) fn run(name: Name, per_s: u32, failures: u64) -> Run {
        let spread = json!({"count": 9, "mean_s": 5.0, "min_s": 1.0, "p50_s": 5.0, "p90_s": 6.0, "p95_s": 7.0, "p99_s": 8.0, "max_s": 9.0});
        let series: Vec<Value> = (0..12)
            .map(|at| json!({"at_s": at, "begun": 1, "completed": if at < 3 { 0 } else { per_s }, "gave_up": 0,
                "mid_session_failures": 0, "first_step_failures": 0, "refusals": 0, "requests": 9, "under_way": 4}))
            .collect();
        let step = |step: &str, failures: u64| json!({"kind": "shopping", "step": step, "failures": failures, "refusals": 0, "time": spread});
        let visitors = json!({
            "base_url": "http://127.0.0.1:1", "seed": 1, "ended": "time_over", "started_unix_s": 0.0, "duration_s": 12.01,
            "warmup_s": 0.0, "measured_s": 12.0, "sessions_per_s": 1.0, "sessions_begun": 9, "sessions_completed": 9,
            "sessions_gave_up": 0, "sessions_under_way": 4, "sessions_failed_inside": failures,
            "mid_session_failures": failures, "first_step_failures": 2, "failures_by_step": {"login": 2, "search": failures},
            "failures_by_kind": {"timeout": failures + 2}, "refusals": 3, "wasted_requests": failures * 3, "requests": 99,
            "requests_per_s": 9.0, "reconnects": 0, "users_not_started": 0, "session_time": spread,
            "session_time_distribution": [], "first_step_wait": spread,
            "steps": [step("login", 2), step("search", failures)], "series": series, "crowd_cpu_share": 0.1, "send_delay": spread
        });
        let sample = |at: u32| Sample {
            at_s: f64::from(at),
            interval_s: if at < 3 { Some(0.0) } else { Some(0.16) },
            newcomers_waiting: 150,
            sessions: 40,
            admitted: 9,
            refused: 3,
            in_flight: 5,
            routes: vec![Route { name: "GET /search".to_owned(), limit: Some(3), waiting: 2, in_flight: 3 }],
        };
        let gateway = if name == Name::Suimon { (1..12).map(sample).collect() } else { Vec::new() };
        let visitors = serde_json::from_value(visitors).unwrap();
        Run::new(
            name,
            Seen { visitors, gateway, shop_cpu_s: Some(9.6), shops_core_busy_s: Some(12.0) },
            3.0,
            6.5,
        )
    }

    /// Returns a made-up outcome.
    pub(in super::super) fn outcome(runs: [Run; 2]) -> DemoResult {
        DemoResult {
            version: "0.0.0",
            began: "today".to_owned(),
            holds: holds(&runs),
            clients: 200,
            scale: 4.0,
            seed: 1,
            seconds: 12,
            settle_s: 3.0,
            cores: "the shop has one core to itself".to_owned(),
            cores_of_the_shop: 1,
            bound: Bound { cpu_s_per_session: 0.1538, sessions: 30, per_s: 6.5, visitors: 30.2 },
            runs,
        }
    }

    #[test]
    fn the_rate_leaves_out_the_beginning_and_the_counts_do_not() {
        let run = run(Name::None, 2, 5);
        assert!((run.sessions_per_s - 2.0).abs() < 1e-9, "{}", run.sessions_per_s);
        assert!((run.goodput_share - 2.0 / 6.5).abs() < 1e-9);
        assert_eq!((run.mid_session_failures, run.wasted_requests), (5, 15));
        assert!(
            (settle_s(38) - 9.0).abs() < 1e-9 && (settle_s(400) - 10.0).abs() < 1e-9 && settle_s(2) < 1e-9
        );
    }

    #[test]
    fn a_busy_machine_is_mentioned() {
        let mut outcome = outcome([run(Name::None, 1, 9), run(Name::Suimon, 6, 0)]);
        // Busy for 12.0 s of 12.01, the shop for 9.6 of them.
        assert!(outcome.caution().unwrap().contains("no more than about 80\u{a0}% of the bound"));
        for run in &mut outcome.runs {
            run.others_on_the_shops_core = Some(0.02);
        }
        assert_eq!(outcome.caution(), None);
    }

    #[test]
    fn it_holds_only_if_nobody_inside_was_lost_and_more_was_done() {
        for (none, suimon, failures, held) in
            [(1, 6, 0, true), (1, 6, 1, false), (6, 6, 0, false), (6, 5, 0, false)]
        {
            let outcome = outcome([run(Name::None, none, 9), run(Name::Suimon, suimon, failures)]);
            assert_eq!(outcome.holds, held, "{none} {suimon} {failures}");
            assert_eq!(outcome.verdict().starts_with("Suimon held"), held, "{}", outcome.verdict());
        }
    }

    #[test]
    fn the_json_has_the_names_that_were_promised() {
        let outcome = outcome([run(Name::None, 1, 9), run(Name::Suimon, 6, 0)]);
        let json = serde_json::to_value(&outcome).unwrap();
        assert!(json["bound_sessions_per_s"].is_number());
        for (run, name) in json["runs"].as_array().unwrap().iter().zip(["none", "suimon"]) {
            assert_eq!(run["name"], name);
            for key in [
                "sessions_per_s",
                "goodput_share",
                "mid_session_failures",
                "first_step_failures",
                "wasted_requests",
            ] {
                assert!(run[key].is_number(), "{key}");
            }
            assert!(run["failures_by_step"].is_object());
        }
    }
}
