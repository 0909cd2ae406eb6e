//! The waiting room's line: who waits for admission, in which order, who is called, and what the
//! others are told.
//!
//! Whoever cannot begin at once draws a [`Position`]: a number of a lane, from one counter. Nothing
//! is kept of anybody but six bits a place. A place is *provisional* until it is heard of a second
//! time, *present* as long as it is heard of, *called* once it may come in, and *claimed* when it
//! has. Absence only stops a place from being counted; it never loses it.
//!
//! ```
//! use suimon_line::{Lane, Line, Params, PositionStatus};
//! use suimon_model::{Instant, seconds};
//!
//! let mut now = Instant::ORIGIN;
//! let mut line = Line::new(Params::default(), now);
//! let places: Vec<_> = (0..100).map(|_| line.draw(Lane::Normal).expect("there is room for a hundred")).collect();
//! now += seconds(3.0);
//! line.tick(now, Some(2.0), 5.0); // two sessions a second may begin; whoever is called is held for five seconds
//! assert!(line.contact(now, places[0]).is_called(), "some seconds' worth of people are called ahead");
//! let PositionStatus::Waiting(wait) = line.contact(now, places[99]) else { panic!("it is not the last one's turn") };
//! assert_eq!(wait.ahead, 99);
//! assert!(wait.low < seconds(49.5) && wait.high > seconds(49.5), "of what nobody has shown yet a wide range is told");
//! ```
//!
//! Who of the called begins when is not decided here: each takes its turn at the session gate,
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
pub use line::{
    Command, ENTERING, Line, LineStatus, Params, PositionStatus, SavedLane, SavedLine, View, Wait,
};
pub use lottery::Lottery;
pub use shares::Shares;
