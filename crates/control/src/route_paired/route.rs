//! What is known of one route, and what it concludes from a trial.

use super::LONG;
use super::shares::WHOLE;
use super::slow_start::SlowStart;
use super::trial::{TrialResult, log_useful};
use crate::service_times::ServiceTimes;
use crate::statistics::Average;
use crate::window::{Meter, Reading, Window};
use std::collections::BTreeMap;
use suimon_model::real::exp;
use suimon_model::{Instant, Quantity, Reason, Record, RequestId, RouteId, Signals, Subject, seconds};

/// Seconds after which a page whose trials take minutes is searched upward again, once its search is
/// over, at first.
pub(super) const RETRY_MIN: f64 = 30.0;
/// Pairs after which a trial ends undecided; doubled after each hold up to [`PAIRS_CAP`].
pub(super) const PAIRS_MAX: usize = 4;
/// The most pairs a trial ever takes.
const PAIRS_CAP: usize = 16;
/// The largest step of ln m.
pub(super) const STEP_MAX: f64 = std::f64::consts::LN_2;
/// The same of a long page, ln 1.25: the effect of too high a limit is over only when the requests
/// that came then have left.
const STEP_MAX_LONG: f64 = 0.223_143_551_314_209_76;
/// The smallest step of ln m: ln 1.15.
const STEP_MIN: f64 = 0.139_761_942_375_158_7;
/// Noise of ln U per √end where all requests are alike; before any noise was measured, their
/// variation is added to it.
const NOISE_LEAST: f64 = 0.3;
/// The fewest requests of a route that show its strain, and the most that count; and the most
/// strain that is believed of one route.
const WITNESSES: (f64, f64) = (3.0, 8.0);
const STRAIN_MAX: f64 = 20.0;
/// Requests show what they take in little company up to the class of this company at least: on one
/// core hardly any is ever all alone.
const COMPANY_MIN: u32 = 2;
/// Share of the limit that must be in use for the limit to be what is too high.
const IN_USE: f64 = 0.75;
/// Requests in the application whose ages show how long they stay, before any ends.
const AGES_MIN: usize = 16;
/// Holds begin at this many seconds and double up to [`COOLDOWN_MAX`].
const COOLDOWN_MIN: f64 = 4.0;
const COOLDOWN_MAX: f64 = 30.0;
/// Loss of ln U that need not be repeated ...
const MUCH_WORSE: f64 = 0.15;
/// ... for this long, seconds, or for the multiple below of what a request takes if that is longer,
/// ...
const KNOWN_BAD_SECONDS: f64 = 60.0;
const KNOWN_BAD_SERVICES: f64 = 20.0;
/// ... or this many where no trial has shown that it was the limit, and a backoff was made.
const BACKED_OFF_SERVICES: f64 = 3.0;
/// Where requests of many sorts share a route, the requests in flight are of another sort than
/// those seen before once nothing has ended for this many times what those took, ...
const UNLIKE: f64 = 8.0;
/// ... and for at least this many seconds.
const UNLIKE_SECONDS: f64 = 0.5;
/// Change of ln U that is more than noise.
const DRIFT: f64 = 0.30;

