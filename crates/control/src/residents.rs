//! How many workers of a pool should be resident: as many as complete the most requests.
//!
//! How many requests *run* at once is the route law's to say, and may change at any time: it costs
//! nothing. A *resident* worker costs a start, memory, and time of all the others once the caches are
//! full. So this law moves seldom, and a move stays only if it has paid.
//!
//! *Law*. While requests wait and all of n workers have one, with X completions a second; n′ is tried:
//!
//! ```text
//! z = ln(X′ / X)                 what n′ brings                                                      (1)
//! more stays if                  z ≥ 0.1 ln(n′ / n)                                                  (2)
//! fewer stays if                 z ≥ ln 0.985, all such losses together                               (3)
//! n′ = 2 n, n / 2                until a number on each side is known to be worse;                   (4)
//!                                factor 1.4 after a step that brought less than its share, or was
//!                                undone; after less than half of it, the middle of its ends
//! n′ = vertex of the parabola through (ln n, ln X) of these three, if 4 % or more from n             (5)
//! ```
//!
//! At first n rises without trials. All n workers have a request, so that they complete n / W a second
//! with W the time that one is with its worker (Little); W is known after few requests, X only after
//! many:
//!
//! ```text
//! n rises on while              ln(n′ / W′) − ln(n / W) ≥ 0.3 ln(n′ / n)                            (0)
//! n′ = 2 n                      after a step that brought what is in proportion, 1.5 n after others
//! ```
//!
//! A window is as long as it takes to tell z from its threshold by 1.5 times its standard error, at
//! most `WINDOW_MOST`. Where so few requests come that it says no more, the move stays if z is nearer
//! to what is in proportion (for more) or to nothing (for fewer) than to the other of the two.
//!
//! Where nothing is left to try, the law rests at the best number for 30 s, and three times as long
//! each time, up to ten minutes; then it tries anew the side that was tried longer ago, with a factor
//! of 1.25. Application or requests have changed, and what was measured is forgotten, if surely
//!
//! - X at the same n is another by a fifth,
//! - a trial brings or costs a fifth more than is in proportion, or
//! - fewer complete more than what was found best.
//!
//! Where such changes follow one another, it rests at the number that was found last.
//!
//! While requests do not wait for most of the time, with M the most that ran at once in ten minutes:
//!
//! ```text
//! n > max(⌈1.3 M⌉ + 3, least)                                       one fewer, once a second       (6)
//! all have a request, and one waits longer than a start takes       one more, or back to the
//!                                                                   number that (1) to (5) found   (7)
//! ```
//!
//! While requests wait although workers are idle, as a limit of what may run holds them, ten seconds
//! on end:
//!
//! ```text
//! n > max(M of these ten seconds, least)                            as many as that                (8)
//! ```
//!
//! (7) is for workers that answer: it follows only after a completion since the last move, and never
//! reaches a number known to be worse. In every case n times the memory of a worker stays within what
//! the pool may take; after swapping a tenth less is kept, and no more is tried for ten minutes.
//!
//! *Signals*: completions, the share of a second in which all workers had a request and others
//! waited, memory. *Units*: workers, completions per second. *Regimes*: idle (6), rising (7) and (4),
//! overloaded (1) to (5), recovering (6). *Limits*: 1 to `most`. *Source*: P3 (the best number is
//! between too few and too many, and must be measured); LAWS §5 of the design; a bracket with
//! parabolic interpolation (Brent 1973), with a sequential test for each step.

mod api;
mod measured;

pub use api::{ResidentMove, ResidentParams, ResidentReason, ResidentSample};
use measured::{COMPLETIONS_LEAST, Point, WINDOW_MOST, Window, vertex};
use std::collections::VecDeque;
use suimon_model::real::{exp, ln};
use suimon_model::{Duration, Instant, seconds};

