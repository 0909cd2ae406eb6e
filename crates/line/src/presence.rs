//! Who is present: six bits per number and a count for each block of numbers, and no record of any
//! visitor.
//!
//! A number is *present* once it was heard of in this period or in the one before, until it is
//! claimed. How many are present ahead of a number is a sum over the blocks before it and a look
//! into its own: exact, and for a million numbers some 250 additions.

use std::collections::{BTreeMap, VecDeque};
use std::iter;
use suimon_model::persist::{Broken, Persist, Reader, Writer};

/// Words of a block, and numbers.
const WORDS: usize = 64;
pub(crate) const BLOCK: u64 = WORDS as u64 * 64;
/// Blocks whose claims are remembered when nothing else is kept of them: sixteen million numbers in
/// two megabytes.
const CLAIMED_MAX: usize = 4096;

/// The numbers of a lane, from the first that is still kept.
///
/// Only blocks of which anything is known are kept, as numbers of a line that several gateways share
/// have gaps as long as an engine is lost.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Presence {
    /// Blocks before the first that is kept.
    dropped: u64,
    blocks: BTreeMap<u64, Block>,
    /// What is in each of them; beside the blocks, so that a sum over all of them reads a few
    /// kilobytes.
    counts: BTreeMap<u64, Count>,
    /// Who of the last that are not kept has claimed, by block.
    claimed: BTreeMap<u64, [u64; WORDS]>,
    present: u64,
}

/// As it is saved: block by block from the first, and before it. A line that is shared is not saved
/// like this.
struct Dense {
    dropped: u64,
    blocks: VecDeque<Block>,
    counts: VecDeque<Count>,
    claimed: VecDeque<[u64; WORDS]>,
    present: u64,
}

suimon_model::saved_struct!(Dense { dropped, blocks, counts, claimed, present }, |it: &Dense| {
    it.dropped.checked_add(it.blocks.len() as u64 + 1).and_then(|blocks| blocks.checked_mul(BLOCK)).is_some()
        && it.present == it.counts.iter().map(|count| u64::from(count.present)).sum::<u64>()
        && it.counts.iter().copied().eq(it.blocks.iter().map(Block::count))
});

impl Persist for Presence {
    fn save(&self, out: &mut Writer) {
        let end = self.blocks.last_key_value().map_or(self.dropped, |(last, _)| last + 1);
        let begin = self.claimed.first_key_value().map_or(self.dropped, |(first, _)| *first);
        let claimed = |block| self.claimed.get(&block).copied().unwrap_or([0; WORDS]);
        let dense = Dense {
            dropped: self.dropped,
            blocks: (self.dropped..end)
                .map(|block| self.blocks.get(&block).cloned().unwrap_or(Block::EMPTY))
                .collect(),
            counts: (self.dropped..end)
                .map(|block| self.counts.get(&block).copied().unwrap_or_default())
                .collect(),
            claimed: (begin..self.dropped).map(claimed).collect(),
            present: self.present,
        };
        dense.save(out);
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        let Dense { dropped, blocks, counts, claimed, present } = Dense::load(from)?;
        let before = dropped.saturating_sub(claimed.len() as u64);
        Ok(Presence {
            dropped,
            blocks: (dropped..).zip(blocks).collect(),
            counts: (dropped..).zip(counts).collect(),
            claimed: (before..dropped).zip(claimed).collect(),
            present,
        })
    }
}

/// How many numbers of a block are present, and how many are claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Count {
    present: u32,
    claimed: u32,
}

suimon_model::saved_struct!(Count { present, claimed });

#[derive(Clone, PartialEq, Debug)]
struct Block {
    /// Heard of in this period, and in the one before.
    now: [u64; WORDS],
    before: [u64; WORDS],
    /// Heard of since it was called, and claimed.
    came: [u64; WORDS],
    claimed: [u64; WORDS],
    /// At the gate, in this span of check-ins and in the one before.
    check_ins: [u64; WORDS],
    check_ins_before: [u64; WORDS],
}

suimon_model::saved_struct!(Block { now, before, came, claimed, check_ins, check_ins_before });

impl Block {
    const EMPTY: Block = Block {
        now: [0; WORDS],
        before: [0; WORDS],
        came: [0; WORDS],
        claimed: [0; WORDS],
        check_ins: [0; WORDS],
        check_ins_before: [0; WORDS],
    };

    fn checked_in(&self, word: usize) -> u64 {
        (self.check_ins[word] | self.check_ins_before[word]) & !self.claimed[word]
    }

