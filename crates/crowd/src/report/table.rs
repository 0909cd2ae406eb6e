//! A report as aligned text.

use std::fmt::Write as _;

use super::{Ended, FailureReport, Quantiles, Report, StepReport};
use crate::line::{Edit, FarmReport, ForgeReport, LineReport, OrderReport, ToldReport};
use suimon_statistics::table::{folded, text_first};

/// How many failures are told with what the server said, and how much of it, in characters; the data have more.
const TOLD_MAX: usize = 3;
const TOLD_CHARS_MAX: usize = 160;

impl Report {
    /// Returns the report as aligned lines of text. Times that do not fit into lines of `columns` columns
    /// follow below; sentences may be longer.
    pub fn table(&self, columns: usize) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _ = self.write_table(&mut out, columns);
        out
    }

    fn write_table(&self, out: &mut String, columns: usize) -> std::fmt::Result {
        let ended = match self.ended {
            Ended::TimeOver => "",
            Ended::AllDone => ", everybody was done",
            Ended::Interrupted => ", interrupted",
        };
        writeln!(
            out,
            "Crowd at {}: {:.1} s measured after {:.1} s of warm-up{ended}, seed {}",
            self.base_url, self.measured_s, self.warmup_s, self.seed
        )?;
        writeln!(out)?;
        let mut row = |name: &str, value: u64, note: String| writeln!(out, "  {name:<24}{value:>9}  {note}");
        row("sessions completed", self.sessions_completed, format!("{:.2} per s", self.sessions_per_s))?;
        row(
            "sessions begun",
            self.sessions_begun,
            format!("{} under way at the end", self.sessions_under_way),
        )?;
        row("sessions given up", self.sessions_gave_up, String::new())?;
        row(
            "mid-session failures",
            self.mid_session_failures,
            format!("in {} sessions", self.sessions_failed_inside),
        )?;
        row("first-step failures", self.first_step_failures, String::new())?;
        row("refused", self.refusals, "without a position in line, with a time to come again".to_owned())?;
        if let Some(line) = &self.line {
            let note = format!("shown to those in line, who polled {} times", line.polls);
            row("waiting pages", self.waiting_pages, note)?;
        }
        row("requests", self.requests, format!("{:.1} per s", self.requests_per_s))?;
        row("wasted requests", self.wasted_requests, "answered well, for a session that failed".to_owned())?;
        if self.users_not_started > 0 {
            row("users not started", self.users_not_started, "too many were there already".to_owned())?;
        }
        if !self.failures_by_kind.is_empty() {
            let kinds: Vec<String> =
                self.failures_by_kind.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            writeln!(out, "  failures by kind: {}", kinds.join(", "))?;
        }
        for failure in self.first_failures.iter().filter(|failure| !failure.said.is_empty()).take(TOLD_MAX) {
            let FailureReport { at_s, step, failure, said } = failure;
            let said: String = said.chars().take(TOLD_CHARS_MAX).collect();
            writeln!(out, "  {step} at {at_s:.1} s: {failure}: {said}")?;
        }
        writeln!(out)?;
        out.push_str(&self.times(columns));
        if let Some(line) = &self.line {
            write_line(line, out)?;
        }
        writeln!(out)?;
        writeln!(
            out,
            "  crowd's own CPU: {:.0} % of a core; requests sent late by {} at the 99th percentile",
            self.crowd_cpu_share * 100.0,
            time(self.send_delay.p99_s),
        )
    }

    fn times(&self, columns: usize) -> String {
        let several = self.steps.windows(2).any(|pair| pair[0].kind != pair[1].kind);
        let name = |step: &StepReport| {
            if several { format!("{}/{}", step.kind, step.step) } else { step.step.clone() }
        };
        let headings = ["step", "passed", "failed", "refused", "p50", "p90", "p99", "max"];
        let mut rows = vec![headings.map(str::to_owned).to_vec()];
        let mut row = |name: String, counts: [String; 3], times: &Quantiles| {
            rows.push([name].into_iter().chain(counts).chain(percentiles(times)).collect());
        };
        for step in &self.steps {
            row(
                name(step),
                [step.time.count, step.failures, step.refusals].map(|n| n.to_string()),
                &step.time,
            );
        }
        for (name, times) in [("first step wait", &self.first_step_wait), ("session", &self.session_time)] {
            row(name.to_owned(), [times.count.to_string(), String::new(), String::new()], times);
        }
        folded(&text_first(&rows), &rows, columns)
    }
}

