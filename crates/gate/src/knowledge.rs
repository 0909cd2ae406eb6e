//! What a gate knows that is still useful in another process, and how a gate that begins with it
//! comes to doubt it.

use crate::learned::ServiceTimeStats;
use suimon_control::{KnownMean, RouteKnowledge, SessionKnowledge, Trust, VisitsKnowledge};
use suimon_model::Instant;

/// Everything known, without what is under way: no requests, sessions or lines.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Knowledge {
    /// By [`suimon_model::RouteId`].
    pub routes: Vec<KnownRoute>,
    /// By [`suimon_model::KindId`].
    pub kinds: Vec<KnownKind>,
    /// Visits and think times.
    pub visits: VisitsKnowledge,
}

/// What is known of one route.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KnownRoute {
    /// Requests since the start: whether the route is used at all.
    pub came: u64,
    /// What the law knows of it.
    pub law: Option<RouteKnowledge>,
    /// X: completions per second under full load.
    pub capacity: Option<KnownMean>,
    /// Time in the application.
    pub took: Option<ServiceTimeStats>,
    /// The same, of those that had a core of their own.
    pub took_alone: Option<ServiceTimeStats>,
}

/// What is known of one kind of session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KnownKind {
    /// How long a visitor waits for one answer, seconds, if that was learned.
    pub patience: Option<f64>,
    /// What the law knows of it.
    pub law: Option<SessionKnowledge>,
}

/// A capacity recalled counts for this many observations when it is written down; it is forgotten
/// when none is left.
const CAPACITY_OBSERVATIONS: u64 = 8;
/// Growth per second of a capacity recalled, while newcomers are held back and the route has slots
/// free.
const CAPACITY_GROWTH: f64 = 1.25;
/// A throughput of fewer completions than this is no sign of a higher capacity.
const COMPLETIONS_MIN: f64 = 8.0;
/// The least completions per second that are believed: a route that answers once in ten minutes has
/// none, and waiting for it would shut the gate.
const CAPACITY_LEAST: f64 = 1.0 / 600.0;
/// Whatever delay is known, free slots speak against a capacity after this many seconds.
const DELAY_MAX: f64 = 60.0;
/// Patience, seconds.
const PATIENCE: (f64, f64) = (0.5, 3600.0);
/// A tenth of the clients that wait for as long as the patience leave by then. Each leaver makes up
/// for this many who stay; if this many stay without a leaver, the patience recalled is not that of
/// these clients.
const STAYERS_PER_LEAVER: f64 = 9.0;
const STAYERS_MAX: f64 = 20.0;

/// A capacity known from another run, until the first one is measured here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RecalledCapacity {
    pub(crate) per_second: f64,
    pub(crate) observations: u64,
    /// Seconds for which newcomers have been held back.
    held: f64,
    looked: Instant,
}

suimon_model::saved_struct!(RecalledCapacity { per_second, observations, held, looked });

impl RecalledCapacity {
    pub(crate) fn new(known: KnownMean, trust: Trust, now: Instant) -> Option<Self> {
        let observations = trust.observations(known.observations, CAPACITY_OBSERVATIONS);
        let is_rate = known.value.is_finite() && known.value >= CAPACITY_LEAST;
        (is_rate && observations > 0).then_some(RecalledCapacity {
            per_second: known.value,
            observations,
            held: 0.0,
            looked: now,
        })
    }

    /// Takes note that the application can do `ratio` times as much.
    pub(crate) fn scale(&mut self, ratio: f64) {
        self.per_second *= ratio;
    }

    /// Returns what was measured here as knowledge.
    pub(crate) fn known(per_second: f64) -> KnownMean {
        KnownMean { value: per_second, observations: CAPACITY_OBSERVATIONS }
    }

    /// Compares it with what is seen: `rate` is the route's throughput over `seconds`, `is_held`
    /// whether newcomers are held back, `is_free` whether the route has slots to spare, `delay` how
    /// many seconds after its beginning a session comes here.
    ///
    /// A newcomer held back because of this route less than `delay` seconds ago would not be here
    /// yet anyway: until then free slots say nothing.
    pub(crate) fn doubt(&mut self, now: Instant, seen: RouteSample) {
        let passed = now.secs_since(self.looked).min(1.0);
        self.looked = now;
        self.held = (self.held + if seen.is_held { passed } else { -passed }).max(0.0);
        if seen.rate > self.per_second && seen.rate * seen.seconds >= COMPLETIONS_MIN {
            self.per_second = seen.rate;
        }
        if seen.is_held && seen.is_free && self.held > seen.delay.min(DELAY_MAX) {
            self.per_second *= suimon_model::real::pow(CAPACITY_GROWTH, passed);
        }
    }
}

