//! A request and the waiting room: what it has to do with the line, and what is answered where it waits.

use super::not_admitted::NotAdmitted;
use super::{Asked, Core, Gone};
use crate::gatekeeper::{Arrived, Named};
use crate::wall_clock::now_unix;
use http::{Method, Response, request};
use std::time::Duration;
use suimon_downstream::connection::Connection;
use suimon_downstream::request_body::RequestBody;
use suimon_gate::{Arrival, InLine, Membership};
use suimon_identity::identify::Visitor;
use suimon_identity::ticket::Ticket;
use suimon_line::Saved;
use suimon_model::{KindId, RouteId};
use suimon_waiting_room::{self as room, At, Form, Opens, Room, Sent, Standpoint};

/// What is read, and for how long, of something sent that is not kept.
const LOST_BYTES_MAX: usize = 1 << 20;
const LOST_PATIENCE: Duration = Duration::from_secs(5);
/// The longest form that the waiting page keeps, bytes.
const FORM_BYTES_MAX: usize = 16 << 10;

impl Core {
    /// Returns how a request belongs to a session, its place in line considered.
    pub(super) fn in_line(
        &self,
        session: Membership,
        visitor: &Visitor,
        parts: &request::Parts,
        connection: &Connection,
    ) -> Result<Membership, NotAdmitted> {
        let (Membership::Newcomer(kind), Some(room)) = (session, &self.room) else { return Ok(session) };
        if !room.has_line(kind) {
            return Ok(session);
        }
        // While nobody waits, numbers are drawn by hardly anybody, and nothing is asked.
        let is_waited_in = self.keeper.waiting() > 0;
        let client = || connection.peer().client(&parts.headers);
        match room.standpoint(
            kind,
            (visitor.ticket(Some(kind)), visitor.pass),
            parts,
            is_waited_in,
            client,
            (now_unix, || self.opens(kind)),
        ) {
            Standpoint::Holds(ticket) => {
                let session = room.tickets().session(&ticket);
                Ok(Membership::Placed { kind, place: ticket.place, session, draws: room::draws(parts) })
            }
            Standpoint::Draws(lane) => Ok(Membership::Drawing { kind, lane }),
            Standpoint::Passes => Ok(Membership::Passing(kind)),
            Standpoint::Later(after) => Err(NotAdmitted::Later(kind, after)),
            Standpoint::NeedsPass => Err(NotAdmitted::AsksForPass(kind)),
        }
    }

    /// Answers a request that is not let in, and has a place.
    pub(super) async fn wait_in_line(
        &self,
        connection: &Connection,
        parts: &request::Parts,
        mut body: RequestBody,
        asked: &Asked,
        waits: &InLine,
    ) -> Response<String> {
        let Some(room) = &self.room else { unreachable!("no kind has a line without a room") };
        let sent = match parts.method {
            Method::POST if room::keeps_form(parts) => match body.collect(FORM_BYTES_MAX).await {
                Some(bytes) => Form::parse(&bytes).map_or(Sent::Lost, Sent::Form),
                None => Sent::Lost,
            },
            Method::POST if asked.asker.is_grpc => Sent::Lost,
            Method::POST => {
                // A browser that is cut off while it sends shows no page.
                let _ = tokio::time::timeout(LOST_PATIENCE, body.drain(LOST_BYTES_MAX)).await;
                Sent::Lost
            }
            _ => Sent::Nothing,
        };
        let held = room
            .place_of(asked.visitor.ticket(Some(waits.kind)))
            .filter(|ticket| (ticket.kind, Some(ticket.place)) == (waits.kind, waits.place));
        let at = self.at(connection, parts);
        room.note_pass(asked.visitor.pass, waits.kind, waits.place, at.now);
        room.answer(parts, waits, held, sent, at)
    }

