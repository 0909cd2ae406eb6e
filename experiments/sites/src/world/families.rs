//! The contents of the families: pages, journeys and machines.

use super::{Family, whole};
use crate::draw::{between, machine};
use suimon_model::{Duration, Rng, seconds};
use suimon_sim::{Cost, Machine};
use suimon_workload::{InLine, Journey, OnFailure, OnRefusal, Patience, Retry, Step, Think};

/// A site before its visitors are known.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// By page; the paths of a journey end in the pages' numbers.
    pub(super) costs: Vec<Cost>,
    pub(super) journeys: Vec<Journey>,
    /// By journey: the kind of session it begins.
    pub(super) kind_of: Vec<u32>,
    pub(super) machine: Machine,
    /// Changes, each after a share of the measured time; in order of time.
    pub(super) changes: Vec<(f64, Planned)>,
    /// How long visitors wait: minimum and maximum, seconds.
    pub(super) patience: (f64, f64),
    /// Share of the requests after the first that are aborted while the page is being made.
    pub(super) clicks_again: f64,
    pub(super) crowd: Crowd,
}

/// A change of a draft.
#[derive(Clone, Debug)]
pub(super) enum Planned {
    Machine(Machine),
    Cost(usize, Cost),
    Weights(Vec<f64>),
}

/// How visitors come, apart from how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Crowd {
    /// In any way that fits the regime.
    Any,
    /// As in the course of a day.
    Day,
    /// Suddenly, if the regime allows it.
    Flash,
}

pub(super) fn draw(family: Family, rng: &mut Rng) -> Draft {
    match family {
        Family::Plain => plain(rng),
        Family::Chat => chat(rng),
        Family::LongPages => long_pages(rng),
        Family::Bounce => bounce(rng),
        Family::Robots => robots(rng),
        Family::ShortPatience => short_patience(rng),
        Family::Big => big(rng),
        Family::Tiny => tiny(rng),
        Family::Pool => pool(rng),
        Family::Threads => threads(rng),
        Family::LateRoutes => late_routes(rng),
        Family::RareHeavy => rare_heavy(rng),
        Family::Changing => changing(rng),
        Family::ColdRush => plain_within(rng, 32, 4.0),
        Family::Kinds => kinds(rng),
        Family::Aborts => aborts(rng),
    }
}

fn plain(rng: &mut Rng) -> Draft {
    plain_within(rng, 64, 12.0)
}

/// Pages of all kinds that wait for other systems up to `elsewhere_max` seconds, on up to
/// `cores_max` cores.
fn plain_within(rng: &mut Rng, cores_max: usize, elsewhere_max: f64) -> Draft {
    let cores = between(rng, 1.0, cores_max as f64 + 0.99).floor();
    let (pages, heavy) = (whole(rng, 3, 12), whole(rng, 1, 2));
    let mut costs: Vec<Cost> =
        (0..pages).map(|page| page_of(rng, page < heavy, 0.3, elsewhere_max)).collect();
    let mut journeys: Vec<Journey> = (0..whole(rng, 1, 3)).map(|index| walk(index, pages, 12, rng)).collect();
    if rng.chance(0.3) {
        // The page that waits longest is the first one, or the last one.
        costs[pages - 1].elsewhere = between(rng, 0.5, elsewhere_max);
        let step = page_step(99, pages - 1);
        let is_first = rng.chance(0.5);
        for journey in &mut journeys {
            journey.steps.insert(if is_first { 0 } else { journey.steps.len() }, step.clone());
        }
    }
    draft(costs, journeys, machine(cores, rng), (8.0, 120.0))
}

fn chat(rng: &mut Rng) -> Draft {
    let answer = Cost {
        cpu: between(rng, 0.05, 0.5),
        variation: rng.between(0.1, 0.7),
        memory: rng.between(0.02, 0.5),
        elsewhere: between(rng, 5.0, 60.0),
        elsewhere_variation: rng.between(0.1, 0.7),
        ..Cost::default()
    };
    let poll = Cost {
        cpu: between(rng, 0.001, 0.01),
        elsewhere: rng.between(15.0, 50.0),
        elsewhere_variation: 0.05,
        ..Cost::default()
    };
    let costs = vec![page_of(rng, false, 0.0, 1.0), answer, poll];
    let has_polls = rng.chance(0.4);
    let journey = |index: usize, rng: &mut Rng| {
        let answers = whole(rng, 1, 10);
        let mut pages = if rng.chance(0.7) { vec![0] } else { vec![] };
        for _ in 0..answers {
            let is_polled = has_polls && rng.chance(0.4);
            pages.extend(if is_polled { &[1, 2][..] } else { &[1] });
        }
        journey(index, &pages, (2.0, 30.0), rng)
    };
    let journeys = (0..whole(rng, 1, 2)).map(|index| journey(index, rng)).collect();
    let cores = whole(rng, 1, 8) as f64;
    draft(costs, journeys, machine(cores, rng), (60.0, 240.0))
}

