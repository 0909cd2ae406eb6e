//! A site's degradation scheme: how much each of two services slows down as load rises.
//!
//! The loop is closed, as in the papers: always so many requests of a light service in flight, and
//! beside them, point after point, more and more of a heavy one. An answered request is followed by
//! the next at once.
//!
//! Pure, told the time: [`Plan`] what is sent when; `books` what is counted of a point; `stop` when
//! too much fails; `server_timing` what the application tells of itself; [`ProfileReport`] the
//! numbers. Shells: `probe` one request and its segments; [`run`] the loops.

mod books;
mod plan;
mod probe;
mod report;
mod run;
mod server_timing;
mod stop;

pub use books::Segment;
pub use plan::{IN_FLIGHT_MAX, POINTS_MAX, Plan, Point, Role, SECONDS_MAX, Service};
pub use probe::ANSWER_BYTES_MAX;
pub use report::{DistributionBin, Ended, PointReport, ProfileReport, Second, ServiceReport};
pub use run::{News, OnNews, Options, Phase, ProfileError, Progress, check, run};
