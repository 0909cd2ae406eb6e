//! The session law: flow control by remaining visits.
//!
//! *Law*. By Little's law a session admitted now would wait v_p times W_p at its visits to p, on
//! average,
//!
//! ```text
//! f_p = R_p / X_p − δ_p − S_p                                                                    (1)
//! ```
//!
//! and it may begin when
//!
//! ```text
//! for all p:  f_p − bias_p ≤ v_p W*_p        W*_p = min(0.10 · patience, max(0.5 s, 4 S_p))      (2)
//! and a token is there                       filled at pace · rate, at most max(4, 2 rate · W*)  (3)
//! rate = min over p of X_p / F[START][p]     F: of all kinds, as they come; a kind has its share (4)
//! ```
//!
//! *Signals*: R, δ, F from [`Visits`]; X, S and bias by route. *Units*: seconds, visits, sessions
//! per second. *A forecast earns its influence*: (2) applies to a route only while X was measured
//! less than [`STALE`] ago and requests have waited there within δ + S; the error of a forecast
//! that proved wrong is taken off as bias ([`crate::Forecast`]). *Regimes*: **open**: nobody waits
//! and (2), (3) hold; **overloaded**: (2) holds newcomers back, (3) only smooths; **not sure**:
//! tokens run out while no request waits at the route they are counted for; then the pace doubles
//! each δ until one does. **Cold start**: as long as few sessions have ended, one is taken to cost
//! what [`COLD_VISITS`] mean requests do, and no more may be begun than would keep the machine busy
//! for [`COLD_WAIT`] of the patience, and then one by one at a rate that grows by 5 % per second
//! while tokens and not (2) hold newcomers, and by 10 % while no route is short; where visitors do
//! not come back for a second page, and no route is short except those where nothing ends, nobody
//! is held at all. Where the mean request of returning sessions costs much more than that of all,
//! only theirs count. Where most sessions come for one page, a newcomer takes the fraction of a
//! token that equals the share of returning sessions among those begun at the same place, plus its
//! first page, and the law is **wary**: as long as no X is known tokens come more slowly, and
//! admitted visitors may wait for less time. **Never full**: where it is known what sessions do and
//! no X is known, the cost of a session's own requests replaces the guess, and at least [`FREELY`]
//! times as many may begin as did while nobody waited. *Limits*: R is a count of things that exist,
//! X a measurement; an X that is not known holds nobody back by (2), but (4) assumes it to be at
//! most [`CROWDED`] times the route's throughput while requests wait there for longer than W*.
//! *Source*: constant work in process as in production control; `docs/laws/session.md`.

mod shortage;

use crate::session::{
    AdmissionDecision, AdmissionInputs, SessionLaw, TOKEN_GRAIN, interval_record, is_token_spare, wait_behind,
};

use crate::statistics::Average;
use crate::visits::LastRoute;
use shortage::{is_calm, is_idle, keeps_up};
use std::collections::VecDeque;
use suimon_model::persist::{Persist, Unsavable, Writer};
use suimon_model::real::{exp, pow};
use suimon_model::{Duration, Instant, KindId, Reason, Record, RouteId, Signals, seconds};

