//! What happens right now: a small picture that is drawn over on a terminal, plain lines where
//! nobody watches.

use super::Demo;
use super::gateway::Sample;
use super::outcome::Name;
use crate::numbers::{rate, time};
use crate::terminal::{self, Colour, Line};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use suimon_crowd::Progress;

/// The picture is drawn anew so often.
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// Seconds between two plain lines.
const PLAIN_EVERY_S: f64 = 5.0;
/// Signs in the little picture of sessions per second.
const SPARKS: usize = 19;
/// About how long the bound and the starts take, seconds.
const BESIDE_RUNS_S: f64 = 10.0;
/// Limits named one by one.
const LIMITS_MAX: usize = 7;
/// Heights of the little picture.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The picture and what it is drawn from.
pub(super) struct Live {
    picture: bool,
    began: Instant,
    headline: String,
    seconds: f64,
    bound: Option<(f64, String)>,
    acts: Vec<Act>,
    /// Lines on the terminal that are ours to draw over.
    drawn: usize,
    drawn_at: Option<Instant>,
    told_at_s: f64,
}

/// A run so far.
struct Act {
    name: Name,
    /// Sessions completed until the end of each second.
    completed: Vec<u64>,
    last: Option<Progress>,
    sample: Option<Sample>,
}

impl Live {
    pub(super) fn new(args: &Demo) -> Live {
        Live {
            picture: io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
            began: Instant::now(),
            headline: format!("{} visitors, seed {}", args.clients, args.seed),
            seconds: f64::from(args.seconds),
            bound: None,
            acts: Vec::new(),
            drawn: 0,
            drawn_at: None,
            told_at_s: 0.0,
        }
    }

    /// The shop is being started; `cores` says who runs where.
    pub(super) fn begin(&mut self, cores: &str) {
        self.headline = format!("{}, {cores}", self.headline);
        if !self.picture {
            self.say(&format!("Suimon demo: {}; about {:.0} s", self.headline, self.whole_s()));
            self.say("bound: measuring what a session costs the shop, one visitor at a time");
        }
        self.draw();
    }

    /// The bound is known.
    pub(super) fn bound(&mut self, per_s: f64, cpu_s: f64, cores: usize) {
        let cores = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
        let why = format!("{} sessions/s: {cores} \u{f7} {} of CPU a session", rate(per_s), time(cpu_s));
        if !self.picture {
            self.say(&format!("bound: {why}"));
        }
        self.bound = Some((per_s, why));
    }

    /// A run begins.
    pub(super) fn act(&mut self, name: Name) {
        self.acts.push(Act { name, completed: Vec::new(), last: None, sample: None });
        self.told_at_s = 0.0;
        self.drawn_at = None;
        if !self.picture {
            self.say(&format!("{}: begins", name.title()));
        }
        self.draw();
    }

    pub(super) fn progress(&mut self, progress: &Progress) {
        let Some(act) = self.acts.last_mut() else { return };
        act.completed.push(progress.sessions_completed);
        act.last = Some(progress.clone());
        if !self.picture && progress.at_s >= self.told_at_s + PLAIN_EVERY_S - 0.5 {
            self.told_at_s = progress.at_s;
            let line = plain(act, progress);
            self.say(&line);
        }
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        if let Some(act) = self.acts.last_mut() {
            act.sample = Some(sample.clone());
        }
    }

    /// Draws, if it is time.
    pub(super) fn draw(&mut self) {
        if self.picture && self.drawn_at.is_none_or(|at| at.elapsed() >= DRAW_EVERY) {
            self.draw_now();
        }
    }

    /// Leaves the last picture where it is.
    pub(super) fn end(&mut self) {
        if self.picture {
            self.draw_now();
            self.say("");
        }
    }

    fn draw_now(&mut self) {
        let lines = self.lines();
        let mut text = terminal::up(self.drawn);
        let width = terminal::width();
        for line in &lines {
            text.push_str(&line.drawn(width));
        }
        // What a shorter picture leaves of a longer one.
        text.push_str(terminal::CLEAR_BELOW);
        let mut stderr = io::stderr().lock();
        // A terminal that is gone needs no picture.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        (self.drawn, self.drawn_at) = (lines.len(), Some(Instant::now()));
    }

    fn say(&self, line: &str) {
        let _ = writeln!(io::stderr(), "{line}");
    }

    fn whole_s(&self) -> f64 {
        BESIDE_RUNS_S + 2.0 * self.seconds
    }

    fn lines(&self) -> Vec<Line> {
        let elapsed = self.began.elapsed().as_secs_f64();
        let left = (self.whole_s() - elapsed).max(0.0);
        let mut head = Line::default().bold("Suimon demo").plain("  ").faint(&self.headline);
        head = head.faint(&format!(", {elapsed:.0} s, about {left:.0} s left"));
        let mut lines = vec![Line::default(), head, Line::default()];
        let title = |name: &str| Line::default().plain("  ").plain(&format!("{name:<16}"));
        lines.push(match &self.bound {
            Some((_, why)) => title("bound").plain(why),
            None => title("bound").faint("one visitor at a time, to see what a session costs the shop ..."),
        });
        for act in &self.acts {
            lines.extend(act.lines(self.bound.as_ref().map_or(1.0, |(bound, _)| *bound), self.seconds));
        }
        lines
    }
}

