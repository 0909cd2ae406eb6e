//! The machine: places are drawn, heard of, called and claimed.

use crate::estimate::Estimate;
use crate::lane::{LANES, Lane, Place};
use crate::lottery::Lottery;
use crate::presence::Presence;
use crate::shares::Shares;
use std::collections::VecDeque;
use suimon_model::{Duration, Instant, seconds};

/// A number just called is waited for so long: whoever is there is heard of sooner.
const RECENT: Duration = Duration::from_secs(15);
/// Whoever is not heard of for a whole period is present no more; no visitor is told to stay silent for longer than [`POLL_MAX`].
const PERIOD: Duration = Duration::from_secs(75);
/// Whoever was at the gate and could not be let in is there again within so long.
const KNOCKS: Duration = Duration::from_secs(20);
/// Whoever has drawn and is there is heard of again within seconds.
const DRAWN: Duration = Duration::from_secs(6);
/// How often marks are set, and how many there are while numbers are recent.
const MARK: Duration = Duration::from_secs(1);
const MARKS_MAX: usize = 16;
/// So many are called ahead at the least.
const AHEAD_MIN: f64 = 3.0;
/// The page lets its visitor in so many seconds after it has said that it is their turn: time to hear it, and to say "not yet".
const ENTERING: f64 = 5.0;
/// Those called are to be held at the gate for this share of the longest time, in the mean: were it more, some would be sent away and overtaken before they are back.
const HELD_SHARE: f64 = 0.5;
/// So many of those called last tell how many of them come.
const CALLS_KNOWN: f64 = 200.0;
/// Before any was called, all of so many are taken to have come.
const CALLS_BELIEVED: f64 = 20.0;
/// The least share of those called that is taken to come.
const SHOW_MIN: f64 = 0.05;
/// A visitor is told to come again after this share of the time that is left, within these, seconds. The least is for those whose turn is next.
const POLL_SHARE: f64 = 0.25;
const POLL_MIN: f64 = 2.0;
const POLL_MAX: f64 = 60.0;
/// Whoever has less time left than this, seconds, is told to come when this share of the time until the call is over: the line may move faster than was told, and
/// whoever hears of the call late is overtaken.
const POLL_NEAR: f64 = 30.0;
const POLL_NEAR_SHARE: f64 = 0.5;
/// Those whose turn is far do not all come at once.
const POLL_JITTER: f64 = 0.1;
/// After an opening all who waited for it ask within so many seconds.
const POLL_SPREAD: f64 = 10.0;
/// Whoever waits for the opening, or while the line stands still, asks this often, seconds.
const POLL_IDLE: f64 = 30.0;
/// Whoever waits while nothing is known of the pace, seconds: before the first have begun where the session law foresees nothing.
const POLL_UNKNOWN: f64 = 10.0;
/// Numbers kept at once in a lane. Whoever comes beyond that gets none.
const NUMBERS_MAX: u64 = 1 << 24;

/// What a line is told before it starts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Params {
    /// Turns by lane, by [`Lane::index`], each above 0. The normal lane's share of all of them is its floor.
    pub weights: [f64; LANES],
}

impl Default for Params {
    fn default() -> Self {
        Params { weights: [2.0, 2.0, 5.0, 0.2] }
    }
}

suimon_model::saved_struct!(Params { weights });

/// Whether the line moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It moves.
    Moving,
    /// It takes numbers and does not move before this moment, when lots decide about the numbers taken till then.
    Opening(Instant),
    /// Its operator has stopped it.
    Paused,
    /// There is nothing to wait for any more.
    Closed,
}

suimon_model::saved_enum!(State { 0 = Moving, 1 = Opening(at), 2 = Paused, 3 = Closed });

/// What an operator may say to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Stand still; numbers are drawn all the same.
    Pause,
    /// Move, whatever was said before.
    Move,
    /// There is nothing to wait for any more: everybody is told so, and no number is drawn.
    Close,
    /// Take numbers and let nobody in before `at`. With `lots`, their seed, it is then decided by lot in which order those come who are there.
    OpenAt {
        /// When it opens.
        at: Instant,
        /// The seed of the lots.
        lots: Option<[u64; 2]>,
    },
}

suimon_model::saved_enum!(Command { 0 = Pause, 1 = Move, 2 = Close, 3 = OpenAt { at, lots } });

