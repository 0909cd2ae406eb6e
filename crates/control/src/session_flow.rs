//! The session law: flow control by remaining visits.
//!
//! *Law*. By Little a session let in now would wait R_p/X_p − δ_p until its visits at p, v_p times W_p in the mean, so it may begin when
//!
//! ```text
//! for all p:  R_p / X_p − δ_p ≤ v_p W*_p + slack     W*_p = min(0.10 · patience, max(0.5 s, 4 S_p))     (1)
//! and a token is there                       filled at pace · rate, at most max(4, 2 rate · W*)  (2)
//! rate = min over p of X_p / F[START][p]                                                        (3)
//! ```
//!
//! *Signals*: R, δ, F from [`Visits`]; X and S by route. *Units*: seconds, visits, sessions per second.
//! *Regimes*: **open**: nobody waits and (1), (2) hold; **overloaded**: (1) holds newcomers back, (2) only smooths;
//! **cold start**, until sessions have ended: a session is taken to cost what [`COLD_VISITS`] mean requests do, within
//! [`COLD_COST`] core-seconds; the rate grows by 5 % a second while (2) and not (1) is what holds.
//! *Limits*: R is a count of things that exist, X a measurement; the slack, which corrects their errors, is from 0 to δ, moves only while (1) is what
//! holds, and is slow beside δ.
//! *Source*: constant work in process as in production control; `docs/laws/session.md`.

use crate::session::{Admission, Outlook, SessionLaw, interval_record, wait_behind};
use std::collections::VecDeque;
use suimon_model::real::pow;
use suimon_model::state::{State, Unsavable, Writer};
use suimon_model::{Duration, Instant, KindId, Reason, Record, RouteId, Signals, seconds};

/// Tokens closer to one than this are one, and nobody is told to come again sooner than this, seconds: the clock has a grain, and
/// waiting for less than it never ends.
const TOKEN_GRAIN: f64 = 1e-6;
const WAIT_GRAIN: f64 = 1e-6;
/// How much faster than the rate tokens come: (2) smooths, (1) limits.
const PACE: f64 = 1.3;
/// The largest share of the patience that may be spent waiting at one route.
const WAIT_SHARE: f64 = 0.10;
/// Tokens kept: as many as would wait this many times W* if they all began at once, and no fewer than a few. Below
/// capacity chance alone must not empty them.
const BURST: f64 = 2.0;
const BURST_MIN: f64 = 4.0;
/// Waits below this are of no concern, seconds.
const WAIT_MIN: f64 = 0.5;
/// Waits of this many service times cover the noise of arrivals.
const WAIT_SERVICES: f64 = 4.0;
/// Seconds of slack gained or lost a second at the most; much slower than δ, which is how late its effect is seen.
const GAIN: f64 = 0.05;
/// Growth of the cold-start rate per second.
const COLD_GROWTH: f64 = 1.05;
/// Before any session has ended, one is taken to cost as much as this many requests of those seen, ...
const COLD_VISITS: f64 = 15.0;
/// ... but no less and no more than this, in core-seconds: light pages may lead to a heavy one.
const COLD_COST: (f64, f64) = (0.5, 1.0);
/// Sessions per core that may begin at once before anything is known.
const COLD_DEPTH: f64 = 4.0;
/// Sessions that must have ended before F is believed.
const ENDED_MIN: u64 = 3;
/// Visits per session below which a route does not count.
const VISITS_MIN: f64 = 0.01;
/// Admissions the achieved rate is taken over, and the fewest that show one.
const ACHIEVED_MAX: usize = 40;
const ACHIEVED_MIN: usize = 8;

/// Flow control of one kind of session.
#[derive(Clone, Debug)]
pub struct Flow {
    kind: KindId,
    cores: f64,
    tokens: f64,
    tokens_at: Instant,
    /// Growth so far of the cold-start rate.
    cold_growth: f64,
    rate: f64,
    depth: f64,
    bottleneck: Option<RouteId>,
    held_by_pace: bool,
    busy_since: Option<Instant>,
    admissions: VecDeque<Instant>,
    interval: f64,
    told: Instant,
    ticked: Instant,
    /// Seconds by which (1) foresees too much.
    slack: f64,
}

suimon_model::saved_struct!(Flow {
    kind,
    cores,
    tokens,
    tokens_at,
    cold_growth,
    rate,
    depth,
    bottleneck,
    held_by_pace,
    busy_since,
    admissions,
    interval,
    told,
    ticked,
    slack,
});

