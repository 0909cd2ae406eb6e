//! Lines that fit a terminal, and pictures that are redrawn in place.
//!
//! Map: [`Line`] and what wraps text; `screen` a picture on a screen of its own; `live` a few lines that
//! are drawn over below what was printed before.

mod live;
mod screen;

pub(crate) use live::Live;
pub(crate) use screen::{Event, Screen};

use std::io;
use std::os::fd::AsFd;
use suimon_statistics::table::{columns_of as columns_of_letter, harmless, width};

/// Wipes everything from the cursor to the end of the screen.
const CLEAR_BELOW: &str = "\x1b[J";
/// Wipes what a longer line has left behind the cursor. It comes after the text, as a line that is wiped
/// first flickers.
const CLEAR_REST: &str = "\x1b[K";
/// Around a picture: a terminal that knows it shows nothing until the picture is complete.
const TOGETHER: [&str; 2] = ["\x1b[?2026h", "\x1b[?2026l"];
/// Stands at the end of a line that is cut.
const CUT: char = '…';
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

    /// Adds a word on a ground of this colour, with a colour of the text that can be read on it: yellow
    /// or cyan letters could not be on a light terminal.
    pub(crate) fn marked(self, colour: Colour, text: &str) -> Line {
        let code = match colour {
            Colour::Red => "97;41",
            Colour::Green => "30;42",
            Colour::Yellow => "30;43",
            Colour::Blue => "30;46",
        };
        self.part(code, text)
    }

    fn part(mut self, code: &'static str, text: &str) -> Line {
        self.parts.push((code, harmless(text)));
        self
    }

    /// Returns how many columns the line takes.
    pub(crate) fn width(&self) -> usize {
        self.parts.iter().map(|(_, text)| width(text)).sum()
    }

    /// Returns the line for a terminal of this width, to be drawn over an older one. It is cut to one
    /// line, because a wrapped line would make the next redraw start at the wrong line. The last column
    /// stays empty: what wipes the rest of the line would there wipe its last character.
    fn drawn(&self, columns: usize, colours: bool) -> String {
        self.written(columns.saturating_sub(1), colours) + CLEAR_REST
    }

    /// Returns the line without a line end, cut to `columns` columns; a sign tells that it is cut.
    pub(crate) fn written(&self, columns: usize, colours: bool) -> String {
        let is_cut = self.width() > columns;
        let mut room = columns.saturating_sub(usize::from(is_cut));
        let mut text = String::new();
        for (code, part) in &self.parts {
            let fits = beginning(part, room);
            room -= width(fits);
            match code.is_empty() || !colours || fits.is_empty() {
                true => text.push_str(fits),
                false => text.push_str(&format!("\x1b[{code}m{fits}\x1b[0m")),
            }
            if fits.len() < part.len() {
                break;
            }
        }
        if is_cut && columns > 0 {
            text.push(CUT);
        }
        text
    }

    /// Returns the line in lines of at most `columns` columns if possible, wrapped between words. The others
    /// have the indentation of the first.
    pub(crate) fn paragraph(self, columns: usize) -> Vec<Line> {
        if self.width() <= columns {
            return vec![self];
        }
        let letters: Vec<(&'static str, char)> = self
            .parts
            .iter()
            .flat_map(|(code, text)| text.chars().map(move |letter| (*code, letter)))
            .collect();
        let text: String = letters.iter().map(|(_, letter)| *letter).collect();
        let indent = letters.iter().take_while(|(_, letter)| *letter == ' ').count();
        let mut letters = &letters[indent..];
        let mut lines = Vec::new();
        for part in wrapped(text.trim_start(), columns.saturating_sub(indent).max(1)) {
            let blanks = letters.iter().take_while(|(_, letter)| *letter == ' ').count();
            letters = &letters[if part.starts_with(' ') { 0 } else { blanks }..];
            let (these, rest) = letters.split_at(part.chars().count().min(letters.len()));
            letters = rest;
            let same = these.chunk_by(|one, other| one.0 == other.0);
            let line = Line::default().plain(&" ".repeat(indent));
            lines.push(same.fold(line, |line, run| {
                line.part(run[0].0, &run.iter().map(|(_, letter)| *letter).collect::<String>())
            }));
        }
        lines
    }

    /// Returns whether the line is empty.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.iter().all(|(_, text)| text.is_empty())
    }
}

