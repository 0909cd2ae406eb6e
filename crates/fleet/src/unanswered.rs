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

    /// Returns the mean time of the slowest route that it has requests of, seconds; `None`: of one of them
    /// nothing is known. `ungated`: what one may take that passes without a slot.
    pub(crate) fn slowest(&self, longest: &Longest, ungated: Option<f64>) -> Option<f64> {
        if self.new_paths > 0 {
            return None;
        }
        let mut slowest = if self.ungated > 0 { ungated? } else { 0.0 };
        for (index, of_route) in self.by_route.iter().enumerate().filter(|(_, of_route)| of_route.count > 0) {
            slowest = of_route.mean.or_else(|| longest.mean(index))?.max(slowest);
        }
        Some(slowest)
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
        assert_eq!(held.slowest(&longest, None), Some(0.05));
        held.begin(chat, &longest, true);
        assert_eq!(held.slowest(&longest, None), Some(12.0));
        held.end(chat);
        held.begin(AsksFor::Ungated, &longest, true);
        assert_eq!(held.slowest(&longest, None), None);
        assert_eq!(held.slowest(&longest, Some(3.0)), Some(3.0));
        held.end(AsksFor::Ungated);
        // What it does not do makes the others slow.
        (0..1000).for_each(|_| longest.note(Instant::ORIGIN, Some(RouteId(0)), 10.0));
        held.begin(page, &longest, false);
        assert_eq!(held.slowest(&longest, None), Some(0.05));
        held.begin(unseen, &longest, false);
        assert_eq!(held.slowest(&longest, None), None);
        longest.note(Instant::ORIGIN, Some(RouteId(2)), 7.0);
        assert_eq!(held.slowest(&longest, None), Some(7.0), "others have answered one meanwhile");
        held.begin(AsksFor::NewPath, &longest, true);
        assert_eq!(held.slowest(&longest, Some(3.0)), None);
        held.end(AsksFor::NewPath);
        for route in [page, page, unseen, unseen] {
            held.end(route);
        }
        assert_eq!((held.count(), held.slowest(&longest, None)), (0, Some(0.0)));
    }
}
