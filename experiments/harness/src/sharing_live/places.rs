//! Places in line while something fails: visitors who draw one at a gateway after another, and ask
//! for it at all of them until their turn comes.
//!
//! When a place was drawn is known to lie between the request and its answer. So two places are
//! compared only where the answer to one came before the other was asked for, and the time between
//! these two is the least that can lie between the draws.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::claims::Claim;
use crate::gateways::Gateway;
use crate::http;

/// A visitor comes so often: more than three periods apart, so that the order of neighbours is told.
const EVERY: Duration = Duration::from_millis(400);
/// A place is asked for so often.
const ASK_EVERY: Duration = Duration::from_secs(3);
/// The longest wait for an answer: longer than a visitor is held at the gate.
const PATIENCE: Duration = Duration::from_secs(20);
/// Later draws have higher numbers beyond so many seconds, with the engine and without it.
const SHARED_S: f64 = 0.3;
const WITHOUT_S: f64 = 2.0;
/// A gateway is without the engine for so long before it says so.
const UNSAID_S: f64 = 1.0;

/// What a gateway says of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    Shared,
    /// It may still draw numbers that the engine gave it, or has said nothing.
    Unclear,
    Lost,
}

/// The gateways as visitors see them: where they are, and whether they live.
pub(super) struct Doors {
    doors: Vec<(SocketAddr, SocketAddr)>,
    lives: Vec<AtomicBool>,
    /// Nobody comes, or asks, from now on.
    closed: AtomicBool,
    began: Instant,
    /// When the engine is lost to some, which they say a little later.
    engine_lost_s: Option<f64>,
}

/// A visitor who was given a place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    /// Which gateway drew it; when it was asked for, and when the answer came, since the crowds began.
    gateway: usize,
    asked_s: f64,
    told_s: f64,
    number: u64,
    /// For each gateway, whether it was without the engine about then.
    without: Vec<bool>,
    /// Whether the one that drew it said all the while that it had lost the engine.
    lost: bool,
    /// What was answered later.
    answers: Vec<Said>,
}

/// What a visitor with a place was answered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Said {
    at_s: f64,
    gateway: usize,
    /// 0: nothing.
    status: u16,
    number: Option<u64>,
}

/// What came of all places of a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    drawn: u32,
    /// Drawn before the fault, and asked for after it began; those of them that another gateway
    /// answered.
    through: u32,
    elsewhere: u32,
    lost: u32,
    /// Pairs at two gateways whose order is stated, and those of them in the other order.
    pairs: u32,
    wrong: u32,
    /// The longest time between two draws that are numbered the other way round, seconds.
    apart_s: f64,
}

impl Doors {
    pub(super) fn new(gateways: &[Option<Gateway>], began: Instant, engine_lost_s: Option<f64>) -> Doors {
        let doors = gateways.iter().flatten().filter_map(|gateway| Some((gateway.address, gateway.admin?)));
        Doors {
            doors: doors.collect(),
            lives: gateways.iter().map(|_| AtomicBool::new(true)).collect(),
            closed: AtomicBool::new(false),
            began,
            engine_lost_s,
        }
    }

    /// Says that a gateway is about to be killed.
    pub(super) fn kill(&self, gateway: usize) {
        self.lives[gateway].store(false, Ordering::SeqCst);
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    fn lives(&self, gateway: usize) -> bool {
        self.lives[gateway].load(Ordering::SeqCst)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns the next gateway that lives.
    fn after(&self, gateway: usize) -> usize {
        let all = self.doors.len();
        (1..=all).map(|step| (gateway + step) % all).find(|other| self.lives(*other)).unwrap_or(gateway)
    }

    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Returns what each gateway says of the engine; one that was killed draws nothing any more.
    fn look(&self) -> Vec<Reach> {
        let says = |(gateway, (_, admin)): (usize, &(SocketAddr, SocketAddr))| {
            let sharing = http::gateway_state(*admin).ok().and_then(|state| state.sharing);
            match sharing.as_ref().map(|sharing| sharing.phase.as_str()) {
                _ if !self.lives(gateway) => Reach::Shared,
                Some("shared") => Reach::Shared,
                Some("safe_share") => Reach::Lost,
                _ => Reach::Unclear,
            }
        };
        self.doors.iter().enumerate().map(says).collect()
    }

    /// Lets visitors come from `from` on until it is closed, and returns those who got a place.
    pub(super) fn visit(&self, from: Instant) -> Vec<Place> {
        thread::sleep(from.saturating_duration_since(Instant::now()));
        thread::scope(|scope| {
            let (mut visitors, mut gateway, mut before) = (vec![], 0, self.look());
            while !self.is_closed() {
                let comes = Instant::now();
                let now = self.look();
                // What another gateway has drawn is known one exchange after it is back.
                let looks = [before, now.clone()];
                before = now;
                gateway = self.after(gateway);
                let name = format!("visitor {}", visitors.len());
                visitors.push(scope.spawn(move || {
                    Visit { doors: self, name, cookies: BTreeMap::new() }.draw(gateway, &looks)
                }));
                thread::sleep((comes + EVERY).saturating_duration_since(Instant::now()));
            }
            visitors.into_iter().filter_map(|visitor| visitor.join().ok().flatten()).collect()
        })
    }
}

/// A visitor on its way.
struct Visit<'a> {
    doors: &'a Doors,
    /// Its browser: gateways must not take it for another one.
    name: String,
    cookies: BTreeMap<String, String>,
}

impl Visit<'_> {
    fn ask(&mut self, gateway: usize) -> Option<Said> {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut headers = vec![("Accept", "application/json".to_string()), ("User-Agent", self.name.clone())];
        if !cookies.is_empty() {
            headers.push(("Cookie", cookies.join("; ")));
        }
        let (address, _) = *self.doors.doors.get(gateway)?;
        let answer = http::ask(address, "shop.example", "/page?number=1", &headers, None, PATIENCE);
        let at_s = self.doors.now_s();
        let Ok(answer) = answer else {
            // A gateway that is killed answers nobody.
            return self.doors.lives(gateway).then_some(Said { at_s, gateway, status: 0, number: None });
        };
        let cookies = answer.cookies().map(|(name, value)| (name.to_string(), value.to_string()));
        self.cookies.extend(cookies);
        let said: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        Some(Said { at_s, gateway, status: answer.status, number: said["position"].as_u64() })
    }

