//! The tables, and what was to hold.

use std::fmt::Write;

use suimon_statistics::{mean, median, quantile};

use super::changes::{Change, Changed, HEAVIER_AT, LIGHTER_AT, WISHED};
use super::setups::Setup;
use super::speed::Speed;
use super::{Cell, Data, HEAVY_CLIENTS, LIGHT_CLIENTS, NAME, Round};
use crate::claims::{self, Claim};

/// Seconds of a window in which a ratio is looked at.
const WINDOW: usize = 10;
/// How far the reached ratio may be from the wish.
const RATIO_MAX: f64 = 0.15;
/// Seconds before and after one over which heavy jobs are spread.
const SPREAD: usize = 2;
/// Share of the seconds in which a floor must be kept.
const FLOOR_KEPT: f64 = 0.95;
/// Share of the uncontrolled effort that must be left.
const EFFORT_MIN: f64 = 0.95;

/// Returns the values of a setup in all rounds in which it was measured.
pub(super) fn per_round(data: &Data, setup: Setup, of: impl Fn(&Round, &Cell) -> f64) -> Vec<f64> {
    cells(data, setup).map(|(round, cell)| of(round, cell)).collect()
}

/// Light jobs ÷ those of the core without heavy ones.
pub(super) fn light_share(round: &Round, cell: &Cell) -> f64 {
    cell.light.per_s / round.light_most()
}

/// Heavy jobs ÷ those that the core does one after the other.
pub(super) fn heavy_share(round: &Round, cell: &Cell) -> f64 {
    cell.heavy.per_s * round.alone().1
}

fn effort(round: &Round, cell: &Cell) -> f64 {
    light_share(round, cell) + heavy_share(round, cell)
}

/// Fits how jobs follow the speed of the core.
fn speed(data: &Data) -> Speed {
    let windows = |seconds: &Vec<(u32, f64)>| {
        let window = |seconds: &[(u32, f64)]| {
            let done: u32 = seconds.iter().map(|(done, _)| done).sum();
            (f64::from(done), mean(&seconds.iter().map(|(_, cost)| *cost).collect::<Vec<_>>()))
        };
        seconds.chunks_exact(WINDOW).map(window).collect()
    };
    let costs = data.rounds.iter().flat_map(|round| &round.cells).flat_map(|cell| &cell.yardstick_s);
    let usual_s = mean(&costs.copied().collect::<Vec<_>>());
    Speed::of(data.speed.iter().flat_map(|speed| [&speed.light, &speed.heavy]).map(windows), usual_s)
}

/// The effort, had the core been as fast as usual.
fn even(speed: Speed, round: &Round, cell: &Cell) -> f64 {
    let windows = windows(round, cell);
    mean(&windows.iter().map(|(effort, cost)| speed.even(*effort, *cost)).collect::<Vec<_>>())
}

/// Returns the effort window by window, with what the yardstick cost in each.
fn windows(round: &Round, cell: &Cell) -> Vec<(f64, f64)> {
    let heavy_alone_s = round.alone().1;
    let window = |(seconds, costs): (&[(u32, u32)], &[f64])| {
        let (light, heavy) = seconds.iter().fold((0, 0), |sum, second| (sum.0 + second.0, sum.1 + second.1));
        let done = f64::from(light) / round.light_most() + f64::from(heavy) * heavy_alone_s;
        (done / seconds.len() as f64, mean(costs))
    };
    cell.seconds.chunks_exact(WINDOW).zip(cell.yardstick_s.chunks_exact(WINDOW)).map(window).collect()
}

/// The median over windows of the ratio of the slowdowns. In a closed loop a response takes clients
/// ÷ answers per second.
pub(super) fn ratio(round: &Round, cell: &Cell) -> f64 {
    let (light_alone_s, heavy_alone_s) = round.alone();
    let window = |seconds: &[(u32, u32)]| {
        let (light, heavy) = seconds.iter().fold((0, 0), |sum, second| (sum.0 + second.0, sum.1 + second.1));
        let slowed = |clients: u32, done: u32, alone: f64| {
            f64::from(clients) * seconds.len() as f64 / f64::from(done.max(1)) / alone
        };
        slowed(HEAVY_CLIENTS, heavy, heavy_alone_s) / slowed(LIGHT_CLIENTS, light, light_alone_s)
    };
    median(&cell.seconds.chunks_exact(WINDOW).map(window).collect::<Vec<_>>())
}

