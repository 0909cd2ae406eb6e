//! The loop of providers whose nodes the gateway starts: the life of nodes decides, a host does.

use crate::{NodeEvent, NodeWord, ProviderView, Wires};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use suimon_fleet::lifecycle::{
    BorrowedId, Lifecycle, LifecycleOutput, LifecycleParams, LifecycleState, START_BACK_OFF_S_MAX,
};
use suimon_model::Instant;
use suimon_params::upstream::NodeParams;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// How often a provider looks at how much CPU time its nodes have used.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Reports of nodes that wait for the loop; then their tasks wait, too.
const REPORTS_MAX: usize = 1024;

/// What starts and ends nodes.
pub(crate) trait Host: Send + Sync + 'static {
    /// What it keeps of a node that runs.
    type Node: Send + 'static;
    /// Whether nodes go on when the gateway ends, and are found again when it starts.
    const OUTLIVES: bool;

    /// Returns the nodes that ran before us.
    fn list(&self) -> impl Future<Output = Result<Vec<(Self::Node, NodeParams)>, String>> + Send;

    /// Starts a node, and returns it once it is ready. Dropping the future ends what it has started.
    fn start(&self) -> impl Future<Output = Result<(Self::Node, NodeParams), String>> + Send;

    /// Returns once a node has ended by itself, with what it said last.
    fn ended(&self, node: &mut Self::Node) -> impl Future<Output = String> + Send;

    /// Ends a node.
    fn end(&self, node: Self::Node) -> impl Future<Output = Result<(), String>> + Send;

    /// As [`Host::start`], unless it is told to end before that: then it leaves nothing behind, and returns
    /// `None`.
    fn start_unless_told(
        &self,
        told: &mut Told,
    ) -> impl Future<Output = Option<Result<(Self::Node, NodeParams), String>>> + Send {
        async {
            tokio::select! {
                _ = told.word() => None,
                started = self.start() => Some(started),
            }
        }
    }

    /// As [`Host::end`], again and again if that helps; returns what went wrong for good.
    fn end_for_good(
        &self,
        node: Self::Node,
        _told: &mut Told,
    ) -> impl Future<Output = Option<String>> + Send {
        async { self.end(node).await.err() }
    }

    /// Returns the longest wait, when the gateway ends, for what nodes that outlive it are still told.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the CPU time that each of these nodes has used, seconds; `None`: it cannot tell.
    fn cpu_s(&self, nodes: &[&NodeParams]) -> Option<Vec<f64>>;

    /// Returns whether nodes may be waiting for processors that others have.
    fn is_crowded(&self) -> bool {
        false
    }
}

/// What the task of a node reports.
enum Report {
    Ready(BorrowedId, NodeParams),
    Gone(BorrowedId, Option<String>),
    Trouble(String),
    /// It could not be ended; whether it is still there.
    Stuck(BorrowedId, bool),
    /// What was complained of last is over.
    Well,
}

struct Manager<H> {
    host: Arc<H>,
    began: std::time::Instant,
    nodes: Lifecycle,
    running: HashMap<BorrowedId, Running>,
    tasks: JoinSet<()>,
    reports: mpsc::Sender<Report>,
    /// Whether the gateway ends.
    closing: watch::Sender<bool>,
    /// CPU time of nodes that are gone.
    cpu_of_gone: f64,
    tells_cpu: bool,
    is_crowded: bool,
    /// Nodes that ran before us; `None`: it is not known yet.
    found: Option<u32>,
    looked: std::time::Instant,
    trouble: Option<String>,
}

struct Running {
    /// Dropped to end it.
    end: Option<oneshot::Sender<()>>,
    address: Option<NodeParams>,
    /// The CPU time that its processes had used at the last look.
    cpu_used: Option<f64>,
    /// The CPU time that it has used since it was ready, seconds.
    cpu_s: f64,
}

