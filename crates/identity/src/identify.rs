//! Who a request comes from: a session that was admitted, a visitor who would begin one, or
//! neither.
//!
//! Proof of a session is our lease. Before the gate has ever closed nobody carries one, so the
//! application's own session cookie serves as well, once we have seen it on an admitted request or
//! on its response: under capacity no cookie of ours is ever set, and when the gate closes,
//! admitted visitors are known. A visitor with neither is known for a while by connection, address
//! and browser: [`crate::memory`].
//!
//! A valid lease proves its session, whatever the gate knows of it. All else only names a session:
//! it is good as long as the gate has that one, and a client that presents it later is a newcomer.
//! So what a visitor kept of an earlier visit is no way past a line.
//!
//! A visitor may have a session of each kind. A request that begins sessions of a kind by
//! declaration belongs to the visitor's session of that kind, or is a newcomer's; any other belongs
//! to whichever session there is.

mod known;
mod names;

use crate::lease::{self, Leases, Proof};
use crate::memory::Client;
use crate::own::{CHOICE_COOKIES, TICKET};
use crate::passes::{self, Pass, Passes};
use crate::ticket::{self, Ticket, Tickets};
use http::header::{ACCEPT_LANGUAGE, COOKIE, HeaderMap, HeaderValue, SET_COOKIE, USER_AGENT};
use http::{Method, request};
use known::{AliasKey, CookieSessions, SessionEnd};
use names::CookieNames;
use std::cell::{Cell, LazyCell};
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use suimon_gate::Membership;
use suimon_message::peer::{Peer, is_from_own_page, is_private};
use suimon_model::{KindId, SessionId};
use suimon_routes::{Pattern, Readings};

/// Good leases and good tickets kept of one request, each of another kind.
const LEASES_MAX: usize = 4;
const TICKETS_MAX: usize = 4;
/// Signatures checked in one request, of cookies that look like ours: nobody can keep us busy with
/// forged ones.
const CHECKS_MAX: usize = 16;
/// Application cookies looked at in one request.
const COOKIES_MAX: usize = 4;

/// The shortest value by which a declared cookie identifies a visitor.
const DECLARED_VALUE_MIN: usize = 8;

/// Distinguishes sessions from strangers.
#[derive(Debug)]
pub struct Identifier {
    kinds: Vec<KindRules>,
    /// Where session cookies are recognised without being declared.
    names: Option<Arc<CookieNames>>,
    leases: Arc<Leases>,
    known: Arc<CookieSessions>,
    /// Hashes what tells clients apart.
    clients: RandomState,
}

#[derive(Debug)]
struct KindRules {
    begins: Vec<Pattern>,
    ends: Vec<Pattern>,
    app_cookie: Option<String>,
}

impl KindRules {
    fn of(kind: &suimon_params::SessionKind) -> Self {
        let patterns = |list: &[suimon_params::RoutePattern]| list.iter().map(Pattern::new).collect();
        KindRules {
            begins: patterns(&kind.begins),
            ends: patterns(&kind.ends),
            app_cookie: kind.app_cookie.clone(),
        }
    }
}

/// A session that a visitor has.
#[derive(Clone, Copy, Debug)]
struct OwnSession {
    kind: KindId,
    session: SessionId,
    leased: bool,
    is_ending: bool,
}

/// Reads the credentials of visitors who wait in a line.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// Reads tickets.
    pub tickets: &'a Tickets,
    /// Reads passes, where the application gives some.
    pub passes: Option<&'a Passes>,
}

/// What a request's cookies say.
#[derive(Clone, Default, Debug)]
pub struct Visitor {
    /// Leases of ours.
    leases: [Option<Lease>; LEASES_MAX],
    /// Whether there is a cookie with the lease's name, valid or not, to be kept from the
    /// application.
    pub has_lease_cookie: bool,
    /// Good tickets, each of another line.
    tickets: Vec<Ticket>,
    /// Whether there is a cookie with the name of a ticket, valid or not.
    pub has_ticket_cookie: bool,
    /// A good pass.
    pub pass: Option<Pass>,
    /// Whether there is any cookie of ours, to be kept from the application.
    pub has_own_cookie: bool,
    app: [Option<AliasKey>; COOKIES_MAX],
}

