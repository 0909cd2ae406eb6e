//! The route law: finds each route's limit by paired comparison of useful work.
//!
//! *Law*. Progress of the whole host, while route p is probed, over the time T that a cohort of
//! requests of p takes:
//!
//! ```text
//! X_q = ends_q / T                         without those that failed; of p with what was half done before and after,
//!       + (Σ_after min(age / S, 1) − Σ_before min(age / S, 1)) / T         S being its mean service time                (1)
//! U   = Σ_q w_q · X_q                      service-seconds of reference work a second                                (2)
//!                                          where nobody waits at q ≠ p: X_q when the trial began, as what is asked of it is chance
//! d   = mean ln U(m') − mean ln U(m) − s · θ · share_p · ln(m'/m)       s = 1: a higher limit must pay for itself;
//!                                                                       s = −1 for quick requests: a lower one must   (3)
//! se  = c · √(1/n' + 1/n)                  c² at first: 0.3² + the service times' squared coefficient of variation  (4)
//! ```
//!
//! m' replaces m when d is above z·se; when nothing can be told after
//! [`PAIRS_MAX`](route::PAIRS_MAX) pairs, the lower of the two stays (the higher, where requests
//! are quick: below [`QUICK`]). *Signals*: starts and ends of requests; a route is *binding* while
//! requests wait and every slot is used, and only then the law learns. *Units*: seconds, requests,
//! natural logarithms. *Regimes*: **fast-up** while most of the gain is real; **trial** (windows A
//! B B A …, each after a settle phase in which everything started under the other limit leaves);
//! **hold** after two failures at the smallest step; **drift** ends a hold; **backoff** when
//! requests stay far too long; **room** given to long pages by time, or taken from them; limits
//! that were much worse are not tried again for a while; **headroom** for routes too light to be
//! probed; idle: nothing. *Limits*: one route is probed at a time on the whole host, so no route
//! mistakes another's change for its own effect. The ceiling is [`BANDWIDTH_DELAY`] bandwidth-delay
//! products. *Source*: Progress-based Regulation (Douceur & Bolosky, SOSP '99) as the paper uses
//! it; the pairing, the token and (2) are ours: `docs/laws/route.md`.

mod backoff;
mod knowledge;
mod nodes;
mod route;
mod shares;
mod slow_start;
mod steps;
mod strain;
mod trial;
mod untried_raise;

use crate::knowledge::{RouteKnowledge, Trust};
use crate::route::{RequestEnd, RouteLaw};
use crate::window::{Meter, Reading};
use route::{InService, Reference, Route};
use suimon_model::persist::{Persist, Unsavable, Writer};
use suimon_model::{Instant, Reason, Record, RequestId, RouteId, Signals, seconds};
use trial::{Arm, Trial, TrialResult, WindowEnd};

/// The highest limit the search goes to.
const LIMIT_MAX: u32 = 1 << 16;
/// θ: the least d ln U / d ln m worth more concurrency.
const BIAS: f64 = 0.07;
/// z: standard errors that decide.
const SIGNIFICANCE: f64 = 1.0;
/// z on the first pair, which rests on least.
const SIGNIFICANCE_FIRST: f64 = 2.0;
/// Share of the host's work below which a route's effect cannot be measured.
const SHARE_MIN: f64 = 0.10;
/// Ceiling, in products of best rate and best service time.
const BANDWIDTH_DELAY: f64 = 3.0;
/// Mean service times below this many seconds are *quick*: queueing such a request costs more than
/// it saves, so of two equally good limits the higher one is taken.
const QUICK: f64 = 0.002;
/// Slowdown of short pages on other routes, relative to little company, up to which the cohorts of
/// a long page may still raise its limit.
const CALM: f64 = 2.0;
/// Beyond this many per core the limit of a long page rises more slowly: most need less, and the
/// more there are, the longer it takes until the effect of too high a limit is over.
const FAR: f64 = 16.0;
/// Its growth there.
const RAISE_GROWTH_FAR: f64 = 1.4;
/// Service time from which a page is long, seconds: its ends come too late to wait for a dozen of
/// them.
const LONG: f64 = 1.0;
/// Service time from which a page is very long, seconds: trials take minutes.
const VERY_LONG: f64 = 2.0;
/// Share of a window or tick during which requests must wait for it to be binding.
const BINDING: f64 = 0.9;
/// The same of quick requests, which come and go in bursts.
const BINDING_QUICK: f64 = 0.5;
/// A route is probed once it has been binding for this share ...
const PRESSURE_MIN: f64 = 0.6;
/// ... of about this many seconds: a busy moment below capacity is no reason for a trial.
const PRESSURE_SECONDS: f64 = 10.0;
/// Below this no request has waited for more than twice as long: a trial there would keep the
/// others from theirs.
const PRESSURE_LEFT: f64 = 0.1;
/// A trial also ends at a route at which nobody has waited for this many seconds and for the number
/// of service times below.
const LEFT_SECONDS: f64 = 2.0;
const LEFT_SERVICES: f64 = 4.0;
/// Times the best service time above which a route in fast-up with no lower limit to compare with
/// is not believed to need more.
const INFLATED: f64 = 3.0;

