//! How the requests in flight are spread over nodes that are not equally fast.
//!
//! The gate says how many requests are in the application at once; here each node gets its share of
//! them. Shares move until a request takes as long on every node as on the others. Where nodes share a
//! processor among their requests, n requests take n times as long, so this is where each node's share
//! is in proportion to its speed, and all are as busy.
//!
//! *Law*. With the time that a request took, r times the mean of its route on all nodes, and w the share:
//!
//! ```text
//! s ← s + (ln r − s) / 30                    how slow a node is                                  (1)
//! w ← w^0.98 · exp(−0.2 (s − s̄))             every max(0.5 s, 2 requests)                         (2)
//! node = argmin (in flight / p + 1) / w      a random one of equals; of two random ones beyond 64  (3)
//! ```
//!
//! p is 1; a node that comes, or comes back, begins with a quarter, and has all of it once slow start is over
//! (ten seconds, unless it is said otherwise), as its caches are cold. The share of a node that gets no requests
//! goes back to 1 within some ten seconds, so that it is tried again.
//!
//! In (2) count nodes that have answered five requests since the last move. One that is slower than the mean
//! although it mostly has a single request at a time does not move, nor is it in the mean: it cannot have
//! less.
//!
//! A failed request counts as one that took eight times as long, and takes 0.3 of the share at once, so that a
//! node that fails at once attracts nobody. Both count the less, the more of the route's requests fail on all
//! nodes. A node that owes answers and has given none for max(2 s, 8 m), while others did, is *silent*: it gets
//! one request a second until it answers; and so does one that was left out for it, when it comes back. m is the
//! mean time of the slowest route that it owes answers of, as it was when the node still answered: what it does
//! not do slows the others, and that must not protect it. Where it has a request for a path that nobody knows yet,
//! it is given 30 s at least. Of idle nodes all whose share is within a tenth of the greatest are alike, so that none is
//! without requests because of chance.
//!
//! *Signals*: times and outcomes of requests, by node and route. *Units*: seconds; shares have the mean 1.
//! *Limits*: shares are 1/20 to 20; a ratio r is 1/8 to 8. *Source*: LAWS §6 of the design; late
//! binding as in join-idle-queue (Lu et al. 2011), P2C beyond 64 (Mitzenmacher 2001).

use crate::api::{AsksFor, Served};
use crate::longest::{Longest, ROUTES_MAX};
use crate::unanswered::Unanswered;
use suimon_model::real::{exp, ln};
use suimon_model::{Duration, Instant, RouteId, seconds};

/// Requests over which the slowness of a node is the mean, and those of a route's time.
const NODE_REQUESTS: f64 = 30.0;
const ROUTE_REQUESTS: f64 = 300.0;
/// The greatest ratio that counts; that of a failed request.
const RATIO_MAX: f64 = 8.0;
/// How fast shares move, and what a failed request takes of one at once.
const PACE: f64 = 0.2;
const FAILED: f64 = 0.3;
/// Requests of a route over which it is known which part of them fails.
const FAILING_REQUESTS: f64 = 100.0;
const SHARE_MAX: f64 = 20.0;
/// What is left of the logarithm of a share at each move, and of one that nothing tells of. Without it
/// shares would wander by chance where the time of a request does not depend on how many there are.
const FORGETS: f64 = 0.98;
const FORGETS_IDLE: f64 = 0.95;
/// The shortest time from one move to the next, and the same in requests.
const EVERY: Duration = Duration::from_millis(500);
const EVERY_REQUESTS: f64 = 2.0;
/// Requests of a node since the last move, without which it says nothing.
const SEEN_LEAST: u32 = 5;
/// What a node begins with of its share.
const BEGINS_WITH: f64 = 0.25;
/// How long a node answers nothing until it is silent, and the same in requests.
const SILENT_AFTER_S: f64 = 2.0;
/// The same until it is asked whether it hangs.
const SUSPECT_AFTER_S: f64 = 0.5;
const SILENT_REQUESTS: f64 = 8.0;
/// How often a silent node is tried.
const TRIED_EVERY: Duration = Duration::from_secs(1);
/// The same where nothing is known of a route, seconds: most pages take less, and no machine is idle that long
/// beside one that hangs without anybody noticing.
const UNKNOWN_S: f64 = 30.0;
/// So many requests are never at one node while another has none, unless they stay there.
const CROWD: u32 = 4;

