//! From checked values to each crate's own parameters, and the faults that only show when settings
//! are seen together.

use crate::Faults;
use crate::admin::AdminAccess;
use crate::lines::Lines;
use crate::load_reports::load_reports;
use crate::read::{self, Sections, Values, seen_time};
use crate::route::{pattern, pattern_and_query};
use crate::services::services;
use crate::shape::Shape;
use crate::sites::SiteState;
use crate::state_path::{StatePath, kept};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use suimon_control::{PaperRouteParams, PaperSessionParams, RouteLawKind, SessionLawKind};
use suimon_gate::{KindMode, KindParams, QueueOrder, RouteMode};
use suimon_model::Limit;
use suimon_params::discovery::DiscoveryParams;
use suimon_params::pool::WorkerKind;
use suimon_params::upstream::{
    AffinityParams, Balance, EjectionParams, FastCgiParams, HealthParams, LoadReportParams, Mapping,
    NodeAddress, NodeParams, Protocol, Scheme, TlsParams, UpstreamParams, WorkersNodeParams,
};
use suimon_params::{
    DeclaredRoute, LeaseIssued, LeaseParams, Limits, Listen, ListenTls, Network, OnClientDisconnect, PassFor,
    PassPage, QueryPattern, Recording, RoutePattern, Routes, SessionKind, Sessions, SpoolParams, Timeouts,
    WaitingRoomParams, WaitingStatus,
};

/// Everything `suimon serve` is told: each crate's own parameters, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The proxy's. `lease.keys_file` is set only where the file is named; see [`StatePath`];
    /// `waiting_room.state_file` and `learned_file` likewise.
    pub proxy: suimon_params::Params,
    /// Where the keys that sign leases are kept.
    pub lease_keys: StatePath,
    /// Where what of the line survives a restart is kept.
    pub waiting_room_state: StatePath,
    /// Where what was learned survives a restart.
    pub learned_state: StatePath,
    /// Where the operator's listener is; `None`: nowhere.
    pub admin_listen: Option<SocketAddr>,
    /// Who may reach it.
    pub admin_access: AdminAccess,
    /// Names the operator's listener may be reached by, beside localhost and addresses.
    pub admin_hosts: Vec<String>,
    /// Bytes of a recording, whether or not there is one.
    pub record_bytes_max: u64,
    /// By site beside the main one: where it keeps what outlives the process.
    pub site_states: Vec<SiteState>,
    /// What is logged, as a filter of `tracing`.
    pub log_filter: String,
    /// What is told of requests.
    pub telemetry: suimon_params::Telemetry,
    /// Whether `timeouts.drain` is said; else it is for whoever starts the gateway to choose.
    pub has_drain: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings::parse("defaults", "").expect("the defaults are right; a test reads them")
    }
}

impl Settings {
    /// Returns the settings in the file at `path`.
    ///
    /// # Errors
    /// Returns everything that is wrong with it, together: it cannot be read, its syntax, its
    /// values, or a file it names that is not there.
    pub fn load(path: &Path) -> Result<Settings, Faults> {
        let name = path.display().to_string();
        Settings::of_file(&name, &read::text_of(path)?)
    }

    /// Returns the settings in `text`, read from a file called `name`.
    ///
    /// # Errors
    /// Returns everything that is wrong with it, together, each with the line where it stands: its
    /// syntax, its values, or a file it names that is not there.
    pub fn of_file(name: &str, text: &str) -> Result<Settings, Faults> {
        let (settings, mut faults) = check(&read::parse(name, text)?);
        check_files(&settings, &mut faults);
        crate::sharing::check(&settings.proxy, &mut faults);
        faults.into_result(settings).map_err(|faults| with_lines(name, text, &faults))
    }