/// The law over all routes of a host.
#[derive(Clone, Debug)]
pub struct Paired {
    cores: u32,
    /// What they are the rounding of, where nodes have come or gone.
    cores_exact: f64,
    patience: f64,
    routes: Vec<Route>,
    /// Until when the application is assumed to have fewer cores than configured.
    doubted_until: Option<Instant>,
    /// Requests in the application, all routes together, by the share of a core that each can ask
    /// for, in parts of [`WHOLE`].
    inside: u64,
    trial: Option<Trial>,
    /// The route because of which newcomers are held back.
    wanted: Option<RouteId>,
    /// When the strain was measured last.
    strain_at: Instant,
    share_begin: Vec<Reading>,
    last_tick: Vec<Reading>,
    /// Requests of other gateways in the application.
    elsewhere: u64,
}

suimon_model::saved_struct!(Paired {
    cores,
    cores_exact,
    doubted_until,
    patience,
    routes,
    inside,
    trial,
    wanted,
    strain_at,
    share_begin,
    last_tick
} without { elsewhere });

impl Paired {
    /// Returns the law for an application assumed to have `cores` cores, with nothing known.
    pub fn new(cores: u32) -> Self {
        let cores = cores.max(1);
        Paired {
            cores,
            cores_exact: f64::from(cores),
            doubted_until: None,
            patience: 60.0,
            routes: vec![],
            inside: 0,
            trial: None,
            wanted: None,
            strain_at: Instant::ORIGIN,
            share_begin: vec![],
            last_tick: vec![],
            elsewhere: 0,
        }
    }
}

impl RouteLaw for Paired {
    fn fits(&self, routes: usize) -> bool {
        [self.routes.len(), self.share_begin.len(), self.last_tick.len()] == [routes; 3]
            && self.trial.as_ref().is_none_or(|trial| trial.fits(routes))
            && self.wanted.is_none_or(|route| route.index() < routes)
    }

    fn save(&self, out: &mut Writer) -> Result<(), Unsavable> {
        Persist::save(self, out);
        Ok(())
    }

    fn add_route(&mut self, now: Instant, fixed: Option<u32>) {
        let begin = Meter::new(now).read(now);
        self.routes.push(Route::new(begin, fixed.unwrap_or(self.cores).max(1), fixed.is_none()));
        self.share_begin.push(begin);
        self.last_tick.push(begin);
    }

    fn renew_route(&mut self, now: Instant, route: RouteId, fixed: Option<u32>, meter: &Meter) {
        self.trial.take_if(|trial| trial.route == route);
        self.wanted.take_if(|wanted| *wanted == route);
        let limit = fixed.unwrap_or(self.cores).max(1);
        self.routes[route.index()] = Route::new(meter.read(now), limit, fixed.is_none());
    }

    fn mix(&mut self, route: RouteId) {
        self.routes[route.index()].is_mixed = true;
    }

