//! Tables and claims.

use suimon_statistics::mean;
use suimon_statistics::table::numbers;

use super::load::Load;
use super::{CGI_AT_ONCE, Cell, Data, Page, Scanned};
use crate::claims::Claim;
use crate::workers::Server;

/// What CGI may complete at most, as a share of the best fixed number of resident workers.
const CGI_MAX: f64 = 0.7;
/// What too few workers may complete at most, likewise.
const TOO_FEW_MAX: f64 = 0.9;
/// What Suimon must complete of what the best fixed number does.
const SUIMON_MIN: f64 = 0.97;
/// What the best number must complete of what is asked for at 0.6 of the capacity.
const BELOW_MIN: f64 = 0.97;

/// Returns the servers of a list, each once, in its order.
pub(super) fn servers(all: impl Iterator<Item = Server>) -> Vec<Server> {
    let mut once = Vec::new();
    for server in all {
        if !once.contains(&server) {
            once.push(server);
        }
    }
    once
}

/// Returns the mean over all rounds of a server in the scan; `None`: it was not in it.
pub(super) fn scanned(page: &Page, server: Server, of: impl Fn(&Scanned) -> f64) -> Option<f64> {
    let rounds: Vec<f64> = page.scan.iter().filter(|scanned| scanned.server == server).map(of).collect();
    (!rounds.is_empty()).then(|| mean(&rounds))
}

/// Returns the same of a server under a load.
pub(super) fn under(page: &Page, server: Server, load: Load, of: impl Fn(&Cell) -> f64) -> Option<f64> {
    let rounds: Vec<f64> =
        page.cells.iter().filter(|cell| cell.server == server && cell.load == load).map(of).collect();
    (!rounds.is_empty()).then(|| mean(&rounds))
}

pub(super) fn judge(data: &Data) -> Vec<Claim> {
    data.pages.iter().flat_map(judge_page).collect()
}

fn judge_page(page: &Page) -> Vec<Claim> {
    let language = format!("{:?}", page.language);
    let share = |server| scanned(page, server, |s| s.per_s).map(|per_s| per_s / page.capacity_per_s);
    let mut claims = Vec::new();
    if let Some(cgi) = share(Server::Cgi(CGI_AT_ONCE)) {
        claims.push(Claim::new(
            format!("{language}: CGI completes at most {CGI_MAX} of what the best number of resident workers does: {cgi:.2}"),
            cgi <= CGI_MAX,
        ));
    }
    let least = page
        .scan
        .iter()
        .filter_map(|s| if let Server::Fixed(number) = s.server { Some(number) } else { None })
        .min();
    if let Some((least, few)) = least.and_then(|least| Some((least, share(Server::Fixed(least))?))) {
        claims.push(Claim::new(
            format!(
                "{language}: {least} workers are too few, and complete at most {TOO_FEW_MAX} of it: {few:.2}"
            ),
            few <= TOO_FEW_MAX,
        ));
    }
    let below = |of: fn(&Cell) -> f64| under(page, Server::Fixed(page.best), Load::Share(0.6), of);
    if let Some((done, offered)) = below(|cell| cell.completed_per_s).zip(below(|cell| cell.offered_per_s)) {
        let done = done / offered.max(1e-9);
        claims.push(Claim::new(
            format!(
                "{language}: {} workers complete at least {BELOW_MIN} of 0.6 of the capacity: {done:.2}",
                page.best
            ),
            done >= BELOW_MIN,
        ));
    }
    claims.extend(judge_suimon(page, &language));
    claims
}

/// What Suimon is to complete under each load once its number is known: nearly as much as the best
/// fixed number under that load, and no less than any server that nobody has tuned by hand.
fn judge_suimon(page: &Page, language: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut loads: Vec<Load> = Vec::new();
    for cell in &page.cells {
        if !loads.contains(&cell.load) {
            loads.push(cell.load);
        }
    }
    for load in loads {
        let done = |server| under(page, server, load, share_answered);
        let Some(ours) = done(Server::Suimon { known: true }) else { continue };
        let most = |of: fn(&Server) -> bool| {
            let some = servers(page.cells.iter().map(|cell| cell.server)).into_iter().filter(of);
            some.filter_map(done).max_by(f64::total_cmp)
        };
        let words = load.words();
        if let Some(best) = most(|server| matches!(server, Server::Fixed(_))) {
            claims.push(Claim::new(
                format!("{language}, {words}: Suimon completes at least {SUIMON_MIN} of what the best fixed number does: {ours:.3} and {best:.3} of what is asked for"),
                ours >= SUIMON_MIN * best,
            ));
        }
        let untuned = |server: &Server| {
            !matches!(server, Server::Fixed(_) | Server::FpmTuned { .. } | Server::Suimon { .. })
        };
        if let Some(other) = most(untuned) {
            claims.push(Claim::new(
                format!("{language}, {words}: no server that nobody has tuned completes more than Suimon: {other:.3} and {ours:.3} of what is asked for"),
                other <= ours,
            ));
        }
    }
    claims
}

