//! Draws a plot as SVG text.

use super::{Axis, Plot, Series, Shape};
use crate::labels::{self, LEADING, TEXT};
use crate::style::STYLE;
use crate::svg::{Anchor, Svg};
use crate::{Dress, Size, ticks};

/// Distance between a tick and its number.
const GAP: f64 = 8.0;
/// Distance between the drawing and the names beside it.
const NAME_GAP: f64 = 10.0;
/// Largest share of the width for the names beside the lines.
const NAMES_SHARE_MAX: f64 = 0.32;
/// Margin of the clipped drawing, so that lines on its edge keep their whole width.
const BLEED: f64 = 4.0;

/// Distance between two remarks' base lines.
const REMARK_LEADING: f64 = 20.0;

type Points = Vec<(f64, f64)>;

/// An axis with all values derived, and its place in the figure.
struct Scale {
    from: f64,
    to: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
    words: Vec<(f64, String)>,
    start: f64,
    length: f64,
}

impl Scale {
    /// Returns the value's coordinate, or `None` if this axis has no place for it.
    fn place(&self, value: f64) -> Option<f64> {
        let share = if self.logarithmic {
            if value <= 0.0 {
                return None;
            }
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        // Values are clamped at a million lengths away: nobody sees them, and SVG's numbers could
        // not hold them.
        share.is_finite().then(|| self.start + self.length * share.clamp(-1e6, 1e6))
    }

    /// Returns the ticks with their text.
    fn labelled(&self) -> Vec<(f64, String)> {
        let apart = self.ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let text = |tick: f64| {
            if let Some((_, word)) = self.words.iter().find(|(at, _)| at.total_cmp(&tick).is_eq()) {
                return word.clone();
            }
            // Each power of ten shows its own digits; on an even scale all show the same.
            let distance = if self.logarithmic || !apart.is_finite() { tick.abs().min(1.0) } else { apart };
            ticks::label(tick, distance)
        };
        self.ticks.iter().filter_map(|tick| Some((self.place(*tick)?, text(*tick)))).collect()
    }
}

/// A name beside the drawing.
struct Name<'a> {
    class: &'static str,
    text: &'a str,
    /// Where its line ends.
    end: (f64, f64),
}

pub(super) fn draw(plot: &Plot, size: Size, dress: Dress) -> String {
    let alone = dress == Dress::Alone;
    let mut svg = Svg::begin(size.width, size.height, &plot.title, &plot.description, alone.then_some(STYLE));
    let margin = if alone { 20.0 } else { 2.0 };
    let mut top = if alone { margin + 4.0 } else { 0.0 };
    if alone {
        svg.text(
            "title",
            (margin, top + 12.0),
            Anchor::Start,
            &labels::fitted(&plot.title, size.width * 0.8),
        );
        top += 28.0;
    }
    // The lowest figure has no room for remarks.
    let room = ((size.height - Size::HEIGHT_MIN) / REMARK_LEADING) as usize;
    for (hue, words) in plot.remarks.iter().take(room) {
        let words = labels::fitted_bold(words, size.width - 2.0 * margin);
        svg.text(&format!("name {}", hue.class()), (margin, top + TEXT), Anchor::Start, &words);
        top += REMARK_LEADING;
    }
    if room > 0 && !plot.remarks.is_empty() {
        top += 6.0;
    }
    if !plot.y.label.is_empty() {
        svg.text("", (margin, top + TEXT), Anchor::Start, &plot.y.label);
    }
    top += LEADING + 10.0;
    let bottom = size.height - margin - TEXT - GAP - if plot.x.label.is_empty() { 0.0 } else { LEADING };

    let y = scale(&plot.y, y_values(plot), bottom, top - bottom, ((bottom - top) / 45.0) as usize, true);
    let numbers = y.labelled();
    let left = margin + numbers.iter().map(|(_, text)| labels::width(text)).fold(0.0, f64::max) + GAP;
    let room = size.width * NAMES_SHARE_MAX;
    let widest = names_of(plot).map(labels::bold_width).fold(0.0, f64::max).min(room);
    let right = size.width - margin - if widest > 0.0 { widest + NAME_GAP } else { 8.0 };
    let x = scale(&plot.x, x_values(plot), left, right - left, ((right - left) / 70.0) as usize, false);

    for (place, text) in &numbers {
        let class = if (place - bottom).abs() < 0.5 { "axis" } else { "grid" };
        svg.line(class, (left, *place), (right, *place));
        svg.text("", (left - GAP, place + TEXT * 0.36), Anchor::End, text);
    }
    for (place, text) in x.labelled() {
        svg.line("axis", (place, bottom), (place, bottom + 4.0));
        svg.text("", (place, bottom + 4.0 + GAP + TEXT * 0.6), Anchor::Middle, &text);
    }
    if !plot.x.label.is_empty() {
        svg.text("", (right, bottom + 4.0 + GAP + TEXT * 0.6 + LEADING), Anchor::End, &plot.x.label);
    }

    let frame = Frame { left, right, top, bottom, x: &x, y: &y };
    let above = BLEED + plot.series.iter().map(|series| series.raised).fold(0.0, f64::max).min(top);
    svg.begin_window((left - BLEED, top - above), (right - left + 2.0 * BLEED, bottom - top + above + BLEED));
    frame.spans(plot, &mut svg);
    frame.bands(plot, &mut svg);
    let names = frame.lines(plot, &mut svg);
    svg.end_window();
    if plot.series.is_empty() || plot.series.iter().all(|series| frame.pieces(&series.points).is_empty()) {
        svg.text("", ((left + right) / 2.0, (top + bottom) / 2.0), Anchor::Middle, "nothing was measured");
    }
    frame.names(&names, widest, &mut svg);
    svg.end()
}

