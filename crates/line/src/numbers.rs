//! The numbers of one lane: drawn, recent, called, and how many of those called are expected to come.

use crate::line::Reached;
use crate::presence::Presence;
use std::collections::VecDeque;
use suimon_model::{Duration, Instant};

/// A number just called is waited for so long: whoever is there is heard of sooner.
const RECENT: Duration = Duration::from_secs(15);
/// Whoever has drawn and is there is heard of again within seconds.
const DRAWN: Duration = Duration::from_secs(6);
/// How often marks are set, and how many there are while numbers are recent.
const MARK: Duration = Duration::from_secs(1);
const MARKS_MAX: usize = 16;
/// So many of those called last tell how many of them come.
const CALLS_KNOWN: f64 = 200.0;
/// Before any was called, all of so many are taken to have come.
const CALLS_BELIEVED: f64 = 20.0;
/// The least share of those called that is taken to come.
const SHOW_MIN: f64 = 0.05;
/// Numbers kept at once in a lane. Whoever comes beyond that gets none.
pub(crate) const NUMBERS_MAX: u64 = 1 << 24;

/// The numbers of a lane.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) next: u64,
    /// The first that is not called.
    pub(crate) called: u64,
    /// The first that was drawn of late, now and when the period began.
    pub(crate) settled: u64,
    pub(crate) heard_from: u64,
    /// The first that was called of late: whoever was called before and has not come is not waited for.
    pub(crate) late: u64,
    /// Times past, the oldest first.
    marks: VecDeque<Mark>,
    pub(crate) presence: Presence,
    /// People called who were expected to come, ever, and up to `late`.
    asked: u64,
    asked_late: u64,
    /// Of those called and expected, how many were waited for long enough, and how many of these came; both forget.
    known: f64,
    came: f64,
}

suimon_model::saved_struct!(
    Numbers { next, called, settled, heard_from, late, marks, presence, asked, asked_late, known, came },
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
            && it.marks.len() <= MARKS_MAX
            && it.marks.iter().all(mark_is_sound)
            && it.marks.iter().is_sorted_by_key(|mark| (mark.at, mark.called, mark.asked))
    }
);

/// How far a lane was at a time past.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mark {
    at: Instant,
    next: u64,
    called: u64,
    asked: u64,
}

suimon_model::saved_struct!(Mark { at, next, called, asked });

impl Numbers {
    pub(crate) fn reached(&self) -> Reached {
        let coming = self.presence.unclaimed_in(self.late, self.called).take(Reached::COMING_MAX);
        Reached { next: self.next, called: self.called, coming: coming.collect() }
    }

    /// Moves the ends of what is recent, and learns how many of those called have come.
    pub(crate) fn age(&mut self, now: Instant) {
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
        // In the new order those heard of once are everywhere.
        self.settled = self.next;
        self.marks.clear();
        (self.late, self.asked_late) = (self.called, self.asked);
    }

    /// Returns how many are there of those before `number`, as far as is known: whoever is present, and whoever has just drawn.
    pub(crate) fn expected_before(&self, number: u64) -> u64 {
        let settled = self.settled.min(number);
        self.presence.ahead_of(settled) + self.presence.unclaimed(settled, number)
    }

    /// Returns how many drew of late and were not heard of again yet.
    pub(crate) fn provisional(&self) -> u64 {
        let heard = self.presence.ahead_of(self.next) - self.presence.ahead_of(self.settled.min(self.next));
        self.presence.unclaimed(self.settled, self.next).saturating_sub(heard)
    }

    /// Returns the share of those called and expected that comes.
    pub(crate) fn show(&self) -> f64 {
        ((self.came + CALLS_BELIEVED) / (self.known + CALLS_BELIEVED)).max(SHOW_MIN)
    }

    /// Returns how many of those called whose numbers are before `number` are at the gate or expected there: whoever was there of late, whoever was called of late and
    /// was heard of since, and of the others called of late the share that comes. Of those called before who are not at the gate most have gone, or are in no haste.
    pub(crate) fn expected(&self, number: u64) -> f64 {
        let end = number.min(self.called);
        let at_the_gate = self.presence.knocking(self.presence.first(), end);
        let on_the_way = self.presence.on_the_way(self.late, end);
        let known = on_the_way + self.presence.knocking(self.late, end);
        let all = self.expected_before(end).saturating_sub(self.expected_before(self.late));
        (at_the_gate + on_the_way) as f64 + self.show() * all.saturating_sub(known) as f64
    }

    pub(crate) fn is_waited_in(&self) -> bool {
        self.next > self.called && self.expected_before(self.next) > self.expected_before(self.called)
    }

    /// Calls on until so many of those called are expected to come.
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
        self.asked += self.expected_before(self.called) - before;
    }
}
