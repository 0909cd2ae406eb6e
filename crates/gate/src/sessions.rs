//! The sessions that were admitted: where each stands, its path so far, and when it was last heard
//! of.

use crate::api::{SessionEnds, SessionStatus};
use std::collections::{BTreeMap, BTreeSet};
use suimon_control::{LastRoute, PATH_MAX, STAGES, STAYER_SHARE, STAYER_VISITS, Visit, Visits};
use suimon_model::{Instant, KindId, RouteId, SessionId, seconds};

/// A session's budget: concurrent requests (at the gates and in the application), burst, and
/// requests per second after the burst. Requests beyond it are more than one visitor sends, and
/// queue behind all others. So a lease shared by many is worth no more than one.
const PENDING_BUDGET: u32 = 8;
/// Most concurrent requests of one session, at the gates and in the application; further ones that
/// would have to wait are refused.
const PENDING_MAX: u32 = 256;
const ASKED_BURST: f64 = 100.0;
const ASKED_PER_SECOND: f64 = 5.0;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// When there are too many sessions, those with a single request are evicted first, as long as they
/// are more than one in this many: a flood of newcomers does not evict returning visitors.
const NEW_SHARE: usize = 4;

/// Most sessions forgotten for a new one: one where as many are remembered as may be, and one more
/// as long as there are too many, as the maximum was lowered.
const FORGOTTEN_MAX: usize = 2;

/// A session in the idle list, by the second of its last activity: most requests come in the same
/// second as the one before, and change nothing.
type IdleEntry = (Instant, SessionId);

/// One session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    kind: KindId,
    admitted: Instant,
    /// Seconds it has waited at gates since then, and until when that is counted.
    waited: f64,
    waited_until: Instant,
    place: LastRoute,
    /// Whether it began from the waiting page, before its first request.
    from_page: bool,
    /// Whether it counts as a one-page visit, and whether it has ever requested a second page.
    stays_away: bool,
    has_come_back: bool,
    /// Visits since the session began, or since it was last taken to have ended.
    path: Vec<Visit>,
    /// Requests it has made in all; its position, for the order of queues.
    pub(crate) requests: u32,
    pending: u32,
    heard: Instant,
    /// Whether it counts as a session with visits to come.
    active: bool,
    /// How long it has been silent, in stages of [`Visits`].
    stage: usize,
    /// What the application has said of it: that its visitor pays, and its weight.
    pub(crate) checkout: bool,
    weighed: bool,
    /// Whether its visitor carries a lease.
    leased: bool,
    /// Requests it may ask for now, as of when it was last asked.
    budget: f64,
    budget_at: Instant,
    /// Outcome of its last request if that was not a response. For display only.
    trouble: Option<RequestTrouble>,
}

/// Outcomes of a request other than an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestTrouble {
    /// It failed.
    Failed,
    /// Its client disconnected before.
    Abandoned,
}

suimon_model::saved_struct!(
    Session {
        kind,
        admitted,
        waited,
        waited_until,
        place,
        from_page,
        stays_away,
        has_come_back,
        path,
        requests,
        pending,
        heard,
        active,
        stage,
        checkout,
        weighed,
        leased,
        budget,
        budget_at
    } without { trouble },
    |it: &Session| { it.path.len() <= PATH_MAX }
);

impl Session {
    /// Takes one request out of its budget, if there is one.
    fn spends(&mut self, now: Instant) -> bool {
        let gained = ASKED_PER_SECOND * now.secs_since(self.budget_at);
        self.budget_at = now;
        self.budget = (self.budget + gained).min(ASKED_BURST);
        let is_there = self.budget >= 1.0;
        self.budget -= if is_there { 1.0 } else { 0.0 };
        is_there
    }

    /// Returns where it began, as long as it has made one or two requests and not rested in
    /// between; after one request that is where it is.
    fn entry(&self) -> LastRoute {
        match self.path.first() {
            _ if self.from_page => LastRoute::START,
            Some((first, _)) => LastRoute::at(*first),
            None => self.place,
        }
    }

