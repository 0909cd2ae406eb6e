//! Plays every site in every regime under every law.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_sim::{Laws, RunResult};
use suimon_sites::{Family, Regime, SiteName};

use super::{Options, Played};
use crate::parallel;
use crate::trouble::{Result, Trouble};

/// Runs between two lines of progress.
const TELL_EVERY: usize = 20;

/// Plays all runs. A violation or a panic is noted in its row, and the other runs continue.
pub(super) fn all(options: &Options, laws: &[(String, Laws)]) -> Result<Vec<Played>> {
    let regimes = if options.regimes.is_empty() { Regime::ALL } else { &options.regimes };
    let (from, to) = options.sites;
    let mut names = vec![];
    for number in from..to {
        let family = Family::ALL[(number % Family::ALL.len() as u64) as usize];
        if options.families.is_empty() || options.families.contains(&family) {
            names.extend(regimes.iter().map(|regime| SiteName { family, regime: *regime, number }));
        }
    }
    if names.is_empty() {
        return Err(Trouble::Usage("none of these numbers is a site of these families".to_owned()));
    }
    let jobs: Vec<(SiteName, &(String, Laws))> =
        names.iter().flat_map(|name| laws.iter().map(move |law| (*name, law))).collect();
    let workers =
        options.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let (began, done) = (Instant::now(), AtomicUsize::new(0));
    let play = |(name, (law, laws)): &(SiteName, &(String, Laws))| {
        let played = one(*name, law, laws, options.quick);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(TELL_EVERY) || done == jobs.len() || played.violation.is_some() {
            let wrong = played.violation.as_deref().map_or(String::new(), |what| format!(": {what}"));
            let seconds = began.elapsed().as_secs();
            eprintln!("[{done}/{}] {name} {law}, {seconds} s{wrong}", jobs.len());
        }
        played
    };
    Ok(parallel::map_on(workers, &jobs, play))
}

fn one(name: SiteName, law: &str, laws: &Laws, quick: bool) -> Played {
    let began = Instant::now();
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut site = name.scenario();
        if quick {
            (site.warm_up, site.measure) = (Duration::from_secs(10), Duration::from_secs(20));
        }
        (site.bound(site.warm_up), suimon_sim::run(&site, name.number, laws))
    }));
    let (bound, outcome) = match played {
        Ok((bound, outcome)) => (bound, outcome.map_err(|violation| violation.to_string())),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
            (0.0, Err(format!("panicked: {}", words.unwrap_or_default())))
        }
    };
    let outcome = outcome.as_ref();
    let number = |of: fn(&RunResult) -> f64| outcome.map_or(0.0, of);
    Played {
        family: name.family.name().to_owned(),
        regime: name.regime.name().to_owned(),
        number: name.number,
        law: law.to_owned(),
        share: number(|outcome| outcome.summary.goodput_share),
        completed: outcome.map_or(0, |outcome| outcome.summary.completed),
        failures: number(|outcome| outcome.summary.mid_session_failure_share),
        refusals: outcome.map_or(0, |outcome| outcome.summary.refusals),
        held_long: number(|outcome| outcome.gates.held_long_share()),
        delay_s: number(|outcome| outcome.gates.delay_s()),
        bound,
        seconds: number(|outcome| outcome.counted.1),
        events: outcome.map_or(0, |outcome| outcome.events),
        wall_s: began.elapsed().as_secs_f64(),
        violation: outcome.err().cloned(),
    }
}
