//! The door by which laws that are not the product's stand in the gate of a run: those an
//! experiment compares it with.

use crate::utilisation::Utilisation;
use std::fmt;
use suimon_control::{RouteLaw, SessionLaw};
use suimon_model::{Instant, KindId};

/// What a law of others is told of the site it is put in front of.
#[derive(Clone, Debug)]
pub struct Site {
    /// Processor cores of the application's host.
    pub cores: u32,
    /// How busy these are, for the laws that look.
    pub cpu: Utilisation,
    /// Sessions per second that the application can finish: what no gate can know.
    pub sessions_per_second: f64,
    /// Kinds of sessions there are; each has a law of its own.
    pub kinds: usize,
}

/// A law for limits that is not the product's.
pub trait OtherRoutes: fmt::Debug + Send + Sync {
    /// Returns its name, as it is written before the "+".
    fn written(&self) -> String;

    /// Returns the law with nothing known.
    fn law(&self, site: &Site) -> Box<dyn RouteLaw>;
}

/// A law for session starts that is not the product's.
pub trait OtherSessions: fmt::Debug + Send + Sync {
    /// Returns its name, as it is written behind the "+".
    fn written(&self) -> String;

    /// Returns the law for sessions of `kind`, with nothing known.
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
