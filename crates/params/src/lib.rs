//! Everything the proxy is told before it starts: plain values, already checked, each with a
//! default that runs.
//!
//! The reader of settings fills these in. Nothing here opens, reads or binds anything.

pub mod discovery;
mod https;
pub mod kubernetes;
pub mod nodes;
pub mod pool;
mod telemetry;
pub mod upstream;

use discovery::DiscoveryParams;
pub use https::{Hsts, HttpsParams, ResponseHeader};
use nodes::NodesParams;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use suimon_gate::KindParams;
use suimon_gate::{DegradationMode, PausePlace, ServiceWish};
use suimon_model::RouteId;
pub use suimon_routes::{
    DeclaredRoute, PoolRoutes, QueryPattern, RoutePattern, Routes, SiteMatch, SiteTable,
};
pub use telemetry::{AccessFormat, LogFormat, OtlpParams, RequestIds, Telemetry};
use upstream::UpstreamParams;

/// The most kinds of session.
pub const KINDS_MAX: usize = 64;

/// The most sites beside the main one.
pub const SITES_MAX: usize = 32;

/// Parameters of the proxy: of the gateway as a whole, and of its main site.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// What the site is called; `None`: it is the main one.
    pub site: Option<String>,
    /// The sites beside the main one, at most [`SITES_MAX`], with names of their own.
    pub sites: Vec<Site>,
    /// Where clients connect.
    pub listen: Listen,
    /// Peers whose `X-Forwarded-*` and `Forwarded` are trusted. Empty: none.
    pub trusted_proxies: Vec<Network>,
    /// What holds for clients that use HTTPS.
    pub https: HttpsParams,
    /// What answers carry unless they say otherwise, each name once.
    pub response_headers: Vec<ResponseHeader>,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// How much of everything is accepted.
    pub limits: Limits,
    /// Where bodies of slow clients are kept.
    pub spool: SpoolParams,
    /// Which requests share a limit, and which pass ungated.
    pub routes: Routes,
    /// Groups of routes, and what is wished for each while the host is short.
    pub services: Services,
    /// The kinds of session, at least one; the first whose `begins` matches a request is the
    /// request's kind.
    pub sessions: Sessions,
    /// The cookie that proves a session was admitted.
    pub lease: LeaseParams,
    /// The waiting room of those kinds of session that have a line.
    pub waiting_room: WaitingRoomParams,
    /// What happens to the upstream request when its client disconnects. `None`: it is finished, but
    /// cancelled where a process runs for it alone, which only stops when it is killed.
    pub on_client_disconnect: Option<OnClientDisconnect>,
    /// Whether requests to the application carry `Via: 1.1 suimon` (HTTP/2: `2.0`).
    pub via: bool,
    /// The application's nodes and how they are spoken to.
    pub upstream: UpstreamParams,
    /// The pools that take the requests of some routes, as in [`Routes::pools`].
    pub pools: Vec<UpstreamParams>,
    /// The nodes that come and go. `None`: there are only those of [`Params::upstream`].
    pub nodes: Option<NodesParams>,
    /// Where other nodes of [`Params::upstream`] are found. `None`: nowhere.
    pub node_discovery: Option<DiscoveryParams>,
    /// The gate's own parameters.
    pub gate: suimon_gate::Params,
    /// The file in which what was learned outlives the process. `None`: it does not.
    pub learned_file: Option<PathBuf>,
    /// The file in which what an operator overrides outlives the process. `None`: it does not.
    pub overrides_file: Option<PathBuf>,
    /// Where what happens to the gate is written, so that it can be replayed. `None`: nowhere.
    pub record: Option<Recording>,
    /// What is shared with other gateways before the same application. `None`: this one is alone.
    pub sharing: Option<SharingParams>,
}

/// A site beside the main one: another application, or a part of one, behind the same listeners.
#[derive(Clone, Debug)]
pub struct Site {
    /// Which requests are for it.
    pub takes: SiteMatch,
    /// What TLS clients that ask for one of its hosts are shown; `None`: what all others are.
    pub certificate: Option<SiteCertificate>,
    /// All else. What concerns listeners, connections and memory is as in the main site's.
    pub params: Params,
}

