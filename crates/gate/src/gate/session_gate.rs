//! The session gate: a newcomer begins now, is held until it may, is shown its place in line, or is
//! refused.

use super::Gate;
use crate::api::{InLine, Output};
use crate::held::{Key, Newcomer};
use crate::requests::{NewcomerPosition, Origin, Request, Stage};
use crate::shared::shared_inputs;
use suimon_control::{AdmissionDecision, AdmissionInputs, LastRoute as Entry};
use suimon_line::{Lane, Position, PositionStatus};
use suimon_model::{Instant, KindId, Reason, RequestId, SessionId, seconds};

/// A newcomer held for longer, seconds, is pressure; a shorter wait is chance.
const PRESSURE_HELD: f64 = 1.0;

/// What a newcomer has of the line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Claim {
    /// Nothing, and it may draw no place.
    None,
    /// Nothing yet, and it may draw a place in this lane.
    Draws(Lane),
    /// This place, and whether it may draw another if that is over.
    Holds(Position, bool),
}

impl Gate {
    /// Takes a newcomer, with what it has of the line, to the gate of its kind.
    pub(super) fn enter_session_gate(&mut self, now: Instant, id: RequestId, kind_id: KindId, claim: Claim) {
        let route = self.requests.get(id).expect("the request was inserted by the caller").route;
        // A newcomer with a place came before.
        if !matches!(claim, Claim::Holds(..)) {
            self.kinds[kind_id.index()].comes(now);
        }
        if self.draining {
            return self.refuse(now, id, Reason::ShuttingDown, Some(kind_id));
        }
        let is_hopeless = self.route_hopeless(route);
        let kind = &self.kinds[kind_id.index()];
        let has_line = kind.line.is_some();
        // A client that keeps no place gets the true answer; there is nothing to hold it for.
        if self.away.is_on() && kind.holds() && (!has_line || claim == Claim::None) {
            return self.refuse(now, id, Reason::ApplicationDown, Some(kind_id));
        }
        if is_hopeless && !(has_line && kind.holds()) {
            return self.refuse(now, id, Reason::WaitTooLong, Some(kind_id));
        }
        if !kind.holds() {
            return self.admit(now, id, kind_id);
        }
        // A place is good for one session; a client that presents it after that waits like
        // everybody.
        let is_over = |position| kind.line.as_ref().is_some_and(|line| line.is_claimed(position));
        let claim = match claim {
            Claim::Holds(position, draws) if is_over(position) => {
                let request = self.requests.get_mut(id).expect("the request was inserted by the caller");
                request.origin = Origin::newcomer(kind_id);
                if draws { Claim::Draws(Lane::Normal) } else { Claim::None }
            }
            claim => claim,
        };
        if let (Some(line), Claim::Holds(position, _)) = (&mut self.kinds[kind_id.index()].line, claim) {
            let standing = line.check_in(now, position);
            if !standing.is_called() {
                return self.wait_in_line(now, id, kind_id, Some(position), standing);
            }
        }
        let kind = &self.kinds[kind_id.index()];
        let is_first = kind.held.is_empty()
            && !is_hopeless
            && kind.admits()
            && (kind.nobody_in_line()
                || matches!(claim, Claim::Holds(position, _) if !kind.makes_way(now, position)));
        let admission = if is_first { Some(self.may_admit(now, kind_id, id)) } else { None };
        if admission == Some(AdmissionDecision::Now) {
            return self.admit(now, id, kind_id);
        }
        if self.handed_over {
            return self.refuse(now, id, Reason::ShuttingDown, Some(kind_id));
        }
        if has_line {
            let may_be_held = !is_hopeless && !self.is_full();
            return self.take_position(now, id, kind_id, claim, may_be_held);
        }
        if admission == Some(AdmissionDecision::Refuse) {
            return self.refuse(now, id, Reason::WorkToCome, Some(kind_id));
        }
        if self.is_full() {
            return self.refuse(now, id, Reason::GatewayFull, Some(kind_id));
        }
        let kind = &mut self.kinds[kind_id.index()];
        if kind.too_many_held(now) {
            return self.refuse(now, id, Reason::WaitTooLong, Some(kind_id));
        }
        let key = (Lane::Normal, kind.rank());
        self.hold(id, kind_id, key);
    }

    /// Takes a visitor with a position who only asks to be admitted to the session gate of its
    /// kind.
    pub(super) fn enter_only(
        &mut self,
        now: Instant,
        id: RequestId,
        kind_id: KindId,
        position: Position,
        session: SessionId,
    ) {
        if self.sessions.get(session).is_some() {
            // Another tab has begun it already.
            return self.has_begun(now, id, kind_id, position, session);
        }
        let kind = &self.kinds[kind_id.index()];
        if kind.line.as_ref().is_none_or(|line| line.is_claimed(position)) {
            return self.wait_in_line(now, id, kind_id, None, PositionStatus::Closed);
        }
        self.enter_session_gate(now, id, kind_id, Claim::Holds(position, false));
    }

