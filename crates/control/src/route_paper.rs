//! The paper's page rule, exactly: one step of ±1 on each route's own throughput.
//!
//! *Law*. Every period T, with h[m] the average (weight ½) of the throughputs seen at limit m:
//!
//! ```text
//! h[m] ≥ h[m of the period before]   one step further in the same direction      (1)
//! h[m] < h[m of the period before]   one step in the other direction             (2)
//! ```
//!
//! *Signals*: completions of the route alone. *Units*: completions per second. *Limits*: 1 to
//! [`LIMIT_MAX`]. *Regimes*: a period in which nothing was in the application decides nothing;
//! otherwise the rule, like the paper's, does not ask whether the limit was what held throughput
//! back. *Source*: Matsunuma et al. 2006, §3.1 and §3.3 (direction and step; "statistics over past
//! measurements"). The paper leaves T, the initial limit and the statistic open; ours are in
//! [`PaperRouteParams`] and (1).

use crate::route::{RequestEnd, RouteLaw};
use crate::statistics::Average;
use crate::window::{Meter, Reading};
use std::collections::BTreeMap;
use suimon_model::persist::{Persist, Unsavable, Writer};
use suimon_model::{Duration, Instant, Quantity, Reason, Record, RouteId, Signals, Subject};

/// The numbers of the paper's page rule that the paper leaves open.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PaperRouteParams {
    /// The limit to start from.
    pub initial: u32,
    /// Length of a throughput window.
    pub period: Duration,
}

suimon_model::saved_struct!(PaperRouteParams { initial, period });

impl Default for PaperRouteParams {
    fn default() -> Self {
        PaperRouteParams { initial: 5, period: Duration::from_secs(2) }
    }
}

/// The highest limit the rule goes to.
const LIMIT_MAX: u32 = 512;

/// The rule over all routes, each by itself.
#[derive(Clone, Debug)]
pub struct PaperRoutes {
    params: PaperRouteParams,
    routes: Vec<Route>,
}

suimon_model::saved_struct!(PaperRoutes { params, routes });

#[derive(Clone, Debug)]
struct Route {
    learns: bool,
    limit: u32,
    previous: u32,
    up: bool,
    history: BTreeMap<u32, Average>,
    service: Average,
    begin: Reading,
}

suimon_model::saved_struct!(Route { learns, limit, previous, up, history, service, begin });

impl PaperRoutes {
    /// Returns the rule with nothing known.
    pub fn new(params: PaperRouteParams) -> Self {
        PaperRoutes { params, routes: vec![] }
    }

    fn unknown_route(&self, fixed: Option<u32>, begin: Reading) -> Route {
        let limit = fixed.unwrap_or(self.params.initial).max(1);
        Route {
            learns: fixed.is_none(),
            limit,
            previous: limit,
            up: true,
            history: BTreeMap::new(),
            service: Average::new(0.02),
            begin,
        }
    }
}

impl RouteLaw for PaperRoutes {
    fn fits(&self, routes: usize) -> bool {
        self.routes.len() == routes
    }

    fn save(&self, out: &mut Writer) -> Result<(), Unsavable> {
        Persist::save(self, out);
        Ok(())
    }

    fn add_route(&mut self, now: Instant, fixed: Option<u32>) {
        let begin = Meter::new(now).read(now);
        self.routes.push(self.unknown_route(fixed, begin));
    }

    fn renew_route(&mut self, now: Instant, route: RouteId, fixed: Option<u32>, meter: &Meter) {
        self.routes[route.index()] = self.unknown_route(fixed, meter.read(now));
    }

    fn limit(&self, route: RouteId) -> u32 {
        self.routes[route.index()].limit
    }

    fn service(&self, route: RouteId) -> Option<f64> {
        self.routes[route.index()].service.get()
    }

    fn on_end(&mut self, _now: Instant, end: &RequestEnd, _meters: &[Meter], _out: &mut Vec<Record>) {
        self.routes[end.route.index()].service.fold(end.service);
    }

    fn on_tick(&mut self, now: Instant, meters: &[Meter], out: &mut Vec<Record>) {
        for (index, (route, meter)) in self.routes.iter_mut().zip(meters).enumerate() {
            if !route.learns || now.since(route.begin.at) < self.params.period {
                continue;
            }
            let window = meter.since(&route.begin, now);
            route.begin = meter.read(now);
            if window.mean_in_flight() <= 0.0 {
                continue;
            }
            let (old, reason, signals) = route.step(window.throughput());
            if old != route.limit {
                out.push(Record {
                    at: now,
                    subject: Subject::Route(RouteId(index as u32)),
                    quantity: Quantity::Limit,
                    old: f64::from(old),
                    new: f64::from(route.limit),
                    reason,
                    signals,
                });
            }
        }
    }
}

impl Route {
    fn step(&mut self, throughput: f64) -> (u32, Reason, Signals) {
        let here = self.history.entry(self.limit).or_insert(Average::new(0.5));
        here.fold(throughput);
        let here = here.get().unwrap_or(throughput);
        let before = self.history.get(&self.previous).and_then(Average::get).unwrap_or(here);
        let reason = if here >= before { Reason::StepOn } else { Reason::StepBack };
        if reason == Reason::StepBack {
            self.up = !self.up;
        }
        let old = self.limit;
        self.previous = old;
        self.limit = if self.up { old + 1 } else { old.saturating_sub(1) }.clamp(1, LIMIT_MAX);
        if self.limit == old {
            self.up = !self.up;
        }
        (old, reason, Signals::none().with("throughput", here).with("throughput_before", before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    /// Plays a route whose throughput is a function of its limit; returns the limits of the last
    /// half.
    fn settle(throughput: impl Fn(u32) -> u32, periods: u32) -> Vec<u32> {
        let mut law = PaperRoutes::new(PaperRouteParams::default());
        let mut meter = Meter::new(Instant::ORIGIN);
        law.add_route(Instant::ORIGIN, None);
        let (mut limits, mut out) = (vec![], vec![]);
        for period in 1..=periods {
            let limit = law.limit(RouteId(0));
            meter.load(Instant::ORIGIN + seconds(f64::from(period - 1) * 2.0), limit as usize, 1);
            (0..throughput(limit)).for_each(|_| meter.end(0.1, true));
            law.on_tick(
                Instant::ORIGIN + seconds(f64::from(period) * 2.0),
                std::slice::from_ref(&meter),
                &mut out,
            );
            limits.push(law.limit(RouteId(0)));
        }
        limits.split_off(limits.len() / 2)
    }

    #[test]
    fn it_walks_to_the_peak_and_stays_beside_it() {
        let limits = settle(|m| 100 - 5 * m.abs_diff(9), 60);
        assert!(limits.iter().all(|m| (7..=11).contains(m)), "{limits:?}");
    }

    #[test]
    fn it_never_falls_below_one() {
        let limits = settle(|m| 50 / m.max(1), 60);
        assert!(limits.iter().all(|m| (1..=3).contains(m)), "{limits:?}");
    }

    #[test]
    fn an_idle_route_decides_nothing() {
        let mut law = PaperRoutes::new(PaperRouteParams::default());
        law.add_route(Instant::ORIGIN, None);
        let mut out = vec![];
        law.on_tick(Instant::ORIGIN + seconds(10.0), &[Meter::new(Instant::ORIGIN)], &mut out);
        assert!(out.is_empty() && law.limit(RouteId(0)) == 5);
    }
}
