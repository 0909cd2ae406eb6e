//! The gate: a slot now, a wait, or a refusal.

use super::not_admitted::NotAdmitted;
use super::{Core, RequestContext};
use crate::gatekeeper::{
    Arrived, GateAdmission, MemberOf, SessionLookup, TurnedAway, UnidentifiedClient, Waiting, kind_of,
};
use crate::telemetry::Telemetry;
use crate::ungated::UngatedPermit;
use crate::wall_clock::now_unix;
use http::header::EXPECT;
use http::request;
use std::time::{Duration, Instant};
use suimon_downstream::connection::Connection;
use suimon_downstream::request_body::RequestBody;
use suimon_gate::{Arrival, Membership, Refusal};
use suimon_identity::identify::Visitor;
use suimon_model::{KindId, Reason, RequestId, RouteId, SessionId};
use suimon_routes::Exempt;

/// How long a request waits for the gate before its client's connection is watched: far below the
/// 20 ms in which a disconnect is to be noticed, and long enough that short waits, the most
/// frequent ones, cost no system call.
const WATCH_WAITING_AFTER: Duration = Duration::from_millis(10);

/// When it is worth coming back to one.
const RETRY_UNGATED: Duration = Duration::from_secs(2);

/// A request that may go to the application: its slot and session, or neither if its route is
/// ungated.
pub(super) struct AdmittedRequest {
    pub(super) admission: Option<GateAdmission>,
    /// Without a slot: the ungated place it has instead until the application answers.
    pub(super) open: Option<UngatedPermit>,
    /// Its client, if no cookie of the request tells it from others, and whether it was found to be
    /// of a session all the same.
    pub(super) unknown: Option<UnidentifiedClient>,
    /// Whether this request, once answered, ends its session.
    pub(super) ends: bool,
    /// Whether it came with nothing that shows it to be of a session.
    pub(super) is_new: bool,
}

/// A request that was taken to the gate.
pub(super) struct ArrivalResult {
    /// `None`: the session that its cookies name is not there, and nothing was done.
    pub(super) arrived: Option<Arrived>,
    /// How it belongs to a session.
    pub(super) session: Option<Membership>,
    /// See [`AdmittedRequest::unknown`].
    pub(super) unknown: Option<UnidentifiedClient>,
}

impl Core {
    /// Identified and classified: passes the gate, at once or after a wait.
    pub(super) async fn admit(
        &self,
        connection: &Connection,
        parts: &request::Parts,
        body: &mut RequestBody,
        context: &RequestContext,
    ) -> Result<AdmittedRequest, NotAdmitted> {
        if let Some(account) = &context.account {
            account.asks(context.class, context.arrived);
        }
        let route = match context.class.gate() {
            Ok(route) => route,
            Err(exempt) => return self.admit_ungated(connection, exempt, context).await,
        };
        let named = self.membership(&context.visitor, parts, |_| true);
        let mut come =
            self.arrive(connection, parts, &context.visitor, (route, named), SessionLookup::First)?;
        // Only if the gate does not have the named session it is asked which one it has.
        if come.arrived.is_none() {
            let stands = self.membership(&context.visitor, parts, |session| self.keeper.has(session));
            come = self.arrive(connection, parts, &context.visitor, (route, stands), SessionLookup::Last)?;
        }
        let ArrivalResult { arrived, session, unknown } = come;
        if self.params.sessions.kinds.is_empty() || matches!(session, Some(Membership::Member { .. })) {
            connection.standing().note_admitted();
        }
        let admission = match arrived.expect("what was named last is taken in") {
            Arrived::Admitted(admission) => admission,
            Arrived::TurnedAway(away) => return Err(self.turned_away(away, Duration::ZERO)),
            Arrived::Waiting(waiting) => {
                let expects = parts.headers.contains_key(EXPECT);
                // On the heap, like everything that few requests need.
                Box::pin(self.wait(connection, waiting, body, expects, context.arrived)).await?
            }
        };
        if let Some(account) = &context.account {
            account.admitted(&admission);
        }
        if let Some(own) = admission.session
            && !is_known_as(session, own)
        {
            self.identifier.learn_request(&context.visitor, own);
        }
        let ends = matches!(session, Some(Membership::Member { ends: true, .. }));
        let is_new = !matches!(session, Some(Membership::Member { .. } | Membership::Placed { .. }));
        Ok(AdmittedRequest { admission: Some(admission), open: None, unknown, ends, is_new })
    }

