//! Workers of some 60 MB in a control group of 512 MB, under more load than they can serve: who is
//! killed by the kernel?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_process::group;

use super::load;
use super::place::{Place, Wishes};
use crate::crowd::Crowd;
use crate::memory_group::MemoryGroup;
use crate::trouble::{Result, While};
use crate::workers::{Language, Server};

/// The limit of the control group, bytes.
pub(super) const LIMIT: u64 = 512 << 20;
/// Children of a php-fpm whose number somebody has guessed.
pub(super) const GUESSED: u32 = 50;
/// Seconds before anything but kills counts, and seconds that count.
const WARM_UP_S: u32 = 7;
const COUNTED_S: u32 = 12;

/// Who serves the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Pages {
    /// A pool without any number.
    Suimon,
    /// php-fpm with the settings that its package brings.
    FpmPackaged,
    /// php-fpm with `pm = static` and fifty children.
    FpmGuessed,
}

/// When a worker has its 55 MB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Has {
    /// From its first request on, for ever.
    Always,
    /// While it has a request.
    WhileBusy,
}

impl Pages {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Pages::Suimon => "Suimon",
            Pages::FpmPackaged => "php-fpm as packaged",
            Pages::FpmGuessed => "php-fpm static 50",
        }
    }
}

impl Has {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Has::Always => "always",
            Has::WhileBusy => "while busy",
        }
    }

    const fn page(self) -> &'static str {
        match self {
            Has::Always => "kept.php",
            Has::WhileBusy => "taken.php",
        }
    }
}

/// What was seen of one server in its control group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Room {
    pub(super) pages: Pages,
    pub(super) has: Has,
    /// Processes that the kernel has killed for lack of memory, from the start on.
    pub(super) kernel_kills: u64,
    /// Whether the server's own first process was among them.
    pub(super) server_died: bool,
    /// Pages answered per second, and what was not, by status or kind, over the counted time.
    pub(super) pages_per_s: f64,
    pub(super) failed: u64,
    pub(super) failed_by_kind: BTreeMap<String, u64>,
    /// Workers at once, over the counted time; and all that there were from the load's start on, as
    /// far as they were seen.
    pub(super) workers_mean: f64,
    pub(super) workers_max: u32,
    pub(super) processes: u32,
    /// The most that the group had taken when looked at, MB (2^20).
    pub(super) group_mb_max: f64,
}

/// Who is measured.
pub(super) const ALL: [(Pages, Has); 4] = [
    (Pages::Suimon, Has::Always),
    (Pages::Suimon, Has::WhileBusy),
    (Pages::FpmPackaged, Has::Always),
    (Pages::FpmGuessed, Has::Always),
];

/// Measures one, in a group that is made for it.
pub(super) fn play(place: &Place<'_>, pages: Pages, has: Has) -> Result<Room> {
    let memory = MemoryGroup::make(place.workspace, "room", LIMIT)?;
    match pages {
        Pages::Suimon => {
            let folder = place.workspace.fresh("case")?;
            let wishes =
                Wishes { program: Some(has.page()), workers: 1, memory: Some(&memory), ..Wishes::default() };
            let mut serving = place.serve(&folder, &place.common.scratch, &wishes, None)?;
            let root = serving.pid();
            let room = observe(place, &memory, (pages, has), root, serving.address, || serving.has_ended())?;
            // It may have been killed, and then its workers were.
            let _ = serving.end();
            Ok(room)
        }
        Pages::FpmPackaged | Pages::FpmGuessed => {
            let server =
                if pages == Pages::FpmGuessed { Server::Fixed(GUESSED) } else { Server::FpmPackaged };
            let site = place.site(has.page(), Some(&memory));
            let mut open = site.open(Language::Php, server, "case")?;
            let (root, address) = (open.root, open.address());
            observe(place, &memory, (pages, has), root, address, || {
                Ok(open.must_run().inspect_err(|trouble| eprintln!("{trouble}")).is_err())
            })
        }
    }
}

fn observe(
    place: &Place<'_>,
    memory: &MemoryGroup,
    (pages, has): (Pages, Has),
    root: u32,
    to: SocketAddr,
    mut has_ended: impl FnMut() -> Result<bool>,
) -> Result<Room> {
    let common = place.common;
    let warm_up = Duration::from_secs(WARM_UP_S.into());
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &common.scratch,
        core: common.load_core,
        journey: load::always(common.seed),
        to,
        warmup: warm_up,
        measure: Some(Duration::from_secs(COUNTED_S.into())),
    };
    let besides = besides(root)?;
    let (mut counts, mut known) = (Vec::new(), BTreeSet::new());
    let (mut server_died, mut most) = (false, 0);
    let report = crowd.start()?.finish(|at| {
        // Counted in the group, because workers may outlive the server that has started them.
        let mut workers = memory.members()?;
        workers.retain(|pid| !besides.contains(pid));
        known.extend(workers.iter().copied());
        if at >= warm_up {
            counts.push(workers.len() as u32);
        }
        // It is told once, and then no more asked for.
        server_died = server_died || has_ended()?;
        most = most.max(memory.usage()?);
        Ok(())
    })?;
    let mut failed_by_kind = report.failures_by_kind.clone();
    for (kind, count) in [("refused", report.refusals), ("waiting_page", report.waiting_pages)] {
        if count > 0 {
            *failed_by_kind.entry(kind.to_string()).or_default() += count;
        }
    }
    Ok(Room {
        pages,
        has,
        kernel_kills: memory.kills()?,
        server_died,
        pages_per_s: report.sessions_per_s,
        failed: failed_by_kind.values().sum(),
        failed_by_kind,
        workers_mean: counts.iter().map(|count| f64::from(*count)).sum::<f64>() / counts.len().max(1) as f64,
        workers_max: counts.iter().copied().max().unwrap_or(0),
        processes: known.len() as u32,
        group_mb_max: most as f64 / f64::from(1 << 20),
    })
}

/// Returns the processes of a server that are no workers: its first one, and a guardian.
fn besides(root: u32) -> Result<BTreeSet<u32>> {
    let is_none = |pid: &u32| {
        *pid == root || fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sh\n")
    };
    Ok(group::tree(root).trouble("the server's processes")?.into_iter().filter(is_none).collect())
}
