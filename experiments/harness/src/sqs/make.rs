//! Simulates the data of a figure.

use std::sync::Arc;

use super::data::{
    Content, Curve, Data, Distribution, Moment, PAGES, Pages, Point, Range, Series, Shop, Tried,
};
use super::method::{Constants, Control, Method};
use super::play::{AS_IT_IS, Job, Played, Player, Second, thousandths};
use super::table::{Figure, Shows};
use super::worlds::{Site, World};
use crate::trouble::Result;

/// Numbers of clients. Without control the site collapses between 50 and 150.
pub(super) const SIZES: [u32; 14] = [1, 10, 25, 50, 75, 100, 125, 150, 175, 200, 250, 300, 350, 400];
/// The largest crowd, with which settings are tried.
const MANY: u32 = 400;
/// Fixed numbers of sessions to try, including the paper's.
const STATIC_TRIED: [u32; 13] = [5, 10, 15, 20, 25, 30, 35, 40, 50, 60, 75, 100, 150];
/// Values to try for what the paper leaves open: initial limits, thresholds in tenths, steps up and
/// down in milliseconds.
const INITIALS: [u32; 3] = [2, 5, 10];
const THRESHOLDS: [u32; 3] = [10, 30, 100];
const UPS: [u32; 3] = [50, 200, 500];
const DOWNS: [u32; 3] = [10, 50, 200];
/// The default number of seeds by which settings are judged.
pub(super) const SEEDS: u64 = 5;
/// The world for which the paper's two rules are tuned; all other worlds use the constants found
/// there.
const TUNED_FOR: World = World::Timeout60;
/// Points of a distribution.
const DISTRIBUTION_POINTS: u32 = 100;
/// The most moments of a series.
const MOMENTS_MAX: usize = 100;

/// How much is simulated.
#[derive(Clone, Debug)]
pub(super) struct Effort {
    pub(super) sizes: Vec<u32>,
    pub(super) seeds: Vec<u64>,
    /// The largest crowd.
    pub(super) many: u32,
    /// Whether all settings are tried.
    pub(super) scans: bool,
}

impl Effort {
    /// Returns the full effort.
    pub(super) fn full(seeds: u64) -> Effort {
        Effort { sizes: SIZES.to_vec(), seeds: (1..=seeds).collect(), many: MANY, scans: true }
    }

    /// Returns the least effort that shows that everything runs.
    pub(super) fn quick() -> Effort {
        Effort { sizes: vec![1, 40], seeds: vec![1, 2], many: 40, scans: false }
    }
}

/// Returns the constants with which the paper's two rules do best in the simulation.
pub(super) fn tuned_in_simulation() -> Result<Constants> {
    let (mut player, effort) = (Player::default(), Effort::full(SEEDS));
    Maker { player: &mut player, effort: &effort, shop: None }.tuned()
}

/// One figure's simulations: of the paper's site, or of the Tomcat shop as it was measured.
pub(super) struct Maker<'a> {
    pub(super) player: &'a mut Player,
    pub(super) effort: &'a Effort,
    pub(super) shop: Option<Shop>,
}