    /// Answers such a request once its session has begun.
    fn has_begun(
        &mut self,
        now: Instant,
        id: RequestId,
        kind: KindId,
        position: Position,
        session: SessionId,
    ) {
        let line = self.kinds[kind.index()].line.as_ref();
        let standing = line.map_or(PositionStatus::Closed, |line| line.standing(now, position));
        self.answer_in_line(
            now,
            id,
            InLine { request: id, kind, position: Some(position), standing, begun: Some(session) },
        );
    }

    /// Holds a newcomer whose turn is soon, if it `may_be_held`, and shows its place to any other.
    fn take_position(
        &mut self,
        now: Instant,
        id: RequestId,
        kind_id: KindId,
        claim: Claim,
        may_be_held: bool,
    ) {
        let kind = &mut self.kinds[kind_id.index()];
        let is_blind = may_be_held && kind.may_hold_blindly(now);
        let line = kind.line.as_mut().expect("the caller has seen that there is one");
        let position = match claim {
            Claim::Holds(position, _) => position,
            Claim::None if kind.has_waiters && !is_blind => {
                return self.refuse(now, id, Reason::WaitTooLong, Some(kind_id));
            }
            Claim::None | Claim::Draws(_) => {
                let lane = if let Claim::Draws(lane) = claim { lane } else { Lane::Normal };
                let Some(position) = line.draw(lane) else {
                    let standing = line.standing(now, Position { lane, number: u64::MAX });
                    return match standing {
                        PositionStatus::Closed => self.wait_in_line(now, id, kind_id, None, standing),
                        PositionStatus::Called(_)
                        | PositionStatus::Waiting(_)
                        | PositionStatus::Opening(..)
                        | PositionStatus::ApplicationDown(_)
                        | PositionStatus::Paused(_) => {
                            self.refuse(now, id, Reason::GatewayFull, Some(kind_id));
                        }
                    };
                };
                let request = self.requests.get_mut(id).expect("the request was inserted by the caller");
                if let Origin::Newcomer { position: NewcomerPosition::Drawn { drawn, .. }, .. } =
                    &mut request.origin
                {
                    *drawn = Some(position);
                }
                position
            }
        };
        let standing = line.standing(now, position);
        let key = line.rank(position);
        // If more were held than can begin meanwhile, they would only be sent away again and come
        // back behind others.
        let has_room = kind.held.len() < line.held_at_once() || kind.held.is_passed_by(key);
        // Another tab of the same browser holds it already.
        let is_held = kind.held.at(key).is_some();
        // Nor does a newcomer who has just arrived overtake those called before who are on the way
        // from their page, ...
        let is_from_page = matches!(claim, Claim::Holds(..));
        let overtakes = !is_from_page && line.expected_before(position) > kind.held.before(key) as u64;
        let is_turn = standing.is_called() && may_be_held && has_room;
        // ... unless that takes nothing from them: else each newcomer would be on the way for the
        // next one, and the line would never end.
        let is_turn = is_turn && (!overtakes || self.delays_nobody(now, kind_id, id, position));
        // Where those called do not come, and the law has enough for them all the same, a newcomer
        // who is here takes what nobody else would: most of those in line may have gone.
        let is_spare = !is_from_page && !is_turn && may_be_held;
        let is_turn = is_turn || is_spare && self.is_left_over(now, kind_id, id, position);
        let kind = &mut self.kinds[kind_id.index()];
        let line = kind.line.as_mut().expect("the caller has seen that there is one");
        if (is_blind || is_turn) && !is_held {
            line.check_in(now, position);
            if !is_turn {
                kind.holds_blindly = true;
                self.pressure.note(now);
            }
            self.hold(id, kind_id, key);
            return self.admit_from_lines(now);
        }
        kind.has_waiters = true;
        if claim == Claim::None {
            line.left(position);
            return self.refuse(now, id, Reason::WaitTooLong, Some(kind_id));
        }
        self.wait_in_line(now, id, kind_id, Some(position), standing);
    }

    /// Returns whether nobody waits for longer if the holder of `position`, which is called, begins
    /// before those who are on the way from their page: nobody is held, or waits to be called, and
    /// the law has enough for all.
    fn delays_nobody(&mut self, now: Instant, kind_id: KindId, id: RequestId, position: Position) -> bool {
        let kind = &self.kinds[kind_id.index()];
        let Some(line) = &kind.line else { return false };
        if !kind.held.is_empty() || line.has_waiters() || kind.waiting_elsewhere() > 0 {
            return false;
        }
        let others = line.expected_beside(position);
        if self.may_admit(now, kind_id, id) != AdmissionDecision::Now {
            return false;
        }
        let kind = &self.kinds[kind_id.index()];
        kind.law.has_enough_for(&self.inputs_of(kind_id), others)
    }

