//! How many nodes should serve: enough that nobody waits long, and no more.
//!
//! Nodes that are asked for are there only after a start, and cost something from then on. So the law
//! weighs two things against each other: work that waits, and nodes that will be idle. One number says
//! which counts more: the *eagerness* e, from 0 (as few nodes as possible) to 1 (as short waits as
//! possible).
//!
//! *Law*. Every half second, with the work of a visit c (node-seconds), the visits that begin per second λ,
//! what of λ has lasted for ten seconds λ̲, the work R that waits, and the time L that a node takes to start:
//!
//! ```text
//! base  = c (e λ + (1 − e) λ̲)                      nodes that what comes keeps busy                  (1)
//! extra = min(k √R, R / max(L, 1 s))                nodes that work off what waits                    (2)
//! k     = 0.2 (0.1 + e) / (1.1 − e)
//! λ̲     = min(λ, m + √(m / 2 s)), m the least λ of ten seconds
//! n′    = base + extra, rounded, at once, if that is more; nodes that start count                     (3)
//! n′    = the greatest of (3) in the last 2^f max(2 L, 0.5 s), if that is less                        (4)
//! ```
//!
//! Nothing is given back while somebody waits to be let in: the gate holds back what the nodes could be asked
//! for. f is the *flap budget* overdrawn: how often a move was undone within ten windows, beyond twelve, one of
//! which is forgotten each minute. So where chance moves the need around a whole number for long, the larger one
//! stays. The window grows to a minute at most.
//!
//! A rise that ends within ten seconds is worked off rather than followed, the more so the less eager
//! the law is. The root in (2) is what costs least where waiting costs in proportion to the work that waits,
//! and nodes in proportion to the square of their number, as the next one is dearer than the last: of all ways
//! to work R off, −dR/dt = k √R has the least ∫ (R + (dR/dt)² / k²) dt. What waits is gone after 2 √R / k.
//! Nodes that come too late for it are not ordered: R / L.
//!
//! R counts only what is beyond the half second of work that each node always has. λ jumps at once if
//! it is more than three standard deviations of a Poisson process beyond its mean of the last second.
//!
//! Where nodes are full and their processors idle, the work is measured by how full they are (`meter`), and nodes
//! are ordered on trial: if more of them serve no more, they go back (`gain`).
//!
//! *The papers' rule* ([`ScalingLaw::Seed`]): every `interval`, with the mean length ℓ of the run
//! queues of n nodes over the last 100 ms:
//!
//! ```text
//! ℓ > load_max                                     one node more                                      (5)
//! ℓ < (n − 1)(load_max − 1) / n                    the newest node less                               (6)
//! ```
//!
//! After (6) the mean is at most n ℓ / (n − 1) < load_max − 1, so (5) never undoes it at once, even if there
//! is one task more on each node by then. After (5) it is above n load_max / (n + 1), so neither does (6).
//!
//! *Signals*: arrivals, node-seconds of work, requests present, starts, run queues. *Units*: nodes,
//! seconds. *Limits*: `least` to `most`; with no report from a node, (5) and (6) change nothing. *Source*:
//! P4 §3.2 for (5) and (6); (1) to (4) begin with LAWS §6.2 of the design, and differ from it in what counts
//! as lasting, and in the root.

mod api;
mod demand;
mod gain;
mod meter;
mod seed;

pub use api::{EAGERNESS, ScalingLaw, ScalingMove, ScalingParams, ScalingReason, ScalingSample};
use demand::Demand;
pub use meter::{ScalingMeter, ScalingSeen};
use suimon_model::{Duration, Instant};

/// The law of an upstream's number of nodes.
#[derive(Clone, Debug)]
pub struct Scaling {
    params: ScalingParams,
    law: Law,
    wanted: u32,
}

#[derive(Clone, Debug)]
enum Law {
    Demand(Box<Demand>),
    Seed { interval: Duration, load_max: f64 },
    Fixed,
}

impl Scaling {
    /// Returns the law, which begins with the nodes that are there.
    pub fn new(law: ScalingLaw, params: ScalingParams) -> Self {
        let most = params.most.max(params.least);
        let params = ScalingParams { most, ..params };
        let present = params.present.clamp(params.least, most);
        let (law, wanted) = match law {
            ScalingLaw::Demand { eagerness } => (Law::Demand(Box::new(Demand::new(eagerness))), present),
            ScalingLaw::Seed { interval, load_max } => (Law::Seed { interval, load_max }, present),
            ScalingLaw::Fixed(nodes) => (Law::Fixed, nodes.clamp(params.least, most)),
        };
        Scaling { params, law, wanted }
    }

    /// Returns how often [`Scaling::on_tick`] is to be called.
    pub fn every(&self) -> Duration {
        match self.law {
            Law::Seed { interval, .. } => interval,
            Law::Demand(_) | Law::Fixed => demand::EVERY,
        }
    }

    /// Returns how many nodes there should be, starting ones among them.
    pub fn wanted(&self) -> u32 {
        self.wanted
    }

    /// Takes note of what happened since the tick before, and returns the new number, if it changes.
    pub fn on_tick(&mut self, now: Instant, sample: &ScalingSample) -> Option<ScalingMove> {
        let moved = match &mut self.law {
            Law::Demand(demand) => demand.decide(now, self.wanted, &self.params, sample),
            Law::Seed { load_max, .. } => seed::decide(*load_max, self.wanted, &self.params, sample),
            Law::Fixed => None,
        };
        if let Some(moved) = moved {
            self.wanted = moved.wanted;
        }
        moved
    }
}

#[cfg(test)]
mod tests;
