//! A short memory of clients that were served without a lease, and have no cookie that identifies
//! them.
//!
//! Below capacity nobody gets a cookie of ours. Where the application sets none either, or sets it
//! late, nothing identifies admitted visitors when the gate closes, and they would be taken for
//! newcomers. So what identifies them without a cookie is remembered for a while:
//!
//! - **the connection** they used: proof as long as it is open, and as long as no second browser
//!   uses it, as behind a balancer;
//! - **their address and browser**, as a keyed hash of address, `User-Agent` and `Accept-Language`:
//!   no proof. Many may share them, behind the router of a school or the gateway of a carrier.
//!
//! Giving everybody a lease while the gateway is young would do as well, but that is a cookie on a
//! calm site, and does not help those inside when a rush comes later. A visitor recalled under
//! pressure gets a lease with the answer, so the memory has to serve for a single request each.
//!
//! What is shared is bounded. Visitors served under pressure get a lease and no entry, so a long
//! rush makes no entries. An entry leads to sessions that have begun, and to no new one: a visitor
//! taken for another shares that session's budget, as with a lease that is handed round. Once a
//! visitor has come with the session's lease, the session is forgotten here as soon as [`SPARE`]
//! more have come than were served as it; at once, if its first answer carried the lease already. A
//! visitor who was given a cookie of the application's is known by that alone. And an entry answers
//! [`BURST`] times at once and [`PRESSED`] times per second after that. Requests that show that
//! they come from a page of the site, which strangers' do not unless they lie, are counted apart.
//!
//! While nobody has to wait the memory makes one session of the requests of one visitor, so that
//! sessions are counted and not requests. If two visitors were mistaken for one, the gate would not
//! see a crowd, so this is done only in clear cases: on the same connection; from a page of the
//! site; or, by address and browser, one request after another, where no connection of the former
//! is open; and slowly, where the address is a private one, which may be that of a balancer that is
//! not configured.

use crate::generations::Generations;
use std::hash::RandomState;
use std::sync::{Arc, Weak};
use suimon_gate::SessionStatus;
use suimon_model::{Duration, Instant, KindId, SessionId};

/// Entries, and sessions that one leads to; the oldest are forgotten.
const CLIENTS_MAX: usize = 50_000;
const SESSIONS_MAX: usize = 8;
/// Visitors that may have been served as one session, at most.
const OWED_MAX: u32 = 8;
/// How many other clients with the same address and browser may be taken for a visitor before the
/// entry is used up: a family shares a router, and sometimes a browser.
const SPARE: u32 = 2;
/// An entry lives for this long after it was last used.
const LIFE: Duration = Duration::from_secs(600);
/// Times an entry answers at once: as many requests as one visitor has under way ...
const BURST: f64 = 8.0;
/// ... and per second after that: while nobody has to wait, and under pressure; ...
const CALM: f64 = 5.0;
const PRESSED: f64 = 0.2;
/// ... where the address may be a balancer's, this many, each at least the time below after the one
/// before; ...
const SHARED: f64 = 0.5;
const SHARED_AFTER: Duration = Duration::from_millis(200);
/// ... and under pressure those that come from a page of the site.
const PRESSED_EVIDENT: f64 = 1.0;

/// A client that nothing but its address and browser identifies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    /// The keyed hash of address and browser.
    pub key: u64,
    /// Whether the request shows that it comes from a page of this site.
    pub is_evident: bool,
    /// Whether its address may stand for any number of clients.
    pub is_shared: bool,
    /// Whether it has a session cookie of the application's, one that is not known.
    pub has_app_cookie: bool,
}

/// The memory. Lives under the lock of the gate, which it asks. `C` is a connection, of which it
/// only asks whether it is still there.
#[derive(Debug)]
pub struct ClientMemory<C> {
    entries: Generations<u64, Entry<C>, RandomState>,
    /// Where sessions are remembered whose visitors were given a cookie of the application's and
    /// have not come with it yet.
    given: Generations<SessionId, u64, RandomState>,
}

/// How a client that was served is to be recognised next time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owed {
    /// Nothing else identifies it.
    All,
    /// It was given a lease, and is remembered in case that it keeps no cookies.
    Nothing,
    /// It was given a cookie of the application's: it is remembered in case that it keeps none, as
    /// robots do not, as long as nobody has to wait.
    UntilCookie,
}

#[derive(Debug)]
struct Entry<C> {
    /// Oldest first.
    sessions: Vec<Remembered<C>>,
    /// What is left of the answers it gives, to those that come from a page of the site and to
    /// others, as of `at`.
    evident: f64,
    others: f64,
    at: Instant,
    /// When it was last used.
    used: Instant,
}

#[derive(Clone, Debug)]
struct Remembered<C> {
    kind: KindId,
    session: SessionId,
    /// The connection it used, if that is its visitor's own.
    connection: Option<Weak<C>>,
    /// Visitors, as far as can be told, who were served as this session without a lease and have
    /// not come for one, and [`SPARE`].
    owed: u32,
    /// Whether it was given a cookie of the application's by which it will be known if it keeps
    /// cookies.
    until_cookie: bool,
}

impl<C> Remembered<C> {
    fn is_connected(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.strong_count() > 0)
    }
}

