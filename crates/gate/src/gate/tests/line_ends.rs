//! A line ends once nobody waits for a reason, however many keep coming.

use super::lines::{Metered, at, lined, pass, placed, told_at_once};
use super::*;

/// Time from one look to the next, seconds.
const STEP: f64 = 1.0 / 16.0;
/// Seconds from a page's arrival to its first poll, and how long its visitor stays.
const PAGE: f64 = 3.0;
const VISIT: f64 = 1.0;

/// A site to which people come at an even pace.
struct Site {
    gate: Gate,
    route: RouteId,
    kind: KindId,
    now: f64,
    next: f64,
    newcomer: Option<RequestId>,
    /// When each newcomer came, and whether it was admitted at once.
    came: Vec<(f64, bool)>,
    pages: Vec<(f64, Position)>,
    /// Whether those who are sent to the line close the page and never come back.
    goes: bool,
    placed: BTreeMap<RequestId, Position>,
    inside: Vec<(f64, Start)>,
}

impl Site {
    fn new((gate, route, kind): (Gate, RouteId, KindId)) -> Site {
        Site {
            gate,
            route,
            kind,
            now: 0.0,
            next: 0.0,
            newcomer: None,
            came: vec![],
            pages: vec![],
            goes: false,
            placed: BTreeMap::new(),
            inside: vec![],
        }
    }

    /// Has `per_second` newcomers come per second until then.
    fn come(&mut self, per_second: f64, until: f64) {
        self.next = self.next.max(self.now);
        while self.now < until {
            self.now += STEP;
            let outputs = pass(&mut self.gate, at(self.now));
            outputs.into_iter().for_each(|output| self.take(output));
            self.leave();
            self.ask();
            while self.next <= self.now {
                self.next += 1.0 / per_second;
                let session = Some(Membership::Newcomer(self.kind));
                let arrival = Arrival { route: self.route, session };
                self.came.push((self.now, false));
                self.newcomer = Some(self.gate.handle_arrival(at(self.now), arrival));
                self.hear();
                self.newcomer = None;
            }
        }
    }

    fn hear(&mut self) {
        while let Some(output) = self.gate.poll_output() {
            self.take(output);
        }
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::Start(start) => {
                if self.newcomer == Some(start.request) {
                    self.came.last_mut().expect("the newcomer is noted").1 = true;
                }
                self.placed.remove(&start.request);
                self.inside.push((self.now + VISIT, start));
            }
            Output::Wait(told) => {
                self.placed.remove(&told.request);
                if !self.goes {
                    self.pages.push((self.now + PAGE, told.position.expect("there are places")));
                }
            }
            Output::Refuse(refusal) => panic!("{refusal:?}"),
            Output::Decided(_) | Output::Resumed(_) => {}
        }
    }

    fn leave(&mut self) {
        let (over, inside) =
            std::mem::take(&mut self.inside).into_iter().partition(|(end, _)| *end <= self.now);
        self.inside = inside;
        for (_, start) in over as Vec<(f64, Start)> {
            let (_, session) = start.session.expect("it has a session");
            self.gate.handle_end(at(self.now), start.permit, Outcome::Completed);
            self.gate.handle_session_signal(at(self.now), session, SessionSignal::Ends);
            self.hear();
        }
    }

    fn ask(&mut self) {
        let (due, pages) =
            std::mem::take(&mut self.pages).into_iter().partition(|(asks, _)| *asks <= self.now);
        self.pages = pages;
        for (_, position) in due as Vec<(f64, Position)> {
            let standing =
                self.gate.handle_contact(at(self.now), self.kind, position).expect("there is a line");
            if standing.is_called() {
                let arrival = Arrival { route: self.route, session: Some(placed(self.kind, position)) };
                let request = self.gate.handle_arrival(at(self.now), arrival);
                self.placed.insert(request, position);
                self.hear();
            } else {
                self.pages.push((self.now + PAGE, position));
            }
        }
    }

    /// Returns how many came after `from`, and how many of them were admitted at once.
    fn after(&self, from: f64) -> (usize, usize) {
        let after = || self.came.iter().filter(|(came, _)| *came > from);
        (after().count(), after().filter(|(_, at_once)| *at_once).count())
    }
}

