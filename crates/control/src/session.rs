//! Session laws as the gate sees them: may a newcomer begin now, and if not, when.

use crate::kind::SessionLawKind;
use crate::session_flow::Flow;
use crate::session_seed::SeedSessions;
use crate::visits::Visits;
use suimon_model::{Duration, Instant, KindId, Reason, Record, Signals, seconds};

/// What a session law may look at.
#[derive(Clone, Copy, Debug)]
pub struct Outlook<'a> {
    /// What sessions still have to come.
    pub visits: &'a Visits,
    /// By [`suimon_model::RouteId`].
    pub routes: &'a [RouteOutlook],
    /// Seconds a visitor of the kind waits for one answer.
    pub patience: f64,
    /// Newcomers of the kind waiting to begin.
    pub waiting: usize,
    /// Sessions of the kind let in and not known to have ended.
    pub active: usize,
}

/// One route, as far as admission is concerned.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteOutlook {
    /// X: completions per second it can do; `None` where nothing is known or nothing is held back.
    pub capacity: Option<f64>,
    /// Mean seconds in the application.
    pub service: Option<f64>,
    /// Requests waiting.
    pub waiting: usize,
}

/// Whether the head of the line may begin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Admission {
    /// It may.
    Now,
    /// Not before this moment; nothing else needs to happen.
    NotBefore(Instant),
    /// Not until something changes.
    Held(Reason),
    /// It may not, and is not to wait either.
    Refuse,
}

/// The session law of one kind.
#[derive(Clone, Debug)]
pub enum SessionLaw {
    /// Ours.
    Flow(Flow),
    /// The paper's.
    Seed(SeedSessions),
    /// A fixed number at once.
    Static {
        /// Sessions under way at once.
        sessions: u32,
    },
    /// Everybody.
    Open,
}

impl SessionLaw {
    /// Returns the law of `kind` for an application thought to have `cores` cores, with nothing known.
    pub fn new(law: SessionLawKind, kind: KindId, cores: u32, now: Instant) -> Self {
        match law {
            SessionLawKind::Flow => SessionLaw::Flow(Flow::new(kind, cores, now)),
            SessionLawKind::Seed(params) => SessionLaw::Seed(SeedSessions::new(kind, params, now)),
            SessionLawKind::Static { sessions } => SessionLaw::Static { sessions },
            SessionLawKind::Open => SessionLaw::Open,
        }
    }

    /// Returns whether one more session may begin at `now`.
    pub fn may_admit(&mut self, now: Instant, outlook: &Outlook<'_>) -> Admission {
        match self {
            SessionLaw::Flow(flow) => flow.may_admit(now, outlook),
            SessionLaw::Seed(seed) => seed.may_admit(now),
            SessionLaw::Static { sessions } if outlook.active < *sessions as usize => Admission::Now,
            SessionLaw::Static { .. } => Admission::Refuse,
            SessionLaw::Open => Admission::Now,
        }
    }

    /// Takes note that a session began.
    pub fn admitted(&mut self, now: Instant) {
        match self {
            SessionLaw::Flow(flow) => flow.admitted(now),
            SessionLaw::Seed(seed) => seed.admitted(now),
            SessionLaw::Static { .. } | SessionLaw::Open => {}
        }
    }

    /// Does what is due every 250 ms or so; shows what was decided.
    pub fn on_tick(&mut self, now: Instant, outlook: &Outlook<'_>, out: &mut Vec<Record>) {
        match self {
            SessionLaw::Flow(flow) => flow.on_tick(now, outlook, out),
            SessionLaw::Seed(seed) => seed.on_tick(now, outlook, out),
            SessionLaw::Static { .. } | SessionLaw::Open => {}
        }
    }

    /// Returns the wait foreseen for a newcomer with `ahead` others before it.
    pub fn predicted_wait(&self, now: Instant, ahead: usize) -> Duration {
        let per_second = match self {
            SessionLaw::Flow(flow) => flow.expected_rate(now),
            SessionLaw::Seed(seed) => return seconds((ahead + 1) as f64 * seed.interval()),
            SessionLaw::Static { .. } | SessionLaw::Open => return Duration::ZERO,
        };
        seconds((ahead + 1) as f64 / per_second.max(1e-6))
    }

    /// Returns the admission interval in seconds; 0 while open.
    pub fn interval(&self) -> f64 {
        match self {
            SessionLaw::Flow(flow) => flow.interval(),
            SessionLaw::Seed(seed) => seed.interval(),
            SessionLaw::Static { .. } | SessionLaw::Open => 0.0,
        }
    }

    /// Returns sessions per second that this law would let in if enough came, if it knows.
    pub fn rate(&self) -> Option<f64> {
        match self {
            SessionLaw::Flow(flow) => Some(flow.rate()),
            SessionLaw::Seed(seed) => (seed.interval() > 0.0).then(|| 1.0 / seed.interval()),
            SessionLaw::Static { .. } | SessionLaw::Open => None,
        }
    }
}

/// Returns the record of an interval decided for `kind`.
pub(crate) fn interval_record(
    at: Instant,
    kind: KindId,
    old: f64,
    new: f64,
    reason: Reason,
    signals: Signals,
) -> Record {
    let subject = suimon_model::Subject::Kind(kind);
    Record { at, subject, quantity: suimon_model::Quantity::Interval, old, new, reason, signals }
}
