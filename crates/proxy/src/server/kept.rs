//! The part of the lines that outlives the process: restored at the start, written while it runs.

use super::StartError;
use crate::gatekeeper::Gatekeeper;
use crate::gateway::Gateway;
use crate::wall_clock::now_unix;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use suimon_identity::keys;
use suimon_line::{SavedLane, SavedLine};
use suimon_model::KindId;
use suimon_params::{Params, SharingParams};
use suimon_store::lines::{LineEpoch, Stored, StoredLine};
use suimon_store::whole_file::{SetAside, WriteOrder};

/// How often what changed of the lines is written.
const LINES_EVERY: Duration = Duration::from_secs(1);
/// Numbers skipped after a crash, since they may have been issued after the last write: at least
/// this many, which is more than one core issues over HTTP in several seconds, and at least this
/// many times those of the last second. A skipped number costs six bits, changes nobody's order,
/// and belongs to nobody.
const SKIPPED_MIN: u64 = 100_000;
const SKIPPED_TIMES: u64 = 4;
/// They do not count as people who are there, as a short gap between two such might.
const _: () = assert!(SKIPPED_MIN > SavedLane::GAP_MAX);

/// A line that goes on, or begins.
pub(super) struct RestoredLine {
    /// What its tickets need to know of it.
    pub(super) of: LineEpoch,
    /// What its operator had said.
    pub(super) said: Option<String>,
    /// Until when its opening ended leases, seconds since 1970.
    pub(super) leases_ended: u32,
}

/// Brings back the lines of a run before, by kind, and returns beside them their file if it was set aside.
/// `takes_over`: that run ends at this moment.
pub(super) fn restore_lines(
    params: &Params,
    keeper: &Gatekeeper,
    takes_over: bool,
) -> Result<(Vec<Option<RestoredLine>>, Option<SetAside>), StartError> {
    let now = (now_unix(), keeper.clock().now());
    let (stored, set_aside) = match &params.waiting_room.state_file {
        Some(path) => Stored::read(path, now).map_err(StartError::WaitingRoom)?,
        None => (Stored::default(), None),
    };
    let mut lines = Vec::new();
    for (index, kind) in params.sessions.kinds.iter().enumerate() {
        if kind.gate.line.is_none() {
            lines.push(None);
            continue;
        }
        if let Some(sharing) = &params.sharing {
            lines.push(Some(shared_line(sharing, &kind.name)?));
            continue;
        }
        let before = stored.lines.iter().find(|line| line.kind == kind.name);
        let of = match before {
            Some(line) => {
                keeper.restore_line(KindId(index as u32), &line.saved, line.skipped, takes_over);
                LineEpoch { start: line.of.start.wrapping_add(1), ..line.of }
            }
            None => {
                let mut epoch = [0; 4];
                keys::fill_random(&mut epoch).map_err(StartError::Keys)?;
                LineEpoch { epoch: u32::from_le_bytes(epoch), start: 1 }
            }
        };
        // A clock that was ahead then may have been set right since.
        let leases_ended = before.map_or(0, |line| line.leases_ended.min(now.0));
        lines.push(Some(RestoredLine { of, said: before.and_then(|line| line.said.clone()), leases_ended }));
    }
    Ok((lines, set_aside))
}

/// Returns a line that is shared: the same one at every gateway of the group. Nothing of it is kept
/// here, as a ticket proves its place at any of them, and the engine has the numbers.
fn shared_line(sharing: &SharingParams, kind: &str) -> Result<RestoredLine, StartError> {
    let epoch = suimon_sharing::key_of(&format!("{}/{kind}", sharing.group)) as u32;
    // Where a number is given twice after all, the session that it begins is another one.
    let mut start = [0; 2];
    keys::fill_random(&mut start).map_err(StartError::Keys)?;
    let of = LineEpoch { epoch, start: u16::from_le_bytes(start) };
    Ok(RestoredLine { of, said: None, leases_ended: 0 })
}

/// Writes what of the lines must survive a restart.
#[derive(Clone, Debug)]
pub(super) struct LineStore {
    gateway: Arc<Gateway>,
    path: PathBuf,
    /// The kinds that have a line.
    kinds: Vec<(KindId, String, LineEpoch)>,
    written: Stored,
    order: Arc<WriteOrder>,
}

impl LineStore {
    /// Returns the writer, if there are lines and a file for them.
    pub(super) fn new(gateway: &Arc<Gateway>) -> Option<Self> {
        let core = gateway.core();
        let params = core.params();
        if params.sharing.is_some() {
            return None;
        }
        let (waiting_room, path) = (core.waiting_room()?, params.waiting_room.state_file.clone()?);
        let kinds = params.sessions.kinds.iter().enumerate().filter_map(|(index, kind)| {
            let id = KindId(index as u32);
            Some((id, kind.name.clone(), waiting_room.line(id)?))
        });
        Some(LineStore {
            gateway: Arc::clone(gateway),
            path,
            kinds: kinds.collect(),
            written: Stored::default(),
            order: Arc::default(),
        })
    }

    /// Writes every second in which something changed. Never returns.
    pub(super) async fn keep(&mut self) {
        loop {
            self.write(SKIPPED_MIN, SKIPPED_TIMES).await;
            tokio::time::sleep(LINES_EVERY).await;
        }
    }

    /// Writes for the last time, when no number is drawn any more: nothing is skipped then.
    pub(super) async fn write_exactly(&mut self) {
        self.write(0, 0).await;
    }

    /// Writes, if anything changed since the last time.
    async fn write(&mut self, skipped_min: u64, skipped_times: u64) {
        let core = self.gateway.core();
        let keeper = &core.backend().keeper;
        let lines = self.kinds.iter().filter_map(|(id, name, of)| {
            let saved = keeper.saved_line(*id)?;
            let before = self.written.lines.iter().find(|line| line.kind == *name);
            let drawn = |saved: &SavedLine| saved.lanes.iter().map(|lane| lane.next).sum::<u64>();
            let since = before.map_or(0, |before| drawn(&saved).saturating_sub(drawn(&before.saved)));
            let skipped = skipped_min.max(skipped_times * since);
            let said = core.waiting_room().and_then(|waiting_room| waiting_room.said_by_operator(*id));
            let leases_ended = core.leases().ended_until(*id);
            Some(StoredLine { kind: name.clone(), of: *of, saved, skipped, said, leases_ended })
        });
        let stored = Stored { lines: lines.collect() };
        if stored == self.written {
            return;
        }
        let (now, path, writing) = ((now_unix(), keeper.clock().now()), self.path.clone(), stored.clone());
        let (own, order) = (self.order.begin(), Arc::clone(&self.order));
        let written =
            tokio::task::spawn_blocking(move || order.write(own, || writing.write(&path, now))).await;
        match written {
            Ok(Ok(())) => self.written = stored,
            Ok(Err(error)) => tracing::error!(
                "{}: cannot be written ({error}): if the gateway ended now, waiting visitors would lose their positions",
                self.path.display()
            ),
            Err(_) => {}
        }
    }
}
