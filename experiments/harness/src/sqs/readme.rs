//! The `README.md` of a figure's folder: written from the table of figures and the data, so that it cannot go stale.

use std::fmt::Write as _;

use super::data::{Content, Data, Pages, Point, Tried};
use super::method::Method;
use super::table::{Figure, Shows};
use super::view::{Seen, View, count, rate};
use crate::claims::{self, Claim};

/// Numbers of clients that are told.
const TOLD: [u32; 4] = [25, 100, 200, 400];
/// Suimon keeps this share of the best of the others.
const SHARE_MIN: f64 = 0.95;

/// Returns what was to hold of our own curve.
pub(super) fn claims(figure: &Figure, data: &Data) -> Vec<Claim> {
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

/// Returns the text. `measured`: what was measured, if it was.
pub(super) fn text(figure: &Figure, data: &Data, measured: Option<&Data>) -> String {
    let view = View { data, world: figure.world };
    let Figure { name, of_the_paper, question, .. } = figure;
    let seeds = data.seeds.len();
    let mut out = format!(
        "# SQS, {of_the_paper}: {}\n\n\
         **Question.** {question}\n\n\
         **Command.** `./experiments/run {name}` (seconds; seeds 1 to {seeds}). This file, the figure and `data/simulated.json` are what it writes.\n\n\
         ![{}](figure.svg)\n\n\
         **Finding.** (`data/simulated.json`; medians of {seeds} seeds)\n\n",
        figure.world.words(),
        alt(figure),
    );
    // Writing into a String cannot fail.
    let _ = write!(out, "1. {}\n{}", numbers(figure, &view), against_the_paper(figure, &view));
    out += "\n## Set-up\n\n";
    let _ = writeln!(
        out,
        "- Who comes and to what: `experiments/{}`, which `suimon sim` plays too; the costs are the paper's (30 ms a page, 400 ms for page 5, two \
         cores), what company costs is a guess that fits its words (`docs/simulator.md`). A run that is not over after {:.0} s is dead.",
        data.world, data.dead_after_s
    );
    out += METHODS;
    out += &scans(data);
    out += &claimed(figure, data);
    if figure.is_measured {
        out += &match measured {
            None => MEASURED_NOT_YET.to_owned(),
            Some(measured) => format!(
                "\n**Measured** on the Tomcat shop, with all times divided by 4: `data/measured.json`, by `./experiments/run sqs-live`, seeds {:?}; the dashed \
                 lines are `experiments/tomcat-model` at the speed the shop had. What that says of the model: `experiments/sqs-live`.\n",
                measured.seeds
            ),
        };
    }
    out
}

const METHODS: &str = "\
- *SQS* and *page only*: the paper's rules as `seed` laws, queues first in, first out, and a client that gave up keeps its place in them, because servers of
  the time did not notice. Newcomers wait in the session queue as long as clients wait at all. The paper does not publish its constants: *defaults* are those of
  `crates/control/src/kind.rs` with a first limit of 2; *tuned* are, of 27, those with which none of 400 clients who wait 60 s fails inside and most are done (`../sqs-05`), kept for all figures. What the
  paper says of SQS is held against *tuned*.
- *session only*: the fixed number of sessions that is best in its worst run at 400 clients, no limits on pages; the rest is refused and comes again. *no control*: nothing.
- *Suimon*: `paired` and `flow`, told nothing. Refusals with a time to come again are no failures, for any method; time-outs and errors are.
";

const MEASURED_NOT_YET: &str = "\n**Measured**: not yet. `./experiments/run sqs-live` measures it on the Tomcat shop and writes `data/measured.json`, which is drawn \
     below the simulation, beside a model with costs from single requests (`experiments/tomcat-model`).\n";

fn alt(figure: &Figure) -> &'static str {
    match figure.shows {
        Shows::Throughput => "Sessions per second by number of clients, for five methods",
        Shows::Failures => "Failed pages by number of clients, for five methods",
        Shows::Distribution(..) => "Sessions done after how long, for five methods",
        Shows::Pages => "Failures by page, for five methods",
        Shows::Interval => "Admission interval and mean page queue over time",
        Shows::Limits => "Limits of page 5 and page 1 over time",
    }
}

