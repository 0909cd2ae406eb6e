//! Sockets that are open already when the gateway starts: systemd's socket activation, or a gateway
//! that hands over.
//!
//! | variable | what |
//! |---|---|
//! | `LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES` | sockets from descriptor 3 on, as `sd_listen_fds(3)` says |
//! | `SUIMON_TAKEOVER` | what a gateway of ours hands down: see [`super::takeover`] |
//!
//! What the gateway starts itself gets neither these variables (it has those that its settings name,
//! and no others) nor the sockets.

use super::role::{ROLES, Role};
use super::takeover::{self, Predecessor};
use std::env;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{OwnedFd, RawFd};
use suimon_process::inherited;
use suimon_proxy::{Sockets, datagrams_of, listener_of};
use suimon_settings::Settings;

/// Where the descriptors of systemd begin.
const FIRST: RawFd = 3;
/// There are four things to listen for; more descriptors are a mistake.
const DESCRIPTORS_MAX: usize = 16;

/// What this process was given.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) sockets: Sockets,
    pub(super) admin: Option<TcpListener>,
    /// The gateway that hands over, if one does.
    pub(super) predecessor: Option<Predecessor>,
}

/// Takes over what this process was given, and has the settings listen there.
///
/// # Errors
/// A sentence: a socket that is none, or that is for nothing in the settings.
pub(super) fn take(settings: &mut Settings) -> Result<Given, String> {
    let mut given = Given::default();
    if let Some(handed) = takeover::handed_down()? {
        given.predecessor = Some(handed.predecessor);
        for (role, descriptor) in handed.sockets {
            given.place(role.name(), descriptor, settings, true)?;
        }
        return Ok(given);
    }
    let variable = |name: &str| env::var(name).ok();
    for (name, number) in activated(variable, std::process::id())? {
        let descriptor = inherited::take_over(number)
            .map_err(|error| format!("LISTEN_FDS: descriptor {number} is not open ({error})"))?;
        given.place(&name, descriptor, settings, false)?;
    }
    Ok(given)
}

/// Returns the descriptors that systemd has opened for the process with this number, with their names.
fn activated(variable: impl Fn(&str) -> Option<String>, us: u32) -> Result<Vec<(String, RawFd)>, String> {
    // It is of the process that has started us, and stayed in the environment.
    if variable("LISTEN_PID").and_then(|pid| pid.parse().ok()) != Some(us) {
        return Ok(Vec::new());
    }
    let Some(text) = variable("LISTEN_FDS") else { return Ok(Vec::new()) };
    let count = text.parse().ok().filter(|count| *count <= DESCRIPTORS_MAX);
    let count = count.ok_or(format!("LISTEN_FDS = {text:?}: must be a number, at most {DESCRIPTORS_MAX}"))?;
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').map(str::to_owned).chain(std::iter::repeat(String::new()));
    Ok(names.zip(FIRST..).take(count).collect())
}

impl Given {
    /// Puts a socket where it belongs: by its name, else by its address. `is_ours`: another gateway
    /// listens there now and goes on doing so where the settings name another address.
    fn place(
        &mut self,
        name: &str,
        descriptor: OwnedFd,
        settings: &mut Settings,
        is_ours: bool,
    ) -> Result<(), String> {
        let number = inherited::number_of(&descriptor);
        let fault = |what: &str| Err(format!("the socket {name:?} passed as descriptor {number} {what}"));
        let role = match Role::of(name) {
            Some(role) => role,
            None => match role_by_address(&descriptor, settings) {
                Some(role) => role,
                None => {
                    let known = ROLES.map(|(_, name, _)| name).join(", ");
                    let known = format!(
                        "is for nothing here: name it (FileDescriptorName=) one of {known}, or listen at an address of the settings"
                    );
                    return fault(&known);
                }
            },
        };
        if role == Role::Tls && settings.proxy.listen.tls.is_none() {
            return fault("is for TLS, but there is no certificate: set listen.tls");
        }
        if role == Role::LoadReports && settings.proxy.upstream.load_reports.keys_file.is_none() {
            return fault("is for load reports, but there are no keys: set upstream.load_reports.keys");
        }
        let is_taken = match role {
            Role::Http => self.sockets.plain.is_some(),
            Role::Tls => self.sockets.tls.is_some(),
            Role::Admin => self.admin.is_some(),
            Role::LoadReports => self.sockets.load_reports.is_some(),
        };
        if is_taken {
            return fault(&format!("is one too many for {}: there is one socket for each", role.setting()));
        }
        let address = if role == Role::LoadReports {
            match datagrams_of(descriptor) {
                Ok((socket, address)) => {
                    self.sockets.load_reports = Some(socket);
                    address
                }
                Err(what) => return fault(what),
            }
        } else {
            match listener_of(descriptor) {
                Ok((listener, address)) => {
                    let place = match role {
                        Role::Tls => &mut self.sockets.tls,
                        Role::Admin => &mut self.admin,
                        Role::Http | Role::LoadReports => &mut self.sockets.plain,
                    };
                    *place = Some(listener);
                    address
                }
                Err(what) => return fault(what),
            }
        };
        match role.address(settings) {
            Some(set) if is_same(set, address) || is_ours && set.port() == 0 => {}
            set if is_ours => {
                let wanted = set.map_or("off".to_owned(), |set| set.to_string());
                return Err(format!(
                    "{} is {wanted}, and the running gateway listens at {address}: another address takes a restart",
                    role.setting()
                ));
            }
            _ => tracing::info!(
                "{} is {address}: the socket was passed by the service manager",
                role.setting()
            ),
        }
        role.set_address(settings, address);
        Ok(())
    }
}

