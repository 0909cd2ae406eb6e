//! The part of the `README.md` that is written from the data, so that it cannot become outdated.

use std::fmt::Write as _;

use suimon_statistics::quantile;

use super::data::{Content, Data, Point, Tried};
use super::method::Method;
use super::table::{Figure, Shows};
use super::view::{Seen, View, count, rate};
use crate::claims::{self, Claim};

/// Numbers of clients in the text.
pub(super) const TOLD: [u32; 4] = [25, 100, 200, 400];
/// The least share of the best other method that Suimon must reach.
const SHARE_MIN: f64 = 0.95;
/// The command writes the text between these two lines.
const BEGIN: &str = "<!-- Written by ./experiments/run sqs. -->";
const END: &str = "<!-- As far as here. -->";
/// Columns of the table, after the figure and what it shows.
const METHODS: [Method; 6] =
    [Method::Suimon, Method::Sqs, Method::SqsAsSet, Method::PageOnly, Method::SessionOnly, Method::None];

/// The text about one figure.
pub(super) struct Told {
    /// Its row in the table.
    pub(super) row: String,
    /// What agrees with the paper, and what does not.
    pub(super) finding: String,
    /// Settings that were tried; empty if there were none.
    tried: String,
    pub(super) claims: Vec<Claim>,
    name: &'static str,
}

impl Told {
    pub(super) fn new(figure: &Figure, data: &Data) -> Told {
        let view = View { data, world: figure.world };
        Told {
            row: row(figure, &view),
            finding: against_the_paper(figure, &view),
            tried: tried(figure, data),
            claims: claims(figure, data),
            name: figure.name,
        }
    }
}

/// Returns `readme` with a new table. `foretold`: how good the predictions for the real shop were.
pub(super) fn text(readme: &str, told: &[Told], foretold: &[Claim]) -> String {
    let (before, after) = match (readme.split_once(BEGIN), readme.split_once(END)) {
        (Some((before, _)), Some((_, after))) => (before, after),
        _ => ("", "\n"),
    };
    let sizes = TOLD.map(|size| size.to_string()).join(" · ");
    let all = |of: fn(&Told) -> &String| told.iter().map(of).map(String::as_str).collect::<String>();
    let claims: Vec<Claim> = told
        .iter()
        .flat_map(|one| one.claims.iter().map(|claim| (one.name, claim)))
        .map(|(name, claim)| Claim::new(format!("[{name}]({name}.svg) {}", claim.sentence), claim.holds))
        .collect();
    let foretold = if foretold.is_empty() {
        String::new()
    } else {
        format!("\n**The model of the real shop**\n\n{}", claims::list(foretold))
    };
    format!(
        "{before}{BEGIN}\n\nWhere nothing else is said, at {sizes} clients.\n\n\
         | figure | | {} |\n|---|---|{}\n{}\n{}\n\
         **Settings tried**, sessions per second at 400 clients\n\n{}\n\
         **What was to hold**\n\n{}{foretold}\n{END}{after}",
        METHODS.map(Method::name).join(" | "),
        "---|".repeat(METHODS.len()),
        all(|one| &one.row),
        all(|one| &one.finding),
        all(|one| &one.tried),
        claims::list(&claims),
    )
}

fn row(figure: &Figure, view: &View<'_>) -> String {
    let what = match figure.shows {
        Shows::Throughput => "sessions per second",
        Shows::Failures => "failed pages",
        Shows::Distribution(100, _) => "100 clients: half are done after",
        Shows::Distribution(..) => "400 clients: half are done after",
        Shows::Pages => "failed pages, by page 1 to 7, at 100 and 400 clients",
        Shows::Interval => {
            "400 clients: seconds between two session starts, eight tenths of the time; mean queue"
        }
        Shows::Limits => "400 clients: limit of page 5, eight tenths of the time",
    };
    let cells = METHODS.map(|method| cell(figure, view, method));
    format!(
        "| [{name}]({name}.svg) | {what}; {} | {} |\n",
        figure.world.words(),
        cells.join(" | "),
        name = figure.name
    )
}

