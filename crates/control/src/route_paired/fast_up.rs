//! Fast-up: a route's first limits, doubled and more as long as nothing speaks against it.
//!
//! Windows of ends. What speaks against more is a service time well above the best; for quick requests, which take
//! longer in company on any machine that is busy, only a rate that falls.

use super::QUICK;
use crate::window::{Meter, Reading};
use suimon_model::Instant;

/// Service time over the best known that still counts as not inflated.
const INFLATION: f64 = 1.2;
/// Inflation above which the search goes on downward.
const INFLATION_MUCH: f64 = 1.4;
/// Growth of the limit.
const STEP: f64 = 1.5;
/// The fewest ends of a window; more at higher limits.
const ENDS_MIN: u32 = 6;
/// The least length of a window, seconds: of quick requests a handful is over before it tells anything.
const SECONDS_MIN: f64 = 0.02;
/// Share of a window during which somebody must wait for more to be wanted.
const WANTED: f64 = 0.5;
/// A window in which somebody waits for this share of it shows what the limit brings.
const BINDING: f64 = 0.9;
/// It is slower if its rate is below this share of the best; ...
const RATE_KEPT: f64 = 0.9;
/// ... this many in a row end fast-up: windows are short, and machines stutter.
const SLOWED_MAX: u32 = 5;

/// A route in fast-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastUp {
    begin: Reading,
    /// Ends that count as progress, in this window; errors are no speed.
    ends: u32,
    service_seconds: f64,
    /// Best requests a second so far.
    rate_best: f64,
    /// Windows in a row that were slower.
    slowed: u32,
}

suimon_model::saved_struct!(FastUp { begin, ends, service_seconds, rate_best, slowed });

/// What a window came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// Mean service time, seconds.
    pub(super) mean: f64,
    pub(super) verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// This limit next.
    More(u32),
    /// As it is: nobody waits for more, or the machine stutters.
    Stay,
    /// Fast-up is over; the search goes on upward or not.
    Over { up: bool },
}

impl FastUp {
    /// Returns a route that begins with the reading `begin`.
    pub(super) fn new(begin: Reading) -> Self {
        FastUp { begin, ends: 0, service_seconds: 0.0, rate_best: 0.0, slowed: 0 }
    }

    /// Takes note of an end that is progress, at `limit`. Returns what its window came to, if that was its last.
    /// `service_min` is the least mean service time known, seconds.
    pub(super) fn on_end(
        &mut self,
        now: Instant,
        service: f64,
        limit: u32,
        service_min: f64,
        meter: &Meter,
    ) -> Option<Outcome> {
        self.ends += 1;
        self.service_seconds += service;
        if self.ends < (2 * limit).max(ENDS_MIN) || now.secs_since(self.begin.at) < SECONDS_MIN {
            return None;
        }
        let window = meter.since(&self.begin, now);
        let mean = self.service_seconds / f64::from(self.ends);
        let is_binding = window.queued_share() >= BINDING;
        let rate = if is_binding { window.throughput() } else { self.rate_best };
        let slowed = if rate < RATE_KEPT * self.rate_best { self.slowed + 1 } else { 0 };
        *self = FastUp { rate_best: self.rate_best.max(rate), slowed, ..FastUp::new(meter.read(now)) };
        let inflation = mean / service_min.min(mean);
        let verdict = if inflation > INFLATION && (mean >= QUICK || slowed >= SLOWED_MAX) {
            Verdict::Over { up: inflation <= INFLATION_MUCH }
        } else if slowed == 0 && window.queued_share() >= WANTED {
            Verdict::More((f64::from(limit) * STEP).ceil() as u32)
        } else {
            Verdict::Stay
        };
        Some(Outcome { mean, verdict })
    }
}
