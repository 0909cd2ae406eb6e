//! Files that outlive the process: each is whole, or refused with the reason and the remedy.
//!
//! | module | holds |
//! |---|---|
//! | [`whole_file`] | how a file is written whole or not at all |
//! | [`lines`] | the lines of the waiting room |
//! | [`remembered`] | what was learned of the application and its visitors |
//! | [`recorder`] | what happened to the gate, for replay |

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod lines;
pub mod recorder;
pub mod remembered;
pub mod whole_file;
