//! Plays a workload over real HTTP and measures as the visitor sees it.
//!
//! One thread plays a thousand users. Each has its own cookies and, like a browser, one connection
//! that is kept as long as possible. When the user's patience ends, the connection is closed. The
//! crowd knows nothing of the server except what its responses say.
//!
//! - [`run`]: plays a workload against a base URL until its time is over, all users are done, or it
//!   is told to stop.
//! - [`Progress`]: what is shown each second during the run.
//! - [`Report`]: what the visitors saw, as JSON and as a table.
//! - [`profile`]: the other way to load a site: two services, always so many requests of each in
//!   flight.
//! - [`SHOP_JOURNEY`]: the journey file of the shop of the paper.

mod answer;
mod asking;
mod clock;
mod html;
mod jar;
mod line;
mod machine;
mod marked;
pub mod profile;
mod quantiles;
mod report;
mod run;
mod target;
mod trouble;
mod user;
mod wire;

pub use line::{Edit, FarmReport, ForgeReport, LineReport, LineTold, LineWait, OrderReport, ToldReport, Who};
pub use quantiles::Quantiles;
pub use report::{Bin, Ended, FailureReport, Report, SecondReport, StepReport};
pub use run::{CrowdError, OnProgress, Options, Progress, run};

/// The journey file of the shop of the paper, as `suimon-settings` reads it; also the example of
/// all its keys.
pub const SHOP_JOURNEY: &str = include_str!("../journeys/shop.toml");
