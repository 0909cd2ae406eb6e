//! Claims, tables and lines.

use std::collections::BTreeMap;

use suimon_statistics::table::numbers;

use super::Data;
use super::fault::{Fault, LEAK_LIMIT_MB, RELOADS, WORKERS};
use super::room::{LIMIT, Pages, Room};
use super::scene::Case;
use crate::claims::Claim;

/// Throughput is as before if over this many seconds it is at least this share of what it was.
const WINDOW_S: usize = 3;
const AS_BEFORE: f64 = 0.95;
/// For so many seconds, each of them the first of such a span.
const STAYS_S: usize = 5;
/// Seconds before the fault that say what it was.
const BEFORE_S: usize = 4;
/// Seconds after what was broken is whole again in which requests may fail that began before that.
const GRACE_S: f64 = 1.0;

/// Returns how many pages per second were completed before the fault; `None`: there is no moment of
/// a fault.
pub(super) fn before_per_s(case: &Case) -> Option<f64> {
    // What goes on all the time has no moment after it.
    if matches!(case.fault, Fault::Leaking | Fault::Recycled | Fault::Reloaded) {
        return None;
    }
    let at = case.fault_at_s as usize;
    let seconds = case.completed_by_second.get(at.checked_sub(BEFORE_S)?..at)?;
    Some(rate(seconds))
}

fn rate(seconds: &[u32]) -> f64 {
    seconds.iter().map(|count| f64::from(*count)).sum::<f64>() / seconds.len().max(1) as f64
}

/// Returns how many seconds after the fault throughput is as before, and stays so for a while;
/// `None`: it never is, or there is no moment of a fault.
pub(super) fn as_before_after_s(case: &Case) -> Option<usize> {
    let least = AS_BEFORE * before_per_s(case)?;
    let (at, until) = (case.fault_at_s as usize, case.load_until_s as usize);
    let last = until.min(case.completed_by_second.len()).checked_sub(WINDOW_S)?;
    let is_well = |from: usize| rate(&case.completed_by_second[from..from + WINDOW_S]) >= least;
    let stays = |from: &usize| (*from..=last.min(from + STAYS_S - 1)).all(is_well);
    (at..=last).find(stays).map(|first| first - at)
}

/// Returns how many requests failed after what was broken was whole again.
fn failed_afterwards(case: &Case) -> u32 {
    let from = case.mended_at_s.map_or(0.0, |at| (at + GRACE_S).ceil()) as usize;
    case.failed_by_second.iter().skip(from).sum()
}

fn ended_by(case: &Case, why: &str) -> u64 {
    case.totals.ended.get(why).copied().unwrap_or(0)
}

pub(super) fn judge(data: &Data) -> Vec<Claim> {
    let mut claims: Vec<Claim> = data.cases.iter().map(judge_case).collect();
    if !data.cases.is_empty() {
        claims.extend(judge_all(&data.cases));
    }
    for room in data.rooms.iter().filter(|room| room.pages == Pages::Suimon) {
        let (has, kills) = (room.has.words(), room.kernel_kills);
        let mb = LIMIT >> 20;
        claims.push(Claim::new(
            format!(
                "the kernel kills nothing in {mb} MB where a worker of Suimon has its 55 MB {has}: {kills} kills"
            ),
            kills == 0 && !room.server_died,
        ));
    }
    claims
}

fn judge_case(case: &Case) -> Claim {
    let (words, failed) = (case.fault.words(), case.failed);
    let (gets, dead) = (case.failed_gets, case.in_dead_workers);
    match case.fault {
        Fault::WorkerKilled | Fault::AllKilled | Fault::Broken => Claim::new(
            format!(
                "{words}: only requests fail that were in dead workers and may not be sent again: {failed} failed, {gets} of them GET, {dead} were in dead workers"
            ),
            gets == 0 && failed <= u64::from(dead),
        ),
        Fault::Stopped => Claim::new(
            format!("{words}: only the request in it fails: {failed} failed, {dead} was in it"),
            failed <= u64::from(dead),
        ),
        Fault::Hanging => Claim::new(
            format!(
                "{words}: only these fail, with 504: {failed} others failed, the three got {:?}",
                case.hanging
            ),
            failed == 0 && case.hanging.iter().all(|status| *status == 504),
        ),
        Fault::Leaking => {
            let replaced = ended_by(case, "memory");
            Claim::new(
                format!(
                    "{words}: they are replaced at {LEAK_LIMIT_MB} MB, and no request fails: {replaced} replaced, {failed} failed"
                ),
                failed == 0 && replaced > 0,
            )
        }
        Fault::Recycled => {
            let replaced = ended_by(case, "requests");
            Claim::new(
                format!("{words}: no request fails: {replaced} replaced, {failed} failed"),
                failed == 0 && replaced >= WORKERS as u64,
            )
        }
        Fault::Reloaded => {
            let done = case.reloads_s.len();
            let until = case.fault_at_s + case.reloads_s.iter().sum::<f64>();
            Claim::new(
                format!(
                    "{words}, all under load: no request fails: {done} done in {:.0} s, {failed} failed",
                    until - case.fault_at_s
                ),
                failed == 0 && done == RELOADS && until <= case.load_until_s,
            )
        }
        Fault::Database | Fault::Gateway => {
            let after = failed_afterwards(case);
            Claim::new(
                format!(
                    "{words}: no request fails once it has been back for {GRACE_S:.0} s: {after} of {failed} failed then"
                ),
                after == 0,
            )
        }
    }
}

