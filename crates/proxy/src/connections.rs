//! All connections of clients: never more than so many, and the one that is worth least makes room for a newcomer.
//!
//! When a connection is accepted nobody can know whether somebody comes by it who is inside. So nobody is kept waiting there while connections are held that
//! are worth less: with all taken, a newcomer displaces the first of
//!
//! | worth | which |
//! |---|---|
//! | [`Worth::Silent`] | nothing was ever asked by it, for a second and more |
//! | [`Worth::Stranger`] | idle, and nobody was ever admitted by it: those who wait in line, static files alone |
//! | [`Worth::Fresh`] | nothing was asked by it yet, within its first second |
//! | [`Worth::Idle`] | idle, and somebody admitted came by it: their client opens another, and displaces in its turn |
//! | [`Worth::Asking`] | a request is under way, and nobody was ever admitted by it |
//! | [`Worth::Greedy`] | somebody admitted is being answered, at an address that holds more than its share |
//!
//! and of those first the ones of an address that holds more than its share, and then the one that has been so the longest. A newcomer of such an address displaces
//! only idle connections of strangers and of such addresses, or is turned away. With nothing to displace a newcomer waits, as all behind it in the kernel's queue do.
//! Below the limit nothing is displaced, and no address has a share.
//!
//! A request pays nothing for that but marks on its own connection: who is displaced is looked up when somebody has to be.

use crate::headers;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// For how long a connection by which nothing was asked yet is worth more than a stranger's idle one.
const FRESH: Duration = Duration::from_secs(1);

/// How long a displaced connection may take to go before another is.
const GOING_MAX: Duration = Duration::from_millis(50);

/// A look at all connections finds this many to be displaced, or this part of all, ...
const FOUND_MIN: usize = 64;
const FOUND_PART: usize = 64;
/// ... which are thought to be worth least for so long.
const FOUND_FOR: Duration = Duration::from_millis(100);

/// What one address may hold of the limit when all are taken: a part, and a number below which nobody is greedy. Behind one address there may be thousands of people.
const SHARE_PART: usize = 4;
const SHARE_MIN: usize = 8;

/// Bits of a network's address that stand for one client: for all of IPv4, and for what one subscriber gets of IPv6.
const V6_NETWORK_BITS: u32 = 64;

/// All connections of clients.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    permits: Arc<Semaphore>,
    since: Instant,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    entries: Vec<Option<Arc<Standing>>>,
    free: Vec<usize>,
    /// How many each address has that counts, which is fewer than there are entries.
    held: HashMap<Origin, usize>,
    /// What the last look found, worth least last.
    found: Vec<(Worth, Arc<Standing>)>,
    found_at: Option<Instant>,
}

/// An address, or network, whose connections are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Origin(u128);

/// What a connection is worth, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Worth {
    Silent,
    Stranger,
    Fresh,
    Idle,
    Asking,
    Greedy,
}

/// A connection among all; not there any more once this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    all: Arc<Connections>,
    index: usize,
    standing: Arc<Standing>,
    _permit: OwnedSemaphorePermit,
}

/// What there is to know of one connection.
#[derive(Debug)]
pub(crate) struct Standing {
    begun: AtomicU32,
    done: AtomicU32,
    /// When something was last asked by it, or it was opened: milliseconds since the start. Wraps.
    asked_at: AtomicU32,
    is_admitted: AtomicBool,
    origin: Mutex<Option<Origin>>,
    told: AtomicU8,
    heard: Notify,
}

/// What a connection is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Told {
    Nothing,
    /// To end once what is under way has.
    End,
    /// To close at once: it is displaced.
    Close,
}

impl Origin {
    /// Returns what the connections of `address` are counted under; `None`: nothing, since it may be a balancer's.
    pub(crate) fn of(address: IpAddr) -> Option<Origin> {
        if headers::is_private(address) {
            return None;
        }
        Some(Origin(match address.to_canonical() {
            IpAddr::V4(v4) => u128::from(v4.to_ipv6_mapped()),
            IpAddr::V6(v6) => {
                u128::from(v6) >> (u128::BITS - V6_NETWORK_BITS) << (u128::BITS - V6_NETWORK_BITS)
            }
        }))
    }
}

