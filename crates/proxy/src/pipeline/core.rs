//! What all requests share, and what a gateway is made of.

use crate::backend::Backend;
use crate::gatekeeper::Gatekeeper;
use crate::telemetry::Telemetry;
use crate::ungated::UngatedLimit;
use std::sync::Arc;
use std::time::Duration;
use suimon_downstream::service::Rules;
use suimon_downstream::watch::Watcher;
use suimon_gate::RouteMode;
use suimon_identity::identify::Identifier;
use suimon_identity::lease::Leases;
use suimon_params::upstream::{NodeParams, Protocol};
use suimon_params::{LeaseIssued, Limits, OnClientDisconnect, Params, SessionKind, Timeouts};
use suimon_routes::{Exempt, Table};
use suimon_waiting_room::{Pages, WaitingRoom};
use tokio::sync::Semaphore;

/// One in so many connections, at most, may hold a place that waits to begin; whoever asks beyond
/// that is told how it stands at once.
const ENTERING_SHARE: usize = 4;

/// What may be in the application at once without a slot, before it is known how much of it ends
/// within a second: static assets, ...
const ASSETS_LEAST: usize = 64;
/// ... what is listed, which may be long polls, and the page that gives passes, ...
const LISTED_LEAST: usize = 1024;
/// ... and what is sent to that page: log-ins, which take a core each.
const PASS_FORMS_LEAST: usize = 4;
/// How long a request waits at such a limit.
const ASSET_WAIT_MAX: Duration = Duration::from_secs(2);
const PASS_FORM_WAIT_MAX: Duration = Duration::from_secs(10);
/// The limits of what passes without a slot.
#[derive(Debug)]
pub(crate) struct UngatedLimits {
    listed: Arc<UngatedLimit>,
    assets: Arc<UngatedLimit>,
    pass_forms: Arc<UngatedLimit>,
}

impl UngatedLimits {
    /// Returns limits at which nobody is.
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

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) timeouts: Timeouts,
    pub(super) limits: Limits,
    pub(super) on_client_disconnect: OnClientDisconnect,
    pub(super) via: bool,
    pub(super) lease_secure: bool,
    /// Whether visitors whom nothing else tells apart get a lease however little there is to do.
    pub(super) leases_always: bool,
    /// Whether WebSocket over HTTP/2 is offered: nodes are spoken to in HTTP/1.1, which can switch.
    pub(super) tunnels: bool,
    pub(super) discovered_mode: RouteMode,
    pub(super) table: Table,
    pub(super) open: UngatedLimits,
    pub(super) identifier: Identifier,
    /// Where some kind of session has a line.
    pub(super) waiting_room: Option<WaitingRoom>,
    /// What people see where it is not the application's.
    pub(super) pages: Arc<Pages>,
    /// Connections that may hold a place which waits to begin.
    pub(super) entering: Semaphore,
    /// The kinds of session as they were set, for whoever asks.
    pub(super) kinds: Vec<SessionKind>,
    pub(super) keeper: Arc<Gatekeeper>,
    pub(super) backend: Arc<Backend>,
    pub(super) watcher: Arc<Watcher>,
    pub(super) telemetry: Arc<Telemetry>,
}

/// What a gateway is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) table: Table,
    pub(crate) identifier: Identifier,
    /// Where some kind of session has a line.
    pub(crate) waiting_room: Option<WaitingRoom>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) backend: Arc<Backend>,
    pub(crate) watcher: Arc<Watcher>,
}

impl Core {
    /// Returns what serves requests, made of these parts.
    pub(crate) fn new(params: &Params, parts: Parts) -> Arc<Self> {
        let Parts { table, identifier, waiting_room, pages, backend, watcher } = parts;
        let speaks_http1 = |node: &NodeParams| node.protocol == Protocol::Http1;
        Arc::new(Core {
            timeouts: params.timeouts.clone(),
            limits: params.limits.clone(),
            on_client_disconnect: params.on_client_disconnect,
            via: params.via,
            lease_secure: params.lease.secure,
            leases_always: params.lease.issued == LeaseIssued::Always,
            tunnels: params.upstream.nodes.iter().all(speaks_http1),
            discovered_mode: params.routes.discovered_mode,
            table,
            open: UngatedLimits::new(),
            identifier,
            waiting_room,
            pages,
            entering: Semaphore::new(params.limits.connections.div_ceil(ENTERING_SHARE)),
            kinds: params.sessions.kinds.clone(),
            keeper: Arc::clone(&backend.keeper),
            telemetry: Arc::clone(&backend.telemetry),
            backend,
            watcher,
        })
    }

    /// Returns the gate, the way to the application, and what is counted.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// Returns the waiting room, where some kind of session has a line.
    pub(crate) fn waiting_room(&self) -> Option<&WaitingRoom> {
        self.waiting_room.as_ref()
    }

    /// Returns the leases.
    pub(crate) fn leases(&self) -> &Leases {
        self.identifier.leases()
    }

    /// Returns the kinds of session as they were set.
    pub(crate) fn kinds(&self) -> &[SessionKind] {
        &self.kinds
    }

    /// Returns what holds for all connections.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            timeouts: self.timeouts.clone(),
            limits: self.limits.clone(),
            tunnels: self.tunnels,
            budget: Arc::clone(&self.backend.budget),
            watcher: Arc::clone(&self.watcher),
        }
    }
}