    /// Assumes that it will not come back, if it has made one request and that was not assumed
    /// before.
    fn stays_away(&mut self, visits: &mut Visits) {
        let may = self.path.len() == 1 && !self.has_come_back;
        if may && !std::mem::replace(&mut self.stays_away, true) {
            visits.stays_away(self.kind, self.entry());
        }
    }

    /// Takes note that it asks for more than its first page.
    fn comes_back(&mut self, visits: &mut Visits) {
        if !std::mem::replace(&mut self.has_come_back, true) {
            visits.comes_back(self.kind, self.entry(), self.stays_away);
        }
    }

    /// Returns whether it counts as under way among those that have come back for another page: as
    /// long as little is known of it.
    fn stays(&self) -> bool {
        self.active && (2..STAYER_VISITS).contains(&self.path.len())
    }

    /// Returns whether it is in a list of the quiet.
    fn is_quiet(&self) -> bool {
        self.active && self.pending == 0
    }

    /// Returns its position among the idle: the list, of those with at most one request or with
    /// more, and its entry there.
    fn idle_entry(&self, id: SessionId) -> (usize, IdleEntry) {
        (usize::from(self.requests > 1), (second_of(self.heard), id))
    }

    pub(crate) fn kind(&self) -> KindId {
        self.kind
    }

    /// Returns whether it has the maximum number of requests under way.
    pub(crate) fn is_full(&self) -> bool {
        self.pending >= PENDING_MAX
    }

    pub(crate) fn view(&self) -> SessionStatus {
        SessionStatus { is_leased: self.leased, is_busy: self.pending > 0 }
    }
}

/// All sessions, also indexed by last activity, so that silent ones are found without a search.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: BTreeMap<SessionId, Session>,
    /// By how often they have asked: see [`Session::idle_entry`].
    idle: [BTreeSet<IdleEntry>; 2],
    /// Active sessions without a pending request, by stage of silence and when they were last heard
    /// of.
    quiet: [BTreeSet<(Instant, SessionId)>; STAGES],
    by_kind: Vec<usize>,
    /// Those whose visitors carry a lease.
    leased: usize,
    sessions_max: usize,
    /// When the application was back last: silence before that was not the visitors'.
    back_at: Instant,
    /// By kind: how they ended. For display.
    ends: Vec<SessionEnds>,
}

suimon_model::saved_struct!(Sessions { by_id, idle, quiet, by_kind, leased, sessions_max, back_at } without { ends });

impl Sessions {
    pub(crate) fn new(sessions_max: usize) -> Self {
        Sessions {
            by_id: BTreeMap::new(),
            idle: Default::default(),
            quiet: Default::default(),
            by_kind: vec![],
            leased: 0,
            sessions_max,
            back_at: Instant::ORIGIN,
            ends: vec![],
        }
    }

    /// Returns how the sessions of `kind` have ended.
    pub(crate) fn ends(&self, kind: KindId) -> SessionEnds {
        self.ends.get(kind.index()).copied().unwrap_or_default()
    }

    /// Takes note of the outcome of a request of `id`; `None`: an answer.
    pub(crate) fn came_to(&mut self, id: SessionId, trouble: Option<RequestTrouble>) {
        if let Some(session) = self.by_id.get_mut(&id) {
            session.trouble = trouble;
        }
    }

    /// Takes note that `id`, which this gate has not admitted, is a session all the same: of a gate
    /// before it.
    pub(crate) fn resumes(&mut self, kind: KindId) {
        self.ends_of(kind).reopened += 1;
    }

    fn ends_of(&mut self, kind: KindId) -> &mut SessionEnds {
        if self.ends.len() <= kind.index() {
            self.ends.resize(kind.index() + 1, SessionEnds::default());
        }
        &mut self.ends[kind.index()]
    }

