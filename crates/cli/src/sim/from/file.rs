//! The text of the scenario file: every number with its source and how to correct it.

use super::costs::{CostBasis, Costs};
use super::paths::{self, Journey, Names};
use crate::numbers::{rate, share};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Result, Write as _};
use suimon_admin::{Learned, LearnedKind};
use toml::Value;

/// Coefficients of variation: think times with a smaller one count as equal, and a scenario cannot
/// have a larger one.
const VARIATION_MIN: f64 = 0.05;
const VARIATION_MAX: f64 = 10.0;
/// Assumed think time if no visitor has made a second request yet.
const THINK_ASSUMED: &str = "3s";
/// The highest rate of newcomers per second that can be written.
const RATE_MAX: f64 = 1e5;

/// Everything in the file.
pub(super) struct Site<'a> {
    pub(super) learned: &'a Learned,
    pub(super) names: &'a Names,
    pub(super) journeys: &'a [Journey],
    pub(super) costs: &'a Costs,
    /// The gateway, and when it was asked.
    pub(super) source: &'a str,
    pub(super) asked: &'a str,
}

/// Returns the file's text.
pub(super) fn text(site: &Site<'_>) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = write(&mut text, site);
    text
}

fn write(out: &mut String, site: &Site<'_>) -> Result {
    head(out, site)?;
    arrivals(out, site)?;
    visitor(out, site)?;
    site.journeys
        .iter()
        .enumerate()
        .try_for_each(|(index, journey)| one_journey(out, site, index, journey))?;
    gate(out, site)?;
    server(out, site)
}

fn head(out: &mut String, site: &Site<'_>) -> Result {
    let Site { learned, .. } = site;
    let ended: u64 = learned.kinds.iter().map(|kind| kind.ended).sum();
    let minutes = learned.uptime_seconds / 60.0;
    writeln!(
        out,
        "\
# What the gateway at {} had learned at {} of {ended} ended sessions,
# {minutes:.1} minutes after its start. Play it with `suimon sim THIS-FILE`; change a line and play it again:
#
#   ten times the visitors     rate_per_s in [arrivals.open]
#   one more core or node      cores, nodes in [server]
#   other limits               a [[route]] with match = \"GET /x\" and mode = 8 or \"enforce\"; or --vs fixed:8+set
#   no control at all          --vs none
#
# Each number below is *measured* by the gateway or *assumed*. The gateway sees how long a request is in the application, not what it
# does there: correct cores, cpu and efficiency first (docs/simulator.md). Trust differences between two runs more than either.
",
        comment(site.source),
        site.asked
    )?;
    writeln!(out, "question = {}", quoted(&format!("What was seen at {}", site.source)))?;
    writeln!(out, "warm_up = \"120s\"\nmeasure = \"600s\"\nseeds = 3\n")
}

fn arrivals(out: &mut String, site: &Site<'_>) -> Result {
    let kinds = site.learned.kinds.iter().filter(|kind| kind.ended > 0);
    let came: f64 = kinds.clone().map(|kind| paths::newcomers(site.learned, kind)).sum();
    let refused: u64 = kinds.map(|kind| kind.refused).sum();
    writeln!(
        out,
        "\
# Measured: newcomers a second in the last minutes{}.
[arrivals.open]
rate_per_s = {}
spacing = \"poisson\"           # assumed: they know nothing of each other
users_max = 20000             # beyond that, newcomers are not played
",
        if refused > 0 { ", those who were refused and came again counted each time" } else { "" },
        number(came.clamp(1e-3, RATE_MAX))
    )
}

