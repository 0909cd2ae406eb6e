//! What all of our HTML pages share: a page that carries all it needs and asks nothing of anybody.

use serde::Serialize;
use std::fmt::{Result, Write as _};
use suimon_chart::{Bars, Dress, Plot, STYLE, Size};

const PAGE_STYLE: &str = include_str!("page/style.css");
/// A gate that lets a little water through.
const MARK: &str = include_str!("page/mark.svg");

/// A figure over the whole width, and what it becomes on a narrow screen.
const WIDE: Size = Size::new(960.0, 340.0);
const NARROW: Size = Size::new(390.0, 290.0);
/// A figure beside another.
const HALF: Size = Size::new(460.0, 290.0);

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

/// Writes everything after the last section; `numbers` stay inside the page, for readers who want
/// them.
pub(crate) fn end(page: &mut String, numbers: &impl Serialize) -> Result {
    writeln!(
        page,
        "</main>\n<script type=\"application/json\" id=\"numbers\">{}</script>\n</body>\n</html>",
        embedded(numbers)
    )
}

/// Writes a section; title, words and what is inside are HTML.
pub(crate) fn section(page: &mut String, title: &str, words: &str, inside: &str) -> Result {
    writeln!(page, "<section>\n<h2>{title}</h2>")?;
    if !words.is_empty() {
        writeln!(page, "<p class=\"soft\">{words}</p>")?;
    }
    writeln!(page, "{inside}</section>")
}

/// Returns a figure over the whole width. Text in a figure keeps its size, so there is one for each
/// width.
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

/// Returns the text as it is written in HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the numbers as JSON that cannot end the element it stands in.
fn embedded(numbers: &impl Serialize) -> String {
    serde_json::to_string(numbers).unwrap_or_else(|_| "null".to_owned()).replace('<', "\\u003c")
}
