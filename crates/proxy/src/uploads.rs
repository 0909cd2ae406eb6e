//! Requests whose clients are waited for in the middle of their bodies. They hold no slot, so how many there may be is bounded here: beyond, the slowest of
//! them is broken off. Of one client's address there is a share of them, so that one alone cannot break off everybody else's.
//!
//! Those in the application hold a worker there, though no slot. As long as nobody misses it they may: how many workers there are is known to nobody here.
//! Where others wait for longer than they should (see [`crate::stall`]), room is made: the slowest are broken off, strangers before those who are inside, one and then
//! twice as many each time, until nobody waits. For a while after that such bodies are kept until they are whole, before the application is asked.

use crate::headers::is_private;
use std::cmp::Ordering;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Requests whose bodies are kept in files before the application is asked.
pub(crate) const KEPT_MAX: usize = 512;
/// One address has one in so many of what has shares, and at least one.
pub(crate) const SHARES: usize = 4;

/// The least time between two times that room is made: what was broken off has to be noticed by the application.
pub(crate) const ROOM_EVERY: Duration = Duration::from_millis(250);
/// What is made room for after a pause of so long is another matter: it begins with one again.
const ROOM_FORGOTTEN: Duration = Duration::from_secs(2);
/// How long bodies are kept until they are whole, once room had to be made.
const WARY_FOR: Duration = Duration::from_secs(600);
/// A client's rate is of what came in the last of these, or two.
const RATE_OVER: Duration = Duration::from_secs(5);

/// All that there are of a sort.
#[derive(Debug)]
pub(crate) struct Uploads {
    state: Mutex<State>,
    max: usize,
    /// Whether one address has a share of them.
    has_shares: bool,
}

#[derive(Default, Debug)]
struct State {
    under_way: Vec<Arc<Pace>>,
    /// When room was made last, and how many had to go.
    room_made: Option<(Instant, usize)>,
    wary_until: Option<Instant>,
}

/// Whose they are, as far as can be told: an address, unless it may be that of a balancer nobody has named.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Origin(Option<u128>);

/// Where they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sender {
    pub(crate) origin: Origin,
    /// Whether of a session that had begun before.
    pub(crate) is_inside: bool,
}

/// One of them. Dropped, it is none of them any more.
#[derive(Debug)]
pub(crate) struct Upload {
    all: Arc<Uploads>,
    pace: Arc<Pace>,
}

#[derive(Debug)]
struct Pace {
    sender: Sender,
    came: Mutex<Came>,
    is_broken_off: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// What has come of a body, and what had at two moments before.
#[derive(Clone, Copy, Debug)]
struct Came {
    bytes: u64,
    before: (Instant, u64),
    lately: (Instant, u64),
}

impl Origin {
    /// Of whom nothing is known.
    pub(crate) const ANYBODY: Origin = Origin(None);

    /// Returns that of a client at this address: for IPv6, what one subscriber has.
    pub(crate) fn of(address: IpAddr) -> Self {
        if is_private(address) {
            return Origin(None);
        }
        Origin(Some(match address.to_canonical() {
            IpAddr::V4(v4) => u128::from(u32::from(v4)),
            IpAddr::V6(v6) => u128::from(v6) >> 64 | 1 << 127,
        }))
    }
}

impl Uploads {
    /// Returns the place for at most `max` of them.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Uploads { state: Mutex::default(), max, has_shares: false })
    }

    /// Returns the place for at most `max` of them, a share of which one address may have.
    pub(crate) fn shared(max: usize) -> Arc<Self> {
        Arc::new(Uploads { state: Mutex::default(), max, has_shares: true })
    }

    /// Adds a request of whose body so many bytes have come after waits of so long. Where there are as many as may be the one worth least has to go; `None`: it is
    /// this one.
    pub(crate) fn begin(self: &Arc<Self>, sender: Sender, bytes: u64, waited: Duration) -> Option<Upload> {
        let now = Instant::now();
        let since = now.checked_sub(waited).unwrap_or(now);
        let pace = Arc::new(Pace {
            sender,
            came: Mutex::new(Came { bytes, before: (since, 0), lately: (since, 0) }),
            is_broken_off: AtomicBool::new(false),
            waker: Mutex::default(),
        });
        let share = if self.has_shares { (self.max / SHARES).max(1) } else { usize::MAX };
        let mut state = self.lock();
        let is_own = |other: &Arc<Pace>| sender.origin.0.is_some() && other.sender.origin == sender.origin;
        let own = state.under_way.iter().filter(|other| is_own(other)).count();
        if own >= share || state.under_way.len() >= self.max {
            let least = state.least(now, |other| own < share || is_own(other))?;
            if pace.worth(now).cmp(&state.under_way[least].worth(now)).is_lt() {
                return None;
            }
            state.under_way.swap_remove(least).break_off();
        }
        state.under_way.push(Arc::clone(&pace));
        drop(state);
        Some(Upload { all: Arc::clone(self), pace })
    }

    /// Breaks off those worth least until `may_stay` are left, but no more at once than the pace of it allows. Returns how many had to go.
    pub(crate) fn make_room(&self, may_stay: usize, now: Instant) -> usize {
        let mut state = self.lock();
        let too_many = state.under_way.len().saturating_sub(may_stay);
        let at_once = match state.room_made {
            Some((last, _)) if now.saturating_duration_since(last) < ROOM_EVERY => 0,
            Some((last, count)) if now.saturating_duration_since(last) < ROOM_FORGOTTEN => 2 * count,
            _ => 1,
        };
        let count = too_many.min(at_once);
        if count == 0 {
            return 0;
        }
        for _ in 0..count {
            let Some(least) = state.least(now, |_| true) else { break };
            state.under_way.swap_remove(least).break_off();
        }
        state.room_made = Some((now, count));
        state.wary_until = Some(now + WARY_FOR);
        count
    }

