//! How much longer requests take than in little company, and which long pages lose room because of
//! it.

use super::route::Route;
use super::{LONG, Paired};
use crate::window::Meter;
use suimon_model::{Instant, Reason, Record, RouteId, Signals, seconds};

/// What witnesses showed holds for this many seconds where there are no new ones.
const WITNESSED_SECONDS: f64 = 10.0;
/// How often the strain is measured, seconds.
const STRAIN_SECONDS: f64 = 1.0;
/// The machine thrashes when requests elsewhere take this many times as long as in little company,
/// in the number of looks below, one after another, ...
pub(super) const THRASHING: f64 = 8.0;
pub(super) const THRASHING_LOOKS: u32 = 4;
/// Short pages that take this many times what their own company explains are slowed by long ones,
/// ...
const UNEXPLAINED: f64 = 2.0;
/// ... of which there are more than this many per core; ...
const LONG_MIN: f64 = 16.0;
/// ... and the share of its room that such a page keeps, ...
const ROOM_KEPT: f64 = 0.9;
/// ... each time this share of what it takes has passed, and after at least the seconds below.
const ROOM_SERVICES: f64 = 0.25;
const ROOM_SECONDS: f64 = 4.0;

impl Paired {
    /// Measures how much longer requests take at each route than in little company, and for each
    /// route the result at the others.
    pub(super) fn measure_strain(&mut self, now: Instant, meters: &[Meter]) {
        if now.secs_since(self.strain_at) < STRAIN_SECONDS {
            return;
        }
        self.strain_at = now;
        let cores = self.trusted_cores();
        let strain = |(route, meter): (&mut Route, &Meter)| {
            let window = meter.since(&route.strain_begin, now);
            let seen = route.strain(now, &window, cores);
            // If several sorts share a route, the last may be of another sort than the next: what
            // they showed is over with them.
            let is_over = route.is_mixed && (route.is_deserted(now) || route.is_unlike(now));
            // Where few come, the last measurement holds until enough have come again.
            if seen.is_some() || is_over || window.seconds > WITNESSED_SECONDS {
                route.strain_begin = meter.read(now);
                route.strain_own = seen;
            }
            route.strain_own
        };
        let strains: Vec<_> = self.routes.iter_mut().zip(meters).map(strain).collect();
        let sum = |all: bool| {
            let told = strains.iter().flatten().filter(|told| all || told.founded);
            told.fold((0.0, 0.0), |sums, told| (sums.0 + told.strain * told.weight, sums.1 + told.weight))
        };
        let (founded, all) = (sum(false), sum(true));
        for (route, own) in self.routes.iter_mut().zip(&strains) {
            let elsewhere = |sums: (f64, f64), all: bool| {
                let own = own.filter(|told| all || told.founded);
                let (strain, weight) =
                    own.map_or((0.0, 0.0), |told| (told.strain * told.weight, told.weight));
                (sums.1 - weight > 0.5).then(|| (sums.0 - strain) / (sums.1 - weight))
            };
            route.strain_elsewhere = elsewhere(founded, false);
            route.ease_elsewhere = elsewhere(all, true);
            let thrashes = route.strain_elsewhere.is_some_and(|strain| strain > THRASHING);
            route.strained = if thrashes { route.strained + 1 } else { 0 };
        }
    }

    /// Takes some of its room from a long page because of which others take far longer than their
    /// own number explains.
    ///
    /// A long page's load on the processor comes late, and goes on. Its own time hardly shows it:
    /// of 36 s that it waits for others, a second more on the processor is lost in the noise, while
    /// pages of 30 ms take 30 times as long.
    pub(super) fn make_room(&mut self, now: Instant, id: RouteId, meters: &[Meter], out: &mut Vec<Record>) {
        let route = &self.routes[id.index()];
        if route.strained < THRASHING_LOOKS || now < route.backoff_until {
            return;
        }
        let Some(alone) = route.times.alone().filter(|alone| *alone >= LONG) else { return };
        let inside = |short: bool| {
            let all = self.routes.iter().zip(meters);
            let of = all.filter(|(route, _)| short == route.times.alone().is_some_and(|alone| alone < LONG));
            of.map(|(_, meter)| meter.in_flight()).sum::<usize>() as f64
        };
        let cores = f64::from(self.trusted_cores());
        let by_themselves = UNEXPLAINED * (1.0 + inside(true) / cores);
        let in_flight = meters[id.index()].in_flight() as f64;
        let is_most = in_flight > 0.5 * inside(false) && in_flight > LONG_MIN * cores;
        if !is_most || route.strain_elsewhere.is_none_or(|strain| strain < by_themselves) {
            return;
        }
        let limit = (ROOM_KEPT * in_flight) as u32;
        if limit >= route.limit {
            return;
        }
        let signals = Signals::none()
            .with("strain", route.strain_elsewhere.unwrap_or(0.0))
            .with("in_flight", in_flight);
        let route = &mut self.routes[id.index()];
        route.backoff_until = now + seconds((ROOM_SERVICES * alone).max(ROOM_SECONDS));
        route.strained = 0;
        self.trial.take_if(|trial| trial.route == id);
        self.set_base(now, id, limit, Reason::Backoff, signals, out);
        self.routes[id.index()].mark_known_bad(now, in_flight as u32);
    }
}