/// Shortest wait that is scheduled, seconds: a wait below the clock's resolution would never end.
const WAIT_GRAIN: f64 = 1e-6;
/// How much faster than the rate tokens come: (3) smooths, (2) limits.
const PACE: f64 = 1.3;
/// The same while it is wary, and no X known: the demand of visitors who stay is not known yet.
const WARY_PACE: f64 = 0.4;
/// The largest share of the patience that may be spent waiting at one route.
const WAIT_SHARE: f64 = 0.10;
/// Tokens kept: as many as would wait this many times W* if they all began at once, and at least a
/// few. Below capacity chance alone must not empty them.
const BURST: f64 = 2.0;
const BURST_MIN: f64 = 4.0;
/// Waits below this are of no concern, seconds.
const WAIT_MIN: f64 = 0.5;
/// Waits of this many service times cover the noise of arrivals.
const WAIT_SERVICES: f64 = 4.0;
/// An X that was measured longer ago than this, seconds, holds nobody back by (2).
const STALE: f64 = 60.0;
/// A route at which no request has waited for δ + S and this many seconds holds nobody back by (2).
const IDLE_MIN: f64 = 1.0;
/// A page that takes this many seconds is long.
const LONG: f64 = 1.0;
/// The pace doubles in δ, or in this many seconds if that is longer, while no counted request
/// waits; up to the factor below.
const DOUBLING_MIN: f64 = 5.0;
const PROBE_MAX: f64 = 16.0;
/// Growth per second of a rate that rests on what sessions cost, and while no route is short.
const GROWTH: f64 = 1.05;
const GROWTH_CALM: f64 = 1.10;
/// Before sessions have ended, one is taken to cost as much as this many of the requests seen,
/// within the bounds of core-seconds below.
const COLD_VISITS: f64 = 15.0;
const COLD_COST: (f64, f64) = (0.001, 1.0);
/// One-page visits hide the cost of real sessions if the mean request of returning sessions costs
/// more than this many times the mean of all requests. Then only returning sessions are counted.
/// This needs a minimum of returned sessions and of their visits.
const DILUTED: f64 = 2.5;
const RETURNED_MIN: u64 = 8;
const RETURNED_VISITS_MIN: f64 = 20.0;
/// Weight of the newest session in the mean of what sessions take.
const PRICE_WEIGHT: f64 = 0.05;
/// Share of the patience for which sessions begun at once may keep the machine busy before anything
/// is known.
const COLD_WAIT: f64 = 0.2;
/// Returns per session below which visitors are assumed to come for one page, once this many
/// seconds have passed.
const RETURNS_FEW: f64 = 0.3;
const RETURNS_AFTER: f64 = 5.0;
/// The same where requests wait at routes, if at least so many sessions have been answered and then
/// silent through so many stages: four seconds, as long as think times are unknown.
const RETURNS_RARE: f64 = 0.1;
const SILENT_MIN: u64 = 20;
const SILENT_STAGES: usize = 2;
/// At least this share of the sessions under way must have been answered before a route at which
/// nothing is completed counts as one of long polls.
const ANSWERED_SHARE: f64 = 1.0 / 3.0;
/// A route at which a request waited this many seconds ago is short of slots.
const SHORT: f64 = 2.0;
/// Share of the patience that admitted visitors may wait at one route before nobody else is
/// admitted: at a page that is not long, while it is wary, as others may be on their way there, ...
const INSIDE_WARY: f64 = 0.05;
/// ... where (2) does not apply, ...
const INSIDE_UNKNOWN: f64 = 0.2;
/// ... and where it does, as that should decide: holding everybody because of the present queue
/// makes a gap in the pipe, δ later.
const INSIDE_KNOWN: f64 = 0.5;
/// If X is unknown and people wait at a route for longer than W*: its capacity is assumed to be
/// this multiple of its throughput. With a smaller factor, a limit that is being raised would lack
/// the requests that show that it can be higher.
const CROWDED: f64 = 2.1;
/// Pages that take more than this share of the patience are left to the backoff: their throughput
/// shows too late to set an admission rate.
const SLOW: f64 = 0.15;
/// Sessions that must have ended before F is believed.
const ENDED_MIN: u64 = 3;
/// Visits per session below which a route does not count.
const VISITS_MIN: f64 = 0.01;
/// Visits to come below which (2) does not apply: one admission more or less is the whole
/// difference.
const REMAINING_MIN: f64 = 2.0;
/// Admissions over which the achieved rate is taken, and the fewest that show one.
const ACHIEVED_MAX: usize = 40;
const ACHIEVED_MIN: usize = 8;
/// If no route was ever full: highest admission rate, as a multiple of the rate measured while
/// nobody waited.
const FREELY: f64 = 3.0;
/// Sessions per second where nothing limits them.
const RATE_MAX: f64 = 1e6;