/// Certificate and key of a site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteCertificate {
    /// Certificate chain, PEM, the server's own first.
    pub cert: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
}

impl Site {
    /// Returns what it is called.
    pub fn name(&self) -> &str {
        self.params.site.as_deref().unwrap_or_default()
    }
}

/// How several gateways before one application share limits, what begins and the line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharingParams {
    /// The address of the engine, a Redis or Valkey server. It may hold a password.
    pub engine: String,
    /// Those that share, by a name.
    pub group: String,
    /// How many there are usually, 1 to [`SharingParams::GATEWAYS_MAX`].
    pub gateways: u32,
    /// How often records are exchanged.
    pub period: Duration,
}

impl SharingParams {
    /// The most gateways that share.
    pub const GATEWAYS_MAX: u32 = 64;
}

impl Params {
    /// Returns the ways to the application by pool: the first takes what no other does.
    pub fn upstreams(&self) -> impl Iterator<Item = &UpstreamParams> {
        std::iter::once(&self.upstream).chain(&self.pools)
    }

    /// Returns the parameters of all sites, the main one first.
    pub fn all_sites(&self) -> impl Iterator<Item = &Params> {
        std::iter::once(self).chain(self.sites.iter().map(|site| &site.params))
    }

    /// Returns the parameters of a site with what concerns listeners, connections and memory, which it
    /// has in common with the `main` one.
    #[must_use]
    pub fn behind(self, main: &Params) -> Params {
        Params {
            listen: main.listen.clone(),
            trusted_proxies: main.trusted_proxies.clone(),
            timeouts: main.timeouts.clone(),
            limits: Limits { body_bytes: self.limits.body_bytes, ..main.limits.clone() },
            spool: main.spool.clone(),
            lease: LeaseParams { keys_file: main.lease.keys_file.clone(), ..self.lease },
            ..self
        }
    }

    /// Returns the parameters that a running proxy has once it was told of those that are `wanted`:
    /// what is bound, opened or counted on from the start stays as it is.
    pub fn adopting(&self, wanted: Params) -> Params {
        let Params {
            site,
            listen,
            upstream,
            pools,
            nodes,
            node_discovery,
            spool,
            lease,
            learned_file,
            overrides_file,
            record,
            sharing,
            limits,
            waiting_room,
            ..
        } = self.clone();
        let kinds = self.sessions.kinds.iter().zip(wanted.sessions.kinds);
        let kinds = kinds.map(|(own, kind)| SessionKind {
            name: own.name.clone(),
            // Visitors are known by it.
            app_cookie: own.app_cookie.clone(),
            gate: KindParams { line: own.gate.line, ..kind.gate },
            ..kind
        });
        let declared = self.routes.declared.iter().zip(wanted.routes.declared);
        let declared = declared.map(|(own, route)| DeclaredRoute { mode: route.mode, ..own.clone() });
        let services = self.services.services.iter().zip(wanted.services.services.clone());
        let services: Vec<_> = services
            .map(|(own, service)| DeclaredService {
                name: own.name.clone(),
                routes: own.routes.clone(),
                ..service
            })
            .collect();
        let sites = self.sites.iter().zip(wanted.sites);
        let sites = sites.map(|(own, wanted)| Site {
            takes: wanted.takes,
            certificate: own.certificate.clone(),
            params: own.params.adopting(wanted.params),
        });
        Params {
            site,
            sites: sites.collect(),
            services: Services { services, ..wanted.services },
            listen: Listen { proxy_protocol: wanted.listen.proxy_protocol, ..listen },
            upstream,
            pools,
            nodes,
            node_discovery,
            spool,
            lease: LeaseParams { secure: wanted.lease.secure, issued: wanted.lease.issued, ..lease },
            learned_file,
            overrides_file,
            record,
            sharing,
            gate: suimon_gate::Params {
                seed: self.gate.seed,
                finds_workers: self.gate.finds_workers.clone(),
                ..wanted.gate
            },
            limits: Limits {
                connections: limits.connections,
                slow_uploads: limits.slow_uploads,
                buffered_bytes: limits.buffered_bytes,
                session_cookies: limits.session_cookies,
                ..wanted.limits
            },
            routes: Routes {
                discovered_max: self.routes.discovered_max,
                declared: declared.collect(),
                pools: self.routes.pools.clone(),
                ..wanted.routes
            },
            sessions: Sessions { kinds: kinds.collect(), detect_cookies: self.sessions.detect_cookies },
            waiting_room: WaitingRoomParams {
                mount_path: waiting_room.mount_path,
                hold: waiting_room.hold,
                keep: waiting_room.keep,
                tickets_burst: waiting_room.tickets_burst,
                tickets_per_second: waiting_room.tickets_per_second,
                tickets_for_opening: waiting_room.tickets_for_opening,
                pass: waiting_room.pass,
                state_file: waiting_room.state_file,
                ..wanted.waiting_room
            },
            ..wanted
        }
    }
}

