//! The machine: a table of nodes, and which of them gets the next request.

use crate::affinity::Affinity;
use crate::api::{
    AsksFor, Balance, Change, Checked, FleetFull, LoadReport, NODES_MAX, NodeView, OUTPUTS_MAX, Output,
    Params, Pick, PickReason, Served, Status, Why,
};
use crate::ejection::Ejection;
use crate::faults::Faults;
use crate::health::Health;
use crate::reported::Reports;
use crate::retries::RetryBudget;
use crate::shares::{Owes, Shares};
use crate::silence::Silence;
use std::collections::VecDeque;
use suimon_model::{Duration, Instant, NodeId, Rng, RouteId};

/// The nodes of an upstream.
#[derive(Clone, Debug)]
pub struct Fleet {
    params: Params,
    nodes: Vec<Node>,
    shares: Shares,
    faults: Faults,
    reports: Reports,
    /// `None`: sessions are not kept at their nodes.
    affinity: Option<Affinity>,
    retries: RetryBudget,
    outputs: VecDeque<Output>,
    rng: Rng,
}

#[derive(Clone, Debug)]
struct Node {
    in_flight: u32,
    picked: u64,
    draining: bool,
    /// Whether it gets nothing new because an operator says so for a while.
    held_back: bool,
    /// Whether it was removed, and its place is free.
    gone: bool,
    health: Health,
    ejection: Ejection,
    /// Requests in a row, and checks of a doubted node, that did not reach it.
    unreached: u32,
    /// Requests since its last answer that it took and never answered, and that no check has
    /// confirmed yet.
    losses: u32,
    /// Whether it counts as down, whatever checks say: too many requests did not reach it, and they
    /// reach no other node either.
    lost: bool,
    silence: Silence,
    why: Why,
    since: Instant,
}

/// Which nodes may be picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fitness {
    /// Those that are up and answer.
    Answers,
    Up,
    /// Those that are not draining.
    Any,
}

/// Loads of idle nodes that differ by less are alike, as a share.
const ALIKE: f64 = 0.1;
/// Of so many nodes all are compared for each request; of more, two.
const COMPARED_MAX: usize = 64;
/// A node counts as out of reach after this many requests and checks in a row that did not reach
/// it. If no other node is within reach either, they are down, and the application with them.
const LOST_AFTER: u32 = 3;

impl Fleet {
    /// Returns a fleet without nodes.
    pub fn new(params: Params) -> Self {
        let rng = Rng::stream(params.seed, 0xF1EE7);
        Fleet {
            affinity: params.affinity.map(Affinity::new),
            retries: RetryBudget::new(params.retry_share),
            shares: Shares::new(params.slow_start),
            params,
            nodes: Vec::new(),
            faults: Faults::default(),
            reports: Reports::default(),
            outputs: VecDeque::new(),
            rng,
        }
    }

    /// Adds a node, assumed to be up, and returns its id: the least that is free, from 0.
    ///
    /// # Errors
    /// [`FleetFull`] if there are [`NODES_MAX`] nodes already.
    pub fn add_node(&mut self, now: Instant) -> Result<NodeId, FleetFull> {
        let index = self.nodes.iter().position(|node| node.gone).unwrap_or(self.nodes.len());
        if index >= NODES_MAX {
            return Err(FleetFull);
        }
        let node = Node {
            in_flight: 0,
            picked: 0,
            draining: false,
            held_back: false,
            gone: false,
            health: Health::new(now, self.params.checks.as_ref(), &mut self.rng),
            ejection: Ejection::default(),
            unreached: 0,
            losses: 0,
            lost: false,
            silence: Silence::default(),
            why: Why::Initial,
            since: now,
        };
        match self.nodes.get_mut(index) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        self.shares.add_node(now, index);
        self.faults.add_node(index);
        let id = NodeId(index as u32);
        if let Some(affinity) = &mut self.affinity {
            affinity.add_node(id);
        }
        Ok(id)
    }

    /// Removes a node that is draining and has nothing in flight and no sessions; returns whether it is
    /// gone. Its id belongs to the next node that is added.
    pub fn remove_node(&mut self, now: Instant, node: NodeId) -> bool {
        if let Some(affinity) = &mut self.affinity {
            affinity.expire(now);
        }
        let has_sessions = self.sessions(node) > 0;
        let Some(state) = self.nodes.get_mut(node.index()).filter(|node| !node.gone) else { return true };
        if !state.draining || state.in_flight > 0 || has_sessions {
            return false;
        }
        state.gone = true;
        self.outputs.retain(|output| *output != Output::Check(node));
        self.shares.remove_node(node.index());
        self.reports.remove_node(node.index());
        self.return_some(now);
        true
    }

