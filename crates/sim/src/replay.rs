//! A recording played to a real gate: the same events give the same decisions, bit for bit. And
//! what other settings would have decided.
//!
//! [`Replay`] is the first. It takes the segments of a recording, in order, and compares the gate
//! with their marks: hashes of what the gateway's gate had decided and answered so far.
//!
//! [`WhatIf`] is the second: another gate gets the same visitors. Its answers differ, so what
//! followed from the recorded answers is derived anew, by these rules alone:
//!
//! - Requests arrive at the recorded times. If a session is admitted later than recorded, its
//!   requests are later by the same time.
//! - A session that is turned away sends no more requests. If a visitor is admitted who was turned
//!   away in the recording, nothing is known of what it would have done. So it takes over a
//!   recorded session that is turned away here, the one turned away longest ago first.
//! - A request that starts at another time takes as long as recorded. One that never started takes
//!   as long as the last request of its route before it was turned away.
//! - A client disconnects when it did in the recording (later, if it arrived later), if its request
//!   is still there. No other client disconnects.
//! - The gate's timeouts are handled at the recorded moments, about every 20 ms.
//!
//! So a what-if shows what a gate would have done *with that traffic*. It cannot know how much
//! faster or slower the application would have been, nor which visitors would have returned. With
//! the recorded settings it equals the recording exactly.

mod figures;
mod player;
mod timeline;
mod what_if;

pub use figures::{Figures, RouteFigures};
pub use timeline::{Bin, CHANGES_MAX, Change, Moment, RouteLine, Timeline, TimelineSubject, Visitors};
pub use what_if::WhatIf;

use figures::Counter;
use player::{Player, Refused, Stay};
use std::collections::BTreeMap;
use std::fmt;
use suimon_model::persist::Broken;
use suimon_model::{Duration, Instant, Record, RequestId};
use suimon_record::{Answers, Block, Damage, Mark, Part, Segment};

/// The most decisions kept for the report; further ones are only counted.
pub const DECISIONS_MAX: usize = 100_000;
/// The most requests remembered for a what-if: about half a gigabyte.
pub const STAYS_MAX: usize = 10_000_000;
/// A recording, partly or fully played.
#[derive(Debug, Default)]
pub struct Replay {
    /// Segments played.
    pub segments: u64,
    /// Gateway runs to which they belong.
    pub runs: u64,
    /// Calls of the gate.
    pub events: u64,
    /// Marks that matched.
    pub marks: u64,
    /// Time from the first event to the last, summed over the runs.
    pub span: Duration,
    /// When the first segment began, since 1970.
    pub began: Duration,
    /// Decisions, up to [`DECISIONS_MAX`].
    pub decisions: Vec<Record>,
    /// The number of all decisions.
    pub decided: u64,
    /// Hash of all decisions of the last run.
    pub trace: u64,
    /// Where decisions begin to differ from the recorded ones; nothing is played after it.
    pub divergence: Option<Divergence>,
    /// The version of the program that recorded, if it differs from this one.
    pub other_program: Option<String>,
    counter: Counter,
    player: Option<Player>,
    /// For a what-if: every request, in the order of arrival.
    stays: Option<Vec<Stay>>,
}

/// Where decisions begin to differ.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The segment.
    pub segment: u64,
    /// Decisions were still equal at this moment, counted from the run's origin ...
    pub after: Instant,
    /// ... and differed by this one.
    pub until: Instant,
    /// What differs.
    pub what: &'static str,
}

/// Why a recording cannot be played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplayError {
    /// The file is damaged.
    Damage(Damage),
    /// The state at the beginning of a segment is one that no gate can have.
    State(Broken),
    /// A gate with these settings cannot take a recorded event: this is not a recording of a gate.
    Impossible(&'static str),
    /// There are more requests than a what-if can remember.
    TooMany,
    /// The settings to try cannot be combined with those in force in the recording.
    Misfit {
        /// The segment in which the recorded settings were adopted, or that begins with them.
        segment: u64,
        /// When that was, on the gate's clock.
        at: Instant,
        /// What is wrong with the combination.
        why: String,
    },
}

impl Replay {
    /// Returns a replay that has played nothing yet.
    pub fn new() -> Self {
        Replay::default()
    }

    /// Returns a replay that remembers what a what-if needs.
    pub fn for_what_if() -> Self {
        Replay { stays: Some(Vec::new()), ..Replay::default() }
    }

    /// Returns a replay that records a timeline.
    pub fn for_timeline() -> Self {
        let mut replay = Replay::default();
        replay.counter.timeline = Some(Timeline::default());
        replay
    }

