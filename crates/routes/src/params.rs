//! What is known of routes before the first request.

use crate::pattern::RoutePattern;
use crate::query::QueryPattern;
use suimon_gate::RouteMode;
use suimon_model::PoolId;

/// Which requests share a limit, and which pass ungated.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Declared routes. They are tried in this order, before those found from traffic. Of several
    /// routes with one path, the one that asks most of the query is tried first.
    pub declared: Vec<DeclaredRoute>,
    /// Pools that take the requests of some routes: the second pool, the third and so on. The first
    /// takes all others. No request belongs to two of them, and none of some declared route alone.
    pub pools: Vec<PoolRoutes>,
    /// The most routes found from traffic; the rest share one, named `other`.
    pub discovered_max: usize,
    /// What the gate does on routes found from traffic.
    pub discovered_mode: RouteMode,
    /// Last path segments that end in `.` and one of these (lower case) are static assets: GET and
    /// HEAD pass ungated.
    pub static_extensions: Vec<String>,
    /// Paths that begin with one of these are static assets: GET and HEAD pass ungated.
    pub static_prefixes: Vec<String>,
    /// Paths that pass ungated with any method. An entry that ends in `/` includes all paths below
    /// it.
    pub ungated: Vec<String>,
}

impl Default for Routes {
    fn default() -> Self {
        let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        Routes {
            declared: Vec::new(),
            pools: Vec::new(),
            discovered_max: 200,
            discovered_mode: RouteMode::Enforce,
            static_extensions: strings(&[
                "css", "js", "mjs", "map", "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "woff",
                "woff2", "ttf", "otf", "eot", "mp4", "webm", "mp3", "wasm",
            ]),
            static_prefixes: Vec::new(),
            ungated: strings(&[
                "/robots.txt",
                "/favicon.ico",
                "/.well-known/",
                "/health",
                "/healthz",
                "/livez",
                "/readyz",
                "/actuator/health",
            ]),
        }
    }
}

impl Routes {
    /// Returns the pool that takes the requests of a declared route.
    pub fn pool_of(&self, route: &DeclaredRoute) -> PoolId {
        let holds = |pool: &PoolRoutes| pool.patterns.iter().any(|own| own.covers(&route.pattern));
        PoolId(self.pools.iter().position(holds).map_or(0, |at| at + 1) as u32)
    }
}

/// What belongs to a pool of workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolRoutes {
    /// The pool's name.
    pub name: String,
    /// The requests that belong to it.
    pub patterns: Vec<RoutePattern>,
}

impl PoolRoutes {
    /// Returns the name of the route of all its requests that have no other.
    pub fn other(&self) -> String {
        format!("other of {}", self.name)
    }
}

/// A declared route.
#[derive(Clone, Debug)]
pub struct DeclaredRoute {
    /// The requests that belong to it.
    pub pattern: RoutePattern,
    /// What the query of these requests must have. `None`: nothing.
    pub query: Option<QueryPattern>,
    /// What the gate does here.
    pub mode: RouteMode,
}

impl DeclaredRoute {
    /// Returns the route as it is written and shown: `GET /items/{id}`, or `GET /?s` with its
    /// query.
    pub fn name(&self) -> String {
        let path = self.pattern.name();
        match &self.query {
            Some(query) => format!("{path}?{}", query.as_written()),
            None => path,
        }
    }
}