/// What is known of one route.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// Whether the law owns the limit; else it is only carried for its meter.
    pub(super) learns: bool,
    /// Whether requests without a route of their own share it: those seen say little of the next
    /// ones.
    pub(super) is_mixed: bool,
    /// Whether a cap of its service holds back what waits there, and not its limit.
    pub(super) is_capped: bool,
    /// Whether a trial may begin.
    pub(super) tries: bool,
    /// The limit in force: the base, or the one under trial.
    pub(super) limit: u32,
    /// The limit believed best so far.
    pub(super) base: u32,
    /// What it is the rounding of, where nodes have come or gone since it was found.
    pub(super) base_exact: f64,
    pub(super) up: bool,
    pub(super) step: f64,
    pub(super) cooldown_until: Instant,
    pub(super) cooldown_seconds: f64,
    pub(super) failures_at_smallest: u32,
    pub(super) pairs_max: usize,
    /// c² of (4).
    pub(super) noise: Average,
    /// Squared coefficient of variation of service times within a window.
    pub(super) variation: Average,
    pub(super) memory: Option<TrialResult>,
    /// The nearest limits below and above that were much worse, and until when that is believed.
    known_bad: [Option<KnownBad>; 2],
    /// When its last trial began.
    pub(super) probed: Instant,
    pub(super) service: Average,
    /// Service times by company.
    pub(super) times: ServiceTimes,
    /// The share of a core that a request can ask for, in parts of [`WHOLE`].
    pub(super) weight: u64,
    pub(super) service_min: f64,
    /// Seconds that the last request that says what one takes was in the application.
    pub(super) newest_seconds: f64,
    /// Where it is searched because it has become slower: the mean from which on it is, seconds.
    pub(super) slower_from: Option<f64>,
    pub(super) rate_max: f64,
    /// Progress per second over the last views.
    pub(super) rate: f64,
    pub(super) slow_start: Option<SlowStart>,
    /// ln U at the base limit, with the weights it was taken with.
    pub(super) reference: Option<Reference>,
    pub(super) drifts: u32,
    pub(super) share: f64,
    /// How often its share was measured.
    pub(super) share_looks: u32,
    pub(super) binding_ticks: u32,
    /// Since when every slot has been in use and requests have waited at the limit in force.
    pub(super) full_since: Option<Instant>,
    /// When a very long page is searched upward again, and how long it is then left alone.
    pub(super) retry_at: Instant,
    pub(super) retry_seconds: f64,
    /// When its strain was measured, what it was at the other routes, and how often in a row that
    /// was a thrash.
    pub(super) strain_begin: Reading,
    pub(super) strain_own: Option<StrainReading>,
    pub(super) ease_elsewhere: Option<f64>,
    pub(super) strain_elsewhere: Option<f64>,
    pub(super) strained: u32,
    /// Share of the last seconds in which the route was binding.
    pub(super) pressure: f64,
    pub(super) backoff_until: Instant,
    /// When a request was last seen waiting.
    pub(super) waited_at: Instant,
    /// When a request of it was last answered.
    pub(super) answered_at: Option<Instant>,
    /// When backoff last checked, and how many were in the application then.
    stay_begin: Reading,
    stay_in_flight: u32,
    pub(super) in_service: BTreeMap<RequestId, InService>,
}

/// A request in the application.
#[derive(Clone, Copy, Debug)]
pub(super) struct InService {
    /// Since when.
    pub(super) since: Instant,
    /// Its company then, itself included.
    pub(super) company: u32,
}

suimon_model::saved_struct!(InService { since, company });

suimon_model::saved_struct!(Route {
    learns,
    is_mixed,
    is_capped,
    tries,
    limit,
    base,
    base_exact,
    up,
    step,
    cooldown_until,
    cooldown_seconds,
    failures_at_smallest,
    pairs_max,
    noise,
    variation,
    memory,
    known_bad,
    probed,
    service,
    times,
    weight,
    service_min,
    newest_seconds,
    slower_from,
    rate_max,
    rate,
    slow_start,
    reference,
    drifts,
    share,
    share_looks,
    binding_ticks,
    full_since,
    retry_at,
    retry_seconds,
    strain_begin,
    strain_own,
    strain_elsewhere,
    ease_elsewhere,
    strained,
    pressure,
    backoff_until,
    waited_at,
    answered_at,
    stay_begin,
    stay_in_flight,
    in_service,
});

/// What the requests of a route say of the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct StrainReading {
    /// How many times as long they take as in little company.
    pub(super) strain: f64,
    /// The weight of that evidence.
    pub(super) weight: f64,
    /// Whether in little company each had a core of its own.
    pub(super) founded: bool,
}

suimon_model::saved_struct!(StrainReading { strain, weight, founded });

/// A limit that was much worse.
#[derive(Clone, Copy, Debug)]
struct KnownBad {
    limit: u32,
    until: Instant,
}

suimon_model::saved_struct!(KnownBad { limit, until });

#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) log_useful: f64,
    pub(super) weights: Vec<f64>,
    pub(super) begin: Vec<Reading>,
}

suimon_model::saved_struct!(Reference { log_useful, weights, begin });

