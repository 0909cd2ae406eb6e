//! Writes one figure of each kind into a folder, to be looked at: `cargo run -p suimon-chart
//! --example gallery -- FOLDER`.

use std::path::Path;
use suimon_chart::{Axis, Band, Bars, Dress, Hue, Plot, Rule, Series, Size, Span};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = Path::new(&folder);
    std::fs::write(folder.join("lines.svg"), lines().svg(Size::new(900.0, 340.0), Dress::Alone))?;
    std::fs::write(folder.join("lines-narrow.svg"), lines().svg(Size::new(390.0, 300.0), Dress::Alone))?;
    std::fs::write(folder.join("steps.svg"), steps().svg(Size::new(900.0, 300.0), Dress::Alone))?;
    std::fs::write(folder.join("by-users.svg"), by_users().svg(Size::new(700.0, 380.0), Dress::Alone))?;
    std::fs::write(folder.join("bars.svg"), bars().svg(700.0, Dress::Alone))?;
    std::fs::write(folder.join("stacked.svg"), bars().stacked().svg(390.0, Dress::Alone))
}

/// A made-up run: a rise to the bound, and a collapse.
fn lines() -> Plot {
    let wave = |second: u32| f64::from(second * 37 % 11) / 11.0 - 0.5;
    let with = |second: u32| (f64::from(second) * 0.9).min(6.2) + wave(second) * 0.6;
    let without = |second: u32| (f64::from(second) * 0.8).min(4.0) * (-f64::from(second) / 14.0).exp() + 0.1;
    let of = |value: &dyn Fn(u32) -> f64| {
        (0..40).map(|second| (f64::from(second), value(second).max(0.0))).collect()
    };
    let band = (0..40).map(|second| (f64::from(second), with(second) - 0.8, with(second) + 0.8)).collect();
    Plot::new("Sessions completed")
        .x(Axis::new("seconds"))
        .y(Axis::new("sessions per second").from(0.0))
        .span(Span::new(0.0, 8.0, "warming up"))
        .band(Band::new(Hue::Blue, band))
        .series(Series::line("without", Hue::Vermilion, of(&without)))
        .series(Series::line("with Suimon", Hue::Blue, of(&with)))
        .rule(Rule::new(6.6, "bound 6.6"))
}

fn steps() -> Plot {
    let of =
        |every: u32, most: u32| (0..60).map(|s| (f64::from(s), f64::from((s / every) % most + 1))).collect();
    Plot::new("Limits")
        .x(Axis::new("seconds"))
        .y(Axis::new("requests at once").from(0.0))
        .series(Series::steps("GET /search", Hue::Blue, of(7, 4)))
        .series(Series::steps("GET /browse", Hue::Green, of(11, 3)))
        .series(Series::steps("POST /checkout/{id}/payment/confirmation/of/it", Hue::Purple, of(13, 3)))
}

fn by_users() -> Plot {
    let users = [25.0, 50.0, 100.0, 200.0, 400.0];
    let of = |values: [f64; 5]| users.into_iter().zip(values).collect();
    Plot::new("Share of the bound, by users")
        .x(Axis::new("users").logarithmic().ticks(users.to_vec()))
        .y(Axis::new("share of the bound").from(0.0).to(1.0))
        .series(Series::dotted("Suimon", Hue::Blue, of([0.8, 0.93, 0.92, 0.91, 0.9])))
        .series(Series::dotted("HAProxy", Hue::Green, of([0.8, 0.9, 0.7, 0.4, 0.2])))
        .series(Series::dotted("static", Hue::Amber, of([0.7, 0.69, 0.68, 0.66, 0.64])).dashed())
        .series(Series::dotted("none", Hue::Vermilion, of([0.7, 0.4, 0.1, 0.02, 0.0])))
}

fn bars() -> Bars {
    Bars::new("Failures by step")
        .unit("failures")
        .group("without", Hue::Vermilion)
        .group("with Suimon", Hue::Blue)
        .row("login", vec![120.0, 0.0])
        .row("browse-1", vec![64.0, 0.0])
        .row("search", vec![1731.0, 3.0])
        .row("buy", vec![12.0, f64::NAN])
}
