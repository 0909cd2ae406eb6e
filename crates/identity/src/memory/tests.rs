//! Who is recalled, and how often.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use suimon_model::{Rng, seconds};

const VISIT: KindId = KindId(0);
const IDLE: SessionStatus = SessionStatus { is_leased: false, is_busy: false };

fn at(secs: f64) -> Instant {
    Instant::ORIGIN + seconds(secs)
}

fn client(key: u64) -> Client {
    Client { key, is_evident: false, is_shared: false, has_app_cookie: false }
}

fn session(n: u64) -> (KindId, SessionId) {
    (VISIT, SessionId(n))
}

#[test]
fn a_client_is_recalled_for_a_while_and_not_once_its_session_has_ended() {
    let mut memory = ClientMemory::<()>::default();
    memory.note(at(0.0), &client(1), session(9), Owed::All, None);
    let mut recall = |now, key, begun| memory.recall(at(now), &client(key), Some(VISIT), true, |_| begun);
    assert_eq!(recall(1.0, 1, Some(IDLE)), Some(session(9)));
    assert_eq!(recall(1.0, 2, Some(IDLE)), None, "another address or browser");
    assert_eq!(recall(600.0, 1, Some(IDLE)), Some(session(9)), "ten minutes from when it was last of use");
    assert_eq!(recall(1201.0, 1, Some(IDLE)), None);
    memory.note(at(2000.0), &client(1), session(9), Owed::All, None);
    memory.note(at(3000.0), &client(1), session(9), Owed::All, None);
    assert_eq!(memory.recall(at(3001.0), &client(1), Some(VISIT), true, |_| None), None, "it has ended");
}

#[test]
fn an_entry_shared_by_a_crowd_answers_so_often_and_no_more() {
    let mut memory = ClientMemory::<()>::default();
    memory.note(at(0.0), &client(1), session(9), Owed::All, None);
    let mut recalled = |is_evident: bool| {
        let crowd = Client { is_evident, ..client(1) };
        let asks = (0..36_000).map(|n| at(f64::from(n) / 60.0));
        asks.filter(|now| memory.recall(*now, &crowd, Some(VISIT), true, |_| Some(IDLE)).is_some()).count()
    };
    let strangers = recalled(false);
    assert!((120..=130).contains(&strangers), "{strangers} of 36,000 in ten minutes");
}

#[test]
fn strangers_do_not_use_up_what_is_for_those_who_come_from_a_page_of_the_site() {
    let mut memory = ClientMemory::<()>::default();
    memory.note(at(0.0), &client(1), session(9), Owed::All, None);
    let mut recall = |is_evident: bool| {
        let client = Client { is_evident, ..client(1) };
        memory.recall(at(1.0), &client, Some(VISIT), true, |_| Some(IDLE)).is_some()
    };
    assert_eq!((0..300).filter(|_| recall(false)).count(), 8);
    assert!(recall(true), "a visitor who was served asks for a second page");
}

#[test]
fn on_a_calm_site_only_what_is_plainly_one_visitor_is_taken_for_one() {
    let mut memory = ClientMemory::<()>::default();
    memory.note(at(0.0), &client(1), session(9), Owed::All, None);
    let mut recall = |secs, client: Client, begun| {
        memory.recall(at(secs), &client, Some(VISIT), false, |_| Some(begun)).is_some()
    };
    let busy = SessionStatus { is_busy: true, ..IDLE };
    assert!(recall(1.0, client(1), IDLE), "a robot's next request");
    assert!(!recall(1.0, client(1), busy), "two at once may be two visitors");
    assert!(recall(1.0, Client { is_evident: true, ..client(1) }, busy), "a page asks for more");
    assert!(!recall(1.0, Client { has_app_cookie: true, ..client(1) }, IDLE), "that is known next time");
    let shared = Client { is_shared: true, ..client(1) };
    assert!(!recall(1.1, shared, IDLE), "it may be a balancer's");
    assert!(recall(1.3, shared, IDLE), "or somebody at a keyboard");
}