/// Flow control of one kind of session.
#[derive(Clone, Debug)]
pub struct Flow {
    kind: KindId,
    cores: f64,
    tokens: f64,
    tokens_at: Instant,
    /// Whether too little is known of what sessions do.
    is_cold: bool,
    /// Whether it is cold, and most sessions come for one page: they hide what the others do.
    is_wary: bool,
    /// Growth so far of a rate that rests on what sessions cost.
    growth: f64,
    /// The multiple of the pace that X allows which is tried now.
    probe: f64,
    rate: f64,
    depth: f64,
    /// The most tokens there was headroom for so far, while cold.
    deepest: f64,
    /// Whether, since it is cold, cheap requests of others have hidden the cost of visitors who
    /// stay.
    was_hidden: bool,
    /// Since it is cold: tokens that came over time, whether there was headroom for them or not,
    /// and sessions that had come back before.
    gained: f64,
    returned_before: u64,
    /// Tokens that a session takes, by where it begins, while cold; and the average of the last
    /// sessions that began.
    prices: Vec<f64>,
    mean_price: Average,
    /// Sessions per second that began while nobody waited.
    begun_freely: f64,
    bottleneck: Option<RouteId>,
    held_by_pace: bool,
    /// The route because of which newcomers are held back.
    holds_for: Option<RouteId>,
    busy_since: Option<Instant>,
    /// When the first session began.
    began: Option<Instant>,
    admissions: VecDeque<Instant>,
    interval: f64,
    told: Instant,
    ticked: Instant,
    /// Rate and depth of all gateways together, where several share.
    pace_of_all: Option<(f64, f64)>,
}

suimon_model::saved_struct!(Flow {
    kind,
    cores,
    tokens,
    tokens_at,
    is_cold,
    is_wary,
    growth,
    probe,
    rate,
    depth,
    deepest,
    was_hidden,
    gained,
    returned_before,
    prices,
    mean_price,
    begun_freely,
    bottleneck,
    held_by_pace,
    holds_for,
    busy_since,
    began,
    admissions,
    interval,
    told,
    ticked,
} without { pace_of_all });

impl Flow {
    /// Returns the law of `kind` with nothing known.
    pub fn new(kind: KindId, cores: u32, now: Instant) -> Self {
        let cores = f64::from(cores.max(1));
        Flow {
            kind,
            cores,
            tokens: 0.0,
            tokens_at: now,
            is_cold: true,
            is_wary: false,
            growth: 1.0,
            probe: 1.0,
            rate: cores / COLD_COST.1,
            depth: 0.0,
            deepest: 0.0,
            was_hidden: false,
            gained: 0.0,
            returned_before: 0,
            prices: vec![],
            mean_price: Average::new(PRICE_WEIGHT),
            begun_freely: 0.0,
            bottleneck: None,
            held_by_pace: false,
            holds_for: None,
            busy_since: None,
            began: None,
            admissions: VecDeque::with_capacity(ACHIEVED_MAX),
            interval: 0.0,
            told: now,
            ticked: now,
            pace_of_all: None,
        }
    }
}

impl SessionLaw for Flow {
    fn fits(&self, kind: KindId, routes: usize) -> bool {
        self.kind == kind
            && [self.bottleneck, self.holds_for].iter().flatten().all(|route| route.index() < routes)
    }

    fn save(&self, out: &mut Writer) -> Result<(), Unsavable> {
        Persist::save(self, out);
        Ok(())
    }

    fn may_admit(&mut self, now: Instant, inputs: &AdmissionInputs<'_>) -> AdmissionDecision {
        if self.depth <= 0.0 {
            self.follow(inputs);
        }
        self.refill(now);
        self.held_by_pace = false;
        if exceeded(inputs, self.is_wary).is_some() {
            return AdmissionDecision::Held(Reason::WorkToCome);
        }
        let price = self.price(inputs.entry);
        if self.tokens < price - TOKEN_GRAIN && !self.is_harmless(now, inputs) {
            self.held_by_pace = true;
            let wait = (price - self.tokens) / (self.pace() * self.rate);
            return AdmissionDecision::NotBefore(self.tokens_at + seconds(wait.max(WAIT_GRAIN)));
        }
        AdmissionDecision::Now
    }

