//! All connections of clients: there is a maximum, and at the maximum the one that is worth least
//! makes room for a newcomer.
//!
//! When a connection is accepted nobody can know whether an admitted visitor is behind it. So no
//! connection is kept waiting while less valuable ones are held: with all taken, a newcomer
//! displaces the first of
//!
//! | worth | which |
//! |---|---|
//! | [`DisplacementRank::Silent`] | no request ever came on it, for a second and more |
//! | [`DisplacementRank::Stranger`] | idle, and never used by an admitted visitor: visitors in line, static files alone |
//! | [`DisplacementRank::Fresh`] | no request yet, within its first second, while there are many such |
//! | [`DisplacementRank::Tunnel`] | a tunnel, while tunnels hold more than their part of all |
//! | [`DisplacementRank::Idle`] | idle, and used by an admitted visitor: their client opens another, and displaces in its turn |
//! | [`DisplacementRank::Held`] | all that is under way waits for its client: a tunnel, a body that does not come, an answer that is not taken, an open stream |
//! | [`DisplacementRank::Arriving`] | no request yet, within its first second: else newcomers would displace each other in their handshakes |
//! | [`DisplacementRank::Asking`] | a request is under way, and no admitted visitor ever used it |
//! | [`DisplacementRank::Greedy`] | an admitted visitor is being answered, at an address that holds more than most do |
//!
//! and of those, first the ones of the address that holds most, and then the one on which nothing
//! has moved for longest. Addresses are compared with one another: however many addresses an
//! attacker uses, those that hold all connections hold more than the others. But thousands of
//! people may share an address, so a connection on which the application works for an admitted
//! visitor is displaced only where nothing else is left, and only for an address that holds less.
//!
//! A newcomer of an address that holds a large part of all displaces only idle connections of
//! strangers and of addresses that hold more than most, and what waits for its client, or is turned
//! away. With nothing to displace a newcomer waits, as all behind it in the kernel's queue do.
//! Below the limit nothing is displaced.
//!
//! A request pays nothing for that but marks on its own connection: the connection to displace is
//! looked up when one has to be.

use crate::streams::Delivery;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use suimon_message::peer;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How long a new connection without a request is worth more than an idle one of a client without a
/// session.
const FRESH: Duration = Duration::from_secs(1);

/// How long a displaced connection may take to go before another is.
const GOING_MAX: Duration = Duration::from_millis(50);

/// A look at all connections finds this many to be displaced, or this part of all, ...
const FOUND_MIN: usize = 64;
const FOUND_PART: usize = 64;
/// ... which are thought to be worth least for this long.
const FOUND_FOR: Duration = Duration::from_millis(100);

/// The part of the limit that one address may hold before its newcomers can no longer displace any
/// connection.
const SHARE_PART: usize = 4;
/// Below this number no address is greedy. Behind one address there may be thousands of people.
const SHARE_MIN: usize = 8;

/// The part of the limit up to which connections without a request yet are worth more than those
/// that wait for their clients.
const FRESH_PART: usize = 8;

/// The part of the limit that tunnels may hold together when all are taken.
const TUNNELS_PART: usize = 2;

/// Bits of a network's address that stand for one client: for all of IPv4, and for what one
/// subscriber gets of IPv6.
const V6_NETWORK_BITS: u32 = 64;

/// All connections of clients.
#[derive(Debug)]
pub struct Connections {
    max: usize,
    permits: Arc<Semaphore>,
    since: Instant,
    displaced: Arc<AtomicU64>,
    /// What each is told that is entered from now on.
    told: AtomicU8,
    state: Mutex<ConnectionsInner>,
}

#[derive(Default, Debug)]
struct ConnectionsInner {
    entries: Vec<Option<Arc<ConnectionState>>>,
    free: Vec<usize>,
    /// How many counted connections each address has, which is fewer than there are entries.
    held: HashMap<Origin, usize>,
    /// What the last look found for a newcomer, and for one whose address holds its share.
    found: [DisplacementCandidates; 2],
}

