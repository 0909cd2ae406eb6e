//! What the gateway listens for.

use std::net::SocketAddr;
use suimon_settings::Settings;

/// What a socket is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Visitors, in clear.
    Http,
    /// Visitors, over TLS.
    Tls,
    /// Operators.
    Admin,
    /// Datagrams with the load of nodes.
    LoadReports,
}

/// Their names, as in `FileDescriptorName=`, and the settings that they stand for.
pub(super) const ROLES: [(Role, &str, &str); 4] = [
    (Role::Http, "http", "listen.http"),
    (Role::Tls, "tls", "listen.tls"),
    (Role::Admin, "admin", "admin.listen"),
    (Role::LoadReports, "load-reports", "upstream.load_reports.listen"),
];

impl Role {
    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        ROLES.iter().find(|(role, ..)| *role == self).map_or("", |(_, name, _)| name)
    }

    /// Returns the setting that it stands for.
    pub(super) fn setting(self) -> &'static str {
        ROLES.iter().find(|(role, ..)| *role == self).map_or("", |(.., setting)| setting)
    }

    /// Returns the one with this name.
    pub(super) fn of(name: &str) -> Option<Role> {
        ROLES.iter().find(|(_, known, _)| *known == name).map(|(role, ..)| *role)
    }

    /// Returns where the settings have it listen.
    pub(super) fn address(self, settings: &Settings) -> Option<SocketAddr> {
        match self {
            Role::Http => settings.proxy.listen.plain,
            Role::Tls => settings.proxy.listen.tls.as_ref().map(|tls| tls.address),
            Role::Admin => settings.admin_listen,
            Role::LoadReports => settings.proxy.upstream.load_reports.listen,
        }
    }

    /// Has the settings listen there.
    pub(super) fn set_address(self, settings: &mut Settings, address: SocketAddr) {
        match self {
            Role::Http => settings.proxy.listen.plain = Some(address),
            Role::Tls => {
                if let Some(tls) = &mut settings.proxy.listen.tls {
                    tls.address = address;
                }
            }
            Role::Admin => settings.admin_listen = Some(address),
            Role::LoadReports => settings.proxy.upstream.load_reports.listen = Some(address),
        }
    }
}
