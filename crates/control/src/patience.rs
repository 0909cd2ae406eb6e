//! How long visitors wait for one answer, learned from those that left.
//!
//! *Law*. Patience is the age by which 10 % of the clients that wait longer than [`AGE_MIN`] would
//! have left, if none were answered:
//!
//! ```text
//! h[b] = left[b] / risk[b]          risk[b] = past[b] + left[b] + answered[b] / 2            (1)
//! S(t) = Π over age classes b that begin before t of (1 − h[b])                              (2)
//! patience = the age t at which S(t) = 0.9                                                   (3)
//! σ²   = Σ over age classes up to t of left[b] / risk[b]²                                    (4)
//! ```
//!
//! left, answered: requests that ended in age class b because the client left, or in any other way.
//! past: requests that became older than b, those that still wait included. (1) and (2) are the
//! product-limit estimate in its life-table form; an answer is a censored observation. (4) is the
//! variance of ln S; the error of the patience is half the distance between the ages at which −ln S
//! is σ below and σ above −ln 0.9.
//!
//! *Signals*: for each request its age when it ended and whether the client left; at each refresh
//! the ages of the requests that still wait. Those belong to the risk set: in a rush the first
//! requests to end are those of clients that leave. The result is the patience, its standard error,
//! the leavers it rests on and when it was learned ([`PatienceEstimate`]). *Units*: seconds.
//!
//! *Which leavers count*. The risk set begins at [`AGE_MIN`]. A client that leaves earlier has
//! pressed stop, clicked twice or typed on, and has not waited; a request that is answered earlier
//! says nothing about waiting either. Both are left out, so (2) is the survival of clients that
//! wait at all. Click-aways therefore teach nothing, however many there are. Leaving at a constant
//! rate after that age counts, whatever its cause, as it limits how long visitors can be kept. One
//! visitor counts as one leaver for as long as it is among the last [`VISITORS_MAX`] to leave.
//!
//! *Memory*. Each age class forgets by the observations that reach it: nothing before it has
//! [`MEMORY_COUNT`], then e-fold after as many more or [`MEMORY_SECONDS`], whichever takes longer.
//! Ten thousand quick answers per second displace nothing that is known about slow ones. The time
//! keeps a rush together, in which leavers end before answered requests. Where hardly anybody
//! leaves any more, fewer than [`FADES_BELOW`] in some ten minutes, everything halves each
//! [`FADES_BY_HALF`], until too little is left to conclude from: on a quick site nobody waits for
//! long enough to correct what was learned once.
//!
//! *Regimes*. Nobody waits long: no class has enough at risk, nothing is learned, and the assumed
//! value stands. Fewer than [`RISK_MIN`] at risk in a class: S is not known from there on, as its
//! standard error near 0.9 would be 0.05. Fewer than [`LEAVERS_MIN`] leavers up to (3): nothing is
//! learned; half as many keep what is known. Leavers of fewer than [`MOMENTS_MIN`] effective
//! moments, (Σ n)² / Σ n² over refreshes with n leavers each: connections were cut all at once, or
//! one burst left, and the last value stands. S stays above 0.9: visitors are more patient than was
//! needed, and the assumed value stands.
//!
//! *Bias and spread*, as shares of the truth (`patience/tests.rs`; answers of 0.1 to 5 s, more than
//! 1000 requests older than 0.5 s):
//!
//! | patience | bias | spread | error reported |
//! |---|---|---|---|
//! | exponential, mean 20 s (2.6 s by (3)) | +1 % | 10 % | 10 % |
//! | lognormal, median 4 s (1.85 s) | 0 % | 4 % | 4 % |
//! | all 3 s | −3 % | 0 % | 2 % |
//! | lognormal, beside click-aways of 0.2 or 2 % | +1 % | 4 % | 5 % |
//! | lognormal, in rushes ten minutes apart | +1 % | 2 % | 3 % |
//! | lognormal, after 250 requests that nobody answers | 0 % | 6 % | 7 % |
//! | exponential, at the first conclusion | +4 % | 18 % | |
//!
//! When a patience of 10 s becomes 3 s, some 350 requests teach it within 20 %; from 3 to 10 s it
//! takes some 870. Twelve aborts at 1 s move a patience of 1.85 s by −9 %, among 2000 requests.
//! While 2000 wait that all came within ten seconds, a patience of 14.4 s is reported as 13.1 to
//! 16.6 s.
//!
//! *Limits*. Patience counted from the click is overstated by up to [`AGE_MIN`] where visitors
//! leave at a constant rate from the beginning. A patience that all visitors share is found within
//! 5 %, the width of an age class. In a long rush leavers are forgotten while those who wait count
//! in full: patience is overstated by some 15 %. Age classes are learned at different times: what
//! is known about long waits may be from the last overload. A robot that comes as a new visitor for
//! every request, aborts more than 10 % of all that reach that age, and does so at several moments,
//! is believed. The error assumes that visitors decide independently.
//!
//! *Source*: Kaplan & Meier 1958; (4): Aalen 1978; its use for quantiles: Brookmeyer & Crowley
//! 1982. The choice of the 10th percentile, the memory and the bounds are ours.

