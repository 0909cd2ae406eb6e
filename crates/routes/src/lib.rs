//! Which route a request is for: declared, found from traffic, or `other`.
//!
//! A path becomes a template: whatever looks like an identifier (numbers, UUIDs, dates, hashes,
//! long tokens) is replaced. A path joins the table only after the application has answered it
//! well, so that a scanner's guesses cannot fill it. The table is bounded in routes
//! (`turnover.rs`), in depth, and in names in one place: a place with many names
//! (`/shoes/red-sneaker`, `/shoes/blue-boot`, …) holds identifiers too, whatever they look like.
//!
//! The first declared route that matches determines the path. If several routes of that path match,
//! the one that asks most of the query wins, and a given value is more than any value: an operator
//! who declares `/` and `/?s` wants to tell them apart, in either order.

mod found;
mod pages;
mod params;
mod pattern;
mod query;
mod remembered;
mod sites;
mod spelling;
mod turnover;

pub use params::{DeclaredRoute, PoolRoutes, Routes};
pub use pattern::{Pattern, RoutePattern};
pub use query::QueryPattern;
pub use sites::{MAIN_SITE, SiteMatch, SiteTable, without_port};
pub use spelling::Readings;

pub use found::TableSlot;
use found::{DEPTH_MAX, DiscoveredRoutes, Template, is_identifier, name_of};
use http::Method;
use pages::Pages;
use pattern::folded;
use query::Conditions;
use spelling::{as_read_leniently, has_other_reading, is_ambiguous, plainly_spelled, segments};
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, RwLock};
use std::time::Instant;
use suimon_model::{PoolId, RouteId};

/// The route of all requests that have no other. To the gate it is [`SHARES`] routes, of which this
/// is the first.
pub const OTHER: RouteId = RouteId(0);
/// Shares of `other`, each with its own limit. If one path without a route holds all slots of its
/// share, only one in this many of the other paths waits for it.
pub const SHARES: usize = 8;

/// Returns the row of a route in a table for people: the shares of `other` are one row, the first.
pub fn row(route: RouteId) -> usize {
    route.index().saturating_sub(SHARES - 1)
}

/// Returns the route of a row; the first row is the first share of `other`.
pub fn route_of(row: usize) -> RouteId {
    if row == 0 { OTHER } else { RouteId((row + SHARES - 1) as u32) }
}

/// What a request is to the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Passes without a slot and is only counted. All ungated requests together have a limit of
    /// their own.
    Ungated(Exempt),
    /// Belongs to a known route.
    Known(RouteId),
    /// Belongs to this share of `other` now; a good answer may give its path a route of its own.
    Unknown(RouteId),
    /// Belongs to this share of `other` and stays there.
    Other(RouteId),
}

/// Why a request passes without a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exempt {
    /// Its path is listed, or it reads the page that gives passes.
    Listed,
    /// Its path has the extension or the prefix of a static asset.
    Static,
    /// It sends something to the page that gives passes.
    PassForm,
}

impl Class {
    /// Returns the route whose gate the request has to pass, or why it passes none.
    pub fn gate(self) -> Result<RouteId, Exempt> {
        match self {
            Class::Ungated(exempt) => Err(exempt),
            Class::Known(route) | Class::Unknown(route) | Class::Other(route) => Ok(route),
        }
    }

    /// Returns the route whose gate the request has to pass, if any.
    pub fn route(self) -> Option<RouteId> {
        self.gate().ok()
    }
}

/// The table of routes.
#[derive(Debug)]
pub struct Table {
    declared: Vec<Declared>,
    /// What belongs to the second pool, the third and so on.
    pools: Vec<Vec<Pattern>>,
    conditions: Conditions,
    static_extensions: Vec<String>,
    static_prefixes: Vec<String>,
    ungated: Vec<String>,
    pass_page: Option<String>,
    routes_max: usize,
    /// Shared with the tables that later settings make.
    found: Arc<RwLock<DiscoveredRoutes>>,
    /// Paths that look like static assets but are pages. Shared, too.
    pages: Arc<Pages>,
    hasher: RandomState,
}

/// A path with the extension or the prefix of a static asset.
#[derive(Clone, Copy, Debug)]
pub struct Asset(u64);

/// A declared route, prepared for comparison.
#[derive(Debug)]
struct Declared {
    pattern: Pattern,
    pool: PoolId,
    /// The numbers of what it asks of the query.
    asks: Vec<usize>,
    /// How much it asks of the query; see [`QueryPattern::rank`].
    rank: (usize, usize),
    /// Routes of the same path that were declared later but ask more of the query, and so are tried
    /// before it; those that ask most first.
    finer: Vec<usize>,
}

