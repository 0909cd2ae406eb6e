//! Requests that get no slot, and their answers.

use super::{ClientGone, Core, RequestContext};
use crate::error_response;
use crate::request_record::RequestOutcome;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION};
use http::uri::PathAndQuery;
use http::{Response, StatusCode, request};
use std::time::Duration;
use suimon_downstream::connection::Connection;
use suimon_downstream::connections::CloseRequest;
use suimon_downstream::request_body::{BodyFault, RequestBody};
use suimon_gate::{InLine, Refusal};
use suimon_message::validate::RequestFault;
use suimon_model::{KindId, Reason};

/// How much is read, and for how long, of a sent body that is not kept.
pub(super) const LOST_BYTES_MAX: usize = 1 << 20;
pub(super) const DISCARD_TIME_MAX: Duration = Duration::from_secs(5);

/// Why a request got no slot.
pub(super) enum NotAdmitted {
    Refused(Refusal, Duration),
    InLine(InLine),
    Later(KindId, u32),
    AsksForPass(KindId),
    BadBody(RequestFault),
    Gone,
}

impl From<BodyFault> for NotAdmitted {
    fn from(BodyFault(fault): BodyFault) -> Self {
        match fault {
            RequestFault::BrokenBody => NotAdmitted::Gone,
            fault => NotAdmitted::BadBody(fault),
        }
    }
}

impl NotAdmitted {
    /// Returns what is told of the request, and how long it had waited.
    fn told(&self) -> (RequestOutcome, Option<&'static str>, Duration) {
        let (outcome, reason) = match self {
            NotAdmitted::Refused(refusal, waited) => {
                return (RequestOutcome::Refused, Some(refusal.reason.code()), *waited);
            }
            NotAdmitted::InLine(waits) if waits.position.is_some() => (RequestOutcome::InLine, None),
            NotAdmitted::InLine(_) => (RequestOutcome::Refused, Some(Reason::LineClosed.code())),
            NotAdmitted::Later(..) => (RequestOutcome::Refused, Some(Reason::NetworkDrawsMany.code())),
            NotAdmitted::AsksForPass(_) => (RequestOutcome::Refused, Some(Reason::PassNeeded.code())),
            NotAdmitted::BadBody(fault) => {
                (RequestOutcome::BadRequest, Some(error_response::code_of(*fault)))
            }
            NotAdmitted::Gone => (RequestOutcome::ClientGone, None),
        };
        (outcome, reason, Duration::ZERO)
    }

    /// Returns whether it is the waiting room that answers.
    pub(super) fn is_of_room(&self) -> bool {
        matches!(self, NotAdmitted::InLine(_) | NotAdmitted::Later(..) | NotAdmitted::AsksForPass(_))
    }
}

/// Returns the answer to a request that another process takes, at the same address and by another
/// connection.
pub(super) fn ask_again(connection: &Connection, parts: &request::Parts) -> Response<String> {
    connection.standing().tell(CloseRequest::AfterNext);
    let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    // What begins with two slashes, or what browsers take for that, would name another host.
    let names_host = path.starts_with("//") || path.starts_with("/\\");
    let location = format!("{}{path}", if names_host { "/." } else { "" });
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = response.headers_mut();
    // What is no value of a header came from nowhere but a header.
    headers.insert(LOCATION, HeaderValue::try_from(location).unwrap_or(HeaderValue::from_static("/")));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl Core {
    /// Returns whether a request was refused because another process takes newcomers now. One of gRPC,
    /// or for a WebSocket, follows no redirect: it is told to come back.
    pub(super) fn is_elsewhere(&self, refusal: &Refusal, context: &RequestContext) -> bool {
        let follows = !context.error_format.is_grpc && !context.tunnel;
        refusal.reason == Reason::ShuttingDown && follows && self.keeper.is_handed_over()
    }

    /// Answers a request that is not admitted.
    pub(super) async fn send_away(
        &self,
        why: NotAdmitted,
        connection: &Connection,
        parts: &request::Parts,
        mut body: RequestBody,
        context: &RequestContext,
    ) -> Result<Response<String>, ClientGone> {
        let waiting_room = || self.waiting_room.as_ref().expect("no kind has a line without a room");
        let (outcome, reason, waited) = why.told();
        context.ends(outcome, reason, waited);
        let answer = match why {
            NotAdmitted::Refused(refusal, _) if self.is_elsewhere(&refusal, context) => {
                // A client that is cut off while it sends reads no answer.
                let _ = tokio::time::timeout(DISCARD_TIME_MAX, body.drain(LOST_BYTES_MAX)).await;
                ask_again(connection, parts)
            }
            NotAdmitted::Refused(refusal, waited) => {
                context.error_format.refused(&refusal, waited, &self.pages)
            }
            NotAdmitted::InLine(waits) => {
                match waits.position {
                    Some(_) => self.telemetry.note_waiting_page(waits.kind),
                    None => self.telemetry.note_refusal_in_line(waits.kind, Reason::LineClosed),
                }
                context
                    .error_format
                    .in_line(self.wait_in_line(connection, parts, body, context, &waits).await)
            }
            NotAdmitted::Later(kind, after) => {
                self.telemetry.note_refusal_in_line(kind, Reason::NetworkDrawsMany);
                context.error_format.in_line(waiting_room().later(
                    parts,
                    kind,
                    after,
                    self.at(connection, parts),
                ))
            }
            NotAdmitted::AsksForPass(kind) => {
                self.telemetry.note_refusal_in_line(kind, Reason::PassNeeded);
                context.error_format.in_line(waiting_room().asks_for_pass(
                    parts,
                    kind,
                    self.at(connection, parts),
                ))
            }
            NotAdmitted::BadBody(fault) => {
                self.telemetry.note_fault();
                context.error_format.fault(fault, &self.pages)
            }
            NotAdmitted::Gone => {
                self.telemetry.note_disconnect_waiting();
                return Err(ClientGone);
            }
        };
        Ok(answer)
    }
}