/// Runs a provider until its wires are let go, and all its nodes have ended that do not outlive it.
pub(crate) async fn run<H: Host>(host: H, params: LifecycleParams, mut wires: Wires) {
    let (reports, mut reported) = mpsc::channel(REPORTS_MAX);
    let mut manager = Manager {
        host: Arc::new(host),
        began: std::time::Instant::now(),
        nodes: Lifecycle::new(params),
        running: HashMap::new(),
        tasks: JoinSet::new(),
        reports,
        closing: watch::Sender::new(false),
        cpu_of_gone: 0.0,
        tells_cpu: false,
        is_crowded: false,
        found: None,
        looked: std::time::Instant::now(),
        trouble: None,
    };
    if manager.begin(&mut wires).await.is_none() {
        return;
    }
    let mut show = interval(LOOK_EVERY);
    show.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        manager.act(&wires).await;
        let due = manager.nodes.poll_timeout().map(|at| at.since(manager.now()));
        tokio::select! {
            changed = wires.wanted.changed() => match changed {
                Ok(()) => {
                    let wanted = *wires.wanted.borrow_and_update();
                    manager.nodes.set_wanted(manager.now(), wanted);
                }
                Err(_) => break,
            },
            Some(word) = wires.words.recv() => manager.hear(&word),
            // The manager has a sender, so that there is always a next one.
            Some(report) = reported.recv() => manager.note(report, &wires).await,
            _ = show.tick() => {}
            () = sleep(due.unwrap_or(LOOK_EVERY)) => manager.nodes.handle_timeout(manager.now()),
        }
        manager.show(&wires.view);
    }
    if H::OUTLIVES {
        manager.let_go(&mut reported).await;
    }
    manager.running.clear();
    // Nobody reads what they report any more.
    drop(reported);
    while manager.tasks.join_next().await.is_some() {}
}

