//! What the gateway has learned, by the names of routes and kinds of session: how it outlives the
//! process.
//!
//! | file | holds |
//! |---|---|
//! | `remembered/text` | the knowledge as text, and back |
//! | `remembered/file` | the file it is in: its first line, its checksum, and what becomes of one that cannot be used |

mod file;
mod text;

pub use file::{LoadResult, WriteResult, find, write};

use std::collections::{BTreeMap, HashMap};
use suimon_gate::{Knowledge, KnownKind, KnownRoute, VisitsAfter, VisitsKnowledge};
use suimon_model::RouteId;

/// The most routes of which anything is remembered.
const ROUTES_MAX: usize = 4096;
/// Requests that a route found from traffic must have had to be worth remembering, ...
const CAME_MIN: u64 = 8;
/// ... and how long it is remembered after its last one, seconds.
const ASKED_WITHIN: u64 = 7 * 24 * 3600;

/// What a gateway has learned, and whose it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Remembered {
    /// The version of the program that wrote it.
    pub program: String,
    /// When the gateway that wrote it started, nanoseconds since 1970.
    pub started: u64,
    /// The application's nodes that stay.
    pub nodes: Vec<String>,
    /// How many nodes, those that come and go among them, limits and capacities are those of; `None`: it is
    /// not known.
    pub nodes_up: Option<u32>,
    /// When it was written, seconds since 1970.
    pub written: u64,
    /// By the name of a pool, how many resident workers were found best.
    pub workers: BTreeMap<String, u32>,
    /// What is known of routes.
    pub routes: Vec<RememberedRoute>,
    /// What is known of kinds of session.
    pub kinds: Vec<RememberedKind>,
    /// Its routes and kinds are numbered as in the lists above.
    pub visits: VisitsKnowledge,
}

/// One route.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RememberedRoute {
    /// `GET /items/{id}`, or `other`.
    pub name: String,
    /// When its last request came, as far as is known; seconds since 1970.
    pub asked: u64,
    /// What is known of it.
    pub known: KnownRoute,
}

/// One kind of session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RememberedKind {
    /// As in the settings.
    pub name: String,
    /// What is known of it.
    pub known: KnownKind,
}

impl Remembered {
    /// Returns whether it is of a site that has one of these nodes. Where none stays there is none to tell
    /// sites apart by.
    pub fn is_of(&self, nodes: &[String]) -> bool {
        self.nodes.iter().any(|node| nodes.contains(node)) || (self.nodes.is_empty() && nodes.is_empty())
    }

    /// Returns the names of the routes that were asked for not too long ago, in the order in which
    /// they were known.
    pub fn routes_asked_for(&self, now: u64) -> impl Iterator<Item = &str> {
        let is_recent = move |route: &&RememberedRoute| now.saturating_sub(route.asked) <= ASKED_WITHIN;
        self.routes.iter().filter(is_recent).map(|route| route.name.as_str())
    }

    /// Returns what is known of these routes and kinds, numbered as they are.
    pub fn knowledge_of(&self, routes: &[(String, RouteId)], kinds: &[String]) -> Knowledge {
        let ids: HashMap<&str, RouteId> = routes.iter().map(|(name, id)| (name.as_str(), *id)).collect();
        let renumbered: Vec<Option<RouteId>> =
            self.routes.iter().map(|route| ids.get(route.name.as_str()).copied()).collect();
        let count = ids.values().map(|id| id.index() + 1).max().unwrap_or(0);
        let mut known = Knowledge { routes: vec![KnownRoute::default(); count], ..Knowledge::default() };
        known.visits.routes = vec![Default::default(); count];
        known.visits.thinks = self.visits.thinks.clone();
        for (index, id) in renumbered.iter().enumerate() {
            let Some(id) = id else { continue };
            known.routes[id.index()] = self.routes[index].known.clone();
            known.visits.routes[id.index()] = self.visits.routes.get(index).copied().unwrap_or_default();
        }
        for name in kinds {
            let index = self.kinds.iter().position(|kind| kind.name == *name);
            let places = index.and_then(|index| self.visits.kinds.get(index));
            known.kinds.push(index.map_or_else(KnownKind::default, |index| self.kinds[index].known.clone()));
            known.visits.kinds.push(places.map_or_else(Vec::new, |places| renumber(places, &renumbered)));
        }
        known
    }
}

