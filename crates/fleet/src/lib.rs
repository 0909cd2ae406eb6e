//! Which node a request goes to: in-flight counts, health, ejection; how many nodes there should be
//! ([`scaling`]), and the life of those that are borrowed ([`lifecycle`]); what nodes tell of their load ([`told`]); those that are found ([`discovery`]); and the resident workers of a pool ([`workers`]).
//!
//! One machine that is told the time. It holds a bounded table of nodes and returns, for each
//! request, a node and the reason for it. It asks for checks of nodes and takes their results, and
//! it ejects nodes that keep failing.
//!
//! - [`Fleet::pick`]: a node, the one with the fewest requests in flight for its share. The request counts
//!   as in flight until [`Fleet::handle_release`], or [`Fleet::handle_unanswered`] if it had no answer.
//! - [`Fleet::handle_served`]: how long a request took, by which the shares move, and whether the answer was
//!   a fault, by which nodes are ejected.
//! - [`Fleet::handle_report`]: the load that a node reports, by which nodes are picked where [`Balance`] says
//!   so.
//! - [`Fleet::pick_for`], [`Fleet::handle_session`]: the node that a session of the application is at, where
//!   sessions stay at their nodes.
//! - [`Fleet::handle_answer`], [`Fleet::handle_failure`], [`Fleet::handle_unreached`],
//!   [`Fleet::handle_lost`]: what requests show (passive checks).
//! - [`Fleet::handle_check`]: what a check shows (active checks), asked for by [`Output::Check`].
//! - [`Fleet::ask_retry`]: whether a request that was lost may be sent again.
//! - [`Fleet::poll_output`], [`Fleet::poll_timeout`], [`Fleet::handle_timeout`]: as with every
//!   machine.
//!
//! A choice is always left: at most half of the nodes are ejected, and if none is up, it picks
//! among all that are not draining.
//!
//! # When a node is out of reach
//!
//! What counts is only what no client can cause by the content of a request, three times in a row
//! without an answer of the node to any request in between:
//!
//! - a connection that could not be opened, or closed before any of a request was written, whatever
//!   it was for: the node was not reached;
//! - for a doubted node, a check that could not connect, or whose connection closed without an
//!   answer to the gateway's own request.
//!
//! A new connection that took a request and then closed did reach the node: a worker that crashes
//! on one page closes it each time a client asks for that page. So a lost request alone counts for
//! nothing. It causes a check that asks for an answer, at once and at most once per second. Only a
//! check that fails likewise makes the losses count, also for the ejection. A check without an
//! answer in time is no evidence: an overloaded application answers late, but is there.

mod affinity;
mod api;
pub mod discovery;
mod ejection;
mod faults;
mod fleet;
mod health;
pub mod lifecycle;
mod longest;
mod reported;
mod retries;
pub mod scaling;
mod shares;
mod silence;
pub mod told;
mod unanswered;
pub mod workers;

pub use affinity::{AFFINITY_MAX, AffinityParams, SessionKey, SessionSaid};
pub use api::{
    AsksFor, Balance, Change, CheckParams, Checked, EjectionParams, FleetFull, LoadReport, NODES_MAX,
    NodeView, OUTPUTS_MAX, Output, Params, Pick, PickReason, Served, Status, Why,
};
pub use fleet::Fleet;
pub use retries::{RETRIES_LEAST, Retry, RetryCounts};