/// The services, and what their split goes by.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Services {
    /// What it goes by.
    pub mode: DegradationMode,
    /// Whether the heaviest service gives way while health checks take longer than they have to.
    pub lag_guard: bool,
    /// In the order in which floors are kept.
    pub services: Vec<DeclaredService>,
}

/// One service.
#[derive(Clone, PartialEq, Debug)]
pub struct DeclaredService {
    /// What status, metrics and records call it.
    pub name: String,
    /// Its routes: places in [`Routes::declared`].
    pub routes: Vec<usize>,
    /// What is wished for it.
    pub wish: ServiceWish,
    /// For how long each of its requests is held.
    pub pause: Duration,
    /// Seconds of pause for each second of work.
    pub pause_ratio: f64,
    /// Where the pauses are taken that this and caps come to.
    pub pauses: PausePlace,
}

impl Services {
    /// Returns them as the gate is told of them, whose declared routes begin with number `first`.
    pub fn for_gate(&self, first: usize) -> suimon_gate::Services {
        let of = |service: &DeclaredService| suimon_gate::ServiceParams {
            name: service.name.clone(),
            routes: service.routes.iter().map(|place| RouteId((first + place) as u32)).collect(),
            wish: service.wish.clone(),
            pause: service.pause,
            pause_ratio: service.pause_ratio,
            pauses: service.pauses,
        };
        suimon_gate::Services { mode: self.mode, services: self.services.iter().map(of).collect() }
    }
}

/// Where what happens to the gate is written. `docs/recording.md` tells what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The file being written. Full ones are set aside beside it, as `FILE.000001` and so on.
    pub file: PathBuf,
    /// Bytes of all of them together; the oldest is removed. At least [`Recording::BYTES_MIN`].
    pub bytes_max: u64,
}

impl Recording {
    /// The least that all files together may have: less could not hold the state of a gate a few
    /// times over.
    pub const BYTES_MIN: u64 = 8 << 20;
}

/// Where clients connect. At least one of the two must be set.
#[derive(Clone, Debug)]
pub struct Listen {
    /// HTTP/1.1 and HTTP/2 with prior knowledge, in clear. Port 0 takes a free one.
    pub plain: Option<SocketAddr>,
    /// HTTP/1.1 and HTTP/2 by ALPN, over TLS.
    pub tls: Option<ListenTls>,
    /// Balancers that begin each connection with a header of the PROXY protocol, which says where
    /// the client is. Without one their connections are refused; nobody else's header is read.
    pub proxy_protocol: Vec<Network>,
    /// Connections the kernel holds ready for us to accept.
    pub backlog: u32,
}

impl Default for Listen {
    fn default() -> Self {
        let everywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8000);
        Listen { plain: Some(everywhere), tls: None, proxy_protocol: Vec::new(), backlog: 4096 }
    }
}

/// A TLS listener.
#[derive(Clone, Debug)]
pub struct ListenTls {
    /// Port 0 takes a free one.
    pub address: SocketAddr,
    /// Certificate chain, PEM, the server's own first.
    pub cert: PathBuf,
    /// Private key, PEM: PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
    /// How often both files are looked at for a change. A pair that cannot be used is reported and
    /// the old one stays.
    pub reload_every: Duration,
}

