//! What is wrong with bytes that are not a recording, or only a part of one.

use std::fmt;
use suimon_model::persist::Broken;

/// The version of the format.
pub const VERSION: u16 = 31;

/// What is wrong, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Bytes from the beginning of the file.
    pub at: usize,
    /// What is wrong there.
    pub what: What,
}

/// What can be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It does not begin like a recording.
    Foreign,
    /// Its format is of another version.
    Version(u16),
    /// It stops before its end: the gateway was killed or is still writing, or the file was cut.
    CutOff,
    /// The content differs from what was written.
    Checksum,
    /// A block is longer than any may be.
    TooLong,
    /// A block of an unknown kind, or of one that may not be here.
    Misplaced,
    /// A block's content is invalid.
    Content(&'static str),
}

impl Damage {
    /// Returns the damage in a block whose content begins at `base`.
    pub(crate) fn inside(base: usize, broken: Broken) -> Self {
        Damage { at: base + broken.at, what: What::Content(broken.why) }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.what {
            What::Foreign => write!(f, "at byte {at}: it is not a recording of Suimon's"),
            What::Version(version) => {
                write!(
                    f,
                    "at byte {at}: its format is version {version}, and this program reads version {VERSION}"
                )
            }
            What::CutOff => write!(
                f,
                "at byte {at}: it stops before its end; the gateway still writes it or was killed, or the file was cut"
            ),
            What::Checksum => {
                write!(f, "at byte {at}: the checksum is wrong; the file was changed after it was written")
            }
            What::TooLong => write!(f, "at byte {at}: a block is longer than any may be"),
            What::Misplaced => write!(f, "at byte {at}: a block is of a kind that cannot stand here"),
            What::Content(why) => write!(f, "at byte {at}: {why}"),
        }
    }
}

impl std::error::Error for Damage {}
