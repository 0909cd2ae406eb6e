//! The waiting room's line: who waits for admission, in which order, who is called, and what the
//! others are shown.
//!
//! A newcomer who cannot begin at once draws a [`Position`]: a number of a lane, from one counter.
//! Nothing is kept of a visitor but six bits per place. A place is *provisional* until its first
//! poll, *present* as long as polls arrive, *called* once its visitor may come in, and *claimed*
//! when that has happened. Absence only stops a place from being counted; it never loses it.
//!
//! ```
//! use suimon_line::{Lane, Line, Params, PositionStatus};
//! use suimon_model::{Instant, seconds};
//!
//! let mut now = Instant::ORIGIN;
//! let mut line = Line::new(Params::default(), now);
//! let places: Vec<_> = (0..100).map(|_| line.draw(Lane::Normal).expect("there is room for a hundred")).collect();
//! now += seconds(3.0);
//! line.tick(now, Some(2.0), 5.0); // two sessions per second may begin; called ones are held for 5 s
//! assert!(line.contact(now, places[0]).is_called(), "some seconds' worth of people are called ahead");
//! let PositionStatus::Waiting(wait) = line.contact(now, places[99]) else { panic!("it is not the last one's turn") };
//! assert_eq!(wait.ahead, 99);
//! assert!(wait.low < seconds(49.5) && wait.high > seconds(49.5), "of what nobody has shown yet a wide range is told");
//! ```
//!
//! When each called visitor begins is not decided here: each takes its turn at the session gate,
//! which learns of claims, not of calls.

mod calibration;
mod estimate;
mod lane;
mod line;
mod lottery;
mod numbers;
mod presence;
mod shares;

pub use lane::{LANES, Lane, Position};
pub use line::{Command, ENTERING, Line, LineStatus, Params, PositionStatus, SavedLine, View, Wait};
pub use lottery::Lottery;
pub use numbers::SavedLane;
pub use shares::Shares;
