//! The results. The JSON file has these names, so they must not change.

use crate::demo::outcome::Sample as Seen;
use crate::numbers::{plural, rate, time};
use serde::Serialize;
use suimon_admin::State;
use suimon_crowd::Report;
use suimon_statistics::table::{Align, columns};

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Clustered {
    /// Version of Suimon.
    pub(super) version: &'static str,
    /// When it began, as an HTTP date.
    pub(super) began: String,
    /// Who ran where, in words.
    pub(super) cores: String,
    /// How long it lasted, seconds.
    pub(super) seconds: u32,
    /// The gateway's settings.
    pub(super) settings: String,
    /// What was asked for: seconds of each part, and sessions per second.
    pub(super) phases: Vec<(f64, f64)>,
    /// Sessions that one node can serve, per second.
    pub(super) node_sessions_per_s: f64,
    /// When a node was killed, and how long it took until as many served as before; seconds.
    pub(super) killed_at_s: Option<f64>,
    pub(super) replaced_after_s: Option<f64>,
    pub(super) samples: Vec<Sample>,
    pub(super) visitors: Report,
}

/// The gateway's nodes at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Sample {
    /// Seconds from the beginning of the load.
    pub(super) at_s: f64,
    pub(super) wanted: u32,
    pub(super) serving: u32,
    pub(super) starting: u32,
    pub(super) draining: u32,
    /// Nodes that are kept busy; absent: it is not known.
    pub(super) busy: Option<f64>,
    pub(super) in_line: usize,
    pub(super) queued: usize,
    pub(super) in_flight: usize,
}

impl Sample {
    /// Returns what the gateway says; `None`: it says nothing of nodes yet.
    pub(super) fn of(state: &State, at_s: f64) -> Option<Sample> {
        let scaling = state.scaling.as_ref()?;
        Some(Sample {
            at_s,
            wanted: scaling.wanted,
            serving: scaling.serving,
            starting: scaling.starting + scaling.parked,
            draining: scaling.draining,
            busy: scaling.busy,
            in_line: Seen::of(state, at_s).newcomers_waiting,
            queued: state.totals.waiting(),
            in_flight: state.totals.in_flight,
        })
    }
}

impl Clustered {
    /// Returns when each part ends, seconds.
    pub(super) fn ends(&self) -> Vec<f64> {
        let mut end = 0.0;
        self.phases
            .iter()
            .map(|(lasts, _)| {
                end += lasts;
                end
            })
            .collect()
    }

    fn serving_between(&self, from: f64, to: f64) -> impl Iterator<Item = u32> {
        let samples = self.samples.iter().filter(move |sample| (from..to).contains(&sample.at_s));
        samples.map(|sample| sample.serving)
    }

    /// Returns the most nodes that served before, in and at the end of the rush.
    pub(super) fn nodes(&self) -> [u32; 3] {
        let ends = self.ends();
        let [first, second, third] = [0, 1, 2].map(|at| ends.get(at).copied().unwrap_or_default());
        [
            self.serving_between(0.0, first).max().unwrap_or_default(),
            self.serving_between(first, second).max().unwrap_or_default(),
            self.samples.iter().rev().find(|sample| sample.at_s <= third).map_or(0, |sample| sample.serving),
        ]
    }

    /// Returns sessions that were lost after they had begun, and at the door.
    pub(super) fn lost(&self) -> u64 {
        self.visitors.mid_session_failures + self.visitors.first_step_failures
    }

    /// Returns whether nodes came and went, the killed one was replaced, and nobody lost a session.
    pub(super) fn holds(&self) -> bool {
        let [before, rush, end] = self.nodes();
        rush > before && end < rush && self.replaced_after_s.is_some() && self.lost() == 0
    }

    /// Returns what came of it, in a sentence or two.
    pub(super) fn verdict(&self) -> String {
        let [before, rush, end] = self.nodes();
        let replaced = self
            .replaced_after_s
            .map_or("was not replaced".to_owned(), |after| format!("was replaced after {}", time(after)));
        let lost = match self.lost() {
            0 => "no session was lost".to_owned(),
            1 => "1 session was lost".to_owned(),
            count => format!("{count} sessions were lost"),
        };
        format!(
            "{}: the load tripled, and {} became {rush}, and {end} at the end. One that was killed {replaced}; \
             {lost} of {}.",
            if self.holds() { "Suimon held" } else { "Suimon did not hold" },
            plural(before.into(), "node", "nodes"),
            self.visitors.sessions_begun
        )
    }
}

