//! What systemd is told: `sd_notify(3)`, a datagram to the socket that `NOTIFY_SOCKET` names. Without
//! one, nobody is told anything.

use rustix::time::{ClockId, clock_gettime};
use std::env;
use std::fmt::Write as _;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;
use suimon_admin::Site;
use suimon_proxy::Observer;

/// How often the state is told.
const STATUS_EVERY: Duration = Duration::from_secs(5);

/// What tells the service manager, if there is one. Clones tell the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Notifier {
    to: Option<Arc<(UnixDatagram, SocketAddr)>>,
    /// In which time it must hear that the gateway lives.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Returns what tells the service manager that the environment names.
    pub(super) fn from_environment() -> Self {
        let variable = |name: &str| env::var(name).ok();
        let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Notifier::default() };
        match address(path.as_bytes()).and_then(|to| Ok((UnixDatagram::unbound()?, to))) {
            Ok(to) => Notifier {
                to: Some(Arc::new(to)),
                watchdog: watchdog(
                    variable("WATCHDOG_USEC").as_deref(),
                    variable("WATCHDOG_PID").as_deref(),
                    std::process::id(),
                ),
            },
            Err(error) => {
                tracing::warn!("NOTIFY_SOCKET: the service manager cannot be told anything: {error}");
                Notifier::default()
            }
        }
    }

    /// The gateway serves.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// The settings are read again, until [`Notifier::ready`].
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1000));
    }

    /// The gateway ends.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=draining: what is under way may end");
    }

    /// Another process goes on.
    pub(super) fn main_process(&self, pid: u32) {
        self.tell(&format!("MAINPID={pid}"));
    }

    /// Tells how things stand, and that the gateway lives, as long as it does: as long as the gate of
    /// each site is called when it is time to. Never returns.
    pub(super) async fn keep(self, observer: Observer, sites: Vec<Site>) {
        if self.to.is_none() {
            return std::future::pending().await;
        }
        let every = self.watchdog.map_or(STATUS_EVERY, |within| (within / 2).min(STATUS_EVERY));
        let of_sites = || observer.sites().iter().map(Observer::ticks).collect::<Vec<_>>();
        let (mut ticks, mut said) = (of_sites(), String::new());
        loop {
            tokio::time::sleep(every).await;
            let mut message = String::new();
            let now = of_sites();
            if self.watchdog.is_some() && now.iter().zip(&ticks).all(|(now, before)| now != before) {
                message.push_str("WATCHDOG=1\n");
            }
            ticks = now;
            let sentence = worst(&sites).replace('\n', " ");
            if sentence != said {
                let _ = writeln!(message, "STATUS={sentence}");
                said = sentence;
            }
            if !message.is_empty() {
                self.tell(message.trim_end());
            }
        }
    }

    fn tell(&self, message: &str) {
        let Some(to) = &self.to else { return };
        if let Err(error) = to.0.send_to_addr(message.as_bytes(), &to.1) {
            tracing::debug!("the service manager was not told {message:?}: {error}");
        }
    }
}

/// Returns how the site stands that is worst off, the first of several; a name tells which of several.
fn worst(sites: &[Site]) -> String {
    let rank = |level: &str| ["critical", "warning", "busy"].iter().position(|it| *it == level).unwrap_or(3);
    let all = sites.iter().map(|site| (site, suimon_admin::verdict_now(&*site.source)));
    let worst = all.min_by_key(|(_, verdict)| rank(&verdict.level));
    worst.map_or(String::new(), |(site, verdict)| match sites {
        [_] => verdict.sentence,
        _ => format!("{}: {}", site.name, verdict.sentence),
    })
}

/// Returns the address that `NOTIFY_SOCKET` names: a path, or with `@` a name of the kernel's.
fn address(path: &[u8]) -> io::Result<SocketAddr> {
    match path {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no path and no abstract name")),
    }
}

/// Returns in which time the service manager must hear of the process with this number.
fn watchdog(usec: Option<&str>, pid: Option<&str>, us: u32) -> Option<Duration> {
    let is_ours = pid.is_none_or(|pid| pid.parse() == Ok(us));
    let usec = usec?.parse().ok().filter(|usec| *usec > 0 && is_ours)?;
    Some(Duration::from_micros(usec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_is_told_by_a_path_or_by_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("suimon-notify-{}", std::process::id());
        let hidden = SocketAddr::from_abstract_name(&name).unwrap();
        for (named, heard) in [
            (path.as_os_str().as_bytes().to_vec(), UnixDatagram::bind(&path)),
            (format!("@{name}").into_bytes(), UnixDatagram::bind_addr(&hidden)),
        ] {
            let (heard, to) = (heard.unwrap(), address(&named).unwrap());
            let notifier =
                Notifier { to: Some(Arc::new((UnixDatagram::unbound().unwrap(), to))), watchdog: None };
            notifier.main_process(7);
            let mut bytes = [0; 64];
            let length = heard.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"MAINPID=7");
        }
        assert!(address(b"relative").is_err());
    }

    #[test]
    fn the_watchdog_of_another_process_is_none_of_ours() {
        assert_eq!(watchdog(Some("3000000"), None, 7), Some(Duration::from_secs(3)));
        assert_eq!(watchdog(Some("3000000"), Some("7"), 7), Some(Duration::from_secs(3)));
        assert_eq!(watchdog(Some("3000000"), Some("8"), 7), None);
        assert_eq!(watchdog(Some("0"), None, 7), None);
        assert_eq!(watchdog(None, Some("7"), 7), None);
    }
}
