//! A few lines that are drawn over in place, below what was printed before.

use super::{CLEAR_BELOW, Line, Size, TOGETHER, colours_are_wanted, put, size_of};
use std::io;

/// Lines on standard error that show how something goes.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Widths of the lines last drawn.
    drawn: Vec<usize>,
}

impl Live {
    /// Draws these lines over the last ones. A failure does not matter: nothing is lost but a picture.
    pub(crate) fn draw(&mut self, lines: &[Line]) {
        if let Some(size) = size_of(io::stderr()) {
            let _ = put(io::stderr(), &self.frame(lines, size, colours_are_wanted()));
        }
    }

    /// Wipes the lines.
    pub(crate) fn wipe(&mut self) {
        self.draw(&[]);
    }

    /// Leaves the lines where they are; what is printed next comes below them.
    pub(crate) fn leave(&mut self) {
        if !std::mem::take(&mut self.drawn).is_empty() {
            // A closed terminal has no next line.
            let _ = put(io::stderr(), "\n");
        }
    }

    /// Returns what draws the lines. The cursor stays at the end of the last one.
    fn frame(&mut self, lines: &[Line], size: Size, colours: bool) -> String {
        let mut text = TOGETHER[0].to_owned() + "\r" + &up(self.rows(size.columns).saturating_sub(1));
        // What has scrolled out of the screen could not be drawn over.
        let lines = &lines[..lines.len().min(size.lines)];
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            text.push_str(&line.drawn(size.columns, colours));
        }
        self.drawn = lines.iter().map(|line| line.width().min(size.columns.saturating_sub(1))).collect();
        text + CLEAR_BELOW + TOGETHER[1]
    }

    /// Returns how many rows the lines take that are shown. A terminal that has become narrower since
    /// they were drawn has wrapped them.
    fn rows(&self, columns: usize) -> usize {
        self.drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Returns what moves the cursor up by `rows` rows.
fn up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(live: &mut Live, texts: &[&str], size: Size) -> String {
        let texts: Vec<Line> = texts.iter().map(|text| Line::default().plain(text)).collect();
        live.frame(&texts, size, false)
    }

    #[test]
    fn a_picture_is_drawn_over_the_last_and_nothing_is_wiped_first() {
        let mut live = Live::default();
        let size = Size { columns: 20, lines: 5 };
        let [on, off] = TOGETHER;
        let first = frame(&mut live, &["one", "two"], size);
        assert_eq!(first, format!("{on}\rone\x1b[K\ntwo\x1b[K\x1b[J{off}"));
        let second = frame(&mut live, &["a line that is too long"], size);
        assert_eq!(second, format!("{on}\r\x1b[1Aa line that is too…\x1b[K\x1b[J{off}"));
        assert_eq!(frame(&mut live, &[], size), format!("{on}\r\x1b[J{off}"));
    }

    #[test]
    fn what_a_narrower_terminal_has_wrapped_is_drawn_over_whole() {
        let mut live = Live::default();
        frame(&mut live, &["a line of 21 letters.", "two"], Size { columns: 40, lines: 5 });
        let text = frame(&mut live, &["x"], Size { columns: 10, lines: 5 });
        assert!(text.contains("\r\x1b[3Ax"), "{text:?}");
    }

    #[test]
    fn no_more_is_drawn_than_the_screen_has_lines() {
        let mut live = Live::default();
        let text = frame(&mut live, &["1", "2", "3"], Size { columns: 10, lines: 2 });
        assert_eq!((text.matches('\n').count(), live.drawn.len()), (1, 2));
    }
}
