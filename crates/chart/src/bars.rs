//! Horizontal bars, so that names have room.

use crate::labels::{self, LEADING, TEXT};
use crate::style::{Hue, STYLE};
use crate::svg::{Anchor, Svg};
use crate::{Dress, Size, ticks};

/// Height of a bar among others of its row, pixels.
const BAR: f64 = 14.0;
/// Height of a row's only bar, pixels.
const BAR_ALONE: f64 = 20.0;
/// Distance between rows, pixels.
const ROW_GAP: f64 = 14.0;
/// Largest share of the width for the names of rows.
const NAMES_SHARE_MAX: f64 = 0.35;
/// Shortest bar of a value above 0, pixels, so that a small value looks different from none.
const LENGTH_MIN: f64 = 2.0;

/// A figure of bars: rows, each with one bar per group, beside each other or stacked.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    title: String,
    description: String,
    unit: String,
    groups: Vec<(String, Hue)>,
    rows: Vec<(String, Vec<f64>)>,
    stacked: bool,
}

impl Bars {
    /// Returns an empty figure.
    pub fn new(title: &str) -> Self {
        Bars {
            title: title.to_owned(),
            description: String::new(),
            unit: String::new(),
            groups: Vec::new(),
            rows: Vec::new(),
            stacked: false,
        }
    }

    /// Sets the description for readers who cannot see the figure.
    #[must_use]
    pub fn describe(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// Sets the unit of the values.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Self {
        unit.clone_into(&mut self.unit);
        self
    }

    /// Adds a group: one bar of each row, in one colour.
    #[must_use]
    pub fn group(mut self, name: &str, hue: Hue) -> Self {
        self.groups.push((name.to_owned(), hue));
        self
    }

    /// Adds a row with a value for each group. A value that is missing, below 0 or not a number has
    /// no bar.
    #[must_use]
    pub fn row(mut self, name: &str, values: Vec<f64>) -> Self {
        self.rows.push((name.to_owned(), values));
        self
    }

    /// Stacks the bars of a row end to end; the number at the end is their sum.
    #[must_use]
    pub const fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    /// Returns the figure as an `<svg>` element, as high as its rows need.
    pub fn svg(&self, width: f64, dress: Dress) -> String {
        let alone = dress == Dress::Alone;
        let margin = if alone { 20.0 } else { 2.0 };
        let head = if alone { margin + 32.0 } else { 0.0 };
        let width = Size::new(width, 0.0).width;
        let legend = self.legend(width - 2.0 * margin);
        let legend_height = legend.last().map_or(0.0, |entry| entry.row as f64 * LEADING + LEADING + 10.0);
        let first = head + legend_height;
        let rows_height = self.rows.len().max(1) as f64 * self.row_height();
        let height = (first + rows_height + margin).max(if alone { Size::HEIGHT_MIN } else { 0.0 });

        let mut svg = Svg::begin(width, height, &self.title, &self.description, alone.then_some(STYLE));
        if alone {
            svg.text(
                "title",
                (margin, margin + 16.0),
                Anchor::Start,
                &labels::fitted(&self.title, width * 0.8),
            );
        }
        for entry in &legend {
            let (x, y) = (margin + entry.left, head + entry.row as f64 * LEADING);
            if let Some(hue) = entry.hue {
                svg.rect(&format!("bar {}", hue.class()), (x, y + 3.0), (10.0, 10.0), 2.0, "");
                svg.text(
                    &format!("name {}", hue.class()),
                    (x + 15.0, y + TEXT - 0.5),
                    Anchor::Start,
                    entry.text,
                );
            } else {
                svg.text("", (x, y + TEXT - 0.5), Anchor::Start, entry.text);
            }
        }
        if self.rows.is_empty() {
            svg.text("", (margin, first + TEXT), Anchor::Start, "nothing was measured");
        }
        self.draw_rows(&mut svg, margin, first, width);
        svg.end()
    }

    fn draw_rows(&self, svg: &mut Svg, margin: f64, first: f64, width: f64) {
        let names = self.rows.iter().map(|(name, _)| labels::width(name));
        let names = names.fold(0.0, f64::max).min(width * NAMES_SHARE_MAX);
        let left = margin + names + 12.0;
        let greatest = self.rows.iter().map(|(_, values)| self.extent(values)).fold(0.0, f64::max);
        let number = |value: f64| ticks::label(value, if value.fract() == 0.0 { 1.0 } else { 0.1 });
        let room = width - margin - left - labels::width(&number(greatest)) - 10.0;
        let length = |value: f64| if value > 0.0 { (value / greatest * room).max(LENGTH_MIN) } else { 0.0 };
        for (index, (name, values)) in self.rows.iter().enumerate() {
            let top = first + index as f64 * self.row_height();
            let middle = top + (self.row_height() - ROW_GAP) / 2.0 + TEXT * 0.36;
            svg.text("value", (left - 12.0, middle), Anchor::End, &labels::fitted(name, names + 1.0));
            svg.line("axis", (left, top - 2.0), (left, top + self.row_height() - ROW_GAP + 2.0));
            let mut x = left;
            for (place, (group, hue)) in self.groups.iter().enumerate() {
                let value = drawable(values.get(place));
                let class = format!("bar {}", hue.class());
                let hint = format!("{name}, {group}: {} {}", number(value), self.unit);
                if self.stacked {
                    if value > 0.0 {
                        svg.rect(&class, (x, top), (length(value), BAR_ALONE), 1.5, hint.trim_end());
                        x += length(value) + 1.0;
                    }
                } else {
                    let y = top + place as f64 * (self.bar() + 2.0);
                    if value > 0.0 {
                        svg.rect(&class, (left, y), (length(value), self.bar()), 1.5, hint.trim_end());
                    }
                    let known = values.get(place).is_some_and(|value| value.is_finite());
                    let text = if known { number(value) } else { "not measured".to_owned() };
                    let at = (left + length(value) + 7.0, y + self.bar() / 2.0 + TEXT * 0.36);
                    svg.text("value", at, Anchor::Start, &text);
                }
            }
            if self.stacked {
                let sum = number(self.extent(values));
                svg.text("value", (x + 6.0, top + BAR_ALONE / 2.0 + TEXT * 0.36), Anchor::Start, &sum);
            }
        }
    }

