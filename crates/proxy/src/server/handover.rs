//! Another process goes on where this one stops, and no connection is refused meanwhile.
//!
//! The other one has our sockets from its start, and waits. Then, one after another: we accept no
//! connection (they wait in the kernel's queue), we take no newcomer (they are told to ask again, by
//! another connection), and we write all state. From now on only the other one may draw numbers,
//! write the files of state and record. It reads the files and accepts. What is under way here ends
//! here: requests, streams and WebSockets as after SIGTERM.
//!
//! If the other one fails before it accepts, all of this is undone, and nothing has happened.

use super::kept::LineStore;
use super::learned::LearnedStore;
use super::sockets::Listening;
use crate::gatekeeper::Gatekeeper;
use crate::gateway::Gateway;
use std::sync::Arc;
use std::time::Duration;
use suimon_downstream::connections::{CloseRequest, Connections};
use suimon_downstream::listener::Accepting;
use suimon_params::{Recording, SessionKind};
use suimon_upstream::Upstream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

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

/// A session that has begun: the name of its kind, and its number.
pub type BegunSession = (String, u64);

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

/// What keeps the files of state while the proxy runs.
#[derive(Debug)]
pub(super) struct Keeping {
    pub(super) lines: Option<LineStore>,
    pub(super) learned: Option<LearnedStore>,
    tasks: JoinSet<()>,
}

impl Keeping {
    /// Begins to keep what there is to keep.
    pub(super) fn begin(lines: Option<LineStore>, learned: Option<LearnedStore>) -> Self {
        let mut keeping = Keeping { lines, learned, tasks: JoinSet::new() };
        keeping.go_on();
        keeping
    }

    fn go_on(&mut self) {
        if let Some(mut lines) = self.lines.clone() {
            self.tasks.spawn(async move { lines.keep().await });
        }
        if let Some(mut learned) = self.learned.clone() {
            self.tasks.spawn(async move { learned.keep().await });
        }
    }

    /// Stops, and writes for the last time. To be called when no number is drawn any more.
    pub(super) async fn finish(&mut self) {
        self.tasks.shutdown().await;
        if let Some(lines) = &mut self.lines {
            lines.write_exactly().await;
        }
        if let Some(learned) = &mut self.learned {
            learned.write().await;
        }
    }
}

/// The parts of a running proxy that a handover stops.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) keeper: &'a Arc<Gatekeeper>,
    pub(super) recording: Option<&'a Recording>,
    pub(super) kinds: &'a [SessionKind],
    pub(super) accepting: &'a watch::Sender<Accepting>,
    pub(super) connections: &'a Connections,
    pub(super) application: &'a Upstream,
    pub(super) keeping: &'a mut Keeping,
}

impl Parts<'_> {
    /// Hands over, and returns whether the other process goes on.
    pub(super) async fn hand_over(self, Asked { written }: Asked) -> bool {
        self.accepting.send_replace(Accepting::Paused);
        let keeper = Arc::clone(self.keeper);
        // It waits for the disk.
        let _ = tokio::task::spawn_blocking(move || keeper.end_recording()).await;
        self.keeper.hand_over();
        self.gateway.hand_over_overrides();
        self.application.pause_reports(true);
        self.keeping.finish().await;
        let sessions = self.sessions();
        let (outcome, came) = oneshot::channel();
        let goes_on = written.send(HandedOver { sessions, outcome }).is_ok() && came.await.is_ok();
        if goes_on {
            self.accepting.send_replace(Accepting::HandedOver);
            self.connections.tell(CloseRequest::AfterNext);
            return true;
        }
        self.keeping.go_on();
        self.application.pause_reports(false);
        self.keeper.take_back();
        self.gateway.take_overrides_back();
        if let Some(recording) = self.recording
            && let Err(error) = self.keeper.begin_recording(recording)
        {
            tracing::error!("the recording has ended and cannot be begun again: {error}");
        }
        self.accepting.send_replace(Accepting::Yes);
        false
    }
}

impl Parts<'_> {
    fn sessions(&self) -> Vec<BegunSession> {
        let begun = self.keeper.sessions_begun().into_iter();
        begun.filter_map(|(kind, id)| Some((self.kinds.get(kind.index())?.name.clone(), id.0))).collect()
    }
}

/// Waits until idle connections have had their last call, for `drain_max` at most.
pub(super) async fn last_call(connections: &Connections, drain_max: Duration) {
    let _ = tokio::time::timeout(LAST_CALL.min(drain_max), connections.gone()).await;
}