impl Flow {
    /// Returns the law of `kind` with nothing known.
    pub fn new(kind: KindId, cores: u32, now: Instant) -> Self {
        let cores = f64::from(cores.max(1));
        Flow {
            kind,
            cores,
            tokens: cold_depth(cores),
            tokens_at: now,
            cold_growth: 1.0,
            rate: cores / COLD_COST.1,
            depth: cold_depth(cores),
            bottleneck: None,
            held_by_pace: false,
            busy_since: None,
            admissions: VecDeque::with_capacity(ACHIEVED_MAX),
            interval: 0.0,
            told: now,
            ticked: now,
            slack: 0.0,
        }
    }
}

impl SessionLaw for Flow {
    fn save(&self, out: &mut Writer) -> Result<(), Unsavable> {
        State::save(self, out);
        Ok(())
    }

    fn may_admit(&mut self, now: Instant, outlook: &Outlook<'_>) -> Admission {
        self.refill(now);
        self.held_by_pace = false;
        if exceeded(outlook, self.slack).is_some() {
            return Admission::Held(Reason::WorkToCome);
        }
        if self.tokens < 1.0 - TOKEN_GRAIN {
            self.held_by_pace = true;
            let wait = (1.0 - self.tokens) / (PACE * self.rate);
            return Admission::NotBefore(self.tokens_at + seconds(wait.max(WAIT_GRAIN)));
        }
        Admission::Now
    }

    /// Tokens are owed for what was let in as one.
    fn weighs(&mut self, weight: u32) {
        self.tokens -= f64::from(weight.saturating_sub(1));
    }

    fn admitted(&mut self, now: Instant) {
        self.tokens = (self.tokens - 1.0).max(0.0);
        if self.admissions.len() == ACHIEVED_MAX {
            self.admissions.pop_front();
        }
        self.admissions.push_back(now);
    }

    fn on_tick(&mut self, now: Instant, outlook: &Outlook<'_>, out: &mut Vec<Record>) {
        self.refill(now);
        self.note_line(now, outlook.waiting);
        let cold = outlook.visits.ended(self.kind) < ENDED_MIN;
        // Said anew by whoever asks next: while nobody is at the gate nothing is known.
        let held_by_pace = std::mem::take(&mut self.held_by_pace);
        if cold && held_by_pace && outlook.waiting > 0 {
            self.cold_growth *= pow(COLD_GROWTH, now.secs_since(self.ticked).min(1.0));
        }
        self.correct(now.secs_since(self.ticked).min(1.0), outlook);
        self.ticked = now;
        let known = (!cold).then(|| self.slowest(outlook)).flatten();
        (self.rate, self.bottleneck, self.depth) = match known {
            Some((rate, route)) => {
                (rate, Some(route), (BURST * rate * wait_allowed(outlook, route)).max(BURST_MIN))
            }
            None => (self.cold_rate(outlook), None, cold_depth(self.cores)),
        };
        self.tell(now, outlook, cold, out);
    }

    fn interval(&self) -> f64 {
        self.interval
    }

    fn rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn predicted_wait(&self, now: Instant, ahead: usize) -> Duration {
        wait_behind(ahead, self.expected_rate(now))
    }
}

impl Flow {
    /// Returns whether it is for `kind`, where there are so many routes.
    pub(crate) fn fits(&self, kind: KindId, routes: usize) -> bool {
        self.kind == kind && self.bottleneck.is_none_or(|route| route.index() < routes)
    }

    /// Returns sessions per second to expect while there is a line: the rate, or what was really achieved if that is less.
    fn expected_rate(&self, now: Instant) -> f64 {
        let achieved = self.busy_since.and_then(|since| {
            let oldest = self.admissions.iter().find(|at| **at >= since)?;
            let count = self.admissions.iter().filter(|at| **at >= since).count();
            let span = now.secs_since(*oldest);
            (count >= ACHIEVED_MIN && span > 0.0).then(|| count as f64 / span)
        });
        achieved.map_or(self.rate, |achieved| achieved.min(self.rate))
    }

    fn refill(&mut self, now: Instant) {
        let gained = now.secs_since(self.tokens_at) * PACE * self.rate;
        self.tokens = (self.tokens + gained).min(self.depth);
        self.tokens_at = self.tokens_at.max(now);
    }

    /// The achieved rate says something only while there is a line.
    fn note_line(&mut self, now: Instant, waiting: usize) {
        if waiting == 0 {
            self.busy_since = None;
        } else if self.busy_since.is_none() {
            self.busy_since = Some(now);
        }
    }

    /// Compares what (1) foresees with what is: newcomers are held back for a route at which nobody waits, or let in to one at which
    /// people wait too long.
    fn correct(&mut self, passed: f64, outlook: &Outlook<'_>) {
        if outlook.waiting == 0 {
            return;
        }
        let Some(route) = exceeded(outlook, self.slack) else { return };
        let there = &outlook.routes[route.index()];
        let Some(capacity) = there.capacity else { return };
        let allowed = wait_allowed(outlook, route).max(1e-9);
        let wait = there.waiting as f64 / capacity;
        let error = ((allowed - wait) / allowed).clamp(-1.0, 1.0);
        self.slack = (self.slack + GAIN * passed * error).clamp(0.0, outlook.visits.delay(route));
    }

