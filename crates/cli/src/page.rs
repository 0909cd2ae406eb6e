//! The common parts of our HTML pages. A page contains all it needs and loads nothing from the
//! network.

use serde::Serialize;
use std::fmt::{Result, Write as _};
use suimon_chart::{Axis, Bars, Dress, Hue, Plot, STYLE, Series, Size};

const PAGE_STYLE: &str = include_str!("page/style.css");
/// The logo: a gate that lets a little water through.
const MARK: &str = include_str!("page/mark.svg");

/// Size of a figure over the whole width, and its size on a narrow screen.
const WIDE: Size = Size::new(960.0, 340.0);
const NARROW: Size = Size::new(390.0, 290.0);
/// A figure beside another.
const HALF: Size = Size::new(460.0, 290.0);

/// Most lines of routes, kinds or steps in one figure, the busiest first. Readers could not tell
/// more lines than colours apart.
pub(crate) const LINES_MAX: usize = 5;
/// Their colours; vermilion stands for a run without Suimon, or for another law.
pub(crate) const LINE_HUES: [Hue; LINES_MAX] = [Hue::Blue, Hue::Green, Hue::Purple, Hue::Amber, Hue::Grey];
/// Distance between lines of equal values, pixels.
const BESIDE: f64 = 3.0;

/// Writes everything before the first section.
pub(crate) fn begin(page: &mut String, title: &str, headline: &str, lead: &str) -> Result {
    writeln!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>\n{STYLE}{PAGE_STYLE}</style>\n</head>\n<body>\n<main>",
        escape(title)
    )?;
    writeln!(
        page,
        "<header>\n<p class=\"mark\">{MARK}<span>Suimon</span></p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n</header>",
        escape(headline),
        escape(lead)
    )
}

/// Writes everything after the last section. The page contains `numbers` as JSON for readers who
/// want them.
pub(crate) fn end(page: &mut String, numbers: &impl Serialize) -> Result {
    writeln!(
        page,
        "</main>\n<script type=\"application/json\" id=\"numbers\">{}</script>\n</body>\n</html>",
        embedded(numbers)
    )
}

/// Writes a section; `title`, `words` and `inside` are HTML.
pub(crate) fn section(page: &mut String, title: &str, words: &str, inside: &str) -> Result {
    writeln!(page, "<section>\n<h2>{title}</h2>")?;
    if !words.is_empty() {
        writeln!(page, "<p class=\"soft\">{words}</p>")?;
    }
    writeln!(page, "{inside}</section>")
}

/// Returns a figure over the whole width. It is drawn once for each width, because text does not
/// scale with a figure.
pub(crate) fn both_widths(plot: &Plot) -> String {
    format!(
        "<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n",
        plot.svg(WIDE, Dress::Page),
        plot.svg(NARROW, Dress::Page)
    )
}

/// Returns a figure that stands beside another.
pub(crate) fn half(plot: &Plot) -> String {
    format!("<div class=\"figure\">{}</div>\n", plot.svg(HALF, Dress::Page))
}

/// Returns bars that stand beside another figure.
pub(crate) fn bars(bars: &Bars) -> String {
    format!("<div class=\"figure\">{}</div>\n", bars.svg(HALF.width, Dress::Page))
}

/// Returns the limits of the first [`LINES_MAX`] routes over time; `plot` makes the plot from the
/// y-axis. Limits are often equal, so their lines are drawn side by side.
pub(crate) fn limits(plot: impl FnOnce(Axis) -> Plot, routes: &[(&str, Vec<(f64, f64)>)]) -> Plot {
    let routes = &routes[..routes.len().min(LINES_MAX)];
    let all = routes.iter().flat_map(|(_, points)| points).map(|(_, limit)| *limit);
    // One more than the highest limit, for raised lines; 2 if there is no limit.
    let highest = all.fold(1.0, f64::max) + 1.0;
    let axis = Axis::new("requests of a route in the application at once").from(0.0).to(highest).whole();
    let plot = plot(axis).describe("How many requests of each route may be in the application at once.");
    routes.iter().enumerate().fold(plot, |plot, (index, (name, points))| {
        plot.series(Series::steps(name, LINE_HUES[index], points.clone()).raised(index as f64 * BESIDE))
    })
}

/// Returns a table of texts: each row has its name, and a cell for each heading. `corner` is the heading of
/// the names. On narrow screens each number becomes a line with its heading.
pub(crate) fn table(
    class: &str,
    corner: &str,
    headings: &[&str],
    rows: impl IntoIterator<Item = (String, Vec<String>)>,
) -> String {
    let head: String = headings.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    let row = |(name, cells): (String, Vec<String>)| {
        let cells: String = headings
            .iter()
            .zip(cells)
            .map(|(heading, cell)| format!("<td data-name=\"{heading}\">{}</td>", escape(&cell)))
            .collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&name))
    };
    let rows: String = rows.into_iter().map(row).collect();
    format!(
        "<table class=\"{class}\">\n<thead><tr><th scope=\"col\">{corner}</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    )
}

/// Returns the text escaped for HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the numbers as JSON that cannot end the element around it.
fn embedded(numbers: &impl Serialize) -> String {
    serde_json::to_string(numbers).unwrap_or_else(|_| "null".to_owned()).replace('<', "\\u003c")
}