    fn word(&self, word: usize) -> u64 {
        self.now[word] | self.before[word]
    }

    fn count(&self) -> Count {
        Count {
            present: (0..WORDS).map(|word| self.word(word).count_ones()).sum(),
            claimed: self.claimed.iter().map(|word| word.count_ones()).sum(),
        }
    }
}

/// The result of a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PeriodCounts {
    /// Visitors who polled in the period before, and have not begun.
    pub(crate) heard: u64,
    /// How many of them did not poll in this one.
    pub(crate) lost: u64,
}

impl Presence {
    /// Takes note that `number` was heard of, and returns whether it was not present before. A
    /// claimed number is present no more.
    pub(crate) fn hear(&mut self, number: u64) -> bool {
        let Some((block, count, word, bit)) = self.grown_to(number) else { return false };
        if block.claimed[word] & bit != 0 {
            return false;
        }
        let is_new = block.word(word) & bit == 0;
        block.now[word] |= bit;
        count.present += u32::from(is_new);
        self.present += u64::from(is_new);
        is_new
    }

    /// Takes `number` to be present until the end of this period, if nothing is heard of it by
    /// then.
    pub(crate) fn presume(&mut self, number: u64) {
        let Some((block, count, word, bit)) = self.grown_to(number) else { return };
        let is_new = (block.word(word) | block.claimed[word]) & bit == 0;
        block.before[word] |= bit & !block.claimed[word];
        count.present += u32::from(is_new);
        self.present += u64::from(is_new);
    }

    /// Marks those in `from .. to` who did not poll in this period as no longer present.
    pub(crate) fn doubt(&mut self, from: u64, to: u64) {
        let blocks = from / BLOCK..to.div_ceil(BLOCK).max(from / BLOCK);
        let counts = self.counts.range_mut(blocks.clone());
        for ((index, block), (_, count)) in self.blocks.range_mut(blocks).zip(counts) {
            let first = index * BLOCK;
            for word in 0..WORDS {
                let first = first + 64 * word as u64;
                block.before[word] &= !mask(from.saturating_sub(first).min(64), to.saturating_sub(first));
            }
            let present = (0..WORDS).map(|word| block.word(word).count_ones()).sum();
            self.present -= u64::from(count.present - present);
            count.present = present;
        }
    }

    /// Takes note that `number`, which is called, was heard of.
    pub(crate) fn come(&mut self, number: u64) {
        if let Some((block, _, word, bit)) = self.grown_to(number) {
            block.came[word] |= bit;
        }
    }

    /// Takes note that `number` is at the gate.
    pub(crate) fn check_in(&mut self, number: u64) {
        if let Some((block, _, word, bit)) = self.grown_to(number) {
            block.check_ins[word] |= bit;
        }
    }

    /// Ends a span of check-ins: a visitor who was at the gate in neither of two is not counted
    /// there.
    pub(crate) fn end_check_in_span(&mut self) {
        for block in self.blocks.values_mut() {
            block.check_ins_before = std::mem::replace(&mut block.check_ins, [0; WORDS]);
        }
    }

    /// Takes note that `number` was claimed, and returns whether that is new.
    pub(crate) fn claim(&mut self, number: u64) -> bool {
        let Some((block, count, word, bit)) = self.grown_to(number) else { return false };
        let was_present = block.word(word) & bit != 0;
        let is_new = block.claimed[word] & bit == 0;
        block.claimed[word] |= bit;
        block.now[word] &= !bit;
        block.before[word] &= !bit;
        count.present -= u32::from(was_present);
        count.claimed += u32::from(is_new);
        self.present -= u64::from(was_present);
        is_new
    }

    /// Returns whether `number` was claimed, as far as it is known.
    pub(crate) fn is_claimed(&self, number: u64) -> bool {
        let (word, bit) = at(number);
        let block = number / BLOCK;
        let words = match block >= self.dropped {
            true => self.blocks.get(&block).map(|block| &block.claimed),
            false => self.claimed.get(&block),
        };
        words.is_some_and(|words| words[word] & bit != 0)
    }

    /// Returns how many are present.
    pub(crate) fn present(&self) -> u64 {
        self.present
    }

    /// Returns how many are present ahead of `number`.
    pub(crate) fn ahead_of(&self, number: u64) -> u64 {
        self.before(number, |count| count.present, Block::word)
    }