    /// Returns the settings of a process that works on requests itself, all of which are for paths
    /// below `mount_path`: it stands for `waiting_room.base_path` of every site that has none.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn mounted_at(mut self, mount_path: &str) -> Result<Settings, Faults> {
        let mut faults = Faults::none();
        if let Err(allowed) = Shape::BasePath.check(&toml::Value::from(mount_path)) {
            faults.value("mount_path", format!("{mount_path:?}"), allowed);
        }
        let sites = self.proxy.sites.iter_mut().map(|site| &mut site.params.waiting_room);
        for room in sites.chain([&mut self.proxy.waiting_room]) {
            mount_path.clone_into(&mut room.mount_path);
            room.base_path.get_or_insert_with(|| mount_path.to_owned());
        }
        faults.into_result(self)
    }

    /// Returns the settings in `text`, without looking at any file it names; `name` is what syntax
    /// errors call it.
    ///
    /// # Errors
    /// Returns everything that is wrong with it, together.
    pub fn parse(name: &str, text: &str) -> Result<Settings, Faults> {
        let (settings, faults) = check(&read::parse(name, text)?);
        faults.into_result(settings)
    }
}

/// Returns `faults`, each with the line of `text`, a file called `name`, in which its key stands.
pub fn with_lines(name: &str, text: &str, faults: &Faults) -> Faults {
    Lines::new(name, text).name(faults)
}

/// Returns the settings and everything that is wrong with them; where something is, they hold a
/// default.
pub(crate) fn check(table: &toml::Table) -> (Settings, Faults) {
    let mut faults = Faults::none();
    let sections = read::read(table, &mut faults);
    let lease_keys = kept(sections.once("lease").given_path("keys"));
    let waiting_room_state = kept(sections.once("waiting_room").given_path("state"));
    let learned_state = kept(sections.once("learned").given_path("state"));
    let admin = sections.once("admin");
    let (admin_listen, admin_access) = crate::admin::read(admin, sections.optional("admin.tls"));
    let mut proxy = proxy(&sections, &lease_keys, &mut faults);
    let sites = crate::sites::sites(table, &sections, &proxy, self::proxy, &mut faults);
    let (sites, site_states) = sites.into_iter().unzip();
    proxy.sites = sites;
    let settings = Settings {
        proxy,
        lease_keys,
        site_states,
        waiting_room_state,
        learned_state,
        admin_listen,
        admin_access,
        admin_hosts: admin.texts("hosts"),
        record_bytes_max: sections.once("record").count("bytes_max"),
        log_filter: sections.once("log").text("filter").to_string(),
        telemetry: crate::telemetry::telemetry(&sections, &mut faults),
        has_drain: sections.once("timeouts").given_time("drain").is_some(),
    };
    check_addresses(&settings, &mut faults);
    (settings, faults)
}

fn proxy(sections: &Sections, lease_keys: &StatePath, faults: &mut Faults) -> suimon_params::Params {
    let listen = sections.once("listen");
    let application = sections.once("upstream");
    let lease = sections.once("lease");
    let mut routes = routes(sections, faults);
    let services = services(sections, &mut routes, faults);
    routes.pools = crate::pool::routes(sections, &routes.declared, faults);
    let (upstream, pools, node_discovery) = upstreams(sections, faults);
    let nodes = crate::nodes::nodes(sections, upstream.nodes.len(), faults);
    suimon_params::Params {
        site: None,
        // Whoever has seen the rest adds them.
        sites: Vec::new(),
        upstream,
        pools,
        nodes,
        node_discovery,
        listen: Listen {
            plain: listen.address("http"),
            tls: sections.optional("listen.tls").and_then(listen_tls),
            proxy_protocol: networks(listen, "proxy_protocol"),
            backlog: listen.small("backlog"),
        },
        trusted_proxies: networks(listen, "trusted_proxies"),
        https: crate::https::https(sections, faults),
        response_headers: crate::https::response_headers(sections.once("response"), faults),
        timeouts: timeouts(sections.once("timeouts")),
        limits: limits(sections.once("limits"), faults),
        spool: spool(sections.once("spool")),
        routes,
        services,
        sessions: sessions(sections, faults),
        lease: LeaseParams {
            keys_file: match lease_keys {
                StatePath::File(path) => Some(path.clone()),
                StatePath::StateFolder | StatePath::Nowhere => None,
            },
            life: lease.time("life"),
            secure: lease.flag("secure"),
            issued: lease.choice("issued", LeaseIssued::of),
        },
        waiting_room: waiting_room(sections.once("waiting_room"), faults),
        on_client_disconnect: application.given_text("on_client_disconnect").and_then(OnClientDisconnect::of),
        via: application.flag("via"),
        gate: gate(sections, faults),
        learned_file: match kept(sections.once("learned").given_path("state")) {
            StatePath::File(path) => Some(path),
            StatePath::StateFolder | StatePath::Nowhere => None,
        },
        // The state folder decides.
        overrides_file: None,
        record: recording(sections.once("record")),
        sharing: crate::sharing::sharing(sections.once("sharing")),
    }
}

