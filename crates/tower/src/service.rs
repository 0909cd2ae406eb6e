//! The layer, and the service that it makes.

use crate::body::GatedBody;
use crate::client::Client;
use crate::request_body::RequestBody;
use bytes::Bytes;
use http::{Extensions, Request, Response};
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
    B: Send + 'static,
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
            let (head, body) = request.into_parts();
            let told = client(&head.extensions);
            let Client { address, is_tls } = told.unwrap_or_else(|| Client::of(&head.extensions));
            let mut admitted = match door.enter(address, is_tls, head).await {
                Entered::Admitted(admitted) => admitted,
                Entered::Answered(answer) => return Ok(answer.map(GatedBody::answer)),
            };
            let head = admitted.take_request().expect("nobody else takes it");
            if let Err(error) = poll_fn(|cx| inner.poll_ready(cx)).await {
                admitted.fail();
                return Err(error);
            }
            let mut call = pin!(inner.call(Request::from_parts(head, RequestBody::new(body))));
            let mut admitted = Some(admitted);
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
