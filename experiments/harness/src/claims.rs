//! Claims of an experiment, and whether they hold.

use serde::{Deserialize, Serialize};

/// A claim, with what was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) sentence: String,
    pub(crate) holds: bool,
}

impl Claim {
    /// Returns a claim; the sentence ends with what was measured.
    pub(crate) fn new(sentence: impl Into<String>, holds: bool) -> Self {
        Claim { sentence: sentence.into(), holds }
    }
}

/// Returns whether all of them hold.
pub(crate) fn all_hold(claims: &[Claim]) -> bool {
    claims.iter().all(|claim| claim.holds)
}

/// Returns them as a list for a README; empty if there are none.
pub(crate) fn list(claims: &[Claim]) -> String {
    let word = |claim: &Claim| if claim.holds { "holds" } else { "does not hold" };
    claims.iter().map(|claim| format!("- {}: {}.\n", word(claim), claim.sentence)).collect()
}

/// Returns them as lines.
pub(crate) fn text(claims: &[Claim]) -> String {
    let word = |claim: &Claim| if claim.holds { "holds:   " } else { "DOES NOT:" };
    let lines = claims.iter().map(|claim| format!("  {} {}\n", word(claim), claim.sentence));
    format!("\nWhat was to hold\n{}", lines.collect::<String>())
}
