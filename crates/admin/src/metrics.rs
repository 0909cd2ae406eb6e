//! One moment's numbers as metrics. Routes are as many as the proxy ever tells apart; the rest
//! share one, so the number of lines is bounded.

use crate::access::Access;
use crate::names;
use crate::text::{Exposition, Family, Format, Labels, Metric};
use crate::{Site, Source, load_reports, logs, process, state, sums};
use suimon_fleet::workers::{EndReason, WorkerState};
use suimon_gate::{Amount, ServiceView};
use suimon_proxy::UpstreamNodeView;
use suimon_proxy::{BUCKETS, LineCounts, RouteReport, Times, View, WAIT_BUCKETS};
use suimon_proxy::{NodesReport, PoolReport};

/// Returns what `/metrics` answers of these sites, the main one first. Of several, what is a site's has its
/// name as a label.
pub(crate) fn render(sites: &[Site], version: &str, access: &Access, format: Format) -> String {
    let mut out = Exposition::new(format, names::ALL);
    out.family(names::BUILD).value(&[("version", version)], 1.0);
    for (place, site) in sites.iter().enumerate() {
        out.set_site((sites.len() > 1).then_some(&site.name));
        of_site(&mut out, &*site.source, place == 0, access);
    }
    out.set_site(None);
    if let Some(usage) = process::usage() {
        out.single(names::CPU, usage.cpu_seconds);
        out.single(names::MEMORY, usage.resident_bytes as f64);
        out.single(names::OPEN_FILES, usage.open_files as f64);
    }
    out.finish()
}

/// Writes the numbers of a site. The main one tells those of the gateway, too.
fn of_site(out: &mut Exposition, source: &dyn Source, is_main: bool, access: &Access) {
    let view = source.view();
    let nodes = source.nodes();
    let ready = state::not_ready_because(source.is_draining(), &nodes).is_none();
    if is_main {
        out.gateway_family(names::UPTIME).value(&[], view.uptime.as_secs_f64());
    }
    out.single(names::READY, flag(ready));
    whole(out, &view, is_main);
    routes(out, &view);
    services(out, &view);
    kinds(out, &view);
    lines(out, &view);
    line_waits(out, &view);
    line_answers(out, &view);
    of_nodes(out, &nodes);
    if let Some(report) = source.scaling() {
        scaling(out, &report);
    }
    load_reports::render(out, &source.load_reports(), &nodes);
    pools(out, &source.pools(u64::MAX));
    if is_main {
        let mut refused = out.gateway_family(names::ADMIN_REFUSED);
        for (reason, count) in access.refused() {
            refused.value(&[("reason", reason)], count as f64);
        }
        logs::render(out, source.logs());
    }
    if let Some(recording) = view.recording {
        out.single(names::RECORDING, flag(recording));
    }
}

