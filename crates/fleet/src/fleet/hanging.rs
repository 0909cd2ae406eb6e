//! A node that takes requests and answers none, beside nodes that work.

use super::*;
use crate::{CheckParams, Checked};
use suimon_model::RouteId;

const STEP: Duration = Duration::from_millis(10);
/// How long a check waits for an answer.
const CHECK_WITHIN: Duration = Duration::from_secs(2);

/// What a node does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    Well,
    /// It answers neither requests nor checks.
    Hangs,
    /// It answers checks only.
    Polls,
    /// It closes the connections of checks.
    Closes,
}

struct Play {
    fleet: Fleet,
    now: Instant,
    /// Of which route requests are from now on.
    route: RouteId,
    /// What each has, and how often it was sent something.
    had: Vec<Vec<RouteId>>,
    sent: Vec<u32>,
    checks: Vec<(NodeId, Instant)>,
    checked: Vec<u32>,
    hangs: Vec<Instant>,
    /// The most requests that the gate lets in.
    slots: usize,
    changes: Vec<(Instant, u32, Status, Why)>,
}

impl Play {
    fn new(count: u32, has_path: bool) -> Self {
        let second = Duration::from_secs(1);
        let checks =
            CheckParams { interval: 2 * second, down_after: if has_path { 3 } else { 1000 }, up_after: 2 };
        let mut fleet = Fleet::new(Params { checks: Some(checks), ..Params::default() });
        for _ in 0..count {
            fleet.add_node(Instant::ORIGIN).unwrap();
        }
        let zeros = vec![0; count as usize];
        Play {
            fleet,
            now: Instant::ORIGIN,
            route: RouteId(0),
            had: vec![Vec::new(); count as usize],
            sent: zeros.clone(),
            checks: Vec::new(),
            checked: zeros,
            changes: Vec::new(),
            hangs: Vec::new(),
            slots: usize::MAX,
        }
    }

    /// A request every ten milliseconds, which is answered by the next one where its node does so.
    fn run(&mut self, seconds: u32, does: impl Fn(u32) -> Does) {
        self.steps(seconds * 100, does);
    }

    fn steps(&mut self, count: u32, does: impl Fn(u32) -> Does) {
        for _ in 0..count {
            self.now += STEP;
            let now = self.now;
            self.fleet.handle_timeout(now);
            self.take_checks(&does);
            for node in 0..self.had.len() {
                if does(node as u32) == Does::Well {
                    for route in std::mem::take(&mut self.had[node]) {
                        let node = NodeId(node as u32);
                        self.fleet.handle_answer(now, node, AsksFor::Route(route));
                        self.fleet.handle_release(now, node);
                        let served = Served { route: RouteId(0), took: STEP, is_good: true, is_bound: false };
                        self.fleet.handle_served(now, node, &served);
                    }
                }
            }
            if self.had.iter().map(Vec::len).sum::<usize>() >= self.slots {
                continue;
            }
            let node = self.fleet.pick(now, AsksFor::Route(self.route), None).unwrap().node;
            self.had[node.index()].push(self.route);
            self.sent[node.index()] += 1;
        }
    }

    /// Sends one request of a route, and returns who has it.
    fn ask(&mut self, route: RouteId) -> u32 {
        let node = self.fleet.pick(self.now, AsksFor::Route(route), None).unwrap().node;
        self.had[node.index()].push(route);
        node.0
    }

    /// As [`Play::run`], but nobody asks for anything.
    fn quiet(&mut self, seconds: u32, does: impl Fn(u32) -> Does) {
        let slots = std::mem::replace(&mut self.slots, 0);
        self.run(seconds, does);
        self.slots = slots;
    }

    fn is_untouched(&self) -> bool {
        self.changes.is_empty() && self.hangs.is_empty()
    }

    fn take_checks(&mut self, does: &impl Fn(u32) -> Does) {
        while let Some(output) = self.fleet.poll_output() {
            match output {
                // One that asks for no answer is over at once.
                Output::Check(node) if !self.fleet.is_doubted(node) => {
                    self.fleet.handle_check(self.now, node, Checked::Accepted);
                }
                Output::Check(node) => {
                    self.checked[node.index()] += 1;
                    let lasts = if does(node.0) == Does::Hangs { CHECK_WITHIN } else { STEP };
                    self.checks.push((node, self.now + lasts));
                }
                Output::Changed(change) => {
                    self.changes.push((change.at, change.node.0, change.to, change.why));
                }
                Output::Hangs(_) => self.hangs.push(self.now),
                Output::Proven(_) | Output::Released { .. } => {}
            }
        }
        let now = self.now;
        let (due, later) = self.checks.drain(..).partition::<Vec<_>, _>(|(_, until)| *until <= now);
        self.checks = later;
        for (node, _) in due {
            let checked = match does(node.0) {
                Does::Hangs => Checked::Mute,
                Does::Closes => Checked::Closed,
                Does::Well | Does::Polls => Checked::Answered,
            };
            self.fleet.handle_check(now, node, checked);
        }
    }
}

