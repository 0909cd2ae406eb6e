//! What all requests share, and what a gateway is made of.

use crate::backend::Backend;
use crate::error_response;
use crate::gatekeeper::Gatekeeper;
use crate::https::{Https, ListenerPorts};
use crate::telemetry::Telemetry;
use crate::ungated::UngatedLimit;
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use suimon_downstream::service::Rules;
use suimon_downstream::watch::Watcher;
use suimon_identity::identify::Identifier;
use suimon_identity::lease::Leases;
use suimon_message::validate::RequestFault;
use suimon_params::upstream::{NodeParams, Protocol, Scheme};
use suimon_params::{Params, SessionKind};
use suimon_routes::{Exempt, Table};
use suimon_waiting_room::{BrowserPreferences, Pages, WaitingRoom};
use tokio::sync::Semaphore;

/// One in this many connections, at most, may hold a place that waits to begin; requests beyond
/// that are told at once how their place stands.
const ENTERING_SHARE: usize = 4;

/// How many ungated requests may be in the application at once, before it is known how many of them
/// end within a second: static assets, ...
const ASSETS_LEAST: usize = 64;
/// ... listed paths, which may be long polls, and the page that gives passes, ...
const LISTED_LEAST: usize = 1024;
/// ... and forms sent to that page: log-ins, which take a core each.
const PASS_FORMS_LEAST: usize = 4;
/// How long a request waits at such a limit.
const ASSET_WAIT_MAX: Duration = Duration::from_secs(2);
const PASS_FORM_WAIT_MAX: Duration = Duration::from_secs(10);
/// The limits of what passes without a slot.
#[derive(Clone, Debug)]
pub(crate) struct UngatedLimits {
    listed: Arc<UngatedLimit>,
    assets: Arc<UngatedLimit>,
    pass_forms: Arc<UngatedLimit>,
}

impl UngatedLimits {
    /// Returns limits that are unused.
    pub(crate) fn new() -> Self {
        UngatedLimits {
            listed: UngatedLimit::new(LISTED_LEAST, ASSET_WAIT_MAX),
            assets: UngatedLimit::new(ASSETS_LEAST, ASSET_WAIT_MAX),
            pass_forms: UngatedLimit::new(PASS_FORMS_LEAST, PASS_FORM_WAIT_MAX),
        }
    }

    pub(super) fn of(&self, exempt: Exempt) -> &Arc<UngatedLimit> {
        match exempt {
            Exempt::Listed => &self.listed,
            Exempt::Static => &self.assets,
            Exempt::PassForm => &self.pass_forms,
        }
    }
}

/// What a request is served by: settings, and what is made of them. Other settings make another
/// one, and share with it what is known of clients and routes.
#[derive(Debug)]
pub(crate) struct Core {
    /// Which of the sites behind the gateway it serves.
    pub(super) site: usize,
    pub(super) params: Params,
    pub(super) rules: Arc<Rules>,
    pub(super) https: Https,
    pub(super) table: Table,
    /// By pool.
    pub(super) open: Vec<UngatedLimits>,
    pub(super) identifier: Identifier,
    /// Where some kind of session has a line.
    pub(super) waiting_room: Option<WaitingRoom>,
    /// What visitors see where it is not the application's.
    pub(super) pages: Arc<Pages>,
    /// Connections that may hold a place which waits to begin.
    pub(super) entering: Arc<Semaphore>,
    pub(super) keeper: Arc<Gatekeeper>,
    pub(super) backend: Arc<Backend>,
    pub(super) telemetry: Arc<Telemetry>,
}

/// What a gateway is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) site: usize,
    pub(crate) table: Table,
    pub(crate) identifier: Identifier,
    /// Where some kind of session has a line.
    pub(crate) waiting_room: Option<WaitingRoom>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) backend: Arc<Backend>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) ports: ListenerPorts,
}

impl Core {
    /// Returns what serves requests, made of these parts.
    pub(crate) fn new(params: Params, parts: Parts) -> Self {
        let Parts { site, table, identifier, waiting_room, pages, backend, watcher, ports } = parts;
        Core {
            site,
            rules: rules(&params, &backend, watcher),
            https: Https::new(&params, ports),
            table,
            open: backend.upstreams().map(|_| UngatedLimits::new()).collect(),
            identifier,
            waiting_room,
            pages,
            entering: Arc::new(Semaphore::new(params.limits.connections.div_ceil(ENTERING_SHARE))),
            keeper: Arc::clone(&backend.keeper),
            telemetry: Arc::clone(&backend.telemetry),
            backend,
            params,
        }
    }

    /// Returns what serves requests by other settings, with what is known of clients and routes.
    /// `pages` are what people see then.
    pub(crate) fn adopting(&self, params: Params, pages: Arc<Pages>) -> Self {
        let waiting_room =
            self.waiting_room.as_ref().map(|room| room.adopting(&params.waiting_room, Arc::clone(&pages)));
        Core {
            site: self.site,
            rules: rules(&params, &self.backend, Arc::clone(&self.rules.watcher)),
            https: self.https.adopting(&params),
            table: self.table.adopting(&params.routes),
            open: self.open.clone(),
            identifier: self.identifier.adopting(&params.sessions),
            waiting_room,
            pages,
            entering: Arc::clone(&self.entering),
            keeper: Arc::clone(&self.keeper),
            telemetry: Arc::clone(&self.telemetry),
            backend: Arc::clone(&self.backend),
            params,
        }
    }

    /// Returns the settings in force.
    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the gate, the way to the application, and what is counted.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// Returns the waiting room, where some kind of session has a line.
    pub(crate) fn waiting_room(&self) -> Option<&WaitingRoom> {
        self.waiting_room.as_ref()
    }

    /// Returns what is counted.
    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Returns the whole answer, as bytes, to an HTTP/1 request that could not be read.
    pub(crate) fn unreadable(&self, fault: RequestFault, accepts: Option<&HeaderMap>) -> Bytes {
        error_response::unreadable(fault, accepts.map(BrowserPreferences::of), &self.pages)
    }

    /// Returns the leases.
    pub(crate) fn leases(&self) -> &Leases {
        self.identifier.leases()
    }

    /// Returns the kinds of session as they were configured.
    pub(crate) fn kinds(&self) -> &[SessionKind] {
        &self.params.sessions.kinds
    }

    /// Returns what holds for a connection that is accepted now.
    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }
}

fn rules(params: &Params, backend: &Backend, watcher: Arc<Watcher>) -> Arc<Rules> {
    let speaks_http1 = |node: &NodeParams| node.protocol == Protocol::Http1 && node.scheme != Scheme::FastCgi;
    Arc::new(Rules {
        trusted: params.trusted_proxies.clone().into(),
        balancers: params.listen.proxy_protocol.clone(),
        timeouts: params.timeouts.clone(),
        limits: params.limits.clone(),
        tunnels: params.upstreams().flat_map(|upstream| &upstream.nodes).all(speaks_http1),
        budget: Arc::clone(&backend.budget),
        watcher,
    })
}
