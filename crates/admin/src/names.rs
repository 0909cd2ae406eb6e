//! Every path and every metric, named once: `suimon_<noun>_<unit>`, or OpenTelemetry's HTTP name where one exists. Names never change meaning.

use crate::text::{Metric, MetricKind};

/// Where metrics are answered.
pub(crate) const METRICS_PATH: &str = "/metrics";
/// Where [`crate::State`] is answered.
pub const STATE_PATH: &str = "/api/state";
/// Where [`crate::Learned`] is answered.
pub const LEARNED_PATH: &str = "/api/learned";
/// Where the lines are answered, and told what their operator says.
pub const WAITING_ROOM_PATH: &str = "/api/waiting-room";
/// Where it is answered that the process lives, ...
pub(crate) const HEALTH_PATH: &str = "/healthz";
/// ... and that new visitors should be sent here.
pub(crate) const READY_PATH: &str = "/readyz";

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal, $help:literal;)+) => {
        $(pub(crate) const $constant: Metric = Metric { name: $name, kind: MetricKind::$kind, help: $help };)+

        /// Every metric there is.
        #[cfg(test)]
        pub(crate) const ALL: &[Metric] = &[$($constant,)+];
    };
}

metrics! {
    BUILD = Gauge "suimon_build_info", "Always 1; the version is in the label.";
    UPTIME = Gauge "suimon_uptime_seconds", "Time since the start.";
    READY = Gauge "suimon_ready", "1 if new visitors should be sent here, as /readyz says.";

    // The whole gateway.
    REQUESTS = Counter "suimon_requests_total", "Requests whose head was read, good or bad.";
    BAD_REQUESTS = Counter "suimon_bad_requests_total", "Requests answered as bad by the gateway itself (status 4xx).";
    UPSTREAM_ERRORS = Counter "suimon_upstream_errors_total", "Requests answered 502 to 504 because of the application or the way to it.";
    REFUSALS = Counter "suimon_refusals_total", "Requests refused: sent away without a place, by reason. Waiting pages are not among them.";
    WAITING_PAGES = Counter "suimon_waiting_pages_total", "Waiting pages: answers that show a place in line, to people or to programs. Not in suimon_responses_total.";
    POLLS = Counter "suimon_polls_total", "Polls: questions of waiting pages how their place stands. Not in suimon_responses_total.";
    CONNECTIONS_OPEN = Gauge "suimon_client_connections", "Client connections open now.";
    CONNECTIONS = Counter "suimon_client_connections_total", "Client connections ever accepted.";
    CONNECTIONS_DISPLACED = Counter "suimon_client_connections_displaced_total", "Of these, those closed to make room for others: limits.connections was reached.";
    TUNNELS = Gauge "suimon_tunnels", "Client connections open now that have switched to another protocol, such as WebSockets.";
    GONE_WAITING = Counter "suimon_clients_gone_while_waiting_total", "Clients that left while they were held or queued.";
    GHOSTS = Counter "suimon_ghosts_total", "Clients that left while the application worked for them.";
    BUFFERED = Gauge "suimon_buffered_bytes", "Answers held for slow clients.";
    SPOOLED = Gauge "suimon_spooled_bytes", "Bodies of slow clients in files.";
    HELD = Gauge "suimon_held_requests", "Newcomers held at the session gate, all kinds together.";
    QUEUED = Gauge "suimon_queued_requests", "Requests queued for a slot, all routes together.";
    IN_FLIGHT = Gauge "suimon_in_flight_requests", "Requests in the application, all routes together.";
    PAUSED = Gauge "suimon_paused_requests", "Requests paused: they wait for their clients in the middle of a body, and have no slot. Not in suimon_in_flight_requests.";
    SESSIONS = Gauge "suimon_sessions", "Sessions remembered.";
    LEASED_SESSIONS = Gauge "suimon_leased_sessions", "Of these, those whose visitors carry a lease.";

    // By route.
    ACTIVE = Gauge "http_server_active_requests", "Requests whose client waits for an answer, in a queue or in the application.";
    ROUTE_LIMIT = Gauge "suimon_route_limit_requests", "How many requests of the route may be in the application at once; absent where none is held.";
    ROUTE_IN_FLIGHT = Gauge "suimon_route_in_flight_requests", "Requests of the route in the application.";
    ROUTE_GHOSTS = Gauge "suimon_route_ghost_requests", "Of these, requests whose client has gone.";
    ROUTE_PAUSED = Gauge "suimon_route_paused_requests", "Requests of the route that wait for their clients in the middle of a body, and have no slot.";
    ROUTE_QUEUED = Gauge "suimon_route_queued_requests", "Requests in the route's queue.";
    ROUTE_OFFERED = Counter "suimon_route_offered_requests_total", "Requests that came; once ended, each is in suimon_route_ended_requests_total.";
    ROUTE_ENDED = Counter "suimon_route_ended_requests_total", "What came of them: completed, failed, abandoned, refused, or waiting_page: shown a place in line.";
    RESPONSES = Counter "suimon_responses_total", "Answers sent, by first digit of their status; waiting pages and polls have counters of their own.";
    WAIT_SECONDS = Histogram "suimon_wait_seconds", "Time held or queued, of requests that were.";
    ADDED_SECONDS = Histogram "suimon_added_seconds", "Time the gateway itself added, less waiting and application.";
    UPSTREAM_SECONDS = Histogram "http_client_request_duration_seconds", "Time from sending a request to the application until it was done.";

    // By kind of session.
    KIND_OPEN = Gauge "suimon_kind_open", "1 while newcomers pass without being held back.";
    KIND_INTERVAL = Gauge "suimon_kind_interval_seconds", "Time between two session starts; 0 while open.";
    KIND_HELD = Gauge "suimon_kind_held_sessions", "Newcomers held at the gate: their requests are kept open.";
    KIND_ACTIVE = Gauge "suimon_kind_active_sessions", "Sessions under way.";
    KIND_ADMITTED = Counter "suimon_kind_admitted_sessions_total", "Sessions let in.";
    KIND_REFUSED = Counter "suimon_kind_refused_sessions_total", "Newcomers sent away without a place.";
    KIND_CAME = Counter "suimon_kind_came_sessions_total", "Newcomers, whatever became of them.";
    KIND_ENDED = Counter "suimon_kind_ended_sessions_total", "Sessions that ended: finished (the application said so), silent (nothing more came after an answer), left (before an answer came), failed (after an error).";
    KIND_RESUMED = Counter "suimon_kind_resumed_sessions_total", "Sessions taken to have ended that went on, and those of a gateway before a restart.";
    KIND_REMEMBERED = Gauge "suimon_kind_remembered_sessions", "Sessions let in and not known to have ended, the silent ones included.";
    KIND_PLANNED = Gauge "suimon_kind_planned_sessions_per_second", "Sessions per second that the session law plans to let in; +Inf lets everybody in; absent where it does not know.";
    KIND_WAIT_LOW = Gauge "suimon_kind_wait_low_seconds", "Wait of somebody who comes now, in line or held, at the least; absent where nobody can tell.";
    KIND_WAIT_HIGH = Gauge "suimon_kind_wait_high_seconds", "The same at the most: what to alert on.";
    KIND_HELD_WAIT = Gauge "suimon_kind_held_wait_seconds", "Wait of somebody who is held at the gate.";
    KIND_PATIENCE = Gauge "suimon_kind_patience_seconds", "How long visitors are taken to wait; source: declared, learned, recalled or assumed.";

    // By line of the waiting room.
    LINE_DRAWN = Counter "suimon_line_drawn_places_total", "Places drawn.";
    LINE_CALLED = Counter "suimon_line_called_places_total", "Places called: their turn has come.";
    LINE_CLAIMED = Counter "suimon_line_claimed_places_total", "Places whose sessions have begun.";
    LINE_WAITING = Gauge "suimon_line_waiting_visitors", "Visitors in line, as waiting pages tell those behind them: present, or have just drawn.";
    LINE_PRESENT = Gauge "suimon_line_present_visitors", "Visitors present in the line.";
    LINE_PROVISIONAL = Gauge "suimon_line_provisional_places", "Places drawn of late whose visitors were not heard of again yet: many of them for long are clients that never come back.";
    LINE_SHOWN_UP = Gauge "suimon_line_shown_up_ratio", "Of those called of late and expected, the share that came.";
    LINE_LEAVING = Gauge "suimon_line_leaving_ratio_per_second", "Share of those waiting that gives up each second.";
    LINE_TOLD_SECONDS = Histogram "suimon_line_told_seconds", "Waits that ended with a session, as they were told: from the number's being drawn to the turn at the latest.";
    LINE_WAITED_SECONDS = Histogram "suimon_line_waited_seconds", "The same waits as they were.";
    LINE_MOVING = Gauge "suimon_line_moving", "1 if the line moves; 0 if it is paused, closed or still to open.";

    // By node of the application.
    NODE_UP = Gauge "suimon_node_up", "1 if the node is sent new requests.";
    NODE_IN_FLIGHT = Gauge "suimon_node_in_flight_requests", "Requests at the node.";
    NODE_PICKED = Counter "suimon_node_picked_requests_total", "Requests the node was picked for.";
    NODE_CONNECTIONS = Gauge "suimon_node_connections", "Connections kept open to the node.";

    // The process, by the names Prometheus' own clients use.
    CPU = Counter "process_cpu_seconds_total", "Processor time used, user and system.";
    MEMORY = Gauge "process_resident_memory_bytes", "Memory in use.";
    OPEN_FILES = Gauge "process_open_fds", "File descriptors open.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_told_once_and_in_the_agreed_form() {
        let mut names: Vec<&str> = ALL.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        for metric in ALL {
            assert!(metric.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", metric.name);
            assert!(
                ["suimon_", "http_", "process_"].iter().any(|prefix| metric.name.starts_with(prefix)),
                "{}",
                metric.name
            );
            assert_eq!(
                metric.kind == MetricKind::Counter,
                metric.name.ends_with("_total"),
                "{}",
                metric.name
            );
            assert!(
                metric.kind != MetricKind::Histogram || metric.name.ends_with("_seconds"),
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.name);
        }
    }
}
