use super::*;
use proptest::prelude::*;
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(100);
const SKEW: Duration = Duration::from_secs(10);
/// The gateway's clock at its origin, microseconds since 1970.
const WALL: u64 = 1_700_000_000_000_000;

fn ring() -> Keyring {
    Keyring::new([(0, [5; 32])]).unwrap()
}

fn book() -> Book {
    let mut book = Book::new(SKEW);
    for (node, name) in ["a", "b"].into_iter().enumerate() {
        book.name(node, Some(name.to_owned()));
    }
    book
}

/// An agent of node `a` that started so long after the gateway's origin, with a clock that is wrong
/// by so many seconds.
struct Agent {
    started: Duration,
    clock_off_s: i64,
    sequence: u64,
}

impl Agent {
    fn started(at: f64) -> Agent {
        Agent { started: Duration::from_secs_f64(at), clock_off_s: 0, sequence: 0 }
    }

    fn clock(&self, at: Duration) -> u64 {
        (WALL + micros(at)).saturating_add_signed(self.clock_off_s * 1_000_000)
    }

    /// Returns the report that it sends at this moment.
    fn report(&mut self, at: f64) -> Report {
        let at = Duration::from_secs_f64(at);
        self.sequence += 1;
        Report {
            name: "a".to_owned(),
            boot_us: self.clock(self.started),
            sequence: self.sequence,
            since_boot: Duration::from_micros(micros(at.saturating_sub(self.started))),
            clock_us: self.clock(at),
            load: Load {
                every: EVERY,
                run_queue: self.sequence as u32,
                mean_100ms_milli: 0,
                mean_1s_milli: 0,
                pressure: None,
                in_flight: None,
                processors: 1,
            },
        }
    }

    fn send(&mut self, at: f64) -> Vec<u8> {
        self.report(at).encode(&ring()).unwrap()
    }
}

/// Lets a datagram arrive at a gateway, so many seconds after its origin.
fn arrives(book: &mut Book, at: f64, bytes: &[u8]) -> Result<Accepted, Refused> {
    let at = Duration::from_secs_f64(at);
    book.handle_datagram(Instant::ORIGIN + at, WALL + micros(at), bytes, &ring())
}

fn refused(book: &Book, refused: Refused) -> u64 {
    book.refused().find(|(other, _)| *other == refused).unwrap().1
}

#[test]
fn reports_of_a_run_are_believed_one_after_the_other() {
    let (mut book, mut agent) = (book(), Agent::started(1.0));
    for step in 0..5 {
        let at = 2.0 + 0.1 * f64::from(step);
        let datagram = agent.send(at);
        let accepted = arrives(&mut book, at + 0.001, &datagram).unwrap();
        assert_eq!((accepted.node, accepted.load.run_queue), (0, step + 1));
    }
    assert_eq!((book.accepted(), book.refused().map(|(_, count)| count).sum()), (5, 0));
}

#[test]
fn a_copy_and_what_was_overtaken_are_refused() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let (first, second) = (agent.send(1.0), agent.send(1.1));
    assert!(arrives(&mut book, 1.1, &second).is_ok());
    assert_eq!(arrives(&mut book, 1.1, &second), Err(Refused::Replayed));
    assert_eq!(arrives(&mut book, 1.2, &first), Err(Refused::Replayed));
    assert_eq!(refused(&book, Refused::Replayed), 2);
}

#[test]
fn only_nodes_of_the_list_count_and_each_for_itself() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let b = Report { name: "b".to_owned(), ..agent.report(1.0) };
    assert_eq!(arrives(&mut book, 1.0, &b.encode(&ring()).unwrap()).unwrap().node, 1);
    let c = Report { name: "c".to_owned(), ..agent.report(1.1) };
    assert_eq!(arrives(&mut book, 1.1, &c.encode(&ring()).unwrap()), Err(Refused::UnknownNode));
    let a = agent.send(1.2);
    assert_eq!(arrives(&mut book, 1.2, &a).unwrap().node, 0);
}

#[test]
fn nodes_come_and_go_and_one_that_comes_again_is_as_new() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let datagrams: Vec<_> = (0..3).map(|step| agent.send(1.0 + f64::from(step))).collect();
    assert!(arrives(&mut book, 1.0, &datagrams[0]).is_ok());
    book.name(0, None);
    assert_eq!(arrives(&mut book, 2.0, &datagrams[1]), Err(Refused::UnknownNode));
    book.name(5, Some("a".to_owned()));
    assert!(book.is_named(5, "a") && !book.is_named(0, "a"));
    let accepted = arrives(&mut book, 3.0, &datagrams[2]).unwrap();
    assert_eq!((accepted.node, &*accepted.name), (5, "a"));
    // Another one at its place.
    book.name(5, Some("c".to_owned()));
    let datagram = agent.send(4.0);
    assert_eq!(arrives(&mut book, 4.0, &datagram), Err(Refused::UnknownNode));
    book.name(NODES_MAX, Some("a".to_owned()));
    assert!(!book.is_named(NODES_MAX, "a"), "there is a bound");
}

