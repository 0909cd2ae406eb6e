//! The load that nodes report: how it is measured, sent, checked and believed.
//!
//! - [`datagram`]: the report that `suimon agent` sends to gateways, as bytes with a MAC.
//! - [`book`]: what a gateway believes of it: only what is new, of the present run of an agent, and
//!   not late. The threat model is there.
//! - [`orca`]: the response header `endpoint-load-metrics` in its three formats (Open Request Cost
//!   Aggregation).
//! - [`agent_check`]: the line that HAProxy's `agent-check` reads.
//! - [`samples`]: means of a run queue over the past; [`procfs`]: the kernel's own texts.
//!
//! All of it is told the time and does no I/O. `docs/agent.md` is for operators.

pub mod agent_check;
pub mod book;
pub mod datagram;
pub mod keyring;
pub mod orca;
pub mod procfs;
mod refused;
pub mod samples;

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

pub use refused::Refused;

/// The most gateways that one agent reports to.
pub const GATEWAYS_MAX: usize = 16;

/// The most nodes that one agent reports for: applications on one machine.
pub const NAMES_MAX: usize = 16;

/// The most connections to one listener of an agent at once; one more is closed at once.
pub const CONNECTIONS_MAX: usize = 64;
