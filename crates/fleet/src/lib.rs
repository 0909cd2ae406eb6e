//! Which node a request goes to: in-flight counts, health, ejection.
//!
//! One machine, told the time. It holds a bounded table of nodes and answers, for each request,
//! with a node and the reason for it; it says when a node is to be checked and takes what came of
//! it; and it leaves out for a while what keeps failing.
//!
//! - [`Fleet::pick`]: a node, least loaded among those that are well. It counts as in flight until
//!   [`Fleet::handle_release`].
//! - [`Fleet::handle_answer`], [`Fleet::handle_failure`], [`Fleet::handle_unreached`],
//!   [`Fleet::handle_lost`]: what requests found out (passive).
//! - [`Fleet::handle_check`]: what a check found out (active), asked for by [`Output::Check`].
//! - [`Fleet::poll_output`], [`Fleet::poll_timeout`], [`Fleet::handle_timeout`]: as with every
//!   machine.
//!
//! It never leaves itself without a choice: at most half of the nodes are ejected, and if none is
//! well it picks among all that are not being drained.
//!
//! # When a node is out of reach
//!
//! What counts is what no client can bring about by what it asks for, three times in a row without
//! an answer of the node to anybody in between:
//!
//! - a connection that could not be opened, or broke before any of a request was written, whatever
//!   it was for: the node was not reached;
//! - where there is doubt, a check that could not connect, or was closed instead of an answer to a
//!   request of our own.
//!
//! A new connection that took a request and broke was reached: a worker that crashes over one page
//! does this each time somebody asks for it. So a lost request counts for nothing by itself. It has
//! the node looked at, at once and at most once per second, by a check that asks for an answer.
//! Only a check that bears the losses out makes them count, for the ejection too. A check that is
//! not answered in time is no evidence: an application with more work than it can do answers late,
//! and is there.

mod api;
mod ejection;
mod fleet;
mod health;

pub use api::{
    Change, CheckParams, Checked, EjectionParams, FleetFull, NODES_MAX, NodeView, OUTPUTS_MAX, Output,
    Params, Pick, PickReason, Status, Why,
};
pub use fleet::Fleet;
