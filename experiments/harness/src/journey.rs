//! The journey file of a crowd: the paper's shop, with times divided by the scale.

use std::fmt::Write as _;
use std::time::Duration;

/// The paper's think time, seconds.
const THINK_S: f64 = 3.0;
/// The paper's patience, seconds.
const PATIENCE_S: f64 = 60.0;
/// The longest a visitor stays away because of `Retry-After`, seconds at scale 1.
const STAY_AWAY_MAX_S: f64 = 300.0;

/// The time of [`Thinks::Briefly`], at any scale.
pub(crate) const BRIEFLY: Duration = Duration::from_millis(100);

/// The visitors of the shop.
#[derive(Clone, Debug)]
pub(crate) struct Journey {
    pub(crate) seed: u64,
    pub(crate) arrivals: Arrivals,
    /// Divides think time, patience and pauses.
    pub(crate) scale: f64,
    /// How long visitors think between two pages.
    pub(crate) thinks: Thinks,
    /// Whether visitors wait for ever.
    pub(crate) endless: bool,
    /// What visitors do in a waiting room; `None`: they wait for their turn.
    pub(crate) in_line: Option<InLine>,
}

/// What visitors do in a waiting room. The scale does not apply to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct InLine {
    /// Mean time after which a visitor gives up.
    pub(crate) patience: Duration,
    /// Probability that a visitor closes the tab once and returns one to three minutes later.
    pub(crate) away: f64,
}

/// How long visitors think.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Thinks {
    /// Not at all.
    No,
    /// A moment: long enough for the processor to do other work.
    Briefly,
    /// The paper's time, constant.
    Always,
    /// The paper's time on average, with human variation.
    Varied,
}

/// How visitors arrive.
#[derive(Clone, Debug)]
pub(crate) enum Arrivals {
    /// Users who play one session after another, each as a new visitor.
    Closed {
        users: u32,
        /// `None`: without end.
        sessions_each: Option<u32>,
    },
    /// Sessions at a rate, whatever happens to earlier ones: how long, how many per second.
    Open(Vec<(f64, f64)>),
}

impl Journey {
    /// Returns one user who plays `sessions`.
    pub(crate) fn single_user(sessions: u32, scale: f64, thinks: Thinks) -> Self {
        let arrivals = Arrivals::Closed { users: 1, sessions_each: Some(sessions) };
        Journey { seed: 1, arrivals, scale, thinks, endless: false, in_line: None }
    }

    /// Returns the longest a visitor waits for one answer, seconds.
    pub(crate) fn patience_s(&self) -> f64 {
        PATIENCE_S / self.scale
    }

    /// Returns the file.
    pub(crate) fn toml(&self) -> String {
        let mut out = format!("seed = {}\n\n", self.seed);
        self.write_arrivals(&mut out);
        let time = |seconds: f64| format!("\"{:.0}ms\"", seconds * 1000.0 / self.scale);
        let think = match self.thinks {
            Thinks::No => "\"0ms\"".to_string(),
            Thinks::Briefly => format!("\"{}ms\"", BRIEFLY.as_millis()),
            Thinks::Always => time(THINK_S),
            Thinks::Varied => format!("{{ mean = {}, shape = \"exponential\" }}", time(THINK_S)),
        };
        let patience = if self.endless { "\"endless\"".to_string() } else { time(PATIENCE_S) };
        let in_line = self.in_line.map_or(String::new(), |in_line| {
            let (patience, away) = (in_line.patience.as_secs(), in_line.away);
            format!("\n[visitor.in_line]\npatience = \"{patience}s\"\naway = {away}\n")
        });
        let (pause, away_max) = (time(THINK_S), time(STAY_AWAY_MAX_S));
        // Writing into a String cannot fail.
        let _ = write!(
            out,
            "
[visitor]
think = {think}
patience = {patience}
returning = false

[visitor.on_failure]
retry_from = 2
retry_from_after_error = 1
retries_max = 1000
pause_after_timeout = \"0s\"
pause_after_error = {pause}

[visitor.on_refusal]
retries_max = 1000
wait_default = {pause}
wait_max = {away_max}
{in_line}{STEPS}"
        );
        out
    }

