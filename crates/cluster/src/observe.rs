//! The provider that starts no nodes.

use crate::{Provided, Provider, begin};

/// Publishes the number that is wanted, in state and metrics, and leaves it to others to act on it.
#[derive(Clone, Copy, Debug)]
pub struct Observe;

impl Provider for Observe {
    fn name(&self) -> &'static str {
        "observe"
    }

    fn begin(self: Box<Self>, wanted: u32) -> Provided {
        begin(wanted, |mut wires| async move {
            wires.view.send_modify(|view| view.found = Some(0));
            while wires.wanted.changed().await.is_ok() {}
        })
    }
}
