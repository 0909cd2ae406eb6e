//! Plays runs on all cores, each run only once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_model::RouteId;
use suimon_sim::{RunResult, Sample, Scenario};

use super::data::PAGES;
use super::method::Control;
use super::worlds::{self, Site, World};
use crate::parallel;
use crate::trouble::{Result, Trouble};

/// The most seconds of a run that a series shows.
const SERIES_S: usize = 600;

/// One run to be played.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Job {
    pub(super) site: Site,
    pub(super) world: World,
    pub(super) control: Control,
    pub(super) clients: u32,
    pub(super) seed: u64,
    /// The application's speed, in thousandths of the scenario's.
    pub(super) speed: u32,
}

/// The speed of the scenario.
pub(super) const AS_IT_IS: u32 = 1000;

/// Returns a share in thousandths.
pub(super) fn thousandths(share: f64) -> u32 {
    (share * f64::from(AS_IT_IS)).round() as u32
}

/// The summary of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Played {
    /// Whether all clients were done in time.
    pub(super) ended: bool,
    /// Sessions ÷ time until all were done; 0 of a dead run.
    pub(super) sessions_per_s: f64,
    pub(super) by_page: [f64; PAGES],
    pub(super) refusals: f64,
    /// Seconds, and the number of sessions that took about as long, ascending.
    pub(super) times: Vec<(f64, u64)>,
    pub(super) seconds: Vec<Second>,
}

/// The gate at one second.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Second {
    pub(super) at_s: f64,
    pub(super) interval_s: f64,
    pub(super) mean_queue: f64,
    pub(super) limit_of_page_5: f64,
    pub(super) limit_of_page_1: f64,
}

/// Runs that were played, kept so that figures share them.
#[derive(Default)]
pub(super) struct Player {
    known: HashMap<Job, Arc<Played>>,
    scenarios: HashMap<(Site, World), Scenario>,
}

impl Player {
    /// Returns the scenario of a world.
    pub(super) fn scenario(&mut self, site: Site, world: World) -> Result<&Scenario> {
        match self.scenarios.entry((site, world)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(worlds::load(site, world)?)),
        }
    }

    /// Plays the runs that are missing, and returns all of `jobs` in their order.
    pub(super) fn play(&mut self, jobs: &[Job]) -> Result<Vec<Arc<Played>>> {
        let mut missing: Vec<Job> =
            jobs.iter().filter(|job| !self.known.contains_key(job)).copied().collect();
        missing.sort_unstable();
        missing.dedup();
        for job in &missing {
            self.scenario(job.site, job.world)?;
        }
        let scenarios = &self.scenarios;
        let done = parallel::map(&missing, |job| play(&scenarios[&(job.site, job.world)], *job));
        for (job, played) in missing.into_iter().zip(done) {
            self.known.insert(job, Arc::new(played?));
        }
        Ok(jobs.iter().map(|job| Arc::clone(&self.known[job])).collect())
    }
}

fn play(scenario: &Scenario, job: Job) -> Result<Played> {
    let mut scenario = worlds::with_clients(scenario.clone(), job.clients);
    scenario.machine.speed *= f64::from(job.speed) / f64::from(AS_IT_IS);
    let patience = worlds::patience_s(&scenario);
    let laws = job.control.stand_before(&mut scenario, patience, job.site);
    let outcome = suimon_sim::run(&scenario, job.seed, &laws)
        .map_err(|violation| Trouble::Failed(violation.to_string()))?;
    Ok(kept(&scenario, &outcome, job.clients))
}

fn kept(scenario: &Scenario, outcome: &RunResult, clients: u32) -> Played {
    let ended = outcome.counts.sessions_completed == u64::from(clients);
    let took_s = outcome.counted.1 - outcome.counted.0;
    let steps = &outcome.steps[0];
    let mut by_page = [0.0; PAGES];
    by_page.iter_mut().zip(steps).for_each(|(page, step)| *page = step.failures as f64);
    let bins = outcome.session_time.bins(1);
    let pages = &scenario.steps[0];
    let second = |sample: &Sample| of_gate(sample, pages);
    Played {
        ended,
        sessions_per_s: if ended { f64::from(clients) / took_s.max(1e-9) } else { 0.0 },
        by_page,
        refusals: outcome.counts.refusals as f64,
        times: bins.iter().map(|bin| (bin.to.as_secs_f64(), bin.count)).collect(),
        seconds: outcome.series.iter().take(SERIES_S).map(second).collect(),
    }
}

/// `pages`: the route of each page. Pages of one route share its queue.
fn of_gate(sample: &Sample, pages: &[RouteId]) -> Second {
    let limit = |page: usize| sample.limits[pages[page].index()].map_or(0.0, f64::from);
    let waiting: usize = sample.waiting.iter().sum();
    Second {
        at_s: sample.at_s,
        interval_s: sample.intervals.first().copied().unwrap_or(0.0),
        mean_queue: waiting as f64 / PAGES as f64,
        limit_of_page_5: limit(4),
        limit_of_page_1: limit(0),
    }
}
