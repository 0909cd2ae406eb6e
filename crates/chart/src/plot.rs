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
    /// The most points of a series that are drawn. Of a longer one its lowest and highest in each
    /// small piece of it.
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

    /// Says what is to be seen, for those who do not see it.
    #[must_use]
    pub fn describe(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// Adds a line of words above the drawing, in the colour of what it is about: what a reader
    /// should have learned who looks for five seconds. Cut where it is wider than the figure, and
    /// left out where the figure is too low.
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

    /// Adds a marked stretch of the bottom axis, drawn under everything.
    #[must_use]
    pub fn span(mut self, span: Span) -> Self {
        self.spans.push(span);
        self
    }

    /// Adds a level to be compared with.
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

/// One axis. What is not said is found from the data.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Axis {
    label: String,
    from: Option<f64>,
    to: Option<f64>,
    logarithmic: bool,
    whole: bool,
    ticks: Option<Vec<f64>>,
}

impl Axis {
    /// Returns an axis; the label says what is counted, and in what.
    pub fn new(label: &str) -> Self {
        Axis { label: label.to_owned(), ..Axis::default() }
    }

    /// Begins it here.
    #[must_use]
    pub const fn from(mut self, value: f64) -> Self {
        self.from = Some(value);
        self
    }

    /// Ends it here; what lies beyond is cut off.
    #[must_use]
    pub const fn to(mut self, value: f64) -> Self {
        self.to = Some(value);
        self
    }

    /// Makes equal ratios equal distances. Values that are not above 0 are gaps.
    #[must_use]
    pub const fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    /// Has ticks at whole numbers only: for what is counted.
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
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Line,
    Steps,
    Dotted,
}

/// Points to be drawn in one colour, with a name at its end.
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

    /// Returns values that hold from their point until the next one.
    pub fn steps(name: &str, hue: Hue, points: Vec<(f64, f64)>) -> Self {
        Series { shape: Shape::Steps, ..Series::line(name, hue, points) }
    }

    /// Returns points with a dot at each, joined by straight lines: for measurements that stand
    /// apart.
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
    /// Returns the area between `(x, low, high)`; a row that is not all numbers is a gap.
    pub const fn new(hue: Hue, points: Vec<(f64, f64, f64)>) -> Self {
        Band { hue, points }
    }
}

/// A stretch of the bottom axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    from: f64,
    to: f64,
    label: String,
}

impl Span {
    /// Returns the stretch from `from` to `to`, with a few words at its top.
    pub fn new(from: f64, to: f64, label: &str) -> Self {
        Span { from, to, label: label.to_owned() }
    }
}

/// A level.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    value: f64,
    label: String,
    hue: Hue,
}

impl Rule {
    /// Returns a level with a name; one that is not a number is left out.
    pub fn new(value: f64, label: &str) -> Self {
        Rule { value, label: label.to_owned(), hue: Hue::Grey }
    }
}
