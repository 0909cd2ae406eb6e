//! The tables, each beside the paper's own numbers, and what was to hold.

use suimon_statistics::median;

use super::systems::{Place, Setting, System};
use super::{Cell, Data, HEAVY, LIGHT, NAME, PAUSES, PAUSING, Times, declared, row};
use crate::claims::{self, Claim};

pub(super) fn text(data: &Data) -> String {
    format!(
        "# A light job beside heavy ones on four systems\n\nWritten by `./experiments/run {NAME}` from `data/result.json`. Medians of {} seeds, the least and\nthe most in brackets; *paper*: the number of the paper.\n{}\n## What was to hold\n\n{}",
        data.seeds,
        tables(data),
        claims::list(&claims(data))
    )
}

pub(super) fn tables(data: &Data) -> String {
    [alone(data), both(data), company(data), pauses(data), accept(data), declared::table(&data.declared)]
        .concat()
}

/// Table 2, from which the costs of the jobs were taken.
fn alone(data: &Data) -> String {
    let times = Times::of(data);
    let mut out = String::from(
        "\n## Table 2: one job alone, 80 clients\n\n| system | A in 1 min | paper | B in 4 min | paper |\n|---|--:|--:|--:|--:|\n",
    );
    for system in System::ALL {
        let (light, heavy) = (
            data.cell(Setting::new(system, 80, 0, times.light_alone)),
            data.cell(Setting::new(system, 0, 80, times.heavy_alone)),
        );
        let paper = system.paper().alone;
        row(
            &mut out,
            &[
                system.words().into(),
                counts(&light.light),
                paper.0.to_string(),
                counts(&heavy.heavy),
                paper.1.to_string(),
            ],
        );
    }
    out
}

fn both(data: &Data) -> String {
    let mut out = String::from(
        "\n## Table 1: 30 clients for A beside 40 for B, three minutes\n\n| system | A | paper | B | paper |\n|---|--:|--:|--:|--:|\n",
    );
    for system in System::ALL {
        let cell = data.cell(Setting::new(system, LIGHT, 40, Times::of(data).table_1));
        let paper = system.paper().both;
        row(
            &mut out,
            &[
                system.words().into(),
                counts(&cell.light),
                paper.0.to_string(),
                counts(&cell.heavy),
                paper.1.to_string(),
            ],
        );
    }
    out
}

fn company(data: &Data) -> String {
    let clients: String = HEAVY.iter().map(|heavy| format!(" {heavy} |")).collect();
    let mut out = format!(
        "\n## Figures 1 to 4: 30 clients for A beside 1 to 40 for B, two minutes\n\n| system | job |{clients} A at 40 ÷ at 1 | paper |\n|---|---|{}--:|---|\n",
        "--:|".repeat(HEAVY.len())
    );
    for system in System::ALL {
        let cell = |heavy| data.cell(Setting::new(system, LIGHT, heavy, Times::of(data).figures));
        let told = |of: fn(&Cell) -> &Vec<u64>| HEAVY.iter().map(move |heavy| counts(of(cell(*heavy))));
        let (_, most) = system.paper().left;
        let paper = if most < 0.1 { "less than 1/20" } else { "about 1/4" };
        let left = format!("{:.3}", left(data, system));
        let light = [system.words().to_owned(), "A".into()].into_iter().chain(told(|cell| &cell.light));
        row(&mut out, &light.chain([left, paper.to_owned()]).collect::<Vec<_>>());
        let heavy = [String::new(), "B".into()].into_iter().chain(told(|cell| &cell.heavy));
        row(&mut out, &heavy.chain([String::new(), String::new()]).collect::<Vec<_>>());
    }
    out
}

