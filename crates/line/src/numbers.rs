//! The numbers of one lane: drawn, recent, called, and how many of those called are expected to
//! come.

use crate::presence::{BLOCK, Presence};
use std::collections::VecDeque;
use suimon_model::{Duration, Instant};

/// How long a called number is waited for: a present visitor polls sooner.
const RECENT: Duration = Duration::from_secs(15);
/// A visitor with a new ticket who is present polls within this time.
const DRAWN: Duration = Duration::from_secs(6);
/// A visitor who drew just before a restart polls within this time: the page polls after some
/// seconds, and again within eleven where there is no answer.
const BACK: Duration = Duration::from_secs(15);
/// How often marks are set, and how many there are while numbers are recent.
const MARK: Duration = Duration::from_secs(1);
const MARKS_MAX: usize = 16;
/// Spans of numbers just drawn, one per second; beyond that the last one grows.
const FRESH_MAX: usize = 16;
/// Calls over which the show-up ratio is averaged.
const CALLS_KNOWN: f64 = 200.0;
/// Prior of the show-up ratio: this many calls, all of which came.
const CALLS_BELIEVED: f64 = 20.0;
/// The least share of those called that is assumed to come.
const SHOW_MIN: f64 = 0.05;
/// Numbers kept at once in a lane. Newcomers beyond that get none.
pub(crate) const NUMBERS_MAX: u64 = 1 << 24;
/// Blocks of numbers of which anything is known, kept at once in a lane that several gateways share.
/// Without the engine each second begins another one.
const BLOCKS_MAX: u64 = 4 * NUMBERS_MAX / BLOCK;

/// How far a lane is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SavedLane {
    /// The next number.
    pub next: u64,
    /// The first number that is not called.
    pub called: u64,
    /// Numbers that were called and whose visitors are still on the way, as far as is known; at
    /// most [`SavedLane::COMING_MAX`].
    pub coming: Vec<u64>,
    /// Those present and not called, as far as is known: runs of numbers, each with its first and
    /// the one behind its last; at most [`SavedLane::THERE_MAX`].
    pub there: Vec<(u64, u64)>,
    /// From this number on, visitors have just drawn and have not polled yet.
    pub settled: u64,
    /// Runs of numbers that are not called and that nobody holds, as far as is known; at most
    /// [`SavedLane::NOBODYS_MAX`].
    pub nobodys: Vec<(u64, u64)>,
    /// How many numbers that nobody holds were passed over by calling.
    pub nobodys_called: u64,
}

impl SavedLane {
    /// The most numbers that are saved as on the way.
    pub const COMING_MAX: usize = 10_000;
    /// The most runs of present visitors. Beyond that the shortest gaps are closed: some who have
    /// gone are then taken to be present.
    pub const THERE_MAX: usize = 4096;
    /// The longest gap that is closed like this. A run of numbers that nobody holds must be longer.
    pub const GAP_MAX: u64 = 4096;
    /// The most numbers that are there, and that are skipped by a restart.
    pub const SPAN_MAX: u64 = 4 * NUMBERS_MAX;
    /// The most runs of numbers that nobody holds; beyond that the last two are saved as one.
    pub const NOBODYS_MAX: usize = 256;

    /// Returns whether a line can go on from here: numbers are in order, and no more than the
    /// maximum are there at once.
    pub fn is_sound(&self) -> bool {
        let there = || self.there.iter().map(|(from, to)| to.saturating_sub(*from));
        self.called <= self.next
            && there().fold(0, u64::saturating_add) <= Self::SPAN_MAX
            && self.settled <= self.next
            && self.nobodys_called <= self.called
            && self.nobodys.len() <= Self::NOBODYS_MAX
            && runs_are_sound(self.nobodys.iter().copied(), self.next)
            && self.there.len() <= Self::THERE_MAX
            && runs_are_sound(self.there.iter().copied(), self.next)
    }
}