    /// Draws a place, and asks for it at one gateway after another. Returns nothing if there was none:
    /// it was let in, or got no answer.
    fn draw(&mut self, gateway: usize, before: &[Vec<Reach>; 2]) -> Option<Place> {
        let asked_s = self.doors.now_s();
        let said = self.ask(gateway)?;
        let number = said.number?;
        let unsaid = |lost: f64| said.at_s >= lost && asked_s <= lost + UNSAID_S;
        let is_unsaid = self.doors.engine_lost_s.is_some_and(unsaid);
        let looks = [&before[0], &before[1], &self.doors.look()];
        let all = 0..self.doors.doors.len();
        let without =
            all.map(|other| is_unsaid || looks.iter().any(|look| look[other] != Reach::Shared)).collect();
        let lost = looks.iter().all(|look| look[gateway] == Reach::Lost);
        let mut answers: Vec<Said> = vec![];
        let mut asks = gateway;
        while !self.doors.is_closed() && answers.last().is_none_or(|said| said.status != 200) {
            thread::sleep(ASK_EVERY);
            asks = self.doors.after(asks);
            answers.extend(self.ask(asks));
        }
        Some(Place { gateway, asked_s, told_s: said.at_s, number, without, lost, answers })
    }
}

impl Place {
    /// Whether `said` is about this place, or says that its turn has come.
    fn is_good(&self, said: &Said) -> bool {
        said.status == 200 || said.number == Some(self.number)
    }

    /// Whether another place was given instead, or in the end none was known.
    fn is_lost(&self) -> bool {
        let is_another = |said: &Said| said.number.is_some_and(|number| number != self.number);
        self.answers.iter().any(is_another) || self.answers.last().is_some_and(|last| !self.is_good(last))
    }

    /// Returns by how many seconds `later` must have been drawn after it to have the higher number;
    /// nothing where that is not stated.
    fn bound_s(&self, later: &Place) -> Option<f64> {
        let is_without = |place: &Place, gateway: usize| place.without.get(gateway).is_some_and(|it| *it);
        let (own, other) = (is_without(self, self.gateway), is_without(later, later.gateway));
        // Who draws at a gateway that does not reach the engine stands behind those who draw at one
        // that does, or still has numbers of the engine's.
        let stands_behind = own && is_without(later, self.gateway) && !later.lost;
        (!stands_behind).then_some(if own || other { WITHOUT_S } else { SHARED_S })
    }
}

impl Kept {
    pub(super) fn of(places: &[Place], fault_s: f64) -> Kept {
        let count = |is: &dyn Fn(&&Place) -> bool| places.iter().filter(is).count() as u32;
        let through = |place: &Place, elsewhere: bool| {
            let is_so = |said: &Said| {
                said.at_s > fault_s + UNSAID_S
                    && place.is_good(said)
                    && (!elsewhere || said.gateway != place.gateway)
            };
            place.told_s < fault_s && place.answers.iter().any(is_so)
        };
        let mut kept = Kept {
            drawn: places.len() as u32,
            through: count(&|place| through(place, false)),
            elsewhere: count(&|place| through(place, true)),
            lost: count(&|place| place.is_lost()),
            pairs: 0,
            wrong: 0,
            apart_s: 0.0,
        };
        for one in places {
            for later in places.iter().filter(|later| later.gateway != one.gateway) {
                let apart_s = later.asked_s - one.told_s;
                let Some(bound_s) = one.bound_s(later).filter(|_| apart_s > 0.0) else { continue };
                let is_reversed = later.number <= one.number;
                if is_reversed {
                    kept.apart_s = kept.apart_s.max(apart_s);
                }
                if apart_s > bound_s {
                    kept.pairs += 1;
                    kept.wrong += u32::from(is_reversed);
                }
            }
        }
        kept
    }

