//! A request and the waiting room: what it has to do with the line, and what is answered where it
//! waits.

use super::not_admitted::{DISCARD_TIME_MAX, LOST_BYTES_MAX, NotAdmitted, ask_again};
use super::{ClientGone, Core, RequestContext};
use crate::gatekeeper::{Arrived, SessionLookup};
use crate::wall_clock::now_unix;
use http::{Method, Response, request};
use std::time::Duration;
use suimon_downstream::connection::Connection;
use suimon_downstream::request_body::RequestBody;
use suimon_gate::{Arrival, InLine, Membership};
use suimon_identity::identify::Visitor;
use suimon_identity::ticket::Ticket;
use suimon_line::SavedLine;
use suimon_model::{KindId, RouteId};
use suimon_waiting_room::{
    self as waiting_room, At, Form, LineClaim, LineOpening, SubmittedForm, WaitingRoom,
};

/// The longest form that the waiting page keeps, bytes.
pub(crate) const FORM_BYTES_MAX: usize = 16 << 10;

impl Core {
    /// Returns how a request belongs to a session, its place in line considered.
    pub(super) fn in_line(
        &self,
        session: Membership,
        visitor: &Visitor,
        parts: &request::Parts,
        connection: &Connection,
    ) -> Result<Membership, NotAdmitted> {
        let (Membership::Newcomer(kind), Some(waiting_room)) = (session, &self.waiting_room) else {
            return Ok(session);
        };
        if !waiting_room.has_line(kind) {
            return Ok(session);
        }
        // While nobody waits, hardly anybody draws a number, and nothing is checked.
        let has_waiters = self.keeper.waiting() > 0;
        let client = || connection.peer().client(&parts.headers);
        match waiting_room.line_claim(
            kind,
            (visitor.ticket(Some(kind)), visitor.pass),
            parts,
            has_waiters,
            client,
            (now_unix, || self.opens(kind)),
        ) {
            LineClaim::Holds(ticket) => {
                let session = waiting_room.tickets().session(&ticket);
                Ok(Membership::Placed {
                    kind,
                    position: ticket.position,
                    session,
                    draws: waiting_room::draws(parts),
                })
            }
            LineClaim::Draws(lane) => Ok(Membership::Drawing { kind, lane }),
            LineClaim::WithoutLine => Ok(Membership::WithoutLine(kind)),
            LineClaim::Later(after) => Err(NotAdmitted::Later(kind, after)),
            LineClaim::NeedsPass => Err(NotAdmitted::AsksForPass(kind)),
        }
    }

    /// Answers a request that is not admitted, and has a place.
    pub(super) async fn wait_in_line(
        &self,
        connection: &Connection,
        parts: &request::Parts,
        mut body: RequestBody,
        context: &RequestContext,
        waits: &InLine,
    ) -> Response<String> {
        let Some(waiting_room) = &self.waiting_room else {
            unreachable!("no kind has a line without a room")
        };
        let sent = match parts.method {
            Method::POST if waiting_room::keeps_form(parts) => match body.collect(FORM_BYTES_MAX).await {
                Some(bytes) => Form::parse(&bytes).map_or(SubmittedForm::Lost, SubmittedForm::Form),
                None => SubmittedForm::Lost,
            },
            Method::POST if context.error_format.is_grpc => SubmittedForm::Lost,
            Method::POST => {
                // A browser that is cut off while it sends shows no page.
                let _ = tokio::time::timeout(DISCARD_TIME_MAX, body.drain(LOST_BYTES_MAX)).await;
                SubmittedForm::Lost
            }
            _ => SubmittedForm::Nothing,
        };
        let held = waiting_room
            .place_of(context.visitor.ticket(Some(waits.kind)))
            .filter(|ticket| (ticket.kind, Some(ticket.position)) == (waits.kind, waits.position));
        let at = self.at(connection, parts);
        waiting_room.note_pass(context.visitor.pass, waits.kind, waits.position, at.now);
        waiting_room.answer(parts, waits, held, sent, at)
    }

