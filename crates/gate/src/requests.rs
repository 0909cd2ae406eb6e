//! The requests inside the gate: a table whose ids go stale.

use crate::held::Key;
use suimon_control::PauseShare;
use suimon_line::Position;
use suimon_model::{Duration, Instant, KindId, RequestId, RouteId, SessionId};

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Held until it may begin, at this key.
    AtSessionGate(Key),
    /// In its route's queue, at this key.
    AtRouteGate((u32, u64)),
    /// Held by the pause of its service until then, before its route's queue.
    Paused(Instant),
    /// In the application since then.
    InApplication(Instant),
    /// In the application since then, its client disconnected.
    Orphaned(Instant),
    /// Suspended: in the application, which waits for its client; it holds no slot.
    Suspended,
    /// The same, and its client is waited for no longer: it must get a slot again, and stands first
    /// in its route's queue, at this key.
    Returning((u32, u64)),
    /// Belongs to a session that has begun, and waits until then for an application that does not
    /// answer.
    AwaitsApplication(Instant),
}

impl Stage {
    /// Returns whether it waits for a slot, whether or not it has had one before.
    pub(crate) fn waits(self) -> bool {
        match self {
            Stage::AtSessionGate(_)
            | Stage::AtRouteGate(_)
            | Stage::Paused(_)
            | Stage::Returning(_)
            | Stage::AwaitsApplication(_) => true,
            Stage::InApplication(_) | Stage::Orphaned(_) | Stage::Suspended => false,
        }
    }

    /// Returns whether it has had a slot.
    pub(crate) fn has_started(self) -> bool {
        self.has_slot() || matches!(self, Stage::Suspended | Stage::Returning(_))
    }

    /// Returns whether it holds a slot.
    pub(crate) fn has_slot(self) -> bool {
        matches!(self, Stage::InApplication(_) | Stage::Orphaned(_))
    }
}

suimon_model::saved_enum!(Stage { 0 = AtSessionGate(key), 1 = AtRouteGate(key), 2 = InApplication(since), 3 = Orphaned(since), 4 = Suspended, 5 = Returning(key), 6 = AwaitsApplication(until), 7 = Paused(until) });

/// Whose request it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// It belongs to no session, and passes the gate of its route alone.
    Sessionless,
    /// It belongs to a session that has begun.
    Member {
        kind: KindId,
        session: SessionId,
        /// Whether it came with proof of that.
        leased: bool,
        /// Whether it ends the session, once completed.
        ends: bool,
        /// Whether it came with, or was given, the position that began the session.
        had_position: bool,
    },
    /// It would begin a session of this kind.
    Newcomer { kind: KindId, position: NewcomerPosition },
}

/// What a newcomer has of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewcomerPosition {
    /// It came with none. `drawn`: the one that was drawn for it, which it does not know yet.
    /// `is_visit`: whether it visits a page, and may be shown it.
    Drawn { drawn: Option<Position>, is_visit: bool },
    /// The one it came with, and the session that this position begins. `enters_only`: it asks for
    /// nothing but that.
    Own { position: Position, session: SessionId, enters_only: bool },
}

suimon_model::saved_enum!(Origin {
    0 = Sessionless,
    1 = Member { kind, session, leased, ends, had_position },
    2 = Newcomer { kind, position }
});
suimon_model::saved_enum!(NewcomerPosition {
    0 = Drawn { drawn, is_visit },
    1 = Own { position, session, enters_only }
});

impl Origin {
    /// A visitor who came with no position, and may draw one.
    pub(crate) fn newcomer(kind: KindId) -> Origin {
        Origin::Newcomer { kind, position: NewcomerPosition::Drawn { drawn: None, is_visit: true } }
    }
}

/// One request inside the gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) route: RouteId,
    pub(crate) origin: Origin,
    /// Whether it goes beyond what one visitor asks for.
    pub(crate) beyond: bool,
    /// Whether it has waited too long to be answered in time, and goes behind those that have not.
    pub(crate) late: bool,
    pub(crate) arrived: Instant,
    pub(crate) stage: Stage,
    /// How long the application has worked on it so far, if it is suspended.
    pub(crate) spent: Duration,
    /// The part of its time in the application for which it is expected to pause there, and the time
    /// for which it has paused.
    pub(crate) pause_share: PauseShare,
    /// See `pause_share`.
    pub(crate) paused: Duration,
    /// What was in the application until it began, integrated over time, seconds.
    pub(crate) occupancy_mark: f64,
    /// How long it was held before it came to its route. For display only.
    pub(crate) held: Duration,
}

suimon_model::saved_struct!(
    Request { route, origin, beyond, late, arrived, stage, spent, pause_share, paused, occupancy_mark } without { held }
);

