//! The machine: places are drawn, heard of, called and claimed.

use crate::calibration::Calibration;
use crate::estimate::Estimate;
use crate::lane::{LANES, Lane, Position};
use crate::lottery::Lottery;
use crate::numbers::{NUMBERS_MAX, Numbers, SavedLane};
use crate::shares::Shares;
use suimon_model::{Duration, Instant, seconds};

/// A visitor who does not poll for a whole period no longer counts as present; no page polls less
/// often than every [`POLL_MAX`] seconds.
const PERIOD: Duration = Duration::from_secs(75);
/// A visitor who was at the gate and could not be admitted is back within this time.
const CHECK_IN_SPAN: Duration = Duration::from_secs(20);
/// Least number of visitors called ahead.
const AHEAD_MIN: f64 = 3.0;
/// Time between the page's announcement of the turn and its request to enter: time to hear it and
/// to say "not yet".
pub const ENTERING: Duration = Duration::from_secs(5);
/// Those called are to be held at the gate for this share of the longest time, on average: were it
/// more, some would be sent away and overtaken before they are back.
const HELD_SHARE: f64 = 0.5;
/// Poll interval as a share of the remaining wait, and its bounds in seconds. The lower bound is
/// for visitors whose turn is next.
const POLL_SHARE: f64 = 0.25;
const POLL_MIN: f64 = 2.0;
const POLL_MAX: f64 = 60.0;
/// A visitor with less time left than this, seconds, is told to poll again when this share of the
/// time until the call is over: the line may move faster than predicted, and a visitor who hears of
/// the call late is overtaken.
const POLL_NEAR: f64 = 30.0;
const POLL_NEAR_SHARE: f64 = 0.5;
/// Those whose turn is far off do not all come at once.
const POLL_JITTER: f64 = 0.1;
/// After an opening, the polls of all who waited for it are spread over this many seconds.
const POLL_SPREAD: f64 = 10.0;
/// Poll interval before an opening and while the line is stopped, seconds.
const POLL_IDLE: f64 = 30.0;
/// While the application does not answer, this many at the head of the line poll at the shortest
/// interval, so that there is somebody to admit once it does; the others poll as in a line that
/// stands still.
const FIRST_MAX: f64 = 50.0;
/// Poll interval while the admission rate is unknown, seconds: before the first admissions under a
/// law that does not predict.
const POLL_UNKNOWN: f64 = 10.0;

/// What a line is told before it starts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Params {
    /// Turns by lane, by [`Lane::index`], each above 0. The normal lane's share of all of them is
    /// its floor.
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
pub enum LineStatus {
    /// It moves.
    Moving,
    /// It takes numbers and does not move before this moment, when the numbers taken until then are
    /// ordered by lot.
    Opening(Instant),
    /// Its operator has paused it.
    Paused,
    /// There is nothing to wait for any more.
    Closed,
}

suimon_model::saved_enum!(LineStatus { 0 = Moving, 1 = Opening(at), 2 = Paused, 3 = Closed });

/// What an operator may say to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Stand still; numbers are drawn all the same.
    Pause,
    /// Move, whatever was said before.
    Move,
    /// There is nothing to wait for any more: all visitors are told so, and no number is drawn.
    Close,
    /// Take numbers and admit nobody before `at`. With `lots`, their seed, the order of those who
    /// are there is then drawn by lot.
    OpenAt {
        /// When it opens.
        at: Instant,
        /// The seed of the lots.
        lots: Option<[u64; 2]>,
    },
}

suimon_model::saved_enum!(Command { 0 = Pause, 1 = Move, 2 = Close, 3 = OpenAt { at, lots } });

/// The status of the holder of a place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PositionStatus {
    /// They are called: those of the called who are at the gate begin as the session gate decides,
    /// and these are ahead of them there.
    Called(Wait),
    /// Not yet.
    Waiting(Wait),
    /// The line opens at this moment; times are unknown.
    Opening(Instant, Wait),
    /// Its operator has paused the line; times are unknown.
    Paused(Wait),
    /// The application does not answer, and nobody is admitted until it does, called or not; times
    /// are unknown. Nobody is ahead of a called visitor.
    ApplicationDown(Wait),
    /// The line is closed: nobody will be called any more.
    Closed,
}

