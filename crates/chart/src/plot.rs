//! Lines over two axes.

mod draw;
#[cfg(test)]
mod tests;

use crate::style::Hue;
use crate::{Dress, Size};

/// A figure of series over two axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    title: String,
    description: String,
    remarks: Vec<(Hue, String)>,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    bands: Vec<Band>,
    spans: Vec<Span>,
    rules: Vec<Rule>,
}

impl Plot {
    /// Most points drawn per series. Of a longer series, the lowest and highest point of each small
    /// piece are drawn.
    pub const POINTS_MAX: usize = 4000;

    /// Returns an empty figure.
    pub fn new(title: &str) -> Self {
        Plot {
            title: title.to_owned(),
            description: String::new(),
            remarks: Vec::new(),
            x: Axis::default(),
            y: Axis::default(),
            series: Vec::new(),
            bands: Vec::new(),
            spans: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// Sets the description for readers who cannot see the figure.
    #[must_use]
    pub fn describe(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// Adds a line of text above the drawing, in the colour of its subject: what a reader should
    /// learn in five seconds. It is cut if it is wider than the figure, and left out if the figure
    /// is too low.
    #[must_use]
    pub fn remark(mut self, hue: Hue, words: &str) -> Self {
        self.remarks.push((hue, words.to_owned()));
        self
    }

    /// Sets the axis along the bottom.
    #[must_use]
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// Sets the axis along the left side.
    #[must_use]
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// Adds a series; later ones are drawn over earlier ones.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a band, drawn under all series.
    #[must_use]
    pub fn band(mut self, band: Band) -> Self {
        self.bands.push(band);
        self
    }

    /// Adds a marked range of the bottom axis, drawn under everything.
    #[must_use]
    pub fn span(mut self, span: Span) -> Self {
        self.spans.push(span);
        self
    }

    /// Adds a level for comparison.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Returns the figure as an `<svg>` element.
    pub fn svg(&self, size: Size, dress: Dress) -> String {
        draw::draw(self, size, dress)
    }
}

/// One axis. What is not set is derived from the data.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Axis {
    label: String,
    from: Option<f64>,
    to: Option<f64>,
    logarithmic: bool,
    whole: bool,
    ticks: Option<Vec<f64>>,
    /// Words in place of the numbers at these ticks.
    words: Vec<(f64, String)>,
}

impl Axis {
    /// Returns an axis; the label names the quantity and its unit.
    pub fn new(label: &str) -> Self {
        Axis { label: label.to_owned(), ..Axis::default() }
    }

    /// Sets the value at which it begins.
    #[must_use]
    pub const fn from(mut self, value: f64) -> Self {
        self.from = Some(value);
        self
    }

    /// Sets the value at which it ends; what lies beyond is cut off.
    #[must_use]
    pub const fn to(mut self, value: f64) -> Self {
        self.to = Some(value);
        self
    }

    /// Makes the axis logarithmic. Values that are not above 0 are gaps.
    #[must_use]
    pub const fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    /// Puts ticks at whole numbers only, for counts.
    #[must_use]
    pub const fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Sets the ticks.
    #[must_use]
    pub fn ticks(mut self, ticks: Vec<f64>) -> Self {
        self.ticks = Some(ticks);
        self
    }

    /// Sets the ticks, and what is written at each in place of its number: for what is told apart
    /// by name.
    #[must_use]
    pub fn words(mut self, words: Vec<(f64, String)>) -> Self {
        self.ticks = Some(words.iter().map(|(tick, _)| *tick).collect());
        self.words = words;
        self
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Line,
    Steps,
    Dotted,
}

/// Points drawn in one colour, with a name at the end.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    name: String,
    hue: Hue,
    points: Vec<(f64, f64)>,
    shape: Shape,
    faint: bool,
    dashed: bool,
    raised: f64,
}

impl Series {
    /// Returns points joined by straight lines. A point that is not a number is a gap.
    pub fn line(name: &str, hue: Hue, points: Vec<(f64, f64)>) -> Self {
        Series {
            name: name.to_owned(),
            hue,
            points,
            shape: Shape::Line,
            faint: false,
            dashed: false,
            raised: 0.0,
        }
    }

    /// Returns steps: each value holds until the next point.
    pub fn steps(name: &str, hue: Hue, points: Vec<(f64, f64)>) -> Self {
        Series { shape: Shape::Steps, ..Series::line(name, hue, points) }
    }

    /// Returns points with a dot at each, joined by straight lines, for separate measurements.
    pub fn dotted(name: &str, hue: Hue, points: Vec<(f64, f64)>) -> Self {
        Series { shape: Shape::Dotted, ..Series::line(name, hue, points) }
    }

    /// Draws it thin and pale, without a name: the raw values behind a smoothed line.
    #[must_use]
    pub const fn faint(mut self) -> Self {
        self.faint = true;
        self
    }

    /// Draws it higher by this many pixels, so that series of equal values do not hide each other.
    #[must_use]
    pub const fn raised(mut self, pixels: f64) -> Self {
        self.raised = if pixels.is_finite() { pixels } else { 0.0 };
        self
    }

    /// Draws it dashed.
    #[must_use]
    pub const fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }
}

/// The area between two curves.
#[derive(Clone, PartialEq, Debug)]
pub struct Band {
    hue: Hue,
    /// x, low, high.
    points: Vec<(f64, f64, f64)>,
}

impl Band {
    /// Returns the area between `low` and `high` of points `(x, low, high)`. A point with a value
    /// that is not a number is a gap.
    pub const fn new(hue: Hue, points: Vec<(f64, f64, f64)>) -> Self {
        Band { hue, points }
    }
}

/// A marked range of the bottom axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    from: f64,
    to: f64,
    label: String,
}

impl Span {
    /// Returns the range from `from` to `to`, with a short label at its top.
    pub fn new(from: f64, to: f64, label: &str) -> Self {
        Span { from, to, label: label.to_owned() }
    }
}

/// A level of the left axis, drawn as a line.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    value: f64,
    label: String,
    hue: Hue,
}

impl Rule {
    /// Returns a level with a name. A level that is not a number is not drawn.
    pub fn new(value: f64, label: &str) -> Self {
        Rule { value, label: label.to_owned(), hue: Hue::Grey }
    }
}
