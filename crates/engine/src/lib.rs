//! The engine by which gateways share amounts: Redis or Valkey.
//!
//! Once per period a gateway runs one script there, by the server's clock: its record is written,
//! numbers of the lines are handed out, and the records of all gateways come back. An exchange that
//! takes longer than [`TIMEOUT`] has failed; after [`FAILURES`] of them none is tried for a while
//! ([`Breaker`]). Nothing of it is on the path of a request.
//!
//! | key | holds | lives |
//! |---|---|---|
//! | `suimon:1:{group}:gateways` | a hash: the record of each gateway, with the server's time | a minute after the last exchange |
//! | `suimon:1:{group}:numbers` | a hash: the next number of each lane | a week after the last one handed out |

mod breaker;
mod engine;

pub use breaker::Breaker;
pub use engine::{Ask, Engine, EngineError, EngineParams, EngineUrl, Reply};

use std::time::Duration;

/// An exchange that takes longer has failed.
pub const TIMEOUT: Duration = Duration::from_millis(20);
/// Connecting takes longer than an exchange: TLS, and a name to resolve.
pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// After so many failures in a row nothing is tried for a while.
pub const FAILURES: u32 = 3;
