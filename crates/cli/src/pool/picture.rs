//! Pools and their changes as lines for people.

use crate::numbers::{bytes, plural, rough_time};
use crate::table::{Table, beside_or_below};
use crate::terminal::paragraphs;
use std::time::{Duration, SystemTime};
use suimon_admin::{PoolChangeState, PoolDetails, PoolState, WorkerState};
use suimon_statistics::table::{Align, width};

use Align::{Left, Right};

/// The kind of pool that runs a process for each request.
const CGI: &str = "cgi";
/// Most characters of the last words of a worker in a trace; the last ones tell most.
const WORDS_MAX: usize = 160;

/// Returns every pool with its workers in lines of at most `columns` columns if possible, `now` in seconds
/// since 1970.
pub(super) fn status(pools: &[PoolDetails], now: f64, columns: usize) -> String {
    let each: Vec<String> = pools.iter().map(|pool| whole(pool, now, columns)).collect();
    each.join("\n")
}

fn whole(pool: &PoolDetails, now: f64, columns: usize) -> String {
    let PoolDetails { pool, workers, .. } = pool;
    let runs_once = pool.kind == CGI;
    let mut text = format!("{}: ", pool.name);
    text.push_str(&if runs_once { places(pool) } else { residents(pool) });
    text.push_str(&format!("  {}\n", requests(pool)));
    text.push_str(&format!("  {}\n", if runs_once { start(pool) } else { costs(pool) }));
    text.push_str(&format!("  {}\n", if runs_once { past_runs(pool) } else { history(pool) }));
    if let Some(moved) = &pool.last_move {
        text.push_str(&format!("  {}\n", last_move(moved, now)));
    }
    if let Some(why) = &pool.unhealthy {
        text.push_str(&format!("  UNHEALTHY: {why}\n"));
    }
    let mut rows =
        vec![["worker", "pid", "state", "age", "requests", "memory", ""].map(str::to_owned).to_vec()];
    // A place at which nothing runs is no process.
    let shown = workers.iter().filter(|worker| !runs_once || worker.pid.is_some());
    rows.extend(shown.map(|worker| row(worker, pool.generation)));
    let table = Table::of_sentences(&[Right, Right, Left, Right, Right, Right, Left], rows);
    paragraphs(&text, columns) + &table.text(columns)
}

/// Returns how many processes may run, of a pool that runs one for each request.
fn places(pool: &PoolState) -> String {
    let processes = plural(pool.wanted as u64, "process", "processes");
    format!("a process for each request (cgi), {processes} at once ({})\n", by(pool))
}

/// Returns who says how many workers there are.
fn by(pool: &PoolState) -> String {
    match pool.fixed {
        Some(_) => "fixed by an operator".to_owned(),
        None => format!("law: {}", pool.law),
    }
}

/// Returns how many workers there are and should be.
fn residents(pool: &PoolState) -> String {
    let by = by(pool);
    let mut parts = vec![
        format!("{} wanted ({by})", pool.wanted),
        format!("{} ready", pool.ready),
        format!("{} idle", pool.idle),
        format!("{} starting", pool.starting),
    ];
    parts.extend((pool.unsure > 0).then(|| format!("{} with a cancelled request", pool.unsure)));
    parts.extend((pool.stopping > 0).then(|| format!("{} stopping", pool.stopping)));
    format!("{}\n", parts.join(", "))
}

/// Returns how many requests run, may run and wait.
fn requests(pool: &PoolState) -> String {
    let limit = pool.limit.map_or_else(
        || "no route has a limit yet".to_owned(),
        |limit| format!("the limits of routes allow {limit}"),
    );
    format!("{} running, {limit}; {} queued", plural(pool.busy as u64, "request", "requests"), pool.queued)
}