fn long_pages(rng: &mut Rng) -> Draft {
    let page = |rng: &mut Rng| {
        let (all, on_processor) = (between(rng, 1.0, 20.0), rng.between(0.02, 1.0));
        Cost {
            cpu: all * on_processor,
            variation: rng.between(0.05, 0.6),
            memory: rng.between(0.0, 1.0),
            elsewhere: all * (1.0 - on_processor),
            elsewhere_variation: rng.between(0.0, 0.6),
            ..Cost::default()
        }
    };
    let pages = whole(rng, 2, 6);
    let costs = (0..pages).map(|_| page(rng)).collect();
    let journeys = (0..whole(rng, 1, 2)).map(|index| walk(index, pages, 5, rng)).collect();
    let cores = between(rng, 1.0, 32.99).floor();
    draft(costs, journeys, machine(cores, rng), (30.0, 120.0))
}

fn bounce(rng: &mut Rng) -> Draft {
    let mut draft = plain_within(rng, 32, 3.0);
    let bounce = rng.between(0.5, 0.95);
    for journey in &mut draft.journeys {
        journey.steps[0] = page_step(0, draft.costs.len() - 1);
        journey.steps[0].leave = Some(bounce);
    }
    draft
}

fn robots(rng: &mut Rng) -> Draft {
    let cores = between(rng, 1.0, 32.99).floor();
    let pages = whole(rng, 4, 12);
    let costs = (0..pages).map(|page| page_of(rng, page < 1, 0.2, 2.0)).collect();
    let mut journeys: Vec<Journey> = (0..whole(rng, 1, 2)).map(|index| walk(index, pages, 10, rng)).collect();
    let people: f64 = journeys.iter().map(|journey| journey.weight).sum();
    let share = rng.between(0.05, 0.6);
    let which = rng.below(3);
    let mut robots = vec![];
    if which != 0 {
        robots.push(journey(journeys.len(), &[1 + rng.below(pages - 1)], (1.0, 2.0), rng));
    }
    if which != 1 {
        let asks: Vec<usize> = (0..whole(rng, 60, 200)).map(|_| 1 + rng.below(pages - 1)).collect();
        robots.push(journey(journeys.len() + robots.len(), &asks, (0.05, 0.5), rng));
    }
    for robot in &mut robots {
        // A robot that asks for a hundred pages comes less often than one that asks for one.
        let each = if robot.steps.len() > 1 { 0.2 } else { 1.0 };
        robot.weight = people * share / (1.0 - share) * each;
    }
    journeys.extend(robots);
    draft(costs, journeys, machine(cores, rng), (8.0, 90.0))
}

fn short_patience(rng: &mut Rng) -> Draft {
    let page = |rng: &mut Rng| Cost {
        cpu: between(rng, 0.01, 0.8),
        variation: rng.between(0.3, 1.5),
        memory: rng.between(0.0, 0.5),
        elsewhere: if rng.chance(0.3) { between(rng, 0.05, 1.5) } else { 0.0 },
        elsewhere_variation: rng.between(0.0, 1.0),
        ..Cost::default()
    };
    let pages = whole(rng, 2, 5);
    let costs = (0..pages).map(|_| page(rng)).collect();
    let often = rng.below(pages);
    let journey = |index: usize, rng: &mut Rng| {
        let asks: Vec<usize> =
            (0..whole(rng, 3, 10)).map(|_| if rng.chance(0.5) { often } else { rng.below(pages) }).collect();
        journey(index, &asks, THINK, rng)
    };
    let journeys = (0..whole(rng, 1, 2)).map(|index| journey(index, rng)).collect();
    let cores = between(rng, 1.0, 16.99).floor();
    draft(costs, journeys, machine(cores, rng), (3.0, 10.0))
}