fn waiting_room(values: &Values, faults: &mut Faults) -> WaitingRoomParams {
    let text = |key: &str| values.given_text(key).map(str::to_string);
    let colours = match (text("colour"), text("colour_dark")) {
        (Some(light), Some(dark)) => Some((light, dark)),
        (None, None) => None,
        (Some(_), None) => {
            faults.missing(
                "waiting_room.colour_dark",
                "waiting_room.colour is given, and dark ground needs one of its own",
            );
            None
        }
        (None, Some(_)) => {
            faults.missing(
                "waiting_room.colour",
                "waiting_room.colour_dark is given, and light ground needs one of its own",
            );
            None
        }
    };
    if let Some((light, dark)) = &colours {
        for (key, colour, ground) in [("colour", light, LIGHT_GROUND), ("colour_dark", dark, DARK_GROUND)] {
            let contrast = contrast(colour, ground);
            if contrast < CONTRAST_MIN {
                let allowed = format!(
                    "a colour with a contrast of at least {CONTRAST_MIN} to 1 on {ground}; this has {contrast:.1}"
                );
                faults.value(format!("waiting_room.{key}"), format!("{colour:?}"), allowed);
            }
        }
    }
    WaitingRoomParams {
        name: text("name").unwrap_or_default(),
        base_path: text("base_path"),
        mount_path: String::new(),
        logo: text("logo"),
        colours,
        message: text("message").unwrap_or_default(),
        template: values.given_path("template"),
        hides_numbers: values.flag("hide_numbers"),
        status: values.choice("status", WaitingStatus::of),
        hold: values.time("turn_ttl"),
        keep: values.time("position_ttl"),
        tickets_burst: values.small("tickets_burst"),
        tickets_per_second: values.number("tickets_per_second"),
        tickets_for_opening: values.small("tickets_for_opening"),
        crawlers: networks(values, "crawlers"),
        pass: values.given_text("pass_page").map(|page| PassPage {
            page: page.to_owned(),
            needed_by: values.choice("pass_for", PassFor::of),
        }),
        state_file: match kept(values.given_path("state")) {
            StatePath::File(path) => Some(path),
            StatePath::StateFolder | StatePath::Nowhere => None,
        },
    }
}

fn networks(values: &Values, key: &str) -> Vec<Network> {
    values.networks(key).into_iter().map(|(address, prefix)| Network { address, prefix }).collect()
}

/// The longest that a health check takes unless it is told.
const HEALTH_TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// What the waiting page's words stand on.
const LIGHT_GROUND: &str = "#e6f0f3";
const DARK_GROUND: &str = "#14252e";
/// The least contrast of text (WCAG 2.2, 1.4.3).
const CONTRAST_MIN: f64 = 4.5;

