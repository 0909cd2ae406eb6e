//! Sites of every kind, drawn from a number: the test of laws that should hold anywhere.
//!
//! [`generate`](crate::generate()) draws sites of similar kinds, on which laws were tuned.
//! [`world`] draws sixteen kinds of site ([`Family`]), each with a demand below, around or above
//! its capacity ([`Regime`]). Whole kinds can be held out. Numbers below [`HELD_OUT_FROM`] are for
//! development. Those from it on, and the held-out families, may only be judged as a sum.
//!
//! A site must be feasible: no page takes longer than its visitors wait, by a margin; enough
//! sessions end in the measured time; and a run costs a bounded number of events. Other sites are
//! drawn again. The same number, family and regime give the same site.

mod families;
mod load;

use crate::draw::between;
use families::Draft;
use std::fmt;
use std::sync::Arc;
use suimon_gate::{KindParams, Params, RouteMode};
use suimon_model::{Duration, KindId, Rng, RouteId, seconds};
use suimon_sim::{Change, Cost, GateSetup, KindSetup, Machine, Route, Scenario, SiteState, What};
use suimon_workload::{Arrivals, Journey, Patience, Spacing, Workload};

/// Sites from this number on must not be looked at one by one while laws are developed.
pub const HELD_OUT_FROM: u64 = 10_000;

/// Separate streams of random numbers.
const SITES: u64 = 0x3017_0000;
/// The most draws for one feasible site; far more than ever needed.
const DRAWS_MAX: u64 = 10_000;
/// Until the length of a run is known, changes are at this many seconds plus their share of the
/// measured time.
const CHANGES_FROM: f64 = 1.0;
/// Visitors wait for at least this many times the longest page, ...
const PATIENCE_OVER_PAGE: f64 = 1.5;
/// ... which is its mean and this many standard deviations: of the CPU time and of the wait for
/// other systems.
const DEVIATIONS: f64 = 2.0;

macro_rules! families {
    ($($(#[doc = $doc:literal])* $name:ident = $key:literal;)+) => {
        /// A kind of site.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Family { $($(#[doc = $doc])* $name,)+ }

        impl Family {
            /// Every family there is.
            pub const ALL: &[Family] = &[$(Family::$name,)+];

            /// Returns its name.
            pub const fn name(self) -> &'static str {
                match self { $(Family::$name => $key,)+ }
            }

            /// Returns a sentence that says what it is.
            pub fn describe(self) -> &'static str {
                match self { $(Family::$name => concat!($($doc),*).trim(),)+ }
            }
        }
    };
}

families! {
    /// Pages of all sorts, some of which wait for others up to 12 s, on 1 to 64 cores.
    Plain = "plain";
    /// Answers of 5 to 60 s that are nearly all waiting, asked for 1 to 10 times, and long polls.
    Chat = "chat";
    /// Reports and exports: every page takes 1 to 20 s of CPU and waiting, in any mixture.
    LongPages = "long-pages";
    /// 50 to 95 % of the visitors leave after the first page.
    Bounce = "bounce";
    /// Beside people come robots: with one request each, or with 60 to 200 in rapid succession.
    Robots = "robots";
    /// Visitors wait for 3 to 10 s, ask for one route several times, and pages vary widely.
    ShortPatience = "short-patience";
    /// 32 to 128 cores and pages of less than 10 ms: up to thousands of sessions per second.
    Big = "big";
    /// One core and pages of 0.3 to 2 s: about a request per second is all there can be.
    Tiny = "tiny";
    /// A database with few connections, or a page that is worked on one at a time, is short before
    /// the processor is.
    Pool = "pool";
    /// So many threads and no more: they are short, or they are not.
    Threads = "threads";
    /// Journeys over pages that nobody has asked for before begin while it runs.
    LateRoutes = "late-routes";
    /// One session in 30 to 300 asks for 4 to 20 s of CPU.
    RareHeavy = "rare-heavy";
    /// Capacity, costs or visitors change while it runs: autoscaling, releases, day curves, flash
    /// crowds.
    Changing = "changing";
    /// Nothing is known at the first second, and everybody comes in it.
    ColdRush = "cold-rush";
    /// Two or three declared kinds of session with journeys of their own over the same routes.
    Kinds = "kinds";
    /// Visitors leave on every page, and some click again while the application works.
    Aborts = "aborts";
}

