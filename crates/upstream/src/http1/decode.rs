//! Decodes responses: heads, and bodies by their framing (RFC 9112, sections 4 to 7).
//!
//! Nothing here reads or waits: a decoder gets what has arrived and returns what it means, or that
//! more is needed. Whatever could be read in two ways is refused: the application is trusted to
//! mean well, not to be free of bugs.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::response::Parts;
use http::{Method, Response, StatusCode, Version};
use http_body::Frame;
use std::fmt;
use std::mem::MaybeUninit;
use suimon_message::lists::list;

/// The most headers of a response.
const HEADERS_MAX: usize = 128;
/// The most trailers of a response, and the most bytes of all of them.
const TRAILERS_MAX: usize = 32;
const TRAILER_BYTES_MAX: usize = 8 << 10;
/// The longest line with a chunk's size and its extensions, in bytes.
const CHUNK_LINE_MAX: usize = 1 << 10;

/// What is wrong with a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(pub(super) &'static str);

/// The head of a response and what it says of the connection.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) parts: Parts,
    pub(super) framing: Framing,
    /// Whether the connection may be used again after the body.
    pub(super) persists: bool,
}

/// How the end of a body is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Framing {
    /// This many bytes; 0: the body is over.
    Length(u64),
    /// Chunks; the line with the next one's size is due.
    ChunkSize,
    /// This many bytes of a chunk are left.
    ChunkData(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// What follows the last chunk.
    Trailers,
    /// All until the connection closes.
    UntilClose,
}

/// What a decoder found in the bytes.
#[derive(Debug)]
pub(super) enum Step {
    Frame(Frame<Bytes>),
    /// Nothing yet; it needs more bytes.
    More,
    Over,
}

/// Finds the end of a head in bytes that arrive piece by piece, reading each byte only once.
#[derive(Default, Debug)]
pub(super) struct HeadEnd {
    seen: usize,
}

impl HeadEnd {
    /// Returns the length of the head at the beginning of `bytes`, including its empty line, if it
    /// is complete.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        for at in memchr::memchr_iter(b'\n', &bytes[self.seen..]) {
            let next = self.seen + at + 1;
            match &bytes[next..] {
                [b'\n', ..] => return Some(next + 1),
                [b'\r', b'\n', ..] => return Some(next + 2),
                // The next byte has not arrived: read this line's end again.
                [] | [b'\r'] => {
                    self.seen = next - 1;
                    return None;
                }
                _ => {}
            }
        }
        self.seen = bytes.len();
        None
    }
}

impl Head {
    /// Parses `bytes`, a whole head, as the response to a request by `method`.
    pub(super) fn parse(bytes: &Bytes, method: &Method) -> Result<Self, Malformed> {
        let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            bytes,
            &mut lines,
        );
        match parsed {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(Malformed("its head ends too early")),
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed("it has too many headers")),
            Err(_) => return Err(Malformed("its head is no HTTP/1 response")),
        }
        let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
        let (mut parts, ()) = Response::new(()).into_parts();
        parts.status = status.ok_or(Malformed("its status is no number from 100 to 999"))?;
        parts.version = if response.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
        parts.headers = headers(bytes, response.headers)?;
        let length = length(&parts.headers)?;
        if let Some(length) = length.filter(|_| says_length_twice(&parts.headers)) {
            // The same length given several times is passed on once.
            parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let framing = framing(&parts, length, method)?;
        // With both ways to give the length, the transfer coding counts; the connection is not used
        // again.
        let is_ambiguous = framing == Framing::ChunkSize && parts.headers.remove(CONTENT_LENGTH).is_some();
        let persists = persists(&parts) && framing != Framing::UntilClose && !is_ambiguous;
        Ok(Head { parts, framing, persists })
    }

    /// Returns whether this is an interim response, and the response itself is still to come.
    pub(super) fn is_interim(&self) -> bool {
        self.parts.status.is_informational() && self.parts.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

impl Framing {
    /// No more to come.
    pub(super) const OVER: Framing = Framing::Length(0);

    /// Takes the next frame from `bytes`, which continue the body.
    pub(super) fn next(&mut self, bytes: &mut BytesMut) -> Result<Step, Malformed> {
        loop {
            *self = match self {
                Framing::Length(0) => return Ok(Step::Over),
                Framing::ChunkData(0) => Framing::ChunkEnd,
                Framing::Length(left) | Framing::ChunkData(left) => {
                    let data = take(bytes, left);
                    return Ok(data.map_or(Step::More, |data| Step::Frame(Frame::data(data))));
                }
                Framing::UntilClose if bytes.is_empty() => return Ok(Step::More),
                Framing::UntilClose => return Ok(Step::Frame(Frame::data(bytes.split().freeze()))),
                Framing::ChunkSize => match chunk_size(bytes)? {
                    Some(0) => Framing::Trailers,
                    Some(size) => Framing::ChunkData(size),
                    None => return Ok(Step::More),
                },
                Framing::ChunkEnd => match *bytes.as_ref() {
                    [b'\r', b'\n', ..] => {
                        bytes.advance(2);
                        Framing::ChunkSize
                    }
                    [] | [b'\r'] => return Ok(Step::More),
                    _ => return Err(Malformed("a chunk is longer than it says")),
                },
                Framing::Trailers => {
                    let Some(trailers) = trailers(bytes)? else { return Ok(Step::More) };
                    *self = Framing::OVER;
                    let is_none = trailers.is_empty();
                    return Ok(if is_none { Step::Over } else { Step::Frame(Frame::trailers(trailers)) });
                }
            };
        }
    }
}

/// Takes at most `left` bytes, and reduces `left` by as many.
fn take(bytes: &mut BytesMut, left: &mut u64) -> Option<Bytes> {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    if count == 0 {
        return None;
    }
    *left -= count as u64;
    Some(bytes.split_to(count).freeze())
}

fn headers(head: &Bytes, lines: &[httparse::Header<'_>]) -> Result<HeaderMap, Malformed> {
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes());
        let value = HeaderValue::from_maybe_shared(head.slice_ref(line.value));
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(Malformed("a header has characters that cannot stand there"));
        };
        headers.append(name, value);
    }
    Ok(headers)
}

