//! The crowd's own process: plays the shop's journey and says how it goes, a line of JSON each
//! second.

use crate::exit::Exit;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use suimon_crowd::{Options, Progress, Report, SHOP_JOURNEY};
use suimon_settings::{Faults, journey};
use suimon_workload::{Arrivals, Journey, Think, Workload};

/// What the crowd's process is told. Not for people.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoCrowd {
    /// Where they go.
    #[arg(long)]
    pub(crate) to: String,
    /// Visitors at once.
    #[arg(long)]
    pub(crate) users: u32,
    /// Seed of all random choices.
    #[arg(long)]
    pub(crate) seed: u64,
    /// Divides all times.
    #[arg(long)]
    pub(crate) scale: f64,
    /// How long.
    #[arg(long, conflicts_with = "sessions", required_unless_present = "sessions")]
    pub(crate) seconds: Option<u32>,
    /// Or how many sessions, played without a pause for thought.
    #[arg(long)]
    pub(crate) sessions: Option<u32>,
}

impl DemoCrowd {
    /// Returns the command line that says this.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["demo-crowd".to_owned(), "--to".to_owned(), self.to.clone()];
        let mut say = |flag: &str, value: Option<String>| {
            arguments.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        };
        say("--users", Some(self.users.to_string()));
        say("--seed", Some(self.seed.to_string()));
        say("--scale", Some(self.scale.to_string()));
        say("--seconds", self.seconds.map(|seconds| seconds.to_string()));
        say("--sessions", self.sessions.map(|sessions| sessions.to_string()));
        arguments
    }

    /// Returns how long the visitors of one session think in all, on average, in seconds.
    pub(super) fn thinking_s(&self) -> f64 {
        let Ok(workload) = self.workload() else { return 0.0 };
        let thinking = |journey: &Journey| -> f64 {
            let thinks = journey.steps.iter().skip(1).map(|step| step.think.unwrap_or(journey.think));
            thinks.map(|think| think.mean().as_secs_f64()).sum()
        };
        let weight: f64 = workload.kinds.iter().map(|journey| journey.weight).sum();
        workload.kinds.iter().map(|journey| thinking(journey) * journey.weight / weight).sum()
    }

    fn workload(&self) -> Result<Workload, Faults> {
        let mut workload = journey::read(SHOP_JOURNEY)?.faster_by(self.scale);
        if let Arrivals::Closed { users, sessions_each, .. } = &mut workload.arrivals {
            (*users, *sessions_each) = (self.users, self.sessions);
        }
        if self.sessions.is_some() {
            for kind in &mut workload.kinds {
                let kind = Arc::make_mut(kind);
                kind.think = Think::Constant(Duration::ZERO);
                kind.steps.iter_mut().for_each(|step| step.think = None);
            }
        }
        Ok(workload)
    }
}

/// A line of the crowd's.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// The first visitors are about to come.
    Begin,
    /// How it goes.
    Progress(Progress),
    /// How it went.
    Report(Box<Report>),
}

/// Plays, and says so on standard output.
pub(crate) fn run(args: &DemoCrowd) -> Exit {
    let workload = match args.workload() {
        Ok(workload) => workload,
        Err(faults) => {
            eprintln!("the shop's journey cannot be played: {faults}");
            return Exit::Failed;
        }
    };
    let options = Options {
        base_url: args.to.clone(),
        workload,
        seed: Some(args.seed),
        // What is not to be counted is left out later; failures always count.
        warmup: Duration::ZERO,
        measure: args.seconds.map(|seconds| Duration::from_secs(seconds.into())),
        progress: Some(Box::new(|progress| say(&Said::Progress(progress.clone())))),
    };
    say(&Said::Begin);
    match suimon_crowd::run(options, std::future::pending()) {
        Ok(report) => {
            say(&Said::Report(Box::new(report)));
            Exit::Done
        }
        Err(error) => {
            eprintln!("{error}");
            Exit::Failed
        }
    }
}

fn say(said: &Said) {
    let Ok(line) = serde_json::to_string(said) else { return };
    // Nobody listens any more, so nobody needs the crowd either; the process that started it ends
    // it.
    let _ = writeln!(io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journey_is_played_faster_and_without_thinking_where_sessions_are_counted() {
        let mut args = DemoCrowd {
            to: "http://127.0.0.1:1".to_owned(),
            users: 7,
            seed: 1,
            scale: 4.0,
            seconds: Some(3),
            sessions: None,
        };
        let workload = args.workload().unwrap();
        assert_eq!(workload.arrivals.users_max(), 7);
        assert_eq!(workload.kinds[0].think.mean(), Duration::from_millis(750));
        // Before each of its seven steps but the first.
        assert!((args.thinking_s() - 4.5).abs() < 1e-9);
        args.sessions = Some(5);
        let workload = args.workload().unwrap();
        assert_eq!(workload.kinds[0].think.mean(), Duration::ZERO);
        assert!(!workload.arrivals.is_endless());
    }
}
