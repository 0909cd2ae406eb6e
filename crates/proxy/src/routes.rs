//! Which route a request is for: declared, found from traffic, or `other`.
//!
//! A path becomes a template by replacing what looks like an identifier: numbers, UUIDs, dates, hashes, long tokens.
//! A path joins the table only once the application has answered it well, so that a scanner's guesses cannot fill it.
//! The table is bounded three ways: in routes, in depth, and in names side by side: a place with many
//! names (`/shoes/red-sneaker`, `/shoes/blue-boot`, …) holds identifiers too, however they look.

use crate::params::{self, RoutePattern};
use http::Method;
use std::collections::HashMap;
use std::sync::RwLock;

/// Index of a route in the table, which is also its index in telemetry.
pub(crate) type RouteIndex = usize;

/// The route of everything that has no other: index 0.
pub(crate) const OTHER: RouteIndex = 0;

/// Path segments looked at; deeper paths are `other` unless declared.
const DEPTH_MAX: usize = 12;
/// Bytes of a literal segment; longer ones are identifiers.
const SEGMENT_MAX: usize = 40;
/// Names side by side; from then on new ones count as identifiers.
const SIBLINGS_MAX: usize = 32;

/// What a request is, as far as gating goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Passes without a slot; only counted.
    Ungated,
    /// Belongs to a known route.
    Known(RouteIndex),
    /// Belongs to `other` now; if it is answered well, it is worth learning.
    Unknown,
    /// Belongs to `other` and stays there.
    Other,
}

impl Class {
    /// Returns the index of the route whose gate the request passes, if it passes one.
    pub(crate) fn route(self) -> Option<RouteIndex> {
        match self {
            Class::Ungated => None,
            Class::Known(index) => Some(index),
            Class::Unknown | Class::Other => Some(OTHER),
        }
    }
}

/// The table of routes.
#[derive(Debug)]
pub(crate) struct Table {
    declared: Vec<Pattern>,
    static_extensions: Vec<String>,
    static_prefixes: Vec<String>,
    ungated: Vec<String>,
    routes_max: usize,
    found: RwLock<Found>,
}

/// Routes found from traffic: a tree of path segments.
#[derive(Debug)]
struct Found {
    nodes: Vec<Node>,
    routes: usize,
}

#[derive(Default, Debug)]
struct Node {
    literal: HashMap<Box<str>, usize>,
    identifier: Option<usize>,
    routes: Vec<(Method, RouteIndex)>,
}

/// A declared set of requests, ready to be compared.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    method: Option<Method>,
    segments: Vec<Option<Box<str>>>,
    any_rest: bool,
}

impl Table {
    /// Returns the table with only `other` and the declared routes (indices 1 and up) in it.
    pub(crate) fn new(params: &params::Routes) -> Self {
        let declared: Vec<Pattern> =
            params.declared.iter().map(|route| Pattern::new(&route.pattern)).collect();
        let routes = 1 + declared.len();
        Table {
            declared,
            static_extensions: params.static_extensions.clone(),
            static_prefixes: params.static_prefixes.clone(),
            ungated: params.ungated.clone(),
            routes_max: routes + params.discovered_max,
            found: RwLock::new(Found { nodes: vec![Node::default()], routes }),
        }
    }

    /// Returns the most routes there will ever be.
    pub(crate) fn capacity(&self) -> usize {
        self.routes_max
    }

    /// Returns what a request is.
    pub(crate) fn classify(&self, method: &Method, path: &str) -> Class {
        // Declared first: whoever declares a static file as a route wants it gated.
        if let Some(at) = self.declared.iter().position(|pattern| pattern.matches(method, path)) {
            return Class::Known(1 + at);
        }
        if self.is_ungated(method, path) {
            return Class::Ungated;
        }
        let found = self.read();
        match found.find(method, path) {
            Some(index) => Class::Known(index),
            None if found.routes < self.routes_max && segments(path).count() <= DEPTH_MAX => Class::Unknown,
            None => Class::Other,
        }
    }

