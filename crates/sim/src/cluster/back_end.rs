//! A node of the cluster: its processes, the parent that keeps some idle, and its load.

use crate::node::{Efficiency, Job, Machine, Node, Pauses};
use std::collections::VecDeque;
use suimon_fleet::told::ToldLoad;
use suimon_model::{Duration, Instant, Rng};

/// Processes at the start of a node, and the bounds of the idle ones.
const PROCESSES_FIRST: u32 = 10;
const IDLE_MOST: u32 = 10;
const IDLE_LEAST: u32 = 5;
/// The most processes that are started at once.
const SPAWN_MOST: u32 = 16;
/// Ticks over which the load is the mean.
const LOAD_TICKS: usize = 10;

/// What a node is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Starting,
    Serving,
    /// It gets no new connections.
    Draining,
}

#[derive(Debug)]
pub(super) struct BackEnd {
    pub(super) stage: Stage,
    /// The how many-th order it was.
    pub(super) order: u64,
    pub(super) node: Node,
    /// Connections that are open to it.
    pub(super) connections: u32,
    /// When its node wakes next; far in the future if never.
    pub(super) wakes: Instant,
    /// The load as it was last told.
    pub(super) told: ToldLoad,
    processes: u32,
    spawn: u32,
    loads: VecDeque<usize>,
}

impl BackEnd {
    pub(super) fn new((now, reports_every): (Instant, Duration), stage: Stage, order: u64, rng: Rng) -> Self {
        BackEnd {
            stage,
            order,
            node: Node::new(machine(PROCESSES_FIRST), rng),
            connections: 0,
            wakes: Instant::FAR_FUTURE,
            // It has nothing to do yet.
            told: ToldLoad::new(now, 0, 0.0, reports_every),
            processes: PROCESSES_FIRST,
            spawn: 1,
            loads: VecDeque::with_capacity(LOAD_TICKS),
        }
    }

    pub(super) fn handle_arrival(&mut self, now: Instant, id: u64, cpu: f64) {
        let job = Job { id, elsewhere: 0.0, cpu, memory: 0.0, lock: None, pauses: Pauses::default() };
        self.node.handle_arrival(now, job);
    }

    /// What the parent process does once a second.
    pub(super) fn look_after_processes(&mut self, now: Instant) {
        let idle = self.processes.saturating_sub(self.node.in_service() as u32);
        if idle < IDLE_LEAST {
            self.processes += self.spawn;
            self.spawn = (2 * self.spawn).min(SPAWN_MOST);
        } else {
            self.spawn = 1;
            self.processes -= u32::from(idle > IDLE_MOST);
        }
        self.node.handle_change(now, machine(self.processes));
    }

    /// Takes note of the run queue, once a tick.
    pub(super) fn look_at_load(&mut self) {
        if self.loads.len() == LOAD_TICKS {
            self.loads.pop_front();
        }
        self.loads.push_back(self.runs());
    }

    /// Returns the mean length of the run queue over the last ticks; `None`: there was none yet.
    pub(super) fn load(&self) -> Option<f64> {
        let sum: usize = self.loads.iter().sum();
        (!self.loads.is_empty()).then(|| sum as f64 / self.loads.len() as f64)
    }

    /// Returns the length of the run queue.
    pub(super) fn runs(&self) -> usize {
        self.node.in_service().min(self.processes as usize)
    }
}

fn machine(processes: u32) -> Machine {
    Machine {
        cores: 1.0,
        speed: 1.0,
        efficiency: Efficiency::Flat,
        even: true,
        threads: Some(processes),
        connections: None,
        accept: 0.0,
        accept_crowded: 0.0,
    }
}