/// The numbers of a lane.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) next: u64,
    /// The first that is not called.
    pub(crate) called: u64,
    /// The first number that was drawn recently, now and when the period began.
    pub(crate) settled: u64,
    pub(crate) heard_from: u64,
    /// The first recently called number: holders of earlier ones who have not come are no longer
    /// waited for.
    pub(crate) late: u64,
    /// Past times, the oldest first.
    marks: VecDeque<Mark>,
    pub(crate) presence: Presence,
    /// Runs of numbers that nobody holds, as far as is known, and are not called; and how many such
    /// numbers were called.
    nobodys: VecDeque<(u64, u64)>,
    nobodys_called: u64,
    /// Those who had just drawn when the process before ended.
    unconfirmed: Option<Unconfirmed>,
    /// People called who were expected to come, ever, and up to `late`.
    asked: u64,
    asked_late: u64,
    /// Of those called and expected, how many were waited for long enough, and how many of these
    /// came; both forget.
    known: f64,
    came: f64,
    /// Where gateways share the line: numbers just drawn here, and when they are doubted.
    fresh: VecDeque<Unconfirmed>,
}

suimon_model::saved_struct!(
    Numbers {
        next,
        called,
        settled,
        heard_from,
        late,
        marks,
        presence,
        nobodys,
        nobodys_called,
        unconfirmed,
        asked,
        asked_late,
        known,
        came,
    } without { fresh },
    |it: &Numbers| {
        let mark_is_sound = |mark: &Mark| {
            (it.late..=it.called).contains(&mark.called)
                && (it.asked_late..=it.asked).contains(&mark.asked)
                && mark.next <= it.next
        };
        it.called <= it.next
            && it.late <= it.called
            && it.settled <= it.next
            && it.presence.first() <= it.next
            && it.nobodys.len() <= SavedLane::NOBODYS_MAX
            && runs_are_sound(it.nobodys.iter().copied(), it.next)
            && it.nobodys_called <= it.called
            && it.marks.len() <= MARKS_MAX
            && it.marks.iter().all(mark_is_sound)
            && it.marks.iter().is_sorted_by_key(|mark| (mark.at, mark.called, mark.asked))
    }
);

/// How far a lane was at a past time.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mark {
    at: Instant,
    next: u64,
    called: u64,
    asked: u64,
}

suimon_model::saved_struct!(Mark { at, next, called, asked });

/// Numbers `from .. to`, whose holders are taken to be present `until` then without a poll.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Unconfirmed {
    from: u64,
    to: u64,
    until: Instant,
}

suimon_model::saved_struct!(Unconfirmed { from, to, until });

impl Numbers {
    pub(crate) fn reached(&self) -> SavedLane {
        let coming = self.presence.unclaimed_in(self.late, self.called).take(SavedLane::COMING_MAX);
        SavedLane {
            next: self.next,
            called: self.called,
            coming: coming.collect(),
            there: self.there(),
            settled: self.settled,
            nobodys: self.nobodys.iter().copied().collect(),
            nobodys_called: self.nobodys_called,
        }
    }

    /// Returns the runs of those present and not called.
    fn there(&self) -> Vec<(u64, u64)> {
        // Longer gaps are closed only where there are too many runs.
        let mut gap = 0;
        loop {
            let settled = self.settled.max(self.called);
            let present = self.presence.unclaimed_in(self.called, settled);
            let drawn = self.presence.unclaimed_or_new(settled, self.next);
            let runs = runs(present.chain(drawn), gap, SavedLane::THERE_MAX);
            if gap >= SavedLane::GAP_MAX || runs.len() < SavedLane::THERE_MAX {
                return runs;
            }
            gap = (16 * gap).clamp(16, SavedLane::GAP_MAX);
        }
    }

