//! Requests that get no slot, and what they are answered.

use super::{Asked, Core, Gone};
use http::{Response, request};
use std::time::Duration;
use suimon_downstream::answer_body::AnswerBody;
use suimon_downstream::connection::Connection;
use suimon_downstream::request_body::{BodyFault, RequestBody};
use suimon_gate::{InLine, Refusal};
use suimon_message::validate::Fault;
use suimon_model::{KindId, Reason};

/// Why a request got no slot.
pub(super) enum NotAdmitted {
    Refused(Refusal, Duration),
    InLine(InLine),
    Later(KindId, u32),
    AsksForPass(KindId),
    BadBody(Fault),
    Gone,
}

impl From<BodyFault> for NotAdmitted {
    fn from(BodyFault(fault): BodyFault) -> Self {
        match fault {
            Fault::BrokenBody => NotAdmitted::Gone,
            fault => NotAdmitted::BadBody(fault),
        }
    }
}

impl NotAdmitted {
    /// Returns whether it is the waiting room that answers.
    pub(super) fn is_of_room(&self) -> bool {
        matches!(self, NotAdmitted::InLine(_) | NotAdmitted::Later(..) | NotAdmitted::AsksForPass(_))
    }
}

impl Core {
    /// Answers a request that is not admitted.
    pub(super) async fn send_away(
        &self,
        why: NotAdmitted,
        connection: &Connection,
        parts: &request::Parts,
        body: RequestBody,
        asked: &Asked,
    ) -> Result<Response<AnswerBody>, Gone> {
        let room = || self.room.as_ref().expect("no kind has a line without a room");
        let answer = match why {
            NotAdmitted::Refused(refusal, waited) => asked.asker.refused(&refusal, waited, &self.pages),
            NotAdmitted::InLine(waits) => {
                match waits.place {
                    Some(_) => self.telemetry.note_waiting_page(waits.kind),
                    None => self.telemetry.note_refusal_in_line(waits.kind, Reason::LineClosed),
                }
                asked.asker.in_line(self.wait_in_line(connection, parts, body, asked, &waits).await)
            }
            NotAdmitted::Later(kind, after) => {
                self.telemetry.note_refusal_in_line(kind, Reason::NetworkDrawsMany);
                asked.asker.in_line(room().later(parts, kind, after, self.at(connection, parts)))
            }
            NotAdmitted::AsksForPass(kind) => {
                self.telemetry.note_refusal_in_line(kind, Reason::PassNeeded);
                asked.asker.in_line(room().asks_for_pass(parts, kind, self.at(connection, parts)))
            }
            NotAdmitted::BadBody(fault) => {
                self.telemetry.note_fault();
                asked.asker.fault(fault, &self.pages)
            }
            NotAdmitted::Gone => {
                self.telemetry.note_gone_while_waiting();
                return Err(Gone);
            }
        };
        Ok(answer.map(AnswerBody::text))
    }
}
