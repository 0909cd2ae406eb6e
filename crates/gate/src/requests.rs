//! The requests inside the gate: a table whose ids go stale.

use crate::held::Key;
use suimon_line::Position;
use suimon_model::{Duration, Instant, KindId, RequestId, RouteId, SessionId};

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Held until it may begin, at this key.
    AtSessionGate(Key),
    /// In its route's queue, at this key.
    AtRouteGate((u32, u64)),
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

suimon_model::saved_enum!(Stage { 0 = AtSessionGate(key), 1 = AtRouteGate(key), 2 = InApplication(since), 3 = Orphaned(since), 4 = Suspended, 5 = Returning(key), 6 = AwaitsApplication(until) });

/// One request inside the gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) route: RouteId,
    pub(crate) session: Option<(KindId, SessionId)>,
    /// For a newcomer: the kind it would begin.
    pub(crate) newcomer: Option<KindId>,
    /// Its place in line, and the session that this place begins, if it came with one.
    pub(crate) position: Option<Position>,
    pub(crate) begins: Option<SessionId>,
    /// Whether it is no visit of a page, and must not be shown a place.
    pub(crate) without_line: bool,
    /// Whether it asks only for its session to begin.
    pub(crate) enters: bool,
    pub(crate) leased: bool,
    pub(crate) ends_session: bool,
    /// Whether it goes beyond what one visitor asks for.
    pub(crate) beyond: bool,
    /// Whether it has waited too long to be answered in time, and goes behind those that have not.
    pub(crate) late: bool,
    pub(crate) arrived: Instant,
    pub(crate) stage: Stage,
    /// How long the application has worked on it so far, if it is suspended.
    pub(crate) spent: Duration,
    /// Whether it began in an application that had a core for it.
    pub(crate) alone: bool,
}

suimon_model::saved_struct!(Request {
    route,
    session,
    newcomer,
    position,
    begins,
    without_line,
    enters,
    leased,
    ends_session,
    beyond,
    late,
    arrived,
    stage,
    spent,
    alone
});

impl Request {
    /// Returns the kind of its session, or of the one it would begin.
    pub(crate) fn kind(&self) -> Option<KindId> {
        self.session.map(|(kind, _)| kind).or(self.newcomer)
    }

    /// Returns whose it is: its session, or the one its place begins. `None`: a newcomer that could
    /// not be recognised again.
    pub(crate) fn visitor(&self) -> Option<SessionId> {
        self.session.map(|(_, session)| session).or(self.begins)
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
