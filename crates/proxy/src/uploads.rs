//! Requests whose clients are waited for in the middle of their bodies. They hold no slot, so how many there may be is bounded here: beyond, the slowest of
//! them is broken off.
//!
//! Those in the application hold a worker there, though no slot. So what bounds them is what the application was seen to hold: with at most half of that waiting
//! for clients the other half goes on serving. One that kept its slot instead would hold its worker all the same, and the slots of its route beside, for as
//! long as its client likes; the slowest is the one that would hold it longest. Of one client's address there is a share of them, so that one alone cannot break off everybody else's.

use crate::headers::is_private;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Requests whose bodies are kept in files before the application is asked.
pub(crate) const KEPT_MAX: usize = 512;
/// Those in the application, however little it was seen to hold.
const IN_APPLICATION_LEAST: usize = 4;
/// One address has one in so many of what has shares, and at least one.
pub(crate) const SHARES: usize = 4;

/// All that there are of a sort.
#[derive(Debug)]
pub(crate) struct Uploads {
    under_way: Mutex<Vec<Arc<Pace>>>,
    max: usize,
    /// Whether they hold workers of the application.
    in_application: bool,
    /// Whether one address has a share of them.
    has_shares: bool,
}

/// Whose they are, as far as can be told: an address, unless it may be that of a balancer nobody has named.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Origin(Option<u128>);

/// One of them. Dropped, it is none of them any more.
#[derive(Debug)]
pub(crate) struct Upload {
    all: Arc<Uploads>,
    pace: Arc<Pace>,
}

#[derive(Debug)]
struct Pace {
    origin: Origin,
    /// What has come of its body, and since when its client is waited for, waits before that put together.
    bytes: AtomicU64,
    since: Instant,
    is_broken_off: AtomicBool,
    waker: Mutex<Option<Waker>>,
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
        Arc::new(Uploads { under_way: Mutex::default(), max, in_application: false, has_shares: false })
    }

    /// Returns the place for at most `max` of them whose bodies are kept in files.
    pub(crate) fn kept(max: usize) -> Arc<Self> {
        Arc::new(Uploads { under_way: Mutex::default(), max, in_application: false, has_shares: true })
    }

    /// Returns the place for at most `max` of them that hold workers of the application.
    pub(crate) fn in_application(max: usize) -> Arc<Self> {
        Arc::new(Uploads { under_way: Mutex::default(), max, in_application: true, has_shares: true })
    }

    /// Adds a request of whose body so many bytes have come after waits of so long. Where there are as many as may be the slowest has to go; `None`: it is
    /// this one. `held_max`: the most that the application was seen to hold.
    pub(crate) fn begin(
        self: &Arc<Self>,
        origin: Origin,
        bytes: u64,
        waited: Duration,
        held_max: usize,
    ) -> Option<Upload> {
        let now = Instant::now();
        let pace = Arc::new(Pace {
            origin,
            bytes: AtomicU64::new(bytes),
            since: now.checked_sub(waited).unwrap_or(now),
            is_broken_off: AtomicBool::new(false),
            waker: Mutex::default(),
        });
        let mut under_way = self.lock();
        let (max, share) = self.bounds(held_max);
        let is_own = |other: &Arc<Pace>| origin.0.is_some() && other.origin == origin;
        let own = under_way.iter().filter(|other| is_own(other)).count();
        if own >= share || under_way.len() >= max {
            let rivals = under_way.iter().enumerate().filter(|(_, other)| own < share || is_own(other));
            let rates = rivals.map(|(index, other)| (index, other.rate(now)));
            let (slowest, least) = rates.min_by(|one, other| one.1.total_cmp(&other.1))?;
            if least > pace.rate(now) {
                return None;
            }
            under_way.swap_remove(slowest).break_off();
        }
        under_way.push(Arc::clone(&pace));
        drop(under_way);
        Some(Upload { all: Arc::clone(self), pace })
    }

    /// Returns how many there may be, and how many of one origin.
    fn bounds(&self, held_max: usize) -> (usize, usize) {
        let max = if self.in_application {
            (held_max / 2).max(IN_APPLICATION_LEAST).min(self.max)
        } else {
            self.max
        };
        (max, if self.has_shares { (max / SHARES).max(1) } else { usize::MAX })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Pace>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upload {
    /// Takes note of what has come since.
    pub(crate) fn note(&self, bytes: u64) {
        self.pace.bytes.store(bytes, Relaxed);
    }

    /// Is ready once it has to go.
    pub(crate) fn poll_broken_off(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.pace.waker() = Some(cx.waker().clone());
        if self.pace.is_broken_off.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.all.lock().retain(|pace| !Arc::ptr_eq(pace, &self.pace));
    }
}

impl Pace {
    /// Returns bytes a second, up to now.
    fn rate(&self, now: Instant) -> f64 {
        self.bytes.load(Relaxed) as f64 / (now - self.since).as_secs_f64().max(0.001)
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

#[cfg(test)]
mod tests {
    use super::*;

    const ANYBODY: Origin = Origin::ANYBODY;
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn of_too_many_the_slowest_has_to_go() {
        let all = Uploads::new(2);
        let mut cx = Context::from_waker(Waker::noop());
        let begin = |bytes| all.begin(ANYBODY, bytes, SECOND, 0);
        let slow = begin(10).unwrap();
        let quick = begin(1000).unwrap();
        assert!(begin(5).is_none(), "slower than all others");
        let other = begin(500).unwrap();
        assert!(slow.poll_broken_off(&mut cx).is_ready());
        assert!(quick.poll_broken_off(&mut cx).is_pending() && other.poll_broken_off(&mut cx).is_pending());
        other.note(100_000);
        drop(begin(5000).unwrap());
        assert!(quick.poll_broken_off(&mut cx).is_ready(), "it has become the slowest");
        assert!(other.poll_broken_off(&mut cx).is_pending());
        drop((slow, quick, other));
        assert_eq!(all.lock().len(), 0);
    }

    #[test]
    fn those_in_the_application_are_half_of_what_it_holds_and_a_share_of_them_is_one_address_s() {
        assert_eq!(Uploads::kept(100).bounds(0), (100, 25));
        assert_eq!(Uploads::new(100).bounds(0), (100, usize::MAX));
        let all = Uploads::in_application(100);
        let mut cx = Context::from_waker(Waker::noop());
        let from = |host: u8| Origin::of(IpAddr::from([192, 0, 2, host]));
        let mut kept = Vec::new();
        for count in [4, 20, 100] {
            kept.clear();
            kept.extend((0..200).filter_map(|n| all.begin(ANYBODY, n, SECOND, 2 * count)));
            assert_eq!(all.lock().len(), count);
        }
        assert_eq!(Uploads::in_application(100).bounds(0), (IN_APPLICATION_LEAST, 1));
        kept.clear();
        let honest = all.begin(from(1), 10, SECOND, 40).unwrap();
        kept.extend((0..200).filter_map(|n| all.begin(from(2), 1000 + n, SECOND, 40)));
        assert_eq!(all.lock().len(), 6, "a quarter of twenty, and the other");
        assert!(honest.poll_broken_off(&mut cx).is_pending(), "though it is the slowest");
    }
}