impl<H: Host> Manager<H> {
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.began.elapsed()
    }

    /// Takes in the nodes that ran before us, as many as are wanted at the least. `None`: it is to end.
    async fn begin(&mut self, wires: &mut Wires) -> Option<()> {
        let found = self.list(wires).await?;
        // Those that run are worth keeping until the law has seen what comes.
        let wanted = *wires.wanted.borrow_and_update();
        let wanted = wanted.max(self.nodes.serving_of(u32::try_from(found.len()).unwrap_or(u32::MAX)));
        for (node, address) in found {
            let Some(id) = self.nodes.adopt(self.now()) else { break };
            self.watch(id, node, address);
        }
        self.nodes.set_wanted(self.now(), wanted);
        self.act(wires).await;
        self.found = Some(self.nodes.count().serving);
        self.show(&wires.view);
        Some(())
    }

    /// Returns the nodes that ran before us. As long as they are not known none is started: those that run
    /// may be enough.
    async fn list(&mut self, wires: &mut Wires) -> Option<Vec<(H::Node, NodeParams)>> {
        let host = Arc::clone(&self.host);
        for tries in 0.. {
            let trouble = tokio::select! {
                listed = host.list() => match listed {
                    Ok(found) => {
                        self.trouble = None;
                        return Some(found);
                    }
                    Err(trouble) => trouble,
                },
                () = is_let_go(&mut wires.wanted) => return None,
            };
            self.complain(trouble);
            self.show(&wires.view);
            tokio::select! {
                () = sleep(back_off(tries)) => {}
                () = is_let_go(&mut wires.wanted) => return None,
            }
        }
        None
    }

    /// Leaves the nodes to themselves, and waits for what they are still told: a start that is cut off may
    /// leave a node of which nobody knows.
    async fn let_go(&mut self, reported: &mut mpsc::Receiver<Report>) {
        self.closing.send_replace(true);
        let within = self.host.patience();
        let all = async {
            loop {
                tokio::select! {
                    ended = self.tasks.join_next() => if ended.is_none() { break },
                    // So that there is always room for one more.
                    Some(_) = reported.recv() => {}
                }
            }
        };
        if timeout(within, all).await.is_err() {
            tracing::warn!(
                "programs that start and end nodes still run after {} s, and go on by themselves",
                within.as_secs_f64()
            );
            self.tasks.shutdown().await;
        }
    }

    /// Returns what tells a node to end.
    fn told(&self, id: BorrowedId, end: oneshot::Receiver<()>) -> Told {
        Told { id, end, closing: self.closing.subscribe(), reports: self.reports.clone() }
    }

    /// Does what the life of nodes asks for.
    async fn act(&mut self, wires: &Wires) {
        while let Some(output) = self.nodes.poll_output() {
            let address = |id| self.running.get(&id).and_then(|it: &Running| it.address.clone());
            let event = match output {
                LifecycleOutput::Start(id) => {
                    self.start(id);
                    None
                }
                LifecycleOutput::Serve(id) => address(id).map(NodeEvent::Ready),
                LifecycleOutput::Drain(id) => address(id).map(NodeEvent::Draining),
                LifecycleOutput::End(id) => {
                    let event = address(id).map(NodeEvent::Gone);
                    if let Some(node) = self.running.get_mut(&id) {
                        node.end = None;
                    }
                    event
                }
            };
            if let Some(event) = event {
                // Nobody listens any more: then `wanted` says so, too.
                let _ = wires.events.send(event).await;
            }
        }
    }

    fn hear(&mut self, word: &NodeWord) {
        let (NodeWord::Empty(address)
        | NodeWord::Lost(address)
        | NodeWord::Down(address)
        | NodeWord::Up(address)) = word;
        // One that ends may have left its address to one that was started later.
        let is_meant = |id: BorrowedId, node: &Running| {
            node.address.as_ref() == Some(address) && self.nodes.state(id) != Some(LifecycleState::Ending)
        };
        let found = self.running.iter().filter(|(id, node)| is_meant(**id, node)).map(|(id, _)| *id).max();
        let Some(id) = found else { return };
        match word {
            NodeWord::Empty(_) => self.nodes.handle_empty(self.now(), id),
            NodeWord::Lost(_) => {
                tracing::warn!(node = %address, "a node answers nothing: it is ended and replaced");
                self.nodes.handle_lost(self.now(), id);
            }
            NodeWord::Down(_) => self.nodes.handle_health(id, true),
            NodeWord::Up(_) => self.nodes.handle_health(id, false),
        }
    }

    async fn note(&mut self, report: Report, wires: &Wires) {
        match report {
            Report::Ready(id, address) => {
                if let Some(node) = self.running.get_mut(&id) {
                    node.address = Some(address);
                }
                self.trouble = None;
                self.nodes.handle_ready(self.now(), id);
            }
            Report::Gone(id, trouble) => {
                let node = self.running.remove(&id);
                self.cpu_of_gone += node.as_ref().map_or(0.0, |node| node.cpu_s);
                let was_ending = self.nodes.state(id) == Some(LifecycleState::Ending);
                if let Some(address) = node.and_then(|node| node.address).filter(|_| !was_ending) {
                    let _ = wires.events.send(NodeEvent::Gone(address)).await;
                }
                trouble.into_iter().for_each(|trouble| self.complain(trouble));
                self.nodes.handle_gone(self.now(), id);
            }
            Report::Trouble(trouble) => self.complain(trouble),
            Report::Stuck(id, is_stuck) => self.nodes.handle_stuck(self.now(), id, is_stuck),
            Report::Well => self.trouble = None,
        }
    }

    fn complain(&mut self, trouble: String) {
        tracing::warn!("{trouble}");
        self.trouble = Some(trouble);
    }

    fn start(&mut self, id: BorrowedId) {
        let (end, ended) = oneshot::channel();
        self.running.insert(id, Running { end: Some(end), address: None, cpu_used: None, cpu_s: 0.0 });
        let (host, reports, mut told) = (Arc::clone(&self.host), self.reports.clone(), self.told(id, ended));
        self.tasks.spawn(async move {
            let trouble = match host.start_unless_told(&mut told).await {
                None => None,
                Some(Err(trouble)) => Some(trouble),
                Some(Ok((node, address))) => {
                    let _ = reports.send(Report::Ready(id, address)).await;
                    live(&*host, node, told).await
                }
            };
            let _ = reports.send(Report::Gone(id, trouble)).await;
        });
    }

    /// Watches a node that runs already.
    fn watch(&mut self, id: BorrowedId, node: H::Node, address: NodeParams) {
        let (end, ended) = oneshot::channel();
        self.running
            .insert(id, Running { end: Some(end), address: Some(address), cpu_used: None, cpu_s: 0.0 });
        let (host, reports, told) = (Arc::clone(&self.host), self.reports.clone(), self.told(id, ended));
        self.tasks.spawn(async move {
            let trouble = live(&*host, node, told).await;
            let _ = reports.send(Report::Gone(id, trouble)).await;
        });
    }

    /// Shows what the nodes do now.
    fn show(&mut self, view: &watch::Sender<ProviderView>) {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = std::time::Instant::now();
            self.look();
        }
        let of_running: f64 = self.running.values().map(|node| node.cpu_s).sum();
        let cpu_s = self.tells_cpu.then_some(self.cpu_of_gone + of_running);
        let count = self.nodes.count();
        let now = ProviderView {
            starting: count.starting,
            parked: count.parked,
            stuck: count.stuck,
            start_s: self.nodes.start_s(),
            cpu_s,
            is_crowded: self.is_crowded,
            found: self.found,
            trouble: self.trouble.clone(),
        };
        view.send_if_modified(|was| std::mem::replace(was, now.clone()) != now);
    }
}