/// Time for a move, and then for a trial in which too few requests wait for it to end.
const TRIAL_MOST: Duration = Duration::from_secs(180);
/// The least time after a move until its window begins, seconds: requests that began before it end.
const SETTLE_LEAST: f64 = 1.0;
/// That time, as a multiple of the time that a request takes.
const SETTLE_REQUESTS: f64 = 1.5;
/// What a move to more must bring, as a share of what is in proportion.
const GAIN_LEAST: f64 = 0.1;
/// What moves to fewer must keep.
const KEPT_LEAST: f64 = 0.985;
/// Standard errors that tell z from its threshold.
const SURE: f64 = 1.5;
/// The greatest standard error at which z counts where it cannot be told surely.
const ERROR_MOST: f64 = 0.05;
/// A window with so small a share of the variance of the one before adds little certainty.
const VARIANCE_SHARE: f64 = 0.25;
/// Factors of steps: the first, after one that brought less than [`IN_PROPORTION`], after a rest.
const STEP: f64 = 2.0;
const STEP_NEAR: f64 = 1.4;
const STEP_AGAIN: f64 = 1.25;
const IN_PROPORTION: f64 = 0.9;
/// After a step that brought less than this share, the middle of its two ends is tried.
const HALF: f64 = 0.5;
/// While workers are added without trials (0): the share of what is in proportion that a step must
/// bring, the factor of a step after one that brought less than [`IN_PROPORTION`], the fewest
/// completions that tell, and the completions and the seconds that must do where nothing is sure.
const RISE_GAIN: f64 = 0.3;
const RISE_NEAR: f64 = 1.5;
const RISE_COMPLETIONS: u64 = 20;
const RISE_COMPLETIONS_MOST: u64 = 120;
const RISE_SECONDS_MOST: f64 = 4.0;
/// The share of a second in which all that complete must have begun after the last step.
const RISE_CLEAN: f64 = 0.7;
/// The least time that a start counts as then, seconds.
const RISE_START_LEAST: f64 = 0.05;
/// A step has no more starts than these seconds allow, ...
const STEP_SECONDS: f64 = 15.0;
/// ... or, if it is the least, these.
const STEP_SECONDS_MOST: f64 = 120.0;
/// The least ln of a step (5), and how many follow one another.
const REFINE_LEAST: f64 = 0.04;
const REFINES_MOST: u32 = 2;
/// The ln of a step after which there is none.
const CLOSE: f64 = 0.15;
/// The first rest; each following one is three times as long.
const REST: Duration = Duration::from_secs(30);
/// The longest rest, and how long a limit of memory that was met is remembered.
const REST_MAX: Duration = Duration::from_secs(600);
/// A rest is so many times as long as the workers of the last trial took to start.
const REST_STARTS: f64 = 20.0;
/// How many rests a number that was found before begins with.
const RESTS_KNOWN: u32 = 3;
/// A change of ln X at the same n that says that the past does not count.
const CHANGED: f64 = 0.2;
/// A gain of ln X by fewer than what was found best that says the same.
const BEATEN: f64 = 0.05;
/// Changes within this time follow one another, and are answered more slowly each time.
const CHANGES_WITHIN: Duration = Duration::from_secs(120);
/// Ticks over which the most that ran at once counts.
const PEAK_TICKS: usize = 600;
/// Ticks on end in which requests are held although workers are idle, after which these end.
const HELD_TICKS: usize = 10;
/// Workers beyond those that ran.
const SPARE: u32 = 3;
/// As a factor of those that ran.
const SPARE_FACTOR: f64 = 1.3;
/// The share of a tick in which requests must have waited with all workers taken: for (1) to (5).
const SHORT_LEAST: f64 = 0.9;
/// The least time that a start counts as, seconds.
const START_LEAST: f64 = 1.0;
/// The least time from one cut for swapping to the next: what was swapped comes back meanwhile.
const SWAP_DWELL: Duration = Duration::from_secs(10);
/// Ticks on end in which less must fit before it counts.
const UNFIT_TICKS: u32 = 3;

/// The law of one pool.
#[derive(Clone, Debug)]
pub struct Residents {
    params: ResidentParams,
    wanted: u32,
    phase: Phase,
    /// What is being measured at `wanted`.
    window: Window,
    /// The best number so far, and its completions; during a trial, the number it is compared with.
    middle: Point,
    /// Numbers below and above that are known to be worse.
    left: Option<Point>,
    right: Option<Point>,
    /// The factor of the next step (4), and its direction if both are open.
    step: f64,
    is_upwards: bool,
    /// Whether the last step brought so little that what is best is likely before it.
    is_between: bool,
    /// Whether workers are added without trials.
    rise: Option<Rise>,
    /// Steps (5) since the last rest.
    refines: u32,
    /// ln of the completions that moves to fewer have cost, at most 0.
    given: f64,
    /// What the last search that ended found, and whether the host is still that one.
    learned: Option<u32>,
    is_found: bool,
    rests: u32,
    rests_until: Instant,
    /// Changes that followed one another, and when the last one was.
    changes: u32,
    changed_at: Option<Instant>,
    /// Seconds that the last trial's workers took to come.
    took: f64,
    start_s: f64,
    /// How many start at once.
    at_once: u32,
    has_completed: bool,
    memory: Memory,
    /// The most that ran at once, by tick.
    running: VecDeque<u32>,
    /// Ticks on end in which a limit held requests although workers were idle.
    held: usize,
}