/// Returns the contrast of two colours, 1 to 21 (WCAG 2.2, "contrast ratio").
fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Returns the relative luminance of `#rgb` or `#rrggbb`, 0 to 1 (WCAG 2.2, "relative luminance").
fn luminance(colour: &str) -> f64 {
    let digits: Vec<u32> = colour.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let channel = |at: usize| match digits.len() {
        3 => digits[at] * 17,
        _ => digits.get(2 * at).copied().unwrap_or(0) * 16 + digits.get(2 * at + 1).copied().unwrap_or(0),
    };
    let linear = |at: usize| {
        let value = f64::from(channel(at)) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(0) + 0.7152 * linear(1) + 0.0722 * linear(2)
}

fn recording(values: &Values) -> Option<Recording> {
    let file = values.given_path("file")?;
    Some(Recording { file, bytes_max: values.count("bytes_max") })
}

/// Returns the TLS listener, or `None` where something it needs is missing, which was noted before,
/// or it is off.
fn listen_tls(values: &Values) -> Option<ListenTls> {
    Some(ListenTls {
        address: values.address("address")?,
        cert: values.given_path("cert")?,
        key: values.given_path("key")?,
        reload_every: values.time("reload_every"),
    })
}

fn timeouts(values: &Values) -> Timeouts {
    Timeouts {
        header_read: values.time("header_read"),
        body_read: values.time("body_read"),
        body_total: values.time("body_total"),
        body_write: values.time("body_write"),
        keep_alive: values.time("keep_alive"),
        tunnel_idle: values.time("tunnel_idle"),
        handshake: values.time("handshake"),
        drain: values.given_time("drain").unwrap_or(Timeouts::default().drain),
        drain_taken_over: values.given_time("drain").unwrap_or(Timeouts::default().drain_taken_over),
        disconnect_watch_after: values.time("disconnect_watch_after"),
        h2_ping: values.time("h2_ping"),
    }
}

fn limits(values: &Values, faults: &mut Faults) -> Limits {
    let limits = Limits {
        connections: values.size("connections"),
        head_bytes: values.size("head_bytes"),
        headers: values.size("headers"),
        url_bytes: values.size("url_bytes"),
        body_bytes: values.given_count("body_bytes"),
        body_rate_min: values.count("body_rate_min"),
        slow_uploads: values.size("slow_uploads"),
        request_buffer_bytes: values.size("request_buffer_bytes"),
        response_buffer_bytes: values.size("response_buffer_bytes"),
        buffered_bytes: values.size("buffered_bytes"),
        h2_streams: values.small("h2_streams"),
        session_cookies: values.size("session_cookies"),
    };
    if limits.url_bytes > limits.head_bytes {
        faults.value(
            "limits.url_bytes",
            limits.url_bytes,
            format!("at most limits.head_bytes ({})", limits.head_bytes),
        );
    }
    if limits.response_buffer_bytes > limits.buffered_bytes {
        let allowed = format!("at most limits.buffered_bytes ({})", limits.buffered_bytes);
        faults.value("limits.response_buffer_bytes", limits.response_buffer_bytes, allowed);
    }
    limits
}

fn spool(values: &Values) -> SpoolParams {
    SpoolParams {
        directory: values.given_path("directory"),
        bytes_max: values.count("bytes_max"),
        body_bytes_max: values.count("body_bytes_max"),
    }
}

fn routes(sections: &Sections, faults: &mut Faults) -> Routes {
    let discovery = sections.once("discovery");
    let mut declared: Vec<DeclaredRoute> = Vec::new();
    for (index, values) in sections.repeated("route").iter().enumerate() {
        let Some(text) = values.given_text("match") else { continue };
        let (pattern, query) = pattern_and_query(text);
        let is_alike = |route: &DeclaredRoute| route.pattern == pattern && route.query == query;
        if let Some(earlier) = declared.iter().position(is_alike) {
            faults.value(
                format!("route[{index}].match"),
                format!("{text:?}"),
                format!("unlike that of route[{earlier}]"),
            );
        }
        declared.push(DeclaredRoute { pattern, query, mode: mode(values) });
    }
    let asked = QueryPattern::count(declared.iter().filter_map(|route| route.query.as_ref()));
    if asked > QueryPattern::ALL_MAX {
        faults.other(format!(
            "route: their queries name {asked} different parameters or values; at most {} are allowed",
            QueryPattern::ALL_MAX
        ));
    }
    Routes {
        declared,
        pools: vec![],
        discovered_max: discovery.size("routes_max"),
        discovered_mode: mode(discovery),
        static_extensions: discovery
            .texts("static_extensions")
            .iter()
            .map(|e| e.to_ascii_lowercase())
            .collect(),
        static_prefixes: discovery.texts("static_prefixes"),
        ungated: discovery.texts("ungated"),
    }
}

fn patterns(texts: &[String]) -> Vec<RoutePattern> {
    texts.iter().map(|text| pattern(text)).collect()
}

fn mode(values: &Values) -> RouteMode {
    match values.word_or_count("mode") {
        Ok(word) => RouteMode::of(word).expect("the schema takes no other word"),
        Err(limit) => RouteMode::Fixed(Limit::of(small(limit))),
    }
}

/// Returns a number of which the schema sees to it that it fits.
fn small(number: u64) -> u32 {
    u32::try_from(number).expect("the schema's range ends within u32")
}

fn sessions(sections: &Sections, faults: &mut Faults) -> Sessions {
    let mut kinds: Vec<SessionKind> = Vec::new();
    let entries = sections.repeated("session");
    for (index, values) in entries.iter().enumerate() {
        let Some(name) = values.given_text("kind") else { continue };
        if kinds.iter().any(|kind| kind.name == name) {
            faults.value(
                format!("session[{index}].kind"),
                format!("{name:?}"),
                "unlike that of any other session",
            );
        }
        let begins = patterns(&values.texts("begins"));
        if begins.is_empty() && index + 1 < entries.len() {
            let allowed = "given here: empty stands for every request, so the kinds after it would never be reached (put it last)";
            faults.value(format!("session[{index}].begins"), "[]", allowed);
        }
        kinds.push(SessionKind {
            name: name.to_string(),
            begins,
            ends: patterns(&values.texts("ends")),
            app_cookie: values.given_text("app_cookie").map(str::to_string),
            gate: kind(index, values, faults),
        });
    }
    if kinds.is_empty() {
        kinds = Sessions::default().kinds;
    }
    Sessions { kinds, detect_cookies: sections.once("gate").flag("detect_app_cookies") }
}

fn kind(index: usize, values: &Values, faults: &mut Faults) -> KindParams {
    let (patience, hold) = (values.given_time("patience"), values.given_time("hold"));
    if let (Some(patience), Some(hold)) = (patience, hold)
        && hold > patience
    {
        let allowed = format!("at most its patience ({})", seen_time(patience));
        faults.value(format!("session[{index}].hold"), seen_time(hold), allowed);
    }
    let line = values.flag("waiting_room").then(suimon_line::Params::default);
    KindParams { patience, hold, mode: values.choice("mode", KindMode::of), line }
}

fn gate(sections: &Sections, faults: &mut Faults) -> suimon_gate::Params {
    let gate = sections.once("gate");
    suimon_gate::Params {
        cores: gate.given_count("cores").map_or_else(cores_here, |cores| {
            u32::try_from(cores).expect("the schema's range ends within u32")
        }),
        seed: gate.count("seed"),
        route_law: route_law(sections),
        session_law: session_law(sections, faults),
        order: gate.choice("order", QueueOrder::of),
        patience: gate.time("patience"),
        waiting_max: gate.size("waiting_max"),
        sessions_max: gate.size("sessions_max"),
        session_idle: gate.time("session_idle"),
        decisions_max: gate.size("decisions_max"),
        finds_workers: crate::pool::finds_workers(sections),
    }
}

/// Returns the cores of this machine, which is where the application often is, and else a
/// beginning. They are looked at once: what a process may use of them changes with its quota, and a
/// file that says nothing otherwise than before must not be read otherwise.
fn cores_here() -> u32 {
    static CORES: OnceLock<u32> = OnceLock::new();
    *CORES.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        u32::try_from(cores).unwrap_or(u32::MAX)
    })
}

