//! A discrete-event model of an application and its visitors; drives the gate unchanged, in virtual
//! time.
//!
//! - [`Scenario`]: the question: who visits ([`suimon_workload::Workload`]), what the application
//!   is ([`Machine`], [`Cost`]), what changes, which gate is in front, and what is expected
//!   ([`Band`]).
//! - [`run`]: plays it with a seed and with [`Laws`]; every event is checked ([`Violation`]).
//! - [`RunResult`]: what came of it.
//! - [`replay`]: a recording of a gateway's gate played again, and what other settings would have
//!   decided.
//! - [`OtherRoutes`], [`OtherSessions`]: the door for laws that are not the product's;
//!   `experiments/rivals` has some.
//!
//! The same scenario, seed and laws give the same outcome bit for bit, on every machine. What
//! happens to 400 visitors in ten virtual minutes takes a small part of a second.

mod check;
mod expect;
mod laws;
mod node;
mod others;
mod outcome;
pub mod replay;
mod run;
mod scenario;
mod utilisation;

pub use check::Violation;
pub use expect::{Band, Metric, Miss};
pub use laws::{ALIASES, Laws, RouteChoice, SessionChoice, how_written, unknown};
pub use node::{Curve, Efficiency, Job, Lock, Machine, Node, POINTS_MAX, Usage};
pub use others::{OtherRoutes, OtherSessions, Site};
pub use outcome::{Gates, RECORDS_MAX, RunResult, Sample, Summary};
pub use run::{run, run_knowing};
pub use scenario::{Change, Cost, GateSetup, KindSetup, Route, Scenario, SiteState, What};
pub use utilisation::Utilisation;
