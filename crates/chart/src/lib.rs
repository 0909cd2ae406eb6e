//! Charts as SVG text: drawn from numbers, without a clock, a file or a dependency.
//!
//! A figure works in light and dark mode, on a page and as a separate file. Series have their names
//! at their ends, so that a reader need not look up a colour. Colour-blind readers can tell the
//! colours apart. A value that is not a number is a gap.
//!
//! ```
//! use suimon_chart::{Axis, Dress, Hue, Plot, Rule, Series, Size};
//!
//! let svg = Plot::new("Sessions completed")
//!     .x(Axis::new("seconds"))
//!     .y(Axis::new("sessions per second").from(0.0))
//!     .series(Series::line("with Suimon", Hue::Blue, vec![(0.0, 0.0), (10.0, 6.1), (20.0, 6.3)]))
//!     .rule(Rule::new(6.6, "bound"))
//!     .svg(Size::new(900.0, 320.0), Dress::Alone);
//! assert!(svg.starts_with("<svg"));
//! ```
//!
//! Map: [`Plot`] lines, steps, bands, rules over two axes; [`Bars`] bars by name; [`ticks`] round
//! numbers for an axis; [`STYLE`] the colours; `labels` names that do not overlap; `svg` the text
//! itself.

mod bars;
mod labels;
mod plot;
mod style;
mod svg;
pub mod ticks;

pub use bars::Bars;
pub use plot::{Axis, Band, Plot, Rule, Series, Span};
pub use style::{Hue, STYLE};

/// Size of a figure, in CSS pixels. Text has the same size in every figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Size {
    /// Width; at least [`Size::WIDTH_MIN`].
    pub width: f64,
    /// Height; at least [`Size::HEIGHT_MIN`].
    pub height: f64,
}

impl Size {
    /// Narrower figures have no room for an axis and a name.
    pub const WIDTH_MIN: f64 = 240.0;
    /// Lower figures have no room for an axis.
    pub const HEIGHT_MIN: f64 = 160.0;

    /// Returns a size that is at least the smallest one. A value that is not a number becomes the
    /// smallest.
    pub const fn new(width: f64, height: f64) -> Self {
        Size { width: width.max(Size::WIDTH_MIN), height: height.max(Size::HEIGHT_MIN) }
    }
}

/// Where a figure will be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dress {
    /// Inside an HTML page that has [`STYLE`] and a heading of its own.
    Page,
    /// In a file of its own, with its style, background and title.
    Alone,
}