/// The drawing's place and its axes.
struct Frame<'a> {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: &'a Scale,
    y: &'a Scale,
}

impl Frame<'_> {
    fn spans(&self, plot: &Plot, svg: &mut Svg) {
        for span in &plot.spans {
            let (Some(from), Some(to)) = (self.x.place(span.from), self.x.place(span.to)) else {
                continue;
            };
            let (from, to) = (from.min(to).max(self.left), from.max(to).min(self.right));
            if to > from {
                svg.rect("span", (from, self.top), (to - from, self.bottom - self.top), 0.0, "");
                let room = to - from - 12.0;
                if labels::width(&span.label) <= room {
                    svg.text("", (from + 6.0, self.top + TEXT + 2.0), Anchor::Start, &span.label);
                }
            }
        }
    }

    fn bands(&self, plot: &Plot, svg: &mut Svg) {
        for band in &plot.bands {
            let place = |(x, low, high): &(f64, f64, f64)| {
                Some((self.x.place(*x)?, self.y.place(*low)?, self.y.place(*high)?))
            };
            let areas: Vec<Points> = band
                .points
                .split(|point| place(point).is_none())
                .map(|run| {
                    let run: Vec<_> = run.iter().filter_map(place).collect();
                    let above = run.iter().map(|(x, _, high)| (*x, *high));
                    above.chain(run.iter().rev().map(|(x, low, _)| (*x, *low))).collect()
                })
                .collect();
            svg.path(&format!("band {}", band.hue.class()), &areas, true);
        }
    }

    /// Draws rules and series; returns the names to be written beside them.
    fn lines<'a>(&self, plot: &'a Plot, svg: &mut Svg) -> Vec<Name<'a>> {
        let mut names = Vec::new();
        for rule in &plot.rules {
            let Some(place) = self.y.place(rule.value) else { continue };
            svg.line(&format!("rule {}", rule.hue.class()), (self.left, place), (self.right, place));
            names.push(Name { class: rule.hue.class(), text: &rule.label, end: (self.right, place) });
        }
        for series in &plot.series {
            let mut pieces = self.pieces(&series.points);
            if series.shape == Shape::Steps {
                pieces.iter_mut().for_each(|piece| *piece = stairs(piece));
            }
            pieces.iter_mut().flatten().for_each(|point| point.1 -= series.raised);
            let weight = if series.faint { "faint" } else { "line" };
            let dashed = if series.dashed { " dashed" } else { "" };
            svg.path(&format!("{weight}{dashed} {}", series.hue.class()), &pieces, false);
            if series.shape == Shape::Dotted {
                let class = format!("dot {}", series.hue.class());
                pieces.iter().flatten().for_each(|point| svg.circle(&class, *point, 4.0));
            }
            let end = pieces.last().and_then(|piece| piece.last());
            if let (Some(end), false) = (end, series.faint) {
                names.push(Name { class: series.hue.class(), text: &series.name, end: *end });
            }
        }
        names
    }

    fn names(&self, names: &[Name<'_>], room: f64, svg: &mut Svg) {
        // A base line lies below the middle of its letters.
        let drop = TEXT * 0.36;
        let wanted: Vec<f64> =
            names.iter().map(|name| name.end.1.clamp(self.top, self.bottom) + drop).collect();
        let places = labels::spread(&wanted, self.top + drop, self.bottom + drop);
        for ((name, wanted), place) in names.iter().zip(wanted).zip(places) {
            if name.text.is_empty() {
                continue;
            }
            if (place - wanted).abs() > 2.0 && name.end.0 > self.right - 1.0 {
                let class = format!("lead {}", name.class);
                svg.line(
                    &class,
                    (self.right + 1.0, wanted - drop),
                    (self.right + NAME_GAP - 3.0, place - drop),
                );
            }
            let class = format!("name {}", name.class);
            svg.text(
                &class,
                (self.right + NAME_GAP, place),
                Anchor::Start,
                &labels::fitted_bold(name.text, room),
            );
        }
    }

    /// Returns the coordinates of the points, in pieces between the gaps.
    fn pieces(&self, points: &[(f64, f64)]) -> Vec<Points> {
        let place = |(x, y): &(f64, f64)| Some((self.x.place(*x)?, self.y.place(*y)?));
        let thinned = thinned(points);
        let runs = thinned.split(|point| place(point).is_none());
        runs.map(|run| run.iter().filter_map(place).collect::<Points>())
            .filter(|piece| !piece.is_empty())
            .collect()
    }
}