    /// Takes a request's path into the table, as the application has answered it well. `declare` is told index and name
    /// of the new route, before anybody can be classified as being for it; not called where there is none.
    pub(crate) fn learn(&self, method: &Method, path: &str, declare: impl FnOnce(RouteIndex, &str)) {
        let mut found = self.found.write().expect("nobody panics while holding the table");
        if found.routes >= self.routes_max || found.find(method, path).is_some() {
            return;
        }
        let method = folded(method);
        let mut name = String::with_capacity(path.len() + method.as_str().len() + 1);
        name.push_str(method.as_str());
        name.push(' ');
        let mut at = 0;
        for segment in segments(path) {
            name.push('/');
            let (next, is_identifier) = found.step_or_grow(at, segment);
            name.push_str(if is_identifier { "{id}" } else { segment });
            at = next;
        }
        if name.ends_with(' ') {
            name.push('/');
        }
        if found.nodes[at].routes.iter().any(|(other, _)| *other == method) {
            return;
        }
        let index = found.routes;
        declare(index, &name);
        found.nodes[at].routes.push((method, index));
        found.routes += 1;
    }

    fn is_ungated(&self, method: &Method, path: &str) -> bool {
        if is_ambiguous(path) {
            return false;
        }
        let below =
            |entry: &String| path == entry || (entry.ends_with('/') && path.starts_with(entry.as_str()));
        if self.ungated.iter().any(below) {
            return true;
        }
        if method != Method::GET && method != Method::HEAD {
            return false;
        }
        let file = path.rsplit('/').next().unwrap_or_default();
        let extension = file.rsplit_once('.').map(|(_, extension)| extension);
        extension.is_some_and(|extension| {
            self.static_extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
        }) || self.static_prefixes.iter().any(|prefix| path.starts_with(prefix.as_str()))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Found> {
        self.found.read().expect("nobody panics while holding the table")
    }
}

/// Returns whether an application may take the path for another one: by dot segments, empty ones, parameters, or what is encoded though it need not be.
/// Nothing passes ungated by such a path.
fn is_ambiguous(path: &str) -> bool {
    let bytes = path.as_bytes();
    let is_encoded =
        |digits: &[u8]| matches!(digits.to_ascii_lowercase().as_slice(), b"2e" | b"2f" | b"5c" | b"3b");
    path.contains([';', '\\'])
        || path.contains("//")
        || path.split('/').any(|segment| matches!(segment, "." | ".."))
        || memchr::memchr_iter(b'%', bytes).any(|at| bytes.get(at + 1..at + 3).is_some_and(is_encoded))
}

impl Found {
    fn find(&self, method: &Method, path: &str) -> Option<RouteIndex> {
        let mut at = 0;
        for segment in segments(path).take(DEPTH_MAX + 1) {
            at = self.step(at, segment)?;
        }
        let method = folded(method);
        self.nodes[at].routes.iter().find(|(other, _)| *other == method).map(|(_, index)| *index)
    }

    fn step(&self, at: usize, segment: &str) -> Option<usize> {
        let node = &self.nodes[at];
        if !is_identifier(segment)
            && let Some(next) = node.literal.get(segment)
        {
            return Some(*next);
        }
        // Where names abound, an unknown one is an identifier; elsewhere it is a path not seen yet.
        if is_identifier(segment) || node.literal.len() >= SIBLINGS_MAX { node.identifier } else { None }
    }

