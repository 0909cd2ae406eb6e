//! The layer before tonic's server, as tonic's client sees it.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod support;

use http::uri::PathAndQuery;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use suimon_tower::Client;
use support::{Running, gate, until};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

/// One call at a time, and no kinds of session.
const ONE_SLOT: &str = "[discovery]\nmode = \"off\"\n[gate]\nsession_law = \"open\"\n\
    [[route]]\nmatch = \"POST /shop.Greeter/Greet\"\nmode = 1\n";

/// Greets whom it is told, once there is a permit for it.
#[derive(Clone, Debug)]
struct Greeter {
    permits: Arc<Semaphore>,
    calls: Arc<AtomicUsize>,
}

impl NamedService for Greeter {
    const NAME: &'static str = "shop.Greeter";
}

impl Service<http::Request<Body>> for Greeter {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: http::Request<Body>) -> Self::Future {
        let Greeter { permits, calls } = self.clone();
        calls.fetch_add(1, SeqCst);
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<String, String>::default());
            let greet = service_fn(move |name: Request<String>| {
                let permits = Arc::clone(&permits);
                async move {
                    permits.acquire().await.unwrap().forget();
                    Ok::<_, Status>(Response::new(format!("hello {}", name.into_inner())))
                }
            });
            let count = service_fn(|name: Request<String>| async move {
                let letters: Vec<_> =
                    name.into_inner().chars().map(|it| Ok::<_, Status>(it.to_string())).collect();
                Ok::<_, Status>(Response::new(tokio_stream::iter(letters)))
            });
            Ok(match call.uri().path() {
                "/shop.Greeter/Greet" => grpc.unary(greet, call).await,
                "/shop.Greeter/Spell" => grpc.server_streaming(count, call).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

struct Shop {
    gate: Running,
    greeter: Greeter,
    address: SocketAddr,
    channel: Channel,
}

/// Serves the greeter behind a gate, and connects to it.
async fn shop(settings: &str) -> Shop {
    let gate = gate(settings);
    let greeter = Greeter { permits: Arc::new(Semaphore::new(0)), calls: Arc::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let layer = gate.layer.clone().with_client(|extensions| {
        let address = extensions.get::<TcpConnectInfo>()?.remote_addr()?.ip();
        Some(Client { address, is_tls: false })
    });
    let server = Server::builder().layer(layer).add_service(greeter.clone());
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    Shop { gate, greeter, address, channel: connect(address, "one").await }
}

async fn connect(address: SocketAddr, agent: &'static str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    endpoint.user_agent(agent).unwrap().connect().await.unwrap()
}

async fn greet(channel: Channel, name: &str) -> Result<String, Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path = PathAndQuery::from_static("/shop.Greeter/Greet");
    let codec = ProstCodec::<String, String>::default();
    grpc.unary(Request::new(name.to_owned()), path, codec).await.map(Response::into_inner)
}

async fn spell(channel: Channel, name: &str) -> Result<Vec<String>, Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path = PathAndQuery::from_static("/shop.Greeter/Spell");
    let codec = ProstCodec::<String, String>::default();
    let mut stream = grpc.server_streaming(Request::new(name.to_owned()), path, codec).await?.into_inner();
    let mut letters = Vec::new();
    while let Some(letter) = stream.message().await? {
        letters.push(letter);
    }
    Ok(letters)
}

#[tokio::test]
async fn calls_pass_and_hold_a_slot_while_the_service_works() {
    let shop = shop(ONE_SLOT).await;
    let first = tokio::spawn({
        let channel = shop.channel.clone();
        async move { greet(channel, "one").await }
    });
    until("one is in", || shop.gate.in_flight() == 1).await;
    let second = tokio::spawn({
        let channel = shop.channel.clone();
        async move { greet(channel, "two").await }
    });
    until("one waits", || shop.gate.observer.view().gate.waiting == 1).await;
    assert_eq!(shop.greeter.calls.load(SeqCst), 1);
    shop.greeter.permits.add_permits(2);
    assert_eq!(first.await.unwrap().unwrap(), "hello one");
    assert_eq!(second.await.unwrap().unwrap(), "hello two");
    assert_eq!(spell(shop.channel.clone(), "gate").await.unwrap(), ["g", "a", "t", "e"]);
    assert_eq!((shop.gate.in_flight(), shop.gate.counts()), (0, (3, 0, 0)));
}

#[tokio::test]
async fn a_call_that_its_client_cancels_leaves_nothing_behind() {
    let shop = shop(ONE_SLOT).await;
    let call = tokio::spawn({
        let channel = shop.channel.clone();
        async move { greet(channel, "one").await }
    });
    until("one is in", || shop.gate.in_flight() == 1).await;
    call.abort();
    until("its slot is back", || shop.gate.in_flight() == 0).await;
    assert_eq!(shop.gate.counts(), (0, 0, 1));
}

#[tokio::test]
async fn a_refused_call_has_a_status_that_its_client_understands() {
    let shop = shop(
        "[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n[[session]]\nkind = \"visit\"\nwaiting_room = false\npatience = \"100ms\"\n",
    )
    .await;
    shop.greeter.permits.add_permits(1);
    assert_eq!(greet(shop.channel.clone(), "one").await.unwrap(), "hello one");
    let other = connect(shop.address, "two").await;
    let refused = greet(other.clone(), "two").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    assert!(refused.metadata().contains_key("grpc-retry-pushback-ms"), "{refused:?}");
    let refused = spell(other, "two").await.unwrap_err();
    assert_eq!((refused.code(), shop.greeter.calls.load(SeqCst)), (Code::Unavailable, 1), "{refused:?}");
}
