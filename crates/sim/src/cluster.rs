//! A cluster as in the fourth paper: a front end spreads connections over back ends, and a rule says
//! how many of these there are.
//!
//! A client fetches the files of a page view one after the other, over one connection or over one
//! each. A connection goes to a back end once and stays there. In a back end each connection with a
//! request needs a process; a parent process keeps some idle (P4 §3.1):
//!
//! ```text
//! more than 10 idle          one ends                                    once a second
//! fewer than 5 idle          1, 2, 4, 8, 16, 16, … are started           in consecutive seconds
//! ```
//!
//! All processes of a node share its processor evenly. A node that is ordered serves after a start; one
//! that is given back serves what it has, and is gone. Both cost what a serving one costs:
//!
//! ```text
//! n_s = n_i + S / (t_req − t_start)      S: node-seconds beyond the first n_i nodes            (P4 §4)
//! ```
//!
//! *Source*: P4 §3 and §5; the shapes of its workloads B and C, which were in lost figures, and the
//! time of a file are ours: see `experiments/cluster-papers`.

mod back_end;
mod client;
mod run;

pub use run::{ClusterRun, ClusterSecond, View, run_cluster};
use std::fmt;
pub use suimon_fleet::scaling::{Scaling, ScalingLaw, ScalingParams, ScalingSample};
use suimon_model::{Duration, Instant};
use suimon_workload::Arrivals;

/// What is played.
#[derive(Clone, Debug)]
pub struct ClusterSetup {
    /// How page views begin; not for ever.
    pub arrivals: Arrivals,
    /// n_i: nodes at the start, which are never given back.
    pub nodes_first: u32,
    /// The most nodes.
    pub nodes_most: u32,
    /// The shortest and the longest start of a node; all between are as likely.
    pub start: (Duration, Duration),
    /// What clients ask for.
    pub views: PageViews,
    /// How often nodes tell their loads.
    pub reports_every: Duration,
    /// To which node a connection goes.
    pub dispatch: Dispatch,
}

/// To which of the nodes that serve a connection goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// The one that told the lowest load, as in the paper.
    Told,
    /// The one with the lowest load, with what was sent since it was told.
    Corrected,
    /// Of two random ones, the one that told the lower load.
    TwoTold,
    /// One after the other.
    InTurn,
}

/// What clients ask for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PageViews {
    /// The fewest and the most files of a page view; all between are as likely.
    pub files: (u32, u32),
    /// The share of clients that fetch all over one connection.
    pub kept: f64,
    /// Mean time of a static file on the processor, seconds; exponential.
    pub static_s: f64,
    /// The share of files that are made when they are asked for.
    pub dynamic: f64,
    /// Their shortest and longest time on the processor, seconds; all of equal ratio are as likely.
    pub dynamic_s: (f64, f64),
}

impl PageViews {
    /// Returns the mean time of a page view on the processor, seconds.
    pub fn mean_s(&self) -> f64 {
        let (low, high) = self.dynamic_s;
        let dynamic = (high - low) / suimon_model::real::ln(high / low);
        let files = f64::from(self.files.0 + self.files.1) / 2.0;
        files * (self.dynamic * dynamic + (1.0 - self.dynamic) * self.static_s)
    }
}

/// A rule for the number of nodes.
pub trait NodeRule: fmt::Debug {
    /// Returns how often it decides.
    fn every(&self) -> Duration;

    /// Returns how many nodes there should be, starting ones among them.
    fn decide(&mut self, now: Instant, sample: &ScalingSample) -> u32;
}

impl NodeRule for Scaling {
    fn every(&self) -> Duration {
        Scaling::every(self)
    }

    fn decide(&mut self, now: Instant, sample: &ScalingSample) -> u32 {
        let _ = self.on_tick(now, sample);
        self.wanted()
    }
}
