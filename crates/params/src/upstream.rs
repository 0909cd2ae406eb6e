//! What the upstream side is told before it starts: plain values, each with a default that runs.

use crate::pool::{PoolParams, SizeParams};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
pub use suimon_fastcgi::script::Mapping;
pub use suimon_fleet::{Balance, EjectionParams};

/// The most nodes one upstream may have.
pub const NODES_MAX: usize = suimon_fleet::NODES_MAX;

/// Everything the upstream side is told before it starts. The default has no nodes and is of use
/// only once it has one.
#[derive(Clone, PartialEq, Debug)]
pub struct UpstreamParams {
    /// The application servers; at least one, unless it grows, at most [`NODES_MAX`].
    pub nodes: Vec<NodeParams>,
    /// Whether nodes come and go while it runs.
    pub grows: bool,
    /// The longest that opening a connection may take: name lookup, TCP and TLS together.
    pub connect_timeout: Duration,
    /// The longest wait for the head of a response, from the last piece of the request that was
    /// sent.
    pub first_byte_timeout: Duration,
    /// The longest wait for the next piece of a response body.
    pub idle_timeout: Duration,
    /// The most unused connections kept open to one node.
    pub pool_idle_max: usize,
    /// How long an unused connection is kept; less where the node's `Keep-Alive` header says so.
    /// Set it shorter than the application's own keep-alive (Tomcat: 60 s).
    pub pool_idle_age: Duration,
    /// The most connections to one HTTP/2 node; at least 1.
    pub h2_connections_max: usize,
    /// The most requests at once on one HTTP/2 connection, if the node does not allow fewer; at
    /// least 1.
    pub h2_streams_max: usize,
    /// The largest response head that is accepted, in bytes.
    pub max_head_bytes: usize,
    /// Active health checks.
    pub health: HealthParams,
    /// When a node that fails requests is left out for a while.
    pub ejection: EjectionParams,
    /// How a node is chosen among several.
    pub balance: Balance,
    /// How sessions of the application stay at their nodes; `None`: any node will do.
    pub affinity: Option<AffinityParams>,
    /// Where the load that nodes report is taken from.
    pub load_reports: LoadReportParams,
    /// How `https` nodes are believed to be who they say they are.
    pub tls: TlsParams,
    /// Which programs `fastcgi` nodes run; needed if there is such a node.
    pub fastcgi: Option<FastCgiParams>,
    /// The workers behind the node at [`NodeAddress::Workers`]; needed if there is such a node.
    pub workers: Option<WorkersNodeParams>,
    /// For how long a node that has come, or come back, has less than its share of requests. Zero: it has
    /// all of it at once.
    pub slow_start: Duration,
    /// The share of requests that may be sent again although a node may have worked on them, 0 to 1;
    /// 0: none.
    pub retry_share: f64,
    /// Seed of the random choices: which of two nodes, and the jitter of the checks.
    pub seed: u64,
}

impl Default for UpstreamParams {
    fn default() -> Self {
        UpstreamParams {
            nodes: Vec::new(),
            grows: false,
            connect_timeout: Duration::from_secs(3),
            first_byte_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            pool_idle_max: 1024,
            pool_idle_age: Duration::from_secs(50),
            h2_connections_max: 4,
            h2_streams_max: 100,
            max_head_bytes: 64 * 1024,
            health: HealthParams::default(),
            ejection: EjectionParams::default(),
            balance: Balance::default(),
            affinity: None,
            load_reports: LoadReportParams::default(),
            tls: TlsParams::default(),
            fastcgi: None,
            workers: None,
            slow_start: suimon_fleet::Params::SLOW_START,
            retry_share: suimon_fleet::Params::RETRY_SHARE,
            seed: 1,
        }
    }
}

/// One application server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeParams {
    /// Whether the connection is encrypted.
    pub scheme: Scheme,
    /// Where it listens.
    pub address: NodeAddress,
    /// What is spoken over the connection.
    pub protocol: Protocol,
}

/// Where a node listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeAddress {
    /// A TCP port.
    Tcp {
        /// Name or address; an IPv6 address without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A TCP port of one of the addresses of a name.
    Found {
        /// The name.
        name: Arc<str>,
        /// Address and port.
        address: SocketAddr,
    },
    /// A Unix socket of this machine, by its absolute path.
    Unix(PathBuf),
    /// Wherever the workers of this pool do.
    Workers(Arc<str>),
}

/// The longest path of a Unix socket, in bytes: what the kernel has room for.
pub const SOCKET_PATH_MAX: usize = 107;

/// Whether connections to a node are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// `http://`: plain TCP.
    Http,
    /// `https://`: TLS over TCP.
    Https,
    /// `fastcgi:`: FastCGI over plain TCP or a Unix socket.
    FastCgi,
}

suimon_model::choices! {
    /// What is spoken over a connection to a node.
    #[derive(Eq)]
    pub enum Protocol {
        /// HTTP/1.1, one request at a time on a connection.
        Http1 = 0, "http1", "HTTP/1.1";
        /// HTTP/2, many requests on a connection: over `http` by prior knowledge (h2c), over
        /// `https` by ALPN (h2).
        Http2 = 1, "http2", "HTTP/2; without TLS by prior knowledge (h2c)";
    }
}