    fn step_or_grow(&mut self, at: usize, segment: &str) -> (usize, bool) {
        let as_identifier = is_identifier(segment)
            || (self.nodes[at].literal.len() >= SIBLINGS_MAX
                && !self.nodes[at].literal.contains_key(segment));
        if let Some(next) = self.step(at, segment) {
            return (next, as_identifier);
        }
        let next = self.nodes.len();
        self.nodes.push(Node::default());
        let node = &mut self.nodes[at];
        if as_identifier {
            node.identifier = Some(next);
        } else {
            node.literal.insert(segment.into(), next);
        }
        (next, as_identifier)
    }
}

impl Pattern {
    /// Returns the pattern ready to be compared. A method that is no HTTP token matches nothing.
    pub(crate) fn new(pattern: &RoutePattern) -> Self {
        let method = pattern.method.as_ref().map(|name| {
            // An invalid name becomes a method no client can send.
            Method::from_bytes(name.as_bytes()).unwrap_or_else(|_| Method::from_bytes(b"-").expect("a token"))
        });
        let mut segments: Vec<Option<Box<str>>> = Vec::new();
        let mut any_rest = false;
        for segment in self::segments(&pattern.path) {
            any_rest = segment == "*";
            if !any_rest {
                let is_variable = segment.starts_with('{') && segment.ends_with('}');
                segments.push((!is_variable).then(|| segment.into()));
            }
        }
        Pattern { method, segments, any_rest }
    }

    /// Returns whether a request belongs to the set. `GET` stands for `HEAD` as well.
    pub(crate) fn matches(&self, method: &Method, path: &str) -> bool {
        if self.method.as_ref().is_some_and(|own| *own != folded(method)) {
            return false;
        }
        let mut rest = segments(path);
        for own in &self.segments {
            let Some(segment) = rest.next() else {
                return false;
            };
            if own.as_ref().is_some_and(|own| **own != *segment) {
                return false;
            }
        }
        self.any_rest || rest.next().is_none()
    }
}

impl RoutePattern {
    /// Returns the pattern as it is written and shown: `GET /items/{id}`, or `* /items/{id}` for any method.
    pub fn name(&self) -> String {
        format!("{} {}", self.method.as_deref().unwrap_or("*"), self.path)
    }

    /// Returns whether requests of `method` for `path` belong to it. A method that is none belongs to nothing.
    pub fn matches(&self, method: &str, path: &str) -> bool {
        Method::from_bytes(method.as_bytes()).is_ok_and(|method| Pattern::new(self).matches(&method, path))
    }
}

/// Returns the non-empty segments of a path, without parameters such as `;jsessionid=…`.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let plain = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
    plain.filter(|segment| !segment.is_empty())
}

/// `HEAD` does the work of `GET`, so it shares its route.
fn folded(method: &Method) -> Method {
    if method == Method::HEAD { Method::GET } else { method.clone() }
}