    fn has_enough_for(&self, inputs: &AdmissionInputs<'_>, others: u64) -> bool {
        // Where nobody is held for a token, it was admitted without one.
        let has_tokens = self.tokens < self.price(inputs.entry) - TOKEN_GRAIN
            || is_token_spare(self.tokens, self.depth, self.pace() * self.rate, others);
        has_tokens && others < headroom(self.kind, inputs) as u64
    }

    /// A token is spare that those on the way could not use before the bucket is full again; and where
    /// nobody is held for a token, all who come later are admitted as well.
    fn has_left_over(&self, now: Instant, inputs: &AdmissionInputs<'_>, others: u64) -> bool {
        is_token_spare(self.tokens, self.depth, self.pace() * self.rate, others)
            || self.is_harmless(now, inputs)
    }

    /// Tokens are owed for what was admitted as one.
    fn weighs(&mut self, weight: u32) {
        self.tokens -= f64::from(weight.saturating_sub(1));
    }

    fn admitted(&mut self, now: Instant, entry: LastRoute) {
        self.began.get_or_insert(now);
        let price = self.price(entry);
        self.tokens = (self.tokens - price).max(0.0);
        self.mean_price.fold(price);
        if self.admissions.len() == ACHIEVED_MAX {
            self.admissions.pop_front();
        }
        self.admissions.push_back(now);
    }

    fn on_tick(&mut self, now: Instant, inputs: &AdmissionInputs<'_>, out: &mut Vec<Record>) {
        self.refill(now);
        self.note_line(now, inputs.waiting);
        // Set again at the next question: while nobody is at the gate nothing is known.
        let held_by_pace = std::mem::take(&mut self.held_by_pace) && inputs.waiting > 0;
        let passed = now.secs_since(self.ticked).min(1.0);
        self.ticked = now;
        // Where nobody is held for a token, sessions begin freely although some are held because of a
        // queue inside.
        if inputs.waiting == 0 || self.is_harmless(now, inputs) {
            self.begun_freely = inputs.kinds.get(self.kind.index()).map_or(0.0, |kind| kind.begun);
        }
        if (self.is_cold || self.bottleneck.is_none()) && held_by_pace {
            let growth = if is_calm(inputs) { GROWTH_CALM } else { GROWTH };
            self.growth *= pow(growth, passed);
        }
        self.try_more(passed, held_by_pace, inputs);
        self.follow(inputs);
        self.holds_for = exceeded(inputs, self.is_wary)
            .or(self.bottleneck.filter(|_| held_by_pace))
            .filter(|_| inputs.waiting > 0);
        self.tell(now, inputs, out);
    }

    fn interval(&self) -> f64 {
        self.interval
    }

    fn holds_for(&self) -> Option<RouteId> {
        self.holds_for
    }

    /// Of newcomers from the waiting page.
    fn rate(&self) -> Option<f64> {
        Some(self.rate / self.price(LastRoute::START))
    }

    fn pace(&self) -> Option<(f64, f64)> {
        self.pace_of_all
    }

    fn is_cold(&self) -> bool {
        self.is_cold
    }

    fn predicted_wait(&self, now: Instant, ahead: usize) -> Duration {
        wait_behind(ahead, self.expected_rate(now))
    }
}

impl Flow {
    /// Returns sessions per second to expect while there is a line: the rate, or the achieved rate
    /// if that is lower.
    fn expected_rate(&self, now: Instant) -> f64 {
        let achieved = self.busy_since.and_then(|since| {
            let oldest = self.admissions.iter().find(|at| **at >= since)?;
            let count = self.admissions.iter().filter(|at| **at >= since).count();
            let span = now.secs_since(*oldest);
            (count >= ACHIEVED_MIN && span > 0.0).then(|| count as f64 / span)
        });
        let rate = self.rate / self.mean_price.get().unwrap_or(1.0);
        achieved.map_or(rate, |achieved| achieved.min(rate))
    }