/// Active health checks of every node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HealthParams {
    /// Path of a `GET` that a healthy node answers with 200 to 399; `None`: opening a TCP
    /// connection is enough.
    pub path: Option<String>,
    /// Time from one check of a node to the next, give or take a tenth; zero: no checks.
    pub interval: Duration,
    /// The longest one check may take.
    pub timeout: Duration,
    /// Failed checks in a row after which a node is taken out; at least 1.
    pub down_after: u32,
    /// Passed checks in a row after which it is taken back in; at least 1.
    pub up_after: u32,
}

impl Default for HealthParams {
    fn default() -> Self {
        HealthParams {
            path: None,
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(2),
            down_after: 3,
            up_after: 2,
        }
    }
}

/// How sessions of the application stay at their nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AffinityParams {
    /// The name of the application's session cookie. A node that sets it gets the requests that come with
    /// its value.
    pub cookie: String,
    /// A session that is silent for this long is forgotten.
    pub idle: Duration,
}

/// Where the load that nodes report is taken from. The default: from nowhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadReportParams {
    /// The UDP address that `suimon agent` sends to; `None`: none.
    pub listen: Option<SocketAddr>,
    /// The file of keys that these reports are sealed with; needed with `listen`.
    pub keys_file: Option<PathBuf>,
    /// How far the clocks of gateway and nodes may be apart when an agent is heard for the first time.
    pub clock_skew_max: Duration,
    /// Whether load reports in headers of responses (ORCA) are read, and taken out.
    pub orca: bool,
    /// The TCP port of each node at which it is asked for its load, as HAProxy's `agent-check` does;
    /// `None`: none is asked. Not with `orca`: a node's load has one source.
    pub agent_check: Option<u16>,
}

impl Default for LoadReportParams {
    fn default() -> Self {
        LoadReportParams {
            listen: None,
            keys_file: None,
            clock_skew_max: Duration::from_secs(10),
            orca: false,
            agent_check: None,
        }
    }
}

/// Which programs `fastcgi` nodes run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FastCgiParams {
    /// How paths lead to programs.
    pub mapping: Mapping,
    /// Whether a program is run only if its file exists on this machine: a path without one costs no
    /// worker.
    pub checks_files: bool,
    /// The path at which php-fpm says how many children it has; `None`: it is not asked.
    pub status: Option<String>,
}

/// Workers that the gateway starts, as a node.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkersNodeParams {
    /// The pool.
    pub pool: PoolParams,
    /// How many workers it has.
    pub size: SizeParams,
    /// The path at which a worker that speaks HTTP answers with success once it is ready; `None`: any
    /// answer at `/` will do. Workers that speak FastCGI are asked without running a program.
    pub ready_path: Option<String>,
}

impl NodeParams {
    /// Returns the node that the workers of the pool of this name are. `runs_programs`: their requests
    /// are for programs, as those of FastCGI are; else for HTTP/1.1.
    pub fn of_workers(name: Arc<str>, runs_programs: bool) -> Self {
        let scheme = if runs_programs { Scheme::FastCgi } else { Scheme::Http };
        NodeParams { scheme, address: NodeAddress::Workers(name), protocol: Protocol::Http1 }
    }
}

/// How `https` nodes are believed to be who they say they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsParams {
    /// PEM file of the certificate authorities to trust; `None`: those the web trusts.
    pub ca_file: Option<PathBuf>,
    /// Name the nodes' certificates are for, where it is not the host they are reached at.
    pub server_name: Option<String>,
    /// Whether certificates are looked at. `false` accepts any certificate: anybody on the way can
    /// read and change all.
    pub verify: bool,
}

impl Default for TlsParams {
    fn default() -> Self {
        TlsParams { ca_file: None, server_name: None, verify: true }
    }
}

/// What a node behind a Unix socket is called in `Host`, where a request names none.
const LOCAL_HOST: &str = "localhost";