/// The share of the seconds in which light jobs are at least this share of the work done. What the
/// core does varies from second to second, and a share of that is what was wished for. A heavy job
/// is in the application for seconds, and counts in those around its end. A second without light
/// jobs is none in which they are kept.
fn kept(round: &Round, cell: &Cell, floor: f64) -> f64 {
    let heavy_alone_s = round.alone().1;
    let work = |second: usize| {
        let end = (second + SPREAD + 1).min(cell.seconds.len());
        let around = &cell.seconds[second.saturating_sub(SPREAD)..end];
        let heavy: u32 = around.iter().map(|(_, heavy)| heavy).sum();
        let heavy = f64::from(heavy) / around.len() as f64 * heavy_alone_s;
        (f64::from(cell.seconds[second].0) / round.light_most(), heavy)
    };
    let is_kept = |second: &usize| {
        let (light, heavy) = work(*second);
        light > 0.0 && light >= floor * (light + heavy)
    };
    (0..cell.seconds.len()).filter(is_kept).count() as f64 / cell.seconds.len().max(1) as f64
}

/// The share of the seconds with as many light jobs as this share of what the clients get through
/// Suimon when no heavy one is asked for.
fn kept_of_most(round: &Round, cell: &Cell, floor: f64) -> f64 {
    let least = floor * round.light_most_through_per_s;
    let above = cell.seconds.iter().filter(|(light, _)| f64::from(*light) >= least).count();
    above as f64 / cell.seconds.len().max(1) as f64
}

/// Light jobs as a share of the work of both.
fn share_of_work(round: &Round, cell: &Cell) -> f64 {
    light_share(round, cell) / effort(round, cell)
}

pub(super) fn text(data: &Data) -> String {
    format!(
        "# Light jobs beside heavy ones on a real Tomcat\n\nWritten by `./experiments/run {NAME}` from `data/result.json`, measured on {}, {} cores,\n{}. Medians of {} rounds, {} of them with all setups; the least and the most in brackets.\n{}\n## What was to hold\n\n{}",
        data.machine.processor,
        data.machine.cores,
        data.machine.system,
        data.rounds.len(),
        whole_rounds(data),
        tables(data),
        claims::list(&claims(data))
    )
}

/// Returns in how many rounds more was measured than what efforts are compared of.
fn whole_rounds(data: &Data) -> usize {
    let is_more = |cell: &Cell| !Setup::of_efforts().contains(&cell.setup);
    data.rounds.iter().filter(|round| round.cells.iter().any(is_more)).count()
}

pub(super) fn tables(data: &Data) -> String {
    [alone(data), setups(data), floors(data), changed(data), core_speed(data)].concat()
}

fn alone(data: &Data) -> String {
    let of = |of: fn(&Round) -> f64, digits: usize| {
        spread(&data.rounds.iter().map(of).collect::<Vec<_>>(), digits)
    };
    format!(
        "\n## Each job by itself\n\n| | |\n|---|--:|\n| light job, one at a time | {} ms |\n| light jobs of {LIGHT_CLIENTS} clients | {} /s |\n| the same through Suimon | {} /s |\n| heavy job, one at a time | {} ms |\n",
        of(|round| 1e3 * round.alone().0, 2),
        of(Round::light_most, 0),
        of(|round| round.light_most_through_per_s, 0),
        of(|round| 1e3 * round.alone().1, 0),
    )
}

