//! Every path and every metric, named once: `suimon_<noun>_<unit>`, or OpenTelemetry's HTTP name
//! where one exists. Names never change meaning.

use crate::text::{Metric, MetricKind};

/// Where metrics are answered.
pub(crate) const METRICS_PATH: &str = "/metrics";
/// Where [`crate::State`] is answered.
pub const STATE_PATH: &str = "/api/state";
/// Where [`crate::SitesAnswer`] is answered.
pub const SITES_PATH: &str = "/api/sites";
/// The dashboard's script, ...
pub(crate) const SCRIPT_PATH: &str = "/app.js";
/// ... and its style.
pub(crate) const STYLE_PATH: &str = "/app.css";
/// Where [`crate::HistoryState`] is answered.
pub const HISTORY_PATH: &str = "/api/history";
/// Where [`crate::LiveState`] is told each second.
pub const EVENTS_PATH: &str = "/api/events";
/// Where [`crate::Learned`] is answered.
pub const LEARNED_PATH: &str = "/api/learned";
/// Where the lines are shown, and commanded by their operator.
pub const WAITING_ROOM_PATH: &str = "/api/waiting-room";
/// Where the pools of workers are shown, and commanded by their operator.
pub const POOL_PATH: &str = "/api/pool";
/// Where overrides are shown, and set and released by an operator.
pub const OVERRIDE_PATH: &str = "/api/override";
/// Where the settings in force are shown, and replaced by an operator.
pub const CONFIG_PATH: &str = "/api/config";
/// Where the listener describes itself.
pub const OPENAPI_PATH: &str = "/api/openapi.json";
/// Where commands are taken, by POST.
pub(crate) const COMMAND_PATHS: [&str; 4] = [WAITING_ROOM_PATH, POOL_PATH, OVERRIDE_PATH, CONFIG_PATH];
/// Where the process answers that it lives, ...
pub(crate) const HEALTH_PATH: &str = "/healthz";
/// ... and that new visitors should be sent here.
pub(crate) const READY_PATH: &str = "/readyz";

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal, $help:literal;)+) => {
        $(pub(crate) const $constant: Metric = Metric { name: $name, kind: MetricKind::$kind, help: $help };)+

        /// Every metric there is.
        pub(crate) const ALL: &[Metric] = &[$($constant,)+];
    };
}

