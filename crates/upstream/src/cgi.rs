//! One program that runs for one request, as CGI/1.1 has it: the body comes to its standard input, the
//! answer from its standard output.
//!
//! Nothing of such a request is sent again: the program has run.
//!
//! *Source*: RFC 3875.

use super::answer::{self, Expected, bad_response};
use super::connect::{Stream, lacks_descriptors};
use super::error::UpstreamErrorKind;
use super::fastcgi::{Call, Programs};
use super::fault::{BodyFault, Failed};
use super::head::RequestHead;
use super::outgoing::Left;
use super::request::{Progress, RequestBody};
use super::timer::Silence;
use super::wire::Wire;
use bytes::Bytes;
use http::header::HeaderValue;
use http::{Method, response};
use http_body::{Frame, SizeHint};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::future::{Future, poll_fn};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use suimon_fastcgi::head;
use suimon_fleet::workers::Exit;
use suimon_pool::{Lease, Program, Run, RunEnd};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// The longest wait, after the end of an answer, for the program's own end. It shows whether an answer
/// of unknown length is whole; and until then a program needs its slot.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// A program that runs for one request.
pub(super) struct Cgi {
    wire: Wire,
    head_max: usize,
    searched: usize,
    expected: Expected,
    end: End,
}

/// How far a program is with its end.
enum End {
    /// It answers still.
    Answers(oneshot::Receiver<RunEnd>),
    /// It has written all that it will; how it ends is awaited, and no longer than this.
    Awaited(oneshot::Receiver<RunEnd>, Pin<Box<Sleep>>),
    Over,
}

