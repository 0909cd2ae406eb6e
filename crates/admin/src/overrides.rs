//! What an operator overrides for a while, as JSON.

use crate::request::whole_or_none;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use suimon_gate::RouteMode;
use suimon_model::Limit;
use suimon_proxy::{OVERRIDE_SECONDS_MAX, Overridden, Override, OverrideOrder};

/// How long an override lasts if nothing is said, in seconds.
pub const OVERRIDE_SECONDS: u64 = 3600;
/// The most characters of a name.
pub const WHO_CHARS_MAX: usize = 64;
/// The most characters of a reason.
pub const WHY_CHARS_MAX: usize = 256;
/// The highest limit that a route is pinned to.
pub const PINNED_LIMIT_MAX: u32 = 1_000_000;
/// Who says so, if nobody is named.
const NOBODY: &str = "admin";

/// An override in force.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverrideState {
    /// Its number: they count up from 1.
    pub id: u64,
    /// `route`, `gate` or `node`.
    pub subject: String,
    /// The route's name, the node's address, or `session gate`.
    pub name: String,
    /// `limit`, `mode`, `open` or `drain`.
    pub set: String,
    /// What it is set to: `5`, `observe`, `enforce` or `true`.
    pub value: String,
    /// Who says so.
    pub who: String,
    /// Why.
    pub why: Option<String>,
    /// When it began, seconds since 1970.
    pub since: f64,
    /// When it ends, seconds since 1970.
    pub until: f64,
}

/// The overrides in force.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverrideAnswer {
    /// The site whose overrides they are; absent where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// By their numbers.
    pub overrides: Vec<OverrideState>,
}

/// What an operator says: one of `{"route": "GET /search", "limit": 5}`,
/// `{"route": "GET /search", "mode": "observe"}`, `{"gate": "open"}`,
/// `{"node": "http://127.0.0.1:8081", "drain": true}` and `{"release": 1}`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OverrideRequest {
    /// The route, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The route's limit.
    #[serde(default, deserialize_with = "whole_or_none", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// What is done on the route: `observe` or `enforce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `open`: nobody is held at the session gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The node, by its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `true`: the node gets nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<bool>,
    /// The override that ends now, by its number.
    #[serde(default, deserialize_with = "whole_or_none", skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    /// For how many seconds it holds, at most [`OVERRIDE_SECONDS_MAX`]. [default:
    /// [`OVERRIDE_SECONDS`]]
    #[serde(default, deserialize_with = "whole_or_none", skip_serializing_if = "Option::is_none")]
    pub for_s: Option<u64>,
    /// Who says so. [default: `admin`]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What an operator wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OverrideCommand {
    /// Something is to be overridden.
    Set(OverrideOrder),
    /// An override is to end, because this person says so.
    Release(u64, String),
}

impl OverrideRequest {
    /// Returns what it asks for, or a sentence that says what is wrong.
    pub(crate) fn command(self) -> Result<OverrideCommand, String> {
        let who = words("who", self.who, WHO_CHARS_MAX)?.unwrap_or_else(|| NOBODY.to_owned());
        let why = words("why", self.why, WHY_CHARS_MAX)?;
        let what = match (self.route, self.limit, self.mode, self.gate, self.node, self.drain, self.release) {
            (None, None, None, None, None, None, Some(id)) if self.for_s.is_none() => {
                return Ok(OverrideCommand::Release(id, who));
            }
            (Some(name), Some(limit), None, None, None, None, None) => {
                if !(1..=PINNED_LIMIT_MAX).contains(&limit) {
                    return Err(format!("limit must be from 1 to {PINNED_LIMIT_MAX}"));
                }
                Overridden::Route { name, mode: RouteMode::Fixed(Limit::of(limit)) }
            }
            (Some(name), None, Some(mode), None, None, None, None) => {
                let known = [RouteMode::Observe, RouteMode::Enforce].into_iter();
                let mut known = known.filter(|known| known.word() == mode);
                let mode = known.next().ok_or("mode must be \"observe\" or \"enforce\"")?;
                Overridden::Route { name, mode }
            }
            (None, None, None, Some(gate), None, None, None) => match gate.as_str() {
                "open" => Overridden::Gate,
                _ => return Err("gate must be \"open\"".to_owned()),
            },
            (None, None, None, None, Some(address), Some(true), None) => Overridden::Node { address },
            (None, None, None, None, Some(_), Some(false), None) => {
                return Err("drain must be true; to end it, release the override by its number".to_owned());
            }
            _ => {
                return Err(
                    "must be one of route with limit, route with mode, gate, node with drain, and release alone"
                        .to_owned(),
                );
            }
        };
        let seconds = self.for_s.unwrap_or(OVERRIDE_SECONDS);
        if !(1..=OVERRIDE_SECONDS_MAX).contains(&seconds) {
            return Err(format!("for_s must be from 1 to {OVERRIDE_SECONDS_MAX}"));
        }
        Ok(OverrideCommand::Set(OverrideOrder { what, life: Duration::from_secs(seconds), who, why }))
    }
}

