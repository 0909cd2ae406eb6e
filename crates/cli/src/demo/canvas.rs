//! A small picture that is drawn over on a terminal; where there is none, plain lines.

use crate::terminal::{self, Line};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two redraws of the picture.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// Where the picture is drawn: standard error.
pub(super) struct Canvas {
    is_terminal: bool,
    /// Lines of the last picture, to draw over.
    drawn: usize,
    drawn_at: Option<Instant>,
}

impl Canvas {
    pub(super) fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Canvas { is_terminal: io::stderr().is_terminal() && !dumb, drawn: 0, drawn_at: None }
    }

    /// Returns whether a picture is drawn and is to be drawn again.
    pub(super) fn is_due(&self) -> bool {
        self.is_terminal && self.drawn_at.is_none_or(|at| at.elapsed() >= DRAW_EVERY)
    }

    /// Draws these lines over the last ones.
    pub(super) fn draw(&mut self, lines: &[Line]) {
        let width = terminal::width();
        let picture: String = lines.iter().map(|line| line.drawn(width)).collect();
        // Wipes what remains of a longer picture.
        let text = terminal::up(self.drawn) + &picture + terminal::CLEAR_BELOW;
        let mut stderr = io::stderr().lock();
        // A closed terminal needs no picture.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        (self.drawn, self.drawn_at) = (lines.len(), Some(Instant::now()));
    }

    /// Draws the picture once more and leaves it on the terminal.
    pub(super) fn end(&mut self, lines: &[Line]) {
        if self.is_terminal {
            self.draw(lines);
            eprintln!();
        }
    }

    /// Prints the line if no picture is drawn.
    pub(super) fn say(&self, line: &str) {
        if !self.is_terminal {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}