impl Maker<'_> {
    /// Returns the data of `figure`.
    pub(super) fn make(&mut self, figure: &Figure) -> Result<Data> {
        let site = self.site();
        let tried_static = self.try_static(figure.world)?;
        // Beside measurements, the measured fixed number is shown.
        let best = self.shop.map_or_else(|| best_static(&tried_static), |shop| shop.static_sessions);
        let tuned = self.tuned()?;
        let mut controls = controls(best, tuned).to_vec();
        controls.retain(|control| site == Site::Paper || *control != Control::SqsAsSet);
        let content = self.content(figure, &controls)?;
        let mut scan = Vec::new();
        let mut at_sixty = None;
        if figure.shows == Shows::Throughput {
            scan.extend(tried_static.into_iter().map(|(_, tried)| tried));
            for initial in INITIALS {
                let page_only = Constants { initial, ..Constants::usual() };
                scan.push(self.tried(figure.world, Control::PageOnly(page_only))?);
            }
            for initial in &INITIALS[1..] {
                scan.push(self.tried(figure.world, Control::Sqs(Constants { initial: *initial, ..tuned }))?);
            }
            if figure.world == TUNED_FOR {
                for constants in self.constants() {
                    scan.push(self.tried(figure.world, Control::Sqs(constants))?);
                }
            }
            let sixty = self.points(TUNED_FOR, Control::Sqs(tuned), &[self.effort.many])?;
            at_sixty = Some(sixty[0].sessions_per_s);
        }
        let dead_after_s = self.player.scenario(site, figure.world)?.measure.as_secs_f64();
        Ok(Data { dead_after_s, content, scan, at_sixty, calibrated: None })
    }

    /// Returns the contents of `figure` for these methods.
    pub(super) fn content(&mut self, figure: &Figure, controls: &[Control]) -> Result<Content> {
        let (world, many) = (figure.world, self.effort.many);
        Ok(match figure.shows {
            Shows::Throughput | Shows::Failures => {
                let sizes = self.effort.sizes.clone();
                let curve = |control: &Control| {
                    let points = self.points(world, *control, &sizes)?;
                    Ok(Curve { method: control.method(), setting: control.setting(), points })
                };
                Content::Sweep(controls.iter().map(curve).collect::<Result<_>>()?)
            }
            Shows::Distribution(clients, until_s) => {
                let clients = clients.min(many);
                let distribution = |control: &Control| {
                    let runs = self.runs(world, *control, clients)?;
                    Ok(distribution(*control, clients, until_s, &runs))
                };
                Content::Distribution(controls.iter().map(distribution).collect::<Result<_>>()?)
            }
            Shows::Pages => {
                let mut all = Vec::new();
                for clients in [100.min(many), many] {
                    for control in controls {
                        let runs = self.runs(world, *control, clients)?;
                        all.push(by_page(*control, clients, &runs));
                    }
                }
                Content::Pages(all)
            }
            Shows::Interval | Shows::Limits => {
                let shown = controls.iter().filter(|control| is_in_series(control.method()));
                let series = |control: &Control| {
                    let runs = self.runs(world, *control, many)?;
                    let seconds: Vec<&[Second]> = runs.iter().map(|run| run.seconds.as_slice()).collect();
                    Ok(series(*control, many, &seconds))
                };
                Content::Series(shown.map(series).collect::<Result<_>>()?)
            }
        })
    }

    const fn site(&self) -> Site {
        if self.shop.is_some() { Site::Tomcat } else { Site::Paper }
    }

    fn job(&self, world: World, control: Control, clients: u32, seed: u64) -> Job {
        let speed = self.shop.map_or(AS_IT_IS, |shop| thousandths(shop.speed));
        Job { site: self.site(), world, control, clients, seed, speed }
    }

    fn runs(&mut self, world: World, control: Control, clients: u32) -> Result<Vec<Arc<Played>>> {
        let seeds = &self.effort.seeds;
        let jobs: Vec<Job> = seeds.iter().map(|seed| self.job(world, control, clients, *seed)).collect();
        self.player.play(&jobs)
    }

    fn points(&mut self, world: World, control: Control, sizes: &[u32]) -> Result<Vec<Point>> {
        let seeds = &self.effort.seeds;
        let of = |clients: u32| {
            let job = |seed: &u64| self.job(world, control, clients, *seed);
            seeds.iter().map(job).collect::<Vec<Job>>()
        };
        let jobs: Vec<Job> = sizes.iter().flat_map(|clients| of(*clients)).collect();
        let runs = self.player.play(&jobs)?;
        Ok(sizes.iter().zip(runs.chunks(seeds.len())).map(|(clients, runs)| point(*clients, runs)).collect())
    }

    fn try_static(&mut self, world: World) -> Result<Vec<(u32, Tried)>> {
        let all: &[u32] = if self.effort.scans { &STATIC_TRIED } else { &[15, 35] };
        all.iter().map(|sessions| Ok((*sessions, self.tried(world, Control::Static(*sessions))?))).collect()
    }

    /// Returns the constants to try for the paper's two rules.
    fn constants(&self) -> Vec<Constants> {
        let mut all = Vec::new();
        for threshold_tenths in THRESHOLDS {
            for up_ms in UPS {
                let of = |down_ms| Constants { initial: INITIALS[0], threshold_tenths, up_ms, down_ms };
                all.extend(DOWNS.into_iter().map(of));
            }
        }
        if !self.effort.scans {
            all.truncate(2);
        }
        all
    }

    /// Returns the constants with which the paper's two rules do best on the paper's site: no
    /// mid-session failures, as in the paper, and then the most sessions per second.
    fn tuned(&mut self) -> Result<Constants> {
        let mut best = ((false, f64::NEG_INFINITY), Constants::usual());
        let constants = self.constants();
        let mut papers = Maker { player: &mut *self.player, effort: self.effort, shop: None };
        for constants in constants {
            let tried = papers.points(TUNED_FOR, Control::Sqs(constants), &[papers.effort.many])?[0];
            let worth = (tried.inside.1 < 1.0, tried.sessions_per_s.1);
            if worth > best.0 {
                best = (worth, constants);
            }
        }
        Ok(best.1)
    }

    fn tried(&mut self, world: World, control: Control) -> Result<Tried> {
        let point = self.points(world, control, &[self.effort.many])?[0];
        Ok(Tried { method: control.method(), setting: control.setting(), point })
    }
}