    pub(super) fn judge(&self, name: &str) -> [Claim; 2] {
        let Kept { drawn, through, lost, pairs, wrong, .. } = *self;
        [
            Claim::new(
                format!(
                    "{name}: {lost} of {drawn} places lost, {through} of them drawn before the fault and asked for after it"
                ),
                lost == 0 && through > 0,
            ),
            Claim::new(
                format!(
                    "{name}: {wrong} of {pairs} pairs of places of two gateways in another order than stated"
                ),
                wrong == 0 && pairs > 0,
            ),
        ]
    }
}

pub(super) fn table<'a>(runs: impl Iterator<Item = (&'a str, Kept)>) -> String {
    let mut out = "| what goes wrong | places drawn | before the fault, good after it | at another gateway | lost | pairs whose order is stated | of them in another order | longest time between two in another order, s |\n|---|---|---|---|---|---|---|---|\n".to_string();
    for (words, kept) in runs {
        let Kept { drawn, through, elsewhere, lost, pairs, wrong, apart_s } = kept;
        // Writing into a String cannot fail.
        let _ = writeln!(
            out,
            "| {words} | {drawn} | {through} | {elsewhere} | {lost} | {pairs} | {wrong} | {apart_s:.2} |"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(gateway: usize, at_s: f64, number: u64, without: [bool; 2]) -> Place {
        let answers =
            vec![Said { at_s: at_s + 5.0, gateway: 1 - gateway, status: 503, number: Some(number) }];
        Place {
            gateway,
            asked_s: at_s,
            told_s: at_s,
            number,
            without: without.to_vec(),
            lost: without[gateway],
            answers,
        }
    }

    fn of(places: &[Place]) -> (u32, u32, u32) {
        let kept = Kept::of(places, 2.0);
        (kept.lost, kept.pairs, kept.wrong)
    }

    #[test]
    fn the_order_is_judged_beyond_the_bound_that_is_stated_for_a_pair() {
        let shared = |gateway, at_s, number| place(gateway, at_s, number, [false, false]);
        assert_eq!(of(&[shared(0, 1.0, 7), shared(1, 1.1, 6)]), (0, 0, 0), "within three periods");
        assert_eq!(of(&[shared(0, 1.0, 7), shared(1, 1.4, 6)]), (0, 1, 1));
        assert_eq!(of(&[shared(0, 1.0, 7), shared(1, 1.4, 8)]), (0, 1, 0));
        let without = |gateway, at_s, number| place(gateway, at_s, number, [true, true]);
        assert_eq!(of(&[without(0, 1.0, 7), without(1, 2.9, 6)]), (0, 0, 0), "within two seconds");
        assert_eq!(of(&[without(0, 1.0, 7), without(1, 3.1, 6)]), (0, 1, 1));
    }

    #[test]
    fn who_draws_where_the_engine_is_not_reached_stands_behind_others_until_it_is() {
        let cut_off = |gateway, at_s, number| place(gateway, at_s, number, [false, true]);
        assert_eq!(of(&[cut_off(1, 1.0, 70), cut_off(0, 9.0, 8)]), (0, 0, 0));
        assert_eq!(of(&[cut_off(0, 1.0, 70), cut_off(1, 9.0, 8)]), (0, 1, 1), "and not before them");
        let unclear = Place { lost: false, ..place(0, 9.0, 8, [true, true]) };
        assert_eq!(of(&[cut_off(1, 1.0, 70), unclear]), (0, 0, 0), "it may still have numbers");
        let back = place(0, 9.0, 8, [false, false]);
        assert_eq!(of(&[cut_off(1, 1.0, 70), back]), (0, 1, 1), "numbers go on behind the highest");
    }

    #[test]
    fn a_place_is_lost_where_another_is_given_or_none_is_known_in_the_end() {
        let answered = |status, number| {
            let mut place = place(0, 1.0, 7, [false, false]);
            place.answers.insert(0, Said { at_s: 4.0, gateway: 1, status, number });
            place
        };
        assert_eq!(of(&[answered(503, Some(9))]).0, 1);
        assert_eq!(of(&[answered(503, None)]).0, 0, "the next answer knew it");
        let mut ended = answered(503, None);
        ended.answers.truncate(1);
        assert_eq!(of(std::slice::from_ref(&ended)).0, 1);
        ended.answers[0].status = 200;
        assert_eq!((of(&[ended.clone()]).0, Kept::of(&[ended], 2.0).through), (0, 1));
    }
}
