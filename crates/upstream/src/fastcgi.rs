//! One FastCGI connection, driven by its caller, and what the worker at its other end is told.
//!
//! As with HTTP/1.1 a connection has no task of its own, and a dropped request closes it. To a worker
//! of a pool, which nobody else asks, it is kept open for the next request. To somebody else's server
//! it carries one request: an open connection occupies one worker of php-fpm for good, and requests on
//! others would wait for it.

use super::answer::{self, Expected, bad_response};
use super::connect::Stream;
use super::error::UpstreamErrorKind;
use super::fault::{BodyFault, Failed};
use super::head::RequestHead;
use super::outgoing::Left;
use super::request::{Progress, RequestBody};
use super::timer::Silence;
use super::wire::{self, Wire};
use bytes::{Bytes, BytesMut};
use http::header::HeaderValue;
use http::{Method, response};
use http_body::{Body as _, Frame, SizeHint};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use suimon_fastcgi::environment::{self, About};
use suimon_fastcgi::head;
use suimon_fastcgi::request::{Environment, begin, stdin};
use suimon_fastcgi::response::{Decoder, End, Event};
use suimon_fastcgi::script::{Mapping, NoScript, Script};
use suimon_params::upstream::{FastCgiParams, NodeParams};

/// Bytes that libraries of workers read at once. The end of a longer head may stay unread, and would be
/// taken for the beginning of the next request.
const READ_AT_ONCE: usize = 8 << 10;
/// The most of what a worker writes to its standard error that is logged of one request, in bytes.
const STDERR_MAX: usize = 1 << 10;

/// The programs of an application behind FastCGI.
pub(super) struct Programs {
    mapping: Mapping,
    /// Whether a program is run only if its file exists here.
    checks_files: bool,
}

impl Programs {
    pub(super) fn new(params: &FastCgiParams) -> Self {
        Programs { mapping: params.mapping.clone(), checks_files: params.checks_files }
    }

    /// Returns what a request asks for, before anybody is asked.
    ///
    /// # Errors
    /// No program answers its path, or its body was not kept and its length is unknown.
    pub(super) fn call(&self, head: &RequestHead, body: &RequestBody) -> Result<Call<'_>, Failed> {
        let script = self.script(head.parts.uri.path()).map_err(|no_script| {
            Failed::new(UpstreamErrorKind::NoProgram, "no program answers the request").caused_by(no_script)
        })?;
        if body.is_end_stream() {
            return Ok(Call { script, length: None });
        }
        let unknown = "FastCGI must know how long a request's body is, and there was no room to keep it";
        let length = Left::declared(head, body);
        let length = length.ok_or_else(|| Failed::new(UpstreamErrorKind::GatewayFull, unknown))?;
        Ok(Call { script, length: Some(length) })
    }

    /// Returns what a check asks for. It may be for a path that the worker answers without any
    /// program, as php-fpm does for its `ping.path`.
    pub(super) fn check<'a>(&'a self, path: &'a str) -> Call<'a> {
        self.script(path).map_or_else(|_| Call::of_worker(path), |script| Call { script, length: None })
    }

    /// Returns what a program is told of a request. `host`: for a request that names none.
    pub(super) fn environment(&self, head: &RequestHead, call: &Call<'_>, host: &HeaderValue) -> Environment {
        let Call { script, length } = call;
        let RequestHead { parts, forwarding, client, .. } = head;
        let about = About {
            mapping: &self.mapping,
            script,
            client: client.map(|client| client.address),
            is_secure: client.is_some_and(|client| client.is_secure),
            body: *length,
            host: host.as_bytes(),
        };
        let asked_for = parts.headers.get(http::header::HOST);
        let told = forwarding.iter().flat_map(|forwarding| forwarding.lines(asked_for));
        let told = told.map(|(name, value)| (name, value.as_bytes()));
        let mut environment = Environment::default();
        environment::add(&mut environment, parts, &about, told);
        environment
    }

    /// Returns the file of the program that a call is for.
    pub(super) fn file(&self, call: &Call<'_>) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.mapping.file(&call.script).concat()))
    }

    fn script(&self, path: &str) -> Result<Script<'_>, NoScript> {
        // A look at one file takes some microseconds; the program it spares takes a worker.
        self.mapping.script(path, |file| {
            let file = [self.mapping.root().as_bytes(), file].concat();
            !self.checks_files || Path::new(OsStr::from_bytes(&file)).is_file()
        })
    }
}

/// A request to a program.
pub(super) struct Call<'a> {
    script: Script<'a>,
    /// Bytes of the body; `None`: there is none.
    pub(super) length: Option<u64>,
}

