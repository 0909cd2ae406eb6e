//! More room without a trial: for pages that take too long to be tried, and for routes too light to
//! be.

use super::route::{RETRY_MIN, Route};
use super::slow_start::SlowStart;
use super::{FAR, LIMIT_MAX, LONG, Paired, QUICK, RAISE_GROWTH_FAR, SHARE_MIN, VERY_LONG};
use crate::route::RouteLaw;
use crate::window::Meter;
use suimon_model::{Instant, Reason, Record, RouteId, Signals, seconds};

/// A full route is raised after this many seconds at least, ...
const RAISE_SECONDS: f64 = 0.5;
/// ... or this many where the others are to be measured meanwhile, ...
const RAISE_LOOKED: f64 = 2.0;
/// ... while they take less than this many times as long as in little company; ...
const AT_EASE: f64 = 1.5;
/// ... and after this many of its service times once its search is over.
const RAISE_SERVICES: f64 = 0.25;
/// A page whose trials take minutes is searched upward again, first after [`RETRY_MIN`], then after
/// twice as long each time, up to this many seconds, ...
const RETRY_MAX: f64 = 600.0;
/// ... as long as it takes no more than this many times what it takes in little company.
const ITSELF: f64 = 1.3;
/// A limit above this many times the largest company in which the page was seen to take no longer
/// is not raised like that: the effect of a higher one shows one service time late.
const FAR_SEEN: u32 = 3;
/// After this many seconds without an answer, and with no request in flight, a route has no request
/// that could suffer.
const QUIET_SECONDS: f64 = 1.0;
/// Growth of the limit of a full route that is raised by time.
const RAISE_GROWTH: f64 = 2.0;
/// The same once its search is over: it is near the best limit, and too high a limit takes minutes
/// to show and to be over.
const RETRY_GROWTH: f64 = 1.25;

/// The situation of a route that asks for room.
#[derive(Clone, Copy, Debug)]
struct Surroundings {
    /// Nothing has ended at any other route; or nothing recently, where the requests seen there say
    /// nothing of the next ones.
    is_only: bool,
    /// Everybody in the application has a core, others by the share that they can ask for.
    is_roomy: bool,
    /// As many cores as are believed.
    cores: u32,
}

impl Paired {
    /// Raises a full route by time alone: one of which nothing has ended yet, as the first visitors
    /// of a page of twelve seconds would otherwise wait for twelve seconds only to show that they
    /// need not have waited; and a long page that is known to take no longer in company, whose
    /// search was ended by something else. A trial of its own is not disturbed: it may be about to
    /// show that the limit is too high already.
    pub(super) fn raise(
        &mut self,
        now: Instant,
        id: RouteId,
        meter: &Meter,
        binding: bool,
        out: &mut Vec<Record>,
    ) {
        let is_mixed = self.routes[id.index()].is_mixed;
        let is_nobody_there =
            |route: &Route| route.service.get().is_none() || is_mixed && route.is_deserted(now);
        let mut others = (0u32..).zip(&self.routes).filter(|(other, _)| RouteId(*other) != id);
        let is_only = others.all(|(_, route)| is_nobody_there(route));
        let cores = self.trusted_cores();
        let around = Surroundings { is_only, is_roomy: self.company(id) <= f64::from(cores), cores };
        let is_probed = self.probing() == Some(id);
        let route = &mut self.routes[id.index()];
        // What backoff has just taken is not given back while the requests are still there for
        // which it was too much.
        let is_braked = now < route.backoff_until || meter.in_flight() > route.limit as usize;
        if !binding || is_probed || is_braked {
            route.full_since = None;
            return;
        }
        let since = *route.full_since.get_or_insert(now);
        let full = now.secs_since(since);
        if !route.is_due(now, full, around) {
            return;
        }
        // Only the others show whether it hurts, or the fact that there are no others.
        let is_told = route.strain_elsewhere.is_some() || around.is_only || around.is_roomy;
        let is_far = f64::from(route.limit) >= FAR * f64::from(cores);
        let growth = match route.slow_start {
            Some(_) if is_far || !is_told => RAISE_GROWTH_FAR,
            Some(_) => RAISE_GROWTH,
            None if route.is_unlike(now) => RAISE_GROWTH,
            None => RETRY_GROWTH,
        };
        let limit = ((f64::from(route.limit) * growth).ceil() as u32).min(route.highest(now, LIMIT_MAX));
        if limit <= route.limit {
            return;
        }
        route.full_since = Some(now);
        // A search that is over begins anew where the others show what it does to them; else it
        // goes on in steps of a quarter.
        if route.slow_start.is_none() && route.strain_elsewhere.is_some() {
            route.forget_long_rest(now);
            route.slow_start = Some(SlowStart::new(meter.read(now)));
        }
        let signals = Signals::none()
            .with("full_seconds", full)
            .with("alone_seconds", route.times.alone().unwrap_or(0.0));
        self.set_base(now, id, limit, Reason::SlowStart, signals, out);
    }

