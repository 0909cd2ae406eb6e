//! Lines that fit a terminal, and pictures that are redrawn in place.

use std::io;
use std::os::fd::AsFd;

/// Wipes everything from the cursor to the end of the screen.
pub(crate) const CLEAR_BELOW: &str = "\x1b[J";
/// Wipes the line that the cursor is in, and goes to its beginning.
pub(crate) const CLEAR_LINE: &str = "\r\x1b[2K";
/// Switches to the alternate screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Goes to the first line, to draw a picture over the previous one. Nothing flickers, because
/// nothing is wiped before.
const HOME: &str = "\x1b[H";
/// Assumed size if the terminal does not report it.
const SIZE_DEFAULT: Size = Size { columns: 80, lines: 24 };

/// The size of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) lines: usize,
}

/// Colours every terminal has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
}

/// A line of parts in different styles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Line {
    parts: Vec<(&'static str, String)>,
}

impl Line {
    pub(crate) fn plain(self, text: &str) -> Line {
        self.part("", text)
    }

    pub(crate) fn bold(self, text: &str) -> Line {
        self.part("1", text)
    }

    pub(crate) fn faint(self, text: &str) -> Line {
        self.part("2", text)
    }

    pub(crate) fn coloured(self, colour: Colour, text: &str) -> Line {
        let code = match colour {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Blue => "36",
        };
        self.part(code, text)
    }

    fn part(mut self, code: &'static str, text: &str) -> Line {
        self.parts.push((code, text.to_owned()));
        self
    }

    /// Returns the line for a terminal of this width. It is cut to one line, because a wrapped line
    /// would make the next redraw start at the wrong line.
    pub(crate) fn drawn(&self, width: usize) -> String {
        format!("\x1b[2K{}\n", self.written(width.saturating_sub(1), colours_are_wanted()))
    }

    /// Returns the line, cut to `columns` columns, without a line end.
    pub(crate) fn written(&self, columns: usize, colours: bool) -> String {
        let mut room = columns;
        let mut text = String::new();
        for (code, part) in &self.parts {
            let fits: String = part.chars().take(room).collect();
            room -= fits.chars().count();
            if code.is_empty() || !colours {
                text.push_str(&fits);
            } else {
                text.push_str(&format!("\x1b[{code}m{fits}\x1b[0m"));
            }
        }
        text
    }

    /// Returns whether the line is empty.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.iter().all(|(_, text)| text.is_empty())
    }
}

/// Returns whether the user wants colours: see no-color.org.
pub(crate) fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns the text in lines of at most `columns` columns, wrapped between words if possible.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one from the beginning");
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if length > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Returns the text with each line longer than `columns` wrapped between words. Continuation lines
/// have the indentation of the first.
pub(crate) fn paragraphs(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let indent = line.chars().take_while(|letter| *letter == ' ').count();
        if line.chars().count() <= columns || columns <= 2 * indent {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        for part in wrapped(line.trim_start(), columns - indent) {
            out.push_str(&format!("{:indent$}{part}\n", ""));
        }
    }
    out
}

/// The alternate screen on standard output. Dropping this restores the previous content.
#[derive(Debug)]
pub(crate) struct Screen(());

impl Screen {
    /// Switches to the alternate screen.
    pub(crate) fn enter() -> io::Result<Screen> {
        put(ENTER)?;
        Ok(Screen(()))
    }

    /// Draws these lines, or the first ones if not all fit.
    pub(crate) fn draw(&self, lines: &[Line], size: Size) -> io::Result<()> {
        let mut text = HOME.to_owned();
        for line in lines.iter().take(size.lines.saturating_sub(1)) {
            text.push_str(&line.drawn(size.columns));
        }
        text.push_str(CLEAR_BELOW);
        put(&text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _ = put(LEAVE);
    }
}

fn put(text: &str) -> io::Result<()> {
    use io::Write;
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Moves the cursor up by `lines` lines, to the first column.
pub(crate) fn up(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}F") }
}

/// Returns the size of the terminal that `out` is, or `None` if it is no terminal.
pub(crate) fn size_of(out: impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    let or_default = |told: u16, default| if told > 0 { usize::from(told) } else { default };
    Some(Size {
        columns: or_default(size.ws_col, SIZE_DEFAULT.columns),
        lines: or_default(size.ws_row, SIZE_DEFAULT.lines),
    })
}

/// Returns the columns of standard error, where live pictures are drawn.
pub(crate) fn width() -> usize {
    size_of(io::stderr()).unwrap_or(SIZE_DEFAULT).columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_wider_than_the_terminal() {
        let line =
            Line::default().bold("sessions ").coloured(Colour::Blue, "▁▂▃▄▅▆▇█").plain(&"x".repeat(200));
        let drawn = line.drawn(20);
        let mut visible = 0;
        let mut inside = false;
        for character in drawn.trim_end().chars() {
            match character {
                '\x1b' => inside = true,
                'm' | 'K' if inside => inside = false,
                _ if inside => {}
                _ => visible += 1,
            }
        }
        assert_eq!(visible, 19, "{drawn:?}");
    }

    #[test]
    fn a_sentence_is_broken_between_its_words() {
        assert_eq!(paragraphs("  one two\nthree", 6), "  one\n  two\nthree\n");
        assert_eq!(wrapped("480 visitors wait, 4 min", 12), ["480 visitors", "wait, 4 min"]);
        assert_eq!(
            wrapped("http://a-very-long-address/ is down", 10),
            ["http://a-very-long-address/", "is down"]
        );
    }
}
