//! The sites behind one gateway, as its listeners see them: each request goes to one of them, and a
//! connection to the main one.

use crate::gateway::Gateway;
use crate::pipeline::{ClientGone, serve};
use crate::server::StartError;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{HOST, REFERER};
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;
use std::sync::Arc;
use suimon_downstream::answer_body::ResponseBody;
use suimon_downstream::connection::Connection;
use suimon_downstream::host::Host;
use suimon_downstream::service::{Rules, Service};
use suimon_message::validate::RequestFault;
use suimon_params::{Params, SiteMatch};
use suimon_routes::{MAIN_SITE, SiteTable, without_port};
use suimon_waiting_room::is_beside_the_page;

/// See the module.
#[derive(Debug)]
pub(crate) struct Sites {
    /// The main one first.
    all: Vec<Arc<Gateway>>,
    table: ArcSwap<SiteTable>,
}

impl Sites {
    /// Returns these sites, the main one first. `takes`: what each of the others does.
    pub(crate) fn new(all: Vec<Arc<Gateway>>, takes: &[SiteMatch]) -> Self {
        Sites { all, table: ArcSwap::from_pointee(SiteTable::new(takes)) }
    }

    /// Returns the main one.
    pub(crate) fn main(&self) -> &Arc<Gateway> {
        &self.all[MAIN_SITE]
    }

    /// Returns all of them, the main one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Gateway>> {
        self.all.iter()
    }

    /// Puts other settings in force at all sites, or at none: see [`Gateway::adopt`].
    pub(crate) fn adopt(&self, wanted: Params) -> Result<(), StartError> {
        self.may_adopt(&wanted)?;
        let mut takes = Vec::new();
        for (gateway, site) in self.all.iter().skip(1).zip(&wanted.sites) {
            takes.push(site.takes.clone());
            gateway.adopt(site.params.clone().behind(&wanted))?;
        }
        self.main().adopt(Params { sites: Vec::new(), ..wanted })?;
        self.table.store(Arc::new(SiteTable::new(&takes)));
        Ok(())
    }

    /// Returns whether other settings could be put in force.
    pub(crate) fn may_adopt(&self, wanted: &Params) -> Result<(), StartError> {
        let own: Vec<_> = self.all().skip(1).map(|gateway| gateway.core().params().site.clone()).collect();
        if !own.iter().eq(wanted.sites.iter().map(|site| &site.params.site)) {
            return Err(StartError::Params("other sites take a restart".to_owned()));
        }
        self.main().may_adopt(wanted)?;
        let mut others = self.all.iter().skip(1).zip(&wanted.sites);
        others.try_for_each(|(gateway, site)| {
            let named = |error| StartError::Params(format!("site {}: {error}", site.name()));
            gateway.may_adopt(&site.params).map_err(named)
        })
    }

    /// Returns the site that a request is for.
    fn site_of(&self, request: &Request<Incoming>) -> &Arc<Gateway> {
        if self.all.len() == 1 {
            return self.main();
        }
        let table = self.table.load();
        let host = request.uri().authority().map(|authority| authority.as_str());
        let host = host.or_else(|| request.headers().get(HOST)?.to_str().ok());
        let path = request.uri().path();
        let is_beside = table.has_paths() && is_beside_the_page(path);
        let page = if is_beside { page_of(request.headers(), host) } else { None };
        let path = page.as_ref().map_or(path, Uri::path);
        self.all.get(table.site_of(host, path)).unwrap_or(self.main())
    }
}

/// Returns the page of this host from which a request comes. The addresses beside the waiting page are
/// the same for all paths of a host: which site's they are is said by the page alone.
fn page_of(headers: &HeaderMap, host: Option<&str>) -> Option<Uri> {
    let from: Uri = headers.get(REFERER)?.to_str().ok()?.parse().ok()?;
    let is_own = without_port(from.authority()?.as_str()).eq_ignore_ascii_case(without_port(host?));
    is_own.then_some(from)
}

impl Host for Sites {
    fn note_connection_opened(&self) {
        self.main().core().telemetry().note_connection_opened();
    }

    fn note_connection_closed(&self) {
        self.main().core().telemetry().note_connection_closed();
    }

    fn note_unreadable(&self) {
        let core = self.main().core();
        core.telemetry().note_request();
        core.telemetry().note_fault();
    }

    fn unreadable(&self, fault: RequestFault, accepts: Option<HeaderMap>) -> Bytes {
        self.main().core().unreadable(fault, accepts.as_ref())
    }

    fn is_to_warn_of_balancer(&self) -> bool {
        self.main().core().telemetry().is_to_warn_of_balancer()
    }
}

impl Service for Sites {
    type Gone = ClientGone;

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(self.main().core().rules())
    }

    fn serve(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, ClientGone>> + Send {
        let core = self.site_of(&request).core();
        serve(core, connection, request)
    }
}
