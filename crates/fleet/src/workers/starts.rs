//! Starts: how long they take, and how long the next one is delayed after failed ones.

use super::api::StartFault;
use super::{BACK_OFF_S_MAX, FAILURES_MAX};
use std::collections::VecDeque;
use suimon_model::{Duration, Instant, seconds};

/// Durations and CPU times of starts that are kept, those of the last ones.
const KEPT_MAX: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Starts {
    back_off: Duration,
    /// Failed starts in a row, how and when the last one ended, and when the next one may begin.
    failures: u32,
    last: Option<StartFault>,
    failed_at: Instant,
    may_start: Instant,
    /// When a worker that was started since will have shown that starts succeed again.
    proven_at: Option<Instant>,
    durations: VecDeque<f64>,
    cpu: VecDeque<f64>,
}

impl Starts {
    pub(super) fn new(back_off: Duration) -> Self {
        Starts {
            back_off,
            failures: 0,
            last: None,
            failed_at: Instant::ORIGIN,
            may_start: Instant::ORIGIN,
            proven_at: None,
            durations: VecDeque::with_capacity(KEPT_MAX),
            cpu: VecDeque::with_capacity(KEPT_MAX),
        }
    }

    /// Takes note of a failed start. Those that began before the last failure tell nothing new.
    pub(super) fn fail(&mut self, now: Instant, how: StartFault) {
        (self.failed_at, self.last, self.proven_at) = (now, Some(how), None);
        if self.failures > 0 && now < self.may_start {
            return;
        }
        let delay = self.back_off.as_secs_f64() * f64::from(1_u32 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        self.may_start = now + seconds(delay.min(f64::from(BACK_OFF_S_MAX)));
    }

    /// Takes note of how long a start took, seconds.
    pub(super) fn succeed(&mut self, took_s: f64) {
        keep(&mut self.durations, took_s);
    }

    /// Takes note of the CPU time that a start took, seconds.
    pub(super) fn cost(&mut self, cpu_s: f64) {
        keep(&mut self.cpu, cpu_s);
    }

    /// Forgets failures: the program has changed, or was shown to start.
    pub(super) fn forgive(&mut self, now: Instant) {
        (self.failures, self.last, self.proven_at) = (0, None, None);
        self.may_start = self.may_start.min(now);
    }

    pub(super) fn set_proven_at(&mut self, at: Option<Instant>) {
        self.proven_at = at.filter(|_| self.failures > 0);
    }

    pub(super) fn proven_at(&self) -> Option<Instant> {
        self.proven_at
    }

    pub(super) fn failed_at(&self) -> Instant {
        self.failed_at
    }

    pub(super) fn may_start(&self) -> Instant {
        self.may_start
    }

    pub(super) fn have_failed(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn are_hopeless(&self) -> bool {
        self.failures >= FAILURES_MAX
    }

    pub(super) fn last(&self) -> Option<StartFault> {
        self.last
    }

    /// Returns the median of how long recent starts took, seconds.
    pub(super) fn median_s(&self) -> Option<f64> {
        median(&self.durations)
    }

    /// Returns the median of the CPU time of recent starts, seconds.
    pub(super) fn median_cpu_s(&self) -> Option<f64> {
        median(&self.cpu)
    }
}

fn keep(values: &mut VecDeque<f64>, value: f64) {
    if values.len() == KEPT_MAX {
        values.pop_front();
    }
    values.push_back(value);
}

fn median(values: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
