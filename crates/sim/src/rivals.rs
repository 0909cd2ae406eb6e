//! The laws of others, to race against: each written from its published description, with its published numbers.
//!
//! The module doc of each law says what it is, where it is published, and where a number had to be chosen. The rule for
//! choosing: where the published number would leave a law without a decision at the pace of web pages, it is changed in the
//! law's favour.
//!
//! - [`RouteRival`]: rules for the limit of a route. None knows of other routes.
//! - [`SessionRival`]: rules for when a session may begin. A fixed count is [`suimon_control::StaticSessions`].
//! - [`Site`]: what an owner tells a rival, and [`Utilisation`], what the simulator tells it.

mod aimd;
#[cfg(test)]
mod bench;
mod brpc;
mod envoy_gradient;
mod fixed_rate;
mod gradient2;
mod hill_climbing;
mod per_route;
mod sbac;
mod throughput_probing;
mod utilisation;
mod vegas;

pub use per_route::Bounds;
pub use utilisation::Utilisation;

use per_route::PerRoute;
use suimon_control::{RouteLaw, SessionLaw};
use suimon_model::{Instant, KindId};

/// What a rival is told of the site it is put in front of.
#[derive(Clone, Debug)]
pub struct Site {
    /// Processor cores of the application's host.
    pub cores: u32,
    /// How busy these are, for the laws that look: hill climbing and session-based admission control.
    pub cpu: Utilisation,
    /// Sessions per second that the owner has entered, for the fixed rate.
    pub sessions_per_second: f64,
}

/// A published rule for the limit of a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RouteRival {
    /// Netflix concurrency-limits: additive increase, multiplicative decrease.
    Aimd,
    /// Netflix concurrency-limits: Vegas.
    Vegas,
    /// Netflix concurrency-limits: Gradient2.
    Gradient2,
    /// Envoy: the gradient controller of adaptive concurrency.
    EnvoyGradient,
    /// .NET thread pool: hill climbing.
    HillClimbing,
    /// MongoDB: throughput probing of execution control.
    ThroughputProbing,
    /// Apache brpc: the auto concurrency limiter.
    Brpc,
}

impl RouteRival {
    /// Every rule for routes there is.
    pub const ALL: [RouteRival; 7] = [
        RouteRival::Aimd,
        RouteRival::Vegas,
        RouteRival::Gradient2,
        RouteRival::EnvoyGradient,
        RouteRival::HillClimbing,
        RouteRival::ThroughputProbing,
        RouteRival::Brpc,
    ];

    /// Returns the name used in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            RouteRival::Aimd => "aimd",
            RouteRival::Vegas => "vegas",
            RouteRival::Gradient2 => "gradient2",
            RouteRival::EnvoyGradient => "envoy-gradient",
            RouteRival::HillClimbing => "hill-climbing",
            RouteRival::ThroughputProbing => "throughput-probing",
            RouteRival::Brpc => "brpc",
        }
    }

    /// Returns what the rule is, in a line.
    pub const fn describe(self) -> &'static str {
        match self {
            RouteRival::Aimd => "one more for a good answer, a tenth less for a timeout (Netflix AIMDLimit)",
            RouteRival::Vegas => "a short queue, told from the best service time seen (Netflix VegasLimit)",
            RouteRival::Gradient2 => "service times of now against their long mean (Netflix Gradient2Limit)",
            RouteRival::EnvoyGradient => {
                "service times against those at three at once, measured every minute (Envoy adaptive concurrency)"
            }
            RouteRival::HillClimbing => {
                "a square wave on the limit, looked for in the throughput (.NET thread pool)"
            }
            RouteRival::ThroughputProbing => {
                "a tenth more or less, kept if more was done (MongoDB execution control)"
            }
            RouteRival::Brpc => {
                "the best rate times the service time without load, and some more (Apache brpc auto limiter)"
            }
        }
    }

    /// Returns the rule of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rival| rival.name() == name)
    }

    /// Returns the published limits of the rule on a host of `cores` cores.
    pub fn bounds(self, cores: u32) -> Bounds {
        let published = match self {
            RouteRival::Aimd => aimd::BOUNDS,
            RouteRival::Vegas => vegas::BOUNDS,
            RouteRival::Gradient2 => gradient2::BOUNDS,
            RouteRival::EnvoyGradient => envoy_gradient::BOUNDS,
            RouteRival::HillClimbing => hill_climbing::bounds(cores),
            RouteRival::ThroughputProbing => throughput_probing::bounds(cores),
            RouteRival::Brpc => brpc::bounds(cores),
        };
        published.checked()
    }

    /// Returns the law as it is published, with nothing known.
    pub fn build(self, site: &Site) -> Box<dyn RouteLaw> {
        self.build_within(site, self.bounds(site.cores))
    }

    /// Returns the law with limits of the caller's: some published floors are far above what a small host can bear.
    pub fn build_within(self, site: &Site, bounds: Bounds) -> Box<dyn RouteLaw> {
        let bounds = bounds.checked();
        match self {
            RouteRival::Aimd => Box::new(PerRoute::new(aimd::Aimd::new(bounds))),
            RouteRival::Vegas => Box::new(PerRoute::new(vegas::Vegas::new(bounds))),
            RouteRival::Gradient2 => Box::new(PerRoute::new(gradient2::Gradient2::new(bounds))),
            RouteRival::EnvoyGradient => Box::new(PerRoute::new(envoy_gradient::EnvoyGradient::new(bounds))),
            RouteRival::HillClimbing => {
                Box::new(PerRoute::new(hill_climbing::HillClimbing::new(bounds, site.cpu.clone())))
            }
            RouteRival::ThroughputProbing => {
                Box::new(PerRoute::new(throughput_probing::ThroughputProbing::new(bounds)))
            }
            RouteRival::Brpc => Box::new(PerRoute::new(brpc::Brpc::new(bounds))),
        }
    }
}

/// A published rule for when a session may begin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SessionRival {
    /// Session-based admission control by processor utilisation.
    Sbac,
    /// A fixed number of sessions per second.
    FixedRate,
}

impl SessionRival {
    /// Every rule for sessions there is.
    pub const ALL: [SessionRival; 2] = [SessionRival::Sbac, SessionRival::FixedRate];

    /// Returns the name used in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            SessionRival::Sbac => "sbac",
            SessionRival::FixedRate => "fixed-rate",
        }
    }

    /// Returns what the rule is, in a line.
    pub const fn describe(self) -> &'static str {
        match self {
            SessionRival::Sbac => {
                "newcomers are refused while the processors are over 95 % busy (Cherkasova & Phaal)"
            }
            SessionRival::FixedRate => {
                "a fixed number of sessions per second, the rest in line (commercial waiting rooms)"
            }
        }
    }

    /// Returns the rule of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rival| rival.name() == name)
    }

    /// Returns the law for sessions of `kind`, with nothing known.
    pub fn build(self, site: &Site, kind: KindId, now: Instant) -> Box<dyn SessionLaw> {
        match self {
            SessionRival::Sbac => Box::new(sbac::Sbac::new(kind, site.cpu.clone(), now)),
            SessionRival::FixedRate => Box::new(fixed_rate::FixedRate::new(site.sessions_per_second, now)),
        }
    }
}

#[cfg(test)]
mod tests;
