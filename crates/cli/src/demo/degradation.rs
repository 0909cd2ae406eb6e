//! A light service beside a heavy one, on a real Tomcat with one core: without Suimon, under a
//! wished ratio of slowdowns, and with a floor.
//!
//! Map: `acts` plays them; `outcome` their results; `live` for the terminal; `page` for the browser.

mod acts;
mod live;
mod outcome;
mod page;

use super::{Demo, Outcome, Told};

/// Plays all acts.
pub(super) fn play(args: &Demo) -> Outcome<Told> {
    let outcome = acts::play(args)?;
    Ok(Told {
        holds: outcome.holds(),
        words: format!("{}\n{}\n", outcome::table(&outcome), outcome.verdict()),
        page: page::of(&outcome),
        json: serde_json::to_string_pretty(&outcome)? + "\n",
        picture: page::picture(&outcome),
    })
}
