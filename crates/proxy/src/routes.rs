//! Which route a request is for: declared, found from traffic, or `other`.
//!
//! A path becomes a template by replacing what looks like an identifier: numbers, UUIDs, dates, hashes, long tokens.
//! A path joins the table only once the application has answered it well, so that a scanner's guesses cannot fill it.
//! The table is bounded three ways: in routes (`turnover.rs`), in depth, and in names side by side: a place with many
//! names (`/shoes/red-sneaker`, `/shoes/blue-boot`, …) holds identifiers too, however they look.
//!
//! Of the declared routes the first that fits gives the path. Where several of that very path fit, the one that asks most of the query wins, and a
//! value is more than any value: whoever declares `/` and `/?s` wants to tell them apart, in whatever order.

mod pages;
mod query;
mod remembered;
mod turnover;

pub use self::query::QueryPattern;

use self::pages::Pages;
use self::query::Conditions;
use self::turnover::Turnover;
use crate::params::{self, DeclaredRoute, RoutePattern};
use http::Method;
use std::borrow::Cow;
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::RwLock;
use std::time::Instant;

/// Index of a route in the table, which is also its index in telemetry.
pub(crate) type RouteIndex = usize;

/// The route of everything that has no other: index 0. To the gate it is [`SHARES`] routes.
pub(crate) const OTHER: RouteIndex = 0;
/// Shares of `other`, each with a limit of its own: whatever holds the slots of one path without a route, one in so many of the others waits for it.
pub(crate) const SHARES: usize = 8;

/// The share of `other` that a path has: 0 to [`SHARES`] − 1.
pub(crate) type Share = usize;

/// Path segments looked at; deeper paths are `other` unless declared.
const DEPTH_MAX: usize = 12;
/// Bytes of a literal segment; longer ones are identifiers.
const SEGMENT_MAX: usize = 40;
/// How often a path is decoded: no server does so more often.
const DECODED_MAX: usize = 3;
/// Names side by side; from then on new ones count as identifiers.
const SIBLINGS_MAX: usize = 32;

/// Endings of programs.
const PROGRAMS: [&str; 19] = [
    "php", "php3", "php4", "php5", "php7", "php8", "phtml", "jsp", "jspx", "do", "action", "cgi", "fcgi",
    "pl", "py", "rb", "asp", "aspx", "cfm",
];

/// What a request is, as far as gating goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Passes without a slot; only counted. All of these together have a limit of their own.
    Ungated(Exempt),
    /// Belongs to a known route.
    Known(RouteIndex),
    /// Belongs to `other` now; if it is answered well, it may be worth a route of its own.
    Unknown(Share),
    /// Belongs to `other` and stays there.
    Other(Share),
}

/// Why a request passes without a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exempt {
    /// It is listed, or reads the page that gives passes.
    Listed,
    /// It has the ending or the beginning of a static asset.
    Static,
    /// It sends something to the page that gives passes.
    PassForm,
}

impl Class {
    /// Returns the index of the route that the request is for, if it passes a gate.
    pub(crate) fn route(self) -> Option<RouteIndex> {
        match self {
            Class::Ungated(_) => None,
            Class::Known(index) => Some(index),
            Class::Unknown(_) | Class::Other(_) => Some(OTHER),
        }
    }
}

/// The table of routes.
#[derive(Debug)]
pub(crate) struct Table {
    declared: Vec<Declared>,
    conditions: Conditions,
    static_extensions: Vec<String>,
    static_prefixes: Vec<String>,
    ungated: Vec<String>,
    pass_page: Option<String>,
    routes_max: usize,
    found: RwLock<Found>,
    /// Paths that look like static assets, and are pages.
    pages: Pages,
    hasher: RandomState,
}

/// A path with the ending or the beginning of a static asset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asset(u64);

/// The place in the table that a route gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seat {
    /// The next free one.
    New(RouteIndex),
    /// That of a route which is asked for less.
    Of(RouteIndex),
}

