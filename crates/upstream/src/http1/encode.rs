//! Encodes the head of a request in HTTP/1.1.

use super::super::head::RequestHead;
use super::super::outgoing::Left;
use http::Method;
use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING};

/// Headers that are not copied from the request: its length is given in one way only, and trailers
/// are neither sent nor asked for.
const NOT_SENT: [HeaderName; 4] = [CONTENT_LENGTH, TRANSFER_ENCODING, TE, TRAILER];

/// Writes the head in origin form, with exactly one way to tell the body's length.
pub(super) fn write_head(text: &mut Vec<u8>, head: &RequestHead, host: &HeaderValue, left: Left) {
    let RequestHead { parts: head, forwarding, .. } = head;
    text.extend_from_slice(head.method.as_str().as_bytes());
    text.push(b' ');
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    // An absolute target may have no path: `http://shop?b=c`.
    if !target.starts_with(['/', '*']) {
        text.push(b'/');
    }
    text.extend_from_slice(target.as_bytes());
    text.extend_from_slice(b" HTTP/1.1\r\n");
    let mut line = |name: &str, value: &[u8]| {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    };
    let (mut asked_for, mut has_length) = (None, false);
    for (name, value) in &head.headers {
        if NOT_SENT.contains(name) {
            has_length |= *name == CONTENT_LENGTH;
            continue;
        }
        if *name == HOST {
            asked_for = Some(value);
        }
        line(name.as_str(), value.as_bytes());
    }
    if asked_for.is_none() {
        line(HOST.as_str(), host.as_bytes());
    }
    if let Some(forwarding) = forwarding {
        forwarding.lines(asked_for).for_each(|(name, value)| line(name.as_str(), value.as_bytes()));
    }
    let says_length = has_length
        // RFC 9110, section 8.6: methods whose requests usually have a body should say that there
        // is none.
        || matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
    match left {
        Left::Chunks => line(TRANSFER_ENCODING.as_str(), b"chunked"),
        Left::Bytes(length) => line(CONTENT_LENGTH.as_str(), length.to_string().as_bytes()),
        _ if says_length => line(CONTENT_LENGTH.as_str(), b"0"),
        _ => {}
    }
    text.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn written(request: Request<()>, left: Left) -> String {
        let mut text = vec![];
        write_head(&mut text, &request.into_parts().0.into(), &HeaderValue::from_static("node:80"), left);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_head_tells_the_length_of_its_body_in_one_way() {
        let get = Request::builder().uri("http://shop/a?b=c").header(HOST, "shop").body(()).unwrap();
        assert_eq!(written(get, Left::Buffered), "GET /a?b=c HTTP/1.1\r\nhost: shop\r\n\r\n");
        let bare = Request::builder().uri("http://shop?b=c").header(HOST, "shop").body(()).unwrap();
        assert_eq!(written(bare, Left::Buffered), "GET /?b=c HTTP/1.1\r\nhost: shop\r\n\r\n");
        let post = || Request::post("/a").header(CONTENT_LENGTH, "5").header(TRANSFER_ENCODING, "gzip");
        let begin = "POST /a HTTP/1.1\r\n";
        let sized = format!("{begin}host: node:80\r\ncontent-length: 5\r\n\r\n");
        assert_eq!(written(post().body(()).unwrap(), Left::Bytes(5)), sized);
        let chunked = format!("{begin}host: node:80\r\ntransfer-encoding: chunked\r\n\r\n");
        assert_eq!(written(post().body(()).unwrap(), Left::Chunks), chunked);
        let empty = format!("{begin}host: node:80\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(written(Request::post("/a").body(()).unwrap(), Left::Buffered), empty);
        assert_eq!(
            written(Request::options("*").body(()).unwrap(), Left::Buffered),
            "OPTIONS * HTTP/1.1\r\nhost: node:80\r\n\r\n"
        );
    }
}