/// A range of addresses: those whose first `prefix` bits equal those of `address`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Any address of the range.
    pub address: IpAddr,
    /// 0 to 32 for IPv4, 0 to 128 for IPv6.
    pub prefix: u8,
}

impl Network {
    /// Returns whether `address` lies in the range. An IPv4 address mapped into IPv6 counts as the
    /// IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32u32.saturating_sub(u32::from(self.prefix));
                (u32::from(own) ^ u32::from(other)).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128u32.saturating_sub(u32::from(self.prefix));
                (u128::from(own) ^ u128::from(other)).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// How long each phase may take. Those of the upstream side are with the upstream's parameters.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// From a connection's first byte of a request (or its opening) to the end of the head.
    pub header_read: Duration,
    /// From one piece of a request body to the next.
    pub body_read: Duration,
    /// The longest that a client may be waited for in all while it sends one body.
    pub body_total: Duration,
    /// From one piece of a response a client takes to the next; then the client is too slow and its
    /// connection is closed.
    pub body_write: Duration,
    /// How long a connection may be idle between two requests.
    pub keep_alive: Duration,
    /// How long a connection that has switched to another protocol may carry nothing, either way;
    /// at most twice that passes.
    pub tunnel_idle: Duration,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a graceful shutdown waits for what is under way. Longer than the longest wait for
    /// admission.
    pub drain: Duration,
    /// The same for a gateway that another process has taken over from: nobody kills it meanwhile.
    pub drain_taken_over: Duration,
    /// How long a client waits for the application before it is watched for leaving. For a client
    /// that waits to be admitted it is 10 ms at most, since there its leaving is to be noticed
    /// within 20 ms.
    pub disconnect_watch_after: Duration,
    /// Time between two HTTP/2 pings on a connection with open streams, and the longest a pong may
    /// take.
    pub h2_ping: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            header_read: Duration::from_secs(10),
            body_read: Duration::from_secs(30),
            body_total: Duration::from_secs(3600),
            body_write: Duration::from_secs(60),
            keep_alive: Duration::from_secs(75),
            tunnel_idle: Duration::from_secs(3600),
            handshake: Duration::from_secs(10),
            drain: Duration::from_secs(70),
            drain_taken_over: Duration::from_secs(70),
            disconnect_watch_after: Duration::from_millis(50),
            h2_ping: Duration::from_secs(20),
        }
    }
}

/// How much of everything is accepted.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections open at once, all listeners together. With all taken a newcomer displaces the
    /// one worth least, or waits in the kernel's queue.
    pub connections: usize,
    /// Bytes of a request's head. 8 KiB and up; more is answered with 431.
    pub head_bytes: usize,
    /// Header lines of a request; more is answered with 431.
    pub headers: usize,
    /// Bytes of a request's target (path and query); more is answered with 414.
    pub url_bytes: usize,
    /// Bytes of a request body; more is answered with 413. `None`: the application decides.
    pub body_bytes: Option<u64>,
    /// Bytes per second that a client must send of a body, and take of an answer, once it has been
    /// waited for as long as a pause may be. 0: no least rate.
    pub body_rate_min: u64,
    /// The most requests in the application, of all routes, whose clients are waited for in the
    /// middle of their bodies, and as many gRPC calls; beyond it the slowest is broken off.
    pub slow_uploads: usize,
    /// Bytes of a request's body read before it is admitted.
    pub request_buffer_bytes: usize,
    /// Bytes of one response held in memory for a slow client; what follows goes through a file, or
    /// the application has to wait.
    pub response_buffer_bytes: usize,
    /// Bytes of all such responses together, and of all request bodies that are read before their
    /// requests are admitted.
    pub buffered_bytes: usize,
    /// HTTP/2 streams open at once on a connection.
    pub h2_streams: u32,
    /// Application cookies remembered as belonging to a session that was admitted.
    pub session_cookies: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 9_000,
            head_bytes: 64 << 10,
            headers: 100,
            url_bytes: 16 << 10,
            body_bytes: None,
            body_rate_min: 500,
            slow_uploads: 512,
            request_buffer_bytes: 64 << 10,
            response_buffer_bytes: 1 << 20,
            buffered_bytes: 256 << 20,
            h2_streams: 128,
            session_cookies: 200_000,
        }
    }
}