/// Says what the figure shows, in numbers.
fn numbers(figure: &Figure, view: &View<'_>) -> String {
    let methods = || Method::ALL.into_iter().rev();
    match figure.shows {
        Shows::Throughput | Shows::Failures => {
            let sizes: Vec<u32> =
                TOLD.into_iter().filter(|size| view.point(Method::Suimon, *size).is_some()).collect();
            let one = |method: Method| {
                let curve = view.curve(method)?;
                let cell = |size: &u32| {
                    let point = view.point(method, *size)?;
                    Some(if figure.shows == Shows::Throughput {
                        rate(point)
                    } else {
                        count(point.failures, point.is_dead())
                    })
                };
                let cells: Vec<String> = sizes.iter().filter_map(cell).collect();
                Some(format!("{} {}", named(method, &curve.setting), cells.join(" · ")))
            };
            let what = if figure.shows == Shows::Throughput { "Sessions per second" } else { "Failures" };
            let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
            let cells: Vec<String> = methods().filter_map(one).collect();
            format!("{what} at {} clients: {}.", sizes.join(" · "), cells.join("; "))
        }
        Shows::Distribution(..) => {
            let one = |method: Method| match view.half_done(method) {
                Some(half) => format!("{} {half:.0} s", method.name()),
                None => format!("{} not in the time shown", method.name()),
            };
            let cells: Vec<String> = methods().map(one).collect();
            format!(
                "Half of the clients are done, each counted from his own first request, after: {}.",
                cells.join("; ")
            )
        }
        Shows::Pages => {
            let cell = |pages: &Pages| {
                let parts: Vec<String> =
                    pages.failures.iter().map(|range| format!("{:.0}", range.1)).collect();
                let dead = if pages.ended * 2 < pages.runs { " (never done)" } else { "" };
                format!("{} {}{dead}", pages.method.name(), parts.join("/"))
            };
            let Content::Pages(all) = &view.data.content else { return String::new() };
            let mut sizes: Vec<u32> = all.iter().map(|pages| pages.clients).collect();
            sizes.dedup();
            let of_size = |clients: &u32| {
                let cells: Vec<String> =
                    all.iter().rev().filter(|pages| pages.clients == *clients).map(cell).collect();
                format!("at {clients} clients {}", cells.join(", "))
            };
            format!(
                "Failures at pages 1/2/3/4/5/6/7: {}.",
                sizes.iter().map(of_size).collect::<Vec<_>>().join("; ")
            )
        }
        Shows::Interval | Shows::Limits => {
            let one = |method: Method| {
                let moments = &view.series(method)?.moments;
                let values: Vec<f64> = moments
                    .iter()
                    .map(|moment| {
                        if figure.shows == Shows::Interval {
                            moment.interval_s.1
                        } else {
                            moment.limit_of_page_5.1
                        }
                    })
                    .collect();
                let queue = moments.iter().map(|moment| moment.mean_queue.1).sum::<f64>()
                    / moments.len().max(1) as f64;
                let (low, high) =
                    (crate::statistics::quantile(&values, 0.1), crate::statistics::quantile(&values, 0.9));
                let over = moments.last()?.at_s;
                Some(if figure.shows == Shows::Interval {
                    format!(
                        "{}: {low:.2} to {high:.2} s, mean queue {queue:.1}, over after {over:.0} s",
                        method.name()
                    )
                } else {
                    format!("{}: {low:.0} to {high:.0}, over after {over:.0} s", method.name())
                })
            };
            let what = if figure.shows == Shows::Interval { "Interval" } else { "Limit of page 5" };
            format!(
                "{what} (eight tenths of the time, first seed): {}.",
                methods().filter_map(one).collect::<Vec<_>>().join("; ")
            )
        }
    }
}

fn named(method: Method, setting: &str) -> String {
    if method == Method::SessionOnly {
        format!("{} ({setting})", method.name())
    } else {
        method.name().to_owned()
    }
}

fn against_the_paper(figure: &Figure, view: &View<'_>) -> String {
    let mut agree = Vec::new();
    let mut differ = Vec::new();
    for statement in figure.statements {
        let Some(Seen { holds, here }) = (statement.here)(view) else { continue };
        if holds { &mut agree } else { &mut differ }.push(format!("{} ({here})", statement.says));
    }
    let told = |list: &[String], none: &str| if list.is_empty() { none.to_owned() } else { list.join("; ") };
    format!(
        "2. As in the paper: {}.\n3. Not as in the paper: {}.\n",
        told(&agree, "nothing it says of this figure"),
        told(&differ, "nothing it says of this figure")
    )
}

/// Says what became of the settings that were tried.
fn scans(data: &Data) -> String {
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
        "\n**Settings tried** at 400 clients, sessions per second. Fixed sessions: {}. Page only: {}.\n",
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
        "Of {tried} settings of SQS, {dead} are dead and {unharmed} fail nobody inside a session; most {}; least {}.",
        told(best),
        told(worst)
    );
    out
}

fn claimed(figure: &Figure, data: &Data) -> String {
    let list = claims::list(&claims(figure, data));
    if list.is_empty() { list } else { format!("\n**What was to hold**\n\n{list}") }
}
