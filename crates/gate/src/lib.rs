//! The gate: sessions by kind, a queue and a limit for each route, and the laws that move them.
//!
//! One machine, told the time, the same in the gateway, the simulator and a test:
//!
//! ```
//! use suimon_gate::{Arrival, Gate, KindParams, Membership, RouteMode, Output, Params};
//! use suimon_model::{Outcome, Instant, seconds};
//!
//! let now = Instant::ORIGIN;
//! let mut gate = Gate::new(Params::default(), now);
//! let route = gate.declare_route(now, RouteMode::Enforce);
//! let kind = gate.declare_kind(now, KindParams::default());
//!
//! gate.handle_arrival(now, Arrival { route, session: Some(Membership::Newcomer(kind)) });
//! let Some(Output::Start(start)) = gate.poll_output() else { panic!("an idle application starts at once") };
//! gate.handle_end(now + seconds(0.1), start.permit, Outcome::Completed);
//! assert!(gate.poll_timeout().is_some(), "call handle_timeout then");
//! ```

mod api;
mod asked;
mod gate;
mod held;
mod kinds;
mod knowledge;
mod learned;
mod queue;
mod requests;
mod rush;
mod services;
mod sessions;
mod shared;

pub use api::{
    Adoption, Arrival, Counts, GateState, InLine, KindMode, KindParams, KindView, LeaseDue, Membership,
    Output, Params, PausePlace, Permit, PoolView, QueueOrder, Refusal, RequestInfo, RouteMode, RouteView,
    ServiceParams, ServiceView, Services, SessionEnds, SessionSignal, SessionStatus, Snapshot, Start,
};
pub use gate::{Gate, POOLS_MAX, WorkerLoad};
pub use knowledge::{Knowledge, KnownKind, KnownRoute};
pub use learned::{Learned, LearnedKind, LearnedRoute, LearnedTransitions, ServiceTimeStats, Think};
/// What is wished of services, and how they stand.
pub use suimon_control::{Amount, Binding, DegradationMode, PAUSE_RATIO_MAX, ServiceStanding, ServiceWish};
/// What a gate knows, in the words of the parts that learned it.
pub use suimon_control::{
    KnownDistribution, KnownMean, RouteKnowledge, RouteVisits, SessionKnowledge, VisitsAfter, VisitsKnowledge,
};