    /// Returns all, with their kinds.
    pub(crate) fn all(&self) -> impl Iterator<Item = (KindId, SessionId)> {
        self.by_id.iter().map(|(id, session)| (session.kind, *id))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns how many have a visitor who carries a lease.
    pub(crate) fn leased(&self) -> usize {
        self.leased
    }

    /// Takes note that the visitor of `id` carries a lease.
    pub(crate) fn carries_lease(&mut self, id: SessionId) {
        if let Some(session) = self.by_id.get_mut(&id)
            && !std::mem::replace(&mut session.leased, true)
        {
            self.leased += 1;
        }
    }

    /// Returns how many of `kind` were admitted and are not known to have ended.
    pub(crate) fn of_kind(&self, kind: KindId) -> usize {
        self.by_kind.get(kind.index()).copied().unwrap_or(0)
    }

    /// Remembers at most `sessions_max` from now on. Those that are too many are forgotten one by
    /// one, as new ones begin.
    pub(crate) fn set_max(&mut self, sessions_max: usize) {
        self.sessions_max = sessions_max;
    }

    /// Returns whether every index leads somewhere and every count, those of `visits` too, is
    /// right.
    pub(crate) fn are_sound(&self, routes: usize, kinds: usize, visits: &Visits) -> bool {
        let mut by_kind = vec![0; self.by_kind.len()];
        let mut here = BTreeMap::new();
        let mut came_back = BTreeMap::new();
        for session in self.by_id.values() {
            let Some(count) = by_kind.get_mut(session.kind.index()) else { return false };
            *count += 1;
            if session.stage >= STAGES
                || visits.here(session.kind, session.place, session.stage).is_none()
                || session.path.iter().any(|(route, _)| route.index() >= routes)
            {
                return false;
            }
            if session.active {
                *here.entry((session.kind, session.place, session.stage)).or_insert(0) += 1;
            }
            if session.stays() {
                *came_back.entry(session.kind).or_insert(0) += 1;
            }
        }
        let counted = |((kind, place, stage), count): (&(KindId, LastRoute, usize), &u32)| {
            visits.here(*kind, *place, *stage) >= Some(*count)
        };
        let leased = self.by_id.values().filter(|session| session.leased).count();
        leased == self.leased
            && by_kind == self.by_kind
            && by_kind.len() <= kinds
            && here.iter().all(counted)
            && came_back.iter().all(|(kind, count)| visits.returned_under_way(*kind) >= *count)
            && self.are_listed()
    }

    /// Returns whether the lists by time match the sessions that exist.
    fn are_listed(&self) -> bool {
        let heard = |(at, id): &(Instant, SessionId)| self.get(*id).filter(|session| session.heard == *at);
        let is_idle = |(list, entry): (usize, &IdleEntry)| {
            self.get(entry.1).is_some_and(|session| session.idle_entry(entry.1) == (list, *entry))
        };
        let idle =
            || self.idle.iter().enumerate().flat_map(|(list, all)| all.iter().map(move |it| (list, it)));
        let is_quiet = |stage, entry| heard(entry).is_some_and(|it| it.active && it.stage == stage);
        idle().count() == self.by_id.len()
            && idle().all(is_idle)
            && self
                .quiet
                .iter()
                .enumerate()
                .all(|(stage, list)| list.iter().all(|entry| is_quiet(stage, entry)))
    }

    /// Returns when `session` began, if it is known.
    pub(crate) fn began(&self, session: SessionId) -> Option<Instant> {
        Some(self.by_id.get(&session)?.admitted)
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.by_id.get(&id)
    }

    /// Admits `id`. If there are too many, the session idle longest is forgotten, of those with one
    /// request if these are many; and another one, if there are more than there may be.
    pub(crate) fn begin(&mut self, now: Instant, id: SessionId, kind: KindId, visits: &mut Visits) {
        self.begin_from(now, id, kind, false, visits);
    }

    /// As [`Sessions::begin`]; `from_page`: the waiting page asks for it, before any request.
    pub(crate) fn begin_from(
        &mut self,
        now: Instant,
        id: SessionId,
        kind: KindId,
        from_page: bool,
        visits: &mut Visits,
    ) {
        for _ in 0..FORGOTTEN_MAX {
            if self.by_id.len() >= self.sessions_max
                && let Some(one) = self.least_missed()
            {
                self.forget(one, visits);
            }
        }
        visits.begin(kind);
        let session = Session {
            kind,
            admitted: now,
            waited: 0.0,
            waited_until: now,
            place: LastRoute::START,
            from_page,
            stays_away: false,
            has_come_back: false,
            path: Vec::new(),
            requests: 0,
            pending: 0,
            heard: now,
            active: true,
            stage: 0,
            checkout: false,
            weighed: false,
            leased: false,
            budget: ASKED_BURST,
            budget_at: now,
            trouble: None,
        };
        self.by_id.insert(id, session);
        if self.by_kind.len() <= kind.index() {
            self.by_kind.resize(kind.index() + 1, 0);
        }
        self.by_kind[kind.index()] += 1;
        self.idle[0].insert((second_of(now), id));
        self.quiet[0].insert((now, id));
    }

    /// Returns the session that is forgotten for a new one.
    fn least_missed(&self) -> Option<SessionId> {
        let [once, back] = &self.idle;
        let oldest = |all: &BTreeSet<IdleEntry>| all.first().copied();
        let one = if once.len() > self.by_id.len() / NEW_SHARE {
            oldest(once)
        } else {
            oldest(once).into_iter().chain(oldest(back)).min()
        };
        one.map(|(_, id)| id)
    }

    /// Takes note that the visitor of `id` pays.
    pub(crate) fn checks_out(&mut self, id: SessionId) {
        if let Some(session) = self.by_id.get_mut(&id) {
            session.checkout = true;
        }
    }

    /// Takes note that the application has said what `id` weighs, and returns whether that was the
    /// first time.
    pub(crate) fn weighs(&mut self, id: SessionId) -> bool {
        self.by_id.get_mut(&id).is_some_and(|session| !std::mem::replace(&mut session.weighed, true))
    }

    /// Records a request of `id` for `route` and returns whether it is within the session's budget;
    /// false for unknown ids.
    pub(crate) fn asks(&mut self, now: Instant, id: SessionId, route: RouteId, visits: &mut Visits) -> bool {
        // It has ended since: nothing of it is counted.
        let Some(session) = self.by_id.get_mut(&id) else { return false };
        let reopened = (!session.active).then_some(session.kind);
        let idle_before = session.idle_entry(id);
        let was_quiet = session.is_quiet() && self.quiet[session.stage].remove(&(session.heard, id));
        if !session.active {
            // It was taken to have ended and comes back: what it does from here on is learned as a
            // path of its own.
            if session.stays_away {
                session.comes_back(visits);
            }
            session.path.clear();
            session.from_page &= session.requests == 0;
            visits.begins_again(session.kind);
            (session.admitted, session.waited, session.waited_until) = (now, 0.0, now);
        }
        let within_budget = session.spends(now) && session.pending < PENDING_BUDGET;
        // No visitor sends requests like that, so nothing is learned from it of what visitors do.
        let is_usual = within_budget && visits.is_usual(session.kind, route, &session.path);
        if session.active {
            visits.leave(session.kind, session.place, session.stage);
            if was_quiet && session.requests > 0 && is_usual && session.heard >= self.back_at {
                visits.silence_over(session.kind, session.place, session.stage, true);
            }
        }
        if session.pending == 0 && session.requests > 0 && is_usual && session.heard >= self.back_at {
            visits.thought(now.secs_since(session.heard), session.path.len() == 1);
        }
        session.active = true;
        session.stage = 0;
        session.place = LastRoute::at(route);
        session.requests = session.requests.saturating_add(1);
        session.pending += 1;
        let is_learned = within_budget && session.path.len() < PATH_MAX;
        if is_learned {
            // Sums of waits are rounded: for a session that has only waited, they may be slightly
            // too long.
            let without_waits = (now.secs_since(session.admitted) - session.waited).max(0.0);
            session.path.push((route, without_waits as f32));
            match session.path.as_slice() {
                [_] if session.requests == 1 => visits.begins_at(session.kind, session.entry()),
                [(first, _), _] => {
                    visits.returned_enters(session.kind, [*first, route]);
                    session.comes_back(visits);
                }
                path if path.len() == STAYER_VISITS => visits.returned_leaves(session.kind, true),
                path if (3..=STAYER_SHARE).contains(&path.len()) => visits.goes_on(session.kind, route),
                _ => {}
            }
        }
        session.heard = now;
        // Requests beyond it wait behind all others, and none has to wait for them.
        if is_learned {
            visits.enter(session.kind, session.place);
        } else {
            visits.enter_uncounted(session.kind, session.place);
        }
        if within_budget {
            visits.request_begins(route);
        }
        relist(&mut self.idle, idle_before, session.idle_entry(id));
        if let Some(kind) = reopened {
            self.ends_of(kind).reopened += 1;
        }
        within_budget
    }

    /// Takes note that a request of `id` has waited at a gate from `since` to `now`. Of requests
    /// that wait together time counts at most once.
    pub(crate) fn waited(&mut self, now: Instant, id: SessionId, since: Instant) {
        let Some(session) = self.by_id.get_mut(&id) else { return };
        session.waited += now.secs_since(since.max(session.waited_until));
        session.waited_until = now;
    }

    /// Takes note that a request of `id` is answered, or given up: one for `counted`, if it was
    /// within what one visitor asks for.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        id: SessionId,
        counted: Option<RouteId>,
        visits: &mut Visits,
    ) {
        if let Some(route) = counted {
            visits.request_ends(route);
        }
        let Some(session) = self.by_id.get_mut(&id) else { return };
        let idle_before = session.idle_entry(id);
        // A request from before a session was forgotten and begun again may be answered while the
        // session is quiet.
        if session.is_quiet() {
            self.quiet[session.stage].remove(&(session.heard, id));
        }
        session.pending = session.pending.saturating_sub(1);
        session.heard = now;
        relist(&mut self.idle, idle_before, session.idle_entry(id));
        if session.is_quiet() {
            self.quiet[session.stage].insert((now, id));
        }
    }

