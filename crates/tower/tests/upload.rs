//! Bodies of requests: the slot is for the service's time, and a form that is for the gate is read by the layer.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod support;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use suimon_tower::{Client, RequestBody};
use support::{Running, Works, gate, until, works};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceExt, service_fn};

const ONE_UPLOAD: &str = "[discovery]\nmode = \"off\"\n[gate]\nsession_law = \"open\"\n[[route]]\nmatch = \"POST /one\"\nmode = 1\n";
const WITH_LINE: &str =
    "[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n[[session]]\nkind = \"visit\"\nhold = \"0s\"\n";

/// The cookie of the visitor who is in.
const FIRST: &str = "JSESSIONID=AAAAAAAAAAAAAAAAAAAA";

fn post<B>(path: &str, body: B) -> Request<B> {
    let mut request = Request::post(path).header("host", "shop").body(body).unwrap();
    request.extensions_mut().insert(Client { address: [192, 0, 2, 7].into(), is_tls: false });
    request
}

fn data(bytes: &'static str) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::from_static(bytes.as_bytes())))
}

/// Answers with what it was sent, once there is a permit.
async fn echo<B>(
    request: Request<RequestBody<B>>,
    may: Arc<Semaphore>,
) -> Result<Response<Full<Bytes>>, B::Error>
where
    B: Body<Data = Bytes>,
{
    let sent = request.into_body().collect().await?.to_bytes();
    may.acquire().await.unwrap().forget();
    Ok(Response::new(Full::new(sent)))
}

/// Asks for what echoes a body, and returns what it answers.
async fn send(
    gate: &Running,
    body: StreamBody<Works>,
    may: &Arc<Semaphore>,
) -> tokio::task::JoinHandle<Bytes> {
    let may = Arc::clone(may);
    let service = gate.layer.layer(service_fn(move |request| echo(request, Arc::clone(&may))));
    tokio::spawn(async move {
        let answer = service.oneshot(post("/one", body)).await.unwrap();
        answer.into_body().collect().await.unwrap().to_bytes()
    })
}

#[tokio::test]
async fn a_client_that_sends_slowly_holds_no_slot_and_its_work_waits_for_one() {
    let gate = gate(ONE_UPLOAD);
    let may = Arc::new(Semaphore::new(0));
    let (slow, body) = works();
    let slowly = send(&gate, StreamBody::new(body), &may).await;
    slow.send(data("hel")).unwrap();
    until("it is in", || gate.in_flight() == 1).await;
    until("its slot is back", || gate.in_flight() == 0).await;

    // Another one has the slot now.
    let (quick, body) = works();
    quick.send(data("quick")).unwrap();
    drop(quick);
    let quickly = send(&gate, StreamBody::new(body), &may).await;
    until("it works", || gate.in_flight() == 1).await;
    slow.send(data("l")).unwrap();
    slow.send(data("o")).unwrap();
    drop(slow);
    until("the first one waits for its slot", || gate.observer.view().gate.waiting == 1).await;
    may.add_permits(1);
    assert_eq!(quickly.await.unwrap(), "quick");
    until("the first one works", || gate.in_flight() == 1).await;
    may.add_permits(1);
    assert_eq!(slowly.await.unwrap(), "hello");
    until("all is over", || gate.in_flight() == 0).await;
    assert_eq!(gate.counts(), (2, 0, 0));
}

/// Who has the slot waits for what the service of the other one holds, such as a permit of a limit within.
#[tokio::test]
async fn a_body_whose_slot_is_held_by_who_waits_for_its_service_comes_to_its_end() {
    let gate = gate(ONE_UPLOAD);
    let (may, free) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(1)));
    let (slow, body) = works();
    let slowly = send(&gate, StreamBody::new(body), &free).await;
    until("it is in", || gate.in_flight() == 1).await;
    until("its slot is back", || gate.in_flight() == 0).await;
    let (quick, body) = works();
    drop(quick);
    let waits = send(&gate, StreamBody::new(body), &may).await;
    until("the other one has the slot", || gate.in_flight() == 1).await;
    slow.send(data("hello")).unwrap();
    drop(slow);
    assert_eq!(slowly.await.unwrap(), "hello");
    may.add_permits(1);
    assert_eq!(waits.await.unwrap(), "");
    until("all is over", || gate.in_flight() == 0).await;
    assert_eq!(gate.counts(), (2, 0, 0));
}