/// Returns as much of the text as takes `columns` columns.
fn beginning(text: &str, columns: usize) -> &str {
    let mut room = columns;
    let end = text.char_indices().find(|(_, letter)| match room.checked_sub(columns_of_letter(*letter)) {
        Some(left) => {
            room = left;
            false
        }
        None => true,
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Returns whether the user wants colours: see no-color.org.
pub(crate) fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb()
}

/// Returns whether the terminal says of itself that it knows no commands.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Returns whether pictures can be drawn over on `out`.
pub(crate) fn can_draw(out: &impl io::IsTerminal) -> bool {
    out.is_terminal() && !is_dumb()
}

/// Returns the text in lines of at most `columns` columns, wrapped between words if possible.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word;
        let line = lines.last_mut().expect("there is one from the beginning");
        let length = width(line);
        if length == 0 || length + 1 + width(word) <= columns {
            if length > 0 {
                line.push(' ');
            }
        } else {
            lines.push(String::new());
        }
        // Sentences of East Asia have no spaces, and can be broken anywhere; a long address cannot.
        while width(rest) > columns && rest.chars().any(|letter| columns_of_letter(letter) > 1) {
            let fits = beginning(rest, columns.max(2));
            lines.last_mut().expect("as above").push_str(fits);
            lines.push(String::new());
            rest = &rest[fits.len()..];
        }
        lines.last_mut().expect("as above").push_str(rest);
    }
    lines
}

/// Returns the text with each line longer than `columns` wrapped between words. Continuation lines
/// have the indentation of the first.
pub(crate) fn paragraphs(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let indent = line.chars().take_while(|letter| *letter == ' ').count();
        if width(line) <= columns || columns <= 2 * indent {
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

/// Writes all of the text in one call if the terminal takes it, so that it shows nothing in between:
/// standard output of the standard library writes up to the last line end, and the rest after it.
fn put(out: impl AsFd, text: &str) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(&out, rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
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

/// Returns how many columns are printed to standard output: as many as one likes where it is no
/// terminal.
pub(crate) fn columns() -> usize {
    columns_of(io::stdout())
}

/// The same of another descriptor.
pub(crate) fn columns_of(out: impl AsFd) -> usize {
    size_of(out).map_or(usize::MAX, |size| size.columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a terminal shows of the text.
    pub(super) fn visible(text: &str) -> String {
        let mut inside = false;
        let shows = |letter: &char| {
            let commanded = inside || *letter == '\x1b';
            inside = commanded && !(letter.is_ascii_alphabetic());
            !commanded
        };
        text.chars().filter(shows).collect()
    }

    #[test]
    fn a_line_is_never_wider_than_the_terminal() {
        let line =
            Line::default().bold("sessions ").coloured(Colour::Blue, "▁▂▃▄▅▆▇█").plain(&"x".repeat(200));
        let drawn = line.drawn(20, true);
        assert_eq!(visible(&drawn), "sessions ▁▂▃▄▅▆▇█x…", "{drawn:?}");
        assert_eq!(Line::default().plain("all of it").written(9, true), "all of it");
        assert_eq!(Line::default().plain("all of it").written(0, true), "");
    }

    #[test]
    fn a_paragraph_keeps_its_styles_and_its_indentation() {
        let line =
            Line::default().plain("  two ").coloured(Colour::Red, "red words").plain(" and three more");
        let lines: Vec<String> = line.paragraph(12).iter().map(|line| line.written(12, true)).collect();
        assert_eq!(lines, ["  two \x1b[31mred\x1b[0m", "  \x1b[31mwords\x1b[0m and", "  three more"]);
        let short = Line::default().plain("fits");
        assert_eq!(short.clone().paragraph(4), [short]);
    }

    #[test]
    fn wide_letters_are_counted_as_they_are_shown() {
        let line = Line::default().plain("GET /水門水門");
        assert_eq!(line.width(), 13);
        let cut = [13, 12, 11, 10].map(|columns| line.written(columns, false));
        assert_eq!(cut, ["GET /水門水門", "GET /水門水…", "GET /水門…", "GET /水門…"]);
    }

    #[test]
    fn a_name_does_not_command_the_terminal() {
        let line = Line::default().plain("GET /\x1b[2J\u{9b}H");
        assert_eq!(line.written(80, true), "GET /\u{fffd}[2J\u{fffd}H");
    }

    #[test]
    fn a_picture_is_written_in_one_call() {
        let (screen, reader) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let picture = "one line\nand another\n".repeat(100);
        put(&screen, &picture).unwrap();
        let mut read = vec![0; 2 * picture.len()];
        let length = reader.recv(&mut read).unwrap();
        assert_eq!(&read[..length], picture.as_bytes(), "a datagram is what one call has written");
    }

    #[test]
    fn a_sentence_is_broken_between_its_words() {
        assert_eq!(paragraphs("  one two\nthree", 6), "  one\n  two\nthree\n");
        assert_eq!(wrapped("480 visitors wait, 4 min", 12), ["480 visitors", "wait, 4 min"]);
        assert_eq!(
            wrapped("http://a-very-long-address/ is down", 10),
            ["http://a-very-long-address/", "is down"]
        );
        assert_eq!(wrapped("now: 只今混み合っています", 10), ["now:", "只今混み合", "っています"]);
    }
}