impl PositionStatus {
    /// Returns whether they are called.
    pub const fn is_called(&self) -> bool {
        matches!(self, PositionStatus::Called(_))
    }
}

/// How far away a turn is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wait {
    /// People present ahead.
    pub ahead: u64,
    /// The time left if people go on giving up as they did, and if nobody does. Zero where unknown.
    pub low: Duration,
    /// See `low`.
    pub high: Duration,
    /// When to poll again.
    pub poll_after: Duration,
}

/// What can be seen of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View {
    /// Whether it moves.
    pub state: LineStatus,
    /// Whether it stands still because the application does not answer, whatever its operator has
    /// said.
    pub away: bool,
    /// Tickets issued since the line began, all lanes, ...
    pub issued: u64,
    /// ... those called, ...
    pub called: u64,
    /// ... and those whose holders were admitted.
    pub admitted: u64,
    /// People present now, those called included.
    pub present: u64,
    /// Waiting visitors, as shown to those behind them: present and not admitted yet, or with a
    /// ticket issued just now.
    pub waiting: u64,
    /// Those of them who were not called.
    pub uncalled: u64,
    /// Recently issued numbers whose holders have not polled yet.
    pub provisional: u64,
    /// People called who are expected to come.
    pub expected: u64,
    /// Share of the recently called and expected visitors of the normal lane who came to the gate.
    pub shown_up: f64,
    /// Visitors admitted from the line per second.
    pub admitted_per_second: f64,
    /// Abandonment rate: share of the waiting visitors that gives up per second.
    pub abandonment_per_second: f64,
}

/// What must survive a restart.
#[derive(Clone, PartialEq, Debug)]
pub struct SavedLine {
    /// By [`Lane::index`]: how far it is.
    pub lanes: [SavedLane; LANES],
    /// Share of those waiting that gives up each second.
    pub leaving_per_second: f64,
    /// The seed of lots that are still to be drawn.
    pub lots: Option<[u64; 2]>,
    /// The lots that were drawn, the oldest first; at most [`SavedLine::LOTTERIES_MAX`].
    pub lotteries: Vec<Lottery>,
    /// Whether it moves.
    pub state: LineStatus,
}

impl SavedLine {
    /// Of more openings by lot than this the oldest are forgotten: a place that is left of one of
    /// them then stands where the number says.
    pub const LOTTERIES_MAX: usize = 16;
}

/// The line of one kind of session.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    params: Params,
    state: LineStatus,
    /// Whether the application does not answer.
    away: bool,
    lanes: [Numbers; LANES],
    /// The seed of lots that are still to be drawn, and the lots that were.
    lots: Option<[u64; 2]>,
    lotteries: Vec<Lottery>,
    estimate: Estimate,
    /// Errors of predicted waits in the normal lane.
    calibration: Calibration,
    /// Sessions per second that the session law would admit.
    rate: f64,
    /// Factor on the number of visitors called ahead.
    ready: f64,
    /// Seconds for which the gate holds a called visitor.
    hold: f64,
    claims: u64,
    claims_seen: u64,
    returned: u64,
    ticked: Instant,
    period_ends: Instant,
    check_in_span_ends: Instant,
    /// After a restart: until when visitors who are back wait for those before them.
    gathers_until: Instant,
    /// Where several gateways share it: what may be drawn, and up to where is called.
    shared: Option<shared::SharedLine>,
}

suimon_model::saved_struct!(
    Line {
        params,
        state,
        away,
        lanes,
        lots,
        lotteries,
        estimate,
        calibration,
        rate,
        ready,
        hold,
        claims,
        claims_seen,
        returned,
        ticked,
        period_ends,
        check_in_span_ends,
        gathers_until,
    } without { shared },
    |it: &Line| it.claims_seen <= it.claims
);