    /// Returns a node for one request, other than `avoid` if any other is up; `None` if all nodes
    /// are draining. The request counts as in flight until [`Fleet::handle_release`] or
    /// [`Fleet::handle_unanswered`].
    pub fn pick(&mut self, now: Instant, asks: AsksFor, avoid: Option<NodeId>) -> Option<Pick> {
        self.end_ejections(now);
        let pick = self.choose(now, avoid)?;
        self.shares.hold(pick.reason == PickReason::LeastReported);
        self.take(now, pick.node, asks);
        Some(pick)
    }

    /// Returns `node` for a further request of a client's connection, if it is up, and not to be avoided.
    /// Otherwise as [`Fleet::pick`].
    pub fn pick_again(
        &mut self,
        now: Instant,
        asks: AsksFor,
        node: NodeId,
        avoid: Option<NodeId>,
    ) -> Option<Pick> {
        self.end_ejections(now);
        let is_up = self.nodes.get(node.index()).is_some_and(|node| node.status() == Status::Up);
        if !is_up || avoid == Some(node) {
            return None;
        }
        self.take(now, node, asks);
        Some(Pick { node, reason: PickReason::SameConnection })
    }

    fn take(&mut self, now: Instant, node: NodeId, asks: AsksFor) {
        let index = node.index();
        let node = &mut self.nodes[index];
        self.shares.handle_pick(now, index, asks, node.in_flight);
        self.reports.handle_in_flight(now, index, node.in_flight);
        node.in_flight += 1;
        node.picked += 1;
    }

    /// Folds in what `node` reports of its load. It is looked at where [`Balance`](crate::Balance) says so.
    pub fn handle_report(&mut self, now: Instant, node: NodeId, report: &LoadReport) {
        if let Some(state) = self.nodes.get(node.index()).filter(|node| !node.gone) {
            self.reports.handle_report(now, node.index(), report, state.in_flight);
        }
    }

    /// Notes that a picked request has ended on `node` without an answer: it failed, or its client left.
    pub fn handle_unanswered(&mut self, now: Instant, node: NodeId, asks: AsksFor) {
        self.shares.handle_owed(node.index(), asks);
        self.handle_release(now, node);
    }

    /// Notes that a picked request has ended on `node`, whose answer [`Fleet::handle_answer`] was told of.
    pub fn handle_release(&mut self, now: Instant, node: NodeId) {
        let index = node.index();
        if let Some(node) = self.nodes.get_mut(index) {
            self.reports.handle_in_flight(now, index, node.in_flight);
            debug_assert!(node.in_flight > 0, "released more often than picked");
            node.in_flight = node.in_flight.saturating_sub(1);
        }
    }

    /// Notes how long a request took that was answered well, also one whose client was waited for meanwhile, or
    /// `None`: one without a route.
    pub fn handle_took(&mut self, now: Instant, route: Option<RouteId>, took: Duration) {
        self.shares.handle_took(now, route, took);
    }

    /// Notes how long `node` took for a request, by which its share moves, and whether its answer was a fault.
    pub fn handle_served(&mut self, now: Instant, node: NodeId, served: &Served) {
        // A single node has all there is.
        if self.present().nth(1).is_some() {
            if served.is_good {
                self.handle_took(now, Some(served.route), served.took);
            }
            let weight = self.shares.handle_served(now, node.index(), served);
            self.reports.handle_served(now, node.index(), served.is_good, weight);
            if self.faults.handle_served(now, node.index(), served)
                && self.faults.has_failed(node.index(), self.params.ejection.after)
            {
                self.eject(now, node, Why::AnswersFailed);
            }
        }
    }

    /// Notes that `node` has begun to answer a picked request, with any status. However long the rest takes,
    /// it owes nothing for it any more.
    pub fn handle_answer(&mut self, now: Instant, node: NodeId, asks: AsksFor) {
        let was_mute = self.shares.is_mute(node.index());
        self.shares.handle_owed(node.index(), asks);
        self.shares.handle_answer(now, node.index());
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        let was_tried = state.ejection.is_on_probation();
        state.ejection.answer(now);
        (state.unreached, state.losses) = (0, 0);
        if state.lost {
            self.find(now, node);
        }
        self.hear(now, node, was_mute);
        if was_tried {
            self.tell(Output::Proven(node));
        }
    }

