//! Windows, statistics and the control laws, one file a law.
//!
//! A law is told what happened and when; it answers with limits, intervals and the records of its decisions.
//! It knows nothing of sessions' identities, HTTP or queues beyond their lengths.

mod kind;

pub use kind::{RouteLawKind, SessionLawKind, SeedRouteParams, SeedSessionParams};