#[derive(Default, Debug)]
struct DisplacementCandidates {
    /// Worth least last.
    list: Vec<(DisplacementRank, Arc<ConnectionState>)>,
    /// Whether there was none.
    is_none: bool,
    at: Option<Instant>,
    many: OverShare,
}

/// Ranks of which there is more than their part of all.
#[derive(Clone, Copy, Default, Debug)]
struct OverShare {
    tunnels: bool,
    fresh: bool,
}

/// An address, or network, whose connections are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Origin(u128);

/// What a connection is worth, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum DisplacementRank {
    Silent,
    Stranger,
    Fresh,
    Tunnel,
    Idle,
    Held,
    Arriving,
    Asking,
    Greedy,
}

/// A connection among all; removed when this is dropped.
#[derive(Debug)]
pub struct Entry {
    all: Arc<Connections>,
    index: usize,
    standing: Arc<ConnectionState>,
    _permit: OwnedSemaphorePermit,
}

/// What is known of one connection.
#[derive(Debug)]
pub struct ConnectionState {
    begun: AtomicU32,
    done: AtomicU32,
    /// When the last request came, or it was opened: milliseconds since the start. Wraps.
    asked_at: AtomicU32,
    /// What is under way and waits for its client, and since when the latest of it does; tunnels
    /// included.
    held: AtomicU32,
    held_since: AtomicU32,
    tunnels: AtomicU32,
    since: Instant,
    is_admitted: AtomicBool,
    origin: Mutex<Option<Origin>>,
    told: AtomicU8,
    heard: Notify,
}

/// Something under way on a connection that waits for its client now and then. Dropping it ends the
/// wait.
#[derive(Debug)]
pub struct ClientWait {
    standing: Arc<ConnectionState>,
    /// The request it is one side of, where others may be under way beside it: both sides together
    /// are one that waits.
    request: Option<Arc<Delivery>>,
    waits: bool,
    is_tunnel: bool,
}

/// What a connection is told to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum CloseRequest {
    /// Nothing: it may go on.
    Nothing,
    /// To take one more request, and to end behind its answer: a client that sends it at this moment
    /// does not find the connection closed. HTTP/2 says goodbye at once, which loses no request.
    AfterNext,
    /// To end once what is under way has.
    End,
    /// To close at once: it is displaced.
    Close,
}

impl Origin {
    /// Returns what the connections of `address` are counted under; `None`: nothing, since it may
    /// be a balancer's.
    pub fn of(address: IpAddr) -> Option<Origin> {
        if peer::is_private(address) {
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
    /// Returns room for `max` connections. Those that are displaced are counted in `displaced`.
    pub fn new(max: usize, displaced: Arc<AtomicU64>) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(max));
        let told = AtomicU8::new(CloseRequest::Nothing as u8);
        Arc::new(Connections {
            max,
            permits,
            since: Instant::now(),
            displaced,
            told,
            state: Mutex::default(),
        })
    }

