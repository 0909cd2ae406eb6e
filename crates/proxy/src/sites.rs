//! The sites behind one gateway, as its listeners see them: each request goes to one of them, and a
//! connection to the main one.

use crate::gateway::Gateway;
use crate::pipeline::{ClientGone, serve};
use crate::request_record::RequestNotes;
use crate::server::StartError;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{HOST, REFERER};
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;
use std::sync::{Arc, OnceLock};
use suimon_downstream::answer_body::ResponseBody;
use suimon_downstream::connection::Connection;
use suimon_downstream::host::Host;
use suimon_downstream::service::{Rules, Service};
use suimon_downstream::tls::Certificate;
use suimon_message::validate::RequestFault;
use suimon_params::{Params, SiteMatch};
use suimon_routes::{MAIN_SITE, SiteTable, without_port};
use suimon_waiting_room::{PREFIX, is_beside_the_page};

/// See the module.
#[derive(Debug)]
pub(crate) struct Sites {
    /// The main one first.
    all: Vec<Arc<Gateway>>,
    table: ArcSwap<SiteTable>,
    /// What the table is made of.
    takes: ArcSwap<Vec<SiteMatch>>,
    /// What the TLS listener shows, if there is one.
    certificate: OnceLock<Arc<Certificate>>,
}

impl Sites {
    /// Returns these sites, the main one first. `takes`: what each of the others does.
    pub(crate) fn new(all: Vec<Arc<Gateway>>, takes: Vec<SiteMatch>) -> Self {
        Sites {
            all,
            table: ArcSwap::from_pointee(SiteTable::new(&takes)),
            takes: ArcSwap::from_pointee(takes),
            certificate: OnceLock::new(),
        }
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
        self.check_sites(&wanted)?;
        let takes: Vec<_> = wanted.sites.iter().map(|site| site.takes.clone()).collect();
        let of_sites = wanted.sites.iter().map(|site| site.params.clone().behind(&wanted));
        let mut all: Vec<_> = of_sites.collect();
        all.insert(MAIN_SITE, Params { sites: Vec::new(), ..wanted });
        let prepared = self.all().zip(all).map(|(gateway, params)| {
            let site = params.site.clone();
            gateway.prepare(params).map_err(|error| named(site.as_deref(), error))
        });
        // From here on nothing can fail.
        let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
        self.all().zip(prepared).for_each(|(gateway, prepared)| gateway.adopt(prepared));
        if let Some(certificate) = self.certificate.get() {
            certificate.serve_hosts(&takes);
        }
        self.table.store(Arc::new(SiteTable::new(&takes)));
        self.takes.store(Arc::new(takes));
        Ok(())
    }

    /// Takes note of requests from now on. Once, and before the first of them.
    pub(crate) fn note_requests(&self, notes: &RequestNotes) {
        for gateway in self.all() {
            // A second time would change what is noted of a request on its way.
            let _ = gateway.core().backend().notes.set(notes.clone());
        }
    }

    /// Returns what each site beside the main one takes.
    pub(crate) fn takes(&self) -> Arc<Vec<SiteMatch>> {
        self.takes.load_full()
    }

    /// Has a certificate chosen by the hosts that sites take, whatever they will be.
    pub(crate) fn show(&self, certificate: &Arc<Certificate>) {
        // There is one TLS listener.
        let _ = self.certificate.set(Arc::clone(certificate));
    }

    /// Returns whether other settings could be put in force.
    pub(crate) fn may_adopt(&self, wanted: &Params) -> Result<(), StartError> {
        self.check_sites(wanted)?;
        self.all().zip(wanted.all_sites()).try_for_each(|(gateway, params)| {
            gateway.may_adopt(params).map_err(|error| named(params.site.as_deref(), error))
        })
    }

    fn check_sites(&self, wanted: &Params) -> Result<(), StartError> {
        let own: Vec<_> = self.all().skip(1).map(|gateway| gateway.core().params().site.clone()).collect();
        if own.iter().eq(wanted.sites.iter().map(|site| &site.params.site)) {
            return Ok(());
        }
        Err(StartError::Params("other sites take a restart".to_owned()))
    }

    /// Returns the site that a request is for; where that cannot be known, the main one and why.
    pub(crate) fn site_of(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> (&Arc<Gateway>, Result<(), RequestFault>) {
        if self.all.len() == 1 {
            return (self.main(), Ok(()));
        }
        let table = self.table.load();
        let host = uri.authority().map(|authority| authority.as_str());
        let host = host.or_else(|| headers.get(HOST)?.to_str().ok());
        let path = uri.path();
        if path.len() > self.main().core().params().limits.url_bytes {
            // It is refused for that, and not read before.
            return (self.main(), Ok(()));
        }
        let by_path = table.site_of(host, path);
        let is_told_by_page =
            table.has_paths() && path.contains(PREFIX) && self.is_told_by_page(path, by_path);
        let page = if is_told_by_page { page_of(headers, host) } else { None };
        match page.map_or(by_path, |page| table.site_of(host, page.path())) {
            Some(site) => (self.all.get(site).unwrap_or(self.main()), Ok(())),
            None => (self.main(), Err(RequestFault::AmbiguousPath)),
        }
    }

    /// Returns whether `path` is that of an address beside a waiting page, but not of the one of
    /// `by_path` alone: then it does not say whose it is.
    fn is_told_by_page(&self, path: &str, by_path: Option<usize>) -> bool {
        let knows = |gateway: &Gateway| is_beside_the_page(path, &gateway.core().params().waiting_room);
        let mut whose = (0..self.all.len()).filter(|site| knows(&self.all[*site]));
        match (whose.next(), whose.next()) {
            (None, _) => false,
            (one, None) => one != by_path,
            (_, Some(_)) => true,
        }
    }
}

/// Returns an error with the name of the site that it is about.
fn named(site: Option<&str>, error: StartError) -> StartError {
    match site {
        None => error,
        Some(site) => StartError::Params(format!("site {site}: {error}")),
    }
}

/// Returns the page of this host from which a request comes. Addresses beside the waiting page that are
/// the same for several sites of a host say nothing of whose they are: the page alone does.
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
        let (site, is_known) = self.site_of(request.uri(), request.headers());
        serve(site.core(), is_known, connection, request)
    }
}