    /// Goes on where another lane ended, which [`SavedLane::is_sound`], behind `skipped` numbers.
    pub(crate) fn go_on(&mut self, now: Instant, skipped: u64, saved: &SavedLane) {
        self.next = saved.next.saturating_add(skipped);
        self.settled = self.next;
        self.called = saved.called.min(saved.next);
        self.late = saved.coming.iter().copied().min().unwrap_or(u64::MAX).min(self.called);
        self.presence.forget_before(self.late);
        let coming = saved.coming.iter().copied().filter(|number| *number < self.called);
        coming.for_each(|number| self.presence.presume(number));
        self.nobodys = saved.nobodys.iter().copied().collect();
        self.nobodys_called = saved.nobodys_called;
        if self.next > saved.next {
            self.add_nobodys(saved.next, self.next);
        }
        self.pass_nobodys();
        for (from, to) in &saved.there {
            (*from.max(&self.called)..*to.min(&saved.next)).for_each(|number| self.presence.presume(number));
        }
        if saved.settled < saved.next {
            self.unconfirmed = Some(Unconfirmed { from: saved.settled, to: saved.next, until: now + BACK });
        }
    }

    fn add_nobodys(&mut self, from: u64, to: u64) {
        let is_full = self.nobodys.len() >= SavedLane::NOBODYS_MAX;
        match self.nobodys.back_mut() {
            Some(last) if last.1 == from => last.1 = to,
            // How many there are is exact; where, not quite.
            Some(last) if is_full => *last = (from - (last.1 - last.0), to),
            _ => self.nobodys.push_back((from, to)),
        }
    }

    /// Takes note that a visitor has come with `number`: it is held after all.
    pub(crate) fn is_held(&mut self, number: u64) {
        let Some(index) = self.nobodys.iter().position(|(from, to)| (*from..*to).contains(&number)) else {
            return;
        };
        let (from, to) = self.nobodys[index];
        match (number == from, number + 1 == to) {
            (true, true) => _ = self.nobodys.remove(index),
            (true, false) => self.nobodys[index].0 += 1,
            (false, true) => self.nobodys[index].1 -= 1,
            (false, false) if self.nobodys.len() < SavedLane::NOBODYS_MAX => {
                self.nobodys[index].1 = number;
                self.nobodys.insert(index + 1, (number + 1, to));
            }
            // It stays uncounted.
            (false, false) => {}
        }
    }

    /// Returns whether as much is kept of a shared line as may be.
    pub(crate) fn is_full(&self) -> bool {
        self.presence.blocks() >= BLOCKS_MAX
    }

    /// Takes note that `number` was drawn here at `now`, of a line that several gateways share:
    /// those passed over belong to visitors of others, or to nobody.
    pub(crate) fn drawn_here(&mut self, now: Instant, number: u64) {
        if number > self.next {
            self.add_nobodys(self.next, number);
        }
        self.next = number + 1;
        // Nobody is provisional by number: some in between are of other gateways.
        self.settled = self.next;
        self.presence.presume(number);
        let until = now + DRAWN;
        let is_full = self.fresh.len() >= FRESH_MAX;
        match self.fresh.back_mut() {
            Some(last) if is_full || until.since(last.until) < MARK => last.to = self.next,
            _ => self.fresh.push_back(Unconfirmed { from: number, to: self.next, until: until + MARK }),
        }
    }

    /// Takes note that `number` was drawn, here or at another gateway.
    pub(crate) fn know_of(&mut self, number: u64) {
        if number >= self.next && !self.is_full() {
            self.add_nobodys(self.next, number + 1);
            self.next = number + 1;
            self.settled = self.next;
        }
    }

    /// Calls all before `mark`, as far as there are numbers.
    pub(crate) fn call_to(&mut self, mark: u64) {
        let mark = mark.min(self.next);
        if mark <= self.called {
            return;
        }
        let before = self.expected_before(self.called);
        self.called = mark;
        self.pass_nobodys();
        self.asked += self.expected_before(self.called) - before;
    }

