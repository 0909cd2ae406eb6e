//! HTTP in and out: listeners, pipeline, upstream pool, refusals.
//!
//! [`Server::bind`] takes [`params::Params`], [`Server::run`] serves until told to stop, [`Observer`] looks on. Inside:
//!
//! - `listener` accepts; `wire`, `framing`, `deadline`, `tls` and `connection` are about one client's connection;
//! - `pipeline` takes a request through its phases, in order: `validate`, `identify` (with `lease`, `keys`, `generations`, `memory`), `routes`,
//!   `prefix` (with `uploads`, `stall`), `gatekeeper` (with `watch`), `headers`, `exchange` (with `upstream`), `buffer`;
//! - `recorder` writes what happens to the gate, for replay;
//! - `room` (with `ticket`, `sealed`, `accept`) is the waiting room: what those are told who have a place in line;
//! - `fuzzing` says what must hold of whatever reads bytes of strangers, for `fuzz/`;
//! - `mint` makes and reads what visitors keep for us, for whoever tries to forge it;
//! - `remembered` is what was learned, as it outlives the process;
//! - `rescue` (with `page`) turns what went wrong into an answer; `telemetry` counts.

mod accept;
mod buffer;
mod connection;
mod connections;
mod deadline;
mod early;
mod exchange;
mod framing;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gatekeeper;
mod generations;
mod headers;
mod identify;
pub mod keys;
mod lease;
mod listener;
mod memory;
pub mod mint;
pub mod params;
mod pipeline;
mod prefix;
pub mod proxy_protocol;
mod recorder;
mod remembered;
mod rescue;
mod returns;
mod room;
mod routes;
mod sealed;
mod server;
mod spool;
mod stall;
mod streams;
mod telemetry;
#[cfg(test)]
mod testing;
mod ticket;
mod tls;
mod ungated;
mod uploads;
pub mod upstream;
mod validate;
mod wall_clock;
mod watch;
mod whole_file;
mod wire;
mod words;

pub use recorder::RecordError;
pub use room::{StoredError, preview};
pub use server::{KINDS_MAX, LineCommand, LineError, LineReport, Observer, Server, StartError};
pub use telemetry::{BUCKETS, LearnedView, LineCounts, Recalled, RouteReport, Times, View, WAIT_BUCKETS};