    fn is_mixed(&self, route: RouteId) -> bool {
        self.routes[route.index()].is_mixed
    }

    fn is_unlike(&self, now: Instant, route: RouteId) -> bool {
        let route = &self.routes[route.index()];
        route.is_unlike(now) && route.are_others_at_ease()
    }

    fn limit(&self, route: RouteId) -> u32 {
        self.routes[route.index()].limit
    }

    fn service(&self, route: RouteId) -> Option<f64> {
        self.routes[route.index()].service.get()
    }

    /// A page that takes no longer in company of four times the cores uses no more than a quarter
    /// of a core.
    fn work(&self, route: RouteId) -> Option<f64> {
        let times = &self.routes[route.index()].times;
        times.alone().map(|alone| alone * times.computes(self.trusted_cores()))
    }

    fn uses(&self, route: RouteId, alone: f64) -> f64 {
        self.routes[route.index()].times.uses(self.trusted_cores(), alone)
    }

    fn on_start(&mut self, now: Instant, route: RouteId, request: RequestId, meters: &[Meter]) {
        let trusted = self.trusted_cores();
        let company = self.company(route) as u32 + 1;
        let state = &mut self.routes[route.index()];
        self.inside += state.weight;
        state.in_service.insert(request, InService { since: now, company });
        let is_long = state.slow_start.is_some() && state.is_long(trusted);
        if let Some(fast) = state.slow_start.as_mut().filter(|_| is_long) {
            fast.on_start(request, state.limit);
        }
        if let Some(trial) = self.trial.as_mut().filter(|trial| trial.route == route) {
            trial.on_start(now, request, state.in_service.values().map(|inside| inside.since), meters);
        }
    }

    fn on_suspend(&mut self, route: RouteId, request: RequestId) {
        let state = &mut self.routes[route.index()];
        let inside = state.in_service.remove(&request);
        self.inside = self.inside.saturating_sub(if inside.is_some() { state.weight } else { 0 });
        if let Some(fast) = &mut state.slow_start {
            fast.on_leave(request);
        }
        if let Some(trial) = self.trial.as_mut().filter(|trial| trial.route == route) {
            trial.on_leave(request);
        }
    }

    fn on_end(&mut self, now: Instant, end: &RequestEnd, meters: &[Meter], out: &mut Vec<Record>) {
        let state = &mut self.routes[end.route.index()];
        let inside = state.in_service.remove(&end.request);
        self.inside = self.inside.saturating_sub(if inside.is_some() { state.weight } else { 0 });
        if end.progress {
            state.answered_at = Some(now);
            state.service.fold(end.service);
        }
        if end.says_work {
            state.newest_seconds = end.service;
            state.times.fold(inside.map_or(1, |inside| inside.company), end.service);
        }
        if let Some(fast) = state.slow_start.as_mut().filter(|_| !end.progress) {
            fast.on_leave(end.request);
        }
        let Some(trial) = self.trial.as_mut().filter(|trial| trial.route == end.route) else {
            if end.progress && !self.routes[end.route.index()].is_capped {
                self.slow_start(now, end, &meters[end.route.index()], out);
            }
            return;
        };
        if trial.on_end(now, end.request, end.service) {
            self.end_window(now, meters, out);
        }
    }

