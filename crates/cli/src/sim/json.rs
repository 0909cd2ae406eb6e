//! The results for scripts. The JSON file has these names, so they must not change.

use super::answer::{Answer, End, Run};
use super::question::Contender;
use serde::Serialize;
use suimon_sim::{Band, ServiceFigures, Summary};

/// All results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Numbers {
    /// Version of Suimon.
    version: &'static str,
    /// Whether all runs were played, without violations or missed bands.
    holds: bool,
    /// Whether all runs were played.
    complete: bool,
    scenarios: Vec<ScenarioNumbers>,
}

#[derive(Clone, Debug, Serialize)]
struct ScenarioNumbers {
    scenario: String,
    file: String,
    question: String,
    holds: bool,
    complete: bool,
    /// By laws, the scenario's own first, then by seed.
    runs: Vec<RunNumbers>,
}

#[derive(Clone, Debug, Serialize)]
struct RunNumbers {
    /// The name of the laws on the command line.
    name: String,
    /// The laws that it stands for: `ROUTES+SESSIONS`.
    laws: String,
    /// Whether these are the scenario's own laws. Bands apply only to them.
    own: bool,
    seed: u64,
    /// `played`, `violated` or `not_played`.
    ended: &'static str,
    /// What a checker found.
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<ViolationNumbers>,
    #[serde(flatten)]
    played: Option<PlayedNumbers>,
    /// How long the run took in real time, seconds: the only number here that differs from run to
    /// run.
    wall_s: f64,
}

#[derive(Clone, Debug, Serialize)]
struct ViolationNumbers {
    at_s: f64,
    what: String,
}

#[derive(Clone, Debug, Serialize)]
struct PlayedNumbers {
    summary: Summary,
    bands: Vec<BandNumbers>,
    /// The time counted, from and to, in seconds from the start.
    counted_s: (f64, f64),
    /// By service, in the order of the file; empty where none is declared.
    services: Vec<ServiceNumbers>,
    /// Failures by kind of journey, then by step.
    failures_by_step: Vec<Vec<u64>>,
    /// Sessions completed, second by second from the start.
    completed_by_second: Vec<u32>,
    /// The hash of all decisions: equal if and only if two runs are the same.
    trace: String,
    events: u64,
    decisions: u64,
}

#[derive(Clone, Debug, Serialize)]
struct ServiceNumbers {
    name: String,
    #[serde(flatten)]
    figures: ServiceFigures,
}

#[derive(Clone, Debug, Serialize)]
struct BandNumbers {
    metric: &'static str,
    /// The service that it is of, if it is not of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    /// From and to, in seconds from the start, if it is not the time counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    between_s: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// Null if there is no such number, as for `settled_after_s` of a run that never settled.
    value: Option<f64>,
    held: bool,
}

impl Numbers {
    pub(super) fn new(answers: &[Answer<'_>]) -> Self {
        Numbers {
            version: env!("CARGO_PKG_VERSION"),
            holds: answers.iter().all(Answer::holds),
            complete: answers.iter().all(|answer| answer.missing() == 0),
            scenarios: answers.iter().map(scenario).collect(),
        }
    }
}

fn scenario(answer: &Answer<'_>) -> ScenarioNumbers {
    let scenario = &answer.question.scenario;
    let runs = answer
        .contenders()
        .flat_map(|(contender, runs)| runs.iter().map(|run| numbers(contender, run, &scenario.expect)));
    ScenarioNumbers {
        scenario: scenario.name.clone(),
        file: answer.question.file.display().to_string(),
        question: scenario.question.clone(),
        holds: answer.holds(),
        complete: answer.missing() == 0,
        runs: runs.collect(),
    }
}

fn numbers(contender: &Contender, run: &Run, expect: &[Band]) -> RunNumbers {
    let (ended, violation) = match &run.end {
        End::Played(_) => ("played", None),
        End::NotPlayed => ("not_played", None),
        End::Violated(violation) => {
            let (at_s, what) = (violation.at.as_secs_f64(), violation.what.clone());
            ("violated", Some(ViolationNumbers { at_s, what }))
        }
    };
    let band = |(band, (value, held)): (&Band, &(f64, bool))| BandNumbers {
        metric: band.metric.key(),
        service: band.service.as_ref().map(|(_, name)| name.clone()),
        between_s: band.between,
        min: band.min,
        max: band.max,
        value: value.is_finite().then_some(*value),
        held: *held,
    };
    let played = run.played().map(|played| PlayedNumbers {
        summary: played.summary,
        bands: expect.iter().zip(&played.bands).map(band).collect(),
        counted_s: played.counted,
        services: (played.services.iter().cloned())
            .map(|(name, figures)| ServiceNumbers { name, figures })
            .collect(),
        failures_by_step: played.failures.clone(),
        completed_by_second: played.completed.clone(),
        trace: format!("{:016x}", played.trace),
        events: played.events,
        decisions: played.decisions,
    });
    RunNumbers {
        name: contender.name.clone(),
        laws: contender.laws.to_string(),
        own: contender.is_own(),
        seed: run.seed,
        ended,
        violation,
        played,
        wall_s: run.wall_s,
    }
}
