//! Watches the raw bytes of HTTP/1 requests for framing faults that the HTTP library repairs
//! instead of refusing.
//!
//! A request with both `Content-Length` and `Transfer-Encoding`, or with two `Content-Length` (even
//! equal ones), is how requests are smuggled where two parties read them differently. The library
//! keeps one of the headers and shows us a clean request, so the fault has to be found in the
//! bytes. Once seen, the colon of the offending line becomes a NUL before the library reads it: the
//! library then refuses that very head with `400` and closes, in the right place even when requests
//! are pipelined.
//!
//! The scanner follows the message framing just far enough to know where the next head begins.
//! Wherever the library would refuse what it sees, it may be wrong: nothing after that point is
//! read by anybody.

/// What the connection's next byte belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing: the last message is complete.
    Between,
    /// A request's head.
    Head,
    /// A request's body, or something this scanner no longer follows.
    Beyond,
}

/// Follows the framing of one connection.
#[derive(Debug)]
pub struct Framing {
    state: FramingState,
    head: Head,
    heads: u32,
}

#[derive(Clone, Copy, Debug)]
enum FramingState {
    Between,
    FirstLine,
    LineStart,
    Name(Name, u8),
    Length,
    OtherLine,
    HeadEnd,
    Body(u64),
    ChunkSize(u64),
    ChunkExtension(u64),
    Chunk(u64),
    TrailerStart,
    TrailerLine,
    TrailerLineEnd,
    TrailersEnd,
    /// In a head that the library will refuse.
    Spoilt,
    /// No longer followed: another protocol.
    Off,
}

/// What the head under way has said about its body.
#[derive(Clone, Copy, Default, Debug)]
struct Head {
    length: Option<u64>,
    chunked: bool,
    upgrade: bool,
}

#[derive(Clone, Copy, Debug)]
enum Name {
    ContentLength,
    TransferEncoding,
    Upgrade,
}

impl Name {
    fn text(self) -> &'static [u8] {
        match self {
            Name::ContentLength => b"content-length",
            Name::TransferEncoding => b"transfer-encoding",
            Name::Upgrade => b"upgrade",
        }
    }

    fn starting_with(byte: u8) -> Option<Name> {
        match byte.to_ascii_lowercase() {
            b'c' => Some(Name::ContentLength),
            b't' => Some(Name::TransferEncoding),
            b'u' => Some(Name::Upgrade),
            _ => None,
        }
    }
}

impl Default for Framing {
    /// The scanner of a connection on which nothing has come yet.
    fn default() -> Self {
        Framing { state: FramingState::Between, head: Head::default(), heads: 0 }
    }
}

impl Framing {
    /// Returns what the next byte belongs to.
    pub fn phase(&self) -> Phase {
        match self.state {
            FramingState::Between => Phase::Between,
            FramingState::FirstLine
            | FramingState::LineStart
            | FramingState::Name(..)
            | FramingState::Length
            | FramingState::OtherLine
            | FramingState::HeadEnd
            | FramingState::Spoilt => Phase::Head,
            _ => Phase::Beyond,
        }
    }

    /// Returns how many heads are complete. Wraps.
    pub fn heads(&self) -> u32 {
        self.heads
    }

