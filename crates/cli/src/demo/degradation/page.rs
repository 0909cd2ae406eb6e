//! The report: one page that contains all it needs and loads nothing from the network.

use super::outcome::{Act, Degraded, Front, HEADINGS, cells};
use crate::demo::seconds::smoothed;
use crate::numbers::{fine_time, rate, share};
use crate::page::{self, bars, both_widths, escape, half, section};
use suimon_chart::{Axis, Bars, Dress, Hue, Plot, Rule, Series, Size, Span};
use suimon_crowd::profile::Second;

/// Height of the axis ÷ the highest value, to leave room for text.
const HEADROOM: f64 = 1.25;

/// Returns the page.
pub(super) fn of(outcome: &Degraded) -> String {
    let mut page = String::with_capacity(64 * 1024);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, outcome);
    page
}

/// Returns the most important chart as a separate picture.
pub(super) fn picture(outcome: &Degraded) -> String {
    light(outcome, "Light jobs beside heavy ones, on one core").svg(Size::new(640.0, 400.0), Dress::Alone)
}

fn write_page(page: &mut String, outcome: &Degraded) -> std::fmt::Result {
    let title = if outcome.holds() { "Suimon held" } else { "Suimon did not hold" };
    page::begin(page, &format!("Suimon demo: {title}"), &headline(outcome), &outcome.verdict())?;
    section(
        page,
        "Light jobs",
        &format!(
            "{} clients ask for a short computation, {} for a file to be parsed, each again as soon as it has its response. \
             Mean over five seconds; the grey part is not measured.",
            outcome.light_clients, outcome.heavy_clients
        ),
        &both_widths(&light(outcome, "Light jobs")),
    )?;
    page.push_str("<div class=\"pair\">\n");
    section(page, "Heavy jobs", "What the light ones cost them.", &half(&heavy(outcome)))?;
    section(
        page,
        "How much each is slowed",
        "Response time \u{f7} that of one request alone.",
        &bars(&slowdowns(outcome)),
    )?;
    section(
        page,
        "The pause that holds it",
        "Suimon finds it, second by second: how long the heavy service rests after each of its jobs.",
        &half(&pauses(outcome)),
    )?;
    section(page, "What was wished", "All that Suimon was told.", &wishes(outcome))?;
    page.push_str("</div>\n");
    section(page, "All numbers", "", &numbers(outcome))?;
    section(page, "How this was measured", "", &method(outcome))?;
    page::end(page, outcome)
}

fn headline(outcome: &Degraded) -> String {
    let per_s = |front| rate(outcome.act(front).light.per_s);
    format!(
        "{} light jobs a second beside heavy ones, instead of {}",
        per_s(Front::Floor),
        per_s(Front::Nothing)
    )
}

const fn hue(front: Front) -> Hue {
    match front {
        Front::Nothing => Hue::Vermilion,
        Front::Ratio => Hue::Green,
        Front::Floor => Hue::Blue,
    }
}

fn light(outcome: &Degraded, title: &str) -> Plot {
    let floor = Rule::new(outcome.floor_per_s, &format!("floor {:.0}", outcome.floor_per_s));
    over_time(outcome, title, "light jobs per second", |second| second.light).rule(floor)
}

fn heavy(outcome: &Degraded) -> Plot {
    over_time(outcome, "Heavy jobs", "heavy jobs per second", |second| second.heavy)
}

/// Returns jobs per second of all acts over time.
fn over_time(outcome: &Degraded, title: &str, unit: &str, of: fn(&Second) -> u32) -> Plot {
    let lines = outcome.acts.each_ref().map(|act| measured(act, of));
    let highest = lines.iter().flatten().map(|(_, value)| *value).fold(1.0, f64::max);
    let plot = timeline(outcome, title, Axis::new(unit).from(0.0).to(highest * HEADROOM))
        .describe(&outcome.verdict())
        .span(Span::new(0.0, outcome.acts[0].measured_from_s, "start"));
    outcome
        .acts
        .iter()
        .zip(lines)
        .fold(plot, |plot, (act, line)| plot.series(Series::line(&outcome.title(act), hue(act.front), line)))
}

/// Returns jobs per second until the measuring ends.
fn measured(act: &Act, of: fn(&Second) -> u32) -> Vec<(f64, f64)> {
    let measured = act.series.iter().take(act.measured_to_s.floor() as usize);
    smoothed(&measured.map(|second| f64::from(of(second))).collect::<Vec<_>>())
}

fn pauses(outcome: &Degraded) -> Plot {
    let plot = timeline(outcome, "Pauses", Axis::new("seconds of pause after a heavy job").from(0.0))
        .describe("The pause of the heavy service over time.");
    outcome.acts.iter().filter(|act| act.settings.is_some()).fold(plot, |plot, act| {
        let line = act.pauses.iter().map(|pause| (pause.at_s, pause.seconds)).collect();
        plot.series(Series::line(&outcome.title(act), hue(act.front), line))
    })
}

fn timeline(outcome: &Degraded, title: &str, y: Axis) -> Plot {
    let end = outcome.acts.iter().map(|act| act.measured_to_s).fold(1.0, f64::max);
    Plot::new(title).x(Axis::new("seconds").from(0.0).to(end)).y(y)
}

fn slowdowns(outcome: &Degraded) -> Bars {
    let bars = Bars::new("Slowdown").unit("times").describe("Slowdown of both services in each act.");
    let bars = bars.group("light", Hue::Blue).group("heavy", Hue::Amber);
    outcome
        .acts
        .iter()
        .fold(bars, |bars, act| bars.row(&outcome.title(act), vec![act.light.slowdown, act.heavy.slowdown]))
}

fn wishes(outcome: &Degraded) -> String {
    let settings = |act: &Act| {
        let text = act.settings.as_deref()?;
        Some(format!(
            "<h3 class=\"drawn\">{}</h3>\n<pre>{}</pre>\n",
            escape(&outcome.title(act)),
            escape(text)
        ))
    };
    outcome.acts.iter().filter_map(settings).collect()
}

fn numbers(outcome: &Degraded) -> String {
    let rows = outcome.acts.iter().map(|act| (outcome.title(act), cells(act).to_vec()));
    page::table("laws", "", &HEADINGS, rows)
}

fn method(outcome: &Degraded) -> String {
    let [alone, ..] = &outcome.acts;
    format!(
        "<p>Load, gateway and Tomcat were processes of their own on one machine; {}. First each job by itself: a light one took {}, a heavy one {}; thirty clients got {} light \
         ones a second. The floor is {} of that. Slowdown: clients \u{f7} jobs a second, which is the response time of a closed loop, \u{f7} the time \
         alone, measured through what is in front just before each act.</p>\n\
         <p class=\"soft\">Suimon {}, {}. Again: <code>suimon demo --of degradation</code>; your own site: <code>suimon profile</code>. \
         All numbers are inside this page, as JSON, in the element <code>numbers</code>.</p>\n",
        escape(&outcome.cores),
        fine_time(alone.light.alone_s),
        fine_time(alone.heavy.alone_s),
        rate(outcome.light_most_per_s),
        share(outcome.floor_per_s / outcome.light_most_per_s),
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
            "1300 light jobs a second beside heavy ones, instead of 200",
            "Suimon held: heavy slowed 1.96 times",
            "floor 1200/s",
            "mode = \"slowdown\"",
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
        for act in &mut empty.acts {
            act.series.clear();
            act.pauses.clear();
        }
        assert!(picture(&empty).contains("nothing was measured"));
        assert!(!of(&empty).contains("NaN"));
    }
}
