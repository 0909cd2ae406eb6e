//! `docs/metrics.md`, from the names and from what `/metrics` answers of a gateway that has one of
//! everything: so the labels in it are those that are written.

use crate::access::Access;
use crate::names::ALL;
use crate::text::{Format, Metric, MetricKind};
use crate::{LogCounts, Passed, Site, Source, metrics};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use suimon_fleet::workers::{WorkersCount, WorkersTotals};
use suimon_gate::{Amount, KindView, RouteView, ServiceStanding, ServiceView, ServiceWish, Snapshot};
use suimon_model::{Instant, NodeId, PoolId, Reason, RouteId};
use suimon_proxy::{AgentLoad, LoadReportCounts, NodeReportView};
use suimon_proxy::{LearnedView, LineCommand, LineCounts, LineError, LineReport};
use suimon_proxy::{NodesReport, PhpStatus, PoolCommand, PoolError, PoolReport, PoolStatus, ProviderView};
use suimon_proxy::{RouteReport, Times, UpstreamNodeView, View};

/// What stands above the table.
const HEAD: &str = "\
# Metrics

Written from `crates/admin/src/names.rs` and what `/metrics` answers, by `cargo xtask docs`; do not
edit. Words are those of [glossary.md](glossary.md), reasons those of [reasons.md](reasons.md).

`/metrics` on the admin listener answers in Prometheus' text format 0.0.4, or in OpenMetrics 1.0.0 to a
client that would rather have it (`Accept`), as Prometheus would. Counters count since the
start of the process. A histogram has `_bucket` (with the label `le`), `_sum` and `_count`. The
label of a route is its method and path template; `other` are all requests without a route of their
own, `ungated` those that need no slot.

Where one gateway serves several sites, every number of a site has its name in the label `site`, beside
the labels below. Those of the gateway have none: GATEWAY_NUMBERS.

| metric | type | unit | labels | meaning |
|---|---|---|---|---|
";

/// Returns `docs/metrics.md`.
pub fn metrics_document() -> String {
    let one = exposition_of(&["main"]);
    let labels = labels_in(&one);
    let two = exposition_of(&["main", "other"]);
    let labels_of_two = labels_in(&two);
    let is_gateway = |metric: &&Metric| labels_of_two.get(metric.name).is_some_and(|it| !it.contains("site"));
    let of_gateway: Vec<_> =
        ALL.iter().filter(is_gateway).map(|metric| format!("`{}`", metric.name)).collect();
    let mut text = HEAD.replace("GATEWAY_NUMBERS", &of_gateway.join(", "));
    for metric in ALL {
        let labels = labels.get(metric.name).map(listed).unwrap_or_default();
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {labels} | {} |",
            metric.name,
            kind(metric.kind),
            unit(metric),
            metric.help.replace('|', "\\|")
        );
    }
    text
}

/// Returns what `/metrics` answers of sites of these names that have one of everything.
fn exposition_of(names: &[&str]) -> String {
    let of = |name: &&str| Site {
        name: (*name).to_owned(),
        serves: std::sync::Arc::new(Vec::new),
        source: Arc::new(OneOfEverything) as Arc<dyn Source>,
    };
    let sites: Vec<Site> = names.iter().map(of).collect();
    metrics::render(&sites, "VERSION", &Access::default(), Format::Prometheus)
}

const fn kind(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Gauge => "gauge",
        MetricKind::Counter => "counter",
        MetricKind::Histogram => "histogram",
    }
}

/// Returns the unit, which the name ends in; what is a yes or a no says so in its help.
fn unit(metric: &Metric) -> &'static str {
    let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
    let ends = [
        ("_ratio_per_second", "share per second"),
        ("_per_second", "per second"),
        ("_seconds", "seconds"),
        ("_bytes", "bytes"),
        ("_slowdown_ratio", "times"),
        ("_load_ratio", "times"),
        ("_ratio", "share, 0 to 1"),
    ];
    let told = ends.iter().find(|(end, _)| name.ends_with(end)).map(|(_, unit)| *unit);
    told.unwrap_or(match metric.help {
        help if help.starts_with("Always 1") => "1",
        help if help.starts_with("1 ") => "0 or 1",
        _ => "number",
    })
}

fn listed(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the names of labels by metric. `le` is left out: it is no more than a histogram's own.
fn labels_in(exposition: &str) -> BTreeMap<&str, BTreeSet<String>> {
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut family = "";
    for line in exposition.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap_or_default();
        } else if !line.starts_with('#') {
            let names = found.entry(family).or_default();
            let inside = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
            let pairs = inside.map(|(inside, _)| inside.split("\",")).into_iter().flatten();
            names.extend(
                pairs
                    .filter_map(|pair| pair.split_once("=\""))
                    .map(|(name, _)| name.to_owned())
                    .filter(|name| name != "le"),
            );
        }
    }
    found
}

/// A gateway that has one of everything that has a number.
pub(crate) struct OneOfEverything;

