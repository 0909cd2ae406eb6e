//! What connections of clients ask of the gateway.

use super::{ClientGone, Core, serve};
use crate::error_response;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use suimon_downstream::answer_body::ResponseBody;
use suimon_downstream::connection::Connection;
use suimon_downstream::host::Host;
use suimon_downstream::service::Service;
use suimon_message::validate::RequestFault;
use suimon_waiting_room::BrowserPreferences;

impl Host for Core {
    fn note_connection_opened(&self) {
        self.telemetry.note_connection_opened();
    }

    fn note_connection_closed(&self) {
        self.telemetry.note_connection_closed();
    }

    fn note_unreadable(&self) {
        self.telemetry.note_request();
        self.telemetry.note_fault();
    }

    fn unreadable(&self, fault: RequestFault, accepts: Option<HeaderMap>) -> Bytes {
        error_response::unreadable(fault, accepts.as_ref().map(BrowserPreferences::of), &self.pages)
    }

    fn is_to_warn_of_balancer(&self) -> bool {
        self.telemetry.is_to_warn_of_balancer()
    }
}

impl Service for Core {
    type Gone = ClientGone;

    fn serve(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, ClientGone>> + Send {
        serve(self, connection, request)
    }
}