    fn refill(&mut self, now: Instant) {
        let gained = now.secs_since(self.tokens_at) * self.pace() * self.rate;
        self.tokens = (self.tokens + gained).min(self.depth);
        self.gained += gained;
        self.tokens_at = self.tokens_at.max(now);
    }

    /// Returns the factor by which tokens come faster than the rate.
    fn pace(&self) -> f64 {
        if self.is_wary && self.bottleneck.is_none() { WARY_PACE } else { PACE }
    }

    /// The achieved rate says something only while there is a line.
    fn note_line(&mut self, now: Instant, waiting: usize) {
        if waiting == 0 {
            self.busy_since = None;
        } else if self.busy_since.is_none() {
            self.busy_since = Some(now);
        }
    }

    /// Takes in the signals: rate, bottleneck and depth.
    fn follow(&mut self, inputs: &AdmissionInputs<'_>) {
        let was_cold = self.is_cold;
        self.is_cold = inputs.visits.ended(self.kind) < ENDED_MIN || inputs.visits.is_young(self.kind);
        self.is_wary = self.is_cold && inputs.visits.mostly_passes_by(self.kind);
        if self.is_cold && !was_cold {
            (self.was_hidden, self.gained) = (false, 0.0);
            self.returned_before = inputs.visits.returned(self.kind);
        }
        let known = self.slowest(inputs);
        self.bottleneck = known.map(|(_, route)| route);
        let depth = self.depth;
        let was_hidden = self.was_hidden;
        let cost = self.is_cold.then(|| self.cold_cost(inputs));
        let rate = self.rate;
        (self.rate, self.depth) = match (cost, known) {
            (Some(cost), known) => {
                let known = known.map_or(f64::INFINITY, |(rate, _)| rate * self.probe);
                let rate = (self.cores / cost * self.growth).min(known);
                (rate, (COLD_WAIT * inputs.patience * self.cores / cost).max(BURST_MIN))
            }
            (None, Some((rate, route))) => {
                let rate = rate * self.probe;
                (rate, (BURST * rate * wait_allowed(inputs, route)).max(BURST_MIN))
            }
            (None, None) => self.never_full(inputs),
        };
        self.take_portion(inputs);
        if self.was_hidden && !was_hidden {
            // What came until now came too fast.
            self.gained *= (self.rate / rate).min(1.0);
        }
        if depth <= 0.0 {
            self.tokens = self.depth;
        }
        // A spent token stays spent when there is room for more. The guessed cost moves with each
        // request: tokens are added only when it allows more than it ever did.
        if self.is_cold && depth > 0.0 {
            self.tokens += (self.depth - self.deepest).max(0.0);
        }
        if self.is_cold {
            self.deepest = self.deepest.max(self.depth);
        }
        self.tokens = self.tokens.min(self.depth);
        if self.is_cold && self.was_hidden {
            // Visitors who stay took too few tokens until that was seen: no more of them may have
            // begun than there were tokens for.
            let have = (inputs.visits.returned(self.kind) - self.returned_before) as f64;
            let stay = have + inputs.visits.will_come_back(self.kind);
            self.tokens = self.tokens.min((self.depth + self.gained - stay).max(0.0));
        }
        match cost.filter(|_| inputs.visits.mostly_passes_by(self.kind)) {
            Some(cost) => {
                let prices = inputs.visits.places().map(|entry| self.cold_price(inputs, entry, cost));
                self.prices = prices.collect();
            }
            None if self.prices.is_empty() => {}
            None => (self.prices, self.mean_price) = (vec![], Average::new(PRICE_WEIGHT)),
        }
    }