    /// Lets in an ungated request, unless too many are there.
    pub(super) async fn admit_ungated(
        &self,
        connection: &Connection,
        exempt: Exempt,
        context: &RequestContext,
    ) -> Result<AdmittedRequest, NotAdmitted> {
        let entered = tokio::select! {
            biased;
            entered = self.open[context.pool.index()].of(exempt).enter() => entered,
            () = connection.closed(self.params.timeouts.disconnect_watch_after) => return Err(NotAdmitted::Gone),
        };
        let Some(pass) = entered else {
            let refusal = Refusal {
                request: RequestId(0),
                reason: Reason::GatewayFull,
                retry_after: RETRY_UNGATED,
                predicted_wait: Duration::ZERO,
                waiting: 0,
            };
            return Err(self.turned_away(TurnedAway::Refused(refusal), context.arrived.elapsed()));
        };
        Ok(AdmittedRequest { admission: None, open: Some(pass), unknown: None, ends: false, is_new: true })
    }

    pub(super) fn membership(
        &self,
        visitor: &Visitor,
        parts: &request::Parts,
        is_begun: impl Fn(SessionId) -> bool,
    ) -> Option<Membership> {
        self.identifier.membership(visitor, &parts.method, parts.uri.path(), is_begun)
    }

    /// Takes a request to the gate, as belonging to what its cookies say, or to what is remembered
    /// of its client.
    pub(super) fn arrive(
        &self,
        connection: &Connection,
        parts: &request::Parts,
        visitor: &Visitor,
        (route, session): (RouteId, Option<Membership>),
        lookup: SessionLookup,
    ) -> Result<ArrivalResult, NotAdmitted> {
        let client = self.identifier.client(visitor, session, parts, connection.peer());
        let mut unknown = client.map(|client| UnidentifiedClient {
            client,
            hint: connection.session_of(self.site, client.key),
            found: None,
        });
        let member = |own| self.identifier.recalled(own, &parts.method, parts.uri.path(), now_unix());
        // Where others wait, before the line: asking there uses up the network's quota.
        let has_waiters = self.waiting_room.is_some() && self.keeper.waiting() > 0;
        if let Some(unknown) = unknown.as_mut().filter(|_| has_waiters) {
            self.keeper.recognise(unknown, kind_of(session), &member);
        }
        let session = match (unknown.and_then(|unknown| unknown.found).and_then(member), session) {
            (Some(found), _) => Some(found),
            (None, Some(session)) => Some(self.in_line(session, visitor, parts, connection)?),
            (None, None) => None,
        };
        let asks = unknown.as_mut().filter(|_| !has_waiters).map(|it| (it, &member as MemberOf<'_>));
        let arrived = self.keeper.arrive(Arrival { route, session }, asks, lookup);
        let session = unknown.and_then(|unknown| unknown.found).and_then(member).or(session);
        Ok(ArrivalResult { arrived, session, unknown })
    }

    #[allow(clippy::needless_pass_by_value, reason = "what is turned away is answered here, and once")]
    pub(super) fn turned_away(&self, away: TurnedAway, waited: Duration) -> NotAdmitted {
        match away {
            TurnedAway::Refused(refusal) => {
                self.telemetry.note_refusal(refusal.reason);
                NotAdmitted::Refused(refusal, waited)
            }
            TurnedAway::InLine(position) => NotAdmitted::InLine(position),
        }
    }

    /// Holds a request until the gate has decided, while its client is there and part of its body
    /// comes in.
    pub(super) async fn wait(
        &self,
        connection: &Connection,
        mut waiting: Waiting,
        body: &mut RequestBody,
        expects_continue: bool,
        arrived: Instant,
    ) -> Result<GateAdmission, NotAdmitted> {
        // Reading the body of a client that expects `100 Continue` would ask for it.
        let request_buffer_bytes = if expects_continue { 0 } else { self.params.limits.request_buffer_bytes };
        let disconnect_watch_after = self.params.timeouts.disconnect_watch_after.min(WATCH_WAITING_AFTER);
        let mut guard = LeftWaiting { telemetry: Some(&self.telemetry) };
        let outcome = tokio::select! {
            biased;
            verdict = waiting.verdict() => verdict.map_err(|away| self.turned_away(away, arrived.elapsed())),
            () = connection.closed(disconnect_watch_after) => Err(NotAdmitted::Gone),
            fault = body.fill(request_buffer_bytes) => Err(fault.into()),
        };
        guard.telemetry = None;
        outcome
    }
}

/// Counts a client that left while it waited, when the library drops the future.
struct LeftWaiting<'a> {
    telemetry: Option<&'a Telemetry>,
}

impl Drop for LeftWaiting<'_> {
    fn drop(&mut self) {
        if let Some(telemetry) = self.telemetry {
            telemetry.note_disconnect_waiting();
        }
    }
}

fn is_known_as(membership: Option<Membership>, own: (KindId, SessionId)) -> bool {
    matches!(membership, Some(Membership::Member { kind, session, leased: false, .. }) if (kind, session) == own)
}