impl Line {
    /// Returns an empty line.
    pub fn new(params: Params, now: Instant) -> Self {
        Line {
            params,
            state: LineStatus::Moving,
            away: false,
            lanes: Default::default(),
            lots: None,
            lotteries: Vec::new(),
            estimate: Estimate::default(),
            calibration: Calibration::default(),
            rate: 0.0,
            ready: 1.0,
            hold: 0.0,
            claims: 0,
            claims_seen: 0,
            returned: 0,
            ticked: now,
            period_ends: now + PERIOD,
            check_in_span_ends: now + CHECK_IN_SPAN,
            gathers_until: now,
            shared: None,
        }
    }

    /// Draws a place; `None` if there are too many, or the line is closed.
    pub fn draw(&mut self, lane: Lane) -> Option<Position> {
        if self.state == LineStatus::Closed {
            return None;
        }
        let numbers = &mut self.lanes[lane.index()];
        let position = match &self.shared {
            None if numbers.next - numbers.presence.first() >= NUMBERS_MAX => return None,
            Some(_) if numbers.is_full() => return None,
            None => {
                numbers.next += 1;
                Position { lane, number: numbers.next - 1 }
            }
            Some(shared) => {
                let number = shared.number(lane, numbers.next)?;
                numbers.drawn_here(self.ticked, number);
                Position { lane, number }
            }
        };
        self.call();
        Some(position)
    }

    /// Takes note that the holder of `position` is at the gate, and returns the status to show if
    /// they are not admitted.
    pub fn check_in(&mut self, now: Instant, position: Position) -> PositionStatus {
        let standing = self.contact(now, position);
        if standing.is_called() {
            let (_, rank) = self.rank(position);
            self.lanes[position.lane.index()].presence.check_in(rank);
        }
        standing
    }

    /// Takes note of a poll of the holder of `position`, and returns the status to show. A number
    /// that was never drawn is taken for the last one.
    pub fn contact(&mut self, now: Instant, position: Position) -> PositionStatus {
        let (_, rank) = self.rank(position);
        let numbers = &mut self.lanes[position.lane.index()];
        if self.shared.is_some() {
            numbers.know_of(rank);
        }
        if rank < numbers.next {
            let is_new = numbers.presence.hear(rank);
            if is_new {
                numbers.is_held(rank);
            }
            // A visitor whose second request is late was not lost before.
            self.returned += u64::from(is_new && rank < numbers.heard_from);
        }
        if rank < numbers.called {
            numbers.presence.come(rank);
        }
        self.standing(now, position)
    }

    /// Returns the status to show the holder of `position`.
    pub fn standing(&self, now: Instant, position: Position) -> PositionStatus {
        let standing = self.standing_here(now, position);
        let Some(shared) = &self.shared else { return standing };
        let (lane, rank) = self.rank(position);
        standing.behind(shared.ahead_elsewhere(lane, rank))
    }

    fn standing_here(&self, now: Instant, position: Position) -> PositionStatus {
        if self.state == LineStatus::Closed {
            return PositionStatus::Closed;
        }
        let (_, rank) = self.rank(position);
        let numbers = &self.lanes[position.lane.index()];
        let is_called = rank < numbers.called;
        if is_called && self.is_moving() {
            return PositionStatus::Called(self.left_at_the_gate(position));
        }
        let ahead = numbers.expected_before(rank.min(numbers.next));
        let idle =
            |left: f64| Wait { ahead, low: Duration::ZERO, high: Duration::ZERO, poll_after: seconds(left) };
        match self.state {
            LineStatus::Opening(at) => {
                // Not all at the same moment; those at the head are called some seconds ahead.
                let left = at.secs_since(now) + POLL_SPREAD * spread(position.number);
                PositionStatus::Opening(at, idle(left.clamp(POLL_MIN, POLL_IDLE)))
            }
            LineStatus::Paused => PositionStatus::Paused(idle(POLL_IDLE)),
            LineStatus::Closed => PositionStatus::Closed,
            LineStatus::Moving if self.away => {
                let ahead = if is_called { 0 } else { ahead };
                let first = (lead(self.hold) * self.rate).clamp(AHEAD_MIN, FIRST_MAX);
                let left = if (ahead as f64) < first { POLL_MIN } else { POLL_IDLE };
                PositionStatus::ApplicationDown(Wait { ahead, ..idle(left) })
            }
            LineStatus::Moving if !self.estimate.is_known() => PositionStatus::Waiting(idle(POLL_UNKNOWN)),
            LineStatus::Moving => {
                let share = self.share(position.lane);
                let there = self.estimate.still_there(ahead, self.unheard(now));
                let (foreseen, _) = self.estimate.wait(there, share);
                let (low, high) = self.calibration.range(foreseen, there);
                let soonest = self.estimate.soonest(there, share, self.rate);
                let poll_after = seconds(poll_after(soonest, lead(self.hold), position.number));
                PositionStatus::Waiting(Wait { ahead, low: seconds(low), high: seconds(high), poll_after })
            }
        }
    }

