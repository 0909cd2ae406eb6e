//! Which node a session of the application is at, as learned from the cookies that nodes set.
//!
//! It is a bounded memory: the sessions used longest ago are forgotten first. Neither the value of
//! a cookie nor who has it is kept, only a keyed hash that the caller makes of it.
//!
//! Some applications write the name of the node behind the last dot of the value (Tomcat's
//! `jvmRoute`). Such a *suffix* is learned, too: one that a node has set in several values, and no
//! other node in any, leads to that node with values that were never seen, such as those that
//! another gateway has passed on.

use std::collections::BTreeMap;
use suimon_model::{Duration, Instant, NodeId};

/// The most sessions whose node is known; of more, those used longest ago are forgotten.
pub const AFFINITY_MAX: usize = 100_000;
/// Suffixes that are looked at. Beyond it all begin anew that have not been found to name a node.
const SUFFIXES_MAX: usize = 1024;
/// A suffix names a node once the node has set it in so many values.
const SUFFIX_SEEN: u32 = 3;
/// How long a value still leads to its node after it was withdrawn or replaced: for requests that
/// were under way with it.
const ENDING_FOR: Duration = Duration::from_secs(30);
/// The least time between two words of sessions that a node has lost.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// How sessions are kept at their nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AffinityParams {
    /// A session that is silent for this long is forgotten.
    pub idle: Duration,
}

/// What a cookie's value says of its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionKey {
    /// A keyed hash of the value.
    pub value: u64,
    /// The same of what stands behind its last dot; `None`: it has none.
    pub suffix: Option<u64>,
}

/// What an answer says of the session of its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionSaid {
    /// Nothing.
    Nothing,
    /// It sets the cookie, for a new session or an old one.
    Set(SessionKey),
    /// It withdraws the cookie.
    Withdrawn,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Affinity {
    idle: Duration,
    sessions: BTreeMap<u64, Session>,
    /// Those that go on, by their last use.
    active: BTreeMap<u64, u64>,
    /// Those that were withdrawn or replaced, by when.
    ending: BTreeMap<u64, u64>,
    last_use: u64,
    suffixes: BTreeMap<u64, Suffix>,
    places: Vec<Place>,
}

#[derive(Clone, Debug)]
struct Session {
    at: Home,
    used: Instant,
    /// Its key among the active ones or the ending ones.
    turn: u64,
    is_ending: bool,
}

/// A node, and which of those that had its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Home {
    node: NodeId,
    epoch: u32,
}

#[derive(Clone, Debug)]
struct Suffix {
    at: Home,
    seen: u32,
    /// Whether several nodes set it, so that it names none of them.
    is_shared: bool,
}

#[derive(Clone, Default, Debug)]
struct Place {
    epoch: u32,
    sessions: u32,
    released: u64,
    untold: u32,
    told: Option<Instant>,
}

impl Affinity {
    pub(crate) fn new(params: AffinityParams) -> Self {
        Affinity {
            idle: params.idle,
            sessions: BTreeMap::new(),
            active: BTreeMap::new(),
            ending: BTreeMap::new(),
            last_use: 0,
            suffixes: BTreeMap::new(),
            places: Vec::new(),
        }
    }

    /// Notes that another node has this id from now on.
    pub(crate) fn add_node(&mut self, node: NodeId) {
        let epoch = self.place(node).epoch;
        *self.place(node) = Place { epoch: epoch.wrapping_add(1), ..Place::default() };
    }

    /// Returns the node that a request with this cookie is for, as far as that is known.
    pub(crate) fn home(&mut self, now: Instant, key: SessionKey) -> Option<NodeId> {
        self.expire(now);
        let Some(session) = self.sessions.get(&key.value) else { return self.named(key.suffix) };
        let (at, is_ending) = (session.at, session.is_ending);
        if !is_ending {
            self.keep(now, key.value, at);
        }
        self.is_current(at).then_some(at.node)
    }

