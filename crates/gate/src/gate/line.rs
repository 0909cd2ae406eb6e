//! What pages and operators ask of the lines.

use super::Gate;
use suimon_line::{Command, Line, Position, PositionStatus, SavedLine};
use suimon_model::{Instant, KindId};

impl Gate {
    /// Takes note of a poll of the holder of `position`, and returns the status. Nobody is admitted
    /// by it. `None`: there is nothing to wait for, as the kind has no line, or the place has begun
    /// its session.
    pub fn handle_contact(
        &mut self,
        now: Instant,
        kind: KindId,
        position: Position,
    ) -> Option<PositionStatus> {
        let line = self.line_mut(kind).filter(|line| !line.is_claimed(position))?;
        let standing = line.contact(now, position);
        if !standing.is_called() {
            self.pressure.note(now);
        }
        Some(standing)
    }

    /// Does what an operator says, and returns whether the kind has a line.
    pub fn handle_command(&mut self, now: Instant, kind: KindId, command: Command) -> bool {
        let Some(line) = self.line_mut(kind) else { return false };
        line.command(command);
        // An admitted visitor has to be known for longer than the gate remembers the session.
        if !line.is_moving() {
            self.pressure.note(now);
        }
        // Everything that is not admitted is kept waiting, from now on and not from the next tick
        // on.
        self.kinds[kind.index()].look_at_line();
        self.admit_from_lines(now);
        self.publish();
        true
    }

    /// Goes on with the line of `kind` where another gate's ended. `skipped`: numbers that may have
    /// been drawn since `saved` was written. `takes_over`: the other gate ends at this moment.
    pub fn restore_line(
        &mut self,
        now: Instant,
        kind: KindId,
        saved: &SavedLine,
        skipped: u64,
        takes_over: bool,
    ) {
        let kind = &mut self.kinds[kind.index()];
        if let Some(params) = kind.params.line {
            let line = Line::resume(params, now, saved, skipped);
            let mut line = if takes_over { line.taken_over(now) } else { line };
            line.application(!self.away.is_on());
            kind.line = Some(line);
            kind.look_at_line();
        }
    }

    /// Returns how many visitors wait to begin a session, held and in line, all kinds together.
    pub fn visitors_waiting(&self) -> u64 {
        let of = |kind: &crate::kinds::KindGate| {
            // A held newcomer has a place, too.
            kind.line
                .as_ref()
                .map_or(kind.held.len() as u64, |line| line.waiting().max(kind.held.len() as u64))
        };
        self.kinds.iter().map(of).sum()
    }

    /// Returns the line of `kind`, if it has one.
    pub fn line(&self, kind: KindId) -> Option<&Line> {
        self.kinds.get(kind.index())?.line.as_ref()
    }

    fn line_mut(&mut self, kind: KindId) -> Option<&mut Line> {
        self.kinds.get_mut(kind.index())?.line.as_mut()
    }
}
