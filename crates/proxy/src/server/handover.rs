//! Another process goes on where this one stops, and no connection is refused meanwhile.
//!
//! The other one has our sockets from its start, and waits. Then, one after another: we accept no
//! connection (they wait in the kernel's queue), we take no newcomer (they are told to ask again, by
//! another connection), and we write all state. From now on only the other one may draw numbers,
//! write the files of state and record. It reads the files and accepts. What is under way here ends
//! here: requests, streams and WebSockets as after SIGTERM.
//!
//! If the other one fails before it accepts, all of this is undone, and nothing has happened.

use super::begun::BegunSession;
use super::running::RunningSite;
use super::sockets::Listening;
use std::time::Duration;
use suimon_downstream::connections::{CloseRequest, Connections};
use suimon_downstream::listener::Accepting;
use tokio::sync::{mpsc, oneshot, watch};

/// How long an idle connection of HTTP/1 is still kept for one more request after a handover: one that
/// is closed at the moment in which its client asks loses that request.
const LAST_CALL: Duration = Duration::from_secs(10);
/// Handovers asked for and not begun: there is one at a time.
const ASKED_MAX: usize = 1;

/// What hands a running proxy over to another process.
#[derive(Clone, Debug)]
pub struct Handover {
    listening: Listening,
    asks: mpsc::Sender<Asked>,
}

/// A proxy that has stopped for another process, and has written all of its state. Dropping this lets
/// it go on.
#[derive(Debug)]
pub struct HandedOver {
    /// The sessions that have begun: no file has them, and the other process is to count them.
    pub sessions: Vec<BegunSession>,
    outcome: oneshot::Sender<()>,
}

/// A handover that is asked for.
#[derive(Debug)]
pub(super) struct Asked {
    written: oneshot::Sender<HandedOver>,
}

/// Returns what asks for handovers of a proxy with these sockets, and what hears of them.
pub(super) fn handovers(listening: Listening) -> (Handover, mpsc::Receiver<Asked>) {
    let (asks, asked) = mpsc::channel(ASKED_MAX);
    (Handover { listening, asks }, asked)
}

impl Handover {
    /// Returns the sockets for the other process.
    pub fn listening(&self) -> &Listening {
        &self.listening
    }

    /// Stops the proxy for another process, and returns once all state is written; `None`: it is being
    /// shut down.
    pub async fn begin(&self) -> Option<HandedOver> {
        let (written, stopped) = oneshot::channel();
        self.asks.send(Asked { written }).await.ok()?;
        stopped.await.ok()
    }
}

impl HandedOver {
    /// The other process goes on.
    pub fn succeeds(self) {
        // If nobody hears it, the proxy has ended.
        let _ = self.outcome.send(());
    }
}

/// The parts of a running proxy that a handover stops.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) sites: &'a mut [RunningSite],
    pub(super) accepting: &'a watch::Sender<Accepting>,
    pub(super) connections: &'a Connections,
}

impl Parts<'_> {
    /// Hands over, and returns whether the other process goes on.
    pub(super) async fn hand_over(self, Asked { written }: Asked) -> bool {
        self.accepting.send_replace(Accepting::Paused);
        let mut sessions = Vec::new();
        for site in &mut *self.sites {
            site.stop().await;
            sessions.extend(site.sessions());
        }
        let (outcome, came) = oneshot::channel();
        let goes_on = written.send(HandedOver { sessions, outcome }).is_ok() && came.await.is_ok();
        if goes_on {
            self.accepting.send_replace(Accepting::HandedOver);
            self.connections.tell(CloseRequest::AfterNext);
            return true;
        }
        self.sites.iter_mut().for_each(RunningSite::go_on);
        self.accepting.send_replace(Accepting::Yes);
        false
    }
}

/// Waits until idle connections have had their last call, for `drain_max` at most.
pub(super) async fn last_call(connections: &Connections, drain_max: Duration) {
    let _ = tokio::time::timeout(LAST_CALL.min(drain_max), connections.gone()).await;
}
