//! What a gate knows that is still useful in another process: neutral values, which laws and
//! statistics give and take.
//!
//! A law hands out a [`RouteKnowledge`] and takes one back; what it keeps inside is its own. So the
//! knowledge of one version of a law, or of another law, is useful to the next.
//!
//! *Law*. Knowledge of age a, from another run, is believed by the share
//!
//! ```text
//! t = ½ ^ (a / HALF_LIFE)                                             (1)
//! n' = round(t · min(n, n_max))      observations an average counts for, forgotten at 0      (2)
//! m' = m₀ · (m / m₀) ^ t             where the search for a limit starts; m₀ where it starts with nothing known   (3)
//! ```
//!
//! By (2), n' new observations count as much as all that came before, so a site that has changed is
//! soon known anew.

use crate::visits::STAGES;
use suimon_model::real::pow;
use suimon_model::{Duration, RouteId};

/// After this long, knowledge is believed half.
const HALF_LIFE: Duration = Duration::from_secs(24 * 3600);
/// A search that had ended does not begin anew while its result is believed by this share.
const BELIEVED: f64 = 0.5;
/// Observations that a recalled average counts for, at most, ...
pub(crate) const OBSERVATIONS_MAX: u64 = 20;
/// ... and those of a whole distribution, whose tail rests on few.
pub(crate) const VALUES_MAX: u64 = 100;

/// How far knowledge of another run is believed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trust(f64);

impl Trust {
    /// Returns the trust in knowledge of this age.
    pub fn after(age: Duration) -> Trust {
        Trust(pow(0.5, age.as_secs_f64() / HALF_LIFE.as_secs_f64()))
    }

    /// Returns t of (1), 0 to 1.
    pub fn share(self) -> f64 {
        self.0
    }

    /// Returns n' of (2).
    pub fn observations(self, count: u64, most: u64) -> u64 {
        (self.0 * count.min(most) as f64).round() as u64
    }

    /// Returns what is left of a mean, if anything is.
    pub fn in_mean(self, known: KnownMean) -> Option<KnownMean> {
        let observations = self.observations(known.observations, OBSERVATIONS_MAX);
        (observations > 0 && known.value.is_finite()).then_some(KnownMean { observations, ..known })
    }

    /// Returns m' of (3): `limit`, or a value nearer to `start`. Both are at least 1.
    pub fn limit(self, limit: u32, start: u32) -> u32 {
        let (limit, start) = (f64::from(limit.max(1)), f64::from(start.max(1)));
        (start * pow(limit / start, self.0)).round().max(1.0) as u32
    }

    /// Returns what is left of `known` at a route whose search would else start at `start`, without
    /// impossible values.
    pub fn in_route(self, known: &RouteKnowledge, start: u32) -> RouteKnowledge {
        RouteKnowledge {
            limit: self.limit(known.limit, start),
            settled: known.settled && self.0 >= BELIEVED,
            service: known.service.filter(|mean| mean.value >= 0.0).and_then(|mean| self.in_mean(mean)),
            service_least: known.service_least.filter(|least| least.is_finite() && *least > 0.0),
            share: known.share.filter(|share| share.is_finite()).map(|share| share.clamp(0.0, 1.0)),
        }
    }
}

/// A mean, and how many observations it stands for.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct KnownMean {
    /// The mean.
    pub value: f64,
    /// Observations.
    pub observations: u64,
}

suimon_model::saved_struct!(KnownMean { value, observations });

/// What a route law knows of one route.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RouteKnowledge {
    /// The limit believed best, at least 1; not one on trial.
    pub limit: u32,
    /// Whether it was found by a search that has ended. If not, the next one starts there as it
    /// would with nothing known.
    pub settled: bool,
    /// Mean seconds in the application.
    pub service: Option<KnownMean>,
    /// The best mean of these, seconds.
    pub service_least: Option<f64>,
    /// The route's share of the application's work, 0 to 1; `None` before it was measured.
    pub share: Option<f64>,
}

suimon_model::saved_struct!(RouteKnowledge { limit, settled, service, service_least, share });

impl RouteKnowledge {
    /// Returns the knowledge of a limit alone, which no search has found: one starts there.
    pub const fn of_limit(limit: u32) -> Self {
        RouteKnowledge { limit, settled: false, service: None, service_least: None, share: None }
    }
}

/// What a session law knows beyond [`crate::Visits`] and the routes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SessionKnowledge {
    /// Sessions per second that it admitted when enough came.
    pub rate: f64,
}

/// What [`crate::Visits`] knows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VisitsKnowledge {
    /// By [`RouteId`].
    pub routes: Vec<RouteVisits>,
    /// By [`suimon_model::KindId`]: the places sessions of the kind were seen at.
    pub kinds: Vec<Vec<VisitsAfter>>,
    /// Think times.
    pub thinks: KnownDistribution,
}

/// Visits to one route, by sessions of all kinds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RouteVisits {
    /// Visits a session makes.
    pub visits: KnownMean,
    /// Mean seconds from a session's admission to a visit.
    pub delay: f64,
    /// The ordinal number of a visit within its session, on average; at least 1.
    pub rank: f64,
}

/// What is known of sessions at one place.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VisitsAfter {
    /// The route of their last request; `None`: they have made none yet.
    pub after: Option<RouteId>,
    /// How often a session was there.
    pub seen: u64,
    /// Mean visits still to come. Routes left out: none.
    pub further: Vec<(RouteId, f64)>,
    /// The share that asked for each route next. Routes left out: none.
    pub next: Vec<(RouteId, f64)>,
    /// By stage of silence: the share of visitors that came back in it.
    pub returned: [KnownMean; STAGES],
}

/// A distribution of values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KnownDistribution {
    /// How many there were.
    pub count: u64,
    /// Values, and the share of all that are about as large. Shares sum to 1.
    pub shares: Vec<(f64, f64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_halves_in_a_day_and_a_week_forgets() {
        let fresh = Trust::after(Duration::ZERO);
        let (day, week) = (Trust::after(HALF_LIFE), Trust::after(7 * HALF_LIFE));
        assert_eq!([fresh, day, week].map(|trust| trust.observations(1_000_000, 20)), [20, 10, 0]);
        assert_eq!([fresh, day, week].map(|trust| trust.limit(32, 2)), [32, 8, 2]);
        assert_eq!(day.limit(2, 32), 8, "from above as from below");
        assert_eq!(week.in_mean(KnownMean { value: 3.0, observations: 1000 }), None);
        assert_eq!(fresh.in_mean(KnownMean { value: f64::NAN, observations: 1000 }), None);
        assert_eq!(Trust::after(Duration::MAX).observations(u64::MAX, u64::MAX), 0);
    }
}