/// What is to be told to the holder of a place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Standing {
    /// It is their turn: the session gate decides the moment.
    Called,
    /// Not yet.
    Waiting(Wait),
    /// The line opens at this moment; times are unknown.
    Opening(Instant, Wait),
    /// Its operator has stopped the line; times are unknown.
    Paused(Wait),
    /// The line is closed: nobody will be called any more.
    Closed,
}

/// How far away a turn is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wait {
    /// People present ahead.
    pub ahead: u64,
    /// The time left if people go on giving up as they did, and if nobody does. Zero where they are unknown.
    pub low: Duration,
    /// See `low`.
    pub high: Duration,
    /// When to ask again.
    pub poll_after: Duration,
}

/// What can be seen of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View {
    /// Whether it moves.
    pub state: State,
    /// Numbers drawn, called and claimed since the line began, all lanes.
    pub drawn: u64,
    /// See `drawn`.
    pub called: u64,
    /// See `drawn`.
    pub claimed: u64,
    /// People present now, those called included.
    pub present: u64,
    /// Numbers drawn of late that were not heard of again yet.
    pub provisional: u64,
    /// People called who are expected to come.
    pub expected: u64,
    /// Of those called in the normal lane of late and expected, the share that came.
    pub shown_up: f64,
    /// Claims a second.
    pub per_second: f64,
    /// Share of those waiting that gives up each second.
    pub leaving_per_second: f64,
}

/// What must survive a restart.
#[derive(Clone, PartialEq, Debug)]
pub struct Saved {
    /// By [`Lane::index`]: how far it is.
    pub lanes: [Reached; LANES],
    /// Share of those waiting that gives up each second.
    pub leaving_per_second: f64,
    /// The seed of lots that are still to be drawn.
    pub lots: Option<[u64; 2]>,
    /// The lots that were drawn, if they were.
    pub lottery: Option<Lottery>,
    /// Whether it moves.
    pub state: State,
}

/// How far a lane is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reached {
    /// The next number.
    pub next: u64,
    /// The first that is not called.
    pub called: u64,
    /// Numbers that were called and whose visitors are still on the way, as far as is known; at most [`Reached::COMING_MAX`].
    pub coming: Vec<u64>,
}

impl Reached {
    /// The most numbers that are told to be on the way.
    pub const COMING_MAX: usize = 10_000;
}

/// The line of one kind of session.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    params: Params,
    state: State,
    lanes: [Numbers; LANES],
    /// The seed of lots that are still to be drawn, and the lots that were.
    lots: Option<[u64; 2]>,
    lottery: Option<Lottery>,
    estimate: Estimate,
    /// Sessions a second that the session law would let in.
    rate: f64,
    /// Seconds for which the gate holds whoever is called.
    hold: f64,
    claims: u64,
    claims_seen: u64,
    returned: u64,
    ticked: Instant,
    period_ends: Instant,
    knocks_end: Instant,
}

suimon_model::saved_struct!(
    Line {
        params,
        state,
        lanes,
        lots,
        lottery,
        estimate,
        rate,
        hold,
        claims,
        claims_seen,
        returned,
        ticked,
        period_ends,
        knocks_end,
    },
    |it: &Line| it.claims_seen <= it.claims
);

/// One lane.
#[derive(Clone, PartialEq, Debug, Default)]
struct Numbers {
    next: u64,
    /// The first that is not called.
    called: u64,
    /// The first that was drawn of late, now and when the period began.
    settled: u64,
    heard_from: u64,
    /// The first that was called of late: whoever was called before and has not come is not waited for.
    late: u64,
    /// Times past, the oldest first.
    marks: VecDeque<Mark>,
    presence: Presence,
    /// People called who were expected to come, ever, and up to `late`.
    asked: u64,
    asked_late: u64,
    /// Of those called and expected, how many were waited for long enough, and how many of these came; both forget.
    known: f64,
    came: f64,
}

suimon_model::saved_struct!(
    Numbers { next, called, settled, heard_from, late, marks, presence, asked, asked_late, known, came },
    |it: &Numbers| {
        let mark_is_sound = |mark: &Mark| {
            (it.late..=it.called).contains(&mark.called)
                && (it.asked_late..=it.asked).contains(&mark.asked)
                && mark.next <= it.next
        };
        it.called <= it.next
            && it.late <= it.called
            && it.settled <= it.next
            && it.presence.first() <= it.next
            && it.marks.len() <= MARKS_MAX
            && it.marks.iter().all(mark_is_sound)
            && it.marks.iter().is_sorted_by_key(|mark| (mark.at, mark.called, mark.asked))
    }
);