/// RFC 9112, section 6.3.
fn framing(parts: &Parts, length: Option<u64>, method: &Method) -> Result<Framing, Malformed> {
    let is_bodiless = matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if is_bodiless || parts.status.is_informational() || method == Method::HEAD {
        return Ok(Framing::OVER);
    }
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        // The header ends at this hop, so the client would take a body in any other coding for a
        // plain one.
        let is_chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
        return match (is_chunked, parts.version) {
            (true, Version::HTTP_11) => Ok(Framing::ChunkSize),
            (true, _) => Err(Malformed("it is of HTTP/1.0 and has a transfer coding")),
            (false, _) => Err(Malformed("it has a transfer coding other than chunked")),
        };
    }
    Ok(length.map_or(Framing::UntilClose, Framing::Length))
}

fn length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let mut length = None;
    for line in headers.get_all(CONTENT_LENGTH) {
        for item in line.as_bytes().split(|byte| *byte == b',') {
            let item = number(item.trim_ascii(), 10).ok_or(Malformed("its length is no number"))?;
            if *length.get_or_insert(item) != item {
                return Err(Malformed("it has two lengths"));
            }
        }
    }
    Ok(length)
}

fn says_length_twice(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    lines.next().is_some_and(|line| line.as_bytes().contains(&b',')) || lines.next().is_some()
}

fn persists(parts: &Parts) -> bool {
    let says = |option: &str| list(&parts.headers, &CONNECTION).any(|own| own.eq_ignore_ascii_case(option));
    !says("close") && (parts.version == Version::HTTP_11 || says("keep-alive"))
}

/// Returns the number that `digits` are, without a sign or any other character.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let append = |sum: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(radix)?;
        sum.checked_mul(radix.into())?.checked_add(digit.into())
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, append) }
}

/// Takes the line with a chunk's size. RFC 9112, section 7.1.
fn chunk_size(bytes: &mut BytesMut) -> Result<Option<u64>, Malformed> {
    let end = memchr::memchr(b'\n', bytes);
    if end.unwrap_or(bytes.len()) > CHUNK_LINE_MAX {
        return Err(Malformed("the line of a chunk's size is too long"));
    }
    let Some(end) = end else { return Ok(None) };
    let line = bytes.split_to(end + 1);
    let line = line.strip_suffix(b"\r\n").ok_or(Malformed("the line of a chunk's size ends wrongly"))?;
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    number(digits, 16).map(Some).ok_or(Malformed("a chunk's size is no number"))
}