use suimon_model::Instant;
use suimon_model::real::{exp, ln};

/// Age at which waiting begins, seconds: a client that leaves earlier does not do so because of
/// waiting.
const AGE_MIN: f64 = 0.5;
/// Age classes, each this many times as wide as the one before: from [`AGE_MIN`] to some nine
/// minutes. What is older counts in the last, which is never read.
const RATIO: f64 = 1.05;
const CLASSES: usize = 144;
/// Survival at which patience is read off.
const SURVIVAL: f64 = 0.9;
/// The fewest at risk in an age class for its hazard to be believed.
const RISK_MIN: f64 = 40.0;
/// The fewest leavers for a conclusion.
const LEAVERS_MIN: f64 = 20.0;
/// The fewest effective moments they must come from.
const MOMENTS_MIN: f64 = 5.0;
/// The weight of what is known of an age class falls by a factor of e after this many observations
/// that reached it, ...
const MEMORY_COUNT: f64 = 300.0;
/// ... but not before this many seconds have passed.
const MEMORY_SECONDS: f64 = 60.0;
/// The same for the moments, in leavers.
const MEMORY_LEAVERS: f64 = 64.0;
/// Number of most recent leavers, each of whom counts once.
const VISITORS_MAX: usize = 64;
/// Where fewer than this have left, each leaver's weight falling by a factor of e in the seconds
/// below, what is known halves ...
const FADES_BELOW: f64 = 4.0;
const FADES_AFTER: f64 = 600.0;
/// ... every this many seconds: those it was learned from may all have gone.
const FADES_BY_HALF: f64 = 600.0;
/// Time between two conclusions, seconds.
const PERIOD: f64 = 1.0;

/// Patience as it was learned.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PatienceEstimate {
    /// The age by which a tenth of the waiting clients have left, seconds.
    pub seconds: f64,
    /// Its standard error, seconds.
    pub error_seconds: f64,
    /// Leavers up to that age, the old ones weighing less.
    pub leavers: f64,
    /// When it was last learned.
    pub at: Instant,
}

suimon_model::saved_struct!(PatienceEstimate { seconds, error_seconds, leavers, at });

/// Learns patience from ages.
#[derive(Clone, Debug)]
pub struct Patience {
    classes: Vec<Class>,
    /// Since the last conclusion: whether anything was folded in, and how many left.
    is_unread: bool,
    just_left: u32,
    /// Leavers, and the sum of squares of the leavers of one period.
    leavers: f64,
    leavers_squared: f64,
    /// The last visitors that left; the one at `next` makes room.
    visitors: Vec<u64>,
    next: usize,
    concluded: Instant,
    /// Those who have left in the last [`FADES_AFTER`], or about.
    lately: f64,
    learned: Option<PatienceEstimate>,
}

suimon_model::saved_struct!(
    Patience {
        classes,
        is_unread,
        just_left,
        leavers,
        leavers_squared,
        visitors,
        next,
        concluded,
        lately,
        learned
    },
    |it: &Patience| {
        it.classes.len() == CLASSES && it.visitors.len() <= VISITORS_MAX && it.next < VISITORS_MAX
    }
);

/// One age class.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// left, the same with squared weights, and risk of (1), remembered.
    left: f64,
    left_squared: f64,
    risk: f64,
    /// Since the last conclusion: who left, who ended in any other way, and who is still there.
    just_left: u32,
    just_answered: u32,
    waiting: u32,
}

suimon_model::saved_struct!(Class { left, left_squared, risk, just_left, just_answered, waiting });

impl Default for Patience {
    fn default() -> Self {
        Patience {
            classes: vec![Class::default(); CLASSES],
            is_unread: false,
            just_left: 0,
            leavers: 0.0,
            leavers_squared: 0.0,
            visitors: vec![],
            next: 0,
            concluded: Instant::ORIGIN,
            lately: 0.0,
            learned: None,
        }
    }
}