/// Returns a row for each part of the load: its name, what was asked for and finished, nodes, and how
/// much of them was busy.
pub(super) fn rows(outcome: &Clustered) -> Vec<[String; 6]> {
    let names = ["before", "three times as much", "after"];
    let mut from = 0.0;
    let mut rows = Vec::new();
    for (name, (lasts, asked)) in names.iter().zip(&outcome.phases) {
        let to = from + lasts;
        let within = |at: f64| (from..to).contains(&at);
        let samples: Vec<&Sample> = outcome.samples.iter().filter(|sample| within(sample.at_s)).collect();
        let mean = |of: &dyn Fn(&Sample) -> f64| {
            samples.iter().map(|sample| of(sample)).sum::<f64>() / (samples.len() as f64).max(1.0)
        };
        let seconds = outcome.visitors.series.iter().filter(|second| within(second.at_s as f64));
        let completed: u32 = seconds.map(|second| second.completed).sum();
        let most = samples.iter().map(|sample| sample.serving).max().unwrap_or_default();
        rows.push([
            (*name).to_owned(),
            rate(*asked),
            rate(f64::from(completed) / lasts),
            rate(mean(&|sample| f64::from(sample.serving))),
            most.to_string(),
            rate(mean(&|sample| sample.busy.unwrap_or_default())),
        ]);
        from = to;
    }
    rows
}

pub(super) const HEADINGS: [&str; 6] =
    ["", "sessions/s asked for", "finished", "nodes, mean", "most", "kept busy"];

/// Returns the table for the terminal.
pub(super) fn table(outcome: &Clustered) -> String {
    let mut all = vec![HEADINGS.map(str::to_owned).to_vec()];
    all.extend(rows(outcome).into_iter().map(|row| row.to_vec()));
    let mut aligns = vec![Align::Right; HEADINGS.len()];
    aligns[0] = Align::Left;
    columns(&aligns, &all)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn sample(at_s: f64, serving: u32) -> Sample {
        Sample {
            at_s,
            wanted: serving,
            serving,
            starting: 0,
            draining: 0,
            busy: Some(1.5),
            in_line: 0,
            queued: 0,
            in_flight: 3,
        }
    }

    pub(in super::super) fn outcome() -> Clustered {
        let visitors = crate::demo::outcome::tests::run(crate::demo::outcome::Name::Suimon, 3, 0).visitors;
        Clustered {
            version: "0.0.0",
            began: "now".to_owned(),
            cores: "all share all cores".to_owned(),
            seconds: 12,
            settings: "[nodes]\nprovider = \"processes\"\n".to_owned(),
            phases: vec![(3.0, 5.0), (6.0, 15.0), (3.0, 5.0)],
            node_sessions_per_s: 4.0,
            killed_at_s: Some(6.0),
            replaced_after_s: Some(0.6),
            samples: vec![sample(1.0, 2), sample(4.0, 4), sample(5.0, 6), sample(10.0, 5), sample(11.5, 2)],
            visitors: Report { mid_session_failures: 0, first_step_failures: 0, ..visitors },
        }
    }

    #[test]
    fn it_holds_where_nodes_come_and_go_and_nobody_is_lost() {
        let kept = outcome();
        assert_eq!(kept.nodes(), [2, 6, 2]);
        assert!(
            kept.holds() && kept.verdict().contains("2 nodes became 6, and 2 at the end"),
            "{}",
            kept.verdict()
        );
        let spoil: [fn(&mut Clustered); 3] = [
            |it| it.replaced_after_s = None,
            |it| it.visitors.mid_session_failures = 1,
            |it| it.samples.truncate(1),
        ];
        for spoil in spoil {
            let mut missed = outcome();
            spoil(&mut missed);
            assert!(!missed.holds() && missed.verdict().starts_with("Suimon did not hold"));
        }
        assert!(table(&kept).contains("three times as much"), "{}", table(&kept));
    }
}
