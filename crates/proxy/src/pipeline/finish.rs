//! What follows from an answer: what the application says in it, and the cookies that identify a
//! session next time.

use super::Core;
use crate::error_response;
use crate::gatekeeper::UnidentifiedClient;
use crate::wall_clock::now_unix;
use http::header::{CACHE_CONTROL, HeaderMap, HeaderValue, SET_COOKIE};
use http::request;
use std::sync::Arc;
use std::time::Duration;
use suimon_downstream::connection::Connection;
use suimon_gate::{LeaseDue, SessionSignal};
use suimon_identity::identify::Visitor;
use suimon_identity::memory::Owed;
use suimon_identity::passes::Passes;
use suimon_message::lists::list;
use suimon_message::signals;
use suimon_model::{KindId, SessionId};
use suimon_params::LeaseIssued;
use suimon_waiting_room::WaitingRoom;

/// What an application says to shared caches alone (RFC 9213, and its predecessors).
const TARGETED: [&str; 2] = ["cdn-cache-control", "surrogate-control"];

/// What identifies a session next time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KnownBy {
    /// A lease that its visitor must have: there is pressure.
    Lease,
    /// A cookie of the application's that it came with.
    AppCookie,
    /// A cookie that it was given, if it keeps it.
    NewCookie,
    /// The memory of clients; and a lease, if one was given.
    Memory { with_lease: bool },
    /// It has ended.
    Nothing,
}

/// What an answer is to do for the session of its request.
#[derive(Clone, Copy)]
pub(super) struct Due {
    pub(super) session: Option<(KindId, SessionId)>,
    /// Whether a lease was due when the request started.
    pub(super) lease: LeaseDue,
    /// Its client, if no cookie tells it from others.
    pub(super) unknown: Option<UnidentifiedClient>,
    /// Whether the session ends with this answer.
    pub(super) ends: bool,
    /// See [`Core::gives_passes`].
    pub(super) gives_passes: bool,
    /// How long the request waited.
    pub(super) waited: Duration,
    pub(super) secure: bool,
}

impl Core {
    /// Returns whether the answer to a request may give a pass.
    pub(super) fn gives_passes(&self, parts: &request::Parts) -> bool {
        self.passes().is_some_and(|passes| passes.is_page(parts.uri.path()))
    }

    fn passes(&self) -> Option<&Passes> {
        self.waiting_room.as_ref().and_then(WaitingRoom::passes)
    }

    /// Does what follows from an answer, and completes its headers. `said`: what the application says to the
    /// gateway in it. `connection`: that of the client, if it outlives the request.
    pub(super) fn conclude(
        &self,
        connection: Option<&Arc<Connection>>,
        visitor: &Visitor,
        due: Due,
        said: &HeaderMap,
        headers: &mut HeaderMap,
    ) {
        let Due { session, lease, unknown, ends, gives_passes, waited, secure } = due;
        let ends = self.apply_app_signals(said, session) || ends;
        if let Some(session) = session {
            // A lease may have become due since the request started.
            let is_unleased = visitor.lease_of(session).is_none();
            let lease = if is_unleased { lease.max(self.keeper.lease_due()) } else { lease };
            let has_app_cookie =
                unknown.map_or(visitor.has_app_cookie(), |unknown| unknown.client.has_app_cookie);
            let known_by =
                self.keep_session(headers, (visitor, has_app_cookie), session, lease, ends, secure);
            if let Some(unknown) = unknown {
                self.keep_client(connection, &unknown, session, known_by);
            }
        }
        if let Some(passes) = self.passes().filter(|_| gives_passes) {
            give_pass(passes, said, headers, secure);
        }
        if !waited.is_zero() {
            headers.append(error_response::SERVER_TIMING, error_response::server_timing("waited", waited));
        }
    }

    /// Does what the application says in its answer, and returns whether it says that the session
    /// has ended.
    fn apply_app_signals(&self, said: &HeaderMap, session: Option<(KindId, SessionId)>) -> bool {
        let Some((kind, session)) = session.filter(|_| !said.is_empty()) else { return false };
        let mut ends = false;
        for word in signals::session_signals(said) {
            self.keeper.session_signal(session, word);
            ends |= word == SessionSignal::Ends;
        }
        if let Some(command) = signals::line_command(said) {
            self.keeper.command(kind, command);
        }
        ends
    }

    /// Takes note of how long a visitor with a place has waited, and of what they were told.
    pub(super) fn note_line_wait(&self, visitor: &Visitor, kind: KindId) {
        let Some(ticket) = visitor.ticket(Some(kind)).filter(|ticket| ticket.kind == kind) else { return };
        let since_drawn = |at: u32| Duration::from_secs(u64::from(at.saturating_sub(ticket.drawn)));
        let told = (ticket.turn_by > 0).then(|| since_drawn(ticket.turn_by));
        self.telemetry.note_line_wait(kind, told, since_drawn(now_unix()));
    }

