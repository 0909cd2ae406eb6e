//! Which routes found from traffic keep their place when there are more than the table holds.
//!
//! While less than half of the places are taken, every path that is answered well gets one at once.
//! From then on [`FOUND_PER_MINUTE`] paths per minute do. When all are taken, a path replaces the
//! route with the fewest requests once it gets [`TIMES`] times as many. So paths that a stranger
//! makes up never push out a route in use, and paths in use push out the made-up ones.

use std::time::{Duration, Instant};
use suimon_model::RouteId;

/// Routes found per minute once half of the table is taken; also the burst after a quiet time.
const FOUND_PER_MINUTE: f64 = 30.0;
/// The length of a window. A path needs [`WORTH_MIN`] good answers within one, and [`TIMES`] times
/// as many as the route that it replaces has had since the window before began.
const WINDOW: Duration = Duration::from_secs(600);
const WORTH_MIN: u64 = 4;
const TIMES: u64 = 4;
/// The most paths without a place that are counted at once. If two share one counter, the more
/// frequent one stays in it.
const CANDIDATES: usize = 512;

#[derive(Debug)]
pub(super) struct RouteReplacement {
    pace: f64,
    paced: Instant,
    candidates: Vec<Candidate>,
    begun: Instant,
    /// By route: good answers when this window began, and when the window before it began.
    marks: [Vec<u64>; 2],
}

#[derive(Clone, Copy, Default, Debug)]
struct Candidate {
    path: u64,
    count: u64,
}

impl RouteReplacement {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        RouteReplacement {
            pace: FOUND_PER_MINUTE,
            paced: now,
            candidates: Vec::new(),
            begun: now,
            marks: Default::default(),
        }
    }

    /// Returns whether one more route may be found now; if so, counts it.
    pub(super) fn may_find(&mut self, now: Instant) -> bool {
        let gained = now.duration_since(self.paced).as_secs_f64() / 60.0 * FOUND_PER_MINUTE;
        self.paced = now;
        self.pace = (self.pace + gained).min(FOUND_PER_MINUTE);
        let may = self.pace >= 1.0;
        self.pace -= if may { 1.0 } else { 0.0 };
        may
    }

    /// Notes a good answer to a path that has no place, and returns the route that it replaces, if
    /// any. `uses`: good answers so far, by route.
    pub(super) fn place_for(
        &mut self,
        path: u64,
        now: Instant,
        found: impl Iterator<Item = RouteId> + Clone,
        uses: impl Fn(RouteId) -> u64,
    ) -> Option<RouteId> {
        if now.duration_since(self.begun) >= WINDOW {
            self.begin_window(now, found.clone(), &uses);
        }
        let count = self.count(path);
        if count < WORTH_MIN {
            return None;
        }
        let lately = |route: RouteId| {
            uses(route).saturating_sub(self.marks[1].get(route.index()).copied().unwrap_or(0))
        };
        let (least, route) = found.map(|route| (lately(route), route)).min()?;
        (count >= TIMES.saturating_mul(least)).then_some(route)
    }

    /// Notes that a new route has this place; none of its good answers has been counted yet.
    pub(super) fn renewed(&mut self, route: RouteId) {
        for marks in &mut self.marks {
            if let Some(mark) = marks.get_mut(route.index()) {
                *mark = 0;
            }
        }
    }

    fn count(&mut self, path: u64) -> u64 {
        self.candidates.resize(CANDIDATES, Candidate::default());
        let candidate = &mut self.candidates[path as usize % CANDIDATES];
        if candidate.path == path {
            candidate.count += 1;
        } else if candidate.count <= 1 {
            *candidate = Candidate { path, count: 1 };
        } else {
            candidate.count -= 1;
            return 0;
        }
        candidate.count
    }

    fn begin_window(
        &mut self,
        now: Instant,
        found: impl Iterator<Item = RouteId>,
        uses: impl Fn(RouteId) -> u64,
    ) {
        self.begun = now;
        self.candidates.clear();
        self.marks.swap(0, 1);
        self.marks[0].clear();
        for route in found {
            self.marks[0].resize(route.index(), 0);
            self.marks[0].push(uses(route));
        }
    }
}
