//! Numbers of a lane in one order across gateways.
//!
//! The engine hands out numbers in blocks, each of which follows all before it. A gateway draws
//! from its block, and asks for another one as soon as a record shows that somebody has drawn a
//! later number. It is published with the next exchange there, read with the next one here, and the
//! block comes with the one after that: then no number is drawn at one gateway that is lower than one
//! drawn at another more than three periods earlier. What is left of a block then belongs to nobody.
//!
//! Without the engine each gateway draws from cells of its own, [`CELL`] numbers of the
//! [`PER_SECOND`] of each second of the real time: nobody has to know anybody for that, nor what was
//! handed out before, and the order is that of two seconds, as long as nobody draws more than a cell
//! in each, and as clocks agree. A gateway that does runs ahead, so that its later visitors stand
//! behind those of others who came later. Which cell of a second is its own is a hash of who it is:
//! two gateways have the same one once in [`CELLS`] times, unless one of them knows of the other.
//! Then some of their visitors have the same number, and the same turn.
//!
//! Numbers that the engine hands out begin where the second begins in which the first is asked for:
//! an engine that has lost all hands out none again. From there they count on one by one. Where its
//! count is below what a gateway has heard of, which still draws from its block, as others do, the
//! engine has lost it a moment ago: it goes on beyond every block that may be out.
//!
//! The same cells serve where a block is drawn before the next one comes: those visitors stand behind
//! others who come in the next moments.

use crate::hash::weight;
use crate::record::NUMBERS_END;
use crate::{GATEWAYS_MAX, GatewayId, LaneRecord};
use std::collections::BTreeSet;
use suimon_model::Instant;

/// The fewest and the most numbers asked for at once.
const BLOCK_MIN: u64 = 64;
const BLOCK_MAX: u64 = 1 << 16;
/// Numbers that are left out where the engine has lost its count. Who asks knows what the others had
/// drawn a few periods ago: each may have got some more blocks since, none of them near the largest.
const BEYOND: u64 = GATEWAYS_MAX as u64 * BLOCK_MAX;
/// A block is to be enough for so many times what was drawn in the last period.
const BLOCK_PERIODS: u64 = 4;
/// Numbers of one gateway for one second without the engine.
pub(crate) const CELL: u64 = 256;
/// Numbers of a second: a line grows by far fewer, so that those of the engine never reach the present.
const PER_SECOND: u64 = 1 << 18;
/// Cells of a second.
const CELLS: u64 = PER_SECOND / CELL;
/// Seconds since 1970 at which numbers begin: 2020. With 48 bits they last for 34 years from there.
const BEGIN: u64 = 1_577_836_800;

/// What a clock says never leads further: a wrong one leaves numbers enough to count on.
const CLOCK_END: u64 = NUMBERS_END - (1 << 34);

/// Gateways notice that the engine is lost at most so many seconds apart.
const LOST_APART: u64 = 2;

/// Returns the first number of a second since 1970.
fn first_of(unix: u64) -> u64 {
    unix.saturating_sub(BEGIN).saturating_mul(PER_SECOND).min(CLOCK_END)
}

/// Returns which cell of each second `me` has: by a hash, and beside those of `members` before it.
fn cell_of(me: GatewayId, members: &[GatewayId]) -> u64 {
    let mut taken = BTreeSet::new();
    let others = members.iter().filter(|member| **member < me);
    for member in others.chain([&me]) {
        let mut cell = weight(CELL_KEY, *member) % CELLS;
        while !taken.insert(cell) {
            cell = (cell + 1) % CELLS;
        }
        if *member == me {
            return cell;
        }
    }
    0
}

/// The key by which gateways are spread over cells.
const CELL_KEY: u64 = 0x6365_6c6c;

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

/// Numbers that a gateway asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// How many.
    pub count: u64,
    /// What the engine has counted up to: where it is below, it has lost its count, while gateways
    /// draw from blocks that it does not know of. 0: it may be anywhere.
    pub heard: u64,
    /// The first number that may be handed out.
    pub least: u64,
}

impl Wanted {
    /// Returns where to begin where the engine has lost its count.
    pub fn beyond(&self) -> u64 {
        self.least + BEYOND
    }

