//! What is known of php-fpm's children at a node. Nothing is decided by it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use suimon_fastcgi::php_status::PhpStatus;
use suimon_params::upstream::NodeParams;

/// Rounds of questions that a node is left in peace after it has not answered one: each takes the
/// place of a visitor's request, or stands in a log of its own.
const REST_ROUNDS: u32 = 5;

/// What the last answer of a node said.
#[derive(Default)]
pub(super) struct PhpSeen {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    status: Option<PhpStatus>,
    /// Whether it was told that the node does not answer.
    is_missed: bool,
    /// Rounds in which it is not asked.
    rests: u32,
}

impl PhpSeen {
    /// Returns what the last answer said; `None`: there was none.
    pub(super) fn status(&self) -> Option<PhpStatus> {
        self.state().status
    }

    /// Returns whether the node is asked in this round.
    pub(super) fn is_due(&self) -> bool {
        let mut state = self.state();
        let is_due = state.rests == 0;
        state.rests = state.rests.saturating_sub(1);
        is_due
    }

    /// Notes what the node has answered, or why there is no answer. That is told once.
    pub(super) fn note(&self, node: &NodeParams, answer: Result<PhpStatus, &'static str>) {
        let mut state = self.state();
        state.status = answer.ok();
        let was_missed = std::mem::replace(&mut state.is_missed, answer.is_err());
        if answer.is_err() {
            state.rests = REST_ROUNDS;
        }
        drop(state);
        match answer {
            Err(why) if !was_missed => {
                tracing::warn!(%node, "php-fpm's status page (upstream.fastcgi.status) is not shown: {why}");
            }
            Ok(_) if was_missed => tracing::info!(%node, "php-fpm's status page is shown again"),
            _ => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves what was known.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_does_not_answer_is_left_in_peace_for_a_while() {
        let (seen, node) = (PhpSeen::default(), NodeParams::parse("fastcgi:/run/php.sock").unwrap());
        let status = PhpStatus { active: 1, idle: 2, total: 3, listen_queue: 0, max_children_reached: 0 };
        assert!(seen.is_due() && seen.is_due());
        seen.note(&node, Ok(status));
        assert_eq!((seen.status(), seen.is_due()), (Some(status), true));
        seen.note(&node, Err("it is away"));
        assert_eq!(seen.status(), None, "what is old is not shown");
        assert!(!(0..REST_ROUNDS).any(|_| seen.is_due()) && seen.is_due());
    }
}