    fn bar(&self) -> f64 {
        if self.groups.len() > 1 { BAR } else { BAR_ALONE }
    }

    fn row_height(&self) -> f64 {
        let bars = if self.stacked { 1 } else { self.groups.len().max(1) };
        let bar = if self.stacked { BAR_ALONE } else { self.bar() };
        bars as f64 * (bar + 2.0) - 2.0 + ROW_GAP
    }

    /// Returns the value at which a row's longest bar, or its stack, ends.
    fn extent(&self, values: &[f64]) -> f64 {
        let values = values.iter().take(self.groups.len()).map(|value| drawable(Some(value)));
        if self.stacked { values.sum() } else { values.fold(0.0, f64::max) }
    }

    /// Returns the names of the groups and the unit, in as many rows as they need.
    fn legend(&self, room: f64) -> Vec<Entry<'_>> {
        let several = self.groups.len() > 1;
        let groups = self.groups.iter().filter(|_| several).map(|(name, hue)| (name.as_str(), Some(*hue)));
        let unit = Some((self.unit.as_str(), None)).filter(|(unit, _)| !unit.is_empty());
        let (mut left, mut row) = (0.0, 0);
        let mut entries = Vec::new();
        for (text, hue) in groups.chain(unit) {
            let width = labels::bold_width(text) + if hue.is_some() { 15.0 } else { 0.0 };
            if left > 0.0 && left + width > room {
                (left, row) = (0.0, row + 1);
            }
            entries.push(Entry { text, hue, left, row });
            left += width + 18.0;
        }
        entries
    }
}

/// A part of the legend, with its place.
struct Entry<'a> {
    text: &'a str,
    hue: Option<Hue>,
    left: f64,
    row: usize,
}

fn drawable(value: Option<&f64>) -> f64 {
    value.copied().filter(|value| value.is_finite() && *value > 0.0).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quick_xml::Reader;
    use quick_xml::events::Event;

    fn bars() -> Bars {
        Bars::new("Failures by step")
            .unit("failures")
            .group("without", Hue::Vermilion)
            .group("with", Hue::Blue)
    }

    /// Returns the widths of all bars (not of the legend's squares), in order; fails if the text is
    /// no XML.
    fn widths(svg: &str) -> Vec<f64> {
        let mut reader = Reader::from_str(svg);
        let mut widths = Vec::new();
        loop {
            match reader.read_event().expect("well-formed") {
                Event::Start(tag) => {
                    let value = |name: &str| {
                        let attribute = tag.try_get_attribute(name).unwrap();
                        attribute.map(|attribute| attribute.value.into_owned())
                    };
                    if value("class").is_some_and(|class| class.starts_with("bar")) {
                        widths.push(value("width").unwrap().parse().unwrap());
                    }
                }
                Event::Eof => return widths,
                _ => {}
            }
        }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let svg =
            bars().row("login", vec![40.0, 20.0]).row("search", vec![10.0, 0.0]).svg(600.0, Dress::Page);
        let widths = widths(&svg);
        assert_eq!(widths.len(), 3, "nothing has no bar");
        assert!((widths[0] / widths[1] - 2.0).abs() < 0.01 && (widths[0] / widths[2] - 4.0).abs() < 0.01);
    }

    #[test]
    fn stacked_bars_end_with_their_sum() {
        let svg = bars().row("all", vec![1.0, 3.0]).stacked().svg(600.0, Dress::Alone);
        assert_eq!(widths(&svg).len(), 2);
        assert!(svg.contains(">4</text>"), "{svg}");
    }

    #[test]
    fn what_is_no_number_has_no_bar_and_says_so() {
        let svg = bars()
            .row("<login>", vec![f64::NAN])
            .row("buy", vec![-1.0, f64::INFINITY])
            .svg(300.0, Dress::Page);
        assert!(widths(&svg).is_empty());
        assert!(svg.contains("not measured") && !svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn no_rows_are_a_figure_too() {
        let svg = bars().svg(f64::NAN, Dress::Alone);
        assert!(widths(&svg).is_empty());
        assert!(svg.contains("nothing was measured"));
    }
}
