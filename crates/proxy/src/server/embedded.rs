//! The gateway without its sockets: for a process that works on requests itself.

use super::learned::StartedWith;
use super::running::{Application, RunningSite};
use super::site::{self, Common, SiteDraft};
use super::{Observer, StartError, by_site};
use crate::gateway::Gateway;
use crate::pipeline::{Entered, FORM_BYTES_MAX, enter, no_place};
use crate::request_record::RequestNotes;
use crate::sites::Sites;
use http::{Method, request};
use std::net::IpAddr;
use std::sync::Arc;
use suimon_downstream::connection::Connection;
use suimon_downstream::connections::{CloseRequest, Connections};
use suimon_downstream::host::Host;
use suimon_message::peer::Peer;
use suimon_model::Reason;
use suimon_params::Params;
use suimon_params::upstream::NodeParams;

/// The address of the node that a process is which works on requests itself: nothing is sent there.
pub const THIS_PROCESS: &str = "http://this-process:80";

/// A gateway that lets no request in yet.
#[derive(Debug)]
pub struct Embedded {
    door: Door,
    /// By site.
    begun: Vec<StartedWith>,
}

/// Where requests come in. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Door {
    sites: Arc<Sites>,
    /// One for each request: whoever waits takes a place, and there are so many.
    places: Arc<Connections>,
}

impl Embedded {
    /// Returns the gateway of a process that works on requests itself. What the parameters say of listeners,
    /// nodes and bodies is of no account, but for the longest body that a request may declare. Must be called
    /// inside the runtime that will run it.
    ///
    /// # Errors
    /// See [`StartError`]; each names the thing and the remedy.
    pub fn open(mut params: Params) -> Result<Embedded, StartError> {
        params.upstream.nodes = vec![NodeParams::parse(THIS_PROCESS).map_err(StartError::Params)?];
        let common = Common::new(&params)?;
        site::check_tags(&params)?;
        let takes: Vec<_> = params.sites.iter().map(|site| site.takes.clone()).collect();
        let places_max = params.limits.connections;
        let drafts = by_site(params).into_iter().enumerate();
        let drafts = drafts.map(|(index, params)| SiteDraft::new(index, params, &common, None));
        let drafts = drafts.collect::<Result<Vec<_>, _>>()?;
        let (mut gateways, mut begun) = (Vec::new(), Vec::new());
        for draft in drafts {
            let main = gateways.first().map(|main: &Arc<Gateway>| main.core());
            let (gateway, started) = draft.begin(&common, None, main.as_deref(), None)?;
            gateways.push(gateway);
            begun.push(started);
        }
        site::begin_recordings(&gateways)?;
        let sites = Arc::new(Sites::new(gateways, takes));
        let displaced = sites.main().core().telemetry().connections_displaced();
        Ok(Embedded { door: Door { sites, places: Connections::new(places_max, displaced) }, begun })
    }

    /// Returns where requests come in, once [`Embedded::run`] is under way.
    pub fn door(&self) -> Door {
        self.door.clone()
    }

    /// Returns a look at the main site, which stays good while the gateway runs and after.
    pub fn observer(&self) -> Observer {
        let sites = &self.door.sites;
        Observer { gateway: Arc::clone(sites.main()), sites: Arc::clone(sites) }
    }

    /// Takes note of requests from now on. Once, and before the first of them.
    pub fn note_requests(&self, notes: &RequestNotes) {
        self.door.sites.note_requests(notes);
    }

    /// Does all that goes on beside requests until `shutdown` is ready, then refuses what comes, lets what is
    /// under way end, for the drain time at most, and keeps what outlives the process.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Embedded { door: Door { sites, places }, begun } = self;
        let mut running = Vec::new();
        for (gateway, begun) in sites.all().zip(begun) {
            running.push(RunningSite::begin(Arc::clone(gateway), begun.kept(), Application::Here).await);
        }
        shutdown.await;
        running.iter().for_each(RunningSite::drain);
        places.tell(CloseRequest::End);
        let drain_max = sites.main().core().params().timeouts.drain;
        let _ = tokio::time::timeout(drain_max, places.gone()).await;
        for site in running {
            site.end(false).await;
        }
    }
}

impl Door {
    /// Takes in a request of a client at `address`, which may speak for others if it is a trusted proxy.
    /// Returns once the request may be worked on, or has an answer. Dropped before, the request has left. Once
    /// [`Embedded::run`] is told to end, all are refused.
    pub async fn enter(&self, address: IpAddr, is_tls: bool, head: request::Parts) -> Entered {
        let (site, is_known) = self.sites.site_of(&head.uri, &head.headers);
        let core = site.core();
        if self.places.is_ending() {
            return no_place(&core, &head, Reason::ShuttingDown);
        }
        let Some(place) = self.places.enter_if_room() else {
            return no_place(&core, &head, Reason::GatewayFull);
        };
        let peer = Peer::new(address, is_tls, &core.rules().trusted);
        let host = Arc::clone(&self.sites) as Arc<dyn Host>;
        let connection = Connection::new(peer, None, host, place);
        match enter(core, is_known, connection, head).await {
            Ok(entered) => entered,
            // There is no socket at which a client could be seen to leave.
            Err(_gone) => unreachable!("only whoever dropped this knows that the client has left"),
        }
    }

    /// Returns how long a form may be that is for the gate, and that whoever works on requests is to move into the
    /// query; `None`: the request is no such form. It has an answer, whatever it says.
    pub fn form_bytes_max(&self, head: &request::Parts) -> Option<usize> {
        if head.method != Method::POST {
            return None;
        }
        let (site, _) = self.sites.site_of(&head.uri, &head.headers);
        site.core().takes_form(head).then_some(FORM_BYTES_MAX)
    }

    /// Returns the answer to a request that whoever works on requests cannot even keep in mind.
    pub fn refuse(&self, head: &request::Parts) -> Entered {
        let (site, _) = self.sites.site_of(&head.uri, &head.headers);
        no_place(&site.core(), head, Reason::GatewayFull)
    }
}
