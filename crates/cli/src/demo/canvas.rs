//! A small picture that is drawn over on a terminal; where there is none, plain lines.

use crate::terminal::{self, Line, Live};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Time between two redraws of the picture.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// Where the picture is drawn: standard error.
pub(super) struct Canvas {
    is_terminal: bool,
    live: Live,
    drawn_at: Option<Instant>,
}

impl Canvas {
    pub(super) fn new() -> Self {
        Canvas { is_terminal: terminal::can_draw(&io::stderr()), live: Live::default(), drawn_at: None }
    }

    /// Returns whether a picture is drawn and is to be drawn again.
    pub(super) fn is_due(&self) -> bool {
        self.is_terminal && self.drawn_at.is_none_or(|at| at.elapsed() >= DRAW_EVERY)
    }

    /// Draws these lines over the last ones.
    pub(super) fn draw(&mut self, lines: &[Line]) {
        self.live.draw(lines);
        self.drawn_at = Some(Instant::now());
    }

    /// Draws the picture once more and leaves it on the terminal.
    pub(super) fn end(&mut self, lines: &[Line]) {
        if self.is_terminal {
            self.draw(lines);
            self.live.leave();
            // Nobody reads standard error any more, if it fails.
            let _ = writeln!(io::stderr());
        }
    }

    /// Prints the line if no picture is drawn.
    pub(super) fn say(&self, line: &str) {
        if !self.is_terminal {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}
