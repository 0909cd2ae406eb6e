//! The results for the terminal.

use super::answer::{Answer, Played, Run};
use super::question::{Contender, Question};
use crate::numbers::{count, rate, share, time};
use crate::summary;
use crate::terminal;
use suimon_settings::duration;
use suimon_sim::{Metric, ServiceFigures};
use suimon_statistics::MeanAndRange;
use suimon_statistics::table::{folded, text_first, width};

/// Signs for a kept and a missed band.
pub(super) const HELD: &str = "✓";
pub(super) const MISSED: &str = "✗";
/// Most seeds named one by one at which a band was missed.
const NAMED_MAX: usize = 5;

/// The most laws with their numbers beside the bands; more would not fit on a line.
pub(super) const BESIDE_MAX: usize = 5;

/// A heading, and the function for a contender's cell.
type Column = (&'static str, fn(&[&Played]) -> String);

/// The numbers shown of every contender, here and in the report.
pub(super) const COLUMNS: [Column; 9] = [
    ("goodput", |runs| mean(runs, share, |run| run.summary.goodput_share)),
    ("over seeds", |runs| range(runs, |run| run.summary.goodput_share)),
    ("sessions/s", |runs| mean(runs, rate, |run| run.summary.sessions_per_s)),
    ("lost inside", |runs| mean(runs, count, |run| run.summary.mid_session_failures as f64)),
    ("lost at the door", |runs| mean(runs, count, |run| run.summary.first_step_failures as f64)),
    ("refused", |runs| mean(runs, count, |run| run.summary.refusals as f64)),
    ("waiting pages", |runs| mean(runs, count, |run| run.summary.waiting_pages as f64)),
    ("wait, 95 of 100", |runs| mean(runs, time, |run| run.summary.wait_p95_s)),
    ("settled after", settled),
];

/// What the columns mean, for first-time readers.
pub(super) const LEGEND: &str = "goodput: sessions finished, as a share of what could have been; lost: time-outs and errors, \
     inside a session or at its first page; refused: told when to come again, without a position in line; waiting pages: shown one. Counts are means of a run.";

/// Returns the tables of all scenarios, and the verdict.
pub(super) fn tables(answers: &[Answer<'_>]) -> String {
    tables_in(answers, terminal::columns())
}

/// Returns them in lines of at most `columns` columns if possible. A wider table continues below,
/// and sentences wrap between words.
fn tables_in(answers: &[Answer<'_>], columns: usize) -> String {
    let mut text: String = answers.iter().map(|answer| one(answer, columns) + "\n").collect();
    text.push_str(&verdict(answers));
    text.push('\n');
    terminal::paragraphs(&text, columns)
}

/// Returns the verdict on all scenarios, in a sentence or two.
pub(super) fn verdict(answers: &[Answer<'_>]) -> String {
    let missing: usize = answers.iter().map(Answer::missing).sum();
    let wanted: usize = answers.iter().map(Answer::wanted).sum();
    let bands: usize = answers.iter().map(|answer| answer.question.scenario.expect.len()).sum();
    let missed: usize = answers.iter().map(Answer::bands_missed).sum();
    let violations: usize = answers.iter().map(|answer| answer.violations().count()).sum();
    let scenarios = plural(answers.len(), "scenario", "scenarios");
    let mut parts = vec![];
    if missing > 0 {
        parts.push(format!(
            "interrupted with {missing} of {} still to be played",
            plural(wanted, "run", "runs")
        ));
    }
    if violations > 0 {
        parts.push(format!("{} found by the checkers", plural(violations, "violation", "violations")));
    }
    if missed > 0 {
        parts.push(format!("{missed} of {} not kept", plural(bands, "band", "bands")));
    }
    match (parts.is_empty(), bands) {
        (true, 0) => format!("{scenarios} played; nothing is expected of them."),
        (true, 1) => format!("It holds: 1 band, {scenarios}."),
        (true, _) => format!("It holds: all {bands} bands, {scenarios}."),
        (false, _) => format!("It does not hold: {}; {scenarios}.", parts.join("; ")),
    }
}

fn one(answer: &Answer<'_>, columns: usize) -> String {
    let question = answer.question;
    let mut text = format!("{}: {}\n", question.scenario.name, question.scenario.question);
    for line in circumstances(answer) {
        text.push_str(&format!("  {line}\n"));
    }
    text.push('\n');
    text.push_str(&contenders(answer, columns));
    let services = services(answer);
    if services.len() > 1 {
        text.push('\n');
        text.push_str(&numbers(&services, columns));
    }
    if !question.scenario.expect.is_empty() {
        text.push('\n');
        text.push_str(&bands(answer, columns));
    }
    for line in violations(answer) {
        text.push_str(&format!("  {MISSED} {line}\n"));
    }
    if answer.missing() > 0 {
        text.push_str(&format!(
            "  incomplete: {} of {} were not played\n",
            answer.missing(),
            plural(answer.wanted(), "run", "runs")
        ));
    }
    text
}

/// Returns the arrivals and what was possible, a line each.
pub(super) fn circumstances(answer: &Answer<'_>) -> Vec<String> {
    let Question { scenario, seeds, .. } = answer.question;
    let mut lines = vec![format!(
        "{}; {} after {} of warm-up; {}",
        summary::arrivals(&scenario.workload),
        duration::show(scenario.measure),
        duration::show(scenario.warm_up),
        seeds_in_words(seeds)
    )];
    if let Some(played) = answer.contenders().flat_map(|(_, runs)| runs).find_map(Run::played) {
        let over = |rates: &[f64]| {
            let (from, to) = (played.counted.0.floor() as usize, played.counted.1.ceil() as usize);
            let counted = rates.get(from..to.min(rates.len())).unwrap_or_default();
            counted.iter().sum::<f64>() / counted.len().max(1) as f64
        };
        let (bound, reachable) = (over(&played.bound), over(&played.reachable));
        let asked = if reachable < 0.995 * bound {
            format!("; {} are asked for where that is less", rate(reachable))
        } else {
            "; at least as many are asked for".to_owned()
        };
        lines.push(format!("the application can finish {} sessions a second{asked}", rate(bound)));
    }
    lines
}

fn seeds_in_words(seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!("seed {seed}"),
        [first, _, .., last] if seeds.windows(2).all(|pair| pair[1] == pair[0] + 1) => {
            format!("seeds {first} to {last}")
        }
        _ => format!("seeds {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn contenders(answer: &Answer<'_>, columns: usize) -> String {
    let head = ["laws"].into_iter().chain(COLUMNS.map(|(name, _)| name)).map(str::to_owned).collect();
    let row = |(contender, runs): (&Contender, &[Run])| {
        let cells = cells(runs).into_iter();
        std::iter::once(contender.name.clone()).chain(cells).collect()
    };
    numbers(&std::iter::once(head).chain(answer.contenders().map(row)).collect::<Vec<_>>(), columns)
}

/// Returns a contender's numbers, one per column.
pub(super) fn cells(runs: &[Run]) -> Vec<String> {
    let played: Vec<&Played> = runs.iter().filter_map(Run::played).collect();
    COLUMNS.iter().map(|(_, cell)| cell(&played)).collect()
}

/// Returns the services under each of the laws, below a row of headings; means over the seeds.
pub(super) fn services(answer: &Answer<'_>) -> Vec<Vec<String>> {
    let head = ["laws", "service", "slowed", "of the first's", "share", "answers/s"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    for (contender, runs) in answer.contenders() {
        let played: Vec<&Played> = runs.iter().filter_map(Run::played).collect();
        let Some(first) = played.first() else { continue };
        for (index, (name, _)) in first.services.iter().enumerate() {
            let mean = |show: fn(f64) -> String, of: fn(&ServiceFigures) -> f64| {
                let values = played.iter().filter_map(|run| run.services.get(index));
                MeanAndRange::of(values.map(|(_, figures)| of(figures)))
                    .map_or_else(String::new, |spread| show(spread.mean))
            };
            rows.push(vec![
                contender.name.clone(),
                name.clone(),
                mean(|value| format!("× {value:.1}"), |figures| figures.slowdown),
                mean(|value| format!("× {value:.2}"), |figures| figures.slowdown_ratio),
                mean(share, |figures| figures.share),
                mean(rate, |figures| figures.per_s),
            ]);
        }
    }
    rows
}

/// Returns the bands with their numbers; below a missed band are the seeds that missed it. If there
/// are many laws, only the scenario's own are beside the bands. The others' numbers follow, with a
/// row per law.
fn bands(answer: &Answer<'_>, columns: usize) -> String {
    let names = || answer.question.contenders.iter().map(|contender| contender.name.clone());
    let beside = if names().count() <= BESIDE_MAX { names().count() } else { 1 };
    let lines = band_lines(answer);
    let head = ["expected".to_owned()].into_iter().chain(names().take(beside)).collect();
    let row = |line: &BandLine| {
        let first = format!("{} {}", line.mark(), line.band);
        std::iter::once(first).chain(line.values.iter().take(beside).cloned()).collect()
    };
    let table = numbers(&std::iter::once(head).chain(lines.iter().map(row)).collect::<Vec<_>>(), usize::MAX);
    // Numbers that do not fit beside a band cannot follow below all bands, as nobody could tell whose they
    // are.
    let table = if table.lines().all(|line| width(line) <= columns) {
        table
    } else {
        in_sentences(&lines, &names().take(beside).collect::<Vec<_>>())
    };
    let mut text = String::new();
    let mut under = std::iter::once(&[] as &[String]).chain(lines.iter().map(|line| line.again.as_slice()));
    for line in table.lines() {
        text.push_str(line);
        text.push('\n');
        for again in under.next().unwrap_or_default() {
            text.push_str(&format!("      {again}\n"));
        }
    }
    if names().count() > beside {
        let numbered = (1..=lines.len()).map(|number| format!("{number}."));
        let head = ["the same of others".to_owned()].into_iter().chain(numbered).collect();
        let row = |(index, name): (usize, String)| {
            std::iter::once(name).chain(lines.iter().map(|line| line.values[index].clone())).collect()
        };
        let rows = names().enumerate().skip(beside).map(row);
        text.push('\n');
        text.push_str(&numbers(&std::iter::once(head).chain(rows).collect::<Vec<_>>(), columns));
    }
    text
}

/// Returns a heading and the bands with their numbers, a line each.
fn in_sentences(lines: &[BandLine], names: &[String]) -> String {
    let sentence = |line: &BandLine| {
        let values = names.iter().zip(&line.values).map(|(name, value)| format!("{name} {value}"));
        format!("  {} {}: {}\n", line.mark(), line.band, values.collect::<Vec<_>>().join("; "))
    };
    std::iter::once("  expected\n".to_owned()).chain(lines.iter().map(sentence)).collect()
}

/// Returns the rows as lines: a name, then numbers.
fn numbers(rows: &[Vec<String>], columns: usize) -> String {
    folded(&text_first(rows), rows, columns)
}

/// The results of one band.
pub(super) struct BandLine {
    pub(super) band: String,
    /// `None`: no run to judge.
    pub(super) held: Option<bool>,
    /// By contender: the number's range over the seeds.
    pub(super) values: Vec<String>,
    /// Commands that play the missed seeds again.
    pub(super) again: Vec<String>,
}

impl BandLine {
    pub(super) fn mark(&self) -> &'static str {
        match self.held {
            Some(true) => HELD,
            Some(false) => MISSED,
            None => "·",
        }
    }
}

/// Returns the bands in the order of the file.
pub(super) fn band_lines(answer: &Answer<'_>) -> Vec<BandLine> {
    let any = answer.own().iter().any(|run| run.played().is_some());
    let line = |(number, band): (usize, &suimon_sim::Band)| {
        let value = |runs: &[Run]| {
            let values = runs.iter().filter_map(|run| Some(run.played()?.bands[number].0));
            MeanAndRange::of(values)
                .map_or_else(String::new, |spread| from_to(spread, |value| plain(band.metric, value)))
        };
        let missed = answer.missed(number);
        let mut again: Vec<String> = missed
            .iter()
            .take(NAMED_MAX)
            .map(|(seed, value)| {
                format!("seed {seed}: {}    again: {}", plain(band.metric, *value), answer.again(*seed, None))
            })
            .collect();
        if missed.len() > NAMED_MAX {
            again.push(format!("and {} more seeds", missed.len() - NAMED_MAX));
        }
        BandLine {
            band: band.to_string(),
            held: any.then_some(missed.is_empty()),
            values: answer.contenders().map(|(_, runs)| value(runs)).collect(),
            again,
        }
    };
    answer.question.scenario.expect.iter().enumerate().map(line).collect()
}

/// Returns the violations that checkers found, with commands that play them again.
pub(super) fn violations(answer: &Answer<'_>) -> Vec<String> {
    let line = |(contender, violation): (&Contender, &suimon_sim::Violation)| {
        let again = answer.again(violation.seed, Some(contender));
        format!("must never happen, and did: {violation} ({})    again: {again}", contender.name)
    };
    answer.violations().map(line).collect()
}

fn mean(runs: &[&Played], show: fn(f64) -> String, of: fn(&Played) -> f64) -> String {
    MeanAndRange::of(runs.iter().map(|run| of(run))).map_or_else(String::new, |spread| show(spread.mean))
}

fn range(runs: &[&Played], of: fn(&Played) -> f64) -> String {
    MeanAndRange::of(runs.iter().map(|run| of(run))).map_or_else(String::new, |spread| {
        let shares = from_to(spread, |value| share(value).trim_end_matches("\u{a0}%").to_owned());
        format!("{shares}\u{a0}%")
    })
}

fn settled(runs: &[&Played]) -> String {
    let settled: Vec<f64> = runs.iter().filter_map(|run| run.summary.settled_after_s).collect();
    match MeanAndRange::of(settled.iter().copied()) {
        Some(spread) if settled.len() == runs.len() => time(spread.mean),
        Some(_) => format!("{} of {} did", settled.len(), runs.len()),
        None if runs.is_empty() => String::new(),
        None => "never".to_owned(),
    }
}

/// Returns the range from the least to the most, or one value if both look the same.
fn from_to(spread: MeanAndRange, show: impl Fn(f64) -> String) -> String {
    let (min, max) = (show(spread.min), show(spread.max));
    if min == max { min } else { format!("{min}\u{a0}–\u{a0}{max}") }
}

/// Returns a metric's value in the unit of its band.
fn plain(metric: Metric, value: f64) -> String {
    match value {
        value if value.is_infinite() && metric == Metric::SettledAfter => "never".to_owned(),
        value if value.fract() == 0.0 || value >= 1000.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

fn plural(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_named_shortly() {
        assert_eq!(seeds_in_words(&[7]), "seed 7");
        assert_eq!(seeds_in_words(&[3, 4]), "seeds 3, 4");
        assert_eq!(seeds_in_words(&[1, 2, 3]), "seeds 1 to 3");
        assert_eq!(seeds_in_words(&[1, 5, 3]), "seeds 1, 5, 3");
    }

    #[test]
    fn a_wide_table_goes_on_below_and_no_word_is_broken() {
        let head: Vec<String> =
            ["laws"].into_iter().chain(COLUMNS.map(|(name, _)| name)).map(str::to_owned).collect();
        let row: Vec<String> = head.iter().map(|name| "9".repeat(name.chars().count())).collect();
        let text = numbers(&[head, row], 79);
        assert!(text.lines().all(|line| line.chars().count() <= 79), "{text}");
        assert_eq!(text.matches("laws").count(), 2, "{text}");
        assert!(COLUMNS.iter().all(|(name, _)| text.contains(name)), "{text}");
    }

    #[test]
    fn numbers_that_do_not_fit_beside_a_band_follow_it() {
        let line = BandLine {
            band: "sessions_per_s at least 2.6".to_owned(),
            held: Some(true),
            values: vec!["3.06".to_owned(), "0.00".to_owned()],
            again: vec![],
        };
        assert_eq!(
            in_sentences(&[line], &["suimon".to_owned(), "none".to_owned()]),
            "  expected\n  ✓ sessions_per_s at least 2.6: suimon 3.06; none 0.00\n"
        );
    }

    #[test]
    fn values_have_the_digits_that_decide() {
        let shown = |value| plain(Metric::GoodputShare, value);
        assert_eq!([0.9512, 3.0, 61.26, 1234.5].map(shown), ["0.951", "3", "61.3", "1234"]);
        assert_eq!(plain(Metric::SettledAfter, f64::INFINITY), "never");
    }
}
