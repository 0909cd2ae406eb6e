//! A discrete-event model of an application and its visitors; drives the gate unchanged, in virtual
//! time.
//!
//! - [`Scenario`]: the question: which visitors come ([`suimon_workload::Workload`]), what the
//!   application is ([`Machine`], [`Cost`]), what changes, which gate is in front, and what is
//!   expected ([`Band`]).
//! - [`PoolSetup`]: the resident workers that it consists of, if it does.
//! - [`run`]: plays it with a seed and with [`Laws`]; every event is checked ([`Violation`]).
//! - [`RunResult`]: the result of a run.
//! - [`replay`]: plays a recording of a gate again, and shows what other settings would have
//!   decided.
//! - [`cluster`]: a front end and a number of nodes that changes, as in the fourth paper.
//! - [`gateways`]: several gateways that share before one application.
//! - [`OtherRoutes`], [`OtherSessions`]: the interface for external laws; `experiments/rivals` has
//!   some.
//!
//! The same scenario, seed and laws give the same outcome bit for bit, on every machine. Ten
//! virtual minutes of 400 visitors take a small part of a second.

mod check;
pub mod cluster;
mod expect;
pub mod gateways;
mod laws;
mod node;
mod others;
mod outcome;
mod pool;
pub mod replay;
mod run;
mod scenario;
mod services;
mod threads;
mod utilisation;

pub use check::Violation;
pub use expect::{Band, Metric, Miss};
pub use laws::{ALIASES, Laws, RouteChoice, SessionChoice, how_written, unknown};
pub use node::{Curve, Efficiency, Job, Lock, Machine, Node, POINTS_MAX, Pauses, Usage};
pub use others::{OtherRoutes, OtherSessions, Site};
pub use outcome::{Gates, RECORDS_MAX, RunResult, Sample, Summary};
pub use pool::{PoolSecond, PoolSetup};
pub use run::{run, run_knowing, run_ruled};
pub use scenario::{Change, Cost, GateSetup, KindSetup, NodesSetup, Route, Scenario, SiteState, What};
pub use services::{ServiceFigures, ServiceSecond, ServiceSeries};
pub use suimon_fleet::workers::WORKERS_MAX;
pub use utilisation::Utilisation;