impl Cgi {
    /// Starts the program that answers a request, at the place that `lease` is, and returns it with
    /// the head of its response; the body follows. Waits for the head no longer than `timeout` after
    /// the last piece of the request. `host` is for a request that names none. Heads have at most
    /// `head_max` bytes.
    pub(super) async fn exchange(
        lease: &Lease,
        head: &RequestHead,
        (programs, call): (&Programs, &Call<'_>),
        host: &HeaderValue,
        body: RequestBody,
        progress: Option<&Arc<Progress>>,
        (head_max, timeout): (usize, Duration),
    ) -> Result<(response::Parts, Box<Cgi>), Failed> {
        let program = program(head, programs, call, host).map_err(not_started)?;
        let started = tokio::time::timeout(timeout, lease.run(program)).await;
        let in_time = started.map_err(|_| {
            Failed::new(UpstreamErrorKind::FirstByteTimeout, "the program was not started in time")
        })?;
        let Run { body: stdin, answer, end } = in_time.map_err(not_started)?;
        let mut cgi = Box::new(Cgi {
            wire: Wire::new(Stream::Program { stdin, stdout: answer }, timeout),
            head_max,
            searched: 0,
            expected: Expected::All,
            end: End::Answers(end),
        });
        let left = call.length.map_or(Left::Buffered, Left::Bytes);
        cgi.wire.begin(timeout, (body, left), |_| ());
        let answer = poll_fn(|cx| {
            if let Err(BodyFault::Request(error)) = cgi.keep_sending(cx) {
                let detail = "the request's body broke off or is malformed";
                let failed = Failed::new(UpstreamErrorKind::RequestBody, detail);
                return Poll::Ready(Err(failed.caused_by(error)));
            }
            if let Poll::Ready(answer) = cgi.poll_answer(cx, &head.parts.method) {
                return Poll::Ready(answer);
            }
            let silent = || Failed::new(UpstreamErrorKind::FirstByteTimeout, "no response came in time");
            cgi.wire.silence.poll_over(cx, progress).map(|()| Err(silent()))
        })
        .await?;
        Ok((answer, cgi))
    }

    /// Returns the timer, for whatever the caller waits for.
    pub(super) fn silence(&mut self) -> &mut Silence {
        &mut self.wire.silence
    }

    /// Returns the next piece of the response's body; `None` at its end.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        if let Err(fault) = self.keep_sending(cx) {
            return Poll::Ready(Some(Err(fault)));
        }
        loop {
            let written = self.wire.read.bytes.split().freeze();
            if let Some(piece) = self.expected.take(written) {
                return Poll::Ready(Some(piece.map(Frame::data)));
            }
            if !matches!(self.end, End::Answers(_)) {
                return self.poll_end(cx).map(|ended| ended.err().map(Err));
            }
            // What cannot be read is as good as the end.
            if let Ok(1..) = ready!(self.wire.poll_read(cx)) {
                continue;
            }
            self.note_silence();
        }
    }

    /// Returns whether the program has answered and everything was taken.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.end, End::Over) && !matches!(self.expected, Expected::Bytes(1..))
    }

    /// Returns what is known of the length of the rest of the body.
    pub(super) fn size_hint(&self) -> SizeHint {
        self.expected.size_hint()
    }

    /// Continues to send the request's body. A program that does not read it may answer all the same.
    fn keep_sending(&mut self, cx: &mut Context<'_>) -> Result<(), BodyFault> {
        self.wire.keep_sending(cx)?;
        if self.wire.outgoing.is_sent() {
            // Programs may read up to the end, whatever the length.
            self.wire.stream.close_stdin();
        }
        Ok(())
    }

    /// Notes that the program will write no more.
    fn note_silence(&mut self) {
        if let End::Answers(end) = std::mem::replace(&mut self.end, End::Over) {
            self.end = End::Awaited(end, Box::pin(sleep(ENDS_WITHIN)));
        }
    }

    /// Ready once it is known whether the body is whole.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyFault>> {
        if let End::Awaited(end, patience) = &mut self.end {
            let ended = match Pin::new(end).poll(cx) {
                Poll::Ready(ended) => ended.ok(),
                Poll::Pending => {
                    ready!(patience.as_mut().poll(cx));
                    None
                }
            };
            self.end = End::Over;
            if let Some(ended @ RunEnd { exit: Exit::Signal(_), .. }) = ended
                && self.expected == Expected::All
            {
                return Poll::Ready(Err(BodyFault::Broken(io::Error::other(ended))));
            }
        }
        Poll::Ready(self.expected.end())
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        method: &Method,
    ) -> Poll<Result<response::Parts, Failed>> {
        loop {
            let taken = head::take(&mut self.wire.read.bytes, &mut self.searched, self.head_max);
            if let Some(head) = taken.map_err(bad_response)? {
                let (head, expected) = answer::begin(head, method).map_err(bad_response)?;
                self.expected = expected;
                return Poll::Ready(Ok(head));
            }
            if let End::Awaited(end, _) = &mut self.end {
                // The caller's timer bounds it.
                let ended = ready!(Pin::new(end).poll(cx));
                let detail = "the program ended without the head of a response";
                let failed = Failed::new(UpstreamErrorKind::BadResponse, detail);
                return Poll::Ready(Err(ended.into_iter().fold(failed, Failed::caused_by)));
            }
            // What cannot be read is as good as the end.
            if !matches!(ready!(self.wire.poll_read(cx)), Ok(1..)) {
                self.note_silence();
            }
        }
    }
}

/// Returns what is to run, and its environment.
fn program(
    head: &RequestHead,
    programs: &Programs,
    call: &Call<'_>,
    host: &HeaderValue,
) -> io::Result<Program> {
    let own = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let environment = programs.environment(head, call, host);
    Ok(Program {
        // The program may run in another folder.
        script: std::path::absolute(programs.file(call))?,
        environment: environment.pairs().map(|(name, value)| (own(name), own(value))).collect(),
        has_body: call.length.is_some(),
    })
}

/// Returns the error of a program that could not be started.
fn not_started(error: io::Error) -> Failed {
    let is_lack = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let (kind, detail) = if lacks_descriptors(&error) || is_lack(Errno::AGAIN) || is_lack(Errno::NOMEM) {
        (UpstreamErrorKind::GatewayFull, "there is no room for another process")
    } else {
        (UpstreamErrorKind::BadResponse, "the program could not be started")
    };
    Failed::new(kind, detail).caused_by(error)
}