#[tokio::test]
async fn who_leaves_in_the_middle_of_a_body_leaves_nothing_behind() {
    let gate = gate(ONE_UPLOAD);
    let may = Arc::new(Semaphore::new(0));
    for waits_long in [false, true] {
        let (slow, body) = works();
        let leaves = send(&gate, StreamBody::new(body), &may).await;
        until("it is in", || gate.in_flight() == 1).await;
        if waits_long {
            until("its slot is back", || gate.in_flight() == 0).await;
        }
        leaves.abort();
        assert!(leaves.await.is_err());
        drop(slow);
        until("nobody is there", || gate.in_flight() + gate.observer.view().gate.waiting == 0).await;
    }
    assert_eq!(gate.counts(), (0, 0, 2));
}

/// A service that reads no further goes on with its work, which needs the slot.
#[tokio::test]
async fn work_without_the_rest_of_a_body_holds_the_slot_again() {
    let gate = gate(ONE_UPLOAD);
    let may = Arc::new(Semaphore::new(0));
    let leave = Arc::clone(&may);
    let service = gate.layer.layer(service_fn(move |request: Request<RequestBody<StreamBody<Works>>>| {
        let may = Arc::clone(&leave);
        async move {
            let read = tokio::time::timeout(Duration::from_millis(400), request.into_body().collect()).await;
            assert!(read.is_err(), "its client sends nothing");
            may.acquire().await.unwrap().forget();
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    }));
    let (_slow, body) = works();
    let answer = tokio::spawn(service.oneshot(post("/one", StreamBody::new(body))));
    until("it is in", || gate.in_flight() == 1).await;
    until("its slot is back", || gate.in_flight() == 0).await;
    until("it works on", || gate.in_flight() == 1).await;
    may.add_permits(1);
    assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!((gate.in_flight(), gate.counts()), (0, (1, 0, 0)));
}

#[tokio::test]
async fn a_place_comes_by_the_code_that_a_visitor_enters() {
    let gate = gate(WITH_LINE);
    let service = gate.layer.layer(service_fn(|_: Request<RequestBody<Full<Bytes>>>| async {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"in"))))
    }));
    let ask = async |method: &str, path: &str, cookie: &str, form: String| {
        let mut request = post(path, Full::new(Bytes::from(form)));
        *request.method_mut() = method.parse().unwrap();
        request.headers_mut().insert("accept", "application/json".parse().unwrap());
        request.headers_mut().insert("cookie", cookie.parse().unwrap());
        // Else those without a cookie are one visitor.
        let browser = if cookie == FIRST { "one" } else { "another" };
        request.headers_mut().insert("user-agent", browser.parse().unwrap());
        let answer = service.clone().oneshot(request).await.unwrap();
        let cookies: Vec<_> = answer.headers().get_all("set-cookie").iter().cloned().collect();
        let ticket = cookies.iter().find_map(|cookie| {
            let cookie = cookie.to_str().unwrap();
            cookie.starts_with("suimon-ticket-").then(|| cookie.split(';').next().unwrap().to_owned())
        });
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        (ticket, String::from_utf8_lossy(&text).into_owned())
    };
    let none = String::new;
    let (_, text) = ask("GET", "/", FIRST, none()).await;
    assert_eq!(text, "in");
    let (ticket, text) = ask("GET", "/", "", none()).await;
    let ticket = ticket.unwrap_or_else(|| panic!("no place: {text}"));
    let (_, given) = ask("POST", "/.well-known/suimon/code", &ticket, none()).await;
    let code = given.split("\"code\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let position = "/.well-known/suimon/position";
    for wrong in ["code=ZZZ-999".to_owned(), none(), format!("pad={}&code={code}", "x".repeat(20_000))] {
        assert_eq!(ask("POST", position, "", wrong).await.0, None);
    }
    let (there, text) = ask("POST", position, "", format!("code={code}")).await;
    let there = there.unwrap_or_else(|| panic!("no place: {text}"));
    let (_, text) = ask("GET", "/", &there, none()).await;
    assert!(text.contains("\"position\":1,"), "{text}");
}