    /// Returns the time left for `position`, which is called: until those called before it have
    /// begun, and until one more has.
    fn left_at_the_gate(&self, position: Position) -> Wait {
        let ahead = self.expected_before(position);
        let poll_after = seconds(POLL_MIN);
        if !self.estimate.is_known() {
            return Wait { ahead, low: Duration::ZERO, high: Duration::ZERO, poll_after };
        }
        let share = self.share(position.lane);
        let (low, _) = self.estimate.wait(ahead as f64, share);
        let (_, high) = self.estimate.wait(ahead as f64 + 1.0, share);
        Wait { ahead, low: seconds(low), high: seconds(high), poll_after }
    }

    /// Takes note that the session of `position` has begun, and returns whether that is new.
    pub fn claimed(&mut self, position: Position) -> bool {
        let (_, rank) = self.rank(position);
        let numbers = &mut self.lanes[position.lane.index()];
        // A number that was never drawn is nobody's.
        let is_new = rank < numbers.next && numbers.presence.claim(rank);
        self.claims += u64::from(is_new);
        self.call();
        is_new
    }

    /// Returns whether the session of `position` has begun, as far as it is known.
    pub fn is_claimed(&self, position: Position) -> bool {
        let (_, rank) = self.rank(position);
        self.lanes[position.lane.index()].presence.is_claimed(rank)
    }

    /// Takes note that the holder of `position` has gone for good.
    pub fn left(&mut self, position: Position) {
        let (_, rank) = self.rank(position);
        let numbers = &mut self.lanes[position.lane.index()];
        if rank < numbers.next {
            numbers.presence.claim(rank);
        }
        self.call();
    }

    /// Has `times` as many people called and held as the session law would admit, 1 or more: where
    /// the law may find out at any moment that it may admit more.
    pub fn be_ready_for(&mut self, times: f64) {
        self.ready = times.max(1.0);
    }

    /// Does what is due some four times per second. `rate`: sessions per second that the session
    /// law would admit, if it knows; `hold`: seconds for which the gate holds a called visitor.
    pub fn tick(&mut self, now: Instant, rate: Option<f64>, hold: f64) {
        self.hold = hold;
        let waited = self.has_waiters();
        let claims = self.claims - std::mem::replace(&mut self.claims_seen, self.claims);
        let passed = now.secs_since(self.ticked);
        // While the application is down nothing is learned of the rate, and what was known is not
        // forgotten. Nor is anything learned while those in front come back.
        if !self.away {
            let tells = waited && self.is_moving() && now >= self.gathers_until;
            self.estimate.pace(claims, passed, tells, rate.unwrap_or_default());
        }
        // Where the rate is unknown, as many are called as have begun recently.
        self.rate = rate.unwrap_or_else(|| self.estimate.per_second());
        self.ticked = now;
        if let LineStatus::Opening(at) = self.state
            && now >= at
        {
            self.state = LineStatus::Moving;
            if let Some(seed) = self.lots.take() {
                self.draw_lots(seed);
            }
        }
        self.lanes.iter_mut().for_each(|numbers| numbers.age(now));
        if now >= self.check_in_span_ends {
            self.check_in_span_ends = now + CHECK_IN_SPAN;
            self.lanes.iter_mut().for_each(|numbers| numbers.presence.end_check_in_span());
        }
        if now >= self.period_ends {
            self.period_ends = now + PERIOD;
            self.turn_over();
        }
        self.call();
        self.learn_errors(now);
    }