/// A declared route, ready to be compared.
#[derive(Debug)]
struct Declared {
    pattern: Pattern,
    /// What it asks of the query, by number.
    asks: Vec<usize>,
    /// How much that is; see [`QueryPattern::rank`].
    rank: (usize, usize),
    /// Routes of the same path that were declared later and ask more, those that ask most first: they go before it.
    finer: Vec<usize>,
}

/// Routes found from traffic: a tree of path segments.
#[derive(Debug)]
struct Found {
    nodes: Vec<Node>,
    /// All there are, those included that are not found.
    routes: usize,
    /// Those that are found, in the order of their indices.
    templates: Vec<(Method, Template)>,
    turnover: Turnover,
}

/// Segments of a path; `None`: an identifier.
type Template = Vec<Option<Box<str>>>;

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
        let mut conditions = Conditions::default();
        let mut declared: Vec<Declared> = Vec::new();
        for route in &params.declared {
            let asks = route.query.as_ref().map(|query| conditions.add(query)).unwrap_or_default();
            let rank = route.query.as_ref().map(QueryPattern::rank).unwrap_or_default();
            declared.push(Declared { pattern: Pattern::new(&route.pattern), asks, rank, finer: Vec::new() });
        }
        for at in 0..declared.len() {
            let own = &declared[at];
            let is_finer = |other: &Declared| {
                other.rank > own.rank && other.pattern.shares_requests_of_path(&own.pattern)
            };
            let mut finer: Vec<usize> =
                (at + 1..declared.len()).filter(|other| is_finer(&declared[*other])).collect();
            finer.sort_by_key(|other| Reverse(declared[*other].rank));
            declared[at].finer = finer;
        }
        let routes = 1 + declared.len();
        Table {
            declared,
            conditions,
            static_extensions: params.static_extensions.clone(),
            static_prefixes: params.static_prefixes.clone(),
            ungated: params.ungated.clone(),
            pass_page: None,
            routes_max: routes + params.discovered_max,
            found: RwLock::new(Found {
                nodes: vec![Node::default()],
                routes,
                templates: vec![],
                turnover: Turnover::new(),
            }),
            pages: Pages::new(),
            hasher: RandomState::new(),
        }
    }

    /// Returns the table in which this page, that gives passes, is ungated: who is to get one there has nothing yet to be let in with.
    pub(crate) fn with_pass_page(self, page: Option<String>) -> Self {
        Table { pass_page: page, ..self }
    }

    /// Returns the most routes there will ever be.
    pub(crate) fn capacity(&self) -> usize {
        self.routes_max
    }

    /// Returns what a request is. However its path is spelled, it is for the route that the most lenient of servers takes it for.
    pub(crate) fn classify(&self, method: &Method, path: &str, query: Option<&str>) -> Class {
        // Declared first: whoever declares a static file as a route wants it gated.
        if let Some(at) = self.declared_for(method, path, query) {
            return Class::Known(1 + at);
        }
        if let Some(exempt) = self.exempt(method, path) {
            return Class::Ungated(exempt);
        }
        if has_other_reading(path) {
            return self.classify_respelled(method, path, query);
        }
        self.found_for(method, path)
    }

    #[cold]
    fn classify_respelled(&self, method: &Method, path: &str, query: Option<&str>) -> Class {
        let lenient = as_read_leniently(path);
        if let Some(at) = self.declared_for(method, &lenient, query) {
            return Class::Known(1 + at);
        }
        if let Some(index) = self.read().find(method, &lenient) {
            return Class::Known(index);
        }
        self.found_for(method, &plainly_spelled(path))
    }

    fn found_for(&self, method: &Method, path: &str) -> Class {
        let found = self.read();
        match found.find(method, path) {
            Some(index) => Class::Known(index),
            None if segments(path).count() <= DEPTH_MAX => Class::Unknown(self.share_of(method, path)),
            None => Class::Other(self.share_of(method, path)),
        }
    }

    /// Returns the share of a path without a route. Paths that would share a route share it; which others do, nobody outside can tell.
    fn share_of(&self, method: &Method, path: &str) -> Share {
        let mut hasher = self.hasher.build_hasher();
        folded(method).hash(&mut hasher);
        for segment in segments(path).take(DEPTH_MAX) {
            Some(segment).filter(|segment| !is_identifier(segment)).hash(&mut hasher);
        }
        hasher.finish() as usize % SHARES
    }

    /// Takes a request's path into the table, as the application has answered it well, if there is a place for it. `uses` tells good answers to a route so
    /// far. `take` is told place and name of the new route, before anybody can be classified as being for it, and whether it can be had now; not called where
    /// there is none.
    pub(crate) fn learn(
        &self,
        method: &Method,
        path: &str,
        now: Instant,
        uses: impl Fn(RouteIndex) -> u64,
        take: impl FnOnce(Seat, &str) -> bool,
    ) {
        let path = &*plainly_spelled(path);
        let mut found = self.found.write().expect("nobody panics while holding the table");
        let first = 1 + self.declared.len();
        if self.routes_max == first || found.find(method, path).is_some() {
            return;
        }
        let (method, template) = (folded(method), found.template_of(path));
        let routes = found.routes;
        let seat = if routes < self.routes_max {
            let is_plenty = (routes - first) * 2 < self.routes_max - first;
            (is_plenty || found.turnover.may_find(now)).then_some(Seat::New(routes))
        } else {
            let hash = self.hasher.hash_one((&method, &template));
            let place = found.turnover.place_for(hash, now, first..routes, uses);
            place.filter(|_| found.turnover.may_find(now)).map(Seat::Of)
        };
        if let Some(seat) = seat.filter(|seat| take(*seat, &name_of(&method, &template))) {
            found.seat(seat, first, method, template);
        }
    }

    /// Returns the path as one whose answers are to be looked at: it has the ending or the beginning of a static asset, and is one or was found to be a page.
    pub(crate) fn asset_of(&self, class: Class, method: &Method, path: &str) -> Option<Asset> {
        let is_one = match class {
            Class::Ungated(exempt) => exempt == Exempt::Static,
            Class::Known(_) | Class::Unknown(_) | Class::Other(_) => {
                !self.pages.is_empty() && self.is_asset(method, path)
            }
        };
        is_one.then(|| Asset(self.hasher.hash_one(path)))
    }

    /// Takes note of what the application answers there: as long as that is a page, the path is gated.
    pub(crate) fn note_answer(&self, Asset(path): Asset, is_page: bool) {
        if is_page {
            self.pages.add(path);
        } else if !self.pages.is_empty() {
            self.pages.remove(path);
        }
    }

    /// Returns which of the declared routes a request belongs to, if it does to any.
    fn declared_for(&self, method: &Method, path: &str, query: Option<&str>) -> Option<usize> {
        // Read for the first route of this path that asks something of it, and for no other.
        let met = LazyCell::new(|| self.conditions.met_by(query.unwrap_or_default()));
        let fits = |route: &Declared| {
            route.pattern.matches(method, path) && (route.asks.is_empty() || met.has_all(&route.asks))
        };
        let first = self.declared.iter().position(&fits)?;
        let finer = self.declared[first].finer.iter().find(|at| fits(&self.declared[**at]));
        Some(finer.copied().unwrap_or(first))
    }

    fn exempt(&self, method: &Method, path: &str) -> Option<Exempt> {
        let exempt = self.exception(method, path).filter(|_| !is_ambiguous(path))?;
        let is_page = || {
            exempt == Exempt::Static && !self.pages.is_empty() && self.pages.has(self.hasher.hash_one(path))
        };
        (!is_page()).then_some(exempt)
    }

    /// Returns whether the path is listed as an exception, or has an ending or a beginning that is.
    fn exception(&self, method: &Method, path: &str) -> Option<Exempt> {
        let is_read = method == Method::GET || method == Method::HEAD;
        let is_below =
            |entry: &String| path == entry || (entry.ends_with('/') && path.starts_with(entry.as_str()));
        if self.pass_page.as_ref().is_some_and(is_below) {
            return Some(if is_read { Exempt::Listed } else { Exempt::PassForm });
        }
        if self.ungated.iter().any(is_below) {
            return Some(Exempt::Listed);
        }
        self.is_asset(method, path).then_some(Exempt::Static)
    }

    /// Returns whether the path has the ending or the beginning of a static asset, and is to be read.
    fn is_asset(&self, method: &Method, path: &str) -> bool {
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

/// Returns whether an application may take the path for another one: by dot segments, empty ones, parameters, a program before its end, or what is encoded though it need not be.
/// Nothing passes ungated by such a path.
fn is_ambiguous(path: &str) -> bool {
    path.contains([';', '\\'])
        || path.contains("//")
        || path.split('/').any(|segment| matches!(segment, "." | ".."))
        || path.rsplit('/').skip(1).any(is_program)
        || (path.contains('%') && !is_encoded_text(path))
}

/// Returns whether a segment names a program: some servers run it, and hand it what follows.
fn is_program(segment: &str) -> bool {
    let extension = segment.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| PROGRAMS.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

/// Returns whether all that is encoded in a path is text: none of the marks that divide a path, no control characters, and no mark of an encoding, which
/// some decode a second time.
fn is_encoded_text(path: &str) -> bool {
    let (decoded, is_whole) = decoded(path);
    let has_mark = memchr::memchr_iter(b'%', path.as_bytes()).any(|at| {
        let byte = encoded_byte(&path.as_bytes()[at..]);
        byte.is_some_and(|byte| byte.is_ascii_control() || b"#%./;?\\".contains(&byte))
    });
    // What is not UTF-8 may be a mark, too, to whoever reads it leniently.
    is_whole && !has_mark && std::str::from_utf8(&decoded).is_ok()
}

/// Returns the path with what is encoded decoded, and whether every percent sign stood for a byte.
fn decoded(path: &str) -> (Vec<u8>, bool) {
    let (mut out, mut is_whole) = (Vec::with_capacity(path.len()), true);
    let mut rest = path.as_bytes();
    while let Some(first) = rest.first() {
        let byte = if *first == b'%' { encoded_byte(rest) } else { None };
        is_whole &= *first != b'%' || byte.is_some();
        out.push(byte.unwrap_or(*first));
        rest = &rest[if byte.is_some() { 3 } else { 1 }..];
    }
    (out, is_whole)
}

/// Returns the byte that a text begins with, which is written as `%` and two hexadecimal digits.
fn encoded_byte(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    Some((digit(1)? << 4 | digit(2)?) as u8)
}

/// A path as it is written, and as the most lenient of servers reads it.
#[derive(Debug)]
pub(crate) struct Readings<'a> {
    written: &'a str,
    /// `None`: most paths can be read in one way only.
    lenient: Option<String>,
}

impl<'a> Readings<'a> {
    /// Returns the readings of `path`.
    pub(crate) fn of(path: &'a str) -> Self {
        let lenient = has_other_reading(path).then(|| as_read_leniently(path));
        Readings { written: path, lenient }
    }
}

/// Returns whether [`as_read_leniently`] may read a path otherwise than [`segments`] does.
fn has_other_reading(path: &str) -> bool {
    memchr::memchr2(b'%', b'\\', path.as_bytes()).is_some() || has_dot_segment(path)
}

/// Returns whether a segment begins with a dot and may be a dot segment: most paths have none.
fn has_dot_segment(path: &str) -> bool {
    memchr::memmem::find(path.as_bytes(), b"/.").is_some()
        && segments(path).any(|segment| matches!(segment, "." | ".."))
}

/// Returns a path with what need not be encoded decoded and dot segments resolved (RFC 3986, 6.2.2), as all servers read it. What is still encoded then is part
/// of a segment to some, and more than one to others.
fn plainly_spelled(path: &str) -> Cow<'_, str> {
    if !has_other_reading(path) {
        return Cow::Borrowed(path);
    }
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest.as_bytes()) {
        let (before, encoded) = rest.split_at(at);
        text.push_str(before);
        let byte = encoded_byte(encoded.as_bytes());
        match byte.filter(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte)) {
            Some(byte) => {
                text.push(char::from(byte));
                rest = &encoded[3..];
            }
            None => {
                text.push('%');
                rest = &encoded[1..];
            }
        }
    }
    text.push_str(rest);
    Cow::Owned(without_dot_segments(&text))
}