impl Connections {
    /// Returns room for `max` connections.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(max));
        Arc::new(Connections { max, permits, since: Instant::now(), state: Mutex::default() })
    }

    /// Enters a connection, once there is room for it. `None`: it is to be turned away.
    pub(crate) async fn enter(self: &Arc<Self>, origin: Option<Origin>, is_admitted: bool) -> Option<Entry> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.make_room(origin).await?,
        };
        let standing = Arc::new(Standing {
            begun: AtomicU32::new(0),
            done: AtomicU32::new(0),
            asked_at: AtomicU32::new(self.millis(Instant::now())),
            is_admitted: AtomicBool::new(is_admitted),
            origin: Mutex::new(origin),
            told: AtomicU8::new(Told::Nothing as u8),
            heard: Notify::new(),
        });
        let index = self.lock().enter(Arc::clone(&standing), origin);
        Some(Entry { all: Arc::clone(self), index, standing, _permit: permit })
    }

    async fn make_room(&self, origin: Option<Origin>) -> Option<OwnedSemaphorePermit> {
        loop {
            let is_turned_away = !self.displace(origin);
            if is_turned_away {
                return None;
            }
            let permit = Arc::clone(&self.permits).acquire_owned();
            if let Ok(permit) = tokio::time::timeout(GOING_MAX, permit).await {
                return Some(permit.expect("the semaphore is never closed"));
            }
        }
    }

    /// Displaces the connection worth least for one of `origin`, if there is one, and returns whether that one may stay, or wait.
    fn displace(&self, origin: Option<Origin>) -> bool {
        let now = Instant::now();
        let share = self.share();
        let mut state = self.lock();
        let is_greedy = origin.is_some_and(|origin| state.held(origin) >= share);
        if state.found_at.is_none_or(|at| now - at > FOUND_FOR) {
            state.found.clear();
        }
        // What was found before may be of no use by now.
        for is_new in [false, true] {
            if is_new {
                state.look(self.millis(now), share);
                state.found_at = Some(now);
            }
            while let Some((worth, standing)) = state.found.pop() {
                let is_of_greedy = state.is_greedy(&standing, share);
                let is_still = standing.worth(self.millis(now), || is_of_greedy);
                if is_still.is_none_or(|is| is > worth) || standing.told() == Told::Close {
                    continue;
                }
                // Else the greedy would displace those who are inside, and each other's work.
                let may = worth < Worth::Idle || worth == Worth::Idle && is_of_greedy;
                if is_greedy && !may {
                    state.found.push((worth, standing));
                    return false;
                }
                standing.tell(Told::Close);
                return true;
            }
        }
        !is_greedy
    }

    /// Returns whether so many connections are taken that those who only wait should hold none.
    pub(crate) fn are_scarce(&self) -> bool {
        self.permits.available_permits() <= self.max / 2
    }

    /// Tells all to end once what is under way has.
    pub(crate) fn end(&self) {
        for standing in self.lock().entries.iter().flatten() {
            standing.tell(Told::End);
        }
    }

    /// Returns once there are none.
    pub(crate) async fn gone(&self) {
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }

    fn share(&self) -> usize {
        (self.max / SHARE_PART).max(SHARE_MIN)
    }

    fn millis(&self, now: Instant) -> u32 {
        (now - self.since).as_millis() as u32
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, standing: Arc<Standing>, origin: Option<Origin>) -> usize {
        self.count(origin);
        match self.free.pop() {
            Some(index) => {
                self.entries[index] = Some(standing);
                index
            }
            None => {
                self.entries.push(Some(standing));
                self.entries.len() - 1
            }
        }
    }

    fn leave(&mut self, index: usize) {
        let standing = self.entries[index].take();
        self.free.push(index);
        let origin = standing.and_then(|standing| standing.origin());
        if let Some(hash_map::Entry::Occupied(mut held)) = origin.map(|origin| self.held.entry(origin)) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }

    fn count(&mut self, origin: Option<Origin>) {
        if let Some(origin) = origin {
            *self.held.entry(origin).or_default() += 1;
        }
    }

    fn held(&self, origin: Origin) -> usize {
        self.held.get(&origin).copied().unwrap_or(0)
    }

    fn is_greedy(&self, standing: &Standing, share: usize) -> bool {
        standing.origin().is_some_and(|origin| self.held(origin) > share)
    }

    /// Finds those worth least.
    fn look(&mut self, now: u32, share: usize) {
        let mut all: Vec<_> = (self.entries.iter().flatten())
            .filter(|standing| standing.told() < Told::Close)
            .filter_map(|standing| {
                let is_greedy = self.is_greedy(standing, share);
                let worth = standing.worth(now, || is_greedy)?;
                Some(((worth, !is_greedy, Reverse(standing.age(now))), standing))
            })
            .collect();
        let wanted = FOUND_MIN.max(all.len() / FOUND_PART);
        if all.len() > wanted {
            all.select_nth_unstable_by_key(wanted, |(order, _)| *order);
            all.truncate(wanted);
        }
        all.sort_by_key(|(order, _)| Reverse(*order));
        self.found = all.into_iter().map(|((worth, ..), standing)| (worth, Arc::clone(standing))).collect();
    }
}