/// Takes the trailers and the empty line behind them.
fn trailers(bytes: &mut BytesMut) -> Result<Option<HeaderMap>, Malformed> {
    if bytes.starts_with(b"\r\n") {
        bytes.advance(2);
        return Ok(Some(HeaderMap::new()));
    }
    if bytes.first() == Some(&b'\n') {
        return Err(Malformed("its trailers end wrongly"));
    }
    let end = HeadEnd::default().find(bytes);
    if end.unwrap_or(bytes.len()) > TRAILER_BYTES_MAX {
        return Err(Malformed("its trailers are too long"));
    }
    let Some(end) = end else { return Ok(None) };
    let bytes = bytes.split_to(end).freeze();
    let mut lines = [httparse::EMPTY_HEADER; TRAILERS_MAX];
    match httparse::parse_headers(&bytes, &mut lines) {
        Ok(httparse::Status::Complete((_, lines))) => headers(&bytes, lines).map(Some),
        _ => Err(Malformed("its trailers are no headers")),
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// A whole answer, for the fuzzer.
#[cfg(any(test, fuzzing))]
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Decoded {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) is_over: bool,
}

/// Decodes an answer that arrives in pieces of `size`, until it is complete or the bytes end;
/// `None`: not even its head is complete.
#[cfg(any(test, fuzzing))]
pub(crate) fn decoded(bytes: &[u8], size: usize) -> Option<Result<Decoded, &'static str>> {
    let mut pieces = bytes.chunks(size.max(1));
    let (mut come, mut end) = (BytesMut::new(), HeadEnd::default());
    let length = loop {
        come.extend_from_slice(pieces.next()?);
        if let Some(length) = end.find(&come) {
            break length;
        }
    };
    let mut head = match Head::parse(&come.split_to(length).freeze(), &Method::GET) {
        Ok(head) => head,
        Err(Malformed(what)) => return Some(Err(what)),
    };
    let status = head.parts.status.as_u16();
    let mut body = Vec::new();
    loop {
        match head.framing.next(&mut come) {
            Ok(Step::Frame(frame)) => body.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            Ok(Step::Over) => return Some(Ok(Decoded { status, body, is_over: true })),
            Ok(Step::More) => match pieces.next() {
                Some(piece) => come.extend_from_slice(piece),
                None => return Some(Ok(Decoded { status, body, is_over: false })),
            },
            Err(Malformed(what)) => return Some(Err(what)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(head: &str, method: &Method) -> Result<Head, Malformed> {
        Head::parse(&Bytes::copy_from_slice(head.as_bytes()), method)
    }

    fn framed(head: &str) -> Result<(Framing, bool), &'static str> {
        let parsed = parse(&format!("HTTP/1.1 200 OK\r\n{head}\r\n"), &Method::GET);
        parsed.map(|head| (head.framing, head.persists)).map_err(|malformed| malformed.0)
    }

    /// Decodes `bytes` given in pieces of `size`, and returns the body, its trailers, and whether
    /// it is over.
    fn decode(
        mut framing: Framing,
        bytes: &[u8],
        size: usize,
    ) -> Result<(Vec<u8>, HeaderMap, bool), Malformed> {
        let (mut read, mut body, mut trailers) = (BytesMut::new(), vec![], HeaderMap::new());
        for piece in bytes.chunks(size) {
            read.extend_from_slice(piece);
            loop {
                match framing.next(&mut read)? {
                    Step::Frame(frame) => match frame.into_data() {
                        Ok(data) => body.extend_from_slice(&data),
                        Err(frame) => trailers = frame.into_trailers().unwrap(),
                    },
                    Step::More => break,
                    Step::Over => return Ok((body, trailers, true)),
                }
            }
        }
        Ok((body, trailers, false))
    }

    #[test]
    fn the_length_is_told_in_one_way_only() {
        const CHUNKED: Framing = Framing::ChunkSize;
        assert_eq!(framed("Content-Length: 5\r\n"), Ok((Framing::Length(5), true)));
        assert_eq!(framed("Content-Length: 5, 5\r\nContent-Length: 5\r\n"), Ok((Framing::Length(5), true)));
        assert_eq!(framed("Transfer-Encoding: Chunked\r\n"), Ok((CHUNKED, true)));
        assert_eq!(framed("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), Ok((CHUNKED, false)));
        assert_eq!(framed(""), Ok((Framing::UntilClose, false)));
        for wrong in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5, 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: identity\r\n",
            "A B: c\r\n",
            "a: \0\r\n",
        ] {
            assert!(framed(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &Method::GET).is_err());
        assert!(parse("HTTP/1.1 099 OK\r\n\r\n", &Method::GET).is_err());
        assert!(
            parse(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1)), &Method::GET)
                .is_err()
        );
    }

    #[test]
    fn a_length_said_twice_is_passed_on_once() {
        let head =
            parse("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\n", &Method::HEAD);
        let headers = head.unwrap().parts.headers;
        assert_eq!(headers.get_all(CONTENT_LENGTH).iter().collect::<Vec<_>>(), ["5"]);
        assert!(parse("HTTP/1.1 304 Not Modified\r\nContent-Length: x\r\n\r\n", &Method::GET).is_err());
    }

    #[test]
    fn some_responses_have_no_body_whatever_they_say() {
        let over = |head: &str, method| parse(head, &method).unwrap().framing == Framing::OVER;
        assert!(over("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::HEAD));
        assert!(over("HTTP/1.1 204 No Content\r\n\r\n", Method::GET));
        assert!(over("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Method::GET));
        assert!(over("HTTP/1.1 103 Early Hints\r\n\r\n", Method::GET));
    }

    #[test]
    fn a_connection_lasts_unless_somebody_says_otherwise() {
        let persists = |version: &str, connection: &str| {
            let head = format!("{version} 200 OK\r\nContent-Length: 1\r\n{connection}\r\n");
            parse(&head, &Method::GET).unwrap().persists
        };
        assert!(persists("HTTP/1.1", ""));
        assert!(persists("HTTP/1.1", "Connection: keep-alive\r\n"));
        assert!(!persists("HTTP/1.1", "Connection: foo, Close\r\n"));
        assert!(!persists("HTTP/1.0", ""));
        assert!(persists("HTTP/1.0", "Connection: Keep-Alive\r\n"));
    }

    #[test]
    fn a_chunked_body_comes_out_whole_however_it_is_cut() {
        let bytes = b"5\r\nhello\r\n0006;name=\"v\"\r\n world\r\n0\r\nX-Sum: 1\r\n\r\nHTTP/1.1";
        for size in 1..=bytes.len() {
            let (body, trailers, over) = decode(Framing::ChunkSize, bytes, size).unwrap();
            assert_eq!((body.as_slice(), over), (&b"hello world"[..], true));
            assert_eq!(trailers["x-sum"], "1");
        }
    }

    #[test]
    fn a_chunked_body_that_lies_is_refused() {
        for wrong in [
            &b"\r\n"[..],
            b"g\r\n",
            b"-1\r\n",
            b"0x5\r\n",
            b" 5\r\n",
            b"5\n",
            b"10000000000000000\r\n",
            b"5\r\nhello!\r\n",
            b"0\r\nno header\r\n\r\n",
            b"0\r\n\nX: y\r\n\r\n",
        ] {
            assert!(decode(Framing::ChunkSize, wrong, wrong.len()).is_err(), "{wrong:?}");
        }
        let endless = vec![b'1'; CHUNK_LINE_MAX + 1];
        assert!(decode(Framing::ChunkSize, &endless, endless.len()).is_err());
        let trailers = [&b"0\r\na: "[..], &vec![b'b'; TRAILER_BYTES_MAX]].concat();
        assert!(decode(Framing::ChunkSize, &trailers, trailers.len()).is_err());
    }

    #[test]
    fn the_end_of_a_head_is_found_in_pieces() {
        for (bytes, end) in
            [(&b"A\r\nb: c\r\n\r\nbody"[..], 11), (b"A\nb: c\n\nbody", 8), (b"A\r\n\nbody", 4)]
        {
            for size in 1..=bytes.len() {
                let mut finder = HeadEnd::default();
                let found = (1..=bytes.len().div_ceil(size))
                    .find_map(|count| finder.find(&bytes[..(count * size).min(bytes.len())]));
                assert_eq!(found, Some(end), "{size}");
            }
        }
        assert_eq!(HeadEnd::default().find(b"A\r\nb: c\r\n\r"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_whatever_are_too_much_for_it(bytes: Vec<u8>, size in 1..9usize) {
            let _ = Head::parse(&Bytes::copy_from_slice(&bytes), &Method::GET);
            let whole = decode(Framing::ChunkSize, &bytes, bytes.len().max(1));
            prop_assert_eq!(&whole, &decode(Framing::ChunkSize, &bytes, size));
        }

        #[test]
        fn chunks_of_any_size_come_out_as_they_went_in(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..9), size in 1..50usize) {
            let mut bytes = vec![];
            for chunk in &chunks {
                bytes.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            let (body, _, over) = decode(Framing::ChunkSize, &bytes, size).unwrap();
            prop_assert!(over && body == chunks.concat());
        }
    }
}
