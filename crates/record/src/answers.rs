//! A running hash of what a gate answered: which requests it started, refused or queued. Decisions
//! have a hash of their own, the trace.

use suimon_gate::Output;
use suimon_line::PositionStatus;

/// Equal answers in equal order give equal hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Answers(u64);

impl Answers {
    /// Folds in one output. A decision changes nothing: it is in the trace.
    pub fn fold(&mut self, output: &Output) {
        match output {
            Output::Start(start) => {
                self.word(start.request.0 << 2 | start.lease as u64);
                self.word(start.session.map_or(0, |(_, session)| session.0));
                self.word(start.waited.as_nanos() as u64);
            }
            Output::Refuse(refusal) => {
                self.word(!refusal.request.0);
                self.word(refusal.reason as u64);
                self.word(refusal.retry_after.as_nanos() as u64);
            }
            Output::Wait(wait) => {
                self.word(!(wait.request.0 << 1));
                self.word(
                    wait.position
                        .map_or(u64::MAX, |position| position.number << 2 | position.lane.index() as u64),
                );
                self.word(wait.begun.map_or(0, |session| session.0));
                if let PositionStatus::Called(left)
                | PositionStatus::Waiting(left)
                | PositionStatus::Opening(_, left)
                | PositionStatus::Paused(left)
                | PositionStatus::ApplicationDown(left) = wait.standing
                {
                    self.word(left.ahead);
                    self.word(left.poll_after.as_nanos() as u64);
                }
            }
            Output::Resumed(request) => self.word(!(request.0 << 2)),
            Output::Decided(_) => {}
        }
    }

    /// Returns the hash of all that was folded in.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// One multiplication, since every request pays for it: a hash against chance, not against
    /// malice.
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
