//! What cookies say of a visitor, and what becomes of those that are ours.

use super::known::ENDING;
use super::*;
use crate::keys::Keys;
use proptest::prelude::*;
use suimon_params::{RoutePattern, SessionKind, Sessions};
use suimon_testing::headers;

const NOW: u32 = 1_000_000;
const SESSION: (KindId, SessionId) = (KindId(0), SessionId(9));

fn pattern(method: &str, path: &str) -> RoutePattern {
    RoutePattern { method: Some(method.to_owned()), path: path.to_owned() }
}

fn identifier(kinds: Vec<SessionKind>, aliases_max: usize) -> Identifier {
    let sessions = Sessions { kinds, detect_cookies: true };
    let names: Vec<_> = sessions.kinds.iter().map(|kind| kind.name.clone()).collect();
    let leases = Leases::new(Keys::fresh().unwrap(), 3600, None, names.iter().map(String::as_str)).unwrap();
    Identifier::new(&sessions, leases, aliases_max, [7; 32], std::hash::RandomState::new())
}

fn cookies(lines: &[&str]) -> HeaderMap {
    headers(&COOKIE, lines)
}

fn membership(identifier: &Identifier, lines: &[&str], method: &Method, path: &str) -> Option<Membership> {
    identifier.membership(&identifier.read(&cookies(lines), None, || NOW), method, path, |_| true)
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
    identifier.learn_response(&Visitor::default(), &response, SESSION, || NOW);
    let asks = |lines: &[&str]| is_member(membership(&identifier, lines, &Method::GET, "/x"));
    assert!(asks(&["theme=dark; JSESSIONID=abc-0123456789"]));
    assert!(!asks(&["theme=dark"]));
    assert!(!asks(&["JSESSIONID=abd-0123456789"]));
    assert!(!asks(&["PHPSESSID=abc-0123456789"]));
    let visitor = identifier.read(&cookies(&["_shop_session=q-0123456789; sid=1-0123456789"]), None, || NOW);
    identifier.learn_request(&visitor, SESSION);
    assert!(asks(&["sid=1-0123456789"]) && asks(&["_shop_session=q-0123456789"]));
    identifier.end(SESSION.1, NOW);
    assert!(!asks(&["sid=1-0123456789"]));
    assert!(!asks(&["JSESSIONID=abc-0123456789"]), "nor by the cookie that it did not come with");
}

/// Returns what is learned where the application gives `cookie` to a visitor of a session.
fn given(identifier: &Identifier, cookie: &str, session: u64) -> bool {
    let response = headers(&SET_COOKIE, &[cookie]);
    identifier.learn_response(&Visitor::default(), &response, (KindId(0), SessionId(session)), || NOW)
}

#[test]
fn a_cookie_that_everybody_is_given_tells_nobody() {
    let identifier = identifier(vec![SessionKind::default()], 100);
    let asks = || is_member(membership(&identifier, &["session=8f1c2d3e4b5a"], &Method::GET, "/"));
    assert!(given(&identifier, "session=8f1c2d3e4b5a; HttpOnly", 1));
    assert!(given(&identifier, "session=8f1c2d3e4b5a; HttpOnly", 1), "renewed");
    assert!(asks());
    assert!(!given(&identifier, "session=8f1c2d3e4b5a; HttpOnly", 2), "it is another's");
    assert!(asks(), "the first is still known by it");
    (3..6).for_each(|other| assert!(!given(&identifier, "session=8f1c2d3e4b5a", other)));
    assert!(!asks());
    let visitor = identifier.read(&cookies(&["session=8f1c2d3e4b5a"]), None, || NOW);
    identifier.learn_request(&visitor, SESSION);
    assert!(!asks(), "and is not learned again");
}

#[test]
fn what_takes_a_cookie_away_opens_nothing() {
    let shopping = SessionKind { app_cookie: Some("basket".into()), ..SessionKind::default() };
    let identifier = identifier(vec![shopping], 100);
    for line in [
        "PHPSESSID=deleted; Max-Age=0",
        "basket=0; Max-Age=0",
        "basket=deleted",
        "basket=; Path=/",
        "basket=\"\"",
        "basket=b012345",
    ] {
        assert!(!given(&identifier, line, 1), "{line}");
        let pair = line.split(';').next().unwrap();
        assert!(!is_member(membership(&identifier, &[pair], &Method::GET, "/")), "{line}");
    }
}

