//! Requests by plain HTTP that are sent to HTTPS.

use super::Core;
use super::not_admitted::{DISCARD_TIME_MAX, LOST_BYTES_MAX};
use crate::account::Account;
use crate::error_response::{self, ErrorFormat};
use crate::https::redirect_to;
use crate::request_record::RequestOutcome;
use http::header::{EXPECT, HeaderValue};
use http::{Response, request};
use std::sync::Arc;
use std::time::Duration;
use suimon_downstream::answer_body::ResponseBody;
use suimon_downstream::request_body::RequestBody;
use suimon_message::validate::RequestFault;

impl Core {
    /// Answers a request with where it is sent, or with why it is sent nowhere.
    pub(super) async fn redirect(
        &self,
        location: Result<HeaderValue, RequestFault>,
        parts: &request::Parts,
        mut body: RequestBody,
        error_format: &ErrorFormat,
        account: Option<&Arc<Account>>,
    ) -> Response<ResponseBody> {
        let end = |outcome, reason| {
            if let Some(account) = account {
                account.ends(outcome, reason, Duration::ZERO);
            }
        };
        let location = match location {
            Ok(location) => location,
            Err(fault) => {
                self.telemetry.note_fault();
                end(RequestOutcome::BadRequest, Some(error_response::code_of(fault)));
                return error_format.fault(fault, &self.pages).map(ResponseBody::text);
            }
        };
        // A client that is cut off while it sends reads no answer. One that asks first sends nothing.
        if !parts.headers.contains_key(EXPECT) {
            let _ = tokio::time::timeout(DISCARD_TIME_MAX, body.drain(LOST_BYTES_MAX)).await;
        }
        self.telemetry.note_https_redirect();
        end(RequestOutcome::Redirected, None);
        redirect_to(location, &parts.method).map(ResponseBody::text)
    }
}