impl Family {
    /// Returns whether laws must not be developed on it, with any number.
    pub const fn is_held_out(self) -> bool {
        matches!(self, Family::Chat | Family::Robots | Family::Pool | Family::Aborts)
    }

    /// Returns the family of this name.
    pub fn parse(name: &str) -> Option<Family> {
        Family::ALL.iter().copied().find(|family| family.name() == name)
    }
}

/// The demand on a site, as a share of its capacity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Regime {
    /// 0.3 to 0.85, steady or varying slowly: visitors should not notice the gate.
    Below,
    /// 0.9 to 1.15.
    Around,
    /// 1.3 to 6, all the time or in a rush.
    Above,
}

impl Regime {
    /// Every regime.
    pub const ALL: &[Regime] = &[Regime::Below, Regime::Around, Regime::Above];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Regime::Below => "below",
            Regime::Around => "around",
            Regime::Above => "above",
        }
    }

    /// Returns the regime of this name.
    pub fn parse(name: &str) -> Option<Regime> {
        Regime::ALL.iter().copied().find(|regime| regime.name() == name)
    }
}

/// The name of a site, which reproduces it: `FAMILY:REGIME:NUMBER`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SiteName {
    /// The kind of site.
    pub family: Family,
    /// The demand on it.
    pub regime: Regime,
    /// Its number.
    pub number: u64,
}

impl SiteName {
    /// Returns the name in `text`.
    ///
    /// # Errors
    /// Returns a sentence that lists what is allowed.
    pub fn parse(text: &str) -> Result<SiteName, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let name = match parts.as_slice() {
            [family, regime, number] => {
                Family::parse(family).zip(Regime::parse(regime)).zip(number.parse().ok())
            }
            _ => None,
        };
        let name = name.map(|((family, regime), number)| SiteName { family, regime, number });
        name.ok_or_else(|| {
            let families: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
            let regimes: Vec<&str> = Regime::ALL.iter().map(|regime| regime.name()).collect();
            format!(
                "{text:?} is no site: write FAMILY:REGIME:NUMBER, such as chat:below:17, with FAMILY one of {} and REGIME one of {}",
                families.join(", "),
                regimes.join(", ")
            )
        })
    }

    /// Returns the site.
    pub fn scenario(self) -> Scenario {
        world(self.number, self.family, self.regime)
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.family.name(), self.regime.name(), self.number)
    }
}

/// Returns the site of this number, family and regime. See the module.
pub fn world(number: u64, family: Family, regime: Regime) -> Scenario {
    let name = SiteName { family, regime, number };
    let stream = SITES + ((family as u64) << 8);
    // The site itself does not depend on the regime, unless an infeasible one was drawn.
    let mut sites = Rng::stream(number, stream);
    let mut loads = Rng::stream(number, stream + 1 + regime as u64);
    (0..DRAWS_MAX)
        .find_map(|_| {
            let mut rng = Rng::new(sites.bits());
            let draft = families::draw(family, &mut rng);
            let site = assemble(name, &draft, &mut rng)?;
            load::with_visitors(site, &draft, family, regime, &mut loads)
        })
        .expect("every family has sites that are feasible")
}