/// What is seen while workers are added without trials (0).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Rise {
    /// The number before the last step, and what was seen with it.
    before: Option<Point>,
    /// When requests that began before the last step have ended; `None`: its workers are not there.
    settled: Option<Instant>,
    /// Requests completed since then, and seconds that they took.
    completed: u64,
    took: f64,
    /// Seconds in which they were.
    seconds: f64,
}

/// Where a move stands.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// There is none.
    Settled,
    /// The workers come or go.
    Changing { is_trial: bool, since: Instant },
    /// Requests that began before end.
    Settling { is_trial: bool, until: Instant },
    /// A window tells whether the move stays.
    Trial { since: Instant },
}

/// What memory allows.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Memory {
    ceiling: u32,
    /// When it was last made less.
    cut_at: Instant,
    fit: u32,
    unfit: u32,
}

impl Residents {
    /// Returns the law of a pool.
    pub fn new(params: ResidentParams) -> Self {
        let most = params.most.max(1);
        let initial = params.initial.clamp(1, most);
        let (is_known, cores) = (params.is_known, params.cores.max(1));
        Residents {
            params: ResidentParams { most, initial, cores, ..params },
            wanted: initial,
            phase: Phase::Changing { is_trial: false, since: Instant::ORIGIN },
            window: Window::default(),
            middle: Point::unmeasured(initial),
            left: None,
            right: None,
            step: if is_known { STEP_AGAIN } else { STEP },
            // Somebody who begins with very many hardly lacks some.
            is_upwards: !is_known && initial <= 4 * cores,
            is_between: false,
            rise: (!is_known && initial <= 4 * cores).then(Rise::default),
            refines: 0,
            given: 0.0,
            learned: is_known.then_some(initial),
            is_found: is_known,
            rests: if is_known { RESTS_KNOWN } else { 0 },
            rests_until: Instant::ORIGIN
                + if is_known { REST.saturating_mul(1 << RESTS_KNOWN) } else { Duration::ZERO },
            changes: 0,
            changed_at: None,
            took: 0.0,
            start_s: START_LEAST,
            at_once: 1,
            has_completed: false,
            memory: Memory { ceiling: most, cut_at: Instant::ORIGIN, fit: most, unfit: 0 },
            running: VecDeque::with_capacity(PEAK_TICKS),
            held: 0,
        }
    }

    /// Returns how many should be resident.
    pub fn wanted(&self) -> u32 {
        self.wanted
    }

    /// Returns the number that was found best while requests waited: by the last search that ended, or
    /// by the first one so far.
    pub fn learned(&self) -> Option<u32> {
        self.learned.or((!self.middle.window.is_empty()).then_some(self.middle.n))
    }

    /// Takes note of what happened in the `passed` seconds before `now`, and returns the new number,
    /// if it changes.
    pub fn on_tick(&mut self, now: Instant, passed: f64, sample: &ResidentSample) -> Option<ResidentMove> {
        if self.running.len() == PEAK_TICKS {
            self.running.pop_front();
        }
        self.running.push_back(sample.running_max);
        self.start_s = sample.start_s.unwrap_or(START_LEAST).max(START_LEAST);
        self.at_once = sample.starts_at_once.max(self.params.cores / 2).max(1);
        self.has_completed |= is_useful(sample);
        self.keep_to_memory(now, sample)
            .or_else(|| self.rise(now, passed, sample))
            .or_else(|| self.shed(now, sample))
            .or_else(|| self.change(now, sample))
            .or_else(|| self.follow_need(now, sample))
            .or_else(|| self.measure(now, passed, sample))
    }