fn paper_route(values: &Values) -> PaperRouteParams {
    PaperRouteParams { initial: values.small("initial"), period: values.time("period") }
}

/// Returns the law with its numbers; one that has none needs no line here.
fn route_law(sections: &Sections) -> RouteLawKind {
    match sections.once("gate").choice("route_law", RouteLawKind::of) {
        RouteLawKind::Paper(_) => RouteLawKind::Paper(paper_route(sections.once("gate.paper_route"))),
        law => law,
    }
}

/// As [`route_law`].
fn session_law(sections: &Sections, faults: &mut Faults) -> SessionLawKind {
    let gate = sections.once("gate");
    match gate.choice("session_law", SessionLawKind::of) {
        SessionLawKind::Paper(_) => {
            let values = sections.once("gate.paper_session");
            SessionLawKind::Paper(PaperSessionParams {
                threshold: values.number("threshold"),
                up: values.time("up"),
                down: values.time("down"),
                period: values.time("period"),
            })
        }
        SessionLawKind::Static(_) => {
            let sessions = gate.given_count("static_sessions");
            if sessions.is_none() {
                faults.missing(
                    "gate.static_sessions",
                    "session_law = \"static\" needs the number of sessions under way at once",
                );
            }
            SessionLawKind::Static(small(sessions.unwrap_or(1)))
        }
        law => law,
    }
}