    /// Folds in an answer of `node`. `asked`: the cookie that its request came with.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        node: NodeId,
        asked: Option<SessionKey>,
        said: SessionSaid,
    ) {
        self.expire(now);
        let here = Home { node, epoch: self.place(node).epoch };
        let before = asked.and_then(|asked| Some((asked, self.sessions.get(&asked.value)?.clone())));
        if let Some((_, session)) = &before
            && session.at != here
            && self.is_current(session.at)
        {
            // It was sent elsewhere than it belongs: its node could not be had.
            self.note_released(session.at.node, 1);
        }
        match said {
            SessionSaid::Set(key) => {
                if let Some((asked, session)) = before.filter(|(asked, _)| asked.value != key.value) {
                    self.end(now, asked.value, session.at);
                }
                let is_new = !self.sessions.contains_key(&key.value);
                self.keep(now, key.value, here);
                if let Some(suffix) = key.suffix.filter(|_| is_new) {
                    self.learn_suffix(suffix, here);
                }
            }
            SessionSaid::Withdrawn => {
                if let Some((asked, _)) = before {
                    self.end(now, asked.value, here);
                }
            }
            SessionSaid::Nothing => match (before, asked) {
                (Some((_, session)), _) if session.is_ending => {}
                (Some((asked, _)), _) => self.keep(now, asked.value, here),
                // Known by its suffix: it counts among the sessions that its node has.
                (None, Some(asked)) if self.named(asked.suffix) == Some(node) => {
                    self.keep(now, asked.value, here);
                }
                _ => {}
            },
        }
    }

    /// Forgets what belongs to a node that goes.
    pub(crate) fn release(&mut self, node: NodeId) {
        let place = self.place(node);
        let sessions = std::mem::take(&mut place.sessions);
        place.epoch = place.epoch.wrapping_add(1);
        self.note_released(node, sessions);
        // It is heard of no more.
        self.place(node).told = None;
    }

    /// Forgets sessions that were silent for too long, or have ended.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some((_, &key)) = self.active.first_key_value()
            && self.sessions.get(&key).is_none_or(|session| now.since(session.used) >= self.idle)
        {
            self.forget(key);
        }
        while let Some((_, &key)) = self.ending.first_key_value()
            && self.sessions.get(&key).is_none_or(|session| now.since(session.used) >= ENDING_FOR)
        {
            self.forget(key);
        }
    }

    /// Returns nodes that have lost sessions, with how many these are, each at most once in a while.
    pub(crate) fn poll_released(&mut self, now: Instant) -> Option<(NodeId, u32)> {
        let is_due = |place: &Place| place.due().is_some_and(|due| due <= now);
        let index = self.places.iter().position(is_due)?;
        let place = &mut self.places[index];
        place.told = Some(now);
        Some((NodeId(u32::try_from(index).ok()?), std::mem::take(&mut place.untold)))
    }

    /// Returns when [`Affinity::poll_released`] has something to say.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.places.iter().filter_map(Place::due).min()
    }

    /// Returns how many sessions are at `node`, and how many it has lost.
    pub(crate) fn count(&self, node: NodeId) -> (u32, u64) {
        self.places.get(node.index()).map_or((0, 0), |place| (place.sessions, place.released))
    }

    fn place(&mut self, node: NodeId) -> &mut Place {
        if self.places.len() <= node.index() {
            self.places.resize(node.index() + 1, Place::default());
        }
        &mut self.places[node.index()]
    }

    fn is_current(&self, home: Home) -> bool {
        self.places.get(home.node.index()).is_some_and(|place| place.epoch == home.epoch)
    }

    /// Returns the node that a suffix names.
    fn named(&self, suffix: Option<u64>) -> Option<NodeId> {
        let suffix = self.suffixes.get(&suffix?)?;
        let is_name = suffix.seen >= SUFFIX_SEEN && !suffix.is_shared && self.is_current(suffix.at);
        is_name.then_some(suffix.at.node)
    }

    fn learn_suffix(&mut self, key: u64, here: Home) {
        let is_current =
            self.suffixes.get(&key).is_some_and(|suffix| suffix.is_shared || self.is_current(suffix.at));
        if let Some(suffix) = self.suffixes.get_mut(&key).filter(|_| is_current) {
            suffix.seen = suffix.seen.saturating_add(1);
            suffix.is_shared |= suffix.at != here;
            return;
        }
        if self.suffixes.len() >= SUFFIXES_MAX {
            self.suffixes.retain(|_, suffix| suffix.seen >= SUFFIX_SEEN && !suffix.is_shared);
        }
        if self.suffixes.len() < SUFFIXES_MAX {
            self.suffixes.insert(key, Suffix { at: here, seen: 1, is_shared: false });
        }
    }

    /// Notes that a session is at `at`, and used.
    fn keep(&mut self, now: Instant, key: u64, at: Home) {
        self.put(now, key, at, false);
    }

    /// Notes that a value is used no more, but for what is under way.
    fn end(&mut self, now: Instant, key: u64, at: Home) {
        if self.sessions.get(&key).is_some_and(|session| !session.is_ending) {
            self.put(now, key, at, true);
        }
    }

    fn put(&mut self, now: Instant, key: u64, at: Home, is_ending: bool) {
        self.forget(key);
        if self.sessions.len() >= AFFINITY_MAX {
            let oldest = self.ending.first_key_value().or_else(|| self.active.first_key_value());
            if let Some(oldest) = oldest.map(|(_, key)| *key) {
                self.forget(oldest);
            }
        }
        self.last_use += 1;
        let turn = self.last_use;
        if self.is_current(at) {
            self.place(at.node).sessions += 1;
        }
        let by_use = if is_ending { &mut self.ending } else { &mut self.active };
        by_use.insert(turn, key);
        self.sessions.insert(key, Session { at, used: now, turn, is_ending });
    }

    fn forget(&mut self, key: u64) {
        let Some(session) = self.sessions.remove(&key) else { return };
        let by_use = if session.is_ending { &mut self.ending } else { &mut self.active };
        by_use.remove(&session.turn);
        if self.is_current(session.at) {
            let place = self.place(session.at.node);
            place.sessions = place.sessions.saturating_sub(1);
        }
    }

    fn note_released(&mut self, node: NodeId, sessions: u32) {
        let place = self.place(node);
        place.released += u64::from(sessions);
        place.untold = place.untold.saturating_add(sessions);
    }
}

impl Place {
    fn due(&self) -> Option<Instant> {
        let due = self.told.map_or(Instant::ORIGIN, |told| told + TOLD_EVERY);
        (self.untold > 0).then_some(due)
    }
}

#[cfg(test)]
mod tests;
