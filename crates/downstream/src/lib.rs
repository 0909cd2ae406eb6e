//! Connections of clients: accepted, framed, watched; and the bodies they carry, at the clients'
//! own pace.
//!
//! It knows neither gate nor application: what serves requests is a [`service::Service`], and what
//! a slot is to a body is a [`charge::Slot`].
//!
//! | module | holds |
//! |---|---|
//! | [`listener`], [`early`], [`proxy_protocol`], [`tls`] | a connection from its acceptance to its protocol |
//! | [`wire`], [`framing`], [`deadline`] | its bytes: faults of framing, and how long a client may take |
//! | [`connection`], [`connections`], [`watch`], [`streams`] | what its requests share; all connections; who has left |
//! | [`answer_body`], [`queue`], [`piece`] | answers on their way to clients |
//! | [`request_body`], [`charge`], [`uploads`] | bodies on their way to the application |
//! | [`budget`], [`spool`] | what both may take of memory and disk |
//! | [`host`], [`service`] | what a connection asks of the service behind it |

pub mod answer_body;
pub mod budget;
pub mod charge;
pub mod connection;
pub mod connections;
pub mod deadline;
pub mod early;
pub mod framing;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod host;
pub mod listener;
pub mod piece;
pub mod proxy_protocol;
pub mod queue;
pub mod request_body;
pub mod service;
pub mod spool;
pub mod streams;
pub mod tls;
pub mod uploads;
pub mod watch;
pub mod wire;

/// An error of whatever kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