impl Route {
    pub(super) fn new(begin: Reading, limit: u32, learns: bool) -> Self {
        Route {
            learns,
            is_mixed: false,
            is_capped: false,
            tries: true,
            limit,
            base: limit,
            base_exact: f64::from(limit),
            up: true,
            step: STEP_MAX,
            cooldown_until: Instant::ORIGIN,
            cooldown_seconds: COOLDOWN_MIN,
            failures_at_smallest: 0,
            pairs_max: PAIRS_MAX,
            noise: Average::new(0.2),
            variation: Average::new(0.2),
            memory: None,
            known_bad: [None; 2],
            probed: Instant::ORIGIN,
            service: Average::new(0.02),
            times: ServiceTimes::default(),
            weight: WHOLE,
            service_min: f64::INFINITY,
            newest_seconds: 0.0,
            slower_from: None,
            rate_max: 0.0,
            rate: 0.0,
            slow_start: Some(SlowStart::new(begin)),
            reference: None,
            drifts: 0,
            share: 0.0,
            share_looks: 0,
            binding_ticks: 0,
            full_since: None,
            retry_at: Instant::ORIGIN,
            retry_seconds: RETRY_MIN,
            strain_begin: begin,
            strain_own: None,
            strain_elsewhere: None,
            ease_elsewhere: None,
            strained: 0,
            pressure: 0.0,
            backoff_until: Instant::ORIGIN,
            waited_at: Instant::ORIGIN,
            answered_at: None,
            stay_begin: begin,
            stay_in_flight: 0,
            in_service: BTreeMap::new(),
        }
    }

    /// Returns whether what was seen of it says nothing of the requests in flight.
    pub(super) fn is_unlike(&self, now: Instant) -> bool {
        let took = self.service.get().unwrap_or(0.0);
        let quiet = self.answered_at.map(|at| now.secs_since(at));
        self.is_mixed && quiet.is_some_and(|quiet| quiet >= (UNLIKE * took).max(UNLIKE_SECONDS))
    }

    /// Returns c of (4): what uneven requests alone would make it, until same-arm differences have
    /// been seen.
    pub(super) fn noise(&self) -> f64 {
        let prior = NOISE_LEAST * NOISE_LEAST + self.variation.get().unwrap_or(1.0);
        let seen = self.noise.count().min(4) as f64 / 4.0;
        (prior + seen * (self.noise.get().unwrap_or(prior) - prior)).sqrt()
    }

    /// Returns the change of ln U over `ends` ends that is more than noise.
    pub(super) fn drift(&self, ends: f64) -> f64 {
        DRIFT.max(3.0 * self.noise() / ends.sqrt())
    }

    /// Returns the highest limit worth trying: `ceiling`, or half way from the base to one that is
    /// known to be much worse.
    pub(super) fn highest(&self, now: Instant, ceiling: u32) -> u32 {
        match self.known_bad[usize::from(true)].filter(|known_bad| now < known_bad.until) {
            Some(KnownBad { limit, .. }) => {
                let half_way = (f64::from(self.base) * f64::from(limit)).sqrt() as u32;
                ceiling.min(half_way).min(limit.saturating_sub(1)).max(1)
            }
            None => ceiling.max(1),
        }
    }

    /// Returns the lowest limit worth trying: 1, or half way from the base to one that is known to
    /// be much worse.
    fn lowest(&self, now: Instant) -> u32 {
        match self.known_bad[usize::from(false)].filter(|known_bad| now < known_bad.until) {
            Some(KnownBad { limit, .. }) => {
                ((f64::from(self.base) * f64::from(limit)).sqrt().ceil() as u32).max(limit + 1)
            }
            None => 1,
        }
    }

    /// Returns the limit to try next, in the present direction or else in the other; `None` if
    /// there is none worth its cost.
    pub(super) fn next_probe(&mut self, now: Instant, ceiling: u32, cores: u32) -> Option<u32> {
        for _ in 0..2 {
            let probe = self.probe(now, ceiling, cores);
            if probe.is_some() {
                return probe;
            }
            self.up = !self.up;
        }
        None
    }

    /// Returns the limit one step on in the present direction, or half way to one that is known to
    /// be much worse; `None` if there is none.
    fn probe(&self, now: Instant, ceiling: u32, cores: u32) -> Option<u32> {
        let base = f64::from(self.base);
        let is_long = self.times.recent().is_some_and(|recent| recent >= LONG)
            && (self.up || self.times.is_founded(cores));
        let step = if is_long { self.step.min(STEP_MAX_LONG) } else { self.step };
        let probe = if self.up {
            ((base * exp(step)).round() as u32).max(self.base + 1).min(self.highest(now, ceiling))
        } else {
            ((base * exp(-step)).round() as u32).min(self.base.saturating_sub(1)).max(self.lowest(now))
        };
        (probe != self.base && (self.up == (probe > self.base))).then_some(probe)
    }