    fn keep_to_memory(&mut self, now: Instant, sample: &ResidentSample) -> Option<ResidentMove> {
        if now >= self.memory.cut_at + REST_MAX {
            self.memory.ceiling = self.params.most;
        }
        self.memory.fit = sample.fit.unwrap_or(self.params.most);
        self.memory.unfit = if self.memory.fit < self.wanted { self.memory.unfit + 1 } else { 0 };
        let (wanted, why) = if sample.is_swapping && self.wanted > 1 && now >= self.memory.cut_at + SWAP_DWELL
        {
            // A trial of more is what has brought it.
            let less = self.wanted - self.wanted.div_ceil(10);
            let before = if self.middle.n < self.wanted { self.middle.n } else { less };
            (before, ResidentReason::Swapped)
        } else if self.memory.unfit >= UNFIT_TICKS && self.wanted > 1 {
            (self.memory.fit, ResidentReason::Memory)
        } else {
            return None;
        };
        let wanted = wanted.max(1);
        (self.memory.ceiling, self.memory.cut_at) = (wanted, now);
        self.go(now, wanted, why)
    }

    /// (8)
    fn shed(&mut self, now: Instant, sample: &ResidentSample) -> Option<ResidentMove> {
        let is_held = sample.held >= SHORT_LEAST && sample.starting == 0;
        self.held = if is_held { self.held + 1 } else { 0 };
        if self.held < HELD_TICKS {
            return None;
        }
        let peak = self.running.iter().rev().take(HELD_TICKS).max().copied().unwrap_or_default();
        let enough = peak.max(self.params.least);
        if self.wanted <= enough {
            return None;
        }
        self.held = 0;
        self.go(now, enough, ResidentReason::Idle)
    }

    /// Waits until a move is done, but not for ever.
    fn change(&mut self, now: Instant, sample: &ResidentSample) -> Option<ResidentMove> {
        match self.phase {
            Phase::Changing { is_trial, since } if sample.ready == self.wanted && sample.starting == 0 => {
                self.took = now.secs_since(since);
                let settle = SETTLE_LEAST.max(SETTLE_REQUESTS * self.request_s());
                self.phase = Phase::Settling { is_trial, until: now + seconds(settle) };
            }
            Phase::Settling { is_trial, until } if now >= until => {
                self.window = Window::default();
                self.phase = if is_trial { Phase::Trial { since: now } } else { Phase::Settled };
            }
            Phase::Changing { is_trial: true, since } | Phase::Trial { since }
                if now.since(since) > TRIAL_MOST =>
            {
                return self.rest(now);
            }
            _ => {}
        }
        None
    }

    /// (6) and (7)
    fn follow_need(&mut self, now: Instant, sample: &ResidentSample) -> Option<ResidentMove> {
        if self.phase != Phase::Settled || sample.starting > 0 || sample.ready < self.wanted {
            return None;
        }
        let are_taken = sample.short > 0.0 && sample.running_max >= sample.ready && self.has_completed;
        let is_short = sample.short >= SHORT_LEAST;
        if are_taken && (is_short || sample.oldest_s > self.start_s) {
            let found = self.learned.filter(|learned| self.is_found && *learned > self.wanted);
            let worse = self.right.map_or(u32::MAX, |right| right.n);
            if let Some(wanted) = found.or((!is_short && self.wanted + 1 < worse).then_some(self.wanted + 1))
            {
                return self.go(now, wanted, ResidentReason::Waits);
            }
        }
        if is_short || self.running.len() < PEAK_TICKS {
            return None;
        }
        let peak = self.running.iter().max().copied().unwrap_or_default();
        let enough = (SPARE_FACTOR * f64::from(peak)).ceil() as u32 + SPARE;
        if self.wanted > enough.max(self.params.least) {
            return self.go(now, self.wanted - 1, ResidentReason::Idle);
        }
        None
    }

    /// (1) to (5)
    fn measure(&mut self, now: Instant, passed: f64, sample: &ResidentSample) -> Option<ResidentMove> {
        if sample.short < SHORT_LEAST || sample.ready.abs_diff(self.wanted) > self.wanted / 10 {
            return None;
        }
        if sample.failed > sample.completed {
            // An application in trouble says nothing of how many workers help.
            self.window = Window::default();
            return None;
        }
        match self.phase {
            Phase::Changing { .. } | Phase::Settling { .. } => None,
            Phase::Settled => {
                self.window.add(passed, sample.completed);
                if !self.window.is_long(self.request_s()) {
                    return None;
                }
                if !self.middle.window.is_empty() {
                    let (z, error) = self.window.against(&self.middle.window);
                    if z.abs() - SURE * error > CHANGED {
                        return self.begin_anew(now, z > 0.0);
                    }
                    if z.abs() + SURE * error > CHANGED && !self.window.is_longest() {
                        return None;
                    }
                }
                self.middle.window.merge(&std::mem::take(&mut self.window));
                let is_measured = self.middle.window.completed >= COMPLETIONS_LEAST;
                if now >= self.rests_until && is_measured { self.try_next(now) } else { None }
            }
            Phase::Trial { .. } => {
                self.window.add(passed, sample.completed);
                if !self.window.is_long(self.request_s()) {
                    return None;
                }
                if let Some(is_faster) = self.is_impossible() {
                    return self.begin_anew(now, is_faster);
                }
                let stays = self.judge()?;
                self.conclude(now, stays);
                self.try_next(now)
            }
        }
    }

