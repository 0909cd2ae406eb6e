//! A gateway and an application on free ports of this machine, and clients to go with them.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::Location;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use suimon_gate::RouteMode;
use suimon_model::Limit;
use suimon_params::upstream::NodeParams;
use suimon_params::{DeclaredRoute, Params, RoutePattern};
use suimon_proxy::{Observer, RequestNotes, Server, View};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// Long enough for anything here on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Returns what `future` returns, which must not take long.
#[track_caller]
pub(crate) fn soon<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let done = tokio::time::timeout(PATIENCE, future).await;
        done.unwrap_or_else(|_| panic!("not done in time: what is awaited at {caller}"))
    }
}

/// An address at which nobody listens, and that is given to nobody else while this lives.
pub(crate) struct Nobody {
    pub(crate) address: SocketAddr,
    _held: TcpSocket,
}

impl Nobody {
    pub(crate) fn new() -> Self {
        let held = TcpSocket::new_v4().unwrap();
        held.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        Nobody { address: held.local_addr().unwrap(), _held: held }
    }
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    asked_until(what, Duration::from_millis(1), async || condition().then_some(())).await;
}

/// Asks each `every` until there is what is waited for, and returns it.
pub(crate) async fn asked_until<T>(
    what: &str,
    every: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let asks = async {
        loop {
            match ask().await {
                Some(answer) => return answer,
                None => tokio::time::sleep(every).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, asks).await.unwrap_or_else(|_| panic!("never came true: {what}"))
}

/// How often an answer is asked for that will soon be another.
pub(crate) const ASK_EVERY: Duration = Duration::from_millis(5);

/// The application.
pub(crate) struct App {
    pub(crate) address: SocketAddr,
    pub(crate) state: Arc<AppState>,
    task: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct AppState {
    /// Requests whose head has come.
    pub(crate) begun: AtomicUsize,
    /// Requests to `/hold` that are being worked on.
    pub(crate) held: AtomicUsize,
    /// Requests to `/hold` whose connection was closed while they were worked on.
    pub(crate) cancelled: AtomicUsize,
    /// Lets one `/hold` go for each permit.
    pub(crate) release: HoldGate,
    /// What `X-Who` said of requests to `/hold`, in the order in which they came.
    pub(crate) who: Mutex<Vec<String>>,
}

pub(crate) struct HoldGate(pub(crate) Semaphore);

impl Default for HoldGate {
    fn default() -> Self {
        HoldGate(Semaphore::new(0))
    }
}

impl AppState {
    pub(crate) fn release(&self, count: usize) {
        self.release.0.add_permits(count);
    }
}

impl App {
    /// Ends the application at once, with all of its connections.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type AppBody = UnsyncBoxBody<Bytes, Infallible>;

/// Starts the application. Headers of a request that begin with `X-Say-` stand in its answer
/// without that, and `X-Was-Told` says there what `Suimon-Waiting` said.
///
/// `X-Status` is the status of its answer.
///
/// - `/hold`, and whatever begins so, answers when released; `/hold/fail` then with 500.
/// - `/work` answers after as many milliseconds as its query says.
/// - `/echo` answers with the length and BLAKE3 hash of the body; `/head` with the request's head
///   as text.
/// - `/big` sends as many bytes as its query says, without saying so before; `/sized` says so.
/// - `/events` sends one event and keeps silent; `/ws` switches to an echo of bytes; `/login` sets
///   a session cookie.
pub(crate) async fn app() -> App {
    app_at("127.0.0.1:0".parse().unwrap()).await
}

/// Starts the application at an address that may have been another's a moment ago.
pub(crate) async fn app_at(address: SocketAddr) -> App {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let state = Arc::new(AppState::default());
    let shared = Arc::clone(&state);
    let task = tokio::spawn(async move {
        // They end with the task.
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let state = Arc::clone(&shared);
            connections.spawn(async move {
                let service = service_fn(move |request| answer(Arc::clone(&state), request));
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades()
                    .await;
            });
        }
    });
    App { address, state, task }
}

struct Held<'a>(&'a AppState, bool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, SeqCst);
        if !self.1 {
            self.0.cancelled.fetch_add(1, SeqCst);
        }
    }
}

