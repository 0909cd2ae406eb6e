//! What would run, in a few lines for people.

use crate::found_nodes;
use crate::numbers::rate;
use std::time::Duration;
use suimon_control::{RouteLawKind, SessionLawKind};
use suimon_gate::{KindMode, RouteMode};
use suimon_params::kubernetes::OrdersParams;
use suimon_params::nodes::{NodesParams, ProviderParams, ScalingLaw};
use suimon_params::pool::WorkerKind;
use suimon_params::upstream::{Balance, UpstreamParams, WorkersNodeParams};
use suimon_params::{
    AccessFormat, OnClientDisconnect, PoolRoutes, RoutePattern, SessionKind, Site, SiteMatch, Telemetry,
};
use suimon_settings::{Settings, StatePath, duration};
use suimon_sim::{Efficiency, Scenario};
use suimon_workload::{Arrivals, Workload};

/// The most routes and kinds named one by one.
const NAMED_MAX: usize = 8;

/// Names, each with its description.
pub(crate) type Lines = Vec<(&'static str, String)>;

/// Returns the lines with their second parts aligned.
pub(crate) fn aligned(lines: &[(&'static str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    lines.iter().map(|(name, text)| format!("  {name:width$}  {text}\n")).collect()
}

/// Returns how many nodes come and go, and who starts them.
fn come_and_go(nodes: &NodesParams) -> String {
    let NodesParams { least, most, law, .. } = nodes;
    let (range, law) = match law {
        ScalingLaw::Fixed(count) => (count.to_string(), "fixed".to_owned()),
        ScalingLaw::Seed { .. } => (format!("{least} to {most}"), "by run queues (seed)".to_owned()),
        ScalingLaw::Demand { eagerness } => {
            (format!("{least} to {most}"), format!("by demand, eagerness {eagerness}"))
        }
    };
    let by = match &nodes.provider {
        ProviderParams::Observe => return format!("{range} nodes are wanted, {law}, and nobody starts them"),
        ProviderParams::Processes(params) => format!("processes of {}", params.command.program.display()),
        ProviderParams::Command(params) => format!("started by {}", params.command.program.display()),
        ProviderParams::Kubernetes(params) => match &params.orders {
            OrdersParams::Scale(scale) => format!(
                "endpoints of the Kubernetes Service {}, scaled as {} {}",
                params.service, scale.target.kind, scale.target.name
            ),
            OrdersParams::Keda(keda) => format!(
                "endpoints of the Kubernetes Service {}, scaled by KEDA, which asks at {}",
                params.service, keda.listen
            ),
        },
    };
    format!("{range} nodes, {law}; {by}")
}

/// Returns what `suimon serve` would do with these settings.
pub(crate) fn of_settings(settings: &Settings) -> Lines {
    let proxy = &settings.proxy;
    let mut lines = Lines::new();
    lines.push(("clients", clients(settings)));
    let mut nodes: Vec<String> = proxy.upstream.nodes.iter().map(ToString::to_string).collect();
    nodes.extend(proxy.node_discovery.as_ref().map(found_nodes::place));
    nodes.extend(proxy.nodes.as_ref().map(come_and_go));
    let is_cgi = |workers: &WorkersNodeParams| workers.pool.kind == WorkerKind::Cgi;
    let default = if proxy.upstream.workers.as_ref().is_some_and(is_cgi) {
        OnClientDisconnect::Cancel
    } else {
        OnClientDisconnect::Finish
    };
    let abandoned =
        format!("work for clients that left: {}", proxy.on_client_disconnect.unwrap_or(default).word());
    lines.push(("application", format!("{}; {abandoned}", nodes.join(", "))));
    if !proxy.routes.pools.is_empty() {
        lines.push(("beside it", listed(&proxy.routes.pools, pool)));
    }
    lines.extend(balance(&proxy.upstream).map(|text| ("nodes", text)));
    lines.push(("sessions", listed(&proxy.sessions.kinds, kind)));
    lines.push(("let in", session_law(settings)));
    lines.push(("limits", route_law(settings)));
    lines.push(("routes", routes(settings)));
    let services = &settings.proxy.services;
    if !services.services.is_empty() {
        let names = listed(&services.services, |service| service.name.clone());
        lines.push(("services", format!("{names}: {} ({})", services.mode.means(), services.mode.word())));
    }
    lines.push(("leases", leases(settings)));
    lines.extend(proxy.sites.iter().map(|site| ("site", self::site(site))));
    let access = &settings.admin_access;
    let admin = match (&access.socket, settings.admin_listen) {
        (Some(path), _) => format!("unix:{}", path.display()),
        (None, Some(address)) => {
            let scheme = if access.tls.is_some() { "https" } else { "http" };
            let asks = if access.asks() { ", asks who you are" } else { "" };
            format!("{scheme}://{address}{asks}")
        }
        (None, None) => "off".to_string(),
    };
    lines.push(("operator", admin));
    lines.extend(sharing(settings));
    if let Some(recording) = &proxy.record {
        let mebibytes = recording.bytes_max >> 20;
        lines.push(("recording", format!("{}, at most {mebibytes} MiB", recording.file.display())));
    }
    lines.extend(telemetry(&settings.telemetry));
    lines
}

/// Returns what another site takes, and where to.
fn site(site: &Site) -> String {
    let SiteMatch { hosts, paths } = &site.takes;
    let places: Vec<&str> = hosts.iter().chain(paths).map(String::as_str).take(NAMED_MAX).collect();
    let more = (hosts.len() + paths.len()).saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let nodes: Vec<_> = site.params.upstream.nodes.iter().map(ToString::to_string).collect();
    format!("{}: {}{more}; to {}", site.name(), places.join(", "), nodes.join(", "))
}

/// Returns what is told of requests, and to whom.
fn telemetry(told: &Telemetry) -> Lines {
    let mut lines = Lines::new();
    if told.access != AccessFormat::Off {
        let file = told.access_file.as_ref();
        let place = file.map_or_else(|| "standard output".to_owned(), |file| file.display().to_string());
        lines.push(("access log", format!("{} to {place}", told.access.word())));
    }
    if let Some(otlp) = &told.otlp {
        let numbers = otlp.metrics_every.map(|every| format!(", metrics every {}", duration::show(every)));
        let (percent, numbers) = (otlp.trace_ratio * 100.0, numbers.unwrap_or_default());
        let place = format!("http://{}{}", otlp.authority, otlp.path);
        lines.push(("telemetry", format!("spans of {percent} % of requests{numbers}, to {place}")));
    }
    lines
}

/// Returns how a node is chosen and where reports of load are taken; `None`: as by default.
fn balance(upstream: &UpstreamParams) -> Option<String> {
    let reports = &upstream.load_reports;
    let mut told = vec![format!("chosen by {}", upstream.balance.word())];
    told.extend(reports.listen.map(|address| format!("load reports at udp://{address}")));
    told.extend(reports.orca.then(|| "load reports in responses".to_owned()));
    told.extend(reports.agent_check.map(|port| format!("load asked for at port {port} of each node")));
    told.extend(
        upstream
            .affinity
            .as_ref()
            .map(|affinity| format!("sessions stay at theirs by the cookie {}", affinity.cookie)),
    );
    let is_default = upstream.balance == Balance::default() && told.len() == 1;
    (!is_default).then(|| told.join(", "))
}

/// Returns what is shared with other gateways, and what is not.
fn sharing(settings: &Settings) -> Lines {
    let Some(sharing) = &settings.proxy.sharing else {
        return vec![("gateways", "this one alone; nothing is shared".to_string())];
    };
    let address = sharing.engine.rsplit_once('@').map_or(sharing.engine.as_str(), |(_, address)| address);
    let period = duration::show(sharing.period);
    vec![
        ("gateways", format!("group \"{}\" by {address}, every {period}", sharing.group)),
        (
            "shared",
            "limits of routes, what begins, order of the line, leases and tickets (by lease.keys)"
                .to_string(),
        ),
        (
            "not shared",
            "what was learned of visitors, pools, ejected nodes, commands to a line, application cookies"
                .to_string(),
        ),
    ]
}

fn pool(pool: &PoolRoutes) -> String {
    format!("pool:{} for {}", pool.name, listed(&pool.patterns, RoutePattern::name))
}

/// Returns what `suimon crowd` would do with this workload.
pub(crate) fn of_workload(workload: &Workload) -> Lines {
    let journeys: Vec<String> = workload
        .kinds
        .iter()
        .take(NAMED_MAX)
        .map(|journey| format!("{} ({} steps)", journey.name, journey.steps.len()))
        .collect();
    vec![
        ("arrivals", arrivals(workload)),
        ("journeys", journeys.join(", ")),
        ("seed", workload.seed.to_string()),
    ]
}

/// Returns what `suimon sim` would play.
pub(crate) fn of_scenario(scenario: &Scenario) -> Lines {
    let machine = &scenario.machine;
    let efficiency = match machine.efficiency {
        Efficiency::Flat => "company costs nothing",
        Efficiency::Knee { .. } => "memory costs beyond a knee",
        Efficiency::Heap { .. } => "collects in a heap",
        Efficiency::Scalability { .. } => "by the universal scalability law",
        Efficiency::Measured(_) => "company costs what was measured",
    };
    let nodes = if scenario.nodes == 1 { String::new() } else { format!("{} nodes of ", scenario.nodes) };
    let from = scenario.warm_up;
    let mut lines = Lines::new();
    if !scenario.question.is_empty() {
        lines.push(("question", scenario.question.clone()));
    }
    lines.extend([
        ("arrivals", arrivals(&scenario.workload)),
        ("application", format!("{nodes}{} cores, {efficiency}", machine.cores)),
        ("can finish", format!("{} sessions a second", rate(scenario.bound(from)))),
        ("asked for", format!("{} sessions a second, if nobody waited", rate(scenario.offered(from)))),
        ("routes", listed(&scenario.routes, |route| route.name.clone())),
        ("changes", scenario.changes.len().to_string()),
        ("played", format!("{} after {} of warm-up", duration::show(scenario.measure), duration::show(from))),
        ("seeds", listed(&scenario.seeds, u64::to_string)),
        ("expected", listed(&scenario.expect, ToString::to_string)),
    ]);
    lines
}

/// Returns the arrivals, in a few words.
pub(crate) fn arrivals(workload: &Workload) -> String {
    match &workload.arrivals {
        Arrivals::Closed { users, sessions_each: None, .. } => {
            format!("closed, {users} users, one session after another")
        }
        Arrivals::Closed { users, sessions_each: Some(each), .. } => {
            format!("closed, {users} users, {each} sessions each")
        }
        Arrivals::Open { phases, .. } => {
            let rates = phases.iter().flat_map(|phase| [phase.from_per_s, phase.to_per_s]);
            let (low, high) =
                rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
            match phases.as_slice() {
                [phase] if low >= high && phase.lasts == Duration::MAX => {
                    format!("open, {high} sessions a second")
                }
                [phase] if low >= high => {
                    format!("open, {high} sessions a second for {}", duration::show(phase.lasts))
                }
                phases => format!("open, {low} to {high} sessions a second in {} phases", phases.len()),
            }
        }
    }
}

fn clients(settings: &Settings) -> String {
    let listen = &settings.proxy.listen;
    let plain = listen.plain.map(|address| format!("http://{address}"));
    let tls = listen.tls.as_ref().map(|tls| format!("https://{} ({})", tls.address, tls.cert.display()));
    plain.into_iter().chain(tls).collect::<Vec<_>>().join(", ")
}

fn kind(kind: &SessionKind) -> String {
    let mut parts = Vec::new();
    if kind.begins.is_empty() {
        parts.push("begins with any request".to_string());
    } else {
        parts.push(format!("begins {}", listed(&kind.begins, pattern)));
    }
    if !kind.ends.is_empty() {
        parts.push(format!("ends {}", listed(&kind.ends, pattern)));
    }
    parts.push(match kind.gate.patience {
        Some(patience) => format!("patience {}", duration::show(patience)),
        None => "patience learned".to_string(),
    });
    if let Some(cookie) = &kind.app_cookie {
        parts.push(format!("knows {cookie}"));
    }
    if kind.gate.mode != KindMode::Enforce {
        parts.push(kind.gate.mode.means().to_string());
    }
    format!("{} ({})", kind.name, parts.join("; "))
}

fn session_law(settings: &Settings) -> String {
    let law = settings.proxy.gate.session_law;
    let numbers = match law {
        SessionLawKind::Paper(params) => format!(", threshold {}", params.threshold),
        SessionLawKind::Static(sessions) => format!(", {sessions}"),
        _ => String::new(),
    };
    format!("{} ({}{numbers})", law.means(), law.word())
}

fn route_law(settings: &Settings) -> String {
    let (law, order) = (settings.proxy.gate.route_law, settings.proxy.gate.order);
    let numbers = match law {
        RouteLawKind::Paper(params) => format!(", from {}", params.initial),
        _ => String::new(),
    };
    format!("{} ({}{numbers}); {} ({})", law.means(), law.word(), order.means(), order.word())
}

fn routes(settings: &Settings) -> String {
    let routes = &settings.proxy.routes;
    let found =
        format!("up to {} found from traffic, {}", routes.discovered_max, mode(routes.discovered_mode));
    if routes.declared.is_empty() {
        return found;
    }
    let declared = listed(&routes.declared, |route| format!("{} {}", route.name(), mode(route.mode)));
    format!("{declared}; {found}")
}

fn leases(settings: &Settings) -> String {
    let keys = match &settings.lease_keys {
        StatePath::StateFolder => "keys in the state folder".to_string(),
        StatePath::File(path) => format!("keys in {}", path.display()),
        StatePath::Nowhere => "keys end with the process".to_string(),
    };
    format!("good for {}; {keys}", duration::show(settings.proxy.lease.life))
}

fn pattern(pattern: &RoutePattern) -> String {
    format!("{} {}", pattern.method.as_deref().unwrap_or("*"), pattern.path)
}

/// Returns what a route's mode means, in a word or two.
pub(crate) fn mode(mode: RouteMode) -> String {
    match mode {
        RouteMode::Fixed(limit) => format!("fixed at {limit}"),
        mode => mode.means().to_string(),
    }
}

/// Returns the first few, and how many more there are.
fn listed<T>(items: &[T], say: impl Fn(&T) -> String) -> String {
    if items.is_empty() {
        return "none".to_string();
    }
    let mut said: Vec<String> = items.iter().take(NAMED_MAX).map(say).collect();
    if items.len() > NAMED_MAX {
        said.push(format!("and {} more", items.len() - NAMED_MAX));
    }
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_read_as_a_sentence_a_line() {
        let lines = of_settings(&Settings::default());
        let text = aligned(&lines);
        assert!(text.contains("clients      http://0.0.0.0:8000\n"), "{text}");
        assert!(text.contains("visit (begins with any request; patience learned)"), "{text}");
        assert!(text.contains("up to 200 found from traffic, a limit is found and enforced"), "{text}");
    }

    #[test]
    fn what_is_told_of_requests_is_said_where_something_is() {
        assert!(telemetry(&Settings::default().telemetry).is_empty());
        let text = "[log]\naccess = \"json\"\n[telemetry]\notlp_endpoint = \"http://collector\"\nmetrics_every = \"60s\"\n";
        let told = Settings::parse("test.toml", text).unwrap().telemetry;
        let lines = [
            ("access log", "json to standard output".to_owned()),
            ("telemetry", "spans of 1 % of requests, metrics every 1m, to http://collector:4318".to_owned()),
        ];
        assert_eq!(telemetry(&told), lines);
    }

    #[test]
    fn long_lists_are_cut() {
        let items: Vec<u32> = (0..20).collect();
        assert!(listed(&items, u32::to_string).ends_with("and 12 more"));
        assert_eq!(listed(&[] as &[u32], u32::to_string), "none");
    }
}