    fn cold_rate(&self, outlook: &Outlook<'_>) -> f64 {
        let services: Vec<f64> = outlook.routes.iter().filter_map(|route| route.service).collect();
        let mean = services.iter().sum::<f64>() / services.len() as f64;
        // With nothing seen the mean is not a number, and the cost the highest.
        let cost =
            if mean.is_finite() { (COLD_VISITS * mean).clamp(COLD_COST.0, COLD_COST.1) } else { COLD_COST.1 };
        self.cores / cost * self.cold_growth
    }

    fn slowest(&self, outlook: &Outlook<'_>) -> Option<(f64, RouteId)> {
        let rates = outlook.visits.routes().filter_map(|route| {
            let visits = outlook.visits.per_session(self.kind, route);
            let capacity = outlook.routes[route.index()].capacity?;
            (visits > VISITS_MIN).then_some((capacity / visits, route))
        });
        rates.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn tell(&mut self, now: Instant, outlook: &Outlook<'_>, cold: bool, out: &mut Vec<Record>) {
        let exceeded = exceeded(outlook, self.slack);
        let open = outlook.waiting == 0 && exceeded.is_none();
        let interval = if open { 0.0 } else { 1.0 / self.rate.max(1e-6) };
        let changed = (interval - self.interval).abs() > 0.05 * self.interval.max(interval);
        if !changed || now.secs_since(self.told) < 1.0 {
            return;
        }
        let reason = match (open, cold, exceeded) {
            (true, _, _) => Reason::GateOpen,
            (false, true, _) => Reason::ColdStart,
            (false, false, Some(_)) => Reason::WorkToCome,
            (false, false, None) => Reason::Capacity,
        };
        let mut signals =
            Signals::none().with("sessions_per_s", self.rate).with("waiting", outlook.waiting as f64);
        if let Some(route) = exceeded.or(self.bottleneck) {
            signals = signals
                .with("route", f64::from(route.0))
                .with("remaining_visits", outlook.visits.remaining(route))
                .with("capacity_per_s", outlook.routes[route.index()].capacity.unwrap_or(0.0))
                .with("delay_seconds", outlook.visits.delay(route));
        }
        out.push(interval_record(now, self.kind, self.interval, interval, reason, signals));
        self.interval = interval;
        self.told = now;
    }
}

/// Returns the first route at which (1) does not hold.
fn exceeded(outlook: &Outlook<'_>, slack: f64) -> Option<RouteId> {
    outlook.visits.routes().find(|route| {
        let remaining = outlook.visits.remaining(*route);
        // A handful of visits is the grain of the thing: below two, one admission more or less is the whole difference.
        let Some(capacity) = outlook.routes[route.index()].capacity.filter(|x| *x > 0.0) else {
            return false;
        };
        let allowed = outlook.visits.rank(*route) * wait_allowed(outlook, *route);
        remaining > 2.0 && remaining / capacity - outlook.visits.delay(*route) > allowed + slack
    })
}

/// Returns W* of (1), seconds.
fn wait_allowed(outlook: &Outlook<'_>, route: RouteId) -> f64 {
    let service = outlook.routes[route.index()].service.unwrap_or(0.0);
    (WAIT_SHARE * outlook.patience).min(WAIT_MIN.max(WAIT_SERVICES * service))
}

fn cold_depth(cores: f64) -> f64 {
    COLD_DEPTH * cores
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::RouteOutlook;
    use crate::visits::{Place, Visits};

    const SHOP: KindId = KindId(0);
    const SEARCH: RouteId = RouteId(0);

    /// Sessions that search once, 12 s after they begin; the route does 4 a second.
    fn learned() -> (Visits, [RouteOutlook; 1]) {
        let mut visits = Visits::default();
        visits.add_route();
        visits.add_kind();
        (0..40).for_each(|_| visits.teach(SHOP, &[(SEARCH, 12.0)]));
        (visits, [RouteOutlook { capacity: Some(4.0), service: Some(0.4), waiting: 0 }])
    }

    fn outlook<'a>(visits: &'a Visits, routes: &'a [RouteOutlook], waiting: usize) -> Outlook<'a> {
        Outlook { visits, routes, patience: 60.0, waiting, active: 0 }
    }

    fn second(n: f64) -> Instant {
        Instant::ORIGIN + seconds(n)
    }

    #[test]
    fn it_fills_the_pipe_and_then_holds() {
        let (mut visits, mut routes) = learned();
        // As many as W* allows wait: what is foreseen is what is.
        routes[0].waiting = 7;
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        let (mut admitted, mut out) = (0, vec![]);
        for tick in 0..400 {
            let now = second(f64::from(tick) * 0.25);
            flow.on_tick(now, &outlook(&visits, &routes, 100), &mut out);
            while flow.may_admit(now, &outlook(&visits, &routes, 100)) == Admission::Now {
                flow.admitted(now);
                visits.enter(SHOP, Place::START);
                admitted += 1;
            }
        }
        // X (δ + W*) = 4 · (12 + 1.6): nobody ever gets to search here, so no more than that may be under way.
        assert!((54..=56).contains(&admitted), "{admitted}");
        assert_eq!(
            flow.may_admit(second(100.0), &outlook(&visits, &routes, 100)),
            Admission::Held(Reason::WorkToCome)
        );
        assert_eq!(flow.rate(), Some(4.0));
    }

    #[test]
    fn more_are_let_in_where_nobody_waits_for_what_they_were_held_back_for() {
        let (mut visits, mut routes) = learned();
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        let mut admitted_by = |from: u32, to: u32, routes: &[RouteOutlook]| {
            let mut admitted = 0;
            for tick in from..to {
                let now = second(f64::from(tick) * 0.25);
                flow.on_tick(now, &outlook(&visits, routes, 100), &mut vec![]);
                while flow.may_admit(now, &outlook(&visits, routes, 100)) == Admission::Now {
                    flow.admitted(now);
                    visits.enter(SHOP, Place::START);
                    admitted += 1;
                }
            }
            admitted
        };
        assert!(admitted_by(0, 400, &routes) > 65, "after 100 s of an idle route (1) is taken to be wrong");
        assert!(admitted_by(400, 40_000, &routes) < 60, "but never by more than δ: X (δ + W* + δ) in all");
        routes[0].waiting = 40;
        admitted_by(40_000, 41_600, &routes);
        assert!(flow.slack == 0.0, "and not once people wait too long there");
    }

    #[test]
    fn a_cold_start_is_slow_and_grows_only_while_pace_is_what_holds() {
        let mut visits = Visits::default();
        visits.add_route();
        visits.add_kind();
        let routes = [RouteOutlook::default()];
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        let (mut admitted, mut out) = (0, vec![]);
        for tick in 0..40 {
            let now = second(f64::from(tick) * 0.25);
            flow.on_tick(now, &outlook(&visits, &routes, 50), &mut out);
            while flow.may_admit(now, &outlook(&visits, &routes, 50)) == Admission::Now {
                flow.admitted(now);
                admitted += 1;
            }
        }
        assert!((28..=48).contains(&admitted), "8 at once, then about 2 to 3 a second for 10 s: {admitted}");
        assert_eq!(out.first().map(|record| record.reason), Some(Reason::ColdStart));
    }

    #[test]
    fn below_capacity_nobody_waits_and_the_interval_is_zero() {
        let (visits, routes) = learned();
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        let mut out = vec![];
        for tick in 0..200 {
            let now = second(f64::from(tick) * 0.5);
            flow.on_tick(now, &outlook(&visits, &routes, 0), &mut out);
            assert_eq!(flow.may_admit(now, &outlook(&visits, &routes, 0)), Admission::Now);
            flow.admitted(now);
        }
        assert!(flow.interval() == 0.0 && out.is_empty(), "{out:?}");
    }

    #[test]
    fn whoever_is_told_a_time_is_never_told_now() {
        let (mut visits, mut routes) = learned();
        // One session in fifty searches: sessions may begin by the ten thousand a second.
        (0..400).for_each(|n| visits.teach(SHOP, if n % 50 == 0 { &[(SEARCH, 12.0)] } else { &[] }));
        routes[0].capacity = Some(1e4);
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        flow.on_tick(second(0.0), &outlook(&visits, &routes, 9), &mut vec![]);
        for nanos in 0..20_000 {
            let now = Instant::from_nanos(nanos);
            match flow.may_admit(now, &outlook(&visits, &routes, 9)) {
                Admission::Now => flow.admitted(now),
                Admission::NotBefore(next) => assert!(next > now, "at {nanos} ns"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_old_lull_does_not_make_the_line_look_slow() {
        let (visits, routes) = learned();
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        let mut out = vec![];
        for n in 0..40 {
            flow.admitted(second(f64::from(n) * 30.0));
        }
        flow.on_tick(second(1200.0), &outlook(&visits, &routes, 10), &mut out);
        assert!((flow.expected_rate(second(1200.0)) - 4.0).abs() < 1e-9);
    }
}