/// How far a lane was at a time past.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mark {
    at: Instant,
    next: u64,
    called: u64,
    asked: u64,
}

suimon_model::saved_struct!(Mark { at, next, called, asked });

impl Line {
    /// Returns a line in which nobody is.
    pub fn new(params: Params, now: Instant) -> Self {
        Line {
            params,
            state: State::Moving,
            lanes: Default::default(),
            lots: None,
            lottery: None,
            estimate: Estimate::default(),
            rate: 0.0,
            hold: 0.0,
            claims: 0,
            claims_seen: 0,
            returned: 0,
            ticked: now,
            period_ends: now + PERIOD,
            knocks_end: now + KNOCKS,
        }
    }

    /// Returns a line that goes on where another ended. `skipped`: numbers that may have been drawn since `saved` was written; they are not drawn again.
    ///
    /// Everybody who was not called, or only of late, is taken to be present, until a period has gone by without a word of them.
    pub fn resume(params: Params, now: Instant, saved: &Saved, skipped: u64) -> Self {
        let mut line = Line::new(params, now);
        line.state = saved.state;
        (line.lots, line.lottery) = (saved.lots, saved.lottery);
        line.estimate = Estimate::with_leaving(saved.leaving_per_second);
        for (lane, Reached { next, called, coming }) in line.lanes.iter_mut().zip(&saved.lanes) {
            lane.next = next.saturating_add(skipped);
            lane.called = *called.min(next);
            lane.late = coming.iter().copied().min().unwrap_or(u64::MAX).min(lane.called);
            lane.settled = lane.next;
            lane.presence.forget_before(lane.late);
            let coming = coming.iter().copied().filter(|number| *number < lane.called);
            coming.for_each(|number| _ = lane.presence.hear(number));
            (lane.called..*next).take(NUMBERS_MAX as usize).for_each(|number| _ = lane.presence.hear(number));
        }
        line
    }

    /// Returns what must survive a restart.
    pub fn saved(&self) -> Saved {
        Saved {
            lanes: self.lanes.each_ref().map(Numbers::reached),
            leaving_per_second: self.estimate.leaving(),
            lots: self.lots,
            lottery: self.lottery,
            state: self.state,
        }
    }

    /// Draws a place; `None` if there are too many, or the line is closed.
    pub fn draw(&mut self, lane: Lane) -> Option<Place> {
        if self.state == State::Closed {
            return None;
        }
        let numbers = &mut self.lanes[lane.index()];
        if numbers.next - numbers.presence.first() >= NUMBERS_MAX {
            return None;
        }
        let place = Place { lane, number: numbers.next };
        numbers.next += 1;
        self.call();
        Some(place)
    }

    /// Takes note that the holder of `place` is at the gate, and returns what to tell them if they are not let in.
    pub fn knock(&mut self, now: Instant, place: Place) -> Standing {
        let standing = self.contact(now, place);
        if standing == Standing::Called {
            let (_, rank) = self.rank(place);
            self.lanes[place.lane.index()].presence.knock(rank);
        }
        standing
    }

    /// Takes note that the holder of `place` asks, and returns what to tell them. A number that was never drawn is taken for the last one.
    pub fn contact(&mut self, now: Instant, place: Place) -> Standing {
        let (_, rank) = self.rank(place);
        let numbers = &mut self.lanes[place.lane.index()];
        if rank < numbers.next {
            let is_new = numbers.presence.hear(rank);
            // Whoever is late with the second request was not lost before.
            self.returned += u64::from(is_new && rank < numbers.heard_from);
        }
        if rank < numbers.called {
            numbers.presence.come(rank);
        }
        self.standing(now, place)
    }