/// Returns the path without empty segments and parameters, dot segments resolved.
fn without_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in segments(path) {
        match segment {
            "." => {}
            ".." => _ = kept.pop(),
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Returns a path as the most lenient of servers reads it: decoded until nothing is left to decode, up to what would be a query then, back-slashes for
/// slashes, without parameters, dot segments resolved.
fn as_read_leniently(path: &str) -> String {
    let mut text = path.to_owned();
    for _ in 0..DECODED_MAX {
        if !text.contains('%') {
            break;
        }
        text = String::from_utf8_lossy(&decoded(&text).0).into_owned();
    }
    without_dot_segments(&text.split(['?', '#', '\0']).next().unwrap_or_default().replace('\\', "/"))
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

    /// Returns what a path that has no route would be found as.
    fn template_of(&self, path: &str) -> Template {
        let mut at = Some(0);
        let mut template = vec![];
        for segment in segments(path) {
            let is_name = !is_identifier(segment)
                && at.is_none_or(|at| {
                    let literal = &self.nodes[at].literal;
                    literal.len() < SIBLINGS_MAX || literal.contains_key(segment)
                });
            at = at.and_then(|at| self.step(at, segment));
            template.push(is_name.then(|| segment.into()));
        }
        template
    }

    /// Gives a route its place; `first` is the index of the first that is found.
    fn seat(&mut self, seat: Seat, first: RouteIndex, method: Method, template: Template) {
        match seat {
            Seat::New(index) => {
                self.plant(index, &method, &template);
                self.templates.push((method, template));
                self.routes += 1;
            }
            Seat::Of(index) => {
                self.turnover.renewed(index);
                self.templates[index - first] = (method, template);
                self.nodes = vec![Node::default()];
                for (at, (method, template)) in std::mem::take(&mut self.templates).into_iter().enumerate() {
                    self.plant(first + at, &method, &template);
                    self.templates.push((method, template));
                }
            }
        }
    }

    fn plant(&mut self, index: RouteIndex, method: &Method, template: &Template) {
        let mut at = 0;
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

/// Returns how a route found from traffic is written and shown.
fn name_of(method: &Method, template: &Template) -> String {
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

    /// Returns whether both are of the same path, whatever its variables are called, and some method is of both.
    fn shares_requests_of_path(&self, other: &Pattern) -> bool {
        let is_any = self.method.is_none() || other.method.is_none();
        (is_any || self.method == other.method)
            && self.any_rest == other.any_rest
            && self.segments == other.segments
    }

    /// Returns whether a request belongs to the set. `GET` stands for `HEAD` as well.
    pub(crate) fn matches(&self, method: &Method, path: &str) -> bool {
        self.matches_by(method, path, |own, segment| own == segment)
    }

    /// Returns whether a request belongs to the set, or there are servers to which it does: they decode what need not be encoded, resolve dot segments, or
    /// take small letters for capitals.
    pub(crate) fn may_match(&self, method: &Method, path: &Readings<'_>) -> bool {
        let read = path.lenient.as_deref();
        // Whoever takes small letters for capitals takes what matches, too.
        (read.is_some() && self.matches(method, path.written))
            || self.matches_by(method, read.unwrap_or(path.written), str::eq_ignore_ascii_case)
    }

    fn matches_by(&self, method: &Method, path: &str, are_equal: impl Fn(&str, &str) -> bool) -> bool {
        if self.method.as_ref().is_some_and(|own| *own != folded(method)) {
            return false;
        }
        let mut rest = segments(path);
        for own in &self.segments {
            let Some(segment) = rest.next() else {
                return false;
            };
            if own.as_ref().is_some_and(|own| !are_equal(own, segment)) {
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

impl DeclaredRoute {
    /// Returns the route as it is written and shown: `GET /items/{id}`, or with its query `GET /?s`.
    pub fn name(&self) -> String {
        let path = self.pattern.name();
        match &self.query {
            Some(query) => format!("{path}?{}", query.as_written()),
            None => path,
        }
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
        || bytes.iter().any(|byte| b"%@+".contains(byte) || !byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
