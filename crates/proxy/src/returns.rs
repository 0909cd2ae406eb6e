//! Requests that have a slot and for which no node could be connected to: they wait for the
//! application's return like those that come once it is known to be down, without a slot. Nothing
//! of them was sent.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use suimon_model::SessionId;

/// The maximum number of them; clients beyond that are told so at once.
const UNREACHED_MAX: usize = 10_000;
/// Of these, the most of newcomers: the rest is for sessions.
const UNREACHED_NEWCOMERS_MAX: usize = 5_000;
/// The most of one session, as the gate's limit for those who come later, ...
const UNREACHED_OF_SESSION_MAX: u32 = 8;
/// ... and of all newcomers from one address, which may be shared by many.
const UNREACHED_OF_ADDRESS_MAX: u32 = 64;

/// Whose request it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum WaitOwner {
    Session(SessionId),
    /// A newcomer's, whose session counts no more than its address until it is answered.
    Address(IpAddr),
}

impl WaitOwner {
    /// Returns that of a newcomer at this address: for IPv6, what one subscriber has.
    pub(crate) fn of(address: IpAddr) -> Self {
        WaitOwner::Address(match address.to_canonical() {
            IpAddr::V4(v4) => IpAddr::V4(v4),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        })
    }

    fn is_newcomer(self) -> bool {
        matches!(self, WaitOwner::Address(_))
    }
}

/// Who waits.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    all: usize,
    newcomers: usize,
    of: HashMap<WaitOwner, u32>,
}

/// The right to wait; given back when dropped.
#[derive(Debug)]
pub(crate) struct ReturnPermit {
    returns: Arc<Returns>,
    whose: WaitOwner,
}

impl Returns {
    /// Returns a place for one more, if there is one.
    pub(crate) fn enter(self: &Arc<Self>, whose: WaitOwner) -> Option<ReturnPermit> {
        let most = match whose {
            WaitOwner::Session(_) => UNREACHED_OF_SESSION_MAX,
            WaitOwner::Address(_) => UNREACHED_OF_ADDRESS_MAX,
        };
        let mut waiting = self.lock();
        let is_full = waiting.all >= UNREACHED_MAX
            || whose.is_newcomer() && waiting.newcomers >= UNREACHED_NEWCOMERS_MAX;
        if is_full || waiting.of.get(&whose).is_some_and(|of| *of >= most) {
            return None;
        }
        waiting.all += 1;
        waiting.newcomers += usize::from(whose.is_newcomer());
        *waiting.of.entry(whose).or_default() += 1;
        Some(ReturnPermit { returns: Arc::clone(self), whose })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic while it was held leaves counts that are at worst off by one.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReturnPermit {
    fn drop(&mut self) {
        let mut waiting = self.returns.lock();
        waiting.all -= 1;
        waiting.newcomers -= usize::from(self.whose.is_newcomer());
        if let Entry::Occupied(mut of) = waiting.of.entry(self.whose) {
            *of.get_mut() -= 1;
            if *of.get() == 0 {
                of.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn neither_a_session_nor_an_address_takes_the_room_of_the_others() {
        let returns = Arc::new(Returns::default());
        let address = |number: u32| WaitOwner::of(IpAddr::from(number.to_be_bytes()));
        let session = |number| WaitOwner::Session(SessionId(number));
        for (whose, another, most) in [
            (session(1), session(2), UNREACHED_OF_SESSION_MAX),
            (address(1), address(2), UNREACHED_OF_ADDRESS_MAX),
        ] {
            let mut places: Vec<_> = (0..most).map(|_| returns.enter(whose).unwrap()).collect();
            assert!(returns.enter(whose).is_none() && returns.enter(another).is_some());
            places.pop();
            assert!(returns.enter(whose).is_some(), "one that leaves makes room");
        }
        let all: Vec<_> = (0..UNREACHED_MAX as u64).map(|it| returns.enter(session(it)).unwrap()).collect();
        assert!(returns.enter(address(1)).is_none());
        drop(all);
        assert!(returns.lock().of.is_empty(), "nobody is remembered");
    }

    #[test]
    fn one_subscriber_s_addresses_are_one() {
        let returns = Arc::new(Returns::default());
        let address = |subscriber: u16, host| {
            WaitOwner::of(Ipv6Addr::new(0x2001, 0xdb8, 0, subscriber, 0, 0, 0, host).into())
        };
        let _places: Vec<_> = (0..)
            .map_while(|host| returns.enter(address(1, host)))
            .take(1 + UNREACHED_OF_ADDRESS_MAX as usize)
            .collect();
        assert_eq!(returns.lock().all, UNREACHED_OF_ADDRESS_MAX as usize);
        assert!(returns.enter(address(2, 1)).is_some());
        let v4 = Ipv4Addr::new(192, 0, 2, 1);
        assert_eq!(
            WaitOwner::of(v4.to_ipv6_mapped().into()),
            WaitOwner::Address(v4.into()),
            "and one of IPv4 is its own"
        );
    }

    #[test]
    fn newcomers_leave_places_for_sessions() {
        let returns = Arc::new(Returns::default());
        let address = |number: u32| WaitOwner::of(IpAddr::from(number.to_be_bytes()));
        let session = |number| WaitOwner::Session(SessionId(number));
        let newcomers: Vec<_> = (0..).map_while(|it| returns.enter(address(it))).collect();
        let sessions: Vec<_> = (0..).map_while(|it| returns.enter(session(it))).collect();
        assert_eq!(newcomers.len(), UNREACHED_NEWCOMERS_MAX);
        assert_eq!(sessions.len(), UNREACHED_MAX - UNREACHED_NEWCOMERS_MAX);
        drop((newcomers, sessions));
        let left = returns.lock();
        assert_eq!((left.all, left.newcomers), (0, 0));
    }
}
