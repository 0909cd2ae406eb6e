//! A crowd in a line, and how different rules treat people who leave.
//!
//! There is no application here: sessions may begin at a fixed rate. The question is how much of
//! the rate is used, how bursty admissions are, and in what order, when some take a number and
//! never come back, some give up, and some are away for a while. The gateway's rule is its own
//! code; the others are modelled after their documentation.

mod policy;

pub use policy::Policy;

use policy::{Answer, AtGate, Rule};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use suimon_line::ENTERING;
use suimon_model::{Duration, Instant, Rng, seconds};

/// The crowd.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Crowd {
    /// People; half of them come in the first minute, half in about five.
    pub people: u32,
    /// Clients that take a number at these times, too, and never come back.
    pub dead: u32,
    /// Mean time after which a waiting person gives up, seconds, exponential.
    pub patience_s: f64,
    /// Share of people who are away once, for one to three minutes.
    pub away: f64,
    /// Sessions that may begin per second.
    pub per_second: f64,
    /// How that rate changes.
    pub pace: RateProfile,
    /// Seed.
    pub seed: u64,
}

/// How the rate at which sessions may begin changes, as a share of the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RateProfile {
    /// Not at all.
    #[default]
    Steady,
    /// It begins at a third and grows for ten minutes, as while a law learns.
    Grows,
    /// It is halved after five minutes, for good.
    Falls,
    /// In each fifth minute no session may begin.
    Pauses,
}

impl RateProfile {
    /// Returns the share at `now`.
    pub(crate) fn at(self, now: Instant) -> f64 {
        let minutes = now.as_secs_f64() / 60.0;
        match self {
            RateProfile::Steady => 1.0,
            RateProfile::Grows => (1.0 + 2.0 * minutes / 10.0).min(3.0) / 3.0,
            RateProfile::Falls if minutes < 5.0 => 1.0,
            RateProfile::Falls => 0.5,
            RateProfile::Pauses if minutes % 5.0 < 4.0 => 1.0,
            RateProfile::Pauses => 0.0,
        }
    }
}

impl Default for Crowd {
    fn default() -> Self {
        Crowd {
            people: 100_000,
            dead: 0,
            patience_s: 3600.0,
            away: 0.05,
            per_second: 50.0,
            pace: RateProfile::Steady,
            seed: 1,
        }
    }
}

/// The result.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Result {
    /// Sessions begun.
    pub begun: u32,
    /// People who gave up.
    pub gave_up: u32,
    /// Sessions begun ÷ sessions that might have begun, until 99 of 100 of them have.
    pub used: f64,
    /// Sessions begun in the worst ten seconds ÷ sessions that might have begun.
    pub worst_ten_seconds: f64,
    /// Later comers who began earlier: 95 of 100 people who were never away were overtaken by at
    /// most this many.
    pub overtaken_p95: u32,
    /// The same in seconds of admissions.
    pub overtaken_p95_s: f64,
    /// Median of (predicted − waited) ÷ waited over those who began, for rules that predict: by the
    /// low end of the first prediction, and by the high end.
    pub bias: Option<(f64, f64)>,
    /// Of the same waits, the shares that ended before the predicted range, within it, and after
    /// it.
    pub told_right: Option<[f64; 3]>,
    /// Requests, including each visitor's first.
    pub requests: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Come(u32),
    Ask(u32),
    /// The page sends its visitor on to the application.
    Enter(u32),
    GiveUp(u32),
    /// The rule must be called.
    Wake,
}

#[derive(Clone, Copy, Debug)]
struct Person {
    came: Instant,
    gives_up: Instant,
    /// Sends no requests between these.
    away: (Instant, Instant),
    number: u64,
    began: Option<Instant>,
    gone: bool,
    /// Has been at the gate when called.
    went: bool,
    /// The first prediction after [`JUDGED_FROM`], seconds: when, low, high.
    told: Option<(Instant, f64, f64)>,
}

