//! Why a datagram is refused.

use std::fmt;

/// Why a datagram is refused. Each has a code that never changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refused {
    /// Shorter than its own header says, or than any datagram.
    TooShort,
    /// Longer than its own header says, or than any datagram.
    TooLong,
    /// It does not begin with the four bytes of a load report.
    BadMagic,
    /// A version of the format that this program does not know.
    BadVersion,
    /// It names a key that is not in the file of keys.
    UnknownKey,
    /// It was not written with the key that it names, or was changed on the way.
    BadMac,
    /// It was written with the key, but a value is outside of its range.
    BadValue,
    /// It names a node that is not in the list.
    UnknownNode,
    /// Its sequence number is not above the last one: a copy, or overtaken on the way.
    Replayed,
    /// It is from a run of the agent before the present one.
    OldBoot,
    /// Its clock is too far from the gateway's to begin with.
    ClockSkew,
    /// It was on the way for longer than three periods.
    Late,
}

impl Refused {
    /// Every reason there is.
    pub const ALL: [Refused; 12] = [
        Refused::TooShort,
        Refused::TooLong,
        Refused::BadMagic,
        Refused::BadVersion,
        Refused::UnknownKey,
        Refused::BadMac,
        Refused::BadValue,
        Refused::UnknownNode,
        Refused::Replayed,
        Refused::OldBoot,
        Refused::ClockSkew,
        Refused::Late,
    ];

    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            Refused::TooShort => "too_short",
            Refused::TooLong => "too_long",
            Refused::BadMagic => "bad_magic",
            Refused::BadVersion => "bad_version",
            Refused::UnknownKey => "unknown_key",
            Refused::BadMac => "bad_mac",
            Refused::BadValue => "bad_value",
            Refused::UnknownNode => "unknown_node",
            Refused::Replayed => "replayed",
            Refused::OldBoot => "old_boot",
            Refused::ClockSkew => "clock_skew",
            Refused::Late => "late",
        }
    }

    /// Returns the reason as a sentence for an operator, with what to look at.
    pub const fn explain(self) -> &'static str {
        match self {
            Refused::TooShort => "it is shorter than a load report",
            Refused::TooLong => "it is longer than a load report",
            Refused::BadMagic => "it is no load report: something else sends to this port",
            Refused::BadVersion => "its format is not known here: agent and gateway differ in version",
            Refused::UnknownKey => "its key is not in the gateway's file of keys",
            Refused::BadMac => "its key differs from the gateway's key of the same number, or it is forged",
            Refused::BadValue => "a value in it is outside of its range",
            Refused::UnknownNode => "it names a node that is not in upstream.nodes: compare --node with it",
            Refused::Replayed => "its sequence number is not new: a copy, or overtaken on the way",
            Refused::OldBoot => {
                "it is from an earlier run of the agent: a recording, or two agents report for one node"
            }
            Refused::ClockSkew => {
                "its clock differs too much from the gateway's: set both by NTP, or raise clock_skew_max"
            }
            Refused::Late => "it was on the way for longer than three periods",
        }
    }

    /// Returns its place in [`Refused::ALL`].
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.explain())
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_place_and_a_code_of_its_own() {
        for (index, refused) in Refused::ALL.into_iter().enumerate() {
            assert_eq!(refused.index(), index);
            let same = Refused::ALL.iter().filter(|other| other.code() == refused.code()).count();
            assert_eq!(same, 1, "{}", refused.code());
        }
    }
}
