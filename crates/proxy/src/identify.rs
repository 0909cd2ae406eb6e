//! Who a request comes from: a session that was let in, somebody who would begin one, or neither.
//!
//! Proof of a session is our lease. Where the gate has never closed nobody carries one, so the application's own session
//! cookie serves as well, once we have seen it on a request that was let in or on its response: under capacity no
//! cookie of ours is ever set, and when the gate closes, those inside are known. Whoever has neither is known for a while by connection, address and
//! browser: [`crate::memory`].

mod known;
mod names;

use crate::headers::{self, Peer};
use crate::lease::{self, Leases, Proof};
use crate::memory::Client;
use crate::params;
use crate::room::{self, Pass, Room};
use crate::routes::{Pattern, Readings};
use crate::ticket::{self, Ticket};
use http::header::{ACCEPT_LANGUAGE, COOKIE, HeaderMap, HeaderValue, SET_COOKIE, USER_AGENT};
use http::{Method, request};
use known::{AliasKey, Aliases, Ended};
use names::Names;
use std::cell::LazyCell;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use suimon_gate::Membership;
use suimon_model::{KindId, SessionId};

/// Tickets looked at in one request.
const TICKETS_MAX: usize = 4;
/// Application cookies looked at in one request.
const COOKIES_MAX: usize = 4;

/// Tells sessions from strangers.
#[derive(Debug)]
pub(crate) struct Identifier {
    kinds: Vec<Kind>,
    /// Where session cookies are recognised without being declared.
    names: Option<Names>,
    leases: Leases,
    aliases: Aliases,
    ended: Ended,
    /// Hashes what tells clients apart.
    clients: RandomState,
}

#[derive(Debug)]
struct Kind {
    begins: Vec<Pattern>,
    ends: Vec<Pattern>,
    app_cookie: Option<String>,
}

/// What a request's cookies say.
#[derive(Clone, Default, Debug)]
pub(crate) struct Visitor {
    /// A good lease.
    pub(crate) proof: Option<Proof>,
    /// Whether there is a cookie by the lease's name, good or not, to be kept from the application.
    pub(crate) has_lease_cookie: bool,
    /// Good tickets, each of another line, and whether there is a cookie by the name of one.
    tickets: Vec<Ticket>,
    pub(crate) has_ticket_cookie: bool,
    /// A good pass.
    pub(crate) pass: Option<Pass>,
    /// Whether there is any cookie of ours, to be kept from the application.
    pub(crate) has_own_cookie: bool,
    app: [Option<AliasKey>; COOKIES_MAX],
}

impl Visitor {
    /// Returns the ticket for a session of `kind`; without one, any.
    pub(crate) fn ticket(&self, kind: Option<KindId>) -> Option<Ticket> {
        let is_wanted = |ticket: &&Ticket| kind.is_none_or(|kind| ticket.kind == kind);
        self.tickets.iter().find(is_wanted).copied()
    }