impl Table {
    /// Returns the table with only `other` and the declared routes in it; the latter follow the
    /// shares of `other`, and those of each further pool that have no route of their own follow them.
    pub fn new(params: &Routes) -> Self {
        let mut conditions = Conditions::default();
        let mut declared: Vec<Declared> = Vec::new();
        for route in &params.declared {
            let asks = route.query.as_ref().map(|query| conditions.add(query)).unwrap_or_default();
            let rank = route.query.as_ref().map(QueryPattern::rank).unwrap_or_default();
            declared.push(Declared {
                pattern: Pattern::new(&route.pattern),
                pool: params.pool_of(route),
                asks,
                rank,
                finer: Vec::new(),
            });
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
        let routes = SHARES + declared.len() + params.pools.len();
        let prepared = |pool: &PoolRoutes| pool.patterns.iter().map(Pattern::new).collect();
        Table {
            declared,
            pools: params.pools.iter().map(prepared).collect(),
            conditions,
            static_extensions: params.static_extensions.clone(),
            static_prefixes: params.static_prefixes.clone(),
            ungated: params.ungated.clone(),
            pass_page: None,
            routes_max: routes + params.discovered_max,
            found: Arc::new(RwLock::new(DiscoveredRoutes::new(1 + params.pools.len(), routes))),
            pages: Arc::new(Pages::new()),
            hasher: RandomState::new(),
        }
    }

    /// Returns a table with other settings, which shares the routes found so far and later with
    /// this one. The declared routes and the maximum of found routes must be the same.
    pub fn adopting(&self, params: &Routes) -> Self {
        let own = Table::new(params);
        debug_assert_eq!((own.declared.len(), own.routes_max), (self.declared.len(), self.routes_max));
        let (found, pages) = (Arc::clone(&self.found), Arc::clone(&self.pages));
        Table { found, pages, hasher: self.hasher.clone(), pass_page: self.pass_page.clone(), ..own }
    }

    /// Returns the table in which `page`, which gives passes, is ungated: a client that needs a
    /// pass cannot be admitted yet.
    pub fn with_pass_page(self, page: Option<String>) -> Self {
        Table { pass_page: page, ..self }
    }

    /// Returns the most routes there can ever be, `other` counted once.
    pub fn capacity(&self) -> usize {
        self.routes_max - (SHARES - 1)
    }

    fn declared_at(&self, at: usize) -> (Class, PoolId) {
        (Class::Known(RouteId((SHARES + at) as u32)), self.declared[at].pool)
    }

    /// Returns the index of the first route found from traffic.
    fn first_found(&self) -> usize {
        SHARES + self.declared.len() + self.pools.len()
    }

    #[cfg(test)]
    fn classify(&self, method: &Method, path: &str, query: Option<&str>) -> Class {
        self.classify_at_pool(method, path, query).0
    }

    /// Returns what a request is, and whose workers it is for. However its path is spelled, it belongs
    /// to the route that the most lenient server of that pool would read in it.
    pub fn classify_at_pool(&self, method: &Method, path: &str, query: Option<&str>) -> (Class, PoolId) {
        // Declared first: an operator who declares a static file as a route wants it gated.
        if let Some(at) = self.declared_for(method, path, query) {
            return self.declared_at(at);
        }
        if let Some(exempt) = self.exempt(method, path) {
            return (Class::Ungated(exempt), self.pool_for(method, &plainly_spelled(path)));
        }
        if has_other_reading(path) {
            return self.classify_respelled(method, path, query);
        }
        self.found_for(method, path)
    }

    #[cold]
    fn classify_respelled(&self, method: &Method, path: &str, query: Option<&str>) -> (Class, PoolId) {
        let lenient = as_read_leniently(path);
        if let Some(at) = self.declared_for(method, &lenient, query) {
            return self.declared_at(at);
        }
        // Whatever was found before: the program is the one that reads the path as all servers do.
        let plain = plainly_spelled(path);
        let pool = self.pool_for(method, &plain);
        if let Some(index) = self.read().find(pool, method, &lenient) {
            return (Class::Known(index), pool);
        }
        self.found_for(method, &plain)
    }

    fn found_for(&self, method: &Method, path: &str) -> (Class, PoolId) {
        let pool = self.pool_for(method, path);
        let class = match self.read().find(pool, method, path) {
            Some(index) => Class::Known(index),
            None if segments(path).count() <= DEPTH_MAX => Class::Unknown(self.other_for(pool, method, path)),
            None => Class::Other(self.other_for(pool, method, path)),
        };
        (class, pool)
    }

    /// Returns whose workers a path is for that has no declared route.
    fn pool_for(&self, method: &Method, path: &str) -> PoolId {
        let is_its = |patterns: &Vec<Pattern>| patterns.iter().any(|pattern| pattern.matches(method, path));
        PoolId(self.pools.iter().position(is_its).map_or(0, |at| at + 1) as u32)
    }

    /// Returns the segments of the route of a pool that a path is of: `None` where it names none.
    fn named(&self, pool: PoolId, method: &Method, path: &str) -> Template {
        let own = pool.index().checked_sub(1).and_then(|at| self.pools.get(at));
        let pattern = own.and_then(|own| own.iter().find(|pattern| pattern.matches(method, path)));
        pattern.map(|pattern| pattern.segments().to_vec()).unwrap_or_default()
    }

    /// Returns the route of a path that has none of its own.
    fn other_for(&self, pool: PoolId, method: &Method, path: &str) -> RouteId {
        match pool.index().checked_sub(1) {
            Some(at) => RouteId((SHARES + self.declared.len() + at) as u32),
            None => self.share_of(method, path),
        }
    }

    /// Returns the share of a path without a route. Paths that would become one route have the same
    /// share; an outsider cannot tell which other paths have it.
    fn share_of(&self, method: &Method, path: &str) -> RouteId {
        let mut hasher = self.hasher.build_hasher();
        folded(method).hash(&mut hasher);
        for segment in segments(path).take(DEPTH_MAX) {
            Some(segment).filter(|segment| !is_identifier(segment)).hash(&mut hasher);
        }
        RouteId((hasher.finish() % SHARES as u64) as u32)
    }

    /// Adds to the table the path of a request that the application has answered well, if there is
    /// a place for it. `uses` returns a route's good answers so far. `take` gets the new route's
    /// place, pool and name before any request is classified as the new route's, and returns whether
    /// the place is free to take now. It is not called if there is no place.
    pub fn learn(
        &self,
        method: &Method,
        path: &str,
        now: Instant,
        uses: impl Fn(RouteId) -> u64,
        take: impl FnOnce(TableSlot, PoolId, &str) -> bool,
    ) {
        let path = &*plainly_spelled(path);
        let pool = self.pool_for(method, path);
        let mut found = self.found.write().expect("nobody panics while holding the table");
        let first = self.first_found();
        if self.routes_max == first || found.find(pool, method, path).is_some() {
            return;
        }
        let (method, template) =
            (folded(method), found.template_of(pool, path, &self.named(pool, method, path)));
        let routes = found.routes;
        let seat = if routes < self.routes_max {
            let is_plenty = (routes - first) * 2 < self.routes_max - first;
            (is_plenty || found.turnover.may_find(now)).then_some(TableSlot::New(RouteId(routes as u32)))
        } else {
            let hash = self.hasher.hash_one((pool, &method, &template));
            let place =
                found.turnover.place_for(hash, now, (first..routes).map(|index| RouteId(index as u32)), uses);
            place.filter(|_| found.turnover.may_find(now)).map(TableSlot::Of)
        };
        if let Some(seat) = seat.filter(|seat| take(*seat, pool, &name_of(&method, &template))) {
            found.seat(seat, first, (pool, method, template));
        }
    }

    /// Returns the path if its answers must be watched: it looks like a static asset, and passes as
    /// one or was found to be a page.
    pub fn asset_of(&self, class: Class, method: &Method, path: &str) -> Option<Asset> {
        let is_one = match class {
            Class::Ungated(exempt) => exempt == Exempt::Static,
            Class::Known(_) | Class::Unknown(_) | Class::Other(_) => {
                !self.pages.is_empty() && self.is_asset(method, path)
            }
        };
        is_one.then(|| Asset(self.hasher.hash_one(path)))
    }

    /// Notes what the application answers for the path: as long as that is a page, the path is
    /// gated.
    pub fn note_answer(&self, Asset(path): Asset, is_page: bool) {
        if is_page {
            self.pages.add(path);
        } else if !self.pages.is_empty() {
            self.pages.remove(path);
        }
    }

    /// Returns the declared route that a request belongs to, if any.
    fn declared_for(&self, method: &Method, path: &str, query: Option<&str>) -> Option<usize> {
        // The query is read only if a route of this path asks something of it, and then once.
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

    /// Returns why a path is ungated: it is listed, gives passes or looks like a static asset.
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

    /// Returns whether the request reads a path with the extension or the prefix of a static asset.
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

    fn read(&self) -> std::sync::RwLockReadGuard<'_, DiscoveredRoutes> {
        self.found.read().expect("nobody panics while holding the table")
    }
}

#[cfg(test)]
mod tests;
