//! From the gate to the application and back.

use super::admit::AdmittedRequest;
use super::finish::Due;
use super::tunnel::websocket_key;
use super::{ClientGone, Core, RequestContext, yield_to_coalesce_writes};
use crate::account::name_request;
use crate::error_response;
use crate::exchange::{Exchange, ExchangeInfo};
use crate::gatekeeper::{GateAdmission, Slot};
use crate::request_ids;
use crate::request_record::RequestOutcome;
use crate::returns;
use crate::stall::RouteActivity;
use http::header::{EXPECT, HeaderValue, SEC_WEBSOCKET_KEY};
use http::uri::PathAndQuery;
use http::{Method, Response, StatusCode, request};
use hyper::upgrade::OnUpgrade;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use suimon_downstream::answer_body::ResponseBody;
use suimon_downstream::charge;
use suimon_downstream::connection::Connection;
use suimon_downstream::request_body::{BodyFault, BufferPolicy, RequestBody};
use suimon_downstream::uploads::{Origin, Sender};
use suimon_gate::LeaseDue;
use suimon_identity::identify;
use suimon_message::validate::RequestFault;
use suimon_message::{headers, signals};
use suimon_params::OnClientDisconnect;
use suimon_routes::Class;
use suimon_upstream::{Blame, NodePin, RequestClient, RequestHead, UpstreamError, UpstreamErrorKind};

/// How much of a path is shown in a warning, bytes.
const PATH_LOGGED_MAX: usize = 256;