/// The second request follows the first answer this much later, seconds: the page has loaded, and
/// its script polls.
const SECOND_CONTACT: (f64, f64) = (2.0, 4.0);
/// A called visitor who could not be admitted asks again after this time.
pub(crate) const NOT_LET_IN: Duration = Duration::from_secs(3);
/// Predictions are judged from here on, seconds. Before, no rule can know how fast people give up,
/// because those who leave do not say so.
const JUDGED_FROM: f64 = 160.0;
/// Shorter waits, seconds, are not judged: the page itself takes some time.
const WAIT_JUDGED: f64 = 30.0;
/// A run ends after this, whoever still waits.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Plays `crowd` under `policy`.
pub fn play(crowd: &Crowd, policy: Policy) -> Result {
    let mut rng = Rng::stream(crowd.seed, 0x11E);
    let mut people: Vec<Person> = (0..crowd.people).map(|_| person(crowd, &mut rng)).collect();
    let dead = (0..crowd.dead).map(|_| Instant::ORIGIN + seconds(comes(&mut rng)));
    let mut rule = Rule::new(policy, crowd.per_second, crowd.pace);
    let mut heap: BinaryHeap<Reverse<(Instant, Event)>> = BinaryHeap::new();
    heap.extend((0..crowd.people).map(|index| Reverse((people[index as usize].came, Event::Come(index)))));
    heap.extend(dead.map(|at| Reverse((at, Event::Come(u32::MAX)))));
    heap.push(Reverse((Instant::ORIGIN, Event::Wake)));
    let (mut begun, mut requests) = (Vec::with_capacity(people.len()), 0);
    let mut left = crowd.people;
    while let Some(Reverse((now, event))) = heap.pop() {
        if left == 0 || now > Instant::ORIGIN + LONGEST {
            break;
        }
        let answer = match event {
            Event::Wake => {
                heap.push(Reverse((rule.wake(now), Event::Wake)));
                Answer::Nothing
            }
            Event::Come(u32::MAX) => {
                rule.draw(now);
                Answer::Nothing
            }
            Event::Come(index) => {
                requests += 1;
                let number = rule.draw(now);
                people[index as usize].number = number;
                let at_gate = rule.at_gate(now, number, index, true);
                people[index as usize].went = at_gate != AtGate::NotCalled;
                match at_gate {
                    AtGate::Held => Answer::Nothing,
                    AtGate::SentBack | AtGate::NotCalled => {
                        Answer::Again(seconds(rng.between(SECOND_CONTACT.0, SECOND_CONTACT.1)))
                    }
                }
            }
            Event::Ask(index) | Event::Enter(index) | Event::GiveUp(index)
                if people[index as usize].is_over() =>
            {
                Answer::Nothing
            }
            Event::Ask(index) | Event::Enter(index) | Event::GiveUp(index)
                if now >= people[index as usize].gives_up =>
            {
                people[index as usize].gone = true;
                rule.leaves(people[index as usize].number);
                left -= 1;
                Answer::Nothing
            }
            Event::Ask(index) => {
                requests += 1;
                rule.contact(now, people[index as usize].number, index)
            }
            Event::Enter(index) => {
                requests += 1;
                let person = &people[index as usize];
                heap.push(Reverse((person.gives_up, Event::GiveUp(index))));
                match rule.at_gate(now, person.number, index, false) {
                    AtGate::Held => Answer::Nothing,
                    AtGate::SentBack | AtGate::NotCalled => Answer::Again(NOT_LET_IN),
                }
            }
            Event::GiveUp(_) => Answer::Nothing,
        };
        if let (Answer::Enters, Event::Ask(index)) = (answer, event) {
            let person = &mut people[index as usize];
            // A visitor sent back by the gate already knows, and enters without delay.
            let entering = if std::mem::replace(&mut person.went, true) { Duration::ZERO } else { ENTERING };
            heap.push(Reverse((asks_at(person, now + entering), Event::Enter(index))));
        }
        if let (Answer::Again(after), Event::Come(index) | Event::Ask(index) | Event::Enter(index)) =
            (answer, event)
        {
            heap.push(Reverse((asks_at(&people[index as usize], now + after), Event::Ask(index))));
            let person = &mut people[index as usize];
            if person.told.is_none() && now.as_secs_f64() > JUDGED_FROM {
                person.told = rule.told(now, person.number).map(|(low, high)| (now, low, high));
            }
        }
        for (index, outcome) in rule.outcomes(now) {
            let person = &mut people[index as usize];
            match outcome {
                Answer::Begins => {
                    person.began = Some(now);
                    begun.push((now, person.number, person.away.0 == Instant::FAR_FUTURE));
                    left -= 1;
                }
                // After the longest hold, visitors get the waiting page again.
                Answer::Again(after) => {
                    heap.push(Reverse((asks_at(person, now + after), Event::Ask(index))));
                }
                Answer::Enters | Answer::Nothing => {}
            }
        }
    }
    judge(crowd, &people, &begun, requests)
}

