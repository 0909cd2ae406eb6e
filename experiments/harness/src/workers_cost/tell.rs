//! Tables, claims and the figure.

use std::path::Path;

use suimon_chart::{Bars, Hue};
use suimon_statistics::table::numbers;

use super::contestants::{Contestant, Page};
use super::{Data, Round, Summary};
use crate::claims::Claim;
use crate::figures::{self, Panel};
use crate::trouble::Result;

/// The most that Suimon may cost, as a multiple of nginx' cost.
const RATIO_MAX: f64 = 1.5;
/// Colours for the sizes of answers.
const HUES: [Hue; 3] = [Hue::Blue, Hue::Amber, Hue::Green];

pub(super) fn judge(summaries: &[Summary], rounds: &[Round]) -> Vec<Claim> {
    let is_judged = |one: Contestant| one.is_suimon() && one != Contestant::SuimonFpmUngated;
    let ours = summaries.iter().filter(|summary| is_judged(summary.contestant));
    let mut claims: Vec<Claim> = ours
        .map(|summary| {
            let (name, bytes, ratio) = (summary.contestant.name(), summary.bytes, summary.ratio_to_nginx);
            let words = format!("{name}, {bytes} bytes: a request costs at most {RATIO_MAX} times one through nginx: {ratio:.2}");
            Claim::new(words, ratio <= RATIO_MAX)
        })
        .collect();
    let errors: u64 = rounds.iter().map(|round| round.load.errors).sum();
    claims.push(Claim::new(
        format!("every request was answered with what was asked for: {errors} were not"),
        errors == 0,
    ));
    claims
}

pub(super) fn tables(data: &Data) -> String {
    let headings = [
        "gateway",
        "bytes",
        "µs per request",
        "middle half",
        "of nginx",
        "of it keeper",
        "workers, µs",
        "requests/s",
        "latency p50",
        "rounds",
    ];
    let row = |summary: &Summary| {
        vec![
            summary.contestant.name().to_string(),
            summary.bytes.to_string(),
            format!("{:.1}", summary.cpu_us_p50),
            format!("{:.1}-{:.1}", summary.cpu_us_p25, summary.cpu_us_p75),
            format!("{:.2}", summary.ratio_to_nginx),
            format!("{:.1}", summary.keeper_us_mean),
            format!("{:.0}", summary.workers_us_p50),
            format!("{:.0}", summary.requests_per_s_p50),
            format!("{:.0} µs", summary.latency_p50_us),
            format!("{}{}", summary.rounds, if summary.only_quiet { "" } else { ", not all quiet" }),
        ]
    };
    let rows: Vec<Vec<String>> = data.summaries.iter().map(row).collect();
    format!(
        "\nProcessor time of the gateway per request ({})\n{}",
        data.versions.join(", "),
        numbers(&headings, &rows)
    )
}

pub(super) fn draw(data: &Data, path: &Path) -> Result<()> {
    let mut sizes: Vec<u32> = data.summaries.iter().map(|summary| summary.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let panels: Vec<Panel> =
        [Page::Php, Page::Python].into_iter().filter_map(|page| panel(data, page, &sizes)).collect();
    figures::write(path, &panels)
}

/// Returns the bars of a page; `None`: it was not measured.
fn panel(data: &Data, page: Page, sizes: &[u32]) -> Option<Panel> {
    let title = format!("Processor time of the gateway per request: {}", page.words());
    let mut bars = Bars::new(&title).unit("µs").describe("A bar for each gateway and size of answers.");
    for (size, hue) in sizes.iter().zip(HUES.into_iter().cycle()) {
        bars = bars.group(&format!("{size} bytes"), hue);
    }
    let mut is_empty = true;
    for contestant in page.contestants() {
        let cost = |size: &u32| {
            let own = |summary: &&Summary| summary.contestant == *contestant && summary.bytes == *size;
            data.summaries.iter().find(own).map_or(f64::NAN, |summary| summary.cpu_us_p50)
        };
        let costs: Vec<f64> = sizes.iter().map(cost).collect();
        if costs.iter().any(|cost| cost.is_finite()) {
            is_empty = false;
            bars = bars.row(contestant.name(), costs);
        }
    }
    (!is_empty).then_some(Panel::Bars(bars))
}