    /// Follows the bytes just read, and spoils the first head line among them that must not be
    /// repaired.
    pub fn scan(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self.state {
                FramingState::Between => {
                    if byte != b'\r' && byte != b'\n' {
                        self.head = Head::default();
                        self.state = FramingState::FirstLine;
                    }
                    at += 1;
                }
                FramingState::FirstLine | FramingState::OtherLine => {
                    at = self.after_line(bytes, at, FramingState::LineStart);
                }
                // As the library reads them: a trailer's line ends with a carriage return, and a
                // line feed without one is part of it.
                FramingState::TrailerLine => match memchr::memchr(b'\r', &bytes[at..]) {
                    Some(end) => {
                        self.state = FramingState::TrailerLineEnd;
                        at += end + 1;
                    }
                    None => at = bytes.len(),
                },
                FramingState::TrailerLineEnd | FramingState::TrailersEnd => {
                    self.state = match self.state {
                        _ if byte != b'\n' => FramingState::Spoilt,
                        FramingState::TrailersEnd => FramingState::Between,
                        _ => FramingState::TrailerStart,
                    };
                    at += 1;
                }
                FramingState::LineStart => {
                    self.state = match byte {
                        b'\n' => self.end_of_head(),
                        b'\r' => FramingState::HeadEnd,
                        _ => match Name::starting_with(byte) {
                            Some(name) => FramingState::Name(name, 1),
                            None => FramingState::OtherLine,
                        },
                    };
                    at += 1;
                }
                FramingState::HeadEnd => {
                    self.state = if byte == b'\n' { self.end_of_head() } else { FramingState::Spoilt };
                    at += 1;
                }
                FramingState::Name(name, matched) => {
                    let text = name.text();
                    let matched = usize::from(matched);
                    if matched == text.len() && byte == b':' {
                        if self.contradicts(name) {
                            bytes[at] = 0;
                            self.state = FramingState::Spoilt;
                            return;
                        }
                        at += 1;
                    } else if text.get(matched) == Some(&byte.to_ascii_lowercase()) {
                        self.state = FramingState::Name(name, matched as u8 + 1);
                        at += 1;
                    } else {
                        self.state = FramingState::OtherLine;
                    }
                }
                FramingState::Length => {
                    match byte {
                        b'0'..=b'9' => {
                            let so_far = self.head.length.unwrap_or(0);
                            self.head.length =
                                Some(so_far.saturating_mul(10).saturating_add(u64::from(byte - b'0')));
                        }
                        b'\n' => self.state = FramingState::LineStart,
                        _ => {}
                    }
                    at += 1;
                }
                FramingState::Body(left) => {
                    at = self.pass(bytes, at, left, FramingState::Between, FramingState::Body);
                }
                FramingState::Chunk(left) => {
                    at = self.pass(bytes, at, left, FramingState::ChunkSize(0), FramingState::Chunk);
                }
                FramingState::ChunkSize(size) => {
                    self.state = match (byte as char).to_digit(16) {
                        Some(digit) => {
                            FramingState::ChunkSize(size.saturating_mul(16).saturating_add(u64::from(digit)))
                        }
                        None if byte == b'\n' => after_chunk_size(size),
                        None => FramingState::ChunkExtension(size),
                    };
                    at += 1;
                }
                FramingState::ChunkExtension(size) => at = self.after_line(bytes, at, after_chunk_size(size)),
                FramingState::TrailerStart => {
                    self.state =
                        if byte == b'\r' { FramingState::TrailersEnd } else { FramingState::TrailerLine };
                    at += 1;
                }
                FramingState::Spoilt | FramingState::Off => return,
            }
        }
    }

    /// Notes a framing header. Returns whether it contradicts one noted before.
    fn contradicts(&mut self, name: Name) -> bool {
        match name {
            Name::ContentLength => {
                let contradicts = self.head.chunked || self.head.length.is_some();
                self.head.length = Some(0);
                self.state = FramingState::Length;
                contradicts
            }
            Name::TransferEncoding => {
                let contradicts = self.head.length.is_some();
                self.head.chunked = true;
                self.state = FramingState::OtherLine;
                contradicts
            }
            Name::Upgrade => {
                self.head.upgrade = true;
                self.state = FramingState::OtherLine;
                false
            }
        }
    }

    fn end_of_head(&mut self) -> FramingState {
        self.heads = self.heads.wrapping_add(1);
        if self.head.upgrade {
            // What follows may be another protocol, whose bytes must not be changed. A request that
            // offers an upgrade and does not get it is the last of its connection.
            FramingState::Off
        } else if self.head.chunked {
            FramingState::ChunkSize(0)
        } else {
            match self.head.length {
                None | Some(0) => FramingState::Between,
                Some(length) => FramingState::Body(length),
            }
        }
    }

    /// Skips to behind the line's end, if it is among `bytes`; only then the next state begins.
    fn after_line(&mut self, bytes: &[u8], at: usize, next: FramingState) -> usize {
        match memchr::memchr(b'\n', &bytes[at..]) {
            Some(end) => {
                self.state = next;
                at + end + 1
            }
            None => bytes.len(),
        }
    }

    /// Skips `left` bytes, or as many of them as there are.
    fn pass(
        &mut self,
        bytes: &[u8],
        at: usize,
        left: u64,
        next: FramingState,
        rest: impl FnOnce(u64) -> FramingState,
    ) -> usize {
        let here = (bytes.len() - at) as u64;
        if left <= here {
            self.state = next;
            at + left as usize
        } else {
            self.state = rest(left - here);
            bytes.len()
        }
    }
}

