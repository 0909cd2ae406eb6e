//! A discrete-event model of an application and its visitors; drives the gate unchanged, in virtual time.
//!
//! - [`Scenario`]: the question: who comes ([`suimon_workload::Workload`]), what the application is ([`Machine`], [`Cost`]), what
//!   changes, which gate is in front, and what is expected ([`Band`]).
//! - [`run`]: plays it with a seed and with [`Laws`]; every event is checked ([`Violation`]).
//! - [`Outcome`]: what came of it.
//! - [`generate`]: sites nobody thought of, much alike, on which laws were tuned; [`world`]: sites of every kind there is.
//! - [`replay`]: a recording of a gateway's gate played again, and what other settings would have decided.
//! - [`waiting`]: a crowd in the waiting room's line, under its rule and under those of others.
//! - [`RouteRival`], [`SessionRival`]: the laws of others, to compare with.
//!
//! The same scenario, seed and laws give the same outcome bit for bit, on every machine. What happens to 400 visitors in ten
//! virtual minutes takes a small part of a second.

mod check;
mod draw;
mod expect;
mod generate;
mod laws;
mod node;
mod outcome;
pub mod replay;
mod rivals;
mod run;
mod scenario;
pub mod waiting;
mod world;

pub use check::Violation;
pub use expect::{Band, Metric, Miss};
pub use generate::generate;
pub use laws::{ALIASES, Laws, RouteChoice, SessionChoice};
pub use node::{Curve, Efficiency, Job, Lock, Machine, Node, POINTS_MAX, Usage};
pub use outcome::{Gates, Outcome, RECORDS_MAX, Sample, Summary};
pub use rivals::{Bounds, RouteRival, SessionRival, Site, Utilisation};
pub use run::{run, run_knowing};
pub use scenario::{Change, Cost, GateSetup, Kind, Route, Scenario, What};
pub use world::{Family, HELD_OUT_FROM, Regime, SiteName, world};
