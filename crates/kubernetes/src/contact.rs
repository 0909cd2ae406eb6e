//! What is amiss, said once, and until when the API server has been silent.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the API server may be away before that is said: a watch that ends and begins anew, or an API server that is
/// replaced by the next one, is no trouble.
pub(crate) const QUIET: Duration = Duration::from_secs(5);
/// The shortest time from a failure to the next attempt.
const RETRY_FIRST: Duration = Duration::from_millis(500);
/// The longest.
const RETRY_LAST: Duration = Duration::from_secs(8);

/// What can be amiss, each by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Topic {
    /// The API server does not answer.
    Away,
    /// It does not let us.
    Permission,
    /// Somebody else scales the workload.
    Owner,
    /// The workload is not as it should be.
    Scale,
    /// The Service is not.
    Nodes,
}

/// All that is amiss.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles {
    now: BTreeMap<Topic, String>,
    silent_since: Option<Instant>,
}

/// What is to be said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// This is amiss.
    Trouble(String),
    /// Nothing is amiss any more.
    Well,
}

impl Troubles {
    /// Takes what is amiss with a topic, or that nothing is; returns what is to be said about that.
    pub(crate) fn set(&mut self, topic: Topic, sentence: Option<String>) -> Option<Word> {
        let Some(sentence) = sentence else {
            self.now.remove(&topic)?;
            return Some(match self.now.values().next() {
                Some(other) => Word::Trouble(other.clone()),
                None => Word::Well,
            });
        };
        if self.now.get(&topic) == Some(&sentence) {
            return None;
        }
        self.now.insert(topic, sentence.clone());
        Some(Word::Trouble(sentence))
    }

    /// Learns that the API server has answered.
    pub(crate) fn heard(&mut self) -> Option<Word> {
        self.silent_since = None;
        self.set(Topic::Away, None)
    }

    /// Learns that it has not, and why; says so once, when it has been silent for [`QUIET`].
    pub(crate) fn unheard(&mut self, now: Instant, why: &str) -> Option<Word> {
        let since = *self.silent_since.get_or_insert(now);
        let is_long = now.saturating_duration_since(since) >= QUIET;
        if !is_long || self.now.contains_key(&Topic::Away) {
            return None;
        }
        self.set(
            Topic::Away,
            Some(format!(
                "the API server does not answer ({why}): the nodes and their number stay as they are until it does; check \
                 that it runs and can be reached from here"
            )),
        )
    }
}

/// Times between attempts: doubled at each failure, each at random between half of itself and the whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns how long to wait after one more failure; `chance` is between 0 and 1.
    pub(crate) fn after_failure(&mut self, chance: f64) -> Duration {
        let whole = RETRY_FIRST.saturating_mul(1 << self.failures.min(10)).min(RETRY_LAST);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(0.5 + chance / 2.0)
    }

    /// Learns that an attempt has succeeded.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_api_server_is_said_once_and_its_return_too() {
        let mut troubles = Troubles::default();
        let start = Instant::now();
        let mut said = Vec::new();
        for second in 0..30 {
            said.extend(troubles.unheard(start + Duration::from_secs(second), &format!("attempt {second}")));
        }
        assert_eq!(said.len(), 1);
        assert!(
            matches!(&said[0], Word::Trouble(why) if why.starts_with("the API server does not answer (attempt 5)"))
        );
        assert_eq!(troubles.heard(), Some(Word::Well));
        assert_eq!(troubles.heard(), None);
    }

    #[test]
    fn a_short_silence_is_no_trouble() {
        let mut troubles = Troubles::default();
        let start = Instant::now();
        assert_eq!(troubles.unheard(start, "gone"), None);
        assert_eq!(troubles.heard(), None);
        assert_eq!(troubles.unheard(start + QUIET, "gone"), None);
    }

    #[test]
    fn of_two_troubles_the_one_that_is_left_is_said() {
        let mut troubles = Troubles::default();
        troubles.set(Topic::Owner, Some("owned".to_string()));
        troubles.set(Topic::Permission, Some("forbidden".to_string()));
        assert_eq!(troubles.set(Topic::Permission, Some("forbidden".to_string())), None);
        assert_eq!(troubles.set(Topic::Permission, None), Some(Word::Trouble("owned".to_string())));
        assert_eq!(troubles.set(Topic::Owner, None), Some(Word::Well));
        assert_eq!(troubles.set(Topic::Owner, None), None);
    }

    #[test]
    fn times_between_attempts_double_up_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..7).map(|_| backoff.after_failure(1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        backoff.succeeded();
        assert_eq!(backoff.after_failure(0.0).as_millis(), 250);
    }
}