impl Person {
    fn is_over(&self) -> bool {
        self.gone || self.began.is_some()
    }
}

fn person(crowd: &Crowd, rng: &mut Rng) -> Person {
    let came = Instant::ORIGIN + seconds(comes(rng));
    let gives_up = came + seconds(rng.exponential(crowd.patience_s));
    let away = if rng.chance(crowd.away) {
        let from = came + seconds(rng.between(0.0, 600.0));
        (from, from + seconds(rng.between(60.0, 180.0)))
    } else {
        (Instant::FAR_FUTURE, Instant::FAR_FUTURE)
    };
    Person { came, gives_up, away, number: 0, began: None, gone: false, went: false, told: None }
}

fn comes(rng: &mut Rng) -> f64 {
    if rng.chance(0.5) { rng.between(0.0, 60.0) } else { rng.exponential(150.0).min(300.0) }
}

/// Returns when a person really asks: after the absence, if away at `at`. A person who has given up
/// is noticed at the next poll.
fn asks_at(person: &Person, at: Instant) -> Instant {
    if at >= person.away.0 && at < person.away.1 { person.away.1 } else { at }
}

fn judge(crowd: &Crowd, people: &[Person], begun: &[(Instant, u64, bool)], requests: u64) -> Result {
    let counted = begun.len() * 99 / 100;
    let Some((last, ..)) = counted.checked_sub(1).and_then(|index| begun.get(index)) else {
        return Result { requests, ..Result::default() };
    };
    let first = people.iter().map(|person| person.came).min().unwrap_or(Instant::ORIGIN);
    let used = counted as f64 / (crowd.per_second * last.secs_since(first));
    let mut worst = 0;
    let mut from = 0;
    for (to, (at, ..)) in begun.iter().enumerate() {
        while at.secs_since(begun[from].0) >= 10.0 {
            from += 1;
        }
        worst = worst.max(to + 1 - from);
    }
    let mut overtaken = overtaken(begun);
    overtaken.sort_unstable();
    let p95 = overtaken.get(overtaken.len() * 95 / 100).copied().unwrap_or_default();
    let bias = |of: fn(&(Instant, f64, f64)) -> f64| {
        let off = people.iter().filter_map(|person| {
            let (told, began) = (person.told.as_ref()?, person.began?);
            let waited = began.secs_since(told.0);
            (waited > WAIT_JUDGED).then(|| (of(told) - waited) / waited)
        });
        let mut off: Vec<f64> = off.collect();
        off.sort_by(f64::total_cmp);
        off.get(off.len() / 2).copied()
    };
    let judged = people.iter().filter_map(|person| {
        let (told, began) = (person.told.as_ref()?, person.began?);
        let waited = began.secs_since(told.0);
        let side = if waited < told.1 { 0 } else { 1 + usize::from(waited > told.2) };
        (waited > WAIT_JUDGED).then_some(side)
    });
    let sides = judged.fold([0_u32; 3], |mut sides, side| {
        sides[side] += 1;
        sides
    });
    let judged = sides.iter().sum::<u32>();
    Result {
        told_right: (judged > 0).then(|| sides.map(|side| f64::from(side) / f64::from(judged))),
        begun: begun.len() as u32,
        gave_up: people.iter().filter(|person| person.gone).count() as u32,
        used,
        worst_ten_seconds: worst as f64 / (10.0 * crowd.per_second),
        overtaken_p95: p95,
        overtaken_p95_s: f64::from(p95) / crowd.per_second,
        bias: bias(|told| told.1).zip(bias(|told| told.2)),
        requests,
    }
}

