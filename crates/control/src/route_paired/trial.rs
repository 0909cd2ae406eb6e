//! One trial: windows at two limits, in the order A B B A …, compared in pairs.

use super::{BIAS, QUICK, SIGNIFICANCE, SIGNIFICANCE_FIRST};
use crate::window::{Meter, Reading};
use std::collections::BTreeSet;
use suimon_model::real::ln;
use suimon_model::{Instant, RequestId, RouteId};

/// The fewest requests of a window's cohort.
const COHORT_MIN: usize = 10;
/// The most; only routes of thousands per second come near.
const COHORT_MAX: usize = 4096;
/// The least time over which a cohort is gathered, seconds.
const GATHER_SECONDS: f64 = 0.2;
/// Mean service times after which a settle phase ends, even if requests are left.
const SETTLE_SERVICES: f64 = 3.0;
/// A window ends without its stragglers, one in this many of its cohort at most, ...
const STRAGGLERS: usize = 10;
/// ... once it has lasted this many times as long as all others took.
const STRAGGLING: f64 = 1.5;
/// Share of a window during which requests must wait for it to count.
const BINDING: f64 = 0.5;
/// Windows in a row that may be spoiled before the trial is given up.
const SPOILED_MAX: u32 = 3;
/// A window at the tried limit that takes this many times as long as the base needed for as many is
/// ended early.
const FUTILE: f64 = 2.0;
/// The weight of a pair remembered from the previous trial of the same two limits.
const MEMORY: f64 = 0.5;

/// Which of the two limits a window runs at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arm {
    Base,
    Probe,
}

suimon_model::saved_enum!(Arm { 0 = Base, 1 = Probe });

#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) route: RouteId,
    base: u32,
    probe: u32,
    /// w of formula (2), as they were when the trial began.
    weights: Vec<f64>,
    /// Progress per second by route, as it was when the trial began.
    asked: Vec<f64>,
    windows: Vec<MeasuredWindow>,
    /// Seconds per request of the quickest base window.
    base_pace: f64,
    spoiled: u32,
    pub(super) window_begin: Instant,
    pub(super) cohort_size: usize,
    phase: Phase,
}

suimon_model::saved_struct!(Trial {
    route,
    base,
    probe,
    weights,
    asked,
    windows,
    base_pace,
    spoiled,
    window_begin,
    cohort_size,
    phase,
});

#[derive(Clone, Debug)]
enum Phase {
    /// Waiting for everything that started under the other limit to leave.
    Settling(BTreeSet<RequestId>),
    Measuring(Cohort),
}

suimon_model::saved_enum!(Phase { 0 = Settling(old), 1 = Measuring(cohort) });

#[derive(Clone, Debug, Default)]
struct Cohort {
    begin: Option<(Instant, Vec<Reading>)>,
    /// Ages of the requests that were in the application then, seconds.
    ages: Vec<f64>,
    taken: usize,
    outstanding: BTreeSet<RequestId>,
    /// Seconds from the beginning until only stragglers were missing.
    mostly_back: Option<f64>,
    service_seconds: f64,
    /// Of the squares of service times.
    service_squares: f64,
    ended: u32,
}

suimon_model::saved_struct!(Cohort {
    begin,
    ages,
    taken,
    outstanding,
    mostly_back,
    service_seconds,
    service_squares,
    ended
});

#[derive(Clone, Copy, Debug)]
struct MeasuredWindow {
    arm: Arm,
    log_useful: f64,
    /// ln of the useful work really done, whatever was asked for.
    log_done: f64,
    ends: f64,
}

suimon_model::saved_struct!(MeasuredWindow { arm, log_useful, log_done, ends });

/// The outcome of a window.
#[derive(Clone, Debug)]
pub(super) enum WindowEnd {
    Window(Window),
    /// The route was not binding for long enough; the window is to be run again.
    Spoiled,
    /// It was not binding several times in a row.
    Hopeless,
}

/// A finished window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) arm: Arm,
    pub(super) ends: f64,
    /// Progress per second by route, formula (1).
    pub(super) rates: Vec<f64>,
    /// Squared coefficient of variation of its service times.
    pub(super) variation: f64,
    /// Difference of ln U to the last window of the same arm, if there is one.
    pub(super) same_arm_difference: Option<f64>,
}

