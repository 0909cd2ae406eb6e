//! What visitors do, as journeys of fixed steps.
//!
//! For each place (the beginning, or the last requested route) the gate knows which route comes
//! next, and how often. A few walks through that table stand for all sessions. They are not random:
//! each place hands out its next routes in turn, always the one that is furthest behind its share
//! (a rotor walk). So a dozen walks visit each route about as often as the table says, and are the
//! same every time. A dozen random walks would be off by a third.

use std::collections::{BTreeMap, BTreeSet};
use suimon_admin::{Learned, LearnedKind, LearnedTransitions};

/// Walks that stand for the sessions of a kind. Equal walks become one journey.
const WALKS: u32 = 12;
/// Most journeys of a file, all kinds together. With more kinds than this, each kind has one.
const JOURNEYS_MAX: u32 = 96;
/// Most steps of a walk: as many as the gate remembers of a session.
const STEPS_MAX: usize = 64;

/// What one kind of visitor does.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Journey {
    /// The kind of session.
    pub(super) kind: String,
    /// Share of all newcomers, 0 to 1.
    pub(super) share: f64,
    /// Routes in the order of the requests; at least one.
    pub(super) steps: Vec<String>,
}

/// A request for each route: a method, and a path that belongs to the route.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Names {
    asked: BTreeMap<String, (String, String)>,
}

impl Names {
    /// Returns a request for each route, no two alike.
    pub(super) fn new(learned: &Learned) -> Self {
        let mut taken = BTreeSet::new();
        let mut asked = BTreeMap::new();
        for route in &learned.routes {
            let (method, path) = request(&route.name);
            let numbered = (2..).map(|number| format!("{path}-{number}"));
            let free = std::iter::once(path.clone()).chain(numbered);
            let path = free
                .into_iter()
                .find(|path| taken.insert((method.clone(), path.clone())))
                .expect("numbers do not end");
            asked.insert(route.name.clone(), (method, path));
        }
        Names { asked }
    }

    /// Returns method and path of a route.
    pub(super) fn of(&self, route: &str) -> (&str, &str) {
        self.asked.get(route).map_or(("GET", "/"), |(method, path)| (method, path))
    }
}

/// Returns a request that belongs to a route: `GET /items/1` for `GET /items/{id}`.
fn request(name: &str) -> (String, String) {
    let (method, path) =
        name.split_once(' ').filter(|(_, path)| path.starts_with('/')).unwrap_or(("GET", ""));
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let method = if is_method && method != "CONNECT" { method } else { "GET" };
    let segment = |segment: &str| match segment {
        "*" => "1".to_owned(),
        _ if segment.starts_with('{') => "1".to_owned(),
        _ => segment
            .chars()
            .map(|c| if c.is_ascii_graphic() && !"{}#?*\\".contains(c) { c } else { '-' })
            .collect(),
    };
    let path = match path {
        // Requests of routes beyond those that the gateway distinguishes.
        "" => format!("/{}", segment(&name.replace([' ', '/'], "-"))),
        _ => path.split('/').map(segment).collect::<Vec<_>>().join("/"),
    };
    (method.to_owned(), path)
}

/// Returns the journeys of all kinds, the most frequent ones of a kind first.
pub(super) fn journeys(learned: &Learned) -> Vec<Journey> {
    let kinds: Vec<&LearnedKind> = learned.kinds.iter().filter(|kind| kind.ended > 0).collect();
    let walks = WALKS.min(JOURNEYS_MAX / (kinds.len() as u32).max(1)).max(1);
    let all: f64 = kinds.iter().map(|kind| newcomers(learned, kind)).sum();
    let mut journeys = vec![];
    for kind in kinds {
        let share = newcomers(learned, kind) / all.max(f64::MIN_POSITIVE);
        let mut counted: Vec<(Vec<String>, u32)> = vec![];
        for steps in walk(kind, walks) {
            match counted.iter_mut().find(|(known, _)| *known == steps) {
                Some((_, count)) => *count += 1,
                None => counted.push((steps, 1)),
            }
        }
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let walked: u32 = counted.iter().map(|(_, count)| count).sum();
        journeys.extend(counted.into_iter().filter(|_| share > 0.0).map(|(steps, count)| Journey {
            kind: kind.name.clone(),
            share: share * f64::from(count) / f64::from(walked),
            steps,
        }));
    }
    journeys
}

/// Returns the newcomers of a kind per second: the recent rate, or else ended sessions ÷ uptime.
pub(super) fn newcomers(learned: &Learned, kind: &LearnedKind) -> f64 {
    let counted = kind.newcomers_per_second.filter(|rate| *rate > 0.0);
    counted.unwrap_or(kind.ended as f64 / learned.uptime_seconds.max(1.0))
}

/// Returns the visits of a mean session in these journeys, by route.
pub(super) fn visits(journeys: &[Journey]) -> BTreeMap<String, f64> {
    let mut visits = BTreeMap::new();
    for journey in journeys {
        for route in &journey.steps {
            *visits.entry(route.clone()).or_insert(0.0) += journey.share;
        }
    }
    visits
}

/// Hands out the next routes of one place in turn.
struct Rotor<'a> {
    transitions: &'a LearnedTransitions,
    /// How often each was handed out: the routes, then the end of the session.
    given: Vec<u32>,
}

impl<'a> Rotor<'a> {
    fn new(transitions: &'a LearnedTransitions) -> Self {
        Rotor { transitions, given: vec![0; transitions.next.len() + 1] }
    }