/// Returns, for each person who began and was never away, how many with a later number began
/// before. It uses a binary indexed tree over numbers.
fn overtaken(begun: &[(Instant, u64, bool)]) -> Vec<u32> {
    let numbers = begun.iter().map(|(_, number, _)| *number as usize + 1).max().unwrap_or_default();
    let mut tree = vec![0_u32; numbers + 1];
    let mut overtaken = Vec::with_capacity(begun.len());
    for (before, (_, number, was_there)) in (0_u32..).zip(begun) {
        let (mut at, mut earlier) = (*number as usize + 1, 0);
        while at > 0 {
            earlier += tree[at];
            at &= at - 1;
        }
        if *was_there {
            overtaken.push(before - earlier);
        }
        at = *number as usize + 1;
        while at <= numbers {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    overtaken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundredth of the table's crowd at a tenth of its rate, so that there are still minutes of
    /// waiting.
    fn small(dead: u32, patience_s: f64) -> Crowd {
        Crowd { people: 10_000, dead, patience_s, per_second: 10.0, ..Crowd::default() }
    }

    #[test]
    fn nearly_every_turn_is_used_whatever_people_do_and_never_many_more_at_once() {
        for (dead, patience_s) in [(0, 3600.0), (2_500, 1200.0), (10_000, 1200.0)] {
            let crowd = small(dead, patience_s);
            let result = play(&crowd, Policy::Ours);
            assert!(result.used >= 0.98 && result.worst_ten_seconds <= 1.105, "{crowd:?}: {result:?}");
            assert!(result.overtaken_p95_s <= 0.5, "{crowd:?}: {result:?}");
            assert_eq!(result.begun + result.gave_up, crowd.people, "{crowd:?}");
        }
    }

    #[test]
    fn what_is_told_is_what_comes() {
        let result = play(&small(2_500, 1200.0), Policy::Ours);
        let (low, high) = result.bias.expect("waits are told");
        assert!(low < 0.0 && high > 0.0, "in the median it is between the two: {result:?}");
        let [_, within, _] = result.told_right.expect("waits are told");
        assert!(within > 0.8, "{result:?}");
    }

    #[test]
    fn four_of_five_come_in_within_what_they_were_told_on_lines_of_every_size_and_pace() {
        let mut within = Vec::new();
        for (people, per_second, patience_s) in
            [(150, 0.25, 3600.0), (1_000, 1.5, 1200.0), (4_000, 6.0, 1200.0), (2_000, 3.0, 36_000.0)]
        {
            for pace in [RateProfile::Steady, RateProfile::Grows, RateProfile::Falls, RateProfile::Pauses] {
                let crowd = Crowd { people, per_second, patience_s, pace, ..Crowd::default() };
                let [early, inside, late] = play(&crowd, Policy::Ours).told_right.expect("waits are told");
                // No rule can predict a change for the worse that follows the prediction.
                let least = if pace == RateProfile::Falls { 0.4 } else { 0.6 };
                assert!(inside > least, "{crowd:?}: {early:.2} before, {inside:.2} within, {late:.2} after");
                within.push(inside);
            }
        }
        let mean = within.iter().sum::<f64>() / within.len() as f64;
        assert!(mean > 0.8, "{mean}: {within:.2?}");
    }

    #[test]
    fn a_counter_alone_wastes_the_turns_of_those_who_never_come() {
        let result = play(&small(10_000, 1200.0), Policy::Counter);
        assert!(result.used < 0.5, "{result:?}");
    }
}
