//! SVG as text.

use std::fmt::Write as _;

/// A figure being written.
pub(crate) struct Svg {
    text: String,
}

/// Which point of a text lies at its coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// Begins a figure, with its description for readers who cannot see it.
    pub(crate) fn begin(
        width: f64,
        height: f64,
        title: &str,
        description: &str,
        style: Option<&str>,
    ) -> Self {
        let (w, h) = (number(width), number(height));
        let mut svg = Svg { text: String::with_capacity(8 * 1024) };
        svg.push(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" \
             height=\"{h}\" role=\"img\" aria-label=\"{}\">\n",
            escape(title)
        ));
        svg.push(&format!("<title>{}</title>\n", escape(title)));
        if !description.is_empty() {
            svg.push(&format!("<desc>{}</desc>\n", escape(description)));
        }
        if let Some(style) = style {
            svg.push(&format!(
                "<style>{style}</style>\n<rect class=\"paper\" width=\"{w}\" height=\"{h}\" rx=\"6\"/>\n"
            ));
        }
        svg
    }

    /// Ends the figure and returns its text.
    pub(crate) fn end(mut self) -> String {
        self.push("</svg>\n");
        self.text
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (number(from.0), number(from.1), number(to.0), number(to.1));
        self.push(&format!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n"));
    }

    /// Writes a rectangle; `hint` is shown when a pointer rests on it.
    pub(crate) fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), round: f64, hint: &str) {
        let (x, y, w, h) = (number(corner.0), number(corner.1), number(size.0), number(size.1));
        let head = format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{}\"",
            number(round)
        );
        if hint.is_empty() {
            self.push(&format!("{head}/>\n"));
        } else {
            self.push(&format!("{head}><title>{}</title></rect>\n", escape(hint)));
        }
    }

    pub(crate) fn circle(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        let (x, y, r) = (number(centre.0), number(centre.1), number(radius));
        self.push(&format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>\n"));
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (x, y) = (number(at.0), number(at.1));
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.push(&format!("<text{class} x=\"{x}\" y=\"{y}\"{anchor}>{}</text>\n", escape(text)));
    }

    /// Writes the pieces of a line, each a row of points; a piece of one point is a dot.
    pub(crate) fn path(&mut self, class: &str, pieces: &[Vec<(f64, f64)>], closed: bool) {
        let mut data = String::new();
        for piece in pieces {
            for (index, (x, y)) in piece.iter().enumerate() {
                let command = if index == 0 { 'M' } else { 'L' };
                // Writing into a String cannot fail.
                let _ = write!(data, "{command}{} {}", number(*x), number(*y));
            }
            match piece.len() {
                0 => {}
                _ if closed => data.push('Z'),
                // A line without length is drawn as a dot, because its ends are round.
                1 => data.push_str("h0"),
                _ => {}
            }
        }
        if !data.is_empty() {
            self.push(&format!("<path class=\"{class}\" d=\"{data}\"/>\n"));
        }
    }

    /// Begins a part that is clipped to the rectangle; coordinates stay the same.
    pub(crate) fn begin_window(&mut self, corner: (f64, f64), size: (f64, f64)) {
        let (x, y, w, h) = (number(corner.0), number(corner.1), number(size.0), number(size.1));
        self.push(&format!(
            "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\">\n"
        ));
    }

    pub(crate) fn end_window(&mut self) {
        self.push("</svg>\n");
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

/// Returns a coordinate, to a tenth of a pixel. Callers pass only numbers; anything else becomes 0.
pub(crate) fn number(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() } else { 0.0 };
    let text = format!("{}", tenths / 10.0);
    if text == "-0" { "0".to_owned() } else { text }
}

/// Returns the text with XML's special characters escaped. Characters that XML does not allow
/// become a space.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            other if other.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        let shown = [1.0, 0.25, -0.01, 123.456, f64::NAN, f64::INFINITY].map(number);
        assert_eq!(shown, ["1", "0.3", "0", "123.5", "0", "0"]);
    }

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(escape("<b a=\"1\" & 'c'>\u{0}"), "&lt;b a=&quot;1&quot; &amp; &#39;c&#39;&gt; ");
    }
}
