//! Lines that fit a terminal and are drawn over.

/// Wipes everything from the cursor to the end of the screen.
pub(super) const CLEAR_BELOW: &str = "\x1b[J";
/// Columns taken where the terminal does not tell.
const WIDTH_DEFAULT: usize = 80;

/// Colours every terminal has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Colour {
    Red,
    Blue,
}

/// A line of differently written parts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Line {
    parts: Vec<(&'static str, String)>,
}

impl Line {
    pub(super) fn plain(self, text: &str) -> Line {
        self.part("", text)
    }

    pub(super) fn bold(self, text: &str) -> Line {
        self.part("1", text)
    }

    pub(super) fn faint(self, text: &str) -> Line {
        self.part("2", text)
    }

    pub(super) fn coloured(self, colour: Colour, text: &str) -> Line {
        let code = match colour {
            Colour::Red => "31",
            Colour::Blue => "36",
        };
        self.part(code, text)
    }

    fn part(mut self, code: &'static str, text: &str) -> Line {
        self.parts.push((code, text.to_owned()));
        self
    }

    /// Returns the line as written to a terminal of this width: cut, so that it never takes two lines, for then we would
    /// draw over the wrong ones.
    pub(super) fn drawn(&self, width: usize) -> String {
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut room = width.saturating_sub(1);
        let mut text = "\x1b[2K".to_owned();
        for (code, part) in &self.parts {
            let fits: String = part.chars().take(room).collect();
            room -= fits.chars().count();
            if code.is_empty() || !colours {
                text.push_str(&fits);
            } else {
                text.push_str(&format!("\x1b[{code}m{fits}\x1b[0m"));
            }
        }
        text.push('\n');
        text
    }
}

/// Goes up so many lines, to their beginning.
pub(super) fn up(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}F") }
}

/// Returns how many columns the terminal has.
#[expect(unsafe_code, reason = "ioctl with TIOCGWINSZ only writes the struct it is given")]
pub(super) fn width() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: `size` is a winsize that lives through the call.
    let status = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    if status == 0 && size.ws_col > 0 { usize::from(size.ws_col) } else { WIDTH_DEFAULT }
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
}