fn after_chunk_size(size: u64) -> FramingState {
    // The two bytes after the data are its line end.
    if size == 0 { FramingState::TrailerStart } else { FramingState::Chunk(size.saturating_add(2)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `text` in pieces of `size` bytes; returns the bytes as the library would see them, and
    /// the scanner.
    fn scanned(text: &str, size: usize) -> (Vec<u8>, Framing) {
        let mut bytes = text.as_bytes().to_vec();
        let mut framing = Framing::default();
        for piece in bytes.chunks_mut(size) {
            framing.scan(piece);
        }
        (bytes, framing)
    }

    fn is_spoiled(text: &str) -> bool {
        let whole = scanned(text, text.len()).0.contains(&0);
        for size in 1..8 {
            assert_eq!(scanned(text, size).0.contains(&0), whole, "pieces of {size} bytes");
        }
        whole
    }

    #[test]
    fn contradicting_framing_headers_are_spoiled_in_any_order_and_case() {
        for head in [
            "Content-Length: 4\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nA: b\r\ncontent-length: 4",
            "Content-Length: 4\r\nCONTENT-LENGTH: 4",
            "content-length: 4\r\nA: b\r\nContent-Length: 5",
        ] {
            assert!(is_spoiled(&format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n")), "{head}");
            assert!(
                is_spoiled(&format!("POST / HTTP/1.1\nHost: a\n{}\n\n", head.replace('\r', ""))),
                "{head}"
            );
        }
    }

    #[test]
    fn sound_requests_pass_untouched_one_behind_the_other() {
        let text = "\r\nPOST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 27\r\n\r\nContent-Length: 1\r\nContent-\
            GET / HTTP/1.1\r\nCookie: c\r\n\r\n\
            POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Lengthy: 1\r\n\r\n\
            1f;x=y\r\n\r\nContent-Length: 1\r\nContent-Le\r\n0\r\nT: u\r\n\r\n\
            POST /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        for size in [1, 2, 3, 7, 64, text.len()] {
            let (bytes, framing) = scanned(text, size);
            assert_eq!(bytes, text.as_bytes());
            assert_eq!((framing.heads(), framing.phase()), (4, Phase::Between), "pieces of {size} bytes");
        }
    }

    #[test]
    fn a_fault_behind_sound_requests_is_found() {
        assert!(is_spoiled(
            "POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"
        ));
        assert!(is_spoiled(
            "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
        ));
    }

    #[test]
    fn a_line_feed_alone_ends_no_trailers() {
        let head = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n";
        let contradicting = "POST /c HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
        for trailers in ["X: 1\n\r\n", "\n", "X: 1\n\n", "X: 1\r\n\n", "X:\n\r\n"] {
            // What looks like a request is read as trailers, up to its own empty line.
            let text = format!("{head}{trailers}POST /b HTTP/1.1\r\nContent-Length: 99\r\n\r\n");
            for size in [1, 2, 3, 7, text.len()] {
                let framing = scanned(&text, size).1;
                let seen = (framing.heads(), framing.phase());
                // The empty line of the second is one already.
                assert_eq!(seen, (1, Phase::Between), "{trailers:?}, pieces of {size} bytes");
            }
            assert!(is_spoiled(&format!("{text}{contradicting}")), "{trailers:?}");
        }
    }

    #[test]
    fn bytes_after_an_upgrade_are_never_touched() {
        let text = "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\nX: y\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n";
        assert!(!is_spoiled(text));
    }

    #[test]
    fn the_phase_tells_an_idle_connection_from_a_slow_head() {
        assert_eq!(scanned("\r\n", 1).1.phase(), Phase::Between);
        assert_eq!(scanned("GET / HTTP/1.1\r\nHo", 5).1.phase(), Phase::Head);
        assert_eq!(scanned("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", 5).1.phase(), Phase::Beyond);
    }

    /// Pieces that requests, good and bad, are made of.
    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("GET / HTTP/1.1\r\n".to_owned()),
            Just("POST /a HTTP/1.1\n".to_owned()),
            Just("Content-Length: 3\r\n".to_owned()),
            Just("transfer-encoding: chunked\r\n".to_owned()),
            Just("Upgrade: x\r\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("3\r\nabc\r\n0\r\n\r\n".to_owned()),
            Just("abc".to_owned()),
            "[a-zC:\r\n0-9 ]{0,12}",
        ]
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            pieces in proptest::collection::vec(piece(), 0..30),
            size in 1usize..40,
        ) {
            let text = pieces.concat();
            let (whole, cut) = (scanned(&text, text.len().max(1)), scanned(&text, size));
            // What follows a spoilt byte is never read, so only what precedes it counts.
            let end = whole.0.iter().position(|byte| *byte == 0).map_or(text.len(), |at| at + 1);
            prop_assert_eq!(&whole.0[..end], &cut.0[..end]);
            prop_assert_eq!(whole.1.heads(), cut.1.heads());
        }

        #[test]
        fn any_bytes_are_met_without_a_stumble(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            Framing::default().scan(&mut bytes);
        }
    }
}