    /// Notes that a request did not reach `node`: the connection could not be opened, or a fresh
    /// one closed before anything of the request was written.
    pub fn handle_unreached(&mut self, now: Instant, node: NodeId) {
        self.fail(now, node, 1);
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        state.unreached = state.unreached.saturating_add(1);
        state.health.hurry(now);
        self.lose(now);
    }

    /// Notes that `node` took a request over a fresh connection and closed it without an answer.
    /// The request itself may be the cause, so it counts only after a check fails likewise.
    pub fn handle_lost(&mut self, now: Instant, node: NodeId) {
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        state.losses = state.losses.saturating_add(1);
        state.health.look(now);
    }

    /// Notes that a request to `node` failed.
    pub fn handle_failure(&mut self, now: Instant, node: NodeId) {
        self.fail(now, node, 1);
    }

    /// Folds in the result of a check that [`Output::Check`] asked for.
    pub fn handle_check(&mut self, now: Instant, node: NodeId, checked: Checked) {
        if checked == Checked::NotMade {
            let Some(state) = self.nodes.get_mut(node.index()) else { return };
            return state.health.put_off(now, self.params.checks.as_ref());
        }
        if checked == Checked::Answered
            && let Some(state) = self.nodes.get_mut(node.index())
        {
            (state.unreached, state.losses) = (0, 0);
            if state.lost {
                self.find(now, node);
            }
        }
        if checked == Checked::Answered {
            let was_mute = self.shares.is_mute(node.index());
            self.shares.handle_heard(node.index());
            self.hear(now, node, was_mute);
        }
        let passed = checked.passed();
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        if matches!(checked, Checked::Accepted | Checked::Mute) && !state.lost {
            // The node exists, but may have more work than it can do.
            state.unreached = 0;
        }
        let (from, lost) = (state.status(), state.lost);
        if state.health.finish(now, passed, self.params.checks.as_ref(), lost, &mut self.rng) {
            let why = if passed { Why::ChecksPassed } else { Why::ChecksFailed };
            self.changed(now, node, from, why, Duration::ZERO);
        }
        if matches!(checked, Checked::Closed | Checked::Unreached) {
            self.bear_out(now, node, checked);
        }
        if matches!(checked, Checked::Mute | Checked::TimedOut) {
            self.miss(now, node);
        }
        self.lose(now);
    }

