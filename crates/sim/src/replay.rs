//! A recording played to a real gate: the same events, so the same decisions, bit for bit; and what
//! other settings would have decided.
//!
//! [`Replay`] is the first. It is fed with the segments of a recording, in order, and holds the
//! gate against the marks in them: hashes of what the gate in the gateway had decided and answered
//! until there.
//!
//! [`WhatIf`] is the second: another gate is told of the same visitors. Its answers differ, so what
//! followed from the recorded ones has to be made up, and by these rules alone:
//!
//! - Requests come when they came; those of a session that is admitted later than it was come later
//!   by as much.
//! - A session that is turned away asks for nothing more. Where somebody is admitted instead who
//!   was turned away in the recording, of whom nothing is known, that visitor does what the one
//!   turned away did: the one longest ago first.
//! - A request that is started at another time takes as long as it took. One that was never started
//!   takes as long as the last one of its route had when it was turned away.
//! - A client leaves when it left (later, if it came later), if it is still there. Nobody leaves
//!   who stayed.
//! - Time passes for the gate at the recorded moments, every 20 ms or so.
//!
//! So a what-if tells what a gate would have done *with that traffic*: it cannot know how much
//! quicker or slower the application would have been, nor who would have come again. With the
//! settings that were recorded it is the recording, exactly.

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

/// Decisions kept for the report; of a longer recording the last are only counted.
pub const DECISIONS_MAX: usize = 100_000;
/// Requests remembered for a what-if: about half a gigabyte.
pub const STAYS_MAX: usize = 10_000_000;
/// A recording being played, or played to its end.
#[derive(Debug, Default)]
pub struct Replay {
    /// Segments played.
    pub segments: u64,
    /// Runs of a gateway that they are of.
    pub runs: u64,
    /// Calls made.
    pub events: u64,
    /// Marks that the gate agreed with.
    pub marks: u64,
    /// Time from the first event to the last of each run, together.
    pub span: Duration,
    /// When the first segment began, since 1970.
    pub began: Duration,
    /// What was decided, up to [`DECISIONS_MAX`].
    pub decisions: Vec<Record>,
    /// How much was decided.
    pub decided: u64,
    /// Hash of all decisions of the last run.
    pub trace: u64,
    /// Where decisions begin to differ from those recorded; nothing is played after it.
    pub divergence: Option<Divergence>,
    /// The program that recorded, where it is another version than this one.
    pub other_program: Option<String>,
    counter: Counter,
    player: Option<Player>,
    /// For a what-if: every request, in the order in which they came.
    stays: Option<Vec<Stay>>,
}

/// Where decisions begin to differ.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The segment.
    pub segment: u64,
    /// They were still the same then, since the run's origin ...
    pub after: Instant,
    /// ... and not any more then.
    pub until: Instant,
    /// What differs.
    pub what: &'static str,
}

/// Why a recording cannot be played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplayError {
    /// The file is damaged.
    Damage(Damage),
    /// The state a segment begins with is not one that a gate can have.
    State(Broken),
    /// The gate of these settings cannot be told what is recorded: not a recording of a gate.
    Impossible(&'static str),
    /// There are more requests than a what-if can remember.
    TooMany,
}

impl Replay {
    /// Returns a replay that has been told nothing.
    pub fn new() -> Self {
        Replay::default()
    }

    /// Returns one that remembers what a what-if needs.
    pub fn for_what_if() -> Self {
        Replay { stays: Some(Vec::new()), ..Replay::default() }
    }

    /// Returns one that keeps what happened over time.
    pub fn for_timeline() -> Self {
        let mut replay = Replay::default();
        replay.counter.timeline = Some(Timeline::default());
        replay
    }

    /// Returns what happened over time, if it was to be kept.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.counter.timeline.as_ref()
    }

    /// Plays one segment. Those of a run follow one another; where one is missing, the gate goes on
    /// with the state the segment begins with.
    ///
    /// # Errors
    /// Returns [`ReplayError`] where it cannot be played on; what was played before stays.
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

    /// Returns what visitors had of it.
    pub fn figures(&self) -> Figures {
        self.counter.figures()
    }

    /// Begins a segment: goes on from the one before, or from the state in this one.
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

    /// Returns where in the list the requests are that were in the gate when a segment began: at
    /// its end, in order.
    fn places_inside(&self) -> BTreeMap<RequestId, usize> {
        let (Some(player), Some(stays)) = (&self.player, &self.stays) else { return BTreeMap::new() };
        let inside = player.gate.inside();
        let first = stays.len() - inside.len();
        inside.iter().enumerate().map(|(index, inside)| (inside.request, first + index)).collect()
    }

    /// Ends a run: counts how long it was.
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
        }
    }
}

impl std::error::Error for ReplayError {}

#[cfg(test)]
mod tests;
