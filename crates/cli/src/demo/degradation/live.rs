//! Live progress: a row for each act.

use super::outcome::{Act, Front, cells};
use crate::demo::canvas::Canvas;
use crate::numbers::{rate, time};
use crate::terminal::{Colour, Line};
use std::time::Instant;
use suimon_crowd::profile::{Phase, Progress, Second};

/// Seconds over which what happens now is averaged, and between two plain lines.
const OVER: usize = 5;
/// Widths of the columns: the name, and the numbers.
const NAME: usize = 18;
const NUMBER: usize = 11;

/// The picture and what it is drawn from.
pub(super) struct Live {
    canvas: Canvas,
    began: Instant,
    headline: String,
    whole_s: f64,
    /// Rows that are complete.
    done: Vec<Row>,
    /// What is under way: its name, the seconds so far, and where it is.
    now: Option<(String, Vec<Second>, String)>,
}

struct Row {
    front: Option<Front>,
    words: String,
}

impl Live {
    /// Begins; `headline` says what runs where, `whole_s` about how long it takes.
    pub(super) fn new(headline: String, whole_s: f64) -> Live {
        let live = Live {
            canvas: Canvas::new(),
            began: Instant::now(),
            headline,
            whole_s,
            done: Vec::new(),
            now: None,
        };
        live.canvas.say(&format!("Suimon demo: {}; about {whole_s:.0} s", live.headline));
        live
    }

    /// Begins something that has this name.
    pub(super) fn begin(&mut self, name: &str) {
        self.canvas.say(&format!("{name}: begins"));
        self.now = Some((name.to_owned(), Vec::new(), "starting ...".to_owned()));
        self.draw();
    }

    /// Shows another second of it.
    pub(super) fn progress(&mut self, progress: &Progress) {
        let Some((name, seconds, place)) = &mut self.now else { return };
        seconds.push(progress.answered);
        let phase = match progress.phase {
            Phase::WarmUp => "warm-up",
            Phase::Measuring => "measuring",
            Phase::LastAnswers => "last responses",
        };
        *place = if progress.point.alone {
            "each service alone".to_owned()
        } else {
            format!("{phase}, {} left", time(progress.left_s))
        };
        if seconds.len() % OVER == 0 {
            let (light, heavy) = recently(seconds);
            self.canvas.say(&format!("{name}: {} light/s, {} heavy/s; {place}", rate(light), rate(heavy)));
        }
    }

    /// Shows what each job takes by itself, and how many light ones are done without heavy ones.
    pub(super) fn alone(&mut self, light_s: f64, heavy_s: f64, light_most_per_s: f64) {
        let words = format!(
            "{} light/s; one at a time a light job takes {}, a heavy one {}",
            rate(light_most_per_s),
            crate::numbers::fine_time(light_s),
            crate::numbers::fine_time(heavy_s)
        );
        self.finish(None, &words);
    }

    /// Shows what came of an act.
    pub(super) fn act(&mut self, act: &Act) {
        let words: String = cells(act).iter().map(|cell| format!("{cell:>NUMBER$}")).collect();
        self.finish(Some(act.front), &words);
    }

    fn finish(&mut self, front: Option<Front>, words: &str) {
        let name = self.now.take().map_or(String::new(), |(name, ..)| name);
        self.canvas.say(&format!("{name}: {}", words.split_whitespace().collect::<Vec<_>>().join(" ")));
        self.done.push(Row { front, words: format!("  {name:<NAME$}{words}") });
        self.draw();
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

    fn lines(&self) -> Vec<Line> {
        let elapsed = self.began.elapsed().as_secs_f64();
        let left = (self.whole_s - elapsed).max(0.0);
        let headings: String =
            super::outcome::HEADINGS.iter().map(|heading| format!("{heading:>NUMBER$}")).collect();
        let mut lines = vec![
            Line::default(),
            Line::default()
                .bold("Suimon demo")
                .faint(&format!("  {elapsed:.0} s, about {left:.0} s left, {}", self.headline)),
            Line::default(),
            Line::default().faint(&format!("  {:<NAME$}{headings}", "")),
        ];
        lines.extend(self.done.iter().map(|row| match row.front {
            None => Line::default().plain(&row.words),
            Some(Front::Nothing) => Line::default().coloured(Colour::Red, &row.words),
            Some(Front::Ratio | Front::Floor) => Line::default().coloured(Colour::Blue, &row.words),
        }));
        if let Some((name, seconds, place)) = &self.now {
            let (light, heavy) = recently(seconds);
            let blank = "";
            let words = if seconds.is_empty() {
                format!("  {name:<NAME$}  {place}")
            } else {
                format!(
                    "  {name:<NAME$}{:>NUMBER$}{blank:>width$}{:>NUMBER$}  {place}",
                    rate(light),
                    rate(heavy),
                    width = 2 * NUMBER
                )
            };
            lines.push(Line::default().bold(&words));
        }
        lines
    }
}

/// Returns light and heavy jobs per second over the last seconds.
fn recently(seconds: &[Second]) -> (f64, f64) {
    let last = &seconds[seconds.len().saturating_sub(OVER)..];
    let mean =
        |of: fn(&Second) -> u32| f64::from(last.iter().map(of).sum::<u32>()) / last.len().max(1) as f64;
    (mean(|second| second.light), mean(|second| second.heavy))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn each_act_has_a_row_and_what_is_under_way_has_the_last() {
        let mut live = Live::new("somewhere".to_owned(), 100.0);
        live.begin("alone");
        live.alone(0.001, 0.1, 2_000.0);
        for act in &outcome().acts {
            live.begin(&outcome().title(act));
            live.act(act);
        }
        live.begin("more");
        let text: Vec<String> = live.lines().iter().map(|line| line.written(200, false)).collect();
        assert_eq!(text.len(), 4 + 4 + 1, "{text:#?}");
        assert!(text[4].contains("2000 light/s; one at a time a light job takes 1.00 ms"), "{text:#?}");
        assert!(text[6].contains("slowdown 1 : 2") && text[6].ends_with("1.96"), "{text:#?}");
        assert!(text[8].contains("more") && text[8].contains("starting"), "{text:#?}");
    }

    #[test]
    fn what_happens_now_is_the_mean_of_the_last_seconds() {
        let second = |light, heavy| Second { light, heavy };
        assert_eq!(recently(&[]), (0.0, 0.0));
        assert_eq!(recently(&[second(10, 1), second(20, 3)]), (15.0, 2.0));
        let mut many = vec![second(1_000, 9); 3];
        many.extend([second(100, 2); OVER]);
        assert_eq!(recently(&many), (100.0, 2.0));
    }
}