fn big(rng: &mut Rng) -> Draft {
    let cores = whole(rng, 32, 128) as f64;
    let pages = whole(rng, 2, 6);
    let page = |rng: &mut Rng| Cost {
        cpu: between(rng, 0.001, 0.01),
        variation: rng.between(0.1, 1.0),
        memory: rng.between(0.0, 0.3),
        elsewhere: if rng.chance(0.3) { between(rng, 0.002, 0.2) } else { 0.0 },
        elsewhere_variation: rng.between(0.0, 0.5),
        ..Cost::default()
    };
    let mut costs: Vec<Cost> = (0..pages).map(|_| page(rng)).collect();
    if rng.chance(0.5) {
        // Most such sites have one page that is heavy for them.
        costs[0].cpu = between(rng, 0.02, 0.4);
    }
    let journey = |index: usize, rng: &mut Rng| {
        let asks: Vec<usize> = (0..whole(rng, 1, 4)).map(|_| rng.below(pages)).collect();
        journey(index, &asks, (0.2, 3.0), rng)
    };
    let journeys = (0..whole(rng, 1, 2)).map(|index| journey(index, rng)).collect();
    draft(costs, journeys, machine(cores, rng), (5.0, 60.0))
}

fn tiny(rng: &mut Rng) -> Draft {
    let page = |rng: &mut Rng| Cost {
        cpu: between(rng, 0.3, 2.0),
        variation: rng.between(0.1, 0.8),
        memory: rng.between(0.0, 1.0),
        elsewhere: if rng.chance(0.3) { between(rng, 0.1, 3.0) } else { 0.0 },
        elsewhere_variation: rng.between(0.0, 0.7),
        ..Cost::default()
    };
    let pages = whole(rng, 1, 5);
    let costs = (0..pages).map(|_| page(rng)).collect();
    let journeys = (0..whole(rng, 1, 2)).map(|index| walk(index, pages, 6, rng)).collect();
    draft(costs, journeys, machine(1.0, rng), (8.0, 90.0))
}

/// A page with a lock needs the processor for at most this share of the time for which it holds the
/// lock.
const LOCKED_CPU: f64 = 0.2;

/// The pools are made small enough to run out before the processor does.
fn pool(rng: &mut Rng) -> Draft {
    let cores = between(rng, 2.0, 32.99).floor();
    let pages = whole(rng, 3, 8);
    let mut costs: Vec<Cost> = (0..pages).map(|page| page_of(rng, page < 1, 0.6, 3.0)).collect();
    costs[pages - 1].elsewhere = between(rng, 0.05, 3.0);
    let mut journeys: Vec<Journey> = (0..whole(rng, 1, 2)).map(|index| walk(index, pages, 8, rng)).collect();
    for journey in &mut journeys {
        let at = rng.below(journey.steps.len() + 1);
        journey.steps.insert(at, page_step(99, pages - 1));
    }
    let mut draft = draft(costs, journeys, machine(cores, rng), (8.0, 90.0));
    let (visits, cpu_bound) = draft.means();
    let short_by = rng.between(0.25, 0.6);
    if rng.chance(0.5) {
        let elsewhere: f64 =
            visits.iter().zip(&draft.costs).map(|(visits, cost)| visits * cost.elsewhere).sum();
        draft.machine.connections = Some((short_by * cpu_bound * elsewhere).round().clamp(1.0, 1e5) as u32);
    } else {
        // The operating system should not starve the requests that hold a lock.
        draft.machine.even = true;
        let cost = &mut draft.costs[pages - 1];
        cost.own_pool = Some(if rng.chance(0.6) { 1 } else { whole(rng, 2, 6) as u32 });
        let held = f64::from(cost.own_pool.unwrap_or(1)) / (visits[pages - 1] * short_by * cpu_bound);
        // Most of the time, a request holds the lock while it waits for other systems: its
        // processor time depends on the other requests there.
        cost.cpu = cost.cpu.min(LOCKED_CPU * held);
        cost.elsewhere = held - cost.cpu;
    }
    draft
}

fn threads(rng: &mut Rng) -> Draft {
    let mut draft = plain_within(rng, 32, 6.0);
    let (visits, cpu_bound) = draft.means();
    let machine = &draft.machine;
    let held = |(visits, cost): (&f64, &Cost)| {
        visits * (cost.elsewhere + cost.cpu / machine.work_per_second(1, cost.memory))
    };
    let all: f64 = visits.iter().zip(&draft.costs).map(held).sum();
    let times = if rng.chance(0.5) { rng.between(0.25, 0.7) } else { between(rng, 1.5, 10.0) };
    draft.machine.threads = Some((times * cpu_bound * all).round().clamp(1.0, 1e5) as u32);
    draft
}

