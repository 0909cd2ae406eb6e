//! The body of an answer, taken as far as need be, so that the slot ends when the application is done.

use super::{Core, Gone};
use crate::buffer::{self, AnswerBody};
use crate::connection::Connection;
use crate::exchange::{Exchange, Gathered};
use crate::headers;
use crate::upstream::UpstreamError;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{StatusCode, response};
use hyper::upgrade::OnUpgrade;
use std::sync::Arc;
use std::time::Duration;
use suimon_model::Ending;

/// How long a client may be waited for while its answer holds a slot, all waits together. Less than for a body that is sent: the slot is not asked for again.
const CLIENT_TIME_MAX: Duration = Duration::from_millis(50);

impl Core {
    /// Takes the body as far as need be, so that the slot ends when the application is done.
    pub(super) async fn gather(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        head: &response::Parts,
        mut exchange: Exchange,
        switch: Option<OnUpgrade>,
    ) -> Result<Result<AnswerBody, UpstreamError>, Gone> {
        let ending = ending_of(head.status);
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            if let (Some(body), Some(switch)) = (exchange.release(ending), switch) {
                self.tunnel(connection, switch, body);
            }
            return Ok(Ok(AnswerBody::empty()));
        }
        if is_stream(&head.headers) {
            let body = exchange.release(ending);
            return Ok(Ok(body.map_or_else(AnswerBody::empty, AnswerBody::passing)));
        }
        // Where no more can be held the application waits for its clients.
        let bytes_max = if self.budget.is_used_up() { 0 } else { self.limits.response_bytes };
        let gathered = tokio::select! {
            biased;
            gathered = exchange.gather(bytes_max) => gathered,
            () = connection.left(self.timeouts.watch_after) => return Err(Gone),
        };
        match gathered {
            Ok(Gathered::Whole { first, rest }) => {
                exchange.release(ending);
                Ok(Ok(AnswerBody::whole(first, rest).counted(&self.budget)))
            }
            Ok(Gathered::More { first, rest }) => {
                let budget = Arc::clone(&self.budget);
                let (bytes_max, stall_max) = (self.limits.response_bytes, self.timeouts.body_write);
                let (writer, reader) = buffer::queue(budget, bytes_max, stall_max, CLIENT_TIME_MAX);
                for frame in first.map(http_body::Frame::data).into_iter().chain(rest) {
                    writer.push(frame);
                }
                tokio::spawn(exchange.pump(writer, ending));
                Ok(Ok(AnswerBody::queued(reader)))
            }
            Err(error) => Ok(Err(error)),
        }
    }
}

/// Answers that do not end, or are to be shown piece by piece as they come.
fn is_stream(headers: &HeaderMap) -> bool {
    let is = |text: &[u8], start: &[u8]| {
        text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
    };
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    is(kind, b"text/event-stream")
        || is(kind, b"multipart/x-mixed-replace")
        || headers::is_grpc(headers)
        || headers.get("x-accel-buffering").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"no"))
}

fn ending_of(status: StatusCode) -> Ending {
    if status.is_server_error() {
        Ending::Failed(suimon_model::Failure::ServerError)
    } else if status.is_client_error() {
        Ending::Declined
    } else {
        Ending::Completed
    }
}