/// Returns whether a path segment looks like it names one thing among many.
fn is_identifier(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    if bytes.len() > SEGMENT_MAX {
        return true;
    }
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_hex = bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let has_capitals = bytes.iter().any(u8::is_ascii_uppercase) && bytes.iter().any(u8::is_ascii_lowercase);
    digits == bytes.len()
        // Dates, article numbers, slugs with a number.
        || digits >= 3
        || (is_hex && bytes.len() >= 12)
        || (bytes.len() >= 20 && (digits > 0 || has_capitals) && !bytes.contains(&b'.'))
        // Free text and addresses.
        || bytes.contains(&b'%') || bytes.contains(&b'@') || bytes.contains(&b'+')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::DeclaredRoute;
    use suimon_gate::Mode;

    fn pattern(method: Option<&str>, path: &str) -> RoutePattern {
        RoutePattern { method: method.map(str::to_owned), path: path.to_owned() }
    }

    fn table(declared: &[RoutePattern], discovered_max: usize) -> Table {
        let declared =
            declared.iter().map(|p| DeclaredRoute { pattern: p.clone(), mode: Mode::Enforce }).collect();
        Table::new(&params::Routes { declared, discovered_max, ..params::Routes::default() })
    }

    fn learn(table: &Table, path: &str) -> Option<String> {
        let mut name = None;
        table.learn(&Method::GET, path, |_, new| name = Some(new.to_owned()));
        name
    }

    fn get(table: &Table, path: &str) -> Class {
        table.classify(&Method::GET, path)
    }

    #[test]
    fn identifiers_become_one_segment() {
        for (path, template) in [
            ("/", "GET /"),
            ("/items/42", "GET /items/{id}"),
            ("/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301/cart", "GET /u/{id}/cart"),
            ("/c/d41d8cd98f00b204e9800998ecf8427e", "GET /c/{id}"),
            ("/t/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "GET /t/{id}"),
            ("/blog/2024-10-01", "GET /blog/{id}"),
            ("/a/red-shoe-1234", "GET /a/{id}"),
            ("/find/a%20b", "GET /find/{id}"),
            ("/api/v2/orders;jsessionid=ABC123456789", "GET /api/v2/orders"),
            ("/reset-your-password-now-please", "GET /reset-your-password-now-please"),
        ] {
            let table = table(&[], 10);
            assert_eq!(get(&table, path), Class::Unknown);
            assert_eq!(learn(&table, path).as_deref(), Some(template));
            assert_eq!(get(&table, path), Class::Known(1), "{path}");
            assert_eq!(learn(&table, path), None, "known already");
        }
    }

    #[test]
    fn routes_differ_by_method_but_head_is_get() {
        let table = table(&[], 10);
        learn(&table, "/cart");
        assert_eq!(table.classify(&Method::HEAD, "/cart"), Class::Known(1));
        assert_eq!(table.classify(&Method::POST, "/cart"), Class::Unknown);
    }

    #[test]
    fn a_full_table_sends_the_rest_to_other() {
        let table = table(&[], 2);
        learn(&table, "/a");
        learn(&table, "/b");
        assert_eq!(learn(&table, "/c"), None);
        assert_eq!(get(&table, "/c"), Class::Other);
        assert_eq!(get(&table, "/c").route(), Some(OTHER));
        assert_eq!(get(&table, "/b"), Class::Known(2));
    }

    #[test]
    fn a_place_with_many_names_holds_identifiers() {
        let table = table(&[], 200);
        let name = |n: usize| {
            format!(
                "/shoes/{}",
                "abcdefghijklmnopqrstuvwxyz".chars().cycle().skip(n % 26).take(1 + n).collect::<String>()
            )
        };
        for n in 0..SIBLINGS_MAX {
            learn(&table, &name(n));
        }
        assert_eq!(learn(&table, "/shoes/zebra").as_deref(), Some("GET /shoes/{id}"));
        assert_eq!(get(&table, "/shoes/okapi"), get(&table, "/shoes/zebra"));
        assert_eq!(get(&table, &name(0)), Class::Known(1), "those that were there first keep their route");
    }

    #[test]
    fn declared_routes_come_first_and_in_order() {
        let table = table(
            &[
                pattern(Some("GET"), "/items/new"),
                pattern(Some("GET"), "/items/{id}"),
                pattern(None, "/admin/*"),
                pattern(Some("GET"), "/big.css"),
            ],
            10,
        );
        assert_eq!(get(&table, "/items/new"), Class::Known(1));
        assert_eq!(get(&table, "/items/blue"), Class::Known(2));
        assert_eq!(get(&table, "/items/blue/more"), Class::Unknown);
        assert_eq!(table.classify(&Method::PUT, "/admin"), Class::Known(3));
        assert_eq!(table.classify(&Method::PUT, "/admin/a/b"), Class::Known(3));
        assert_eq!(get(&table, "/big.css"), Class::Known(4));
        assert_eq!(learn(&table, "/x").as_deref(), Some("GET /x"));
        assert_eq!(get(&table, "/x"), Class::Known(5));
    }

    #[test]
    fn assets_and_health_checks_pass_ungated() {
        let table = table(&[], 10);
        for path in ["/a/site.CSS", "/robots.txt", "/.well-known/acme/x", "/favicon.ico", "/healthz"] {
            assert_eq!(get(&table, path), Class::Ungated, "{path}");
        }
        assert_eq!(table.classify(&Method::POST, "/a/site.css"), Class::Unknown);
        assert_eq!(get(&table, "/healthz/more"), Class::Unknown);
        assert_eq!(get(&table, "/css"), Class::Unknown);
        assert_eq!(get(&table, &"/a".repeat(DEPTH_MAX + 1)), Class::Other);
    }
}
