//! Which laws stand in the gate: those of the scenario, or others to compare them with.

use crate::rivals::{RouteRival, SessionRival};
use std::fmt;
use suimon_control::{RouteLawKind, SeedRouteParams, SeedSessionParams, SessionLawKind};

/// The laws of a run, by a name of the form `ROUTES+SESSIONS`.
#[derive(Clone, PartialEq, Debug)]
pub struct Laws {
    /// How limits are found.
    pub routes: RouteChoice,
    /// Whether there is one limit for the whole application instead of one a route.
    pub whole: bool,
    /// How sessions are let in.
    pub sessions: SessionChoice,
}

/// How limits are found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RouteChoice {
    /// As the scenario says.
    AsSet,
    /// No limit at all.
    Off,
    /// The same fixed limit everywhere.
    Fixed(u32),
    /// A law of the gateway's.
    Law(RouteLawKind),
    /// A law of others', let go as low as 1 where its published floor would decide the race.
    Rival(RouteRival),
}

/// How sessions are let in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SessionChoice {
    /// As the scenario says.
    AsSet,
    /// A law of the gateway's.
    Law(SessionLawKind),
    /// A law of others'; the fixed rate is told the application's true bound, as nobody could.
    Rival(SessionRival),
    /// The fixed rate, told this many percent of the true bound, shared evenly among the kinds: what somebody would enter who knows everything and wants some room.
    Told {
        /// Percent of the bound, at least 1.
        percent: u32,
    },
}

impl Laws {
    /// The scenario's own.
    pub const AS_SET: Laws =
        Laws { routes: RouteChoice::AsSet, whole: false, sessions: SessionChoice::AsSet };

    /// Returns how laws without a name of their own are written, for messages.
    pub fn how_written() -> String {
        let routes: Vec<&str> = RouteRival::ALL.iter().map(|rival| rival.name()).collect();
        let sessions: Vec<&str> = SessionRival::ALL.iter().map(|rival| rival.name()).collect();
        format!(
            "ROUTES+SESSIONS with ROUTES one of set, off, paired, seed, fixed:N, {} (with @whole behind it: one limit for the whole application) and SESSIONS one of set, open, flow, seed, static:N, told:PERCENT (of the true bound), {}",
            routes.join(", "),
            sessions.join(", ")
        )
    }

    /// Returns what may be compared, by name and in words: what has a name, then each law of others alone.
    pub fn catalogue() -> Vec<(String, String)> {
        let aliases = ALIASES.iter().map(|(name, _, words)| ((*name).to_owned(), (*words).to_owned()));
        let routes = RouteRival::ALL.iter();
        let routes = routes.map(|rival| (format!("{}+open", rival.name()), rival.describe().to_owned()));
        let sessions = SessionRival::ALL.iter();
        let sessions = sessions.map(|rival| (format!("off+{}", rival.name()), rival.describe().to_owned()));
        aliases.chain(routes).chain(sessions).collect()
    }

    /// Returns the laws that `name` stands for.
    ///
    /// # Errors
    /// Returns a sentence that says what may be written.
    pub fn parse(name: &str) -> Result<Laws, String> {
        let alias = ALIASES.iter().find(|(alias, _, _)| *alias == name).map(|(_, meaning, _)| *meaning);
        let (routes, sessions) = alias.unwrap_or(name).split_once('+').ok_or_else(|| unknown(name))?;
        let (routes, whole) = routes.strip_suffix("@whole").map_or((routes, false), |routes| (routes, true));
        let routes = route_choice(routes).ok_or_else(|| unknown(name))?;
        let sessions = session_choice(sessions).ok_or_else(|| unknown(name))?;
        Ok(Laws { routes, whole, sessions })
    }
}

/// Names for what is often compared: name, what it stands for, and what that is.
pub const ALIASES: &[(&str, &str, &str)] = &[
    ("suimon", "set+set", "the laws of the scenario, which are Suimon's unless it says otherwise"),
    ("none", "off+open", "no control at all"),
    ("routes-only", "paired+open", "Suimon's route gates alone"),
    ("sessions-only", "off+flow", "Suimon's session gate alone"),
    ("paper", "seed+seed", "the paper's rules"),
];