#[test]
fn a_cookie_by_a_name_nobody_knows_is_learned_by_what_it_does() {
    let identifier = identifier(vec![SessionKind::default()], 100);
    let pair =
        |n: u64| format!("wordpress_sec_5c016e8f0f95={}%7C{n}", blake3::hash(&n.to_le_bytes()).to_hex());
    let asks = |n| is_member(membership(&identifier, &[&pair(n)], &Method::GET, "/"));
    for session in 0..3 {
        assert!(!asks(0), "{session}");
        assert!(!given(&identifier, &format!("{}; Secure; HttpOnly", pair(session)), session));
    }
    assert!((0..3).all(asks), "and so are those that were given before it was known");
    assert!(given(&identifier, &format!("{}; httponly", pair(7)), 7) && asks(7) && !asks(8));
    assert!(!given(&identifier, "other=8f1c2d3e4b5a69788f1c", 1), "scripts may read it");
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
    let api =
        SessionKind { name: "api".into(), begins: vec![pattern("GET", "/api/*")], ..SessionKind::default() };
    let identifier = identifier(vec![shopping, api], 100);
    let asks = |method: Method, path| membership(&identifier, &[], &method, path);
    assert!(matches!(asks(Method::POST, "/login"), Some(Membership::Newcomer(KindId(0)))));
    assert!(matches!(asks(Method::GET, "/api/x"), Some(Membership::Newcomer(KindId(1)))));
    assert!(asks(Method::GET, "/login").is_none());
    for disguise in ["/%6Cogin", "//login", "/x/../login", "/x/..;/login;a", "/x%2F..%2Flogin", "/LOGIN"] {
        let found = asks(Method::POST, disguise);
        assert!(matches!(found, Some(Membership::Newcomer(KindId(0)))), "{disguise}: {found:?}");
    }
    identifier.learn_request(&identifier.read(&cookies(&["basket=b0123456"]), None, || NOW), SESSION);
    let ends = membership(&identifier, &["basket=b0123456"], &Method::POST, "/logout");
    assert!(matches!(ends, Some(Membership::Member { ends: true, leased: false, .. })), "{ends:?}");
}

#[test]
fn the_cookies_of_a_session_that_the_gate_has_not_are_a_newcomers_and_are_forgotten() {
    let identifier = identifier(vec![SessionKind::default()], 100);
    let visitor = identifier.read(&cookies(&["sid=1-0123456789"]), None, || NOW);
    identifier.learn_request(&visitor, SESSION);
    let asks = |is_begun: bool| identifier.membership(&visitor, &Method::GET, "/", |_| is_begun);
    assert!(is_member(asks(true)));
    assert!(matches!(asks(false), Some(Membership::Newcomer(_))));
    assert!(!is_member(asks(true)), "it is not asked again");
    // Nor does a lease of long ago open anything.
    let lease = identifier.leases().issue(SESSION.0, SESSION.1, NOW - 3600, false);
    let pair = lease.to_str().unwrap().split(';').next().unwrap();
    let visitor = identifier.read(&cookies(&[pair]), None, || NOW);
    let asks = |is_begun: bool| identifier.membership(&visitor, &Method::GET, "/", |_| is_begun);
    assert!(matches!(asks(true), Some(Membership::Member { leased: false, .. })));
    assert!(matches!(asks(false), Some(Membership::Newcomer(_))));
}

#[test]
fn a_cookie_that_visitors_of_several_sessions_come_with_is_everybodys() {
    let identifier = identifier(vec![SessionKind::default()], 100);
    let visitor = identifier.read(&cookies(&["my_session=9-0123456789"]), None, || NOW);
    let asks = || is_member(identifier.membership(&visitor, &Method::GET, "/", |_| true));
    for session in 1..=4 {
        identifier.learn_request(&visitor, (KindId(0), SessionId(session)));
    }
    assert!(!asks());
    // A visitor who comes back after each of their sessions has ended is no crowd.
    let visitor = identifier.read(&cookies(&["sid=1-0123456789"]), None, || NOW);
    for session in 10..20 {
        identifier.learn_request(&visitor, (KindId(0), SessionId(session)));
        assert!(is_member(identifier.membership(&visitor, &Method::GET, "/", |_| true)));
        identifier.end(SessionId(session), NOW);
    }
}

#[test]
fn however_many_newcomers_come_whoever_is_inside_stays_known() {
    let max = 100;
    let identifier = identifier(vec![SessionKind::default()], max);
    let visitor = |n: u64| identifier.read(&cookies(&[&format!("sid={n}-0123456789")]), None, || NOW);
    let asks = |n| is_member(identifier.membership(&visitor(n), &Method::GET, "/", |_| true));
    identifier.learn_request(&visitor(0), SESSION);
    assert!(asks(0), "it came back once");
    for n in 1..=3 * max as u64 {
        identifier.learn_request(&visitor(n), (KindId(0), SessionId(n)));
    }
    assert!(asks(0));
    assert!(!asks(1), "there is a bound");
}

