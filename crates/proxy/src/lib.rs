//! HTTP in and out: listeners, pipeline, upstream pool, refusals.
//!
//! [`Server::bind`] takes [`params::Params`], [`Server::run`] serves until told to stop, [`Observer`] looks on. Inside:
//!
//! - `listener` accepts; `wire`, `framing`, `deadline`, `tls` and `connection` are about one client's connection;
//! - `pipeline` takes a request through its phases, in order: `validate`, `identify` (with `lease`, `keys`), `routes`,
//!   `gatekeeper` (with `watch`, `prefix` while it waits), `headers`, `exchange` (with `upstream`), `buffer`;
//! - `recorder` writes what happens to the gate, for replay;
//! - `rescue` (with `page`) turns what went wrong into an answer; `telemetry` counts.

mod buffer;
mod connection;
mod deadline;
mod exchange;
mod framing;
mod gatekeeper;
mod headers;
mod identify;
pub mod keys;
mod lease;
mod listener;
mod page;
pub mod params;
mod pipeline;
mod prefix;
mod recorder;
mod rescue;
mod routes;
mod server;
mod telemetry;
mod tls;
pub mod upstream;
mod validate;
mod watch;
mod wire;

pub use recorder::RecordError;
pub use server::{KINDS_MAX, Observer, Server, StartError};
pub use telemetry::{BUCKETS, LearnedView, RouteReport, Times, View};