/// Returns the way to the application, those to pools that take some routes, and where other nodes are
/// found.
fn upstreams(
    sections: &Sections,
    faults: &mut Faults,
) -> (UpstreamParams, Vec<UpstreamParams>, Option<DiscoveryParams>) {
    let cores = sections.once("gate").given_count("cores");
    let cores = cores
        .map_or_else(cores_here, |cores| u32::try_from(cores).expect("the schema's range ends within u32"));
    let pools = crate::pool::pools(sections, cores, faults);
    let (nodes, discovery) = upstream_of_nodes(sections, faults);
    let of_routes = pools.of_routes.into_iter().map(|workers| with_workers(sections, &nodes, workers));
    let of_routes = of_routes.collect();
    match pools.rest {
        Some(workers) => {
            no_nodes(sections.once("upstream"), faults);
            (with_workers(sections, &nodes, workers), of_routes, None)
        }
        None => {
            let fastcgi = fastcgi(sections, &nodes.nodes, None, faults);
            (UpstreamParams { fastcgi, ..nodes }, of_routes, discovery)
        }
    }
}

/// Notes what is said of nodes where workers of a pool take all requests.
fn no_nodes(values: &Values, faults: &mut Faults) {
    let given = [
        ("upstream.affinity", values.given_text("affinity").map(|name| format!("{name:?}"))),
        ("upstream.nodes_file", values.given_path("nodes_file").map(|path| format!("{path:?}"))),
    ];
    for (key, seen) in given.into_iter().filter_map(|(key, seen)| Some((key, seen?))) {
        let allowed = "left out where a [[pool]] takes all requests: its workers are no nodes";
        faults.value(key, seen, allowed);
    }
}

/// Returns the way to a pool: as to nodes, but for these.
fn with_workers(
    sections: &Sections,
    nodes: &UpstreamParams,
    mut workers: WorkersNodeParams,
) -> UpstreamParams {
    let kind = workers.pool.kind;
    let node = NodeParams::of_workers(Arc::clone(&workers.pool.name), kind != WorkerKind::Http);
    // A pool has a folder where programs are, whatever is said of others.
    let fastcgi = fastcgi(sections, &[], Some(&workers), &mut Faults::none());
    // One program that answers every path is known before any request.
    if let Some(FastCgiParams { mapping: Mapping::Program { file, .. }, .. }) = &fastcgi
        && kind == WorkerKind::Cgi
        && workers.pool.command.program.as_os_str().is_empty()
    {
        crate::pool::run_itself(&mut workers.pool.command, file);
    }
    UpstreamParams {
        nodes: vec![node],
        fastcgi,
        workers: Some(workers),
        balance: Balance::default(),
        affinity: None,
        load_reports: LoadReportParams::default(),
        ..nodes.clone()
    }
}

fn upstream_of_nodes(sections: &Sections, faults: &mut Faults) -> (UpstreamParams, Option<DiscoveryParams>) {
    let values = sections.once("upstream");
    let (health, ejection, tls) =
        (sections.once("upstream.health"), sections.once("upstream.ejection"), sections.once("upstream.tls"));
    let timeouts = sections.once("timeouts");
    let protocol = values.choice("protocol", Protocol::of);
    let come = crate::nodes::come(sections) || values.given_path("nodes_file").is_some();
    let mut nodes = values.nodes("nodes");
    if come && !values.is_given("nodes") {
        nodes.clear();
    }
    if nodes.is_empty() && !come {
        faults.value("upstream.nodes", "[]", "at least one node, such as [\"http://127.0.0.1:8080\"]");
    }
    for (index, node) in nodes.iter().enumerate() {
        if nodes[..index].contains(node) {
            faults.value(format!("upstream.nodes[{index}]"), format!("\"{node}\""), "named once");
        }
    }
    for node in &mut nodes {
        node.protocol = protocol;
    }
    let discovery = crate::discovery::discovery(sections, &mut nodes, protocol, faults);
    let ejection = EjectionParams {
        after: ejection.small("after"),
        base: ejection.time("base"),
        max: ejection.time("max"),
    };
    if ejection.base > ejection.max {
        let allowed = format!("at most upstream.ejection.max ({})", seen_time(ejection.max));
        faults.value("upstream.ejection.base", seen_time(ejection.base), allowed);
    }
    let interval = health.time("interval");
    let longest = if interval.is_zero() { HEALTH_TIMEOUT_MAX } else { interval.min(HEALTH_TIMEOUT_MAX) };
    let timeout = health.given_time("timeout").unwrap_or(longest);
    if !interval.is_zero() && timeout > interval {
        let allowed = format!("at most upstream.health.interval ({})", seen_time(interval));
        faults.value("upstream.health.timeout", seen_time(timeout), allowed);
    }
    let (balance, load_reports) = load_reports(sections, faults);
    let upstream = UpstreamParams {
        balance,
        affinity: affinity(values, faults),
        load_reports,
        connect_timeout: timeouts.time("connect"),
        first_byte_timeout: timeouts.time("first_byte"),
        idle_timeout: timeouts.time("response_read"),
        pool_idle_max: values.size("pool_idle_max"),
        pool_idle_age: values.time("pool_idle_age"),
        h2_connections_max: values.size("h2_connections_max"),
        h2_streams_max: values.size("h2_streams_max"),
        max_head_bytes: values.size("head_bytes_max"),
        health: HealthParams {
            path: health.given_text("path").map(str::to_string),
            interval,
            timeout,
            down_after: health.small("down_after"),
            up_after: health.small("up_after"),
        },
        ejection,
        tls: TlsParams {
            ca_file: tls.given_path("ca_file"),
            server_name: tls.given_text("server_name").map(str::to_string),
            verify: tls.flag("verify"),
        },
        fastcgi: None,
        workers: None,
        nodes,
        grows: come || discovery.is_some(),
        slow_start: values.time("slow_start"),
        retry_share: values.number("retry_share"),
        seed: sections.once("gate").count("seed"),
    };
    (upstream, discovery)
}

