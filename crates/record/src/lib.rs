//! What happens to a gate, as bytes, and back: all that is needed to repeat its decisions.
//!
//! Any bytes are either read as a recording or refused with the place of the damage. Nothing here
//! panics, and no memory is reserved for a length that the bytes do not bear out.
//! `docs/recording.md` describes the format.
//!
//! - [`Event`]: one call that changes a gate; [`TAGS`] lists how each begins. [`Encoder`] packs them
//!   into blocks, each with a [`Mark`] at its end: a hash of what the gate has decided until there.
//! - [`begin`], [`events`], [`end`]: the pieces a segment is written from. It begins with a
//!   [`Header`] and all of the gate's state, so that it needs nothing before it.
//! - [`Segment`]: a segment being read. [`Damage`]: what is wrong with one, and where.
//!
//! ```
//! use suimon_gate::{Gate, RouteMode, Params};
//! use suimon_model::Instant;
//! use suimon_record::{Encoder, SegmentEnd, Event, Header, Part, Segment};
//!
//! let (now, params) = (Instant::ORIGIN, Params::default());
//! let mut gate = Gate::new(params.clone(), now);
//! let header = Header { params, ..Header::default() };
//! let mut file = suimon_record::begin(&header, &gate.save().unwrap());
//!
//! let mut encoder = Encoder::default();
//! encoder.push(now, &Event::Route { is_mixed: false, mode: RouteMode::Enforce, name: "GET /".to_string() });
//! gate.declare_route(now, RouteMode::Enforce);
//! file.extend(suimon_record::events(&encoder.seal(gate.trace(), Vec::new())));
//! file.extend(suimon_record::end(SegmentEnd::Closed));
//!
//! let segment = Segment::read(&file).unwrap();
//! let parts: Result<Vec<Part<'_>>, _> = segment.parts().collect();
//! assert_eq!(parts.unwrap().len(), 2, "a block of events, and the end");
//! ```

mod answers;
mod block;
mod damage;
mod encode;
mod event;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod segment;

pub use answers::Answers;
pub use block::{BLOCK_BYTES_MAX, MAGIC, is_recording};
pub use damage::{Damage, VERSION, What};
pub use encode::{BLOCK_FULL, Encoder, begin, end, events};
pub use event::{Event, NAME_BYTES_MAX, TAGS, Tag, name_cut};
pub use segment::{Block, Events, Header, Mark, Part, Parts, Segment, SegmentEnd};

#[cfg(test)]
mod tests;