    /// Ends `id` for good: it is learned from and forgotten.
    pub(crate) fn end(&mut self, id: SessionId, visits: &mut Visits) {
        self.rest(id, visits, false);
        self.forget(id, visits);
    }

    /// Takes note that the application is back: its sessions count as heard of now.
    pub(crate) fn application_is_back(&mut self, now: Instant) {
        self.back_at = now;
    }

    /// Moves silent sessions on to their next stage, stops counting those that have been silent for
    /// all of them, and forgets those that have been idle since `idle_since`.
    pub(crate) fn sweep(&mut self, now: Instant, idle_since: Instant, visits: &mut Visits) {
        for stage in (0..STAGES).rev() {
            let since = now - seconds(visits.silence_after(stage));
            while let Some((heard, id)) =
                self.quiet[stage].first().copied().filter(|(heard, _)| *heard.max(&self.back_at) < since)
            {
                self.quiet[stage].remove(&(heard, id));
                if stage + 1 == STAGES {
                    self.rest(id, visits, true);
                    continue;
                }
                self.quiet[stage + 1].insert((heard, id));
                if let Some(session) = self.by_id.get_mut(&id) {
                    visits.fall_silent(session.kind, session.place, stage);
                    session.stage = stage + 1;
                    if visits.is_away_after(stage) {
                        session.stays_away(visits);
                    }
                }
            }
        }
        for list in 0..self.idle.len() {
            let is_over = |(heard, _): &(Instant, SessionId)| *heard < second_of(idle_since);
            while let Some((_, id)) = self.idle[list].first().copied().filter(is_over) {
                self.forget(id, visits);
            }
        }
    }