/// A lease that a visitor came with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// What it proves.
    pub proof: Proof,
    /// Whether its session has just ended.
    is_ending: bool,
}

impl Visitor {
    /// Returns the lease by which it is known to be of `session`.
    pub fn lease_of(&self, session: (KindId, SessionId)) -> Option<Proof> {
        let proofs = self.leases.iter().flatten().map(|lease| lease.proof);
        proofs.into_iter().find(|proof| (proof.kind, proof.session) == session)
    }

    /// Returns its lease of a session of `kind`; without a kind, any.
    pub fn lease(&self, kind: Option<KindId>) -> Option<Proof> {
        let mut proofs = self.leases.iter().flatten().map(|lease| lease.proof);
        proofs.find(|proof| kind.is_none_or(|kind| proof.kind == kind))
    }

    /// Adds a lease; of two for the same kind the first valid one counts.
    fn add_lease(&mut self, lease: Lease) {
        let is_same =
            |other: &&mut Option<Lease>| other.is_some_and(|other| other.proof.kind == lease.proof.kind);
        match self.leases.iter_mut().find(is_same) {
            Some(Some(own)) if own.proof.stands || !lease.proof.stands => {}
            Some(own) => *own = Some(lease),
            None => {
                if let Some(free) = self.leases.iter_mut().find(|free| free.is_none()) {
                    *free = Some(lease);
                }
            }
        }
    }

    /// Returns the ticket for a session of `kind`; without one, any.
    pub fn ticket(&self, kind: Option<KindId>) -> Option<Ticket> {
        let is_wanted = |ticket: &&Ticket| kind.is_none_or(|kind| ticket.kind == kind);
        self.tickets.iter().find(is_wanted).copied()
    }

    /// Returns whether it has a cookie of the application's by which it is known next time.
    pub fn has_app_cookie(&self) -> bool {
        self.app.iter().any(Option::is_some)
    }

    /// Returns a visitor who need not be identified: only whether a cookie of ours is to be kept
    /// from the application.
    pub fn unread(headers: &HeaderMap) -> Visitor {
        let lines = headers.get_all(COOKIE).into_iter();
        let has_own_cookie = lines.flat_map(|line| cookies(line.as_bytes())).any(|(name, _)| is_own(name));
        Visitor { has_own_cookie, ..Visitor::default() }
    }

    /// Adds a ticket; of two for the same kind the first counts.
    fn add(&mut self, ticket: Option<Ticket>) {
        let is_new =
            |ticket: &Ticket| self.tickets.len() < TICKETS_MAX && self.ticket(Some(ticket.kind)).is_none();
        if let Some(ticket) = ticket.filter(is_new) {
            self.tickets.push(ticket);
        }
    }
}

impl Identifier {
    /// Returns the identifier of these kinds of session. `secret` and `clients`: what cookies of the
    /// application, and addresses and browsers, are remembered by.
    pub fn new(
        sessions: &suimon_params::Sessions,
        leases: Leases,
        aliases_max: usize,
        secret: [u8; 32],
        clients: RandomState,
    ) -> Self {
        Identifier {
            kinds: sessions.kinds.iter().map(KindRules::of).collect(),
            names: sessions.detect_cookies.then(CookieNames::new).map(Arc::new),
            leases: Arc::new(leases),
            known: Arc::new(CookieSessions::new(aliases_max, secret)),
            clients,
        }
    }