    /// Returns the timeline, if this replay records one.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.counter.timeline.as_ref()
    }

    /// Plays one segment. Segments of a run must follow one another. If one is missing, the gate
    /// goes on with the state at the beginning of the next.
    ///
    /// # Errors
    /// Returns [`ReplayError`] if it cannot continue; what was played before remains.
    pub fn play(&mut self, segment: &Segment<'_>) -> Result<(), ReplayError> {
        if self.divergence.is_some() {
            return Ok(());
        }
        self.enter(segment)?;
        for part in segment.parts() {
            let Part::Block(block) = part.map_err(ReplayError::Damage)? else { break };
            self.play_block(&block)?;
            if self.divergence.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the results for the visitors.
    pub fn figures(&self) -> Figures {
        self.counter.figures()
    }

    /// Begins a segment: continues from the one before, or from the state in this one.
    fn enter(&mut self, segment: &Segment<'_>) -> Result<(), ReplayError> {
        let header = &segment.header;
        if self.segments == 0 {
            self.began = header.since_1970;
        }
        self.segments += 1;
        if header.program != env!("CARGO_PKG_VERSION") {
            self.other_program = Some(header.program.clone());
        }
        if let Some(player) = self.player.as_mut().filter(|player| player.is_followed_by(header)) {
            player.segment = header.segment;
            player.answers = Answers::default();
            if player.gate.save().as_ref() != Ok(&segment.snapshot) {
                self.diverge("the state of the gate");
            }
            return Ok(());
        }
        self.leave();
        let player = Player::new(segment)?;
        self.runs += 1;
        self.counter.enter(&player.gate, header);
        if let Some(timeline) = &mut self.counter.timeline {
            timeline.enter(&player.gate, header, self.segments == 1);
        }
        if let Some(stays) = &mut self.stays {
            player.remember_all(stays)?;
        }
        self.player = Some(player);
        let begin = self.places_inside();
        if let Some(player) = &mut self.player {
            player.places = begin;
        }
        Ok(())
    }

    /// Returns the places in the list of the requests that were in the gate when a segment began;
    /// they are the last ones, in order.
    fn places_inside(&self) -> BTreeMap<RequestId, usize> {
        let (Some(player), Some(stays)) = (&self.player, &self.stays) else { return BTreeMap::new() };
        let inside = player.gate.inside();
        let first = stays.len() - inside.len();
        inside.iter().enumerate().map(|(index, inside)| (inside.request, first + index)).collect()
    }

    /// Ends a run: adds its length.
    fn leave(&mut self) {
        let Some(player) = self.player.take() else { return };
        self.counter.leave(player.now);
    }

    fn play_block(&mut self, block: &Block<'_>) -> Result<(), ReplayError> {
        let Some(player) = &mut self.player else { return Ok(()) };
        let after = player.now;
        for event in block.events() {
            let (now, event) = event.map_err(ReplayError::Damage)?;
            self.span += now.since(player.now);
            player.now = player.now.max(now);
            self.events += 1;
            if let Some(timeline) = &mut self.counter.timeline {
                timeline.pass(self.span.as_secs_f64(), now, &player.gate);
            }
            let stays = self.stays.as_mut();
            let told = player.tell(now, event, &mut self.counter, stays, |record| {
                self.decided += 1;
                if self.decisions.len() < DECISIONS_MAX {
                    self.decisions.push(record);
                }
            });
            match told {
                Ok(()) => {}
                Err(Refused::Error(error)) => return Err(error),
                Err(Refused::Differs(what)) => {
                    self.divergence =
                        Some(Divergence { segment: player.segment, after, until: player.now, what });
                    return Ok(());
                }
            }
        }
        self.counter.until(player.now);
        if let Some(timeline) = &mut self.counter.timeline {
            timeline.look(player.now, &player.gate);
        }
        self.trace = player.gate.trace().value();
        let Mark { trace, answers, events: _ } = block.mark;
        if player.gate.trace().value() != trace {
            self.diverge_after(after, "what was decided");
        } else if player.answers.value() != answers {
            self.diverge_after(after, "who was let in or refused");
        } else {
            self.marks += 1;
        }
        Ok(())
    }

    fn diverge(&mut self, what: &'static str) {
        if let Some(player) = &self.player {
            self.diverge_after(player.now, what);
        }
    }

    fn diverge_after(&mut self, after: Instant, what: &'static str) {
        if let Some(player) = &self.player {
            self.divergence = Some(Divergence { segment: player.segment, after, until: player.now, what });
        }
    }
}

impl From<Damage> for ReplayError {
    fn from(damage: Damage) -> Self {
        ReplayError::Damage(damage)
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Damage(damage) => damage.fmt(f),
            ReplayError::State(broken) => write!(
                f,
                "the gate's state at its beginning is none that this build knows ({broken} of the state): it was written by another build, or changed"
            ),
            ReplayError::Impossible(why) => write!(f, "{why}: it is no recording of a gate"),
            ReplayError::TooMany => {
                write!(
                    f,
                    "it has more than {STAYS_MAX} requests, which is more than can be compared at once: name one of its segments"
                )
            }
            ReplayError::Misfit { segment, at, why } => write!(
                f,
                "the settings to try cannot be combined with those in force from {:.3} s after the gateway's start (segment {segment}), so there is no \
                 comparison; try settings that can be combined with all in the recording, or play earlier segments only: {why}",
                at.as_secs_f64()
            ),
        }
    }
}

impl std::error::Error for ReplayError {}

#[cfg(test)]
mod tests;
