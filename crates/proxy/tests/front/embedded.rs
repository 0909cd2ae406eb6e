//! The gateway without sockets, in a process that works on requests itself.

use crate::sessions;
use crate::support::{ASK_EVERY, app, asked_until, gateway, get, params, until};
use http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use http::{Request, Response, StatusCode};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use suimon_params::Params;
use suimon_proxy::{Admitted, Door, Embedded, Entered, Observer, THIS_PROCESS};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
/// Nobody listens there: nothing is forwarded.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

struct Inside {
    door: Door,
    observer: Observer,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

fn inside(params: Params) -> Inside {
    let embedded = Embedded::open(params).unwrap();
    let (door, observer) = (embedded.door(), embedded.observer());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(embedded.run(async { _ = stopped.await }));
    Inside { door, observer, stop, task }
}

impl Inside {
    async fn enter(&self, path: &str, headers: &[(&str, &str)]) -> Entered {
        self.door.enter(CLIENT, false, head("GET", path, headers)).await
    }

    /// Returns a request that is let in.
    async fn work(&self, path: &str, headers: &[(&str, &str)]) -> Box<Admitted> {
        match self.enter(path, headers).await {
            Entered::Admitted(admitted) => admitted,
            Entered::Answered(answer) => panic!("{path}: {answer:?}"),
        }
    }

    /// Returns the answer to a request that is not let in.
    async fn answer(&self, path: &str, headers: &[(&str, &str)]) -> Response<String> {
        match self.enter(path, headers).await {
            Entered::Admitted(_) => panic!("{path} is let in"),
            Entered::Answered(answer) => answer,
        }
    }

    fn in_flight(&self) -> usize {
        self.observer.view().gate.in_flight
    }

    async fn end(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }
}

fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> http::request::Parts {
    let request = Request::builder().method(method).uri(path).header("host", "shop");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn serve(mut admitted: Box<Admitted>, status: StatusCode) -> HeaderMap {
    let mut headers = HeaderMap::new();
    admitted.answer(status, &mut headers);
    admitted.end();
    headers
}

/// A gate that closes a moment after the start and stays closed.
fn closing() -> Params {
    sessions::closing(NOBODY)
}

async fn closes(inside: &Inside) {
    asked_until("the gate closes", ASK_EVERY, async || {
        matches!(inside.enter("/start", &[]).await, Entered::Answered(_)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_request_waits_for_the_one_slot_and_holds_it_until_its_end() {
    let inside = inside(params(NOBODY));
    let first = inside.work("/hold", &[]).await;
    assert_eq!(inside.in_flight(), 1);
    assert_eq!(inside.observer.upstream()[0].address, THIS_PROCESS);
    let (second, third) = {
        let ask = || {
            let door = inside.door.clone();
            tokio::spawn(async move { door.enter(CLIENT, false, head("GET", "/hold", &[])).await })
        };
        (ask(), ask())
    };
    until("both wait", || inside.observer.view().gate.waiting == 2).await;
    // One leaves.
    third.abort();
    until("one waits", || inside.observer.view().gate.waiting == 1).await;
    serve(first, StatusCode::OK);
    let Entered::Admitted(second) = second.await.unwrap() else { panic!("it is its turn") };
    assert!(second.said().any(|(name, _)| name == "suimon-held"));
    // A worker that panics drops it.
    drop(second);
    assert_eq!(inside.in_flight(), 0);
    let view = inside.observer.view();
    let sum = |of: fn(&suimon_gate::Counts) -> u64| {
        view.routes.iter().map(|route| of(&route.gate.counts)).sum::<u64>()
    };
    assert_eq!((sum(|it| it.completed), sum(|it| it.abandoned)), (1, 2));
    inside.end().await;
}

#[tokio::test]
async fn whoever_is_in_stays_in_and_others_are_told_when_to_come_back() {
    let inside = inside(closing());
    let mut first = inside.work("/login", &[]).await;
    let mut headers = HeaderMap::new();
    headers.insert(SET_COOKIE, HeaderValue::from_static("JSESSIONID=A1B2C3D4E5F6A7B8C9D0; Path=/; HttpOnly"));
    first.answer(StatusCode::OK, &mut headers);
    first.end();
    closes(&inside).await;
    let refused = inside.answer("/start", &[]).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    let page = inside.answer("/start", &[("accept", "text/html")]).await;
    assert!(page.body().contains("<h1>Too many people at once</h1>"), "{}", page.body());

    let admitted = inside.work("/next", &[("cookie", "JSESSIONID=A1B2C3D4E5F6A7B8C9D0")]).await;
    let lease = serve(admitted, StatusCode::OK)[SET_COOKIE].to_str().unwrap().to_owned();
    let lease = lease.split(';').next().unwrap();
    assert!(lease.starts_with("suimon="), "{lease}");
    let admitted = inside.work("/next", &[("cookie", lease)]).await;
    assert!(!serve(admitted, StatusCode::OK).contains_key(SET_COOKIE));
    let both = format!("{lease}; JSESSIONID=A1B2C3D4E5F6A7B8C9D0");
    let bye = serve(inside.work("/logout", &[("cookie", &both)]).await, StatusCode::OK);
    assert!(bye[SET_COOKIE].to_str().unwrap().starts_with("suimon=; Path=/; Max-Age=0"), "{bye:?}");
    inside.answer("/next", &[("cookie", "JSESSIONID=A1B2C3D4E5F6A7B8C9D0")]).await;
    inside.end().await;
}

#[tokio::test]
async fn what_the_application_says_to_the_gateway_is_taken_out_of_its_answer() {
    let inside = inside(closing());
    let mut admitted = inside.work("/buy", &[]).await;
    let mut headers = HeaderMap::new();
    headers.insert("suimon-session", HeaderValue::from_static("end"));
    headers.insert("x-own", HeaderValue::from_static("1"));
    admitted.answer(StatusCode::OK, &mut headers);
    assert!(!headers.contains_key("suimon-session") && headers.contains_key("x-own"));
    admitted.end();
    assert_eq!(inside.observer.view().kinds[0].1.active, 0);
    inside.end().await;
}

#[tokio::test]
async fn a_lease_of_a_gateway_with_the_same_keys_is_good_here() {
    let folder = tempfile::tempdir().unwrap();
    let keys = |mut params: Params, folder: &Path| {
        params.lease.keys_file = Some(folder.join("keys"));
        params
    };
    let app = app().await;
    let mut params = closing();
    params.lease.issued = suimon_params::LeaseIssued::Always;
    params.upstream.nodes = crate::support::params(app.address).upstream.nodes;
    let gateway = gateway(keys(params, folder.path()));
    let lease = gateway.ask(get("/head", &[])).await.cookie("suimon=").expect("always given");
    let inside = inside(keys(closing(), folder.path()));
    closes(&inside).await;
    serve(inside.work("/next", &[(COOKIE.as_str(), &lease)]).await, StatusCode::OK);
    inside.end().await;
}

#[tokio::test]
async fn what_cannot_be_understood_is_refused_and_what_finds_no_place_is_told_so() {
    let mut params = params(NOBODY);
    params.limits.connections = 1;
    let inside = inside(params);
    let bad = inside.answer("/a", &[("host", "b")]).await;
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST, "{}", bad.body());
    let only = inside.work("/a", &[]).await;
    let refused = inside.answer("/b", &[]).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    serve(only, StatusCode::OK);
    serve(inside.work("/b", &[]).await, StatusCode::OK);
    inside.end().await;
}