/// Returns how sessions of the application stay at their nodes.
fn affinity(values: &Values, faults: &mut Faults) -> Option<AffinityParams> {
    let cookie = values.given_text("affinity")?;
    let is_token = |c: char| c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?={}".contains(c);
    if cookie.is_empty() || !cookie.chars().all(is_token) {
        faults.value(
            "upstream.affinity",
            format!("{cookie:?}"),
            "the name of a cookie, such as \"JSESSIONID\"",
        );
    }
    Some(AffinityParams { cookie: cookie.to_owned(), idle: values.time("affinity_idle") })
}

/// Returns which programs nodes with FastCGI run, and notes such a node without any.
fn fastcgi(
    sections: &Sections,
    nodes: &[NodeParams],
    workers: Option<&WorkersNodeParams>,
    faults: &mut Faults,
) -> Option<FastCgiParams> {
    let values = sections.once("upstream.fastcgi");
    let text = |path: PathBuf| path.to_string_lossy().trim_end_matches('/').to_owned();
    let (mut root, program) = (values.given_path("root").map(text), values.given_path("program").map(text));
    if let (None, Some(workers)) = (&program, workers) {
        let own = workers.pool.command.folder.clone();
        root = match root {
            // It is for the only one that runs programs; of several each has its own folder.
            Some(root) => {
                own.filter(|_| crate::pool::running_programs(sections) > 1).map(text).or(Some(root))
            }
            None => own.or_else(|| std::env::current_dir().ok()).map(text),
        };
    }
    let mapping = match (root, program) {
        (None, None) => {
            if nodes.iter().any(|node| node.scheme == Scheme::FastCgi) {
                let allowed =
                    "the folder of the programs, or upstream.fastcgi.program, as a node speaks FastCGI";
                faults.value("upstream.fastcgi.root", "unset", allowed);
            }
            return None;
        }
        (root, Some(file)) => {
            let folder = || file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            Mapping::Program { root: root.unwrap_or_else(folder), file }
        }
        (Some(root), None) => Mapping::Folder {
            root,
            suffix: values.text("suffix").to_owned(),
            index: values.text("index").to_owned(),
            fallback: values.given_text("fallback").map(str::to_owned),
        },
    };
    let status = values.given_text("status").map(str::to_owned);
    Some(FastCgiParams { mapping, checks_files: values.flag("check_files"), status })
}

impl Settings {
    /// Notes listeners that cannot be together, and nodes that are this gateway itself.
    /// [`Settings::load`] and [`Settings::parse`] have done it; to be called again after an address
    /// was changed.
    pub fn check_addresses(&self, faults: &mut Faults) {
        check_addresses(self, faults);
    }
}