/// Returns what is completed of what is asked for, at most 1: more than that is the queue of the
/// uncounted time before, which who had none cannot complete.
fn share_answered(cell: &Cell) -> f64 {
    (cell.completed_per_s / cell.offered_per_s.max(1e-9)).min(1.0)
}

pub(super) fn tables(data: &Data) -> String {
    let head = format!(
        "\n{}; a page does its work {} times and waits {} ms for the database\n",
        data.versions.join(", "),
        data.work,
        data.wait_ms
    );
    head + &data.pages.iter().map(|page| scan(page) + &cells(page)).collect::<String>()
}

/// Returns what rests on the processor time of a server in words: nobody knows that of CGI, because
/// fcgiwrap does not wait for its processes.
fn known(server: Server, digits: usize, value: f64) -> String {
    if matches!(server, Server::Cgi(_)) { "-".to_string() } else { format!("{value:.digits$}") }
}

fn scan(page: &Page) -> String {
    let row = |server: Server| {
        let of = |of: fn(&Scanned) -> f64| scanned(page, server, of).unwrap_or(f64::NAN);
        vec![
            server.words(page.language),
            format!("{:.1}", of(|s| s.per_s)),
            format!("{:.2}", of(|s| s.per_s) / page.capacity_per_s),
            format!("{:.0}", of(|s| s.workers.memory_mb_mean)),
            known(server, 1, of(|s| s.per_s) / of(|s| s.workers.cpu_share)),
            known(server, 2, of(|s| s.workers.cpu_share)),
            known(server, 2, of(|s| s.app_core.foreign(s.workers.cpu_share))),
        ]
    };
    let headings =
        ["always asked", "pages/s", "of the best", "memory MB", "pages/CPU s", "own CPU", "others"];
    let rows: Vec<_> = servers(page.scan.iter().map(|s| s.server)).into_iter().map(row).collect();
    format!(
        "\n{:?}: a page by itself costs {:.1} ms of the processor; best with {} workers, {:.1} pages/s\n{}",
        page.language,
        page.cpu_ms_alone,
        page.best,
        page.capacity_per_s,
        numbers(&headings, &rows)
    )
}

fn cells(page: &Page) -> String {
    let mut loads: Vec<Load> = Vec::new();
    page.cells.iter().for_each(|cell| {
        if !loads.contains(&cell.load) {
            loads.push(cell.load);
        }
    });
    let headings = [
        "server",
        "asked/s",
        "pages/s",
        "mean s",
        "p99 s",
        "failed/s",
        "refused/s",
        "workers",
        "most",
        "starts",
        "memory MB",
        "own CPU",
        "others",
    ];
    let of_load = |load: Load| {
        let row = |server: Server| {
            let of = |of: fn(&Cell) -> f64| under(page, server, load, of).unwrap_or(f64::NAN);
            vec![
                server.words(page.language),
                format!("{:.1}", of(|cell| cell.offered_per_s)),
                format!("{:.1}", of(|cell| cell.completed_per_s)),
                format!("{:.2}", of(|cell| cell.mean_s)),
                format!("{:.2}", of(|cell| cell.p99_s)),
                format!("{:.1}", of(|cell| cell.failed_per_s)),
                format!("{:.1}", of(|cell| cell.refused_per_s)),
                format!("{:.0}", of(|cell| cell.workers.workers_mean)),
                format!("{:.0}", of(|cell| cell.workers.workers_max.into())),
                format!("{:.0}", of(|cell| cell.workers.starts.into())),
                format!("{:.0}", of(|cell| cell.workers.memory_mb_mean)),
                known(server, 2, of(|cell| cell.workers.cpu_share)),
                known(server, 2, of(|cell| cell.app_core.foreign(cell.workers.cpu_share))),
            ]
        };
        let measured = page.cells.iter().filter(|cell| cell.load == load);
        let rows: Vec<_> = servers(measured.map(|cell| cell.server)).into_iter().map(row).collect();
        format!("\n{:?}, {}\n{}", page.language, load.words(), numbers(&headings, &rows))
    };
    loads.into_iter().map(of_load).collect()
}