impl Entry {
    /// Returns what there is to know of the connection.
    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Counts the connection under an address that was not known when it was entered. Returns whether it may stay.
    pub(crate) fn note_origin(&self, origin: Option<Origin>) -> bool {
        let Some(known) = origin else { return true };
        if self.all.permits.available_permits() == 0 && self.all.lock().held(known) >= self.all.share() {
            return self.all.displace(origin) && self.count_under(known);
        }
        self.count_under(known)
    }

    fn count_under(&self, origin: Origin) -> bool {
        *self.standing.origin.lock().unwrap_or_else(PoisonError::into_inner) = Some(origin);
        self.all.lock().count(Some(origin));
        true
    }

    /// Takes note that something is asked at `now`.
    pub(crate) fn begin(&self, now: Instant) {
        self.standing.asked_at.store(self.all.millis(now), Ordering::Relaxed);
        self.standing.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether it is better to ask by another connection the next time than to keep this one: nobody admitted comes by it, and there are few left.
    pub(crate) fn is_to_spare(&self) -> bool {
        !self.standing.is_admitted() && self.all.are_scarce()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.lock().leave(self.index);
    }
}

impl Standing {
    /// Takes note that something asked has ended, answered or not.
    pub(crate) fn end(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests have begun. Wraps.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns how many have ended. Wraps.
    pub(crate) fn done(&self) -> u32 {
        self.done.load(Ordering::Relaxed)
    }

    /// Takes note that somebody who comes by it was admitted.
    pub(crate) fn note_admitted(&self) {
        // Read first: all requests of a connection but the first find it so.
        if !self.is_admitted() {
            self.is_admitted.store(true, Ordering::Relaxed);
        }
    }

    fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Relaxed)
    }