fn check_addresses(settings: &Settings, faults: &mut Faults) {
    let listen = &settings.proxy.listen;
    let named = [
        ("listen.http", listen.plain),
        ("listen.tls.address", listen.tls.as_ref().map(|tls| tls.address)),
        ("admin.listen", settings.admin_listen),
    ];
    settings.admin_access.check(settings.admin_listen, faults);
    let named: Vec<_> = named.into_iter().filter_map(|(key, address)| Some((key, address?))).collect();
    if listen.plain.is_none() && listen.tls.is_none() {
        faults.value("listen.http", "\"off\"", "an address, as there is no [listen.tls] either");
    }
    for (index, (key, address)) in named.iter().enumerate() {
        if let Some((other, _)) = named[..index].iter().find(|(_, earlier)| overlap(*earlier, *address)) {
            faults.value(
                *key,
                format!("\"{address}\""),
                format!("another address than {other}, which takes it already"),
            );
        }
    }
    let of_sites = settings.proxy.sites.iter().enumerate().flat_map(|(index, site)| {
        site.params.upstream.nodes.iter().map(move |node| (format!("site[{index}].upstream.nodes"), node))
    });
    let own = settings.proxy.upstream.nodes.iter().map(|node| ("upstream.nodes".to_owned(), node));
    for (nodes_key, node) in own.chain(of_sites) {
        let NodeAddress::Tcp { host, port } = &node.address else { continue };
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        let Ok(ip) = host.parse() else { continue };
        let reached = SocketAddr::new(ip, *port);
        let takes = |address: SocketAddr| {
            address == reached
                || (address.ip().is_unspecified()
                    && reached.ip().is_loopback()
                    && address.port() == reached.port())
        };
        if let Some((key, _)) = named.iter().find(|(_, address)| takes(*address)) {
            faults.value(
                nodes_key,
                format!("\"{node}\""),
                format!("the application, not Suimon's own {key}"),
            );
        }
    }
}

/// Returns whether two listeners would want the same port of the same address. Port 0 is always
/// another.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let everywhere = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() != 0 && a.port() == b.port() && (a.ip() == b.ip() || (everywhere && a.is_ipv4() == b.is_ipv4()))
}

/// Notes files that are named and cannot be read. The file of lease keys is made when it is not
/// there.
fn check_files(settings: &Settings, faults: &mut Faults) {
    let tls = settings.proxy.listen.tls.as_ref();
    let named = [("listen.tls.cert", tls.map(|tls| &tls.cert)), ("listen.tls.key", tls.map(|tls| &tls.key))];
    for (key, path) in named {
        check_file(key, path, faults);
    }
    settings.admin_access.check_files(faults);
    check_files_of_site(&settings.proxy, faults);
    for (index, site) in settings.proxy.sites.iter().enumerate() {
        let mut inner = Faults::none();
        let certificate = site.certificate.as_ref();
        check_file("cert", certificate.map(|it| &it.cert), &mut inner);
        check_file("key", certificate.map(|it| &it.key), &mut inner);
        check_files_of_site(&site.params, &mut inner);
        faults.append(inner.below(&format!("site[{index}]")));
    }
}

fn check_files_of_site(params: &suimon_params::Params, faults: &mut Faults) {
    check_file("upstream.tls.ca_file", params.upstream.tls.ca_file.as_ref(), faults);
    for upstream in params.upstreams() {
        check_root(upstream, faults);
    }
}

fn check_file(key: &str, path: Option<&PathBuf>, faults: &mut Faults) {
    let Some(path) = path else { return };
    if let Err(error) = File::open(path) {
        faults.value(key, format!("\"{}\"", path.display()), format!("a file that can be read ({error})"));
    }
}

fn check_root(upstream: &UpstreamParams, faults: &mut Faults) {
    if let Some(FastCgiParams { mapping: Mapping::Folder { root, .. }, checks_files: true, .. }) =
        &upstream.fastcgi
        && upstream.nodes.iter().any(|node| node.scheme == Scheme::FastCgi)
        && !Path::new(root).is_dir()
    {
        let allowed = "a folder of this machine; with check_files = false, one that only the nodes see";
        faults.value("upstream.fastcgi.root", format!("\"{root}\""), allowed);
    }
}

#[cfg(test)]
mod tests;
