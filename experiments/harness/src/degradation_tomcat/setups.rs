//! What is in front of the application: nothing, fixed pauses, Suimon under a wish, or what people
//! use today, tuned by hand.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use suimon_process::{Program, free_address};

use super::{HEAVY, LIGHT};
use crate::common::Common;
use crate::gateways::{Gateway, HAPROXY, START_PATIENCE, Served, find, start_haproxy, start_nginx};
use crate::trouble::{Result, While};

/// Name of the file for what Suimon learns.
pub(crate) const LEARNED: &str = "learned.json";

/// A setup; numbers in it are those that somebody had to find by hand, or the wish.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Setup {
    /// Nothing.
    Uncontrolled,
    /// So many seconds of pause in each heavy job: half before it and half after it.
    Around(f64),
    /// The same in pieces, inside the job.
    Inside(f64),
    /// Suimon without settings: limits, no services.
    Limits,
    /// Suimon with a fixed pause of so many seconds for the heavy service.
    Pause(f64),
    /// Suimon, the heavy one slowed so many times as much as the light one.
    Ratio(f64),
    /// Suimon, so much of the work kept for the light one.
    Floor(f64),
    /// HAProxy, so many requests of the light and of the heavy service at once.
    HaproxySplit(u32, u32),
    /// HAProxy, so many requests at once, light ones first.
    HaproxyPriority(u32),
    /// nginx, so many heavy requests at once, the others refused.
    NginxLimit(u32),
    /// Envoy, its admission control as it comes.
    Envoy,
}

impl Setup {
    /// All that are measured, in the order of the table.
    pub(super) const ALL: [Setup; 17] = [
        Setup::Uncontrolled,
        Setup::Around(4.0),
        Setup::Inside(4.0),
        Setup::Limits,
        Setup::Pause(2.0),
        Setup::Ratio(0.5),
        Setup::Ratio(1.0),
        Setup::Ratio(2.0),
        Setup::Ratio(4.0),
        Setup::Floor(0.5),
        Setup::Floor(0.8),
        Setup::HaproxySplit(30, 1),
        Setup::HaproxySplit(4, 1),
        Setup::HaproxySplit(2, 2),
        Setup::HaproxyPriority(4),
        Setup::NginxLimit(1),
        Setup::Envoy,
    ];

    /// Those whose efforts are compared: without a wish, and under each.
    pub(super) fn of_efforts() -> Vec<Setup> {
        let belongs = |setup: &Setup| setup.is_without_wish() || setup.is_wish();
        Setup::ALL.into_iter().filter(belongs).collect()
    }

    /// Returns whether it is what efforts under a wish are compared with.
    pub(super) const fn is_without_wish(self) -> bool {
        matches!(self, Setup::Uncontrolled | Setup::Limits)
    }

    /// Returns whether it is Suimon under a wish.
    pub(super) const fn is_wish(self) -> bool {
        matches!(self, Setup::Ratio(_) | Setup::Floor(_))
    }

    pub(super) fn words(self) -> String {
        match self {
            Setup::Uncontrolled => "nothing".into(),
            Setup::Around(pause) => format!("job pauses {pause} s around its work"),
            Setup::Inside(pause) => format!("job pauses {pause} s inside its work"),
            Setup::Limits => "Suimon without settings".into(),
            Setup::Pause(pause) => format!("Suimon, pause = \"{pause}s\""),
            Setup::Ratio(ratio) => format!("Suimon, slowdown = {ratio}"),
            Setup::Floor(floor) => format!("Suimon, floor = \"{:.0} %\"", 100.0 * floor),
            Setup::HaproxySplit(light, heavy) => format!("HAProxy, maxconn {light} and {heavy}"),
            Setup::HaproxyPriority(most) => format!("HAProxy, maxconn {most}, light ones first"),
            Setup::NginxLimit(heavy) => format!("nginx, limit_conn {heavy}"),
            Setup::Envoy => "Envoy, admission control".into(),
        }
    }

    /// How many numbers somebody has to find by hand.
    pub(super) const fn numbers(self) -> u32 {
        match self {
            Setup::Uncontrolled | Setup::Limits | Setup::Ratio(_) | Setup::Floor(_) | Setup::Envoy => 0,
            Setup::Around(_)
            | Setup::Inside(_)
            | Setup::Pause(_)
            | Setup::HaproxyPriority(_)
            | Setup::NginxLimit(_) => 1,
            Setup::HaproxySplit(..) => 2,
        }
    }

    /// The path of the heavy job.
    pub(super) fn heavy(self) -> String {
        match self {
            Setup::Around(pause) => format!("{HEAVY}?pause={pause}s&where=around"),
            Setup::Inside(pause) => format!("{HEAVY}?pause={pause}s&where=inside"),
            _ => HEAVY.into(),
        }
    }

    /// Suimon's settings, if it is Suimon.
    pub(super) fn settings(self) -> Option<String> {
        let services = |light: &str, heavy: &str, mode: &str| {
            format!(
                "[gate]\nsession_law = \"open\"\n\n[[service]]\nname = \"light\"\nroutes = [\"GET {LIGHT}\"]\n{light}\n\
                 [[service]]\nname = \"heavy\"\nroutes = [\"GET {HEAVY}\"]\n{heavy}\n[degradation]\nmode = \"{mode}\"\n"
            )
        };
        match self {
            Setup::Limits => Some("[gate]\nsession_law = \"open\"\n".into()),
            Setup::Pause(pause) => Some(services("", &format!("pause = \"{pause}s\"\n"), "off")),
            Setup::Ratio(ratio) => Some(services("", &format!("slowdown = {ratio:?}\n"), "slowdown")),
            Setup::Floor(floor) => {
                Some(services(&format!("floor = \"{:.0} %\"\n", 100.0 * floor), "", "bands"))
            }
            _ => None,
        }
    }