    /// Returns whether room had to be made not long ago.
    pub(crate) fn is_wary(&self, now: Instant) -> bool {
        self.lock().wary_until.is_some_and(|until| now < until)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns which of those under way, of these, is worth least.
    fn least(&self, now: Instant, is_one: impl Fn(&Arc<Pace>) -> bool) -> Option<usize> {
        let ones = self.under_way.iter().enumerate().filter(|(_, pace)| is_one(pace));
        let worths = ones.map(|(index, pace)| (index, pace.worth(now)));
        Some(worths.min_by(|one, other| one.1.cmp(&other.1))?.0)
    }
}

impl Upload {
    /// Takes note of what has come since.
    pub(crate) fn note(&self, bytes: u64) {
        self.pace.came().note(Instant::now(), bytes);
    }

    /// Is ready once it has to go.
    pub(crate) fn poll_broken_off(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.pace.waker() = Some(cx.waker().clone());
        if self.pace.is_broken_off.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.all.lock().under_way.retain(|pace| !Arc::ptr_eq(pace, &self.pace));
    }
}

/// What one is worth beside others: whether its session is inside, and bytes a second.
struct Worth(bool, f64);

impl Worth {
    fn cmp(&self, other: &Worth) -> Ordering {
        self.0.cmp(&other.0).then(self.1.total_cmp(&other.1))
    }
}

impl Pace {
    fn worth(&self, now: Instant) -> Worth {
        Worth(self.sender.is_inside, self.came().rate(now))
    }

    fn came(&self) -> MutexGuard<'_, Came> {
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

impl Came {
    fn note(&mut self, now: Instant, bytes: u64) {
        if now.saturating_duration_since(self.lately.0) >= RATE_OVER {
            self.before = self.lately;
            self.lately = (now, self.bytes);
        }
        self.bytes = bytes;
    }

    /// Returns bytes a second of late: a burst at the beginning says nothing about how long it will take.
    fn rate(&self, now: Instant) -> f64 {
        let (at, bytes) = self.before;
        (self.bytes - bytes) as f64 / now.saturating_duration_since(at).as_secs_f64().max(0.001)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRANGER: Sender = Sender { origin: Origin::ANYBODY, is_inside: false };
    const INSIDE: Sender = Sender { origin: Origin::ANYBODY, is_inside: true };
    const SECOND: Duration = Duration::from_secs(1);

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

    #[test]
    fn a_share_of_them_is_one_address_s() {
        let all = Uploads::shared(20);
        let from = |host: u8| Sender { origin: Origin::of(IpAddr::from([192, 0, 2, host])), ..STRANGER };
        let honest = all.begin(from(1), 10, SECOND).unwrap();
        let _others: Vec<_> = (0..200).filter_map(|n| all.begin(from(2), 1000 + n, SECOND)).collect();
        assert_eq!(all.lock().under_way.len(), 6, "a quarter of twenty, and the other");
        assert!(!is_going(&honest), "though it is the slowest");
        let one = Uploads::shared(1);
        assert!(one.begin(from(1), 10, SECOND).is_some(), "a share is never nothing");
    }

    #[test]
    fn strangers_go_before_those_who_are_inside() {
        let all = Uploads::new(2);
        let inside = all.begin(INSIDE, 10, SECOND).unwrap();
        let stranger = all.begin(STRANGER, 1_000_000, SECOND).unwrap();
        let other = all.begin(INSIDE, 5, SECOND).unwrap();
        assert!(is_going(&stranger) && !is_going(&inside));
        assert!(all.begin(STRANGER, 1_000_000, SECOND).is_none(), "nobody who is inside goes for a stranger");
        assert!(!is_going(&inside) && !is_going(&other));
    }

    #[test]
    fn room_is_made_for_those_who_wait_by_one_and_then_twice_as_many() {
        let all = Uploads::new(100);
        let uploads: Vec<_> = (0..40).map(|n| all.begin(STRANGER, 1000 + n, SECOND).unwrap()).collect();
        let start = Instant::now();
        assert!(!all.is_wary(start));
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(all.make_room(100, start), 0, "there is room");
        assert!(!all.is_wary(start));
        let gone = [0, 10, 250, 500, 510, 750].map(|millis| all.make_room(0, at(millis)));
        assert_eq!(gone, [1, 0, 2, 4, 0, 8]);
        assert!(uploads[..15].iter().all(is_going) && !uploads[15..].iter().any(is_going));
        assert_eq!(all.make_room(20, at(1000)), 5, "twenty may stay");
        assert_eq!(all.make_room(0, at(4000)), 1, "from the beginning");
        assert!(all.is_wary(at(4000) + WARY_FOR - SECOND) && !all.is_wary(at(4000) + WARY_FOR));
    }

    #[test]
    fn a_burst_at_the_beginning_makes_nobody_quick_for_long() {
        let start = Instant::now();
        let mut came = Came { bytes: 320_000, before: (start, 0), lately: (start, 0) };
        let mut rates = Vec::new();
        for second in 1..=20 {
            let now = start + second * SECOND;
            came.note(now, 320_000 + 600 * u64::from(second));
            rates.push(came.rate(now));
        }
        assert!(rates[0] > 300_000.0 && rates[3] > 80_000.0);
        assert!(rates[10..].iter().all(|rate| (550.0..=750.0).contains(rate)), "{rates:?}");
        assert!(came.rate(start + 100 * SECOND) < 150.0, "and silence counts");
    }
}