/// Returns the points of a line that keeps each value until the next.
fn stairs(points: &[(f64, f64)]) -> Points {
    let mut stairs = Points::with_capacity(points.len() * 2);
    for point in points {
        if let Some((_, before)) = stairs.last().copied() {
            stairs.push((point.0, before));
        }
        stairs.push(*point);
    }
    stairs
}

/// Returns the points. Of more than `POINTS_MAX`, only the lowest and highest of each small run are
/// kept, in order. Gaps stay.
fn thinned(points: &[(f64, f64)]) -> Points {
    if points.len() <= Plot::POINTS_MAX {
        return points.to_vec();
    }
    let run = points.len().div_ceil(Plot::POINTS_MAX / 2);
    let mut kept = Points::with_capacity(Plot::POINTS_MAX);
    for run in points.chunks(run) {
        if let Some(gap) = run.iter().find(|point| !(point.0.is_finite() && point.1.is_finite())) {
            kept.push(*gap);
            continue;
        }
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (low, high) = (run.iter().min_by(by_height), run.iter().max_by(by_height));
        let mut ends: Points = low.into_iter().chain(high).copied().collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        kept.extend(ends);
    }
    kept
}

fn names_of(plot: &Plot) -> impl Iterator<Item = &str> {
    let series = plot.series.iter().filter(|series| !series.faint).map(|series| series.name.as_str());
    series.chain(plot.rules.iter().map(|rule| rule.label.as_str()))
}

fn x_values(plot: &Plot) -> Vec<f64> {
    let series = plot.series.iter().flat_map(|series| points(series).map(|point| point.0));
    let bands = plot.bands.iter().flat_map(|band| band.points.iter().map(|point| point.0));
    series.chain(bands).collect()
}

fn y_values(plot: &Plot) -> Vec<f64> {
    let series = plot.series.iter().flat_map(|series| points(series).map(|point| point.1));
    let bands = plot.bands.iter().flat_map(|band| band.points.iter().flat_map(|point| [point.1, point.2]));
    series.chain(bands).chain(plot.rules.iter().map(|rule| rule.value)).collect()
}

/// Returns the points that can be drawn.
fn points(series: &Series) -> impl Iterator<Item = (f64, f64)> + '_ {
    series.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
}

/// Returns the axis for these values, `length` long from `start`. `airy`: its ends are round
/// numbers.
fn scale(axis: &Axis, values: Vec<f64>, start: f64, length: f64, wanted: usize, airy: bool) -> Scale {
    let drawable = |value: &f64| value.is_finite() && (!axis.logarithmic || *value > 0.0);
    let given = |end: Option<f64>| end.filter(drawable);
    let mut values: Vec<f64> = values.into_iter().filter(drawable).collect();
    values.extend(given(axis.from).into_iter().chain(given(axis.to)));
    let mut from = given(axis.from).unwrap_or_else(|| values.iter().copied().fold(f64::INFINITY, f64::min));
    let mut to = given(axis.to).unwrap_or_else(|| values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    if !from.is_finite() || !to.is_finite() {
        (from, to) = if axis.logarithmic { (1.0, 10.0) } else { (0.0, 1.0) };
    }
    if to <= from {
        // With one value only, leave room around it.
        to = if axis.logarithmic { from * 10.0 } else { from + if from == 0.0 { 1.0 } else { from.abs() } };
    }
    let wanted = if axis.whole { wanted.min((to - from).ceil() as usize) } else { wanted }
        .max(if axis.whole { 1 } else { 2 });
    if airy && !axis.logarithmic {
        let round = ticks::rounded_out(from, to, wanted);
        (from, to) = (given(axis.from).unwrap_or(round.0), given(axis.to).unwrap_or(round.1));
        if to <= from {
            to = round.1.max(from + 1.0);
        }
    }
    let suits = |tick: &f64| !axis.whole || tick.fract() == 0.0;
    let inside = |tick: &f64| drawable(tick) && suits(tick) && *tick >= from - 1e-9 && *tick <= to + 1e-9;
    let ticks = match &axis.ticks {
        Some(given) => given.iter().copied().filter(inside).collect(),
        None if axis.logarithmic => ticks::logarithmic(from, to, wanted.max(6)),
        None => ticks::linear(from, to, wanted).into_iter().filter(suits).collect(),
    };
    Scale { from, to, logarithmic: axis.logarithmic, ticks, words: axis.words.clone(), start, length }
}