/// Returns all methods, with the best fixed number of sessions and the best constants.
fn controls(best_static: u32, tuned: Constants) -> [Control; 6] {
    [
        Control::None,
        Control::Static(best_static),
        Control::PageOnly(Constants::usual()),
        Control::SqsAsSet,
        Control::Sqs(tuned),
        Control::Suimon,
    ]
}

/// Returns whether the method has an interval and limits to show.
pub(super) const fn is_in_series(method: Method) -> bool {
    matches!(method, Method::Sqs | Method::Suimon)
}

/// Returns the fixed number with the best worst run: one more session may be better in most runs,
/// but dead in one.
fn best_static(tried: &[(u32, Tried)]) -> u32 {
    let rate = |tried: &Tried| tried.point.sessions_per_s.0;
    tried.iter().max_by(|(_, a), (_, b)| rate(a).total_cmp(&rate(b))).map_or(1, |(sessions, _)| *sessions)
}

/// Returns a point of some runs.
pub(super) fn point(clients: u32, runs: &[Arc<Played>]) -> Point {
    let range = |of: fn(&Played) -> f64, digits| {
        Range::of(&runs.iter().map(|run| of(run)).collect::<Vec<f64>>(), digits)
    };
    Point {
        clients,
        runs: u32::try_from(runs.len()).expect("runs are few"),
        ended: u32::try_from(runs.iter().filter(|run| run.ended).count()).expect("runs are few"),
        sessions_per_s: range(|run| run.sessions_per_s, 3),
        failures: range(|run| run.by_page.iter().sum(), 0),
        inside: range(|run| run.by_page[1..].iter().sum(), 0),
        refusals: range(|run| run.refusals, 0),
    }
}

/// Returns the number of completed sessions by their duration.
pub(super) fn distribution(
    control: Control,
    clients: u32,
    until_s: f64,
    runs: &[Arc<Played>],
) -> Distribution {
    let done_by = |run: &Played, at_s: f64| -> f64 {
        run.times.iter().take_while(|(time, _)| *time <= at_s).map(|(_, count)| *count as f64).sum()
    };
    let row = |step: u32| {
        let at_s = until_s * f64::from(step) / f64::from(DISTRIBUTION_POINTS);
        let done: Vec<f64> = runs.iter().map(|run| done_by(run, at_s)).collect();
        ((at_s * 10.0).round() / 10.0, Range::of(&done, 0))
    };
    let done = (0..=DISTRIBUTION_POINTS).map(row).collect();
    Distribution { method: control.method(), setting: control.setting(), clients, done }
}

/// Returns the failures by page.
pub(super) fn by_page(control: Control, clients: u32, runs: &[Arc<Played>]) -> Pages {
    let mut failures = [Range::default(); PAGES];
    for (page, range) in failures.iter_mut().enumerate() {
        *range = Range::of(&runs.iter().map(|run| run.by_page[page]).collect::<Vec<f64>>(), 0);
    }
    let Point { runs, ended, .. } = point(clients, runs);
    Pages { method: control.method(), setting: control.setting(), clients, runs, ended, failures }
}

/// Returns the gate second by second, for as long as the first run lasts.
pub(super) fn series(control: Control, clients: u32, runs: &[&[Second]]) -> Series {
    let first = runs.first().copied().unwrap_or_default();
    let every = first.len().div_ceil(MOMENTS_MAX).max(1);
    let moment = |index: usize| {
        let range = |of: fn(&Second) -> f64, digits| {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.get(index)).map(of).collect();
            Range::around_first(&values, digits)
        };
        Moment {
            at_s: first[index].at_s,
            interval_s: range(|second| second.interval_s, 3),
            mean_queue: range(|second| second.mean_queue, 2),
            limit_of_page_5: range(|second| second.limit_of_page_5, 0),
            limit_of_page_1: range(|second| second.limit_of_page_1, 0),
        }
    };
    let moments = (0..first.len()).step_by(every).map(moment).collect();
    Series { method: control.method(), setting: control.setting(), clients, moments }
}