    /// Returns how many numbers in `from .. to` were not claimed. Numbers no longer kept count as
    /// claimed, numbers never kept as not.
    pub(crate) fn unclaimed(&self, from: u64, to: u64) -> u64 {
        let claimed = |number| self.before(number, |count| count.claimed, |block, word| block.claimed[word]);
        let from = from.max(self.first());
        to.saturating_sub(from).saturating_sub(claimed(to) - claimed(from.min(to)))
    }

    /// Counts the numbers before `number` that are kept: in whole blocks by what `of` returns of
    /// their counts, then by the bits that `word` returns.
    fn before(&self, number: u64, of: impl Fn(&Count) -> u32, word: impl Fn(&Block, usize) -> u64) -> u64 {
        let whole = number / BLOCK;
        let mut before: u64 = self.counts.range(..whole).map(|(_, count)| u64::from(of(count))).sum();
        if let Some(block) = self.blocks.get(&whole) {
            let (last, bit) = at(number);
            let words: u32 = (0..last).map(|index| word(block, index).count_ones()).sum();
            before += u64::from(words + (word(block, last) & (bit - 1)).count_ones());
        }
        before
    }

    /// Returns the numbers in `from .. to` that are present, or were heard of since they were
    /// called, and were not claimed.
    pub(crate) fn unclaimed_in(&self, from: u64, to: u64) -> impl Iterator<Item = u64> + '_ {
        let of = |block: &Block, word: usize| (block.word(word) | block.came[word]) & !block.claimed[word];
        self.words(from, to, of).flat_map(|(first, mut bits)| {
            iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(first + u64::from(bit))
            })
        })
    }

    /// Returns the numbers in `from .. to` that were not claimed, whether anything was heard of
    /// them or not.
    pub(crate) fn unclaimed_or_new(&self, from: u64, to: u64) -> impl Iterator<Item = u64> + '_ {
        (from..to).filter(|number| !self.is_claimed(*number))
    }

    /// Returns how many in `from .. to` were heard of since they were called, claimed or not.
    pub(crate) fn came(&self, from: u64, to: u64) -> u64 {
        self.count(from, to, |block, word| block.came[word] | block.claimed[word])
    }

    /// Returns how many in `from .. to` were recently at the gate, and have not claimed.
    pub(crate) fn checked_in(&self, from: u64, to: u64) -> u64 {
        self.count(from, to, Block::checked_in)
    }

    /// Returns how many in `from .. to` have polled since they were called, and have neither
    /// claimed nor been at the gate recently.
    pub(crate) fn on_the_way(&self, from: u64, to: u64) -> u64 {
        self.count(from, to, |block, word| block.came[word] & !block.claimed[word] & !block.checked_in(word))
    }

    /// Counts the numbers in `from .. to` whose bits are set in what `of` returns for a word of a
    /// block. What is no longer kept is left out.
    fn count(&self, from: u64, to: u64, of: impl Fn(&Block, usize) -> u64) -> u64 {
        self.words(from, to, of).map(|(_, bits)| u64::from(bits.count_ones())).sum()
    }

    /// Returns the words that `of` returns for `from .. to`, each with the number of its first bit.
    fn words<'a>(
        &'a self,
        from: u64,
        to: u64,
        of: impl Fn(&Block, usize) -> u64 + 'a,
    ) -> impl Iterator<Item = (u64, u64)> + 'a {
        let from = from.max(self.dropped * BLOCK);
        let blocks = from / BLOCK..to.div_ceil(BLOCK).max(from / BLOCK);
        self.blocks
            .range(blocks)
            .flat_map(|(index, block)| (0..WORDS).map(move |word| (index, block, word)))
            .map(move |(index, block, word)| {
                let first = index * BLOCK + 64 * word as u64;
                let wanted = mask(from.saturating_sub(first).min(64), to.saturating_sub(first).min(64));
                (first, wanted & of(block, word))
            })
    }

    /// Returns the number just behind the `wanted`-th that is present in `from .. end`, or else
    /// `end`, and how many of those wanted are missing then.
    pub(crate) fn reach(&self, from: u64, wanted: u64, end: u64) -> (u64, u64) {
        let mut left = wanted.saturating_add(self.ahead_of(from));
        let all = self.ahead_of(end);
        if left > all {
            return (end, left - all);
        }
        if wanted == 0 {
            return (from.min(end), 0);
        }
        for ((index, block), count) in self.blocks.iter().zip(self.counts.values()) {
            let count = u64::from(count.present);
            if count < left {
                left -= count;
                continue;
            }
            let first = index * BLOCK;
            for word in 0..WORDS {
                let mut bits = block.word(word);
                let here = u64::from(bits.count_ones());
                if here < left {
                    left -= here;
                    continue;
                }
                (1..left).for_each(|_| bits &= bits - 1);
                return (first + word as u64 * 64 + u64::from(bits.trailing_zeros()) + 1, 0);
            }
        }
        (end, 0)
    }

    /// Ends a period: those who were not heard of in it are no longer present.
    pub(crate) fn turn_over(&mut self) -> PeriodCounts {
        let present = self.present;
        let mut heard = 0;
        for (block, count) in self.blocks.values_mut().zip(self.counts.values_mut()) {
            heard += block.before.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            block.before = std::mem::replace(&mut block.now, [0; WORDS]);
            count.present = block.count().present;
        }
        self.present = self.counts.values().map(|count| u64::from(count.present)).sum();
        PeriodCounts { heard, lost: present - self.present }
    }

    /// Forgets whole blocks before `number`, present visitors included: those whose turn came long
    /// ago are no longer counted.
    pub(crate) fn forget_before(&mut self, number: u64) {
        let end = (number / BLOCK).max(self.dropped);
        while let Some((index, block)) = self.blocks.first_key_value()
            && *index < end
        {
            self.claimed.insert(*index, block.claimed);
            self.blocks.pop_first();
            self.present -= self.counts.pop_first().map_or(0, |(_, count)| u64::from(count.present));
            if self.claimed.len() > CLAIMED_MAX {
                self.claimed.pop_first();
            }
        }
        self.dropped = end;
    }

    /// Returns how many blocks are kept.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns the first number that is kept.
    pub(crate) fn first(&self) -> u64 {
        self.dropped * BLOCK
    }

    /// Returns the same people below `numbers` under other numbers, where those before `from` keep
    /// theirs.
    pub(crate) fn renumbered(&self, from: u64, numbers: u64, to: impl Fn(u64) -> u64) -> Presence {
        let claimed = self.claimed.clone();
        let mut renumbered = Presence { dropped: self.dropped, claimed, ..Presence::default() };
        for number in self.first()..from.min(numbers) {
            let Some(block) = self.blocks.get(&(number / BLOCK)) else { continue };
            let (word, bit) = at(number);
            if block.came[word] & bit != 0 {
                renumbered.come(number);
            }
            if block.claimed[word] & bit != 0 {
                renumbered.claim(number);
            }
        }
        for (index, block) in &self.blocks {
            let first = index * BLOCK;
            for word in 0..WORDS {
                let mut bits = block.word(word);
                while bits != 0 {
                    let number = first + word as u64 * 64 + u64::from(bits.trailing_zeros());
                    if number < numbers {
                        renumbered.hear(to(number));
                    }
                    bits &= bits - 1;
                }
            }
        }
        renumbered
    }

    /// Returns the block of `number` and its count, which then exist, its word there and its bit;
    /// nothing if it is no longer kept.
    fn grown_to(&mut self, number: u64) -> Option<(&mut Block, &mut Count, usize, u64)> {
        let index = number / BLOCK;
        if index < self.dropped {
            return None;
        }
        let (word, bit) = at(number);
        let block = self.blocks.entry(index).or_insert(Block::EMPTY);
        Some((block, self.counts.entry(index).or_default(), word, bit))
    }
}

