//! One kind of session at the gate: its line, its law, its visitors' patience.

use crate::api::{GateState, KindMode, KindParams, KindView, SessionEnds};
use crate::held::{HeldNewcomers, Key};
use crate::knowledge::RecalledPatience;
use crate::rush::{CLOSE_SHARE, Rush};
use suimon_control::{AdmissionInputs, Patience, RateMeter, SessionLaw, SessionLawKind};
use suimon_line::{Lane, Line, Position, PositionStatus};
use suimon_model::persist::{Broken, Persist, Reader, Unsavable, Writer};
use suimon_model::real::pow;
use suimon_model::{Duration, Instant, KindId, Quantity, Reason, Record, Signals, Subject, seconds};
use suimon_sharing::KindPart;

/// A newcomer is held for at most this share of the patience, where nothing is declared, ...
const HOLD_SHARE: f64 = 0.7;
/// ... and for at most this long, seconds: a page that says when to come again is better than a
/// blank one, ...
const HOLD_MAX: f64 = 10.0;
/// ... the more so if it keeps a place in line.
const HOLD_MAX_IN_LINE: f64 = 5.0;
/// A newcomer held for this many times the longest hold gets a response.
const OVERDUE: f64 = 1.25;
/// Highest admission rate passed to a line, sessions per second.
const RATE_MAX: f64 = 1e6;
/// After an outage, the admission rate is at most the one measured before it (at least this many
/// per second), doubled at the interval below: all newcomers of the meantime are there at once, and
/// the application's caches may be cold.
const BACK_PACE_MIN: f64 = 1.0;
const BACK_DOUBLES: f64 = 5.0;
/// Until this many sessions have begun, the law knows its rate badly and may raise it at any
/// moment: so this many times as many visitors are called ahead.
const COLD_SESSIONS: u64 = 40;
const COLD_TIMES: f64 = 2.0;
/// Least patience that is used unless a shorter one was declared, seconds: clients that leave
/// earlier have clicked on, or are not visitors.
pub(crate) const PATIENCE_MIN: f64 = 3.0;
/// Where fewer than this share of those who wait would stay for so long, newcomers are held for this share of the
/// patience that was learned, however short it is.
const HASTY_STAY: f64 = 0.5;
const HASTY_HOLD_SHARE: f64 = 0.4;
/// Lines shorter than this are not judged: the rate of a handful is noise.
const LINE_MIN: usize = 4;
/// For this many seconds after the first newcomer, others are held and not sent to the line,
/// whatever rate a cold law guesses; ...
const BLIND_SECONDS: f64 = 8.0;
/// ... at most this many of them.
pub(crate) const BLIND_MAX: usize = 512;
/// A client that comes back after Retry-After finds this share of the longest hold still to wait.
const RETURN_SHARE: f64 = 0.5;
/// `Retry-After` stays within these, seconds.
const RETRY_MIN: f64 = 1.0;
const RETRY_MAX: f64 = 30.0;

/// State of one kind.
#[derive(Debug)]
pub(crate) struct KindGate {
    pub(crate) id: KindId,
    pub(crate) params: KindParams,
    pub(crate) law: Box<dyn SessionLaw>,
    /// Newcomers held until they may begin.
    pub(crate) held: HeldNewcomers,
    /// Of those without a place in line: the rank of the next.
    arrivals: u64,
    pub(crate) line: Option<Line>,
    /// Whether anybody waits in line who was not called, as of the last tick.
    pub(crate) has_waiters: bool,
    /// When the head of the line may begin if nothing else happens.
    pub(crate) next: Option<Instant>,
    pub(crate) learner: Patience,
    /// The patience of another run's visitors.
    pub(crate) recalled: Option<RecalledPatience>,
    assumed: f64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// Newcomers, whatever their outcome, ...
    pub(crate) came: RateMeter,
    /// ... and those that were admitted.
    pub(crate) begun: RateMeter,
    /// Whether newcomers have come fast just now.
    rush: Rush,
    /// Whether newcomers are held only because nothing was known when they came.
    pub(crate) holds_blindly: bool,
    /// For display: newcomers in all, ...
    newcomers: u64,
    /// ... and what was last shown of a law that goes by the number of sessions: whether it is
    /// full, and how many were refused until then.
    announced_full: bool,
    refused_then: u64,
    /// Whether the application does not answer.
    away: bool,
    /// Sessions per second that began before that, and when it came back.
    before: Option<f64>,
    back: Option<Instant>,
    /// What is shared of it with other gateways.
    pub(crate) shared: Option<KindPart>,
}