/// Makes a scenario without visitors from a draft; `None` if a page would take longer than visitors
/// wait.
fn assemble(name: SiteName, draft: &Draft, rng: &mut Rng) -> Option<Scenario> {
    let kinds = draft.journeys.iter().cloned().map(Arc::new).collect();
    let idle = Arrivals::Open { phases: vec![], spacing: Spacing::Poisson, users_max: 1 };
    let workload = Workload { kinds, arrivals: idle, returning: false, seed: name.number };
    let (names, steps) = Scenario::routes_of(&workload);
    let page = |name: &str| {
        let page = name.rsplit('/').next().and_then(|page| page.parse::<usize>().ok());
        page.expect("the paths end in numbers")
    };
    let route_of = |asked: usize| names.iter().position(|name| page(name) == asked);
    let routes = names.iter().map(|name| Route {
        name: name.clone(),
        mode: RouteMode::Enforce,
        cost: draft.costs[page(name)],
    });
    let change = |(share, what): &(f64, families::Planned)| {
        let what = match what {
            families::Planned::Machine(machine) => What::Machine(machine.clone()),
            families::Planned::Cost(page, cost) => What::Cost(RouteId(route_of(*page)? as u32), *cost),
            families::Planned::Weights(weights) => What::Weights(weights.clone()),
        };
        // Moved to its place when the length of the run is known.
        Some(Change { at: seconds(CHANGES_FROM + share), what })
    };
    let kinds = 1 + draft.kind_of.iter().max().copied().unwrap_or(0);
    let kind =
        |index: u32| KindSetup { name: format!("kind-{index}"), params: KindParams::default(), ends: vec![] };
    let mut site = Scenario {
        name: name.to_string(),
        question: format!("What are the laws worth on this site? {}", name.family.describe()),
        seeds: vec![name.number],
        routes: routes.collect(),
        workload,
        steps,
        machine: draft.machine.clone(),
        nodes: 1,
        scaling: None,
        pool: None,
        changes: draft.changes.iter().filter_map(change).collect(),
        gate: GateSetup {
            params: Params { cores: draft.machine.cores.ceil() as u32, ..Params::default() },
            kind_of: draft.kind_of.iter().map(|kind| KindId(*kind)).collect(),
            kinds: (0..kinds).map(kind).collect(),
            services: suimon_gate::Services::default(),
            unaware: false,
        },
        warm_up: Duration::ZERO,
        measure: Duration::ZERO,
        expect: vec![],
    };
    let least = PATIENCE_OVER_PAGE * longest_page_seconds(&site);
    let (low, high) = draft.patience;
    if least > high {
        return None;
    }
    for journey in &mut site.workload.kinds {
        let waits = between(rng, low, high).max(least);
        let journey: &mut Journey = Arc::make_mut(journey);
        journey.patience = if rng.chance(0.6) {
            Patience::Constant(seconds(waits))
        } else {
            Patience::Mixture(vec![(1.0, seconds(waits)), (1.0, seconds((waits * 2.0).min(high.max(waits))))])
        };
        if draft.clicks_again > 0.0 {
            // A share of all requests is aborted while the page is being made.
            let hasty = seconds(least / PATIENCE_OVER_PAGE * rng.between(0.1, 0.5));
            let patience = Patience::Mixture(vec![
                (1.0 - draft.clicks_again, seconds(waits)),
                (draft.clicks_again, hasty),
            ]);
            journey.steps.iter_mut().skip(1).for_each(|step| step.patience = Some(patience.clone()));
        }
    }
    Some(site)
}

/// Returns the seconds of the longest page at any time of the run on an idle site: its means plus
/// [`DEVIATIONS`] of each.
fn longest_page_seconds(site: &Scenario) -> f64 {
    let longest = |machine: &Machine, cost: &Cost| {
        let speed = machine.work_per_second(1, cost.memory);
        cost.cpu / speed * (1.0 + DEVIATIONS * cost.variation)
            + cost.elsewhere * (1.0 + DEVIATIONS * cost.elsewhere_variation)
    };
    let states = states(site);
    let pages = states.iter().flat_map(|state| state.costs.iter().map(|cost| longest(&state.machine, cost)));
    pages.fold(0.0, f64::max)
}

/// Returns the states of the site at the beginning and after each change.
fn states(site: &Scenario) -> Vec<SiteState> {
    let times = std::iter::once(Duration::ZERO).chain(site.changes.iter().map(|change| change.at));
    times.map(|at| site.state(at)).collect()
}

/// Returns a whole number from `low` to `high`.
fn whole(rng: &mut Rng, low: usize, high: usize) -> usize {
    low + rng.below(high - low + 1)
}

#[cfg(test)]
mod tests;