fn late_routes(rng: &mut Rng) -> Draft {
    let cores = between(rng, 1.0, 32.99).floor();
    let all = whole(rng, 2, 4);
    let mut costs = vec![page_of(rng, false, 0.2, 1.0)];
    let mut journeys = vec![];
    for index in 0..all {
        let own = whole(rng, 2, 5);
        let first = costs.len();
        (0..own).for_each(|page| costs.push(page_of(rng, page == 0, 0.3, 6.0)));
        let asks: Vec<usize> =
            (0..whole(rng, 2, 8)).map(|_| if rng.chance(0.3) { 0 } else { first + rng.below(own) }).collect();
        journeys.push(journey(index, &asks, THINK, rng));
    }
    let weights: Vec<f64> = journeys.iter().map(|journey| journey.weight).collect();
    journeys[1..].iter_mut().for_each(|journey| journey.weight = 0.0);
    let mut draft = draft(costs, journeys, machine(cores, rng), (8.0, 90.0));
    // Some come during the warm-up.
    let mut times: Vec<f64> = (1..all).map(|_| rng.between(-0.1, 0.6)).collect();
    times.sort_by(f64::total_cmp);
    let weights_then = |known: usize| {
        let is_known = |(index, weight): (usize, &f64)| if index <= known { *weight } else { 0.0 };
        weights.iter().enumerate().map(is_known).collect()
    };
    draft.changes =
        (1..all).zip(times).map(|(known, at)| (at, Planned::Weights(weights_then(known)))).collect();
    draft
}

fn rare_heavy(rng: &mut Rng) -> Draft {
    let cores = between(rng, 1.0, 32.99).floor();
    let pages = whole(rng, 3, 8);
    let mut costs: Vec<Cost> = (0..pages).map(|_| page_of(rng, false, 0.2, 2.0)).collect();
    let mut journeys: Vec<Journey> = (0..whole(rng, 1, 2)).map(|index| walk(index, pages, 8, rng)).collect();
    let usual: f64 = journeys.iter().map(|journey| journey.weight).sum();
    costs.push(Cost {
        cpu: between(rng, 4.0, 20.0),
        variation: rng.between(0.05, 0.4),
        memory: rng.between(0.0, 2.0),
        ..Cost::default()
    });
    let mut asks: Vec<usize> = (0..whole(rng, 0, 3)).map(|_| rng.below(pages)).collect();
    asks.push(pages);
    let mut rare = journey(journeys.len(), &asks, THINK, rng);
    rare.weight = usual / between(rng, 30.0, 300.0);
    journeys.push(rare);
    draft(costs, journeys, machine(cores, rng), (20.0, 120.0))
}

fn changing(rng: &mut Rng) -> Draft {
    let mut draft = plain_within(rng, 32, 6.0);
    let which = rng.below(4);
    let mut times: Vec<f64> = (0..whole(rng, 1, 5)).map(|_| rng.between(0.0, 0.9)).collect();
    times.sort_by(f64::total_cmp);
    let planned = |rng: &mut Rng, draft: &Draft| match which {
        0 => {
            let times = between(rng, 0.3, 2.0);
            let machine = draft.machine.clone();
            Planned::Machine(if rng.chance(0.5) {
                Machine { speed: times, ..machine }
            } else {
                Machine { cores: (machine.cores * times).round().max(1.0), ..machine }
            })
        }
        _ => {
            let page = rng.below(draft.costs.len());
            let cost = draft.costs[page];
            let (cpu, elsewhere) = (between(rng, 0.3, 3.0), between(rng, 0.3, 3.0));
            Planned::Cost(page, Cost { cpu: cost.cpu * cpu, elsewhere: cost.elsewhere * elsewhere, ..cost })
        }
    };
    match which {
        0 | 1 => draft.changes = times.into_iter().map(|at| (at, planned(rng, &draft))).collect(),
        2 => draft.crowd = Crowd::Day,
        _ => draft.crowd = Crowd::Flash,
    }
    draft
}

fn kinds(rng: &mut Rng) -> Draft {
    let cores = between(rng, 1.0, 32.99).floor();
    let pages = whole(rng, 3, 8);
    let costs = (0..pages).map(|page| page_of(rng, page < 1, 0.3, 4.0)).collect();
    let all = whole(rng, 2, 3);
    let journeys: Vec<Journey> = (0..all).map(|index| walk(index, pages, 8, rng)).collect();
    let kind_of = (0..all as u32).collect();
    Draft { kind_of, ..draft(costs, journeys, machine(cores, rng), (8.0, 90.0)) }
}

fn aborts(rng: &mut Rng) -> Draft {
    let mut draft = plain_within(rng, 32, 6.0);
    for journey in &mut draft.journeys {
        journey.leave = rng.between(0.05, 0.2);
        let last = journey.steps.len() - 1;
        // A visitor who clicks again wants the same page.
        journey.on_failure = retries(last, rng);
    }
    draft.clicks_again = between(rng, 0.002, 0.03);
    draft
}