    /// Returns what to tell the holder of `place`.
    pub fn standing(&self, now: Instant, place: Place) -> Standing {
        if self.state == State::Closed {
            return Standing::Closed;
        }
        let (_, rank) = self.rank(place);
        let numbers = &self.lanes[place.lane.index()];
        if rank < numbers.called && self.state == State::Moving {
            return Standing::Called;
        }
        let ahead = numbers.expected_before(rank.min(numbers.next));
        let idle =
            |left: f64| Wait { ahead, low: Duration::ZERO, high: Duration::ZERO, poll_after: seconds(left) };
        match self.state {
            State::Opening(at) => {
                // Not all at the same moment; those who come first are called some seconds ahead.
                let left = at.secs_since(now) + POLL_SPREAD * spread(place.number);
                Standing::Opening(at, idle(left.clamp(POLL_MIN, POLL_IDLE)))
            }
            State::Paused => Standing::Paused(idle(POLL_IDLE)),
            State::Closed => Standing::Closed,
            State::Moving if !self.estimate.is_known() => Standing::Waiting(idle(POLL_UNKNOWN)),
            State::Moving => {
                let share = self.share(place.lane);
                let there = self.estimate.still_there(ahead, self.unheard(now));
                let (low, high) = self.estimate.wait(there, share);
                let soonest = self.estimate.soonest(there, share, self.rate);
                let poll_after = seconds(poll_after(soonest, lead(self.hold), place.number));
                Standing::Waiting(Wait { ahead, low: seconds(low), high: seconds(high), poll_after })
            }
        }
    }

    /// Takes note that the session of `place` has begun, and returns whether that is new.
    pub fn claimed(&mut self, place: Place) -> bool {
        let (_, rank) = self.rank(place);
        let numbers = &mut self.lanes[place.lane.index()];
        // A number that was never drawn is nobody's.
        let is_new = rank < numbers.next && numbers.presence.claim(rank);
        self.claims += u64::from(is_new);
        self.call();
        is_new
    }

    /// Returns whether the session of `place` has begun, as far as it is known.
    pub fn is_claimed(&self, place: Place) -> bool {
        let (_, rank) = self.rank(place);
        self.lanes[place.lane.index()].presence.is_claimed(rank)
    }

    /// Takes note that the holder of `place` has gone for good.
    pub fn left(&mut self, place: Place) {
        let (_, rank) = self.rank(place);
        let numbers = &mut self.lanes[place.lane.index()];
        if rank < numbers.next {
            numbers.presence.claim(rank);
        }
        self.call();
    }

    /// Does what is due some four times a second. `rate`: sessions a second that the session law would let in, if it knows; `hold`: seconds for which the
    /// gate holds whoever is called.
    pub fn tick(&mut self, now: Instant, rate: Option<f64>, hold: f64) {
        self.hold = hold;
        let waited = self.is_waited_in();
        let claims = self.claims - std::mem::replace(&mut self.claims_seen, self.claims);
        let passed = now.secs_since(self.ticked);
        self.estimate.pace(claims, passed, waited && self.state == State::Moving, rate.unwrap_or_default());
        // Where nobody knows, as many are called as have begun of late.
        self.rate = rate.unwrap_or_else(|| self.estimate.per_second());
        self.ticked = now;
        if let State::Opening(at) = self.state
            && now >= at
        {
            self.state = State::Moving;
            if let Some(seed) = self.lots.take() {
                self.draw_lots(seed);
            }
        }
        self.lanes.iter_mut().for_each(|numbers| numbers.age(now));
        if now >= self.knocks_end {
            self.knocks_end = now + KNOCKS;
            self.lanes.iter_mut().for_each(|numbers| numbers.presence.end_knocks());
        }
        if now >= self.period_ends {
            self.period_ends = now + PERIOD;
            self.turn_over();
        }
        self.call();
    }

    /// Does what its operator says.
    pub fn command(&mut self, command: Command) {
        match command {
            Command::Pause => self.state = State::Paused,
            Command::Move => self.state = State::Moving,
            Command::Close => self.state = State::Closed,
            Command::OpenAt { at, lots } => (self.state, self.lots) = (State::Opening(at), lots),
        }
    }

    /// Decides by lot in which order those come who have drawn a number in the normal lane and were not called.
    fn draw_lots(&mut self, seed: [u64; 2]) {
        let numbers = &mut self.lanes[Lane::Normal.index()];
        // An order that was drawn is not drawn again before all of it was called.
        if self.lottery.is_some_and(|lottery| lottery.range().1 > numbers.called) {
            return;
        }
        let lottery = Lottery::new(seed, numbers.called, numbers.next);
        numbers.presence =
            numbers.presence.renumbered(numbers.called, numbers.next, |number| lottery.rank(number));
        // In the new order those heard of once are everywhere.
        numbers.settled = numbers.next;
        numbers.marks.clear();
        (numbers.late, numbers.asked_late) = (numbers.called, numbers.asked);
        self.lottery = Some(lottery);
    }

