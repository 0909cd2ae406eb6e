//! More room without a trial: for pages that take too long to be tried, and for routes too light to be.

use super::fast_up::FastUp;
use super::route::Around;
use super::{FAR, LIMIT_MAX, Paired, RAISE_GROWTH_FAR, SHARE_MIN};
use crate::route::RouteLaw;
use crate::window::Meter;
use suimon_model::{Instant, Reason, Record, RouteId, Signals};

/// Growth of the limit of a full route that is given more room by the time.
const RAISE_GROWTH: f64 = 2.0;
/// The same once its search is over: it is near what is best, and too much takes minutes to be seen and to be over.
const RETRY_GROWTH: f64 = 1.25;

impl Paired {
    /// Gives a full route more room by the time alone: one of which nothing has ended yet, as the first visitors of a page of twelve seconds would else wait for
    /// twelve seconds to be told that they need not have; and a long page that is known to take no longer in company, whose search was ended by something else. A trial of its own
    /// is not disturbed: it may be about to show that there is too much room already.
    pub(super) fn raise(
        &mut self,
        now: Instant,
        id: RouteId,
        meter: &Meter,
        binding: bool,
        out: &mut Vec<Record>,
    ) {
        let is_only = (0u32..)
            .zip(&self.routes)
            .all(|(other, route)| RouteId(other) == id || route.service.get().is_none());
        let cores = self.trusted_cores();
        let around = Around { is_only, is_roomy: self.company(id) <= f64::from(cores), cores };
        let is_probed = self.probing() == Some(id);
        let route = &mut self.routes[id.index()];
        // What the brake has just taken is not given back while those are still there for whom it was too much.
        let is_braked = now < route.brake_until || meter.in_flight() > route.limit as usize;
        if !binding || is_probed || is_braked {
            route.full_since = None;
            return;
        }
        let since = *route.full_since.get_or_insert(now);
        let full = now.secs_since(since);
        if !route.is_due(now, full, around) {
            return;
        }
        // Whether it hurts is told by others, or by nothing but that nobody else is there.
        let is_told = route.strain_elsewhere.is_some() || around.is_only || around.is_roomy;
        let is_far = f64::from(route.limit) >= FAR * f64::from(cores);
        let growth = match route.fast {
            Some(_) if is_far || !is_told => RAISE_GROWTH_FAR,
            Some(_) => RAISE_GROWTH,
            None => RETRY_GROWTH,
        };
        let limit = ((f64::from(route.limit) * growth).ceil() as u32).min(route.highest(now, LIMIT_MAX));
        if limit <= route.limit {
            return;
        }
        route.full_since = Some(now);
        // A search that is over begins anew where the others tell what it does to them; else it goes on in steps of a quarter.
        if route.fast.is_none() && route.strain_elsewhere.is_some() {
            route.retried(now);
            route.fast = Some(FastUp::new(meter.read(now)));
        }
        let signals = Signals::none()
            .with("full_seconds", full)
            .with("alone_seconds", route.times.alone().unwrap_or(0.0));
        self.set_base(now, id, limit, Reason::FastUp, signals, out);
    }

    /// Routes too light to be probed: keep their queue short, never beyond what their rate can use.
    pub(super) fn headroom(&mut self, now: Instant, meters: &[Meter], out: &mut Vec<Record>) {
        for (index, meter) in meters.iter().enumerate() {
            let route = &self.routes[index];
            let id = RouteId(index as u32);
            let light = route.learns && route.fast.is_none() && route.share < SHARE_MIN;
            let is_braked = now < route.brake_until;
            if !light || is_braked || route.binding_ticks < 4 || self.probing() == Some(id) {
                continue;
            }
            let useful = 1.5 * route.rate_max * route.service.get().unwrap_or(0.0);
            let most = route.highest(now, self.ceiling(id)).min(useful.ceil() as u32 + 1);
            let limit = (route.base + 1).min(most);
            if limit > route.base {
                self.routes[index].binding_ticks = 0;
                let signals = Signals::none().with("waiting", meter.waiting() as f64).with("useful", useful);
                self.set_base(now, id, limit, Reason::Headroom, signals, out);
            }
        }
    }
}
