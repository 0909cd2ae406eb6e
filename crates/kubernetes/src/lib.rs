//! Nodes that Kubernetes starts and stops.
//!
//! Two ways to have the number of nodes that a law wants:
//!
//! - [`run`]: the nodes are the endpoints of a Service, and their number is written to the `scale` subresource of a
//!   workload;
//! - [`Keda`]: the number is published to KEDA as an external push scaler, and KEDA's autoscaler follows it.
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
mod params;
mod permission;
mod permissions;
mod provider;
mod scale;
mod session;
mod watching;

pub use event::Event;
pub use keda::{Keda, contract};
pub use params::{KedaParams, KubernetesParams, Target};
pub use provider::{Refusal, run};