/// The outcome of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialResult {
    pub(super) base: u32,
    pub(super) probe: u32,
    pub(super) accepted: bool,
    /// Whether the difference was significant.
    pub(super) decided: bool,
    /// d of formula (3).
    pub(super) difference: f64,
    pub(super) standard_error: f64,
    pub(super) pairs: usize,
    pub(super) log_useful_base: f64,
    pub(super) log_useful_probe: f64,
    /// mean ln U(m') − mean ln U(m), without the bias, and the ends it rests on.
    raw: f64,
    ends: f64,
}

suimon_model::saved_struct!(TrialResult {
    base,
    probe,
    accepted,
    decided,
    difference,
    standard_error,
    pairs,
    log_useful_base,
    log_useful_probe,
    raw,
    ends,
});

impl Trial {
    pub(super) fn new(
        now: Instant,
        route: RouteId,
        base: u32,
        probe: u32,
        weights: Vec<f64>,
        asked: Vec<f64>,
    ) -> Self {
        Trial {
            route,
            base,
            probe,
            weights,
            asked,
            windows: vec![],
            base_pace: f64::INFINITY,
            spoiled: 0,
            window_begin: now,
            cohort_size: COHORT_MIN,
            phase: Phase::Settling(BTreeSet::new()),
        }
    }

    /// Returns whether it is a trial of one among this number of `routes`.
    pub(super) fn fits(&self, routes: usize) -> bool {
        let in_range = |length: usize| length > self.route.index() && length <= routes;
        let begun = match &self.phase {
            Phase::Measuring(Cohort { begin: Some((_, readings)), .. }) => in_range(readings.len()),
            Phase::Measuring(_) | Phase::Settling(_) => true,
        };
        begun && in_range(self.weights.len())
    }

    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the arm of the next window: A B B A A B B A …
    pub(super) fn next_arm(&self) -> Arm {
        if matches!(self.windows.len() % 4, 1 | 2) { Arm::Probe } else { Arm::Base }
    }

    pub(super) fn limit_of(&self, arm: Arm) -> u32 {
        match arm {
            Arm::Base => self.base,
            Arm::Probe => self.probe,
        }
    }

    /// Begins a window: `running` started under the other limit and must leave first.
    pub(super) fn open(&mut self, now: Instant, running: impl Iterator<Item = RequestId>, limit: u32) {
        self.window_begin = now;
        self.cohort_size = (2 * limit as usize).clamp(COHORT_MIN, COHORT_MAX);
        let old: BTreeSet<_> = running.collect();
        self.phase = if old.is_empty() { Phase::Measuring(Cohort::default()) } else { Phase::Settling(old) };
    }

    /// Takes note of a start. `running`: when each of those in the application started.
    pub(super) fn on_start(
        &mut self,
        now: Instant,
        request: RequestId,
        running: impl Iterator<Item = Instant>,
        meters: &[Meter],
    ) {
        let size = self.cohort_size;
        if matches!(self.phase, Phase::Settling(_)) && now.secs_since(self.window_begin) > self.settle_max() {
            self.phase = Phase::Measuring(Cohort::default());
        }
        let Phase::Measuring(cohort) = &mut self.phase else { return };
        let (begin, _) = cohort.begin.get_or_insert_with(|| {
            cohort.ages = running.map(|start| now.secs_since(start)).collect();
            (now, meters.iter().map(|meter| meter.read(now)).collect())
        });
        let gathering = now.secs_since(*begin) < GATHER_SECONDS && cohort.taken < COHORT_MAX;
        if cohort.taken < size || gathering {
            cohort.taken += 1;
            cohort.outstanding.insert(request);
        }
    }

    /// Returns the seconds after which a request that has not ended yet is taken for a straggler:
    /// one that takes long must not keep all others at a limit that may be bad.
    fn settle_max(&self) -> f64 {
        let service = self.weights.get(self.route.index()).copied().unwrap_or(0.0);
        SETTLE_SERVICES * service * (f64::from(self.probe) / f64::from(self.base)).max(1.0)
    }

    /// Replaces `request`, which has left without showing what it takes, by another.
    pub(super) fn on_leave(&mut self, request: RequestId) {
        match &mut self.phase {
            Phase::Settling(old) => {
                old.remove(&request);
                if old.is_empty() {
                    self.phase = Phase::Measuring(Cohort::default());
                }
            }
            Phase::Measuring(cohort) => cohort.taken -= usize::from(cohort.outstanding.remove(&request)),
        }
    }