fn pauses(data: &Data) -> String {
    let heads: String = PAUSES.iter().map(|pause| format!(" {pause} s |")).collect();
    let mut out = format!(
        "\n## Figures 5 to 8: 30 clients for A beside 20 for B that pauses, two minutes\n\nTimes as many A, and how much less of B, as without a pause.\n\n| system | pause |{heads} paper |\n|---|---|{}---|\n",
        "---|".repeat(PAUSES.len())
    );
    for (system, place) in
        System::ALL.into_iter().flat_map(|system| [Place::Around, Place::Inside].map(|place| (system, place)))
    {
        let told = PAUSES.iter().map(|pause| {
            let (light, heavy) = data.relative(paused(data, system, place, *pause));
            format!("{}, {}", times(median(&light)), percent(median(&heavy)))
        });
        let (at, light, heavy) = system.paper().pause;
        let (name, place, paper) = match place {
            Place::Around => {
                (system.words(), "around", format!("at {at} s {}, {}", times(light), percent(heavy)))
            }
            Place::Inside => ("", "inside", "little different".to_owned()),
        };
        let cells = [name.to_owned(), place.to_owned()].into_iter().chain(told).chain([paper]);
        row(&mut out, &cells.collect::<Vec<_>>());
    }
    out
}

/// Table 3, as far as the model has it.
fn accept(data: &Data) -> String {
    let times = Times::of(data);
    let mut out = String::from(
        "\n## Table 3: from the client's SYN to the start of the job, ms\n\nThe model has one accept path, the paper's *Syn* and *Accept* together. Medians, the longest in\nbrackets.\n\n| system | clients | accept path | paper: Syn | Accept | whole answer to A |\n|---|---|--:|--:|--:|--:|\n",
    );
    let ms = |told: Option<(f64, f64)>| {
        told.map_or_else(String::new, |(median, most)| format!("{median:.0} ({most:.0})"))
    };
    for system in System::ALL {
        let paper = match system {
            System::Linux => [["0 (350)", "0 (10010)"], ["80 (2410)", "1650 (13180)"]],
            System::Solaris => [["0 (0)", "0 (590)"], ["270 (2140)", "230 (3090)"]],
            System::FreeBsd | System::Windows => [["", ""], ["", ""]],
        };
        for ((heavy, seconds), [syn, accept]) in
            [(0, times.light_alone), (80, times.figures)].into_iter().zip(paper)
        {
            let cell = data.cell(Setting::new(system, LIGHT, heavy, seconds));
            row(
                &mut out,
                &[
                    if heavy == 0 { system.words().to_owned() } else { String::new() },
                    if heavy == 0 { "30 A".to_owned() } else { "30 A, 80 B".to_owned() },
                    ms(cell.accept_ms),
                    syn.to_owned(),
                    accept.to_owned(),
                    ms(cell.answer_ms),
                ],
            );
        }
    }
    out
}

/// Returns what was to hold.
pub(super) fn claims(data: &Data) -> Vec<Claim> {
    let falls = System::ALL.into_iter().map(|system| {
        let (least, most) = system.paper().left;
        let left = left(data, system);
        Claim::new(
            format!(
                "{}: beside 40 B there are {least} to {most} of the A beside 1: {left:.3}",
                system.words()
            ),
            (least..=most).contains(&left),
        )
    });
    // Windows is left out: the paper's own tables contradict its ×17 (see the README).
    let paused = [System::Linux, System::Solaris, System::FreeBsd].into_iter().map(|system| {
        let (at, light, _) = system.paper().pause;
        let (ratios, _) = data.relative(paused(data, system, Place::Around, at));
        let ratio = median(&ratios);
        Claim::new(
            format!(
                "{}: pauses of {at} s give between half and twice the {} of the paper: {}",
                system.words(),
                times(light),
                times(ratio)
            ),
            (light / 2.0..=light * 2.0).contains(&ratio),
        )
    });
    falls.chain(paused).chain(declared::claims(&data.declared)).collect()
}

/// Returns jobs A beside 40 clients for B, relative to beside 1.
fn left(data: &Data, system: System) -> f64 {
    let light = |heavy| data.cell(Setting::new(system, LIGHT, heavy, Times::of(data).figures)).light();
    light(40) / light(1).max(1.0)
}

fn paused(data: &Data, system: System, place: Place, pause_s: f64) -> Setting {
    Setting { place, pause_s, ..Setting::new(system, LIGHT, PAUSING, Times::of(data).figures) }
}

fn times(ratio: f64) -> String {
    format!("×{ratio:.1}")
}

fn percent(ratio: f64) -> String {
    let change = 100.0 * (ratio - 1.0);
    format!("{}{:.0} %", if change < 0.0 { "−" } else { "+" }, change.abs())
}

fn counts(counts: &[u64]) -> String {
    let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    format!("{:.0} ({least}–{most})", super::middle(counts))
}
