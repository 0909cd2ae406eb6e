//! Fast-up: a route's limit, raised by half again and again as long as most of the gain is real.
//!
//! Windows of ends, each at one limit. From one limit m to the next m' the elasticity of the rate is, by Little's law,
//!
//! ```text
//! e = d ln X / d ln m = 1 − ln(S'/S) / ln(m'/m)                                           (1)
//! ```
//!
//! 1 where nobody gets in another's way, 0 where more at once only wait for each other inside. No best service time is needed: each limit
//! is compared with the one before it. For quick requests, which take longer in company on any machine that is busy, only a rate that falls
//! speaks against more.

use super::QUICK;
use crate::window::{Meter, Reading};
use suimon_model::Instant;
use suimon_model::real::ln;

/// e below which the search is left to paired trials ...
const GAIN_MIN: f64 = 0.3;
/// ... and below which the limit before was as good.
const GAIN_NONE: f64 = 0.15;
/// e below which more at once does less.
const LOSS: f64 = -0.2;
/// Growth of the limit.
const STEP: f64 = 1.5;
/// The fewest ends of a window; more at higher limits, ...
const ENDS_MIN: u32 = 6;
/// ... and so many times the squared coefficient of variation where requests are uneven, up to [`ENDS_MAX`].
const ENDS_UNEVEN: f64 = 25.0;
const ENDS_MAX: u32 = 60;
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
    service_squares: f64,
    /// Limit and mean service time of the last window at a lower limit.
    before: Option<(u32, f64)>,
    /// The same of the last window at this limit.
    here: Option<(u32, f64)>,
    /// Best requests a second so far.
    rate_best: f64,
    /// Windows in a row that were slower.
    slowed: u32,
}

suimon_model::saved_struct!(FastUp {
    begin,
    ends,
    service_seconds,
    service_squares,
    before,
    here,
    rate_best,
    slowed
});

/// What a window came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// Mean service time, seconds.
    pub(super) mean: f64,
    /// (1), where there is a limit to compare with.
    pub(super) elasticity: Option<f64>,
    pub(super) verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// This limit next.
    More(u32),
    /// As it is: nobody waits for more, or the machine stutters.
    Stay,
    /// Fast-up is over, at this limit; the search goes on upward or not.
    Over { limit: u32, up: bool },
}

impl FastUp {
    /// Returns a route that begins with the reading `begin`.
    pub(super) fn new(begin: Reading) -> Self {
        FastUp {
            begin,
            ends: 0,
            service_seconds: 0.0,
            service_squares: 0.0,
            before: None,
            here: None,
            rate_best: 0.0,
            slowed: 0,
        }
    }

    /// Takes note of an end that is progress, at `limit`. Returns what its window came to, if that was its last.
    pub(super) fn on_end(
        &mut self,
        now: Instant,
        service: f64,
        limit: u32,
        meter: &Meter,
    ) -> Option<Outcome> {
        self.ends += 1;
        self.service_seconds += service;
        self.service_squares += service * service;
        if self.ends < self.needed(limit) || now.secs_since(self.begin.at) < SECONDS_MIN {
            return None;
        }
        let window = meter.since(&self.begin, now);
        let mean = self.service_seconds / f64::from(self.ends);
        let is_binding = window.queued_share() >= BINDING;
        let rate = if is_binding { window.throughput() } else { self.rate_best };
        let slowed = if rate < RATE_KEPT * self.rate_best { self.slowed + 1 } else { 0 };
        let before = if self.here.is_some_and(|(at, _)| at < limit) { self.here } else { self.before };
        *self = FastUp {
            rate_best: self.rate_best.max(rate),
            slowed,
            before,
            here: Some((limit, mean)),
            ..FastUp::new(meter.read(now))
        };
        let elasticity = before
            .filter(|(at, was)| *at < limit && *was > 0.0)
            .map(|(at, was)| 1.0 - ln(mean / was) / ln(f64::from(limit) / f64::from(at)));
        let wanted = window.queued_share() >= WANTED;
        let more = Verdict::More((f64::from(limit) * STEP).ceil() as u32);
        let verdict = match (elasticity, before) {
            _ if mean < QUICK && slowed < SLOWED_MAX => {
                if wanted && slowed == 0 {
                    more
                } else {
                    Verdict::Stay
                }
            }
            (Some(elasticity), Some((lower, _))) if elasticity < GAIN_MIN => Verdict::Over {
                limit: if elasticity < GAIN_NONE { lower } else { limit },
                up: elasticity > LOSS,
            },
            _ if wanted => more,
            _ => Verdict::Stay,
        };
        Some(Outcome { mean, elasticity, verdict })
    }

    /// Returns how many ends a window at `limit` needs.
    fn needed(&self, limit: u32) -> u32 {
        let least = (2 * limit).max(ENDS_MIN);
        if self.ends < least {
            return least;
        }
        let mean = self.service_seconds / f64::from(self.ends);
        let variation = (self.service_squares / f64::from(self.ends) / (mean * mean) - 1.0).max(0.0);
        least.max(((ENDS_UNEVEN * variation) as u32).min(ENDS_MAX))
    }
}