async fn answer(state: Arc<AppState>, request: Request<Incoming>) -> Result<Response<AppBody>, Infallible> {
    let mut said = HeaderMap::new();
    for (name, value) in request.headers() {
        if let Some(name) = name.as_str().strip_prefix("x-say-") {
            said.append(HeaderName::try_from(name).unwrap(), value.clone());
        }
        if name == "suimon-waiting" {
            said.append("x-was-told", value.clone());
        }
    }
    let status = request.headers().get("x-status").map(|status| status.to_str().unwrap().parse().unwrap());
    let mut response = answer_of(state, request).await?;
    *response.status_mut() = status.unwrap_or(response.status());
    response.headers_mut().extend(said);
    Ok(response)
}

async fn answer_of(
    state: Arc<AppState>,
    mut request: Request<Incoming>,
) -> Result<Response<AppBody>, Infallible> {
    state.begun.fetch_add(1, SeqCst);
    let text = |text: String| Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    let count = || request.uri().query().and_then(|query| query.parse().ok()).unwrap_or(0usize);
    let path = request.uri().path().to_owned();
    Ok(match path.as_str() {
        path if path.starts_with("/hold") => {
            let who = request.headers().get("x-who").map_or("", |who| who.to_str().unwrap());
            state.who.lock().unwrap().push(who.to_owned());
            state.held.fetch_add(1, SeqCst);
            let mut held = Held(&state, false);
            let body = request.into_body().collect().await;
            state.release.0.acquire().await.unwrap().forget();
            held.1 = true;
            let mut response = text(format!("held {}", body.map_or(0, |body| body.to_bytes().len())));
            if path.ends_with("fail") {
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            }
            response
        }
        "/echo" => match request.into_body().collect().await {
            Ok(body) => {
                let body = body.to_bytes();
                text(format!("{} {}", body.len(), blake3::hash(&body)))
            }
            Err(_) => text("broken".to_owned()),
        },
        "/head" => {
            let mut lines = format!("{} {}\n", request.method(), request.uri());
            for (name, value) in request.headers() {
                lines.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
            }
            text(lines)
        }
        "/sized" => text("x".repeat(count())),
        "/big" => {
            let (sender, receiver) = mpsc::channel(1);
            let mut left = count();
            tokio::spawn(async move {
                while left > 0 {
                    let bytes = left.min(16 << 10);
                    left -= bytes;
                    if sender.send(Bytes::from(vec![b'x'; bytes])).await.is_err() {
                        return;
                    }
                }
            });
            Response::new(Pieces(receiver).boxed_unsync())
        }
        "/events" => {
            let (sender, receiver) = mpsc::channel(1);
            sender.send(Bytes::from_static(b"data: hello\n\n")).await.unwrap();
            let state = Arc::clone(&state);
            tokio::spawn(async move {
                sender.closed().await;
                state.cancelled.fetch_add(1, SeqCst);
            });
            let body = Pieces(receiver).boxed_unsync();
            Response::builder().header("content-type", "text/event-stream").body(body).unwrap()
        }
        "/ws" => {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut stream = TokioIo::new(upgrade.await.unwrap());
                stream.write_all(b"welcome").await.unwrap();
                let (mut from, mut to) = tokio::io::split(stream);
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
            let mut response = text(String::new());
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert("connection", "upgrade".parse().unwrap());
            response.headers_mut().insert("upgrade", "websocket".parse().unwrap());
            response
        }
        "/login" => {
            let mut response = text("in".to_owned());
            response.headers_mut().insert("set-cookie", "JSESSIONID=s1-0123456789; Path=/".parse().unwrap());
            response
        }
        "/work" => {
            tokio::time::sleep(Duration::from_millis(count() as u64)).await;
            text("worked".to_owned())
        }
        "/missing" => {
            let mut response = text("no".to_owned());
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
        _ => text("ok".to_owned()),
    })
}

/// A body of the pieces that come over a channel.
pub(crate) struct Pieces(pub(crate) mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The gateway.
pub(crate) struct Gateway {
    pub(crate) plain: SocketAddr,
    pub(crate) tls: Option<SocketAddr>,
    pub(crate) observer: Observer,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

/// Returns parameters for a gateway in front of `app`, without session gate, with one slot for
/// `/hold`.
pub(crate) fn params(app: SocketAddr) -> Params {
    let mut params = Params::default();
    params.listen.plain = Some("127.0.0.1:0".parse().unwrap());
    params.upstream.nodes = vec![NodeParams::parse(&format!("http://{app}")).unwrap()];
    params.sessions.kinds.clear();
    params.routes.declared = ["/hold", "/big", "/sized"]
        .map(|path| DeclaredRoute {
            pattern: RoutePattern { method: None, path: path.to_owned() },
            query: None,
            mode: RouteMode::Fixed(Limit::of(1)),
        })
        .to_vec();
    params
}

/// Starts a gateway.
pub(crate) fn gateway(params: Params) -> Gateway {
    gateway_that_notes(params, None)
}

/// Starts a gateway that notes requests.
pub(crate) fn gateway_that_notes(params: Params, notes: Option<RequestNotes>) -> Gateway {
    let server = Server::bind(params).unwrap();
    if let Some(notes) = notes {
        server.note_requests(&notes);
    }
    let plain = server.plain_address().unwrap_or_else(|| "127.0.0.1:9".parse().unwrap());
    let (tls, observer) = (server.tls_address(), server.observer());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    Gateway { plain, tls, observer, stop: Some(stop), task: Some(task) }
}

impl Gateway {
    pub(crate) fn view(&self) -> View {
        self.observer.view()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.view().gate.waiting
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.view().gate.in_flight
    }

    /// Asks the gateway to shut down; the handle ends when it has.
    pub(crate) fn stop(&mut self) -> JoinHandle<()> {
        let _ = self.stop.take().unwrap().send(());
        self.task.take().unwrap()
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Answer {
        ask_over(TcpStream::connect(self.plain).await.unwrap(), request).await
    }

    /// Gets one path on a connection of its own.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(get(path, &[])).await
    }

    /// Takes the only slot of `/hold` and returns once the application has it.
    pub(crate) async fn occupy(&self, app: &App) -> JoinHandle<Answer> {
        let before = app.state.held.load(SeqCst);
        let address = self.plain;
        let task = tokio::spawn(async move {
            ask_over(TcpStream::connect(address).await.unwrap(), get("/hold", &[])).await
        });
        until("the application holds a request", || app.state.held.load(SeqCst) > before).await;
        task
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the cookies that are set, as they are to be sent.
    pub(crate) fn cookies(&self) -> Vec<&str> {
        let lines = self.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
        lines.filter_map(|line| line.split(';').next()).collect()
    }

    /// Returns the one that begins so, if it is set.
    pub(crate) fn cookie(&self, beginning: &str) -> Option<String> {
        self.cookies().into_iter().find(|cookie| cookie.starts_with(beginning)).map(str::to_owned)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Returns a request for `path` with these headers beside `Host`.
pub(crate) fn get(path: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    request("GET", path, headers, "")
}

pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path).header("host", "shop.example");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).unwrap()
}

/// Sends one HTTP/1.1 request over `stream`.
pub(crate) async fn ask_over<S>(stream: S, request: Request<Full<Bytes>>) -> Answer
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driver = tokio::spawn(connection);
    let response = soon(sender.send_request(request)).await.unwrap();
    let answer = collected(response).await;
    driver.abort();
    answer
}

/// A client's end of an HTTP/2 connection, and what drives it.
pub(crate) type H2 = (hyper::client::conn::http2::SendRequest<Full<Bytes>>, JoinHandle<()>);

/// Opens an HTTP/2 connection over `stream`.
pub(crate) async fn h2_over<S>(stream: S) -> H2
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    h2_with_window(stream, None).await.unwrap()
}

/// Opens an HTTP/2 connection over `stream`; `window`: how many bytes of an answer may come before
/// it is taken.
pub(crate) async fn h2_with_window<S>(stream: S, window: Option<u32>) -> hyper::Result<H2>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    if window.is_some() {
        builder.initial_stream_window_size(window);
    }
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok((sender, driver))
}

/// Returns a response with all of its body.
pub(crate) async fn collected(response: Response<Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    let body = soon(body.collect()).await.unwrap().to_bytes();
    Answer { status: head.status.as_u16(), headers: head.headers, body }
}

/// Opens a connection that sends what it is given at once, as browsers do.
pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends bytes as they are and returns everything that comes back until the connection is closed.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The other side may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("closed in time");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads until `part` has come.
pub(crate) async fn read_until(stream: &mut (impl AsyncRead + Unpin), part: &str) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(part) {
        let count = soon(stream.read(&mut buffer)).await.unwrap();
        assert!(count > 0, "closed before {part:?}: {:?}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}