    /// Returns whether nobody is held, and what the newcomer `id` takes would be lost if it did not
    /// begin. Shortly after an outage few are called on purpose, and nothing is left over.
    fn is_left_over(&mut self, now: Instant, kind_id: KindId, id: RequestId, position: Position) -> bool {
        let kind = &self.kinds[kind_id.index()];
        if !kind.admits() || !kind.held.is_empty() || kind.is_returning() {
            return false;
        }
        // What nobody uses here goes to those who wait elsewhere, as portions follow demand; unless
        // many of those have gone, too, and would be waited for in vain at each gateway.
        let line = kind.line.as_ref();
        if kind.waiting_elsewhere() > 0 && !line.is_some_and(|line| line.many_have_gone(position.lane)) {
            return false;
        }
        if self.may_admit(now, kind_id, id) != AdmissionDecision::Now {
            return false;
        }
        let inputs = AdmissionInputs { entry: self.entry_of(id), ..self.inputs_of(kind_id) };
        let kind = &self.kinds[kind_id.index()];
        // Whoever is called later cannot come before the next look of its page.
        let others = kind.line.as_ref().map_or(0, |line| line.expected_beside(position));
        kind.law.has_left_over(now, &inputs, others)
    }

    fn hold(&mut self, id: RequestId, kind: KindId, key: Key) {
        let request = self.requests.get_mut(id).expect("the request was inserted by the caller");
        request.stage = Stage::AtSessionGate(key);
        let arrived = request.arrived;
        self.kinds[kind.index()].held.insert(Newcomer { key, request: id, arrived });
        self.waiting += 1;
        self.pressure.note_held(arrived);
    }

    /// Answers a newcomer with its place.
    fn wait_in_line(
        &mut self,
        now: Instant,
        id: RequestId,
        kind: KindId,
        position: Option<Position>,
        standing: PositionStatus,
    ) {
        self.answer_in_line(now, id, InLine { request: id, kind, position, standing, begun: None });
    }

    fn answer_in_line(&mut self, now: Instant, id: RequestId, answer: InLine) {
        let Some(entry) = self.requests.remove(id) else { return };
        self.learn_patience(&entry, now, false);
        self.pressure.note(now);
        let route = &mut self.routes[entry.route.index()];
        route.counts.refused += 1;
        route.placed += 1;
        self.outputs.push_back(Output::Wait(answer));
    }

    /// Begins a session for a newcomer and sends it on to its route.
    fn admit(&mut self, now: Instant, id: RequestId, kind: KindId) {
        let request = *self.requests.get(id).expect("a newcomer is in the table until it is let in");
        let session = request.begins().unwrap_or_else(|| SessionId(self.rng.bits()));
        // It may have begun meanwhile, by a lease of another tab.
        if self.sessions.get(session).is_none() {
            self.sessions.begin_from(now, session, kind, request.enters_only(), &mut self.visits);
        }
        let entry = self.entry_of(id);
        let (position, enters_only) = (request.position(), request.enters_only());
        let request = self.requests.get_mut(id).expect("a newcomer is in the table until it is let in");
        let had_position = position.is_some();
        request.origin = Origin::Member { kind, session, leased: false, ends: false, had_position };
        let state = &mut self.kinds[kind.index()];
        if let (Some(line), Some(position)) = (&mut state.line, position) {
            line.claimed(position);
        }
        state.admitted += 1;
        state.begun.note();
        state.law.admitted(now, entry);
        if let Some(position) = position.filter(|_| enters_only) {
            return self.has_begun(now, id, kind, position, session);
        }
        self.enter_application(now, id);
    }

    /// Admits newcomers from the lines as far as the laws allow, the one that has waited longest
    /// over all kinds first.
    pub(super) fn admit_from_lines(&mut self, now: Instant) {
        let mut blocked = vec![];
        // The next one may have gone, or lets others go first.
        self.kinds.iter_mut().for_each(|kind| kind.next = None);
        loop {
            let heads = self.kinds.iter().filter(|kind| kind.admits() && !blocked.contains(&kind.id));
            // The first of a lane is admitted only once those ahead of it in line, who are not back
            // yet after a restart, had time to come back.
            let heads =
                heads.filter_map(|kind| Some((kind.held.head(|key| !kind.gathers(now, key))?, kind.id)));
            let Some((Newcomer { key, request, .. }, kind)) = heads.min_by_key(|(head, _)| head.arrived)
            else {
                return;
            };
            match self.may_admit(now, kind, request) {
                AdmissionDecision::Now => {
                    self.kinds[kind.index()].held.begins(key);
                    self.waiting -= 1;
                    self.admit(now, request, kind);
                }
                AdmissionDecision::NotBefore(next) => {
                    self.kinds[kind.index()].next = Some(next);
                    blocked.push(kind);
                }
                AdmissionDecision::Held(_) | AdmissionDecision::Refuse => blocked.push(kind),
            }
        }
    }