impl KindGate {
    pub(crate) fn new(
        id: KindId,
        params: KindParams,
        law: Box<dyn SessionLaw>,
        assumed: Duration,
        now: Instant,
    ) -> Self {
        KindGate {
            id,
            held: HeldNewcomers::new(params.line),
            line: params.line.map(|line| Line::new(line, now)),
            has_waiters: false,
            params,
            law,
            arrivals: 0,
            next: None,
            learner: Patience::default(),
            recalled: None,
            assumed: assumed.as_secs_f64(),
            admitted: 0,
            refused: 0,
            came: RateMeter::new(now),
            begun: RateMeter::new(now),
            rush: Rush::new(now),
            holds_blindly: false,
            newcomers: 0,
            announced_full: false,
            refused_then: 0,
            away: false,
            before: None,
            back: None,
            shared: None,
        }
    }

    /// Takes note whether the application answers.
    pub(crate) fn application(&mut self, now: Instant, is_up: bool) {
        self.away = !is_up;
        if is_up {
            self.back = Some(now);
            self.next = None;
        } else {
            // Down again before all of the old rate was reached: that rate is still the measured
            // one.
            let begun = self.begun.per_second().unwrap_or_default();
            self.before = Some(self.before.unwrap_or_default().max(begun));
            self.back = None;
        }
        if is_up {
            self.move_line(now);
        }
        if let Some(line) = &mut self.line {
            line.application(is_up);
        }
        self.look_at_line();
    }

    /// Returns whether sessions begin at a lower rate than they may, shortly after an outage.
    pub(crate) fn is_returning(&self) -> bool {
        self.back.is_some()
    }

    /// Returns how many wait for their turn, as far as is known.
    pub(crate) fn waiting_for_turn(&self) -> u64 {
        let held = self.held.len() as u64;
        self.line.as_ref().map_or(held, |line| line.waiting().max(held))
    }

    /// Returns the admission rate for the line, sessions per second: the law's, or less shortly
    /// after an outage.
    fn pace(&mut self, now: Instant) -> Option<f64> {
        let rate = self.law.rate().map(|rate| rate.min(RATE_MAX))?;
        let Some(back) = self.back else { return Some(rate) };
        let doublings = now.secs_since(back) / BACK_DOUBLES;
        let most = self.before.unwrap_or_default().max(BACK_PACE_MIN) * pow(2.0, doublings);
        if most >= rate {
            (self.before, self.back) = (None, None);
        }
        Some(rate.min(most))
    }

    /// Appends everything about it.
    pub(crate) fn save(&self, out: &mut Writer) -> Result<(), Unsavable> {
        let KindGate {
            id,
            params,
            law,
            held,
            arrivals,
            line,
            has_waiters,
            next,
            learner,
            recalled,
            assumed,
            admitted,
            refused,
            came,
            begun,
            rush,
            holds_blindly,
            newcomers: _,
            announced_full: _,
            refused_then: _,
            away,
            before,
            back,
            shared: _,
        } = self;
        id.save(out);
        params.save(out);
        held.save(out);
        arrivals.save(out);
        line.save(out);
        has_waiters.save(out);
        next.save(out);
        learner.save(out);
        recalled.save(out);
        assumed.save(out);
        admitted.save(out);
        refused.save(out);
        came.save(out);
        begun.save(out);
        rush.save(out);
        holds_blindly.save(out);
        away.save(out);
        before.save(out);
        back.save(out);
        law.save(out)
    }

    /// Takes one that was saved, whose newcomers were admitted by `law`, at a gate with this number
    /// of `routes`.
    pub(crate) fn load(law: SessionLawKind, routes: usize, from: &mut Reader<'_>) -> Result<Self, Broken> {
        let id = Persist::load(from)?;
        Ok(KindGate {
            id,
            params: Persist::load(from)?,
            held: Persist::load(from)?,
            arrivals: Persist::load(from)?,
            line: Persist::load(from)?,
            has_waiters: Persist::load(from)?,
            next: Persist::load(from)?,
            learner: Persist::load(from)?,
            recalled: Persist::load(from)?,
            assumed: Persist::load(from)?,
            admitted: Persist::load(from)?,
            refused: Persist::load(from)?,
            came: Persist::load(from)?,
            begun: Persist::load(from)?,
            rush: Persist::load(from)?,
            holds_blindly: Persist::load(from)?,
            newcomers: 0,
            announced_full: false,
            refused_then: 0,
            away: Persist::load(from)?,
            before: Persist::load(from)?,
            back: Persist::load(from)?,
            shared: None,
            law: law.load(id, routes, from)?,
        })
    }