fn setups(data: &Data) -> String {
    let speed = speed(data);
    let mut out = format!(
        "\n## {LIGHT_CLIENTS} clients for the light job beside {HEAVY_CLIENTS} for the heavy one\n\n*Ratio*: slowdown of the heavy one ÷ that of the light one, median of windows of {WINDOW} s. *Of alone*: jobs done ÷\nthose of the core without the other job; *effort* is their sum. *Yardstick*: what half a millisecond of fixed work\ncosts on the core, and *even* the effort as if it cost the same everywhere. *By hand*: numbers that somebody had to\nfind.\n\n| in front | by hand | ratio | light/s | of alone | heavy/s | of alone | effort | yardstick | even | light p50 | light p99 | refused/s |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for setup in Setup::ALL {
        let of = |of: fn(&Round, &Cell) -> f64, digits| spread(&per_round(data, setup, of), digits);
        if per_round(data, setup, light_share).is_empty() {
            continue;
        }
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} ms | {} | {} ms | {} ms | {} |",
            setup.words(),
            setup.numbers(),
            of(ratio, 2),
            of(|_, cell| cell.light.per_s, 0),
            of(light_share, 2),
            of(|_, cell| cell.heavy.per_s, 2),
            of(heavy_share, 2),
            of(effort, 2),
            of(|_, cell| 1e3 * mean(&cell.yardstick_s), 3),
            spread(&per_round(data, setup, |round, cell| even(speed, round, cell)), 2),
            of(|_, cell| 1e3 * cell.light.p50_s, 1),
            of(|_, cell| 1e3 * cell.light.p99_s, 1),
            of(
                |_, cell| (cell.light.errors + cell.heavy.errors) as f64 / cell.seconds.len().max(1) as f64,
                0
            ),
        );
    }
    out
}

fn floors(data: &Data) -> String {
    let mut out = String::from(
        "\n## Floors\n\n*Of the work*: light jobs as a share of what the core does for both. *Kept*: seconds in which that is at least\nthe floor, heavy jobs spread over five seconds. *Of most*: seconds with as many light jobs as that share of what\nthirty clients get through Suimon without heavy ones, at the beginning of the round; the core is slower or faster\nthan then.\n\n| floor | of the work | kept | of most |\n|---|--:|--:|--:|\n",
    );
    for (setup, floor) in floors_set() {
        let each = |of: fn(&Round, &Cell, f64) -> f64| {
            let kept = cells(data, setup).map(|(round, cell)| 100.0 * of(round, cell, floor));
            spread(&kept.collect::<Vec<_>>(), 0)
        };
        let _ = writeln!(
            out,
            "| {:.0} % | {} | {} % | {} % |",
            100.0 * floor,
            spread(&per_round(data, setup, share_of_work), 2),
            each(kept),
            each(kept_of_most)
        );
    }
    out
}

/// Returns the setups with a floor, and the floor.
fn floors_set() -> impl Iterator<Item = (Setup, f64)> {
    Setup::ALL.into_iter().filter_map(|setup| match setup {
        Setup::Floor(floor) => Some((setup, floor)),
        _ => None,
    })
}

/// Returns the cells of a setup, each with its round.
fn cells(data: &Data, setup: Setup) -> impl Iterator<Item = (&Round, &Cell)> {
    data.rounds
        .iter()
        .filter_map(move |round| Some((round, round.cells.iter().find(|cell| cell.setup == setup)?)))
}

fn changed(data: &Data) -> String {
    if data.changes.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "\n## Changes under way, wished {WISHED}\n\n*Again*: seconds until the ratio that clients see over ten seconds is within a quarter of the wish for ten seconds\non end. *Off*: the furthest that it is from the wish after that, as a factor.\n\n| change | again | off |\n|---|--:|--:|\n"
    );
    for (words, found) in data.changes.iter().flat_map(phases) {
        let (after, off) = match found {
            Some((after, off)) => (format!("{after:.0} s"), format!("{off:.2}")),
            None => ("never".into(), "–".into()),
        };
        let _ = writeln!(out, "| {words} | {after} | {off} |");
    }
    out
}

/// Returns for each change what came of it.
fn phases(changed: &Changed) -> Vec<(&'static str, Option<(f64, f64)>)> {
    let end = changed.seconds.len() as f64;
    match (changed.change, &changed.at[..]) {
        (Change::Cost, _) => vec![
            ("from the beginning of the load", changed.again(0.0, HEAVIER_AT as f64)),
            ("five times as heavy", changed.again(HEAVIER_AT as f64, LIGHTER_AT as f64)),
            ("as light as before", changed.again(LIGHTER_AT as f64, end)),
        ],
        (Change::Load, [goes, comes, ..]) => vec![
            ("heavy load comes", changed.again(0.0, *goes)),
            ("heavy load comes again", changed.again(*comes, end)),
        ],
        (Change::Load, _) => vec![],
    }
}