    /// Returns the identifier of other rules for the same kinds, which knows whom this one knows.
    pub fn adopting(&self, sessions: &suimon_params::Sessions) -> Self {
        Identifier {
            kinds: sessions.kinds.iter().map(KindRules::of).collect(),
            names: self.names.clone(),
            leases: Arc::clone(&self.leases),
            known: Arc::clone(&self.known),
            clients: self.clients.clone(),
        }
    }

    /// Returns the leases.
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Reads a request's cookies. `now` returns seconds since 1970 and is asked only where there is
    /// a lease or a ticket.
    pub fn read(&self, headers: &HeaderMap, line: Option<Credentials<'_>>, now: impl Fn() -> u32) -> Visitor {
        let mut visitor = Visitor::default();
        let tickets = line.map(|line| line.tickets);
        let passes = line.and_then(|line| line.passes);
        let checks = Cell::new(0);
        let may_check = |length: usize, text: &[u8]| {
            let is_due = text.len() == length && checks.get() < CHECKS_MAX;
            checks.set(checks.get() + usize::from(is_due));
            is_due
        };
        let ticket = |text: &[u8]| {
            let tickets = tickets.filter(|_| may_check(Ticket::TEXT_LEN, text));
            tickets.and_then(|tickets| tickets.read(text, now()))
        };
        if let Some(header) = headers.get(TICKET) {
            visitor.add(ticket(header.as_bytes()));
        }
        let mut app = 0;
        for line in headers.get_all(COOKIE) {
            for (name, value) in cookies(line.as_bytes()) {
                if is_ticket(name) {
                    visitor.has_ticket_cookie = true;
                    visitor.add(ticket(value));
                } else if is_choice(name) {
                    visitor.has_own_cookie = true;
                } else if is_pass(name) {
                    visitor.has_own_cookie = true;
                    let passes = passes.filter(|_| visitor.pass.is_none());
                    if let Some(passes) = passes.filter(|_| may_check(Pass::TEXT_LEN, value)) {
                        visitor.pass = passes.read(value, now());
                    }
                } else if lease::is_name(name) {
                    visitor.has_lease_cookie = true;
                    if may_check(lease::TEXT_LEN, value)
                        && let Some(lease) = self.read_lease(value, now())
                    {
                        visitor.add_lease(lease);
                    }
                } else if app < COOKIES_MAX && self.is_session_cookie(name, value) {
                    visitor.app[app] = Some(self.known.key(name, value));
                    app += 1;
                }
            }
        }
        visitor.has_own_cookie |= visitor.has_lease_cookie || visitor.has_ticket_cookie;
        visitor
    }

    /// Returns how a gated request belongs to a session. `is_begun` returns whether the gate has a
    /// session; it is asked of each that is named and not proved, and where it has not, the cookies
    /// that name it are forgotten.
    pub fn membership(
        &self,
        visitor: &Visitor,
        method: &Method,
        path: &str,
        is_begun: impl Fn(SessionId) -> bool,
    ) -> Option<Membership> {
        let own = |kind| self.session_of(visitor, kind, &is_begun);
        let begins = self.kind(method, path);
        if let Some(kind) = begins {
            if let Some(own) = own(kind) {
                return Some(self.member(own, method, path));
            }
            let is_declared = !self.kinds[kind.index()].begins.is_empty();
            if is_declared || self.kinds.len() == 1 {
                return Some(Membership::Newcomer(kind));
            }
        }
        // Of several sessions the one that it ends, if it ends one.
        let kinds = || (0..self.kinds.len() as u32).map(KindId);
        let ending = kinds().filter(|kind| self.is_end(*kind, method, path)).find_map(own);
        let other = ending.or_else(|| kinds().find_map(own)).map(|own| self.member(own, method, path));
        other.or(begins.map(Membership::Newcomer))
    }

