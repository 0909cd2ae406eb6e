//! Nodes that Kubernetes starts and stops.
//!
//! [`run`] finds them, as the endpoints of a Service, and has as many as a law wants, in one of two ways: their number
//! is written to the `scale` subresource of a workload; or [`Keda`] publishes it, as an external push scaler, and KEDA's
//! autoscaler follows it.
//!
//! What decides is in files of its own that know no socket: `endpoints` (which nodes there are), `scale` (what is
//! written), `election` (who writes), `owners` (who else does), `permission` (what is not allowed), `contact` (what is
//! said, and when). The others ask and tell: `session`, `watching`, `orders`, `permissions`, `provider`.

mod contact;
mod election;
mod endpoints;
mod event;
mod keda;
mod orders;
mod owners;
mod permission;
mod permissions;
mod provider;
mod scale;
mod session;
mod watching;

pub use event::Event;
pub use keda::{Keda, contract};
pub use provider::{Refusal, check, run};