/// Returns a method's numbers in a figure; empty if the figure does not show it.
pub(super) fn cell(figure: &Figure, view: &View<'_>, method: Method) -> String {
    match figure.shows {
        Shows::Throughput | Shows::Failures => {
            let Some(curve) = view.curve(method) else { return String::new() };
            let cell = |size: u32| {
                let point = view.point(method, size)?;
                let failures = || count(point.failures, point.is_dead());
                Some(if figure.shows == Shows::Throughput { rate(point) } else { failures() })
            };
            let cells: Vec<String> = TOLD.into_iter().filter_map(cell).collect();
            let fixed =
                if method == Method::SessionOnly { format!(" ({})", curve.setting) } else { String::new() };
            format!("{}{fixed}", cells.join(" · "))
        }
        Shows::Distribution(..) => match view.half_done(method) {
            Some(half) => format!("{half:.0} s"),
            None => "not in the time shown".to_owned(),
        },
        Shows::Pages => {
            let Content::Pages(all) = &view.data.content else { return String::new() };
            let one = |pages: &super::data::Pages| {
                let parts: Vec<String> =
                    pages.failures.iter().map(|range| format!("{:.0}", range.1)).collect();
                let dead = if pages.ended * 2 < pages.runs { ", never done" } else { "" };
                format!("{}{dead}", parts.join("/"))
            };
            let own = all.iter().filter(|pages| pages.method == method);
            own.map(one).collect::<Vec<String>>().join(" · ")
        }
        Shows::Interval | Shows::Limits => {
            let Some(moments) = view.series(method).map(|series| &series.moments) else {
                return String::new();
            };
            let Some(over) = moments.last().map(|moment| moment.at_s) else { return String::new() };
            let is_interval = figure.shows == Shows::Interval;
            let values: Vec<f64> = moments
                .iter()
                .map(|moment| if is_interval { moment.interval_s.1 } else { moment.limit_of_page_5.1 })
                .collect();
            let (low, high) = (quantile(&values, 0.1), quantile(&values, 0.9));
            if !is_interval {
                return format!("{low:.0} to {high:.0}, over after {over:.0} s");
            }
            let queue = moments.iter().map(|moment| moment.mean_queue.1).sum::<f64>() / moments.len() as f64;
            format!("{low:.2} to {high:.2} s; {queue:.1}; over after {over:.0} s")
        }
    }
}

fn against_the_paper(figure: &Figure, view: &View<'_>) -> String {
    let mut agree = Vec::new();
    let mut differ = Vec::new();
    for statement in figure.statements {
        let Some(Seen { holds, here }) = (statement.here)(view) else { continue };
        if holds { &mut agree } else { &mut differ }.push(format!("{} ({here})", statement.says));
    }
    let mut out = format!("- **{}**. {}\n ", figure.of_the_paper, figure.question);
    for (how, list) in [("As in the paper", agree), ("*Not* as in the paper", differ)] {
        if !list.is_empty() {
            out += &format!(" {how}: {}.\n ", list.join("; "));
        }
    }
    out.trim_end().to_owned() + "\n"
}

/// Describes the settings that were tried and their results.
fn tried(figure: &Figure, data: &Data) -> String {
    let of = |method: Method| data.scan.iter().filter(move |tried| tried.method == method);
    if data.scan.is_empty() {
        return String::new();
    }
    let list = |method: Method| {
        of(method)
            .map(|tried| format!("{}: {}", tried.setting, rate(&tried.point)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut out = format!(
        "- **{}**. Fixed sessions: {}. Page only: {}.\n",
        figure.of_the_paper,
        list(Method::SessionOnly).replace(" sessions", ""),
        list(Method::PageOnly)
    );
    let by_rate = |a: &&Tried, b: &&Tried| a.point.sessions_per_s.1.total_cmp(&b.point.sessions_per_s.1);
    let (Some(best), Some(worst)) = (of(Method::Sqs).max_by(by_rate), of(Method::Sqs).min_by(by_rate)) else {
        return out;
    };
    let unharmed =
        of(Method::Sqs).filter(|tried| !tried.point.is_dead() && tried.point.inside.1 < 1.0).count();
    let dead = of(Method::Sqs).filter(|tried| tried.point.is_dead()).count();
    let told = |tried: &Tried| {
        format!(
            "{} with {} (failures inside: {:.0})",
            rate(&tried.point),
            tried.setting,
            tried.point.inside.1
        )
    };
    let tried = of(Method::Sqs).count();
    // Writing into a String cannot fail.
    let _ = writeln!(
        out,
        "  Of {tried} settings of SQS, {dead} are dead and {unharmed} fail nobody inside a session; most {}; least {}.",
        told(best),
        told(worst)
    );
    out
}

/// Returns the claims about Suimon's own curve.
fn claims(figure: &Figure, data: &Data) -> Vec<Claim> {
    let view = View { data, world: figure.world };
    let mut claims = Vec::new();
    let Some(ours) = view.curve(Method::Suimon) else { return claims };
    let mut worst: Option<(f64, &Point, f64)> = None;
    for point in &ours.points {
        let others = Method::ALL.into_iter().filter(|method| *method != Method::Suimon);
        let others = others.filter_map(|method| view.point(method, point.clients));
        let best = others.map(|other| other.sessions_per_s.1).fold(0.0, f64::max);
        let share = point.sessions_per_s.1 / best.max(1e-9);
        if worst.is_none_or(|(least, ..)| share < least) {
            worst = Some((share, point, best));
        }
    }
    if let Some((share, point, best)) = worst.filter(|_| figure.shows == Shows::Throughput) {
        claims.push(Claim::new(
            format!(
                "at every number of clients Suimon has at least {SHARE_MIN} of the best of the others; least: {:.2} of {best:.2} at {}",
                point.sessions_per_s.1, point.clients
            ),
            share >= SHARE_MIN,
        ));
    }
    let most = ours.points.iter().map(|point| point.inside.2).fold(0.0, f64::max);
    claims.push(Claim::new(
        format!(
            "with Suimon no session fails inside, at any number of clients and with any seed; most: {most:.0}"
        ),
        most < 1.0,
    ));
    claims
}