    /// (0)
    fn rise(&mut self, now: Instant, passed: f64, sample: &ResidentSample) -> Option<ResidentMove> {
        let rise = self.rise.as_mut()?;
        if sample.is_swapping {
            (self.rise, self.is_upwards) = (None, false);
            return None;
        }
        if sample.starting > 0 || sample.ready != self.wanted {
            *rise = Rise { before: rise.before, ..Rise::default() };
            return None;
        }
        let took = sample.took_s.filter(|_| sample.short >= SHORT_LEAST && is_useful(sample))?;
        let settled = *rise.settled.get_or_insert(now + seconds(SETTLE_REQUESTS * took));
        // A few that began before do not tell much else.
        if rise.before.is_some() && now < settled + seconds(RISE_CLEAN * passed) {
            return None;
        }
        rise.completed += sample.completed;
        rise.seconds += passed;
        rise.took += took * sample.completed as f64;
        if rise.completed < RISE_COMPLETIONS {
            return None;
        }
        let n = self.wanted;
        let here = Point::by_time(now, n, rise.took / rise.completed as f64, rise.completed);
        // What the last step brought, as a share of what is in proportion, and its standard error.
        let (gain, error) = rise.before.filter(|before| before.n < n).map_or((1.0, 0.0), |before| {
            let (z, error) = here.window.against(&before.window);
            let in_proportion = ln(f64::from(n) / f64::from(before.n));
            (z / in_proportion, error / in_proportion)
        });
        let is_near = |threshold: f64| (gain - threshold).abs() < SURE * error;
        let may_go_on = rise.completed < RISE_COMPLETIONS_MOST || rise.seconds < RISE_SECONDS_MOST;
        if may_go_on && (is_near(RISE_GAIN) || gain < RISE_GAIN && is_near(0.0)) {
            return None;
        }
        if gain < RISE_GAIN {
            let before = self.rise.take()?.before?;
            self.is_upwards = gain >= GAIN_LEAST;
            self.step = self.step_of(if self.is_upwards { STEP_NEAR } else { STEP_AGAIN });
            if gain >= 0.0 {
                return None;
            }
            self.right = Some(here);
            return self.go(now, before.n, ResidentReason::Back);
        }
        *rise = Rise { before: Some(here), ..Rise::default() };
        let factor = if gain >= IN_PROPORTION { STEP } else { RISE_NEAR };
        let start_s = sample.start_s.unwrap_or(START_LEAST).max(RISE_START_LEAST);
        let starts = (STEP_SECONDS / start_s * f64::from(self.at_once)).max(1.0);
        let more = (factor * f64::from(n)).ceil().min(f64::from(n) + starts) as u32;
        let more = self.go(now, more, ResidentReason::TriesMore);
        // Without room for more of them there is nothing to see.
        self.rise = self.rise.take().filter(|_| more.is_some());
        more
    }

    /// Forgets what belongs to another host, and searches anew; where changes follow one another, it
    /// rests at the number found last.
    fn begin_anew(&mut self, now: Instant, is_faster: bool) -> Option<ResidentMove> {
        let follows = self.changed_at.is_some_and(|at| now.since(at) < CHANGES_WITHIN);
        self.changes = if follows { self.changes + 1 } else { 0 };
        self.changed_at = Some(now);
        self.rests_until = if follows { now + rest_of(self.changes) } else { now };
        (self.phase, self.window) = (Phase::Settled, Window::default());
        (self.left, self.right, self.is_found) = (None, None, false);
        (self.given, self.refines, self.rests, self.is_between) = (0.0, 0, 0, false);
        // Requests that take longer keep the processor as busy with fewer workers.
        self.is_upwards = is_faster;
        self.step = if is_faster { STEP } else { STEP_NEAR };
        self.middle = Point::unmeasured(self.wanted);
        let back = self.learned.filter(|_| follows)?;
        self.go(now, back, ResidentReason::Back)
    }

