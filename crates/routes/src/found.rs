//! Routes found from traffic: a tree of path segments, with bounds on its depth and on the names in
//! one place.

use crate::pattern::folded;
use crate::spelling::segments;
use crate::turnover::RouteReplacement;
use http::Method;
use std::collections::HashMap;
use suimon_model::{PoolId, RouteId};

/// The place in the table that a new route gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableSlot {
    /// The next free one.
    New(RouteId),
    /// The place of an existing route that gets fewer requests.
    Of(RouteId),
}

/// The most path segments that are compared; deeper paths are `other` unless declared.
pub(crate) const DEPTH_MAX: usize = 12;
/// The most bytes of a literal segment; longer ones are identifiers.
pub(crate) const SEGMENT_MAX: usize = 40;
/// The most names in one place of the tree; further ones count as identifiers.
pub(crate) const SIBLINGS_MAX: usize = 32;

/// Routes found from traffic: for each pool a tree of path segments.
#[derive(Debug)]
pub(crate) struct DiscoveredRoutes {
    /// The root of each pool, and then all other nodes.
    pub(crate) nodes: Vec<Node>,
    pools: usize,
    /// All routes, including those that were not found from traffic.
    pub(crate) routes: usize,
    /// The routes found from traffic, in the order of their indices.
    pub(crate) templates: Vec<(PoolId, Method, Template)>,
    pub(crate) turnover: RouteReplacement,
}

/// Segments of a path; `None`: an identifier.
pub(crate) type Template = Vec<Option<Box<str>>>;

#[derive(Default, Debug)]
pub(crate) struct Node {
    pub(crate) literal: HashMap<Box<str>, usize>,
    pub(crate) identifier: Option<usize>,
    pub(crate) routes: Vec<(Method, RouteId)>,
}

impl DiscoveredRoutes {
    /// Returns empty trees of `pools` pools, beside which `routes` other routes exist.
    pub(crate) fn new(pools: usize, routes: usize) -> Self {
        DiscoveredRoutes {
            nodes: roots(pools),
            pools,
            routes,
            templates: vec![],
            turnover: RouteReplacement::new(),
        }
    }

    pub(crate) fn find(&self, pool: PoolId, method: &Method, path: &str) -> Option<RouteId> {
        let mut at = pool.index();
        for segment in segments(path).take(DEPTH_MAX + 1) {
            at = self.step(at, segment)?;
        }
        let method = folded(method);
        self.nodes[at].routes.iter().find(|(other, _)| *other == method).map(|(_, index)| *index)
    }

    pub(crate) fn step(&self, at: usize, segment: &str) -> Option<usize> {
        let node = &self.nodes[at];
        // Also what looks like an identifier, where the routes of a pool name it.
        if let Some(next) = node.literal.get(segment) {
            return Some(*next);
        }
        // In a full place an unknown name counts as an identifier; elsewhere it is a path that is
        // still unknown.
        if is_identifier(segment) || node.literal.len() >= SIBLINGS_MAX { node.identifier } else { None }
    }

    /// Returns the template that a path without a route would get. `named`: its first segments, as
    /// far as the routes of its pool name them.
    pub(crate) fn template_of(&self, pool: PoolId, path: &str, named: &Template) -> Template {
        let mut at = Some(pool.index());
        let mut template = vec![];
        for segment in segments(path) {
            let is_named = named.get(template.len()).is_some_and(Option::is_some);
            let is_name = is_named
                || !is_identifier(segment)
                    && at.is_none_or(|at| {
                        let literal = &self.nodes[at].literal;
                        literal.len() < SIBLINGS_MAX || literal.contains_key(segment)
                    });
            at = at.and_then(|at| self.step(at, segment));
            template.push(is_name.then(|| segment.into()));
        }
        template
    }

    /// Gives a route its place; `first` is the index of the first route found from traffic.
    pub(crate) fn seat(&mut self, seat: TableSlot, first: usize, planted: (PoolId, Method, Template)) {
        match seat {
            TableSlot::New(index) => {
                self.plant(index, &planted);
                self.templates.push(planted);
                self.routes += 1;
            }
            TableSlot::Of(index) => {
                self.turnover.renewed(index);
                self.templates[index.index() - first] = planted;
                self.nodes = roots(self.pools);
                for (at, planted) in std::mem::take(&mut self.templates).into_iter().enumerate() {
                    self.plant(RouteId((first + at) as u32), &planted);
                    self.templates.push(planted);
                }
            }
        }
    }

    fn plant(&mut self, index: RouteId, (pool, method, template): &(PoolId, Method, Template)) {
        let mut at = pool.index();
        for segment in template {
            let next = self.nodes.len();
            let node = &mut self.nodes[at];
            at = match segment {
                None => *node.identifier.get_or_insert(next),
                Some(name) => *node.literal.entry(name.clone()).or_insert(next),
            };
            if at == next {
                self.nodes.push(Node::default());
            }
        }
        self.nodes[at].routes.push((method.clone(), index));
    }
}

fn roots(pools: usize) -> Vec<Node> {
    std::iter::repeat_with(Node::default).take(pools).collect()
}

/// Returns the name under which a route found from traffic is written and shown.
pub(crate) fn name_of(method: &Method, template: &Template) -> String {
    let mut name = format!("{method} ");
    for segment in template {
        name.push('/');
        name.push_str(segment.as_deref().unwrap_or("{id}"));
    }
    if template.is_empty() {
        name.push('/');
    }
    name
}

/// Returns whether a path segment looks like an identifier: the name of one thing among many.
pub(crate) fn is_identifier(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    if bytes.len() > SEGMENT_MAX {
        return true;
    }
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_hex = bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let has_capitals = bytes.iter().any(u8::is_ascii_uppercase) && bytes.iter().any(u8::is_ascii_lowercase);
    digits == bytes.len()
        // Dates, article numbers, slugs that contain a number.
        || digits >= 3
        || (is_hex && bytes.len() >= 12)
        || (bytes.len() >= 20 && (digits > 0 || has_capitals) && !bytes.contains(&b'.'))
        // Free text and e-mail addresses.
        || bytes.iter().any(|byte| b"%@+".contains(byte) || !byte.is_ascii_graphic())
}