/// Returns what starts cost.
fn start(pool: &PoolState) -> String {
    match (pool.start_seconds, pool.start_cpu_seconds) {
        (Some(start), Some(cpu)) => {
            format!("a start takes {} ({} of CPU)", rough_time(start), rough_time(cpu))
        }
        (Some(start), None) => format!("a start takes {}", rough_time(start)),
        (None, _) => "no start has succeeded yet".to_owned(),
    }
}

/// Returns what starts and memory cost.
fn costs(pool: &PoolState) -> String {
    let start = start(pool);
    let worker = pool.worker_bytes.map_or_else(String::new, |most| format!(", {} a worker", bytes(most)));
    let fit = pool.workers_fit.map_or_else(String::new, |fit| format!(", room for {fit}"));
    let swap = (pool.swap_bytes > 0).then(|| format!(", {} of it SWAPPED", bytes(pool.swap_bytes)));
    format!(
        "{start}; memory {}{}{worker}{fit}; at most {} (pool.max)",
        bytes(pool.memory_bytes),
        swap.unwrap_or_default(),
        pool.workers_max
    )
}

/// Returns what has become of the processes that each ran for one request.
fn past_runs(pool: &PoolState) -> String {
    let totals = &pool.totals;
    format!(
        "{} done, {}, {} of them failed; {} with a failure, {} killed",
        plural(totals.requests, "request", "requests"),
        plural(totals.starts, "start", "starts"),
        totals.failed_starts,
        plural(totals.deaths, "process ended", "processes ended"),
        totals.kills
    )
}

fn history(pool: &PoolState) -> String {
    let totals = &pool.totals;
    let mut parts = vec![
        format!("{} done", plural(totals.requests, "request", "requests")),
        plural(totals.starts, "start", "starts"),
        format!("{} failed", totals.failed_starts),
        plural(totals.deaths, "death", "deaths"),
    ];
    parts.extend(totals.ended.iter().map(|(why, count)| format!("{count} ended: {}", why.replace('_', " "))));
    parts.join(", ")
}

/// Returns the last time that another number of workers was wanted, and why; `now` in seconds since
/// 1970.
pub(crate) fn last_move(moved: &PoolChangeState, now: f64) -> String {
    let ago = rough_time((now - moved.at).max(0.0));
    let (old, new) = (moved.old.unwrap_or_default(), moved.new.unwrap_or_default());
    format!("last move, {ago} ago: {old} to {new}, {}", moved.reason.as_deref().unwrap_or_default())
}

fn row(worker: &WorkerState, generation: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if worker.generation < generation {
        notes.push("old program".to_owned());
    }
    if worker.retiring {
        notes.push("ends once another one is ready".to_owned());
    }
    if worker.swap_bytes > 0 {
        notes.push(format!("{} swapped", bytes(worker.swap_bytes)));
    }
    vec![
        worker.id.to_string(),
        worker.pid.map_or_else(|| "–".to_owned(), |pid| pid.to_string()),
        worker.state.clone(),
        rough_time(worker.age_seconds),
        worker.requests.to_string(),
        worker.memory_bytes.map_or_else(|| "–".to_owned(), bytes),
        notes.join(", "),
    ]
}

/// Returns the changes, oldest first. `has_head`: with headings. Columns have fixed widths, as more may
/// follow.
pub(super) fn trace(pools: &[PoolDetails], has_head: bool, columns: usize) -> String {
    // Numbers of workers begin anew in each pool.
    let names = pools.iter().map(|pool| width(&pool.pool.name)).max().unwrap_or(0);
    let line = |time: &str, pool: &str, worker: &str, what: &str, reason: &str| {
        let pool = if pools.len() > 1 { format!("{pool:<names$}  ") } else { String::new() };
        let cells = format!("{time:<24}  {pool}{worker:>6}  {what:<16}  ");
        let lines = beside_or_below(&cells, width(&cells), reason, columns);
        lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect::<String>()
    };
    let mut text = if has_head { line("time", "pool", "worker", "what", "reason") } else { String::new() };
    let mut changes: Vec<(&str, &PoolChangeState)> =
        pools.iter().flat_map(|pool| pool.changes.iter().map(|change| (&*pool.pool.name, change))).collect();
    changes.sort_by(|(_, one), (_, other)| one.at.total_cmp(&other.at));
    for (pool, change) in changes {
        let what = match (change.old, change.new) {
            (Some(old), Some(new)) => format!("wanted {old} to {new}"),
            _ => change.what.replace('_', " "),
        };
        let worker = change.worker.map_or_else(|| "–".to_owned(), |worker| worker.to_string());
        let reason = change
            .reason
            .as_deref()
            .map(|it| if change.what == "wrote" { ending(it) } else { it.to_owned() });
        text += &line(&time_of(change.at), pool, &worker, &what, &reason.unwrap_or_default());
    }
    text
}

