//! The messages that are sent: two parties might read each differently, and each has a hidden
//! request in what may be its body.

/// The path of a hidden request; no message requests it openly.
pub(super) const HIDDEN: &str = "/hidden";

/// Ways to write that a body is chunked; some are invalid.
const CHUNKED: [&str; 20] = [
    "Transfer-Encoding: chunked",
    "transfer-encoding: CHUNKED",
    " Transfer-Encoding: chunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding:\tchunked",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding: chunked\t",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding\0: chunked",
    "Transfer_Encoding: chunked",
    "X: y\nTransfer-Encoding: chunked",
    "X: y\rTransfer-Encoding: chunked",
];

/// Ways to write a length of `{}`; some are invalid.
const LENGTHS: [&str; 14] = [
    "Content-Length: {}",
    "Content-Length: +{}",
    "Content-Length: {} ",
    "Content-Length: 0{}",
    "Content-Length: 0x{}",
    "Content-Length: {}, {}",
    "Content-Length: {}, 0",
    "Content-Length: 0\r\nContent-Length: {}",
    "Content-Length: {}\r\nContent-Length: 0",
    "Content-Length : {}",
    "Content-Length:\r\n {}",
    "Content_Length: {}",
    "Content-Length\0: {}",
    "X: y\nContent-Length: {}",
];

/// Ways to write the size of an empty chunk, after which a hidden request would begin; some are
/// invalid.
const LAST_CHUNKS: [&str; 10] = [
    "0\r\n\r\n",
    "0\n\n",
    "0\r\r\n",
    "00000000000000000000\r\n\r\n",
    "0;a=b\r\n\r\n",
    "0;a=\"\n\"\r\n\r\n",
    "0 \r\n\r\n",
    "+0\r\n\r\n",
    "0x0\r\n\r\n",
    "100000000000000000\r\n\r\n",
];

/// Messages of other kinds, without their hidden request.
const OTHERS: [&str; 14] = [
    "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
    "HEAD /a HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
    "POST /a HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: {}\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nConnection: Transfer-Encoding, close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    "GET /a\r\n",
    "GET  /a HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://b/a HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET /a\x0b HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\n\r\nGET /a HTTP/1.1\nHost: a\n\n",
];

/// Returns all messages.
pub(super) fn all() -> Vec<Vec<u8>> {
    let hidden = format!("GET {HIDDEN} HTTP/1.1\r\nHost: a\r\n\r\n");
    let post = |headers: &str, body: &str| format!("POST /a HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n{body}");
    let mut cases = Vec::new();
    for chunked in CHUNKED {
        // A party that counts bytes takes all of it; one that reads chunks stops before the hidden
        // request. And vice versa.
        let ended = format!("0\r\n\r\n{hidden}");
        cases.push(post(&format!("Content-Length: {}\r\n{chunked}", ended.len()), &ended));
        cases.push(post(&format!("{chunked}\r\nContent-Length: {}", ended.len()), &ended));
        let size = format!("{:x}\r\n", hidden.len());
        let chunk = format!("{size}{hidden}\r\n0\r\n\r\n");
        cases.push(post(&format!("Content-Length: {}\r\n{chunked}", size.len()), &chunk));
        cases.push(post(chunked, &ended));
    }
    for length in LENGTHS {
        cases.push(post(&length.replace("{}", &hidden.len().to_string()), &hidden));
    }
    for last in LAST_CHUNKS {
        cases.push(post("Transfer-Encoding: chunked", &format!("{last}{hidden}")));
    }
    for other in OTHERS {
        cases.push(other.replace("{}", &hidden.len().to_string()) + &hidden);
    }
    cases.into_iter().map(String::into_bytes).collect()
}