/// What follows for a node that owes answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owes {
    /// It is asked whether it hangs.
    Check,
    /// It is silent.
    Silence,
}

impl Owes {
    /// Returns for how long it must, at least, seconds.
    const fn least(self) -> f64 {
        match self {
            Owes::Check => SUSPECT_AFTER_S,
            Owes::Silence => SILENT_AFTER_S,
        }
    }
}

impl NodeShare {
    fn owes_from(&mut self, now: Instant, longest: &Longest) {
        (self.owes_since, self.ungated_then) = (now, longest.ungated());
    }
}

/// The shares of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    nodes: Vec<NodeShare>,
    /// By route: the mean time of a request, seconds, and how many were seen, up to
    /// [`ROUTE_REQUESTS`].
    routes: Vec<(f64, f64)>,
    /// By route: which part of the requests fails, on all nodes.
    failing: Vec<f64>,
    /// The mean time of any request, seconds, likewise.
    any: (f64, f64),
    /// How long requests take of which a node may have its fill.
    longest: Longest,
    moved: Option<Instant>,
    /// For how long a node that has come has less than its share.
    slow_start: Duration,
    /// Whether nodes are picked by something else, so that shares would move without end.
    holds: bool,
    /// When any node answered last.
    answered: Option<Instant>,
}

#[derive(Clone, Debug)]
struct NodeShare {
    gone: bool,
    share: f64,
    slowness: f64,
    /// Requests since the last move, those that it got and those that it answered, and all up to
    /// [`NODE_REQUESTS`].
    got: u32,
    seen: u32,
    /// Requests that it had when it got those, together.
    had: u64,
    known: f64,
    /// Since when it serves.
    since: Instant,
    /// Since when it owes an answer: its last one, or the first request after it had none.
    owes_since: Instant,
    /// What a request without a slot took then, seconds.
    ungated_then: Option<f64>,
    unanswered: Unanswered,
    /// When it answered last.
    answered: Option<Instant>,
    tried: Instant,
    /// Whether it was left out because it answers nothing, and has answered nothing since.
    mute: Option<Instant>,
}

impl Shares {
    /// Returns the shares of no nodes. `slow_start`: for how long one that comes has less than its share; zero:
    /// it has all of it at once.
    pub(crate) fn new(slow_start: Duration) -> Self {
        Shares { slow_start, ..Shares::default() }
    }

    /// Takes a node in, at the place of one that is gone or at the end.
    pub(crate) fn add_node(&mut self, now: Instant, node: usize) {
        // The first ones are all as cold: they need no time.
        let since = if self.answered.is_some() { now } else { Instant::ORIGIN };
        let share = NodeShare {
            gone: false,
            share: 1.0,
            slowness: 0.0,
            got: 0,
            seen: 0,
            had: 0,
            known: 0.0,
            since,
            owes_since: now,
            ungated_then: self.longest.ungated(),
            unanswered: Unanswered::default(),
            answered: None,
            tried: now,
            mute: None,
        };
        match self.nodes.get_mut(node) {
            Some(place) => *place = share,
            None => self.nodes.push(share),
        }
    }