    /// Starts it in front of the application at `app`; `None`: it is not installed. `learned`: a file
    /// of what Suimon has learned before.
    pub(super) fn start(
        self,
        common: &Common,
        folder: &Path,
        app: SocketAddr,
        learned: Option<&Path>,
    ) -> Result<Option<Gateway>> {
        let core = common.load_core;
        match self {
            Setup::Uncontrolled | Setup::Around(_) | Setup::Inside(_) => {
                Ok(Some(Gateway { process: None, address: app, admin: None }))
            }
            Setup::Limits | Setup::Pause(_) | Setup::Ratio(_) | Setup::Floor(_) => {
                if let Some(learned) = learned {
                    fs::copy(learned, folder.join(LEARNED)).trouble(learned.display())?;
                }
                let (to, listen, admin) = (format!("http://{app}"), free_address()?, free_address()?);
                Served { to: &to, listen, admin, learned: LEARNED, keys: "none" }
                    .start(common, folder, self.settings().as_deref(), core)
                    .map(Some)
            }
            Setup::HaproxySplit(light, heavy) => {
                start_haproxy(folder, core, |listen| split(listen, app, light, heavy)).map(Some)
            }
            Setup::HaproxyPriority(most) => {
                start_haproxy(folder, core, |listen| priority(listen, app, most)).map(Some)
            }
            Setup::NginxLimit(heavy) => {
                start_nginx(folder, core, |listen| nginx(listen, app, heavy)).map(Some)
            }
            Setup::Envoy => start_envoy(folder, core, app),
        }
    }
}

/// Behind [`HAPROXY`].
const DEFAULTS: &str = "    timeout server 120s
    timeout queue 120s
    http-reuse always
";

fn split(listen: SocketAddr, app: SocketAddr, light: u32, heavy: u32) -> String {
    format!(
        "{HAPROXY}{DEFAULTS}
frontend visitors
    bind {listen}
    use_backend heavy if {{ path {HEAVY} }}
    default_backend light

backend light
    server shop {app} maxconn {light}

backend heavy
    server shop {app} maxconn {heavy}
"
    )
}

fn priority(listen: SocketAddr, app: SocketAddr, most: u32) -> String {
    format!(
        "{HAPROXY}{DEFAULTS}
frontend visitors
    bind {listen}
    http-request set-priority-class int(-10) if {{ path {LIGHT} }}
    http-request set-priority-class int(10) if {{ path {HEAVY} }}
    default_backend shop

backend shop
    server shop {app} maxconn {most}
"
    )
}

fn nginx(listen: SocketAddr, app: SocketAddr, heavy: u32) -> String {
    let to = "proxy_pass http://shop; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_read_timeout 120s;";
    format!(
        "    keepalive_requests 1000000;
    limit_conn_zone $server_name zone=heavy:1m;
    upstream shop {{ server {app}; keepalive 64; keepalive_requests 1000000; }}
    server {{
        listen {listen};
        location / {{ {to} }}
        location = {HEAVY} {{ limit_conn heavy {heavy}; {to} }}
    }}
"
    )
}

fn start_envoy(folder: &Path, core: usize, app: SocketAddr) -> Result<Option<Gateway>> {
    let Ok(program) = find("envoy") else { return Ok(None) };
    let listen = free_address()?;
    let path = folder.join("envoy.yaml");
    fs::write(&path, envoy(listen, app)).trouble(path.display())?;
    let mut process = Program::new("envoy", program)
        .cores(&[core])
        .arg("-c")
        .arg(path.display())
        .args(["--concurrency", "1", "--disable-hot-restart", "-l", "warning"])
        .start(folder)?;
    process.wait_for_listener(listen, START_PATIENCE)?;
    Ok(Some(Gateway { process: Some(process), address: listen, admin: None }))
}

/// Its admission control with the defaults of its documentation: it refuses as the share of
/// failures grows.
fn envoy(listen: SocketAddr, app: SocketAddr) -> String {
    format!(
        r#"static_resources:
  listeners:
  - address: {{ socket_address: {{ address: {host}, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: shop
          route_config:
            virtual_hosts:
            - name: shop
              domains: ["*"]
              routes:
              - match: {{ prefix: "/" }}
                route: {{ cluster: shop, timeout: 120s }}
          http_filters:
          - name: envoy.filters.http.admission_control
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.admission_control.v3.AdmissionControl
              enabled: {{ default_value: true, runtime_key: admission_control.enabled }}
              sampling_window: 30s
              success_criteria:
                http_criteria:
                  http_success_status:
                  - {{ start: 200, end: 400 }}
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: shop
    connect_timeout: 3s
    circuit_breakers: {{ thresholds: [{{ max_connections: 9000, max_pending_requests: 9000, max_requests: 9000 }}] }}
    load_assignment:
      cluster_name: shop
      endpoints:
      - lb_endpoints:
        - endpoint: {{ address: {{ socket_address: {{ address: {app_host}, port_value: {app_port} }} }} }}
"#,
        host = listen.ip(),
        port = listen.port(),
        app_host = app.ip(),
        app_port = app.port(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_settings_file_is_one_suimon_understands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        for text in Setup::ALL.iter().filter_map(|setup| setup.settings()) {
            fs::write(&path, &text).unwrap();
            suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        }
    }
}