/// Returns free text of one line, if there is any.
fn words(name: &str, text: Option<String>, most: usize) -> Result<Option<String>, String> {
    let Some(text) = text else { return Ok(None) };
    let text = text.trim();
    if text.chars().count() > most || text.chars().any(char::is_control) {
        return Err(format!("{name} must be one line of at most {most} characters"));
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

impl OverrideState {
    pub(crate) fn of(report: &Override) -> OverrideState {
        let (subject, name, set, value) = match &report.what {
            Overridden::Route { name, mode } => match mode.fixed() {
                Some(limit) => ("route", name.as_str(), "limit", limit.to_string()),
                None => ("route", name.as_str(), "mode", mode.word().to_owned()),
            },
            Overridden::Gate => ("gate", "session gate", "open", "true".to_owned()),
            Overridden::Node { address } => ("node", address.as_str(), "drain", "true".to_owned()),
        };
        OverrideState {
            id: report.id,
            subject: subject.to_owned(),
            name: name.to_owned(),
            set: set.to_owned(),
            value,
            who: report.who.clone(),
            why: report.why.clone(),
            since: report.since_unix,
            until: report.until_unix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<OverrideCommand, String> {
        serde_json::from_str::<OverrideRequest>(json).map_err(|error| error.to_string())?.command()
    }

    #[test]
    fn each_order_says_one_thing() {
        let set = |what, seconds, who: &str, why: Option<&str>| {
            let (who, why) = (who.to_owned(), why.map(str::to_owned));
            Ok(OverrideCommand::Set(OverrideOrder { what, life: Duration::from_secs(seconds), who, why }))
        };
        let route = |mode| Overridden::Route { name: "GET /a".into(), mode };
        assert_eq!(
            read(r#"{"route":"GET /a","limit":5,"for_s":60,"who":" anna ","why":"incident 12"}"#),
            set(route(RouteMode::Fixed(Limit::of(5))), 60, "anna", Some("incident 12"))
        );
        assert_eq!(
            read(r#"{"route":"GET /a","mode":"observe"}"#),
            set(route(RouteMode::Observe), 3600, "admin", None)
        );
        assert_eq!(read(r#"{"gate":"open"}"#), set(Overridden::Gate, 3600, "admin", None));
        let node = Overridden::Node { address: "http://a:1".into() };
        assert_eq!(read(r#"{"node":"http://a:1","drain":true}"#), set(node, 3600, "admin", None));
        assert_eq!(read(r#"{"release":3,"who":"b"}"#), Ok(OverrideCommand::Release(3, "b".into())));
    }

    #[test]
    fn what_says_nothing_or_several_things_is_refused_with_a_sentence() {
        let long = format!(r#"{{"gate":"open","who":"{}"}}"#, "a".repeat(WHO_CHARS_MAX + 1));
        for (json, why) in [
            ("{}", "must be one of"),
            (r#"{"route":"GET /a"}"#, "must be one of"),
            (r#"{"route":"GET /a","limit":5,"gate":"open"}"#, "must be one of"),
            (r#"{"release":1,"gate":"open"}"#, "must be one of"),
            (r#"{"release":1,"for_s":5}"#, "must be one of"),
            (r#"{"route":"GET /a","limit":0}"#, "limit must be from 1"),
            (r#"{"route":"GET /a","mode":"off"}"#, "mode must be"),
            (r#"{"gate":"shut"}"#, "gate must be"),
            (r#"{"node":"http://a:1","drain":false}"#, "drain must be true"),
            (r#"{"gate":"open","for_s":0}"#, "for_s must be from 1 to 86400"),
            (r#"{"gate":"open","for_s":86401}"#, "for_s must be from 1 to 86400"),
            (r#"{"gate":"open","who":"a\nb"}"#, "who must be one line"),
            (&long, "who must be one line of at most 64"),
            (r#"{"gate":"open","till":5}"#, "unknown field"),
        ] {
            let told = read(json).expect_err(json);
            assert!(told.contains(why), "{json}: {told}");
        }
    }
}