    /// Notes that a node is gone for good.
    pub(crate) fn remove_node(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.gone = true;
        }
    }

    /// Notes that a node answers nothing: it is tried once a second at most until it does.
    pub(crate) fn handle_mute(&mut self, now: Instant, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.mute.get_or_insert(now);
        }
    }

    /// Notes that a node answers checks, though perhaps no requests.
    pub(crate) fn handle_heard(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.mute = None;
        }
    }

    /// Notes that a node is up again.
    pub(crate) fn handle_return(&mut self, now: Instant, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.since = now;
            node.owes_from(now, &self.longest);
        }
    }

    /// Notes whether nodes are picked by something else from now on: shares stay as they are then.
    pub(crate) fn hold(&mut self, holds: bool) {
        self.holds = holds;
    }

    /// Notes that a node gets a request; `had`: requests that it has already.
    pub(crate) fn handle_pick(&mut self, now: Instant, node: usize, asks: AsksFor, had: u32) {
        let node = &mut self.nodes[node];
        node.tried = now;
        node.got = node.got.saturating_add(1);
        node.had += u64::from(had);
        if node.unanswered.count() == 0 {
            node.owes_from(now, &self.longest);
        }
        let answers = now.since(node.owes_since) <= seconds(SUSPECT_AFTER_S);
        node.unanswered.begin(asks, &self.longest, answers);
        self.adapt(now);
    }

    /// Notes that a node's answer to a request has begun, or that the request ends without any.
    pub(crate) fn handle_owed(&mut self, node: usize, asks: AsksFor) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.unanswered.end(asks);
        }
    }

    /// Notes that a node has answered something.
    pub(crate) fn handle_answer(&mut self, now: Instant, node: usize) {
        self.answered = Some(now);
        if let Some(node) = self.nodes.get_mut(node) {
            node.mute = None;
            node.answered = Some(now);
            node.owes_from(now, &self.longest);
        }
    }

    /// Notes how long a node took for a request of a route. Returns which part of its requests does not fail
    /// on all nodes: a failure says so much of this one.
    pub(crate) fn handle_served(&mut self, now: Instant, node: usize, served: &Served) -> f64 {
        let Served { route, took, is_good, .. } = *served;
        let took = took.as_secs_f64().max(1e-6);
        let (mean, failing) = self.note_time(route, took, is_good);
        // What fails on all nodes says nothing of one.
        let weight = 1.0 - failing;
        let Some(node) = self.nodes.get_mut(node) else { return weight };
        let ratio = (took / mean).clamp(1.0 / RATIO_MAX, RATIO_MAX);
        let log = if is_good { ln(ratio) } else { weight * ln(RATIO_MAX) };
        node.known = (node.known + 1.0).min(NODE_REQUESTS);
        node.slowness += (log - node.slowness) / node.known;
        node.seen = node.seen.saturating_add(1);
        if !is_good && !self.holds {
            node.share = ((1.0 - FAILED * weight) * node.share).max(1.0 / SHARE_MAX);
        }
        self.adapt(now);
        weight
    }

    /// Returns the mean time of a route's requests, and which part of them fails, this one among them.
    fn note_time(&mut self, route: RouteId, took: f64, is_good: bool) -> (f64, f64) {
        let index = route.index().min(ROUTES_MAX - 1);
        if self.routes.len() <= index {
            self.routes.resize(index + 1, (0.0, 0.0));
            self.failing.resize(index + 1, 0.0);
        }
        for (mean, seen) in [&mut self.routes[index], &mut self.any] {
            if is_good || *seen == 0.0 {
                *seen = (*seen + 1.0).min(ROUTE_REQUESTS);
                *mean += (took - *mean) / *seen;
            }
        }
        let failing = &mut self.failing[index];
        *failing += (f64::from(u8::from(!is_good)) - *failing) / FAILING_REQUESTS;
        (self.routes[index].0.max(1e-6), *failing)
    }

    /// (2)
    fn adapt(&mut self, now: Instant) {
        let (mean, _) = self.any;
        let moved = *self.moved.get_or_insert(now);
        if now.since(moved) < EVERY.max(seconds(EVERY_REQUESTS * mean)) {
            return;
        }
        self.moved = Some(now);
        if self.holds {
            return self.begin_counting();
        }
        for node in self.nodes.iter_mut().filter(|node| !node.gone) {
            let kept = if node.got == 0 { FORGETS_IDLE } else { FORGETS };
            node.share = exp(kept * ln(node.share));
            if node.got == 0 {
                node.slowness *= kept;
                node.seen = 0;
            }
        }
        // One that has a single request at a time cannot have less: that it is slow then tells its speed, and
        // no share makes it faster.
        let speaking = |node: &NodeShare| !node.gone && node.seen >= SEEN_LEAST;
        let mean = |nodes: &[NodeShare], is_meant: &dyn Fn(&NodeShare) -> bool| {
            let meant: Vec<f64> =
                nodes.iter().filter(|node| is_meant(node)).map(|node| node.slowness).collect();
            (meant.len() > 1).then(|| meant.iter().sum::<f64>() / meant.len() as f64)
        };
        let Some(first) = mean(&self.nodes, &speaking) else { return self.begin_counting() };
        let moves = |node: &NodeShare| {
            speaking(node) && (node.slowness <= first || node.got > 0 && node.had >= u64::from(node.got))
        };
        if let Some(mean) = mean(&self.nodes, &moves) {
            for node in self.nodes.iter_mut().filter(|node| moves(node)) {
                node.share *= exp(-PACE * (node.slowness - mean));
            }
        }
        self.begin_counting();
        let present = || self.nodes.iter().filter(|node| !node.gone);
        let mean = present().map(|node| node.share).sum::<f64>() / present().count() as f64;
        for node in &mut self.nodes {
            node.share = (node.share / mean).clamp(1.0 / SHARE_MAX, SHARE_MAX);
        }
    }

    fn begin_counting(&mut self) {
        for node in &mut self.nodes {
            (node.got, node.had) = (0, 0);
            if node.seen >= SEEN_LEAST {
                node.seen = 0;
            }
        }
    }

    /// Returns what a node's next request would be to it: the less, the rather it gets it.
    pub(crate) fn load(&self, now: Instant, node: usize, in_flight: u32) -> f64 {
        (f64::from(in_flight) / self.part(now, node) + 1.0) / self.nodes[node].share
    }

    /// Returns which part of its share a node has already: less than 1 while its caches are cold.
    pub(crate) fn part(&self, now: Instant, node: usize) -> f64 {
        let serves_for = now.since(self.nodes[node].since);
        if serves_for >= self.slow_start {
            return 1.0;
        }
        BEGINS_WITH + (1.0 - BEGINS_WITH) * serves_for.as_secs_f64() / self.slow_start.as_secs_f64()
    }

    /// Returns when a node has all of its share; the first ones have had it from the start.
    pub(crate) fn warm_at(&self, node: usize) -> Instant {
        self.nodes.get(node).map_or(Instant::ORIGIN, |node| match node.since {
            Instant::ORIGIN => Instant::ORIGIN,
            since => since + self.slow_start,
        })
    }

    /// Returns whether a node has requests, answers nothing while others do, and is not to be tried again
    /// yet.
    pub(crate) fn is_silent(&self, now: Instant, node: usize) -> bool {
        let others_do = || self.answered.is_some_and(|at| at > self.nodes[node].owes_since);
        now.since(self.nodes[node].tried) < TRIED_EVERY
            && (self.is_mute(node) || others_do() && self.owes(now, node, Owes::Silence))
    }

    /// Returns whether a node has requests and has answered nothing for too long.
    pub(crate) fn owes(&self, now: Instant, node: usize, what: Owes) -> bool {
        let NodeShare { owes_since, unanswered, .. } = &self.nodes[node];
        // Most have just answered, and what patience there is with them need not be worked out.
        unanswered.count() > 0
            && now.since(*owes_since) > seconds(what.least())
            && now.since(*owes_since) > self.patience(node, what)
    }

    /// Returns how long a node may have requests and answer none.
    fn patience(&self, node: usize, what: Owes) -> Duration {
        let NodeShare { unanswered, ungated_then, .. } = &self.nodes[node];
        let ungated = ungated_then.or_else(|| self.longest.ungated());
        let (slowest, has_unknown) = unanswered.slowest(&self.longest, ungated);
        let least = if has_unknown { UNKNOWN_S } else { what.least() };
        seconds(least.max(SILENT_REQUESTS * slowest))
    }

    /// Returns whether `other` has answered something since a node owes answers.
    pub(crate) fn has_answered_since(&self, node: usize, other: usize) -> bool {
        self.nodes[other].answered.is_some_and(|at| at > self.nodes[node].owes_since)
    }

    /// Returns whether a node has many requests, while `other` has none: as where it holds all slots of the gate,
    /// so that nobody can answer anything.
    pub(crate) fn holds_all(&self, node: usize, other: usize) -> bool {
        self.nodes[node].unanswered.count() >= CROWD && self.nodes[other].unanswered.count() == 0
    }

    /// Returns whether a node was left out because it answers nothing, and has answered nothing since.
    pub(crate) fn is_mute(&self, node: usize) -> bool {
        self.mute_since(node).is_some()
    }

    /// Returns since when it is.
    pub(crate) fn mute_since(&self, node: usize) -> Option<Instant> {
        self.nodes.get(node)?.mute
    }

    /// Notes how long a request took that was answered well.
    pub(crate) fn handle_took(&mut self, now: Instant, route: Option<RouteId>, took: Duration) {
        self.longest.note(now, route, took.as_secs_f64());
    }

    /// Returns the share of a node; the mean is 1.
    pub(crate) fn share(&self, node: usize) -> f64 {
        self.nodes.get(node).map_or(1.0, |node| node.share)
    }
}