    /// Answers what is for the waiting room and not for the application: how a place stands, and the addresses beside the page.
    pub(super) async fn beside(
        &self,
        room: &Room,
        connection: &Connection,
        parts: &request::Parts,
        body: &mut RequestBody,
        asked: &Asked,
    ) -> Result<Response<String>, Gone> {
        let at = self.at(connection, parts);
        let kind = self.identifier.kind(&parts.method, parts.uri.path());
        let carried = asked.visitor.ticket(kind).or(asked.visitor.ticket(None));
        let ticket = room.place_of(carried);
        if let Some(side) = room::Side::of(parts.uri.path()) {
            let sent = if side.takes_body() { body.collect(FORM_BYTES_MAX).await } else { Some(Vec::new()) };
            let client = connection.peer().client(&parts.headers);
            let drawn = if side == room::Side::Draw { self.saved_lines() } else { Vec::new() };
            let body = sent.as_deref().unwrap_or_default();
            return Ok(room.side(side, &room::Asked { parts, ticket, drawn: &drawn, body, client, at }));
        }
        self.telemetry.note_poll(ticket.map(|ticket| ticket.kind).or(kind));
        if ticket.is_some_and(|ticket| room.asks_too_early(&ticket, at.now)) {
            return Ok(Room::too_early());
        }
        let is_stranger = carried.is_none() && asked.visitor.lease(None).is_none();
        if let Some(page) = parts.headers.get(room::POLL).filter(|_| is_stranger) {
            // Whoever has got a pass meanwhile has only to come again.
            if page.as_bytes() == b"pass" && asked.visitor.pass.is_some() {
                return Ok(room.poll(None, None, at));
            }
            let opens =
                kind.filter(|_| page.as_bytes() == b"full").and_then(|kind| Some((kind, self.opens(kind)?)));
            let client = || connection.peer().client(&parts.headers);
            if let Some(after) = opens.and_then(|(kind, opens)| room.may_draw_after(kind, opens, client())) {
                return Ok(Room::full_for(after));
            }
            let closed = kind.filter(|kind| self.keeper.is_closed(*kind));
            return Ok(room.poll_without_place(page.as_bytes(), closed, at));
        }
        // Whoever is inside has nothing to wait for.
        let is_inside = |kind: KindId| {
            asked
                .visitor
                .lease(Some(kind))
                .is_some_and(|proof| proof.stands || self.keeper.has(proof.session))
        };
        let waits = ticket.filter(|ticket| !is_inside(ticket.kind));
        if let Some(ticket) = waits
            && room::asks_to_begin(parts)
            && let (Ok(route), Ok(_held)) = (asked.class.gate(), self.entering.try_acquire())
        {
            return self.begin(room, connection, parts, body, asked, (ticket, route)).await;
        }
        let standing = waits.and_then(|ticket| self.keeper.contact(ticket.kind, ticket.place));
        Ok(room.poll(standing, waits, at))
    }

    /// Answers the holder of a place who asks to begin: once the session has begun, or when they were held as long as is good for a connection.
    async fn begin(
        &self,
        room: &Room,
        connection: &Connection,
        parts: &request::Parts,
        body: &mut RequestBody,
        asked: &Asked,
        (ticket, route): (Ticket, RouteId),
    ) -> Result<Response<String>, Gone> {
        let session = room.tickets().session(&ticket);
        let entering = Membership::Entering { kind: ticket.kind, place: ticket.place, session };
        let arrival = Arrival { route, session: Some(entering) };
        let arrived =
            self.keeper.arrive(arrival, None, Named::Last).expect("what was named last is taken in");
        let answer = match arrived {
            Arrived::Waiting(waiting) => self.wait(connection, waiting, body, true, asked.arrived).await,
            Arrived::TurnedAway(away) => Err(self.turned_away(away, Duration::ZERO)),
            Arrived::Admitted(admission) => Ok(admission),
        };
        let waits = match answer {
            Err(NotAdmitted::InLine(waits)) => waits,
            Err(NotAdmitted::Refused(refusal, waited)) => {
                return Ok(asked.asker.refused(&refusal, waited, &self.pages));
            }
            Err(NotAdmitted::BadBody(fault)) => {
                self.telemetry.note_fault();
                return Ok(asked.asker.fault(fault, &self.pages));
            }
            Err(NotAdmitted::Gone) => return Err(Gone),
            Ok(_) | Err(NotAdmitted::Later(..) | NotAdmitted::AsksForPass(_)) => {
                unreachable!("whoever asks for nothing but to begin is answered in line")
            }
        };
        let at = self.at(connection, parts);
        if let Some(session) = waits.begun {
            self.note_line_wait(&asked.visitor, waits.kind);
            let lease = self.identifier.leases().issue(waits.kind, session, at.now, at.secure);
            return Ok(room.let_in(ticket, lease, at));
        }
        // Its session is over.
        let Some(_) = waits.place else { return Ok(room.poll(None, None, at)) };
        Ok(room.still_next(waits.standing, ticket, asked.arrived.elapsed(), at))
    }

    /// Returns when the line of `kind` opens, if it is to.
    fn opens(&self, kind: KindId) -> Option<Opens> {
        let at = self.keeper.opens(kind)?;
        let left = at.since(self.keeper.clock().now()).as_secs();
        Some(Opens { at, left: u32::try_from(left).unwrap_or(u32::MAX) })
    }

    fn saved_lines(&self) -> Vec<(String, Saved)> {
        let kinds = self.kinds.iter().enumerate();
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
            secure: self.lease_secure || connection.peer().is_secure(&parts.headers),
        }
    }
}
