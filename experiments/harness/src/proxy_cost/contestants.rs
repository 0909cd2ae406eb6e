//! The proxies that are compared, all configured for the same work.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::common::Common;
use crate::gateways::{Gateway, HAPROXY, find, start_configured, start_haproxy, start_nginx, start_suimon};
use crate::trouble::{Result, While};

/// A proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Contestant {
    Nginx,
    Haproxy,
    /// Without configuration.
    Suimon,
    /// With both gates off.
    SuimonUngated,
    /// Without configuration but for the addresses of two nodes.
    SuimonNodes,
    /// Another build of it, without configuration.
    Baseline,
    /// That build with both gates off.
    BaselineUngated,
    /// That build with two nodes.
    BaselineNodes,
}

impl Contestant {
    /// The proxies that always run.
    pub(super) const USUAL: [Contestant; 5] = [
        Contestant::Nginx,
        Contestant::Haproxy,
        Contestant::Suimon,
        Contestant::SuimonUngated,
        Contestant::SuimonNodes,
    ];
    /// The proxies that also run if another build is named.
    pub(super) const OF_BASELINE: [Contestant; 3] =
        [Contestant::Baseline, Contestant::BaselineUngated, Contestant::BaselineNodes];

    /// Returns the same proxy of the other build.
    pub(super) const fn before(self) -> Option<Contestant> {
        match self {
            Contestant::Suimon => Some(Contestant::Baseline),
            Contestant::SuimonUngated => Some(Contestant::BaselineUngated),
            Contestant::SuimonNodes => Some(Contestant::BaselineNodes),
            _ => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Contestant::Nginx => "nginx",
            Contestant::Haproxy => "haproxy",
            Contestant::Suimon => "suimon",
            Contestant::SuimonUngated => "suimon, ungated",
            Contestant::SuimonNodes => "suimon, two nodes",
            Contestant::Baseline => "baseline",
            Contestant::BaselineUngated => "baseline, ungated",
            Contestant::BaselineNodes => "baseline, two nodes",
        }
    }

    /// Starts it in front of the backend, or of both, on the application's core. `common` names the program
    /// of its build.
    pub(super) fn start(self, common: &Common, backends: [SocketAddr; 2]) -> Result<Gateway> {
        let [backend, _] = backends;
        let folder = common.scratch.join(self.name().replace(", ", "-"));
        fs::create_dir_all(&folder).trouble(folder.display())?;
        let core = common.app_core;
        match self {
            Contestant::Haproxy => start_haproxy(&folder, core, |listen| haproxy(listen, backend)),
            Contestant::Suimon | Contestant::Baseline => start_suimon(common, &folder, backend, None, core),
            Contestant::SuimonUngated | Contestant::BaselineUngated => {
                start_suimon(common, &folder, backend, Some(UNGATED), core)
            }
            Contestant::SuimonNodes | Contestant::BaselineNodes => {
                let nodes = backends.map(|backend| format!("http://{backend}"));
                let settings = format!("[upstream]\nnodes = {nodes:?}\n");
                start_configured(common, &folder, &settings, &[core], None, None)
            }
            Contestant::Nginx => start_nginx(&folder, core, |listen| nginx(listen, backend)),
        }
    }
}

/// Returns the versions of the other proxies, as they report them.
pub(super) fn versions() -> Vec<String> {
    let said = |name: &str| {
        let output = Command::new(find(name).ok()?).arg("-v").output().ok()?;
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let number = text.split(|c: char| c.is_whitespace() || c == '/' || c == '-');
        let number =
            number.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).find(|w| w.contains('.'))?;
        Some(format!("{name} {number}"))
    };
    ["nginx", "haproxy"].into_iter().filter_map(said).collect()
}

const UNGATED: &str = "[gate]\nsession_law = \"open\"\n\n[discovery]\nmode = \"off\"\n";

fn haproxy(listen: SocketAddr, backend: SocketAddr) -> String {
    format!(
        "{HAPROXY}    timeout server 60s
    option forwardfor

frontend visitors
    bind {listen}
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    default_backend shop

backend shop
    http-reuse always
    server shop {backend}
"
    )
}

fn nginx(listen: SocketAddr, backend: SocketAddr) -> String {
    format!(
        "    keepalive_requests 1000000;
    upstream shop {{ server {backend}; keepalive 1024; keepalive_requests 1000000; }}
    server {{
        listen {listen};
        location / {{
            proxy_pass http://shop;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $http_host;
        }}
    }}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_without_gates_are_ones_suimon_understands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        fs::write(&path, UNGATED).unwrap();
        suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    }
}
