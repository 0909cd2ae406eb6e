//! What was found: the claims and the tables.

use suimon_statistics::mean;
use suimon_statistics::table::numbers;

use super::visit::War;
use super::{Cell, Data, Way};
use crate::claims::Claim;

/// What the filter must complete of what the gateway in front does, for each war.
const OF_GATEWAY_MIN: f64 = 0.95;
/// How long half of the sessions take at least where more come than can be served, of the time for which visitors think.
/// The core is no measure of that: an application may wait for its own locks and disk.
const OF_THINKING_MIN: f64 = 1.5;

/// Returns what was to hold, and whether it does.
pub(super) fn judge(data: &Data) -> Vec<Claim> {
    let mut claims = Vec::new();
    for war in data.wars() {
        let of_war = || data.cells.iter().filter(move |cell| cell.war == war);
        let of = |way| of_war().filter(move |cell| cell.way == way);
        let total = |way| of(way).map(|cell| cell.sessions_per_s).sum::<f64>();
        let ratio = total(Way::Inside) / total(Way::InFront);
        claims.push(Claim::new(
            format!(
                "{}: inside, at least {OF_GATEWAY_MIN} of the sessions that the gateway in front completes on the same \
                 core, all Tomcats and Javas together: {ratio:.3}",
                war.name()
            ),
            ratio >= OF_GATEWAY_MIN,
        ));
        let told = |ways: &[Way]| failures(ways.iter().flat_map(|way| of(*way)));
        claims.push(Claim::new(
            format!(
                "{}: no failure inside a session with the filter: {}; with the gateway {}, a Tomcat alone {}",
                war.name(),
                told(&[Way::Inside]),
                told(&[Way::InFront, Way::OtherCore]),
                told(&[Way::Alone])
            ),
            of(Way::Inside).all(|cell| cell.failures_inside == 0)
                && of_war().all(|cell| cell.completed > 0 || cell.way == Way::Alone),
        ));
    }
    let inside = data.cells.iter().filter(|cell| cell.way == Way::Inside);
    let least = inside.map(Cell::session_of_thinking).fold(f64::INFINITY, f64::min);
    claims.push(Claim::new(
        format!(
            "more came than can be served: in each turn with the filter half of the sessions take at least \
             {OF_THINKING_MIN} times as long as their visitors think: {least:.1}"
        ),
        least >= OF_THINKING_MIN,
    ));
    claims
}

/// Returns in words how many failures inside sessions these have, and how many of them were answered by a page of the
/// application's own.
fn failures<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    let (mut all, mut own, mut sessions) = (0, 0, 0);
    for cell in cells {
        (all, own) = (all + cell.failures_inside, own + cell.own_failures());
        sessions += cell.completed + cell.failures_inside;
    }
    match all {
        0 => format!("none of {sessions}"),
        _ => format!("{all} of {sessions} ({own} of them known to be answered by a page of the application)"),
    }
}

/// Returns what one turn came to, and what was answered where something failed.
pub(super) fn line(cell: &Cell, round: u32) -> String {
    let mut text = format!(
        "{}, Tomcat {}, Java {}, {}, round {round}: {:.2} sessions/s, {} failures inside {:?}",
        cell.war.name(),
        cell.tomcat,
        cell.java,
        cell.way.word(),
        cell.sessions_per_s,
        cell.failures_inside,
        cell.failures_by_step
    );
    for failure in &cell.failures_told {
        text.push_str(&format!("\n    {}: {}: {}", failure.step, failure.failure, failure.said));
    }
    for (kind, count) in &cell.thrown {
        text.push_str(&format!("\n    {count} times {kind}"));
    }
    text
}

impl Cell {
    /// Returns how many of the failures told of have an answer of the application's own.
    fn own_failures(&self) -> u64 {
        self.failures_told.iter().filter(|failure| self.war.has_said(&failure.said)).count() as u64
    }

    /// Returns how long half of the sessions take at least, of the time for which their visitors think.
    fn session_of_thinking(&self) -> f64 {
        self.session_s_p50 / self.war.thinking_s()
    }
}

impl Data {
    fn wars(&self) -> Vec<War> {
        let mut wars: Vec<War> = self.cells.iter().map(|cell| cell.war).collect();
        wars.dedup();
        wars
    }

    /// Returns what was combined: wars, Tomcats and Javas.
    fn combinations(&self) -> Vec<(War, &str, u32)> {
        let mut all: Vec<_> =
            self.cells.iter().map(|cell| (cell.war, cell.tomcat.as_str(), cell.java)).collect();
        all.dedup();
        all
    }
}

/// Returns the tables.
pub(super) fn tables(data: &Data) -> String {
    let headings = [
        "war",
        "Tomcat",
        "Java",
        "turns",
        "inside",
        "in front",
        "ratio",
        "other core",
        "ratio",
        "alone",
        "ratio",
        "failures",
        "refused",
        "core inside",
        "core in front",
        "gateway",
    ];
    let rows: Vec<Vec<String>> = data.combinations().into_iter().map(|which| row(data, which)).collect();
    format!(
        "\n{} visitors at once; sessions completed per second, means of all turns; {}\n\n{}",
        data.users,
        data.machine.processor,
        numbers(&headings, &rows)
    )
}

/// Returns the sessions completed per second, the mean of all turns; `None`: it was not played.
fn mean_per_s(data: &Data, (war, tomcat, java): (War, &str, u32), way: Way) -> Option<f64> {
    let is_it =
        |cell: &&Cell| (cell.war, cell.tomcat.as_str(), cell.java, cell.way) == (war, tomcat, java, way);
    let turns: Vec<f64> = data.cells.iter().filter(is_it).map(|cell| cell.sessions_per_s).collect();
    (!turns.is_empty()).then(|| mean(&turns))
}

fn row(data: &Data, (war, tomcat, java): (War, &str, u32)) -> Vec<String> {
    let of = |way: Option<Way>| -> Vec<&Cell> {
        let is_it = |cell: &&Cell| cell.war == war && cell.tomcat == tomcat && cell.java == java;
        data.cells.iter().filter(is_it).filter(|cell| way.is_none_or(|way| cell.way == way)).collect()
    };
    let per_s = |way| mean_per_s(data, (war, tomcat, java), way);
    let inside = per_s(Way::Inside);
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.2}"));
    let ratio = |way| number(inside.zip(per_s(way)).map(|(inside, other)| inside / other));
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let all = of(None);
    let busy =
        |way, core: fn(&Cell) -> f64| percent(mean(&of(Some(way)).into_iter().map(core).collect::<Vec<_>>()));
    let gateway: Vec<f64> = of(Some(Way::InFront)).iter().filter_map(|cell| cell.gateway_cpu_share).collect();
    vec![
        war.name().to_string(),
        tomcat.to_string(),
        java.to_string(),
        of(Some(Way::Inside)).len().to_string(),
        number(inside),
        number(per_s(Way::InFront)),
        ratio(Way::InFront),
        number(per_s(Way::OtherCore)),
        ratio(Way::OtherCore),
        number(per_s(Way::Alone)),
        ratio(Way::Alone),
        all.iter().map(|cell| cell.failures_inside).sum::<u64>().to_string(),
        all.iter().map(|cell| cell.refused).sum::<u64>().to_string(),
        busy(Way::Inside, |cell| cell.app_core.busy),
        busy(Way::InFront, |cell| cell.app_core.busy),
        percent(mean(&gateway)),
    ]
}
