//! What an operator has overridden while the gateway runs: each with a name, a reason and an end.
//!
//! One thing has one override: a later one of the same thing takes the place of the earlier. The
//! table says what holds now; who owns it puts that in force.

use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{error, fmt};
use suimon_gate::RouteMode;
use suimon_model::Limit;

/// The most overrides at once.
pub const OVERRIDES_MAX: usize = 256;
/// The longest that one lasts, in seconds.
pub const OVERRIDE_SECONDS_MAX: u64 = 24 * 3600;

/// What is overridden.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Overridden {
    /// What the gate does on the route of this name.
    Route {
        /// Its name, as the state has it.
        name: String,
        /// What it does there meanwhile.
        mode: RouteMode,
    },
    /// Nobody is held at the session gate, whatever the kind of session.
    Gate,
    /// A node gets nothing new; what has begun there goes on there.
    Node {
        /// Its address, as the state has it.
        address: String,
    },
}

/// An override that an operator wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverrideOrder {
    /// What is overridden.
    pub what: Overridden,
    /// For how long.
    pub life: Duration,
    /// Who says so.
    pub who: String,
    /// Why.
    pub why: Option<String>,
}

/// An override in force.
#[derive(Clone, PartialEq, Debug)]
pub struct Override {
    /// Its number: they count up from 1.
    pub id: u64,
    /// What is overridden.
    pub what: Overridden,
    /// Who says so.
    pub who: String,
    /// Why.
    pub why: Option<String>,
    /// When it began, seconds since 1970.
    pub since_unix: f64,
    /// When it ends, seconds since 1970.
    pub until_unix: f64,
    /// When it ends, by the clock that is never set.
    ends: Instant,
}

/// Why nothing was overridden, or released.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OverrideError {
    /// There is no route of that name.
    NoSuchRoute(String),
    /// There is no node of that address; those there are.
    NoSuchNode(String, Vec<String>),
    /// There is no override of that number.
    NoSuch(u64),
    /// The route is several to the gate, so that one number says nothing.
    Several(String),
    /// No other node takes new requests.
    LastNode(String),
    /// There are [`OVERRIDES_MAX`] already.
    Full,
    /// Another process takes over, or has.
    HandedOver,
}

/// What the file begins with.
const WHAT: &str = "suimon overrides, 1";

/// Every override, by its number.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    all: Vec<Override>,
    last: u64,
}

impl Overridden {
    /// Returns whether both are about the same thing.
    fn is_about(&self, other: &Overridden) -> bool {
        match (self, other) {
            (Overridden::Route { name: one, .. }, Overridden::Route { name: other, .. })
            | (Overridden::Node { address: one }, Overridden::Node { address: other }) => one == other,
            (Overridden::Gate, Overridden::Gate) => true,
            _ => false,
        }
    }
}

impl Overrides {
    /// Takes one in, and returns it with the earlier one whose place it takes.
    pub(crate) fn set(
        &mut self,
        now: Instant,
        wall: SystemTime,
        order: OverrideOrder,
    ) -> Result<(Override, Option<Override>), OverrideError> {
        let OverrideOrder { what, life, who, why } = order;
        let earlier = self.all.iter().position(|it| it.what.is_about(&what));
        if earlier.is_none() && self.all.len() >= OVERRIDES_MAX {
            return Err(OverrideError::Full);
        }
        let earlier = earlier.map(|at| self.all.remove(at));
        self.last += 1;
        let life = life.min(Duration::from_secs(OVERRIDE_SECONDS_MAX));
        let since_unix = wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let until_unix = since_unix + life.as_secs_f64();
        let own = Override { id: self.last, what, who, why, since_unix, until_unix, ends: now + life };
        self.all.push(own.clone());
        Ok((own, earlier))
    }

    /// Takes one out.
    pub(crate) fn release(&mut self, id: u64) -> Result<Override, OverrideError> {
        let at = self.all.iter().position(|it| it.id == id).ok_or(OverrideError::NoSuch(id))?;
        Ok(self.all.remove(at))
    }

