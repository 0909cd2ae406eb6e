//! Answers to balancers that ask: HAProxy's agent-check, and HTTP.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use suimon_agent::CONNECTIONS_MAX;
use suimon_agent::agent_check::{Admin, AgentReply, LINE_MAX, weight_percent};
use suimon_agent::datagram::Load;
use suimon_agent::orca::{HEADER, OrcaReport};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

/// The longest that one connection lasts.
const LASTS: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted, as descriptors have run out.
const ACCEPTS_AGAIN: Duration = Duration::from_millis(100);
/// Where the load is asked for.
const PATH: &str = "/load";

/// What answers are made of.
#[derive(Clone)]
pub(super) struct Answers {
    /// `None`: it is not known.
    pub(super) load: watch::Receiver<Option<Load>>,
    /// While this file exists, HAProxy is told to drain.
    pub(super) drain: Option<PathBuf>,
}

impl Answers {
    /// Returns the line for HAProxy. Without a load it says nothing of the weight, which then stays.
    fn agent_check(&self) -> AgentReply {
        let load = *self.load.borrow();
        // Without a file it is nobody's word but that of HAProxy's operator.
        let admin = self.drain.as_ref().map(|file| if file.exists() { Admin::Drain } else { Admin::Ready });
        AgentReply {
            admin,
            weight_percent: load.map(|load| weight_percent(load.mean_1s() / f64::from(load.processors))),
            ..AgentReply::default()
        }
    }

    fn orca(&self) -> Option<OrcaReport> {
        self.load.borrow().as_ref().map(orca)
    }
}

/// Returns a load in the words of ORCA. Utilisation is the run queue for each processor over the past
/// second: as long as no task waits, that is how much of the processors is in use.
fn orca(load: &Load) -> OrcaReport {
    let mut named = vec![
        ("run_queue", f64::from(load.run_queue)),
        ("run_queue_mean_100ms", load.mean_100ms()),
        ("run_queue_mean_1s", load.mean_1s()),
        ("processors", f64::from(load.processors)),
    ];
    named.extend(load.pressure_percent().map(|percent| ("cpu_pressure", percent / 100.0)));
    named.extend(load.in_flight.map(|requests| ("requests_in_flight", f64::from(requests))));
    OrcaReport {
        cpu_utilization: load.mean_1s() / f64::from(load.processors),
        named_metrics: named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..OrcaReport::default()
    }
}

/// Answers HAProxy's agent-check for ever.
pub(super) async fn agent_check(listener: TcpListener, answers: Answers) {
    accept(listener, move |stream| {
        let line = answers.agent_check().to_string();
        async move { _ = say(stream, &line).await }
    })
    .await;
}

/// Answers over HTTP for ever.
pub(super) async fn http(listener: TcpListener, answers: Answers) {
    accept(listener, move |stream| {
        let answers = answers.clone();
        async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let response = respond(&answers, request.method(), request.uri().path());
                async move { Ok::<_, Infallible>(response) }
            });
            let mut server = http1::Builder::new();
            server
                .keep_alive(false)
                .timer(TokioTimer::new())
                .header_read_timeout(LASTS)
                .max_buf_size(16 << 10);
            // Whatever went wrong, the one who asks asks again.
            let _ = server.serve_connection(TokioIo::new(stream), answer).await;
        }
    })
    .await;
}

/// Serves connections, so many at once and each for a short time.
async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    serve: impl Fn(TcpStream) -> F,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // With all places taken it is closed.
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let serving = serve(stream);
                tokio::spawn(async move {
                    let _ = timeout(LASTS, serving).await;
                    drop(place);
                });
            }
            Err(error) => {
                eprintln!("a connection cannot be accepted: {error}");
                tokio::time::sleep(ACCEPTS_AGAIN).await;
            }
        }
    }
}

/// Writes a line and closes. HAProxy may send something (`agent-send`): unless that is read, the
/// kernel resets the connection, and the line may be lost.
async fn say(mut stream: TcpStream, line: &str) -> io::Result<()> {
    stream.write_all(line.as_bytes()).await?;
    stream.shutdown().await?;
    let mut sent = [0; LINE_MAX];
    let mut room = LINE_MAX;
    while room > 0 {
        match stream.read(&mut sent[..room]).await? {
            0 => break,
            length => room -= length,
        }
    }
    Ok(())
}

fn respond(answers: &Answers, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let text = |status: StatusCode, text: &'static str| {
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        response
    };
    if path != PATH {
        return text(StatusCode::NOT_FOUND, "the load is at /load\n");
    }
    if method != Method::GET && method != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let Some(report) = answers.orca() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "the load is not known\n");
    };
    let mut response = Response::new(Full::new(Bytes::from(report.to_json() + "\n")));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&report.to_text()) {
        headers.insert(HEADER, value);
    }
    response
}
