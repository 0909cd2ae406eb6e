//! Session laws as the gate sees them: may a newcomer begin now, and if not, when. Each law has a
//! file of its own, except for the two that decide nothing.

use crate::knowledge::{SessionKnowledge, Trust};
use crate::visits::{LastRoute, Visits};
use suimon_model::persist::{Broken, Persist, Reader, Unsavable, Writer};
use suimon_model::{Duration, Instant, KindId, Reason, Record, RouteId, Signals, seconds};

/// Tokens closer to one than this are one: the clock has a resolution.
pub(crate) const TOKEN_GRAIN: f64 = 1e-6;
/// Called visitors arrive spread over at least this many seconds: no page polls more often than
/// that.
const COMING: f64 = 2.0;

/// What a session law may look at.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionInputs<'a> {
    /// Visits that sessions still have to make.
    pub visits: &'a Visits,
    /// By [`suimon_model::RouteId`].
    pub routes: &'a [RouteInputs],
    /// By [`suimon_model::KindId`].
    pub kinds: &'a [KindInputs],
    /// Seconds a visitor of the kind waits for one answer.
    pub patience: f64,
    /// Newcomers of the kind waiting to begin.
    pub waiting: usize,
    /// Sessions of the kind admitted and not known to have ended.
    pub active: usize,
    /// Where the session in question begins: at the route of its first request, or at
    /// [`LastRoute::START`] if it comes from the waiting page.
    pub entry: LastRoute,
    /// What is shared with other gateways; `None`: there are none.
    pub shared: Option<SharedInputs<'a>>,
}

/// What several gateways before one application share. The amounts beside it are those of all of
/// them, except for [`AdmissionInputs::active`] and what [`AdmissionInputs::visits`] says of
/// sessions under way.
#[derive(Clone, Copy, Debug)]
pub struct SharedInputs<'a> {
    /// The portion of what begins that may begin here, 0 to 1.
    pub portion: f64,
    /// How many gateways there are, at least 1.
    pub gateways: u32,
    /// Sessions per second and at once, at all gateways, as another one has learned; `None`: this
    /// one learns.
    pub pace: Option<(f64, f64)>,
    /// Visits that sessions of the other gateways still have to make, by
    /// [`suimon_model::RouteId`]; those beyond its end have none.
    pub remaining: &'a [f64],
}

impl AdmissionInputs<'_> {
    /// Returns R: visits to `route` that sessions already admitted still have to make, those of
    /// other gateways included.
    pub fn remaining(&self, route: RouteId) -> f64 {
        let own = self.visits.remaining(route);
        let elsewhere = self.shared.and_then(|shared| shared.remaining.get(route.index()).copied());
        elsewhere.map_or(own, |elsewhere| own + elsewhere)
    }

    /// Returns the part of `sessions` at once that this gateway has, at least 1.
    pub(crate) fn part_of(&self, sessions: u32) -> u32 {
        self.shared.map_or(sessions, |shared| (sessions / shared.gateways.max(1)).max(1))
    }

    /// Returns the seconds that a session admitted now would wait at its visits to `route`, on
    /// average and by the visits still to come alone: R/X − δ − S. `None` where X is not known.
    pub fn foreseen(&self, route: RouteId) -> Option<f64> {
        let there = &self.routes[route.index()];
        let capacity = there.capacity.filter(|capacity| *capacity > 0.0)?;
        let without_waits = self.visits.delay(route) + there.service.unwrap_or(0.0);
        Some(self.remaining(route) / capacity - without_waits)
    }
}

/// One route, as far as admission is concerned.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteInputs {
    /// X: completions per second it can do; `None` where nothing is known, or nothing is held back.
    pub capacity: Option<f64>,
    /// Seconds since it was last seen under full load.
    pub capacity_age: f64,
    /// Mean seconds in the application.
    pub service: Option<f64>,
    /// Processor seconds that a request takes at most, as far as is known.
    pub work: Option<f64>,
    /// Requests waiting.
    pub waiting: usize,
    /// Seconds since a request last waited there for a good part of a tick.
    pub idle: f64,
    /// Recent completions per second.
    pub rate: f64,
    /// Seconds by which forecasts of waiting were too long: see [`crate::Forecast`].
    pub bias: f64,
}

suimon_model::saved_struct!(RouteInputs { capacity, capacity_age, service, work, waiting, idle, rate, bias });

/// One kind of session, as the other kinds see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct KindInputs {
    /// Newcomers per second, as a share of those of all kinds.
    pub share: f64,
    /// Sessions begun per second.
    pub begun: f64,
}

suimon_model::saved_struct!(KindInputs { share, begun });

/// Whether the head of the line may begin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AdmissionDecision {
    /// It may.
    Now,
    /// Not before this moment; nothing else needs to happen.
    NotBefore(Instant),
    /// Not until something changes.
    Held(Reason),
    /// No, and it need not wait either.
    Refuse,
}

