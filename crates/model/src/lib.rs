//! The words every other room speaks: instants, ids, outcomes, reasons, decision records, and random
//! numbers from a seed.
//!
//! Nothing here knows HTTP, queues or control laws; nothing here reads a clock.
//!
//! - [`Instant`] and [`Duration`]: time since an origin that a shell chose.
//! - [`RouteId`], [`KindId`], [`SessionId`], [`RequestId`], [`NodeId`]: what a number means.
//! - [`Ending`]: the four ways a slot is given back.
//! - [`Record`]: one decision, with its reason and the signals it rests on.
//! - [`Rng`]: random numbers that are the same again for the same seed.
//! - [`real`]: logarithms and the like, the same on every machine.
//! - [`state`]: a machine's state as bytes, and back.

mod ending;
mod id;
mod instant;
pub mod real;
mod record;
mod rng;
pub mod state;

pub use ending::{Ending, Failure};
pub use id::{KindId, NodeId, RequestId, RouteId, SessionId};
pub use instant::{Instant, seconds};
pub use record::{Quantity, Reason, Record, Signals, Subject, TraceHash};
pub use rng::Rng;
pub use std::time::Duration;
