//! Completions with a number of workers, and what they tell.

use suimon_model::Instant;
use suimon_model::real::ln;

/// The least length of a window, seconds.
pub(super) const WINDOW_LEAST: f64 = 6.0;
/// The greatest length of a window, seconds: then what it says counts, or the move is undone.
pub(super) const WINDOW_MOST: f64 = 60.0;
/// The fewest completions in a window shorter than that.
pub(super) const COMPLETIONS_LEAST: f64 = 12.0;
/// The least length of a window, as a multiple of the time that a request takes.
const WINDOW_REQUESTS: f64 = 2.0;
/// The least variance of completions, as a share of what requests at random have.
const DISPERSION_LEAST: f64 = 0.25;
/// Ticks of the variance at random that each window begins with.
const DISPERSION_TICKS: f64 = 6.0;

/// A number of workers, and what was measured with it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) n: u32,
    pub(super) at: Instant,
    pub(super) window: Window,
}

/// Completions, second by second.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Window {
    pub(super) seconds: f64,
    pub(super) completed: f64,
    /// Sum of the squares of what was completed in each tick, and the number of these.
    squares: f64,
    ticks: f64,
}

impl Window {
    pub(super) fn add(&mut self, seconds: f64, completed: u64) {
        let completed = completed as f64;
        let more = Window { seconds, completed, squares: completed * completed, ticks: 1.0 };
        self.merge(&more);
    }

    pub(super) fn merge(&mut self, other: &Window) {
        self.seconds += other.seconds;
        self.completed += other.completed;
        self.squares += other.squares;
        self.ticks += other.ticks;
        if self.seconds > 2.0 * WINDOW_MOST {
            // What was long ago counts less.
            self.seconds *= 0.5;
            self.completed *= 0.5;
            self.squares *= 0.5;
            self.ticks *= 0.5;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ticks <= 0.0
    }

    /// Returns ln X; without completions, as if there were one half.
    pub(super) fn ln_rate(&self) -> f64 {
        ln(self.completed.max(0.5) / self.seconds.max(1e-9))
    }

    /// Returns the variance of ln X, as the ticks show it.
    pub(super) fn variance(&self) -> f64 {
        let ticks = self.ticks.max(1.0);
        let mean = self.completed.max(1.0) / ticks;
        let variance = (self.squares / ticks - mean * mean).max(0.0);
        let dispersion = (ticks * variance / mean + DISPERSION_TICKS) / (ticks + DISPERSION_TICKS);
        dispersion.max(DISPERSION_LEAST) / self.completed.max(1.0)
    }

    /// Returns whether it has all that a window needs but certainty. `request_s`: what one takes.
    pub(super) fn is_long(&self, request_s: f64) -> bool {
        let is_long = self.seconds >= WINDOW_LEAST.max(WINDOW_REQUESTS * request_s);
        is_long && self.completed >= COMPLETIONS_LEAST || self.is_longest()
    }

    pub(super) fn is_longest(&self) -> bool {
        self.seconds >= WINDOW_MOST
    }

    /// Returns ln(X / X of `other`), and its standard error.
    pub(super) fn against(&self, other: &Window) -> (f64, f64) {
        (self.ln_rate() - other.ln_rate(), (self.variance() + other.variance()).sqrt())
    }
}

impl Point {
    pub(super) fn unmeasured(n: u32) -> Self {
        Point { n, at: Instant::ORIGIN, window: Window::default() }
    }

    /// Returns the point of a number of workers, all of them with a request for `took` seconds each, by
    /// Little's law; so many requests tell.
    pub(super) fn by_time(at: Instant, n: u32, took: f64, completed: u64) -> Self {
        let mut window = Window::default();
        window.add(completed as f64 * took / f64::from(n), completed);
        Point { n, at, window }
    }

    pub(super) fn position(&self) -> (f64, f64) {
        (ln(f64::from(self.n)), self.window.ln_rate())
    }
}

/// Returns where the parabola through three points is highest, if it is.
pub(super) fn vertex(left: (f64, f64), middle: (f64, f64), right: (f64, f64)) -> Option<f64> {
    let rise = (middle.1 - left.1) / (middle.0 - left.0);
    let fall = (right.1 - middle.1) / (right.0 - middle.0);
    let bend = (fall - rise) / (right.0 - left.0);
    let at = f64::midpoint(left.0, middle.0) - rise / (2.0 * bend);
    (bend < 0.0 && at > left.0 && at < right.0).then_some(at)
}