/// What is measured at a route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteSample {
    pub(crate) rate: f64,
    pub(crate) seconds: f64,
    pub(crate) is_held: bool,
    pub(crate) is_free: bool,
    pub(crate) delay: f64,
}

/// A patience known from another run, until enough visitors have left here to learn from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RecalledPatience {
    pub(crate) seconds: f64,
    /// Those who waited for longer and did not leave, less those made up for by leavers.
    stayers: f64,
}

suimon_model::saved_struct!(RecalledPatience { seconds, stayers });

impl RecalledPatience {
    pub(crate) fn new(seconds: f64, trust: Trust) -> Option<Self> {
        let is_believed = trust.observations(1, 1) > 0;
        (is_believed && seconds.is_finite())
            .then(|| RecalledPatience { seconds: seconds.clamp(PATIENCE.0, PATIENCE.1), stayers: 0.0 })
    }

    /// Takes note of a request that was `age` seconds old when it ended; `left`: its client went
    /// away. Returns whether the patience is still believed.
    pub(crate) fn is_believed_after(&mut self, age: f64, left: bool) -> bool {
        if left {
            self.stayers = (self.stayers - STAYERS_PER_LEAVER).max(0.0);
        } else if age > self.seconds {
            self.stayers += 1.0;
        }
        self.stayers < STAYERS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::{Duration, seconds};

    fn at(secs: f64) -> Instant {
        Instant::ORIGIN + seconds(secs)
    }

    fn fresh() -> Trust {
        Trust::after(Duration::ZERO)
    }

    fn seen(is_held: bool, is_free: bool) -> RouteSample {
        RouteSample { rate: 3.0, seconds: 2.0, is_held, is_free, delay: 10.0 }
    }

    #[test]
    fn a_capacity_grows_once_those_it_holds_back_for_would_have_been_there() {
        let mut recalled = RecalledCapacity::new(RecalledCapacity::known(4.0), fresh(), at(0.0)).unwrap();
        let mut play = |from: u32, to: u32, seen: RouteSample| {
            (from..to).for_each(|tick| recalled.doubt(at(f64::from(tick + 1) * 0.25), seen));
            recalled.per_second
        };
        assert!((play(0, 40, seen(true, true)) - 4.0).abs() < 1e-9, "nobody could have come here yet");
        assert!((play(40, 80, seen(true, false)) - 4.0).abs() < 1e-9, "every slot is in use");
        let grown = play(80, 120, seen(true, true));
        assert!((36.0..39.0).contains(&grown), "ten seconds of free slots: {grown}");
        assert!((play(120, 200, seen(false, true)) - grown).abs() < 1e-9, "nobody is held back");
    }

    #[test]
    fn a_capacity_that_is_surpassed_is_raised() {
        let mut recalled = RecalledCapacity::new(RecalledCapacity::known(4.0), fresh(), at(0.0)).unwrap();
        recalled.doubt(at(1.0), RouteSample { rate: 5.0, seconds: 1.0, ..seen(false, false) });
        assert!((recalled.per_second - 4.0).abs() < 1e-9, "five completions are a burst");
        recalled.doubt(at(2.0), RouteSample { rate: 5.0, ..seen(false, false) });
        assert!((recalled.per_second - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_patience_is_forgotten_where_people_wait_for_longer() {
        let mut recalled = RecalledPatience::new(3.0, fresh()).unwrap();
        assert!((0..100).all(|_| recalled.is_believed_after(2.0, false)), "quick answers say nothing");
        for round in 0..100 {
            assert!((0..9).all(|_| recalled.is_believed_after(4.0, false)), "round {round}");
            assert!(recalled.is_believed_after(3.0, true));
        }
        assert!(!(0..20).all(|_| recalled.is_believed_after(4.0, false)), "nobody leaves any more");
        assert_eq!(RecalledPatience::new(f64::NAN, fresh()), None);
        assert_eq!(RecalledPatience::new(3.0, Trust::after(Duration::from_secs(9 * 24 * 3600))), None);
    }
}
