//! The layer, and the service that it makes.

use crate::body::GatedBody;
use crate::client::Client;
use crate::request_body::RequestBody;
use bytes::{Buf, Bytes};
use http::header::CONTENT_LENGTH;
use http::uri::PathAndQuery;
use http::{Extensions, HeaderValue, Method, Request, Response, Uri, request};
use http_body::Body;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use suimon_proxy::{Door, Entered};
use tower_layer::Layer;
use tower_service::Service;

/// Puts the gate before a service. Clones, and the services that they make, share one gate.
#[derive(Clone, Debug)]
pub struct GateLayer {
    door: Door,
    client: ClientOf,
}

/// Says where a request comes from; `None`: whatever else says it.
type ClientOf = fn(&Extensions) -> Option<Client>;

/// A service behind the gate.
#[derive(Clone, Debug)]
pub struct Gated<S> {
    door: Door,
    client: ClientOf,
    inner: S,
}

impl GateLayer {
    pub(crate) const fn new(door: Door) -> Self {
        GateLayer { door, client: |_| None }
    }

    /// Returns the same, where the extensions of a request say by `client` which client it is: those that a
    /// server puts there which the layer does not know.
    #[must_use]
    pub fn with_client(self, client: fn(&Extensions) -> Option<Client>) -> Self {
        GateLayer { client, ..self }
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { door: self.door.clone(), client: self.client, inner }
    }
}

impl<S, B, R> Service<Request<B>> for Gated<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    R: Body<Data = Bytes>,
{
    type Response = Response<GatedBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (door, client, mut inner) = (self.door.clone(), self.client, self.inner.clone());
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            let told = client(&head.extensions);
            let Client { address, is_tls } = told.unwrap_or_else(|| Client::of(&head.extensions));
            let is_head = head.method == Method::HEAD;
            if let Some(bytes_max) = door.form_bytes_max(&head) {
                move_into_query(pin!(body), bytes_max, &mut head).await;
                match door.enter(address, is_tls, head).await {
                    Entered::Answered(answer) => return Ok(own(answer, is_head)),
                    Entered::Admitted(_) => unreachable!("the waiting room answers what is for it"),
                }
            }
            let mut admitted = match door.enter(address, is_tls, head).await {
                Entered::Admitted(admitted) => admitted,
                Entered::Answered(answer) => return Ok(own(answer, is_head)),
            };
            let head = admitted.take_request().expect("nobody else takes it");
            if let Err(error) = poll_fn(|cx| inner.poll_ready(cx)).await {
                admitted.fail();
                return Err(error);
            }
            let body = RequestBody::new(body, &admitted);
            // Dropped behind the call: the slot is free when the work is over.
            let mut admitted = Some(admitted);
            let mut call = pin!(inner.call(Request::from_parts(head, body)));
            poll_fn(|cx| {
                let answer = ready!(call.as_mut().poll(cx));
                let mut admitted = admitted.take().expect("it is answered once");
                Poll::Ready(match answer {
                    Ok(answer) => {
                        let (mut head, body) = answer.into_parts();
                        admitted.answer(head.status, &mut head.headers);
                        let end = admitted.body_end(head.status, &head.headers);
                        Ok(Response::from_parts(head, GatedBody::served(body, end, admitted, cx)))
                    }
                    Err(error) => {
                        admitted.fail();
                        Err(error)
                    }
                })
            })
            .await
        })
    }
}

/// Returns an answer of the gate's own.
fn own<R: Body<Data = Bytes>>(answer: Response<String>, is_head: bool) -> Response<GatedBody<R>> {
    let (mut head, text) = answer.into_parts();
    if !is_head {
        return Response::from_parts(head, GatedBody::answer(text));
    }
    // Over HTTP/2 the server would send what is there.
    head.headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(text.len()));
    Response::from_parts(head, GatedBody::answer(String::new()))
}

/// Moves a form from a body into the query, where the gate looks for it. One that is longer than `bytes_max`, or
/// breaks, is none.
async fn move_into_query(mut body: Pin<&mut impl Body>, bytes_max: usize, head: &mut request::Parts) {
    let mut form = Vec::new();
    while let Some(piece) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Some(mut data) = piece.ok().and_then(|frame| frame.into_data().ok()) else { return };
        if form.len() + data.remaining() > bytes_max {
            return;
        }
        form.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    let mut with_form = head.uri.path().as_bytes().to_vec();
    with_form.push(b'?');
    with_form.extend_from_slice(&form);
    let mut parts = std::mem::take(&mut head.uri).into_parts();
    if let Ok(with_form) = PathAndQuery::try_from(with_form) {
        parts.path_and_query = Some(with_form);
    }
    head.uri = Uri::from_parts(parts).expect("it differs in its query alone");
}