    /// Returns points (number, people not called before it), at most `points_max`, closest together
    /// at the head.
    pub(crate) fn people(&self, points_max: usize) -> Vec<(u64, u64)> {
        let all = self.expected_before(self.next).saturating_sub(self.expected_before(self.called));
        let mut points = Vec::new();
        let mut wanted = 1;
        while wanted <= all && points.len() + 1 < points_max {
            let (number, missing) = self.presence.reach(self.called, wanted, self.next);
            points.push((number, wanted - missing));
            wanted += (wanted / 2).max(1);
        }
        if all > 0 {
            points.push((self.next, all));
        }
        points.dedup_by_key(|(number, _)| *number);
        points
    }

    /// Counts apart the runs that calling has passed.
    fn pass_nobodys(&mut self) {
        while let Some((from, to)) = self.nobodys.front().copied()
            && to <= self.called
        {
            self.nobodys_called += to - from;
            self.nobodys.pop_front();
        }
    }

    /// Returns how many numbers were drawn.
    pub(crate) fn drawn(&self) -> u64 {
        let waiting: u64 = self.nobodys.iter().map(|(from, to)| to - from).sum();
        self.next.saturating_sub(waiting).saturating_sub(self.nobodys_called)
    }

    /// Returns how many numbers that were drawn are called.
    pub(crate) fn people_called(&self) -> u64 {
        let passed = |(from, to): &(u64, u64)| self.called.clamp(*from, *to) - from;
        let nobodys: u64 = self.nobodys.iter().map(passed).sum();
        self.called.saturating_sub(nobodys).saturating_sub(self.nobodys_called)
    }

    /// Moves the ends of what is recent, and learns how many of those called have come.
    pub(crate) fn age(&mut self, now: Instant) {
        while let Some(drew) = self.fresh.front().copied()
            && now >= drew.until
        {
            self.fresh.pop_front();
            self.presence.doubt(drew.from, drew.to);
        }
        if let Some(drew) = self.unconfirmed.take_if(|drew| now >= drew.until) {
            self.presence.doubt(drew.from, drew.to);
        }
        if self.marks.back().is_none_or(|mark| now.secs_since(mark.at) >= MARK.as_secs_f64()) {
            if self.marks.len() == MARKS_MAX {
                self.marks.pop_front();
            }
            self.marks.push_back(Mark { at: now, next: self.next, called: self.called, asked: self.asked });
        }
        if let Some(mark) = self.marks.iter().rev().find(|mark| now.since(mark.at) >= DRAWN) {
            self.settled = self.settled.max(mark.next);
        }
        while let Some(mark) = self.marks.front().copied()
            && now.since(mark.at) >= RECENT
        {
            self.marks.pop_front();
            let came = self.presence.came(self.late, mark.called) as f64;
            let asked = (mark.asked - self.asked_late) as f64;
            let kept = (1.0 - asked / CALLS_KNOWN).max(0.0);
            self.known = kept * self.known + asked;
            self.came = kept * self.came + came.min(asked);
            (self.late, self.asked_late) = (mark.called, mark.asked);
        }
    }

    /// Gives those who were not called other numbers among theirs.
    pub(crate) fn reorder(&mut self, to: impl Fn(u64) -> u64) {
        self.presence = self.presence.renumbered(self.called, self.next, to);
        // In the new order, those with one poll are spread everywhere.
        self.settled = self.next;
        self.unconfirmed = None;
        // So are numbers that nobody holds: they are assumed to come last, and counted once all are
        // called.
        let nobodys: u64 = self.nobodys.drain(..).map(|(from, to)| to - from).sum();
        if nobodys > 0 {
            self.nobodys.push_back((self.next - nobodys, self.next));
        }
        self.marks.clear();
        (self.late, self.asked_late) = (self.called, self.asked);
    }

    /// Returns how many of those before `number` are there, as far as is known: those present, and
    /// those who have just drawn.
    pub(crate) fn expected_before(&self, number: u64) -> u64 {
        let settled = self.settled.min(number);
        self.presence.ahead_of(settled) + self.presence.unclaimed(settled, number)
    }