    /// Returns whether the window's cohort is back.
    pub(super) fn on_end(&mut self, now: Instant, request: RequestId, service: f64) -> bool {
        match &mut self.phase {
            Phase::Settling(old) => {
                old.remove(&request);
                if old.is_empty() {
                    self.phase = Phase::Measuring(Cohort::default());
                }
                false
            }
            Phase::Measuring(cohort) => {
                if cohort.outstanding.remove(&request) {
                    cohort.ended += 1;
                    cohort.service_seconds += service;
                    cohort.service_squares += service * service;
                }
                cohort.is_back(now, self.cohort_size)
            }
        }
    }

    /// Ends the window whose cohort is back. `running`: when each of those in the application
    /// started.
    pub(super) fn close(
        &mut self,
        now: Instant,
        running: impl Iterator<Item = Instant>,
        meters: &[Meter],
    ) -> WindowEnd {
        let arm = self.next_arm();
        let Phase::Measuring(cohort) = &self.phase else { return WindowEnd::Spoiled };
        let Some((_, begin)) = &cohort.begin else { return WindowEnd::Spoiled };
        let own = meters[self.route.index()].since(&begin[self.route.index()], now);
        if own.queued_share() < BINDING || cohort.service_seconds <= 0.0 {
            self.spoiled += 1;
            return if self.spoiled >= SPOILED_MAX { WindowEnd::Hopeless } else { WindowEnd::Spoiled };
        }
        self.spoiled = 0;
        let ends = f64::from(cohort.ended);
        if arm == Arm::Base {
            self.base_pace = self.base_pace.min(own.seconds / ends);
        }
        let mut rates: Vec<f64> =
            begin.iter().zip(meters).map(|(begin, meter)| meter.since(begin, now).throughput()).collect();
        let ages = running.map(|start| now.secs_since(start));
        rates[self.route.index()] = own.throughput_with_parts(cohort.ages.iter().copied(), ages);
        let log_done = log_useful(&self.weights, &rates);
        let log_useful = log_useful(&self.weights, &self.unmoved(&rates, begin, meters, now));
        let before = self.windows.iter().rev().find(|done| done.arm == arm);
        let same_arm_difference = before.map(|before| log_useful - before.log_useful);
        let mean = cohort.service_seconds / ends;
        let variation = (cohort.service_squares / ends / (mean * mean) - 1.0).max(0.0);
        self.windows.push(MeasuredWindow { arm, log_useful, log_done, ends });
        WindowEnd::Window(Window { arm, ends, rates, variation, same_arm_difference })
    }

    /// Returns the verdict that the tried limit is worse, once its window has taken so long that no
    /// other verdict is possible. Deep in the thrash region a window may not end at all, and every
    /// request suffers meanwhile.
    ///
    /// It errs like any other: of ten requests as uneven as they take long, one window in six lasts
    /// that long by chance. `noise` and `share` as in [`Trial::verdict`].
    pub(super) fn futile(
        &self,
        now: Instant,
        meters: &[Meter],
        noise: f64,
        share: f64,
    ) -> Option<TrialResult> {
        let Phase::Measuring(Cohort { begin: Some((begin, readings)), taken, .. }) = &self.phase else {
            return None;
        };
        let own = self.route.index();
        if meters[own].since(&readings[own], now).queued_share() < BINDING {
            // The limit is not what is slow: too few requests come.
            return None;
        }
        let expected = self.base_pace * (*taken).max(self.cohort_size) as f64;
        if self.next_arm() != Arm::Probe || now.secs_since(*begin) <= FUTILE * expected {
            return None;
        }
        let (_, base_ends) = self.mean(Arm::Base)?;
        let done = self.mean_done(Arm::Base)?;
        let raw = -ln(FUTILE);
        Some(TrialResult {
            base: self.base,
            probe: self.probe,
            accepted: false,
            decided: true,
            difference: raw - self.bias(share),
            standard_error: noise * (1.0 / base_ends + 1.0 / *taken as f64).sqrt(),
            pairs: self.windows.len() / 2,
            log_useful_base: done,
            log_useful_probe: done + raw,
            raw,
            // In the next trial only windows of the base count: the end of this one was not seen.
            ends: base_ends,
        })
    }

