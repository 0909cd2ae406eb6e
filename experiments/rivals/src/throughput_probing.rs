//! Throughput probing of MongoDB: a tenth more or less for one window, kept if throughput rose.
//!
//! *Law*. With c the stable concurrency, X the throughput of the window that ended, and X₀ that of
//! the last window that counted:
//!
//! ```text
//! stable        X₀ ← X;  if all tickets were taken and m is below the most: m ← ⌈1.1 · c⌉, probing up
//!                        else, if m is above the least:                     m ← ⌊0.9 · c⌋, probing down     (1)
//! probing       if X > X₀:  c ← 0.8 · c + 0.2 · m,  X₀ ← X;      m ← c,  stable                              (2)
//! ```
//!
//! A probe differs from m by at least one. *Signals*: ends per second; whether all tickets were
//! ever taken in the window. *Units*: requests, seconds. *Limits*: [`bounds`]. *Regimes*: if not
//! all tickets are taken, it only probes down. *Source*: the pseudocode and parameters published
//! with MongoDB's execution control: step 0.1, moving average weight 0.2, start at the number of
//! cores, 4 to 128 for each of reads and writes; a route has one pool. There a window is 100 ms of
//! a database's tens of thousands of operations. Here it also waits for [`WINDOW_ENDS`], because a
//! page would mostly be compared with an empty window.

use super::per_route::{Batch, Bounds, Sample, SingleLimit};
use suimon_model::{Instant, Signals};

/// A probe is this share above or below the stable concurrency.
const STEP: f64 = 0.1;
/// The weight of a probe's concurrency if it did better.
const WEIGHT: f64 = 0.2;
/// The least length of a window, seconds, and the ends it waits for, ...
const WINDOW_SECONDS: f64 = 0.1;
const WINDOW_ENDS: u32 = 20;
/// ... and seconds after which it waits no longer.
const WINDOW_SECONDS_MAX: f64 = 10.0;

/// Returns the published limits on a machine of `cores` cores.
pub(super) const fn bounds(cores: u32) -> Bounds {
    Bounds { initial: cores, least: 4, most: 128 }
}

/// The prober of one route.
#[derive(Clone, Debug)]
pub(super) struct ThroughputProbing {
    bounds: Bounds,
    limit: u32,
    stable: f64,
    stable_throughput: f64,
    throughput: f64,
    state: State,
    window: Batch,
    in_flight: u32,
    peak: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Stable,
    Up,
    Down,
}

impl ThroughputProbing {
    pub(super) fn new(bounds: Bounds) -> Self {
        ThroughputProbing {
            bounds,
            limit: bounds.initial,
            stable: f64::from(bounds.initial),
            stable_throughput: 0.0,
            throughput: 0.0,
            state: State::Stable,
            window: Batch::default(),
            in_flight: 0,
            peak: 0,
        }
    }

    fn close_window_if_due(&mut self, now: Instant) {
        let seconds = now.secs_since(self.window.begin);
        let enough = self.window.ends >= WINDOW_ENDS || seconds >= WINDOW_SECONDS_MAX;
        if seconds < WINDOW_SECONDS || !enough {
            return;
        }
        self.throughput = self.window.throughput(now);
        let exhausted = self.peak >= self.limit;
        self.window = Batch::new(now);
        self.peak = self.in_flight;
        self.on_window(exhausted);
    }

    fn on_window(&mut self, exhausted: bool) {
        match self.state {
            State::Stable => {
                self.stable_throughput = self.throughput;
                if exhausted && self.limit < self.bounds.most {
                    let probe = (self.stable * (1.0 + STEP)).ceil().max(f64::from(self.limit) + 1.0);
                    self.limit = self.bounds.whole(probe);
                    self.state = State::Up;
                } else if self.limit > self.bounds.least {
                    let probe = (self.stable * (1.0 - STEP)).floor().min(f64::from(self.limit) - 1.0);
                    self.limit = self.bounds.whole(probe);
                    self.state = State::Down;
                }
            }
            State::Up | State::Down => {
                if self.throughput > self.stable_throughput {
                    self.stable += WEIGHT * (f64::from(self.limit) - self.stable);
                    self.stable_throughput = self.throughput;
                }
                self.limit = self.bounds.whole(self.stable.round());
                self.state = State::Stable;
            }
        }
    }
}

impl SingleLimit for ThroughputProbing {
    fn begin(&mut self, now: Instant, _stream: u64) {
        self.window = Batch::new(now);
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn signals(&self) -> Signals {
        Signals::none()
            .with("throughput", self.throughput)
            .with("stable_throughput", self.stable_throughput)
            .with("stable_concurrency", self.stable)
    }

    fn on_start(&mut self, in_flight: u32) {
        self.in_flight = in_flight;
        self.peak = self.peak.max(in_flight);
    }

    fn on_end(&mut self, now: Instant, sample: &Sample) {
        self.in_flight = sample.remaining;
        self.window.fold(sample);
        self.close_window_if_due(now);
    }

    fn on_tick(&mut self, now: Instant) {
        self.close_window_if_due(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Bench;

    fn prober(initial: u32) -> ThroughputProbing {
        ThroughputProbing::new(Bounds { initial, ..bounds(2) })
    }

    /// Returns the prober at 40, after a stable window of 100/s and then one of `throughput`, and
    /// the limit that it probed.
    fn after(exhausted: bool, throughput: f64) -> (ThroughputProbing, u32) {
        let mut law = prober(40);
        law.throughput = 100.0;
        law.on_window(exhausted);
        let probe = law.limit;
        law.throughput = throughput;
        law.on_window(exhausted);
        (law, probe)
    }

    #[test]
    fn it_probes_up_only_where_all_tickets_are_taken() {
        assert_eq!(after(true, 0.0).1, 44);
        assert_eq!(after(false, 0.0).1, 36);
        let mut bench = Bench::new(prober(40), |_| 0.1).noisy(0.3, 0.0);
        let limits = bench.asked(3, 200.0);
        assert!(limits.iter().all(|m| *m <= 40), "{limits:?}");
    }

    #[test]
    fn a_probe_that_did_better_is_kept_by_a_fifth_and_one_that_did_not_is_undone() {
        let (kept, _) = after(true, 101.0);
        assert!((kept.stable - 40.8).abs() < 1e-9 && kept.limit == 41);
        let (undone, _) = after(true, 100.0);
        assert!((undone.stable - 40.0).abs() < 1e-9 && undone.limit == 40);
        let (lowered, _) = after(false, 101.0);
        assert!((lowered.stable - 39.2).abs() < 1e-9 && lowered.limit == 39);
    }

    #[test]
    fn it_climbs_where_more_at_once_is_more_done() {
        let mut bench = Bench::new(prober(4), |_| 0.1).noisy(0.1, 0.0);
        let limits = bench.saturated(60.0);
        assert!(limits.last() > Some(&12), "{limits:?}");
    }

    #[test]
    fn a_window_waits_for_enough_ends_but_not_for_ever() {
        let mut bench = Bench::new(prober(4), |_| 2.0);
        // 2 ends per second: 20 take 10 s.
        let limits = bench.saturated(9.0);
        assert!(limits.iter().all(|m| *m == 4), "{limits:?}");
        assert!(bench.saturated(3.0).contains(&5));
        let mut idle = Bench::new(prober(8), |_| 100.0);
        assert!(idle.asked(1, 12.0).contains(&7), "nothing ended in 10 s");
    }
}
