//! The requests that the process has with the gateway, by number, and the results that are still to be told.
//!
//! A request is waiting, let in or answered. What became of it is *told* once the process has it; until then it
//! is kept. Who was told that a request is let in ends it; a request of which nothing was told is over when its
//! client leaves.

use crate::code::{Code, Fault};
use crate::head::{self, whole};
use crate::out::Out;
use http::{HeaderMap, StatusCode};
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use suimon_message::signals;
use suimon_proxy::{Admitted, Entered};
use tokio::task::AbortHandle;

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
    ready: Mutex<Ready>,
    bell: Condvar,
}

/// Results of those that waited, to be told in this order.
#[derive(Debug, Default)]
struct Ready {
    numbers: VecDeque<u64>,
    is_closed: bool,
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
    /// Its task, once that is known.
    Waits(Option<AbortHandle>),
    LetIn {
        admitted: Box<Admitted>,
        is_told: bool,
    },
    Answered,
}

impl Requests {
    /// Returns room for about `max` requests.
    pub(crate) fn new(max: usize) -> Self {
        Requests {
            shards: Default::default(),
            max: max.div_ceil(SHARDS) + SPARE_MAX,
            ready: Mutex::default(),
            bell: Condvar::new(),
        }
    }

    /// Returns whether there is no room for another request, which would have this number.
    pub(crate) fn is_full(&self, number: u64) -> bool {
        self.shard(number).len() >= self.max
    }

    /// Takes note that a request waits.
    pub(crate) fn waits(&self, number: u64) {
        self.shard(number).insert(number, Entry::new(State::Waits(None), None));
    }

    /// Takes note of the task of a request that waits. Its result may be there already.
    pub(crate) fn task(&self, number: u64, task: AbortHandle) {
        if let Some(Entry { state: State::Waits(own), .. }) = self.shard(number).get_mut(&number) {
            *own = Some(task);
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

    /// Takes note of what has become of a request that waited. One that has left is let go.
    pub(crate) fn decided(&self, number: u64, entered: Entered, to_head: bool) {
        self.settle(number, Entry::of(entered, to_head));
    }

    /// Takes note that nobody will decide about a request that waits.
    pub(crate) fn lost(&self, number: u64) {
        self.settle(number, Entry::new(State::Answered, Some(LOST.to_vec())));
    }

    fn settle(&self, number: u64, decided: Entry) {
        let mut shard = self.shard(number);
        match shard.get_mut(&number) {
            Some(entry) if matches!(entry.state, State::Waits(_)) => *entry = decided,
            _ => return,
        }
        // The lock is kept, so that nothing is ready that is not there.
        lock(&self.ready).numbers.push_back(number);
        drop(shard);
        self.bell.notify_one();
    }

    /// Waits for a result of one that waited, and tells it.
    pub(crate) fn next(&self, timeout: Duration, number: &mut u64, out: &mut Out<'_>) -> Result<Code, Fault> {
        let until = Instant::now() + timeout;
        loop {
            let Some(ready) = self.ready_until(until)? else { return Ok(Code::Nothing) };
            // One that has left meanwhile is not there any more.
            if let Some(code) = self.tell(ready, &mut self.shard(ready), out) {
                *number = ready;
                return Ok(code);
            }
        }
    }

    fn ready_until(&self, until: Instant) -> Result<Option<u64>, Fault> {
        let mut ready = lock(&self.ready);
        loop {
            if ready.is_closed {
                return Err(Fault::Closed);
            }
            if let Some(number) = ready.numbers.pop_front() {
                return Ok(Some(number));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            (ready, _) = self.bell.wait_timeout(ready, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells what is still to be told of a request.
    pub(crate) fn result(&self, number: u64, out: &mut Out<'_>) -> Result<Code, Fault> {
        let mut shard = self.shard(number);
        let code = self.tell(number, &mut shard, out).ok_or(Fault::Unknown)?;
        if code == Code::Ok || code == Code::Answered {
            self.unready(number);
        }
        Ok(code)
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
        left.let_go();
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
        match ended.state {
            State::LetIn { admitted, is_told: true } => end(*admitted),
            // Nobody was told that it may be worked on.
            _ => ended.let_go(),
        }
        Ok(())
    }

    /// Tells nothing more, and lets all requests go.
    pub(crate) fn close(&self) {
        let mut ready = lock(&self.ready);
        ready.is_closed = true;
        ready.numbers.clear();
        drop(ready);
        self.bell.notify_all();
        for shard in &self.shards {
            let entries = std::mem::take(&mut *lock(shard));
            entries.into_values().for_each(Entry::let_go);
        }
    }

    fn take(&self, number: u64, shard: &mut HashMap<u64, Entry>) -> Result<Entry, Fault> {
        let entry = shard.remove(&number).ok_or(Fault::Unknown)?;
        if entry.untold.is_some() {
            self.unready(number);
        }
        Ok(entry)
    }

    fn unready(&self, number: u64) {
        lock(&self.ready).numbers.retain(|ready| *ready != number);
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

    /// Tells what is still to be told. An answer that was told is over.
    fn tell(&mut self, out: &mut Out<'_>) -> Code {
        let Some(untold) = &self.untold else {
            return if matches!(self.state, State::Waits(_)) { Code::Waits } else { Code::Nothing };
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
            State::Waits(_) => unreachable!("of one that waits there is nothing to tell"),
        }
    }

    /// Ends what nobody works on.
    fn let_go(self) {
        if let State::Waits(Some(task)) = self.state {
            task.abort();
        }
    }
}

/// Returns what the application is told of a request that is let in.
fn lines(admitted: &Admitted) -> Vec<u8> {
    let mut text = Vec::with_capacity(128);
    head::line(&mut text, b"", &head::REQUEST_ID, Some(admitted.request_id()));
    let waiting = admitted.waiting();
    if waiting > 0 {
        head::line(&mut text, b"", &signals::WAITING, Some(&waiting.into()));
    }
    let held = admitted.waited();
    if !held.is_zero() {
        let milliseconds = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
        head::line(&mut text, b"", &signals::HELD, Some(&milliseconds.into()));
    }
    text
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