    fn write_arrivals(&self, out: &mut String) {
        let _ = match &self.arrivals {
            Arrivals::Closed { users, sessions_each } => {
                let each = sessions_each.map_or(String::new(), |count| format!("sessions_each = {count}\n"));
                write!(out, "[arrivals.closed]\nusers = {users}\nstart_over = \"1s\"\n{each}pause = \"0s\"\n")
            }
            Arrivals::Open(phases) => {
                let phase = |(seconds, rate): &(f64, f64)| {
                    format!("{{ for = \"{:.0}ms\", rate_per_s = {rate:.4} }}", seconds * 1000.0)
                };
                let phases: Vec<String> = phases.iter().map(phase).collect();
                let phases = phases.join(", ");
                write!(out, "[arrivals.open]\nphases = [{phases}]\nspacing = \"poisson\"\nusers_max = 5000\n")
            }
        };
    }
}

/// What a visitor of the shop does.
pub(crate) const STEPS: &str = r#"
[[journey]]
name = "shopping"

[[journey.steps]]
name = "login"
path = "/login"
form = { user = "user{user}", password = "secret" }
expect = { status = 200, text = "Welcome" }

[[journey.steps]]
name = "browse-1"
path = "/browse?page=1"
expect = { status = 200 }

[[journey.steps]]
name = "browse-2"
path = "/browse?page=2"
expect = { status = 200 }

[[journey.steps]]
name = "browse-3"
path = "/browse?page=3"
expect = { status = 200 }

[[journey.steps]]
name = "search"
path = "/search?q=lantern"
expect = { status = 200 }
capture = { token = { input = "token" }, item = { input = "item" } }

[[journey.steps]]
name = "buy"
path = "/buy"
form = { item = "{item}", token = "{token}" }
expect = { status = 200 }

[[journey.steps]]
name = "logout"
method = "POST"
path = "/logout"
expect = { status = 200 }
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journey_is_one_the_crowd_understands() {
        let open = Arrivals::Open(vec![(30.0, 2.0), (180.5, 4.123_456)]);
        let closed = Arrivals::Closed { users: 400, sessions_each: None };
        let journeys = [
            Journey {
                seed: 7,
                arrivals: closed,
                scale: 4.0,
                thinks: Thinks::Varied,
                endless: false,
                in_line: None,
            },
            Journey {
                seed: 7,
                arrivals: open,
                scale: 4.0,
                thinks: Thinks::Varied,
                endless: false,
                in_line: None,
            },
            Journey::single_user(12, 4.0, Thinks::No),
            Journey {
                seed: 7,
                arrivals: Arrivals::Closed { users: 9, sessions_each: Some(1) },
                scale: 4.0,
                thinks: Thinks::Always,
                endless: true,
                in_line: Some(InLine { patience: Duration::from_secs(1200), away: 0.05 }),
            },
        ];
        let folder = tempfile::tempdir().unwrap();
        for journey in journeys {
            let path = folder.path().join("journey.toml");
            std::fs::write(&path, journey.toml()).unwrap();
            let workload = suimon_settings::journey::load(&path).unwrap();
            assert_eq!(workload.kinds[0].steps.len(), 7);
        }
    }

    #[test]
    fn times_are_divided_by_the_scale() {
        let arrivals = Arrivals::Closed { users: 1, sessions_each: None };
        let file =
            Journey { seed: 1, arrivals, scale: 4.0, thinks: Thinks::Varied, endless: false, in_line: None }
                .toml();
        assert!(file.contains("think = { mean = \"750ms\""), "{file}");
        assert!(file.contains("patience = \"15000ms\""), "{file}");
    }
}
