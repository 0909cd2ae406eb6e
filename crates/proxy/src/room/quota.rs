//! How fast one network may draw numbers: a farm of browsers gets its numbers later, and nobody is kept out.
//!
//! Token buckets by network, /24 of IPv4 and /56 of IPv6. They are kept in a table of fixed size, by hash: who shares a bucket with a farm by chance is slowed down, too, and
//! the hash is under a key, so that nobody can aim.

use crate::headers::is_private;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Buckets; networks beyond share.
const BUCKETS: usize = 4096;

/// The buckets.
#[derive(Debug)]
pub(super) struct Quota {
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
    /// Returns buckets of `burst` numbers, filled again at `per_second`.
    pub(super) fn new(burst: u32, per_second: f64) -> Quota {
        let burst = f64::from(burst);
        let buckets = vec![Bucket { tokens: burst, at: 0.0 }; BUCKETS];
        Quota {
            burst,
            per_second,
            hasher: RandomState::new(),
            began: Instant::now(),
            buckets: Mutex::new(buckets),
        }
    }

    /// Takes one for the network of `address`, if there is one.
    pub(super) fn takes(&self, address: IpAddr) -> bool {
        // A balancer of ours that nobody has named stands for all visitors.
        if is_private(address) {
            return true;
        }
        self.takes_at(address, self.began.elapsed().as_secs_f64())
    }

    fn takes_at(&self, address: IpAddr, now: f64) -> bool {
        let index = self.hasher.hash_one(network(address)) as usize % BUCKETS;
        let bucket = &mut self.buckets.lock().unwrap_or_else(PoisonError::into_inner)[index];
        bucket.tokens = (bucket.tokens + (now - bucket.at).max(0.0) * self.per_second).min(self.burst);
        bucket.at = now;
        let takes = bucket.tokens >= 1.0;
        bucket.tokens -= if takes { 1.0 } else { 0.0 };
        takes
    }
}

/// Returns the network an address is of: what one subscriber, or a few, have.
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
        let quota = Quota::new(10, 2.0);
        let farm = |host: u8| IpAddr::from([192, 0, 2, host]);
        let drawn = (0..=99).filter(|host| quota.takes_at(farm(*host), 0.0)).count();
        assert_eq!(drawn, 10);
        assert!(quota.takes_at(farm(1), 0.5) && !quota.takes_at(farm(2), 0.5), "two a second");
        assert!(
            (1..=20_u8).filter(|net| quota.takes_at(IpAddr::from([198, 51, *net, 1]), 0.0)).count() >= 19
        );
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
