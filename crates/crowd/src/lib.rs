//! Plays a workload over real HTTP and measures as the visitor sees it.
//!
//! One thread holds a thousand users. Each has cookies of his own and, like a browser, one
//! connection that is kept while it can be; when his patience ends he closes it. Nothing is known
//! of the server but what its answers say.
//!
//! - [`run`]: plays a workload against a base URL until its time is over, everybody is done, or it
//!   is told to stop.
//! - [`Progress`]: what is shown each second meanwhile.
//! - [`Report`]: what the visitors saw, as JSON and as a table.
//! - [`SHOP_JOURNEY`]: the journey file of the shop of the paper.

mod answer;
mod asking;
mod html;
mod jar;
mod line;
mod machine;
mod quantiles;
mod report;
mod run;
mod target;
mod trouble;
mod user;
mod wire;

pub use line::{Edit, FarmReport, ForgeReport, LineReport, LineTold, LineWait, OrderReport, ToldReport, Who};
pub use quantiles::Quantiles;
pub use report::{Bin, Ended, Report, SecondReport, StepReport};
pub use run::{CrowdError, OnProgress, Options, Progress, run};

/// The journey file of the shop of the paper, as `suimon-settings` reads it; also the example of
/// all its keys.
pub const SHOP_JOURNEY: &str = include_str!("../journeys/shop.toml");
