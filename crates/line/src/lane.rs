//! Lanes, and places in them.

/// How many lanes there are.
pub const LANES: usize = 4;

/// A line of its own beside the others. Lanes share the admissions by weight, see
/// [`crate::Shares`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Visitors who had been admitted and lost it through no fault of their own.
    Restored,
    /// Visitors with an invitation signed by the operator.
    Invited,
    /// Everybody.
    Normal,
    /// Search engines: slowly, but always.
    Crawlers,
}

suimon_model::saved_enum!(Lane { 0 = Restored, 1 = Invited, 2 = Normal, 3 = Crawlers });

impl Lane {
    /// All lanes, in the order of their index.
    pub const ALL: [Lane; LANES] = [Lane::Restored, Lane::Invited, Lane::Normal, Lane::Crawlers];

    /// Returns its place among [`Lane::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Lane::Restored => "resumed",
            Lane::Invited => "invited",
            Lane::Normal => "normal",
            Lane::Crawlers => "crawlers",
        }
    }
}

/// A place in the line, as it was drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// Its lane.
    pub lane: Lane,
    /// Its number there, counted from 0.
    pub number: u64,
}

suimon_model::saved_struct!(Position { lane, number });
