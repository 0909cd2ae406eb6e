//! `suimon status --watch`: the state as a picture that is drawn anew each second.

use super::{parse, picture, sites, text};
use crate::args::Status;
use crate::exit::Exit;
use crate::fetch::{self, FetchError};
use crate::numbers::rough_time;
use crate::terminal::{self, Colour, Event, Line, Screen, Size, wrapped};
use std::io::{self, Write};
use std::time::{Duration, Instant};
use suimon_admin::{SiteState, State};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Time between two pictures.
const EVERY: Duration = Duration::from_secs(1);
/// A state of this age is said to be old, as the gateway takes too long to answer.
const OLD: Duration = Duration::from_secs(3);

/// A gateway's state, and when it was heard.
struct Heard {
    state: State,
    sites: Vec<SiteState>,
    at: Instant,
}

/// What is known of the gateway.
#[derive(Default)]
struct Known {
    last: Option<Heard>,
    /// Why there is no newer state.
    trouble: Option<String>,
}

impl Known {
    /// Takes an answer, or why there was none. An error that does not mend itself is returned.
    fn learn(&mut self, answer: Result<Heard, FetchError>, address: &str) -> Result<(), FetchError> {
        self.trouble = match answer {
            Ok(heard) => {
                self.last = Some(heard);
                None
            }
            Err(FetchError::NoAnswer(why)) => {
                Some(format!("nobody answers at {address} ({why}); still trying"))
            }
            Err(FetchError::Refused(why)) => Some(format!("the gateway refused: {why}; still trying")),
            Err(error @ (FetchError::BadUrl(_) | FetchError::BadToken(_))) => return Err(error),
        };
        Ok(())
    }

    fn age(&self) -> Option<Duration> {
        self.last.as_ref().map(|heard| heard.at.elapsed())
    }

    /// Returns the picture, which begins with what is wrong if something is.
    fn lines(&self, args: &Status, size: Size) -> Vec<Line> {
        let address = &args.at.admin;
        let trouble = match (&self.trouble, self.age()) {
            (Some(why), _) => Some(why.clone()),
            (None, None) => return vec![Line::default().plain(&format!("asking {address} ..."))],
            (None, Some(age)) if age >= OLD => Some(format!("{address} takes long to answer; still waiting")),
            (None, Some(_)) => None,
        };
        let mut lines = trouble.map_or_else(Vec::new, |why| warning(&why, self.age(), size.columns));
        if let Some(Heard { state, sites, .. }) = &self.last {
            let size = Size { lines: size.lines.saturating_sub(lines.len()), ..size };
            lines.extend(picture::fitted(state, sites, args.decisions, size));
        }
        lines
    }
}

/// Returns why the picture below is old, and how old.
fn warning(why: &str, age: Option<Duration>, columns: usize) -> Vec<Line> {
    const MARK: &str = "NO ANSWER";
    let below = age.map_or_else(String::new, |age| {
        format!("; below: what it said {} ago", rough_time(age.as_secs_f64().floor()))
    });
    let indent = MARK.len() + 2;
    let sentence = wrapped(&format!("{why}{below}"), columns.saturating_sub(1 + indent).max(20));
    let line = |(at, text): (usize, &String)| match at {
        0 => Line::default().marked(Colour::Red, MARK).plain(": ").plain(text),
        _ => Line::default().plain(&" ".repeat(indent)).plain(text),
    };
    sentence.iter().enumerate().map(line).collect()
}

/// Draws until Ctrl-C, which is the normal end: on a screen of its own, or one picture below the
/// other where nothing can be drawn over.
pub(super) async fn run(args: &Status) -> Exit {
    let ended = if terminal::can_draw(&io::stdout()) { draw(args).await } else { print(args).await };
    match ended {
        Ok(Some(error)) => error.explain("--admin", &args.at.admin),
        // An error: nobody reads standard output any more.
        Ok(None) | Err(_) => Exit::Done,
    }
}

/// Draws until the end, or until an error that does not mend itself.
async fn draw(args: &Status) -> io::Result<Option<FetchError>> {
    let mut screen = Screen::enter()?;
    let mut known = Known::default();
    let (mut asks, mut ages) = (ticks(), ticks());
    loop {
        let next = next(args, &mut asks);
        tokio::pin!(next);
        let answer = loop {
            tokio::select! {
                answer = &mut next => break answer,
                event = screen.event() => if event? == Event::End { return Ok(None) },
                // No answer comes: the picture grows old.
                _ = ages.tick() => if known.age().is_some_and(|age| age < OLD) { continue },
            }
            show(&screen, &known, args)?;
        };
        if let Err(error) = known.learn(answer, &args.at.admin) {
            return Ok(Some(error));
        }
        show(&screen, &known, args)?;
    }
}

fn show(screen: &Screen, known: &Known, args: &Status) -> io::Result<()> {
    let Some(size) = terminal::size_of(io::stdout()) else { return Err(io::ErrorKind::NotConnected.into()) };
    screen.draw(&known.lines(args, size), size)
}

/// Prints one picture below the other.
async fn print(args: &Status) -> io::Result<Option<FetchError>> {
    let ended = tokio::signal::ctrl_c();
    tokio::pin!(ended);
    let mut asks = ticks();
    let mut is_first = true;
    loop {
        let answer = tokio::select! {
            _ = &mut ended => return Ok(None),
            answer = next(args, &mut asks) => answer,
        };
        let mut known = Known::default();
        if let Err(error) = known.learn(answer, &args.at.admin) {
            return Ok(Some(error));
        }
        let lines = match &known {
            Known { last: Some(heard), .. } => {
                picture::whole(&heard.state, &heard.sites, args.decisions, terminal::columns())
            }
            Known { trouble, .. } => {
                let trouble = trouble.as_deref().unwrap_or_default();
                wrapped(trouble, terminal::columns()).iter().map(|text| Line::default().plain(text)).collect()
            }
        };
        let between = if std::mem::take(&mut is_first) { "" } else { "\n" };
        let mut out = io::stdout().lock();
        out.write_all((between.to_owned() + &text(&lines, false)).as_bytes())?;
        out.flush()?;
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(EVERY);
    // A gateway that is slow is not asked more often for it.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Waits until it is time to ask again, and returns the answer.
async fn next(args: &Status, asks: &mut Interval) -> Result<Heard, FetchError> {
    asks.tick().await;
    let body = fetch::get(&args.at, suimon_admin::STATE_PATH).await?;
    let state =
        parse(&body).map_err(|error| FetchError::NoAnswer(format!("something else does: {error}")))?;
    let sites = sites(args, &state).await;
    Ok(Heard { state, sites, at: Instant::now() })
}
