//! Routes that an earlier run found.

use crate::found::{DEPTH_MAX, SEGMENT_MAX, SIBLINGS_MAX, Template, is_identifier};
use crate::pattern::folded;
use crate::{Table, TableSlot};
use http::Method;
use suimon_model::{PoolId, RouteId};

/// What stands for an identifier in a name.
const IDENTIFIER: &str = "{id}";
/// A segment that is one, and that nobody declares as it is.
const AN_IDENTIFIER: &str = "18446744073709551615";
/// Remembered routes may take this many quarters of the places for found routes, so that there is
/// always room for new ones.
const QUARTERS_MAX: usize = 3;

impl Table {
    /// Adds a route of this name to the table, as [`Table::learn`] would have named it. `declare`
    /// is called with the new route and its pool. It is not called if the route is known or declared,
    /// the name could not be that of a found route, or the table has no room for remembered ones.
    pub fn remember(&self, name: &str, declare: impl FnOnce(RouteId, PoolId, &str)) {
        let Some((method, segments)) = parts(name) else { return };
        let like = |segment: &&str| if *segment == IDENTIFIER { AN_IDENTIFIER } else { segment }.to_owned();
        let path = format!("/{}", segments.iter().map(like).collect::<Vec<_>>().join("/"));
        if self.declared_for(&method, &path, None).is_some() {
            return;
        }
        let pool = self.pool_for(&method, &path);
        let mut found = self.found.write().expect("nobody panics while holding the table");
        let declared = self.first_found();
        if (found.routes - declared) * 4 >= (self.routes_max - declared) * QUARTERS_MAX {
            return;
        }
        let mut at = Some(pool.index());
        let mut template: Template = vec![];
        for segment in segments {
            let is_name = segment != IDENTIFIER;
            let Some(node) = at.map(|at| &found.nodes[at]) else {
                template.push(is_name.then(|| segment.into()));
                continue;
            };
            at = if is_name { node.literal.get(segment).copied() } else { node.identifier };
            if at.is_none() && is_name && node.literal.len() >= SIBLINGS_MAX {
                return;
            }
            template.push(is_name.then(|| segment.into()));
        }
        if at.is_some_and(|at| found.nodes[at].routes.iter().any(|(other, _)| *other == method)) {
            return;
        }
        let route = RouteId(found.routes as u32);
        declare(route, pool, name);
        found.seat(TableSlot::New(route), declared, (pool, method, template));
    }
}

/// Returns method and segments of the name of a route found from traffic; `None` for any other
/// name.
fn parts(name: &str) -> Option<(Method, Vec<&str>)> {
    let (method, path) = name.split_once(' ')?;
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    let path = path.strip_prefix('/')?;
    let segments: Vec<&str> = if path.is_empty() { vec![] } else { path.split('/').collect() };
    let is_literal = |segment: &&str| {
        !segment.is_empty()
            && segment.len() <= SEGMENT_MAX
            && segment.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#;".contains(&byte))
            && !is_identifier(segment)
    };
    let is_sound = segments.iter().all(|segment| *segment == IDENTIFIER || is_literal(segment));
    (folded(&method) == method && segments.len() <= DEPTH_MAX && is_sound).then_some((method, segments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route_of;
    use crate::{DeclaredRoute, RoutePattern, Routes};
    use suimon_gate::RouteMode;

    use crate::Class;
    use std::time::Instant;

    fn table() -> Table {
        Table::new(&Routes { discovered_max: 8, ..Routes::default() })
    }

    fn remember(table: &Table, name: &str) -> bool {
        let mut was_new = false;
        table.remember(name, |_, _, told| {
            assert_eq!(told, name);
            was_new = true;
        });
        was_new
    }

    #[test]
    fn a_remembered_route_is_the_one_that_was_found() {
        let (before, after) = (table(), table());
        for path in ["/", "/items/17", "/items/17/reviews", "/cart"] {
            let mut name = String::new();
            before.learn(
                &Method::GET,
                path,
                Instant::now(),
                |_| 0,
                |_, _, new| {
                    name = new.to_owned();
                    true
                },
            );
            assert!(remember(&after, &name), "{name}");
            assert!(!remember(&after, &name), "it is known now: {name}");
            assert_eq!(
                before.classify(&Method::GET, path, None),
                after.classify(&Method::GET, path, None),
                "{path}"
            );
        }
        assert_eq!(after.classify(&Method::GET, "/items/99", None), Class::Known(route_of(2)));
        assert!(matches!(after.classify(&Method::POST, "/cart", None), Class::Unknown(_)));
    }

    #[test]
    fn names_that_could_not_be_found_are_left_out() {
        let long = format!("GET /{}", "a".repeat(41));
        let deep = format!("GET {}", "/a".repeat(DEPTH_MAX + 1));
        for name in [
            "",
            "other",
            "GET",
            "GET ",
            "GET items",
            "HEAD /a",
            "G(T /a",
            "GET //",
            "GET /a/",
            "GET /17",
            "GET /a b",
            "GET /a?b",
            "GET /a;b",
            "GET /é",
            "GET /{id}x123",
            &long,
            &deep,
        ] {
            assert!(!remember(&table(), name), "{name:?}");
        }
    }

    #[test]
    fn a_declared_route_is_not_there_twice() {
        let declared =
            [("GET", "/jobs/light"), ("GET", "/items/{item}"), ("GET", "/pages/0"), ("*", "/static/*")];
        let declared = declared.map(|(method, path)| DeclaredRoute {
            pattern: RoutePattern {
                method: Some(method.to_owned()).filter(|method| method != "*"),
                path: path.to_owned(),
            },
            query: None,
            mode: RouteMode::Enforce,
        });
        let table =
            Table::new(&Routes { declared: declared.into(), discovered_max: 40, ..Routes::default() });
        for (name, is_new) in [
            ("GET /jobs/light", false),
            ("GET /items/{id}", false),
            ("GET /static/a", false),
            ("GET /pages/{id}", true),
            ("GET /", true),
            ("POST /jobs/light", true),
            ("GET /items", true),
        ] {
            assert_eq!(remember(&table, name), is_new, "{name}");
        }
    }

    #[test]
    fn there_is_room_for_new_routes_however_many_were_known() {
        let table = table();
        let names: Vec<String> = (b'a'..=b'z').map(|letter| format!("GET /{}", char::from(letter))).collect();
        assert_eq!(names.iter().filter(|name| remember(&table, name)).count(), 6);
        assert!(
            matches!(table.classify(&Method::GET, "/new", None), Class::Unknown(_)),
            "it can still be found"
        );
    }
}