    /// Returns the visitor's session of `kind`, by lease or by a cookie of the application's.
    fn session_of(
        &self,
        visitor: &Visitor,
        kind: KindId,
        is_begun: &impl Fn(SessionId) -> bool,
    ) -> Option<OwnSession> {
        let lease = visitor.leases.iter().flatten().find(|lease| lease.proof.kind == kind);
        if let Some(Lease { proof, is_ending }) = lease.copied()
            && (proof.stands || is_begun(proof.session))
        {
            return Some(OwnSession { kind, session: proof.session, leased: proof.stands, is_ending });
        }
        visitor.app.iter().flatten().find_map(|key| {
            let session = self.known.find(kind, *key)?;
            if is_begun(session) {
                return Some(OwnSession { kind, session, leased: false, is_ending: false });
            }
            self.known.forget(kind, *key, session);
            None
        })
    }

    /// Returns the client of a request that belongs to no session according to its cookies, unless
    /// it waits in line.
    pub fn client(
        &self,
        visitor: &Visitor,
        membership: Option<Membership>,
        parts: &request::Parts,
        peer: &Peer,
    ) -> Option<Client> {
        let is_unknown = matches!(membership, None | Some(Membership::Newcomer(_)));
        if !is_unknown || self.kinds.is_empty() || !visitor.tickets.is_empty() {
            return None;
        }
        let address = peer.client(&parts.headers);
        // A subscriber's own network has many addresses.
        let network = match address {
            IpAddr::V4(v4) => u64::from(u32::from(v4)),
            IpAddr::V6(v6) => (u128::from(v6) >> 64) as u64,
        };
        let says = peer.says(&parts.headers);
        let header = |name| parts.headers.get(name).map(HeaderValue::as_bytes);
        let key = self.clients.hash_one((network, says, header(USER_AGENT), header(ACCEPT_LANGUAGE)));
        Some(Client {
            key,
            is_evident: is_from_own_page(parts),
            is_shared: says.is_none() && is_private(address),
            has_app_cookie: visitor.app.iter().flatten().any(|key| !self.is_everybodys(*key)),
        })
    }

    /// Returns how a request belongs to a session it was found to be of, by something other than a
    /// cookie; `None`: that one has ended. `now` is in seconds since 1970.
    pub fn recalled(
        &self,
        (kind, session): (KindId, SessionId),
        method: &Method,
        path: &str,
        now: u32,
    ) -> Option<Membership> {
        let is_open = self.known.end_of(session, now) == SessionEnd::None;
        let own = OwnSession { kind, session, leased: false, is_ending: false };
        is_open.then(|| self.member(own, method, path))
    }

    /// Returns the kind of session that a request of a newcomer begins.
    pub fn kind(&self, method: &Method, path: &str) -> Option<KindId> {
        // Where any request begins a session, no pattern has to be read.
        let path = LazyCell::new(|| Readings::of(path));
        let begins = |kind: &KindRules| {
            kind.begins.is_empty() || kind.begins.iter().any(|pattern| pattern.may_match(method, &path))
        };
        self.kinds.iter().position(begins).map(|kind| KindId(kind as u32))
    }

    /// Remembers that the cookies a request came with belong to the session it was admitted as.
    pub fn learn_request(&self, visitor: &Visitor, session: (KindId, SessionId)) {
        for key in visitor.app.iter().flatten() {
            self.known.insert(*key, session);
        }
    }

    /// Remembers that the cookies a response sets belong to the session of its request, and returns
    /// whether its visitor is known by one of them. `now` returns seconds since 1970.
    pub fn learn_response(
        &self,
        visitor: &Visitor,
        headers: &HeaderMap,
        session: (KindId, SessionId),
        now: impl Fn() -> u32,
    ) -> bool {
        let mut is_known = false;
        for line in headers.get_all(SET_COOKIE) {
            let line = line.as_bytes();
            let pair = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let Some((name, value)) = split_pair(pair) else { continue };
            let is_known_name = self.is_session_cookie(name, value);
            // A client that is known already needs no other name.
            let may_be_one = || !visitor.has_app_cookie() && names::is_http_only(line);
            if !is_known_name && !may_be_one() || names::is_withdrawn(line, value, &now) {
                continue;
            }
            let key = self.known.key(name, value);
            let looks_like_one =
                || self.names.as_ref().is_some_and(|names| names.look_at(name, value, key, session.1));
            if visitor.app.contains(&Some(key)) {
                is_known = true;
            } else if is_known_name || looks_like_one() {
                is_known |= self.known.give(key, session) && is_known_name;
            }
        }
        is_known
    }

