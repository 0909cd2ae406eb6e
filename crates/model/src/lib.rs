//! The vocabulary of all other crates: instants, ids, outcomes, reasons, decision records, and
//! seeded random numbers.
//!
//! Nothing here knows HTTP, queues or control laws; nothing here reads a clock.
//!
//! - [`Instant`] and [`Duration`]: time since an origin that a shell chose.
//! - [`RouteId`], [`KindId`], [`SessionId`], [`RequestId`], [`NodeId`], [`ServiceId`], [`PoolId`]: what a number means.
//! - [`Limit`]: requests of a route that may be in the application at once.
//! - [`Outcome`]: the four ways a slot is given back.
//! - [`Record`]: one decision, with its reason and the signals it rests on.
//! - [`Asked`]: what is asked of the application, as its gate sees it.
//! - [`Choice`]: a word that a setting may have; [`choices!`] makes an enum of a table of them.
//! - [`Rng`]: random numbers that are the same again for the same seed.
//! - [`real`]: logarithms and the like, the same on every machine.
//! - [`persist`]: a machine's state as bytes, and back.

mod asked;
mod choice;
mod id;
mod instant;
mod limit;
mod outcome;
pub mod persist;
pub mod real;
mod record;
mod rng;

pub use asked::{Asked, Fullness};
pub use choice::Choice;
pub use id::{KindId, NodeId, PoolId, RequestId, RouteId, ServiceId, SessionId};
pub use instant::{Instant, seconds};
pub use limit::Limit;
pub use outcome::{Failure, Outcome};
pub use record::{Quantity, Reason, Record, Signals, Subject, TraceHash};
pub use rng::Rng;
pub use std::time::Duration;
