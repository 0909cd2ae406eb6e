//! A route as it is written: "METHOD /path?parameters".

use suimon_params::{QueryPattern, RoutePattern};

/// Returns the pattern that "METHOD /path" names; the schema has seen to it that it is one.
pub(crate) fn pattern(text: &str) -> RoutePattern {
    let (method, path) = text.split_once(' ').expect("the schema takes no route without a space");
    RoutePattern { method: (method != "*").then(|| method.to_string()), path: path.to_string() }
}

/// Returns the pattern that "METHOD /path?parameters" names, and what its query must have, if
/// anything.
pub(crate) fn pattern_and_query(text: &str) -> (RoutePattern, Option<QueryPattern>) {
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let query =
        query.map(|query| QueryPattern::parse(query).expect("the schema takes no query that is none"));
    (pattern(path), query)
}