    /// Answers requests for the waiting room and not for the application: polls, and the addresses
    /// beside the page.
    pub(super) async fn answer_waiting_room(
        &self,
        waiting_room: &WaitingRoom,
        connection: &Connection,
        parts: &request::Parts,
        body: &mut RequestBody,
        context: &RequestContext,
    ) -> Result<Response<String>, ClientGone> {
        let at = self.at(connection, parts);
        let kind = self.identifier.kind(&parts.method, parts.uri.path());
        let carried = context.visitor.ticket(kind).or(context.visitor.ticket(None));
        let ticket = waiting_room.place_of(carried);
        if let Some(endpoint) =
            waiting_room::InternalEndpoint::of(parts.uri.path(), &self.params.waiting_room)
        {
            let sent =
                if endpoint.takes_body() { body.collect(FORM_BYTES_MAX).await } else { Some(Vec::new()) };
            let client = connection.peer().client(&parts.headers);
            let drawn = if endpoint == waiting_room::InternalEndpoint::Draw {
                self.saved_lines()
            } else {
                Vec::new()
            };
            let body = sent.as_deref().unwrap_or_default();
            return Ok(waiting_room.endpoint(
                endpoint,
                &waiting_room::InternalRequest { parts, ticket, drawn: &drawn, body, client, at },
            ));
        }
        if self.keeper.is_handed_over() {
            // The line goes on elsewhere.
            return Ok(ask_again(connection, parts));
        }
        self.telemetry.note_poll(ticket.map(|ticket| ticket.kind).or(kind));
        if ticket.is_some_and(|ticket| waiting_room.asks_too_early(&ticket, at.now)) {
            return Ok(WaitingRoom::too_early());
        }
        let is_stranger = carried.is_none() && context.visitor.lease(None).is_none();
        if let Some(page) = parts.headers.get(waiting_room::POLL).filter(|_| is_stranger) {
            // A visitor who has got a pass meanwhile has only to come again.
            if page.as_bytes() == b"pass" && context.visitor.pass.is_some() {
                return Ok(waiting_room.poll(None, None, at));
            }
            let opens =
                kind.filter(|_| page.as_bytes() == b"full").and_then(|kind| Some((kind, self.opens(kind)?)));
            let client = || connection.peer().client(&parts.headers);
            if let Some(after) =
                opens.and_then(|(kind, opens)| waiting_room.may_draw_after(kind, opens, client()))
            {
                return Ok(WaitingRoom::full_for(after));
            }
            let closed = kind.filter(|kind| self.keeper.is_closed(*kind));
            return Ok(waiting_room.poll_without_place(page.as_bytes(), closed, at));
        }
        // An admitted visitor has nothing to wait for.
        let is_inside = |kind: KindId| {
            context
                .visitor
                .lease(Some(kind))
                .is_some_and(|proof| proof.stands || self.keeper.has(proof.session))
        };
        let waits = ticket.filter(|ticket| !is_inside(ticket.kind));
        if let Some(ticket) = waits
            && waiting_room::asks_to_begin(parts)
            && let (Ok(route), Ok(_held)) = (context.class.gate(), self.entering.try_acquire())
        {
            return self.begin(waiting_room, connection, parts, body, context, (ticket, route)).await;
        }
        let standing = waits.and_then(|ticket| self.keeper.contact(ticket.kind, ticket.position));
        Ok(waiting_room.poll(standing, waits, at))
    }

    /// Answers the holder of a place who asks to begin: once the session has begun, or when they
    /// were held for as long as a connection should be.
    async fn begin(
        &self,
        waiting_room: &WaitingRoom,
        connection: &Connection,
        parts: &request::Parts,
        body: &mut RequestBody,
        context: &RequestContext,
        (ticket, route): (Ticket, RouteId),
    ) -> Result<Response<String>, ClientGone> {
        let session = waiting_room.tickets().session(&ticket);
        let entering = Membership::Entering { kind: ticket.kind, position: ticket.position, session };
        let arrival = Arrival { route, session: Some(entering) };
        let arrived =
            self.keeper.arrive(arrival, None, SessionLookup::Last).expect("what was named last is taken in");
        let answer = match arrived {
            Arrived::Waiting(waiting) => self.wait(connection, waiting, body, true, context.arrived).await,
            Arrived::TurnedAway(away) => Err(self.turned_away(away, Duration::ZERO)),
            Arrived::Admitted(admission) => Ok(admission),
        };
        let waits = match answer {
            Err(NotAdmitted::InLine(waits)) => waits,
            Err(NotAdmitted::Refused(refusal, _)) if self.is_elsewhere(&refusal, context) => {
                return Ok(ask_again(connection, parts));
            }
            Err(NotAdmitted::Refused(refusal, waited)) => {
                return Ok(context.error_format.refused(&refusal, waited, &self.pages));
            }
            Err(NotAdmitted::BadBody(fault)) => {
                self.telemetry.note_fault();
                return Ok(context.error_format.fault(fault, &self.pages));
            }
            Err(NotAdmitted::Gone) => return Err(ClientGone),
            Ok(_) | Err(NotAdmitted::Later(..) | NotAdmitted::AsksForPass(_)) => {
                unreachable!("a request only to begin is answered in line")
            }
        };
        let at = self.at(connection, parts);
        if let Some(session) = waits.begun {
            self.note_line_wait(&context.visitor, waits.kind);
            let lease = self.identifier.leases().issue(waits.kind, session, at.now, at.secure);
            return Ok(waiting_room.let_in(ticket, lease, at));
        }
        // Its session is over.
        let Some(_) = waits.position else { return Ok(waiting_room.poll(None, None, at)) };
        Ok(waiting_room.still_next(waits.standing, ticket, context.arrived.elapsed(), at))
    }

    /// Returns when the line of `kind` opens, if it is to.
    fn opens(&self, kind: KindId) -> Option<LineOpening> {
        let at = self.keeper.opens(kind)?;
        let left = at.since(self.keeper.clock().now()).as_secs();
        Some(LineOpening { at, left: u32::try_from(left).unwrap_or(u32::MAX) })
    }

    fn saved_lines(&self) -> Vec<(String, SavedLine)> {
        let kinds = self.params.sessions.kinds.iter().enumerate();
        let saved = kinds.filter_map(|(index, kind)| {
            Some((kind.name.clone(), self.keeper.saved_line(KindId(index as u32))?))
        });
        saved.collect()
    }

    /// Returns this moment, for an answer on this connection.
    pub(super) fn at(&self, connection: &Connection, parts: &request::Parts) -> At {
        At {
            now: now_unix(),
            instant: self.keeper.clock().now(),
            secure: self.params.lease.secure || connection.peer().is_secure(&parts.headers),
        }
    }
}
