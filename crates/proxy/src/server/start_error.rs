//! Why a proxy does not start.

use std::net::SocketAddr;
use std::{error, fmt, io};
use suimon_identity::keys::KeysError;
use suimon_store::lines::StoredError;
use suimon_store::recorder::RecordError;
use suimon_upstream::report_keys::ReportKeysError;

/// Why a proxy did not start.
#[derive(Debug)]
pub enum StartError {
    /// Settings that contradict each other, as a sentence.
    Params(String),
    /// An address that cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// Certificate or key that cannot be used, as a sentence.
    Tls(String),
    /// The UDP address for load reports cannot be had.
    LoadReports(SocketAddr, io::Error),
    /// The file of keys that load reports are sealed with.
    LoadReportKeys(ReportKeysError),
    /// The file of signing keys.
    Keys(KeysError),
    /// The recording.
    Record(RecordError),
    /// The file of the waiting room.
    WaitingRoom(StoredError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Params(text) | StartError::Tls(text) => f.write_str(text),
            StartError::Listen(address, error) => {
                write!(f, "cannot listen on {address}: {error}; ")?;
                match error.kind() {
                    io::ErrorKind::AddrInUse => write!(
                        f,
                        "another program has the port (`ss -ltnp 'sport = :{}'` names it): stop it or choose another port",
                        address.port()
                    ),
                    io::ErrorKind::PermissionDenied => f.write_str(
                        "ports below 1024 need the capability CAP_NET_BIND_SERVICE (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE): grant it, or choose a higher port",
                    ),
                    io::ErrorKind::AddrNotAvailable => f.write_str(
                        "the address is not one of this machine's: use one of its own, or 0.0.0.0 for all",
                    ),
                    _ => f.write_str("choose another address"),
                }
            }
            StartError::LoadReports(address, error) => write!(
                f,
                "load reports cannot be listened for on {address} (UDP): {error}; name another address in upstream.load_reports.listen"
            ),
            StartError::LoadReportKeys(error) => error.fmt(f),
            StartError::Keys(error) => error.fmt(f),
            StartError::Record(error) => error.fmt(f),
            StartError::WaitingRoom(error) => error.fmt(f),
        }
    }
}

impl error::Error for StartError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            StartError::Listen(_, error) | StartError::LoadReports(_, error) => Some(error),
            StartError::LoadReportKeys(error) => Some(error),
            StartError::Keys(error) => Some(error),
            StartError::Record(error) => Some(error),
            StartError::WaitingRoom(error) => Some(error),
            StartError::Params(_) | StartError::Tls(_) => None,
        }
    }
}
