//! Nodes that come and go during a run: the life of nodes and the law of their number are those of the
//! gateway, and so is what the law is told.

use super::{Event, NODES, Run};
use crate::cluster::NodeRule;
use crate::node::Node;
use crate::scenario::{NodesSetup, Scenario};
use std::collections::BTreeMap;
use suimon_fleet::lifecycle::{BorrowedId, Lifecycle, LifecycleOutput, LifecycleParams};
use suimon_fleet::scaling::{Scaling, ScalingMeter, ScalingParams, ScalingSeen};
use suimon_model::{Duration, Instant, NodeId, Rng};

/// A separate random stream, so that more draws in one place never change another.
const STARTS: u64 = 0x57A7;

/// The shortest time over which the processors' utilisation is computed.
const UTILISATION_SECONDS: f64 = 0.2;

/// The nodes of a run.
#[derive(Debug)]
pub(super) struct Nodes {
    setup: NodesSetup,
    rule: Box<dyn NodeRule>,
    life: Lifecycle,
    meter: ScalingMeter,
    /// Where those are that serve or drain.
    places: BTreeMap<BorrowedId, NodeId>,
    draining: Vec<BorrowedId>,
    rng: Rng,
    /// Nodes added so far: each has a random stream of its own.
    added: u64,
    /// Core-seconds in use and CPU seconds of work, of nodes that are gone.
    gone: (f64, f64),
    pub(super) node_seconds: f64,
    counted: Instant,
}

impl Nodes {
    /// Returns the nodes of `scenario`, of which none serves yet; `None`: they do not come and go. `rule`:
    /// what decides in place of the scenario's law.
    pub(super) fn of(scenario: &Scenario, seed: u64, rule: Option<Box<dyn NodeRule>>) -> Option<Nodes> {
        let setup = scenario.scaling?;
        let params = ScalingParams { present: scenario.nodes, least: setup.least, most: setup.most };
        let never = Duration::from_secs(86_400);
        Some(Nodes {
            setup,
            rule: rule.unwrap_or_else(|| Box::new(Scaling::new(setup.law, params))),
            life: Lifecycle::new(LifecycleParams {
                parked: setup.parked,
                most: setup.most,
                start_within: never,
                drain_within: never,
            }),
            meter: ScalingMeter::new(scenario.machine.cores),
            places: BTreeMap::new(),
            draining: vec![],
            rng: Rng::stream(seed, STARTS),
            added: 0,
            gone: (0.0, 0.0),
            node_seconds: 0.0,
            counted: Instant::ORIGIN,
        })
    }

    /// Returns how many there are, whatever they do: each costs the same.
    pub(super) fn present(&self) -> u32 {
        let count = self.life.count();
        count.starting + count.parked + count.serving + count.draining
    }

    fn count(&mut self, now: Instant) {
        self.node_seconds += f64::from(self.present()) * now.secs_since(self.counted);
        self.counted = now;
    }
}

