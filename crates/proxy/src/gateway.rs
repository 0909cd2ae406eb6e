//! The gateway as its listeners see it: the settings in force, behind one swap.
//!
//! A request is served to its end by the settings it came under; a connection keeps its time-outs
//! and what HTTP/2 has agreed on. What the gate, the routes, the visitors' cookies and the lines
//! hold is shared by all settings that follow one another, so that adopting others forgets nothing.

use crate::pipeline::{ClientGone, Core, serve};
use crate::server::StartError;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use std::sync::{Arc, Mutex, PoisonError};
use suimon_downstream::answer_body::ResponseBody;
use suimon_downstream::connection::Connection;
use suimon_downstream::host::Host;
use suimon_downstream::service::{Rules, Service};
use suimon_message::validate::RequestFault;
use suimon_params::Params;
use suimon_waiting_room::{Pages, read_template};

/// See the module.
#[derive(Debug)]
pub(crate) struct Gateway {
    core: ArcSwap<Core>,
    /// One after another.
    adopting: Mutex<()>,
}

impl Gateway {
    /// Returns a gateway that serves by these settings.
    pub(crate) fn new(core: Core) -> Arc<Self> {
        Arc::new(Gateway { core: ArcSwap::from_pointee(core), adopting: Mutex::default() })
    }

    /// Returns what a request that comes now is served by.
    pub(crate) fn core(&self) -> Arc<Core> {
        self.core.load_full()
    }

    /// Puts other settings in force, all or none. What is bound, opened or counted on from the
    /// start stays as it was.
    pub(crate) fn adopt(&self, wanted: Params) -> Result<(), StartError> {
        let _one = self.adopting.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.core();
        check_same(before.params(), &wanted)?;
        let params = before.params().adopting(wanted);
        let template = read_template(&params.waiting_room).map_err(StartError::Params)?;
        let pages = Pages::of(&params.waiting_room, template, before.waiting_room().is_some());
        let after = Arc::new(before.adopting(params, Arc::new(pages)));
        self.core.store(Arc::clone(&after));
        after.backend().keeper.adopt(after.params());
        Ok(())
    }
}

/// Succeeds if both have the same kinds of session and the same declared routes: what is known of
/// them is known by their places.
fn check_same(before: &Params, wanted: &Params) -> Result<(), StartError> {
    let kinds = |params: &Params| -> Vec<(String, bool)> {
        params.sessions.kinds.iter().map(|kind| (kind.name.clone(), kind.gate.line.is_some())).collect()
    };
    let routes = |params: &Params| -> Vec<String> {
        params.routes.declared.iter().map(suimon_params::DeclaredRoute::name).collect()
    };
    let services = |params: &Params| -> Vec<(String, Vec<usize>)> {
        let services = &params.services.services;
        services.iter().map(|service| (service.name.clone(), service.routes.clone())).collect()
    };
    let differs = match () {
        () if kinds(before) != kinds(wanted) => "kinds of session or waiting rooms",
        () if routes(before) != routes(wanted) => "declared routes",
        () if services(before) != services(wanted) => "services or routes of them",
        () => return Ok(()),
    };
    Err(StartError::Params(format!("other {differs} take a restart")))
}

impl Host for Gateway {
    fn note_connection_opened(&self) {
        self.core.load().telemetry().note_connection_opened();
    }

    fn note_connection_closed(&self) {
        self.core.load().telemetry().note_connection_closed();
    }

    fn note_unreadable(&self) {
        let core = self.core.load();
        core.telemetry().note_request();
        core.telemetry().note_fault();
    }

    fn unreadable(&self, fault: RequestFault, accepts: Option<HeaderMap>) -> Bytes {
        self.core.load().unreadable(fault, accepts.as_ref())
    }

    fn is_to_warn_of_balancer(&self) -> bool {
        self.core.load().telemetry().is_to_warn_of_balancer()
    }
}

impl Service for Gateway {
    type Gone = ClientGone;

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(self.core.load().rules())
    }

    fn serve(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, ClientGone>> + Send {
        serve(self.core(), connection, request)
    }
}
