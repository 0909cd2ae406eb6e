//! The layer as services and clients see it.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod support;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use suimon_tower::{Client, Gate, GatedBody, RequestBody};
use support::{ONE_SLOT, gate, until, works};
use tokio::sync::Semaphore;
use tower::{Layer, Service, ServiceExt, service_fn};

/// How long after its head an answer counts as a stream.
const STREAM_AFTER: Duration = Duration::from_secs(30);

/// A service that is to pause for two seconds for each second of work.
const PAUSES: &str = r#"
[discovery]
mode = "off"
[gate]
session_law = "open"
[degradation]
mode = "off"
[[route]]
match = "GET /work"
[[service]]
name = "heavy"
routes = ["GET /work"]
pause_ratio = 2.0
pauses = "inside"
"#;

fn get(path: &str) -> Request<Empty<Bytes>> {
    let mut request = Request::get(path).header("host", "shop").body(Empty::new()).unwrap();
    request.extensions_mut().insert(Client { address: [192, 0, 2, 7].into(), is_tls: false });
    request
}

async fn hello(_: Request<RequestBody<Empty<Bytes>>>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello"))))
}

#[tokio::test]
async fn an_answer_comes_through_as_it_is_and_holds_its_slot_until_the_service_is_done() {
    let gate = gate(ONE_SLOT);
    let answer = gate.layer.layer(service_fn(hello)).oneshot(get("/one")).await.unwrap();
    assert_eq!((answer.status(), gate.in_flight()), (StatusCode::OK, 0));
    assert_eq!((answer.body().size_hint().exact(), answer.body().is_end_stream()), (Some(5), false));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello");

    let (more, worked) = works();
    let worked = Arc::new(Mutex::new(Some(worked)));
    let service = gate.layer.layer(service_fn(move |_| {
        let worked = worked.lock().unwrap().take().expect("it is asked once");
        async move { Ok::<_, Infallible>(Response::new(StreamBody::new(worked))) }
    }));
    let mut answer = service.oneshot(get("/one")).await.unwrap().into_body();
    more.send(Ok(Frame::data(Bytes::from_static(b"hel")))).unwrap();
    assert_eq!(answer.frame().await.unwrap().unwrap().into_data().unwrap(), "hel");
    let second = tokio::spawn(gate.layer.layer(service_fn(hello)).oneshot(get("/one")));
    until("the second one waits", || gate.observer.view().gate.waiting == 1).await;
    drop(more);
    assert!(answer.frame().await.is_none());
    drop(second.await.unwrap().unwrap());
    assert_eq!(gate.counts(), (3, 0, 0));
}

#[tokio::test]
async fn a_service_is_told_how_much_to_pause_and_what_it_has_paused_is_no_work() {
    let gate = gate(PAUSES);
    let work = gate.layer.layer(service_fn(|request: Request<RequestBody<Empty<Bytes>>>| async move {
        let told = request.headers().get("suimon-pause").cloned();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let answer = Response::builder().header("suimon-paused", "0.2");
        let answer = told.into_iter().fold(answer, |answer, told| answer.header("x-told", told));
        Ok::<_, Infallible>(answer.body(Full::new(Bytes::new())).unwrap())
    }));
    let mut request = get("/work");
    request.headers_mut().insert("suimon-pause", HeaderValue::from_static("9"));
    let answer = work.oneshot(request).await.unwrap();
    assert_eq!(answer.headers().get("x-told").unwrap(), "2", "and not what the client says");
    assert_eq!(answer.headers().get("suimon-paused"), None, "it is no word for clients");
    drop(answer);
    let took = || gate.observer.view().gate.services[0].standing.service;
    until("it is known how long a request takes", || took() > 0.0).await;
    assert!((0.1..0.25).contains(&took()), "0.3 s, of which it has paused for 0.2: {}", took());
}

#[tokio::test]
async fn who_leaves_leaves_nothing_behind_wherever_it_is() {
    let gate = gate(ONE_SLOT);
    let held = gate.layer.layer(service_fn(|_| pending::<Result<Response<Full<Bytes>>, Infallible>>()));
    let inside = tokio::spawn(held.clone().oneshot(get("/one")));
    until("one is in", || gate.in_flight() == 1).await;
    let waits = tokio::spawn(held.oneshot(get("/one")));
    until("one waits", || gate.observer.view().gate.waiting == 1).await;
    waits.abort();
    inside.abort();
    until("nobody is there", || gate.in_flight() + gate.observer.view().gate.waiting == 0).await;
    // And with an answer whose rest is still to be made.
    let works =
        service_fn(|_| async { Ok::<_, Infallible>(Response::new(StreamBody::new(futures_stream()))) });
    let answer = gate.layer.layer(works).oneshot(get("/one")).await.unwrap();
    assert_eq!(gate.in_flight(), 1);
    drop(answer);
    assert_eq!((gate.in_flight(), gate.counts()), (0, (0, 0, 3)));
}