impl Patience {
    /// Folds in a request that was `age` seconds old when it ended; `left`: the client went away by
    /// itself.
    pub fn fold(&mut self, age: f64, left: bool) {
        self.fold_of(None, age, left);
    }

    /// Does the same, for a request of a known `visitor`, who counts as one leaver however often it
    /// leaves.
    pub fn fold_of(&mut self, visitor: Option<u64>, age: f64, left: bool) {
        let Some(index) = class_of(age) else { return };
        if left && visitor.is_some_and(|visitor| self.left_lately(visitor)) {
            return;
        }
        let class = &mut self.classes[index];
        let count = if left { &mut class.just_left } else { &mut class.just_answered };
        *count = count.saturating_add(1);
        self.just_left = self.just_left.saturating_add(u32::from(left));
        self.is_unread = true;
    }

    /// Returns whether `visitor` is among the last that left, and takes note of it if not.
    fn left_lately(&mut self, visitor: u64) -> bool {
        if self.visitors.contains(&visitor) {
            return true;
        }
        if self.visitors.len() < VISITORS_MAX {
            self.visitors.push(visitor);
        } else {
            self.visitors[self.next] = visitor;
            self.next = (self.next + 1) % VISITORS_MAX;
        }
        false
    }

    /// Returns whether `refresh` has something to conclude at `now`, for which it must know the
    /// requests that still wait: see [`Patience::fold_waiting`].
    pub fn asks_who_waits(&self, now: Instant) -> bool {
        self.is_due(now) && (self.just_left > 0 || self.leavers > 0.0)
    }

    /// Takes note, just before `refresh`, of a request that still waits and is `age` seconds old.
    /// Forgotten with that conclusion.
    pub fn fold_waiting(&mut self, age: f64) {
        if let Some(index) = class_of(age) {
            let waiting = &mut self.classes[index].waiting;
            *waiting = waiting.saturating_add(1);
        }
    }

    /// Works the newest observations into the estimate, if a second has passed and there are any,
    /// or something is known that may fade. Takes some microseconds: for the tick, not for a
    /// request.
    pub fn refresh(&mut self, now: Instant) {
        if !self.is_due(now) {
            return;
        }
        let passed = now.secs_since(self.concluded);
        let learned_at = if self.is_unread { now } else { self.learned.map_or(now, |learned| learned.at) };
        self.fade(passed);
        self.remember(passed);
        self.concluded = now;
        match self.estimate(learned_at) {
            // One moment is no evidence, neither for a patience nor against the one that was
            // learned.
            Some(_) if !self.are_moments_enough() => {}
            estimate => self.learned = estimate,
        }
        self.classes.iter_mut().for_each(|class| class.waiting = 0);
    }

    /// Returns the patience learned, seconds, or `None` as long as it is not known.
    pub fn learned(&self) -> Option<f64> {
        self.learned.map(|estimate| estimate.seconds)
    }

    /// Returns the patience learned with its error and when it was learned, or `None` as long as it
    /// is not known.
    pub fn estimate_learned(&self) -> Option<PatienceEstimate> {
        self.learned
    }

    /// Returns which part of the clients that wait would still be there at this age, if none were answered, by
    /// those that have ended; `None` where too few are known to have waited so long, and too few left before.
    pub fn survival(&self, age: f64) -> Option<f64> {
        self.learned?;
        let curve = self.curve();
        let index = class_of(age)?;
        // All who wait may have left before.
        let point = curve.get(index).or(curve.last())?;
        let is_known = index < curve.len() || point.fallen >= -ln(SURVIVAL);
        is_known.then(|| exp(-point.fallen))
    }

    fn is_due(&self, now: Instant) -> bool {
        (self.is_unread || self.learned.is_some()) && now.secs_since(self.concluded) >= PERIOD
    }

    fn are_moments_enough(&self) -> bool {
        self.leavers * self.leavers >= MOMENTS_MIN * self.leavers_squared
    }

    /// Lets what is known weigh less by the last `passed` seconds, where hardly anybody has left
    /// lately.
    fn fade(&mut self, passed: f64) {
        let lately = self.lately * exp(-passed / FADES_AFTER);
        self.lately = lately + f64::from(self.just_left);
        if lately >= FADES_BELOW {
            return;
        }
        let kept = exp(-std::f64::consts::LN_2 * passed / FADES_BY_HALF);
        for class in &mut self.classes {
            class.left *= kept;
            class.left_squared *= kept * kept;
            class.risk *= kept;
        }
        self.leavers *= kept;
        self.leavers_squared *= kept * kept;
    }