    fn on_tick(&mut self, now: Instant, meters: &[Meter], out: &mut Vec<Record>) {
        self.doubted_until.take_if(|until| now >= *until);
        self.weigh();
        self.measure_shares(now, meters);
        self.measure_strain(now, meters);
        for index in 0..self.routes.len() {
            let window = meters[index].since(&self.last_tick[index], now);
            self.last_tick[index] = meters[index].read(now);
            let route = &mut self.routes[index];
            let full = meters[index].in_flight() >= route.limit as usize;
            if meters[index].waiting() > 0 || window.queued_share() > 0.0 {
                route.waited_at = now;
            }
            let is_waited_for = full && meters[index].waiting() > 0;
            // Quick requests come and go in bursts: the state between two of them says nothing.
            let is_quick = window.mean_service().is_some_and(|mean| mean < QUICK);
            let share = if is_quick { BINDING_QUICK } else { BINDING };
            // What waits under a cap does not wait for this limit.
            let binding = (is_waited_for || is_quick) && window.queued_share() >= share && !route.is_capped;
            route.binding_ticks = if binding { route.binding_ticks + 1 } else { 0 };
            let weight = (window.seconds / PRESSURE_SECONDS).min(1.0);
            route.pressure += weight * (f64::from(u8::from(binding)) - route.pressure);
            if !binding {
                route.full_since = None;
            }
            if route.learns && !route.is_capped {
                self.back_off(now, RouteId(index as u32), &meters[index], out);
                self.make_room(now, RouteId(index as u32), meters, out);
                self.raise(now, RouteId(index as u32), &meters[index], binding, out);
                self.watch_drift(now, RouteId(index as u32), meters);
            }
        }
        self.drop_stale_trial(now, meters, out);
        if self.trial.is_none() {
            self.choose(now, out);
        }
        self.headroom(now, meters, out);
    }

    fn alone(&self, route: RouteId) -> Option<f64> {
        let times = &self.routes[route.index()].times;
        times.alone().filter(|_| times.is_founded(self.trusted_cores()))
    }

    fn set_capped(&mut self, route: RouteId, is_capped: bool) {
        self.routes[route.index()].is_capped = is_capped;
    }

    fn set_elsewhere(&mut self, in_flight: u64) {
        self.elsewhere = in_flight;
    }

    fn set_limit(&mut self, route: RouteId, limit: u32) {
        let route = &mut self.routes[route.index()];
        if route.learns && route.is_capped && route.limit == route.base {
            (route.limit, route.base) = (limit, limit);
        }
    }

    fn scale(&mut self, now: Instant, ratio: f64, out: &mut Vec<Record>) {
        self.follow_nodes(now, ratio, out);
    }

    fn set_tries(&mut self, route: RouteId, tries: bool) {
        self.routes[route.index()].tries = tries;
    }

    fn set_patience(&mut self, patience: f64) {
        self.patience = patience;
    }

    fn set_wanted(&mut self, route: Option<RouteId>) {
        self.wanted = route;
    }

    fn demotes_late_requests(&self) -> bool {
        true
    }

    fn probing(&self) -> Option<RouteId> {
        self.trial.as_ref().map(|trial| trial.route)
    }

    fn is_settled(&self, route: RouteId) -> bool {
        let route = &self.routes[route.index()];
        let rises = route.learns && route.slow_start.is_some();
        !rises && route.limit == route.base
    }

    fn is_bounded(&self, now: Instant, route: RouteId) -> bool {
        self.routes[route.index()].is_bounded(now)
    }

    fn knowledge(&self, route: RouteId) -> Option<RouteKnowledge> {
        self.known_of(route)
    }

    fn recall(&mut self, route: RouteId, known: &RouteKnowledge, trust: Trust) {
        self.begin_knowing(route, known, trust);
    }
}

impl Paired {
    /// While a route is held: has useful work changed by more than noise since its limit was found?
    fn watch_drift(&mut self, now: Instant, id: RouteId, meters: &[Meter]) {
        let probed = self.probing();
        let route = &mut self.routes[id.index()];
        let Some(reference) = &mut route.reference else { return };
        if probed.is_some() || now >= route.cooldown_until {
            // A probe elsewhere changes this route's numbers too; look again after its end.
            reference.begin = meters.iter().map(|meter| meter.read(now)).collect();
            return;
        }
        let windows: Vec<_> =
            meters.iter().zip(&reference.begin).map(|(meter, begin)| meter.since(begin, now)).collect();
        let Some(own) = windows.get(id.index()) else { return };
        if own.progressed < u64::from((4 * route.base).max(20)) {
            return;
        }
        reference.begin = meters.iter().map(|meter| meter.read(now)).collect();
        if own.queued_share() < BINDING {
            route.drifts = 0;
            return;
        }
        let rates: Vec<f64> = windows.iter().map(|window| window.throughput()).collect();
        let ends = own.progressed as f64;
        route.drifted(&rates, ends);
    }

