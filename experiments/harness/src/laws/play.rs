//! Plays scenarios and generated sites under every law.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use suimon_control::SessionLawKind;
use suimon_rivals::RouteRival;
use suimon_sim::{RunResult, Scenario, SessionChoice};
use suimon_sites::generate;

use super::{Data, Law, Options, Played, Sites};
use crate::clock::Clock;
use crate::common::experiments;
use crate::parallel;
use crate::trouble::{Result, Trouble, While};

/// Laws beside the external laws for routes; each of the latter is combined with the gateway's
/// session law. These are: the gateway's own laws and each part alone, the paper's, none, the
/// external session laws with the gateway's route law (a fixed rate that is told the true bound,
/// and a fixed number, the paper's best for its shop), and the most common external one alone: one
/// limit for everything, and no sessions.
const FIRST: &[&str] = &["suimon", "paper", "paper+flow", "routes-only", "sessions-only", "none"];
const LAST: &[&str] = &["paired+fixed-rate", "paired+sbac", "paired+static:35", "envoy-gradient@whole+open"];
/// Scenarios that are left out: those that show the model itself set their own laws, and the one
/// with a million visitors takes ten seconds each time.
const LEFT_OUT: &[&str] = &["model-", "flash-crowd"];
/// The scenario that is played to see whether everything runs.
const QUICK: &str = "open-60-percent";
/// The usual time for one law.
const LAW_ASSUMED: Duration = Duration::from_secs(45);
/// Decimal digits that are kept.
const DIGITS: f64 = 1e4;

/// Plays everything.
pub(super) fn all(options: &Options) -> Result<Data> {
    let mut scenarios = scenarios()?;
    if options.quick {
        scenarios.retain(|scenario| scenario.name == QUICK);
    }
    let names = names();
    let mut clock = Clock::new(names.iter().map(|_| LAW_ASSUMED), Duration::ZERO);
    let mut laws = Vec::new();
    for name in names {
        clock.begin(&name);
        let began = Instant::now();
        laws.push(law(name, &scenarios, options)?);
        clock.done(LAW_ASSUMED, began.elapsed());
    }
    Ok(Data { seeds: options.seeds, sites: options.sites, laws })
}

/// Returns every law by its name.
fn names() -> Vec<String> {
    let routes = RouteRival::ALL.iter().map(|rival| format!("{}+flow", rival.name()));
    let owned = |names: &'static [&str]| names.iter().map(|name| (*name).to_owned());
    owned(FIRST).chain(routes).chain(owned(LAST)).collect()
}

fn scenarios() -> Result<Vec<Scenario>> {
    let folder = experiments().join("../scenarios");
    let is_played = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with(".toml") && !name.starts_with('_') && !LEFT_OUT.iter().any(|out| name.starts_with(out))
    };
    let entries = fs::read_dir(&folder).trouble(folder.display())?;
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_played).collect();
    paths.sort();
    let load = |path: &PathBuf| {
        suimon_settings::scenario::load(path).map_err(|faults| Trouble::Usage(faults.to_string()))
    };
    paths.iter().map(load).collect()
}

fn law(name: String, scenarios: &[Scenario], options: &Options) -> Result<Law> {
    let laws = suimon_rivals::parse(&name).map_err(Trouble::Usage)?;
    let jobs: Vec<(&Scenario, u64)> =
        scenarios.iter().flat_map(|scenario| (1..=options.seeds).map(move |seed| (scenario, seed))).collect();
    let outcomes = run(&jobs, |(scenario, seed)| suimon_sim::run(scenario, *seed, &laws))?;
    let chunks = outcomes.chunks(options.seeds as usize);
    let played = scenarios.iter().zip(chunks).map(|(scenario, runs)| played(&scenario.name, runs)).collect();
    let (from, to) = options.sites;
    // A fixed number of sessions needs to know where sessions end, which generated sites do not
    // say.
    let is_played = !matches!(laws.sessions, SessionChoice::Law(SessionLawKind::Static { .. }));
    let numbers: Vec<u64> = (from..to).filter(|_| is_played).collect();
    let outcomes = run(&numbers, |number| suimon_sim::run(&generate(*number), *number, &laws))?;
    let mut shares: Vec<f64> =
        outcomes.iter().map(|outcome| rounded(outcome.summary.goodput_share)).collect();
    shares.sort_by(f64::total_cmp);
    let sites = Sites {
        shares,
        failures: outcomes.iter().map(|outcome| outcome.summary.mid_session_failures).sum(),
        sessions: outcomes
            .iter()
            .map(|outcome| outcome.summary.completed + outcome.counts.sessions_left)
            .sum(),
    };
    Ok(Law { name, scenarios: played, sites })
}

/// Plays all of `jobs`; a violation ends the run.
fn run<J: Sync, V: ToString + Send>(
    jobs: &[J],
    play: impl Fn(&J) -> std::result::Result<RunResult, V> + Sync,
) -> Result<Vec<RunResult>> {
    let failed = |violation: V| Trouble::Failed(violation.to_string());
    parallel::map(jobs, play).into_iter().map(|played| played.map_err(failed)).collect()
}

fn played(scenario: &str, runs: &[RunResult]) -> Played {
    let shares: Vec<f64> = runs.iter().map(|run| run.summary.goodput_share).collect();
    let mean = |of: fn(&RunResult) -> f64| runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64;
    Played {
        scenario: scenario.to_owned(),
        least: rounded(shares.iter().copied().fold(f64::INFINITY, f64::min)),
        mean: rounded(mean(|run| run.summary.goodput_share)),
        most: rounded(shares.iter().copied().fold(0.0, f64::max)),
        failures: rounded(mean(|run| run.summary.mid_session_failure_share)),
    }
}

fn rounded(value: f64) -> f64 {
    (value * DIGITS).round() / DIGITS
}