    /// Keeps the portion of this gateway of what begins at all of them, at the pace that one of them
    /// learns. One session may always begin at once: less would be none, ever.
    fn take_portion(&mut self, inputs: &AdmissionInputs<'_>) {
        self.pace_of_all = inputs.shared.map(|shared| {
            let (rate, depth) = shared.pace.unwrap_or((self.rate, self.depth));
            self.rate = rate * shared.portion;
            self.depth = (depth * shared.portion).max(1.0);
            (rate, depth)
        });
    }

    /// Returns the tokens that a session takes which begins at `entry`.
    fn price(&self, entry: LastRoute) -> f64 {
        self.prices.get(entry.index()).copied().unwrap_or(1.0)
    }

    /// Returns the share of `cost` that a session which begins at `entry` is assumed to cost: the
    /// whole cost times the probability that it comes back, and its first page in any case.
    fn cold_price(&self, inputs: &AdmissionInputs<'_>, entry: LastRoute, cost: f64) -> f64 {
        let work = entry.route().and_then(|route| inputs.routes[route.index()].work);
        let first = work.map_or(1.0 / COLD_VISITS, |work| work / cost);
        inputs.visits.comes_back_share(self.kind, entry).map_or(1.0, |share| (share + first).min(1.0))
    }

    /// Tries a higher pace while tokens hold newcomers back for a route at which no request waits.
    fn try_more(&mut self, passed: f64, held_by_pace: bool, inputs: &AdmissionInputs<'_>) {
        let Some(route) = self.bottleneck else {
            self.probe = 1.0;
            return;
        };
        if !is_idle(inputs, route) {
            self.probe = 1.0;
        } else if held_by_pace {
            let delay = inputs.visits.delay(route).max(DOUBLING_MIN);
            self.probe = (self.probe * exp(std::f64::consts::LN_2 * passed / delay)).min(PROBE_MAX);
        }
    }

    /// Returns whether a cold start needs no care: people come for one page, and no route is short.
    fn is_harmless(&self, now: Instant, inputs: &AdmissionInputs<'_>) -> bool {
        self.is_cold
            && inputs.visits.returns_per_session(self.kind) < RETURNS_FEW
            && !inputs.visits.often_comes_back(self.kind, inputs.entry, RETURNS_FEW)
            && (self.hardly_anybody_returns(inputs) && keeps_up(inputs)
                || self.began.is_some_and(|began| now.secs_since(began) > RETURNS_AFTER)
                    && (is_calm(inputs) || self.only_long_polls_wait(inputs)))
    }

    /// Returns whether enough sessions have been silent for long enough, and almost none has come
    /// back: then a newcomer brings one request, which is seen at its route at once. Those who have
    /// just begun say nothing yet, and of long pages nobody has returned yet.
    fn hardly_anybody_returns(&self, inputs: &AdmissionInputs<'_>) -> bool {
        let visits = inputs.visits;
        (visits.silent(self.kind, SILENT_STAGES) >= SILENT_MIN && visits.answered_share() > ANSWERED_SHARE)
            && inputs.routes.iter().all(|route| route.service.is_none_or(|service| service < LONG))
            && visits.returns_per_session(self.kind) < RETURNS_RARE
    }

    /// Returns whether the only routes with a queue look like long polls, streams or uploads:
    /// nothing is completed there, no returning session requests them, and many other sessions have
    /// been answered. Then their slots are full although the machine is idle.
    fn only_long_polls_wait(&self, inputs: &AdmissionInputs<'_>) -> bool {
        let is_short = |route: RouteId| {
            let there = &inputs.routes[route.index()];
            there.idle <= SHORT && (there.rate > 0.0 || inputs.visits.is_asked_by_returned(route))
        };
        inputs.visits.answered_share() > ANSWERED_SHARE && !inputs.visits.routes().any(is_short)
    }