/// Where bodies of slow clients are kept: in files without a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpoolParams {
    /// Where the files are made. `None`: the system's directory for temporary files.
    pub directory: Option<PathBuf>,
    /// Bytes of all of them. 0: none are made. Nor do they ever take more than half of what is free
    /// there.
    pub bytes_max: u64,
    /// Bytes of one body.
    pub body_bytes_max: u64,
}

impl Default for SpoolParams {
    fn default() -> Self {
        SpoolParams { directory: None, bytes_max: 4 << 30, body_bytes_max: 256 << 20 }
    }
}

/// The kinds of session.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// In order; at most 64. Empty: sessions are not gated, only routes are.
    pub kinds: Vec<SessionKind>,
    /// Whether well-known session cookies of applications (`JSESSIONID`, `PHPSESSID`, …) are
    /// recognised without being named.
    pub detect_cookies: bool,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions { kinds: vec![SessionKind::default()], detect_cookies: true }
    }
}

/// A kind of session.
#[derive(Clone, Debug)]
pub struct SessionKind {
    /// Its name in metrics, pages and logs. Unlike any other kind's.
    pub name: String,
    /// Requests that begin one. Empty: any gated request of a visitor who is in no session.
    pub begins: Vec<RoutePattern>,
    /// Requests that, once answered, end one.
    pub ends: Vec<RoutePattern>,
    /// The application's own session cookie, by name.
    pub app_cookie: Option<String>,
    /// What the gate does with them.
    pub gate: KindParams,
}

impl Default for SessionKind {
    fn default() -> Self {
        SessionKind {
            name: "visit".to_owned(),
            begins: Vec::new(),
            ends: Vec::new(),
            app_cookie: None,
            gate: KindParams { line: Some(suimon_line::Params::default()), ..KindParams::default() },
        }
    }
}

/// The cookie that proves a session was admitted.
#[derive(Clone, Debug)]
pub struct LeaseParams {
    /// The file of signing keys, made with mode 0600 if it is not there. `None`: a key that ends
    /// with the process, so that leases do not outlive a restart and are not shared between
    /// gateways.
    pub keys_file: Option<PathBuf>,
    /// How long a lease is good for. Renewed in passing once half of it has gone by.
    pub life: Duration,
    /// Whether clients reach us over TLS that ends in front of us, so that the cookie carries
    /// `Secure` on the plain listener too.
    pub secure: bool,
    /// When visitors without a cookie of the application's get one.
    pub issued: LeaseIssued,
}

impl Default for LeaseParams {
    fn default() -> Self {
        LeaseParams {
            keys_file: None,
            life: Duration::from_secs(3600),
            secure: false,
            issued: LeaseIssued::Needed,
        }
    }
}

/// The waiting room: what those see who have a place in line, and what is kept of the line.
#[derive(Clone, Debug)]
pub struct WaitingRoomParams {
    /// The site's name, as its visitors know it. Empty: the host that was asked for.
    pub name: String,
    /// What stands before the addresses beside the page where it links to them, such as `/shop`.
    /// `None`: nothing.
    pub base_path: Option<String>,
    /// What stands before them where a process works on requests itself, below a path of its own.
    pub mount_path: String,
    /// Path of a picture of this site, which the gate lets pass to everybody.
    pub logo: Option<String>,
    /// Colours of what stands out, on light and on dark ground, as CSS has them.
    pub colours: Option<(String, String)>,
    /// The operator's words to all who wait.
    pub message: String,
    /// File of a page in place of ours: see `docs/waiting-room.md`.
    pub template: Option<PathBuf>,
    /// Whether numbers of people are kept from those who wait, and only times are told.
    pub hides_numbers: bool,
    /// The status of a page of the waiting room.
    pub status: WaitingStatus,
    /// For how long visitors are told that their turn is held, whole minutes. After that they come
    /// in at the head of the line all the same.
    pub hold: Duration,
    /// For how long a place is kept, whole hours.
    pub keep: Duration,
    /// Numbers that one network may draw at once, and a second after that.
    pub tickets_burst: u32,
    /// See `tickets_burst`. Above 0.
    pub tickets_per_second: f64,
    /// Numbers that one network may draw for an opening, until it is.
    pub tickets_for_opening: u32,
    /// Networks of search engines: their visitors come in by a slow lane of their own, however long
    /// the line is.
    pub crawlers: Vec<Network>,
    /// Where the application says who may draw a number. `None`: anybody may.
    pub pass: Option<PassPage>,
    /// The file that the line survives a restart in. `None`: it does not.
    pub state_file: Option<PathBuf>,
}

