//! Routes and services as tables.

use super::{ROUTES_MAX, rate, short};
use crate::numbers::rough_time as time;
use crate::table::Table;
use std::cmp::Reverse;
use suimon_admin::{RouteState, ServiceState, State};
use suimon_gate::PausePlace;
use suimon_statistics::table::Align::{Left, Right};

/// The busiest routes, and how many there are more.
pub(super) struct Routes {
    pub(super) table: Table,
    pub(super) more: usize,
}

/// Returns the routes that were asked for: first those with most queued or in-flight requests, then those
/// with most requests. Their names take `names` columns at most.
pub(super) fn routes(state: &State, names: usize) -> Routes {
    let mut busiest: Vec<&RouteState> = state.routes.iter().filter(|route| route.offered > 0).collect();
    busiest.sort_by_key(|route| Reverse((route.queued + route.in_flight, route.offered)));
    let columns = [
        ("route", Left, 0),
        ("limit", Right, 1),
        ("in flight", Right, 3),
        ("queued", Right, 2),
        ("done/s", Right, 8),
        ("takes", Right, 6),
        ("p99", Right, 7),
        ("failed", Right, 4),
        ("abandoned", Right, 9),
        ("done", Right, 11),
        ("refused", Right, 5),
        ("orphaned", Right, 10),
        ("", Left, 12),
    ];
    let row = |route: &&RouteState| {
        let limit = match (route.mode.as_deref(), route.limit) {
            (Some("observe"), Some(limit)) => format!("({limit})"),
            (_, Some(limit)) => limit.to_string(),
            (_, None) => "none".to_string(),
        };
        let probed = state.probing.as_deref() == Some(route.name.as_str());
        vec![
            short(&route.name, names),
            limit,
            route.in_flight.to_string(),
            route.queued.to_string(),
            rate(route.rate),
            time(route.service_seconds),
            route.upstream.p99.map_or_else(String::new, time),
            route.failed.to_string(),
            route.abandoned.to_string(),
            route.completed.to_string(),
            route.refused.to_string(),
            route.orphaned.to_string(),
            if probed { "limit under trial".to_string() } else { String::new() },
        ]
    };
    let rows: Vec<Vec<String>> = busiest.iter().take(ROUTES_MAX).map(row).collect();
    let more = busiest.len() - rows.len();
    Routes { table: Table::of_numbers(&columns, rows), more }
}

/// Returns the pause that each request gets, and whether the application takes it.
fn pause_of(service: &ServiceState) -> String {
    if service.pause_ms <= 0.0 {
        return "none".to_owned();
    }
    let inside = if service.pauses == PausePlace::Inside.word() { " inside" } else { "" };
    time(1e-3 * service.pause_ms) + inside
}

/// Returns each service with its wish, what it has now, and what binds it.
pub(super) fn services(services: &[ServiceState], names: usize) -> Table {
    let columns = [
        ("service", Left, 0),
        ("wish", Left, 1),
        ("alone", Right, 9),
        ("slowed", Right, 2),
        ("share", Right, 5),
        ("done/s", Right, 6),
        ("cap", Right, 4),
        ("pause", Right, 8),
        ("in flight", Right, 7),
        ("waiting", Right, 3),
        ("bound by", Left, 10),
    ];
    let row = |service: &ServiceState| {
        let mut wish = match &*service.mode {
            "slowdown" => vec![format!("× {}", service.slowdown_wished)],
            "shares" | "bands" => vec![format!("weight {}", service.weight)],
            _ => vec!["measured only".to_owned()],
        };
        wish.extend(service.floor.iter().map(|floor| format!("≥ {floor}")));
        wish.extend(service.ceiling.iter().map(|ceiling| format!("≤ {ceiling}")));
        vec![
            short(&service.name, names),
            wish.join(", "),
            service.alone_seconds.map_or_else(|| "–".to_owned(), time),
            service.slowdown.map_or_else(|| "–".to_owned(), |slowdown| format!("× {slowdown:.1}")),
            format!("{:.0} %", 100.0 * service.share),
            rate(service.rate),
            service.cap.map_or_else(|| "none".to_owned(), |cap| format!("{cap:.2}")),
            pause_of(service),
            service.in_flight.to_string(),
            service.waiting.to_string(),
            service.binding.replace('_', " "),
        ]
    };
    Table::of_numbers(&columns, services.iter().map(row).collect())
}
