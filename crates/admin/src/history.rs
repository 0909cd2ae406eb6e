//! The last quarter of an hour by seconds, and the last day by minutes: what charts are drawn from.
//!
//! The watch takes a sample each second. Rates are differences of counters that exist anyway, so
//! the path of a request pays nothing.

use crate::state::{self, DecisionState};
use crate::sums::{held, queued};
use crate::windows::{KindTotals, lines};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use suimon_proxy::View;

/// Samples by second that are kept: a quarter of an hour.
const SECOND_SAMPLES_MAX: usize = 900;
/// Samples by minute that are kept: a day.
const MINUTE_SAMPLES_MAX: usize = 1440;
/// Routes in each sample: the first ones, which are the declared ones and then those discovered first.
const SAMPLE_ROUTES_MAX: usize = 64;
/// Decisions that are kept, the newest.
const DECISIONS_MAX: usize = 2000;
const MINUTE_S: f64 = 60.0;

/// What is so at one moment, or was on average within a minute. Rates are per second.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// When, seconds since 1970; of a minute, its end.
    pub at: f64,
    /// Newcomers.
    pub newcomers: f32,
    /// Sessions admitted.
    pub admitted: f32,
    /// Sessions finished, those that fell silent included.
    pub finished: f32,
    /// Sessions whose last request failed.
    pub failed: f32,
    /// Newcomers refused.
    pub refused: f32,
    /// People in line or held at the session gate.
    pub in_line: f32,
    /// Of these, held on an open connection.
    pub held: f32,
    /// Active sessions.
    pub active: f32,
    /// Requests in the application.
    pub in_flight: f32,
    /// Requests queued at route gates.
    pub queued: f32,
    /// The routes, in the order of the state's.
    pub routes: Vec<RouteSample>,
}

/// One route in a sample.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RouteSample {
    /// Its limit; absent: none.
    pub limit: Option<f32>,
    /// Its requests in the application.
    pub in_flight: f32,
    /// Its requests that wait for a slot.
    pub queued: f32,
    /// Completed per second.
    pub rate: f32,
}

/// What `/api/history` answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryState {
    /// Seconds from one sample to the next.
    pub step_seconds: f64,
    /// The names of the routes in the samples.
    pub routes: Vec<String>,
    /// The samples, oldest first.
    pub samples: Vec<Sample>,
    /// The decisions of that time, oldest first, as far as they are kept.
    pub decisions: Vec<DecisionState>,
}

/// The samples.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    seconds: VecDeque<Sample>,
    minutes: VecDeque<Sample>,
    /// The minute that is not over.
    minute: Mean,
    decisions: VecDeque<DecisionState>,
    counters: Option<Counters>,
}

/// Counters at a moment.
#[derive(Clone, Copy, Debug)]
struct Counters {
    /// Seconds since the start.
    at: f64,
    kinds: KindTotals,
}

/// Means of samples.
#[derive(Debug, Default)]
struct Mean {
    /// When the first sample begins, seconds since 1970.
    began: Option<f64>,
    sum: Sample,
    count: f32,
}

impl Samples {
    /// Takes a sample of `view` at `now`, seconds since 1970. To be called once per second.
    pub(crate) fn note(&mut self, view: &View, now: f64) {
        let counters = Counters { at: view.uptime.as_secs_f64(), kinds: kind_totals(view) };
        if let Some(before) = self.counters.replace(counters) {
            let sample = sample(view, &counters, &before, now);
            self.minute.add(&sample);
            if now - *self.minute.began.get_or_insert(now - 1.0) >= MINUTE_S {
                push(&mut self.minutes, self.minute.take(now), MINUTE_SAMPLES_MAX);
            }
            push(&mut self.seconds, sample, SECOND_SAMPLES_MAX);
        }
        let known = self.newest_decision();
        for decision in state::decisions(view, now - view.uptime.as_secs_f64(), known) {
            push(&mut self.decisions, decision, DECISIONS_MAX);
        }
    }

    /// Returns the number of the newest decision that was noted; 0: none.
    pub(crate) fn newest_decision(&self) -> u64 {
        self.decisions.back().map_or(0, |last| last.id)
    }

    /// Returns the newest sample.
    pub(crate) fn newest(&self) -> Option<&Sample> {
        self.seconds.back()
    }

    /// Returns what was within `seconds` before `now`, seconds since 1970: by seconds if these reach
    /// so far back, else by minutes.
    pub(crate) fn history(&self, view: &View, seconds: f64, now: f64) -> HistoryState {
        let (kept, step_seconds) = if seconds <= SECOND_SAMPLES_MAX as f64 {
            (&self.seconds, 1.0)
        } else {
            (&self.minutes, MINUTE_S)
        };
        let since = now - seconds;
        HistoryState {
            step_seconds,
            routes: view.routes.iter().take(SAMPLE_ROUTES_MAX).map(|route| route.name.clone()).collect(),
            samples: kept.iter().filter(|sample| sample.at >= since).cloned().collect(),
            decisions: self.decisions.iter().filter(|it| it.at >= since).cloned().collect(),
        }
    }
}

fn push<T>(kept: &mut VecDeque<T>, one: T, max: usize) {
    if kept.len() >= max {
        kept.pop_front();
    }
    kept.push_back(one);
}