#[test]
fn what_was_held_back_for_longer_than_three_periods_is_late() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let datagrams: Vec<_> = (0..4).map(|step| agent.send(1.0 + 0.1 * f64::from(step))).collect();
    assert!(arrives(&mut book, 1.0, &datagrams[0]).is_ok());
    assert!(arrives(&mut book, 1.399, &datagrams[1]).is_ok(), "within three periods");
    assert_eq!(arrives(&mut book, 1.502, &datagrams[2]), Err(Refused::Late));
    // Nor is it of use again.
    assert_eq!(arrives(&mut book, 1.503, &datagrams[2]), Err(Refused::Replayed));
    assert!(arrives(&mut book, 1.504, &datagrams[3]).is_ok());
}

#[test]
fn the_next_run_of_an_agent_is_believed_and_recordings_of_the_last_one_are_not() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let recorded: Vec<_> = (0..50).map(|step| agent.send(1.0 + 0.1 * f64::from(step))).collect();
    assert!(arrives(&mut book, 1.0, &recorded[0]).is_ok());
    let mut next = Agent::started(3.0);
    let datagram = next.send(3.0);
    assert!(arrives(&mut book, 3.0, &datagram).is_ok(), "its sequence begins anew");
    for (step, recording) in recorded.iter().enumerate() {
        let at = 3.1 + 0.1 * step as f64;
        assert_eq!(arrives(&mut book, at, recording), Err(Refused::OldBoot));
    }
    let datagram = next.send(9.0);
    assert!(arrives(&mut book, 9.0, &datagram).is_ok());
}

#[test]
fn recordings_are_of_no_use_while_the_present_run_is_held_back_however_long() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let recorded: Vec<_> = (0..600).map(|step| agent.send(0.1 * f64::from(step))).collect();
    let datagram = Agent::started(60.0).send(60.0);
    assert!(arrives(&mut book, 60.0, &datagram).is_ok());
    for at in 60..200 {
        for recording in recorded.iter().step_by(7) {
            let found = arrives(&mut book, f64::from(at) + 0.5, recording);
            assert!(matches!(found, Err(Refused::OldBoot | Refused::ClockSkew)), "{at} s: {found:?}");
        }
    }
}

#[test]
fn a_gateway_that_has_just_started_takes_no_recording_older_than_the_skew() {
    let mut agent = Agent::started(0.0);
    let recorded: Vec<_> = (0..1000).map(|step| agent.send(0.1 * f64::from(step))).collect();
    // It knows nothing, and hears recordings first.
    let mut book = book();
    assert_eq!(arrives(&mut book, 100.0, &recorded[0]), Err(Refused::ClockSkew));
    assert_eq!(arrives(&mut book, 100.0, &recorded[899]), Err(Refused::ClockSkew));
    // A young one counts, until the agent is heard: then no recording does any more.
    assert!(arrives(&mut book, 100.0, &recorded[990]).is_ok());
    let datagram = agent.send(100.1);
    assert!(arrives(&mut book, 100.1, &datagram).is_ok());
    for recording in &recorded {
        assert_eq!(arrives(&mut book, 100.2, recording), Err(Refused::Replayed));
    }
}

#[test]
fn an_agent_whose_clock_was_set_back_is_believed_again_after_twice_the_skew() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let datagram = agent.send(1.0);
    assert!(arrives(&mut book, 1.0, &datagram).is_ok());
    let mut next = Agent { clock_off_s: -8, ..Agent::started(2.0) };
    let datagram = next.send(2.0);
    assert_eq!(arrives(&mut book, 2.0, &datagram), Err(Refused::OldBoot));
    let datagram = next.send(20.9);
    assert_eq!(arrives(&mut book, 20.9, &datagram), Err(Refused::OldBoot));
    let datagram = next.send(21.1);
    assert!(arrives(&mut book, 21.1, &datagram).is_ok());
}

