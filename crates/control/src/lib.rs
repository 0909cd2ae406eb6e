//! Windows, statistics and the control laws, one file per law.
//!
//! A law is told what happened and when; it answers with limits, intervals and the records of its
//! decisions. It knows nothing of sessions' identities, HTTP or queues beyond their lengths.
//!
//! - [`Meter`], [`Window`]: what happened on a route between two moments.
//! - [`Visits`], [`Capacity`], [`Patience`]: signals learned from what happened.
//! - [`RouteLaw`]: a limit for each route: [`Paired`] (ours) or [`PaperRoutes`] (the paper's).
//! - [`RouteKnowledge`], [`VisitsKnowledge`]: what another process can begin with, as far as it is
//!   believed ([`Trust`]).
//! - [`Degradation`]: how the host's work is split among services; [`Credit`]: how a cap is held.
//! - [`SizeLaw`]: how many workers of a pool should be resident: [`Residents`] (ours), [`SpareRule`]
//!   (the paper's and another server's), or a number.
//! - [`SessionLaw`]: when a session may begin: [`Flow`] (ours) or [`PaperSessions`] (the paper's).

mod capacity;
mod credit;
mod degradation;
mod forecast;
mod knowledge;
mod laws;
mod patience;
mod pauses;
mod residents;
mod route;
mod route_paired;
mod route_paper;
mod service_times;
mod session;
mod session_flow;
mod session_paper;
mod size_law;
mod spare_rule;
mod statistics;
mod visits;
mod window;

pub use capacity::{Capacity, Measured};
pub use credit::{CAP_LEAST, Credit};
pub use degradation::{
    Amount, Binding, Degradation, DegradationMode, ServiceInput, ServiceSample, ServiceStanding, ServiceWish,
};
pub use forecast::Forecast;
pub use knowledge::{
    KnownDistribution, KnownMean, RouteKnowledge, RouteVisits, SessionKnowledge, Trust, VisitsAfter,
    VisitsKnowledge,
};
pub use laws::{RouteLawKind, SessionLawKind};
pub use patience::{Patience, PatienceEstimate};
pub use pauses::{PAUSE_RATIO_MAX, PauseShare};
pub use residents::{ResidentMove, ResidentParams, ResidentReason, ResidentSample, Residents};
pub use route::{RequestEnd, RouteLaw};
pub use route_paired::Paired;
pub use route_paper::{PaperRouteParams, PaperRoutes};
pub use service_times::ServiceTimes;
pub use session::{
    AdmissionDecision, AdmissionInputs, KindInputs, OpenGate, RouteInputs, SessionLaw, SharedInputs,
    StaticSessions, is_token_spare,
};
pub use session_flow::Flow;
pub use session_paper::{PaperSessionParams, PaperSessions};
pub use size_law::{SizeLaw, SizeLawKind};
pub use spare_rule::{DynamicParams, SpareRule};
pub use statistics::{Average, DecayingHistogram, Moments, RateMeter};
pub use visits::{LastRoute, PATH_MAX, STAGES, STAYER_SHARE, STAYER_VISITS, Visit, Visits};
pub use window::{EndedElsewhere, Meter, Reading, Window};
