//! Reports to gateways, as datagrams.

use crate::args::Agent;
use crate::exit::Exit;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use suimon_agent::datagram::{Load, Report};
use suimon_agent::keyring::Keyring;
use suimon_proxy::report_keys;
use tokio::task::JoinHandle;

/// How often a gateway's name is looked up.
const LOOKED_UP_EVERY: Duration = Duration::from_secs(30);
/// Of faults towards one gateway one is told in this time.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Who is told, and with which key.
pub(super) struct Sender {
    names: Vec<String>,
    keys: Option<Keyring>,
    gateways: Vec<Gateway>,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    began: Instant,
    boot_us: u64,
    sequence: u64,
}

struct Gateway {
    /// As it was written.
    name: String,
    address: Option<SocketAddr>,
    looked_up: Option<Instant>,
    looking: Option<JoinHandle<io::Result<SocketAddr>>>,
    told: Option<Instant>,
}

impl Sender {
    /// Returns one that has sent nothing yet.
    ///
    /// # Errors
    /// A sentence and how the command ends with it: a file of keys or an address that is wrong, or no
    /// socket.
    pub(super) fn open(args: &Agent, names: Vec<String>) -> Result<Sender, (String, Exit)> {
        let keys = args.keys.as_ref().map(|path| report_keys::open(path));
        let keys = keys.transpose().map_err(|error| (error.to_string(), Exit::Usage))?;
        let gateways: Result<Vec<_>, _> = args.to.iter().map(|name| Gateway::named(name)).collect();
        let gateways = gateways.map_err(|why| (why, Exit::Usage))?;
        let socket = |address: SocketAddr| {
            let socket = UdpSocket::bind(address)?;
            // A gateway that does not take it must not hold up the others.
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let (v4, v6) = if gateways.is_empty() {
            (None, None)
        } else {
            let v4: io::Result<_> = socket((Ipv4Addr::UNSPECIFIED, 0).into());
            let v6: io::Result<_> = socket((Ipv6Addr::UNSPECIFIED, 0).into());
            if let (Err(error), Err(_)) = (&v4, &v6) {
                return Err((format!("no UDP socket can be had: {error}"), Exit::Failed));
            }
            (v4.ok(), v6.ok())
        };
        Ok(Sender { names, keys, gateways, v4, v6, began: Instant::now(), boot_us: clock_us(), sequence: 0 })
    }

    /// Returns the names of the nodes that are reported.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Tells every gateway whose address is known.
    pub(super) async fn send(&mut self, load: Load) {
        let Some(keys) = &self.keys else { return };
        self.sequence += 1;
        for gateway in &mut self.gateways {
            gateway.look_up().await;
        }
        for name in &self.names {
            let since = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
            let report = Report {
                name: name.clone(),
                boot_us: self.boot_us,
                sequence: self.sequence,
                since_boot: Duration::from_micros(since),
                clock_us: clock_us(),
                load,
            };
            let datagram = match report.encode(keys) {
                Ok(datagram) => datagram,
                Err(refused) => {
                    eprintln!("a report of {name} cannot be sent: {refused}");
                    continue;
                }
            };
            for gateway in &mut self.gateways {
                let Some(address) = gateway.address else { continue };
                let socket = if address.is_ipv4() { &self.v4 } else { &self.v6 };
                let sent = match socket {
                    Some(socket) => socket.send_to(&datagram, address),
                    None => Err(io::ErrorKind::AddrNotAvailable.into()),
                };
                if let Err(error) = sent
                    && error.kind() != io::ErrorKind::WouldBlock
                {
                    gateway.tell(&format!("cannot be told: {error}"));
                }
            }
        }
    }
}

impl Gateway {
    fn named(name: &str) -> Result<Gateway, String> {
        let port = name.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none_or(|port| port == 0) || name.contains("://") {
            return Err(format!(
                "--to {name:?}: must be HOST:PORT, such as 10.0.0.2:8002: the gateway's upstream.load_reports.listen"
            ));
        }
        let address = name.parse().ok();
        Ok(Gateway { name: name.to_owned(), address, looked_up: None, looking: None, told: None })
    }

    /// Looks up the name if it is time, beside all else; an address needs none.
    async fn look_up(&mut self) {
        if let Some(looking) = self.looking.take_if(|looking| looking.is_finished()) {
            match looking.await {
                Ok(Ok(address)) => self.address = Some(address),
                Ok(Err(error)) => self.tell(&format!("cannot be looked up: {error}")),
                Err(_) => {}
            }
        }
        let is_due = self.looked_up.is_none_or(|at| at.elapsed() >= LOOKED_UP_EVERY);
        if is_due && self.looking.is_none() && self.name.parse::<SocketAddr>().is_err() {
            self.looked_up = Some(Instant::now());
            let name = self.name.clone();
            self.looking = Some(tokio::spawn(async move {
                let found = tokio::net::lookup_host(name).await?.next();
                found.ok_or_else(|| io::ErrorKind::NotFound.into())
            }));
        }
    }

    /// Tells a fault, unless one was told a short time ago.
    fn tell(&mut self, what: &str) {
        if self.told.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            self.told = Some(Instant::now());
            eprintln!("gateway {} {what}; it is tried again and again", self.name);
        }
    }
}

/// Returns what the clock says, microseconds since 1970.
fn clock_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
