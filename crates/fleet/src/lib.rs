//! Which node a request goes to: in-flight counts, health, ejection.
//!
//! One machine, told the time. It holds a bounded table of nodes and answers, for each request, with a node and the reason for
//! it; it says when a node is to be checked and takes what came of it; and it leaves out for a while what keeps failing.
//!
//! - [`Fleet::pick`]: a node, least loaded among those that are well. It counts as in flight until [`Fleet::handle_release`].
//! - [`Fleet::handle_answer`], [`Fleet::handle_failure`]: what requests found out (passive).
//! - [`Fleet::handle_check`]: what a check found out (active), asked for by [`Output::Check`].
//! - [`Fleet::poll_output`], [`Fleet::poll_timeout`], [`Fleet::handle_timeout`]: as with every machine.
//!
//! It never leaves itself without a choice: at most half of the nodes are ejected, and if none is well it picks among all
//! that are not being drained.

mod api;
mod ejection;
mod fleet;
mod health;

pub use api::{
    Change, CheckParams, EjectionParams, FleetFull, NODES_MAX, NodeView, OUTPUTS_MAX, Output, Params, Pick,
    PickReason, Status, Why,
};
pub use fleet::Fleet;