impl NodeParams {
    /// Returns the node at `url`: `http://host[:port]` or `https://host[:port]`, nothing behind it but
    /// at most one slash, or `unix:/path/of/a.sock`, spoken to in HTTP/1.1; `fastcgi://host:port` or
    /// `fastcgi:/path/of/a.sock`, spoken to in FastCGI.
    ///
    /// # Errors
    /// A sentence naming what is wrong with the URL and what is allowed.
    pub fn parse(url: &str) -> Result<NodeParams, String> {
        let wrong = |what: &str| {
            Err(format!(
                "{url:?}: {what}; a node is http://host:port, https://host:port, unix:/path/of/a.sock, \
                 fastcgi://host:port or fastcgi:/path/of/a.sock"
            ))
        };
        let socket = match (url.strip_prefix("unix:"), url.strip_prefix("fastcgi:")) {
            (Some(path), _) => Some((Scheme::Http, path.strip_prefix("//").unwrap_or(path))),
            (_, Some(path)) if path.starts_with("///") => Some((Scheme::FastCgi, &path[2..])),
            (_, Some(path)) if !path.starts_with("//") => Some((Scheme::FastCgi, path)),
            _ => None,
        };
        if let Some((scheme, path)) = socket {
            if !path.starts_with('/') {
                return wrong("the path of a Unix socket begins with /");
            }
            if path.len() > SOCKET_PATH_MAX {
                return wrong("the path of a Unix socket has at most 107 bytes");
            }
            if path.ends_with('/') || path.contains('\0') {
                return wrong("that is no path of a Unix socket");
            }
            return Ok(NodeParams {
                scheme,
                address: NodeAddress::Unix(PathBuf::from(path)),
                protocol: Protocol::default(),
            });
        }
        let (scheme, rest) = match url.split_once("://") {
            Some((s, rest)) if s.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((s, rest)) if s.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((s, rest)) if s.eq_ignore_ascii_case("fastcgi") => (Scheme::FastCgi, rest),
            Some(_) => return wrong("unknown scheme"),
            None => return wrong("no scheme"),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return wrong("has a path, which a node cannot have");
        }
        if authority.contains('@') {
            return wrong("has a user name, which is not supported");
        }
        let Ok(parsed) = http::uri::Authority::from_str(authority) else {
            return wrong("host or port cannot be read");
        };
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return wrong("has no host");
        }
        let port = match (parsed.port_u16(), authority.rsplit_once(':')) {
            (Some(0), _) => return wrong("port 0 cannot be connected to"),
            (Some(port), _) => port,
            // A colon outside of an address's brackets promised a port.
            (None, Some((_, port))) if !port.ends_with(']') => return wrong("port is not 1 to 65535"),
            (None, _) if scheme == Scheme::Https => 443,
            (None, _) if scheme == Scheme::FastCgi => return wrong("has no port"),
            (None, _) => 80,
        };
        let address = NodeAddress::Tcp { host: host.to_owned(), port };
        Ok(NodeParams { scheme, address, protocol: Protocol::default() })
    }

    /// Returns the node's `host:port` as it stands in a URL or a `Host` header. A Unix socket has
    /// none, and is this machine.
    pub fn authority(&self) -> String {
        match &self.address {
            NodeAddress::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            NodeAddress::Tcp { host, port } => format!("{host}:{port}"),
            NodeAddress::Found { name, address } => format!("{name}:{}", address.port()),
            NodeAddress::Unix(_) | NodeAddress::Workers(_) => LOCAL_HOST.to_owned(),
        }
    }

    /// Returns the name that its certificate is for, unless another is given.
    pub fn host(&self) -> &str {
        match &self.address {
            NodeAddress::Tcp { host, .. } => host,
            NodeAddress::Found { name, .. } => name,
            NodeAddress::Unix(_) | NodeAddress::Workers(_) => LOCAL_HOST,
        }
    }
}

impl FromStr for NodeParams {
    type Err = String;
    fn from_str(url: &str) -> Result<Self, String> {
        NodeParams::parse(url)
    }
}

impl fmt::Display for NodeParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            NodeAddress::Tcp { .. } => write!(f, "{}://{}", self.scheme.name(), self.authority()),
            NodeAddress::Found { address, .. } => write!(f, "{}://{address}", self.scheme.name()),
            NodeAddress::Unix(path) if self.scheme == Scheme::FastCgi => {
                write!(f, "fastcgi:{}", path.display())
            }
            NodeAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            NodeAddress::Workers(name) => write!(f, "pool:{name}"),
        }
    }
}

impl Scheme {
    /// Returns the scheme as it stands in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::FastCgi => "fastcgi",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_from_its_url_and_written_back() {
        for (url, back) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("HTTPS://shop.example", "https://shop.example:443"),
            ("http://shop.example/", "http://shop.example:80"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("https://[::1]", "https://[::1]:443"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("unix:///run/app.sock", "unix:/run/app.sock"),
            ("fastcgi://127.0.0.1:9000", "fastcgi://127.0.0.1:9000"),
            ("fastcgi:/run/php/php-fpm.sock", "fastcgi:/run/php/php-fpm.sock"),
            ("fastcgi:///run/php/php-fpm.sock", "fastcgi:/run/php/php-fpm.sock"),
        ] {
            assert_eq!(NodeParams::parse(url).unwrap().to_string(), back);
        }
    }

    #[test]
    fn what_is_no_node_is_refused_with_the_remedy() {
        for url in [
            "",
            "127.0.0.1:8080",
            "ftp://h:1",
            "http://",
            "http://:80",
            "http://h:0",
            "http://h:70000",
            "http://h:x",
            "http://h/path",
            "http://h?q",
            "http://u@h",
            "http://a b:1",
            "unix:app.sock",
            "unix://app.sock",
            "unix:",
            "unix:/run/",
            "unix:@abstract",
            "fastcgi:php-fpm.sock",
            "fastcgi://127.0.0.1",
            "fastcgi:",
            &format!("unix:/{}", "x".repeat(107)),
            "/run/app.sock",
        ] {
            let error = NodeParams::parse(url).expect_err(url);
            assert!(error.contains("http://host:port"), "{error}");
        }
    }
}
