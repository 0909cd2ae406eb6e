//! The law by the work that comes and that waits, (1) to (4).

use super::api::{ScalingMove, ScalingParams, ScalingReason, ScalingSample};
use super::gain::Gain;
use std::collections::VecDeque;
use suimon_model::real::exp;
use suimon_model::{Duration, Instant, seconds};

/// How often it decides.
pub(super) const EVERY: Duration = Duration::from_millis(500);
/// The time constant of the rate at which visits begin, and that of the work of a visit, seconds.
const RATE_S: f64 = 1.0;
const WORK_S: f64 = 30.0;
/// Standard deviations beyond the rate at which it follows at once.
const JUMP: f64 = 3.0;
/// How long a rate must have lasted to count in full.
const LASTS: Duration = Duration::from_secs(10);
/// Work that each node has without anybody having to wait for long, seconds.
const IN_HAND_S: f64 = 0.5;
/// k at the default eagerness, in roots of node-seconds per second, and what bounds it at both ends.
const PACE: f64 = 0.2;
const PACE_END: f64 = 0.1;
/// The shortest time in which what waits is worked off, seconds.
const RECOVERY_LEAST_S: f64 = 1.0;
/// A start, before any was seen, seconds.
const START_S: f64 = 1.0;
/// Visits that must have ended before it is known what one costs.
const ENDED_LEAST: u64 = 10;
/// An order so soon after nodes were given back, or the other way round, is a flap, in windows, ...
const FLAP_WINDOWS: u32 = 10;
/// ... of which so many cost nothing, and each further one doubles the window, up to the greater of this and the
/// window itself.
const FLAPS_FREE: u32 = 12;
const FLAPS_DOUBLING_MAX: u32 = 7;
const WINDOW_MOST: Duration = Duration::from_secs(60);
/// How long it takes until one flap is forgotten.
const FLAP_FORGOTTEN: Duration = Duration::from_secs(60);
/// Values that are remembered: eight minutes of them, which is twice a start of four.
const REMEMBERED_MAX: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct Demand {
    eagerness: f64,
    began: Option<Instant>,
    before: Option<Instant>,
    /// Visits that begin per second.
    rate: f64,
    /// Work and visits of the last half minute, for the work of a visit.
    work: f64,
    visits: f64,
    /// Visits that have ended since the start.
    ended: u64,
    rates: Remembered,
    needs: Remembered,
    flaps: Flaps,
    gain: Gain,
}

/// Moves that were undone at once.
#[derive(Clone, Copy, Debug, Default)]
struct Flaps {
    count: u32,
    /// When the last one was, or was forgotten.
    at: Option<Instant>,
    /// When the number moved last, and whether that was up.
    moved: Option<(Instant, bool)>,
}

impl Demand {
    pub(super) fn new(eagerness: f64) -> Self {
        Demand {
            eagerness: eagerness.clamp(0.0, 1.0),
            began: None,
            before: None,
            rate: 0.0,
            work: 0.0,
            visits: 0.0,
            ended: 0,
            rates: Remembered::default(),
            needs: Remembered::default(),
            flaps: Flaps::default(),
            gain: Gain::default(),
        }
    }

    pub(super) fn decide(
        &mut self,
        now: Instant,
        wanted: u32,
        params: &ScalingParams,
        sample: &ScalingSample,
    ) -> Option<ScalingMove> {
        let passed = self.before.replace(now).map_or(EVERY.as_secs_f64(), |before| now.secs_since(before));
        let passed = passed.max(1e-3);
        self.measure(now, passed, sample);
        if let Some(enough) = self.gain.look(now, passed, sample).filter(|enough| *enough < wanted) {
            self.needs.forget();
            let wanted = enough.max(params.least);
            return Some(ScalingMove { wanted, why: ScalingReason::NoGain, signal: f64::from(enough) });
        }
        let start = sample.start_s.unwrap_or(START_S);
        let (base, extra) = self.need(start, sample);
        // Whatever little is asked for, somebody must answer it.
        let is_asked = sample.begun > 0 || sample.requests > 0 || sample.is_held;
        let need = (base + extra).max(if is_asked { 1.0 } else { 0.0 });
        let window = self.flaps.window(now, seconds(2.0 * start).max(EVERY));
        self.needs.add(now, need, window);
        let nodes = |need: f64| (need.round().max(0.0) as u32).clamp(params.least, params.most);
        if nodes(need) > wanted && sample.by_fullness {
            if !self.gain.may_try(now) {
                return None;
            }
            self.gain.handle_order(sample.serving);
        }
        if nodes(need) > wanted {
            self.flaps.handle_move(now, true, window);
            let why = if extra > base { ScalingReason::Backlog } else { ScalingReason::Arrivals };
            return Some(ScalingMove { wanted: nodes(need), why, signal: need });
        }
        // Before a whole window was seen, and what a visit costs, nobody knows what is enough.
        let began = *self.began.get_or_insert(now);
        if now.since(began) < window || self.ended < ENDED_LEAST || sample.is_held {
            return None;
        }
        let most = self.needs.most();
        let enough = nodes(most);
        (enough < wanted).then(|| {
            self.flaps.handle_move(now, false, window);
            ScalingMove { wanted: enough, why: ScalingReason::Enough, signal: most }
        })
    }

