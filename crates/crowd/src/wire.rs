//! One HTTP/1.1 connection, driven by its user's task. Dropping it closes it at once.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;

use bytes::Bytes;
use http::header::LOCATION;
use http::uri::PathAndQuery;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;

use crate::answer::Answer;
use crate::marked::{Marked, Marks};
use crate::target::Addresses;
use crate::trouble::Trouble;

/// The most bytes of a body that are kept to look for texts and values in it.
const KEPT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The same of an error that nobody looks for anything in: what it says is reported.
const ERROR_BYTES_MAX: usize = 8 * 1024;
/// How often a request is sent on at most: the one to which a server hands over is there by then.
const SENT_ON_MAX: u32 = 3;
/// The most bytes of a response's head, or of a body read ahead.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

type Connection = Pin<Box<http1::Connection<TokioIo<Marked>, Full<Bytes>>>>;

/// An open connection.
pub(crate) struct Wire {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it is closed.
    connection: Option<Connection>,
    marks: Rc<Marks>,
}

/// What becomes of the body of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyUse {
    /// It is kept, to look for texts and values in it.
    Keep,
    /// It is read and thrown away, but for the beginning of an error.
    Drop {
        /// A longer one is trouble.
        bytes_max: u64,
    },
}

/// Sends a request over the kept connection or a new one, which is then kept as long as possible.
///
/// Like a browser, it repeats the request over a new connection if a *kept* one turns out to be
/// closed before any response arrived: the server may have closed it just then. And it does so where
/// it is redirected to where it is, by 307: a server that hands over to another process sends those on
/// who must ask that one. `reconnects` counts these repeats.
pub(crate) async fn ask(
    addresses: &Addresses,
    kept: &mut Option<Wire>,
    request: Request<Full<Bytes>>,
    keep_body: bool,
    reconnects: &Cell<u64>,
) -> Result<Answer, Trouble> {
    let body_use = if keep_body { BodyUse::Keep } else { BodyUse::Drop { bytes_max: u64::MAX } };
    // Taken out, so that dropping this future also closes the connection.
    if let Some(mut wire) = kept.take()
        && wire.is_ready().await
    {
        match wire.exchange(request.clone(), body_use).await {
            Ok(answer) if is_sent_on(&request, &answer) => reconnects.set(reconnects.get() + 1),
            Ok(answer) => {
                *kept = Some(wire);
                return Ok(answer);
            }
            Err(Broken { trouble: Trouble::ConnectionLost, before_answer: true }) => {
                reconnects.set(reconnects.get() + 1);
            }
            Err(broken) => return Err(broken.trouble),
        }
    }
    for _ in 1..SENT_ON_MAX {
        let mut wire = Wire::open(addresses).await?;
        let answer = wire.exchange(request.clone(), body_use).await.map_err(|broken| broken.trouble)?;
        if !is_sent_on(&request, &answer) {
            *kept = Some(wire);
            return Ok(answer);
        }
        reconnects.set(reconnects.get() + 1);
    }
    let mut wire = Wire::open(addresses).await?;
    let answer = wire.exchange(request, body_use).await.map_err(|broken| broken.trouble)?;
    *kept = Some(wire);
    Ok(answer)
}

/// Returns whether a request is to be sent again, by another connection.
fn is_sent_on(request: &Request<Full<Bytes>>, answer: &Answer) -> bool {
    let own = request.uri().path_and_query().map(PathAndQuery::as_str);
    answer.status == StatusCode::TEMPORARY_REDIRECT.as_u16()
        && answer.headers.get(LOCATION).and_then(|location| location.to_str().ok()) == own
}

/// Waits for `future`, and meanwhile notices if the server closes the kept connection.
pub(crate) async fn idle<F: Future>(kept: &mut Option<Wire>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Some(wire) = kept {
            let closed = match &mut wire.connection {
                Some(connection) => connection.as_mut().poll(cx).is_ready(),
                None => true,
            };
            if closed {
                *kept = None;
            }
        }
        future.as_mut().poll(cx)
    })
    .await
}

/// An exchange that came to nothing; so did its connection.
pub(crate) struct Broken {
    pub(crate) trouble: Trouble,
    /// Whether nothing at all was answered.
    pub(crate) before_answer: bool,
}

impl Wire {
    /// Connects.
    pub(crate) async fn open(addresses: &Addresses) -> Result<Self, Trouble> {
        let stream = addresses.connect().await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrNotAvailable => Trouble::OutOfPorts,
            _ if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => Trouble::OutOfPorts,
            _ => Trouble::NotConnected,
        })?;
        let marks = Rc::new(Marks::default());
        let mut builder = http1::Builder::new();
        builder.max_buf_size(BUFFER_BYTES_MAX);
        let (sender, connection) = builder
            .handshake(TokioIo::new(Marked::new(stream, Rc::clone(&marks))))
            .await
            .map_err(|_| Trouble::NotConnected)?;
        Ok(Wire { sender, connection: Some(Box::pin(connection)), marks })
    }

    /// Waits until a request can be sent; false if the connection is closed.
    pub(crate) async fn is_ready(&mut self) -> bool {
        drive(&mut self.connection, self.sender.ready()).await.is_ok() && self.connection.is_some()
    }

    /// Returns when the bytes of the latest exchange moved.
    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Sends a request and reads its answer to the end.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        body_use: BodyUse,
    ) -> Result<Answer, Broken> {
        self.marks.clear();
        let asked = self.sender.send_request(request);
        let response = drive(&mut self.connection, asked)
            .await
            .map_err(|error| Broken { trouble: trouble(&error), before_answer: true })?;
        let (head, mut body) = response.into_parts();
        let (mut kept, mut read) = (Vec::new(), 0);
        let is_error = head.status.is_client_error() || head.status.is_server_error();
        let (keeps_max, bytes_max) = match body_use {
            BodyUse::Keep => (usize::MAX, KEPT_BYTES_MAX),
            BodyUse::Drop { bytes_max } => (if is_error { ERROR_BYTES_MAX } else { 0 }, bytes_max),
        };
        while let Some(bytes) = self.next_bytes(&mut body).await? {
            read += bytes.len() as u64;
            if read > bytes_max {
                return Err(Broken { trouble: Trouble::AnswerTooLong, before_answer: false });
            }
            kept.extend_from_slice(&bytes[..bytes.len().min(keeps_max - kept.len())]);
        }
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body: kept })
    }

    async fn next_bytes(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, Broken> {
        while let Some(frame) = drive(&mut self.connection, body.frame()).await {
            let frame = frame.map_err(|error| Broken { trouble: trouble(&error), before_answer: false })?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}

/// Polls the connection for as long as `future` needs it.
async fn drive<F: Future>(connection: &mut Option<Connection>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Some(open) = connection
            && open.as_mut().poll(cx).is_ready()
        {
            *connection = None;
        }
        future.as_mut().poll(cx)
    })
    .await
}

fn trouble(error: &hyper::Error) -> Trouble {
    if error.is_parse() { Trouble::BadAnswer } else { Trouble::ConnectionLost }
}