fn write_line(line: &LineReport, out: &mut String) -> std::fmt::Result {
    let LineReport { visitors, entered, gave_up, still_waiting, wait, order, .. } = line;
    writeln!(out)?;
    writeln!(
        out,
        "  waiting room: {visitors} visitors, of whom {entered} got in, {gave_up} gave up, {still_waiting} still waited"
    )?;
    let mut row = |name: &str, text: String| writeln!(out, "  {name:<20}{text}");
    row(
        "waits",
        format!("p50 {}, p95 {}, longest {}", time(wait.p50_s), time(wait.p95_s), time(wait.max_s)),
    )?;
    for told in &line.told {
        let name = if told.from_s > 0.0 { "told after a minute" } else { "told first" };
        row(name, estimate(told))?;
    }
    row("overtaken", overtaken(order))?;
    if let Some(farm) = &line.farm {
        farmed(farm).into_iter().try_for_each(|(name, text)| row(name, text))?;
    }
    if let Some(forge) = &line.forge {
        forged(forge).into_iter().try_for_each(|(name, text)| row(name, text))?;
    }
    Ok(())
}

fn farmed(farm: &FarmReport) -> [(&'static str, String); 3] {
    let FarmReport { farmers, numbers, numbers_entered, put_off, let_in_at_once, drawing, wait } = farm;
    let drawn = format!("{numbers} numbers by {farmers}, of which {numbers_entered} got in");
    let pace = format!("drawn in p50 {}, longest {}", time(drawing.p50_s), time(drawing.max_s));
    let waited = format!("waited p50 {}, p95 {}", time(wait.p50_s), time(wait.p95_s));
    [
        ("farmed", format!("{drawn}; {put_off} draws put off, {let_in_at_once} let in at once")),
        ("", pace),
        ("", waited),
    ]
}

fn forged(forge: &ForgeReport) -> [(&'static str, String); 3] {
    let ForgeReport { forgers, tickets, taken, entered, let_in_without, numbers, put_off, .. } = forge;
    let of = |edit: Edit| tickets.get(&edit).copied().unwrap_or_default();
    let sent = tickets.values().sum::<u64>();
    let (bit, number, signature) = (of(Edit::Bit), of(Edit::Number), of(Edit::Signature));
    [
        (
            "forged",
            format!("{sent} tickets by {forgers} (bit {bit}, number {number}, signature {signature})"),
        ),
        ("", format!("{entered} got in, {taken} were taken for a position: both must be 0")),
        (
            "",
            format!(
                "as without a ticket {let_in_without} let in, {numbers} numbers drawn, {put_off} put off"
            ),
        ),
    ]
}

/// Returns how far predicted waits were off, in words.
fn estimate(told: &ToldReport) -> String {
    let per_cent = |share: Option<f64>| share.unwrap_or_default() * 100.0;
    if told.judged == 0 {
        return "nobody who got in had half a minute left".to_owned();
    }
    format!(
        "{} judged: off by {:.0} % (low {:.0} %, high {:.0} %); {:.0} % within, {:.0} % longer",
        told.judged,
        per_cent(told.error_by_middle),
        per_cent(told.error_by_low),
        per_cent(told.error_by_high),
        per_cent(told.within_range),
        per_cent(told.longer_than_told),
    )
}

fn overtaken(order: &OrderReport) -> String {
    let OrderReport { judged, overtaken, overtaken_by_p95, overtaken_by_max, .. } = order;
    let seconds = |people: Option<f64>| people.map(|s| format!(" ({})", time(s))).unwrap_or_default();
    format!(
        "{overtaken} of {judged}; by at most {overtaken_by_p95}{} at p95, {overtaken_by_max}{} at all",
        seconds(order.overtaken_p95_s),
        seconds(order.overtaken_max_s),
    )
}

fn percentiles(spread: &Quantiles) -> [String; 4] {
    let times = [spread.p50_s, spread.p90_s, spread.p99_s, spread.max_s];
    times.map(|secs| if spread.count == 0 { "-".to_owned() } else { time(secs) })
}

/// Returns a time with three digits and a suitable unit.
fn time(secs: f64) -> String {
    let (value, unit) = if secs >= 1.0 { (secs, "s") } else { (secs * 1000.0, "ms") };
    let digits = if value >= 100.0 { 0 } else { usize::from(value < 10.0) + 1 };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_show_three_digits() {
        for (secs, shown) in [(0.0, "0.00 ms"), (0.001_234, "1.23 ms"), (0.123, "123 ms"), (1.0, "1.00 s")] {
            assert_eq!(time(secs), shown);
        }
        assert_eq!(time(61.26), "61.3 s");
        assert_eq!(time(612.6), "613 s");
    }
}
