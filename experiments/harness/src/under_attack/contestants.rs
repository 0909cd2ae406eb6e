//! The gateways in front of the shop: Suimon without settings, and nginx and HAProxy with the
//! protections that their manuals advise.

use std::net::SocketAddr;
use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::common::Common;
use crate::gateways::{Gateway, start_haproxy, start_nginx, start_suimon};
use crate::trouble::Result;

/// Connections and requests per second of one address, where these have a limit. The honest crowd
/// comes from one address, which is exempt: real visitors have addresses of their own.
const CONNECTIONS_EACH: u32 = 10;
const REQUESTS_EACH_PER_S: u32 = 10;
/// Concurrent requests at the shop: a good value for it, found by `sessions-under-overload`.
const MAXCONN: u32 = 8;

/// A gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Contestant {
    Suimon,
    Nginx,
    Haproxy,
}

impl Contestant {
    pub(super) fn name(self) -> &'static str {
        match self {
            Contestant::Suimon => "Suimon",
            Contestant::Nginx => "nginx",
            Contestant::Haproxy => "HAProxy",
        }
    }

    /// Starts it in front of the application at `app`; `folder` takes its files.
    pub(super) fn start(self, common: &Common, folder: &Path, app: SocketAddr) -> Result<Gateway> {
        match self {
            Contestant::Suimon => start_suimon(common, folder, app, None, common.load_core),
            Contestant::Haproxy => start_haproxy(folder, common.load_core, |listen| haproxy(listen, app)),
            Contestant::Nginx => start_nginx(folder, common.load_core, |listen| nginx(listen, app)),
        }
    }
}

/// Short timeouts, whole requests before the shop sees them, and limits per address.
fn nginx(listen: SocketAddr, app: SocketAddr) -> String {
    format!(
        "    geo $stranger {{ default $binary_remote_addr; 127.0.0.1 \"\"; }}
    limit_conn_zone $stranger zone=connections:10m;
    limit_req_zone $stranger zone=requests:10m rate={REQUESTS_EACH_PER_S}r/s;
    client_header_timeout 10s;
    client_body_timeout 10s;
    send_timeout 10s;
    keepalive_timeout 75s;
    reset_timedout_connection on;
    upstream shop {{ server {app} max_conns={MAXCONN}; keepalive 64; }}
    server {{
        listen {listen} backlog=4096;
        limit_conn connections {CONNECTIONS_EACH};
        limit_req zone=requests burst=20 nodelay;
        location / {{
            proxy_pass http://shop;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
"
    )
}

/// The same for HAProxy, with its queue in front of the shop.
fn haproxy(listen: SocketAddr, app: SocketAddr) -> String {
    let requests_in_10_s = REQUESTS_EACH_PER_S * 10;
    format!(
        "global
    maxconn 9000
    nbthread 1

defaults
    mode http
    timeout connect 3s
    timeout client 30s
    timeout server 60s
    timeout queue 15s
    timeout http-request 10s
    timeout http-keep-alive 75s
    option http-buffer-request
    option abortonclose
    option forwardfor

frontend visitors
    bind {listen}
    stick-table type ip size 100k expire 60s store conn_cur,http_req_rate(10s)
    acl honest src 127.0.0.1
    tcp-request connection track-sc0 src unless honest
    tcp-request connection reject if !honest {{ sc0_conn_cur gt {CONNECTIONS_EACH} }}
    http-request deny deny_status 429 if !honest {{ sc0_http_req_rate gt {requests_in_10_s} }}
    default_backend shop

backend shop
    http-reuse always
    server shop {app} maxconn {MAXCONN}
"
    )
}