impl<C> Default for ClientMemory<C> {
    fn default() -> Self {
        ClientMemory { entries: Generations::new(CLIENTS_MAX), given: Generations::new(CLIENTS_MAX) }
    }
}

impl<C> ClientMemory<C> {
    /// Remembers that `client` was served as `session`, and what it is owed for that. `connection`:
    /// its own, if it has one.
    pub fn note(
        &mut self,
        now: Instant,
        client: &Client,
        (kind, session): (KindId, SessionId),
        owed: Owed,
        connection: Option<&Arc<C>>,
    ) {
        let remembered = Remembered {
            kind,
            session,
            connection: connection.map(Arc::downgrade),
            owed: if owed == Owed::All { 1 + SPARE } else { 0 },
            until_cookie: owed == Owed::UntilCookie,
        };
        if remembered.until_cookie {
            self.given.insert(session, client.key);
        }
        let Some(entry) = self.entries.find_mut(client.key) else {
            let entry =
                Entry { sessions: vec![remembered], evident: BURST, others: BURST, at: now, used: now };
            return self.entries.insert(client.key, entry);
        };
        entry.used = now;
        entry.sessions.retain(|other| other.session != session);
        if entry.sessions.len() == SESSIONS_MAX {
            entry.sessions.remove(0);
        }
        entry.sessions.push(remembered);
    }

    /// Takes note that a request came with the cookie of a session, which is known by that from now
    /// on.
    pub fn comes_with_cookie(&mut self, session: SessionId) {
        if self.given.is_empty() {
            return;
        }
        let Some(key) = self.given.remove(session) else { return };
        let Some(entry) = self.entries.find_mut(key) else { return };
        entry.sessions.retain(|other| other.session != session);
        if entry.sessions.is_empty() {
            self.entries.remove(key);
        }
    }

    /// Takes note that `client` is there, known by its connection.
    pub fn touch(&mut self, now: Instant, client: &Client) {
        if let Some(entry) = self.entries.find_mut(client.key) {
            entry.used = now;
        }
    }

    /// Returns the session that a request of `client` belongs to, as far as can be told. `kind`:
    /// the kind it would begin, if any; `is_pressed`: whether the gate may send it away otherwise;
    /// `begun` returns how a session stands.
    pub fn recall(
        &mut self,
        now: Instant,
        client: &Client,
        kind: Option<KindId>,
        is_pressed: bool,
        begun: impl Fn(SessionId) -> Option<SessionStatus>,
    ) -> Option<(KindId, SessionId)> {
        let entry = self.entries.find_mut(client.key)?;
        let is_over = now.since(entry.used) > LIFE;
        // A visitor who has come with the lease is known by that; others may have been served as
        // the same session.
        let is_needed = |it: &Remembered<C>, begun: SessionStatus| !begun.is_leased || it.owed > 0;
        entry.sessions.retain(|it| !is_over && begun(it.session).is_some_and(|begun| is_needed(it, begun)));
        if entry.sessions.is_empty() {
            self.entries.remove(client.key);
            return None;
        }
        let is_guess = client.is_shared && !client.is_evident;
        let is_soon = now.since(entry.used) < SHARED_AFTER;
        if !is_pressed && (client.has_app_cookie || is_guess && is_soon) {
            return None;
        }
        let is_his = |it: &Remembered<C>| match (client.is_evident, is_pressed) {
            // This makes one session of a robot's requests, and is no way in: most visitors keep
            // their cookies.
            _ if it.until_cookie && (is_pressed || is_guess) => false,
            (true, _) => true,
            // A visitor with an open connection is known by that.
            (false, true) => !it.is_connected(),
            (false, false) => !it.is_connected() && begun(it.session).is_some_and(|begun| !begun.is_busy),
        };
        let fits = |it: &&Remembered<C>| kind.is_none_or(|kind| kind == it.kind) && is_his(it);
        let at = entry.sessions.iter().position(|it| fits(&it))?;
        if !entry.takes(now, client, is_pressed) {
            return None;
        }
        entry.used = now;
        let found = (entry.sessions[at].kind, entry.sessions[at].session);
        // Where several have begun, none of them is everybody's.
        let mut it = entry.sessions.remove(at);
        if is_pressed {
            it.owed = it.owed.saturating_sub(1);
            entry.sessions.push(it);
        } else {
            it.owed = (it.owed + u32::from(!client.is_evident)).min(OWED_MAX);
            entry.sessions.insert(at, it);
        }
        Some(found)
    }
}

impl<C> Entry<C> {
    fn takes(&mut self, now: Instant, client: &Client, is_pressed: bool) -> bool {
        let passed = now.secs_since(self.at);
        let (evident, others) = match (is_pressed, client.is_shared) {
            (true, _) => (PRESSED_EVIDENT, PRESSED),
            (false, true) => (CALM, SHARED),
            (false, false) => (CALM, CALM),
        };
        self.evident = (self.evident + passed * evident).min(BURST);
        self.others = (self.others + passed * others).min(BURST);
        self.at = now;
        let left = if client.is_evident { &mut self.evident } else { &mut self.others };
        let takes = *left >= 1.0;
        *left -= if takes { 1.0 } else { 0.0 };
        takes
    }
}

#[cfg(test)]
mod tests;