    /// Sees to it that a client which no cookie of its request identifies is known next time.
    fn keep_client(
        &self,
        connection: Option<&Arc<Connection>>,
        unknown: &UnidentifiedClient,
        session: (KindId, SessionId),
        known_by: KnownBy,
    ) {
        let UnidentifiedClient { client, hint, found } = unknown;
        let own = connection.filter(|connection| {
            hint.is_some() && hint == found || connection.note_session(self.site, client.key, session)
        });
        let owed = match (known_by, found) {
            (KnownBy::Memory { with_lease: false }, None) => Owed::All,
            (KnownBy::Memory { with_lease: true }, None) => Owed::Nothing,
            (KnownBy::NewCookie, _) => Owed::UntilCookie,
            (KnownBy::Memory { .. }, Some(_))
            | (KnownBy::AppCookie | KnownBy::Lease | KnownBy::Nothing, _) => return,
        };
        self.keeper.remember(client, session, owed, own);
    }

    /// Sets the cookies that identify a session next time, and returns which identification that
    /// is. `has_app_cookie`: the visitor came with a cookie of the application that identifies it.
    fn keep_session(
        &self,
        headers: &mut HeaderMap,
        (visitor, has_app_cookie): (&Visitor, bool),
        session: (KindId, SessionId),
        lease: LeaseDue,
        has_ended: bool,
        secure: bool,
    ) -> KnownBy {
        let mut own = Vec::new();
        let held = visitor.lease_of(session);
        let known_by = if has_ended {
            self.identifier.end(session.1, now_unix());
            if visitor.has_lease_cookie {
                own.push(self.identifier.leases().withdraw(session.0, secure));
            }
            KnownBy::Nothing
        } else {
            let sets_cookies = headers.contains_key(SET_COOKIE);
            let is_known =
                sets_cookies && self.identifier.learn_response(visitor, headers, session, now_unix);
            // What a cache may keep for all stays cacheable as long as nobody has to wait.
            let has_cookie = has_app_cookie || is_known;
            let is_unknown = || held.is_none() && !has_cookie && !is_for_all(headers);
            if lease == LeaseDue::Yes {
                self.note_line_wait(visitor, session.0);
            }
            let is_due = match lease {
                LeaseDue::Yes => true,
                LeaseDue::IfUnknown => is_unknown(),
                LeaseDue::No => self.params.lease.issued == LeaseIssued::Always && is_unknown(),
            };
            if is_due || held.is_some_and(|proof| proof.renewal_due) {
                let (kind, session) = session;
                own.push(self.identifier.leases().issue(kind, session, now_unix(), secure));
            }
            match lease {
                LeaseDue::Yes => KnownBy::Lease,
                LeaseDue::IfUnknown | LeaseDue::No if has_app_cookie => KnownBy::AppCookie,
                LeaseDue::IfUnknown | LeaseDue::No if is_known => KnownBy::NewCookie,
                LeaseDue::IfUnknown | LeaseDue::No => KnownBy::Memory { with_lease: is_due },
            }
        };
        // The lease is worth more than the place; and a cookie without meaning is a burden.
        if let Some(waiting_room) = self.waiting_room.as_ref().filter(|_| visitor.has_ticket_cookie)
            && (has_ended || lease == LeaseDue::Yes || held.is_some())
        {
            own.push(waiting_room.tickets().withdraw(session.0, secure));
        }
        if !own.is_empty() {
            keep_private(headers);
            own.into_iter().for_each(|cookie| _ = headers.append(SET_COOKIE, cookie));
        }
        known_by
    }
}

/// Gives the pass that the application's answer speaks of.
fn give_pass(passes: &Passes, said: &HeaderMap, headers: &mut HeaderMap, secure: bool) {
    let cookie = signals::pass_grant(said).and_then(|word| passes.issue(&word, now_unix(), secure));
    if let Some(cookie) = cookie {
        keep_private(headers);
        headers.append(SET_COOKIE, cookie);
    }
}

/// Returns whether the application says that a shared cache may keep an answer.
fn is_for_all(headers: &HeaderMap) -> bool {
    TARGETED.iter().any(|name| headers.contains_key(*name)) || list(headers, &CACHE_CONTROL).any(is_shared)
}

/// Returns whether a directive of `Cache-Control` is for shared caches.
fn is_shared(word: &str) -> bool {
    word.eq_ignore_ascii_case("public") || word.to_ascii_lowercase().starts_with("s-maxage")
}

/// Sees to it that no shared cache keeps an answer that carries a cookie of ours.
fn keep_private(headers: &mut HeaderMap) {
    // These are for shared caches alone, and go before the other.
    for name in TARGETED {
        headers.remove(name);
    }
    // Without any directive a cache may store an answer whose freshness it can compute, or guess.
    let is = |word: &str, one: &str| word.eq_ignore_ascii_case(one);
    if list(headers, &CACHE_CONTROL).any(|word| is(word, "private") || is(word, "no-store")) {
        return;
    }
    let rest = list(headers, &CACHE_CONTROL).filter(|word| !is_shared(word));
    let words: Vec<&str> = std::iter::once("private").chain(rest).collect();
    let private = HeaderValue::try_from(words.join(", "));
    headers.insert(CACHE_CONTROL, private.unwrap_or(HeaderValue::from_static("private")));
}
