//! What a gate says should happen, as one struct of numbers.

use suimon_gate::{GateState, Output, Permit, Snapshot};
use suimon_line::PositionStatus;
use suimon_model::{Duration, Instant, Reason, Record, RequestId, Subject};

/// Send this request to the application now; it has a slot until suimon_gate_end.
pub const SUIMON_START: u32 = 1;
/// Answer this request with a refusal. The gate has forgotten it.
pub const SUIMON_REFUSE: u32 = 2;
/// Answer this request with its position in line. The gate has forgotten it.
pub const SUIMON_WAIT: u32 = 3;
/// This request, which was suspended, has its slot again.
pub const SUIMON_RESUMED: u32 = 4;
/// Show this decision.
pub const SUIMON_DECIDED: u32 = 5;

/// A number that there is none of.
pub const SUIMON_NONE: u32 = 0xFFFF_FFFF;

/// What should happen. Which fields say something depends on `what`; the others are 0. Times are nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct GateOutput {
    /// SUIMON_START, SUIMON_REFUSE, SUIMON_WAIT, SUIMON_RESUMED or SUIMON_DECIDED.
    pub what: u32,
    /// Of a refusal or a decision: why; suimon_reason has it as text.
    pub reason: u32,
    /// All but decisions: the request.
    pub request: u64,
    /// Of a start: the session it belongs to from now on; of a wait: the one that has begun for it. Only where
    /// `kind` is not SUIMON_NONE, or `has_session` not 0.
    pub session: u64,
    /// Of a start: the kind of its session, or SUIMON_NONE; of a wait: the kind it waits to begin.
    pub kind: u32,
    /// Whether `session` is one.
    pub has_session: u32,
    /// Of a start, whether the answer should carry a lease: 0 no, 1 if nothing else identifies the visitor, 2 yes.
    pub lease: u32,
    /// Of a start: the limit of its route, or SUIMON_NONE.
    pub limit: u32,
    /// Of a start: requests of its route in the application; of a refusal: those who wait to begin a session; of a
    /// wait: people ahead.
    pub count: u64,
    /// Of a start: how long it waited in all, ...
    pub waited: u64,
    /// ... and before its session began.
    pub held: u64,
    /// Of a refusal or a wait: when to come again.
    pub retry_after: u64,
    /// Of a refusal: the wait predicted; of a wait: at most.
    pub predicted_wait: u64,
    /// Of a wait: its number in line, ...
    pub position: u64,
    /// ... and its lane, or SUIMON_NONE where it has no position.
    pub lane: u32,
    /// Of a decision: 0 a route, 1 a kind of session, 2 a service; ...
    pub subject: u32,
    /// ... its number; ...
    pub subject_number: u32,
    /// ... and which of its quantities: 0 limit, 1 interval, 2 moving, 3 cap.
    pub quantity: u32,
    /// Of a decision: when it was made.
    pub at: u64,
    /// The value before, ...
    pub old: f64,
    /// ... and from then on.
    pub new: f64,
}

impl GateOutput {
    /// Returns the output, and the permit of a request that starts.
    pub(crate) fn of(output: Output) -> (GateOutput, Option<Permit>) {
        match output {
            Output::Start(start) => {
                let (kind, session) =
                    start.session.map_or((SUIMON_NONE, 0), |(kind, session)| (kind.0, session.0));
                let output = GateOutput {
                    what: SUIMON_START,
                    request: start.request.0,
                    kind,
                    session,
                    has_session: start.session.is_some().into(),
                    lease: start.lease as u32,
                    limit: start.limit.unwrap_or(SUIMON_NONE),
                    count: start.in_flight as u64,
                    waited: nanos(start.waited),
                    held: nanos(start.held),
                    ..GateOutput::default()
                };
                (output, Some(start.permit))
            }
            Output::Refuse(refusal) => {
                let output = GateOutput {
                    what: SUIMON_REFUSE,
                    reason: refusal.reason as u32,
                    request: refusal.request.0,
                    count: refusal.waiting as u64,
                    retry_after: nanos(refusal.retry_after),
                    predicted_wait: nanos(refusal.predicted_wait),
                    ..GateOutput::default()
                };
                (output, None)
            }
            Output::Wait(wait) => {
                let left = match wait.standing {
                    PositionStatus::Called(left)
                    | PositionStatus::Waiting(left)
                    | PositionStatus::Opening(_, left)
                    | PositionStatus::Paused(left)
                    | PositionStatus::ApplicationDown(left) => Some(left),
                    PositionStatus::Closed => None,
                };
                let output = GateOutput {
                    what: SUIMON_WAIT,
                    request: wait.request.0,
                    kind: wait.kind.0,
                    session: wait.begun.map_or(0, |session| session.0),
                    has_session: wait.begun.is_some().into(),
                    position: wait.position.map_or(0, |position| position.number),
                    lane: wait.position.map_or(SUIMON_NONE, |position| position.lane.index() as u32),
                    count: left.map_or(0, |left| left.ahead),
                    retry_after: left.map_or(0, |left| nanos(left.poll_after)),
                    predicted_wait: left.map_or(0, |left| nanos(left.high)),
                    ..GateOutput::default()
                };
                (output, None)
            }
            Output::Resumed(RequestId(request)) => {
                (GateOutput { what: SUIMON_RESUMED, request, ..GateOutput::default() }, None)
            }
            Output::Decided(record) => (GateOutput::decided(&record), None),
        }
    }

