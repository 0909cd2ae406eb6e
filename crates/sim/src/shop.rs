//! The question a run answers: which shop, which visitors, which laws.

use crate::server::Machine;
use suimon_gate::Params;

/// One page of the shop.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Mean CPU seconds.
    pub demand: f64,
    /// Memory units while in service.
    pub memory: f64,
    /// Seconds of waiting for others (a database) before the CPU part.
    pub elsewhere: f64,
}

impl Page {
    /// A light page of the paper's shop.
    pub const LIGHT: Page = Page { demand: 0.03, memory: 0.02, elsewhere: 0.0 };
    /// Its search.
    pub const HEAVY: Page = Page { demand: 0.4, memory: 1.0, elsewhere: 0.0 };
}

/// Something that changes during a run.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Seconds after the start.
    pub at: f64,
    /// The machine from then on.
    pub machine: Machine,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed of everything drawn.
    pub seed: u64,
    /// The application's machine.
    pub machine: Machine,
    /// The pages of a session, in order.
    pub pages: Vec<Page>,
    /// For each page the route it belongs to.
    pub routes: Vec<u32>,
    /// Coefficient of variation of demands.
    pub variation: f64,
    /// Visitors.
    pub clients: usize,
    /// One session each (a burst) instead of one after another.
    pub burst: bool,
    /// Sessions per second arriving in an open loop instead of a closed one; 0: closed.
    pub arrivals_per_s: f64,
    /// Mean seconds between pages.
    pub think: f64,
    /// Whether think times are exponential.
    pub think_exponential: bool,
    /// Patience in seconds; each session draws one of these.
    pub patience: Vec<f64>,
    /// Probability to leave for good after each page.
    pub leave: f64,
    /// Share of sessions that leave out the heavy pages.
    pub browse_only: f64,
    /// Seconds before counting begins.
    pub warm_up: f64,
    /// Seconds counted (for a burst: at most).
    pub measure: f64,
    /// Changes of the machine.
    pub changes: Vec<Change>,
    /// The gate under test.
    pub gate: Params,
    /// Whether the gate knows the patience.
    pub patience_declared: bool,
    /// Fixed limits instead of found ones: no limit at all.
    pub route_gates_off: bool,
}

impl Default for Scenario {
    /// The paper's shop: 7 pages, 400 visitors one session after another, 3 s of thought, 60 s of patience.
    fn default() -> Self {
        let mut pages = vec![Page::LIGHT; 7];
        pages[4] = Page::HEAVY;
        Scenario {
            seed: 1,
            machine: Machine::default(),
            pages,
            routes: vec![0, 1, 1, 1, 2, 3, 4],
            variation: 0.15,
            clients: 400,
            burst: false,
            arrivals_per_s: 0.0,
            think: 3.0,
            think_exponential: false,
            patience: vec![60.0],
            leave: 0.0,
            browse_only: 0.0,
            warm_up: 120.0,
            measure: 600.0,
            changes: vec![],
            gate: Params::default(),
            patience_declared: true,
            route_gates_off: false,
        }
    }
}

impl Scenario {
    /// Returns B: sessions per second when the machine does nothing but sessions that finish.
    pub fn bound(&self) -> f64 {
        let all: f64 = self.pages.iter().map(|page| page.demand).sum();
        let light: f64 = self.pages.iter().filter(|page| page.memory < 0.5).map(|page| page.demand).sum();
        let mean = all * (1.0 - self.browse_only) + light * self.browse_only;
        self.machine.cores * self.machine.speed / mean
    }
}