fn visitor(out: &mut String, site: &Site<'_>) -> Result {
    writeln!(out, "[visitor]")?;
    match &site.learned.think {
        None => writeln!(
            out,
            "# Assumed: nobody was seen to come back with a second request yet.\nthink = \"{THINK_ASSUMED}\""
        )?,
        Some(think) => {
            writeln!(
                out,
                "# Measured: the last {} pauses between an answer and the next request; a tenth were below {}, half below {}, a tenth above {}.",
                think.count,
                seconds(think.p10_seconds),
                seconds(think.p50_seconds),
                seconds(think.p90_seconds)
            )?;
            let mean = seconds(think.mean_seconds);
            if think.variation < VARIATION_MIN {
                writeln!(out, "think = \"{mean}\"")?;
            } else {
                let cv = number(think.variation.min(VARIATION_MAX));
                writeln!(out, "think = {{ mean = \"{mean}\", shape = \"lognormal\", cv = {cv} }}")?;
            }
        }
    }
    let strictest = site
        .learned
        .kinds
        .iter()
        .filter(|kind| kind.ended > 0)
        .filter_map(|kind| Some((kind.patience_seconds.filter(|patience| *patience > 0.0)?, kind)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    match strictest {
        Some((patience, kind)) => writeln!(
            out,
            "# {}.\npatience = \"{}\"",
            match kind.patience_source.as_str() {
                "learned" =>
                    "Measured: by then a tenth of those still waiting have gone; all are taken to go then",
                "recalled" => "Measured by a run of the gateway before",
                "declared" => "As the gateway's settings declare it",
                _ => "Assumed: too few have gone while they waited to tell how long visitors wait",
            },
            seconds(patience)
        )?,
        None => writeln!(out, "# Assumed.\npatience = \"60s\"")?,
    }
    writeln!(
        out,
        "\
# A visitor who comes again is one more newcomer in rate_per_s, and a page asked for twice stands twice in a journey; so nobody retries here.
[visitor.on_failure]
retries_max = 0
[visitor.on_refusal]
retries_max = 0

# Journeys. The gateway counts, for each page, which one comes next. A dozen walks through these counts stand for all sessions of a
# kind, and visit each page about as often as was seen; who visits how often, and in which order, is only roughly so.
# Visits a session makes, measured and in these journeys:"
    )?;
    let here = paths::visits(site.journeys);
    let came: f64 = site.learned.kinds.iter().map(|kind| paths::newcomers(site.learned, kind)).sum();
    for (route, visits) in measured_visits(site.learned, came) {
        if visits >= 0.005 || here.contains_key(route) {
            let played = here.get(route).copied().unwrap_or(0.0);
            writeln!(out, "#   {visits:>6.2} {played:>6.2}   {}", comment(route))?;
        }
    }
    writeln!(out)
}

/// Returns the visits of a mean session, by route.
fn measured_visits(learned: &Learned, came: f64) -> BTreeMap<&str, f64> {
    let mut visits = BTreeMap::new();
    for kind in &learned.kinds {
        let share = paths::newcomers(learned, kind) / came.max(f64::MIN_POSITIVE);
        for to in &kind.visits {
            *visits.entry(to.route.as_str()).or_insert(0.0) += share * to.visits;
        }
    }
    visits
}

fn one_journey(out: &mut String, site: &Site<'_>, index: usize, journey: &Journey) -> Result {
    writeln!(out, "[[journey]]\nname = {}", quoted(&format!("{}-{}", journey.kind, index + 1)))?;
    writeln!(out, "weight = {}\nsteps = [", number(journey.share))?;
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    for route in &journey.steps {
        let (method, path) = site.names.of(route);
        let word = step_name(path);
        let count = taken.entry(word.clone()).or_insert(0);
        *count += 1;
        let name = if *count == 1 { word } else { format!("{word}-{count}") };
        write!(out, "  {{ name = {}, ", quoted(&name))?;
        if method != "GET" {
            write!(out, "method = {}, ", quoted(method))?;
        }
        writeln!(out, "path = {} }},", quoted(path))?;
    }
    writeln!(out, "]\n")
}

/// Returns a short name for a step: the last word of its path.
fn step_name(path: &str) -> String {
    let mut words = path.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    words.next_back().map_or_else(|| "page".to_owned(), str::to_lowercase)
}

fn gate(out: &mut String, site: &Site<'_>) -> Result {
    writeln!(
        out,
        "# The gateway in front, as in the settings of `suimon serve`. Other settings of its [gate] are not known here; add them if there are any."
    )?;
    for kind in site.learned.kinds.iter().filter(|kind| kind.ended > 0) {
        one_kind(out, kind)?;
    }
    let asked: BTreeSet<&str> =
        site.journeys.iter().flat_map(|journey| journey.steps.iter().map(String::as_str)).collect();
    for route in site.learned.routes.iter().filter(|route| asked.contains(route.name.as_str())) {
        let mode = match (route.mode.as_str(), route.limit) {
            ("fixed", Some(limit)) => limit.to_string(),
            ("observe" | "off", _) => quoted(&route.mode),
            _ => continue,
        };
        let (method, path) = site.names.of(&route.name);
        writeln!(out, "[[route]]\nmatch = {}\nmode = {mode}\n", quoted(&format!("{method} {path}")))?;
    }
    Ok(())
}

fn one_kind(out: &mut String, kind: &LearnedKind) -> Result {
    let list = |routes: &[String]| routes.iter().map(|route| quoted(route)).collect::<Vec<_>>().join(", ");
    writeln!(out, "[[session]]\nkind = {}", quoted(&kind.name))?;
    for (key, routes) in [("begins", &kind.begins), ("ends", &kind.ends)] {
        if !routes.is_empty() {
            writeln!(out, "{key} = [{}]", list(routes))?;
        }
    }
    if kind.mode != "enforce" && !kind.mode.is_empty() && kind.mode != "fixed" {
        writeln!(out, "mode = {}", quoted(&kind.mode))?;
    }
    if let Some(patience) = kind.patience_seconds.filter(|_| kind.patience_source == "declared") {
        writeln!(out, "patience = \"{}\"", seconds(patience))?;
    }
    writeln!(out)
}

fn server(out: &mut String, site: &Site<'_>) -> Result {
    let Costs { routes, cores, cpu_share, capacity, bound } = site.costs;
    let nodes = site.learned.nodes.clamp(1, 64);
    let thought = site.learned.cores;
    writeln!(
        out,
        "# The application, as far as can be seen from outside. It can finish {} sessions a second.",
        rate(*bound)
    )?;
    match capacity {
        None => writeln!(
            out,
            "\
# NOT MEASURED: nothing was short while the gateway looked on, so what the application can do at most is not known. It is taken to
# use {thought} cores (gate.cores, or those of the gateway's machine) for all of the time a request is in it. That is likely too
# pessimistic where requests wait for a database: lower cpu and write the rest as elsewhere. A minute of `suimon crowd` against a
# copy of the site, with more visitors than it can serve, and --from once more would measure it."
        )?,
        Some((sessions, route)) => {
            writeln!(
                out,
                "# Measured: {} was short, at {} sessions a second; the costs are such that the model can do just that.",
                comment(route),
                rate(*sessions)
            )?;
            if *cpu_share < 1.0 {
                writeln!(
                    out,
                    "\
# With {thought} cores (assumed: gate.cores, or those of the gateway's machine) {} of the time a request takes by itself is then CPU
# time, and the rest is waiting elsewhere. Assumed: the same share on every route, and that it is cores that are short. Where you
# know the CPU time of a route (pidstat, a profiler), write it as its cpu, the rest as elsewhere.",
                    share(*cpu_share)
                )?;
            } else {
                writeln!(
                    out,
                    "\
# That is less than {thought} cores (gate.cores, or those of the gateway's machine) would do, so something else is short: a lock, a
# pool, another machine. The application does as much as {} cores would, which is what stands here.",
                    rate(*cores)
                )?;
            }
        }
    }
    writeln!(
        out,
        "\
[server]
nodes = {nodes}
cores = {}                  # of each node
efficiency = \"flat\"           # ASSUMED: company costs nothing. It matters most for what happens without limits: see docs/simulator.md
sharing = \"even\"              # what unevenness was seen is in the variation of the routes
",
        number(cores / nodes as f64)
    )?;
    for cost in routes {
        let (method, path) = site.names.of(&cost.route);
        let known = match cost.known {
            CostBasis::Alone(count) => format!("measured, {count} requests that had a core of their own"),
            CostBasis::Crowded(count) => {
                format!("measured, {count} requests, but only under load: likely too long")
            }
            CostBasis::Assumed => "assumed: none was answered yet".to_owned(),
        };
        writeln!(
            out,
            "# {}: {} in the application ({known})",
            comment(&cost.route),
            seconds(cost.cpu + cost.elsewhere)
        )?;
        writeln!(out, "[[server.route]]\nmatch = {}", quoted(&format!("{method} {path}")))?;
        writeln!(out, "cpu = \"{}\"", seconds(cost.cpu))?;
        writeln!(out, "variation = {}", number(cost.variation.min(VARIATION_MAX)))?;
        writeln!(out, "memory = 0                    # counts once efficiency is not \"flat\"")?;
        if cost.elsewhere > 0.0 {
            writeln!(out, "elsewhere = \"{}\"", seconds(cost.elsewhere))?;
        }
        if cost.errors > 0.0 {
            writeln!(out, "errors = {}", number(cost.errors))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Returns a time in the syntax of scenarios, with four significant digits.
fn seconds(time: f64) -> String {
    let (value, unit) = if time < 1e-3 {
        (time * 1e6, "us")
    } else if time < 1.0 {
        (time * 1e3, "ms")
    } else {
        (time, "s")
    };
    format!("{}{unit}", number(value))
}

/// Returns a number, which must not be negative, with four significant digits.
fn number(value: f64) -> String {
    let digits = if value > 0.0 { (3.0 - value.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns the text as a TOML string.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// Returns the text without characters that would end a comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        assert_eq!(
            [0.0, 2.0, 0.123_456, 12.345_678, 1234.56, 1e5].map(number),
            ["0", "2", "0.1235", "12.35", "1235", "100000"]
        );
        assert_eq!([0.000_05, 0.0305, 3.0, 60.0].map(seconds), ["50us", "30.5ms", "3s", "60s"]);
    }

    #[test]
    fn a_step_is_named_by_the_last_word_of_its_path() {
        assert_eq!(
            ["/", "/browse", "/items/1", "/Shop/check-out"].map(step_name),
            ["page", "browse", "items", "out"]
        );
    }
}
