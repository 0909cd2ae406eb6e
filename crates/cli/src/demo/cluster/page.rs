//! The report: one page that contains all it needs and loads nothing from the network.

use super::outcome::{Clustered, HEADINGS, Sample, rows};
use crate::demo::seconds::{MEAN_OVER_S, smoothed};
use crate::numbers::{plural, rate};
use crate::page::{self, both_widths, escape, half, section};
use suimon_chart::{Axis, Dress, Hue, Plot, Series, Size, Span};

/// Looks at the nodes before and after one that its mean is over: about a second each.
const BUSY_OVER: usize = 10;
/// Height of the axis ÷ the highest value, to leave room for text.
const HEADROOM: f64 = 1.3;

/// Returns the page.
pub(super) fn of(outcome: &Clustered) -> String {
    let mut page = String::with_capacity(64 * 1024);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, outcome);
    page
}

/// Returns the most important chart as a separate picture.
pub(super) fn picture(outcome: &Clustered) -> String {
    nodes(outcome, "Nodes come and go with the load").svg(Size::new(640.0, 400.0), Dress::Alone)
}

fn write_page(page: &mut String, outcome: &Clustered) -> std::fmt::Result {
    let title = if outcome.holds() { "Suimon held" } else { "Suimon did not hold" };
    let [before, rush, end] = outcome.nodes();
    let headline =
        format!("{}, {rush} in the rush, {end} afterwards", plural(before.into(), "node", "nodes"));
    page::begin(page, &format!("Suimon demo: {title}"), &headline, &outcome.verdict())?;
    section(
        page,
        "Nodes",
        "Serving nodes over time, and how many of them are kept busy. The grey part is the rush: three times as many visitors.",
        &both_widths(&nodes(outcome, "Nodes")),
    )?;
    section(
        page,
        "Sessions",
        &format!("Finished per second, mean over {MEAN_OVER_S} seconds, and what was asked for."),
        &both_widths(&sessions(outcome)),
    )?;
    page.push_str("<div class=\"pair\">\n");
    section(
        page,
        "Where visitors are",
        "Those in line are work to come: nodes are started for them, too.",
        &half(&visitors(outcome)),
    )?;
    section(
        page,
        "What was set",
        "All that Suimon was told.",
        &format!("<pre>{}</pre>\n", escape(&outcome.settings)),
    )?;
    page.push_str("</div>\n");
    section(page, "All numbers", "", &numbers(outcome))?;
    section(page, "How this was measured", "", &method(outcome))?;
    page::end(page, outcome)
}

fn nodes(outcome: &Clustered, title: &str) -> Plot {
    let most = outcome.samples.iter().map(|sample| sample.serving.max(sample.wanted)).max().unwrap_or(1);
    let axis = Axis::new("nodes").from(0.0).to(f64::from(most) * HEADROOM).whole();
    let mut plot = timeline(outcome, title, axis)
        .describe(&outcome.verdict())
        .series(Series::steps("serve", Hue::Blue, over_time(outcome, |sample| f64::from(sample.serving))))
        .series(Series::line("kept busy", Hue::Green, busy(outcome)));
    if let Some(at) = outcome.killed_at_s {
        let top = f64::from(most) * HEADROOM;
        plot = plot.series(Series::line("a node is killed", Hue::Vermilion, vec![(at, 0.0), (at, top)]));
    }
    plot
}

/// Returns how many nodes are kept busy, each the mean over the looks around it: CPU time is counted in
/// hundredths of a second, which is much of what a node takes.
fn busy(outcome: &Clustered) -> Vec<(f64, f64)> {
    let around = |(at, sample): (usize, &Sample)| {
        let from = at.saturating_sub(BUSY_OVER);
        let some = &outcome.samples[from..(at + BUSY_OVER + 1).min(outcome.samples.len())];
        let known: Vec<f64> = some.iter().filter_map(|sample| sample.busy).collect();
        (sample.at_s, if known.is_empty() { f64::NAN } else { suimon_statistics::mean(&known) })
    };
    outcome.samples.iter().enumerate().map(around).collect()
}