impl<'a> Call<'a> {
    /// Returns what asks for a path that the worker answers without any program.
    pub(super) fn of_worker(path: &'a str) -> Self {
        Call { script: Script { name: path.as_bytes().into(), path_info: Cow::default() }, length: None }
    }
}

/// An open FastCGI connection, for one request at a time.
pub(super) struct FastCgi {
    wire: Wire,
    /// Whether the worker is told to keep it open.
    keeps: bool,
    /// Requests that it has had, and when the last one was over.
    served: u64,
    idle_since: Option<Instant>,
    head_max: usize,
    decoder: Decoder,
    /// What the program wrote: until its head is complete, and then what followed it.
    written: BytesMut,
    searched: usize,
    expected: Expected,
    stderr: Stderr,
}

/// What a worker wrote to its standard error, up to [`STDERR_MAX`] bytes; logged when dropped.
struct Stderr {
    node: NodeParams,
    text: Vec<u8>,
    is_quiet: bool,
}

impl FastCgi {
    /// Returns a connection over `stream` to `node` that accepts response heads of at most
    /// `head_max` bytes. `timeout` is about how long it will wait for them.
    pub(super) fn new(stream: Stream, node: &NodeParams, head_max: usize, timeout: Duration) -> Box<Self> {
        Box::new(FastCgi {
            wire: Wire::new(stream, timeout),
            keeps: false,
            served: 0,
            idle_since: None,
            head_max,
            decoder: Decoder::default(),
            written: BytesMut::new(),
            searched: 0,
            expected: Expected::All,
            stderr: Stderr { node: node.clone(), text: vec![], is_quiet: false },
        })
    }

    /// Lets the worker keep the connection open behind each request.
    pub(super) fn keep(&mut self) {
        self.keeps = true;
    }

    /// Returns whether it was kept from an earlier request.
    pub(super) fn is_kept(&self) -> bool {
        self.served > 0
    }

    /// Returns whether it has served more than one request.
    pub(super) fn was_reused(&self) -> bool {
        self.served > 1
    }

    /// Returns whether the worker has neither closed it nor sent anything unasked. Leaves no task's
    /// waker registered.
    pub(super) fn is_open(&mut self) -> bool {
        self.wire.is_quiet()
    }

    /// Returns whether it was idle for `age`.
    pub(super) fn is_stale(&self, age: Duration) -> bool {
        self.idle_since.is_some_and(|since| since.elapsed() >= age)
    }

    /// Returns it ready for another request, if this one is over and the worker keeps it open.
    pub(super) fn at_rest(mut self: Box<Self>) -> Option<Box<Self>> {
        let is_at_rest = self.keeps
            && self.is_over()
            && self.decoder.is_over()
            && self.wire.outgoing.is_sent()
            && self.wire.read.bytes.is_empty();
        if !is_at_rest {
            return None;
        }
        self.stderr.tell();
        self.wire.rest();
        (self.decoder, self.searched, self.expected) = (Decoder::default(), 0, Expected::All);
        self.served += 1;
        self.idle_since = Some(Instant::now());
        Some(self)
    }

    /// Keeps what the worker writes to its standard error out of the log.
    pub(super) fn keep_quiet(&mut self) {
        self.stderr.is_quiet = true;
    }

    /// Returns the connection's timer, for whatever the caller waits for.
    pub(super) fn silence(&mut self) -> &mut Silence {
        &mut self.wire.silence
    }