impl Run<'_> {
    /// Has those serve that are there at the start.
    pub(super) fn begin_nodes(&mut self) -> Result<(), String> {
        let first = self.scenario.nodes;
        let Some(nodes) = &mut self.scaled else { return Ok(()) };
        for _ in 0..first {
            nodes.life.adopt(Instant::ORIGIN).ok_or("more nodes at the start than there may be")?;
        }
        nodes.life.set_wanted(Instant::ORIGIN, first);
        let every = nodes.rule.every();
        self.settle_nodes(Instant::ORIGIN)?;
        self.at(Instant::ORIGIN + every, Event::Scale);
        Ok(())
    }

    /// A node that was ordered is ready.
    pub(super) fn node_ready(&mut self, now: Instant, id: BorrowedId) -> Result<(), String> {
        let Some(nodes) = &mut self.scaled else { return Ok(()) };
        nodes.count(now);
        nodes.life.handle_ready(now, id);
        self.settle_nodes(now)
    }

    /// Has the law decide.
    pub(super) fn scale(&mut self, now: Instant) -> Result<(), String> {
        let (busy, _) = self.usage(now);
        let mut asked = self.gate.snapshot(now).asked();
        let visits = || self.gate.learned().kinds.iter().map(|kind| kind.visits.iter().sum()).collect();
        let Some(nodes) = &mut self.scaled else { return Ok(()) };
        if !nodes.setup.sees_newcomers {
            asked.newcomers.clear();
        }
        let count = nodes.life.count();
        let seen = ScalingSeen {
            asked,
            cpu_s: Some(busy),
            serving: count.serving,
            starting: count.starting,
            start_s: if count.parked > 0 { Some(0.0) } else { nodes.life.start_s() },
            ..ScalingSeen::default()
        };
        if let Some(sample) = nodes.meter.measure(now, &seen, visits) {
            let wanted = nodes.rule.decide(now, &sample).clamp(nodes.setup.least, nodes.setup.most);
            nodes.count(now);
            nodes.life.set_wanted(now, wanted);
        }
        let next = now + nodes.rule.every();
        self.at(next, Event::Scale);
        self.settle_nodes(now)
    }

    /// Lets nodes go that drain and have nothing left.
    pub(super) fn let_go(&mut self, now: Instant) -> Result<(), String> {
        let Some(nodes) = self.scaled.as_mut().filter(|nodes| !nodes.draining.is_empty()) else {
            return Ok(());
        };
        nodes.count(now);
        for id in nodes.draining.clone() {
            let place = nodes.places[&id];
            if self.fleet.remove_node(now, place) {
                nodes.places.remove(&id);
                nodes.draining.retain(|other| *other != id);
                let usage = self.nodes[place.index()].usage(now);
                nodes.gone = (nodes.gone.0 + usage.busy, nodes.gone.1 + usage.work);
                self.nodes[place.index()] = Node::new(self.machine.clone(), Rng::stream(self.seed, NODES));
                nodes.life.handle_empty(now, id);
            }
        }
        self.settle_nodes(now)
    }

    /// Does what the life of nodes asks for, and tells the gate how many serve.
    fn settle_nodes(&mut self, now: Instant) -> Result<(), String> {
        let before = self.serving();
        while let Some(output) = self.scaled.as_mut().and_then(|nodes| nodes.life.poll_output()) {
            let Some(nodes) = &mut self.scaled else { break };
            match output {
                LifecycleOutput::Start(id) => {
                    let (least, most) = nodes.setup.start;
                    let takes = least + most.saturating_sub(least).mul_f64(nodes.rng.uniform());
                    self.at(now + takes, Event::NodeReady(id));
                }
                LifecycleOutput::Serve(id) => {
                    nodes.draining.retain(|other| *other != id);
                    match nodes.places.get(&id) {
                        Some(place) => self.fleet.drain(now, *place, false),
                        None => self.add_node(now, id)?,
                    }
                }
                LifecycleOutput::Drain(id) => {
                    nodes.draining.push(id);
                    self.fleet.drain(now, nodes.places[&id], true);
                }
                LifecycleOutput::End(id) => nodes.life.handle_gone(now, id),
            }
        }
        let serving = self.serving();
        if serving != before {
            self.gate.handle_nodes(now, before, serving);
            self.drain_gate(now)?;
        }
        // One that drains and has nothing goes at once.
        let is_empty = |id: &BorrowedId| {
            let place = self.scaled.as_ref().and_then(|nodes| nodes.places.get(id));
            place.is_some_and(|place| self.fleet.in_flight(*place) == 0)
        };
        if self.scaled.as_ref().is_some_and(|nodes| nodes.draining.iter().any(is_empty)) {
            return self.let_go(now);
        }
        Ok(())
    }

    fn add_node(&mut self, now: Instant, id: BorrowedId) -> Result<(), String> {
        let place = self.fleet.add_node(now).map_err(|_| "more nodes than a fleet can have")?;
        let Some(nodes) = &mut self.scaled else { return Ok(()) };
        nodes.places.insert(id, place);
        nodes.added += 1;
        let node = Node::new(self.machine.clone(), Rng::stream(self.seed, NODES + nodes.added));
        match self.nodes.get_mut(place.index()) {
            Some(free) => *free = node,
            None => {
                self.nodes.push(node);
                self.node_wakes.push(Instant::FAR_FUTURE);
            }
        }
        Ok(())
    }

    /// Returns how many nodes take new requests.
    pub(super) fn serving(&self) -> u32 {
        match &self.scaled {
            None => self.scenario.nodes,
            Some(nodes) => (nodes.places.len() - nodes.draining.len()) as u32,
        }
    }

    /// Returns core-seconds in use and CPU seconds of work since the start, of all nodes that ever were.
    pub(super) fn usage(&mut self, now: Instant) -> (f64, f64) {
        let gone = self.scaled.as_ref().map_or((0.0, 0.0), |nodes| nodes.gone);
        self.nodes.iter_mut().fold(gone, |(busy, work), node| {
            let usage = node.usage(now);
            (busy + usage.busy, work + usage.work)
        })
    }

    /// Returns how many nodes there are, and node-seconds since the start.
    pub(super) fn present(&mut self, now: Instant) -> (u32, f64) {
        match &mut self.scaled {
            None => (self.scenario.nodes, f64::from(self.scenario.nodes) * now.as_secs_f64()),
            Some(nodes) => {
                nodes.count(now);
                (nodes.present(), nodes.node_seconds)
            }
        }
    }

    /// Sets the processors' utilisation since about the last tick of the gate.
    pub(super) fn tell_utilisation(&mut self, now: Instant) {
        let (told, busy_then) = self.cpu_told;
        let passed = now.secs_since(told);
        if passed < UTILISATION_SECONDS {
            return;
        }
        let (busy, _) = self.usage(now);
        let cores = self.scenario.machine.cores * f64::from(self.serving().max(1));
        self.cpu.set(((busy - busy_then) / (passed * cores)).clamp(0.0, 1.0));
        self.cpu_told = (now, busy);
    }
}