    /// Returns whether the move from the middle has paid; `None`: it cannot be told yet.
    fn judge(&self) -> Option<bool> {
        let (z, error) = self.window.against(&self.middle.window);
        let threshold = if self.wanted > self.middle.n {
            GAIN_LEAST * ln(f64::from(self.wanted) / f64::from(self.middle.n))
        } else {
            ln(KEPT_LEAST) - self.given
        };
        let is_sure = (z - threshold).abs() >= SURE * error;
        let is_vain = self.window.variance() < VARIANCE_SHARE * self.middle.window.variance();
        if !is_sure && error > ERROR_MOST {
            // All that can be told then is whether it is nearer to what is in proportion or to nothing.
            let half = 0.5 * ln(f64::from(self.wanted) / f64::from(self.middle.n));
            return self.window.is_longest().then_some(z >= half);
        }
        (is_sure || is_vain || self.window.is_longest()).then_some(z >= threshold)
    }

    /// Returns whether the host is faster or slower, if it must have changed during the trial: a move
    /// hardly brings or costs more than is in proportion, but for more that are far too many; and
    /// fewer than what was found best do not complete much more.
    fn is_impossible(&self) -> Option<bool> {
        let (z, error) = self.window.against(&self.middle.window);
        let in_proportion = ln(f64::from(self.wanted) / f64::from(self.middle.n));
        let (is_more, surely) = (in_proportion > 0.0, z.abs() - SURE * error);
        let is_beyond = surely > in_proportion.abs() + CHANGED && !(is_more && z < 0.0);
        let is_best_beaten = self.is_found && !is_more && z > 0.0 && surely > BEATEN;
        (is_beyond || is_best_beaten).then_some(z > 0.0)
    }

    fn conclude(&mut self, now: Instant, stays: bool) {
        let tried = Point { n: self.wanted, at: now, window: self.window };
        let is_more = tried.n > self.middle.n;
        if ln(f64::from(tried.n) / f64::from(self.middle.n)).abs() < CLOSE {
            // A parabola through points so close shows their errors.
            self.refines = REFINES_MOST;
        }
        let worse = if stays {
            let (z, _) = tried.window.against(&self.middle.window);
            let share = z / ln(f64::from(tried.n) / f64::from(self.middle.n));
            if is_more {
                self.is_between = share < HALF;
                let step = if self.is_between { STEP_AGAIN } else { STEP_NEAR };
                self.step = if share >= IN_PROPORTION { STEP } else { self.step_of(step) };
            }
            self.given = if is_more { 0.0 } else { (self.given + z).min(0.0) };
            self.rests = 0;
            let before = std::mem::replace(&mut self.middle, tried);
            Point { at: now, ..before }
        } else {
            self.step = self.step.min(self.step_of(STEP_NEAR));
            tried
        };
        let side = if worse.n > self.middle.n { &mut self.right } else { &mut self.left };
        *side = Some(worse);
    }

    /// Begins the next move of the search, or rests where there is none.
    fn try_next(&mut self, now: Instant) -> Option<ResidentMove> {
        self.keep_middle();
        if self.middle.window.is_empty() {
            return self.rest(now);
        }
        let Some(next) = self.next() else { return self.rest(now) };
        let why = if next > self.middle.n { ResidentReason::TriesMore } else { ResidentReason::TriesFewer };
        (self.wanted, self.rise) = (next, None);
        self.phase = Phase::Changing { is_trial: true, since: now };
        self.has_completed = false;
        Some(ResidentMove { wanted: next, why })
    }

    /// (4) and (5)
    fn next(&mut self) -> Option<u32> {
        let (n, least) = (self.middle.n, self.params.least.max(1));
        let more = (self.right.is_none() && n < self.limit()).then(|| self.more_than(n));
        let fewer = (self.left.is_none() && n > least)
            .then(|| ((f64::from(n) / self.step).round() as u32).clamp(least, n - 1));
        if let Some(left) = self.left.filter(|_| self.is_between && self.right.is_none()) {
            self.is_between = false;
            let between = (f64::from(left.n) * f64::from(n)).sqrt().round() as u32;
            if left.n.max(least - 1) < between && between < n {
                return Some(between);
            }
        }
        let outwards = if self.is_upwards { more.or(fewer) } else { fewer.or(more) };
        if outwards.is_some() || self.refines >= REFINES_MOST {
            return outwards;
        }
        self.refines += 1;
        let vertex = vertex(self.left?.position(), self.middle.position(), self.right?.position())?;
        let next = (exp(vertex).round() as u32).max(least).min(self.limit());
        let is_far = |other: u32| (vertex - ln(f64::from(other))).abs() >= REFINE_LEAST && next != other;
        (is_far(n) && is_far(self.left?.n) && is_far(self.right?.n)).then_some(next)
    }

