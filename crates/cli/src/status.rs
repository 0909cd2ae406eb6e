//! `suimon status`: what a running gateway does right now, and why.

mod picture;

use crate::args::Status;
use crate::exit::Exit;
use crate::fetch::{self, FetchError};
use std::io::{IsTerminal, Write};
use std::time::Duration;
use suimon_admin::State;

/// Time between two pictures of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// Shows the state once, or again and again.
pub(crate) async fn run(args: &Status) -> Exit {
    if args.watch {
        return watch(args).await;
    }
    match fetch::get(&args.admin, suimon_admin::STATE_PATH).await {
        Ok(body) if args.json => {
            println!("{}", String::from_utf8_lossy(&body));
            Exit::Done
        }
        Ok(body) => match serde_json::from_slice::<State>(&body) {
            Ok(state) => {
                print!("{}", picture::draw(&state, args.decisions));
                Exit::Done
            }
            Err(error) => {
                eprintln!(
                    "{} answers, but not as this version of suimon expects ({error}); is it a gateway's operator address?",
                    args.admin
                );
                Exit::Failed
            }
        },
        Err(error) => error.explain("--admin", &args.admin),
    }
}

/// Draws until Ctrl-C, which is how it is meant to end.
async fn watch(args: &Status) -> Exit {
    let clear = if std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    let mut ticks = tokio::time::interval(EVERY);
    let ended = tokio::signal::ctrl_c();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            _ = &mut ended => return Exit::Done,
            _ = ticks.tick() => {}
        }
        let text = match fetch::get(&args.admin, suimon_admin::STATE_PATH).await {
            Ok(body) => match serde_json::from_slice::<State>(&body) {
                Ok(state) => picture::draw(&state, args.decisions),
                Err(error) => format!("{} answers something else ({error})\n", args.admin),
            },
            Err(FetchError::NoAnswer(why)) => {
                format!("nobody answers at {} ({why}); still trying\n", args.admin)
            }
            Err(FetchError::Refused(why)) => format!("the gateway refused: {why}; still trying\n"),
            Err(error @ FetchError::BadUrl(_)) => return error.explain("--admin", &args.admin),
        };
        let written = write!(std::io::stdout(), "{clear}{text}").and_then(|()| std::io::stdout().flush());
        if written.is_err() {
            // Whoever read the pictures has gone.
            return Exit::Done;
        }
    }
}