    /// Returns where the session begins that `request` asks for.
    fn entry_of(&self, request: RequestId) -> Entry {
        let request = self.requests.get(request).filter(|request| !request.enters_only());
        request.map_or(Entry::START, |request| Entry::at(request.route))
    }

    fn may_admit(&mut self, now: Instant, kind: KindId, request: RequestId) -> AdmissionDecision {
        let entry = self.entry_of(request);
        let state = &mut self.kinds[kind.index()];
        // Those who were held until another mode was adopted.
        if !state.holds() {
            return AdmissionDecision::Now;
        }
        let inputs = AdmissionInputs {
            visits: &self.visits,
            routes: &self.inputs,
            kinds: &self.kind_inputs,
            patience: state.patience(),
            waiting: state.waiting(),
            active: self.sessions.of_kind(kind),
            entry,
            shared: shared_inputs(self.shared.as_deref(), state.shared.as_ref()),
        };
        state.law.may_admit(now, &inputs)
    }

    /// Returns the inputs of the law of `kind`.
    pub(super) fn inputs_of(&self, kind: KindId) -> AdmissionInputs<'_> {
        let state = &self.kinds[kind.index()];
        AdmissionInputs {
            visits: &self.visits,
            routes: &self.inputs,
            kinds: &self.kind_inputs,
            patience: state.patience(),
            waiting: state.waiting(),
            active: self.sessions.of_kind(kind),
            entry: Entry::START,
            shared: shared_inputs(self.shared.as_deref(), state.shared.as_ref()),
        }
    }

    /// Notices lines; refuses newcomers that have been held for much longer than was predicted: an
    /// honest answer before they give up.
    pub(super) fn expire(&mut self, now: Instant) {
        for index in 0..self.kinds.len() {
            let held = &self.kinds[index].held;
            if held.longest().is_some_and(|longest| now.secs_since(longest.arrived) > PRESSURE_HELD) {
                self.pressure.note(now);
            }
            let oldest = now - seconds(self.kinds[index].overdue(now));
            while let Some(Newcomer { key, request, arrived }) = self.kinds[index].held.longest()
                && arrived < oldest
            {
                self.kinds[index].held.remove(key);
                self.waiting -= 1;
                self.answer_held(now, request, KindId(index as u32), Reason::WaitedTooLong);
            }
        }
    }

    /// Answers those whose turn is far off, of the newcomers that were held while nothing was
    /// known.
    pub(super) fn look_again_at_held(&mut self, now: Instant) {
        for index in 0..self.kinds.len() {
            let kind = &mut self.kinds[index];
            if !kind.holds_blindly || kind.is_blind(now) {
                continue;
            }
            kind.holds_blindly = false;
            while let Some(Newcomer { key, request, .. }) = self.kinds[index].held.last() {
                let position = self.requests.get(request).and_then(Request::position);
                if !position.is_some_and(|position| self.kinds[index].is_last_held_in_vain(now, position)) {
                    break;
                }
                self.kinds[index].held.remove(key);
                self.waiting -= 1;
                self.answer_held(now, request, KindId(index as u32), Reason::WaitedTooLong);
            }
        }
    }

    /// Answers a newcomer that was held and is held no longer: with its place, where it has one, else
    /// with a refusal for this `reason`.
    pub(super) fn answer_held(&mut self, now: Instant, id: RequestId, kind: KindId, reason: Reason) {
        let request = self.requests.get(id).copied();
        let is_visit = !matches!(
            request.map(|request| request.origin),
            Some(Origin::Newcomer { position: NewcomerPosition::Drawn { is_visit: false, .. }, .. })
        );
        match (&mut self.kinds[kind.index()].line, request.as_ref().and_then(Request::position)) {
            // A newcomer who may not draw a place is not told of one, and nobody will come with it.
            (Some(line), Some(position)) if !is_visit => {
                line.left(position);
                self.refuse(now, id, reason, Some(kind));
            }
            (Some(line), Some(position)) => {
                let standing = line.contact(now, position);
                self.wait_in_line(now, id, kind, Some(position), standing);
            }
            _ => self.refuse(now, id, reason, Some(kind)),
        }
    }
}