/// A rule that says when a session of one kind may begin.
pub trait SessionLaw: std::fmt::Debug + Send {
    /// Returns whether one more session may begin at `now`.
    fn may_admit(&mut self, now: Instant, inputs: &AdmissionInputs<'_>) -> AdmissionDecision;

    /// Returns whether one more admission now delays none of the `others`, who are to be admitted
    /// within the next seconds. Called only if it is allowed otherwise.
    fn has_enough_for(&self, _outlook: &AdmissionInputs<'_>, others: u64) -> bool {
        others == 0
    }

    /// Returns whether an admission now takes nothing from the `others` who were called and may be on
    /// the way, nor from those who are called later: what it uses would be lost, or is there again
    /// before they can come. Called only if it is allowed otherwise.
    fn has_left_over(&self, _now: Instant, _outlook: &AdmissionInputs<'_>, _others: u64) -> bool {
        false
    }

    /// Takes note that a session began at `entry`.
    fn admitted(&mut self, _now: Instant, _entry: LastRoute) {}

    /// Takes note that a session that began is worth `weight` others, at least 1.
    fn weighs(&mut self, _weight: u32) {}

    /// Does what is due every 250 ms or so; records decisions.
    fn on_tick(&mut self, _now: Instant, _outlook: &AdmissionInputs<'_>, _out: &mut Vec<Record>) {}

    /// Returns the wait predicted for a newcomer with `ahead` others before it.
    fn predicted_wait(&self, now: Instant, ahead: usize) -> Duration;

    /// Returns the admission interval in seconds; 0 while open.
    fn interval(&self) -> f64 {
        0.0
    }

    /// Returns sessions per second that this law would admit if enough came, if it knows; infinite
    /// if it admits everybody.
    fn rate(&self) -> Option<f64> {
        None
    }

    /// Returns the sessions per second that it would admit, and how many at once, at all gateways
    /// together, if it goes by them: what a gateway that learns lets others follow.
    fn pace(&self) -> Option<(f64, f64)> {
        None
    }

    /// Returns whether its rate is a guess, as too little is known of what sessions do.
    fn is_cold(&self) -> bool {
        false
    }

    /// Returns the maximum number of sessions, if it goes by their number.
    fn sessions_max(&self) -> Option<u32> {
        None
    }

    /// Returns the route because of which newcomers are held back, if there is one.
    fn holds_for(&self) -> Option<RouteId> {
        None
    }

    /// Returns the knowledge, beyond [`Visits`] and the routes, that another process can begin
    /// with, if any.
    fn knowledge(&self) -> Option<SessionKnowledge> {
        None
    }

    /// Begins with what was known, as far as it is believed. Called right after it was built,
    /// before any newcomer.
    fn recall(&mut self, _known: &SessionKnowledge, _trust: Trust) {}

    /// Returns whether it is for this kind, and for this number of `routes`: what was saved may be
    /// of others.
    fn fits(&self, _kind: KindId, _routes: usize) -> bool {
        true
    }

    /// Appends all that the rule knows, to be loaded as its [`Persist`].
    ///
    /// # Errors
    /// Returns [`Unsavable`] where a rule cannot be saved: one of a program that tries its own.
    fn save(&self, _out: &mut Writer) -> Result<(), Unsavable> {
        Err(Unsavable)
    }
}

/// A fixed number of sessions at once; the rest is refused.
#[derive(Clone, Copy, Debug)]
pub struct StaticSessions {
    /// Sessions under way at once, at least 1.
    pub sessions: u32,
}

suimon_model::saved_struct!(StaticSessions { sessions });

impl SessionLaw for StaticSessions {
    fn may_admit(&mut self, _now: Instant, inputs: &AdmissionInputs<'_>) -> AdmissionDecision {
        if inputs.active < inputs.part_of(self.sessions) as usize {
            AdmissionDecision::Now
        } else {
            AdmissionDecision::Refuse
        }
    }

    fn has_enough_for(&self, inputs: &AdmissionInputs<'_>, others: u64) -> bool {
        inputs.active as u64 + others < u64::from(inputs.part_of(self.sessions))
    }

    fn sessions_max(&self) -> Option<u32> {
        Some(self.sessions)
    }

    fn save(&self, out: &mut Writer) -> Result<(), Unsavable> {
        Persist::save(self, out);
        Ok(())
    }

    fn predicted_wait(&self, _now: Instant, _ahead: usize) -> Duration {
        Duration::ZERO
    }
}

/// Everybody is admitted.
#[derive(Clone, Copy, Debug)]
pub struct OpenGate;

/// It knows nothing.
impl Persist for OpenGate {
    fn save(&self, _out: &mut Writer) {}

    fn load(_from: &mut Reader<'_>) -> Result<Self, Broken> {
        Ok(OpenGate)
    }
}

impl SessionLaw for OpenGate {
    fn may_admit(&mut self, _now: Instant, _outlook: &AdmissionInputs<'_>) -> AdmissionDecision {
        AdmissionDecision::Now
    }

    fn has_enough_for(&self, _outlook: &AdmissionInputs<'_>, _others: u64) -> bool {
        true
    }

    fn has_left_over(&self, _now: Instant, _outlook: &AdmissionInputs<'_>, _others: u64) -> bool {
        true
    }

    fn rate(&self) -> Option<f64> {
        Some(f64::INFINITY)
    }

    /// It knows nothing.
    fn save(&self, _out: &mut Writer) -> Result<(), Unsavable> {
        Ok(())
    }

    fn predicted_wait(&self, _now: Instant, _ahead: usize) -> Duration {
        Duration::ZERO
    }
}

/// Returns the wait of a newcomer with `ahead` others before it, where `per_second` begin.
pub(crate) fn wait_behind(ahead: usize, per_second: f64) -> Duration {
    seconds((ahead + 1) as f64 / per_second.max(1e-6))
}

/// Returns whether a token can be taken from a bucket of this `depth` that holds `tokens` and fills
/// at `per_second`, without loss to `others` on their way from a page: the rest is enough for all
/// of them, or for those of them who arrive before the bucket is full again; after that it would
/// have run over.
pub fn is_token_spare(tokens: f64, depth: f64, per_second: f64, others: u64) -> bool {
    let rest = tokens - 1.0 + TOKEN_GRAIN;
    let full_again = (depth - tokens + 1.0) / per_second;
    rest >= others as f64 * (full_again / COMING).min(1.0)
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
