//! Numbers of a lane in one order across gateways.
//!
//! The engine hands out numbers in blocks, each of which follows all before it. A gateway draws
//! from its block, and asks for another one as soon as a record shows that somebody has drawn a
//! later number: then no number is drawn at one gateway that is lower than one drawn at another
//! more than two periods earlier. What is left of a block then belongs to nobody.
//!
//! Without the engine each gateway draws from cells of its own, [`CELL`] numbers for each second and
//! gateway, by the clock: no number is drawn twice, and the order is that of two seconds, as long as
//! nobody draws more than a cell in each. A gateway that does runs ahead, so that its later visitors
//! stand behind those of others who came later.
//!
//! The same cells serve where a block is drawn before the next one comes: those visitors stand behind
//! others who come in the next moments.

use crate::{GatewayId, LaneRecord};
use suimon_model::Instant;

/// The fewest and the most numbers asked for at once.
const BLOCK_MIN: u64 = 64;
const BLOCK_MAX: u64 = 1 << 16;
/// A block is to be enough for so many times what was drawn in the last period.
const BLOCK_PERIODS: u64 = 4;
/// Numbers of one gateway for one second without the engine.
pub(crate) const CELL: u64 = 256;
/// Numbers between the last one known to be handed out and the first that is drawn without the
/// engine: blocks that others had asked for meanwhile lie there.
const APART: u64 = 1 << 18;

/// Numbers that may be drawn: from the first to before the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// The first.
    pub from: u64,
    /// The one behind the last.
    pub to: u64,
}

impl Block {
    /// Returns how many are left when `next` is the next.
    fn left(&self, next: u64) -> u64 {
        self.to.saturating_sub(self.from.max(next))
    }
}

/// The numbers of one lane at one gateway.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Numbers {
    block: Block,
    /// The last `next` that was reported, and how much was drawn in the period before.
    reported: u64,
    drawn: u64,
    /// The highest number known to be handed out to anybody, or drawn.
    highest: u64,
    lost: Option<Lost>,
}

/// Drawing without the engine.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Lost {
    since: Instant,
    base: u64,
    /// Which of how many cells of a second are its own.
    rank: u64,
    cells: u64,
}

impl Numbers {
    /// Returns how many numbers to ask for. `own`: the lane here; `others`: the same elsewhere.
    pub fn wanted<'a>(&mut self, own: &LaneRecord, others: impl Iterator<Item = &'a LaneRecord>) -> u64 {
        self.drawn = own.next.saturating_sub(self.reported.max(self.block.from));
        self.reported = own.next;
        let drawn_elsewhere = others.map(|lane| lane.next).max().unwrap_or(0);
        self.highest = self.highest.max(drawn_elsewhere).max(own.next);
        let enough = BLOCK_MIN.max(BLOCK_PERIODS * self.drawn).min(BLOCK_MAX);
        let is_behind = drawn_elsewhere > own.next.max(self.block.from);
        let is_low = self.block.left(own.next) < (enough / 2).max(1);
        if is_behind || is_low || self.lost.is_some() { enough } else { 0 }
    }

    /// Returns the first number that the engine may hand out, which is at `counter`: it may have
    /// lost what it knew.
    pub fn at_least(&self, counter: u64) -> u64 {
        counter.max(self.highest)
    }

    /// Takes in a block of the engine's.
    pub fn handle_block(&mut self, block: Block) {
        self.highest = self.highest.max(block.to);
        self.block = block;
        self.lost = None;
    }

    /// Takes note that the engine is lost at `now`; `members`: those who shared, in order, and `me`
    /// among them.
    pub fn handle_loss(&mut self, now: Instant, me: GatewayId, members: &[GatewayId]) {
        if self.lost.is_none() {
            self.lost = Some(self.lost_at(now, me, members));
        }
    }

    fn lost_at(&self, since: Instant, me: GatewayId, members: &[GatewayId]) -> Lost {
        let rank = members.iter().position(|member| *member == me).unwrap_or(0) as u64;
        let cells = (members.len().max(2) as u64).next_power_of_two();
        let stride = CELL * cells;
        Lost { since, base: (self.highest + APART).div_ceil(stride) * stride, rank, cells }
    }

    /// Returns what may be drawn from `now` on.
    pub fn allotment(&self, now: Instant, me: GatewayId, members: &[GatewayId]) -> Allotment {
        let (block, base, lost, passed) = match self.lost {
            Some(lost) => (Block::default(), lost.base, lost, now.since(lost.since).as_secs()),
            None => {
                let lost = self.lost_at(now, me, members);
                (self.block, lost.base, lost, 0)
            }
        };
        let stride = CELL * lost.cells;
        Allotment { block, cell: base + passed * stride + lost.rank * CELL, stride }
    }
}

/// Numbers that a lane may draw: those of its block, and where they are drawn, or there is none, the
/// cells of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Allotment {
    /// The block.
    pub block: Block,
    /// The first number of the first of its cells.
    cell: u64,
    /// From one of its cells to the next.
    stride: u64,
}

impl Allotment {
    /// Returns the next number to draw, where none before `next` may be drawn; `None` where there
    /// are no cells.
    pub fn number(&self, next: u64) -> Option<u64> {
        if self.block.left(next) > 0 {
            return Some(self.block.from.max(next));
        }
        if self.stride == 0 {
            return None;
        }
        let passed = next.saturating_sub(self.cell);
        let cell = self.cell + passed / self.stride * self.stride;
        match next.saturating_sub(cell) < CELL {
            true => Some(cell.max(next)),
            false => Some(cell + self.stride),
        }
    }
}

#[cfg(test)]
mod tests;
