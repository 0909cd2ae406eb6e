//! Suimon behind a C interface, for a process that works on requests itself: an application server asks
//! before it works on a request, and says when it is done.
//!
//! `include/suimon.h` is written from this crate by `cargo xtask docs`; `docs/embedding-c.md` shows a way in.
//!
//! - [`c`]: the functions of the header. The only unsafe code is there: it takes pointers from the caller,
//!   and lets no panic out.
//! - `server`: a gateway without sockets, with its threads and the requests that the process has with it.
//! - `requests`: those requests, by number, and the results that are still to be told.
//! - `waiting`, `queue`: a request that waits, and how it calls once it can be asked what has become of it.
//! - `head`: heads of requests and answers, as text and back.
//! - `operator`: the admin listener, as `suimon serve` has it.
//! - `gate`, `output`: the gate alone, told the time; and what it says should happen, as numbers.
//! - `recording`: what happened to a gate, event by event.

pub mod c;
mod code;
mod gate;
mod head;
mod operator;
mod out;
mod output;
mod queue;
mod recording;
mod requests;
mod server;
mod waiting;