fn kind_totals(view: &View) -> KindTotals {
    let all = view.kinds.iter().zip(lines(view)).map(|((_, kind), line)| KindTotals::of(kind, line));
    all.fold(KindTotals::default(), |sum, kind| sum.plus(&kind))
}

fn sample(view: &View, now: &Counters, before: &Counters, at: f64) -> Sample {
    let seconds = (now.at - before.at).max(1e-3);
    let kinds = now.kinds.since(&before.kinds);
    let rate = |count: u64| (count as f64 / seconds) as f32;
    let held = held(view);
    Sample {
        at,
        newcomers: rate(kinds.newcomers),
        admitted: rate(kinds.admitted),
        finished: rate(kinds.finished + kinds.silent + kinds.abandoned),
        failed: rate(kinds.failed),
        refused: rate(kinds.refused),
        in_line: view.kinds.iter().map(|(_, kind)| state::in_line(kind)).sum::<u64>() as f32,
        held: held as f32,
        active: view.kinds.iter().map(|(_, kind)| kind.active).sum::<usize>() as f32,
        in_flight: view.gate.in_flight as f32,
        queued: queued(view) as f32,
        routes: (view.routes.iter().take(SAMPLE_ROUTES_MAX))
            .map(|route| RouteSample {
                limit: route.gate.limit.map(|limit| limit as f32),
                in_flight: route.gate.in_flight as f32,
                queued: route.gate.waiting as f32,
                rate: state::finite(route.gate.rate).unwrap_or(0.0) as f32,
            })
            .collect(),
    }
}

impl Mean {
    fn add(&mut self, sample: &Sample) {
        self.count += 1.0;
        for (sum, value) in self.sum.values_mut().into_iter().zip(sample.clone().values_mut()) {
            *sum += *value;
        }
        self.sum.routes.resize(sample.routes.len(), RouteSample::default());
        for (sum, route) in self.sum.routes.iter_mut().zip(&sample.routes) {
            // A limit is held for seconds and then moves: the last one tells more than a mean.
            sum.limit = route.limit;
            sum.in_flight += route.in_flight;
            sum.queued += route.queued;
            sum.rate += route.rate;
        }
    }

    /// Returns the means, at `at`, and begins anew.
    fn take(&mut self, at: f64) -> Sample {
        let Mean { mut sum, count, .. } = std::mem::take(self);
        let count = count.max(1.0);
        for value in sum.values_mut() {
            *value /= count;
        }
        for route in &mut sum.routes {
            route.in_flight /= count;
            route.queued /= count;
            route.rate /= count;
        }
        Sample { at, ..sum }
    }
}

impl Sample {
    fn values_mut(&mut self) -> [&mut f32; 10] {
        [
            &mut self.newcomers,
            &mut self.admitted,
            &mut self.finished,
            &mut self.failed,
            &mut self.refused,
            &mut self.in_line,
            &mut self.held,
            &mut self.active,
            &mut self.in_flight,
            &mut self.queued,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::view;
    use std::time::Duration;

    /// Notes a view each second, in which one session finishes per second, from `from` to `to`.
    fn noted(samples: &mut Samples, from: u64, to: u64) -> View {
        let mut view = view();
        for second in from..to {
            view.uptime = Duration::from_secs(second);
            view.kinds[0].1.ends.finished = second;
            view.kinds[0].1.active = 7;
            samples.note(&view, 1000.0 + second as f64);
        }
        view
    }

    #[test]
    fn a_quarter_of_an_hour_is_by_seconds_and_a_day_by_minutes() {
        let mut samples = Samples::default();
        let view = noted(&mut samples, 0, 3 * 3600);
        let now = 1000.0 + 3.0 * 3600.0 - 1.0;
        let seconds = samples.history(&view, 900.0, now);
        assert_eq!(seconds.samples.len(), SECOND_SAMPLES_MAX);
        assert!(seconds.samples.iter().all(|it| (it.finished - 1.0).abs() < 1e-3));
        let minutes = samples.history(&view, 86_400.0, now);
        assert_eq!((minutes.step_seconds as u32, minutes.samples.len()), (60, 179));
        assert!(
            minutes
                .samples
                .iter()
                .all(|it| (it.finished - 1.0).abs() < 0.02 && (it.active - 7.0).abs() < 1e-3)
        );
    }

    #[test]
    fn however_long_it_runs_no_more_is_kept() {
        let mut samples = Samples::default();
        let view = noted(&mut samples, 0, 100_000);
        assert_eq!(samples.seconds.len(), SECOND_SAMPLES_MAX);
        assert_eq!(samples.minutes.len(), MINUTE_SAMPLES_MAX);
        let hour = samples.history(&view, 3600.0, 1000.0 + 99_999.0);
        assert!((59..=61).contains(&hour.samples.len()), "{}", hour.samples.len());
    }

    #[test]
    fn a_route_that_is_found_later_has_no_past() {
        let mut samples = Samples::default();
        let mut view = noted(&mut samples, 0, 3);
        let mut found = view.routes[0].clone();
        found.name = "GET /late".into();
        view.routes.push(found);
        view.uptime = Duration::from_secs(3);
        samples.note(&view, 1003.0);
        let history = samples.history(&view, 900.0, 1003.0);
        assert_eq!(history.routes, ["other", "GET /late"]);
        assert_eq!(history.samples.iter().map(|it| it.routes.len()).collect::<Vec<_>>(), [1, 1, 2]);
    }
}