    /// Returns core-seconds that a session is assumed to cost before sessions have ended.
    fn cold_cost(&mut self, inputs: &AdmissionInputs<'_>) -> f64 {
        let visits = inputs.visits;
        let mean = |weight: &dyn Fn(RouteId) -> f64, least: f64| {
            let routes = visits.routes().zip(inputs.routes);
            let weighed = routes.filter_map(|(id, route)| Some((route.work?, weight(id))));
            let (sum, all) = weighed.fold((0.0, 0.0), |(sum, all), (work, n)| (sum + n * work, all + n));
            (all > 0.0 && all >= least).then(|| sum / all)
        };
        let done = mean(&|route| inputs.routes[route.index()].rate, 0.0);
        let made = mean(&|route| visits.made(self.kind, route), 0.0);
        let enough = visits.returned(self.kind) - self.returned_before >= RETURNED_MIN;
        let by_returned = mean(&|route| visits.made_by_returned(self.kind, route), RETURNED_VISITS_MIN);
        let by_returned = by_returned.filter(|_| enough);
        self.was_hidden |= by_returned.zip(made).is_some_and(|(stay, all)| stay > DILUTED * all);
        let work = by_returned.filter(|_| self.was_hidden).or(done).or(made);
        work.map_or(COLD_COST.1, |work| (COLD_VISITS * work).clamp(COLD_COST.0, COLD_COST.1))
    }

    /// Returns rate and depth where it is known what sessions do, and there is no X, as no route
    /// was ever full: a session costs the requests it makes, and more may begin than did while
    /// nobody waited. All may begin where nothing is known of the cost of a request.
    fn never_full(&self, inputs: &AdmissionInputs<'_>) -> (f64, f64) {
        let (mut work, mut priced, mut all) = (0.0, 0.0, 0.0);
        for (id, route) in inputs.visits.routes().zip(inputs.routes) {
            let visits = inputs.visits.per_session(self.kind, id);
            all += visits;
            if let Some(each) = route.work {
                work += visits * each;
                priced += visits;
            }
        }
        if priced <= 0.0 {
            return (RATE_MAX, RATE_MAX);
        }
        let cost = (work * all / priced).clamp(COLD_COST.0, COLD_COST.1);
        let rate = (self.cores / cost).max(FREELY * self.begun_freely) * self.growth;
        (rate, (COLD_WAIT * inputs.patience * rate).max(BURST_MIN))
    }

