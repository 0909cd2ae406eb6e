//! Which node has which address. A node that has ended may have left its own to one that was started later.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use suimon_params::upstream::NodeParams;

/// The addresses of the nodes that there are, so at most as many as these.
#[derive(Default)]
pub(super) struct Addresses(Mutex<Held>);

#[derive(Default)]
struct Held {
    next: u64,
    holders: HashMap<String, Turn>,
}

struct Turn {
    number: u64,
    is_ending: bool,
}

/// A node, and which of those that have had its address.
#[derive(Clone)]
pub(crate) struct Holder {
    pub(super) node: NodeParams,
    number: u64,
}

impl Addresses {
    /// Notes that a node has this address from now on; `None`: one has it that was not told to end.
    pub(super) fn take(&self, node: NodeParams) -> Option<Holder> {
        let mut held = self.held();
        let address = node.to_string();
        if held.holders.get(&address).is_some_and(|turn| !turn.is_ending) {
            return None;
        }
        let number = held.next;
        held.next += 1;
        held.holders.insert(address, Turn { number, is_ending: false });
        Some(Holder { node, number })
    }

    /// Notes that a node is told to end, so that another may have its address.
    pub(super) fn end(&self, holder: &Holder) {
        if let Some(turn) = self.held().holders.get_mut(&holder.node.to_string())
            && turn.number == holder.number
        {
            turn.is_ending = true;
        }
    }

    /// Returns whether a node is the last that had its address.
    pub(super) fn has(&self, holder: &Holder) -> bool {
        self.held().holders.get(&holder.node.to_string()).is_some_and(|turn| turn.number == holder.number)
    }

    /// Notes that a node is gone.
    pub(super) fn leave(&self, holder: &Holder) {
        if self.has(holder) {
            self.held().holders.remove(&holder.node.to_string());
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // A panic under the lock leaves a map that is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