fn whole(out: &mut Exposition, view: &View, is_main: bool) {
    out.single(names::REQUESTS, view.requests as f64);
    out.single(names::BAD_REQUESTS, view.faults as f64);
    out.single(names::HTTPS_REDIRECTS, view.https_redirects as f64);
    out.single(names::UPSTREAM_ERRORS, view.upstream_errors as f64);
    let mut retries = out.family(names::RETRIES);
    for (outcome, count) in [
        ("unsent", view.retries.unsent),
        ("closed", view.retries.closed),
        ("lost", view.retries.lost),
        ("withheld", view.retries.withheld),
    ] {
        retries.value(&[("outcome", outcome)], count as f64);
    }
    let mut refusals = out.family(names::REFUSALS);
    for (reason, count) in &view.refusals {
        refusals.value(&[("reason", reason.code())], *count as f64);
    }
    if is_main {
        for (metric, count) in [
            (names::CONNECTIONS_OPEN, view.connections_open as f64),
            (names::CONNECTIONS, view.connections as f64),
            (names::CONNECTIONS_DISPLACED, view.connections_displaced as f64),
        ] {
            out.gateway_family(metric).value(&[], count);
        }
    }
    out.single(names::TUNNELS, view.tunnels as f64);
    let mut disconnects = out.family(names::DISCONNECTS);
    disconnects.value(&[("phase", "waiting")], view.disconnects_waiting as f64);
    disconnects.value(&[("phase", "upstream")], view.disconnects_upstream as f64);
    if is_main {
        // All sites share the room that there is for them.
        out.gateway_family(names::BUFFERED).value(&[], view.buffered_bytes as f64);
        out.gateway_family(names::SPOOLED).value(&[], view.spooled_bytes as f64);
    }
    out.single(names::HELD, sums::held(view) as f64);
    out.single(names::QUEUED, sums::queued(view) as f64);
    out.single(names::IN_FLIGHT, view.gate.in_flight as f64);
    out.single(names::SUSPENDED, view.gate.suspended as f64);
    out.single(names::LEASED_SESSIONS, view.gate.leased_sessions as f64);
    if let Some(sharing) = &view.sharing {
        out.single(names::SHARING_GATEWAYS, sharing.gateways as f64);
        out.family(names::SHARING_PHASE).value(&[("phase", sharing.phase)], 1.0);
        let mut exchanges = out.family(names::SHARING_EXCHANGES);
        exchanges.value(&[("outcome", "done")], sharing.exchanges as f64);
        exchanges.value(&[("outcome", "failed")], sharing.failures as f64);
        out.single(names::SHARING_EXCHANGE, sharing.exchange_seconds);
        out.single(names::SHARING_LEARNS, f64::from(u8::from(sharing.learns)));
    }
}

fn routes(out: &mut Exposition, view: &View) {
    let mut gated = |metric: Metric, value: fn(&RouteReport) -> Option<f64>| {
        let mut family = out.family(metric);
        for route in &view.routes {
            if let Some(value) = value(route) {
                family.value(&[("route", &route.name)], value);
            }
        }
    };
    gated(names::ROUTE_LIMIT, |route| route.gate.limit.map(f64::from));
    gated(names::ROUTE_IN_FLIGHT, |route| Some(route.gate.in_flight as f64));
    gated(names::ROUTE_ORPHANED, |route| Some(route.gate.orphaned as f64));
    gated(names::ROUTE_SUSPENDED, |route| Some(route.gate.suspended as f64));
    gated(names::ROUTE_QUEUED, |route| Some(route.gate.waiting as f64));
    gated(names::ROUTE_OFFERED, |route| Some(route.gate.counts.offered as f64));

    let mut ended = out.family(names::ROUTE_ENDED);
    for route in &view.routes {
        let counts = &route.gate.counts;
        for (outcome, count) in [
            ("completed", counts.completed),
            ("failed", counts.failed),
            ("abandoned", counts.abandoned),
            ("refused", counts.refused.saturating_sub(route.gate.placed)),
            ("waiting_page", route.gate.placed),
        ] {
            ended.value(&[("route", &route.name), ("outcome", outcome)], count as f64);
        }
    }
    let mut active = out.family(names::ACTIVE);
    for route in &view.routes {
        let clients = (route.gate.waiting + route.gate.in_flight).saturating_sub(route.gate.orphaned);
        with_http_labels(&route.name, |labels| {
            active.value(labels, clients as f64);
        });
    }

    let everything = || view.routes.iter().chain([&view.ungated]);
    let mut responses = out.family(names::RESPONSES);
    for route in everything() {
        for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(route.statuses) {
            if count > 0 {
                responses.value(&[("route", &route.name), ("status", class)], count as f64);
            }
        }
    }
    let mut waited = out.family(names::WAIT_SECONDS);
    everything().for_each(|route| distribution(&mut waited, &[("route", &route.name)], &route.waited));
    let mut added = out.family(names::ADDED_SECONDS);
    everything().for_each(|route| distribution(&mut added, &[("route", &route.name)], &route.added));
    let mut upstream = out.family(names::UPSTREAM_SECONDS);
    everything().for_each(|route| {
        with_http_labels(&route.name, |labels| distribution(&mut upstream, labels, &route.upstream));
    });
}

