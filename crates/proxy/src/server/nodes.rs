//! Nodes that come and go: the law of their number is told what happens at the gate and at the nodes,
//! the provider what the law wants, and the way to the application which nodes there are.

mod roster;

use crate::backend::Backend;
use crate::nodes_report::NodesReport;
pub(super) use roster::Roster;
use std::sync::Arc;
use std::time::Duration;
use suimon_cluster::{NodeEvent, NodeWord, Provided, Provider};
use suimon_fleet::scaling::{Scaling, ScalingMeter, ScalingMove, ScalingParams, ScalingSample, ScalingSeen};
use suimon_model::{Instant, NodeId, PoolId};
use suimon_params::nodes::{NodesParams, ScalingLaw};
use suimon_upstream::{Upstream, UpstreamNodeView};
use tokio::time::{MissedTickBehavior, interval};

/// How often nodes that drain are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a node's checks must have failed until another takes its place, ...
const LOST_AFTER: Duration = Duration::from_secs(10);
/// ... and the least time from one such node to the next: that many fail is rather something that they
/// share, and starting them again would not help.
const LOST_EVERY: Duration = Duration::from_secs(30);

/// Keeps as many nodes as their law asks for, until `shutdown` is done and those have ended that the
/// gateway started.
pub(super) async fn keep(
    backend: Arc<Backend>,
    params: NodesParams,
    provider: Box<dyn Provider>,
    shutdown: impl Future<Output = ()>,
) {
    let upstream = backend.upstream(PoolId(0)).clone();
    let stay = u32::try_from(upstream.view().len()).unwrap_or(u32::MAX);
    let name = provider.name();
    let mut provided = provider.begin(params.least.saturating_sub(stay));
    let mut keeper = Keeper {
        law: law_of(&params, stay),
        has_begun: false,
        meter: ScalingMeter::new(params.processors),
        began: std::time::Instant::now(),
        borrowed: Roster::new(upstream.clone()),
        lost: None,
        last: None,
        stay,
        name,
        backend,
        upstream,
        params,
    };
    let (mut look, mut tick) = (interval(LOOK_EVERY), interval(keeper.law.every()));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(event) = provided.events.recv() => keeper.handle(&event),
            _ = look.tick() => {
                keeper.begin(&provided);
                keeper.look(|word| provided.words.try_send(word).is_ok());
            }
            _ = tick.tick() => keeper.tick(&provided),
        }
    }
    let Provided { wanted, task, .. } = provided;
    drop(wanted);
    // It may have panicked; then its processes have ended with it.
    let _ = task.await;
}

/// Returns the law, which begins with what is there: that a gateway starts is no reason to give nodes back.
fn law_of(params: &NodesParams, present: u32) -> Scaling {
    let (least, most) = (params.least, params.most);
    Scaling::new(params.law, ScalingParams { present: present.clamp(least, most), least, most })
}

struct Keeper {
    backend: Arc<Backend>,
    upstream: Upstream,
    params: NodesParams,
    name: &'static str,
    law: Scaling,
    /// Whether it is known which nodes ran before. Until then the number is held.
    has_begun: bool,
    meter: ScalingMeter,
    began: std::time::Instant,
    /// Nodes that stay.
    stay: u32,
    borrowed: Roster,
    /// When a node was last said to be lost.
    lost: Option<std::time::Instant>,
    last: Option<(ScalingMove, Instant)>,
}

