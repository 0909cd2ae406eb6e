//! `suimon status`: shows what a running gateway does right now, and why.

mod picture;

use crate::args::Status;
use crate::exit::Exit;
use crate::fetch::{self, FetchError};
use crate::terminal::{self, Line, Screen};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use suimon_admin::{SiteState, SitesAnswer, State};

/// Time between two pictures of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// Shows the state once, or repeatedly.
pub(crate) async fn run(args: &Status) -> Exit {
    if args.watch {
        return watch(args).await;
    }
    match fetch::get(&args.at, suimon_admin::STATE_PATH).await {
        Ok(body) if args.json => {
            println!("{}", String::from_utf8_lossy(&body));
            Exit::Done
        }
        Ok(body) => match serde_json::from_slice::<State>(&body) {
            Ok(state) => {
                let colours = io::stdout().is_terminal() && terminal::colours_are_wanted();
                let sites = sites(args, &state).await;
                print!("{}", text(&picture::whole(&state, &sites, args.decisions), colours));
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

/// Draws until Ctrl-C, which is the normal end: on a screen of its own, or one picture below the
/// other if standard output is no terminal.
async fn watch(args: &Status) -> Exit {
    let Ok(screen) = io::stdout().is_terminal().then(Screen::enter).transpose() else { return Exit::Done };
    let mut ticks = tokio::time::interval(EVERY);
    let ended = tokio::signal::ctrl_c();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            _ = &mut ended => return Exit::Done,
            _ = ticks.tick() => {}
        }
        let state = match fetch::get(&args.at, suimon_admin::STATE_PATH).await {
            Ok(body) => serde_json::from_slice::<State>(&body)
                .map_err(|error| format!("{} answers something else ({error})", args.at.admin)),
            Err(FetchError::NoAnswer(why)) => {
                Err(format!("nobody answers at {} ({why}); still trying", args.at.admin))
            }
            Err(FetchError::Refused(why)) => Err(format!("the gateway refused: {why}; still trying")),
            Err(error @ (FetchError::BadUrl(_) | FetchError::BadToken(_))) => {
                drop(screen);
                return error.explain("--admin", &args.at.admin);
            }
        };
        let size = terminal::size_of(io::stdout());
        let sites = match &state {
            Ok(state) => sites(args, state).await,
            Err(_) => Vec::new(),
        };
        let lines = match (&state, size) {
            (Ok(state), Some(size)) => picture::fitted(state, &sites, args.decisions, size),
            (Ok(state), None) => picture::whole(state, &sites, args.decisions),
            (Err(why), _) => vec![Line::default().plain(why)],
        };
        let written = match (&screen, size) {
            (Some(screen), Some(size)) => screen.draw(&lines, size),
            _ => io::stdout().write_all(text(&lines, false).as_bytes()).and_then(|()| io::stdout().flush()),
        };
        if written.is_err() {
            // Nobody reads standard output any more.
            return Exit::Done;
        }
    }
}