fn core_speed(data: &Data) -> String {
    let Some(measured) = &data.speed else { return String::new() };
    let per_second =
        |job: &[(u32, f64)]| spread(&job.iter().map(|(done, _)| f64::from(*done)).collect::<Vec<_>>(), 0);
    let cost = |costs: &[f64]| spread(&costs.iter().map(|cost| 1e3 * cost).collect::<Vec<_>>(), 3);
    format!(
        "\n## The core's speed\n\nEach job by itself, {LIGHT_CLIENTS} clients, straight to the application.\n{}.\n\n| | |\n|---|--:|\n| light jobs in single seconds | {} |\n| heavy jobs in single seconds | {} |\n| yardstick meanwhile | {} ms |\n| yardstick, load's core idle | {} ms |\n| yardstick, load's core busy | {} ms |\n",
        speed(data).words(),
        per_second(&measured.light),
        per_second(&measured.heavy),
        cost(&measured.light.iter().chain(&measured.heavy).map(|(_, cost)| *cost).collect::<Vec<_>>()),
        cost(&measured.load_core_idle_s),
        cost(&measured.load_core_busy_s),
    )
}

pub(super) fn claims(data: &Data) -> Vec<Claim> {
    let mut claims = vec![];
    let speed = speed(data);
    let best = Setup::ALL.iter().filter(|setup| setup.is_without_wish());
    let best = best.map(|setup| per_round(data, *setup, effort)).filter(|found| !found.is_empty());
    let best = best.map(|found| median(&found)).fold(0.0, f64::max);
    for setup in Setup::ALL {
        let efforts = per_round(data, setup, effort);
        if efforts.is_empty() {
            continue;
        }
        match setup {
            Setup::Ratio(wish) => {
                let reached = median(&per_round(data, setup, ratio));
                claims.push(Claim::new(
                    format!("slowdown = {wish}: reached within 15 % in the median of windows ({reached:.2})"),
                    (reached / wish - 1.0).abs() <= RATIO_MAX,
                ));
            }
            Setup::Floor(floor) => {
                let kept = cells(data, setup).map(|(round, cell)| kept(round, cell, floor));
                let kept = median(&kept.collect::<Vec<_>>());
                claims.push(Claim::new(
                    format!(
                        "floor = {:.0} %: light jobs have that share of the work in 95 % of the seconds ({:.0} %)",
                        100.0 * floor,
                        100.0 * kept
                    ),
                    kept >= FLOOR_KEPT,
                ));
            }
            _ => continue,
        }
        let share = median(&efforts) / best.max(1e-9);
        claims.push(Claim::new(
            format!("{}: effort at least {EFFORT_MIN} of the uncontrolled best ({share:.2})", setup.words()),
            share >= EFFORT_MIN,
        ));
        let even_share = of_best(data, setup, |round, cell| even(speed, round, cell));
        claims.push(Claim::new(
            format!("{}: the same at equal speed of the core ({even_share:.2})", setup.words()),
            even_share >= EFFORT_MIN,
        ));
    }
    claims
}

/// Returns the effort ÷ that in the same round with nothing in front, or behind Suimon without
/// settings, whichever is less: the medians over rounds.
fn of_best(data: &Data, setup: Setup, of: impl Fn(&Round, &Cell) -> f64) -> f64 {
    let in_round = |round: &Round, setup: Setup| {
        round.cells.iter().find(|cell| cell.setup == setup).map(|cell| of(round, cell))
    };
    let to = |base: Setup| {
        let ratios =
            data.rounds.iter().filter_map(|round| Some(in_round(round, setup)? / in_round(round, base)?));
        median(&ratios.collect::<Vec<_>>())
    };
    to(Setup::Uncontrolled).min(to(Setup::Limits))
}

/// Returns the median, with the least and the most in brackets if there are several.
fn spread(values: &[f64], digits: usize) -> String {
    let (low, high) = (quantile(values, 0.0), quantile(values, 1.0));
    match values.len() {
        0 => "–".into(),
        1 => format!("{:.digits$}", values[0]),
        _ => format!("{:.digits$} ({low:.digits$}–{high:.digits$})", median(values)),
    }
}
