//! The requests that the process has with the gateway, by number, and the results that are still to be told.
//!
//! A request is waiting, let in or answered. What became of it is *told* once the process has it; until then it
//! is kept. Who was told that a request is let in ends it; a request of which nothing was told is over when its
//! client leaves.

use crate::code::{Code, Fault};
use crate::head::{self, whole};
use crate::out::Out;
use crate::queue::{Due, Queue};
use crate::waiting::Waiting;
use http::{HeaderMap, StatusCode};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use suimon_proxy::{Admitted, Entered};

/// Locks that the requests are spread over.
const SHARDS: usize = 16;
/// Requests of a lock beyond its part of the bound: numbers are not spread evenly.
const SPARE_MAX: usize = 64;
/// What is said where a request that waits was lost by a fault of ours.
const LOST: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";

/// See the module.
#[derive(Debug)]
pub(crate) struct Requests {
    shards: [Mutex<HashMap<u64, Entry>>; SHARDS],
    /// The most of one shard.
    max: usize,
    queue: Arc<Queue>,
}

#[derive(Debug)]
struct Entry {
    state: State,
    /// What is still to be told: a result, or the changes of an answer.
    untold: Option<Vec<u8>>,
    /// Whether its client has left.
    is_left: bool,
}

#[derive(Debug)]
enum State {
    Waits(Waiting),
    /// It waits, and somebody asks it what has become of it. `again`: it has called meanwhile.
    Asked {
        again: bool,
    },
    LetIn {
        admitted: Box<Admitted>,
        is_told: bool,
    },
    Answered,
}

impl Requests {
    /// Returns room for about `max` requests.
    pub(crate) fn new(max: usize) -> Self {
        Requests { shards: Default::default(), max: max.div_ceil(SHARDS) + SPARE_MAX, queue: Arc::default() }
    }

    /// Returns whether there is no room for another request, which would have this number.
    pub(crate) fn is_full(&self, number: u64) -> bool {
        self.shard(number).len() >= self.max
    }

    /// Returns where requests that wait call.
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Takes in a request that waits.
    pub(crate) fn waits(&self, number: u64, waiting: Waiting) {
        let call = Arc::clone(waiting.call());
        self.shard(number).insert(number, Entry::new(State::Waits(waiting), None));
        // Whoever has heard it meanwhile has not found it.
        if call.is_made() {
            self.ask_and_note(number);
        }
    }

    /// Takes in a request that need not wait, and tells what became of it. `to_head`: it is a `HEAD`.
    pub(crate) fn at_once(
        &self,
        number: u64,
        entered: Entered,
        to_head: bool,
        out: &mut Out<'_>,
    ) -> Result<Code, Fault> {
        let mut entry = Entry::of(entered, to_head);
        let code = entry.tell(out);
        if code != Code::Answered {
            let mut shard = self.shard(number);
            // Twice: it may be the answer to a request for which there is no room.
            if shard.len() >= 2 * self.max {
                return Err(Fault::invalid("out: too small, and too many answers wait for a larger one"));
            }
            shard.insert(number, entry);
        }
        Ok(code)
    }

    /// Asks a request what has become of it, unless somebody does, and returns whether that is known now. Without the
    /// lock of its shard: what it does may end others.
    fn ask(&self, number: u64) -> bool {
        let Some(mut waiting) = self.take_to_ask(number) else { return false };
        let to_head = waiting.to_head();
        let asked =
            catch_unwind(AssertUnwindSafe(|| waiting.ask().map(|entered| Entry::of(entered, to_head))));
        let mut shard = self.shard(number);
        // One that has left meanwhile is not there any more.
        let Some(entry) = shard.get_mut(&number) else { return false };
        let State::Asked { again } = entry.state else { return false };
        *entry = match asked {
            Ok(Poll::Pending) => {
                entry.state = State::Waits(waiting);
                if again {
                    self.queue.call(number);
                }
                return false;
            }
            Ok(Poll::Ready(decided)) => decided,
            Err(_fault_of_ours) => Entry::new(State::Answered, Some(LOST.to_vec())),
        };
        true
    }

    /// The same, where somebody else tells the result.
    fn ask_and_note(&self, number: u64) {
        if self.ask(number) {
            self.queue.decided(number);
        }
    }

    fn take_to_ask(&self, number: u64) -> Option<Waiting> {
        let mut shard = self.shard(number);
        let entry = shard.get_mut(&number)?;
        match std::mem::replace(&mut entry.state, State::Asked { again: true }) {
            State::Waits(waiting) => {
                entry.state = State::Asked { again: false };
                Some(waiting)
            }
            State::Asked { .. } => None,
            decided => {
                entry.state = decided;
                None
            }
        }
    }

    /// Waits for a result of one that waited, and tells it.
    pub(crate) fn next(&self, timeout: Duration, number: &mut u64, out: &mut Out<'_>) -> Result<Code, Fault> {
        let until = Instant::now() + timeout;
        loop {
            let ready = match self.queue.next_until(until)? {
                None => return Ok(Code::Nothing),
                Some(Due::Call(called)) if !self.ask(called) => continue,
                Some(Due::Call(number) | Due::Result(number)) => number,
            };
            let mut shard = self.shard(ready);
            // One that has left meanwhile is not there any more, and another thread may have told it.
            if !shard.get(&ready).is_some_and(Entry::has_result) {
                continue;
            }
            if let Some(code) = self.tell(ready, &mut shard, out) {
                *number = ready;
                return Ok(code);
            }
        }
    }

    /// Asks those that call, so that they end even if nobody listens, until `is_over`.
    pub(crate) fn ask_until(&self, is_over: impl Fn() -> bool) {
        while let Some(called) = self.queue.call_until(&is_over) {
            self.ask_and_note(called);
        }
    }