impl Core {
    /// Admitted: takes a request to the application and its answer back.
    pub(super) async fn forward(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        mut parts: Box<request::Parts>,
        mut body: RequestBody,
        context: &RequestContext,
        switch: Option<OnUpgrade>,
        passed: AdmittedRequest,
    ) -> Result<Response<ResponseBody>, ClientGone> {
        let AdmittedRequest { admission, open, unknown, ends, is_new } = passed;
        let is_call = self.is_call(&parts, context.class, context.pool);
        let (slot, session, lease, waited, pause_ratio) = match admission {
            Some(GateAdmission { slot, session, lease, waited, pause_ratio, .. }) => {
                (Some(slot), session, lease, waited, pause_ratio)
            }
            None => (None, None, LeaseDue::No, Duration::ZERO, 0.0),
        };
        let address = connection.peer().client(&parts.headers);
        let origin = Origin::of(address);
        let sender = Sender { origin, is_inside: !is_new || self.params.sessions.kinds.is_empty() };
        if body.is_unfinished() {
            let turn: Option<Box<dyn charge::Slot>> =
                slot.as_ref().and_then(Slot::turn).map(|turn| Box::new(turn) as _);
            let has_slot = turn.is_some();
            let uploads = if is_call { &self.backend.calls } else { &self.backend.uploads };
            let way = Box::new(RouteActivity {
                telemetry: Arc::clone(&self.telemetry),
                route: context.class.route(),
            });
            body.charge(turn, uploads, sender, way);
            if has_slot && parts.headers.contains_key(EXPECT) {
                let asked_for = tokio::select! {
                    biased;
                    asked_for = body.ask_for(self.params.limits.request_buffer_bytes) => asked_for,
                    () = connection.closed(self.params.timeouts.disconnect_watch_after) => return Err(ClientGone),
                };
                if let Err(fault) = asked_for {
                    return self.broken_off(context, fault);
                }
            }
            let now = Instant::now();
            let may_stream = may_stream(&parts.method);
            let is_wary = self.backend.uploads.is_wary(now);
            let upstream = self.backend.upstream(context.pool);
            let needs_all = upstream.wants_whole_bodies() || !body.is_declared() && upstream.needs_length();
            let has_room = self.backend.uploads.has_room(self.keeper.in_flight_max(), now);
            let keeps = if needs_all {
                BufferPolicy::All
            } else if may_stream && is_wary {
                BufferPolicy::WhileWary
            } else if !may_stream || !has_room || !waited.is_zero() {
                BufferPolicy::All
            } else {
                BufferPolicy::Slow
            };
            let is_stream = !body.is_declared() && may_stream && has_room && !is_wary && !needs_all;
            if has_slot && !is_call && !is_stream {
                // On the heap: short bodies are there by now.
                let kept = Box::pin(body.keep(&self.backend.spools, &self.backend.kept, sender, keeps));
                let kept = tokio::select! {
                    biased;
                    kept = kept => kept,
                    () = connection.closed(self.params.timeouts.disconnect_watch_after) => return Err(ClientGone),
                };
                if let Err(fault) = kept {
                    return self.broken_off(context, fault);
                }
            }
            if !is_call && body.is_unfinished() {
                body.streams();
            }
        }
        let secure = self.params.lease.secure || connection.peer().is_secure(&parts.headers);
        let method = parts.method.clone();
        let gives_passes = self.gives_passes(&parts);
        let lesson = self.lesson(context.class, &method, parts.uri.path());

        if context.visitor.has_own_cookie {
            identify::strip_own_cookies(&mut parts.headers);
        }
        // Only requests of sessions wait, as where the application is known to be down.
        let awaits = session.map(|(kind, session)| {
            let newcomer = || returns::WaitOwner::of(connection.peer().client(&parts.headers));
            (if is_new { newcomer() } else { returns::WaitOwner::Session(session) }, Some(kind))
        });
        headers::prepare_request(&mut parts, connection.peer(), switch.is_some(), self.params.via);
        let target = parts.uri.path_and_query().cloned();
        if self.backend.notes.get().is_some() {
            name_request(&mut parts.headers, context.error_format.request_id());
        }
        if let Some(account) = &context.account {
            account.write(&mut parts.headers);
        }
        if switch.is_some() {
            // HTTP/2 has none: there it proves nothing. To the application we are the client.
            parts.headers.entry(SEC_WEBSOCKET_KEY).or_insert_with(websocket_key);
        }
        let waiting_for_all = self.keeper.waiting();
        if waiting_for_all > 0 {
            parts.headers.insert(signals::WAITING, HeaderValue::from(waiting_for_all));
        }
        if !waited.is_zero() {
            let held = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            parts.headers.insert(signals::HELD, HeaderValue::from(held));
        }
        if let Some((name, ratio)) = signals::pause(pause_ratio) {
            parts.headers.insert(name, ratio);
        }

        yield_to_coalesce_writes().await;
        let sent = Instant::now();
        if let Some(account) = &context.account {
            account.sends(sent);
        }
        // Cancelling a call is part of gRPC: its servers stop. The work on a request that only
        // claims to be a call may go on.
        let upstream = self.backend.upstream(context.pool);
        let on_client_disconnect = match self.params.on_client_disconnect {
            _ if is_call => OnClientDisconnect::Cancel,
            Some(said) => said,
            // Such a program only stops when it is killed.
            None if upstream.runs_once() => OnClientDisconnect::Cancel,
            None => OnClientDisconnect::Finish,
        };
        // What waits for its own client says nothing about others.
        let tells_of_others = slot.is_some() && !is_call && !body.is_unfinished();
        let tally = ExchangeInfo {
            sent,
            route: context.class.route(),
            pool: context.pool,
            on_client_disconnect,
            sender,
            tells_of_others,
        };
        let unhurried = body.unhurried().filter(|_| is_call);
        let client = RequestClient { address, is_secure: connection.peer().is_secure(&parts.headers) };
        let head = RequestHead::of(parts, connection.peer().forwarding(), client);
        let head = head.of_route(context.class.route(), matches!(context.class, Class::Unknown(_)));
        let head = if slot.is_none() { head.ungated() } else { head };
        let pin = upstream.pins_connections().then(|| NodePin(Arc::clone(connection.memo())));
        let head = match pin {
            Some(pin) => head.pinned(pin),
            None => head,
        };
        let sending = upstream.send(head, body, None);
        let mut exchange = Exchange::new(Arc::clone(&self.backend), sending, slot, tally, awaits)
            .noted_in(context.account.clone());
        let head = tokio::select! {
            biased;
            head = exchange.head() => head,
            () = connection.left(self.params.timeouts.disconnect_watch_after) => return Err(ClientGone),
        };
        let (mut head, came) = match head {
            Ok(head) => head,
            Err(error) => return Ok(self.failed(context, (&method, target.as_ref()), &error)),
        };
        if let Some(account) = &context.account {
            account.came_from(context.pool, exchange.node(), Some(came.saturating_duration_since(sent)));
        }
        let answered = came.saturating_duration_since(sent);
        // The rest waits for the client.
        drop(open);
        if context.tunnel && head.status.is_success() {
            // It has answered the request, and did not switch. Its status would say that it did.
            context.ends(
                RequestOutcome::UpstreamError,
                Some(error_response::code_of(RequestFault::Protocol)),
                Duration::ZERO,
            );
            return Ok(context
                .error_format
                .fault(RequestFault::Protocol, &self.pages)
                .map(ResponseBody::text));
        }
        if let Some(unhurried) = unhurried.filter(|_| headers::is_grpc(&head.headers)) {
            // Both sides have begun, and either may have nothing to say for long. Pings show
            // whether they are there.
            unhurried.store(true, Relaxed);
        }

        let is_good = !head.status.is_client_error() && !head.status.is_server_error();
        let body = match self.gather(connection, &head, &mut exchange).await? {
            Ok(gathered) => self.answer_with(connection, &head, exchange, gathered, switch),
            Err(error) => return Ok(self.failed(context, (&method, target.as_ref()), &error)),
        };
        self.learn_from(lesson, &method, head.status, &head.headers, sent);
        let switched = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let said = headers::prepare_response(&mut head, switched);
        if switched && context.tunnel {
            headers::open_tunnel(&mut head);
        }
        let due = Due { session, lease, unknown, ends: ends && is_good, gives_passes, waited, secure };
        self.conclude(Some(connection), &context.visitor, due, &said, &mut head.headers);
        let total = context.arrived.elapsed();
        let added = total.saturating_sub(waited).saturating_sub(answered);
        self.telemetry.route(context.class.route()).passed(waited, added);
        Ok(Response::from_parts(head, body))
    }

