//! Lines that fit a terminal, and pictures that are drawn over.

use std::io;
use std::os::fd::AsFd;

/// Wipes everything from the cursor to the end of the screen.
pub(crate) const CLEAR_BELOW: &str = "\x1b[J";
/// Wipes the line that the cursor is in, and goes to its beginning.
pub(crate) const CLEAR_LINE: &str = "\r\x1b[2K";
/// Goes to a screen of its own, without a cursor, and back to what was there before.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Goes to the first line, for a picture that is drawn over the one before without wiping it: so
/// nothing flickers.
const HOME: &str = "\x1b[H";
/// Columns and lines taken where the terminal does not tell.
const SIZE_DEFAULT: Size = Size { columns: 80, lines: 24 };

/// How much fits on a terminal.
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

/// A line of differently written parts.
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

    /// Returns the line as written to a terminal of this width: cut, so that it never takes two
    /// lines, for then we would draw over the wrong ones.
    pub(crate) fn drawn(&self, width: usize) -> String {
        format!("\x1b[2K{}\n", self.written(width.saturating_sub(1), colours_are_wanted()))
    }

    /// Returns the line in at most `columns` columns, without a line end.
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

    /// Returns whether nothing is on it.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.iter().all(|(_, text)| text.is_empty())
    }
}

/// Returns whether the user wants colours: see no-color.org.
pub(crate) fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns the text in lines of at most `columns` columns, broken between words where possible.
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

/// Returns the text with each line that is longer than `columns` broken between words, the rest
/// indented as far as its beginning.
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

/// A screen of our own on standard output; what was there before comes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Screen(());

impl Screen {
    /// Takes the screen.
    pub(crate) fn enter() -> io::Result<Screen> {
        put(ENTER)?;
        Ok(Screen(()))
    }

    /// Draws these lines, the first ones if there are more than fit.
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
        // A terminal that is gone needs nothing back.
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

/// Returns how much fits on the terminal that `out` is; `None`: it is none.
pub(crate) fn size_of(out: impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    let or_default = |told: u16, default| if told > 0 { usize::from(told) } else { default };
    Some(Size {
        columns: or_default(size.ws_col, SIZE_DEFAULT.columns),
        lines: or_default(size.ws_row, SIZE_DEFAULT.lines),
    })
}

/// Returns how many columns standard error has, where live pictures are drawn.
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
