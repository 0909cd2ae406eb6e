//! The lines of the waiting room as their operator sees and commands them.

use super::Observer;
use crate::wall_clock::now_unix;
use std::time::{Duration, SystemTime};
use std::{error, fmt};
use suimon_identity::keys::{self, KeysError};
use suimon_line::Command;
use suimon_model::KindId;

/// One line, as its operator sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct LineReport {
    /// The kind of session.
    pub kind: String,
    /// How it stands.
    pub view: suimon_line::View,
    /// When it opens, seconds since 1970.
    pub opens_at: Option<f64>,
    /// SHA-256 of the seed by which lots are drawn at its opening, or were.
    pub seed_hash: Option<String>,
    /// The message to all waiting visitors.
    pub message: String,
}

/// What an operator may say to a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LineCommand {
    /// Stand still.
    Pause,
    /// Move.
    Resume,
    /// Tell everybody that there is nothing to wait for any more.
    Close,
    /// Take numbers, and admit nobody before `at`. Earlier proofs of a session are good only for
    /// those that are inside now.
    Open {
        /// When it opens.
        at: SystemTime,
        /// Whether the order then is drawn by lot among those who are there.
        by_lot: bool,
    },
    /// Show this message to all waiting visitors.
    Say(String),
}

/// Why a command to a line failed.
#[derive(Debug)]
pub enum LineError {
    /// There is no line of that name; those there are.
    NoSuch(Vec<String>),
    /// A line must be named; those there are.
    Several(Vec<String>),
    /// Lots were drawn for people who are still to be called.
    Drawn,
    /// The line is shared with other gateways, which would draw other lots.
    Shared,
    /// The system gives no random bytes.
    Random(KeysError),
}

impl Observer {
    /// Returns every line as it stands.
    pub fn lines(&self) -> Vec<LineReport> {
        let core = self.gateway.core();
        let Some(waiting_room) = core.waiting_room() else { return Vec::new() };
        let (now, instant) = (now_unix(), core.backend().keeper.clock().now());
        let snapshot = core.backend().keeper.snapshot();
        let lines = core.kinds().iter().zip(&snapshot.kinds).enumerate();
        let report = lines.filter_map(|(index, (kind, view))| {
            let view = view.line?;
            let opens_at = match view.state {
                suimon_line::LineStatus::Opening(at) => Some(f64::from(now) + at.secs_since(instant)),
                suimon_line::LineStatus::Moving
                | suimon_line::LineStatus::Paused
                | suimon_line::LineStatus::Closed => None,
            };
            let id = KindId(index as u32);
            let seed_hash = Some(waiting_room.commitment(id)).filter(|hash| !hash.is_empty());
            Some(LineReport {
                kind: kind.name.clone(),
                view,
                opens_at,
                seed_hash,
                message: waiting_room.said(id),
            })
        });
        report.collect()
    }

    /// Does what an operator says to the line of the kind of this name, or to all.
    ///
    /// # Errors
    /// If there is no such line, or the system gives no random bytes for a seed.
    pub fn command_line(&self, kind: Option<&str>, command: &LineCommand) -> Result<(), LineError> {
        let core = self.gateway.core();
        let waiting_room = core.waiting_room().ok_or_else(|| LineError::NoSuch(Vec::new()))?;
        let kinds = self.lines_of(kind)?;
        if matches!(command, LineCommand::Open { by_lot: true, .. }) && core.params().sharing.is_some() {
            return Err(LineError::Shared);
        }
        // All of them, or none.
        if matches!(command, LineCommand::Open { by_lot: true, .. })
            && kinds.iter().any(|kind| core.backend().keeper.has_lots_to_call(*kind))
        {
            return Err(LineError::Drawn);
        }
        for kind in kinds {
            let command = match command {
                LineCommand::Pause => Command::Pause,
                LineCommand::Resume => Command::Move,
                LineCommand::Close => Command::Close,
                LineCommand::Open { at, by_lot } => {
                    let mut seed = [0; 16];
                    keys::fill_random(&mut seed).map_err(LineError::Random)?;
                    let (one, other) = seed.split_at(8);
                    let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                    let lots = by_lot.then(|| [half(one), half(other)]);
                    waiting_room.commit(kind, lots);
                    core.leases().end_all(kind, now_unix());
                    let left = at.duration_since(SystemTime::now()).unwrap_or_default();
                    Command::OpenAt { at: core.backend().keeper.clock().now() + left, lots }
                }
                LineCommand::Say(message) => {
                    waiting_room.say(kind, message);
                    continue;
                }
            };
            core.backend().keeper.command(kind, command);
        }
        Ok(())
    }

    /// Returns new invitations to a line, each as it stands in the query of a link.
    ///
    /// # Errors
    /// As [`Observer::command_line`] does; and if there are several lines and none is named.
    pub fn invite(&self, kind: Option<&str>, count: usize, life: Duration) -> Result<Vec<String>, LineError> {
        let core = self.gateway.core();
        let waiting_room = core.waiting_room().ok_or_else(|| LineError::NoSuch(Vec::new()))?;
        let kind = match self.lines_of(kind)?[..] {
            [kind] => kind,
            ref kinds => {
                let names = kinds.iter().map(|kind| core.kinds()[kind.index()].name.clone());
                return Err(LineError::Several(names.collect()));
            }
        };
        let until = now_unix().saturating_add(u32::try_from(life.as_secs()).unwrap_or(u32::MAX));
        waiting_room.invite(kind, count, until).map_err(LineError::Random)
    }

    /// Returns the kinds that a name means, at least one.
    fn lines_of(&self, kind: Option<&str>) -> Result<Vec<KindId>, LineError> {
        let core = self.gateway.core();
        let kinds = core.kinds().iter().enumerate().filter(|(_, own)| own.gate.line.is_some());
        let (wanted, others): (Vec<_>, Vec<_>) =
            kinds.partition(|(_, own)| kind.is_none_or(|kind| own.name == kind));
        if wanted.is_empty() {
            return Err(LineError::NoSuch(others.into_iter().map(|(_, own)| own.name.clone()).collect()));
        }
        Ok(wanted.into_iter().map(|(index, _)| KindId(index as u32)).collect())
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::NoSuch(others) if others.is_empty() => {
                f.write_str("no kind of session has a line; see session.waiting_room in the settings")
            }
            LineError::NoSuch(others) => {
                write!(f, "there is no line of that name; there are: {}", others.join(", "))
            }
            LineError::Shared => f.write_str(
                "the line is shared with other gateways, and lots are drawn by one alone; open it in the order of arrival",
            ),
            LineError::Several(names) => {
                write!(f, "an invitation is to one line; name it: {}", names.join(", "))
            }
            LineError::Drawn => f.write_str(
                "lots have decided about the order of people who still wait; they can be drawn again once all of those were called",
            ),
            LineError::Random(error) => error.fmt(f),
        }
    }
}

impl error::Error for LineError {}
