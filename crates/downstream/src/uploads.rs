//! Requests whose clients are waited for in the middle of their bodies, or of their answers. They
//! hold no slot, so their number is bounded here: beyond the bound one is broken off, the slowest
//! of the address that has most.
//!
//! Uploads in the application hold a worker there, though no slot. They may, as long as no other
//! request lacks it. But the more there are, the fewer may join them: from some number on bodies
//! are kept until they are whole, before the application is asked ([`Uploads::has_room`]). When
//! others wait for longer than they should, which the service reports, room is made: uploads are
//! broken off, strangers' before those of admitted visitors, the slowest first, one and then twice
//! as many each time, until no request waits. If the application was stuck, it gets no such bodies
//! for a while after that.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use suimon_message::peer::is_private;

/// Requests whose bodies are buffered in files before the application is asked.
pub const KEPT_MAX: usize = 512;
/// Up to this many in the application are always allowed, however low its observed concurrency.
pub const CROWD_LEAST: usize = 4;
/// One address may have one in this many, and at least one.
pub const SHARES: usize = 4;

/// The least time between two times that room is made: the application has to notice what was
/// broken off, and has to answer the waiting requests.
pub const ROOM_EVERY: Duration = Duration::from_secs(1);
/// After a pause of this length, making room begins with one again: the cause is another one.
const ROOM_FORGOTTEN: Duration = Duration::from_secs(5);
/// The least time between two that go on without the slots they wait for.
pub const PASS_EVERY: Duration = Duration::from_millis(250);
/// How long bodies are buffered until they are whole, once room had to be made.
const WARY_FOR: Duration = Duration::from_secs(600);
/// A client's rate is measured over the last of these, or a little more.
const RATE_OVER: Duration = Duration::from_secs(5);

/// All that there are of a sort.
#[derive(Debug)]
pub struct Uploads {
    state: Mutex<SlowBodiesInner>,
    /// How many there are, and how many may become some.
    count: AtomicUsize,
    reserved: AtomicUsize,
    max: usize,
    /// Whether one address has a share of them.
    has_shares: bool,
}

#[derive(Default, Debug)]
struct SlowBodiesInner {
    under_way: Vec<Arc<UploadProgress>>,
    /// When room was made last, and how many had to go.
    room_made: Option<(Instant, usize)>,
    wary_until: Option<Instant>,
    passed: Option<Instant>,
}

/// Whose they are, as far as can be known: an address, unless it may belong to a balancer that is
/// not configured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// Nobody in particular.
    Anybody,
    /// An IPv4 address.
    V4(u32),
    /// What one subscriber has: the first half of the address.
    V6(u64),
}

/// Where they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sender {
    /// The address.
    pub origin: Origin,
    /// Whether an admitted visitor sends it: of a session that had begun, or with a place in line
    /// whose turn it is.
    pub is_inside: bool,
}

/// One of them. Dropping it removes it.
#[derive(Debug)]
pub struct Upload {
    all: Arc<Uploads>,
    pace: Arc<UploadProgress>,
}

/// One that may become one of them. Dropping it ends that.
#[derive(Debug)]
pub struct Reserved(Arc<Uploads>);

#[derive(Debug)]
struct UploadProgress {
    sender: Sender,
    came: Mutex<ReceivedBytes>,
    is_broken_off: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// What has come of a body, and what had at two moments before.
#[derive(Clone, Copy, Debug)]
struct ReceivedBytes {
    bytes: u64,
    before: (Instant, u64),
    lately: (Instant, u64),
}

impl Origin {
    /// Returns that of a client at this address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if is_private(address) => Origin::Anybody,
            IpAddr::V4(v4) => Origin::V4(v4.into()),
            IpAddr::V6(v6) => Origin::V6((u128::from(v6) >> 64) as u64),
        }
    }
}

impl Uploads {
    /// Returns the place for at most `max` of them.
    pub fn new(max: usize) -> Arc<Self> {
        Uploads::with(max, false)
    }

    /// Returns the place for at most `max` of them, a share of which one address may have.
    pub fn shared(max: usize) -> Arc<Self> {
        Uploads::with(max, true)
    }

    fn with(max: usize, has_shares: bool) -> Arc<Self> {
        let none = || AtomicUsize::new(0);
        Arc::new(Uploads { state: Mutex::default(), count: none(), reserved: none(), max, has_shares })
    }