    /// Returns (4), and the route that sets it.
    fn slowest(&self, inputs: &AdmissionInputs<'_>) -> Option<(f64, RouteId)> {
        let rates = inputs.visits.routes().filter_map(|route| {
            let own = inputs.visits.per_session(self.kind, route);
            let capacity = believed_capacity(inputs, route)?;
            if own <= VISITS_MIN {
                return None;
            }
            let kinds = || (0u32..).map(KindId).zip(inputs.kinds);
            let all: f64 = kinds().map(|(kind, it)| it.share * inputs.visits.per_session(kind, route)).sum();
            let share = inputs.kinds.get(self.kind.index()).map_or(1.0, |kind| kind.share);
            let of_all = share * capacity / all.max(VISITS_MIN * share);
            // What the other kinds do not use is available to this one.
            let others: f64 = kinds()
                .filter(|(kind, _)| *kind != self.kind)
                .map(|(kind, it)| it.begun * inputs.visits.per_session(kind, route))
                .sum();
            Some((of_all.max((capacity - others) / own), route))
        });
        rates.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn tell(&mut self, now: Instant, inputs: &AdmissionInputs<'_>, out: &mut Vec<Record>) {
        let exceeded = exceeded(inputs, self.is_wary);
        let open = inputs.waiting == 0 && exceeded.is_none();
        let interval = if open { 0.0 } else { self.price(LastRoute::START) / self.rate.max(1e-6) };
        let changed = (interval - self.interval).abs() > 0.05 * self.interval.max(interval);
        if !changed || now.secs_since(self.told) < 1.0 {
            return;
        }
        let reason = match (open, self.is_cold, exceeded) {
            (true, _, _) => Reason::GateOpen,
            (false, true, _) => Reason::ColdStart,
            (false, false, Some(_)) => Reason::WorkToCome,
            (false, false, None) => Reason::Capacity,
        };
        let mut signals =
            Signals::none().with("sessions_per_s", self.rate).with("waiting", inputs.waiting as f64);
        if let Some(route) = exceeded.or(self.bottleneck) {
            signals = signals
                .with("route", f64::from(route.0))
                .with("remaining_visits", inputs.remaining(route))
                .with("capacity_per_s", believed_capacity(inputs, route).unwrap_or(0.0))
                .with("delay_seconds", inputs.visits.delay(route));
        }
        out.push(interval_record(now, self.kind, self.interval, interval, reason, signals));
        self.interval = interval;
        self.told = now;
    }
}

/// Returns the route at which (2) is exceeded most, in seconds.
fn exceeded(inputs: &AdmissionInputs<'_>, is_wary: bool) -> Option<RouteId> {
    let excess = inputs.visits.routes().filter_map(|route| {
        let there = &inputs.routes[route.index()];
        // Whatever is known or predicted: admitted visitors come first.
        let wait = there.waiting as f64 / there.rate;
        let share = match there.capacity_age > STALE {
            true if is_wary && there.service.is_some_and(|service| service < LONG) => INSIDE_WARY,
            true => INSIDE_UNKNOWN,
            false => INSIDE_KNOWN,
        };
        if wait.is_finite() && wait > share * inputs.patience && there.waiting as f64 > REMAINING_MIN {
            return Some((wait, route));
        }
        if there.capacity_age > STALE || is_idle(inputs, route) || inputs.remaining(route) <= REMAINING_MIN {
            return None;
        }
        let allowed = inputs.visits.rank(route) * wait_allowed(inputs, route);
        let excess = inputs.foreseen(route)? - there.bias - allowed;
        (excess > 0.0).then_some((excess, route))
    });
    excess.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, route)| route)
}

/// Returns how many more of `kind` may begin before (2) is exceeded at some route where it is not
/// exceeded yet: each adds the visits to come of an average session.
fn headroom(kind: KindId, inputs: &AdmissionInputs<'_>) -> f64 {
    let headrooms = inputs.visits.routes().filter_map(|route| {
        let there = &inputs.routes[route.index()];
        let each = inputs.visits.per_session(kind, route);
        if there.capacity_age > STALE || is_idle(inputs, route) || each <= VISITS_MIN {
            return None;
        }
        let allowed = inputs.visits.rank(route) * wait_allowed(inputs, route) + there.bias;
        let excess = inputs.foreseen(route)? - allowed;
        let until_exceeded = -excess * there.capacity?;
        let until_it_counts = REMAINING_MIN - inputs.remaining(route);
        Some(until_exceeded.max(until_it_counts) / each)
    });
    headrooms.fold(f64::INFINITY, f64::min).max(0.0)
}

/// Returns X of (4): as it is known, or else the assumed capacity of a route with a crowd in front
/// of it. A wait of no more than the page itself is no crowd: requests under a higher limit of a
/// long page have not been completed yet.
fn believed_capacity(inputs: &AdmissionInputs<'_>, route: RouteId) -> Option<f64> {
    let there = &inputs.routes[route.index()];
    let wait = there.waiting as f64 / there.rate;
    let most = wait_allowed(inputs, route).max(there.service.unwrap_or(0.0));
    let is_slow = there.service.is_some_and(|service| service > SLOW * inputs.patience);
    let is_crowded = there.waiting as f64 > REMAINING_MIN && wait.is_finite() && wait > most && !is_slow;
    there.capacity.or(is_crowded.then_some(CROWDED * there.rate))
}

/// Returns W* of (2), seconds.
fn wait_allowed(inputs: &AdmissionInputs<'_>, route: RouteId) -> f64 {
    let service = inputs.routes[route.index()].service.unwrap_or(0.0);
    (WAIT_SHARE * inputs.patience).min(WAIT_MIN.max(WAIT_SERVICES * service))
}

#[cfg(test)]
mod tests;