    /// Admits by `law` from now on, which knows nothing yet.
    pub(crate) fn begin_anew(&mut self, law: Box<dyn SessionLaw>) {
        self.law = law;
        self.next = None;
    }

    /// Assumes that visitors wait for this long where nothing is declared or learned.
    pub(crate) fn assume(&mut self, patience: Duration) {
        self.assumed = patience.as_secs_f64();
    }

    /// Returns whether newcomers are ever held back.
    pub(crate) fn holds(&self) -> bool {
        !matches!(self.params.mode, KindMode::Off | KindMode::Observe)
    }

    /// Returns whether its line, if it has one, moves: the operator may have stopped it.
    pub(crate) fn admits(&self) -> bool {
        !self.away && self.line.as_ref().is_none_or(Line::is_moving)
    }

    /// Returns whether nobody is in line, here or at another gateway, called or not, whom a newcomer
    /// could overtake.
    pub(crate) fn nobody_in_line(&self) -> bool {
        self.line.as_ref().is_none_or(|line| line.waiting() == 0 && self.waiting_elsewhere() == 0)
    }

    /// Returns how many wait at other gateways to be let in; in a line that moves, those not called and
    /// those expected.
    fn newcomers_elsewhere(&self) -> f64 {
        let Some(part) = &self.shared else { return 0.0 };
        if self.line.is_none() {
            return f64::from(part.waiting_elsewhere);
        }
        let uncalled =
            |lane: &suimon_sharing::LaneRecord| lane.people.last().map_or(0, |(_, people)| *people);
        part.lanes_elsewhere.iter().map(|lane| uncalled(lane) as f64 + lane.expected).sum()
    }

    /// Returns how many wait at other gateways.
    pub(crate) fn waiting_elsewhere(&self) -> usize {
        self.shared.as_ref().map_or(0, |shared| shared.waiting_elsewhere as usize)
    }

    /// Returns whether the holder of `position` lets others go first who are not back yet after a
    /// restart.
    pub(crate) fn makes_way(&self, now: Instant, position: Position) -> bool {
        self.line.as_ref().is_some_and(|line| line.gathers(now, line.rank(position)))
    }

    /// Returns whether the newcomer held there does so.
    pub(crate) fn gathers(&self, now: Instant, key: Key) -> bool {
        self.line.as_ref().is_some_and(|line| line.gathers(now, key))
    }

    /// Takes note of a request of `visitor`, if it is known, that was `age` seconds old when it
    /// ended; `left`: its client went away.
    pub(crate) fn learn_patience(&mut self, visitor: Option<u64>, age: f64, left: bool) {
        self.learner.fold_of(visitor, age, left);
        self.recalled.take_if(|recalled| !recalled.is_believed_after(age, left));
    }

    /// Returns seconds a visitor waits for one answer: declared, learned, recalled or assumed.
    pub(crate) fn patience(&self) -> f64 {
        let declared = self.params.patience.map(|patience| patience.as_secs_f64());
        let recalled = self.recalled.map(|recalled| recalled.seconds);
        let learned = self.learner.learned().or(recalled).map(|seconds| seconds.max(PATIENCE_MIN));
        declared.or(learned).unwrap_or(self.assumed)
    }

