//! The worker's side: what a gateway reads.

use crate::record::{BadHeader, HEADER, Header, Kind, REQUEST};
use bytes::{Buf, Bytes, BytesMut};
use std::fmt;

/// Bytes in the record that ends a request.
const END: u16 = 8;

/// What comes next from a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A piece of the response, never empty.
    Stdout(Bytes),
    /// A piece of an error message, never empty.
    Stderr(Bytes),
    /// The request is over.
    End(End),
}

/// How a request ended, as the worker says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The program ran to its end.
    Complete {
        /// Its exit status; 0 for success.
        exit: u32,
    },
    /// The worker takes one request at a time on a connection.
    CannotMultiplex,
    /// The worker is out of some resource.
    Overloaded,
    /// The worker does not answer requests: it is an authorizer or a filter.
    UnknownRole,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Complete { exit } => write!(f, "the program ended with exit status {exit}"),
            End::CannotMultiplex => f.write_str("the worker refused the request: it is busy with another"),
            End::Overloaded => f.write_str("the worker refused the request: it is overloaded"),
            End::UnknownRole => f.write_str("the worker refused the request: it is no responder"),
        }
    }
}

/// Bytes that no worker may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadResponse {
    /// The header of a record.
    Header(BadHeader),
    /// A record that only a gateway sends.
    Direction(Kind),
    /// A record of another request than the connection's.
    Request(u16),
    /// The end of a request has another length than 8 bytes.
    EndLength(u16),
    /// The end of a request with an unknown status.
    EndStatus(u8),
}

impl fmt::Display for BadResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadResponse::Header(BadHeader::Version(version)) => {
                write!(f, "a record of version {version} instead of 1; is it a FastCGI worker?")
            }
            BadResponse::Header(BadHeader::Kind(kind)) => write!(f, "a record of unknown type {kind}"),
            BadResponse::Direction(kind) => {
                write!(f, "a record of type {kind:?}, which only a gateway sends")
            }
            BadResponse::Request(request) => write!(f, "a record of request {request}, which was not sent"),
            BadResponse::EndLength(length) => {
                write!(f, "an end of request of {length} bytes instead of {END}")
            }
            BadResponse::EndStatus(status) => write!(f, "an end of request with unknown status {status}"),
        }
    }
}

impl std::error::Error for BadResponse {}

/// Reads the records of one response, however they are cut.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum State {
    #[default]
    Header,
    /// In the content of a stream; padding follows.
    Stream {
        kind: Kind,
        left: u16,
        padding: u8,
    },
    /// Before the content of an end; padding follows.
    End {
        padding: u8,
    },
    /// In bytes without meaning; after them the request is over, if there is an `end`.
    Skip {
        left: u32,
        end: Option<End>,
    },
    Over,
}

impl Decoder {
    /// Takes what it can from `bytes` and returns what comes next; `None`: it needs more bytes, or
    /// the request is over. Bytes after the end of the request stay.
    ///
    /// # Errors
    /// Bytes that no worker may send. What follows them cannot be read.
    pub fn next(&mut self, bytes: &mut BytesMut) -> Result<Option<Event>, BadResponse> {
        loop {
            match self.state {
                State::Header if bytes.len() < HEADER => return Ok(None),
                State::Header => {
                    let mut header = [0; HEADER];
                    bytes.copy_to_slice(&mut header);
                    self.state = begin(Header::read(header).map_err(BadResponse::Header)?)?;
                }
                State::Stream { left: 0, padding, .. } => {
                    self.state = State::Skip { left: padding.into(), end: None };
                }
                State::Stream { .. } if bytes.is_empty() => return Ok(None),
                State::Stream { kind, left, padding } => {
                    let taken = bytes.len().min(left.into());
                    // At most `left`, which is 16 bits.
                    self.state = State::Stream { kind, left: left - taken as u16, padding };
                    let piece = bytes.split_to(taken).freeze();
                    let event = if kind == Kind::Stdout { Event::Stdout } else { Event::Stderr };
                    return Ok(Some(event(piece)));
                }
                State::End { .. } if bytes.len() < usize::from(END) => return Ok(None),
                State::End { padding } => {
                    let exit = bytes.get_u32();
                    let status = bytes.get_u8();
                    // Reserved.
                    bytes.advance(3);
                    let end = match status {
                        0 => End::Complete { exit },
                        1 => End::CannotMultiplex,
                        2 => End::Overloaded,
                        3 => End::UnknownRole,
                        other => return Err(BadResponse::EndStatus(other)),
                    };
                    self.state = State::Skip { left: padding.into(), end: Some(end) };
                }
                State::Skip { left: 0, end: None } => self.state = State::Header,
                State::Skip { left: 0, end: Some(end) } => {
                    self.state = State::Over;
                    return Ok(Some(Event::End(end)));
                }
                State::Skip { .. } if bytes.is_empty() => return Ok(None),
                State::Skip { left, end } => {
                    let taken = bytes.len().min(left as usize);
                    bytes.advance(taken);
                    self.state = State::Skip { left: left - taken as u32, end };
                }
                State::Over => return Ok(None),
            }
        }
    }