    /// Returns how many drew recently and have not polled yet.
    pub(crate) fn provisional(&self) -> u64 {
        let heard = self.presence.ahead_of(self.next) - self.presence.ahead_of(self.settled.min(self.next));
        self.presence.unclaimed(self.settled, self.next).saturating_sub(heard)
    }

    /// Returns the share of those called and expected that comes.
    pub(crate) fn show(&self) -> f64 {
        ((self.came + CALLS_BELIEVED) / (self.known + CALLS_BELIEVED)).max(SHOW_MIN)
    }

    /// Returns how many of those called whose numbers are before `number` are at the gate or
    /// expected there: those who were there recently, those who were recently called and have
    /// polled since, and of the others called recently those who are still to come. Most of those
    /// called before who are not at the gate have gone, or are in no haste.
    pub(crate) fn expected(&self, number: u64) -> f64 {
        let end = number.min(self.called);
        let at_the_gate = self.presence.checked_in(self.presence.first(), end);
        let on_the_way = self.presence.on_the_way(self.late, end);
        (at_the_gate + on_the_way) as f64 + self.still_to_come() * self.unheard(end) as f64
    }

    /// Returns how many of those called recently, before `end`, have not been heard of since.
    fn unheard(&self, end: u64) -> u64 {
        let known = self.presence.on_the_way(self.late, end) + self.presence.checked_in(self.late, end);
        let all = self.expected_before(end).saturating_sub(self.expected_before(self.late));
        all.saturating_sub(known)
    }

    /// Returns which share, from 0 to 1, of those called recently and not heard of since is still to come.
    /// Of all who were called recently a share never comes; the longer ago the call, the more of those
    /// who are not heard of are these.
    fn still_to_come(&self) -> f64 {
        let unheard = self.unheard(self.called) as f64;
        let gone = (1.0 - self.show()) * self.asked.saturating_sub(self.asked_late) as f64;
        if unheard > 0.0 { (1.0 - gone / unheard).max(0.0) } else { 0.0 }
    }

    /// Returns how many are there who were not called.
    pub(crate) fn uncalled(&self) -> u64 {
        self.expected_before(self.next).saturating_sub(self.expected_before(self.called))
    }

    pub(crate) fn has_waiters(&self) -> bool {
        self.next > self.called && self.expected_before(self.next) > self.expected_before(self.called)
    }

    /// Calls on until `wanted` of those called are expected to come.
    pub(crate) fn call(&mut self, wanted: f64) {
        let missing =
            ((wanted - self.expected(self.called)) / self.show()).ceil().min(NUMBERS_MAX as f64) as u64;
        if missing == 0 {
            return;
        }
        let before = self.expected_before(self.called);
        let (reached, missing) = if self.called < self.settled {
            self.presence.reach(self.called, missing, self.settled)
        } else {
            (self.called, missing)
        };
        self.called = (reached + missing).min(self.next);
        self.pass_nobodys();
        self.asked += self.expected_before(self.called) - before;
    }
}

/// Returns the runs of `numbers`, which count up; those not more than `gap` apart are one. At most
/// `runs_max`.
fn runs(numbers: impl Iterator<Item = u64>, gap: u64, runs_max: usize) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        let is_full = runs.len() == runs_max;
        match runs.last_mut() {
            Some((_, to)) if number - *to <= gap => *to = number + 1,
            _ if is_full => break,
            _ => runs.push((number, number + 1)),
        }
    }
    runs
}

/// Returns whether these are runs one behind the other, none reaching beyond `end`.
pub(crate) fn runs_are_sound(runs: impl Iterator<Item = (u64, u64)>, end: u64) -> bool {
    let mut last = 0;
    runs.into_iter().all(|(from, to)| {
        let sound = last <= from && from < to && to <= end;
        last = to;
        sound
    })
}
