//! The gateway's pipeline: takes a request through its phases, and joins the crates that each know
//! one of them.
//!
//! [`Server::bind`] takes [`suimon_params::Params`], [`Server::run`] serves until told to stop,
//! [`Observer`] looks on. Inside:
//!
//! - `pipeline` takes a request through its phases, in order; `exchange` is its time in the
//!   application, and `backend` what that needs;
//! - `sites` is what listeners serve, and `gateway` one site of it: the settings in force, which others
//!   can replace;
//! - `gatekeeper` holds the gate, with its clock and those who wait for it;
//! - `stall` (with `liveness`), `returns` and `ungated` handle requests that wait for another
//!   request's client, for the application's return, or for an ungated place;
//! - `account` keeps note of one request, for access logs and traces, and tells of it at its end;
//! - `error_response` turns what went wrong into an answer; `telemetry` counts;
//! - `server` binds, runs and drains all of it.

mod account;
mod backend;
mod body_end;
mod error_response;
mod exchange;
mod gatekeeper;
mod gateway;
mod https;
mod kept_overrides;
mod liveness;
mod nodes_report;
mod overrides;
mod pipeline;
mod request_ids;
mod request_record;
mod returns;
mod server;
mod sharing_view;
mod sites;
mod stall;
mod telemetry;
mod trace_context;
mod ungated;
mod wall_clock;

pub use body_end::BodyEnd;
pub use exchange::STREAM_AFTER;
pub use nodes_report::NodesReport;
pub use overrides::{
    OVERRIDE_SECONDS_MAX, OVERRIDES_MAX, Overridden, Override, OverrideError, OverrideOrder,
};
pub use pipeline::{Admitted, CLIENT_TIME_MAX, Entered, UploadSlot};
pub use request_record::{RequestNotes, RequestOutcome, RequestRecord, RequestSink};
pub use server::{BegunSession, HandedOver, Handover, Listening, Sockets, datagrams_of, listener_of};
pub use server::{Door, Embedded, THIS_PROCESS};
pub use server::{LineCommand, LineError, LineReport, Observer, Server, StartError};
pub use server::{PoolCommand, PoolError, PoolReport};
pub use sharing_view::SharingView;
pub use suimon_agent::datagram::Load as AgentLoad;
pub use suimon_cluster::ProviderView;
pub use suimon_downstream::request_body::CLIENT_TIME_MAX as UPLOAD_TIME_MAX;
pub use suimon_fleet::scaling::{ScalingMove, ScalingReason};
pub use suimon_pool::{PoolChange, PoolEvent, PoolStatus, WorkerStatus};
pub use suimon_store::recorder::RecordError;
pub use suimon_upstream::{
    LoadReportCounts, NodeReportView, PhpStatus, RetryCounts, UpstreamNodeView, report_keys,
};
pub use telemetry::{BUCKETS, LearnedView, LineCounts, Recalled, RouteReport, Times, View, WAIT_BUCKETS};
pub use trace_context::TraceContext;
