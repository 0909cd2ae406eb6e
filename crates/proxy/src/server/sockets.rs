//! The sockets that a proxy listens at: opened by it, or open already when it starts.

use super::StartError;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;
use suimon_upstream::Upstream;
use tokio::net::TcpListener;

/// How long a vanished peer, that sends neither data nor a close, stays unnoticed while nothing is
/// being sent to it: probes begin after this time, repeat at the interval below, and a number of
/// them stay unanswered. Data being sent has its own timeout: see [`suimon_downstream::wire`]. (The
/// kernel's timeout for unacknowledged data would end every answer to a slow client after a minute:
/// it runs while the window is smaller than the next piece, however much the client takes.)
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// Sockets that are open already, by what they are for: another process has opened them.
#[derive(Debug, Default)]
pub struct Sockets {
    /// For connections without TLS.
    pub plain: Option<std::net::TcpListener>,
    /// For connections with TLS.
    pub tls: Option<std::net::TcpListener>,
    /// For datagrams with the load of nodes.
    pub load_reports: Option<std::net::UdpSocket>,
}

/// Returns the TCP socket that a descriptor is, and the address that it listens at.
///
/// # Errors
/// What it is in place of that.
pub fn listener_of(descriptor: OwnedFd) -> Result<(std::net::TcpListener, SocketAddr), &'static str> {
    let socket = Socket::from(descriptor);
    if socket.r#type().ok() != Some(Type::STREAM) {
        return Err("is no stream socket");
    }
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    let address = address.ok_or("is no socket of TCP")?;
    if !socket.is_listener().unwrap_or(false) {
        return Err("does not listen");
    }
    Ok((socket.into(), address))
}

/// Returns the UDP socket that a descriptor is, and its address.
///
/// # Errors
/// What it is in place of that.
pub fn datagrams_of(descriptor: OwnedFd) -> Result<(std::net::UdpSocket, SocketAddr), &'static str> {
    let socket = Socket::from(descriptor);
    if socket.r#type().ok() != Some(Type::DGRAM) {
        return Err("is no datagram socket");
    }
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    Ok((socket.into(), address.ok_or("is no socket of UDP")?))
}

/// Listens at `address`, by the socket that is open already, if there is one.
pub(super) fn listen(
    open: Option<std::net::TcpListener>,
    address: SocketAddr,
    backlog: u32,
) -> Result<Arc<TcpListener>, StartError> {
    let listening = match open {
        Some(listener) => settle(&SockRef::from(&listener)).and_then(|()| TcpListener::from_std(listener)),
        None => bind(address, backlog),
    };
    listening.map(Arc::new).map_err(|error| StartError::Listen(address, error))
}

fn bind(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A port whose last owner has just gone is free for us; one in use is not.
    socket.set_reuse_address(true)?;
    settle(&SockRef::from(&socket))?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    TcpListener::from_std(socket.into())
}

/// Sets what connections inherit from their listener, which saves four system calls for each.
fn settle(socket: &SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES);
    socket.set_tcp_keepalive(&probes)?;
    socket.set_nonblocking(true)
}

/// The sockets of a proxy, as long as it listens.
#[derive(Clone, Debug)]
pub struct Listening {
    pub(super) plain: Option<Weak<TcpListener>>,
    pub(super) tls: Option<Weak<TcpListener>>,
    pub(super) application: Upstream,
}

impl Listening {
    /// Returns descriptors of these sockets for another process.
    ///
    /// # Errors
    /// Descriptors have run out.
    pub fn descriptors(&self) -> io::Result<Sockets> {
        let listener = |listener: &Option<Weak<TcpListener>>| -> io::Result<_> {
            let listener = listener.as_ref().and_then(Weak::upgrade);
            listener.map(|listener| SockRef::from(&*listener).try_clone().map(Into::into)).transpose()
        };
        let reports = self.application.reports_socket().transpose()?;
        Ok(Sockets { plain: listener(&self.plain)?, tls: listener(&self.tls)?, load_reports: reports })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_takes_little_at_a_time_is_not_cut_off_by_the_kernel() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let given = std::net::TcpListener::bind(here).unwrap();
        for open in [None, Some(given)] {
            let listener = listen(open, here, 8).unwrap();
            let connecting = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            let socket = SockRef::from(&accepted);
            assert_eq!(socket.tcp_user_timeout().unwrap(), None);
            assert!(socket.keepalive().unwrap(), "one that has vanished is found out all the same");
            drop(connecting);
        }
    }

    #[test]
    fn what_is_no_socket_to_accept_clients_at_is_told() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = std::net::TcpListener::bind(here).unwrap();
        let address = listener.local_addr().unwrap();
        let connected = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(listener_of(connected.into()).unwrap_err(), "does not listen");
        let datagrams = std::net::UdpSocket::bind(here).unwrap();
        assert_eq!(listener_of(datagrams.try_clone().unwrap().into()).unwrap_err(), "is no stream socket");
        assert_eq!(datagrams_of(datagrams.try_clone().unwrap().into()).unwrap().1.ip(), here.ip());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(listener_of(file.into()).unwrap_err(), "is no stream socket");
        assert_eq!(listener_of(listener.into()).unwrap().1, address);
    }
}