fn only_first(does: Does) -> impl Fn(u32) -> Does {
    only(0, does)
}

fn only(which: u32, does: Does) -> impl Fn(u32) -> Does {
    move |node| if node == which { does } else { Does::Well }
}

#[test]
fn a_node_that_hangs_is_left_out_and_tried_ever_more_seldom() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    let before = play.sent[0];
    play.run(10, only_first(Does::Hangs));
    assert_eq!(
        play.changes.first().map(|(_, node, to, why)| (*node, *to, *why)),
        Some((0, Status::Ejected, Why::Silent))
    );
    let first = play.sent[0] - before;
    for _ in 0..120 * 100 {
        play.steps(1, only_first(Does::Hangs));
        assert_eq!(play.fleet.up(), 2, "it counts for nothing while it is only tried");
    }
    let more = play.sent[0] - before - first;
    assert!(first <= 80 && more <= 40, "{first} requests at first, {more} in two minutes more");
    assert!(play.changes.iter().all(|(_, node, ..)| *node == 0));
}

#[test]
fn one_that_answers_again_is_back_at_once() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    play.run(30, only_first(Does::Hangs));
    let well_from = play.now;
    play.run(5, |_| Does::Well);
    let (at, node, to, why) = *play.changes.last().unwrap();
    assert_eq!((node, to, why), (0, Status::Up, Why::Reached));
    assert!(at.since(well_from) <= Duration::from_secs(3), "{:?}", at.since(well_from));
    let before = play.sent.clone();
    play.run(30, |_| Does::Well);
    assert!(play.sent[0] - before[0] > 700, "it has its share again");
    assert_eq!(play.fleet.up(), 3);
}

#[test]
fn one_that_answers_checks_while_its_requests_take_long_stays_and_is_seldom_asked() {
    for has_path in [false, true] {
        let mut play = Play::new(3, has_path);
        play.run(20, |_| Does::Well);
        let before = play.checked[0];
        play.run(60, only_first(Does::Polls));
        assert_eq!(play.changes, []);
        assert!(play.checked[0] - before <= 8, "{} checks", play.checked[0] - before);
    }
}

#[test]
fn one_that_closes_checks_is_not_taken_to_hang_nor_to_be_gone() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    play.run(60, only_first(Does::Closes));
    assert!(play.is_untouched() && play.checked[0] <= 8, "{:?}, {} checks", play.changes, play.checked[0]);
}

#[test]
fn a_node_that_has_its_fill_of_long_requests_is_not_taken_to_hang() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    // Beside quick pages there is a chat.
    play.fleet.handle_took(play.now, Some(RouteId(1)), Duration::from_secs(12));
    play.route = RouteId(1);
    play.run(1, |_| Does::Well);
    play.run(60, only_first(Does::Hangs));
    assert!(play.changes.is_empty() && play.hangs.is_empty(), "{:?}", play.changes);
}

#[test]
fn a_report_that_takes_a_minute_elsewhere_protects_no_node_that_has_quick_pages_only() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    play.fleet.handle_took(play.now, Some(RouteId(1)), Duration::from_secs(60));
    play.run(1, |_| Does::Well);
    play.run(10, only_first(Does::Hangs));
    let first = play.changes.first().map(|(_, node, to, why)| (*node, *to, *why));
    assert_eq!(first, Some((0, Status::Ejected, Why::Silent)));
}

#[test]
fn a_page_that_nobody_has_asked_for_before_may_take_its_time_beside_an_idle_node() {
    for others_are_asked in [false, true] {
        let mut play = Play::new(2, false);
        play.run(20, |_| Does::Well);
        let busy = play.ask(RouteId(1));
        if others_are_asked {
            play.run(12, only(busy, Does::Hangs));
        } else {
            play.quiet(12, only(busy, Does::Hangs));
        }
        play.run(10, |_| Does::Well);
        assert!(play.is_untouched(), "{:?}", play.changes);
    }
}

#[test]
fn a_report_of_a_minute_may_take_it_though_nobody_has_asked_for_it_for_long() {
    let mut play = Play::new(2, false);
    play.run(10, |_| Does::Well);
    play.fleet.handle_took(play.now, Some(RouteId(1)), Duration::from_secs(60));
    play.run(1200, |_| Does::Well);
    let busy = play.ask(RouteId(1));
    play.run(60, only(busy, Does::Hangs));
    assert!(play.is_untouched(), "{:?}", play.changes);
}

