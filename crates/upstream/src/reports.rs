//! The load that nodes report: what is done with it.
//!
//! All that is believed goes to the fleet. A socket that nobody has opened costs nothing, and responses
//! are not looked at unless that is asked for.

use super::report_socket::{LoadReportCounts, Receiver};
use super::view::NodeReportView;
use super::{Shared, Upstream};
use http::HeaderMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use suimon_agent::keyring::Keyring;
use suimon_fleet::LoadReport;
use suimon_model::{Instant, NodeId};

/// How long reports in responses count, by three: those of a node that nobody asks are soon too old.
const ORCA_EVERY: Duration = Duration::from_secs(1);
/// The least utilisation that tells of a node's capacity: what it has in flight now is 1000 times less
/// than it could have.
const UTILIZATION_LEAST: f64 = 1e-3;

impl Upstream {
    /// Opens the UDP socket for load reports that are sealed with `keys`, and returns its address, with
    /// the port it really has. [`Upstream::run`] reads it. Must be called inside the runtime, and once.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn listen_for_reports(&self, address: SocketAddr, keys: Keyring) -> io::Result<SocketAddr> {
        self.listen_for_reports_by(std::net::UdpSocket::bind(address)?, keys)
    }

    /// As [`Upstream::listen_for_reports`], by a socket that is open already.
    ///
    /// # Errors
    /// If the runtime does not take it.
    pub fn listen_for_reports_by(
        &self,
        socket: std::net::UdpSocket,
        keys: Keyring,
    ) -> io::Result<SocketAddr> {
        let clock_skew_max = self.shared.params.load_reports.clock_skew_max;
        let receiver = Receiver::new(socket, keys, clock_skew_max)?;
        let address = receiver.address()?;
        // Nodes come and go under this lock.
        let _fleet = self.shared.fleet();
        for node in self.shared.nodes.present() {
            receiver.name(node.id.index(), Some(node.params.to_string()));
        }
        let is_first = self.shared.reports.set(receiver).is_ok();
        debug_assert!(is_first, "load reports are listened for twice");
        Ok(address)
    }

    /// Returns the address at which load reports are taken, if they are.
    pub fn reports_address(&self) -> Option<SocketAddr> {
        self.shared.reports.get().and_then(|receiver| receiver.address().ok())
    }

    /// Returns the socket for load reports, if there is one, for another process that is to read it.
    ///
    /// # Errors
    /// In the result: descriptors have run out.
    pub fn reports_socket(&self) -> Option<io::Result<std::net::UdpSocket>> {
        self.shared.reports.get().map(Receiver::socket)
    }

    /// Leaves load reports in their socket, where another process reads it, or takes them again.
    pub fn pause_reports(&self, is_paused: bool) {
        if let Some(receiver) = self.shared.reports.get() {
            receiver.pause(is_paused);
        }
    }

    /// Returns how many load reports came, by what became of them.
    pub fn load_report_counts(&self) -> LoadReportCounts {
        LoadReportCounts {
            datagrams: self.shared.reports.get().map(Receiver::counts).unwrap_or_default(),
            responses: match self.shared.params.load_reports.orca {
                true => self.shared.orca.counts(),
                false => Vec::new(),
            },
            checks: match self.shared.params.load_reports.agent_check {
                Some(_) => self.shared.agent_checks.counts(),
                None => Vec::new(),
            },
        }
    }
}

/// Takes datagrams for ever, if there is a socket for them.
pub(super) async fn receive(shared: &Shared) {
    let Some(receiver) = shared.reports.get() else { return std::future::pending().await };
    loop {
        let accepted = receiver.next(|| shared.now()).await;
        let load = accepted.load;
        let report = LoadReport {
            load: load.mean_100ms(),
            capacity: f64::from(load.processors),
            run_queue: Some(load.run_queue),
            every: load.every,
        };
        let mut fleet = shared.fleet();
        // Nodes come and go under the fleet's lock.
        if receiver.is_there(&accepted) {
            // As of when it would have come by the fastest way: it is no younger.
            let came = shared.now() - accepted.delay;
            fleet.handle_report(came, NodeId(accepted.node as u32), &report);
        }
    }
}

impl Shared {
    /// Notes which node is at a place from now on; `None`: none. To be called under the fleet's lock.
    pub(super) fn name_reporter(&self, node: NodeId, name: Option<String>) {
        if let Some(receiver) = self.reports.get() {
            receiver.name(node.index(), name);
        }
    }

    /// Takes the load report out of the head of a response of `node`.
    pub(super) fn take_orca(&self, node: NodeId, headers: &mut HeaderMap) {
        let Some(utilization) = self.orca.take(headers) else { return };
        let now = self.now();
        let mut fleet = self.fleet();
        // The one that has this response is still in flight.
        let in_flight = f64::from(fleet.in_flight(node).max(1));
        let capacity = in_flight / utilization.max(UTILIZATION_LEAST);
        let report = LoadReport { load: in_flight, capacity, run_queue: None, every: ORCA_EVERY };
        fleet.handle_report(now, node, &report);
    }

    /// Returns what is seen of a report.
    pub(super) fn report_view(
        &self,
        now: Instant,
        node: NodeId,
        (report, came): (LoadReport, Instant),
    ) -> NodeReportView {
        let heard = |receiver: &Receiver| receiver.last(node.index());
        let agent = report.run_queue.and_then(|_| self.reports.get().and_then(heard));
        let source = match (report.run_queue, self.params.load_reports.agent_check) {
            (Some(_), _) => "agent",
            (None, Some(_)) => "agent_check",
            (None, None) => "response",
        };
        NodeReportView {
            source,
            load: report.load / report.capacity,
            age: now.since(came),
            is_current: report.is_current(now.since(came)),
            agent,
        }
    }
}