    fn decided(record: &Record) -> GateOutput {
        let (subject, subject_number) = match record.subject {
            Subject::Route(route) => (0, route.0),
            Subject::Kind(kind) => (1, kind.0),
            Subject::Service(service) => (2, service.0),
        };
        GateOutput {
            what: SUIMON_DECIDED,
            reason: record.reason as u32,
            subject,
            subject_number,
            quantity: record.quantity as u32,
            at: record.at.as_nanos(),
            old: record.old,
            new: record.new,
            ..GateOutput::default()
        }
    }
}

/// Returns the short name of a reason, which never changes.
pub(crate) fn reason(number: u32) -> Option<&'static str> {
    let number = usize::try_from(number).ok()?;
    Reason::ALL.get(number).map(|reason| reason.code())
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns everything that can be seen of a gate, as JSON.
pub(crate) fn state(snapshot: &Snapshot, now: Instant) -> serde_json::Value {
    use serde_json::json;
    let routes = snapshot.routes.iter().map(|route| {
        let counts = route.counts;
        json!({
            "limit": route.limit, "in_flight": route.in_flight, "orphaned": route.orphaned,
            "suspended": route.suspended, "waiting": route.waiting, "rate": route.rate,
            "service_seconds": route.service_seconds, "offered": counts.offered,
            "completed": counts.completed, "failed": counts.failed, "abandoned": counts.abandoned,
            "refused": counts.refused,
        })
    });
    let kinds = snapshot.kinds.iter().map(|kind| {
        json!({
            "gate": GateState::name(kind.gate_state), "law": kind.law, "waiting": kind.waiting,
            "active": kind.active, "remembered": kind.remembered, "newcomers": kind.newcomers,
            "admitted": kind.admitted, "refused": kind.refused,
            "interval_seconds": kind.interval_seconds, "patience_seconds": kind.patience_seconds,
        })
    });
    json!({
        "now": now.as_nanos(), "waiting": snapshot.waiting, "in_flight": snapshot.in_flight,
        "suspended": snapshot.suspended, "sessions": snapshot.sessions, "recorded": snapshot.recorded,
        "routes": routes.collect::<Vec<_>>(), "kinds": kinds.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_gate::InLine;
    use suimon_line::{Lane, Position, Wait};
    use suimon_model::{KindId, SessionId};

    /// Kinds that C declares have no line, so a gate says this only where it plays a recording.
    #[test]
    fn a_wait_is_told_with_its_place_and_its_times() {
        let left = Wait {
            ahead: 3,
            low: Duration::from_secs(1),
            high: Duration::from_secs(5),
            poll_after: Duration::from_secs(2),
        };
        let wait = InLine {
            request: RequestId(7),
            kind: KindId(1),
            position: Some(Position { lane: Lane::Normal, number: 40 }),
            begun: Some(SessionId(9)),
            standing: PositionStatus::Waiting(left),
        };
        let told = GateOutput {
            what: SUIMON_WAIT,
            request: 7,
            kind: 1,
            session: 9,
            has_session: 1,
            position: 40,
            lane: 2,
            count: 3,
            retry_after: 2_000_000_000,
            predicted_wait: 5_000_000_000,
            ..GateOutput::default()
        };
        assert_eq!(GateOutput::of(Output::Wait(wait)).0, told);
        let closed = InLine { position: None, begun: None, standing: PositionStatus::Closed, ..wait };
        let told =
            GateOutput { what: SUIMON_WAIT, request: 7, kind: 1, lane: SUIMON_NONE, ..GateOutput::default() };
        assert_eq!(GateOutput::of(Output::Wait(closed)).0, told);
    }
}