    /// Takes out those whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Override> {
        self.take_out(|it| it.ends <= now)
    }

    /// Takes out those that `is_meant` names.
    pub(crate) fn take_out(&mut self, is_meant: impl Fn(&Override) -> bool) -> Vec<Override> {
        let (out, left) = std::mem::take(&mut self.all).into_iter().partition(is_meant);
        self.all = left;
        out
    }

    /// Returns them as a file has them, which is that of the process `pid`.
    pub(crate) fn to_json(&self, pid: u32) -> String {
        let one = |it: &Override| {
            let (subject, name, value) = match &it.what {
                Overridden::Route { name, mode } => {
                    let value = mode.fixed().map_or(json!(mode.word()), |limit| json!(limit));
                    ("route", name.as_str(), value)
                }
                Overridden::Gate => ("gate", "", Value::Null),
                Overridden::Node { address } => ("node", address.as_str(), Value::Null),
            };
            json!({
                "id": it.id, "subject": subject, "name": name, "value": value, "who": it.who, "why": it.why,
                "since": it.since_unix, "until": it.until_unix,
            })
        };
        let all: Vec<_> = self.all.iter().map(one).collect();
        format!("{:#}\n", json!({ "what": WHAT, "process": pid, "last": self.last, "overrides": all }))
    }

    /// Returns those of a file whose time is not over; `None`: that is no such file.
    pub(crate) fn of_json(text: &str, now: Instant, wall: SystemTime) -> Option<Overrides> {
        let file: Value = serde_json::from_str(text).ok().filter(|file: &Value| file["what"] == WHAT)?;
        let now_unix = wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let one = |it: &Value| {
            let text = |key: &str| it[key].as_str().map(str::to_owned);
            let (since_unix, until_unix) = (it["since"].as_f64()?, it["until"].as_f64()?);
            let what = match it["subject"].as_str()? {
                "route" => {
                    let limit = it["value"].as_u64().and_then(|limit| u32::try_from(limit).ok());
                    let mode = limit.map(|limit| RouteMode::Fixed(Limit::of(limit)));
                    let words = [RouteMode::Observe, RouteMode::Enforce];
                    let mode = mode.or(words.into_iter().find(|mode| it["value"] == mode.word()))?;
                    Overridden::Route { name: text("name")?, mode }
                }
                "gate" => Overridden::Gate,
                "node" => Overridden::Node { address: text("name")? },
                _ => return None,
            };
            // A clock that was set back prolongs nothing beyond what one may last.
            let left = (until_unix - now_unix).clamp(0.0, OVERRIDE_SECONDS_MAX as f64);
            let (id, ends) = (it["id"].as_u64()?, now + Duration::from_secs_f64(left));
            let own =
                Override { id, what, who: text("who")?, why: text("why"), since_unix, until_unix, ends };
            Some(own).filter(|_| left > 0.0)
        };
        let all = file["overrides"].as_array()?.iter().take(OVERRIDES_MAX).filter_map(one).collect();
        Some(Overrides { all, last: file["last"].as_u64()? })
    }

    /// Returns all of them.
    pub(crate) fn all(&self) -> &[Override] {
        &self.all
    }

    /// Returns what the gate is to do on which routes, by name.
    pub(crate) fn modes(&self) -> Vec<(String, RouteMode)> {
        let mode = |it: &Override| match &it.what {
            Overridden::Route { name, mode } => Some((name.clone(), *mode)),
            Overridden::Gate | Overridden::Node { .. } => None,
        };
        self.all.iter().filter_map(mode).collect()
    }

    /// Returns whether nobody is to be held at the session gate.
    pub(crate) fn opens_gate(&self) -> bool {
        self.all.iter().any(|it| it.what == Overridden::Gate)
    }

    /// Returns the addresses of nodes that are to get nothing new.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let address = |it: &Override| match &it.what {
            Overridden::Node { address } => Some(address.clone()),
            Overridden::Route { .. } | Overridden::Gate => None,
        };
        self.all.iter().filter_map(address).collect()
    }
}

impl fmt::Display for Overridden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Overridden::Route { name, mode } => match mode.fixed() {
                Some(limit) => write!(f, "route {name}: limit {limit}"),
                None => write!(f, "route {name}: {}", mode.word()),
            },
            Overridden::Gate => f.write_str("session gate: open"),
            Overridden::Node { address } => write!(f, "node {address}: drained"),
        }
    }
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverrideError::NoSuchRoute(name) => {
                write!(f, "there is no route \"{name}\"; `suimon status` lists the routes there are")
            }
            OverrideError::NoSuchNode(address, others) if others.is_empty() => {
                write!(f, "there is no node {address}, and none that can be drained")
            }
            OverrideError::NoSuchNode(address, others) => {
                write!(f, "there is no node {address}; there are: {}", others.join(", "))
            }
            OverrideError::NoSuch(id) => {
                write!(
                    f,
                    "there is no override {id}; it may have ended; `suimon override list` shows those there are"
                )
            }
            OverrideError::Several(name) => write!(
                f,
                "\"{name}\" stands for all requests without a route of their own, which share no limit; observe or enforce it, or declare a route"
            ),
            OverrideError::LastNode(address) => write!(
                f,
                "{address} is the last node that takes new requests; release another one first, or end the gateway"
            ),
            OverrideError::Full => {
                write!(f, "there are {OVERRIDES_MAX} overrides already; release some first")
            }
            OverrideError::HandedOver => {
                f.write_str("another process is taking over from this gateway, and nothing was changed; try again in some seconds")
            }
        }
    }
}