    /// Tells what is still to be told of a request.
    pub(crate) fn result(&self, number: u64, out: &mut Out<'_>) -> Result<Code, Fault> {
        self.ask_if_called(number);
        let mut shard = self.shard(number);
        let code = self.tell(number, &mut shard, out).ok_or(Fault::Unknown)?;
        if code == Code::Ok || code == Code::Answered {
            self.queue.forget(number);
        }
        Ok(code)
    }

    fn ask_if_called(&self, number: u64) {
        let has_called = match self.shard(number).get(&number).map(|entry| &entry.state) {
            Some(State::Waits(waiting)) => waiting.call().is_made(),
            _ => false,
        };
        if has_called {
            self.queue.forget(number);
            self.ask(number);
        }
    }

    fn tell(&self, number: u64, shard: &mut HashMap<u64, Entry>, out: &mut Out<'_>) -> Option<Code> {
        let code = shard.get_mut(&number)?.tell(out);
        if code == Code::Answered {
            shard.remove(&number);
        }
        Some(code)
    }

    /// Takes note that the client of a request has left.
    pub(crate) fn leave(&self, number: u64) -> Result<(), Fault> {
        let mut shard = self.shard(number);
        let entry = shard.get_mut(&number).ok_or(Fault::Unknown)?;
        if let State::LetIn { admitted, is_told: true } = &entry.state {
            if !entry.is_left {
                entry.is_left = true;
                admitted.client_left();
            }
            return Ok(());
        }
        let left = self.take(number, &mut shard)?;
        drop(shard);
        drop(left);
        Ok(())
    }

    /// Takes note of the head of the answer, and tells what to change in it.
    pub(crate) fn answer(
        &self,
        number: u64,
        status: StatusCode,
        mut headers: HeaderMap,
        out: &mut Out<'_>,
    ) -> Result<Code, Fault> {
        let mut shard = self.shard(number);
        let entry = shard.get_mut(&number).ok_or(Fault::Unknown)?;
        let State::LetIn { admitted, is_told: true } = &mut entry.state else { return Err(Fault::Unknown) };
        // What did not fit last time is told again.
        if entry.untold.is_none() {
            let before = headers.clone();
            admitted.answer(status, &mut headers);
            entry.untold = Some(head::changes(&before, &headers));
        }
        Ok(entry.tell(out))
    }

    /// Returns whether the answer to a request is a stream, or opens one.
    pub(crate) fn streams(&self, number: u64) -> Result<bool, Fault> {
        match &self.shard(number).get(&number).ok_or(Fault::Unknown)?.state {
            State::LetIn { admitted, is_told: true } => Ok(admitted.streams()),
            _ => Err(Fault::Unknown),
        }
    }

    /// Ends a request; `end` says how the work on it went.
    pub(crate) fn end(&self, number: u64, end: impl FnOnce(Admitted)) -> Result<(), Fault> {
        let ended = self.take(number, &mut self.shard(number))?;
        // Else nobody was told that it may be worked on.
        if let State::LetIn { admitted, is_told: true } = ended.state {
            end(*admitted);
        }
        Ok(())
    }

    /// Tells nothing more, and lets all requests go.
    pub(crate) fn close(&self) {
        self.queue.close();
        for shard in &self.shards {
            let entries = std::mem::take(&mut *lock(shard));
            drop(entries);
        }
    }

    fn take(&self, number: u64, shard: &mut HashMap<u64, Entry>) -> Result<Entry, Fault> {
        let entry = shard.remove(&number).ok_or(Fault::Unknown)?;
        let is_queued = match &entry.state {
            State::Waits(waiting) => waiting.call().is_made(),
            _ => entry.untold.is_some(),
        };
        if is_queued {
            self.queue.forget(number);
        }
        Ok(entry)
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, HashMap<u64, Entry>> {
        lock(&self.shards[number as usize % SHARDS])
    }
}

impl Entry {
    fn new(state: State, untold: Option<Vec<u8>>) -> Self {
        Entry { state, untold, is_left: false }
    }

    fn of(entered: Entered, to_head: bool) -> Self {
        match entered {
            Entered::Admitted(admitted) => {
                let told = lines(&admitted);
                Entry::new(State::LetIn { admitted, is_told: false }, Some(told))
            }
            Entered::Answered(answer) => Entry::new(State::Answered, Some(whole(&answer, to_head))),
        }
    }

    /// Returns whether what became of it is still to be told.
    const fn has_result(&self) -> bool {
        self.untold.is_some() && !matches!(self.state, State::LetIn { is_told: true, .. })
    }

    /// Tells what is still to be told. An answer that was told is over.
    fn tell(&mut self, out: &mut Out<'_>) -> Code {
        let Some(untold) = &self.untold else {
            return if self.state.waits() { Code::Waits } else { Code::Nothing };
        };
        if !out.put(untold) {
            return Code::TooSmall;
        }
        self.untold = None;
        match &mut self.state {
            State::LetIn { is_told, .. } => {
                *is_told = true;
                Code::Ok
            }
            State::Answered => Code::Answered,
            State::Waits(_) | State::Asked { .. } => {
                unreachable!("of one that waits there is nothing to tell")
            }
        }
    }
}

impl State {
    const fn waits(&self) -> bool {
        matches!(self, State::Waits(_) | State::Asked { .. })
    }
}

/// Returns what the application is told of a request that is let in.
fn lines(admitted: &Admitted) -> Vec<u8> {
    let mut text = Vec::with_capacity(128);
    head::line(&mut text, b"", &head::REQUEST_ID, Some(admitted.request_id()));
    for (name, value) in admitted.said().filter(|(name, _)| *name != head::REQUEST_ID) {
        head::line(&mut text, b"", &name, Some(&value));
    }
    text
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