#[tokio::test]
async fn a_stream_gives_its_slot_back_with_its_head() {
    let gate = gate(ONE_SLOT);
    let service = gate.layer.layer(service_fn(|_| async {
        let frames = futures_stream();
        let answer = Response::builder().header("content-type", "text/event-stream");
        Ok::<_, Infallible>(answer.body(StreamBody::new(frames)).unwrap())
    }));
    let answer = service.oneshot(get("/one")).await.unwrap();
    assert_eq!((gate.in_flight(), gate.counts().0), (0, 1));
    drop(answer);
}

/// In time that stands still unless everybody waits.
#[tokio::test(start_paused = true)]
async fn a_slot_is_held_while_the_service_works_and_not_for_ever() {
    let gate = gate(ONE_SLOT);
    let (more, worked) = works();
    let worked = Arc::new(Mutex::new(Some(worked)));
    let service = gate.layer.layer(service_fn(move |_| {
        let worked = worked.lock().unwrap().take().expect("it is asked once");
        async move { Ok::<_, Infallible>(Response::new(StreamBody::new(worked))) }
    }));
    let answer = service.oneshot(get("/one")).await.unwrap().into_body();
    let reads = tokio::spawn(answer.collect());
    tokio::time::sleep(STREAM_AFTER - Duration::from_secs(1)).await;
    more.send(Ok(Frame::data(Bytes::from_static(b"hel")))).unwrap();
    assert_eq!((gate.in_flight(), gate.counts()), (1, (0, 0, 0)));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((gate.in_flight(), gate.counts()), (0, (1, 0, 0)));
    more.send(Ok(Frame::data(Bytes::from_static(b"lo")))).unwrap();
    drop(more);
    assert_eq!(reads.await.unwrap().unwrap().to_bytes(), "hello");
    assert_eq!(gate.counts(), (1, 0, 0));
}

/// A stream that never ends.
fn futures_stream() -> impl futures_core::Stream<Item = Result<Frame<Bytes>, Infallible>> {
    struct Never;
    impl futures_core::Stream for Never {
        type Item = Result<Frame<Bytes>, Infallible>;
        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Pending
        }
    }
    Never
}

#[tokio::test]
async fn errors_are_passed_on_and_count() {
    let gate = gate(ONE_SLOT);
    let fails = service_fn(|_| async { Err::<Response<Full<Bytes>>, _>("broken") });
    assert_eq!(gate.layer.layer(fails).oneshot(get("/one")).await.unwrap_err(), "broken");
    let breaks = service_fn(|_| async {
        struct Breaks;
        impl Body for Breaks {
            type Data = Bytes;
            type Error = &'static str;
            fn poll_frame(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
                Poll::Ready(Some(Err("broken off")))
            }
        }
        Ok::<_, Infallible>(Response::new(Breaks))
    });
    let answer = gate.layer.layer(breaks).oneshot(get("/one")).await.unwrap();
    assert!(answer.into_body().collect().await.is_err());
    assert_eq!((gate.in_flight(), gate.counts()), (0, (0, 2, 0)));
}

#[tokio::test]
async fn a_panic_is_a_failure_and_no_client_that_has_left() {
    let gate = gate(ONE_SLOT);
    let panics = service_fn(async |_| -> Result<Response<Full<Bytes>>, Infallible> { panic!("a test's") });
    let asked = tokio::spawn(gate.layer.layer(panics).oneshot(get("/one")));
    assert!(asked.await.unwrap_err().is_panic());
    let breaks = service_fn(async |_| {
        struct Panics;
        impl Body for Panics {
            type Data = Bytes;
            type Error = Infallible;
            fn poll_frame(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
                panic!("a test's");
            }
        }
        Ok::<_, Infallible>(Response::new(Panics))
    });
    let service = gate.layer.layer(breaks);
    let asked =
        tokio::spawn(async move { service.oneshot(get("/one")).await.unwrap().into_body().collect().await });
    assert!(asked.await.unwrap_err().is_panic());
    assert_eq!((gate.in_flight(), gate.counts()), (0, (0, 2, 0)));
}

/// A service with one place, which whoever has asked it whether it is ready holds.
#[derive(Debug)]
struct OnePlace {
    places: Arc<Semaphore>,
    held: Option<tokio::sync::OwnedSemaphorePermit>,
    asked: Arc<AtomicUsize>,
}

impl Clone for OnePlace {
    fn clone(&self) -> Self {
        OnePlace { places: Arc::clone(&self.places), held: None, asked: Arc::clone(&self.asked) }
    }
}

impl Service<Request<RequestBody<Empty<Bytes>>>> for OnePlace {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.asked.fetch_add(1, SeqCst);
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => self.held = Some(place),
            Err(_) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody<Empty<Bytes>>>) -> Self::Future {
        let place = self.held.take().expect("asked before");
        Box::pin(async move {
            let answer = hello(request).await;
            drop(place);
            answer
        })
    }
}