    /// Returns the verdict, once there are as many windows of one arm as of the other and they
    /// suffice. `noise`: c of formula (4). `share`: the route's share of the work. `memory`: the
    /// last verdict on this route.
    pub(super) fn verdict(
        &self,
        noise: f64,
        share: f64,
        pairs_max: usize,
        memory: Option<&TrialResult>,
    ) -> Option<TrialResult> {
        let (base, base_ends) = self.mean(Arm::Base)?;
        let (probe, probe_ends) = self.mean(Arm::Probe)?;
        if self.windows.len() % 2 == 1 {
            return None;
        }
        let pairs = self.windows.len() / 2;
        let (raw, ends) = (probe - base, base_ends + probe_ends);
        let mut standard_error = noise * (1.0 / base_ends + 1.0 / probe_ends).sqrt();
        let mut blended = raw;
        if let Some((remembered, weight)) = memory.and_then(|memory| memory.recall(self.base, self.probe)) {
            blended = (raw * ends + remembered * weight) / (ends + weight);
            standard_error *= (ends / (ends + weight)).sqrt();
        }
        let difference = blended - self.bias(share);
        let needed = standard_error * if pairs == 1 { SIGNIFICANCE_FIRST } else { SIGNIFICANCE };
        let decided = difference.abs() > needed;
        if !decided && pairs < pairs_max {
            return None;
        }
        Some(TrialResult {
            base: self.base,
            probe: self.probe,
            accepted: difference > 0.0 && (decided || self.is_quick() == (self.probe > self.base)),
            decided,
            difference,
            standard_error,
            pairs,
            log_useful_base: self.mean_done(Arm::Base)?,
            log_useful_probe: self.mean_done(Arm::Probe)?,
            raw,
            ends,
        })
    }

    /// Returns how much more useful work the tried limit must do to equal the base: the last term
    /// of formula (3).
    fn bias(&self, share: f64) -> f64 {
        let bias = if self.is_quick() { -BIAS } else { BIAS };
        bias * share * ln(self.ratio())
    }

    /// Returns whether requests are quick at both limits: on a busy machine service times grow as
    /// the limit does.
    fn is_quick(&self) -> bool {
        self.weights[self.route.index()] * self.ratio().max(1.0) < QUICK
    }

    fn ratio(&self) -> f64 {
        f64::from(self.probe) / f64::from(self.base)
    }

    fn mean_done(&self, arm: Arm) -> Option<f64> {
        let of_arm = || self.windows.iter().filter(|done| done.arm == arm);
        let count = of_arm().count();
        (count > 0).then(|| of_arm().map(|done| done.log_done).sum::<f64>() / count as f64)
    }

    /// Returns progress per second by route, with chance taken out: where no request waits the rate
    /// is the demand, whatever the limit here, so it counts as it was when the trial began.
    fn unmoved(&self, rates: &[f64], begin: &[Reading], meters: &[Meter], now: Instant) -> Vec<f64> {
        let of = |(index, rate): (usize, &f64)| {
            let binding = meters[index].since(&begin[index], now).queued_share() >= BINDING;
            if binding || index == self.route.index() {
                *rate
            } else {
                self.asked.get(index).copied().unwrap_or(0.0)
            }
        };
        rates.iter().enumerate().map(of).collect()
    }

    fn mean(&self, arm: Arm) -> Option<(f64, f64)> {
        let of_arm = || self.windows.iter().filter(|done| done.arm == arm);
        let count = of_arm().count();
        let sum: f64 = of_arm().map(|done| done.log_useful).sum();
        (count > 0).then(|| (sum / count as f64, of_arm().map(|done| done.ends).sum()))
    }
}

impl Cohort {
    /// Returns whether all requests are back, or only stragglers are missing and have been for
    /// long.
    fn is_back(&mut self, now: Instant, size: usize) -> bool {
        let Some((begin, _)) = &self.begin else { return false };
        let seconds = now.secs_since(*begin);
        if self.taken < size || seconds < GATHER_SECONDS || self.outstanding.len() > self.taken / STRAGGLERS {
            return false;
        }
        let mostly_back = *self.mostly_back.get_or_insert(seconds);
        self.outstanding.is_empty() || seconds > STRAGGLING * mostly_back
    }
}

impl TrialResult {
    /// Returns the remembered difference for these limits, either way round, and what it weighs in
    /// ends.
    fn recall(&self, base: u32, probe: u32) -> Option<(f64, f64)> {
        if (self.base, self.probe) == (base, probe) {
            Some((self.raw, MEMORY * self.ends))
        } else if (self.base, self.probe) == (probe, base) {
            Some((-self.raw, MEMORY * self.ends))
        } else {
            None
        }
    }
}

/// Returns ln U of formula (2). Nothing done at all is a very small number, not minus infinity.
pub(super) fn log_useful(weights: &[f64], rates: &[f64]) -> f64 {
    let useful: f64 = weights.iter().zip(rates).map(|(weight, rate)| weight * rate).sum();
    ln(useful.max(1e-9))
}
