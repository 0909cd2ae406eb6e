//! The tables, and the claims.

use super::{Data, Law, Played};
use crate::claims::{self, Claim};

/// The claims on the generated sites.
const MEDIAN_MIN: f64 = 0.95;
const DECILE_MIN: f64 = 0.85;
const FAILURES_MAX: f64 = 0.001;
/// A law is better on a scenario if it completes this much more, as a share of what is reachable,
/// ...
const BETTER: f64 = 0.02;
/// ... and has at most this share of mid-session failures more than the gateway's.
const FAILURES_MORE: f64 = 0.01;

/// Returns the results of the gateway's laws.
pub(super) fn ours(data: &Data) -> Option<&Law> {
    data.laws.first()
}

/// Returns the claims.
pub(super) fn claims(data: &Data) -> Vec<Claim> {
    let Some(ours) = ours(data) else { return Vec::new() };
    let (median, decile, failed) = (ours.sites.quantile(0.5), ours.sites.quantile(0.1), ours.sites.failed());
    vec![
        Claim::new(
            format!("generated sites, median: at least {MEDIAN_MIN} of what is reachable; {median:.3}"),
            median >= MEDIAN_MIN,
        ),
        Claim::new(
            format!("generated sites, the worst tenth: at least {DECILE_MIN}; {decile:.3}"),
            decile >= DECILE_MIN,
        ),
        Claim::new(
            format!(
                "generated sites: at most {:.1} % of the sessions fail inside; {:.2} %",
                FAILURES_MAX * 100.0,
                failed * 100.0
            ),
            failed <= FAILURES_MAX,
        ),
    ]
}

/// Returns the file: the claims, the generated sites, where external laws are better, and every
/// scenario.
pub(super) fn text(data: &Data, claims: &[Claim]) -> String {
    format!(
        "# Our laws and those of others\n\nWritten by `./experiments/run laws` from `data/result.json`. Laws are named as `./experiments/run sim --vs` takes them: ROUTES+SESSIONS. \
         *suimon* is `paired+flow`; *paper* `paper+paper`.\n\n## What was to hold\n\n{}\n## Generated sites {} to {}\n\n{}\n## Where another law is better\n\nBy more than {BETTER} of what is \
         reachable, with no more failures inside than {:.0} % of the sessions beyond ours; means of {} seeds.\n\n{}\n## Goodput by scenario\n\nShare of what is reachable: mean, and least to most of \
         {} seeds.\n\n{}\n## Failures inside sessions by scenario\n\nPer 1,000 sessions, on average.\n\n{}",
        claims::list(claims),
        data.sites.0,
        data.sites.1 - 1,
        sites_table(data),
        FAILURES_MORE * 100.0,
        data.seeds,
        better(data),
        data.seeds,
        scenarios_table(data, |played| {
            format!("{:.2} ({:.2}–{:.2})", played.mean, played.least, played.most)
        }),
        scenarios_table(data, |played| format!("{:.1}", played.failures * 1000.0)),
    )
}

/// Returns the table of the generated sites.
pub(super) fn sites_table(data: &Data) -> String {
    let mut out = String::from(
        "| law | median | worst tenth | worst | mean | failures inside |\n|---|--:|--:|--:|--:|--:|\n",
    );
    for law in data.laws.iter().filter(|law| !law.sites.shares.is_empty()) {
        let sites = &law.sites;
        out += &format!(
            "| {} | {:.3} | {:.3} | {:.3} | {:.3} | {:.2} % |\n",
            law.name,
            sites.quantile(0.5),
            sites.quantile(0.1),
            sites.quantile(0.0),
            sites.mean(),
            sites.failed() * 100.0
        );
    }
    out
}

/// Returns the best external law on a scenario, whatever its failures.
pub(super) fn best_other<'a>(data: &'a Data, scenario: &str) -> Option<(&'a str, &'a Played)> {
    let others = data.laws.get(1..)?.iter();
    let played = others.filter_map(|law| Some((law.name.as_str(), of(law, scenario)?)));
    played.max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))
}

fn of<'a>(law: &'a Law, scenario: &str) -> Option<&'a Played> {
    law.scenarios.iter().find(|played| played.scenario == scenario)
}

fn better(data: &Data) -> String {
    let Some(ours) = ours(data) else { return String::new() };
    let mut out = String::new();
    for own in &ours.scenarios {
        let others = data.laws[1..].iter().filter_map(|law| Some((law, of(law, &own.scenario)?)));
        let mut better: Vec<(&Law, &Played)> = others
            .filter(|(_, other)| {
                other.mean > own.mean + BETTER && other.failures <= own.failures + FAILURES_MORE
            })
            .collect();
        better.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
        if !better.is_empty() {
            let told: Vec<String> =
                better.iter().map(|(law, other)| format!("{} {:.2}", law.name, other.mean)).collect();
            out += &format!("- {}: ours {:.2}; {}.\n", own.scenario, own.mean, told.join(", "));
        }
    }
    if out.is_empty() { "Nowhere.\n".to_owned() } else { out }
}

fn scenarios_table(data: &Data, cell: impl Fn(&Played) -> String) -> String {
    let names: Vec<&str> = data.laws.iter().map(|law| law.name.as_str()).collect();
    let mut out = format!("| scenario | {} |\n|---|{}\n", names.join(" | "), "--:|".repeat(names.len()));
    let Some(ours) = ours(data) else { return out };
    for own in &ours.scenarios {
        let cells = data.laws.iter().map(|law| of(law, &own.scenario).map_or(String::new(), &cell));
        out += &format!("| {} | {} |\n", own.scenario, cells.collect::<Vec<_>>().join(" | "));
    }
    out
}
