//! `suimon status`: shows what a running gateway does right now, and why.

mod picture;
mod watch;

use crate::args::Status;
use crate::exit::Exit;
use crate::fetch;
use crate::terminal::{self, Line};
use std::io::{self, IsTerminal};
use suimon_admin::{SiteState, SitesAnswer, State};

/// Shows the state once, or repeatedly.
pub(crate) async fn run(args: &Status) -> Exit {
    if args.watch {
        return watch::run(args).await;
    }
    match fetch::get(&args.at, suimon_admin::STATE_PATH).await {
        Ok(body) if args.json => {
            println!("{}", String::from_utf8_lossy(&body));
            Exit::Done
        }
        Ok(body) => match parse(&body) {
            Ok(state) => {
                let colours = io::stdout().is_terminal() && terminal::colours_are_wanted();
                let sites = sites(args, &state).await;
                let picture = picture::whole(&state, &sites, args.decisions, terminal::columns());
                print!("{}", text(&picture, colours));
                Exit::Done
            }
            Err(error) => {
                eprintln!(
                    "{} answers, but not as this version of suimon expects ({error}); is it a gateway's operator address?",
                    args.at.admin
                );
                Exit::Failed
            }
        },
        Err(error) => error.explain("--admin", &args.at.admin),
    }
}

fn parse(body: &[u8]) -> serde_json::Result<State> {
    serde_json::from_slice(body)
}

/// Returns the sites to be listed above `state`: none where there is one, or where one was asked for.
async fn sites(args: &Status, state: &State) -> Vec<SiteState> {
    if state.site.is_none() || args.at.site.is_some() {
        return Vec::new();
    }
    let answer = fetch::get(&args.at, suimon_admin::SITES_PATH).await.ok();
    let answer = answer.and_then(|body| serde_json::from_slice::<SitesAnswer>(&body).ok());
    answer.map(|answer| answer.sites).unwrap_or_default()
}

fn text(lines: &[Line], colours: bool) -> String {
    lines.iter().map(|line| line.written(usize::MAX, colours) + "\n").collect()
}