    /// Adds a request after `bytes` of its body have come and it has been `waited` for this long.
    /// At the maximum number one has to go: the slowest of the address that has most, or of its own
    /// address if that has its share. `None`: it is this one.
    pub fn begin(self: &Arc<Self>, sender: Sender, bytes: u64, waited: Duration) -> Option<Upload> {
        let now = Instant::now();
        let since = now.checked_sub(waited).unwrap_or(now);
        let pace = Arc::new(UploadProgress {
            sender,
            came: Mutex::new(ReceivedBytes { bytes, before: (since, 0), lately: (now, bytes) }),
            is_broken_off: AtomicBool::new(false),
            waker: Mutex::default(),
        });
        let mut state = self.lock();
        let is_full = state.under_way.len() >= self.max;
        let own = state.under_way.iter().filter(|other| is_one(other.sender.origin, sender.origin)).count();
        let is_share = self.has_shares && own >= (self.max / SHARES).max(1);
        if is_full || is_share {
            // An address with many makes room for one with few, and beyond its share only for
            // itself.
            let counts = state.counts();
            // Requests that may be of any client count as those of different ones.
            let of = |origin: Origin| counts.get(&origin).copied().unwrap_or(1);
            let most = if is_share { own } else { counts.values().copied().max().unwrap_or(1) };
            let is_rival = |other: &UploadProgress| {
                if is_share {
                    is_one(other.sender.origin, sender.origin)
                } else {
                    of(other.sender.origin) == most
                }
            };
            let rivals = state.under_way.iter().enumerate().filter(|(_, other)| is_rival(other));
            let rates = rivals.map(|(index, other)| (index, other.rate(now)));
            let (slowest, least) = rates.min_by(|one, other| one.1.total_cmp(&other.1))?;
            let has_few = !is_share && own + 1 < most;
            if !has_few && least > pace.rate(now) {
                return None;
            }
            state.under_way.swap_remove(slowest).break_off();
        }
        state.under_way.push(Arc::clone(&pace));
        self.note_count(&state);
        drop(state);
        Some(Upload { all: Arc::clone(self), pace })
    }

    /// Returns whether one more may hold a worker of an application that was seen to work at
    /// `in_flight_max` requests: fewer if it was stuck recently.
    pub fn has_room(&self, in_flight_max: usize, now: Instant) -> bool {
        let most =
            if self.is_wary(now) { (in_flight_max / 4).max(1) } else { (in_flight_max / 2).max(CROWD_LEAST) };
        self.count() + self.reserved.load(Relaxed) < most
    }

    /// Takes note of one that may become slow.
    pub fn reserve(self: &Arc<Self>) -> Reserved {
        self.reserved.fetch_add(1, Relaxed);
        Reserved(Arc::clone(self))
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Takes note that the application was stuck.
    pub fn be_wary(&self, now: Instant) {
        self.lock().wary_until = Some(now + WARY_FOR);
    }

    /// Breaks off uploads, strangers' and the slowest of others, until `inside_may_stay` of these
    /// are left, but no more at once than the pace of it allows. Returns how many were broken off.
    pub fn make_room(&self, inside_may_stay: usize, now: Instant) -> usize {
        let mut state = self.lock();
        let at_once = match state.room_made {
            Some((last, _)) if now.saturating_duration_since(last) < ROOM_EVERY => return 0,
            Some((last, count)) if now.saturating_duration_since(last) < ROOM_FORGOTTEN => 2 * count,
            _ => 1,
        };
        let inside = state.under_way.iter().filter(|pace| pace.sender.is_inside).count();
        let strangers = state.under_way.len() - inside;
        let count = (strangers + inside.saturating_sub(inside_may_stay)).min(at_once);
        if count == 0 {
            return 0;
        }
        state.under_way.sort_by_cached_key(|pace| (pace.sender.is_inside, pace.rate(now) as u64));
        state.under_way.drain(..count).for_each(|pace| pace.break_off());
        state.room_made = Some((now, count));
        self.note_count(&state);
        count
    }

    fn note_count(&self, state: &SlowBodiesInner) {
        self.count.store(state.under_way.len(), Relaxed);
    }

    /// Returns whether one whose body has ended may go on without the slot that it waits for: one
    /// now and then, where nothing else goes on.
    pub fn may_pass(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let may = state.passed.is_none_or(|last| now.saturating_duration_since(last) >= PASS_EVERY);
        if may {
            state.passed = Some(now);
        }
        may
    }

    /// Returns whether the application was stuck not long ago.
    pub fn is_wary(&self, now: Instant) -> bool {
        self.lock().wary_until.is_some_and(|until| now < until)
    }

    fn lock(&self) -> MutexGuard<'_, SlowBodiesInner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlowBodiesInner {
    /// Returns how many there are of each address that is somebody's.
    fn counts(&self) -> HashMap<Origin, usize> {
        let mut counts = HashMap::new();
        for origin in self.under_way.iter().map(|pace| pace.sender.origin) {
            if origin != Origin::Anybody {
                *counts.entry(origin).or_default() += 1;
            }
        }
        counts
    }
}

/// Returns whether both are of one address.
fn is_one(one: Origin, other: Origin) -> bool {
    one != Origin::Anybody && one == other
}

impl Upload {
    /// Takes note of what has come since.
    pub fn note(&self, bytes: u64) {
        self.pace.came().note(Instant::now(), bytes);
    }

