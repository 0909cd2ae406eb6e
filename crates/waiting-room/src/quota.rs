//! How fast one network may draw numbers, and how many it may draw for an opening: a farm of
//! browsers gets its numbers later, and no visitor is kept out. It also limits the polls of one
//! ticket.
//!
//! Token buckets, of networks: /24 of IPv4 and /56 of IPv6. They are kept in a table of fixed size,
//! by hash: a network that shares a bucket with a farm by chance is slowed down, too, and the hash
//! is under a key, so that nobody can aim.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use suimon_message::peer::is_private;
use suimon_model::KindId;

/// Buckets of networks; networks beyond share.
pub(crate) const NETWORKS: usize = 4096;
/// Buckets of tickets: a million waiting visitors poll less than their buckets allow.
pub(crate) const TICKETS: usize = 65_536;

/// The buckets.
#[derive(Debug)]
pub(crate) struct Quota {
    burst: f64,
    per_second: f64,
    hasher: RandomState,
    began: Instant,
    buckets: Mutex<Vec<Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    /// Seconds since the beginning.
    at: f64,
}

impl Quota {
    /// Returns `buckets` buckets of `burst` numbers, filled again at `per_second`.
    pub(crate) fn new(buckets: usize, burst: u32, per_second: f64) -> Quota {
        let burst = f64::from(burst);
        let buckets = vec![Bucket { tokens: burst, at: 0.0 }; buckets];
        Quota {
            burst,
            per_second,
            hasher: RandomState::new(),
            began: Instant::now(),
            buckets: Mutex::new(buckets),
        }
    }

    /// Takes one for the network of `address`, if there is one.
    pub(crate) fn takes(&self, address: IpAddr) -> bool {
        // A balancer of ours that is not configured stands for all visitors.
        if is_private(address) {
            return true;
        }
        self.takes_one(network(address))
    }

    /// Takes one for the client known by `key`, if there is one.
    pub(crate) fn takes_one(&self, key: impl Hash) -> bool {
        self.takes_at(key, self.began.elapsed().as_secs_f64())
    }

    fn takes_at(&self, key: impl Hash, now: f64) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let index = self.hasher.hash_one(key) as usize % buckets.len();
        let bucket = &mut buckets[index];
        bucket.tokens = (bucket.tokens + (now - bucket.at).max(0.0) * self.per_second).min(self.burst);
        bucket.at = now;
        let takes = bucket.tokens >= 1.0;
        bucket.tokens -= if takes { 1.0 } else { 0.0 };
        takes
    }
}

/// How many numbers each network has drawn for the opening of a line.
#[derive(Debug)]
pub(crate) struct OpeningQuota {
    max: u32,
    hasher: RandomState,
    /// The opening, and numbers drawn for it.
    counts: Mutex<Vec<(Option<Opening>, u32)>>,
}

/// The line of a kind, and when it opens.
pub(crate) type Opening = (KindId, suimon_model::Instant);

impl OpeningQuota {
    /// Returns counts of networks that have drawn nothing and may draw `max` numbers for an
    /// opening.
    pub(crate) fn new(max: u32) -> OpeningQuota {
        OpeningQuota { max, hasher: RandomState::new(), counts: Mutex::new(vec![(None, 0); NETWORKS]) }
    }

    /// Counts one for the network of `address`, if it may draw one for this opening.
    pub(crate) fn takes(&self, opening: Opening, address: IpAddr) -> bool {
        self.of(opening, address, |count| {
            let takes = *count < self.max;
            *count += u32::from(takes);
            takes
        })
    }

    /// Returns whether the network of `address` has drawn all that it may for this opening.
    pub(crate) fn is_full(&self, opening: Opening, address: IpAddr) -> bool {
        !self.of(opening, address, |count| *count < self.max)
    }

    fn of(&self, opening: Opening, address: IpAddr, of: impl FnOnce(&mut u32) -> bool) -> bool {
        if is_private(address) {
            return true;
        }
        let index = self.hasher.hash_one((opening.0, network(address))) as usize % NETWORKS;
        let (other, count) = &mut self.counts.lock().unwrap_or_else(PoisonError::into_inner)[index];
        if *other != Some(opening) {
            (*other, *count) = (Some(opening), 0);
        }
        of(count)
    }
}

/// Returns the network of an address: what one subscriber, or a few, have.
fn network(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(v4) => u64::from(u32::from(v4) >> 8),
        IpAddr::V6(v6) => (u128::from(v6) >> 72) as u64 | 1 << 63,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_slowed_down_and_others_are_not() {
        let quota = Quota::new(NETWORKS, 10, 2.0);
        let farm = |host: u8| network(IpAddr::from([192, 0, 2, host]));
        let drawn = (0..=99).filter(|host| quota.takes_at(farm(*host), 0.0)).count();
        assert_eq!(drawn, 10);
        assert!(quota.takes_at(farm(1), 0.5) && !quota.takes_at(farm(2), 0.5), "two a second");
        assert!(
            (1..=20_u8).filter(|net| quota.takes_at(network(IpAddr::from([198, 51, *net, 1])), 0.0)).count()
                >= 19
        );
    }

    #[test]
    fn a_network_draws_so_many_for_an_opening_and_again_for_the_next() {
        let held = OpeningQuota::new(3);
        let at = |secs| (KindId(0), suimon_model::Instant::ORIGIN + std::time::Duration::from_secs(secs));
        let farm = |host: u8| IpAddr::from([203, 0, 113, host]);
        assert_eq!((0..50).filter(|host| held.takes(at(9), farm(*host))).count(), 3);
        assert!(held.is_full(at(9), farm(7)));
        let others = (1..=20_u8).filter(|net| held.takes(at(9), IpAddr::from([198, 51, *net, 1])));
        assert!(others.count() >= 19);
        assert!(!held.is_full(at(10), farm(7)) && held.takes(at(10), farm(7)));
        assert!((0..50).all(|_| held.takes(at(10), IpAddr::from([10, 0, 0, 1]))), "a balancer of ours");
    }

    #[test]
    fn networks_are_told_apart_by_what_a_subscriber_has() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("192.0.2.200"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!(of("2001:db8:0:1100::1"), of("2001:db8:0:11ff::2"));
        assert_ne!(of("2001:db8:0:1100::1"), of("2001:db8:0:1200::1"));
    }
}
