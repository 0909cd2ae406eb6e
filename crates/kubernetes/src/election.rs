//! Who of several gateways writes: the holder of a Lease (`coordination.k8s.io/v1`).
//!
//! Clocks of different machines are not compared. A Lease is free when nobody holds it, or when it has not changed for
//! its whole duration by our own clock, as other controllers of Kubernetes have it. Who holds it believes so for
//! [`TRUST`] after the last renewal began, which is less than the others wait.

use std::time::{Duration, Instant};

/// How long a Lease stands without being renewed.
pub(crate) const DURATION: Duration = Duration::from_secs(15);
/// How long its holder trusts a renewal.
pub(crate) const TRUST: Duration = Duration::from_secs(10);
/// From one look to the next.
pub(crate) const PERIOD: Duration = Duration::from_secs(3);

/// A Lease as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// Who holds it; empty for nobody.
    pub(crate) holder: String,
    /// The version of the object: it changes with each renewal.
    pub(crate) version: String,
    /// How long it stands by what its holder wrote.
    pub(crate) duration: Duration,
}

/// What is to be done about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Move {
    /// There is none: create one that we hold.
    Create,
    /// It is free: take it.
    Take,
    /// It is ours: renew it.
    Renew,
    /// Somebody else holds it.
    Wait,
}

/// What one gateway knows of the Lease.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    me: String,
    /// The last version that was read, and since when it is known.
    read: Option<(String, Instant)>,
    renewed: Option<Instant>,
}

impl Election {
    /// Returns an election in which we are called `me`.
    pub(crate) fn new(me: String) -> Self {
        Election { me, read: None, renewed: None }
    }

    /// Returns our name.
    pub(crate) fn me(&self) -> &str {
        &self.me
    }

    /// Returns what is to be done about the Lease that was read now; `None`: there is none.
    pub(crate) fn look(&mut self, now: Instant, record: Option<&Record>) -> Move {
        let Some(record) = record else {
            self.read = None;
            return Move::Create;
        };
        let since = match &self.read {
            Some((version, since)) if *version == record.version => *since,
            _ => now,
        };
        self.read = Some((record.version.clone(), since));
        if record.holder == self.me {
            return Move::Renew;
        }
        self.renewed = None;
        let is_free = record.holder.is_empty() || now.saturating_duration_since(since) >= record.duration;
        if is_free { Move::Take } else { Move::Wait }
    }

    /// Learns that what was to be done was done; `began`: when it was asked for.
    pub(crate) fn done(&mut self, began: Instant) {
        self.renewed = Some(began);
    }

    /// Returns whether we may write.
    pub(crate) fn is_leading(&self, now: Instant) -> bool {
        self.renewed.is_some_and(|renewed| now.saturating_duration_since(renewed) < TRUST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str, version: u32) -> Record {
        Record { holder: holder.to_string(), version: version.to_string(), duration: DURATION }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn the_first_creates_it_and_leads_once_that_is_done() {
        let mut a = Election::new("a".to_string());
        let now = Instant::now();
        assert_eq!(a.look(now, None), Move::Create);
        assert!(!a.is_leading(now));
        a.done(now);
        assert!(a.is_leading(now));
        assert_eq!(a.look(now + PERIOD, Some(&record("a", 1))), Move::Renew);
    }

    #[test]
    fn a_lease_that_is_renewed_stays_with_its_holder() {
        let mut b = Election::new("b".to_string());
        let start = Instant::now();
        for n in 0..20 {
            assert_eq!(b.look(start + PERIOD * n, Some(&record("a", n))), Move::Wait);
        }
    }

    #[test]
    fn a_silent_holder_has_stopped_trusting_it_before_anybody_takes_it() {
        let mut a = Election::new("a".to_string());
        let mut b = Election::new("b".to_string());
        let start = Instant::now();
        a.done(start);
        assert_eq!(b.look(start, Some(&record("a", 1))), Move::Wait);
        assert_eq!(b.look(start + seconds(14), Some(&record("a", 1))), Move::Wait);
        assert!(!a.is_leading(start + seconds(10)));
        assert_eq!(b.look(start + seconds(15), Some(&record("a", 1))), Move::Take);
    }

    #[test]
    fn one_that_was_given_back_is_taken_at_once() {
        let mut b = Election::new("b".to_string());
        assert_eq!(b.look(Instant::now(), Some(&record("", 4))), Move::Take);
    }

    #[test]
    fn who_has_lost_it_does_not_lead_any_more() {
        let mut a = Election::new("a".to_string());
        let now = Instant::now();
        a.done(now);
        assert_eq!(a.look(now + seconds(1), Some(&record("b", 2))), Move::Wait);
        assert!(!a.is_leading(now + seconds(1)));
    }
}