impl<H: Host> Manager<H> {
    /// Looks at how much CPU time the nodes have used.
    fn look(&mut self) {
        let (mut nodes, addresses): (Vec<_>, Vec<_>) = self
            .running
            .values_mut()
            .filter_map(|it| it.address.as_ref().map(|at| ((&mut it.cpu_used, &mut it.cpu_s), at)))
            .unzip();
        let used = self.host.cpu_s(&addresses);
        self.tells_cpu = used.is_some();
        self.is_crowded = self.host.is_crowded();
        for ((used_before, all), used) in nodes.iter_mut().zip(used.into_iter().flatten()) {
            // What it has used before the first look was its start, and is nobody's request.
            **all += (used - used_before.replace(used).unwrap_or(used)).max(0.0);
        }
    }
}

/// Waits until a node ends, or is told to, and returns what went wrong.
async fn live<H: Host>(host: &H, mut node: H::Node, mut told: Told) -> Option<String> {
    tokio::select! {
        word = told.word() => match word {
            Word::End => host.end_for_good(node, &mut told).await,
            // It goes on without us.
            Word::Closing => None,
        },
        last_words = host.ended(&mut node) => Some(last_words),
    }
}

/// Waits until nobody wants nodes any more.
async fn is_let_go(wanted: &mut watch::Receiver<u32>) {
    while wanted.changed().await.is_ok() {}
}

/// Returns the wait after so many tries that failed, and one.
pub(crate) fn back_off(tries: u32) -> Duration {
    Duration::from_secs(1 << tries.min(6)).min(Duration::from_secs(u64::from(START_BACK_OFF_S_MAX)))
}

/// What a node is told, and whom its task tells of trouble.
pub(crate) struct Told {
    id: BorrowedId,
    end: oneshot::Receiver<()>,
    closing: watch::Receiver<bool>,
    reports: mpsc::Sender<Report>,
}

/// What a node is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// To end.
    End,
    /// That the gateway ends, which nodes that outlive it have nothing to do with.
    Closing,
}

impl Told {
    /// Waits for the next word; not to be called again after [`Word::End`].
    pub(crate) async fn word(&mut self) -> Word {
        tokio::select! {
            // Senders are dropped to say so, and all nodes are let go of before they are.
            biased;
            _ = self.closing.wait_for(|closing| *closing) => Word::Closing,
            _ = &mut self.end => Word::End,
        }
    }

    /// Waits until the gateway ends.
    pub(crate) async fn is_closing(&mut self) {
        let _ = self.closing.wait_for(|closing| *closing).await;
    }

    /// Shows trouble that is not the end of it.
    pub(crate) async fn complain(&self, trouble: String) {
        let _ = self.reports.send(Report::Trouble(trouble)).await;
    }

    /// Says that the node could not be ended, and whether it is still there.
    pub(crate) async fn is_stuck(&self, is_there: bool) {
        let _ = self.reports.send(Report::Stuck(self.id, is_there)).await;
    }

    /// Takes back what it complained of.
    pub(crate) async fn is_well(&self) {
        let _ = self.reports.send(Report::Well).await;
    }
}