fn sessions(outcome: &Clustered) -> Plot {
    let completed = outcome.visitors.series.iter().map(|second| f64::from(second.completed));
    let finished = smoothed(&completed.take(outcome.seconds as usize).collect::<Vec<_>>());
    let mut asked = Vec::new();
    let mut at = 0.0;
    for (lasts, per_s) in &outcome.phases {
        asked.extend([(at, *per_s), (at + lasts, *per_s)]);
        at += lasts;
    }
    let most = asked.iter().chain(&finished).map(|(_, value)| *value).fold(1.0, f64::max);
    timeline(outcome, "Sessions", Axis::new("sessions per second").from(0.0).to(most * HEADROOM))
        .describe("Sessions asked for and finished per second.")
        .series(Series::line("asked for", Hue::Grey, asked))
        .series(Series::line("finished", Hue::Blue, finished))
}

fn visitors(outcome: &Clustered) -> Plot {
    timeline(outcome, "Visitors", Axis::new("visitors").from(0.0).whole())
        .describe("Visitors in line, requests waiting for a node and at nodes.")
        .series(Series::line("in line", Hue::Amber, over_time(outcome, |sample| sample.in_line as f64)))
        .series(Series::line("queued inside", Hue::Purple, over_time(outcome, |sample| sample.queued as f64)))
        .series(Series::line("at nodes", Hue::Green, over_time(outcome, |sample| sample.in_flight as f64)))
}

fn timeline(outcome: &Clustered, title: &str, y: Axis) -> Plot {
    let plot = Plot::new(title).x(Axis::new("seconds").from(0.0).to(f64::from(outcome.seconds))).y(y);
    match outcome.ends()[..] {
        [from, to, ..] => plot.span(Span::new(from, to, "three times as many")),
        _ => plot,
    }
}

fn over_time(outcome: &Clustered, of: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    outcome.samples.iter().map(|sample| (sample.at_s, of(sample))).collect()
}

fn numbers(outcome: &Clustered) -> String {
    let row = |[name, cells @ ..]: [String; 6]| (name, cells.to_vec());
    page::table("laws", "", &HEADINGS[1..], rows(outcome).into_iter().map(row))
}

fn method(outcome: &Clustered) -> String {
    format!(
        "<p>Visitors, gateway and nodes were processes of one machine; {}. A node sleeps for most of the time that a request takes, and serves about \
         {} sessions a second; how many are needed, and when, nobody has said. The gateway starts and ends them as it would on any host; \
         how busy they are it reads from their CPU time.</p>\n\
         <p class=\"soft\">Suimon {}, {}. Again: <code>suimon demo --of cluster</code>. \
         All numbers are inside this page, as JSON, in the element <code>numbers</code>.</p>\n",
        escape(&outcome.cores),
        rate(outcome.node_sessions_per_s),
        outcome.version,
        escape(&outcome.began),
    )
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn the_page_tells_how_it_went_and_asks_nothing_of_anybody() {
        let page = of(&outcome());
        for text in [
            "2 nodes, 6 in the rush, 2 afterwards",
            "Suimon held",
            "provider = \"processes\"",
            "a node is killed",
        ] {
            assert!(page.contains(&escape(text)) || page.contains(text), "{text}");
        }
        for outside in ["src=", "href=", "@import", "url(", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("NaN") && !page.contains(">inf"));
    }

    #[test]
    fn a_run_of_nothing_is_drawn_too() {
        let mut empty = outcome();
        empty.samples.clear();
        empty.killed_at_s = None;
        empty.visitors.series.clear();
        assert!(picture(&empty).contains("nothing was measured"));
        assert!(!of(&empty).contains("NaN"));
    }
}
