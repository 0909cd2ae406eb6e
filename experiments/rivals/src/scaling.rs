//! Rules of others for the number of nodes, as their documentation describes them.
//!
//! - [`NodeRival::HpaCpu`]: the horizontal autoscaler of Kubernetes on the processor's use. Every 15 s
//!   n′ = ⌈n · use / target⌉, unless use / target is within 0.9 to 1.1; at most four more or twice as
//!   many per round; the greatest n′ of five minutes counts for fewer. What it sees is the mean of the
//!   last 15 s, 15 s old, as its metrics come.
//! - [`NodeRival::Keda`]: the same autoscaler on the requests per node, which KEDA hands to it at once.
//! - [`NodeRival::Kpa`]: Knative's. Every 2 s n′ = ⌈requests / target⌉ of the mean of the last minute;
//!   where the mean of the last 6 s asks for twice the nodes that are there, it panics for a minute:
//!   then the greater of the two counts, and no node is given back. At most half are given back at once.
//!
//! *In their favour*: nodes start in 0.25 to 0.4 s here, and each rule has the target with which it
//! does best. *Not modelled*: readiness of pods, node provisioning.

use std::collections::VecDeque;
use suimon_model::{Duration, Instant};
use suimon_sim::cluster::NodeRule;
use suimon_sim::cluster::ScalingSample;

/// Seconds between two decisions of HPA, and how old and how long the processor's use is.
const HPA_EVERY: usize = 15;
const HPA_TOLERANCE: f64 = 0.1;
/// Seconds over which the greatest wish counts before nodes are given back.
const HPA_CALM: usize = 300;
const KPA_EVERY: usize = 2;
const KPA_STABLE: usize = 60;
const KPA_PANIC: usize = 6;
const KPA_PANIC_FACTOR: f64 = 2.0;
const KPA_DOWN_FACTOR: f64 = 2.0;
const SECOND: Duration = Duration::from_secs(1);

/// A published rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeRival {
    /// Kubernetes' HPA on the processor's use.
    HpaCpu,
    /// HPA on requests per node, by way of KEDA.
    Keda,
    /// Knative's KPA on requests per node.
    Kpa,
}

impl NodeRival {
    /// Every rule.
    pub const ALL: [NodeRival; 3] = [NodeRival::HpaCpu, NodeRival::Keda, NodeRival::Kpa];

    /// Returns the name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            NodeRival::HpaCpu => "HPA on CPU",
            NodeRival::Keda => "KEDA (HPA on requests)",
            NodeRival::Kpa => "KPA on requests",
        }
    }

    /// Returns the rule. `target`: the use, or the requests, that a node is to have. `phase`: seconds
    /// into its period at the start. `nodes`: those that are there.
    pub fn rule(self, target: f64, phase: usize, nodes: u32) -> Box<dyn NodeRule> {
        let seen = VecDeque::new();
        match self {
            NodeRival::HpaCpu | NodeRival::Keda => {
                let by_requests = self == NodeRival::Keda;
                Box::new(Hpa { target, by_requests, second: phase, nodes, seen, wishes: VecDeque::new() })
            }
            NodeRival::Kpa => Box::new(Kpa { target, second: phase, nodes, seen, panics: None }),
        }
    }
}

#[derive(Debug)]
struct Hpa {
    target: f64,
    by_requests: bool,
    second: usize,
    nodes: u32,
    /// By second, the newest last.
    seen: VecDeque<f64>,
    /// With the second of each.
    wishes: VecDeque<(usize, u32)>,
}

impl NodeRule for Hpa {
    fn every(&self) -> Duration {
        SECOND
    }

    fn decide(&mut self, _now: Instant, sample: &ScalingSample) -> u32 {
        let each = f64::from(sample.serving.max(1));
        self.seen.push_back(if self.by_requests {
            f64::from(sample.requests) / each
        } else {
            sample.work_s / each
        });
        self.second += 1;
        if !self.second.is_multiple_of(HPA_EVERY) {
            return self.nodes;
        }
        // The processor's use is the mean of 15 s, and 15 s old.
        let (skip, take) = if self.by_requests { (0, 1) } else { (HPA_EVERY, HPA_EVERY) };
        let seen: Vec<f64> = self.seen.iter().rev().skip(skip).take(take).copied().collect();
        if seen.is_empty() {
            return self.nodes;
        }
        let ratio = seen.iter().sum::<f64>() / seen.len() as f64 / self.target;
        let is_near = (ratio - 1.0).abs() <= HPA_TOLERANCE;
        let wish = if is_near { self.nodes } else { (f64::from(self.nodes) * ratio).ceil() as u32 };
        self.wishes.push_back((self.second, wish));
        self.wishes.retain(|(at, _)| self.second - at <= HPA_CALM);
        let calm = self.wishes.iter().map(|(_, wish)| *wish).max().unwrap_or(wish);
        self.nodes = if wish > self.nodes {
            wish.min((2 * self.nodes).max(self.nodes + 4))
        } else {
            calm.min(self.nodes)
        };
        self.nodes
    }
}

#[derive(Debug)]
struct Kpa {
    target: f64,
    second: usize,
    nodes: u32,
    seen: VecDeque<f64>,
    /// The second in which it last had a reason to panic.
    panics: Option<usize>,
}

impl NodeRule for Kpa {
    fn every(&self) -> Duration {
        SECOND
    }

    fn decide(&mut self, _now: Instant, sample: &ScalingSample) -> u32 {
        self.seen.push_back(f64::from(sample.requests));
        if self.seen.len() > KPA_STABLE {
            self.seen.pop_front();
        }
        self.second += 1;
        if !self.second.is_multiple_of(KPA_EVERY) {
            return self.nodes;
        }
        let mean = |seconds: usize| {
            let taken = seconds.min(self.seen.len()).max(1);
            self.seen.iter().rev().take(taken).sum::<f64>() / taken as f64
        };
        let (stable, panic) = (mean(KPA_STABLE) / self.target, mean(KPA_PANIC) / self.target);
        if panic >= KPA_PANIC_FACTOR * f64::from(sample.serving) {
            self.panics = Some(self.second);
        }
        let is_panic = self.panics.is_some_and(|at| self.second - at <= KPA_STABLE);
        let least = (f64::from(self.nodes) / KPA_DOWN_FACTOR).floor();
        let wish = if is_panic { stable.max(panic).max(f64::from(self.nodes)) } else { stable.max(least) };
        self.nodes = wish.ceil().max(1.0) as u32;
        self.nodes
    }
}