    /// Takes note that the application has `ratio` times the nodes it had. What limits were good or bad
    /// then, and what was done under them, says nothing any more.
    pub(super) fn scale(&mut self, ratio: f64) {
        self.rate_max *= ratio;
        self.rate *= ratio;
        self.known_bad = [None; 2];
        (self.memory, self.reference, self.full_since) = (None, None, None);
        (self.drifts, self.binding_ticks, self.failures_at_smallest) = (0, 0, 0);
    }

    /// Takes note that `limit` was much worse than the base.
    pub(super) fn mark_known_bad(&mut self, now: Instant, limit: u32) {
        self.mark_known_bad_for(now, limit, KNOWN_BAD_SERVICES);
    }

    /// Takes note that `limit` was far too high, for whatever reason: no trial has shown that it
    /// was the limit.
    pub(super) fn mark_backed_off(&mut self, now: Instant, limit: u32) {
        self.mark_known_bad_for(now, limit, BACKED_OFF_SERVICES);
    }

    /// Returns whether a limit above the one it stands at is known to be too high.
    pub(super) fn is_bounded(&self, now: Instant) -> bool {
        self.known_bad[1].is_some_and(|bad| now < bad.until)
    }

    fn mark_known_bad_for(&mut self, now: Instant, limit: u32, services: f64) {
        let until = now + seconds(KNOWN_BAD_SECONDS.max(services * self.times.alone().unwrap_or(0.0)));
        let until = until.max(self.backoff_until + seconds(KNOWN_BAD_SECONDS));
        self.known_bad[usize::from(limit > self.base)] = Some(KnownBad { limit, until });
    }

    /// Compares progress per second by route at the base limit, over `ends` ends, with the
    /// reference; returns whether the search begins anew.
    pub(super) fn drifted(&mut self, rates: &[f64], ends: f64) -> bool {
        let drift = self.drift(ends);
        let Some(reference) = &mut self.reference else { return false };
        let change = log_useful(&reference.weights, rates) - reference.log_useful;
        if change.abs() <= drift {
            self.drifts = 0;
            reference.log_useful += 0.1 * change;
            return false;
        }
        self.drifts += 1;
        if self.drifts < 2 {
            return false;
        }
        self.drifts = 0;
        self.step = STEP_MAX;
        self.cooldown_until = Instant::ORIGIN;
        self.cooldown_seconds = COOLDOWN_MIN;
        self.failures_at_smallest = 0;
        self.pairs_max = PAIRS_MAX;
        self.memory = None;
        self.known_bad = [None; 2];
        self.up = change > 0.0;
        self.reference = None;
        true
    }

    /// Takes note of a trial that was won, or lost: the size and direction of the next step, and
    /// whether to rest first.
    pub(super) fn learn(&mut self, now: Instant, verdict: TrialResult) {
        let TrialResult { probe, accepted, decided, difference, .. } = verdict;
        self.memory = Some(verdict);
        if decided && !accepted && difference < -MUCH_WORSE {
            self.mark_known_bad(now, probe);
        }
        if accepted {
            self.step = (self.step * 1.5).min(STEP_MAX);
            self.failures_at_smallest = 0;
            self.cooldown_seconds = COOLDOWN_MIN;
            self.pairs_max = PAIRS_MAX;
            return;
        }
        self.failed(now);
    }

    /// Forgets limits that were much worse and are no longer on their side of the base.
    pub(super) fn forget_passed(&mut self) {
        let base = self.base;
        let [below, above] = &mut self.known_bad;
        below.take_if(|known_bad| known_bad.limit >= base);
        above.take_if(|known_bad| known_bad.limit <= base);
    }

    /// Takes note of a limit tried in vain.
    pub(super) fn failed(&mut self, now: Instant) {
        self.up = !self.up;
        if self.step <= STEP_MIN + 1e-9 {
            self.failures_at_smallest += 1;
        }
        self.step = (self.step * 0.5).max(STEP_MIN);
        if self.failures_at_smallest >= 2 {
            self.failures_at_smallest = 0;
            self.cooldown_until = now + seconds(self.cooldown_seconds);
            self.cooldown_seconds = (self.cooldown_seconds * 2.0).min(COOLDOWN_MAX);
            self.pairs_max = (self.pairs_max * 2).min(PAIRS_CAP);
        }
    }

