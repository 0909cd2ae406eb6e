//! Who a request comes from: a session that was admitted, a visitor in line, a visitor who would
//! begin a session, or neither.
//!
//! | module | holds |
//! |---|---|
//! | [`identify`] | what a request's cookies say, and which session it is of |
//! | [`memory`] | clients that no cookie identifies, for some minutes |
//! | [`lease`] | the cookie that proves a session |
//! | [`ticket`] | a place in line, as its visitor keeps it |
//! | [`passes`] | what the application says of a visitor who may draw a number |
//! | [`invite`] | signed links for a lane of their own |
//! | [`own`] | names of the cookies and headers that are ours beside these |
//! | [`session_tags`] | what a session is called in logs |
//! | [`keys`], [`sealed`] | what all of these are signed with, and how |
//! | [`mint`] | all of them made and read, for attempts to forge them |

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod generations;
pub mod identify;
pub mod invite;
pub mod keys;
pub mod lease;
pub mod memory;
pub mod mint;
pub mod own;
pub mod passes;
pub mod sealed;
pub mod session_tags;
pub mod ticket;