metrics! {
    BUILD = Gauge "suimon_build_info", "Always 1; the version is in the label.";
    UPTIME = Gauge "suimon_uptime_seconds", "Time since the start.";
    READY = Gauge "suimon_ready", "1 if the gateway is ready for new visitors, as /readyz says.";

    // The whole gateway.
    REQUESTS = Counter "suimon_requests_total", "Requests whose head was read, good or bad.";
    BAD_REQUESTS = Counter "suimon_bad_requests_total", "Requests answered as bad by the gateway itself (status 4xx).";
    HTTPS_REDIRECTS = Counter "suimon_https_redirects_total", "Requests by plain HTTP that were redirected to HTTPS.";
    UPSTREAM_ERRORS = Counter "suimon_upstream_errors_total", "Requests answered 502 to 504 because of the application or the way to it.";
    RETRIES = Counter "suimon_upstream_retries_total", "Requests whose try got no answer, by what became of them: unsent (nothing of it had been sent; tried again), closed (a kept connection closed before it was read; sent again), lost (the connection closed without an answer; sent again) or withheld (the same, and not sent again because of upstream.retry_share).";
    REFUSALS = Counter "suimon_refusals_total", "Requests refused without a position in line, by reason. Waiting pages are not counted here.";
    WAITING_PAGES = Counter "suimon_waiting_pages_total", "Waiting pages: responses that show a position in line, as HTML or JSON. Not in suimon_responses_total.";
    POLLS = Counter "suimon_polls_total", "Polls: requests of waiting pages for the status of their position. Not in suimon_responses_total.";
    CONNECTIONS_OPEN = Gauge "suimon_client_connections", "Client connections open now.";
    CONNECTIONS = Counter "suimon_client_connections_total", "Client connections ever accepted.";
    CONNECTIONS_DISPLACED = Counter "suimon_client_connections_displaced_total", "Client connections closed in favour of new ones because limits.connections was reached.";
    TUNNELS = Gauge "suimon_tunnels", "Client connections open now that have switched to another protocol, such as WebSockets.";
    DISCONNECTS = Counter "suimon_client_disconnects_total", "Client disconnects before the response, by phase of the request: waiting (held or queued) or upstream (in the application).";
    BUFFERED = Gauge "suimon_buffered_bytes", "Bytes of responses buffered in memory for slow clients.";
    SPOOLED = Gauge "suimon_spooled_bytes", "Bytes of bodies of slow clients buffered in files.";
    HELD = Gauge "suimon_held_requests", "Newcomers whose requests are held at the session gate, all kinds together.";
    QUEUED = Gauge "suimon_queued_requests", "Requests queued for a slot, all routes together.";
    IN_FLIGHT = Gauge "suimon_in_flight_requests", "Requests in the application, all routes together.";
    SUSPENDED = Gauge "suimon_suspended_requests", "Suspended requests: in the application, but waiting for their clients in the middle of a body, without a slot. Not in suimon_in_flight_requests.";
    LEASED_SESSIONS = Gauge "suimon_leased_sessions", "Remembered sessions whose visitors have a lease.";

    // Sharing with other gateways; absent where there are none.
    SHARING_GATEWAYS = Gauge "suimon_sharing_gateways", "Gateways whose records are exchanged, this one included.";
    SHARING_PHASE = Gauge "suimon_sharing_phase", "1 for the phase of sharing it is in: joining, shared, last_share or safe_share.";
    SHARING_EXCHANGES = Counter "suimon_sharing_exchanges_total", "Exchanges with the engine by outcome: done, or failed (also those not tried after failures).";
    SHARING_EXCHANGE = Gauge "suimon_sharing_exchange_seconds", "Time the last exchange took.";
    SHARING_LEARNS = Gauge "suimon_sharing_learns", "1 if this gateway learns the limits, 0 if it follows another.";

    // By route.
    ACTIVE = Gauge "http_server_active_requests", "Requests whose clients are waiting for a response, in a queue or in the application.";
    ROUTE_LIMIT = Gauge "suimon_route_limit_requests", "Concurrency limit of the route; absent if there is none.";
    ROUTE_IN_FLIGHT = Gauge "suimon_route_in_flight_requests", "Requests of the route in the application.";
    ROUTE_ORPHANED = Gauge "suimon_route_orphaned_requests", "Orphaned requests of the route: in the application, client disconnected.";
    ROUTE_SUSPENDED = Gauge "suimon_route_suspended_requests", "Suspended requests of the route: waiting for their clients in the middle of a body, without a slot.";
    ROUTE_QUEUED = Gauge "suimon_route_queued_requests", "Requests in the route's queue.";
    ROUTE_OFFERED = Counter "suimon_route_offered_requests_total", "Requests that arrived. Each is counted in suimon_route_ended_requests_total when it ends.";
    ROUTE_ENDED = Counter "suimon_route_ended_requests_total", "Ended requests by outcome: completed, failed, abandoned (client disconnected), refused, or waiting_page (got a position in line).";
    RESPONSES = Counter "suimon_responses_total", "Responses by class of status (2xx, ...); waiting pages and polls have counters of their own.";
    WAIT_SECONDS = Histogram "suimon_wait_seconds", "Time that requests were held or queued; requests that did not wait are not counted.";
    ADDED_SECONDS = Histogram "suimon_added_seconds", "Time added by the gateway itself, without waiting and without the application.";
    UPSTREAM_SECONDS = Histogram "http_client_request_duration_seconds", "Time from sending a request to the application to the end of its response.";

    // By kind of session.
    KIND_OPEN = Gauge "suimon_session_gate_open", "1 while newcomers are admitted without waiting.";
    KIND_INTERVAL = Gauge "suimon_admission_interval_seconds", "Admission interval: time between two admissions; 0 while the gate is open.";
    KIND_HELD = Gauge "suimon_held_newcomers", "Newcomers whose requests are held at the session gate.";
    KIND_ACTIVE = Gauge "suimon_active_sessions", "Active sessions.";
    KIND_ADMITTED = Counter "suimon_admitted_sessions_total", "Admitted sessions.";
    KIND_REFUSED = Counter "suimon_refused_newcomers_total", "Newcomers refused without a position in line.";
    KIND_NEWCOMERS = Counter "suimon_newcomers_total", "Newcomers, whatever their outcome.";
    KIND_ENDED = Counter "suimon_ended_sessions_total", "Ended sessions by outcome: finished (a request or the application ended it), silent (no further request after a response), abandoned (client disconnected before a response), failed (no further request after an error).";
    KIND_REOPENED = Counter "suimon_reopened_sessions_total", "Sessions that went on after they were taken for ended, and sessions from before a restart.";
    KIND_REMEMBERED = Gauge "suimon_remembered_sessions", "Admitted sessions that are not known to have ended, silent ones included.";
    KIND_ADMISSION_RATE = Gauge "suimon_admission_rate_per_second", "Admission rate planned by the session law; +Inf: everyone is admitted; absent if unknown.";
    KIND_WAIT_LOW = Gauge "suimon_predicted_wait_low_seconds", "Predicted wait of a newcomer who arrives now, in line or held: lower end; absent if unknown.";
    KIND_WAIT_HIGH = Gauge "suimon_predicted_wait_high_seconds", "Predicted wait of a newcomer who arrives now: upper end. Alert on this one.";
    KIND_HELD_WAIT = Gauge "suimon_predicted_hold_seconds", "Predicted wait of a newcomer who is held at the session gate.";
    KIND_PATIENCE = Gauge "suimon_patience_seconds", "Patience: how long visitors are assumed to wait for one response. Label source: declared, learned, recalled or assumed.";

    // By line of the waiting room.
    LINE_ISSUED = Counter "suimon_line_issued_tickets_total", "Tickets issued.";
    LINE_CALLED = Counter "suimon_line_called_tickets_total", "Tickets called: their turn has come.";
    LINE_ADMITTED = Counter "suimon_line_admitted_tickets_total", "Tickets whose holders were admitted.";
    LINE_WAITING = Gauge "suimon_line_waiting_visitors", "Visitors in line, as shown on waiting pages: present, or with a ticket issued within the last seconds.";
    LINE_PRESENT = Gauge "suimon_line_present_visitors", "Visitors in line whose pages have polled recently.";
    LINE_PROVISIONAL = Gauge "suimon_line_provisional_tickets", "Recent tickets whose holders have not polled yet. A persistently high value means clients that take tickets and never come back.";
    LINE_SHOWN_UP = Gauge "suimon_line_shown_up_ratio", "Share of recently called and expected visitors who showed up at the gate.";
    LINE_ABANDONMENT = Gauge "suimon_line_abandonment_ratio_per_second", "Abandonment rate: share of the waiting visitors that gives up per second.";
    LINE_TOLD_SECONDS = Histogram "suimon_line_predicted_wait_seconds", "Predicted waits of visitors who were admitted: from the issue of the ticket to the predicted latest turn.";
    LINE_WAITED_SECONDS = Histogram "suimon_line_wait_seconds", "Actual waits of the same visitors.";
    LINE_MOVING = Gauge "suimon_line_moving", "1 if the line moves; 0 if it is paused, closed or not open yet.";

    // By service.
    SERVICE_SLOWDOWN = Gauge "suimon_service_slowdown_ratio", "How many times as long as alone a request of the service takes, waiting included; absent while unknown or idle.";
    SERVICE_SLOWDOWN_WISHED = Gauge "suimon_service_wished_slowdown_ratio", "How much the service may be slowed, relative to the others, as declared.";
    SERVICE_SHARE = Gauge "suimon_service_effort_ratio", "Work the service does, as a share of what the host does at its best.";
    SERVICE_ALONE = Gauge "suimon_service_alone_seconds", "What a request of the service takes when nothing else runs, as learned or declared; absent while unknown.";
    SERVICE_RATE = Gauge "suimon_service_completions_per_second", "Requests of the service that are answered per second, as the law measures it.";
    SERVICE_FLOOR = Gauge "suimon_service_floor_per_second", "The floor of the service as declared, where it is a rate; absent where there is none.";
    SERVICE_FLOOR_SHARE = Gauge "suimon_service_floor_ratio", "The floor of the service as declared, where it is a share of what all services do; absent where there is none.";
    SERVICE_CEILING = Gauge "suimon_service_ceiling_per_second", "The ceiling of the service as declared, where it is a rate; absent where there is none.";
    SERVICE_CEILING_SHARE = Gauge "suimon_service_ceiling_ratio", "The ceiling of the service as declared, where it is a share of what the host does at its best; absent where there is none.";
    SERVICE_IN_FLIGHT = Gauge "suimon_service_in_flight_requests", "Requests of the service in the application.";
    SERVICE_WAITING = Gauge "suimon_service_waiting_requests", "Requests of the service in the queues of its routes, or held by its declared pause.";
    SERVICE_CAP = Gauge "suimon_service_cap_requests", "Mean number of requests of the service in the application that it is held to; absent if there is none.";
    SERVICE_PAUSE = Gauge "suimon_service_pause_seconds", "Pause that each request of the service gets: the declared one, and what a cap comes to.";
    SERVICE_INSIDE = Gauge "suimon_service_inside_pause_ratio", "Seconds that requests of the service paused inside for each second of work, as the application says: 0 if it says nothing. Only where requests are told to pause.";
    SERVICE_BINDING = Gauge "suimon_service_binding", "1 for what binds the service: label binding, of free, split, floor, ceiling, patience, no_effect, unknown, lag, idle, out_of_reach.";

    // By node of the application.
    NODE_UP = Gauge "suimon_node_up", "1 if the node receives new requests.";
    NODE_STATUS = Gauge "suimon_node_status", "1 for the status that the node has: up, down (health checks), ejected (failed requests) or draining.";
    NODE_IN_FLIGHT = Gauge "suimon_node_in_flight_requests", "Requests at the node.";
    NODE_SHARE = Gauge "suimon_node_share_ratio", "Its share of the requests in flight, which moves until requests take as long on all nodes; their mean is 1.";
    NODE_SESSIONS = Gauge "suimon_node_sessions", "Sessions of the application that are known to be at the node (upstream.affinity).";
    NODE_RELEASED_SESSIONS = Counter "suimon_node_released_sessions_total", "Sessions that were at the node and went elsewhere, as it was down, went away or could not be reached.";
    NODE_PICKED = Counter "suimon_node_picked_requests_total", "Requests sent to the node.";
    NODE_CONNECTIONS = Gauge "suimon_node_connections", "Connections kept open to the node.";
    NODE_REPORTED_LOAD = Gauge "suimon_node_reported_load_ratio", "Load that the node last reported: tasks that run or could for each processor, or the share of the application in use; above 1 requests wait there. Absent where it never did.";
    NODE_REPORT_CURRENT = Gauge "suimon_node_report_current", "1 if the node's last report still counts: it is at most three periods old.";
    NODE_REPORT_AGE = Gauge "suimon_node_report_age_seconds", "Time since the node's last report.";
    NODE_RUN_QUEUE = Gauge "suimon_node_run_queue_tasks", "Tasks that run or could on the node, mean of the second before its agent's last report.";
    NODE_PRESSURE = Gauge "suimon_node_cpu_pressure_ratio", "Share of the second before its agent's last report for which some task of the node waited for a processor; absent where the node does not know.";
    NODE_PHP_CHILDREN = Gauge "suimon_node_php_children", "Children of php-fpm at the node by state: active or idle, as its status page says; absent where it is not asked (upstream.fastcgi.status) or does not answer.";
    NODE_PHP_QUEUED = Gauge "suimon_node_php_queued_connections", "Connections that none of php-fpm's children has taken yet.";
    AGENT_DATAGRAMS = Counter "suimon_agent_datagrams_total", "Load reports of suimon agent that came, by result: accepted, or why they were refused (docs/agent.md).";
    ORCA_RESPONSES = Counter "suimon_orca_responses_total", "Responses with a load report (ORCA), by result: accepted, unreadable, or without_load (it says neither application_utilization nor cpu_utilization).";
    AGENT_CHECKS = Counter "suimon_agent_checks_total", "Answers of nodes that were asked for their load (agent-check), by result: accepted, unreachable (within half a second), or unreadable.";
    NODE_PHP_FULL = Counter "suimon_node_php_max_children_reached_total", "How often php-fpm had as many children as it may have, since it began.";

    // Nodes that come and go.
    NODES = Gauge "suimon_nodes", "Nodes by state: serving, starting, parked (ready, and without requests) or draining.";
    NODES_WANTED = Gauge "suimon_nodes_wanted", "Nodes that there should be, as the law of their number says.";
    NODES_BUSY = Gauge "suimon_nodes_busy_ratio", "Nodes that the work keeps busy; absent where that is unknown, so that the number is held.";
    NODES_TO_COME = Gauge "suimon_nodes_to_come_seconds", "Work that is there or in line, node-seconds.";
    NODES_START = Gauge "suimon_nodes_start_seconds", "Mean time from an order until a node is ready; absent until one was.";
    NODES_TROUBLE = Gauge "suimon_nodes_trouble", "1 if something keeps the provider from starting or ending nodes; the state says what.";

    // By pool of workers.
    POOL_WORKERS = Gauge "suimon_pool_workers", "Workers of the pool by state: starting, idle, busy, unsure (its request was cancelled, and it is not known to be idle) or stopping.";
    POOL_WANTED = Gauge "suimon_pool_wanted", "Workers that should be resident, as the law of the pool's size says, or an operator.";
    POOL_HEALTHY = Gauge "suimon_pool_healthy", "1 unless the pool cannot run, has no guardian, or so many starts have failed in a row that there is no worker.";
    POOL_STARTS = Counter "suimon_pool_starts_total", "Starts of workers, failed ones, too; with kind = \"cgi\", of a process for each request.";
    POOL_FAILED_STARTS = Counter "suimon_pool_failed_starts_total", "Failed starts of workers.";
    POOL_DEATHS = Counter "suimon_pool_deaths_total", "Workers that were ready and ended unasked; with kind = \"cgi\", processes that ended by themselves with another exit code than 0, or by a signal.";
    POOL_ENDED = Counter "suimon_pool_ended_total", "Workers ended or replaced by reason: surplus (fewer are wanted), requests, age, memory (as much as a worker may have), reload, stuck (no answer in time), cancelled (not idle in time after it), not_ready (in time) or squatted (another process has its port).";
    POOL_KILLS = Counter "suimon_pool_kills_total", "Workers that did not end when asked to, and were killed; with kind = \"cgi\", processes killed because nobody waited for them any more, or because they did not end after their answer.";
    POOL_REQUESTS = Counter "suimon_pool_requests_total", "Requests that a worker has answered to the end.";
    POOL_MEMORY = Gauge "suimon_pool_memory_bytes", "Memory of all workers of the pool.";
    POOL_WORKER_MEMORY = Gauge "suimon_pool_worker_memory_bytes", "Memory that nearly every worker takes at most; absent while unknown.";
    POOL_START = Gauge "suimon_pool_start_seconds", "Time from the start of a worker until it takes requests, the median of the last starts; absent while unknown.";

    // Logs and traces; absent where there are none.
    ACCESS_LINES = Counter "suimon_access_log_lines_total", "Lines of the access log by outcome: written, or dropped because there was no room or the file could not be written.";
    SPANS = Counter "suimon_trace_spans_total", "Spans of traces by outcome: sent (the collector has taken them) or dropped.";
    METRIC_EXPORTS = Counter "suimon_metric_exports_total", "Times that these metrics were sent to the collector, by outcome: sent, or dropped (the next ones count since the start, too).";
    RECORDING = Gauge "suimon_recording", "1 while what happens to the gate is recorded, 0 if that has stopped; absent if no recording is asked for.";

    // The process, by the names Prometheus' own clients use.
    ADMIN_REFUSED = Counter "suimon_admin_refused_requests_total", "Requests to the admin listener that were not answered, by reason: no_token, wrong_token, not_local (from another machine, where nothing proves who asks) or web_page (commands that may be a web page's from elsewhere).";
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