    /// Returns whether the worker has ended the request.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }
}

fn begin(header: Header) -> Result<State, BadResponse> {
    let Header { kind, request, content, padding } = header;
    match kind {
        // They answer management records, of which none was sent; harmless.
        Kind::Values | Kind::Unknown => {
            Ok(State::Skip { left: u32::from(content) + u32::from(padding), end: None })
        }
        Kind::Begin | Kind::Abort | Kind::Params | Kind::Stdin | Kind::GetValues => {
            Err(BadResponse::Direction(kind))
        }
        _ if request != REQUEST => Err(BadResponse::Request(request)),
        Kind::Stdout | Kind::Stderr => Ok(State::Stream { kind, left: content, padding }),
        Kind::End if content == END => Ok(State::End { padding }),
        Kind::End => Err(BadResponse::EndLength(content)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMPLETE: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 0];

    fn record(kind: Kind, request: u16, content: &[u8], padding: u8) -> Vec<u8> {
        let header = Header { kind, request, content: content.len() as u16, padding };
        let mut bytes = header.bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes.extend(std::iter::repeat_n(0xAA, padding.into()));
        bytes
    }

    /// Both streams, the end, and how many bytes follow it.
    type Decoded = (Vec<u8>, Vec<u8>, Option<End>, usize);

    /// Decodes `bytes` handed over in pieces of `piece`; neighbours of a stream are joined.
    fn decoded(bytes: &[u8], piece: usize) -> Result<Decoded, BadResponse> {
        let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
        let (mut out, mut err, mut end) = (vec![], vec![], None);
        for piece in bytes.chunks(piece) {
            buffer.extend_from_slice(piece);
            while let Some(event) = decoder.next(&mut buffer)? {
                match event {
                    Event::Stdout(piece) => out.extend_from_slice(&piece),
                    Event::Stderr(piece) => err.extend_from_slice(&piece),
                    Event::End(how) => end = Some(how),
                }
            }
        }
        Ok((out, err, end, buffer.len()))
    }

    #[test]
    fn streams_come_apart_and_the_end_is_told() {
        let bytes = [
            record(Kind::Stdout, 1, b"Status: 200 OK\r\n\r\nhel", 3),
            record(Kind::Stderr, 1, b"PHP Notice", 0),
            record(Kind::Unknown, 0, &[0; 8], 0),
            record(Kind::Stdout, 1, b"lo", 255),
            record(Kind::Stdout, 1, b"", 0),
            record(Kind::End, 1, &[0, 0, 0, 7, 0, 0, 0, 0], 5),
            b"rest".to_vec(),
        ]
        .concat();
        let expected = (
            b"Status: 200 OK\r\n\r\nhello".to_vec(),
            b"PHP Notice".to_vec(),
            Some(End::Complete { exit: 7 }),
            4,
        );
        for piece in [1, 2, 7, 4096] {
            assert_eq!(decoded(&bytes, piece), Ok(expected.clone()), "in pieces of {piece}");
        }
    }

    #[test]
    fn what_no_worker_may_send_is_named() {
        let http = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        for (bytes, expected) in [
            (http, BadResponse::Header(BadHeader::Version(b'H'))),
            (vec![1, 77, 0, 1, 0, 0, 0, 0], BadResponse::Header(BadHeader::Kind(77))),
            (record(Kind::Stdin, 1, b"", 0), BadResponse::Direction(Kind::Stdin)),
            (record(Kind::Stdout, 2, b"x", 0), BadResponse::Request(2)),
            (record(Kind::End, 1, b"short", 0), BadResponse::EndLength(5)),
            (record(Kind::End, 1, &[0, 0, 0, 0, 9, 0, 0, 0], 0), BadResponse::EndStatus(9)),
        ] {
            assert_eq!(decoded(&bytes, 3).unwrap_err(), expected);
        }
    }

    #[test]
    fn refusals_of_a_worker_are_told() {
        for (status, end) in [(1, End::CannotMultiplex), (2, End::Overloaded), (3, End::UnknownRole)] {
            let bytes = record(Kind::End, 1, &[0, 0, 0, 0, status, 0, 0, 0], 0);
            assert_eq!(decoded(&bytes, 16).unwrap().2, Some(end));
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_records_are_sized_and_cut(
            pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..300), any::<u8>()), 0..12),
            piece in 1_usize..64,
        ) {
            let (mut bytes, mut out, mut err) = (vec![], vec![], vec![]);
            for (is_out, content, padding) in &pieces {
                let kind = if *is_out { Kind::Stdout } else { Kind::Stderr };
                bytes.extend(record(kind, 1, content, *padding));
                if *is_out { &mut out } else { &mut err }.extend_from_slice(content);
            }
            bytes.extend(record(Kind::End, 1, &COMPLETE, 0));
            prop_assert_eq!(decoded(&bytes, piece), Ok((out, err, Some(End::Complete { exit: 0 }), 0)));
        }
    }
}