    /// Returns the lane of `place`, and its rank there: who comes first.
    pub fn rank(&self, place: Place) -> (Lane, u64) {
        let rank = match self.lottery {
            Some(lottery) if place.lane == Lane::Normal => lottery.rank(place.number),
            _ => place.number,
        };
        (place.lane, rank)
    }

    /// Returns whether lots have decided about numbers that are still to be called.
    pub fn has_lots_to_call(&self) -> bool {
        let called = self.lanes[Lane::Normal.index()].called;
        self.lottery.is_some_and(|lottery| lottery.range().1 > called)
    }

    /// Returns whether it moves.
    pub fn is_moving(&self) -> bool {
        self.state == State::Moving
    }

    /// Returns how many of those called may be held at the gate at once: as many as begin while one is held.
    pub fn held_at_once(&self) -> usize {
        (self.rate * self.hold).max(AHEAD_MIN).ceil() as usize
    }

    /// Returns whether anybody waits who is not called.
    pub fn is_waited_in(&self) -> bool {
        self.lanes.iter().any(Numbers::is_waited_in)
    }

    /// Returns how many wait, as far as is known: whoever is present and has not begun, and whoever has just drawn.
    pub fn waiting(&self) -> u64 {
        self.lanes.iter().map(|numbers| numbers.expected_before(numbers.next)).sum()
    }

    /// Returns what can be seen.
    pub fn view(&self) -> View {
        let sum = |of: fn(&Numbers) -> u64| self.lanes.iter().map(of).sum();
        View {
            state: self.state,
            drawn: sum(|numbers| numbers.next),
            called: sum(|numbers| numbers.called),
            claimed: self.claims,
            present: sum(|numbers| numbers.presence.present()),
            provisional: sum(Numbers::provisional),
            expected: self.lanes.iter().map(Numbers::expected).sum::<f64>() as u64,
            shown_up: self.lanes[Lane::Normal.index()].show(),
            per_second: self.estimate.per_second(),
            leaving_per_second: self.estimate.leaving(),
        }
    }

    /// Calls as many as are expected to be at the gate within the time that it takes to come there.
    ///
    /// *Law*. On the way and at the gate are to be `wanted` = rate × ([`lead`]) people. Expected are those who were at the gate of late, those who were called in the
    /// last [`RECENT`] and have been heard of since, and of the others called then the share that came of those called before: many a visitor who has gone counts as
    /// present for another minute or two. Too many called is no harm: the gate lets in by the session law alone, and in the order of numbers.
    fn call(&mut self) {
        if self.state != State::Moving {
            return;
        }
        let has: [bool; LANES] = std::array::from_fn(|lane| self.lanes[lane].next > self.lanes[lane].called);
        let shares = Shares::new(self.params.weights);
        for lane in Lane::ALL.into_iter().filter(|lane| has[lane.index()]) {
            let share = shares.share(lane, |other| has[other.index()]);
            let wanted = (lead(self.hold) * self.rate * share).max(AHEAD_MIN);
            self.lanes[lane.index()].call(wanted);
        }
    }

    /// Returns how long those who have gone are still counted, on average, seconds: till the end of the period after the one they were last heard of in, and they
    /// went half of the longest time between two questions after that.
    fn unheard(&self, now: Instant) -> f64 {
        let period = PERIOD.as_secs_f64();
        2.0 * period - self.period_ends.secs_since(now).clamp(0.0, period) - POLL_MAX / 2.0
    }

    fn share(&self, lane: Lane) -> f64 {
        let has = |other: Lane| other == lane || self.lanes[other.index()].is_waited_in();
        Shares::new(self.params.weights).share(lane, has)
    }

    fn turn_over(&mut self) {
        let (mut heard, mut lost) = (0, 0);
        for numbers in &mut self.lanes {
            let turnover = numbers.presence.turn_over();
            heard += turnover.heard;
            lost += turnover.lost;
            numbers.presence.forget_before(numbers.late.min(numbers.settled));
            numbers.heard_from = numbers.settled;
        }
        let returned = std::mem::take(&mut self.returned);
        self.estimate.period(heard, lost, returned, PERIOD.as_secs_f64());
    }
}

