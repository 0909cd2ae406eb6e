//! Nodes that are found: by the addresses of their names, or in a file. Whatever the source, those that it
//! names serve, and those that it names no longer drain; a source that cannot say holds what is there.

mod dns;
mod file;

pub(super) use file::check;

use super::nodes::Roster;
use std::future::pending;
use std::time::Duration;
use suimon_fleet::discovery::{Discovery, DiscoveryStep};
use suimon_model::Instant;
use suimon_params::discovery::{DiscoveryParams, DiscoverySource};
use suimon_params::upstream::NodeParams;
use suimon_upstream::Upstream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// How often nodes that drain are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often a source is asked whether there is news.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// The longest wait, at the start, for the first news.
const FIRST_WITHIN: Duration = Duration::from_secs(5);

/// Where nodes are found.
trait Source: Send + 'static {
    /// Returns what there is; `None`: nothing new.
    fn look(&mut self) -> impl Future<Output = Option<News>> + Send;
}

/// What a source has found.
#[derive(Clone, PartialEq, Debug)]
struct News {
    /// All nodes that there are; `None`: it cannot tell.
    nodes: Option<Vec<NodeParams>>,
    /// What keeps it from telling some or all of them.
    trouble: Option<String>,
}

/// Has the nodes that a source finds serve, and no others beside those that stay.
pub(super) struct Follower {
    discovery: Discovery<NodeParams>,
    roster: Roster,
    began: std::time::Instant,
    /// Addresses of the nodes that stay.
    stay: Vec<String>,
    named: Vec<NodeParams>,
    trouble: Option<String>,
    /// Nodes that could not be used, so that each is said once.
    refused: Vec<NodeParams>,
    news: mpsc::Receiver<News>,
    _source: JoinSet<()>,
}

impl Follower {
    /// Begins to follow, and returns once the first nodes serve, or none were found for a while.
    pub(super) async fn begin(upstream: &Upstream, params: &DiscoveryParams) -> Follower {
        let (tell, news) = mpsc::channel(1);
        let mut source = JoinSet::new();
        match params.source.clone() {
            DiscoverySource::Dns { names, every } => {
                source.spawn(ask(dns::Names::new(dns::System, names, every, upstream.watch_up_count()), tell))
            }
            DiscoverySource::File { path, protocol } => {
                source.spawn(ask(file::NodesFile::new(path, protocol, upstream.clone()), tell))
            }
        };
        let mut follower = Follower {
            discovery: Discovery::new(params.drain_within),
            roster: Roster::new(upstream.clone()),
            began: std::time::Instant::now(),
            stay: upstream.view().into_iter().map(|node| node.address).collect(),
            named: Vec::new(),
            trouble: None,
            refused: Vec::new(),
            news,
            _source: source,
        };
        if let Ok(Some(news)) = timeout(FIRST_WITHIN, follower.news.recv()).await {
            follower.take(news);
        }
        follower
    }

    /// Follows until `shutdown` is done.
    pub(super) async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let (mut look, mut again) = (interval(LOOK_EVERY), interval(ASK_EVERY));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => return,
                Some(news) = self.news.recv() => self.take(news),
                _ = look.tick() => self.let_go(),
                _ = again.tick() => self.follow(),
            }
        }
    }

    fn take(&mut self, news: News) {
        match (&self.trouble, &news.trouble) {
            (before, Some(trouble)) if before.as_ref() != Some(trouble) => {
                tracing::warn!("{trouble}; the nodes that are there stay");
            }
            (Some(_), None) => tracing::info!("nodes are found again"),
            _ => {}
        }
        self.trouble = news.trouble;
        if let Some(nodes) = news.nodes {
            let mut known = self.stay.clone();
            self.named.clear();
            for node in nodes {
                // Two names may lead to one node, and a name to one that stays.
                let address = node.to_string();
                if !known.contains(&address) {
                    known.push(address);
                    self.named.push(node);
                }
            }
            self.refused.retain(|node| self.named.contains(node));
            self.follow();
        }
    }

    /// Does what follows from the time and from what was found last.
    fn follow(&mut self) {
        let now = Instant::ORIGIN + self.began.elapsed();
        let mut steps = self.discovery.handle_timeout(now);
        steps.extend(self.discovery.handle_found(now, &self.named));
        for step in steps {
            match step {
                DiscoveryStep::Serve(node) => {
                    if let Err(why) = self.roster.serve(&node) {
                        self.discovery.handle_refused(&node);
                        if !self.refused.contains(&node) {
                            tracing::error!(%node, "a node cannot be used: {why}");
                            self.refused.push(node);
                        }
                    }
                }
                DiscoveryStep::Drain(node) => {
                    tracing::info!(%node, "a node is found no longer, and drains");
                    self.roster.drain(&node);
                }
                DiscoveryStep::End(node) => self.roster.end(&node),
            }
        }
    }

    fn let_go(&mut self) {
        for node in self.roster.let_go() {
            tracing::info!(%node, "a node has nothing left, and is gone");
            self.discovery.handle_empty(&node);
        }
    }
}

/// Asks a source again and again, for as long as somebody listens.
async fn ask(mut source: impl Source, tell: mpsc::Sender<News>) {
    loop {
        if let Some(news) = source.look().await
            && tell.send(news).await.is_err()
        {
            return pending().await;
        }
        sleep(ASK_EVERY).await;
    }
}