    /// Returns the route whose turn it is, or `None` for the end of the session. No session ends
    /// before its first request.
    fn turn(&mut self) -> Option<&'a str> {
        let first = self.transitions.after.is_none();
        let ended_share = if first { 0.0 } else { self.transitions.ended_share };
        let shares: Vec<f64> =
            self.transitions.next.iter().map(|next| next.share).chain(std::iter::once(ended_share)).collect();
        let turns = f64::from(self.given.iter().sum::<u32>() + 1);
        let behind = |index: usize| shares[index] * turns - f64::from(self.given[index]);
        let mut chosen = shares.len() - 1;
        for index in (0..shares.len()).filter(|index| shares[*index] > 0.0) {
            if shares[chosen] <= 0.0 || behind(index) > behind(chosen) + 1e-9 {
                chosen = index;
            }
        }
        self.given[chosen] += 1;
        self.transitions.next.get(chosen).map(|next| next.route.as_str())
    }
}

/// Returns `walks` walks through the table of a kind, without empty ones.
fn walk(kind: &LearnedKind, walks: u32) -> Vec<Vec<String>> {
    let mut rotors: BTreeMap<Option<&str>, Rotor<'_>> =
        kind.transitions.iter().map(|from| (from.after.as_deref(), Rotor::new(from))).collect();
    let mut one = || {
        let mut steps: Vec<String> = vec![];
        let mut at = None;
        while steps.len() < STEPS_MAX {
            let Some(next) = rotors.get_mut(&at).and_then(Rotor::turn) else { break };
            steps.push(next.to_owned());
            at = Some(next);
        }
        steps
    };
    let walked: Vec<Vec<String>> = (0..walks).map(|_| one()).collect();
    walked.into_iter().filter(|steps| !steps.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_admin::LearnedNext;

    fn place(after: Option<&str>, next: &[(&str, f64)]) -> LearnedTransitions {
        let next: Vec<LearnedNext> = next
            .iter()
            .map(|(route, share)| LearnedNext { route: (*route).to_owned(), share: *share })
            .collect();
        let ended_share = 1.0 - next.iter().map(|next| next.share).sum::<f64>();
        LearnedTransitions { after: after.map(str::to_owned), seen: 100, next, ended_share }
    }

    fn kind(transitions: Vec<LearnedTransitions>) -> LearnedKind {
        LearnedKind {
            name: "visit".to_owned(),
            ended: 100,
            newcomers_per_second: Some(2.0),
            transitions,
            ..LearnedKind::default()
        }
    }

    fn learned(kinds: Vec<LearnedKind>) -> Learned {
        Learned { kinds, uptime_seconds: 100.0, ..Learned::default() }
    }

    #[test]
    fn a_fixed_path_comes_back_as_it_was() {
        // Three pages of a list, then a search: the table only knows "two in three go on to the
        // next page".
        let kind = kind(vec![
            place(None, &[("POST /login", 1.0)]),
            place(Some("POST /login"), &[("GET /browse", 1.0)]),
            place(Some("GET /browse"), &[("GET /browse", 2.0 / 3.0), ("GET /search", 1.0 / 3.0)]),
            place(Some("GET /search"), &[]),
        ]);
        let journeys = journeys(&learned(vec![kind]));
        let visits = visits(&journeys);
        assert!((visits["GET /browse"] - 3.0).abs() < 0.2, "{visits:?}");
        assert!((visits["GET /search"] - 1.0).abs() < 1e-9 && (visits["POST /login"] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_dozen_walks_visit_as_often_as_the_table_says() {
        // One in four visitors leaves after any page; a tenth buys.
        let next = [("GET /a", 0.65), ("POST /buy", 0.1)];
        let kind = kind(vec![
            place(None, &[("GET /a", 1.0)]),
            place(Some("GET /a"), &next),
            place(Some("POST /buy"), &[]),
        ]);
        let visits = visits(&journeys(&learned(vec![kind])));
        assert!((visits["GET /a"] - 1.0 / 0.35).abs() < 0.3, "{visits:?}");
        assert!((visits["POST /buy"] - 0.1 / 0.35).abs() < 0.1, "{visits:?}");
    }

    #[test]
    fn what_never_ends_is_cut_and_kinds_weigh_as_they_come() {
        let endless = kind(vec![place(None, &[("GET /a", 1.0)]), place(Some("GET /a"), &[("GET /a", 1.0)])]);
        let mut rare = kind(vec![place(None, &[("GET /b", 1.0)]), place(Some("GET /b"), &[])]);
        (rare.name, rare.newcomers_per_second) = ("rare".to_owned(), Some(0.5));
        let journeys = journeys(&learned(vec![endless, rare]));
        let shares: Vec<(usize, u32)> =
            journeys.iter().map(|one| (one.steps.len(), (one.share * 1000.0).round() as u32)).collect();
        assert_eq!(shares, [(STEPS_MAX, 800), (1, 200)]);
    }

    #[test]
    fn every_route_can_be_asked_for_and_none_is_mistaken_for_another() {
        let names =
            ["other", "GET /items/{id}", "GET /items/1", "* /files/*", "POST /a b{c", "GET /", "GET /?s&p=1"];
        let route =
            |name: &&str| suimon_admin::LearnedRoute { name: (*name).to_owned(), ..Default::default() };
        let names_of =
            Names::new(&Learned { routes: names.iter().map(route).collect(), ..Learned::default() });
        let asked = names.map(|name| names_of.of(name));
        assert_eq!(
            asked,
            [
                ("GET", "/other"),
                ("GET", "/items/1"),
                ("GET", "/items/1-2"),
                ("GET", "/files/1"),
                ("POST", "/a-b-c"),
                ("GET", "/"),
                ("GET", "/-s&p=1")
            ]
        );
    }
}