    /// Returns seconds that requests stay in the application, if it is more than `allowed`: in the
    /// allowed time fewer have ended than were there at its beginning. Ages would only show
    /// stragglers, where the system shares unevenly, and not the rest.
    pub(super) fn stays_too_long(&mut self, now: Instant, meter: &Meter, allowed: f64) -> Option<f64> {
        let window = meter.since(&self.stay_begin, now);
        // Where less than the next lower limit is in use, lowering it changes nothing.
        let is_in_use = meter.in_flight() as f64 > IN_USE * f64::from(self.limit);
        if let Some(median) = self.median_age(now).filter(|median| is_in_use && *median > allowed) {
            self.reset_residence_window(now, meter);
            return Some(median);
        }
        let filling = meter.in_flight() > 2 * self.stay_in_flight as usize;
        if !filling && window.seconds < allowed {
            return None;
        }
        let (there, ends) = (f64::from(self.stay_in_flight), window.progressed + window.failed);
        self.reset_residence_window(now, meter);
        let stay = window.seconds * there / ends.max(1) as f64;
        (!filling && is_in_use && there > IN_USE * f64::from(self.limit) && stay > allowed).then_some(stay)
    }

    /// Returns how many times as long requests took in the window as in little company, and the
    /// weight of that; `None` where it says nothing. Long pages are no witnesses: they report too
    /// late, and most of what they take may be waiting.
    pub(super) fn strain(&self, now: Instant, window: &Window, cores: u32) -> Option<StrainReading> {
        let alone = self.times.alone().filter(|alone| (1e-6..LONG).contains(alone))?;
        let founded = self.times.was_alone(cores.max(COMPANY_MIN));
        let witnesses = window.progressed as f64 + self.in_service.len() as f64;
        if witnesses < WITNESSES.0 || self.is_unlike(now) {
            return None;
        }
        // Where nothing ends any more, the requests still there are the evidence.
        let ages: f64 = self.in_service.values().map(|inside| now.secs_since(inside.since)).sum();
        let age = ages / self.in_service.len().max(1) as f64;
        let took = window.mean_service().map_or(age, |mean| mean.max(age));
        Some(StrainReading {
            strain: (took / alone).min(STRAIN_MAX),
            weight: witnesses.min(WITNESSES.1),
            founded,
        })
    }

    /// Returns whether its requests take long by themselves, as far as is known on this number of
    /// `cores`, or have not shown yet how long they take.
    pub(super) fn is_long(&self, cores: u32) -> bool {
        let by_itself = self.times.alone().filter(|_| self.times.is_founded(cores));
        by_itself.or(self.times.recent()).is_none_or(|seconds| seconds >= LONG)
    }

    /// Restarts backoff's window.
    pub(super) fn reset_residence_window(&mut self, now: Instant, meter: &Meter) {
        self.stay_begin = meter.read(now);
        self.stay_in_flight = meter.in_flight() as u32;
    }

    /// Returns the median age of the requests in the application, seconds, where they are many: of
    /// a few it only shows stragglers.
    fn median_age(&self, now: Instant) -> Option<f64> {
        let mut ages: Vec<f64> =
            self.in_service.values().map(|inside| now.secs_since(inside.since)).collect();
        if ages.len() < AGES_MIN {
            return None;
        }
        let middle = ages.len() / 2;
        Some(*ages.select_nth_unstable_by(middle, f64::total_cmp).1)
    }

    /// Puts a limit in force and records it, unless it is the same and nothing was decided.
    pub(super) fn publish(
        &mut self,
        now: Instant,
        id: RouteId,
        limit: u32,
        reason: Reason,
        signals: Signals,
        out: &mut Vec<Record>,
    ) {
        let old = self.limit;
        self.limit = limit;
        let told = !matches!(reason, Reason::BaseWindow | Reason::TrialWindow | Reason::TrialDropped);
        if old != limit || told {
            out.push(Record {
                at: now,
                subject: Subject::Route(id),
                quantity: Quantity::Limit,
                old: f64::from(old),
                new: f64::from(limit),
                reason,
                signals,
            });
        }
    }

    /// Ends the search that has begun because it was taken for slower, if it no longer is: its requests take `mean`
    /// seconds at the newest look.
    pub(super) fn end_search_of_standstill(&mut self, mean: f64) {
        let is_searched = self.slow_start.is_some();
        if self.slower_from.is_some_and(|seconds| mean < seconds || !is_searched) {
            (self.slow_start, self.slower_from) = (None, None);
        }
    }
}
