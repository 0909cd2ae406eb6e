//! X: how much a route completes under full load.
//!
//! *Law*: the mean of the throughput over saturated windows, those in which somebody waited for
//! more than 90 % of the time, the newest weighing 1 − e^(−length / 20 s). Where nobody waited
//! throughput is demand: such a window counts only if it did more than X by two standard errors of
//! a Poisson count, and then raises X to what it did less one standard error. *Units*: completions
//! per second. *Limits*: a window is at least 2 s and one completion; one in which nobody waited,
//! at least 8. Windows that end with their eighth completion would show a slow route as too fast: 8
//! ÷ their length is 8/7 of X on average. Windows at a limit under trial, or at one that is still
//! being raised, show what the limit does and not what the route can do: they do not count. Where
//! demand is just X, the windows in which by chance less was done are the saturated ones, and X is
//! 1 % to 9 % too low, the most where service times vary much and few requests run at a time.
//! *Regimes*: until there were 8 completions in saturated windows X is unknown, and unknown is not
//! small: no request is held back because of it. It has an age: the time since the last saturated
//! window.

use crate::statistics::Average;
use crate::window::{Meter, Reading, Window};
use suimon_model::Instant;
use suimon_model::real::exp;

/// The least length of a window, seconds.
const SECONDS_MIN: f64 = 2.0;
/// The fewest completions that X rests on, and in a window where nobody waited.
const COMPLETIONS_MIN: u64 = 8;
/// Share of the time somebody must have waited for the window to show what the route can do.
const SATURATED: f64 = 0.9;
/// Seconds of saturated windows after which the weight of earlier ones has fallen by a factor of e.
const MEMORY: f64 = 20.0;
/// Standard errors by which an unsaturated window must exceed X to count.
const BETTER: f64 = 2.0;
/// Saturated windows needed before their throughput is reported, and the least weight of the
/// newest.
const SATURATED_WINDOWS_MIN: u64 = 4;
const SATURATED_WEIGHT: f64 = 0.05;

/// Learns X of one route.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// X, and the seconds of saturated windows it rests on.
    measured: Option<Measured>,
    /// Completions in saturated windows.
    completed: u64,
    saturated: Average,
    begin: Reading,
    /// The same for windows in which nobody waited.
    begin_calm: Reading,
    /// The same with trials.
    begin_all: Reading,
}

suimon_model::saved_struct!(Capacity { measured, completed, saturated, begin, begin_calm, begin_all });

/// X as it was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Completions per second.
    pub per_second: f64,
    /// Seconds of saturated windows it rests on, as far as they are remembered.
    pub seconds: f64,
    /// When the last saturated window ended.
    pub at: Instant,
}

suimon_model::saved_struct!(Measured { per_second, seconds, at });

impl Measured {
    /// Returns the standard error of X as a share of it: that of a Poisson count.
    pub fn error(&self) -> f64 {
        1.0 / (self.per_second * self.seconds).max(1.0).sqrt()
    }

    fn fold(&mut self, now: Instant, window: &Window) {
        let kept = exp(-window.seconds / MEMORY);
        let weight = (window.seconds / (window.seconds + self.seconds)).max(1.0 - kept);
        self.per_second += weight * (window.throughput() - self.per_second);
        // Those of a plain mean with the same standard error.
        self.seconds = 1.0 / ((1.0 - weight).powi(2) / self.seconds + weight.powi(2) / window.seconds);
        self.at = now;
    }
}

impl Capacity {
    /// Returns a capacity of which nothing is known, where `meter` stands at `now`.
    pub fn new(now: Instant, meter: &Meter) -> Self {
        let begin = meter.read(now);
        Capacity {
            measured: None,
            completed: 0,
            saturated: Average::new(SATURATED_WEIGHT),
            begin,
            begin_calm: begin,
            begin_all: begin,
        }
    }

    /// Looks at the meter; folds in a window when one is complete. `unsettled`: the route runs at a
    /// limit under trial or one that is still being raised; its throughput then counts for
    /// [`Capacity::saturated`], not for X.
    pub fn tick(&mut self, now: Instant, meter: &Meter, unsettled: bool) {
        if let Some(window) = complete(&mut self.begin_all, now, meter, COMPLETIONS_MIN)
            && is_saturated(&window)
        {
            self.saturated.fold(window.throughput());
        }
        if unsettled {
            self.begin = meter.read(now);
            self.begin_calm = self.begin;
            return;
        }
        if let Some(window) = complete(&mut self.begin, now, meter, 1)
            && is_saturated(&window)
        {
            self.fold(now, &window);
        }
        if let Some(window) = complete(&mut self.begin_calm, now, meter, COMPLETIONS_MIN)
            && !is_saturated(&window)
        {
            self.rise(&window);
        }
    }

    fn fold(&mut self, now: Instant, window: &Window) {
        self.completed += window.progressed;
        match &mut self.measured {
            Some(measured) => measured.fold(now, window),
            None => {
                let per_second = window.throughput();
                self.measured = Some(Measured { per_second, seconds: window.seconds, at: now });
            }
        }
    }

    fn rise(&mut self, window: &Window) {
        let Some(measured) = &mut self.measured else { return };
        let error = (window.progressed as f64).sqrt() / window.seconds;
        if window.throughput() > measured.per_second + BETTER * error {
            measured.per_second = window.throughput() - error;
        }
    }

    /// Takes note that the application can do `ratio` times as much from now on: X is that of the nodes
    /// there are. The window under way says nothing.
    pub fn scale(&mut self, now: Instant, meter: &Meter, ratio: f64) {
        if let Some(measured) = &mut self.measured {
            measured.per_second *= ratio;
        }
        self.saturated.scale(ratio);
        (self.begin, self.begin_calm, self.begin_all) = (meter.read(now), meter.read(now), meter.read(now));
    }

    /// Returns completions per second over the saturated windows alone, trials included, once there
    /// were a few: what the route really did under full load.
    pub fn saturated(&self) -> Option<f64> {
        self.saturated.get().filter(|_| self.saturated.count() >= SATURATED_WINDOWS_MIN)
    }

    /// Returns X; `None` as long as the route was never seen saturated.
    pub fn measured(&self) -> Option<Measured> {
        self.measured.filter(|_| self.completed >= COMPLETIONS_MIN)
    }
}

/// Returns the window that began with `begin`, if it is long enough, and begins the next.
fn complete(begin: &mut Reading, now: Instant, meter: &Meter, ended_min: u64) -> Option<Window> {
    let window = meter.since(begin, now);
    let is_complete = window.seconds >= SECONDS_MIN && window.progressed + window.failed >= ended_min;
    is_complete.then(|| {
        *begin = meter.read(now);
        window
    })
}

fn is_saturated(window: &Window) -> bool {
    window.queued_share() > SATURATED && window.progressed > 0
}

#[cfg(test)]
mod tests;