    /// Takes `id` out of the count and learns from its path; it may still come back. `silent`: its
    /// silence is the reason.
    fn rest(&mut self, id: SessionId, visits: &mut Visits, silent: bool) {
        let Some(session) = self.by_id.get_mut(&id).filter(|session| session.active) else { return };
        if session.stays() {
            visits.returned_leaves(session.kind, true);
        }
        session.stays_away(visits);
        session.active = false;
        let (kind, trouble) = (session.kind, session.trouble);
        visits.leave(session.kind, session.place, session.stage);
        if silent && session.requests > 0 {
            visits.silence_over(session.kind, session.place, session.stage, false);
        }
        // A visitor who could not begin because there was no application says nothing of how much
        // visitors ask for.
        if session.requests > 0 || session.admitted >= self.back_at {
            visits.teach(session.kind, &session.path);
        }
        // Most sessions that rest never come back; their paths need no memory meanwhile.
        session.path = Vec::new();
        self.note_end(kind, trouble, silent);
    }

    fn note_end(&mut self, kind: KindId, trouble: Option<RequestTrouble>, silent: bool) {
        let ends = self.ends_of(kind);
        let counted = match trouble {
            // A visitor who says goodbye was answered.
            _ if !silent => &mut ends.finished,
            None => &mut ends.silent,
            Some(RequestTrouble::Abandoned) => &mut ends.abandoned,
            Some(RequestTrouble::Failed) => &mut ends.failed,
        };
        *counted += 1;
    }