    /// Ends a trial whose window is futile, or does not end.
    fn drop_stale_trial(&mut self, now: Instant, meters: &[Meter], out: &mut Vec<Record>) {
        let Some(trial) = &self.trial else { return };
        let id = trial.route;
        let route = &self.routes[id.index()];
        if let Some(verdict) = trial.futile(now, meters, route.noise(), route.share) {
            let weights = trial.weights().to_vec();
            self.trial = None;
            return self.conclude(now, id, verdict, weights, meters, out);
        }
        let service = route.service.get().unwrap_or(1.0);
        let patience = 10.0 * service * (3.0 + trial.cohort_size as f64 / f64::from(route.limit));
        let quiet = now.secs_since(route.waited_at.max(trial.window_begin));
        let is_left = route.is_capped
            || route.pressure < PRESSURE_LEFT
            || quiet > LEFT_SECONDS.max(LEFT_SERVICES * service);
        if !is_left && now.secs_since(trial.window_begin) <= patience.max(4.0) {
            return;
        }
        self.drop_trial(now, id, out);
    }

    /// Ends a trial that cannot be judged. The effect of a higher limit cannot be seen as long as
    /// newcomers are held back for the lack of it: then it is granted.
    fn drop_trial(&mut self, now: Instant, id: RouteId, out: &mut Vec<Record>) {
        let base = self.routes[id.index()].base;
        let probe = self.trial.take().map_or(base, |trial| trial.limit_of(Arm::Probe));
        if self.wanted == Some(id) && probe > base {
            return self.set_base(now, id, probe, Reason::Headroom, Signals::none(), out);
        }
        self.routes[id.index()].cooldown_until = now + seconds(2.0);
        self.set_base(now, id, base, Reason::TrialDropped, Signals::none(), out);
    }

    fn choose(&mut self, now: Instant, out: &mut Vec<Record>) {
        let trusted = self.trusted_cores();
        let ready = |route: &Route| {
            route.learns
                && route.tries
                && route.slow_start.is_none()
                && route.binding_ticks > 0
                && route.pressure >= PRESSURE_MIN
                && now >= route.cooldown_until
                && route.share >= SHARE_MIN
                && !route.is_raised(trusted)
                && !route.is_unlike(now)
        };
        let turn = |route: &Route| route.share * now.secs_since(route.probed);
        let mut candidates: Vec<usize> =
            (0..self.routes.len()).filter(|index| ready(&self.routes[*index])).collect();
        candidates.sort_by(|a, b| turn(&self.routes[*b]).total_cmp(&turn(&self.routes[*a])));
        let trusted = self.trusted_cores();
        // A route that has nothing worth trying keeps no other from its trial.
        let found = candidates.into_iter().find_map(|index| {
            let ceiling = self.ceiling(RouteId(index as u32));
            Some((index, self.routes[index].next_probe(now, ceiling, trusted)?))
        });
        let Some((index, probe)) = found else { return };
        let (id, route) = (RouteId(index as u32), &mut self.routes[index]);
        route.probed = now;
        let weights: Vec<f64> = self.routes.iter().map(|route| route.service.get().unwrap_or(0.0)).collect();
        let asked: Vec<f64> = self.routes.iter().map(|route| route.rate).collect();
        self.trial = Some(Trial::new(now, id, self.routes[index].base, probe, weights, asked));
        self.open_window(now, out);
    }

    /// Puts the limit of the trial's next window in force and begins to settle.
    fn open_window(&mut self, now: Instant, out: &mut Vec<Record>) {
        let Some(trial) = &mut self.trial else { return };
        let route = &mut self.routes[trial.route.index()];
        let arm = trial.next_arm();
        let limit = trial.limit_of(arm);
        trial.open(now, route.in_service.keys().copied(), limit);
        let reason = if arm == Arm::Base { Reason::BaseWindow } else { Reason::TrialWindow };
        route.publish(now, trial.route, limit, reason, Signals::none(), out);
    }

