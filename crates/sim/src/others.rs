//! The interface by which external laws run in a simulated gate: the laws that an experiment
//! compares the gateway with.

use crate::utilisation::Utilisation;
use std::fmt;
use suimon_control::{RouteLaw, SessionLaw};
use suimon_model::{Instant, KindId};

/// What an external law is told of the site in front of which it runs.
#[derive(Clone, Debug)]
pub struct Site {
    /// Processor cores of the application's host.
    pub cores: u32,
    /// How busy these are, for laws that use it.
    pub cpu: Utilisation,
    /// Sessions per second that the application can finish; no real gate can know that.
    pub sessions_per_second: f64,
    /// The number of kinds of session; each has a law of its own.
    pub kinds: usize,
}

/// An external law for limits.
pub trait OtherRoutes: fmt::Debug + Send + Sync {
    /// Returns its name, as written before the "+".
    fn written(&self) -> String;

    /// Returns the law in its initial state.
    fn law(&self, site: &Site) -> Box<dyn RouteLaw>;
}

/// An external law for admissions.
pub trait OtherSessions: fmt::Debug + Send + Sync {
    /// Returns its name, as written after the "+".
    fn written(&self) -> String;

    /// Returns the law for sessions of `kind`, in its initial state.
    fn law(&self, site: &Site, kind: KindId, now: Instant) -> Box<dyn SessionLaw>;
}

impl PartialEq for dyn OtherRoutes {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl PartialEq for dyn OtherSessions {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}