impl Draft {
    /// Returns, by page, how many requests a session sends on average, and the sessions per second
    /// that the processor alone could bear.
    fn means(&self) -> (Vec<f64>, f64) {
        let all: f64 = self.journeys.iter().map(|journey| journey.weight).sum();
        let mut visits = vec![0.0; self.costs.len()];
        for journey in &self.journeys {
            let mut still_there = journey.weight / all;
            for (number, step) in journey.steps.iter().enumerate() {
                let path = step.path.to_string();
                let page = path.rsplit('/').next().and_then(|page| page.parse::<usize>().ok());
                visits[page.expect("the paths end in numbers")] += still_there;
                still_there *= 1.0 - journey.leaves_after(number);
            }
        }
        let sum = |of: fn(&Cost) -> f64| {
            visits.iter().zip(&self.costs).map(|(visits, cost)| visits * of(cost)).sum::<f64>()
        };
        let cpu = sum(|cost| cost.cpu);
        let work = self.machine.work_per_second_max(sum(|cost| cost.cpu * cost.memory) / cpu);
        (visits, work / cpu)
    }
}

fn draft(costs: Vec<Cost>, journeys: Vec<Journey>, machine: Machine, patience: (f64, f64)) -> Draft {
    let kind_of = vec![0; journeys.len()];
    Draft {
        costs,
        journeys,
        kind_of,
        machine,
        changes: vec![],
        patience,
        clicks_again: 0.0,
        crowd: Crowd::Any,
    }
}

/// A page, heavy or light; with probability `waits` it waits for other systems, up to
/// `elsewhere_max` seconds on average.
fn page_of(rng: &mut Rng, is_heavy: bool, waits: f64, elsewhere_max: f64) -> Cost {
    let waits = rng.chance(waits);
    Cost {
        cpu: if is_heavy { between(rng, 0.1, 0.8) } else { between(rng, 0.002, 0.05) },
        variation: rng.between(0.1, 1.0),
        memory: if is_heavy { between(rng, 0.3, 2.0) } else { rng.between(0.0, 0.05) },
        elsewhere: if waits { between(rng, 0.02, elsewhere_max) } else { 0.0 },
        elsewhere_variation: rng.between(0.0, 0.7),
        ..Cost::default()
    }
}

/// Mean think times, seconds: minimum and maximum.
const THINK: (f64, f64) = (0.2, 30.0);

/// A journey of up to `steps_max` steps over all pages; most have a heavy one, rarely as the first.
fn walk(index: usize, pages: usize, steps_max: usize, rng: &mut Rng) -> Journey {
    let length = whole(rng, 1, steps_max);
    let heavy_at = if length > 1 && rng.chance(0.85) { 1 + rng.below(length - 1) } else { 0 };
    let asks: Vec<usize> = (0..length)
        .map(|step| if step == heavy_at { rng.below(2.min(pages)) } else { rng.below(pages) })
        .collect();
    journey(index, &asks, THINK, rng)
}

fn page_step(number: usize, page: usize) -> Step {
    Step::get(&format!("step-{number}"), &format!("/page/{page}"))
}

fn journey(index: usize, pages: &[usize], think: (f64, f64), rng: &mut Rng) -> Journey {
    let mean = seconds(between(rng, think.0, think.1));
    let think = match rng.below(3) {
        0 => Think::Constant(mean),
        1 => Think::Exponential { mean },
        _ => Think::Lognormal { mean, cv: rng.between(0.2, 1.5) },
    };
    let steps: Vec<Step> = pages.iter().enumerate().map(|(number, page)| page_step(number, *page)).collect();
    let from = if rng.chance(0.5) { 1.min(steps.len() - 1) } else { steps.len() - 1 };
    Journey {
        name: format!("journey-{index}"),
        weight: rng.between(0.2, 1.0),
        users: None,
        steps,
        think,
        patience: Patience::Endless,
        leave: if rng.chance(0.5) { 0.0 } else { rng.between(0.0, 0.1) },
        on_failure: if rng.chance(0.5) { retries(from, rng) } else { OnFailure::GiveUp },
        on_refusal: OnRefusal { retries_max: rng.below(100) as u32, ..OnRefusal::default() },
        in_line: InLine::default(),
    }
}

fn retries(from: usize, rng: &mut Rng) -> OnFailure {
    OnFailure::Retry(Retry {
        from,
        from_after_error: from,
        retries_max: whole(rng, 1, 5) as u32,
        pause_after_timeout: if rng.chance(0.5) { Duration::ZERO } else { seconds(rng.between(0.5, 5.0)) },
        pause_after_error: Duration::from_secs(3),
    })
}