/// Calls `write` with the labels that OpenTelemetry gives method and route. `other` and `ungated`
/// have no method of their own.
fn with_http_labels(name: &str, write: impl FnOnce(Labels<'_>)) {
    match name.split_once(' ') {
        Some((method, route)) => write(&[("http_request_method", method), ("http_route", route)]),
        None => write(&[("http_route", name)]),
    }
}

/// Writes a distribution, unless nothing was ever counted.
fn distribution(family: &mut Family<'_>, labels: Labels<'_>, times: &Times) {
    if times.count() > 0 {
        family.histogram(labels, &BUCKETS, &times.counts, times.sum_seconds);
    }
}

fn services(out: &mut Exposition, view: &View) {
    let mut each = |metric: Metric, value: fn(&ServiceView) -> Option<f64>| {
        let mut family = out.family(metric);
        for service in &view.gate.services {
            if let Some(value) = value(service) {
                family.value(&[("service", &service.name)], value);
            }
        }
    };
    each(names::SERVICE_SLOWDOWN, |service| service.standing.slowdown);
    each(names::SERVICE_SLOWDOWN_WISHED, |service| Some(service.wish.slowdown));
    each(names::SERVICE_SHARE, |service| Some(service.standing.share));
    each(names::SERVICE_ALONE, |service| service.standing.alone);
    each(names::SERVICE_RATE, |service| Some(service.standing.rate));
    each(names::SERVICE_FLOOR, |service| per_second(service.wish.floor));
    each(names::SERVICE_FLOOR_SHARE, |service| of_host(service.wish.floor));
    each(names::SERVICE_CEILING, |service| per_second(service.wish.ceiling));
    each(names::SERVICE_CEILING_SHARE, |service| of_host(service.wish.ceiling));
    each(names::SERVICE_IN_FLIGHT, |service| Some(service.in_flight as f64));
    each(names::SERVICE_WAITING, |service| Some(service.waiting as f64));
    each(names::SERVICE_CAP, |service| service.standing.cap);
    each(names::SERVICE_PAUSE, |service| Some(service.pause_seconds));
    each(names::SERVICE_INSIDE, |service| service.inside_ratio);
    let mut binding = out.family(names::SERVICE_BINDING);
    for service in &view.gate.services {
        let word = service.standing.binding.word();
        binding.value(&[("service", &service.name), ("binding", word)], 1.0);
    }
}

fn per_second(amount: Option<Amount>) -> Option<f64> {
    if let Some(Amount::PerSecond(rate)) = amount { Some(rate) } else { None }
}

fn of_host(amount: Option<Amount>) -> Option<f64> {
    if let Some(Amount::OfHost(share)) = amount { Some(share) } else { None }
}

fn kinds(out: &mut Exposition, view: &View) {
    let mut each = |metric: Metric, value: fn(&suimon_gate::KindView) -> f64| {
        let mut family = out.family(metric);
        for (name, kind) in &view.kinds {
            family.value(&[("kind", name)], value(kind));
        }
    };
    each(names::KIND_OPEN, |kind| flag(kind.open));
    each(names::KIND_INTERVAL, |kind| kind.interval_seconds);
    each(names::KIND_HELD, |kind| kind.waiting as f64);
    each(names::KIND_ACTIVE, |kind| kind.active as f64);
    each(names::KIND_REMEMBERED, |kind| kind.remembered as f64);
    each(names::KIND_NEWCOMERS, |kind| kind.newcomers as f64);
    each(names::KIND_ADMITTED, |kind| kind.admitted as f64);
    each(names::KIND_REOPENED, |kind| kind.ends.reopened as f64);
    each(names::KIND_HELD_WAIT, |kind| kind.predicted_wait_seconds);
    let mut some = |metric: Metric, value: fn(&suimon_gate::KindView) -> Option<f64>| {
        let mut family = out.family(metric);
        for (name, kind) in &view.kinds {
            if let Some(value) = value(kind) {
                family.value(&[("kind", name)], value);
            }
        }
    };
    some(names::KIND_ADMISSION_RATE, |kind| (kind.rate > 0.0).then_some(kind.rate));
    some(names::KIND_WAIT_LOW, |kind| state::wait_of_newcomer(kind).map(|(low, _)| low));
    some(names::KIND_WAIT_HIGH, |kind| state::wait_of_newcomer(kind).map(|(_, high)| high));
    let mut refused = out.family(names::KIND_REFUSED);
    for ((name, kind), line) in view.kinds.iter().zip(state::lines(view)) {
        refused.value(&[("kind", name)], (kind.refused + line.refused) as f64);
    }
    let mut ended = out.family(names::KIND_ENDED);
    for (name, kind) in &view.kinds {
        let ends = &kind.ends;
        for (outcome, count) in [
            ("finished", ends.finished),
            ("silent", ends.silent),
            ("abandoned", ends.abandoned),
            ("failed", ends.failed),
        ] {
            ended.value(&[("kind", name), ("outcome", outcome)], count as f64);
        }
    }
    let mut patience = out.family(names::KIND_PATIENCE);
    for (name, kind) in &view.kinds {
        patience.value(&[("kind", name), ("source", kind.patience_source)], kind.patience_seconds);
    }
}

fn lines(out: &mut Exposition, view: &View) {
    let mut each = |metric: Metric, value: fn(&suimon_line::View) -> f64| {
        let mut family = out.family(metric);
        for (name, kind) in &view.kinds {
            if let Some(line) = &kind.line {
                family.value(&[("kind", name)], value(line));
            }
        }
    };
    each(names::LINE_ISSUED, |line| line.issued as f64);
    each(names::LINE_CALLED, |line| line.called as f64);
    each(names::LINE_ADMITTED, |line| line.admitted as f64);
    each(names::LINE_WAITING, |line| line.waiting as f64);
    each(names::LINE_PRESENT, |line| line.present as f64);
    each(names::LINE_PROVISIONAL, |line| line.provisional as f64);
    each(names::LINE_SHOWN_UP, |line| line.shown_up);
    each(names::LINE_ABANDONMENT, |line| line.abandonment_per_second);
    each(names::LINE_MOVING, |line| flag(line.state == suimon_line::LineStatus::Moving));
}

/// Writes waits in line, predicted and real.
fn line_waits(out: &mut Exposition, view: &View) {
    let mut each = |metric: Metric, times: fn(&LineCounts) -> &Times| {
        let mut family = out.family(metric);
        for ((name, kind), waits) in view.kinds.iter().zip(&view.lines) {
            let times = times(waits);
            if kind.line.is_some() && times.count() > 0 {
                family.histogram(&[("kind", name)], &WAIT_BUCKETS, &times.counts, times.sum_seconds);
            }
        }
    };
    each(names::LINE_TOLD_SECONDS, |waits| &waits.told);
    each(names::LINE_WAITED_SECONDS, |waits| &waits.waited);
}

/// Writes what the waiting room has answered.
fn line_answers(out: &mut Exposition, view: &View) {
    for (metric, count) in [
        (names::WAITING_PAGES, (|line| line.pages) as fn(&LineCounts) -> u64),
        (names::POLLS, |line| line.polls),
    ] {
        let mut family = out.family(metric);
        for ((name, kind), line) in view.kinds.iter().zip(&view.lines) {
            if kind.line.is_some() {
                family.value(&[("kind", name)], count(line) as f64);
            }
        }
    }
}

fn of_nodes(out: &mut Exposition, nodes: &[UpstreamNodeView]) {
    let mut each = |metric: Metric, value: fn(&UpstreamNodeView) -> f64| {
        let mut family = out.family(metric);
        for node in nodes {
            family.value(&[("node", &node.address)], value(node));
        }
    };
    each(names::NODE_UP, |node| flag(node.status == "up"));
    each(names::NODE_IN_FLIGHT, |node| f64::from(node.in_flight));
    each(names::NODE_SHARE, |node| node.share);
    each(names::NODE_PICKED, |node| node.picked as f64);
    each(names::NODE_CONNECTIONS, |node| node.connections as f64);
    let mut statuses = out.family(names::NODE_STATUS);
    for node in nodes {
        for status in ["up", "down", "ejected", "draining"] {
            statuses.value(&[("node", &node.address), ("status", status)], flag(node.status == status));
        }
    }
    let known = || nodes.iter().filter_map(|node| Some((node.address.as_str(), node.sessions?)));
    let mut sessions = out.family(names::NODE_SESSIONS);
    for (node, (there, _)) in known() {
        sessions.value(&[("node", node)], f64::from(there));
    }
    let mut released = out.family(names::NODE_RELEASED_SESSIONS);
    for (node, (_, released_there)) in known() {
        released.value(&[("node", node)], released_there as f64);
    }
    of_php(out, nodes);
}

/// Writes what php-fpm says of its children.
fn of_php(out: &mut Exposition, nodes: &[UpstreamNodeView]) {
    let known = || nodes.iter().filter_map(|node| Some((node.address.as_str(), node.php?)));
    let mut children = out.family(names::NODE_PHP_CHILDREN);
    for (node, php) in known() {
        children.value(&[("node", node), ("state", "active")], php.active as f64);
        children.value(&[("node", node), ("state", "idle")], php.idle as f64);
    }
    let mut queued = out.family(names::NODE_PHP_QUEUED);
    for (node, php) in known() {
        queued.value(&[("node", node)], php.listen_queue as f64);
    }
    let mut full = out.family(names::NODE_PHP_FULL);
    for (node, php) in known() {
        full.value(&[("node", node)], php.max_children_reached as f64);
    }
}

fn scaling(out: &mut Exposition, report: &NodesReport) {
    let mut nodes = out.family(names::NODES);
    for (state, count) in [
        ("serving", report.serving),
        ("starting", report.view.starting),
        ("parked", report.view.parked),
        ("draining", report.draining),
    ] {
        nodes.value(&[("state", state)], f64::from(count));
    }
    let mut each = |metric: Metric, value: Option<f64>| {
        let mut family = out.family(metric);
        if let Some(value) = value {
            family.value(&[], value);
        }
    };
    each(names::NODES_WANTED, Some(f64::from(report.wanted)));
    each(names::NODES_BUSY, report.busy);
    each(names::NODES_TO_COME, Some(report.to_come_s));
    each(names::NODES_START, report.view.start_s);
    each(names::NODES_TROUBLE, Some(flag(report.view.trouble.is_some())));
}

fn pools(out: &mut Exposition, pools: &[PoolReport]) {
    let mut workers = out.family(names::POOL_WORKERS);
    for pool in pools {
        let count = &pool.status.count;
        for (state, count) in [
            (WorkerState::Starting, count.starting),
            (WorkerState::Idle, count.idle),
            (WorkerState::Busy, count.busy),
            (WorkerState::Unsure, count.unsure),
            (WorkerState::Stopping, count.stopping),
        ] {
            workers.value(&[("pool", &pool.status.name), ("state", state.code())], count as f64);
        }
    }
    let mut ended = out.family(names::POOL_ENDED);
    for pool in pools {
        for why in EndReason::ALL {
            let labels = [("pool", &*pool.status.name), ("reason", why.code())];
            ended.value(&labels, pool.status.totals.ended_by(why) as f64);
        }
    }
    let mut each = |metric: Metric, value: fn(&PoolReport) -> Option<f64>| {
        let mut family = out.family(metric);
        for pool in pools {
            if let Some(value) = value(pool) {
                family.value(&[("pool", &pool.status.name)], value);
            }
        }
    };
    each(names::POOL_WANTED, |pool| Some(pool.status.wanted as f64));
    each(names::POOL_HEALTHY, |pool| Some(flag(pool.status.unhealthy.is_none())));
    each(names::POOL_STARTS, |pool| Some(pool.status.totals.starts as f64));
    each(names::POOL_FAILED_STARTS, |pool| Some(pool.status.totals.failed_starts as f64));
    each(names::POOL_DEATHS, |pool| Some(pool.status.totals.deaths as f64));
    each(names::POOL_KILLS, |pool| Some(pool.status.totals.kills as f64));
    each(names::POOL_REQUESTS, |pool| Some(pool.status.totals.requests as f64));
    each(names::POOL_MEMORY, |pool| {
        Some(pool.status.workers.iter().map(|worker| worker.memory).sum::<u64>() as f64)
    });
    each(names::POOL_WORKER_MEMORY, |pool| pool.status.worker_bytes.map(|bytes| bytes as f64));
    each(names::POOL_START, |pool| pool.status.start_s);
}

fn flag(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}
