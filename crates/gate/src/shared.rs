//! What a gate knows of the others before the same application.

use crate::api::Elsewhere;
use suimon_control::SharedInputs;
use suimon_model::RouteId;
use suimon_sharing::{Ended, KindPart, RoutePart, split};

/// What is shared.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) gateways: u32,
    /// Whether there was a part yet.
    pub(crate) has_joined: bool,
    /// By route, as far as they are known to others.
    pub(crate) routes: Vec<Option<RoutePart>>,
    /// By route: whether X was not known when the safe share began.
    pub(crate) unmeasured: Vec<bool>,
    /// By route: visits that sessions of others still have to make.
    pub(crate) remaining: Vec<f64>,
    pub(crate) in_flight_elsewhere: u64,
    /// By route, what ended here, ...
    pub(crate) ended: Vec<Ended>,
    /// ... and what has ended elsewhere since this gateway shares: all, and what was answered.
    pub(crate) ended_elsewhere: Vec<(u64, u64)>,
}

impl Shared {
    pub(crate) fn part(&self, route: RouteId) -> Option<&RoutePart> {
        self.routes.get(route.index())?.as_ref()
    }

    /// Returns whether one more may start at `route`, where a limit is held.
    pub(crate) fn has_slot(&self, route: RouteId, in_flight: usize) -> bool {
        let Some(part) = self.part(route) else {
            // Nobody else knows the route yet.
            return self.has_joined && in_flight == 0;
        };
        let used = in_flight as u64 + u64::from(part.in_flight_elsewhere);
        let slots = part.slots as usize;
        in_flight < slots || (in_flight == slots && part.may_borrow && split::lent(part.limit, used))
    }

    /// Returns the requests of `route` at other gateways.
    pub(crate) fn elsewhere(&self, route: RouteId) -> Elsewhere {
        let (in_flight, waiting) = self.load_elsewhere(route);
        let (ended, answered) = self.ended_elsewhere.get(route.index()).copied().unwrap_or_default();
        Elsewhere { in_flight: in_flight as u64, waiting: waiting as u64, ended, answered }
    }

    pub(crate) fn load_elsewhere(&self, route: RouteId) -> (usize, usize) {
        self.part(route)
            .map_or((0, 0), |part| (part.in_flight_elsewhere as usize, part.waiting_elsewhere as usize))
    }

    /// Returns whether the gateway that learns the limit of `route` says that it is settled; `None`:
    /// this one does.
    pub(crate) fn is_settled(&self, route: RouteId) -> Option<bool> {
        let followed = self.part(route).filter(|part| !part.is_learner);
        followed.map(|part| part.is_settled || part.stands_still)
    }

    /// Takes note of the next `part` of `route`, of which X `is_measured` or not. Returns whether X
    /// is to be forgotten: it was measured in the safe share alone, under a limit that is still being
    /// raised. Such an X would hold back the newcomers who show that the limit can be higher.
    pub(crate) fn follow(&mut self, route: RouteId, part: RoutePart, is_measured: bool) -> bool {
        let index = route.index();
        let stood_still = self.routes[index].is_some_and(|before| before.stands_still);
        self.routes[index] = Some(part);
        if part.stands_still && !stood_still {
            self.unmeasured[index] = !is_measured;
        }
        stood_still && !part.stands_still && !part.is_settled && self.unmeasured[index]
    }

    /// Returns completions per second that `route` can do, as the gateway that learns it says.
    pub(crate) fn capacity(&self, route: RouteId) -> Option<f64> {
        self.part(route).map(|part| part.capacity).filter(|capacity| *capacity > 0.0)
    }

    fn ended_at(&mut self, route: RouteId) -> &mut Ended {
        if self.ended.len() <= route.index() {
            self.ended.resize(route.index() + 1, Ended::default());
        }
        &mut self.ended[route.index()]
    }

    pub(crate) fn ended(&mut self, route: RouteId, service: f64, progress: bool) {
        let ended = self.ended_at(route);
        match progress {
            true => ended.progressed += 1,
            false => ended.failed += 1,
        }
        ended.service_seconds += service;
    }

    pub(crate) fn answered(&mut self, route: RouteId, service: f64) {
        let ended = self.ended_at(route);
        ended.answered += 1;
        ended.answered_seconds += service;
    }
}

/// Returns what the law of a kind sees of it.
pub(crate) fn shared_inputs<'a>(
    shared: Option<&'a Shared>,
    kind: Option<&KindPart>,
) -> Option<SharedInputs<'a>> {
    shared.map(|shared| SharedInputs {
        portion: kind.map_or(0.0, |kind| kind.portion),
        gateways: shared.gateways.max(1),
        pace: kind.and_then(|kind| kind.pace),
        remaining: &shared.remaining,
    })
}