/// Returns the word of a number in its block, and its bit.
fn at(number: u64) -> (usize, u64) {
    ((number % BLOCK / 64) as usize, 1 << (number % 64))
}

/// Returns the bits `from .. to` of a word.
fn mask(from: u64, to: u64) -> u64 {
    let below = |bit: u64| if bit >= 64 { u64::MAX } else { (1 << bit) - 1 };
    below(to) & !below(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn whoever_is_not_heard_of_for_a_whole_period_is_present_no_more_and_comes_back_where_they_were() {
        let mut presence = Presence::default();
        (0..10).for_each(|number| assert!(presence.hear(number)));
        assert_eq!(presence.turn_over(), PeriodCounts { heard: 0, lost: 0 }, "they are new");
        assert!(!presence.hear(3), "still present from the period before");
        assert_eq!(presence.turn_over(), PeriodCounts { heard: 10, lost: 9 });
        assert_eq!((presence.ahead_of(3), presence.ahead_of(4)), (0, 1));
        assert!(presence.hear(7) && presence.ahead_of(9) == 2);
    }

    #[test]
    fn a_number_is_claimed_once_and_present_no_more() {
        let mut presence = Presence::default();
        presence.hear(5);
        assert!(presence.claim(5) && !presence.claim(5));
        assert!(!presence.hear(5));
        assert_eq!(presence.present(), 0);
        assert_eq!(presence.unclaimed(0, 10), 9);
    }

    #[test]
    fn what_lies_behind_is_forgotten_block_by_block() {
        let mut presence = Presence::default();
        presence.hear(1);
        presence.claim(2);
        presence.hear(3 * BLOCK);
        presence.forget_before(3 * BLOCK - 1);
        assert_eq!((presence.first(), presence.present()), (2 * BLOCK, 1));
        presence.forget_before(3 * BLOCK);
        assert_eq!((presence.first(), presence.present()), (3 * BLOCK, 1));
        assert!(!presence.hear(1) && !presence.claim(1), "what is forgotten is left alone");
        assert!(presence.is_claimed(2) && !presence.is_claimed(1), "but for who has claimed");
        presence.forget_before(1000 * BLOCK + 5);
        assert_eq!((presence.first(), presence.present()), (1000 * BLOCK, 0));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Hear(u64),
        Claim(u64),
        Come(u64),
        Knock(u64),
        TurnOver,
        EndKnocks,
    }

    fn step() -> impl Strategy<Value = Step> {
        let number = 0..3 * BLOCK;
        prop_oneof![
            8 => number.clone().prop_map(Step::Hear),
            2 => number.clone().prop_map(Step::Claim),
            2 => number.clone().prop_map(Step::Come),
            2 => number.prop_map(Step::Knock),
            1 => Just(Step::EndKnocks),
            1 => Just(Step::TurnOver),
        ]
    }

    proptest! {
        #[test]
        fn it_counts_as_three_plain_sets_do(steps in prop::collection::vec(step(), 0..200), from in 0..3 * BLOCK, wanted in 0_u64..50) {
            let mut presence = Presence::default();
            let (mut now, mut before, mut claimed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            let mut came = BTreeSet::new();
            let (mut check_ins, mut check_ins_before) = (BTreeSet::new(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Hear(number) => {
                        presence.hear(number);
                        if !claimed.contains(&number) {
                            now.insert(number);
                        }
                    }
                    Step::Claim(number) => {
                        prop_assert_eq!(presence.claim(number), claimed.insert(number));
                        now.remove(&number);
                        before.remove(&number);
                    }
                    Step::Come(number) => {
                        presence.come(number);
                        came.insert(number);
                    }
                    Step::Knock(number) => {
                        presence.check_in(number);
                        check_ins.insert(number);
                    }
                    Step::EndKnocks => {
                        presence.end_check_in_span();
                        check_ins_before = std::mem::take(&mut check_ins);
                    }
                    Step::TurnOver => {
                        presence.turn_over();
                        before = std::mem::take(&mut now);
                    }
                }
            }
            let present: BTreeSet<u64> = now.union(&before).copied().collect();
            let checked_in: BTreeSet<u64> = check_ins.union(&check_ins_before).copied().filter(|number| !claimed.contains(number)).collect();
            prop_assert_eq!(presence.checked_in(from, 3 * BLOCK), checked_in.range(from..).count() as u64);
            let on_the_way = came.iter().filter(|number| **number >= from && !claimed.contains(number) && !checked_in.contains(number));
            prop_assert_eq!(presence.on_the_way(from, 3 * BLOCK), on_the_way.count() as u64);
            let either = came.union(&claimed).filter(|number| **number >= from).count() as u64;
            prop_assert_eq!(presence.came(from, 3 * BLOCK), either);
            prop_assert_eq!(presence.present(), present.len() as u64);
            prop_assert_eq!(presence.ahead_of(from), present.range(..from).count() as u64);
            prop_assert_eq!(presence.unclaimed(from, 3 * BLOCK), 3 * BLOCK - from - claimed.range(from..).count() as u64);
            let end = 3 * BLOCK;
            let reached = present.range(from..).nth(wanted.saturating_sub(1) as usize).map_or(end, |number| number + 1);
            let missing = wanted.saturating_sub(present.range(from..).count() as u64);
            let expected = if wanted == 0 { (from, 0) } else { (reached, missing) };
            prop_assert_eq!(presence.reach(from, wanted, end), expected);
        }
    }
}