    /// Returns whether requests may not reach `node`, or certainly do not. A check of it then
    /// passes only if it answers a request.
    pub fn is_doubted(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()).is_some_and(Node::is_doubted)
    }

    /// Returns whether any node is up whose last connection could be opened, as far as is known.
    pub fn is_reached(&self) -> bool {
        self.nodes.iter().any(|node| node.status() == Status::Up && node.unreached == 0)
    }

    /// Returns whether any node is up.
    pub fn is_up(&self) -> bool {
        self.nodes.iter().any(|node| node.status() == Status::Up)
    }

    /// Returns how many nodes are up. One that is tried again after an ejection does not count before it has
    /// answered: what is let in for it would wait at the others. Where there are no others, it does.
    pub fn up(&self) -> u32 {
        let up = || self.nodes.iter().filter(|node| node.status() == Status::Up);
        let proven = up().filter(|node| !node.ejection.is_on_probation()).count();
        (if proven > 0 { proven } else { up().count() }) as u32
    }

    /// Gives `node` no new requests if `draining`, or gives it new ones again. Its requests in
    /// flight continue.
    pub fn drain(&mut self, now: Instant, node: NodeId, draining: bool) {
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        let from = state.status();
        if std::mem::replace(&mut state.draining, draining) != draining {
            self.change_drain(now, node, from);
        }
    }

    /// Gives `node` nothing new if `held_back`, whatever [`Fleet::drain`] is told, or only as that is
    /// told again.
    pub fn hold_back(&mut self, now: Instant, node: NodeId, held_back: bool) {
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        let from = state.status();
        if std::mem::replace(&mut state.held_back, held_back) != held_back {
            self.change_drain(now, node, from);
        }
    }

    fn change_drain(&mut self, now: Instant, node: NodeId, from: Status) {
        let Some(state) = self.nodes.get(node.index()) else { return };
        let why = if state.status() == Status::Draining { Why::Drain } else { Why::DrainOver };
        self.changed(now, node, from, why, Duration::ZERO);
        self.lose(now);
    }

    /// Does all that is due by `now`: see [`Fleet::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.end_ejections(now);
        self.suspect(now);
        self.tell_released(now);
        for (index, node) in self.nodes.iter_mut().enumerate() {
            if !node.gone && node.health.begin(now) {
                self.outputs.push_back(Output::Check(NodeId(index as u32)));
            }
        }
    }

    /// Returns when [`Fleet::handle_timeout`] must be called, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let nodes = self.present().filter_map(|(_, node)| earlier(node.health.due(), node.ejection.until()));
        earlier(nodes.min(), self.affinity.as_ref().and_then(Affinity::due))
    }

    /// Returns the next output; `None` if there is none. Call it after every `handle_*`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns whether [`Fleet::poll_output`] would return an output.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Returns the visible state of every node, by id.
    pub fn view(&self) -> Vec<NodeView> {
        let view = |(id, node): (NodeId, &Node)| NodeView {
            report: self.reports.last(id.index()),
            sessions: self.affinity.as_ref().map(|affinity| affinity.count(id)),
            slow_start_until: self.slow_start_until(id),
            ..node.view(id, self.shares.share(id.index()))
        };
        self.present().map(view).collect()
    }

    /// Returns until when a node that is up has less than its share; the rule of the papers knows none.
    fn slow_start_until(&self, node: NodeId) -> Option<Instant> {
        let knows = self.params.balance != Balance::Paper && self.present().nth(1).is_some();
        let is_up = self.nodes.get(node.index()).is_some_and(|node| node.status() == Status::Up);
        (knows && is_up).then(|| self.shares.warm_at(node.index()))
    }

    fn present(&self) -> impl Iterator<Item = (NodeId, &Node)> + Clone {
        (0u32..).map(NodeId).zip(&self.nodes).filter(|(_, node)| !node.gone)
    }

    /// Returns the requests in flight on `node`; 0 if there is no such node.
    pub fn in_flight(&self, node: NodeId) -> u32 {
        self.nodes.get(node.index()).map_or(0, |node| node.in_flight)
    }

    fn choose(&mut self, now: Instant, avoid: Option<NodeId>) -> Option<Pick> {
        for fitness in [Fitness::Answers, Fitness::Up] {
            if let Some(pick) = self.choose_among(now, avoid, fitness) {
                return Some(pick);
            }
        }
        if let Some(Pick { node, .. }) = self.choose_among(now, None, Fitness::Up) {
            return Some(Pick { node, reason: PickReason::NoOther });
        }
        let pick = self.choose_among(now, avoid, Fitness::Any);
        let pick = pick.or_else(|| self.choose_among(now, None, Fitness::Any))?;
        Some(Pick { reason: PickReason::Panic, ..pick })
    }

    /// Returns a pick among the nodes that are fit, without `avoid`.
    fn choose_among(&mut self, now: Instant, avoid: Option<NodeId>, fitness: Fitness) -> Option<Pick> {
        if let Some(pick) = self.choose_reported(now, avoid, fitness) {
            return Some(pick);
        }
        let avoid = avoid.map(NodeId::index);
        let is_fit =
            |index: usize, node: &Node| Some(index) != avoid && self.is_fit(now, index, node, fitness);
        let nodes = self.nodes.iter().enumerate().filter(|(index, node)| is_fit(*index, node));
        if self.nodes.len() > COMPARED_MAX {
            let fit: Vec<usize> = nodes.map(|(index, _)| index).collect();
            return self.less_of_two(now, &fit);
        }
        let (mut least, mut count) = (f64::INFINITY, 0);
        let mut loads = [f64::INFINITY; COMPARED_MAX];
        for (index, node) in nodes {
            let load = self.shares.load(now, index, node.in_flight);
            // Of idle nodes none is without requests because of a small difference.
            loads[index] = if node.in_flight == 0 { load * (1.0 - ALIKE) } else { load };
            (least, count) = (least.min(load), count + 1);
        }
        let mut alike = 0;
        let mut chosen = None;
        for (index, load) in
            loads.iter().enumerate().take(self.nodes.len()).filter(|(_, load)| **load <= least)
        {
            debug_assert!(load.is_finite() || count == 0, "only what is fit is compared");
            alike += 1;
            if count == 1 || self.rng.below(alike) == 0 {
                chosen = Some(index);
            }
        }
        let reason = if count == 1 { PickReason::OnlyOne } else { PickReason::LeastInFlight };
        chosen.filter(|_| count > 0).map(|index| Pick { node: NodeId(index as u32), reason })
    }

    fn is_fit(&self, now: Instant, index: usize, node: &Node, fitness: Fitness) -> bool {
        match fitness {
            Fitness::Answers => node.status() == Status::Up && !self.shares.is_silent(now, index),
            Fitness::Up => node.status() == Status::Up,
            Fitness::Any => node.status() != Status::Draining,
        }
    }

    fn less_of_two(&mut self, now: Instant, fit: &[usize]) -> Option<Pick> {
        let load = |index: usize| self.shares.load(now, index, self.nodes[index].in_flight);
        let (index, reason) = match fit {
            [] => return None,
            [only] => (*only, PickReason::OnlyOne),
            _ => {
                let first = self.rng.below(fit.len());
                // One of the other nodes: the index skips the first.
                let second = self.rng.below(fit.len() - 1);
                let (first, second) = (fit[first], fit[second + usize::from(second >= first)]);
                (if load(second) < load(first) { second } else { first }, PickReason::PowerOfTwo)
            }
        };
        Some(Pick { node: NodeId(index as u32), reason })
    }

    /// Marks the nodes that are up as down if requests reach none of them.
    fn lose(&mut self, now: Instant) {
        let mut up = self.nodes.iter().filter(|node| node.status() == Status::Up);
        if up.any(|node| node.unreached < LOST_AFTER) {
            return;
        }
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            if node.status() == Status::Up {
                node.lost = true;
                self.changed(now, NodeId(index as u32), Status::Up, Why::Unreached, Duration::ZERO);
            }
        }
    }

    /// Notes that a lost node has answered.
    fn find(&mut self, now: Instant, node: NodeId) {
        let state = &mut self.nodes[node.index()];
        let from = state.status();
        state.lost = false;
        (state.unreached, state.losses) = (0, 0);
        self.changed(now, node, from, Why::Reached, Duration::ZERO);
    }

    /// Notes why `node` has its present status, and reports a change.
    fn changed(&mut self, at: Instant, node: NodeId, from: Status, why: Why, lasts: Duration) {
        let state = &mut self.nodes[node.index()];
        let to = state.status();
        if from == to {
            return;
        }
        // Every status but `Up` has a reason of its own, which applies whatever the event was.
        let why = match to {
            Status::Up => why,
            Status::Down if why == Why::Unreached => why,
            Status::Down => Why::ChecksFailed,
            Status::Ejected if matches!(why, Why::AnswersFailed | Why::Silent) => why,
            Status::Ejected => Why::RequestsFailed,
            Status::Draining => Why::Drain,
        };
        state.why = why;
        state.since = at;
        if to == Status::Up {
            self.shares.handle_return(at, node.index());
        }
        self.tell(Output::Changed(Change { at, node, from, to, why, lasts }));
    }

    fn tell(&mut self, output: Output) {
        if self.outputs.len() >= OUTPUTS_MAX {
            // Checks are never dropped: the caller reports a result for each. There is at most one
            // per node.
            let oldest = self.outputs.iter().position(|output| !matches!(output, Output::Check(_)));
            oldest.map(|oldest| self.outputs.remove(oldest));
        }
        self.outputs.push_back(output);
    }
}

impl Node {
    fn status(&self) -> Status {
        if self.draining || self.held_back || self.gone {
            Status::Draining
        } else if self.lost || !self.health.is_up() {
            Status::Down
        } else if self.ejection.is_out() {
            Status::Ejected
        } else {
            Status::Up
        }
    }

    fn is_doubted(&self) -> bool {
        self.lost || self.unreached > 0 || self.losses > 0 || self.silence.is_suspected()
    }

    /// Returns whether nothing but its silence speaks against it, so far.
    fn is_only_suspected(&self) -> bool {
        self.silence.is_suspected() && self.status() == Status::Up && self.unreached == 0 && self.losses == 0
    }

    fn view(&self, node: NodeId, share: f64) -> NodeView {
        NodeView {
            node,
            status: self.status(),
            why: self.why,
            since: self.since,
            until: self.ejection.until(),
            slow_start_until: None,
            in_flight: self.in_flight,
            share,
            report: None,
            sessions: None,
            picked: self.picked,
            failures_in_a_row: self.ejection.failures_in_a_row(),
        }
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

mod ejections;
mod reported;
mod retries;
mod sessions;

#[cfg(test)]
mod black_hole;
#[cfg(test)]
mod hanging;
#[cfg(test)]
mod tests;