    /// Sends a request and returns the head of the response; the body follows over this connection.
    /// Waits for the head no longer than `timeout` after the last piece of the request. `host` is
    /// for a request that names none.
    pub(super) async fn exchange(
        &mut self,
        head: &RequestHead,
        (programs, call): (&Programs, &Call<'_>),
        host: &HeaderValue,
        body: RequestBody,
        progress: Option<&Arc<Progress>>,
        timeout: Duration,
    ) -> Result<response::Parts, Failed> {
        let left = call.length.map_or(Left::Buffered, Left::Records);
        // What is left unread of a body would be read as the next request.
        let mut keeps = self.keeps && call.length.is_none();
        let write = |text: &mut Vec<u8>| keeps = write_head(text, head, (programs, call), host, keeps);
        self.wire.begin(timeout, (body, left), write);
        self.keeps = keeps;
        let method = &head.parts.method;
        wire::answer(self, |own| &mut own.wire, progress, |own, cx| own.poll_answer(cx, method)).await
    }

    /// Returns the next piece of the response's body; `None` once the worker has ended the request.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        if let Err(fault) = self.wire.keep_sending(cx) {
            return Poll::Ready(Some(Err(fault)));
        }
        // What came with the head.
        let written = self.written.split().freeze();
        if let Some(piece) = self.expected.take(written) {
            return Poll::Ready(Some(piece.map(Frame::data)));
        }
        loop {
            let broken = match self.decoder.next(&mut self.wire.read.bytes) {
                Ok(Some(Event::Stdout(piece))) => match self.expected.take(piece) {
                    Some(piece) => return Poll::Ready(Some(piece.map(Frame::data))),
                    None => continue,
                },
                Ok(Some(Event::Stderr(piece))) => {
                    self.stderr.note(&piece);
                    continue;
                }
                Ok(Some(Event::End(End::Complete { .. }))) | Ok(None) if self.decoder.is_over() => {
                    return Poll::Ready(self.expected.end().err().map(Err));
                }
                Ok(Some(Event::End(end))) => {
                    return Poll::Ready(Some(Err(BodyFault::Malformed(end.to_string().into()))));
                }
                Err(bad) => return Poll::Ready(Some(Err(BodyFault::Malformed(bad.into())))),
                Ok(None) => match ready!(self.wire.poll_read(cx)) {
                    Ok(0) => io::ErrorKind::UnexpectedEof.into(),
                    Ok(_) => continue,
                    Err(error) => error,
                },
            };
            // The client has all of it, whatever became of the program afterwards.
            return Poll::Ready(match self.expected {
                Expected::Nothing | Expected::Bytes(0) => None,
                Expected::Bytes(_) | Expected::All => Some(Err(BodyFault::Broken(broken))),
            });
        }
    }

    /// Returns whether the worker has ended the request and everything was taken.
    pub(super) fn is_over(&self) -> bool {
        self.decoder.is_over() && self.written.is_empty() && !matches!(self.expected, Expected::Bytes(1..))
    }

    /// Returns what is known of the length of the rest of the body.
    pub(super) fn size_hint(&self) -> SizeHint {
        self.expected.size_hint()
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        method: &Method,
    ) -> Poll<Result<response::Parts, Failed>> {
        loop {
            let taken = head::take(&mut self.written, &mut self.searched, self.head_max);
            if let Some(head) = taken.map_err(bad_response)? {
                let (head, expected) = answer::begin(head, method).map_err(bad_response)?;
                self.expected = expected;
                return Poll::Ready(Ok(head));
            }
            let error = match self.decoder.next(&mut self.wire.read.bytes) {
                Ok(Some(Event::Stdout(piece))) => {
                    self.written.extend_from_slice(&piece);
                    continue;
                }
                Ok(Some(Event::Stderr(piece))) => {
                    self.stderr.note(&piece);
                    continue;
                }
                Ok(Some(Event::End(end @ End::Complete { .. }))) => {
                    return Poll::Ready(Err(bad_response(NoHead(end))));
                }
                Ok(Some(Event::End(refused))) => {
                    let detail = "the worker refused the request before any of it ran";
                    return Poll::Ready(Err(
                        Failed::new(UpstreamErrorKind::Connect, detail).caused_by(NoHead(refused))
                    ));
                }
                Err(bad) => return Poll::Ready(Err(bad_response(bad))),
                Ok(None) => match ready!(self.wire.poll_read(cx)) {
                    Ok(0) => None,
                    Ok(_) => continue,
                    Err(error) => Some(error),
                },
            };
            let failed = if self.written.is_empty() { Failed::before_head } else { Failed::in_head };
            return Poll::Ready(Err(failed(error)));
        }
    }
}

impl Stderr {
    fn note(&mut self, piece: &[u8]) {
        let room = STDERR_MAX - self.text.len();
        self.text.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Logs what there is, and forgets it.
    fn tell(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = String::from_utf8_lossy(&text);
        let text = text.trim();
        if !text.is_empty() && !self.is_quiet {
            // Quoted: it may repeat what a client has sent.
            tracing::warn!(node = %self.node, "a worker wrote to its standard error: {text:?}");
        }
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.tell();
    }
}

/// A request that a worker ended without a head of a response.
#[derive(Debug)]
struct NoHead(End);

impl fmt::Display for NoHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no head of a response came: {}", self.0)
    }
}

impl std::error::Error for NoHead {}

/// Writes all records ahead of the body; without a body, all there are. Returns whether the worker is
/// told to keep the connection: only if it has read all of them when it begins.
fn write_head(
    text: &mut Vec<u8>,
    head: &RequestHead,
    (programs, call): (&Programs, &Call<'_>),
    host: &HeaderValue,
    keeps: bool,
) -> bool {
    text.extend_from_slice(&begin(false));
    programs.environment(head, call, host).write(text);
    if call.length.is_none() {
        text.extend_from_slice(&stdin(0));
    }
    let keeps = keeps && text.len() <= READ_AT_ONCE;
    if keeps {
        let begin = begin(true);
        text[..begin.len()].copy_from_slice(&begin);
    }
    keeps
}
