//! What nodes say of their load when they are asked.
//!
//! *Law*. A node gets requests in proportion to its weight: the requests that it has, divided by the
//! weight, are its load. One that says that it drains, fails or is down is taken to be full, so that others
//! get what comes; whether it is up, health checks tell. What a node does not say stays as it was, and its
//! weight is 100 % at first. `maxconn` is for a balancer that counts connections, and not heeded.
//! *Source*: `agent-check` in HAProxy's configuration manual.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use suimon_agent::agent_check::{Admin, AgentReply, Health};

/// The capacity of a node that is out.
const CAPACITY_OUT: f64 = 1e-3;

/// Answers, by what became of them.
#[derive(Default)]
pub(super) struct AgentCheckCounts {
    pub(super) accepted: AtomicU64,
    pub(super) unreachable: AtomicU64,
    pub(super) unreadable: AtomicU64,
}

/// The weight that a node said last, per cent.
pub(super) struct SaidWeight(AtomicU32);

impl Default for SaidWeight {
    fn default() -> Self {
        SaidWeight(AtomicU32::new(100))
    }
}

impl AgentCheckCounts {
    /// Returns how many there were, by what became of them.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = [
            ("accepted", &self.accepted),
            ("unreachable", &self.unreachable),
            ("unreadable", &self.unreadable),
        ];
        counts.map(|(result, count)| (result, count.load(Relaxed))).to_vec()
    }
}

impl SaidWeight {
    /// Takes in what a node says, and returns its capacity, 1 where its weight is 100 %; `None`: it says
    /// nothing that means anything.
    pub(super) fn capacity(&self, reply: &AgentReply) -> Option<f64> {
        let AgentReply { health, admin, weight_percent, maxconn, unknown, .. } = reply;
        let is_empty = (health, admin, weight_percent, maxconn) == (&None, &None, &None, &None);
        if is_empty && unknown.is_some() {
            return None;
        }
        if let Some(weight) = weight_percent {
            self.0.store(*weight, Relaxed);
        }
        let is_out = matches!(admin, Some(Admin::Drain | Admin::Maint))
            || matches!(health, Some(Health::Down | Health::Fail | Health::Stopped));
        let capacity = if is_out { 0.0 } else { f64::from(self.0.load(Relaxed)) / 100.0 };
        Some(capacity.max(CAPACITY_OUT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(weight: &SaidWeight, line: &str) -> Option<f64> {
        weight.capacity(&AgentReply::parse(line.as_bytes()).expect("a line"))
    }

    #[test]
    fn what_a_node_does_not_say_stays_as_it_was() {
        let weight = SaidWeight::default();
        let lines = ["up\n", "ready up 25%\n", "maxconn:30\n", "\n", "drain\n", "ready\n", "200%\n"];
        let expected = [1.0, 0.25, 0.25, 0.25, CAPACITY_OUT, 0.25, 2.0];
        for (line, expected) in lines.into_iter().zip(expected) {
            assert_eq!(said(&weight, line), Some(expected), "{line}");
        }
        assert_eq!(said(&weight, "hello\n"), None, "that means nothing");
    }

    #[test]
    fn a_node_that_is_out_takes_next_to_nothing() {
        for line in ["drain 100%\n", "maint\n", "down\n", "fail 80%\n", "stopped\n", "0%\n"] {
            assert_eq!(said(&SaidWeight::default(), line), Some(CAPACITY_OUT), "{line}");
        }
    }
}