/// Makes what a gate knows into what is worth remembering, again and again.
#[derive(Clone, Debug, Default)]
pub struct DemandMemory {
    /// By name.
    asked: HashMap<String, RouteDemand>,
}

/// The requests of a route so far.
#[derive(Clone, Copy, Debug, Default)]
struct RouteDemand {
    /// Requests at the last look.
    came: u64,
    /// When the last one was seen to have come.
    last: u64,
    /// Whether it has had enough requests to be worth remembering, now or in another run.
    is_proved: bool,
}

impl DemandMemory {
    /// Returns the memory of a gateway that begins with `remembered`.
    pub fn new(remembered: Option<&Remembered>) -> Self {
        let routes = remembered.map_or(&[][..], |remembered| &remembered.routes);
        let asked = |route: &RememberedRoute| RouteDemand { came: 0, last: route.asked, is_proved: true };
        DemandMemory { asked: routes.iter().map(|route| (route.name.clone(), asked(route))).collect() }
    }

    /// Takes note of requests since the last look, and returns what is worth remembering.
    /// `declared`: how many routes, from the first, exist whether they are requested or not.
    pub fn remember(
        &mut self,
        knowledge: Knowledge,
        routes: &[(String, RouteId)],
        kinds: &[String],
        declared: usize,
        now: u64,
    ) -> Remembered {
        let mut remembered = Remembered { written: now, ..Remembered::default() };
        if self.asked.len() > ROUTES_MAX {
            self.asked.retain(|name, _| routes.iter().any(|(known, _)| known == name));
        }
        let mut renumbered = vec![None; knowledge.routes.len()];
        for (index, (name, id)) in routes.iter().enumerate() {
            let Some(known) = knowledge.routes.get(id.index()) else { continue };
            let asked = self.asked.entry(name.clone()).or_default();
            // Fewer: the route was forgotten meanwhile, and found again.
            if known.came > asked.came || (known.came > 0 && known.came < asked.came) {
                asked.last = now;
            }
            asked.came = known.came;
            asked.is_proved |= known.came >= CAME_MIN;
            let asked = *asked;
            let is_worth_it =
                index < declared || (asked.is_proved && now.saturating_sub(asked.last) <= ASKED_WITHIN);
            if is_worth_it && remembered.routes.len() < ROUTES_MAX {
                renumbered[id.index()] = Some(RouteId(remembered.routes.len() as u32));
                let route = RememberedRoute { name: name.clone(), asked: asked.last, known: known.clone() };
                remembered.routes.push(route);
                remembered
                    .visits
                    .routes
                    .push(knowledge.visits.routes.get(id.index()).copied().unwrap_or_default());
            }
        }
        remembered.kinds = kinds
            .iter()
            .zip(knowledge.kinds)
            .map(|(name, known)| RememberedKind { name: name.clone(), known })
            .collect();
        remembered.visits.kinds =
            knowledge.visits.kinds.iter().map(|places| renumber(places, &renumbered)).collect();
        remembered.visits.thinks = knowledge.visits.thinks;
        remembered
    }
}

/// Returns the places as they are where routes have these numbers; places without a number there
/// are left out.
fn renumber(places: &[VisitsAfter], numbers: &[Option<RouteId>]) -> Vec<VisitsAfter> {
    let number = |route: RouteId| numbers.get(route.index()).copied().flatten();
    let list = |values: &[(RouteId, f64)]| {
        let kept = values.iter().filter_map(|(route, value)| Some((number(*route)?, *value)));
        // In order, whatever the order was there.
        kept.collect::<BTreeMap<_, _>>().into_iter().collect()
    };
    let place = |place: &VisitsAfter| {
        let after = match place.after {
            None => None,
            Some(route) => Some(number(route)?),
        };
        Some(VisitsAfter {
            after,
            seen: place.seen,
            further: list(&place.further),
            next: list(&place.next),
            returned: place.returned,
        })
    };
    places.iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests;