fn judge_all(cases: &[Case]) -> Vec<Claim> {
    let of = |is_bad: fn(&Case) -> bool| -> Vec<&str> {
        cases.iter().filter(|case| is_bad(case)).map(|case| case.fault.words()).collect()
    };
    let told = |bad: &[&str]| if bad.is_empty() { "in none".to_string() } else { bad.join(", ") };
    let slots: u64 = cases.iter().map(|case| case.slots_left).sum();
    let orphans: u32 = cases.iter().map(|case| case.orphans).sum();
    let short = of(|case| case.settled_after_s.is_none());
    let slow = of(|case| before_per_s(case).is_some() && as_before_after_s(case).is_none());
    vec![
        Claim::new(format!("no slot is left taken after the load: {slots} in all cases"), slots == 0),
        Claim::new(format!("no process is left without a gateway: {orphans} in all cases"), orphans == 0),
        Claim::new(
            format!(
                "after the load every wanted worker is ready, and no other is left; not so: {}",
                told(&short)
            ),
            short.is_empty(),
        ),
        Claim::new(
            format!("throughput becomes as before while the load lasts; not so: {}", told(&slow)),
            slow.is_empty(),
        ),
    ]
}

fn kinds(kinds: &BTreeMap<String, u64>) -> String {
    if kinds.is_empty() {
        return "none".to_string();
    }
    kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

/// Returns a case in one line.
pub(super) fn line(case: &Case) -> String {
    let after = as_before_after_s(case).map_or(String::new(), |s| format!(", as before after {s} s"));
    format!(
        "{}: {} requests, failed: {}; {} were in dead workers{after}",
        case.fault.words(),
        case.requests,
        kinds(&case.failed_by_kind),
        case.in_dead_workers
    )
}

/// Returns a control group in one line.
pub(super) fn room_line(room: &Room) -> String {
    format!(
        "{}, 55 MB {}: {:.1} pages/s with {:.1} workers, {} kills by the kernel",
        room.pages.words(),
        room.has.words(),
        room.pages_per_s,
        room.workers_mean,
        room.kernel_kills
    )
}

pub(super) fn tables(data: &Data) -> String {
    let mut text = format!(
        "\n{}; a page does its work {} times and waits {} ms for the database\n{:.1} pages/s are asked for, {:.1} are the capacity\n",
        data.versions.join(", "),
        data.work,
        data.wait_ms,
        data.offered_per_s,
        data.capacity_per_s
    );
    if !data.cases.is_empty() {
        text += &cases(&data.cases);
    }
    if !data.rooms.is_empty() {
        text += &rooms(&data.rooms);
    }
    if let Some(why) = &data.no_rooms {
        text += &format!("\nMemory was not measured: {why}\n");
    }
    text
}

fn cases(cases: &[Case]) -> String {
    let headings = [
        "fault",
        "requests",
        "failed",
        "GET",
        "in dead",
        "slots",
        "orphans",
        "ready",
        "starts",
        "deaths",
        "kills",
        "away s",
        "as before s",
        "settled s",
        "p99 s",
        "slowest s",
        "worker MB",
    ];
    let row = |case: &Case| {
        let seconds = |value: Option<f64>, digits: usize| {
            value.map_or("-".to_string(), |value| format!("{value:.digits$}"))
        };
        vec![
            case.fault.words().to_string(),
            case.requests.to_string(),
            case.failed.to_string(),
            case.failed_gets.to_string(),
            case.in_dead_workers.to_string(),
            case.slots_left.to_string(),
            case.orphans.to_string(),
            format!("{}/{}", case.workers_ready, case.workers_wanted),
            case.totals.starts.to_string(),
            case.totals.deaths.to_string(),
            case.totals.kills.to_string(),
            seconds(case.mended_at_s.map(|at| at - case.fault_at_s), 1),
            as_before_after_s(case).map_or("-".to_string(), |after| after.to_string()),
            seconds(case.settled_after_s, 1),
            format!("{:.2}", case.p99_s),
            format!("{:.2}", case.slowest_s),
            format!("{:.0}", case.worker_mb_max),
        ]
    };
    let mut text = format!("\n{}", numbers(&headings, &cases.iter().map(row).collect::<Vec<_>>()));
    text += "\n";
    for case in cases {
        let why = case.totals.ended.iter().map(|(why, count)| format!("{count} {why}"));
        let why: Vec<String> = why.collect();
        text += &format!("  {}: failed: {}", case.fault.words(), kinds(&case.failed_by_kind));
        text +=
            &format!("; replaced or ended: {}", if why.is_empty() { "none".into() } else { why.join(", ") });
        if !case.reloads_s.is_empty() {
            let took: Vec<String> = case.reloads_s.iter().map(|took| format!("{took:.1}")).collect();
            text += &format!("; each took {} s", took.join(", "));
        }
        text += "\n";
    }
    text
}

fn rooms(rooms: &[Room]) -> String {
    let headings =
        ["in 512 MB", "55 MB", "kernel kills", "pages/s", "failed", "workers", "most", "of", "group MB"];
    let row = |room: &Room| {
        vec![
            room.pages.words().to_string(),
            room.has.words().to_string(),
            format!("{}{}", room.kernel_kills, if room.server_died { ", the server, too" } else { "" }),
            format!("{:.1}", room.pages_per_s),
            room.failed.to_string(),
            format!("{:.1}", room.workers_mean),
            room.workers_max.to_string(),
            room.processes.to_string(),
            format!("{:.0}", room.group_mb_max),
        ]
    };
    format!("\n{}", numbers(&headings, &rooms.iter().map(row).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_admin::PoolTotals;

    fn case(fault: Fault, completed_by_second: Vec<u32>) -> Case {
        Case {
            fault,
            counted_from_s: 0.0,
            fault_at_s: 5.2,
            mended_at_s: Some(6.4),
            load_until_s: completed_by_second.len() as f64,
            requests: 100,
            completed: 90,
            failed: 10,
            failed_by_kind: BTreeMap::from([("status_502".to_string(), 10)]),
            failed_gets: 0,
            in_dead_workers: 10,
            hanging: Vec::new(),
            p99_s: 0.2,
            slowest_s: 0.3,
            failed_by_second: vec![0, 0, 0, 0, 0, 9, 0, 1, 0, 0],
            completed_by_second,
            settled_after_s: Some(0.1),
            slots_left: 0,
            workers_wanted: 16,
            workers_ready: 16,
            orphans: 0,
            totals: PoolTotals::default(),
            worker_mb_max: 12.0,
            workers_max: 17,
            reloads_s: Vec::new(),
            reloads_failed: 0,
        }
    }

    #[test]
    fn throughput_is_as_before_from_where_it_stays_so() {
        let after = |seconds: &[u32]| as_before_after_s(&case(Fault::AllKilled, seconds.to_vec()));
        assert_eq!(after(&[60; 12]), Some(0), "it never fell");
        assert_eq!(after(&[60, 60, 60, 60, 60, 0, 0, 60, 60, 60, 60, 60]), Some(2));
        // What was late comes at once, and hides a second without anything.
        assert_eq!(after(&[60, 60, 60, 60, 60, 0, 120, 60, 60, 60, 60, 60]), Some(0));
        assert_eq!(after(&[60, 60, 60, 60, 60, 60, 60, 60, 60, 40, 60, 60, 60]), Some(5), "it fell later");
        assert_eq!(after(&[60, 60, 60, 60, 60, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(as_before_after_s(&case(Fault::Recycled, vec![60; 12])), None, "there is no moment of it");
    }

    #[test]
    fn requests_may_fail_in_dead_workers_alone() {
        let dead = case(Fault::AllKilled, vec![60; 12]);
        assert!(judge_case(&dead).holds);
        assert!(!judge_case(&Case { failed_gets: 1, ..dead.clone() }).holds, "it may be sent again");
        assert!(!judge_case(&Case { in_dead_workers: 9, ..dead.clone() }).holds);
        // It was away until 6.4: what fails in second 7 began before.
        assert!(judge_case(&case(Fault::Gateway, vec![60; 12])).holds);
        let late =
            Case { failed_by_second: vec![0, 0, 0, 0, 0, 0, 0, 0, 1], ..case(Fault::Gateway, vec![60; 12]) };
        assert!(!judge_case(&late).holds);
        assert!(judge_all(std::slice::from_ref(&dead)).iter().all(|claim| claim.holds));
        let bad = [Case { slots_left: 1, orphans: 2, settled_after_s: None, ..dead }];
        assert_eq!(judge_all(&bad).iter().filter(|claim| !claim.holds).count(), 3);
    }
}