    fn origin(&self) -> Option<Origin> {
        *self.origin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since something was last asked, milliseconds.
    fn age(&self, now: u32) -> u32 {
        now.wrapping_sub(self.asked_at.load(Ordering::Relaxed))
    }

    /// Returns what it is worth; `None`: it is never displaced.
    fn worth(&self, now: u32, is_greedy: impl FnOnce() -> bool) -> Option<Worth> {
        let (begun, done) = (self.begun(), self.done());
        match (begun == done, self.is_admitted()) {
            (true, true) => Some(Worth::Idle),
            (true, false) if begun > 0 => Some(Worth::Stranger),
            (true, false) if u128::from(self.age(now)) < FRESH.as_millis() => Some(Worth::Fresh),
            (true, false) => Some(Worth::Silent),
            (false, false) => Some(Worth::Asking),
            (false, true) => is_greedy().then_some(Worth::Greedy),
        }
    }

    /// Tells it something, unless it was told more.
    pub(crate) fn tell(&self, told: Told) {
        if self.told.fetch_max(told as u8, Ordering::AcqRel) < told as u8 {
            self.heard.notify_waiters();
        }
    }

    fn told(&self) -> Told {
        match self.told.load(Ordering::Acquire) {
            0 => Told::Nothing,
            1 => Told::End,
            _ => Told::Close,
        }
    }

    /// Returns once it is told `least` or more, and which.
    pub(crate) async fn hears(&self, least: Told) -> Told {
        loop {
            let mut heard = pin!(self.heard.notified());
            heard.as_mut().enable();
            let told = self.told();
            if told >= least {
                return told;
            }
            heard.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn origin(last: u8) -> Option<Origin> {
        Origin::of(Ipv4Addr::new(203, 0, 113, last).into())
    }

    /// Enters a connection for which there is room at once.
    fn enter(all: &Arc<Connections>, origin: Option<Origin>) -> Option<Entry> {
        use std::task::{Context, Poll, Waker};
        let entering = pin!(all.enter(origin, false));
        match entering.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(entry) => entry,
            Poll::Pending => panic!("no room"),
        }
    }

    fn asks(entry: &Entry) {
        entry.begin(Instant::now());
    }

    fn answered(entry: &Entry) {
        asks(entry);
        entry.standing().end();
    }

    fn displaced(entries: &[&Entry]) -> Vec<usize> {
        (0..entries.len()).filter(|at| entries[*at].standing().told() == Told::Close).collect()
    }

    #[test]
    fn what_is_worth_least_goes_first_and_whoever_is_being_answered_stays() {
        let all = Connections::new(5);
        let [busy, idle, asking, stranger, fresh] = std::array::from_fn(|_| enter(&all, None).unwrap());
        for entry in [&busy, &idle] {
            answered(entry);
            entry.standing().note_admitted();
        }
        asks(&busy);
        asks(&asking);
        answered(&stranger);
        let entries = [&busy, &idle, &asking, &stranger, &fresh];
        for gone in [&[3][..], &[3, 4], &[1, 3, 4], &[1, 2, 3, 4], &[1, 2, 3, 4]] {
            assert!(all.displace(None), "it may wait");
            assert_eq!(displaced(&entries), gone);
        }
    }

    #[test]
    fn an_address_with_more_than_its_share_goes_first_and_displaces_nobody_inside() {
        let all = Connections::new(40);
        let greedy: Vec<_> = (0..11).map(|_| enter(&all, origin(1)).unwrap()).collect();
        let others: Vec<_> = (2..31).map(|last| enter(&all, origin(last)).unwrap()).collect();
        for entry in greedy.iter().chain(&others) {
            answered(entry);
            entry.standing().note_admitted();
        }
        let among = |entries: &[Entry]| displaced(&entries.iter().collect::<Vec<_>>());
        assert!(all.displace(origin(200)));
        assert_eq!((among(&greedy).len(), among(&others).len()), (1, 0));
        greedy.iter().for_each(asks);
        assert!(!all.displace(origin(1)), "all of its own are busy, and others are inside");
        assert_eq!((among(&greedy).len(), among(&others).len()), (1, 0));
        others.iter().for_each(asks);
        assert!(all.displace(origin(200)));
        assert_eq!((among(&greedy).len(), among(&others).len()), (2, 0), "what it has beyond its share");
    }

    #[test]
    fn a_balancer_has_no_share_and_a_subscriber_has_one_however_many_addresses_it_has() {
        assert_eq!(Origin::of("10.0.0.1".parse().unwrap()), None);
        let [one, other, third] =
            ["2001:db8::1", "2001:db8::f:2", "2001:db8:0:1::1"].map(|a| Origin::of(a.parse().unwrap()));
        assert!(one == other && one != third && one.is_some());
        assert_eq!(Origin::of("::ffff:203.0.113.1".parse().unwrap()), origin(1));
    }

    #[test]
    fn addresses_that_have_gone_leave_nothing_behind() {
        let all = Connections::new(4);
        let entry = enter(&all, None).unwrap();
        assert!(entry.note_origin(origin(1)));
        assert_eq!(all.lock().held.len(), 1);
        drop((entry, enter(&all, origin(1))));
        assert_eq!(all.lock().held.len(), 0);
    }
}