    fn measure(&mut self, now: Instant, passed: f64, sample: &ScalingSample) {
        let rate = sample.begun as f64 / passed;
        // Counted, so that a tick right after another one says little.
        let expected = self.rate * passed;
        let is_jump = sample.begun as f64 > expected + JUMP * expected.max(1.0).sqrt();
        let share = |time: f64| 1.0 - exp(-passed / time);
        self.rate += if is_jump { 1.0 } else { share(RATE_S) } * (rate - self.rate);
        self.rates.add(now, self.rate, LASTS);
        let kept = 1.0 - share(WORK_S);
        self.work = kept * self.work + sample.work_s;
        self.visits = kept * self.visits + sample.ended as f64;
        self.ended = self.ended.saturating_add(sample.ended);
    }

    /// Returns the nodes that are needed for what comes, and those for what waits: (1) and (2).
    fn need(&self, start: f64, sample: &ScalingSample) -> (f64, f64) {
        let each = if self.visits > 0.0 { self.work / self.visits } else { 0.0 };
        let e = self.eagerness;
        // Of a rate that only chance moves, the least is one standard deviation too low and more.
        let least = self.rates.least();
        let lasting = (least + (least / (2.0 * RATE_S)).sqrt()).min(self.rate);
        let base = each * (e * self.rate + (1.0 - e) * lasting);
        let waits = (sample.to_come_s - IN_HAND_S * f64::from(sample.serving)).max(0.0);
        let pace = PACE * (PACE_END + e) / (PACE_END + 1.0 - e);
        (base, (pace * waits.sqrt()).min(waits / RECOVERY_LEAST_S.max(start)))
    }
}

impl Flaps {
    /// Returns for how long nothing must have needed a node until it is given back.
    fn window(&mut self, now: Instant, window: Duration) -> Duration {
        if let Some(at) = self.at
            && now.since(at) >= FLAP_FORGOTTEN
        {
            self.count = self.count.saturating_sub(1);
            self.at = Some(now);
        }
        let beyond = self.count.saturating_sub(FLAPS_FREE).min(FLAPS_DOUBLING_MAX);
        window.saturating_mul(1 << beyond).min(WINDOW_MOST.max(window))
    }

    fn handle_move(&mut self, now: Instant, up: bool, window: Duration) {
        let soon = window.saturating_mul(FLAP_WINDOWS);
        let undone =
            self.moved.replace((now, up)).filter(|(at, was_up)| *was_up != up && now.since(*at) <= soon);
        if undone.is_some() {
            self.count = (self.count + 1).min(FLAPS_FREE + FLAPS_DOUBLING_MAX);
            self.at = Some(now);
        }
    }
}

/// The values of some time, the oldest first.
#[derive(Clone, Debug, Default)]
struct Remembered(VecDeque<(Instant, f64)>);

impl Remembered {
    /// Adds a value, and forgets those that are older than `window`.
    fn add(&mut self, now: Instant, value: f64, window: Duration) {
        let Remembered(values) = self;
        while values.len() >= REMEMBERED_MAX || values.front().is_some_and(|(at, _)| now.since(*at) > window)
        {
            values.pop_front();
        }
        values.push_back((now, value));
    }

    fn forget(&mut self) {
        self.0.clear();
    }

    fn least(&self) -> f64 {
        self.0.iter().map(|(_, value)| *value).reduce(f64::min).unwrap_or_default()
    }

    fn most(&self) -> f64 {
        self.0.iter().map(|(_, value)| *value).reduce(f64::max).unwrap_or_default()
    }
}
