//! The requests that a node has not answered yet, by route, and how long these took while it answered.
//!
//! A request whose answer has begun is none of them, however long it lasts: a stream, a download, a WebSocket.

use crate::api::AsksFor;
use crate::longest::{Longest, ROUTES_MAX};
use suimon_model::RouteId;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unanswered {
    by_route: Vec<OfRoute>,
    new_paths: u32,
    ungated: u32,
    all: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfRoute {
    count: u32,
    /// The mean time of the route when the node still answered, seconds.
    mean: Option<f64>,
}

impl Unanswered {
    pub(crate) const fn count(&self) -> u32 {
        self.all
    }

    /// Notes that the node gets a request. `answers`: whether it answered a moment ago, so that what a route
    /// takes now is not its doing.
    pub(crate) fn begin(&mut self, asks: AsksFor, longest: &Longest, answers: bool) {
        self.all += 1;
        let index = match asks {
            AsksFor::Route(route) => place_of(route),
            AsksFor::NewPath => return self.new_paths += 1,
            AsksFor::Ungated => return self.ungated += 1,
        };
        if self.by_route.len() <= index {
            self.by_route.resize(index + 1, OfRoute::default());
        }
        let of_route = &mut self.by_route[index];
        if answers || of_route.count == 0 {
            of_route.mean = longest.mean(index);
        }
        of_route.count += 1;
    }

    /// Notes that the answer to one has begun, or that it ends without any.
    pub(crate) fn end(&mut self, asks: AsksFor) {
        let count = match asks {
            AsksFor::Route(route) => {
                self.by_route.get_mut(place_of(route)).map(|of_route| &mut of_route.count)
            }
            AsksFor::NewPath => Some(&mut self.new_paths),
            AsksFor::Ungated => Some(&mut self.ungated),
        };
        if let Some(count) = count.filter(|count| **count > 0) {
            *count -= 1;
            self.all -= 1;
        }
    }

    /// Returns the mean time of the slowest route that it has requests of, seconds, and whether of one of them
    /// nothing is known. `ungated`: what one may take that passes without a slot.
    pub(crate) fn slowest(&self, longest: &Longest, ungated: Option<f64>) -> (f64, bool) {
        let of_routes = self.by_route.iter().enumerate().filter(|(_, of_route)| of_route.count > 0);
        let times = of_routes.map(|(index, of_route)| of_route.mean.or_else(|| longest.mean(index)));
        let times = times.chain((self.ungated > 0).then_some(ungated));
        times.fold((0.0, self.new_paths > 0), |(slowest, has_unknown), time| match time {
            Some(time) => (time.max(slowest), has_unknown),
            None => (slowest, true),
        })
    }
}

fn place_of(route: RouteId) -> usize {
    route.index().min(ROUTES_MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::Instant;

    #[test]
    fn patience_goes_by_the_slowest_route_as_it_was_when_the_node_answered() {
        let mut longest = Longest::default();
        let [page, chat, unseen] = [0, 1, 2].map(|route| AsksFor::Route(RouteId(route)));
        longest.note(Instant::ORIGIN, Some(RouteId(0)), 0.05);
        longest.note(Instant::ORIGIN, Some(RouteId(1)), 12.0);
        let mut held = Unanswered::default();
        held.begin(page, &longest, true);
        assert_eq!(held.slowest(&longest, None), (0.05, false));
        held.begin(chat, &longest, true);
        assert_eq!(held.slowest(&longest, None), (12.0, false));
        held.end(chat);
        held.begin(AsksFor::Ungated, &longest, true);
        assert_eq!(held.slowest(&longest, None), (0.05, true));
        assert_eq!(held.slowest(&longest, Some(3.0)), (3.0, false));
        held.end(AsksFor::Ungated);
        // What it does not do makes the others slow.
        (0..1000).for_each(|_| longest.note(Instant::ORIGIN, Some(RouteId(0)), 10.0));
        held.begin(page, &longest, false);
        assert_eq!(held.slowest(&longest, None), (0.05, false));
        held.begin(unseen, &longest, false);
        assert_eq!(held.slowest(&longest, None), (0.05, true));
        longest.note(Instant::ORIGIN, Some(RouteId(2)), 7.0);
        assert_eq!(held.slowest(&longest, None), (7.0, false), "others have answered one meanwhile");
        held.begin(AsksFor::NewPath, &longest, true);
        assert_eq!(held.slowest(&longest, None), (7.0, true), "what is known to be slow may be so");
        held.end(AsksFor::NewPath);
        for route in [page, page, unseen, unseen] {
            held.end(route);
        }
        assert_eq!((held.count(), held.slowest(&longest, None)), (0, (0.0, false)));
    }
}