/// Returns the words; if they are many, their end.
fn ending(words: &str) -> String {
    let more = words.chars().count().saturating_sub(WORDS_MAX);
    let mark = (more > 0).then_some('…');
    mark.into_iter().chain(words.chars().skip(more)).collect()
}

/// Returns a time in UTC, to the millisecond.
fn time_of(at: f64) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(at).unwrap_or_default();
    humantime::format_rfc3339_millis(at).to_string()
}

/// Returns what is said where there is no pool that is asked about; `names`: those there are.
pub(super) fn nothing(names: &[&str]) -> String {
    if names.is_empty() {
        return "this gateway has no pool of workers; see [[pool]] in docs/settings.md".to_owned();
    }
    format!("there is no pool of that name; there are: {}", names.join(", "))
}

/// Returns what is said of a new program that does not start.
pub(super) fn failure(pool: &PoolDetails) -> String {
    let is_failure = |change: &&PoolChangeState| matches!(&*change.what, "start_failed" | "not_started");
    let last = pool.changes.iter().rev().find(is_failure).and_then(|change| change.reason.as_deref());
    let wrote = pool.changes.iter().rev().find(|change| change.what == "wrote");
    let wrote = wrote.and_then(|change| change.reason.as_deref());
    format!(
        "{}: the new program does not start ({}{}); workers of the old one that are left go on, and starts are tried again",
        pool.pool.name,
        last.unwrap_or("see the log"),
        wrote.map_or_else(String::new, |words| format!("; the last that it wrote: {words}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_admin::PoolTotals;

    fn pool() -> PoolDetails {
        let worker = |id, state: &str, generation| WorkerState {
            id,
            pid: Some(4000 + id as u32),
            state: state.to_owned(),
            retiring: generation == 0,
            generation,
            age_seconds: 61.0,
            start_seconds: None,
            requests: 12,
            memory_bytes: Some(9 << 20),
            memory_is_proportional: true,
            swap_bytes: if id == 2 { 1 << 20 } else { 0 },
            major_faults: 0,
        };
        let change = |id, what: &str, worker, reason: Option<&str>| PoolChangeState {
            id,
            at: 1_000.5,
            what: what.to_owned(),
            worker,
            old: None,
            new: None,
            reason: reason.map(str::to_owned),
        };
        let moved = PoolChangeState {
            old: Some(3),
            new: Some(2),
            ..change(1, "wanted", None, Some("more workers are idle than are kept"))
        };
        PoolDetails {
            pool: PoolState {
                name: "shop".to_owned(),
                law: "measured".to_owned(),
                wanted: 2,
                ready: 2,
                idle: 1,
                busy: 1,
                workers_max: 256,
                limit: Some(4),
                queued: 7,
                generation: 1,
                memory_bytes: 18 << 20,
                swap_bytes: 1 << 20,
                worker_bytes: Some(9 << 20),
                workers_fit: Some(31),
                start_seconds: Some(0.04),
                start_cpu_seconds: Some(0.02),
                totals: PoolTotals {
                    requests: 24,
                    starts: 4,
                    deaths: 1,
                    ended: [("not_ready".to_owned(), 1)].into(),
                    ..PoolTotals::default()
                },
                last_move: Some(moved.clone()),
                ..PoolState::default()
            },
            workers: vec![worker(2, "busy", 0), worker(3, "idle", 1)],
            changes: vec![moved, change(2, "start_failed", Some(3), Some("exit code 1"))],
        }
    }

    #[test]
    fn a_status_says_how_many_there_are_and_why() {
        let mut shop = pool();
        let text = status(&[shop.clone()], 1_012.5, usize::MAX);
        assert_eq!(
            text,
            "shop: 2 wanted (law: measured), 2 ready, 1 idle, 0 starting\n  \
             1 request running, the limits of routes allow 4; 7 queued\n  \
             a start takes 40.0 ms (20.0 ms of CPU); memory 18.0 MiB, 1.0 MiB of it SWAPPED, 9.0 MiB a worker, room for 31; at most 256 (pool.max)\n  \
             24 requests done, 4 starts, 0 failed, 1 death, 1 ended: not ready\n  \
             last move, 12 s ago: 3 to 2, more workers are idle than are kept\n  \
             worker   pid  state   age  requests   memory\n       \
             2  4002  busy   61 s        12  9.0 MiB  old program, ends once another one is ready, 1.0 MiB swapped\n       \
             3  4003  idle   61 s        12  9.0 MiB\n"
        );
        shop.pool.fixed = Some(2);
        shop.pool.unhealthy = Some("6 starts in a row failed, the last one: exit code 1".to_owned());
        let text = status(&[shop], 1_012.5, usize::MAX);
        assert!(text.contains("2 wanted (fixed by an operator)"), "{text}");
        assert!(
            text.contains("\n  UNHEALTHY: 6 starts in a row failed, the last one: exit code 1\n"),
            "{text}"
        );
    }

    #[test]
    fn a_pool_that_runs_a_process_for_each_request_shows_those_that_run() {
        let mut shop = pool();
        shop.pool.kind = CGI.to_owned();
        shop.pool.law = "fixed".to_owned();
        shop.pool.last_move = None;
        shop.pool.start_cpu_seconds = None;
        (shop.pool.totals.deaths, shop.pool.totals.kills) = (1, 3);
        shop.workers[0] = WorkerState { retiring: false, generation: 1, ..shop.workers[0].clone() };
        (shop.workers[0].memory_bytes, shop.workers[0].swap_bytes) = (None, 0);
        shop.workers[1].pid = None;
        assert_eq!(
            status(&[shop], 1_012.5, usize::MAX),
            "shop: a process for each request (cgi), 2 processes at once (law: fixed)\n  \
             1 request running, the limits of routes allow 4; 7 queued\n  \
             a start takes 40.0 ms\n  \
             24 requests done, 4 starts, 0 of them failed; 1 process ended with a failure, 3 killed\n  \
             worker   pid  state   age  requests  memory\n       \
             2  4002  busy   61 s        12       –\n"
        );
    }

    #[test]
    fn a_trace_says_when_what_became_of_whom_and_why() {
        assert_eq!(
            trace(&[pool()], true, usize::MAX),
            "time                      worker  what              reason\n\
             1970-01-01T00:16:40.500Z       –  wanted 3 to 2     more workers are idle than are kept\n\
             1970-01-01T00:16:40.500Z       3  start failed      exit code 1\n"
        );
        assert!(!trace(&[pool()], false, usize::MAX).contains("reason"), "headings stand once");
        let mut shop = pool();
        shop.changes[1].what = "wrote".to_owned();
        shop.changes[1].reason = Some(format!("{}the end", "é".repeat(500)));
        let told = trace(&[shop], false, usize::MAX);
        assert!(told.ends_with("éthe end\n") && told.contains("…é"), "{told}");
        assert!(told.lines().all(|line| line.chars().count() < 220), "{told}");
    }
}