    /// Moves the observations of the last `passed` seconds into the memory.
    fn remember(&mut self, passed: f64) {
        // The weight of the old beside `new`: all of it as long as there is room for both.
        let kept = |old: f64, new: f64, memory: f64| {
            let kept_share = ((memory - new) / old).clamp(0.0, 1.0);
            kept_share.max(exp(-(new / memory).min(passed / MEMORY_SECONDS)))
        };
        let mut past = 0.0;
        for class in self.classes.iter_mut().rev() {
            let (left, answered) = (f64::from(class.just_left), f64::from(class.just_answered));
            let risk = past + left + answered / 2.0;
            if risk > 0.0 {
                let kept = if class.risk > 0.0 { kept(class.risk, risk, MEMORY_COUNT) } else { 1.0 };
                class.risk = class.risk * kept + risk;
                class.left = class.left * kept + left;
                class.left_squared = class.left_squared * kept * kept + left;
            }
            past += left + answered;
            (class.just_left, class.just_answered) = (0, 0);
        }
        let left = f64::from(self.just_left);
        let kept = if self.leavers > 0.0 { kept(self.leavers, left, MEMORY_LEAVERS) } else { 1.0 };
        self.leavers = self.leavers * kept + left;
        self.leavers_squared = self.leavers_squared * kept * kept + left * left;
        (self.just_left, self.is_unread) = (0, false);
    }

    /// Returns what (1) to (4) say, or `None` if S is not known to fall to 0.9.
    fn estimate(&self, now: Instant) -> Option<PatienceEstimate> {
        // What is known once is not lost again for one leaver more or less.
        let leavers_min = if self.learned.is_some() { LEAVERS_MIN / 2.0 } else { LEAVERS_MIN };
        let curve = self.curve();
        let target = -ln(SURVIVAL);
        let index = curve.iter().position(|point| point.fallen >= target)?;
        let leavers = curve[index].leavers;
        if leavers < leavers_min {
            return None;
        }
        let seconds = age_at(&curve, target)?;
        let sigma = curve[index].variance.sqrt();
        let low = age_at(&curve, target - sigma).unwrap_or(AGE_MIN);
        // Where S is not known so far, leaving is assumed to go on at the same rate.
        let high = age_at(&curve, target + sigma).unwrap_or(seconds * (1.0 + sigma / target));
        let resolution = seconds * (RATIO - 1.0);
        Some(PatienceEstimate {
            seconds,
            error_seconds: ((high - low) / 2.0).max(resolution / 2.0),
            leavers,
            at: now,
        })
    }

    /// Returns what is known at the end of each age class, as far as enough are at risk.
    fn curve(&self) -> Vec<Point> {
        let mut waiting = vec![0.0; CLASSES];
        let mut past = 0.0;
        for (class, at_risk) in self.classes.iter().zip(&mut waiting).rev() {
            *at_risk = past + f64::from(class.waiting) / 2.0;
            past += f64::from(class.waiting);
        }
        let mut point = Point { fallen: 0.0, variance: 0.0, leavers: 0.0 };
        let known = self.classes.iter().zip(waiting).take(CLASSES - 1);
        let known = known
            .map(|(class, waiting)| (class, class.risk + waiting))
            .take_while(|(_, risk)| *risk >= RISK_MIN);
        known
            .map(|(class, risk)| {
                // All of them leaving is a fall without end.
                point.fallen -= ln((1.0 - class.left / risk).max(1e-9));
                point.variance += class.left_squared / (risk * risk);
                point.leavers += class.left;
                point
            })
            .collect()
    }
}

/// The estimate at the end of an age class: −ln S, its variance, and the leavers up to there.
#[derive(Clone, Copy, Debug)]
struct Point {
    fallen: f64,
    variance: f64,
    leavers: f64,
}

/// Returns the age at which −ln S is `target`, evenly within an age class, or `None` if it is not
/// known to come so far.
fn age_at(curve: &[Point], target: f64) -> Option<f64> {
    let (mut begin, mut before) = (AGE_MIN, 0.0);
    for point in curve {
        if point.fallen >= target && point.fallen > before {
            let share = ((target - before) / (point.fallen - before)).max(0.0);
            return Some(begin * (1.0 + share * (RATIO - 1.0)));
        }
        (begin, before) = (begin * RATIO, point.fallen);
    }
    None
}

/// Returns the age class, or `None` below the first.
fn class_of(age: f64) -> Option<usize> {
    let steps = || ln(age / AGE_MIN) / ln(RATIO);
    (age >= AGE_MIN).then(|| (steps() as usize).min(CLASSES - 1))
}

#[cfg(test)]
mod tests;