    pub(super) fn broken_off(
        &self,
        context: &RequestContext,
        BodyFault(fault): BodyFault,
    ) -> Result<Response<ResponseBody>, ClientGone> {
        if fault == RequestFault::BrokenBody {
            return Err(ClientGone);
        }
        self.telemetry.note_fault();
        context.ends(RequestOutcome::BadRequest, Some(error_response::code_of(fault)), Duration::ZERO);
        Ok(context.error_format.fault(fault, &self.pages).map(ResponseBody::text))
    }

    fn failed(
        &self,
        context: &RequestContext,
        (method, target): (&Method, Option<&PathAndQuery>),
        error: &UpstreamError,
    ) -> Response<ResponseBody> {
        if let Some(account) = &context.account {
            account.came_from(context.pool, error.node(), None);
        }
        if error.fault() == Blame::Client {
            self.telemetry.note_fault();
            let fault = match error.kind() {
                UpstreamErrorKind::NoProgram => RequestFault::NotFound,
                _ => error.find::<BodyFault>().map_or(RequestFault::BadBody, |fault| fault.0),
            };
            context.ends(RequestOutcome::BadRequest, Some(error_response::code_of(fault)), Duration::ZERO);
            return context.error_format.fault(fault, &self.pages).map(ResponseBody::text);
        }
        self.telemetry.note_upstream_error();
        let reason = error.kind().code();
        context.ends(RequestOutcome::UpstreamError, Some(reason), Duration::ZERO);
        let path = target.map_or("", PathAndQuery::path);
        tracing::warn!(
            site = self.params.site,
            reason,
            method = method.as_str(),
            path = path.get(..PATH_LOGGED_MAX).unwrap_or(path),
            node = error.node().and_then(|node| self.backend.upstream(context.pool).address_of(node)),
            request_id = request_ids::text(context.error_format.request_id()),
            "no response from the application: {error}"
        );
        context.error_format.failed(error, &self.pages).map(ResponseBody::text)
    }
}

/// Returns whether a body of unknown length may be a stream: with other methods nobody expects one,
/// and the answer may come before it has arrived.
fn may_stream(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}
