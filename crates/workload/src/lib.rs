//! Journeys, arrivals, think times and patience, from a seed; and the counts from the visitors'
//! view.
//!
//! Nothing here knows what is under test. The crowd plays it over real HTTP, the simulator against
//! a model of a server; both count with the same code.
//!
//! - [`Workload`]: what is played: [`Journey`]s of [`Step`]s, and how users arrive ([`Arrivals`]).
//! - [`Starts`]: when the next user starts.
//! - [`Visitor`]: one session being played. Told how a step ended, it returns what comes next.
//! - [`Tally`]: what happened, from the visitors' view, without warm-up.
//! - [`Template`]: text with `{placeholders}` for values captured from earlier answers.

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
