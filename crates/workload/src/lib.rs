//! Journeys, arrivals, think times and patience, from a seed; and the books a visitor would keep.
//!
//! Nothing here knows who is under test: the crowd plays it over real HTTP, the simulator against a
//! model of a server, and both keep the same books.
//!
//! - [`Workload`]: what is played: [`Journey`]s of [`Step`]s, and how users arrive ([`Arrivals`]).
//! - [`Starts`]: when the next user starts.
//! - [`Visitor`]: one session being played; told how a step ended, it says what comes next.
//! - [`Tally`]: what happened, as the visitors saw it, with warm-up left out.
//! - [`Template`]: text with `{placeholders}` for values taken out of earlier answers.

mod arrivals;
mod draw;
mod journey;
mod tally;
mod template;
mod visitor;

pub use arrivals::{Arrivals, Phase, Spacing, Start, Starts};
pub use draw::{Patience, Think};
pub use journey::{
    Body, Capture, Expect, Farm, Forge, InLine, Journey, Manner, OnFailure, OnRefusal, Retry, Source, Step,
    VALUES_GIVEN, Workload,
};
pub use tally::{Counts, SERIES_SECONDS_MAX, Second, StepTally, Tally, Window};
pub use template::{MissingValue, Template};
pub use visitor::{Next, StepOutcome, Turn, Visitor};
