//! The body of an answer, taken as far as need be, so that the slot ends when the application is
//! done.

use super::{ClientGone, Core};
use crate::exchange::{Exchange, Gathered};
use http::header::{HeaderMap, HeaderName};
use http::{StatusCode, response};
use hyper::upgrade::OnUpgrade;
use std::sync::Arc;
use std::time::Duration;
use suimon_downstream::answer_body::ResponseBody;
use suimon_downstream::connection::Connection;
use suimon_downstream::queue;
use suimon_message::headers;
use suimon_model::Outcome;
use suimon_upstream::UpstreamError;

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How long a client may be waited for while its answer holds a slot, all waits together. Less than
/// for a body that is sent: the slot is not taken again.
pub const CLIENT_TIME_MAX: Duration = Duration::from_millis(50);

/// The part of a body that was taken, and what happens to the rest.
pub(super) enum Taken {
    /// Nothing was taken: from here on it is another protocol's.
    Switched,
    /// Nothing was taken: it is passed on as it comes.
    Stream,
    So(Gathered),
}

impl Core {
    /// Takes the body as far as need be, so that the slot ends when the application is done.
    pub(super) async fn gather(
        &self,
        connection: &Connection,
        head: &response::Parts,
        exchange: &mut Exchange,
    ) -> Result<Result<Taken, UpstreamError>, ClientGone> {
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Ok(Taken::Switched));
        }
        if is_stream(&head.headers) {
            return Ok(Ok(Taken::Stream));
        }
        // Where no more can be held the application waits for its clients.
        let bytes_max =
            if self.backend.budget.is_used_up() { 0 } else { self.params.limits.response_buffer_bytes };
        tokio::select! {
            biased;
            gathered = exchange.gather(bytes_max) => Ok(gathered.map(Taken::So)),
            () = connection.left(self.params.timeouts.disconnect_watch_after) => Err(ClientGone),
        }
    }

    /// Returns the body of the answer, whose slot is given back as soon as the application is done.
    pub(super) fn answer_with(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        head: &response::Parts,
        exchange: Exchange,
        taken: Taken,
        switch: Option<OnUpgrade>,
    ) -> ResponseBody {
        let outcome = outcome_of(head.status);
        match taken {
            Taken::Switched => {
                let account = exchange.account();
                if let (Some(body), Some(switch)) = (exchange.release(outcome), switch) {
                    self.tunnel(connection, switch, body, account);
                }
                ResponseBody::empty()
            }
            Taken::Stream => {
                exchange.release(outcome).map_or_else(ResponseBody::empty, ResponseBody::streamed)
            }
            Taken::So(Gathered::Whole { first, rest }) => {
                exchange.release(outcome);
                ResponseBody::whole(first, rest).counted(&self.backend.budget)
            }
            Taken::So(Gathered::More { first, rest }) => {
                let budget = Arc::clone(&self.backend.budget);
                let (bytes_max, stall_max) =
                    (self.params.limits.response_buffer_bytes, self.params.timeouts.body_write);
                let (writer, reader) = queue::queue(budget, bytes_max, stall_max, CLIENT_TIME_MAX);
                for frame in first.map(http_body::Frame::data).into_iter().chain(rest) {
                    writer.push(frame);
                }
                tokio::spawn(exchange.pump(writer, outcome));
                ResponseBody::queued(reader)
            }
        }
    }
}

/// Answers that do not end, or are to be shown piece by piece as they come.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    const KINDS: [&[u8]; 3] = [b"text/event-stream", b"multipart/x-mixed-replace", b"application/grpc"];
    headers::is_of_kind(headers::content_type(headers), &KINDS)
        || headers.get(X_ACCEL_BUFFERING).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"no"))
}

/// Returns what the gate is told of a complete answer.
pub(super) fn outcome_of(status: StatusCode) -> Outcome {
    if status.is_server_error() {
        Outcome::Failed(suimon_model::Failure::ServerError)
    } else if status.is_client_error() {
        Outcome::Declined
    } else {
        Outcome::Completed
    }
}
