//! `suimon sim --from`: makes a scenario, to be edited and played, from what a running gateway has
//! learned.
//!
//! Map: `paths` what visitors do, as journeys; `costs` what a request costs, so that the model
//! behaves as measured; `file` the text, with comments that say which numbers are measured and
//! which are assumed. [`scenario_of`] combines all three without any I/O.

mod costs;
mod file;
mod paths;

use super::Sim;
use crate::args::AdminAt;
use crate::exit::Exit;
use crate::fetch;
use crate::whole_file;
use std::fmt;
use std::path::Path;
use suimon_admin::{LEARNED_PATH, Learned};

/// Fewest ended sessions for a scenario; journeys from fewer would be anecdotes.
const ENDED_MIN: u64 = 10;

/// Too little was learned for a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TooLittle {
    ended: u64,
}

impl fmt::Display for TooLittle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLittle { ended } = self;
        write!(
            f,
            "too little was learned: {ended} sessions have ended so far, and {ENDED_MIN} are needed to tell what visitors do. \
             Ask again when more have ended; one that does not say so ends when its visitor has been silent for long."
        )
    }
}

/// Reads the learned state from the admin listener `admin`, and writes or prints the scenario.
pub(super) async fn run(at: &AdminAt, args: &Sim) -> Exit {
    if let Some(out) = &args.out
        && let Err(why) = may_write(out, args.force)
    {
        eprintln!("--out: {}: {why}", out.display());
        return Exit::Usage;
    }
    let admin = &*at.admin;
    let learned = match fetch::get(at, LEARNED_PATH).await {
        Ok(body) => serde_json::from_slice::<Learned>(&body),
        Err(error) => return error.explain("--from", admin),
    };
    let learned = match learned {
        Ok(learned) => learned,
        Err(error) => {
            eprintln!(
                "{admin} answers, but not as this version of suimon expects ({error}); is it a gateway's operator address?"
            );
            return Exit::Failed;
        }
    };
    let asked = httpdate::fmt_http_date(std::time::SystemTime::now());
    let source = at.site.as_ref().map_or_else(|| admin.to_owned(), |site| format!("{admin}, site {site}"));
    match scenario_of(&learned, &source, &asked) {
        Ok(text) => deliver(&text, args.out.as_deref(), args.force),
        Err(too_little) => {
            eprintln!("{too_little}");
            Exit::Failed
        }
    }
}

/// Returns the scenario file from the state that `source` had learned at the time `asked`.
pub(super) fn scenario_of(learned: &Learned, source: &str, asked: &str) -> Result<String, TooLittle> {
    let ended = learned.kinds.iter().map(|kind| kind.ended).sum();
    let names = paths::Names::new(learned);
    let journeys = paths::journeys(learned);
    if ended < ENDED_MIN || journeys.is_empty() {
        return Err(TooLittle { ended });
    }
    let costs = costs::Costs::new(learned, &paths::visits(&journeys));
    Ok(file::text(&file::Site { learned, names: &names, journeys: &journeys, costs: &costs, source, asked }))
}

/// Returns why the file may not be written, before the gateway is asked.
fn may_write(out: &Path, force: bool) -> Result<(), String> {
    if out.exists() && !force {
        return Err("it is there already, and may have been edited; --force replaces it".to_owned());
    }
    whole_file::try_writing(out).map_err(|error| format!("cannot be written: {error}"))
}

fn deliver(text: &str, out: Option<&Path>, force: bool) -> Exit {
    let Some(out) = out else {
        print!("{text}");
        return Exit::Done;
    };
    // Another process may have created the file meanwhile.
    let written = may_write(out, force).and_then(|()| {
        whole_file::write(out, text).map_err(|error| format!("could not be written: {error}"))
    });
    match written {
        Ok(()) => {
            let name = out.display();
            println!(
                "{name} is written. What is measured and what is assumed stands in it; now\n  suimon sim {name}"
            );
            Exit::Done
        }
        Err(why) => {
            eprintln!("--out: {}: {why}", out.display());
            Exit::Failed
        }
    }
}

#[cfg(test)]
mod tests;
