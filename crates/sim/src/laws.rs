//! Which laws the gate uses: those of the scenario, or others to compare them with.

use crate::others::{OtherRoutes, OtherSessions};
use std::fmt;
use std::sync::Arc;
use suimon_control::{PaperRouteParams, RouteLawKind, SessionLawKind};
use suimon_model::Choice;

/// The laws of a run, by a name of the form `ROUTES+SESSIONS`.
#[derive(Clone, PartialEq, Debug)]
pub struct Laws {
    /// How limits are found.
    pub routes: RouteChoice,
    /// Whether the whole application has one limit instead of one per route.
    pub whole: bool,
    /// How sessions are admitted.
    pub sessions: SessionChoice,
}

/// How limits are found.
#[derive(Clone, PartialEq, Debug)]
pub enum RouteChoice {
    /// As the scenario says.
    AsSet,
    /// No limit at all.
    Off,
    /// The same fixed limit everywhere.
    Fixed(u32),
    /// A law of the gateway.
    Law(RouteLawKind),
    /// An external law.
    Other(Arc<dyn OtherRoutes>),
}

/// How sessions are admitted.
#[derive(Clone, PartialEq, Debug)]
pub enum SessionChoice {
    /// As the scenario says.
    AsSet,
    /// A law of the gateway.
    Law(SessionLawKind),
    /// An external law.
    Other(Arc<dyn OtherSessions>),
}

impl Laws {
    /// The laws of the scenario.
    pub const AS_SET: Laws =
        Laws { routes: RouteChoice::AsSet, whole: false, sessions: SessionChoice::AsSet };

    /// Returns the laws that can be compared: names and descriptions.
    pub fn catalogue() -> Vec<(String, String)> {
        ALIASES.iter().map(|(name, _, words)| ((*name).to_owned(), (*words).to_owned())).collect()
    }

    /// Returns the laws that `name` stands for.
    ///
    /// # Errors
    /// Returns a sentence that lists the allowed names.
    pub fn parse(name: &str) -> Result<Laws, String> {
        Laws::parse_among(name, &|_| None, &|_| None).ok_or_else(|| unknown(name, &how_written()))
    }

    /// As [`Laws::parse`]; names that are not the gateway's laws are looked up among external laws.
    pub fn parse_among(
        name: &str,
        routes: &dyn Fn(&str) -> Option<Arc<dyn OtherRoutes>>,
        sessions: &dyn Fn(&str) -> Option<Arc<dyn OtherSessions>>,
    ) -> Option<Laws> {
        let alias = ALIASES.iter().find(|(alias, _, _)| *alias == name).map(|(_, meaning, _)| *meaning);
        let (first, second) = alias.unwrap_or(name).split_once('+')?;
        let (first, whole) = first.strip_suffix("@whole").map_or((first, false), |first| (first, true));
        let found = |word: &str| routes(word).map(RouteChoice::Other);
        let routes = route_choice(first).or_else(|| found(first))?;
        let found = |word: &str| sessions(word).map(SessionChoice::Other);
        let sessions = session_choice(second).or_else(|| found(second))?;
        Some(Laws { routes, whole, sessions })
    }
}

/// Returns how laws without an alias are written.
pub fn how_written() -> String {
    let words = |choices: &[Choice], less: &str| {
        let words = choices.iter().map(|choice| choice.word).filter(|word| *word != less);
        words.collect::<Vec<_>>().join(", ")
    };
    format!(
        "ROUTES+SESSIONS with ROUTES one of set, off, {}, fixed:N (with @whole behind it: one limit for the whole application) \
         and SESSIONS one of set, {}, static:N",
        words(RouteLawKind::CHOICES, ""),
        words(SessionLawKind::CHOICES, "static")
    )
}

/// Aliases for frequent comparisons: name, the laws it stands for, and a description.
pub const ALIASES: &[(&str, &str, &str)] = &[
    ("suimon", "set+set", "the laws of the scenario, which are Suimon's unless it says otherwise"),
    ("none", "off+open", "no control at all"),
    ("routes-only", "paired+open", "Suimon's route gates alone"),
    ("sessions-only", "off+flow", "Suimon's session gate alone"),
    ("paper", "paper+paper", "the paper's rules"),
];

/// Returns the message for a name that is not a law. `how_written` tells how laws without an alias
/// are written.
pub fn unknown(name: &str, how_written: &str) -> String {
    let aliases: Vec<&str> = ALIASES.iter().map(|(alias, _, _)| *alias).collect();
    format!("{name:?} is no law: write one of {}, or {how_written}", aliases.join(", "))
}

fn number(text: &str, prefix: &str) -> Option<u32> {
    text.strip_prefix(prefix)?.parse().ok().filter(|n| *n > 0)
}

fn route_choice(name: &str) -> Option<RouteChoice> {
    Some(match name {
        "set" => RouteChoice::AsSet,
        "off" => RouteChoice::Off,
        _ => match RouteLawKind::of(name) {
            // The lowest of the plausible initial limits: with 5 and 10 it loses more.
            Some(RouteLawKind::Paper(params)) => {
                RouteChoice::Law(RouteLawKind::Paper(PaperRouteParams { initial: 2, ..params }))
            }
            Some(law) => RouteChoice::Law(law),
            None => RouteChoice::Fixed(number(name, "fixed:")?),
        },
    })
}

fn session_choice(name: &str) -> Option<SessionChoice> {
    Some(match name {
        "set" => SessionChoice::AsSet,
        _ => match SessionLawKind::of(name) {
            // It needs a number.
            Some(SessionLawKind::Static(_)) => return None,
            Some(law) => SessionChoice::Law(law),
            None => SessionChoice::Law(SessionLawKind::Static(number(name, "static:")?)),
        },
    })
}

impl fmt::Display for Laws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.routes {
            RouteChoice::AsSet => f.write_str("set")?,
            RouteChoice::Off => f.write_str("off")?,
            RouteChoice::Fixed(limit) => write!(f, "fixed:{limit}")?,
            RouteChoice::Other(law) => f.write_str(&law.written())?,
            RouteChoice::Law(law) => f.write_str(law.word())?,
        }
        f.write_str(if self.whole { "@whole+" } else { "+" })?;
        match &self.sessions {
            SessionChoice::AsSet => f.write_str("set"),
            SessionChoice::Other(law) => f.write_str(&law.written()),
            SessionChoice::Law(SessionLawKind::Static(sessions)) => write!(f, "static:{sessions}"),
            SessionChoice::Law(law) => f.write_str(law.word()),
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
        for name in ["fixed:7+static:35", "paired@whole+open"] {
            assert_eq!(Laws::parse(name).expect("a law").to_string(), name);
        }
    }

    #[test]
    fn what_is_no_law_is_told_what_may_be_written() {
        for name in ["", "vegas+open", "paired", "paired+", "fixed:0+open", "fixed:x+open", "a+b+c"] {
            let fault = Laws::parse(name).expect_err(name);
            assert!(fault.contains("routes-only") && fault.contains("static:N"), "{fault}");
        }
    }
}