    /// Returns once it has to go.
    pub async fn broken_off(&self) {
        std::future::poll_fn(|cx| self.poll_broken_off(cx)).await;
    }

    /// Is ready once it has to go.
    pub fn poll_broken_off(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.pace.waker() = Some(cx.waker().clone());
        if self.pace.is_broken_off.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.reserved.fetch_sub(1, Relaxed);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        state.under_way.retain(|pace| !Arc::ptr_eq(pace, &self.pace));
        self.all.note_count(&state);
    }
}

impl UploadProgress {
    /// Returns the recent bytes per second.
    fn rate(&self, now: Instant) -> f64 {
        self.came().rate(now)
    }

    fn came(&self) -> MutexGuard<'_, ReceivedBytes> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn break_off(&self) {
        self.is_broken_off.store(true, Relaxed);
        if let Some(waker) = self.waker().take() {
            waker.wake();
        }
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReceivedBytes {
    fn note(&mut self, now: Instant, bytes: u64) {
        if now.saturating_duration_since(self.lately.0) >= RATE_OVER {
            self.before = self.lately;
            self.lately = (now, self.bytes);
        }
        self.bytes = bytes;
    }

    /// Returns the recent bytes per second: a burst at the beginning says nothing about how long it
    /// will take.
    fn rate(&self, now: Instant) -> f64 {
        let is_old = now.saturating_duration_since(self.lately.0) >= RATE_OVER;
        let (at, bytes) = if is_old { self.lately } else { self.before };
        (self.bytes - bytes) as f64 / now.saturating_duration_since(at).as_secs_f64().max(0.001)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRANGER: Sender = Sender { origin: Origin::Anybody, is_inside: false };
    const INSIDE: Sender = Sender { origin: Origin::Anybody, is_inside: true };
    const SECOND: Duration = Duration::from_secs(1);

    /// Makes room as where the application is stuck.
    fn stuck(all: &Uploads, now: Instant) -> usize {
        let gone = all.make_room(0, now);
        if gone > 0 {
            all.be_wary(now);
        }
        gone
    }

    fn is_going(upload: &Upload) -> bool {
        upload.poll_broken_off(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn of_too_many_the_slowest_has_to_go() {
        let all = Uploads::new(2);
        let begin = |bytes| all.begin(STRANGER, bytes, SECOND);
        let slow = begin(10).unwrap();
        let quick = begin(1000).unwrap();
        assert!(begin(5).is_none(), "slower than all others");
        let other = begin(500).unwrap();
        assert!(is_going(&slow));
        assert!(!is_going(&quick) && !is_going(&other));
        other.note(100_000);
        drop(begin(5000).unwrap());
        assert!(is_going(&quick), "it has become the slowest");
        assert!(!is_going(&other));
        drop((slow, quick, other));
        assert_eq!(all.lock().under_way.len(), 0);
    }

    fn from(host: u8) -> Sender {
        Sender { origin: Origin::of(IpAddr::from([192, 0, 2, host])), ..STRANGER }
    }

    #[test]
    fn a_share_of_them_is_one_address_s() {
        let all = Uploads::shared(20);
        let honest = all.begin(from(1), 10, SECOND).unwrap();
        let _others: Vec<_> = (0..200).filter_map(|n| all.begin(from(2), 1000 + n, SECOND)).collect();
        assert_eq!(all.lock().under_way.len(), 6, "a quarter of twenty, and the other");
        assert!(!is_going(&honest), "though it is the slowest");
        let one = Uploads::shared(1);
        assert!(one.begin(from(1), 10, SECOND).is_some(), "a share is never nothing");
    }

    #[test]
    fn addresses_with_many_make_room_for_those_with_few_however_quick_they_are() {
        let all = Uploads::shared(20);
        let mut honest = vec![all.begin(from(9), 10, SECOND).unwrap()];
        let _many: Vec<_> = (0..200).map(|n| all.begin(from((n % 5) as u8), 100_000 + n, SECOND)).collect();
        assert_eq!(all.lock().under_way.len(), 20);
        honest.extend([10, 11, 12].map(|host| all.begin(from(host), 10, SECOND).unwrap()));
        assert!(!honest.iter().any(is_going));
        let _more: Vec<_> = (0..100).map(|n| all.begin(from((n % 5) as u8), 100_000, SECOND)).collect();
        assert!(!honest.iter().any(is_going));
        assert_eq!(all.lock().under_way.len(), 20);
    }

    #[test]
    fn there_is_room_for_some_and_for_half_of_what_the_application_works_at_but_for_fewer_once_it_was_stuck()
    {
        let all = Uploads::new(100);
        let now = Instant::now();
        let mut uploads = vec![];
        let mut rooms = |now: Instant| {
            uploads.clear();
            [0, 16].map(|seen| {
                while all.has_room(seen, now) {
                    uploads.push(all.begin(STRANGER, 1, SECOND).unwrap());
                }
                uploads.len()
            })
        };
        assert_eq!(rooms(now), [4, 8]);
        assert_eq!(stuck(&all, now), 1);
        assert_eq!(rooms(now), [1, 4]);
        assert_eq!(rooms(now + WARY_FOR), [4, 8]);
    }

    #[test]
    fn room_is_made_by_strangers_first_and_by_others_as_far_as_they_may_not_stay() {
        let all = Uploads::new(4);
        let start = Instant::now();
        let at = |secs| start + secs * SECOND;
        let insiders = [10, 5].map(|bytes| all.begin(INSIDE, bytes, SECOND).unwrap());
        let strangers = [1_000_000, 2_000_000].map(|bytes| all.begin(STRANGER, bytes, SECOND).unwrap());
        assert_eq!([0, 1, 2].map(|secs| all.make_room(1, at(secs))), [1, 2, 0]);
        assert!(strangers.iter().all(is_going) && is_going(&insiders[1]) && !is_going(&insiders[0]));
        assert!(!all.is_wary(at(2)) && all.count() == 1);
        assert_eq!(stuck(&all, at(9)), 1);
        assert!(is_going(&insiders[0]) && all.is_wary(at(9)) && all.count() == 0);
    }

    #[test]
    fn room_is_made_by_one_and_then_by_twice_as_many() {
        let all = Uploads::new(100);
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs_f64(secs);
        assert_eq!(stuck(&all, start), 0, "there is room");
        assert!(!all.is_wary(start));
        let uploads: Vec<_> = (0..40).map(|n| all.begin(STRANGER, 1000 + n, SECOND).unwrap()).collect();
        let gone = [0.0, 0.5, 1.0, 2.0, 2.9, 3.0].map(|secs| stuck(&all, at(secs)));
        assert_eq!(gone, [1, 0, 2, 4, 0, 8]);
        assert!(uploads[..15].iter().all(is_going) && !uploads[15..].iter().any(is_going));
        assert_eq!(stuck(&all, at(9.0)), 1, "from the beginning");
        assert!(all.is_wary(at(9.0) + WARY_FOR - SECOND) && !all.is_wary(at(9.0) + WARY_FOR));
    }

    #[test]
    fn a_burst_makes_nobody_quick_for_long_however_seldom_more_comes() {
        let start = Instant::now();
        for every in [1, 29] {
            let mut came =
                ReceivedBytes { bytes: 320_000, before: (start, 0), lately: (start + SECOND, 320_000) };
            let mut rates = Vec::new();
            for second in 1..=100 {
                let now = start + second * SECOND;
                if second % every == 0 {
                    came.note(now, 320_000 + 600 * u64::from(second));
                }
                rates.push(came.rate(now));
            }
            assert!(rates[0] > 300_000.0 && rates[3] > 60_000.0);
            assert!(rates[30..].iter().all(|rate| *rate < 4000.0), "each {every} s: {rates:?}");
            assert!(rates.iter().sum::<f64>() > 30_000.0);
        }
    }
}