    /// Routes too light to be probed: keep their queue short, never beyond what their rate can use.
    pub(super) fn headroom(&mut self, now: Instant, meters: &[Meter], out: &mut Vec<Record>) {
        for (index, meter) in meters.iter().enumerate() {
            let route = &self.routes[index];
            let id = RouteId(index as u32);
            let light = route.learns && route.slow_start.is_none() && route.share < SHARE_MIN;
            let is_braked = now < route.backoff_until;
            if !light || is_braked || route.binding_ticks < 4 || self.probing() == Some(id) {
                continue;
            }
            // For quick requests as many as are done in 2 ms: they come in bursts, and queueing one
            // costs more than it saves.
            let service = route.service.get().unwrap_or(0.0);
            let useful = route.rate_max * (1.5 * service).max(QUICK);
            let most = route.highest(now, self.ceiling(id)).min(useful.ceil() as u32 + 1);
            let limit = (route.base + (route.base / 8).max(1)).min(most);
            if limit > route.base {
                self.routes[index].binding_ticks = 0;
                let signals = Signals::none().with("waiting", meter.waiting() as f64).with("useful", useful);
                self.set_base(now, id, limit, Reason::Headroom, signals, out);
            }
        }
    }
}

impl Route {
    /// Returns whether it is raised by time and not by trials: for a very long page trials would
    /// take minutes, and hold its limit meanwhile.
    pub(super) fn is_raised(&self, cores: u32) -> bool {
        self.times.alone().is_some_and(|alone| alone >= VERY_LONG)
            && self.times.is_founded(cores)
            && self.is_itself()
            && self.are_others_at_ease()
    }

    /// Returns whether nobody is inside, and has not been for a while.
    pub(super) fn is_deserted(&self, now: Instant) -> bool {
        let is_quiet = |at| now.secs_since(at) >= QUIET_SECONDS;
        self.in_service.is_empty() && self.answered_at.is_none_or(is_quiet)
    }

    /// Takes note that its search upward begins once more. If there was no request for a long time,
    /// the reason that ended the last one is long past.
    pub(super) fn forget_long_rest(&mut self, now: Instant) {
        if now > self.retry_at + seconds(self.retry_seconds) {
            self.retry_seconds = RETRY_MIN;
        }
    }

    /// Takes note that its search upward is over: the next one begins later, each time by twice as
    /// much.
    pub(super) fn retried(&mut self, now: Instant) {
        self.retry_at = now + seconds(self.retry_seconds);
        self.retry_seconds = (2.0 * self.retry_seconds).min(RETRY_MAX);
    }

    /// Returns whether a route that has been full for `seconds` is raised by time.
    fn is_due(&self, now: Instant, seconds: f64, around: Surroundings) -> bool {
        if self.strain_of_others().is_some_and(|strain| strain >= AT_EASE) {
            return false;
        }
        let others = self.strain_elsewhere.is_some();
        // The others take no longer than in the least company they had: more will probably not
        // hurt, and it shows soon if it does.
        let others_likely = self.ease_elsewhere.is_some_and(|strain| strain < AT_EASE);
        let is_unlike = self.is_unlike(now);
        match self.times.alone().filter(|_| !is_unlike) {
            None if self.service.get().is_some() && !is_unlike => false,
            None if others || around.is_only || around.is_roomy => seconds >= RAISE_SECONDS,
            None => others_likely && seconds >= RAISE_LOOKED,
            Some(alone) if alone < LONG => false,
            // That the others do not suffer is known sooner than what it takes itself.
            Some(_) if self.slow_start.is_some() && others => seconds >= RAISE_LOOKED,
            Some(_) if around.is_roomy => seconds >= RAISE_LOOKED,
            Some(alone) if alone < VERY_LONG || seconds < RAISE_SERVICES * alone => false,
            Some(_) if !self.is_itself() => false,
            // Without witnesses it is enough that the page waits for others, as far as it was seen
            // to.
            Some(_) if self.slow_start.is_some() => {
                let is_seen = self.times.waits(around.cores)
                    && self.limit <= FAR_SEEN.saturating_mul(self.times.at_ease());
                others_likely || self.strain_of_others().is_none() && is_seen
            }
            Some(_) => {
                let is_known =
                    others || others_likely || around.is_only || self.times.is_founded(around.cores);
                is_known && now >= self.retry_at
            }
        }
    }

    /// Returns whether its requests take hardly longer now than in little company.
    fn is_itself(&self) -> bool {
        let (alone, recent) = (self.times.alone(), self.times.recent());
        alone.zip(recent).is_some_and(|(alone, recent)| recent <= ITSELF * alone)
    }

    /// Returns whether no other says that the application is strained.
    pub(super) fn are_others_at_ease(&self) -> bool {
        self.strain_of_others().is_none_or(|strain| strain < AT_EASE)
    }

    /// Returns the most that the others say of the application. Pages that were never alone have
    /// too large a time in little company, and so show too little strain.
    fn strain_of_others(&self) -> Option<f64> {
        let both = [self.strain_elsewhere, self.ease_elsewhere];
        both.into_iter().flatten().max_by(f64::total_cmp)
    }
}