#[test]
fn whoever_was_given_a_cookie_is_remembered_until_it_comes_back() {
    let mut memory = ClientMemory::<()>::default();
    memory.note(at(0.0), &client(1), session(9), Owed::UntilCookie, None);
    let recall = |memory: &mut ClientMemory<()>| {
        memory.recall(at(1.0), &client(1), Some(VISIT), false, |_| Some(IDLE))
    };
    assert!(recall(&mut memory).is_some(), "a robot that keeps no cookies");
    let evident = Client { is_evident: true, ..client(1) };
    assert!(memory.recall(at(1.0), &evident, Some(VISIT), true, |_| Some(IDLE)).is_none(), "nobody's way in");
    memory.comes_with_cookie(SessionId(8));
    assert!(recall(&mut memory).is_some());
    memory.comes_with_cookie(SessionId(9));
    assert!(recall(&mut memory).is_none());
}

#[test]
fn once_the_lease_is_there_as_many_are_recalled_as_were_served_and_two_strangers() {
    let leased = |_| Some(SessionStatus { is_leased: true, ..IDLE });
    let recalled = |owed: Owed, served: u32| {
        let mut memory = ClientMemory::<()>::default();
        memory.note(at(0.0), &client(1), session(9), owed, None);
        for _ in 1..served {
            assert!(memory.recall(at(1.0), &client(1), Some(VISIT), false, |_| Some(IDLE)).is_some());
        }
        let asks =
            |n: &i32| memory.recall(at(f64::from(10 * n)), &client(1), Some(VISIT), true, leased).is_some();
        (1..50).filter(asks).count()
    };
    assert_eq!(recalled(Owed::All, 1), 3);
    assert_eq!(recalled(Owed::All, 2), 4, "two who were taken for one");
    assert_eq!(recalled(Owed::Nothing, 1), 0, "served with a lease, and come with it");
}

/// Three hundred rush a gate that closes at a random moment. Each visitor served before asks again
/// within half a minute, is recalled, and comes with the lease from then on. Up to three share an
/// address and a browser.
#[test]
fn in_a_hundred_rushes_nobody_served_before_the_gate_closed_is_taken_for_a_stranger() {
    for seed in 0..100 {
        let mut rng = Rng::stream(seed, 1);
        let mut memory = ClientMemory::<()>::default();
        let mut leased = BTreeSet::new();
        let closes = at(rng.between(0.05, 1.0));
        let mut events = BTreeMap::new();
        for visitor in 0..300_u64 {
            let mut comes = rng.between(0.0, 1.0);
            for page in 0..3 {
                events.insert(at(comes), (visitor, page));
                comes += rng.between(0.3, 30.0);
            }
        }
        let mut served = BTreeMap::new();
        let mut leases = BTreeMap::new();
        for (now, (visitor, page)) in events {
            if let Some(lease) = leases.get(&visitor) {
                leased.insert(*lease);
                continue;
            }
            let is_pressed = now > closes;
            let household = visitor / (1 + seed % 3);
            let client = Client { is_evident: page > 0 && visitor % 2 == 0, ..client(household) };
            let begun = |it| Some(SessionStatus { is_leased: leased.contains(&it), is_busy: false });
            let found = memory.recall(now, &client, Some(VISIT), is_pressed, begun);
            if is_pressed {
                assert!(
                    found.is_some() || !served.contains_key(&visitor),
                    "seed {seed}: {visitor} is sent back"
                );
                leases.extend(found.map(|(_, session)| (visitor, session)));
            } else {
                let own = found.unwrap_or(session(visitor * 10 + page));
                if found.is_none() {
                    memory.note(now, &client, own, Owed::All, None);
                }
                served.insert(visitor, own);
            }
        }
        assert!(!served.is_empty(), "seed {seed}: the gate was never open");
    }
}