impl Act {
    fn lines(&self, bound: f64, seconds: f64) -> Vec<Line> {
        let colour = match self.name {
            Name::None => Colour::Red,
            Name::Suimon => Colour::Blue,
        };
        let indent = " ".repeat(18);
        let name = Line::default().plain("  ").coloured(colour, &format!("{:<16}", self.name.title()));
        let Some(last) = &self.last else {
            return vec![Line::default(), name.faint("starting ...")];
        };
        let sparks = sparks(&self.completed, bound, seconds);
        let mut lines = vec![
            Line::default(),
            name.coloured(colour, &sparks)
                .bold(&format!("  {}", rate(self.recently())))
                .plain(" sessions/s")
                .faint(&format!("  {:.0} of {seconds:.0} s", last.at_s.min(seconds))),
            Line::default()
                .plain(&indent)
                .bold(&last.sessions_completed.to_string())
                .plain(" finished  ")
                .bold(&last.mid_session_failures.to_string())
                .plain(" lost inside  ")
                .bold(&last.first_step_failures.to_string())
                .plain(" lost at the door  ")
                .bold(&told_to_wait(last).to_string())
                .plain(" told to wait"),
        ];
        if let Some(sample) = &self.sample {
            lines.push(Line::default().plain(&indent).plain(&queue(sample)));
            lines.push(Line::default().plain(&indent).faint("limits  ").plain(&limits(sample)));
        }
        lines
    }

    /// Returns the sessions completed per second over the last five.
    fn recently(&self) -> f64 {
        let Some(last) = self.completed.last() else { return 0.0 };
        let back = self.completed.len().saturating_sub(6);
        let (before, over) = match self.completed.len() {
            0..=5 => (0, self.completed.len()),
            _ => (self.completed[back], 5),
        };
        (last - before) as f64 / over as f64
    }
}

/// Returns how often somebody was told to wait in line, or to come again.
fn told_to_wait(progress: &Progress) -> u64 {
    progress.refusals + progress.waiting_pages
}

fn plain(act: &Act, progress: &Progress) -> String {
    let mut line = format!(
        "{}: {:.0} s: {} sessions/s, {} finished, lost {} inside and {} at the door, {} told to wait",
        act.name.title(),
        progress.at_s,
        rate(act.recently()),
        progress.sessions_completed,
        progress.mid_session_failures,
        progress.first_step_failures,
        told_to_wait(progress),
    );
    if let Some(sample) = &act.sample {
        line.push_str(&format!("; {}; limits {}", queue(sample), limits(sample)));
    }
    line
}

fn queue(sample: &Sample) -> String {
    let gate = match sample.interval_s {
        Some(0.0) => "gate open".to_owned(),
        Some(interval) => format!("one let in every {}", time(interval)),
        None => "gate closed".to_owned(),
    };
    format!(
        "{} wait, {gate}, {} inside, {} in the shop",
        sample.newcomers_waiting, sample.sessions, sample.in_flight
    )
}

fn limits(sample: &Sample) -> String {
    let each = sample.routes.iter().filter_map(|route| Some(format!("{} {}", route.name, route.limit?)));
    let limits: Vec<String> = each.take(LIMITS_MAX).collect();
    if limits.is_empty() { "none yet".to_owned() } else { limits.join(", ") }
}

/// Returns a little picture of sessions per second, as high as the bound.
fn sparks(completed: &[u64], bound: f64, seconds: f64) -> String {
    let each = (seconds / SPARKS as f64).max(1.0);
    let at = |second: f64| match second as usize {
        0 => 0,
        index => completed[index.min(completed.len()) - 1],
    };
    let count = ((completed.len() as f64 / each).floor() as usize).min((seconds / each) as usize).min(SPARKS);
    let sign = |index: usize| {
        let (from, to) = (index as f64 * each, (index + 1) as f64 * each);
        let rate = (at(to) - at(from)) as f64 / each.max(1.0);
        let height = (rate / bound.max(1e-9) * (HEIGHTS.len() - 1) as f64).round();
        HEIGHTS[(height as usize).min(HEIGHTS.len() - 1)]
    };
    let drawn: String = if completed.is_empty() { String::new() } else { (0..count).map(sign).collect() };
    format!("{drawn:<SPARKS$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_little_picture_is_as_high_as_the_bound_and_as_long_as_the_run() {
        let steady: Vec<u64> = (1..=38).map(|second| second * 7).collect();
        assert_eq!(sparks(&steady, 7.0, 38.0), "█".repeat(SPARKS));
        assert_eq!(sparks(&steady[..4], 7.0, 38.0).trim_end(), "██");
        assert_eq!(sparks(&[0; 38], 7.0, 38.0), "▁".repeat(SPARKS));
        assert_eq!(sparks(&[], 7.0, 38.0).trim(), "");
        assert_eq!(sparks(&[1, 2, 3], 1.0, 2.0).trim_end(), "██");
    }

    #[test]
    fn the_rate_is_of_the_last_five_seconds() {
        let act = |completed: Vec<u64>| Act { name: Name::None, completed, last: None, sample: None };
        assert!(act(vec![]).recently() < 1e-9);
        assert!((act(vec![2, 4]).recently() - 2.0).abs() < 1e-9);
        assert!((act(vec![100, 100, 101, 102, 103, 104, 105]).recently() - 1.0).abs() < 1e-9);
    }
}