    /// Returns the block that an engine hands out whose next number is `counter`.
    pub fn block(&self, counter: u64) -> Block {
        let from = if counter < self.heard { self.beyond() } else { counter.max(self.least) };
        Block { from, to: from + self.count }
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
    /// The highest number that the engine is known to have counted: those of own cells are not.
    heard: u64,
    lost: Option<Lost>,
}

/// Drawing without the engine.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Lost {
    since: Instant,
    /// The first number of the second in which that was, and its own cell of each.
    base: u64,
    cell: u64,
}

impl Numbers {
    /// Returns what to ask for, if anything. `own`: the lane here; `others`: the same elsewhere;
    /// `unix`: seconds since 1970 at `now`.
    pub fn wanted<'a>(
        &mut self,
        own: &LaneRecord,
        others: impl Iterator<Item = &'a LaneRecord>,
        now: Instant,
        unix: u64,
    ) -> Option<Wanted> {
        self.drawn = own.next.saturating_sub(self.reported.max(self.block.from));
        self.reported = own.next;
        let drawn_elsewhere = others.map(|lane| lane.next).max().unwrap_or(0);
        self.highest = self.highest.max(drawn_elsewhere).max(own.next);
        self.heard = self.heard.max(drawn_elsewhere);
        let enough = BLOCK_MIN.max(BLOCK_PERIODS * self.drawn).min(BLOCK_MAX);
        let is_behind = drawn_elsewhere > own.next.max(self.block.from);
        let is_low = self.block.left(own.next) < (enough / 2).max(1);
        let least = if self.highest == 0 { first_of(unix) } else { self.highest };
        match self.lost {
            // It has left its block, and others that it has not heard of since may have drawn from
            // their cells until now, in the second that has begun: from those of the clock, or
            // beyond where numbers were ahead of it.
            Some(lost) => {
                let passed = now.since(lost.since).as_secs() + 1 + LOST_APART;
                let cells = lost.base.saturating_add(passed.saturating_mul(PER_SECOND)).min(CLOCK_END);
                let least = least.max(first_of(unix + 1)).max(cells);
                Some(Wanted { count: enough, heard: self.heard, least })
            }
            None => (is_behind || is_low).then_some(Wanted { count: enough, heard: self.heard, least }),
        }
    }

    /// Takes in a block of the engine's.
    pub fn handle_block(&mut self, block: Block) {
        self.highest = self.highest.max(block.to);
        self.heard = self.heard.max(block.to);
        self.block = block;
        self.lost = None;
    }

    /// Takes note that the engine is lost at `now`, `unix` seconds after 1970; `members`: those who
    /// shared, in order, as far as they are known, `me` beside them.
    pub fn handle_loss(&mut self, now: Instant, unix: u64, me: GatewayId, members: &[GatewayId]) {
        if self.lost.is_none() {
            self.lost = Some(self.lost_at(now, unix, me, members));
        }
    }

    fn lost_at(&self, since: Instant, unix: u64, me: GatewayId, members: &[GatewayId]) -> Lost {
        // A clock that is behind is no reason to draw numbers before those of others: they may have
        // asked for one more block meanwhile.
        let next = (self.highest + BLOCK_MAX).div_ceil(PER_SECOND) * PER_SECOND;
        let base = if self.highest == 0 { first_of(unix) } else { first_of(unix).max(next) };
        Lost { since, base, cell: cell_of(me, members) }
    }

    /// Returns what may be drawn from `now` on, `unix` seconds after 1970.
    pub fn allotment(&self, now: Instant, unix: u64, me: GatewayId, members: &[GatewayId]) -> Allotment {
        let (block, lost, passed) = match self.lost {
            Some(lost) => (Block::default(), lost, now.since(lost.since).as_secs()),
            None => (self.block, self.lost_at(now, unix, me, members), 0),
        };
        let cell = lost.base + passed * PER_SECOND + lost.cell * CELL;
        Allotment { block, cell, stride: PER_SECOND }
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
    /// are no cells, or no numbers any more.
    pub fn number(&self, next: u64) -> Option<u64> {
        self.after(next).filter(|number| *number < NUMBERS_END)
    }

    fn after(&self, next: u64) -> Option<u64> {
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