    /// Compares predicted waits with real ones, and notes what is predicted now.
    fn learn_errors(&mut self, now: Instant) {
        if self.state != LineStatus::Moving || !self.estimate.is_known() {
            return;
        }
        let share = self.share(Lane::Normal);
        let numbers = &self.lanes[Lane::Normal.index()];
        let (later, _) = self.estimate.wait(numbers.expected(numbers.called), share);
        self.calibration.called(now, numbers.called, later);
        let waiting = numbers.settled.saturating_sub(numbers.called);
        if waiting > 0
            && let Some(part) = self.calibration.is_due(now)
        {
            let number = numbers.called + ((waiting - 1) as f64 * part) as u64;
            let there = self.estimate.still_there(numbers.expected_before(number), self.unheard(now));
            let (foreseen, _) = self.estimate.wait(there, share);
            self.calibration.note(now, number, foreseen);
        }
    }

    /// Executes a command of its operator.
    pub fn command(&mut self, command: Command) {
        self.calibration.interrupt();
        match command {
            Command::Pause => self.state = LineStatus::Paused,
            Command::Move => self.state = LineStatus::Moving,
            Command::Close => self.state = LineStatus::Closed,
            Command::OpenAt { at, lots } => (self.state, self.lots) = (LineStatus::Opening(at), lots),
        }
    }

    /// Takes note whether the application answers. While it does not, nobody is called and nobody's
    /// turn is over.
    pub fn application(&mut self, is_up: bool) {
        self.away = !is_up;
        self.call();
    }

    /// Draws by lot the order of those who have a number in the normal lane and were not called.
    fn draw_lots(&mut self, seed: [u64; 2]) {
        let numbers = &mut self.lanes[Lane::Normal.index()];
        // An order that was drawn is not drawn again before all of it has been called.
        if self.lotteries.last().is_some_and(|lottery| lottery.range().1 > numbers.called) {
            return;
        }
        let lottery = Lottery::new(seed, numbers.called, numbers.next);
        numbers.reorder(|number| lottery.rank(number));
        self.calibration.interrupt();
        if self.lotteries.len() >= SavedLine::LOTTERIES_MAX {
            self.lotteries.remove(0);
        }
        self.lotteries.push(lottery);
    }

    /// Returns the lane of `position`, and its rank there: the order of turns.
    pub fn rank(&self, position: Position) -> (Lane, u64) {
        if position.lane != Lane::Normal {
            return (position.lane, position.number);
        }
        // No number is in two of them, and none leaves its own.
        (position.lane, self.lotteries.iter().fold(position.number, |number, lottery| lottery.rank(number)))
    }

    /// Returns whether numbers ordered by lot are still to be called.
    pub fn has_lots_to_call(&self) -> bool {
        let called = self.lanes[Lane::Normal.index()].called;
        self.lotteries.last().is_some_and(|lottery| lottery.range().1 > called)
    }

    /// Returns whether it moves, or will.
    pub fn state(&self) -> LineStatus {
        self.state
    }

    /// Returns whether it moves.
    pub fn is_moving(&self) -> bool {
        self.state == LineStatus::Moving && !self.away
    }

    /// Returns how many of those called before `position` in its lane are at the gate or expected
    /// there.
    pub fn expected_before(&self, position: Position) -> u64 {
        let (lane, rank) = self.rank(position);
        self.lanes[lane.index()].expected(rank).round() as u64
    }

    /// Returns how many of those called are at the gate or expected there, except those behind
    /// `position` in its lane.
    pub fn expected_beside(&self, position: Position) -> u64 {
        let others = Lane::ALL.into_iter().filter(|lane| *lane != position.lane);
        let expected = |lane: Lane| self.lanes[lane.index()].expected(u64::MAX).ceil() as u64;
        others.map(expected).sum::<u64>() + self.expected_before(position)
    }

    /// Returns how many of those called may be held at the gate at once: as many as begin while one
    /// is held.
    pub fn held_at_once(&self) -> usize {
        (self.ready * self.rate * self.hold).max(AHEAD_MIN).ceil() as usize
    }