impl error::Error for OverrideError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(what: Overridden, seconds: u64) -> OverrideOrder {
        OverrideOrder { what, life: Duration::from_secs(seconds), who: "anna".into(), why: None }
    }

    fn route(name: &str, mode: RouteMode) -> Overridden {
        Overridden::Route { name: name.into(), mode }
    }

    #[test]
    fn each_ends_at_its_time_and_a_later_one_of_the_same_thing_takes_its_place() {
        let (mut overrides, now) = (Overrides::default(), Instant::now());
        let mut set = |what, seconds| overrides.set(now, UNIX_EPOCH, order(what, seconds)).unwrap();
        set(route("GET /a", RouteMode::Observe), 60);
        set(route("GET /b", RouteMode::Observe), 10);
        set(Overridden::Gate, 30);
        let (own, earlier) = set(route("GET /a", RouteMode::Enforce), 20);
        assert_eq!((own.id, earlier.map(|it| it.id)), (4, Some(1)));
        let modes = [("GET /b".to_owned(), RouteMode::Observe), ("GET /a".to_owned(), RouteMode::Enforce)];
        assert_eq!(overrides.modes(), modes);
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!(overrides.expire(at(9)).is_empty());
        assert_eq!(overrides.expire(at(20)).len(), 2);
        assert!(overrides.opens_gate(), "it has another ten seconds");
        assert_eq!(overrides.release(4), Err(OverrideError::NoSuch(4)));
        assert_eq!(overrides.release(3).map(|it| it.id), Ok(3));
        assert!(overrides.all().is_empty());
    }

    #[test]
    fn a_file_keeps_those_whose_time_is_not_over() {
        let (mut overrides, now) = (Overrides::default(), Instant::now());
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let fixed = RouteMode::Fixed(Limit::of(5));
        let wanted = [
            route("GET /a", fixed),
            route("GET /b", RouteMode::Observe),
            Overridden::Gate,
            Overridden::Node { address: "http://a:1".into() },
        ];
        for what in wanted.clone() {
            overrides.set(now, at(1000), order(what, 60)).unwrap();
        }
        overrides.set(now, at(1000), order(route("GET /c", RouteMode::Enforce), 10)).unwrap();
        let text = overrides.to_json(7);
        let mut read = Overrides::of_json(&text, now, at(1020)).unwrap();
        assert_eq!(read.all().iter().map(|it| it.what.clone()).collect::<Vec<_>>(), wanted);
        assert!(read.expire(now + Duration::from_secs(39)).is_empty());
        assert_eq!(read.expire(now + Duration::from_secs(40)).len(), 4);
        let (next, _) = read.set(now, at(1100), order(Overridden::Gate, 1)).unwrap();
        assert_eq!(next.id, 6, "no number is given twice");
        for wrong in ["", "{}", "[]", &text.replace("overrides, 1", "overrides, 2"), &text[..text.len() / 2]]
        {
            assert!(Overrides::of_json(wrong, now, at(1000)).is_none(), "{wrong}");
        }
    }

    #[test]
    fn none_lasts_longer_than_a_day_and_there_are_no_more_than_so_many() {
        let (mut overrides, now) = (Overrides::default(), Instant::now());
        for index in 0..OVERRIDES_MAX {
            let node = Overridden::Node { address: index.to_string() };
            let (own, _) = overrides.set(now, UNIX_EPOCH, order(node, u64::MAX)).unwrap();
            assert!((own.until_unix - 86400.0).abs() < 1e-6, "{own:?}");
        }
        let more = order(Overridden::Gate, 1);
        assert_eq!(overrides.set(now, UNIX_EPOCH, more).unwrap_err(), OverrideError::Full);
        let again = order(Overridden::Node { address: "7".into() }, 1);
        assert!(overrides.set(now, UNIX_EPOCH, again).is_ok(), "it takes the place of another");
        assert_eq!(overrides.expire(now + Duration::from_secs(86400)).len(), OVERRIDES_MAX);
    }
}