#[test]
fn a_path_that_nobody_knows_takes_no_time_from_a_report_that_is_known_to_be_slow() {
    let mut play = Play::new(2, false);
    play.run(10, |_| Does::Well);
    play.fleet.handle_took(play.now, Some(RouteId(1)), Duration::from_secs(60));
    let busy = play.ask(RouteId(1));
    let guess = play.fleet.pick(play.now, AsksFor::NewPath, None).unwrap().node;
    assert_ne!(guess.0, busy);
    let pinned = play.fleet.pick_again(play.now, AsksFor::NewPath, NodeId(busy), None).unwrap().node;
    play.run(60, only(busy, Does::Hangs));
    play.fleet.handle_unanswered(play.now, pinned, AsksFor::NewPath);
    assert!(play.is_untouched(), "{:?}", play.changes);
}

#[test]
fn an_asset_does_not_give_a_node_that_hangs_the_time_of_a_slow_report() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    play.fleet.handle_took(play.now, Some(RouteId(1)), Duration::from_secs(60));
    play.fleet.handle_took(play.now, None, STEP);
    play.fleet.pick_again(play.now, AsksFor::Ungated, NodeId(0), None).unwrap();
    play.run(10, only_first(Does::Hangs));
    let first = play.changes.first().map(|(_, node, to, why)| (*node, *to, *why));
    assert_eq!(first, Some((0, Status::Ejected, Why::Silent)));
}

#[test]
fn an_answer_that_goes_on_is_none_that_is_owed() {
    let mut play = Play::new(2, false);
    play.run(20, |_| Does::Well);
    // Streams at both nodes, whose heads have come.
    for _ in 0..20 {
        let node = NodeId(play.ask(RouteId(1)));
        play.had[node.index()].pop();
        play.fleet.handle_answer(play.now, node, AsksFor::Route(RouteId(1)));
    }
    play.quiet(120, |_| Does::Well);
    assert!(play.is_untouched() && play.checked == [0, 0], "{:?}", play.changes);
    // They hide no node that hangs, be they at it or beside it.
    play.run(10, only_first(Does::Hangs));
    let first = play.changes.first().map(|(_, node, to, why)| (*node, *to, *why));
    assert_eq!(first, Some((0, Status::Ejected, Why::Silent)));
}

#[test]
fn a_request_that_is_given_up_is_no_answer() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    play.run(10, only_first(Does::Hangs));
    assert!(play.fleet.shares.is_mute(0));
    let took = Duration::from_secs(60);
    let served = Served { route: RouteId(0), took, is_good: false, is_bound: false };
    play.fleet.handle_unanswered(play.now, NodeId(0), AsksFor::Route(RouteId(0)));
    play.fleet.handle_served(play.now, NodeId(0), &served);
    assert!(play.fleet.shares.is_mute(0));
}

#[test]
fn one_that_holds_all_slots_of_the_gate_is_left_out_though_nobody_answers_then() {
    let mut play = Play::new(3, false);
    play.slots = 4;
    play.run(20, |_| Does::Well);
    play.run(10, only_first(Does::Hangs));
    let first = play.changes.first().map(|(_, node, to, why)| (*node, *to, *why));
    assert_eq!(first, Some((0, Status::Ejected, Why::Silent)));
    // What may not be sent again is given up, or all would stand still until it times out.
    assert!(!play.hangs.is_empty(), "{:?}", play.changes);
}

#[test]
fn that_the_others_get_slow_meanwhile_protects_no_node_that_hangs() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    for _ in 0..100 {
        play.steps(10, only_first(Does::Hangs));
        play.fleet.handle_took(play.now, Some(RouteId(0)), Duration::from_secs(10));
    }
    let first = play.changes.first().map(|(_, node, to, why)| (*node, *to, *why));
    assert_eq!(first, Some((0, Status::Ejected, Why::Silent)));
}

#[test]
fn what_may_not_be_sent_again_is_given_up_only_where_nothing_was_answered_for_long() {
    let mut play = Play::new(3, false);
    play.run(20, |_| Does::Well);
    for _ in 0..3 {
        // A collection of garbage.
        play.run(4, only_first(Does::Hangs));
        play.run(3, |_| Does::Well);
    }
    assert!(play.hangs.is_empty(), "{:?}", play.hangs);
    let from = play.now;
    play.run(20, only_first(Does::Hangs));
    let after = play.hangs.first().map(|at| at.since(from));
    assert!(after.is_some_and(|after| (5..=20).contains(&after.as_secs())), "{after:?}");
}

#[test]
fn a_single_node_is_never_left_out() {
    let mut play = Play::new(1, false);
    play.run(5, |_| Does::Well);
    play.run(60, |_| Does::Hangs);
    assert_eq!(play.changes, []);
}

#[test]
fn when_all_hang_none_is_left_out() {
    let mut play = Play::new(3, false);
    play.run(5, |_| Does::Well);
    // One after the other.
    play.steps(30, only_first(Does::Hangs));
    play.run(60, |_| Does::Hangs);
    assert_eq!(play.changes, []);
}