    /// Returns whether anybody waits who is not called.
    pub fn has_waiters(&self) -> bool {
        self.lanes.iter().any(Numbers::has_waiters)
    }

    /// Returns how many wait, as far as is known: those who are present and have not begun, and
    /// those who have just drawn.
    pub fn waiting(&self) -> u64 {
        self.lanes.iter().map(|numbers| numbers.expected_before(numbers.next)).sum()
    }

    /// Returns what can be seen.
    pub fn view(&self) -> View {
        let sum = |of: fn(&Numbers) -> u64| self.lanes.iter().map(of).sum();
        View {
            state: self.state,
            away: self.away,
            issued: sum(Numbers::drawn),
            called: sum(Numbers::people_called),
            admitted: self.claims,
            present: sum(|numbers| numbers.presence.present()),
            waiting: self.waiting(),
            uncalled: sum(Numbers::uncalled),
            provisional: sum(Numbers::provisional),
            expected: self.lanes.iter().map(|numbers| numbers.expected(numbers.called)).sum::<f64>() as u64,
            shown_up: self.lanes[Lane::Normal.index()].show(),
            admitted_per_second: self.estimate.per_second(),
            abandonment_per_second: self.estimate.leaving(),
        }
    }

    /// Calls as many as are expected to be at the gate within the time that it takes to come there.
    ///
    /// *Law*. On the way and at the gate there should be `wanted` = rate × ([`lead`]) people, or
    /// that times the factor of [`Line::be_ready_for`]. Expected are: those who were recently at
    /// the gate; those who were called in the last quarter of a minute and have polled since; and
    /// of the others called then as many as are more than (1 − `show`) × called: a visitor who has gone
    /// counts as present for another minute or two. `show` is the share that came of those called
    /// before. Too many called do the application no harm: the gate admits by the session law alone,
    /// and in the order of numbers. But no more are held there than begin meanwhile
    /// ([`Line::held_at_once`]), and those sent away are overtaken.
    fn call(&mut self) {
        if !self.is_moving() {
            return;
        }
        if let Some(shared) = &self.shared {
            return shared.call(&mut self.lanes);
        }
        let has: [bool; LANES] = std::array::from_fn(|lane| self.lanes[lane].next > self.lanes[lane].called);
        let shares = Shares::new(self.params.weights);
        for lane in Lane::ALL.into_iter().filter(|lane| has[lane.index()]) {
            let share = shares.share(lane, |other| has[other.index()]);
            let wanted = (lead(self.hold) * self.ready * self.rate * share).max(AHEAD_MIN);
            self.lanes[lane.index()].call(wanted);
        }
    }

    /// Returns how long those who have gone are still counted, on average, seconds: till the end of
    /// the period after the one of their last poll; they left half of the longest poll interval
    /// after that poll.
    fn unheard(&self, now: Instant) -> f64 {
        let period = PERIOD.as_secs_f64();
        2.0 * period - self.period_ends.secs_since(now).clamp(0.0, period) - POLL_MAX / 2.0
    }

    fn share(&self, lane: Lane) -> f64 {
        let has = |other: Lane| other == lane || self.lanes[other.index()].has_waiters();
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

/// Returns seconds from a call until the visitor, if present, is to begin.
fn lead(hold: f64) -> f64 {
    POLL_MIN + ENTERING.as_secs_f64() + HELD_SHARE * hold
}

/// Returns seconds until the holder of `number` is to poll again, with `left` seconds to go, `lead`
/// seconds after its call.
fn poll_after(left: f64, lead: f64, number: u64) -> f64 {
    if left < POLL_NEAR {
        // When it is called.
        return (POLL_NEAR_SHARE * (left - lead)).max(POLL_MIN);
    }
    (POLL_SHARE * left).clamp(POLL_MIN, POLL_MAX / (1.0 + POLL_JITTER))
        * (1.0 + POLL_JITTER * (2.0 * spread(number) - 1.0))
}

/// Returns a value from 0 to 1 that differs between neighbours, so that no random number is needed.
fn spread(number: u64) -> f64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24)
}

mod restart;
mod shared;
#[cfg(test)]
mod tests;