impl Source for OneOfEverything {
    fn view(&self) -> View {
        let mut times = Times::default();
        times.counts[0] = 1;
        let line = suimon_line::Line::new(suimon_line::Params::default(), Instant::ORIGIN).view();
        let kind = KindView {
            line: Some(line),
            rate: 1.0,
            newcomer_wait: Some((1.0, 2.0)),
            patience_source: "assumed",
            ..KindView::default()
        };
        let route = RouteReport {
            name: "GET /".to_owned(),
            id: Some(RouteId(0)),
            statuses: [1; 5],
            waited: times.clone(),
            upstream: times.clone(),
            added: times.clone(),
            gate: RouteView { limit: Some(1), ..RouteView::default() },
        };
        let standing = ServiceStanding {
            slowdown: Some(1.0),
            alone: Some(1.0),
            cap: Some(1.0),
            ..ServiceStanding::default()
        };
        // A floor and a ceiling is a rate or a share.
        let services = [Amount::PerSecond(1.0), Amount::OfHost(1.0)].map(|amount| ServiceView {
            name: "quote".to_owned(),
            wish: ServiceWish { floor: Some(amount), ceiling: Some(amount), ..ServiceWish::default() },
            standing,
            inside_ratio: Some(1.0),
            ..ServiceView::default()
        });
        View {
            refusals: vec![(Reason::GatewayFull, 1)],
            ungated: RouteReport { name: "ungated".to_owned(), id: None, ..route.clone() },
            routes: vec![route],
            kinds: vec![("visit".to_owned(), kind)],
            lines: vec![LineCounts { told: times.clone(), waited: times, ..LineCounts::default() }],
            recording: Some(true),
            sharing: Some(suimon_proxy::SharingView::default()),
            gate: Snapshot {
                routes: Vec::new(),
                kinds: Vec::new(),
                services: services.to_vec(),
                pools: Vec::new(),
                records: Vec::new(),
                ..Snapshot::default()
            },
            ..View::default()
        }
    }

    fn learned(&self) -> LearnedView {
        unreachable!("no metric is made of it")
    }

    fn nodes(&self) -> Vec<UpstreamNodeView> {
        vec![UpstreamNodeView {
            node: NodeId(0),
            pool: PoolId(0),
            address: "http://127.0.0.1:8080".to_owned(),
            status: "up",
            reason: "initial",
            explanation: "no state change since the start",
            for_the_last: Duration::ZERO,
            ejected_for: None,
            slow_start_for: None,
            in_flight: 0,
            share: 1.0,
            sessions: Some((0, 0)),
            picked: 0,
            failures_in_a_row: 0,
            connections: 0,
            report: Some(NodeReportView {
                source: "agent",
                load: 0.0,
                age: Duration::ZERO,
                is_current: true,
                agent: Some(AgentLoad {
                    every: Duration::from_millis(100),
                    run_queue: 0,
                    mean_100ms_milli: 0,
                    mean_1s_milli: 0,
                    pressure: Some(0),
                    in_flight: None,
                    processors: 1,
                }),
            }),
            php: Some(PhpStatus { active: 0, idle: 1, total: 1, listen_queue: 0, max_children_reached: 0 }),
        }]
    }

    fn load_reports(&self) -> LoadReportCounts {
        LoadReportCounts {
            datagrams: vec![("accepted", 0)],
            responses: vec![("accepted", 0)],
            checks: vec![("accepted", 0)],
        }
    }

    fn lines(&self) -> Vec<LineReport> {
        Vec::new()
    }

    fn command_line(&self, _: Option<&str>, _: &LineCommand) -> Result<(), LineError> {
        Ok(())
    }

    fn invite(&self, _: Option<&str>, _: usize, _: Duration) -> Result<Vec<String>, LineError> {
        Ok(Vec::new())
    }

    fn pools(&self, _: u64) -> Vec<PoolReport> {
        let status = PoolStatus {
            name: "shop".into(),
            wanted: 1,
            count: WorkersCount::default(),
            generation: 0,
            totals: WorkersTotals::default(),
            unhealthy: None,
            worker_bytes: Some(1),
            fit: None,
            start_s: Some(1.0),
            start_cpu_s: None,
            last_move: None,
            workers: Vec::new(),
        };
        vec![PoolReport {
            id: PoolId(0),
            status,
            kind: "http",
            law: "measured",
            fixed: None,
            most: 1,
            changes: Vec::new(),
        }]
    }

    fn command_pool(&self, _: Option<&str>, _: PoolCommand) -> Result<(), PoolError> {
        Ok(())
    }

    fn scaling(&self) -> Option<NodesReport> {
        Some(NodesReport {
            provider: "processes",
            law: "demand",
            wanted: 1,
            range: (1, 1),
            serving: 1,
            draining: 0,
            view: ProviderView { start_s: Some(1.0), ..ProviderView::default() },
            busy: Some(1.0),
            to_come_s: 0.0,
            last: None,
        })
    }

    fn logs(&self) -> LogCounts {
        let some = Some(Passed { passed: 1, dropped: 1 });
        LogCounts { access_lines: some, spans: some, exports: some }
    }

    fn is_draining(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_number_in_a_gateway_that_has_one_of_everything() {
        let exposition = exposition_of(&["main"]);
        let labels = labels_in(&exposition);
        for metric in ALL {
            assert!(labels.contains_key(metric.name), "{} is told and never written", metric.name);
        }
        assert_eq!(labels.len(), ALL.len(), "what is written has a row in names.rs");
    }

    #[test]
    fn labels_are_found_whatever_stands_in_them() {
        let text = "# HELP a A.\n# TYPE a gauge\na{route=\"GET /\\\"} {x\",status=\"2xx\"} 1\n\
                    # TYPE b histogram\nb_bucket{le=\"1\"} 1\nb_sum 2\n";
        let found = labels_in(text);
        assert_eq!(found["a"], ["route", "status"].map(str::to_owned).into());
        assert!(found["b"].is_empty());
    }

    #[test]
    fn units_are_those_of_the_names() {
        let of = |name, help| unit(&Metric { name, kind: MetricKind::Gauge, help });
        assert_eq!(of("suimon_x_seconds_total", "X."), "seconds");
        assert_eq!(of("suimon_x_ratio_per_second", "X."), "share per second");
        assert_eq!(of("suimon_up", "1 if it is."), "0 or 1");
        assert_eq!(of("suimon_x_total", "X."), "number");
    }
}