#[test]
fn forged_cookies_of_ours_are_checked_so_often_and_no_more() {
    let identifier = identifier(vec![SessionKind::default()], 100);
    let lease = identifier.leases().issue(SESSION.0, SESSION.1, NOW, false);
    let true_one = lease.to_str().unwrap().split(';').next().unwrap().to_owned();
    let forged = format!("suimon={}", "A".repeat(lease::TEXT_LEN));
    let with = |count: usize| {
        let line = [vec![forged.as_str(); count], vec![true_one.as_str()]].concat().join("; ");
        identifier.read(&cookies(&[&line]), None, || NOW).lease(None).is_some()
    };
    assert!(with(CHECKS_MAX - 1));
    assert!(!with(CHECKS_MAX));
    // What is not even as long as one costs nothing.
    let line = format!("{}; {true_one}", vec!["suimon=no"; 300].join("; "));
    assert!(identifier.read(&cookies(&[&line]), None, || NOW).lease(None).is_some());
}

#[test]
fn the_lease_of_a_session_that_has_ended_opens_nothing_but_for_what_was_asked_at_the_same_time() {
    let identifier = identifier(vec![SessionKind::default()], 100);
    let lease = |session| identifier.leases().issue(KindId(0), session, NOW, false);
    let (ended, other) = (lease(SESSION.1), lease(SessionId(10)));
    identifier.end(SESSION.1, NOW);
    let is_inside = |lease: &HeaderValue, now: u32| {
        let pair = lease.to_str().unwrap().split(';').next().unwrap();
        identifier.read(&cookies(&[pair]), None, || now).lease(None).is_some()
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

/// What reads tickets and passes of one line.
struct Line {
    tickets: Tickets,
    passes: Passes,
}

impl Line {
    fn new(tags: Vec<[u8; 2]>) -> Line {
        let keys = Keys::fresh().unwrap();
        let passes = Passes::new(&keys, "/human", true, 3600);
        Line { tickets: Tickets::new(&keys, 3600, 120, tags), passes }
    }

    fn credentials(&self) -> Credentials<'_> {
        Credentials { tickets: &self.tickets, passes: Some(&self.passes) }
    }
}

/// Cookies of ours, of the application's, and what is none.
fn cookie_lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let names = [
        "suimon",
        "__Host-suimon",
        "suimon-0a0b",
        "__Host-suimon-0a0b",
        "suimon-ticket-0a0b",
        "__Host-suimon-ticket-0a0b",
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
        let in_line = Line::new(vec![[0x0a, 0x0b]]);
        let mut headers = HeaderMap::new();
        for line in lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok()) {
            headers.append(COOKIE, line);
        }
        let visitor = identifier.read(&headers, Some(in_line.credentials()), || NOW);
        prop_assert!(visitor.lease(None).is_none() && visitor.ticket(None).is_none(), "none of them is true");
        let unread = Visitor::unread(&headers);
        prop_assert_eq!(unread.has_own_cookie, visitor.has_own_cookie, "who needs to know no more");
        let all = |headers: &HeaderMap| -> Vec<Vec<u8>> {
            let lines = headers.get_all(COOKIE).into_iter();
            let all = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii));
            all.filter(|cookie| !cookie.is_empty()).map(<[u8]>::to_vec).collect()
        };
        let is_own = |cookie: &Vec<u8>| {
            let name = cookie.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
            let is_tagged = [&b"suimon-0a0b"[..], b"__Host-suimon-0a0b"].contains(&name);
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
                    || is_tagged
                    || name.starts_with(b"suimon-ticket-")
                    || name.starts_with(b"__Host-suimon-ticket-"))
        };
        let others: Vec<_> = all(&headers).into_iter().filter(|cookie| !is_own(cookie)).collect();
        prop_assert_eq!(visitor.has_own_cookie, all(&headers).iter().any(is_own));
        let mut stripped = headers.clone();
        strip_own_cookies(&mut stripped);
        prop_assert_eq!(all(&stripped), others);
        prop_assert!(!identifier.read(&stripped, Some(in_line.credentials()), || NOW).has_own_cookie);
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
        let in_line = Line::new(identifier.leases().tags());
        let ticket = ticket::Ticket {
            kind: KindId(0),
            position: suimon_line::Position { lane: suimon_line::Lane::Normal, number },
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
        let own = [lease, in_line.tickets.cookie(&ticket, true)].map(|line| {
            let pair = line.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
            pair.to_vec()
        });
        for line in before.iter().chain(&own).filter_map(|line| HeaderValue::from_bytes(line).ok()) {
            headers.append(COOKIE, line);
        }
        let visitor = identifier.read(&headers, Some(in_line.credentials()), || NOW);
        prop_assert_eq!(visitor.lease(None).map(|proof| proof.session), Some(SessionId(session)));
        prop_assert_eq!(visitor.ticket(Some(KindId(0))), Some(ticket));
    }
}