    /// Returns whether it has a cookie of the application's by which it is known next time.
    pub(crate) fn has_app_cookie(&self) -> bool {
        self.app.iter().any(Option::is_some)
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
    /// Returns the identifier of these kinds of session.
    pub(crate) fn new(
        sessions: &params::Sessions,
        leases: Leases,
        aliases_max: usize,
        secret: [u8; 32],
    ) -> Self {
        let patterns = |list: &[params::RoutePattern]| list.iter().map(Pattern::new).collect();
        let kind = |kind: &params::SessionKind| Kind {
            begins: patterns(&kind.begins),
            ends: patterns(&kind.ends),
            app_cookie: kind.app_cookie.clone(),
        };
        Identifier {
            kinds: sessions.kinds.iter().map(kind).collect(),
            names: sessions.detect_cookies.then(Names::new),
            leases,
            aliases: Aliases::new(aliases_max, secret),
            ended: Ended::new(aliases_max),
            clients: RandomState::new(),
        }
    }

    /// Returns the leases.
    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Reads a request's cookies. `now` returns seconds since 1970 and is asked only where there is a lease or a ticket.
    pub(crate) fn read(&self, headers: &HeaderMap, room: Option<&Room>, now: impl Fn() -> u32) -> Visitor {
        let mut visitor = Visitor::default();
        let ticket = |text: &[u8]| room.and_then(|room| room.tickets().read(text, now()));
        let passes = room.and_then(Room::passes);
        if let Some(place) = headers.get(room::PLACE) {
            visitor.add(ticket(place.as_bytes()));
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
                    let read = || passes.and_then(|passes| passes.read(value, now()));
                    visitor.pass = visitor.pass.or_else(read);
                } else if is_lease(name) {
                    visitor.has_lease_cookie = true;
                    visitor.proof = visitor.proof.or_else(|| self.proof(value, now()));
                } else if app < COOKIES_MAX && self.is_session_cookie(name, value) {
                    visitor.app[app] = Some(self.aliases.key(name, value));
                    app += 1;
                }
            }
        }
        visitor.has_own_cookie |= visitor.has_lease_cookie || visitor.has_ticket_cookie;
        visitor
    }

    /// Returns how a gated request belongs to a session.
    pub(crate) fn membership(&self, visitor: &Visitor, method: &Method, path: &str) -> Option<Membership> {
        if let Some(proof) = visitor.proof {
            return Some(self.member(proof.kind, proof.session, true, method, path));
        }
        if let Some((kind, session)) = visitor.app.iter().flatten().find_map(|key| self.aliases.find(*key)) {
            return Some(self.member(kind, session, false, method, path));
        }
        self.kind(method, path).map(Membership::Newcomer)
    }

    /// Returns the client of a request that belongs to no session as far as its cookies say, unless it waits in line.
    pub(crate) fn client(
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
            is_evident: headers::is_from_own_page(parts),
            is_shared: says.is_none() && headers::is_private(address),
            has_app_cookie: visitor.app.iter().flatten().any(|key| !self.aliases.is_everybodys(*key)),
        })
    }

    /// Returns how a request belongs to a session it was found to be of, by something else than a cookie.
    pub(crate) fn recalled(
        &self,
        (kind, session): (KindId, SessionId),
        method: &Method,
        path: &str,
    ) -> Membership {
        self.member(kind, session, false, method, path)
    }

    /// Returns the kind of session that a request of a newcomer begins.
    pub(crate) fn kind(&self, method: &Method, path: &str) -> Option<KindId> {
        // Where any request begins one, nobody has to read it.
        let path = LazyCell::new(|| Readings::of(path));
        let begins = |kind: &Kind| {
            kind.begins.is_empty() || kind.begins.iter().any(|pattern| pattern.may_match(method, &path))
        };
        self.kinds.iter().position(begins).map(|kind| KindId(kind as u32))
    }

    /// Remembers that the cookies a request came with belong to the session it was let in as.
    pub(crate) fn learn_request(&self, visitor: &Visitor, session: (KindId, SessionId)) {
        for key in visitor.app.iter().flatten() {
            self.aliases.insert(*key, session);
        }
    }

    /// Remembers that the cookies a response sets belong to the session of its request, and returns whether its visitor is known by one of them. `now` returns seconds since 1970.
    pub(crate) fn learn_response(
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
            // Whoever is known already needs no other name.
            let may_be_one = || !visitor.has_app_cookie() && names::is_http_only(line);
            if !is_known_name && !may_be_one() || names::is_withdrawn(line, value, &now) {
                continue;
            }
            let key = self.aliases.key(name, value);
            let looks_like_one =
                || self.names.as_ref().is_some_and(|names| names.look_at(name, value, key, session.1));
            if visitor.app.contains(&Some(key)) {
                is_known = true;
            } else if is_known_name || looks_like_one() {
                is_known |= self.aliases.give(key, session) && is_known_name;
            }
        }
        is_known
    }

    /// Takes note that the session of a request has ended: its cookies are good for nothing more, and soon its lease is not. `now` is in seconds since 1970.
    pub(crate) fn end(&self, visitor: &Visitor, session: SessionId, now: u32) {
        for key in visitor.app.iter().flatten() {
            self.aliases.remove(*key);
        }
        self.ended.note(session, now);
    }

    fn proof(&self, text: &[u8], now: u32) -> Option<Proof> {
        self.leases.check(text, now).filter(|proof| !self.ended.is_over(proof.session, now))
    }

    fn member(
        &self,
        kind: KindId,
        session: SessionId,
        leased: bool,
        method: &Method,
        path: &str,
    ) -> Membership {
        let ends = self
            .kinds
            .get(kind.index())
            .is_some_and(|kind| kind.ends.iter().any(|pattern| pattern.matches(method, path)));
        Membership::Member { kind, session, leased, ends }
    }

    fn is_session_cookie(&self, name: &[u8], value: &[u8]) -> bool {
        let declared = || self.kinds.iter().filter_map(|kind| kind.app_cookie.as_deref());
        let by_declaration = !value.is_empty() && declared().any(|own| own.as_bytes() == name);
        by_declaration || self.names.as_ref().is_some_and(|names| names.tell(name, value))
    }
}

/// Takes cookies of ours out of a request's head.
pub(crate) fn strip_own_cookies(headers: &mut HeaderMap) {
    let mut kept: Vec<u8> = Vec::new();
    for line in headers.get_all(COOKIE) {
        for cookie in line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
            if cookie.is_empty()
                || split_pair(cookie).is_some_and(|(name, _)| {
                    is_lease(name) || is_ticket(name) || is_choice(name) || is_pass(name)
                })
            {
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

fn is_lease(name: &[u8]) -> bool {
    name == lease::NAME.as_bytes() || name == lease::NAME_SECURE.as_bytes()
}

fn is_ticket(name: &[u8]) -> bool {
    name.starts_with(ticket::PREFIX.as_bytes()) || name.starts_with(ticket::PREFIX_SECURE.as_bytes())
}

fn is_pass(name: &[u8]) -> bool {
    name == room::PASS_COOKIE.as_bytes() || name == room::PASS_COOKIE_SECURE.as_bytes()
}

fn is_choice(name: &[u8]) -> bool {
    room::CHOICE_COOKIES.iter().any(|own| own.as_bytes() == name)
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
