//! Live progress: the load, a sign for each node, and where visitors are.

use super::outcome::Sample;
use crate::demo::canvas::Canvas;
use crate::demo::seconds::{MEAN_OVER_S, recently, sparkline};
use crate::numbers::{rate, time};
use crate::terminal::{Colour, Line};
use std::time::Instant;
use suimon_crowd::Progress;

/// Characters in the sparkline.
const SPARKS: usize = 40;
/// Full height of the sparkline ÷ the most that is asked for.
const HEADROOM: f64 = 7.0 / 6.0;

pub(super) struct Live {
    canvas: Canvas,
    began: Instant,
    headline: String,
    seconds: f64,
    /// The most that is asked for, sessions per second.
    most_per_s: f64,
    /// Sessions completed until the end of each second.
    completed: Vec<u64>,
    progress: Option<Progress>,
    sample: Option<Sample>,
    /// Why there are as many nodes as there are.
    why: String,
    /// What was done to a node, and what came of it.
    killed: String,
}

impl Live {
    pub(super) fn new(headline: String, seconds: f64, most_per_s: f64) -> Live {
        let live = Live {
            canvas: Canvas::new(),
            began: Instant::now(),
            headline,
            seconds,
            most_per_s,
            completed: Vec::new(),
            progress: None,
            sample: None,
            why: "starting ...".to_owned(),
            killed: String::new(),
        };
        live.canvas.say(&format!("Suimon demo: {}; about {seconds:.0} s", live.headline));
        live
    }

    /// Shows another second.
    pub(super) fn progress(&mut self, progress: &Progress) {
        self.completed.push(progress.sessions_completed);
        self.progress = Some(progress.clone());
        if self.completed.len().is_multiple_of(MEAN_OVER_S) {
            self.canvas.say(&format!("{}; {}", self.load_words(), self.node_words()));
        }
    }

    /// Shows what the gateway says now of its nodes.
    pub(super) fn nodes(&mut self, sample: Sample, why: Option<&str>) {
        self.sample = Some(sample);
        if let Some(why) = why {
            why.clone_into(&mut self.why);
        }
    }

    /// Shows what happened to a node.
    pub(super) fn killed(&mut self, words: String) {
        self.canvas.say(&words);
        self.killed = words;
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

    fn load_words(&self) -> String {
        let Some(progress) = &self.progress else { return "starting ...".to_owned() };
        format!(
            "{} sessions/s; {} finished, {} lost, {} in line",
            rate(recently(&self.completed)),
            progress.sessions_completed,
            progress.mid_session_failures + progress.first_step_failures,
            progress.in_line
        )
    }

    fn node_words(&self) -> String {
        let Some(sample) = &self.sample else { return "no node yet".to_owned() };
        let mut words = format!("{} of {} wanted nodes serve", sample.serving, sample.wanted);
        for (count, what) in [(sample.starting, "start"), (sample.draining, "drain")] {
            if count > 0 {
                words += &format!(", {count} {what}");
            }
        }
        words
    }

    fn lines(&self) -> Vec<Line> {
        let elapsed = self.began.elapsed().as_secs_f64();
        let left = time((self.seconds - elapsed).max(0.0));
        let signs = self.sample.map_or(String::new(), |sample| {
            let many = |sign: &str, count: u32| sign.repeat(count as usize);
            many("■ ", sample.serving) + &many("□ ", sample.starting) + &many("▨ ", sample.draining)
        });
        let sparks = sparkline(&self.completed, self.most_per_s * HEADROOM, self.seconds, SPARKS);
        let mut lines = vec![
            Line::default(),
            Line::default().bold("Suimon demo").faint(&format!("  about {left} left, {}", self.headline)),
            Line::default(),
            Line::default().plain("  load     ").coloured(Colour::Blue, &format!("{sparks:<SPARKS$}")),
            Line::default().plain("           ").bold(&self.load_words()),
            Line::default(),
            Line::default().plain("  nodes    ").coloured(Colour::Blue, signs.trim_end()),
            Line::default().plain("           ").bold(&self.node_words()),
            Line::default().faint(&format!("           {}", self.why)),
        ];
        if !self.killed.is_empty() {
            lines.push(Line::default().plain("           ").coloured(Colour::Red, &self.killed));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_sign_and_the_load_a_line() {
        let mut live = Live::new("somewhere".to_owned(), 40.0, 10.0);
        let sample = super::super::outcome::tests::outcome().samples[1];
        live.nodes(Sample { starting: 1, draining: 2, ..sample }, Some("more work comes"));
        live.killed("a node was killed".to_owned());
        let text: Vec<String> = live.lines().iter().map(|line| line.written(200, false)).collect();
        assert!(text[6].contains("■ ■ ■ ■ □ ▨ ▨"), "{text:#?}");
        assert!(text[7].contains("4 of 4 wanted nodes serve, 1 start, 2 drain"), "{text:#?}");
        assert!(text[9].contains("a node was killed"), "{text:#?}");
    }
}
