//! Nodes that come and go: a load that triples before a gateway that starts and ends its nodes, one of
//! which is killed in the midst of it.
//!
//! Map: `play` the act; `outcome` its results; `live` for the terminal; `page` for the browser.

mod live;
mod outcome;
mod page;
mod play;

use super::{Demo, Outcome, Told};

/// Plays it.
pub(super) fn play(args: &Demo) -> Outcome<Told> {
    let outcome = play::play(args)?;
    Ok(Told {
        holds: outcome.holds(),
        words: format!("{}\n{}\n", outcome::table(&outcome), outcome.verdict()),
        page: page::of(&outcome),
        json: serde_json::to_string_pretty(&outcome)? + "\n",
        picture: page::picture(&outcome),
    })
}