fn unknown(name: &str) -> String {
    let aliases: Vec<&str> = ALIASES.iter().map(|(alias, _, _)| *alias).collect();
    format!("{name:?} is no law: write one of {}, or {}", aliases.join(", "), Laws::how_written())
}

fn number(text: &str, prefix: &str) -> Option<u32> {
    text.strip_prefix(prefix)?.parse().ok().filter(|n| *n > 0)
}

fn route_choice(name: &str) -> Option<RouteChoice> {
    Some(match name {
        "set" => RouteChoice::AsSet,
        "off" => RouteChoice::Off,
        "paired" => RouteChoice::Law(RouteLawKind::Paired),
        // The lowest of the plausible beginnings: from 5 and 10 it loses more.
        "seed" => {
            RouteChoice::Law(RouteLawKind::Seed(SeedRouteParams { initial: 2, ..SeedRouteParams::default() }))
        }
        _ => match RouteRival::parse(name) {
            Some(rival) => RouteChoice::Rival(rival),
            None => RouteChoice::Fixed(number(name, "fixed:")?),
        },
    })
}

fn session_choice(name: &str) -> Option<SessionChoice> {
    Some(match name {
        "set" => SessionChoice::AsSet,
        "open" => SessionChoice::Law(SessionLawKind::Open),
        "flow" => SessionChoice::Law(SessionLawKind::Flow),
        "seed" => SessionChoice::Law(SessionLawKind::Seed(SeedSessionParams::default())),
        _ => match SessionRival::parse(name) {
            Some(rival) => SessionChoice::Rival(rival),
            None => match number(name, "told:") {
                Some(percent) => SessionChoice::Told { percent },
                None => SessionChoice::Law(SessionLawKind::Static(number(name, "static:")?)),
            },
        },
    })
}

impl fmt::Display for Laws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.routes {
            RouteChoice::AsSet => f.write_str("set")?,
            RouteChoice::Off => f.write_str("off")?,
            RouteChoice::Fixed(limit) => write!(f, "fixed:{limit}")?,
            RouteChoice::Rival(rival) => f.write_str(rival.name())?,
            RouteChoice::Law(RouteLawKind::Paired) => f.write_str("paired")?,
            RouteChoice::Law(RouteLawKind::Seed(_)) => f.write_str("seed")?,
        }
        f.write_str(if self.whole { "@whole+" } else { "+" })?;
        match self.sessions {
            SessionChoice::AsSet => f.write_str("set"),
            SessionChoice::Rival(rival) => f.write_str(rival.name()),
            SessionChoice::Told { percent } => write!(f, "told:{percent}"),
            SessionChoice::Law(SessionLawKind::Open) => f.write_str("open"),
            SessionChoice::Law(SessionLawKind::Flow) => f.write_str("flow"),
            SessionChoice::Law(SessionLawKind::Seed(_)) => f.write_str("seed"),
            SessionChoice::Law(SessionLawKind::Static(sessions)) => write!(f, "static:{sessions}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_may_be_compared_is_a_law_and_no_two_are_the_same() {
        let laws: Vec<Laws> =
            Laws::catalogue().iter().map(|(name, _)| Laws::parse(name).expect(name)).collect();
        for (number, law) in laws.iter().enumerate() {
            assert!(!laws[..number].contains(law), "{law}");
        }
    }

    #[test]
    fn every_name_is_read_back_as_it_is_shown() {
        for (alias, meaning, _) in ALIASES {
            assert_eq!(Laws::parse(alias), Laws::parse(meaning));
            assert_eq!(Laws::parse(alias).expect("an alias is a law").to_string(), *meaning);
        }
        for name in [
            "fixed:7+static:35",
            "paired@whole+open",
            "vegas@whole+sbac",
            "envoy-gradient+fixed-rate",
            "paired+told:90",
        ] {
            assert_eq!(Laws::parse(name).expect("a law").to_string(), name);
        }
    }

    #[test]
    fn what_is_no_law_is_told_what_may_be_written() {
        for name in ["", "vega+open", "paired", "paired+", "fixed:0+open", "fixed:x+open", "a+b+c"] {
            let fault = Laws::parse(name).expect_err(name);
            assert!(fault.contains("routes-only") && fault.contains("static:N"), "{fault}");
        }
    }
}