    fn forget(&mut self, id: SessionId, visits: &mut Visits) {
        let Some(mut session) = self.by_id.remove(&id) else { return };
        self.by_kind[session.kind.index()] -= 1;
        self.leased -= usize::from(session.leased);
        let (list, entry) = session.idle_entry(id);
        self.idle[list].remove(&entry);
        self.quiet[session.stage].remove(&(session.heard, id));
        if session.stays() {
            visits.returned_leaves(session.kind, false);
        }
        if session.active {
            session.stays_away(visits);
            visits.leave(session.kind, session.place, session.stage);
            self.note_end(session.kind, session.trouble, true);
        }
    }
}

/// Moves a session's entry among the idle, if that has changed.
fn relist(idle: &mut [BTreeSet<IdleEntry>; 2], before: (usize, IdleEntry), after: (usize, IdleEntry)) {
    if before != after {
        idle[before.0].remove(&before.1);
        idle[after.0].insert(after.1);
    }
}

/// Returns the whole second in which a moment lies.
fn second_of(at: Instant) -> Instant {
    Instant::from_nanos(at.as_nanos() / NANOS_PER_SECOND * NANOS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_at_gates_are_left_out_of_where_a_visit_stands_in_its_session() {
        let (shop, search, id) = (KindId(0), RouteId(0), SessionId(7));
        let mut visits = Visits::default();
        visits.add_route();
        visits.add_kind();
        let mut sessions = Sessions::new(10);
        let at = |secs: f64| Instant::ORIGIN + seconds(secs);
        sessions.begin(at(0.0), id, shop, &mut visits);
        // Two requests waited together, the one from 1 to 4 and the other from 2 to 5: four seconds
        // in all.
        sessions.waited(at(4.0), id, at(1.0));
        sessions.waited(at(5.0), id, at(2.0));
        sessions.asks(at(9.0), id, search, &mut visits);
        sessions.end(id, &mut visits);
        assert!((visits.delay(search) - 5.0).abs() < 1e-6, "{} s: 9 less 4", visits.delay(search));
    }

    #[test]
    fn a_flood_of_newcomers_makes_nobody_forgotten_who_came_back() {
        let (shop, search, max) = (KindId(0), RouteId(0), 100);
        let mut visits = Visits::default();
        visits.add_route();
        visits.add_kind();
        let mut sessions = Sessions::new(max);
        let at = |secs: u64| Instant::ORIGIN + std::time::Duration::from_secs(secs);
        let mut visit = |sessions: &mut Sessions, secs, id, times| {
            sessions.begin(at(secs), SessionId(id), shop, &mut visits);
            for _ in 0..times {
                sessions.asks(at(secs), SessionId(id), search, &mut visits);
                sessions.answered(at(secs), SessionId(id), Some(search), &mut visits);
            }
        };
        (0..10).for_each(|id| visit(&mut sessions, 0, id, 2));
        (10..10 + 3 * max as u64).for_each(|id| visit(&mut sessions, id, id, 1));
        assert_eq!(sessions.len(), max);
        assert!((0..10).all(|id| sessions.get(SessionId(id)).is_some()));
        // Where nearly all have come back, newcomers do not go for one another.
        (1000..1000 + 2 * max as u64).for_each(|id| visit(&mut sessions, id, id, 2));
        (2000..2010).for_each(|id| visit(&mut sessions, id, id, 1));
        assert!((2000..2010).all(|id| sessions.get(SessionId(id)).is_some()));
        assert!(sessions.are_sound(1, 1, &visits));
    }

    const SHOP: KindId = KindId(0);

    fn visits_of(routes: u32) -> Visits {
        let mut visits = Visits::default();
        (0..routes).for_each(|_| visits.add_route());
        visits.add_kind();
        visits
    }

    fn at(second: u64) -> Instant {
        Instant::ORIGIN + std::time::Duration::from_secs(second)
    }

    #[test]
    fn a_session_that_never_ends_counts_as_new_for_so_many_visits_only() {
        let (mut sessions, mut visits) = (Sessions::new(10), visits_of(2));
        sessions.begin(at(0), SessionId(1), SHOP, &mut visits);
        for second in 0..200 {
            let now = at(second);
            sessions.asks(now, SessionId(1), RouteId(0), &mut visits);
            sessions.answered(now, SessionId(1), Some(RouteId(0)), &mut visits);
            let is_new = (1..STAYER_VISITS as u64 - 1).contains(&second);
            assert_eq!(visits.returned_under_way(SHOP), u64::from(is_new), "{second}");
        }
        assert!((visits.made_by_returned(SHOP, RouteId(0)) - STAYER_SHARE as f64).abs() < 1e-9);
        assert!((visits.made(SHOP, RouteId(0)) - PATH_MAX as f64).abs() < 1e-9);
        sessions.end(SessionId(1), &mut visits);
        assert_eq!((visits.returned(SHOP), visits.returned_under_way(SHOP)), (1, 0));
    }

    #[test]
    fn whoever_rests_and_asks_again_has_come_back_to_where_it_began_and_enters_nowhere_else() {
        let (mut sessions, mut visits) = (Sessions::new(10), visits_of(2));
        sessions.begin(at(0), SessionId(1), SHOP, &mut visits);
        let asks = |sessions: &mut Sessions, visits: &mut Visits, second, route| {
            sessions.asks(at(second), SessionId(1), RouteId(route), visits);
            sessions.answered(at(second), SessionId(1), Some(RouteId(route)), visits);
            // Each moves it on by one stage.
            (0..STAGES).for_each(|_| sessions.sweep(at(second + 100), Instant::ORIGIN, visits));
        };
        asks(&mut sessions, &mut visits, 1, 0);
        assert_eq!(
            visits.comes_back_share(SHOP, LastRoute::at(RouteId(0))),
            Some(0.5),
            "one, who stays away, and one more"
        );
        asks(&mut sessions, &mut visits, 200, 1);
        asks(&mut sessions, &mut visits, 400, 1);
        assert_eq!(visits.comes_back_share(SHOP, LastRoute::at(RouteId(0))), Some(1.0));
        assert_eq!(visits.comes_back_share(SHOP, LastRoute::at(RouteId(1))), None);
        assert_eq!(visits.returned(SHOP), 1);
    }

    #[test]
    fn of_a_session_that_has_ended_nothing_is_counted() {
        let mut visits = Visits::default();
        visits.add_route();
        visits.add_kind();
        let mut sessions = Sessions::new(10);
        assert!(!sessions.asks(Instant::ORIGIN, SessionId(7), RouteId(0), &mut visits));
    }

    #[test]
    fn a_session_that_has_only_waited_is_not_ahead_of_its_admission() {
        let (shop, search, id) = (KindId(0), RouteId(0), SessionId(7));
        let mut visits = Visits::default();
        visits.add_route();
        visits.add_kind();
        let mut sessions = Sessions::new(10);
        let at = |millis: u64| Instant::ORIGIN + std::time::Duration::from_millis(millis);
        sessions.begin(at(0), id, shop, &mut visits);
        // Two tenths and seven, summed, are more than nine.
        sessions.waited(at(200), id, at(0));
        sessions.waited(at(900), id, at(200));
        sessions.asks(at(900), id, search, &mut visits);
        sessions.end(id, &mut visits);
        assert!(visits.delay(search) >= 0.0, "{:e} s", visits.delay(search));
    }
}