    fn end_window(&mut self, now: Instant, meters: &[Meter], out: &mut Vec<Record>) {
        let Some(trial) = &mut self.trial else { return };
        let id = trial.route;
        let route = &mut self.routes[id.index()];
        let window = match trial.close(now, route.in_service.values().map(|inside| inside.since), meters) {
            WindowEnd::Window(window) => window,
            WindowEnd::Spoiled => return self.open_window(now, out),
            WindowEnd::Hopeless => return self.drop_trial(now, id, out),
        };
        route.variation.fold(window.variation);
        if let Some(difference) = window.same_arm_difference {
            // A change of the load is no noise; if it were taken for noise, no change would ever be
            // noticed.
            let difference = difference.abs().min(route.drift(window.ends));
            route.noise.fold(difference * difference * window.ends / 2.0);
        }
        if window.arm == Arm::Base && route.drifted(&window.rates, window.ends) {
            self.trial = None;
            let base = self.routes[id.index()].base;
            return self.set_base(now, id, base, Reason::Drift, Signals::none(), out);
        }
        let (noise, share) = (route.noise(), route.share);
        let Some(verdict) = trial.verdict(noise, share, route.pairs_max, route.memory.as_ref()) else {
            return self.open_window(now, out);
        };
        let weights = trial.weights().to_vec();
        self.trial = None;
        self.conclude(now, id, verdict, weights, meters, out);
    }

    fn conclude(
        &mut self,
        now: Instant,
        id: RouteId,
        verdict: TrialResult,
        weights: Vec<f64>,
        meters: &[Meter],
        out: &mut Vec<Record>,
    ) {
        let route = &mut self.routes[id.index()];
        let signals = Signals::none()
            .with("tried", f64::from(verdict.probe))
            .with("difference", verdict.difference)
            .with("standard_error", verdict.standard_error)
            .with("pairs", verdict.pairs as f64);
        let begin = meters.iter().map(|meter| meter.read(now)).collect();
        route.learn(now, verdict);
        let (limit, reason) = match (verdict.accepted, verdict.decided) {
            (true, true) => (verdict.probe, Reason::TrialBetter),
            (true, false) => (verdict.probe, Reason::TrialEqual),
            (false, _) => (route.base, Reason::TrialWorse),
        };
        let log_useful = if verdict.accepted { verdict.log_useful_probe } else { verdict.log_useful_base };
        match &mut route.reference {
            // A change is detected against the state before it, which must not be forgotten when
            // one has just begun.
            Some(reference) if route.drifts > 0 && !verdict.accepted => reference.begin = begin,
            _ => {
                route.reference = Some(Reference { log_useful, weights, begin });
                route.drifts = 0;
            }
        }
        self.set_base(now, id, limit, reason, signals, out);
    }

    fn ceiling(&self, id: RouteId) -> u32 {
        let route = &self.routes[id.index()];
        let product = route.rate_max * route.service_min.max(QUICK / BANDWIDTH_DELAY);
        let known =
            if product.is_finite() { (BANDWIDTH_DELAY * product + 1.0).ceil() as u32 } else { LIMIT_MAX };
        // During fast-up the best rate is still being found; the product would stop the search at
        // its start.
        if route.slow_start.is_some() {
            LIMIT_MAX
        } else {
            known.clamp(self.cores.saturating_add(1).min(LIMIT_MAX), LIMIT_MAX)
        }
    }

    fn set_base(
        &mut self,
        now: Instant,
        id: RouteId,
        limit: u32,
        reason: Reason,
        signals: Signals,
        out: &mut Vec<Record>,
    ) {
        let route = &mut self.routes[id.index()];
        if limit != route.base {
            route.drifts = 0;
        }
        route.base = limit;
        route.forget_passed();
        route.publish(now, id, limit, reason, signals, out);
    }
}

#[cfg(test)]
mod tests;