    fn more_than(&self, n: u32) -> u32 {
        // No more than start in time, as they take the processor from the others.
        let in_time = |within: f64| within / self.start_s * f64::from(self.at_once);
        let least = (f64::from(n) * (STEP_AGAIN - 1.0)).min(in_time(STEP_SECONDS_MOST));
        let starts = in_time(STEP_SECONDS).max(least);
        let more = (self.step * f64::from(n)).min(f64::from(n) + starts).round() as u32;
        more.max(n + 1).min(self.limit())
    }

    /// Where memory has become short during a trial, the number it is compared with may not fit any
    /// more.
    fn keep_middle(&mut self) {
        let limit = self.limit();
        if self.middle.n > limit {
            self.middle = Point::unmeasured(limit);
            self.left = self.left.filter(|left| left.n < limit);
            self.right = None;
        }
    }

    /// Rests at the best number.
    fn rest(&mut self, now: Instant) -> Option<ResidentMove> {
        self.keep_middle();
        if self.left.is_some() && self.right.is_some() {
            self.rests = self.rests.max(1);
        }
        let starts = seconds((REST_STARTS * self.took).min(REST_MAX.as_secs_f64()));
        self.rests_until =
            now + if self.rests < 2 { rest_of(self.rests) } else { rest_of(self.rests).max(starts) };
        (self.refines, self.step) = (0, self.step_of(STEP_AGAIN));
        // Next time the side that was tried longer ago is tried anew.
        let age = |side: Option<Point>| side.map_or(now, |point| point.at);
        self.is_upwards = age(self.right) <= age(self.left);
        self.rests += 1;
        *(if self.is_upwards { &mut self.right } else { &mut self.left }) = None;
        (self.learned, self.is_found) = (Some(self.middle.n), true);
        let back = self.wanted != self.middle.n;
        self.window = Window::default();
        self.phase = if back { Phase::Changing { is_trial: false, since: now } } else { Phase::Settled };
        self.wanted = self.middle.n;
        back.then_some(ResidentMove { wanted: self.wanted, why: ResidentReason::Back })
    }

    /// Returns `step`, or a longer one: so long that the longest windows can tell it from nothing.
    fn step_of(&self, step: f64) -> f64 {
        let Window { seconds, .. } = self.middle.window;
        let error = (2.0 * self.middle.window.variance() * seconds / WINDOW_MOST).sqrt();
        step.max(exp(SURE * error)).min(STEP)
    }

    /// Returns about what a request takes, by Little's law: all workers have one.
    fn request_s(&self) -> f64 {
        let Point { n, window, .. } = &self.middle;
        if window.is_empty() { 0.0 } else { (f64::from(*n) / exp(window.ln_rate())).min(WINDOW_MOST) }
    }

    /// Returns the most workers that memory allows now.
    fn limit(&self) -> u32 {
        self.params.most.min(self.memory.ceiling).min(self.memory.fit).max(1)
    }

    /// Moves for another reason than a trial.
    fn go(&mut self, now: Instant, wanted: u32, why: ResidentReason) -> Option<ResidentMove> {
        let wanted = wanted.clamp(1, self.limit());
        if wanted == self.wanted {
            return None;
        }
        self.wanted = wanted;
        self.phase = Phase::Changing { is_trial: false, since: now };
        self.has_completed = false;
        self.middle = Point::unmeasured(wanted);
        self.left = self.left.filter(|left| left.n < wanted);
        self.right = self.right.filter(|right| right.n > wanted);
        Some(ResidentMove { wanted, why })
    }
}

/// Returns whether what was completed says something: with many errors the application is not itself.
fn is_useful(sample: &ResidentSample) -> bool {
    sample.completed > sample.failed
}

/// Returns the rest after so many.
fn rest_of(rests: u32) -> Duration {
    REST.saturating_mul(3_u32.pow(rests.min(4))).min(REST_MAX)
}

#[cfg(test)]
mod tests;