#[test]
fn a_line_that_a_short_closure_began_ends_though_people_keep_coming() {
    let now = at(0.0);
    let mut gate = Gate::new(Params::default(), now);
    let route = gate.declare_route(now, RouteMode::Off);
    let line = Some(suimon_line::Params::default());
    let kind = gate.declare_kind(now, KindParams { line, ..KindParams::default() });
    let mut site = Site::new((gate, route, kind));
    site.come(5.0, 30.0);
    site.gate.handle_application(at(site.now), false);
    site.come(5.0, 32.0);
    site.gate.handle_application(at(site.now), true);
    site.hear();
    site.come(5.0, 90.0);
    let (came, at_once) = site.after(42.0);
    assert!(came > 200, "{came}");
    assert_eq!(at_once, came, "the law lets in everybody");
}

#[test]
fn a_line_ends_after_a_rush_though_half_of_what_is_possible_keeps_coming() {
    // One token for each tenth of a second, and a second's worth of them.
    let mut site = Site::new(lined(Metered::new(10, 10.0)));
    site.come(5.0, 10.0);
    site.come(30.0, 20.0);
    site.come(5.0, 140.0);
    assert!(site.after(10.0).1 < site.after(10.0).0 - 100, "there was a line");
    // Two hundred too many came, and five a second of them are made up for.
    let (came, at_once) = site.after(80.0);
    assert_eq!(at_once, came);
}

#[test]
fn a_line_of_people_who_have_gone_holds_nobody() {
    // Ten begin per second, and as many at once; thirty come, and who is sent to the line goes.
    let mut site = Site { goes: true, ..Site::new(lined(Metered::new(10, 10.0))) };
    site.come(30.0, 40.0);
    let (came, at_once) = site.after(5.0);
    assert!(at_once >= 315, "nine in ten tokens are used: {at_once} of {came}");
    site.come(5.0, 80.0);
    let (came, at_once) = site.after(41.0);
    assert!(came > 180, "{came}");
    assert_eq!(at_once, came, "half of what is possible comes, and all the line has gone");
}

#[test]
fn nor_does_it_at_the_gate_of_a_site_of_single_pages_that_knows_them() {
    let now = at(0.0);
    let mut gate = Gate::new(Params::default(), now);
    let route = gate.declare_route(now, RouteMode::Enforce);
    let line = Some(suimon_line::Params::default());
    let kind = gate.declare_kind(now, KindParams { line, ..KindParams::default() });
    let mut site = Site { goes: true, ..Site::new((gate, route, kind)) };
    site.come(1.0, 60.0);
    // Two slots do two pages of a second per second.
    site.come(1.6, 120.0);
    let (came, at_once) = site.after(60.0);
    assert!(came > 90, "{came}");
    assert!(10 * at_once >= 9 * came, "{at_once} of {came}");
}

#[test]
fn somebody_who_has_just_come_begins_before_those_on_the_way_only_if_there_are_tokens_for_all() {
    for (on_the_way, at_once) in [(1, true), (2, true), (3, false)] {
        let (mut gate, route, kind) = lined(Metered::new(3, 0.5));
        let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
        gate.handle_command(at(0.0), kind, Command::Pause);
        for _ in 0..on_the_way {
            gate.handle_arrival(at(0.0), newcomer);
            told_at_once(&mut gate);
        }
        gate.handle_command(at(0.0), kind, Command::Move);
        pass(&mut gate, at(0.3));
        gate.handle_arrival(at(0.3), newcomer);
        let started = std::iter::from_fn(|| gate.poll_output()).any(|it| matches!(it, Output::Start(_)));
        assert_eq!(started, at_once, "{on_the_way} are on the way, and three can begin");
    }
}