/// Returns what the settings have at the address of a socket.
fn role_by_address(descriptor: &OwnedFd, settings: &Settings) -> Option<Role> {
    let copy = || descriptor.try_clone().ok();
    let (address, is_stream) = match listener_of(copy()?) {
        Ok((_, address)) => (address, true),
        Err(_) => (datagrams_of(copy()?).ok()?.1, false),
    };
    let mut roles = ROLES.map(|(role, ..)| role).into_iter();
    roles.find(|role| {
        let set = role.address(settings).is_some_and(|set| is_same(set, address));
        set && is_stream == (*role != Role::LoadReports)
    })
}

/// Returns whether a socket at `found` is the one that `set` asks for. All addresses of IPv6 are all of
/// IPv4, too, unless the system says otherwise.
fn is_same(set: SocketAddr, found: SocketAddr) -> bool {
    let all = set.ip().is_unspecified() && found.ip().is_unspecified();
    set.port() == found.port() && (all || set.ip().to_canonical() == found.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> (OwnedFd, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener.into(), address)
    }

    #[test]
    fn descriptors_are_those_of_this_process_with_the_names_they_have() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> =
                set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            activated(
                move |name| set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()),
                7,
            )
        };
        assert_eq!(of(&[]), Ok(vec![]));
        assert_eq!(of(&[("LISTEN_PID", "8"), ("LISTEN_FDS", "2")]), Ok(vec![]), "of another process");
        let two = [("LISTEN_PID", "7"), ("LISTEN_FDS", "2")];
        assert_eq!(of(&two), Ok(vec![(String::new(), 3), (String::new(), 4)]));
        let named = [&two[..], &[("LISTEN_FDNAMES", "http:admin")]].concat();
        assert_eq!(of(&named), Ok(vec![("http".to_owned(), 3), ("admin".to_owned(), 4)]));
        for bad in ["many", "-1", "17"] {
            assert!(of(&[("LISTEN_PID", "7"), ("LISTEN_FDS", bad)]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_socket_goes_where_its_name_says_else_where_its_address_is_and_else_nowhere() {
        let mut settings = Settings::default();
        let mut given = Given::default();
        let (named, at) = listener();
        given.place("http", named, &mut settings, false).unwrap();
        assert_eq!(settings.proxy.listen.plain, Some(at), "the name counts, whatever the settings say");
        let (unnamed, at) = listener();
        settings.admin_listen = Some(at);
        given.place("unknown", unnamed, &mut settings, false).unwrap();
        assert!(given.admin.is_some() && given.sockets.plain.is_some());

        let mut refuses = |name: &str, descriptor: OwnedFd, what: &str| {
            let why = given.place(name, descriptor, &mut settings, false).unwrap_err();
            assert!(why.contains(what), "{why}");
        };
        refuses("suimon.socket", listener().0, "is for nothing here");
        refuses("http", listener().0, "one too many for listen.http");
        refuses("tls", listener().0, "set listen.tls");
        refuses("load-reports", listener().0, "set upstream.load_reports.keys");
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut given = Given::default();
        let why = given.place("http", datagrams.into(), &mut settings, false).unwrap_err();
        assert!(why.contains("is no stream socket"), "{why}");
    }

    #[test]
    fn what_a_running_gateway_listens_at_is_not_moved() {
        let mut settings = Settings::default();
        let (socket, at) = listener();
        let why = Given::default().place("http", socket, &mut settings, true).unwrap_err();
        assert!(why.contains("another address takes a restart"), "{why}");
        settings.proxy.listen.plain = Some(SocketAddr::new(at.ip(), 0));
        let (socket, at) = listener();
        Given::default().place("http", socket, &mut settings, true).unwrap();
        assert_eq!(settings.proxy.listen.plain, Some(at));
    }
}
