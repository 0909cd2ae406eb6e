//! Who a request comes from: a session that was let in, somebody who would begin one, or neither.
//!
//! Proof of a session is our lease. Where the gate has never closed nobody carries one, so the application's own session
//! cookie serves as well, once we have seen it on a request that was let in or on its response: under capacity no
//! cookie of ours is ever set, and when the gate closes, those inside are known.

use crate::generations::Generations;
use crate::lease::{self, Leases, Proof};
use crate::params;
use crate::room::{self, Pass, Room};
use crate::routes::{Pattern, Readings};
use crate::ticket::{self, Ticket};
use http::Method;
use http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use std::cell::LazyCell;
use std::hash::{BuildHasherDefault, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use suimon_gate::Membership;
use suimon_model::{KindId, SessionId};

/// Tickets looked at in one request.
const TICKETS_MAX: usize = 4;
/// Application cookies looked at in one request.
const COOKIES_MAX: usize = 2;

/// The lease of a session that has ended is good for so long, seconds: its page may still be loading.
const ENDING: u32 = 10;

/// What the names of session cookies have in common: PHPSESSID, JSESSIONID, connect.sid, laravel_session, `_shop_key`, ...
/// Compared without regard to case.
const TELLING_PARTS: [&[u8]; 3] = [b"sess", b"cfid", b"cakephp"];
const TELLING_ENDS: [&[u8]; 3] = [b"sid", b"_key", b"symfony"];
/// The shortest value that can tell one visitor from all others; `sess=1` cannot.
const VALUE_MIN: usize = 12;

/// A keyed hash of an application cookie's name and value.
type AliasKey = u128;

/// Tells sessions from strangers.
#[derive(Debug)]
pub(crate) struct Identifier {
    kinds: Vec<Kind>,
    detect_cookies: bool,
    leases: Leases,
    aliases: Aliases,
    ended: Ended,
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
            detect_cookies: sessions.detect_cookies,
            leases,
            aliases: Aliases::new(aliases_max, secret),
            ended: Ended(Mutex::new(Generations::new(aliases_max))),
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

    /// Remembers that the cookies a response sets belong to the session of its request, and returns whether there is any.
    pub(crate) fn learn_response(&self, headers: &HeaderMap, session: (KindId, SessionId)) -> bool {
        let mut is_known = false;
        for line in headers.get_all(SET_COOKIE) {
            let pair = line.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
            if let Some((name, value)) = split_pair(pair)
                && self.is_session_cookie(name, value)
            {
                self.aliases.insert(self.aliases.key(name, value), session);
                is_known = true;
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
        by_declaration || (self.detect_cookies && value.len() >= VALUE_MIN && has_telling_name(name))
    }
}

fn has_telling_name(name: &[u8]) -> bool {
    let part = |part: &&[u8]| name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
    let end =
        |end: &&[u8]| name.len() >= end.len() && name[name.len() - end.len()..].eq_ignore_ascii_case(end);
    TELLING_PARTS.iter().any(part) || TELLING_ENDS.iter().any(end)
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

/// Which session an application's cookie belongs to. Holds hashes under a key of this process, never the cookies.
#[derive(Debug)]
struct Aliases {
    secret: [u8; 32],
    sessions: Mutex<Generations<AliasKey, (KindId, SessionId), BuildHasherDefault<AlreadyHashed>>>,
}

impl Aliases {
    fn new(max: usize, secret: [u8; 32]) -> Self {
        Aliases { secret, sessions: Mutex::new(Generations::new(max)) }
    }

    fn key(&self, name: &[u8], value: &[u8]) -> AliasKey {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(name).update(b"=").update(value);
        let hash = hasher.finalize();
        u128::from_le_bytes(hash.as_bytes()[..16].try_into().expect("sixteen of thirty-two bytes"))
    }

    fn find(&self, key: AliasKey) -> Option<(KindId, SessionId)> {
        self.lock().find(key)
    }

    fn insert(&self, key: AliasKey, session: (KindId, SessionId)) {
        self.lock().insert(key, session);
    }

    fn remove(&self, key: AliasKey) {
        self.lock().remove(key);
    }

    fn lock(
        &self,
    ) -> MutexGuard<'_, Generations<AliasKey, (KindId, SessionId), BuildHasherDefault<AlreadyHashed>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sessions that the application has ended, and when, seconds since 1970: a lease of one that somebody has kept opens nothing.
#[derive(Debug)]
struct Ended(Mutex<Generations<SessionId, u32, RandomState>>);

impl Ended {
    fn note(&self, session: SessionId, now: u32) {
        self.lock().insert(session, now);
    }

    fn is_over(&self, session: SessionId, now: u32) -> bool {
        self.lock().find(session).is_some_and(|ended| now.saturating_sub(ended) > ENDING)
    }

    fn lock(&self) -> MutexGuard<'_, Generations<SessionId, u32, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys are hashes under a secret key already; one half of one is as good as any hash of it.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use crate::params::{RoutePattern, SessionKind, Sessions};
    use crate::testing::headers;
    use proptest::prelude::*;

    const NOW: u32 = 1_000_000;
    const SESSION: (KindId, SessionId) = (KindId(0), SessionId(9));

    fn pattern(method: &str, path: &str) -> RoutePattern {
        RoutePattern { method: Some(method.to_owned()), path: path.to_owned() }
    }

    fn identifier(kinds: Vec<SessionKind>, aliases_max: usize) -> Identifier {
        let sessions = Sessions { kinds, detect_cookies: true };
        let names: Vec<_> = sessions.kinds.iter().map(|kind| kind.name.clone()).collect();
        let leases = Leases::new(Keys::fresh().unwrap(), 3600, names.iter().map(String::as_str)).unwrap();
        Identifier::new(&sessions, leases, aliases_max, [7; 32])
    }

    fn cookies(lines: &[&str]) -> HeaderMap {
        headers(&COOKIE, lines)
    }

    fn membership(
        identifier: &Identifier,
        lines: &[&str],
        method: &Method,
        path: &str,
    ) -> Option<Membership> {
        identifier.membership(&identifier.read(&cookies(lines), None, || NOW), method, path)
    }

    fn is_member(membership: Option<Membership>) -> bool {
        matches!(membership, Some(Membership::Member { .. }))
    }

    #[test]
    fn a_lease_makes_a_member_and_a_forged_one_a_newcomer() {
        let identifier = identifier(vec![SessionKind::default()], 100);
        let cookie = identifier.leases().issue(SESSION.0, SESSION.1, NOW, false);
        let lease = cookie.to_str().unwrap().split(';').next().unwrap();
        let found = membership(&identifier, &[&format!("a=b; {lease}; c=d")], &Method::GET, "/");
        assert!(matches!(
            found,
            Some(Membership::Member { session: SessionId(9), leased: true, ends: false, .. })
        ));
        let secure = format!("__Host-{lease}");
        assert!(is_member(membership(&identifier, &[&secure], &Method::GET, "/")));
        let forged = format!("{}x", &lease[..lease.len() - 1]);
        let found = membership(&identifier, &[&forged], &Method::GET, "/");
        assert!(matches!(found, Some(Membership::Newcomer(KindId(0)))), "{found:?}");
        assert!(is_member(membership(&identifier, &[&format!("{forged}; {lease}")], &Method::GET, "/")));
    }

    #[test]
    fn an_application_cookie_seen_inside_makes_a_member_and_any_other_does_not() {
        let identifier = identifier(vec![SessionKind::default()], 100);
        let mut response = HeaderMap::new();
        response.append(SET_COOKIE, HeaderValue::from_static("JSESSIONID=abc-0123456789; Path=/; HttpOnly"));
        response.append(SET_COOKIE, HeaderValue::from_static("theme=dark"));
        identifier.learn_response(&response, SESSION);
        let asks = |lines: &[&str]| is_member(membership(&identifier, lines, &Method::GET, "/x"));
        assert!(asks(&["theme=dark; JSESSIONID=abc-0123456789"]));
        assert!(!asks(&["theme=dark"]));
        assert!(!asks(&["JSESSIONID=abd-0123456789"]));
        assert!(!asks(&["PHPSESSID=abc-0123456789"]));
        let visitor =
            identifier.read(&cookies(&["_shop_session=q-0123456789; sid=1-0123456789"]), None, || NOW);
        identifier.learn_request(&visitor, SESSION);
        assert!(asks(&["sid=1-0123456789"]) && asks(&["_shop_session=q-0123456789"]));
        identifier.end(&visitor, SESSION.1, NOW);
        assert!(!asks(&["sid=1-0123456789"]));
    }

    #[test]
    fn session_cookies_are_told_by_their_names_and_length() {
        let identifier = identifier(vec![SessionKind::default()], 10);
        let is = |name: &str, value: &str| identifier.is_session_cookie(name.as_bytes(), value.as_bytes());
        let long = "8f1c2d3e4b5a6978";
        for name in [
            "JSESSIONID",
            "PHPSESSID",
            "connect.sid",
            "SHOPSESSION",
            "laravel_session",
            "_shop_key",
            "ASP.NET_SessionId",
        ] {
            assert!(is(name, long), "{name}");
        }
        for name in ["theme", "csrftoken", "_ga", "lang", "s"] {
            assert!(!is(name, long), "{name}");
        }
        assert!(!is("session", "1"), "everybody could have that value");
    }

    #[test]
    fn with_declared_beginnings_other_requests_belong_to_no_session() {
        let shopping = SessionKind {
            name: "shopping".into(),
            begins: vec![pattern("POST", "/login")],
            ends: vec![pattern("POST", "/logout")],
            app_cookie: Some("basket".into()),
            ..SessionKind::default()
        };
        let api = SessionKind {
            name: "api".into(),
            begins: vec![pattern("GET", "/api/*")],
            ..SessionKind::default()
        };
        let identifier = identifier(vec![shopping, api], 100);
        let asks = |method: Method, path| membership(&identifier, &[], &method, path);
        assert!(matches!(asks(Method::POST, "/login"), Some(Membership::Newcomer(KindId(0)))));
        assert!(matches!(asks(Method::GET, "/api/x"), Some(Membership::Newcomer(KindId(1)))));
        assert!(asks(Method::GET, "/login").is_none());
        for disguise in ["/%6Cogin", "//login", "/x/../login", "/x/..;/login;a", "/x%2F..%2Flogin", "/LOGIN"]
        {
            let found = asks(Method::POST, disguise);
            assert!(matches!(found, Some(Membership::Newcomer(KindId(0)))), "{disguise}: {found:?}");
        }
        identifier.learn_request(&identifier.read(&cookies(&["basket=1"]), None, || NOW), SESSION);
        let ends = membership(&identifier, &["basket=1"], &Method::POST, "/logout");
        assert!(matches!(ends, Some(Membership::Member { ends: true, leased: false, .. })), "{ends:?}");
    }

    #[test]
    fn the_lease_of_a_session_that_has_ended_opens_nothing_but_for_what_was_asked_at_the_same_time() {
        let identifier = identifier(vec![SessionKind::default()], 100);
        let lease = |session| identifier.leases().issue(KindId(0), session, NOW, false);
        let (ended, other) = (lease(SESSION.1), lease(SessionId(10)));
        identifier.end(&Visitor::default(), SESSION.1, NOW);
        let is_inside = |lease: &HeaderValue, now: u32| {
            let pair = lease.to_str().unwrap().split(';').next().unwrap();
            identifier.read(&cookies(&[pair]), None, || now).proof.is_some()
        };
        assert!(is_inside(&ended, NOW + ENDING), "its page may still be loading");
        assert!(!is_inside(&ended, NOW + ENDING + 1) && is_inside(&other, NOW + ENDING + 1));
    }

    #[test]
    fn the_application_never_sees_the_lease() {
        let mut request = cookies(&["a=b; suimon=x;c=d", "__Host-suimon=y"]);
        strip_own_cookies(&mut request);
        assert_eq!(request.get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=b; c=d"]);
        let mut request = cookies(&["suimon=x"]);
        strip_own_cookies(&mut request);
        assert!(!request.contains_key(COOKIE));
    }

    fn room(tags: Vec<[u8; 2]>) -> Room {
        let pass = params::PassPage { page: "/human".to_owned(), for_everybody: true };
        let params = params::WaitingRoom { pass: Some(pass), ..params::WaitingRoom::default() };
        let lines = vec![None; tags.len()];
        Room::new(&params, None, &Keys::fresh().unwrap(), tags, lines)
    }

    /// Cookies of ours, of the application's, and what is none.
    fn cookie_lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let names = [
            "suimon",
            "__Host-suimon",
            "suimon-place-0a0b",
            "__Host-suimon-place-0a0b",
            "suimon-language",
            "suimon-refresh",
            "suimon-pass",
            "__Host-suimon-pass",
            "suimonx",
            "Suimon",
            "JSESSIONID",
            "theme",
            "",
            "x y",
        ];
        let pair = (prop::sample::select(names.to_vec()), "[ -~]{0,20}")
            .prop_map(|(name, value)| format!("{name}={value}"));
        let piece = prop_oneof![
            5 => pair.prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>(), 0..20),
        ];
        let line = prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.join(&b"; "[..]));
        prop::collection::vec(line, 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

        #[test]
        fn whatever_cookies_come_ours_are_taken_out_and_the_others_stay(lines in cookie_lines()) {
            let identifier = identifier(vec![SessionKind::default()], 10);
            let room = room(vec![[0x0a, 0x0b]]);
            let mut headers = HeaderMap::new();
            for line in lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok()) {
                headers.append(COOKIE, line);
            }
            let visitor = identifier.read(&headers, Some(&room), || NOW);
            prop_assert!(visitor.proof.is_none() && visitor.ticket(None).is_none(), "none of them is true");
            let all = |headers: &HeaderMap| -> Vec<Vec<u8>> {
                let lines = headers.get_all(COOKIE).into_iter();
                let all = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii));
                all.filter(|cookie| !cookie.is_empty()).map(<[u8]>::to_vec).collect()
            };
            let is_own = |cookie: &Vec<u8>| {
                let name = cookie.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
                let names: [&[u8]; 6] = [
                    b"suimon",
                    b"__Host-suimon",
                    b"suimon-language",
                    b"suimon-refresh",
                    b"suimon-pass",
                    b"__Host-suimon-pass",
                ];
                cookie.contains(&b'=')
                    && (names.contains(&name)
                        || name.starts_with(b"suimon-place-")
                        || name.starts_with(b"__Host-suimon-place-"))
            };
            let others: Vec<_> = all(&headers).into_iter().filter(|cookie| !is_own(cookie)).collect();
            prop_assert_eq!(visitor.has_own_cookie, all(&headers).iter().any(is_own));
            let mut stripped = headers.clone();
            strip_own_cookies(&mut stripped);
            prop_assert_eq!(all(&stripped), others);
            prop_assert!(!identifier.read(&stripped, Some(&room), || NOW).has_own_cookie);
            let mut again = stripped.clone();
            strip_own_cookies(&mut again);
            prop_assert_eq!(again, stripped);
        }

        #[test]
        fn a_true_one_is_found_among_whatever_else_there_is(
            before in cookie_lines(),
            session in any::<u64>(),
            number in 0_u64..1 << 40,
        ) {
            let identifier = identifier(vec![SessionKind::default()], 10);
            let room = room(identifier.leases().tags());
            let ticket = ticket::Ticket {
                kind: KindId(0),
                place: suimon_gate::Place { lane: suimon_gate::Lane::Normal, number },
                epoch: 1,
                start: 1,
                drawn: NOW,
                heard: NOW,
                again_after: 9,
                fewest_ahead: 9,
                turn_by: 9,
                moved: 0,
            };
            let mut headers = HeaderMap::new();
            let lease = identifier.leases().issue(KindId(0), SessionId(session), NOW, false);
            let own = [lease, room.tickets().cookie(&ticket, true)].map(|line| {
                let pair = line.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
                pair.to_vec()
            });
            for line in before.iter().chain(&own).filter_map(|line| HeaderValue::from_bytes(line).ok()) {
                headers.append(COOKIE, line);
            }
            let visitor = identifier.read(&headers, Some(&room), || NOW);
            prop_assert_eq!(visitor.proof.map(|proof| proof.session), Some(SessionId(session)));
            prop_assert_eq!(visitor.ticket(Some(KindId(0))), Some(ticket));
        }
    }
}
