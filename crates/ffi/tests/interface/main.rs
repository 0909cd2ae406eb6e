//! The interface as a program in C sees it, called from Rust: its functions are called with their pointers.

#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]
#![expect(unsafe_code, reason = "what is tested takes pointers")]

mod calls;
mod gate;
mod server;
mod support;
