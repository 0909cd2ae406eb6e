//! The answer to a question: its runs, and what follows from all of them.

use super::question::{Contender, Question, quoted};
use suimon_sim::{Band, RunResult, Sample, Scenario, ServiceFigures, Summary, Violation};

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) seed: u64,
    /// How long the run took in real time, seconds.
    pub(super) wall_s: f64,
    pub(super) end: End,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    Played(Box<Played>),
    /// A checker found something that must never happen.
    Violated(Violation),
    /// A signal stopped the simulator before this run ended.
    NotPlayed,
}

/// The part of an outcome that is kept.
#[derive(Clone, Debug)]
pub(super) struct Played {
    pub(super) summary: Summary,
    /// By band: its number, and whether the band is kept.
    pub(super) bands: Vec<(f64, bool)>,
    /// Sessions completed, second by second from the start.
    pub(super) completed: Vec<u32>,
    /// Sessions per second that were reachable, and the bound, for each second.
    pub(super) reachable: Vec<f64>,
    pub(super) bound: Vec<f64>,
    /// From and to, in seconds from the start.
    pub(super) counted: (f64, f64),
    /// Name and figures of each service, over the measured time.
    pub(super) services: Vec<(String, ServiceFigures)>,
    /// By kind of journey, then by step.
    pub(super) failures: Vec<Vec<u64>>,
    pub(super) trace: u64,
    pub(super) events: u64,
    pub(super) decisions: u64,
    /// The gate's state each second, if it is kept.
    pub(super) inside: Vec<Sample>,
}

impl End {
    /// Takes only what is needed later from the outcome, because many runs are kept at once.
    pub(super) fn played(scenario: &Scenario, outcome: RunResult, inside: bool) -> End {
        let judged = |band: &Band| (band.value(&outcome), band.judge(&outcome).is_none());
        End::Played(Box::new(Played {
            summary: outcome.summary,
            bands: scenario.expect.iter().map(judged).collect(),
            completed: outcome.seconds.iter().map(|second| second.completed).collect(),
            counted: outcome.counted,
            services: {
                let (from, to) = outcome.counted;
                outcome.services.names.iter().cloned().zip(outcome.services.between(from, to)).collect()
            },
            failures: outcome
                .steps
                .iter()
                .map(|steps| steps.iter().map(|step| step.failures).collect())
                .collect(),
            trace: outcome.trace,
            events: outcome.events,
            decisions: outcome.decisions,
            reachable: outcome.reachable,
            bound: outcome.bound,
            inside: if inside { outcome.series } else { vec![] },
        }))
    }
}

impl Run {
    pub(super) fn played(&self) -> Option<&Played> {
        match &self.end {
            End::Played(played) => Some(played),
            End::Violated(_) | End::NotPlayed => None,
        }
    }
}

/// A question with its runs.
#[derive(Clone, Debug)]
pub(super) struct Answer<'a> {
    pub(super) question: &'a Question,
    /// By contender, then by seed.
    runs: Vec<Vec<Run>>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(question: &'a Question, runs: Vec<Vec<Run>>) -> Self {
        Answer { question, runs }
    }

    /// Returns the contenders with their runs, the scenario's own first.
    pub(super) fn contenders(&self) -> impl Iterator<Item = (&'a Contender, &[Run])> {
        self.question.contenders.iter().zip(self.runs.iter().map(Vec::as_slice))
    }

    /// Returns the runs of the scenario's own laws.
    pub(super) fn own(&self) -> &[Run] {
        self.runs.first().map_or(&[], Vec::as_slice)
    }

    /// Returns the seeds at which the scenario's own laws missed this band, with the numbers.
    pub(super) fn missed(&self, band: usize) -> Vec<(u64, f64)> {
        let seen = |run: &Run| {
            let (value, held) = run.played()?.bands[band];
            (!held).then_some((run.seed, value))
        };
        self.own().iter().filter_map(seen).collect()
    }

    /// Returns how many bands were missed.
    pub(super) fn bands_missed(&self) -> usize {
        (0..self.question.scenario.expect.len()).filter(|band| !self.missed(*band).is_empty()).count()
    }

    /// Returns the violations that checkers found, each with its contender.
    pub(super) fn violations(&self) -> impl Iterator<Item = (&'a Contender, &Violation)> {
        self.contenders().flat_map(|(contender, runs)| {
            runs.iter().filter_map(move |run| match &run.end {
                End::Violated(violation) => Some((contender, violation)),
                End::Played(_) | End::NotPlayed => None,
            })
        })
    }

    /// Returns how many runs were not played.
    pub(super) fn missing(&self) -> usize {
        self.runs.iter().flatten().filter(|run| matches!(run.end, End::NotPlayed)).count()
    }

    /// Returns how many runs there should be.
    pub(super) fn wanted(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    /// Returns whether all runs were played, without violations or missed bands.
    pub(super) fn holds(&self) -> bool {
        self.missing() == 0 && self.violations().next().is_none() && self.bands_missed() == 0
    }

    /// Returns the command that plays one of its seeds again, as a shell reads it.
    pub(super) fn again(&self, seed: u64, contender: Option<&Contender>) -> String {
        let vs = contender
            .filter(|contender| !contender.is_own())
            .map_or(String::new(), |contender| format!(" --vs {}", quoted(&contender.name)));
        format!("{} --seed {seed}{vs}", self.question.command)
    }
}
