//! A description of a generated site for people: a scenario file cannot express all of it.

use std::fmt::Write;
use suimon_model::Duration;
use suimon_sim::{Scenario, What};
use suimon_statistics::table::{Align, columns};
use suimon_workload::{Arrivals, OnFailure, Patience, Think};

/// Returns the site in words and numbers.
pub(crate) fn text(site: &Scenario) -> String {
    let mut out = format!("{}\n", site.name);
    for (what, words) in suimon_cli::summary_of(site) {
        let _ = writeln!(out, "  {what:<12} {words}");
    }
    let machine = &site.machine;
    let _ = writeln!(out, "\nMachine: {machine:?}");
    out += &phases(site);
    out += &format!("\nRoutes, times in seconds:\n{}", routes(site));
    for (journey, steps) in site.workload.kinds.iter().zip(&site.steps) {
        let steps: Vec<String> = journey
            .steps
            .iter()
            .zip(steps)
            .map(|(step, route)| match step.leave {
                Some(leave) => format!("{} ({:.0} % leave)", site.routes[route.index()].name, leave * 100.0),
                None => site.routes[route.index()].name.clone(),
            })
            .collect();
        let _ = writeln!(
            out,
            "\n{}: weight {:.3}, thinks {}, waits {}, {:.1} % leave on each page, {}\n  {}",
            journey.name,
            journey.weight,
            think(&journey.think),
            patience(&journey.patience),
            journey.leave * 100.0,
            match &journey.on_failure {
                OnFailure::GiveUp => "gives up when something fails".to_owned(),
                OnFailure::Retry(retry) =>
                    format!("retries {} times from step {}", retry.retries_max, retry.from + 1),
            },
            steps.join(", ")
        );
    }
    for change in &site.changes {
        let what = match &change.what {
            What::Machine(machine) => format!("{machine:?}"),
            What::Cost(route, cost) => format!("{}: {cost:?}", site.routes[route.index()].name),
            What::Weights(weights) => format!("the journeys have the weights {weights:.3?}"),
        };
        let _ = writeln!(out, "\nAt {}: {what}", time(change.at));
    }
    out
}

fn routes(site: &Scenario) -> String {
    let head = ["route", "cpu", "variation", "memory", "elsewhere", "variation", "at once"]
        .map(str::to_owned)
        .to_vec();
    let row = |route: &suimon_sim::Route| {
        let cost = &route.cost;
        let mut row = vec![route.name.clone()];
        let numbers = [cost.cpu, cost.variation, cost.memory, cost.elsewhere, cost.elsewhere_variation];
        row.extend(numbers.map(|number| format!("{number:.4}")));
        row.push(cost.own_pool.map_or("–".to_owned(), |pool| pool.to_string()));
        row
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(site.routes.iter().map(row)).collect();
    let mut align = [Align::Right; 7];
    align[0] = Align::Left;
    columns(&align, &rows)
}

fn phases(site: &Scenario) -> String {
    let Arrivals::Open { phases, .. } = &site.workload.arrivals else { return String::new() };
    let piece = |phase: &suimon_workload::Phase| {
        format!("{} at {:.3} to {:.3}", time(phase.lasts), phase.from_per_s, phase.to_per_s)
    };
    let pieces: Vec<String> = phases.iter().take(PHASES_SHOWN).map(piece).collect();
    let more = if phases.len() > PHASES_SHOWN { ", ..." } else { "" };
    format!("Sessions a second: {}{more}\n", pieces.join(", "))
}

/// A day has more phases than this, and the next day is like it.
const PHASES_SHOWN: usize = 16;

fn think(think: &Think) -> String {
    let mean = time(think.mean());
    match think {
        Think::Constant(_) => format!("{mean} each time"),
        Think::Exponential { .. } => format!("{mean}, exponential"),
        Think::Lognormal { cv, .. } => format!("{mean}, lognormal with variation {cv:.2}"),
    }
}

fn patience(patience: &Patience) -> String {
    match patience {
        Patience::Endless => "for ever".to_owned(),
        Patience::Constant(waits) => time(*waits),
        Patience::Mixture(parts) => {
            let part = |(weight, waits): &(f64, Duration)| format!("{} ({weight:.3})", time(*waits));
            parts.iter().map(part).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn time(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