impl Request {
    /// Returns a request that has just come.
    pub(crate) fn new(now: Instant, route: RouteId, origin: Origin) -> Self {
        Request {
            route,
            origin,
            beyond: false,
            late: false,
            arrived: now,
            stage: Stage::InApplication(now),
            spent: Duration::ZERO,
            pause_share: PauseShare::NONE,
            paused: Duration::ZERO,
            occupancy_mark: 0.0,
            held: Duration::ZERO,
        }
    }

    /// Returns the session it belongs to, if that has begun.
    pub(crate) fn session(&self) -> Option<(KindId, SessionId)> {
        if let Origin::Member { kind, session, .. } = self.origin { Some((kind, session)) } else { None }
    }

    /// Returns the kind of session it would begin, if it is a newcomer's.
    pub(crate) fn newcomer(&self) -> Option<KindId> {
        if let Origin::Newcomer { kind, .. } = self.origin { Some(kind) } else { None }
    }

    /// Returns a newcomer's position in line, its own or the one that was drawn for it.
    pub(crate) fn position(&self) -> Option<Position> {
        match self.origin {
            Origin::Newcomer { position: NewcomerPosition::Drawn { drawn, .. }, .. } => drawn,
            Origin::Newcomer { position: NewcomerPosition::Own { position, .. }, .. } => Some(position),
            Origin::Sessionless | Origin::Member { .. } => None,
        }
    }

    /// Returns the session that a newcomer's own position begins.
    pub(crate) fn begins(&self) -> Option<SessionId> {
        match self.origin {
            Origin::Newcomer { position: NewcomerPosition::Own { session, .. }, .. } => Some(session),
            _ => None,
        }
    }

    /// Returns whether it asks for nothing but that its session begins.
    pub(crate) fn enters_only(&self) -> bool {
        matches!(
            self.origin,
            Origin::Newcomer { position: NewcomerPosition::Own { enters_only: true, .. }, .. }
        )
    }

    /// Returns the kind of its session, or of the one it would begin.
    pub(crate) fn kind(&self) -> Option<KindId> {
        match self.origin {
            Origin::Sessionless => None,
            Origin::Member { kind, .. } | Origin::Newcomer { kind, .. } => Some(kind),
        }
    }

    /// Returns whose it is: its session, or the one its position begins. `None`: a newcomer that
    /// could not be recognised again.
    pub(crate) fn visitor(&self) -> Option<SessionId> {
        self.session().map(|(_, session)| session).or(self.begins())
    }

    /// Returns the route at which it counts among its session's requests.
    pub(crate) fn counted(&self) -> Option<RouteId> {
        (!self.beyond).then_some(self.route)
    }
}

/// A slab with generations: an id that was freed is never mistaken for its successor.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

suimon_model::saved_struct!(Requests { entries, free }, |it: &Requests| {
    // Every free place is listed once, and no other.
    let mut listed = it.free.clone();
    listed.sort_unstable();
    let free = (0u32..).zip(&it.entries).filter(|(_, entry)| entry.request.is_none());
    free.map(|(index, _)| index).eq(listed)
});

#[derive(Debug)]
struct Entry {
    generation: u32,
    request: Option<Request>,
}

suimon_model::saved_struct!(Entry { generation, request });

impl Requests {
    pub(crate) fn insert(&mut self, request: Request) -> RequestId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, request: None });
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[index as usize];
        entry.request = Some(request);
        id(index, entry.generation)
    }

    pub(crate) fn get(&self, request: RequestId) -> Option<&Request> {
        let entry = self.entries.get(index_of(request))?;
        entry.request.as_ref().filter(|_| entry.generation == generation_of(request))
    }

    pub(crate) fn get_mut(&mut self, request: RequestId) -> Option<&mut Request> {
        let entry = self.entries.get_mut(index_of(request))?;
        let generation = entry.generation;
        entry.request.as_mut().filter(|_| generation == generation_of(request))
    }

    /// Returns all requests, by their place in the table.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        let entries = (0u32..).zip(&self.entries);
        entries.filter_map(|(index, entry)| Some((id(index, entry.generation), entry.request.as_ref()?)))
    }

    pub(crate) fn remove(&mut self, request: RequestId) -> Option<Request> {
        self.get(request)?;
        let entry = &mut self.entries[index_of(request)];
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(index_of(request) as u32);
        entry.request.take()
    }
}

fn id(index: u32, generation: u32) -> RequestId {
    RequestId(u64::from(generation) << 32 | u64::from(index))
}

fn index_of(request: RequestId) -> usize {
    (request.0 & 0xFFFF_FFFF) as usize
}

fn generation_of(request: RequestId) -> u32 {
    (request.0 >> 32) as u32
}