impl Keeper {
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.began.elapsed()
    }

    /// Lets the law begin once it is known which nodes ran before.
    fn begin(&mut self, provided: &Provided) {
        let Some(found) = provided.view.borrow().found.filter(|_| !self.has_begun) else { return };
        self.has_begun = true;
        self.law = law_of(&self.params, self.stay.saturating_add(found));
        let wanted = self.law.wanted().saturating_sub(self.stay);
        // Told even if it is the number it began with: that one did not know what there is.
        provided.wanted.send_replace(wanted);
    }

    fn handle(&mut self, event: &NodeEvent) {
        match event {
            NodeEvent::Ready(address) => {
                if let Err(why) = self.borrowed.serve(address) {
                    tracing::error!(node = %address, "a node cannot be used: {why}");
                }
            }
            NodeEvent::Draining(address) => self.borrowed.drain(address),
            NodeEvent::Gone(address) => self.borrowed.end(address),
        }
    }

    /// Lets nodes go that drain and have nothing left, and says to the provider what it is to know of them.
    /// `say` returns whether that was taken: there is room for more words than there can be nodes.
    fn look(&mut self, mut say: impl FnMut(NodeWord) -> bool) {
        for address in self.borrowed.let_go() {
            tracing::info!(node = %address, "a node is given back");
            say(NodeWord::Empty(address));
        }
        let nodes = self.upstream.view();
        for node in self.borrowed.serving_mut() {
            let Some(seen) = nodes.iter().find(|seen| seen.node == node.id) else { continue };
            let is_down = matches!(seen.status, "down" | "ejected");
            let word = if is_down { NodeWord::Down } else { NodeWord::Up };
            if is_down != node.is_down && say(word(node.address.clone())) {
                node.is_down = is_down;
            }
        }
        if let Some(word) = self.lost(&nodes) {
            say(word);
        }
    }

    /// Returns a node that should be replaced, as its checks fail while those of others pass.
    fn lost(&mut self, nodes: &[UpstreamNodeView]) -> Option<NodeWord> {
        if self.lost.is_some_and(|at| at.elapsed() < LOST_EVERY) {
            return None;
        }
        // What keeps all of them from answering is not mended by a start.
        nodes.iter().find(|node| node.status == "up")?;
        let is_lost = |id: NodeId| {
            let mut lost =
                nodes.iter().filter(|node| node.status == "down" && node.for_the_last >= LOST_AFTER);
            lost.any(|node| node.node == id)
        };
        let node = self.borrowed.serving().find(|node| is_lost(node.id))?;
        self.lost = Some(std::time::Instant::now());
        Some(NodeWord::Lost(node.address.clone()))
    }

    fn tick(&mut self, provided: &Provided) {
        let (now, view) = (self.now(), provided.view.borrow().clone());
        let nodes = self.upstream.view();
        let serving: Vec<_> = nodes.iter().filter(|node| node.status != "draining").collect();
        let picked = |of_borrowed: bool| {
            let nodes = nodes.iter().filter(|node| !of_borrowed || self.borrowed.has(node.node));
            nodes.map(|node| (node.node, node.picked)).collect::<Vec<_>>()
        };
        let seen = ScalingSeen {
            asked: self.backend.keeper.snapshot().asked(),
            cpu_s: view.cpu_s,
            is_crowded: view.is_crowded,
            picked: picked(false),
            picked_of_borrowed: picked(true),
            serving: u32::try_from(serving.len()).unwrap_or(u32::MAX),
            starting: view.starting,
            start_s: if view.parked > 0 { Some(0.0) } else { view.start_s },
        };
        let visits =
            || self.backend.keeper.learned().kinds.iter().map(|kind| kind.visits.iter().sum()).collect();
        let mut sample = self.meter.measure(now, &seen, visits);
        if let Some(sample) = &mut sample {
            // What some nodes do not answer, the others will have to.
            sample.is_held |= serving.iter().any(|node| node.status != "up");
        }
        if matches!(self.params.law, ScalingLaw::Seed { .. }) {
            // The papers' rule goes by this alone, whatever else is known.
            let reports = self.upstream.reports_address().is_some();
            let load = if reports { run_queue(&serving) } else { seen.requests_of_a_node() };
            let unknown = ScalingSample { serving: seen.serving, ..ScalingSample::default() };
            sample = Some(ScalingSample { load, ..sample.unwrap_or(unknown) });
        }
        let sample_of_law = sample.as_ref().filter(|_| self.has_begun);
        let moved = sample_of_law.and_then(|sample| self.law.on_tick(now, sample));
        if let Some(moved) = moved {
            tracing::info!(
                nodes = moved.wanted,
                serving = seen.serving,
                reason = moved.why.code(),
                signal = moved.signal,
                "{} nodes are wanted: {}",
                moved.wanted,
                moved.why.explain()
            );
            self.last = Some((moved, now));
            self.tell_wanted(provided);
        }
        self.backend.nodes.send_replace(Some(NodesReport {
            provider: self.name,
            law: word(self.params.law),
            wanted: self.law.wanted(),
            range: (self.params.least, self.params.most),
            serving: seen.serving,
            draining: u32::try_from(nodes.len() - serving.len()).unwrap_or(u32::MAX),
            busy: self.meter.busy(),
            to_come_s: sample.map_or(0.0, |sample| sample.to_come_s),
            last: self.last.map(|(moved, at)| (moved, now.since(at))),
            view,
        }));
    }

    fn tell_wanted(&self, provided: &Provided) {
        let wanted = self.law.wanted().saturating_sub(self.stay);
        provided.wanted.send_if_modified(|was| std::mem::replace(was, wanted) != wanted);
    }
}

/// Returns the mean length of the run queues of these nodes over the last 100 ms, as their agents report it;
/// `None`: not all of them have said it of late.
fn run_queue(nodes: &[&UpstreamNodeView]) -> Option<f64> {
    let of = |node: &&UpstreamNodeView| {
        let report = node.report.filter(|report| report.is_current)?;
        Some(report.agent?.mean_100ms())
    };
    let sum: f64 = nodes.iter().map(of).sum::<Option<f64>>()?;
    (!nodes.is_empty()).then(|| sum / nodes.len() as f64)
}

/// Returns the word of `nodes.law` that a law is.
fn word(law: ScalingLaw) -> &'static str {
    match law {
        ScalingLaw::Demand { .. } => "demand",
        ScalingLaw::Seed { .. } => "seed",
        ScalingLaw::Fixed(_) => "fixed",
    }
}

#[cfg(test)]
mod asked_tests;
#[cfg(test)]
mod tests;
