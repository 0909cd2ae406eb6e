//! What a ticket says comes back as it was said, for as long as it is good.

use super::*;
use proptest::prelude::*;

const LIFE: u32 = 3600;
const NOW: u32 = 1_800_000_000;
const TAGS: [[u8; 2]; 2] = [[1, 2], [3, 4]];

fn tickets(keys: &Keys) -> Tickets {
    Tickets::new(keys, LIFE, 600, TAGS.to_vec())
}

fn text(tickets: &Tickets, ticket: &Ticket) -> Vec<u8> {
    let mut text = Vec::new();
    tickets.write(ticket, &mut text);
    text
}

/// One that was drawn, and whose holder was heard of, at these times.
fn at(drawn: u32, heard: u32) -> Ticket {
    Ticket {
        kind: KindId(1),
        position: Position { lane: Lane::Normal, number: 77 },
        epoch: 5,
        start: 1,
        drawn,
        heard,
        again_after: 30,
        fewest_ahead: 900,
        turn_by: NOW + 60,
        moved: 0,
    }
}

fn is_good(drawn: u32, heard: u32, now: u32) -> bool {
    let tickets = tickets(&Keys::fresh().unwrap());
    tickets.read(&text(&tickets, &at(drawn, heard)), now).is_some()
}

#[test]
fn a_ticket_is_good_as_long_as_its_holder_goes_on_asking() {
    assert!(is_good(NOW, NOW, NOW));
    assert!(is_good(NOW, NOW, NOW + LIFE - 1) && !is_good(NOW, NOW, NOW + LIFE));
    assert!(is_good(NOW, NOW + 5 * LIFE, NOW + 6 * LIFE - 1), "drawn long ago, and heard of since");
}

#[test]
fn a_clock_that_is_ahead_takes_nobodys_place_and_makes_none_out_of_time() {
    assert!(is_good(NOW + 65, NOW + 65, NOW), "our own clock was a minute ahead, and is set right");
    assert!(is_good(NOW + LIFE - 1, NOW + LIFE - 1, NOW));
    assert!(!is_good(NOW + LIFE, NOW, NOW), "ahead by all of its life");
    assert!(!is_good(u32::MAX, u32::MAX, NOW));
    // Drawn here, and heard of there, by a clock that is an hour ahead.
    assert!(is_good(NOW - 60, NOW + 3600, NOW));
    // The ends of time.
    assert!(is_good(0, 0, 0) && is_good(u32::MAX, u32::MAX, u32::MAX));
}

#[test]
fn the_cookie_is_of_its_kind_and_of_its_connection() {
    let tickets = tickets(&Keys::fresh().unwrap());
    let plain = tickets.cookie(&at(NOW, NOW), false);
    let plain = plain.to_str().unwrap();
    assert!(
        plain.starts_with("suimon-ticket-0304=")
            && plain.ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax")
    );
    let secure = tickets.cookie(&at(NOW, NOW), true);
    let secure = secure.to_str().unwrap();
    assert!(
        secure.starts_with("__Host-suimon-ticket-0304=")
            && secure.ends_with("; HttpOnly; SameSite=Lax; Secure")
    );
    let value = plain.split(['=', ';']).nth(1).unwrap();
    assert_eq!((value.len(), value), (71, tickets.header(&at(NOW, NOW)).to_str().unwrap()));
    let gone = tickets.withdraw(KindId(0), false);
    assert!(gone.to_str().unwrap().starts_with("suimon-ticket-0102=; Path=/; Max-Age=0;"));
}

prop_compose! {
    fn ticket()(
        kind in 0..TAGS.len() as u32,
        lane in prop::sample::select(Lane::ALL.to_vec()),
        number in 0..=NUMBER_MAX,
        (epoch, start, moved) in any::<(u32, u16, u16)>(),
        drawn in 0..NOW + LIFE,
        heard in NOW - LIFE + 1..=u32::MAX,
        (again_after, fewest_ahead, turn_by) in any::<(u16, u32, u32)>(),
    ) -> Ticket {
        let position = Position { lane, number };
        Ticket { kind: KindId(kind), position, epoch, start, drawn, heard, again_after, fewest_ahead, turn_by, moved }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_and_what_is_read_is_written_the_same(ticket in ticket(), other in ticket()) {
        let tickets = tickets(&Keys::fresh().unwrap());
        let own = text(&tickets, &ticket);
        prop_assert_eq!(tickets.read(&own, NOW), Some(ticket));
        prop_assert_eq!(text(&tickets, &tickets.read(&own, NOW).unwrap()), own.as_slice());
        prop_assert_eq!(text(&tickets, &other) == own, other == ticket);
        // A session of its own for each place, whatever else is told of it.
        let is_same = |a: &Ticket, b: &Ticket| (a.kind, a.position, a.epoch, a.start) == (b.kind, b.position, b.epoch, b.start);
        prop_assert_eq!(tickets.session(&ticket) == tickets.session(&other), is_same(&ticket, &other));
        let told = Ticket { heard: other.heard, moved: other.moved, turn_by: other.turn_by, ..ticket };
        prop_assert_eq!(tickets.session(&ticket), tickets.session(&told));
    }
}