#[test]
fn a_clock_that_is_wrong_is_told_and_no_matter_once_a_run_is_known() {
    let (mut book, mut agent) = (book(), Agent { clock_off_s: -11, ..Agent::started(0.0) });
    let datagram = agent.send(1.0);
    assert_eq!(arrives(&mut book, 1.0, &datagram), Err(Refused::ClockSkew));
    let mut agent = Agent::started(0.0);
    let datagram = agent.send(2.0);
    assert!(arrives(&mut book, 2.0, &datagram).is_ok());
    // Set by hours, in the middle of a run: the time since the start is what counts.
    let wrong = Report { clock_us: 1, ..agent.report(2.1) };
    assert!(arrives(&mut book, 2.1, &wrong.encode(&ring()).unwrap()).is_ok());
}

#[test]
fn an_agent_that_was_suspended_is_believed_again_after_twice_the_skew() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let datagram = agent.send(1.0);
    assert!(arrives(&mut book, 1.0, &datagram).is_ok());
    // Its clock stood still for an hour; its wall clock is right.
    let after = |agent: &mut Agent, at: f64| {
        let report = Report { clock_us: WALL + (at * 1e6) as u64, ..agent.report(at - 3600.0) };
        report.encode(&ring()).unwrap()
    };
    let datagram = after(&mut agent, 3601.0);
    // It is late, and after so long a silence begins anew at once.
    assert!(arrives(&mut book, 3601.0, &datagram).is_ok());
    let datagram = after(&mut agent, 3601.1);
    assert!(arrives(&mut book, 3601.1, &datagram).is_ok());
}

#[test]
fn a_constant_delay_is_believed_only_once_the_clock_says_so_and_for_no_more_than_the_skew() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    let datagram = agent.send(1.0);
    assert!(arrives(&mut book, 1.0, &datagram).is_ok());
    // From now on an attacker holds each back for 11 s: more than the skew.
    for step in 0..600 {
        let sent = 1.1 + 0.1 * f64::from(step);
        let datagram = agent.send(sent);
        assert_eq!(arrives(&mut book, sent + 11.0, &datagram), Err(Refused::Late));
    }
}

#[test]
fn clocks_that_drift_apart_do_not_make_reports_late() {
    let (mut book, mut agent) = (book(), Agent::started(0.0));
    // 100 µs per second, for a day; the period is 100 ms, but ten minutes apart is enough to see it.
    for step in 0..144 {
        let sent = 600.0 * f64::from(step);
        let datagram = agent.send(sent);
        assert!(arrives(&mut book, sent * 1.0001, &datagram).is_ok(), "after {sent} s");
    }
}

proptest! {
    /// However an attacker delays, drops, repeats and reorders what an agent sends, a report that
    /// counts is at most as old as the skew and three periods; and once one came at once, no older
    /// than three periods.
    #[test]
    fn nothing_old_counts(
        ways in proptest::collection::vec((0u32..400, prop_oneof![0u32..20, 0u32..4000, 0u32..40_000]), 1..120),
        starts in 0u32..400,
    ) {
        let mut agent = Agent::started(0.0);
        let sent: Vec<_> = (0..400).map(|step| agent.send(0.1 * f64::from(step))).collect();
        let mut arrivals: Vec<(f64, f64, usize)> = ways
            .iter()
            .map(|(which, delay_ms)| {
                let sent = 0.1 * f64::from(*which);
                (sent + f64::from(*delay_ms) / 1000.0, sent, *which as usize)
            })
            .filter(|(at, ..)| *at >= 0.1 * f64::from(starts))
            .collect();
        arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut book = book();
        // When the last was accepted, and the age of the youngest since the run last began anew.
        let mut before: Option<(f64, f64)> = None;
        let mut last = 0;
        for (at, sent_at, which) in arrivals {
            let age = at - sent_at;
            let Ok(accepted) = arrives(&mut book, at, &sent[which]) else { continue };
            prop_assert!(accepted.load.run_queue > last, "sequence numbers rise");
            last = accepted.load.run_queue;
            prop_assert!(age <= 10.0 + 0.301 + 0.02, "{age} s old");
            let least = match before {
                None => age,
                // One that is older than the youngest, and counts as no slower, begins anew: that
                // takes twice the skew without a report in time.
                Some((accepted_at, least)) if accepted.delay.is_zero() && age > least + 0.02 => {
                    prop_assert!(at - accepted_at > 20.0, "begins anew after {} s", at - accepted_at);
                    age
                }
                Some((_, least)) => {
                    prop_assert!(age <= least + 0.301 + 0.02, "{age} s old, and one took {least} s");
                    least.min(age)
                }
            };
            before = Some((at, least));
        }
    }
}