    /// Takes note that a session has ended: its cookies are no longer good for anything, and soon
    /// its lease is not. `now` is in seconds since 1970.
    pub fn end(&self, session: SessionId, now: u32) {
        self.known.end(session, now);
    }

    fn read_lease(&self, text: &[u8], now: u32) -> Option<Lease> {
        let proof = self.leases.check(text, now)?;
        let end = self.known.end_of(proof.session, now);
        (end != SessionEnd::Over).then_some(Lease { proof, is_ending: end == SessionEnd::JustNow })
    }

    fn member(&self, own: OwnSession, method: &Method, path: &str) -> Membership {
        let OwnSession { kind, session, leased, is_ending } = own;
        // A session that has ended begins again for requests of the same moment, and ends with
        // them.
        let ends = is_ending || self.is_end(kind, method, path);
        Membership::Member { kind, session, leased, ends }
    }

    fn is_end(&self, kind: KindId, method: &Method, path: &str) -> bool {
        let kind = self.kinds.get(kind.index());
        kind.is_some_and(|kind| kind.ends.iter().any(|pattern| pattern.matches(method, path)))
    }

    fn is_everybodys(&self, key: AliasKey) -> bool {
        (0..self.kinds.len() as u32).any(|kind| self.known.is_everybodys(KindId(kind), key))
    }

    fn is_session_cookie(&self, name: &[u8], value: &[u8]) -> bool {
        let declared = || self.kinds.iter().filter_map(|kind| kind.app_cookie.as_deref());
        let by_declaration =
            value.len() >= DECLARED_VALUE_MIN && declared().any(|own| own.as_bytes() == name);
        by_declaration || self.names.as_ref().is_some_and(|names| names.tell(name, value))
    }
}

/// Takes cookies of ours out of a request's head.
pub fn strip_own_cookies(headers: &mut HeaderMap) {
    let mut kept: Vec<u8> = Vec::new();
    for line in headers.get_all(COOKIE) {
        for cookie in line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
            if cookie.is_empty() || split_pair(cookie).is_some_and(|(name, _)| is_own(name)) {
                continue;
            }
            if !kept.is_empty() {
                kept.extend_from_slice(b"; ");
            }
            kept.extend_from_slice(cookie);
        }
    }
    headers.remove(COOKIE);
    if !kept.is_empty()
        && let Ok(kept) = HeaderValue::from_maybe_shared(bytes::Bytes::from(kept))
    {
        headers.insert(COOKIE, kept);
    }
}

fn is_own(name: &[u8]) -> bool {
    lease::is_name(name) || is_ticket(name) || is_choice(name) || is_pass(name)
}

fn is_ticket(name: &[u8]) -> bool {
    name.starts_with(ticket::PREFIX.as_bytes()) || name.starts_with(ticket::PREFIX_SECURE.as_bytes())
}

fn is_pass(name: &[u8]) -> bool {
    name == passes::NAME.as_bytes() || name == passes::NAME_SECURE.as_bytes()
}

fn is_choice(name: &[u8]) -> bool {
    CHOICE_COOKIES.iter().any(|own| own.as_bytes() == name)
}

fn cookies(line: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    line.split(|byte| *byte == b';').filter_map(split_pair)
}

fn split_pair(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'=', pair)?;
    Some((pair[..at].trim_ascii(), pair[at + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests;
