//! What share of the work each route has, and which has become slower by itself.

use super::slow_start::SlowStart;
use super::{LONG, Paired, VERY_LONG};
use crate::window::Meter;
use suimon_model::{Instant, RouteId};

/// What is left of the best rate after each look at the shares, ...
const RATE_KEPT: f64 = 0.995;
/// ... and how the best service time grows.
const SERVICE_GROWS: f64 = 1.002;
/// A route that takes this many times what its best time and its full limit, one request after the
/// other, would explain, ...
const SLOWER: f64 = 2.5;
/// ... while the others take less than this times theirs, is not thrashing: what it waits for has
/// become slower.
const UNMOVED: f64 = 1.3;
/// Time over which the routes' shares of the work are measured, seconds.
const SHARE_SECONDS: f64 = 2.0;
/// A route younger than this, seconds, is measured the next time.
const SHARE_YOUNG: f64 = 1.0;
/// Fewer answers, or ends, say nothing of a route.
const LOOK_MIN: u64 = 4;
/// Weight of the newest such time: a slow route may end nothing for several of them, and is not
/// light for that reason.
pub(super) const SHARE_WEIGHT: f64 = 0.1;

/// A request that asks for a whole core, in the parts that company is counted in: sums of whole
/// numbers do not drift.
pub(super) const WHOLE: u64 = 1 << 16;

impl Paired {
    /// Returns the company of `route` in the application: all of its own requests, which may well
    /// disturb each other, and of the others each by the share of a core that it can ask for.
    pub(super) fn company(&self, route: RouteId) -> f64 {
        let route = &self.routes[route.index()];
        let own = route.in_service.len() as u64;
        let others = self.inside.saturating_sub(own * route.weight) as f64 / WHOLE as f64;
        own as f64 + others + self.elsewhere as f64
    }

    /// Returns how many are in the application, each counted by the share of a core that it can ask
    /// for.
    pub(super) fn inside(&self) -> f64 {
        self.inside as f64 / WHOLE as f64 + self.elsewhere as f64
    }

    /// Updates what requests of each route can ask for. Where the cores are doubted each is assumed
    /// to compute.
    pub(super) fn weigh(&mut self) {
        let cores = self.trusted_cores();
        let is_doubted = self.doubted_until.is_some();
        self.inside = 0;
        for route in &mut self.routes {
            let waits = route.times.alone().is_some_and(|alone| alone >= VERY_LONG);
            let share = if waits && !is_doubted { route.times.computes(cores) } else { 1.0 };
            route.weight = (share * WHOLE as f64).ceil() as u64;
            self.inside += route.weight * route.in_service.len() as u64;
        }
    }

    /// Shares of the work, and the best rate and service time seen; slowly forgetting both.
    pub(super) fn measure_shares(&mut self, now: Instant, meters: &[Meter]) {
        // A young route keeps no other waiting: on some sites there is always one.
        if self.share_begin.iter().all(|begin| now.secs_since(begin.at) < SHARE_SECONDS) {
            return;
        }
        let mut work = vec![0.0; self.routes.len()];
        let mut rates = vec![0.0; self.routes.len()];
        let mut is_measured = vec![false; self.routes.len()];
        let mut inflation = vec![0.0; self.routes.len()];
        for (index, route) in self.routes.iter_mut().enumerate() {
            let window = meters[index].since(&self.share_begin[index], now);
            if window.seconds < SHARE_YOUNG {
                continue;
            }
            self.share_begin[index] = meters[index].read(now);
            // For a route without requests, or never answered, there is nothing to measure: it is
            // not light for that reason.
            let is_asked = window.progressed + window.failed > 0 || meters[index].in_flight() > 0;
            is_measured[index] = is_asked && route.service.get().is_some();
            rates[index] = window.throughput();
            work[index] = route.service.get().unwrap_or(0.0) * rates[index];
            if window.progressed >= LOOK_MIN {
                route.rate_max = (route.rate_max * RATE_KEPT).max(window.throughput());
            }
            if let Some(mean) = window.mean_answer(LOOK_MIN) {
                let is_known = route.service_min.is_finite();
                route.service_min = (route.service_min * SERVICE_GROWS).min(mean);
                inflation[index] = if is_known { mean / route.service_min } else { 0.0 };
                route.end_search_of_standstill(mean);
            }
        }
        self.notice_slower(now, &inflation, meters);
        let total: f64 = work.iter().sum();
        for (index, route) in self.routes.iter_mut().enumerate() {
            let mut weight = SHARE_WEIGHT;
            if is_measured[index] {
                // The mean of all measurements at first: nothing guessed takes part in it.
                route.share_looks = route.share_looks.saturating_add(1);
                weight = weight.max(1.0 / f64::from(route.share_looks));
                if total > 0.0 {
                    route.share += weight * (work[index] / total - route.share);
                }
            }
            route.rate += weight * (rates[index] - route.rate);
        }
    }

    /// Begins the search anew at a route that alone takes much longer than its best, and still does:
    /// one that has stood still for a moment, for a lock or a page of the disk, is as quick as before
    /// at once. A search that begins with a standstill finds nobody waiting who could end it, and X of
    /// the standstill is kept for as long. Where a look falls between a standstill and the next answer, it begins all
    /// the same, and ends with the next look (`end_search_of_standstill`). `inflation` by route; 0: not known.
    fn notice_slower(&mut self, now: Instant, inflation: &[f64], meters: &[Meter]) {
        for (index, own) in inflation.iter().enumerate() {
            let route = &self.routes[index];
            let explained = f64::from(route.limit);
            let is_slower = own.is_finite()
                && *own > SLOWER * explained
                && route.newest_seconds > SLOWER * explained * route.service_min;
            if !is_slower {
                continue;
            }
            // A long page is no witness: its waiting hides the effect of the processor.
            let is_witness = |other: usize| other != index && self.routes[other].service_min < LONG;
            let mut others = inflation
                .iter()
                .enumerate()
                .filter(|(other, seen)| is_witness(*other) && **seen > 0.0)
                .peekable();
            if others.peek().is_some() && others.all(|(_, seen)| *seen < UNMOVED) {
                let route = &mut self.routes[index];
                route.slower_from = Some(SLOWER * explained * route.service_min);
                route.service_min *= own;
                route.times.forget();
                route.slow_start = Some(SlowStart::new(meters[index].read(now)));
            }
        }
    }
}