    pub(crate) fn patience_source(&self) -> &'static str {
        match (self.params.patience, self.learner.learned()) {
            (Some(_), _) => "declared",
            (None, Some(_)) => "learned",
            (None, None) if self.recalled.is_some() => "recalled",
            (None, None) => "assumed",
        }
    }

    /// Returns the longest a newcomer is held, seconds.
    pub(crate) fn hold(&self) -> f64 {
        let longest = if self.line.is_some() { HOLD_MAX_IN_LINE } else { HOLD_MAX };
        let hold = self.hold_of_the_hasty().unwrap_or(HOLD_SHARE * self.patience());
        self.params.hold.map_or(hold.min(longest), |hold| hold.as_secs_f64())
    }

    /// Returns the longest a newcomer is held where most of those who wait have left before the least patience
    /// that is otherwise believed. Clients that try again keep as many there as wait so long: held for
    /// longer, each would be admitted as it leaves, and all the application does would be for nobody.
    fn hold_of_the_hasty(&self) -> Option<f64> {
        let learned = self.learner.learned().filter(|seconds| *seconds < PATIENCE_MIN)?;
        let stay = self.learner.survival(PATIENCE_MIN)?;
        (self.params.patience.is_none() && stay < HASTY_STAY).then_some(HASTY_HOLD_SHARE * learned)
    }

    /// Returns the seconds after which a newcomer that is still held gets an answer. A newcomer
    /// held blindly may be held until something is known, where nothing is declared.
    pub(crate) fn overdue(&self, now: Instant) -> f64 {
        let hold = OVERDUE * self.hold();
        let waits_blindly = self.holds_blindly && self.is_blind(now) && self.params.hold.is_none();
        let blindly = BLIND_SECONDS.min(HOLD_SHARE * self.patience());
        if waits_blindly { hold.max(blindly) } else { hold }
    }

    /// Returns the rank of a newcomer without a place in line.
    pub(crate) fn rank(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals - 1
    }

    /// Returns whether newcomers are held whatever their turn, as it is hardly known yet how soon
    /// that is.
    pub(crate) fn is_blind(&self, now: Instant) -> bool {
        let is_young = self.rush.age(now).is_none_or(|age| age < BLIND_SECONDS);
        is_young && self.admits() && self.law.is_cold()
    }

    /// Returns whether one more may be held like that.
    pub(crate) fn may_hold_blindly(&self, now: Instant) -> bool {
        self.is_blind(now) && self.held.len() < BLIND_MAX
    }

    /// Returns whether the newcomer held last, at this `position` in line, has been held for longer
    /// than is useful.
    pub(crate) fn is_last_held_in_vain(&self, now: Instant, position: Position) -> bool {
        let in_vain =
            |line: &Line| self.held.len() > line.held_at_once() || !line.standing(now, position).is_called();
        self.line.as_ref().is_some_and(in_vain)
    }

    /// Returns whether one more would be held for longer than is useful.
    pub(crate) fn too_many_held(&self, now: Instant) -> bool {
        self.held.len() >= LINE_MIN && self.predicted_wait(now).as_secs_f64() > self.hold()
    }

    /// Returns whether newcomers arrive at a good share of the rate at which they could be
    /// admitted: before long some may have to wait. For a law that does not know that rate nothing
    /// is predicted.
    pub(crate) fn is_close(&self) -> bool {
        let may_close = |rate| self.came.per_second().is_some_and(|came| came > CLOSE_SHARE * rate);
        self.holds() && self.law.rate().is_some_and(may_close)
    }

    /// Returns whether its law does not know the rate at which it could admit: then nothing shows
    /// beforehand that it will stop admitting.
    pub(crate) fn may_close_at_once(&self) -> bool {
        self.holds() && self.law.rate().is_none()
    }

    /// Takes note of a newcomer, whatever its outcome.
    pub(crate) fn comes(&mut self, now: Instant) {
        self.came.note();
        self.newcomers += 1;
        self.rush.note(now, self.law.rate());
    }

    /// Returns whether newcomers have just arrived so fast that some may have to wait within a
    /// moment.
    pub(crate) fn is_rushed(&self, now: Instant) -> bool {
        self.holds() && self.rush.is_on(now, self.law.rate())
    }

    /// Returns newcomers waiting to begin, as the session law sees them: one in line counts as
    /// many.
    pub(crate) fn waiting(&self) -> usize {
        // Where the line stands still, the law is not what keeps them.
        if !self.admits() {
            return 0;
        }
        self.held.len() + usize::from(self.has_waiters)
    }

    pub(crate) fn predicted_wait(&self, now: Instant) -> Duration {
        self.law.predicted_wait(now, self.held.len())
    }

    /// Moves the line by what the law would admit.
    pub(crate) fn move_line(&mut self, now: Instant) {
        let hold = self.hold();
        let rate = self.pace(now);
        let is_cold = rate.is_some() && self.admitted < COLD_SESSIONS;
        if let Some(line) = &mut self.line {
            line.be_ready_for(if is_cold { COLD_TIMES } else { 1.0 });
            line.tick(now, rate, hold);
        }
        self.look_at_line();
    }

    /// Notices whether anybody waits in line.
    pub(crate) fn look_at_line(&mut self) {
        self.has_waiters = self.line.as_ref().is_some_and(Line::has_waiters);
    }

    /// Returns when a refused newcomer should come back: when the line has moved far enough that
    /// the rest of the wait is well within the longest hold. `jitter`: 0.75 to 1.25, so that not
    /// all come back at once.
    pub(crate) fn retry_after(&self, now: Instant, jitter: f64) -> Duration {
        let wait = self.predicted_wait(now).as_secs_f64() - RETURN_SHARE * self.hold();
        seconds((wait * jitter).clamp(RETRY_MIN, RETRY_MAX))
    }

    /// Returns what to show when newcomers begin to wait for one of `active` sessions to end, or
    /// wait no more.
    pub(crate) fn turns_full(&mut self, now: Instant, active: usize) -> Option<Record> {
        let sessions_max = self.law.sessions_max().filter(|_| self.holds())?;
        let refused = self.refused - std::mem::replace(&mut self.refused_then, self.refused);
        let in_line = self.line.as_ref().map_or(0, Line::waiting);
        let somebody_waits = self.waiting() > 0 || in_line > 0 || refused > 0;
        let is_full = active >= sessions_max as usize;
        let turned =
            if self.announced_full { !is_full && !somebody_waits } else { is_full && somebody_waits };
        if !turned {
            return None;
        }
        self.announced_full = !self.announced_full;
        let (old, new, reason) = match self.announced_full {
            true => (0.0, f64::INFINITY, Reason::SessionsFull),
            false => (f64::INFINITY, 0.0, Reason::SessionsFree),
        };
        let signals = Signals::none()
            .with("sessions", active as f64)
            .with("sessions_max", f64::from(sessions_max))
            .with("in_line", in_line as f64);
        let subject = Subject::Kind(self.id);
        Some(Record { at: now, subject, quantity: Quantity::Interval, old, new, reason, signals })
    }

    /// Returns what happens to the next newcomer, while `active` sessions are admitted and not
    /// known to have ended.
    fn gate_state(&self, active: usize, is_draining: bool) -> GateState {
        let interval = self.law.interval();
        match self.params.mode {
            KindMode::Off => GateState::Off,
            KindMode::Observe => GateState::Observe,
            _ if is_draining || !self.admits() || interval.is_infinite() => GateState::Shut,
            _ if self.law.sessions_max().is_some_and(|max| active >= max as usize) => GateState::Full,
            _ if self.held.is_empty() && self.nobody_in_line() && interval == 0.0 => GateState::Open,
            _ => GateState::Paced,
        }
    }

    /// Returns the predicted wait of a newcomer who draws a place now, seconds.
    fn newcomer_wait(&self, now: Instant) -> Option<(f64, f64)> {
        let last = Position { lane: Lane::Normal, number: u64::MAX };
        match self.line.as_ref()?.standing(now, last) {
            PositionStatus::Waiting(wait) if wait.ahead > 0 && wait.high.is_zero() => None,
            PositionStatus::Waiting(wait) | PositionStatus::Called(wait) => {
                Some((wait.low.as_secs_f64(), wait.high.as_secs_f64()))
            }
            PositionStatus::Opening(..)
            | PositionStatus::Paused(_)
            | PositionStatus::ApplicationDown(_)
            | PositionStatus::Closed => None,
        }
    }

    /// Returns what can be seen of it, except for what the gate alone knows.
    pub(crate) fn view(&self, now: Instant, inputs: &AdmissionInputs<'_>, is_draining: bool) -> KindView {
        let gate_state = self.gate_state(inputs.active, is_draining);
        KindView {
            open: matches!(gate_state, GateState::Off | GateState::Observe | GateState::Open),
            gate_state,
            law: "",
            sessions_max: self.law.sessions_max(),
            interval_seconds: self.law.interval(),
            waiting: self.held.len(),
            active: inputs.visits.under_way(self.id),
            remembered: inputs.active,
            ends: SessionEnds::default(),
            newcomers: self.newcomers,
            admitted: self.admitted,
            newcomer_wait: self.newcomer_wait(now),
            rate: self.law.rate().unwrap_or(0.0),
            predicted_wait_seconds: if self.held.is_empty() {
                0.0
            } else {
                self.predicted_wait(now).as_secs_f64()
            },
            patience_seconds: self.patience(),
            patience_source: self.patience_source(),
            refused: self.refused,
            line: self.line.as_ref().map(Line::view),
            newcomers_elsewhere: self.newcomers_elsewhere(),
        }
    }
}