impl Numbers {
    fn reached(&self) -> Reached {
        let coming = self.presence.unclaimed_in(self.late, self.called).take(Reached::COMING_MAX);
        Reached { next: self.next, called: self.called, coming: coming.collect() }
    }

    /// Moves the ends of what is recent, and learns how many of those called have come.
    fn age(&mut self, now: Instant) {
        if self.marks.back().is_none_or(|mark| now.secs_since(mark.at) >= MARK.as_secs_f64()) {
            if self.marks.len() == MARKS_MAX {
                self.marks.pop_front();
            }
            self.marks.push_back(Mark { at: now, next: self.next, called: self.called, asked: self.asked });
        }
        if let Some(mark) = self.marks.iter().rev().find(|mark| now.since(mark.at) >= DRAWN) {
            self.settled = self.settled.max(mark.next);
        }
        while let Some(mark) = self.marks.front().copied()
            && now.since(mark.at) >= RECENT
        {
            self.marks.pop_front();
            let came = self.presence.came(self.late, mark.called) as f64;
            let asked = (mark.asked - self.asked_late) as f64;
            let kept = (1.0 - asked / CALLS_KNOWN).max(0.0);
            self.known = kept * self.known + asked;
            self.came = kept * self.came + came.min(asked);
            (self.late, self.asked_late) = (mark.called, mark.asked);
        }
    }

    /// Returns how many are there of those before `number`, as far as is known: whoever is present, and whoever has just drawn.
    fn expected_before(&self, number: u64) -> u64 {
        let settled = self.settled.min(number);
        self.presence.ahead_of(settled) + self.presence.unclaimed(settled, number)
    }

    /// Returns how many drew of late and were not heard of again yet.
    fn provisional(&self) -> u64 {
        let heard = self.presence.ahead_of(self.next) - self.presence.ahead_of(self.settled.min(self.next));
        self.presence.unclaimed(self.settled, self.next).saturating_sub(heard)
    }

    /// Returns the share of those called and expected that comes.
    fn show(&self) -> f64 {
        ((self.came + CALLS_BELIEVED) / (self.known + CALLS_BELIEVED)).max(SHOW_MIN)
    }

    /// Returns how many of those called are at the gate or expected there: whoever was there of late, whoever was called of late and was heard of since, and of
    /// the others called of late the share that comes. Of those called before who are not at the gate most have gone, or are in no haste.
    fn expected(&self) -> f64 {
        let at_the_gate = self.presence.knocking(self.presence.first(), self.called);
        let on_the_way = self.presence.on_the_way(self.late, self.called);
        let known = on_the_way + self.presence.knocking(self.late, self.called);
        let all = self.expected_before(self.called) - self.expected_before(self.late);
        (at_the_gate + on_the_way) as f64 + self.show() * all.saturating_sub(known) as f64
    }

    fn is_waited_in(&self) -> bool {
        self.next > self.called && self.expected_before(self.next) > self.expected_before(self.called)
    }

    /// Calls on until so many of those called are expected to come.
    fn call(&mut self, wanted: f64) {
        let missing = ((wanted - self.expected()) / self.show()).ceil().min(NUMBERS_MAX as f64) as u64;
        if missing == 0 {
            return;
        }
        let before = self.expected_before(self.called);
        let (reached, missing) = if self.called < self.settled {
            self.presence.reach(self.called, missing, self.settled)
        } else {
            (self.called, missing)
        };
        self.called = (reached + missing).min(self.next);
        self.asked += self.expected_before(self.called) - before;
    }
}

/// Returns seconds from a call until whoever is there is to begin.
fn lead(hold: f64) -> f64 {
    POLL_MIN + ENTERING + HELD_SHARE * hold
}

/// Returns seconds until the holder of `number` is to ask again, with `left` seconds to go, `lead` seconds after its call.
fn poll_after(left: f64, lead: f64, number: u64) -> f64 {
    if left < POLL_NEAR {
        // When it is called.
        return (POLL_NEAR_SHARE * (left - lead)).max(POLL_MIN);
    }
    (POLL_SHARE * left).clamp(POLL_MIN, POLL_MAX / (1.0 + POLL_JITTER))
        * (1.0 + POLL_JITTER * (2.0 * spread(number) - 1.0))
}

/// Returns something from 0 to 1 that is another for neighbours, so that nothing random is needed.
fn spread(number: u64) -> f64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24)
}

#[cfg(test)]
mod tests;