#[tokio::test]
async fn nobody_who_waits_holds_a_place_of_the_service() {
    let gate = gate(ONE_SLOT);
    let asked = Arc::new(AtomicUsize::new(0));
    let inner = OnePlace { places: Arc::new(Semaphore::new(1)), held: None, asked: Arc::clone(&asked) };
    let service = gate.layer.layer(inner.clone());
    let holds =
        service_fn(|_| async { Ok::<_, Infallible>(Response::new(StreamBody::new(futures_stream()))) });
    let first = gate.layer.layer(holds).oneshot(get("/one")).await.unwrap();
    let waits = tokio::spawn(service.oneshot(get("/one")));
    until("one waits", || gate.observer.view().gate.waiting == 1).await;
    assert_eq!((asked.load(SeqCst), inner.places.available_permits()), (0, 1));
    drop(first);
    drop(waits.await.unwrap().unwrap());
    assert_eq!(asked.load(SeqCst), 1);
}

#[tokio::test]
async fn who_is_not_let_in_gets_the_gates_page_and_the_service_hears_nothing() {
    let gate = gate(
        "[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n[[session]]\nkind = \"visit\"\nwaiting_room = false\npatience = \"100ms\"\n",
    );
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let service = gate.layer.layer(service_fn(move |request| {
        counted.fetch_add(1, SeqCst);
        hello(request)
    }));
    let ask = async |browser: &str| {
        let mut request = get("/start");
        request.headers_mut().insert("user-agent", browser.parse().unwrap());
        service.clone().oneshot(request).await.unwrap()
    };
    let first = ask("one").await;
    assert_eq!(first.status(), StatusCode::OK);
    first.into_body().collect().await.unwrap();
    let refused = ask("two").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    let text = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(!text.is_empty());
    assert_eq!(calls.load(SeqCst), 1);
}

#[tokio::test]
async fn a_lease_of_one_service_is_good_at_another_with_the_same_keys() {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "[lease]\nkeys = {:?}\nissued = \"always\"\n[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n[[session]]\nkind = \"visit\"\nwaiting_room = false\npatience = \"100ms\"\n",
        folder.path().join("lease.keys"),
    );
    let (one, other) = (gate(&settings), gate(&settings));
    let ask = async |at: &support::Running, browser: &'static str, lease: Option<&HeaderValue>| {
        let mut request = get("/start");
        request.headers_mut().insert("user-agent", HeaderValue::from_static(browser));
        if let Some(lease) = lease {
            request.headers_mut().insert("cookie", lease.clone());
        }
        at.layer.layer(service_fn(hello)).oneshot(request).await.unwrap()
    };
    let admitted = ask(&one, "first", None).await;
    let set = admitted.headers().get("set-cookie").unwrap().to_str().unwrap();
    let lease = HeaderValue::from_str(set.split(';').next().unwrap()).unwrap();
    drop(admitted.into_body().collect().await.unwrap());
    drop(ask(&other, "second", None).await.into_body().collect().await.unwrap());
    assert_eq!(ask(&other, "third", None).await.status(), StatusCode::SERVICE_UNAVAILABLE, "it is full");
    assert_eq!(ask(&other, "first", Some(&lease)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_server_of_any_kind_says_which_client_it_is() {
    #[derive(Clone, Copy)]
    struct Peer(u8);
    let gate = gate(
        "[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n[[session]]\nkind = \"visit\"\nwaiting_room = false\npatience = \"100ms\"\n",
    );
    let layer = gate.layer.clone().with_client(|extensions| {
        let Peer(last) = *extensions.get()?;
        Some(Client { address: [198, 51, 100, last].into(), is_tls: false })
    });
    let service = layer.layer(service_fn(hello));
    let ask = async |peer: u8| {
        let mut request = get("/start");
        request.extensions_mut().insert(Peer(peer));
        service.clone().oneshot(request).await.unwrap().status()
    };
    assert_eq!(ask(1).await, StatusCode::OK);
    assert_eq!(ask(2).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask(1).await, StatusCode::OK);
}

#[tokio::test]
async fn a_service_of_one_kind_of_body_gets_it_taken_out() {
    let gate = gate(ONE_SLOT);
    let echo = service_fn(async |request: Request<Full<Bytes>>| {
        Ok::<_, Infallible>(Response::new(request.into_body()))
    });
    let takes = echo.map_request(|request: Request<RequestBody<_>>| request.map(RequestBody::into_inner));
    let request = get("/one").map(|_| Full::new(Bytes::from_static(b"hi")));
    let answer = gate.layer.layer(takes).oneshot(request).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hi");
}

#[tokio::test]
async fn settings_with_faults_are_refused_with_all_of_them() {
    let error = Gate::open("[gate]\nsession_law = \"opn\"\n[lissten]\n").unwrap_err().to_string();
    assert!(error.contains("session_law") && error.contains("lissten"), "{error}");
}

/// What the types promise to users of clones and boxes.
#[test]
fn services_and_bodies_can_be_sent() {
    fn is_send<T: Send>() {}
    is_send::<suimon_tower::Gated<OnePlace>>();
    is_send::<GatedBody<Full<Bytes>>>();
}