    /// Enters a connection, once there is room for it. `None`: it must be turned away.
    pub async fn enter(self: &Arc<Self>, origin: Option<Origin>, is_admitted: bool) -> Option<Entry> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.make_room(origin).await?,
        };
        Some(self.entry(permit, origin, is_admitted))
    }

    /// Enters what none is displaced for, and is never displaced; `None`: there is no room.
    pub fn enter_if_room(self: &Arc<Self>) -> Option<Entry> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(self.entry(permit, None, true))
    }

    fn entry(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        origin: Option<Origin>,
        is_admitted: bool,
    ) -> Entry {
        let standing = Arc::new(ConnectionState {
            begun: AtomicU32::new(0),
            done: AtomicU32::new(0),
            asked_at: AtomicU32::new(self.millis(Instant::now())),
            held: AtomicU32::new(0),
            held_since: AtomicU32::new(0),
            tunnels: AtomicU32::new(0),
            since: self.since,
            is_admitted: AtomicBool::new(is_admitted),
            origin: Mutex::new(origin),
            told: AtomicU8::new(CloseRequest::Nothing as u8),
            heard: Notify::new(),
        });
        let index = {
            // Under the lock, so that none is told nothing: see `tell`.
            let mut state = self.lock();
            standing.told.store(self.told.load(Ordering::Relaxed), Ordering::Release);
            state.enter(Arc::clone(&standing), origin)
        };
        Entry { all: Arc::clone(self), index, standing, _permit: permit }
    }

    async fn make_room(&self, origin: Option<Origin>) -> Option<OwnedSemaphorePermit> {
        loop {
            let is_turned_away = !self.displace(origin, None);
            if is_turned_away {
                return None;
            }
            let permit = Arc::clone(&self.permits).acquire_owned();
            if let Ok(permit) = tokio::time::timeout(GOING_MAX, permit).await {
                return Some(permit.expect("the semaphore is never closed"));
            }
        }
    }

    /// Displaces the connection worth least for one of `origin`, if there is one, and returns
    /// whether that one may stay, or wait. `newcomer`: that one, if it has been entered.
    ///
    fn displace(&self, origin: Option<Origin>, newcomer: Option<&Arc<ConnectionState>>) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        let held = origin.map_or(0, |origin| state.held(origin));
        let is_limited = held >= self.share();
        let which = usize::from(is_limited);
        if state.found[which].at.is_none_or(|at| now - at > FOUND_FOR) {
            state.found[which] = DisplacementCandidates::default();
        }
        // What was found before may be of no use by now. That there was nothing is believed: else
        // each of many newcomers would look through all.
        for is_new in [false, true] {
            if is_new {
                if state.found[which].is_none {
                    break;
                }
                state.found[which] = state.look(now, self.max, is_limited, newcomer);
            }
            while let Some((worth, standing)) = state.found[which].list.pop() {
                let many = state.found[which].many;
                let is_greedy = state.is_greedy(&standing, self.max);
                let is_still = standing.worth(self.millis(now), many, is_greedy);
                let is_newcomer = newcomer.is_some_and(|newcomer| Arc::ptr_eq(newcomer, &standing));
                if is_still.is_none_or(|is| is > worth)
                    || standing.told() == CloseRequest::Close
                    || is_newcomer
                {
                    continue;
                }
                // Else addresses that hold as many would cut off each other's work.
                if worth == DisplacementRank::Greedy && state.held_with(&standing) <= held {
                    state.found[which].list.push((worth, standing));
                    return true;
                }
                standing.tell(CloseRequest::Close);
                self.displaced.fetch_add(1, Ordering::Relaxed);
                return true;
            }
        }
        !is_limited
    }

    /// Returns whether connections are so scarce that clients that only wait should hold none.
    pub fn are_scarce(&self) -> bool {
        self.permits.available_permits() <= self.max / 2
    }

    /// Tells all something, those that are entered later included.
    pub fn tell(&self, told: CloseRequest) {
        let state = self.lock();
        self.told.store(told as u8, Ordering::Relaxed);
        for standing in state.entries.iter().flatten() {
            standing.tell(told);
        }
    }

    /// Returns whether all have been told to end.
    pub fn is_ending(&self) -> bool {
        self.told.load(Ordering::Relaxed) == CloseRequest::End as u8
    }

    /// Returns once there are none. Meanwhile none is entered.
    pub async fn gone(&self) {
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }

    fn share(&self) -> usize {
        (self.max / SHARE_PART).max(SHARE_MIN)
    }

    fn millis(&self, now: Instant) -> u32 {
        millis(self.since, now)
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionsInner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the milliseconds from `since` to `now`. Wraps.
fn millis(since: Instant, now: Instant) -> u32 {
    (now - since).as_millis() as u32
}

impl ConnectionsInner {
    fn enter(&mut self, standing: Arc<ConnectionState>, origin: Option<Origin>) -> usize {
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

    /// Returns how many the address of a connection has.
    fn held_with(&self, standing: &ConnectionState) -> usize {
        standing.origin().map_or(0, |origin| self.held(origin))
    }

    /// Returns whether the address of a connection has more than each would have if all had as
    /// many, and a newcomer too.
    fn is_greedy(&self, standing: &ConnectionState, max: usize) -> bool {
        self.held_with(standing) > (max / (self.held.len() + 1)).max(SHARE_MIN)
    }

    /// Finds those worth least, of those that a newcomer may displace.
    fn look(
        &self,
        at: Instant,
        max: usize,
        is_limited: bool,
        newcomer: Option<&Arc<ConnectionState>>,
    ) -> DisplacementCandidates {
        let is_newcomer = |standing: &_| newcomer.is_some_and(|newcomer| Arc::ptr_eq(newcomer, standing));
        let there = || {
            let all = self.entries.iter().flatten();
            all.filter(|standing| standing.told() < CloseRequest::Close && !is_newcomer(standing))
        };
        let many = OverShare {
            tunnels: there().filter(|standing| standing.is_tunnel()).count() > max / TUNNELS_PART,
            fresh: there().filter(|standing| standing.is_fresh(millis(standing.since, at))).count()
                > max / FRESH_PART,
        };
        let mut all: Vec<_> = there()
            .filter_map(|standing| {
                let now = millis(standing.since, at);
                let is_greedy = self.is_greedy(standing, max);
                let worth = standing.worth(now, many, is_greedy)?;
                // Else one address would displace admitted visitors at others.
                let may = worth < DisplacementRank::Idle
                    || worth == DisplacementRank::Held
                    || worth == DisplacementRank::Idle && is_greedy;
                let waits = worth == DisplacementRank::Held || worth == DisplacementRank::Tunnel;
                let age = if waits { standing.held_for(now) } else { standing.age(now) };
                let order = (worth, Reverse(self.held_with(standing)), Reverse(age));
                (may || !is_limited).then_some((order, standing))
            })
            .collect();
        let wanted = FOUND_MIN.max(all.len() / FOUND_PART);
        if all.len() > wanted {
            all.select_nth_unstable_by_key(wanted, |(order, _)| *order);
            all.truncate(wanted);
        }
        all.sort_by_key(|(order, _)| Reverse(*order));
        let list: Vec<_> =
            all.into_iter().map(|((worth, ..), standing)| (worth, Arc::clone(standing))).collect();
        DisplacementCandidates { is_none: list.is_empty(), list, at: Some(at), many }
    }
}

impl Entry {
    /// Returns what there is to know of the connection.
    pub fn standing(&self) -> &Arc<ConnectionState> {
        &self.standing
    }

    /// Counts the connection under an address that was not known when it was entered. Returns
    /// whether it may stay.
    pub fn note_origin(&self, origin: Option<Origin>) -> bool {
        let Some(known) = origin else { return true };
        if self.all.permits.available_permits() == 0 && self.all.lock().held(known) >= self.all.share() {
            return self.all.displace(origin, Some(&self.standing)) && self.count_under(known);
        }
        self.count_under(known)
    }

    fn count_under(&self, origin: Origin) -> bool {
        *self.standing.origin.lock().unwrap_or_else(PoisonError::into_inner) = Some(origin);
        self.all.lock().count(Some(origin));
        true
    }

    /// Takes note that something is asked at `now`.
    pub fn begin(&self, now: Instant) {
        self.standing.asked_at.store(self.all.millis(now), Ordering::Relaxed);
        self.standing.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether a new connection for the next request is better than keeping this one: no
    /// admitted visitor uses it, and few are left.
    pub fn is_to_spare(&self) -> bool {
        !self.standing.is_admitted() && self.all.are_scarce()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.lock().leave(self.index);
    }
}

impl ConnectionState {
    /// Takes note that something asked has ended, answered or not.
    pub fn end(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests have begun. Wraps.
    pub fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns how many have ended. Wraps.
    pub fn done(&self) -> u32 {
        self.done.load(Ordering::Relaxed)
    }

    /// Takes note that a visitor who uses it was admitted.
    pub fn note_admitted(&self) {
        // Read first: all requests of a connection but the first find it set.
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

    /// Returns the time since anything that waits for its client moved, milliseconds.
    fn held_for(&self, now: u32) -> u32 {
        now.wrapping_sub(self.held_since.load(Ordering::Relaxed))
    }

    /// Returns whether all that is under way waits for the client.
    fn is_held(&self) -> bool {
        let under_way = self.begun().wrapping_sub(self.done());
        under_way > 0 && self.held.load(Ordering::Relaxed) >= under_way
    }

    /// Returns whether nothing was asked by it yet, and it was opened just now.
    fn is_fresh(&self, now: u32) -> bool {
        self.begun() == 0 && !self.is_admitted() && u128::from(self.age(now)) < FRESH.as_millis()
    }

    fn is_tunnel(&self) -> bool {
        self.tunnels.load(Ordering::Relaxed) > 0 && self.is_held()
    }

    /// Returns what it is worth; `None`: it is never displaced.
    fn worth(&self, now: u32, many: OverShare, is_greedy: bool) -> Option<DisplacementRank> {
        let (begun, done) = (self.begun(), self.done());
        match (begun == done, self.is_admitted()) {
            (false, _) if many.tunnels && self.is_tunnel() => Some(DisplacementRank::Tunnel),
            (false, _) if self.is_held() => Some(DisplacementRank::Held),
            (true, true) => Some(DisplacementRank::Idle),
            (true, false) if begun > 0 => Some(DisplacementRank::Stranger),
            (true, false) if self.is_fresh(now) && many.fresh => Some(DisplacementRank::Fresh),
            (true, false) if self.is_fresh(now) => Some(DisplacementRank::Arriving),
            (true, false) => Some(DisplacementRank::Silent),
            (false, false) => Some(DisplacementRank::Asking),
            (false, true) => is_greedy.then_some(DisplacementRank::Greedy),
        }
    }

    /// Tells it something, unless it was told more.
    pub fn tell(&self, told: CloseRequest) {
        if self.told.fetch_max(told as u8, Ordering::AcqRel) < told as u8 {
            self.heard.notify_waiters();
        }
    }

    /// Returns what it was told last.
    pub fn told(&self) -> CloseRequest {
        match self.told.load(Ordering::Acquire) {
            0 => CloseRequest::Nothing,
            1 => CloseRequest::AfterNext,
            2 => CloseRequest::End,
            _ => CloseRequest::Close,
        }
    }

    /// Returns once it is told `least` or more, and which.
    pub async fn hears(&self, least: CloseRequest) -> CloseRequest {
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

impl ClientWait {
    /// Returns something under way by a connection, which does not wait yet.
    pub fn new(standing: &Arc<ConnectionState>) -> Self {
        ClientWait::of(standing, None)
    }

    /// Returns one side of a request, which does not wait yet.
    pub fn of(standing: &Arc<ConnectionState>, request: Option<Arc<Delivery>>) -> Self {
        ClientWait { standing: Arc::clone(standing), request, waits: false, is_tunnel: false }
    }

    /// Returns a tunnel, which waits from now on.
    pub fn tunnel(standing: &Arc<ConnectionState>) -> Self {
        standing.tunnels.fetch_add(1, Ordering::Relaxed);
        let mut wait = ClientWait::new(standing);
        wait.is_tunnel = true;
        wait.begin();
        wait
    }

    /// Takes note that the client is waited for, since now if it was not before.
    pub fn begin(&mut self) {
        if !self.waits {
            self.waits = true;
            self.note_moved();
            if self.request.as_ref().is_none_or(|request| request.begin_wait()) {
                self.standing.held.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Takes note that the client is waited for no longer.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.waits) && self.request.as_ref().is_none_or(|request| request.end_wait()) {
            self.standing.held.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes note that something came or went: the wait begins anew.
    pub fn note_moved(&self) {
        let now = millis(self.standing.since, Instant::now());
        self.standing.held_since.store(now, Ordering::Relaxed);
    }
}

impl Drop for ClientWait {
    fn drop(&mut self) {
        self.end();
        if self.is_tunnel {
            self.standing.tunnels.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::streams::Streams;
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
        (0..entries.len()).filter(|at| entries[*at].standing().told() == CloseRequest::Close).collect()
    }

    #[test]
    fn what_is_worth_least_goes_first_and_whoever_is_being_answered_stays() {
        let all = Connections::new(5, Arc::default());
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
            assert!(all.displace(None, None), "it may wait");
            assert_eq!(displaced(&entries), gone);
        }
    }

    #[test]
    fn an_address_with_more_than_its_share_goes_first_and_displaces_nobody_inside() {
        let all = Connections::new(40, Arc::default());
        let greedy: Vec<_> = (0..11).map(|_| enter(&all, origin(1)).unwrap()).collect();
        let others: Vec<_> = (2..31).map(|last| enter(&all, origin(last)).unwrap()).collect();
        for entry in greedy.iter().chain(&others) {
            answered(entry);
            entry.standing().note_admitted();
        }
        let among = |entries: &[Entry]| displaced(&entries.iter().collect::<Vec<_>>());
        assert!(all.displace(origin(200), None));
        assert_eq!((among(&greedy).len(), among(&others).len()), (1, 0));
        greedy.iter().for_each(asks);
        assert!(!all.displace(origin(1), None), "all of its own are busy, and others are inside");
        assert_eq!((among(&greedy).len(), among(&others).len()), (1, 0));
        others.iter().for_each(asks);
        assert!(all.displace(origin(200), None));
        assert_eq!((among(&greedy).len(), among(&others).len()), (2, 0), "what it has beyond its share");
    }

    /// Waits for its client, with one request, since now.
    fn held(entry: &Entry) -> ClientWait {
        entry.standing().note_admitted();
        asks(entry);
        let mut wait = ClientWait::new(entry.standing());
        wait.begin();
        wait
    }

    #[test]
    fn what_waits_for_its_client_goes_before_what_is_asked_and_first_at_the_address_that_holds_most() {
        let all = Connections::new(20, Arc::default());
        let honest: Vec<_> = (0..10).map(|_| enter(&all, origin(1)).unwrap()).collect();
        honest.iter().for_each(|entry| {
            asks(entry);
            entry.standing().note_admitted();
        });
        let holders: Vec<_> =
            [2, 2, 2, 3, 3, 3, 3, 4, 4].map(|last| enter(&all, origin(last)).unwrap()).into();
        let mut waits: Vec<_> = holders.iter().map(held).collect();
        let idle = enter(&all, None).unwrap();
        answered(&idle);
        idle.standing().note_admitted();
        assert!(all.displace(origin(5), None));
        assert_eq!(displaced(&[&idle]), [0], "somebody opens another at no cost");
        let among = || displaced(&holders.iter().collect::<Vec<_>>());
        assert!(all.displace(origin(5), None));
        assert!(among().len() == 1 && (3..7).contains(&among()[0]), "{:?}", among());
        waits[7].end();
        for _ in 0..7 {
            assert!(all.displace(origin(5), None));
        }
        assert!(among().len() == 8 && !among().contains(&7), "{:?}", among());
        assert_eq!(displaced(&honest.iter().collect::<Vec<_>>()).len(), 0);
        assert_eq!(all.displaced.load(Ordering::Relaxed), 9);
    }

    #[test]
    fn tunnels_beyond_their_part_go_before_those_who_are_idle_inside() {
        let all = Connections::new(6, Arc::default());
        let tunnels: Vec<_> = (0..4).map(|_| enter(&all, None).unwrap()).collect();
        let _open: Vec<_> = tunnels
            .iter()
            .map(|entry| {
                asks(entry);
                ClientWait::tunnel(entry.standing())
            })
            .collect();
        let idle: Vec<_> = (0..2).map(|_| enter(&all, None).unwrap()).collect();
        for entry in &idle {
            answered(entry);
            entry.standing().note_admitted();
        }
        assert!(all.displace(None, None));
        assert_eq!(displaced(&tunnels.iter().collect::<Vec<_>>()).len(), 1);
        all.lock().found = Default::default();
        assert!(all.displace(None, None));
        assert_eq!(displaced(&tunnels.iter().collect::<Vec<_>>()).len(), 1, "half are theirs");
        assert_eq!(displaced(&idle.iter().collect::<Vec<_>>()).len(), 1);
    }

    #[test]
    fn of_many_addresses_those_that_hold_all_are_displaced_and_a_newcomer_is_never_kept_out() {
        let all = Connections::new(40, Arc::default());
        let busy: Vec<_> = (0..40).map(|number| enter(&all, origin(number / 10)).unwrap()).collect();
        for entry in &busy {
            asks(entry);
            entry.standing().note_admitted();
        }
        assert!(all.displace(origin(200), None));
        assert_eq!(displaced(&busy.iter().collect::<Vec<_>>()).len(), 1, "all have exactly a quarter");
    }

    #[test]
    fn newcomers_do_not_displace_each_other_in_their_handshakes_unless_very_many_come_at_once() {
        let all = Connections::new(40, Arc::default());
        let holders: Vec<_> = (0..35).map(|_| enter(&all, None).unwrap()).collect();
        let _waits: Vec<_> = holders.iter().map(held).collect();
        let fresh: Vec<_> = (0..5).map(|_| enter(&all, None).unwrap()).collect();
        assert!(all.displace(None, None));
        assert_eq!(displaced(&holders.iter().collect::<Vec<_>>()).len(), 1);
        drop(holders);
        let more: Vec<_> = (0..1).map(|_| enter(&all, None).unwrap()).collect();
        all.lock().found = Default::default();
        assert!(all.displace(None, None));
        assert_eq!(displaced(&fresh.iter().chain(&more).collect::<Vec<_>>()).len(), 1);
    }

    #[test]
    fn a_request_that_waits_for_its_client_both_ways_is_one() {
        let all = Connections::new(1, Arc::default());
        let entry = enter(&all, None).unwrap();
        entry.standing().note_admitted();
        let call = Streams::new(Duration::ZERO, Budget::new(0)).taking();
        let [mut body, mut answer] =
            std::array::from_fn(|_| ClientWait::of(entry.standing(), Some(Arc::clone(&call))));
        asks(&entry);
        asks(&entry);
        body.begin();
        answer.begin();
        assert!(all.displace(None, None));
        assert_eq!(displaced(&[&entry]), [] as [usize; 0], "the application works on the other");
        entry.standing().end();
        assert!(entry.standing().is_held());
        body.end();
        assert!(entry.standing().is_held(), "one side is enough");
        drop(answer);
        assert!(!entry.standing().is_held());
    }

    #[test]
    fn where_nothing_can_be_displaced_newcomers_do_not_look_again_and_again() {
        let all = Connections::new(40, Arc::default());
        let entries: Vec<_> = (0..40).map(|_| enter(&all, origin(1)).unwrap()).collect();
        entries.iter().for_each(|entry| {
            entry.standing().note_admitted();
            asks(entry);
        });
        assert!(!all.displace(origin(1), None), "turned away");
        entries[7].standing().end();
        assert!(!all.displace(origin(1), None), "what was found a moment ago still counts");
        for found in &mut all.lock().found {
            found.at = found.at.and_then(|at| at.checked_sub(2 * FOUND_FOR));
        }
        assert!(all.displace(origin(1), None));
        assert_eq!(displaced(&entries.iter().collect::<Vec<_>>()), [7]);
    }

    #[test]
    fn whoever_comes_by_a_balancer_is_not_displaced_for_itself() {
        let all = Connections::new(20, Arc::default());
        let entries: Vec<_> = (0..19).map(|_| enter(&all, origin(1)).unwrap()).collect();
        let _waits: Vec<_> = entries.iter().map(held).collect();
        let newcomer = enter(&all, None).unwrap();
        assert!(newcomer.note_origin(origin(1)));
        assert!(newcomer.standing().told() < CloseRequest::Close);
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
        let all = Connections::new(4, Arc::default());
        let entry = enter(&all, None).unwrap();
        assert!(entry.note_origin(origin(1)));
        assert_eq!(all.lock().held.len(), 1);
        drop((entry, enter(&all, origin(1))));
        assert_eq!(all.lock().held.len(), 0);
    }
}