/// A page of the application's where visitors get a pass, with which a number may be drawn: a
/// challenge, or a log-in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassPage {
    /// Its path, or everything below it if it ends in `/`. It passes the gate.
    pub page: String,
    /// Who is asked for one.
    pub needed_by: PassFor,
}

impl WaitingRoomParams {
    /// Returns what stands before the addresses beside the page where it links to them.
    pub fn base(&self) -> &str {
        self.base_path.as_deref().unwrap_or_default()
    }
}

impl Default for WaitingRoomParams {
    fn default() -> Self {
        WaitingRoomParams {
            name: String::new(),
            base_path: None,
            mount_path: String::new(),
            logo: None,
            colours: None,
            message: String::new(),
            template: None,
            hides_numbers: false,
            status: WaitingStatus::Unavailable,
            hold: Duration::from_secs(600),
            keep: Duration::from_secs(24 * 3600),
            tickets_burst: 200,
            tickets_per_second: 10.0,
            tickets_for_opening: 10_000,
            crawlers: Vec::new(),
            pass: None,
            state_file: None,
        }
    }
}

suimon_model::choices! {
    /// The status of a page of the waiting room.
    #[derive(Eq)]
    pub enum WaitingStatus {
        /// 503: search engines come again later, and nothing is stored.
        Unavailable = 0, "503", "right where visitors reach Suimon directly";
        /// 429: for where a content delivery network stands in front, which may answer a 503 with a
        /// page of its own.
        TooManyRequests = 1, "429", "behind a content delivery network that answers a 503 with a page of its own";
        /// 200, for whatever cannot do with the others.
        Ok = 2, "200", "only for clients that cannot handle the others, as search engines may take the page for yours";
    }
}

suimon_model::choices! {
    /// What becomes of the work of a client that has gone while the application was at it.
    #[derive(Eq)]
    pub enum OnClientDisconnect {
        /// The answer is read to its end for nobody and its slot is kept: the application works on
        /// regardless.
        Finish = 0, "finish", "the application works on regardless, so the answer is read to its end and the slot kept";
        /// The connection to the application is closed and the slot given back: for applications
        /// that stop then.
        Cancel = 1, "cancel", "for applications that stop when the connection closes";
    }
}

suimon_model::choices! {
    /// When visitors get a lease.
    #[derive(Eq)]
    pub enum LeaseIssued {
        /// Under pressure, or once newcomers come at half of the pace at which they could be
        /// admitted.
        Needed = 0, "needed", "under pressure, and where the application has no session cookie of its own, once newcomers arrive at half of the rate at which they could be admitted, or several at once at a gateway that has just started; visitors served before are known by connection, address and browser for ten minutes";
        /// With their first answer, however little there is to do.
        Always = 1, "always", "where the application has none, with the first answer that caches may not keep for all; set this if visitors without any cookie share address and browser and a rush comes at once";
    }
}

suimon_model::choices! {
    /// Who needs a pass to draw a number.
    #[derive(Eq)]
    pub enum PassFor {
        /// Newcomers from a network that has drawn many.
        OverQuota = 0, "over_quota", "newcomers from a network that has drawn tickets_burst numbers, instead of being told to come a little later";
        /// Everybody, while others wait.
        Everybody = 1, "everybody", "every newcomer who would draw a number while others wait";
    }
}
