//! Live progress: a small picture that is redrawn on a terminal, else plain lines. Both show the
//! same.

use super::Demo;
use super::canvas::Canvas;
use super::outcome::{Name, Sample};
use super::seconds::{recently, sparkline};
use crate::numbers::{rate, time};
use crate::terminal::{Colour, Line};
use std::time::Instant;
use suimon_crowd::Progress;

/// Seconds between two plain lines.
const PLAIN_EVERY: usize = 5;
/// Characters in the sparkline of sessions per second.
const SPARKS: usize = 19;
/// About how long measuring the bound and starting processes take, seconds.
const BESIDE_RUNS_S: f64 = 10.0;
/// Most limits named one by one.
const LIMITS_MAX: usize = 7;

/// The picture and what it is drawn from.
pub(super) struct Live {
    canvas: Canvas,
    began: Instant,
    headline: String,
    seconds: f64,
    /// The bound in sessions per second, and how it was measured.
    bound: (f64, String),
    acts: Vec<Act>,
}

/// A run so far.
struct Act {
    name: Name,
    /// Sessions completed until the end of each second.
    completed: Vec<u64>,
    /// Its description, line by line.
    words: Vec<String>,
}

impl Live {
    /// Begins while the shop is being started; `cores` says who runs where.
    pub(super) fn new(args: &Demo, cores: &str) -> Live {
        let mut live = Live {
            canvas: Canvas::new(),
            began: Instant::now(),
            headline: format!("{} visitors, seed {}, {cores}", args.clients, args.seed),
            seconds: f64::from(args.seconds()),
            bound: (1.0, "one visitor at a time, to see what a session costs the shop ...".to_owned()),
            acts: Vec::new(),
        };
        live.canvas.say(&format!("Suimon demo: {}; about {:.0} s", live.headline, live.whole_s()));
        live.canvas.say(&format!("bound: {}", live.bound.1));
        live.draw();
        live
    }

    /// Shows the bound.
    pub(super) fn bound(&mut self, per_s: f64, cpu_s: f64, cores: usize) {
        let cores = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
        let why = format!("{} sessions/s: {cores} \u{f7} {} of CPU a session", rate(per_s), time(cpu_s));
        self.canvas.say(&format!("bound: {why}"));
        self.bound = (per_s, why);
    }

    /// Begins a run.
    pub(super) fn act(&mut self, name: Name) {
        self.acts.push(Act { name, completed: Vec::new(), words: vec!["starting ...".to_owned()] });
        self.canvas.say(&format!("{}: begins", name.title()));
    }

    /// Shows another second of a run.
    pub(super) fn progress(&mut self, progress: &Progress, sample: Option<&Sample>) {
        let Some(act) = self.acts.last_mut() else { return };
        act.completed.push(progress.sessions_completed);
        act.words = words(progress, recently(&act.completed), self.seconds, sample);
        if act.completed.len() % PLAIN_EVERY == 0 {
            let line = format!("{}: {}", act.name.title(), act.words.join("; "));
            self.canvas.say(&line);
        }
    }

    /// Draws the picture, if it is due.
    pub(super) fn draw(&mut self) {
        if self.canvas.is_due() {
            self.canvas.draw(&self.lines());
        }
    }

    /// Draws the picture once more and leaves it on the terminal.
    pub(super) fn end(&mut self) {
        self.canvas.end(&self.lines());
    }

    fn whole_s(&self) -> f64 {
        BESIDE_RUNS_S + 2.0 * self.seconds
    }

    fn lines(&self) -> Vec<Line> {
        let elapsed = self.began.elapsed().as_secs_f64();
        let left = (self.whole_s() - elapsed).max(0.0);
        let headline = format!("  {elapsed:.0} s, about {left:.0} s left, {}", self.headline);
        let mut lines = vec![
            Line::default(),
            Line::default().bold("Suimon demo").faint(&headline),
            Line::default(),
            Line::default().plain(&format!("  {:<16}{}", "bound", self.bound.1)),
        ];
        for act in &self.acts {
            let colour = if act.name == Name::None { Colour::Red } else { Colour::Blue };
            let sparks = sparkline(&act.completed, self.bound.0, self.seconds, SPARKS);
            let name = format!("  {:<16}{sparks:<SPARKS$}  ", act.name.title());
            lines.extend([Line::default(), Line::default().coloured(colour, &name).bold(&act.words[0])]);
            let more = act.words[1..].iter();
            lines.extend(more.map(|words| Line::default().plain(&format!("{:18}{words}", ""))));
        }
        lines
    }
}

/// Returns a run's description, line by line.
fn words(progress: &Progress, recently: f64, seconds: f64, sample: Option<&Sample>) -> Vec<String> {
    let mut words = vec![
        format!("{} sessions/s, {:.0} of {seconds:.0} s", rate(recently), progress.at_s.min(seconds)),
        format!(
            "{} finished, lost {} inside and {} at the door, {} told to wait",
            progress.sessions_completed,
            progress.mid_session_failures,
            progress.first_step_failures,
            progress.refusals + progress.waiting_pages,
        ),
    ];
    if let Some(sample) = sample {
        let gate = match sample.interval_s {
            Some(0.0) => "gate open".to_owned(),
            Some(interval) => format!("one let in every {}", time(interval)),
            None => "gate closed".to_owned(),
        };
        words.push(format!(
            "{} wait, {gate}, {} inside, {} in the shop",
            sample.newcomers_waiting, sample.sessions, sample.in_flight
        ));
        let each = sample.routes.iter().filter_map(|route| Some(format!("{} {}", route.name, route.limit?)));
        let limits: Vec<String> = each.take(LIMITS_MAX).collect();
        words.push(format!(
            "limits {}",
            if limits.is_empty() { "none yet".to_owned() } else { limits.join(", ") }
        ));
    }
    words
}
