//! External laws as rivals: each written from its published description, with its published
//! numbers.
//!
//! The module doc of each law says what it is, where it is published, and which numbers had to be
//! chosen. The rule: if the published number would leave a law without a decision at the pace of
//! web pages, it is changed in the law's favour.
//!
//! - [`RouteRival`]: rules for the limit of a route. None knows of other routes.
//! - [`SessionRival`]: rules for when a session may begin. A fixed count is
//!   [`suimon_control::StaticSessions`].
//! - [`parse`], [`catalogue`]: all laws by name, including the gateway's, for a run of the
//!   simulator.
//! - [`scaling`]: rules for the number of nodes.
//! - [`waiting`]: a crowd in a line, under the gateway's rule and under other ones.

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
pub mod scaling;
mod throughput_probing;
mod vegas;
pub mod waiting;

pub use per_route::Bounds;
use per_route::PerRoute;
use std::sync::Arc;
use suimon_control::{RouteLaw, SessionLaw};
use suimon_model::{Instant, KindId};
use suimon_sim::{ALIASES, Laws, OtherRoutes, OtherSessions, Site, unknown};

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
    /// Every rule for routes.
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

    /// Returns a description of the rule in one line.
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

    /// Returns the law as published, in its initial state.
    pub fn build(self, site: &Site) -> Box<dyn RouteLaw> {
        self.build_within(site, self.bounds(site.cores))
    }

    /// Returns the law with the caller's limits: some published floors are far above what a small
    /// host can bear.
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
    /// Every rule for sessions.
    pub const ALL: [SessionRival; 2] = [SessionRival::Sbac, SessionRival::FixedRate];

    /// Returns the name used in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            SessionRival::Sbac => "sbac",
            SessionRival::FixedRate => "fixed-rate",
        }
    }

    /// Returns a description of the rule in one line.
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

    /// Returns the law for sessions of `kind`, in its initial state.
    pub fn build(self, site: &Site, kind: KindId, now: Instant) -> Box<dyn SessionLaw> {
        match self {
            SessionRival::Sbac => Box::new(sbac::Sbac::new(kind, site.cpu.clone(), now)),
            SessionRival::FixedRate => Box::new(fixed_rate::FixedRate::new(site.sessions_per_second, now)),
        }
    }
}

impl OtherRoutes for RouteRival {
    fn written(&self) -> String {
        RouteRival::name(*self).to_owned()
    }

    /// Its floor is lowered to 1, because the published one would decide the race.
    fn law(&self, site: &Site) -> Box<dyn RouteLaw> {
        self.build_within(site, Bounds { least: 1, ..self.bounds(site.cores) })
    }
}

impl OtherSessions for SessionRival {
    fn written(&self) -> String {
        SessionRival::name(*self).to_owned()
    }

    /// The fixed rate is told the application's true bound, which no operator could know.
    fn law(&self, site: &Site, kind: KindId, now: Instant) -> Box<dyn SessionLaw> {
        SessionRival::build(*self, site, kind, now)
    }
}

/// The fixed rate, told this percentage of the true bound, shared evenly among the kinds: what an
/// operator would enter who knows everything and wants some reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Told {
    percent: u32,
}

impl OtherSessions for Told {
    fn written(&self) -> String {
        format!("{TOLD}{}", self.percent)
    }

    fn law(&self, site: &Site, kind: KindId, now: Instant) -> Box<dyn SessionLaw> {
        let share = f64::from(self.percent) / 100.0 / site.kinds as f64;
        let told = Site { sessions_per_second: share * site.sessions_per_second, ..site.clone() };
        SessionRival::FixedRate.build(&told, kind, now)
    }
}

/// The prefix of [`Told`]'s name, before its number.
const TOLD: &str = "told:";

/// Returns the laws that `name` stands for, including the gateway's.
///
/// # Errors
/// Returns a sentence that lists the allowed names.
pub fn parse(name: &str) -> Result<Laws, String> {
    let routes = |word: &str| {
        let rival = RouteRival::parse(word)?;
        Some(Arc::new(rival) as Arc<dyn OtherRoutes>)
    };
    let sessions = |word: &str| -> Option<Arc<dyn OtherSessions>> {
        if let Some(rival) = SessionRival::parse(word) {
            return Some(Arc::new(rival));
        }
        let percent = word.strip_prefix(TOLD)?.parse().ok().filter(|percent| *percent > 0)?;
        Some(Arc::new(Told { percent }))
    };
    Laws::parse_among(name, &routes, &sessions).ok_or_else(|| unknown(name, &how_written()))
}

/// Returns how laws without an alias are written, for messages.
pub fn how_written() -> String {
    let routes: Vec<&str> = RouteRival::ALL.iter().map(|rival| rival.name()).collect();
    let sessions: Vec<&str> = SessionRival::ALL.iter().map(|rival| rival.name()).collect();
    format!(
        "{}; of others, ROUTES may be one of {}, and SESSIONS one of told:PERCENT (of the true bound), {}",
        suimon_sim::how_written(),
        routes.join(", "),
        sessions.join(", ")
    )
}

/// Returns the laws that can be compared, as names and descriptions: the aliases, then each
/// external law alone.
pub fn catalogue() -> Vec<(String, String)> {
    let aliases = ALIASES.iter().map(|(name, _, words)| ((*name).to_owned(), (*words).to_owned()));
    let routes = RouteRival::ALL.iter();
    let routes = routes.map(|rival| (format!("{}+open", rival.name()), rival.describe().to_owned()));
    let sessions = SessionRival::ALL.iter();
    let sessions = sessions.map(|rival| (format!("off+{}", rival.name()), rival.describe().to_owned()));
    aliases.chain(routes).chain(sessions).collect()
}

#[cfg(test)]
mod tests;
