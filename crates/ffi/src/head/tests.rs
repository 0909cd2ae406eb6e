use super::*;
use proptest::prelude::*;

fn wrong<T: std::fmt::Debug>(result: Result<T, Fault>) -> String {
    match result {
        Err(Fault::Invalid(why)) => why.into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_head_is_read_as_it_was_written() {
    let parts =
        request(b"POST /a?b=1 HTTP/1.1\r\nHost: shop\r\ncookie: a=1\r\nCookie: b=2\r\nx-raw: \xe9\r\n\r\n")
            .unwrap();
    assert_eq!(
        (parts.method, parts.uri.to_string(), parts.version),
        (Method::POST, "/a?b=1".into(), Version::HTTP_11)
    );
    assert_eq!(parts.headers.get_all("cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    assert_eq!(parts.headers["x-raw"].as_bytes(), b"\xe9");
    assert_eq!(request(b"GET / HTTP/1.0\r\n\r\n").unwrap().version, Version::HTTP_10);
}

#[test]
fn what_is_no_head_is_refused_with_the_reason() {
    assert_eq!(wrong(request(b"")), "head: it does not end in an empty line");
    assert_eq!(wrong(request(b"GET / HTTP/1.1\r\nhost: a\r\n")), "head: it does not end in an empty line");
    assert_eq!(wrong(request(b"GET / HTTP/1.1\r\n\r\nbody")), "head: something follows its empty line");
    assert!(wrong(request(b"GET / HTTP/2.0\r\n\r\n")).contains("version"));
    assert!(wrong(request(b"GET / HTTP/1.1\r\na b: c\r\n\r\n")).contains("header name"));
    assert!(wrong(request(b"GET / HTTP/1.1\r\na: c\0\r\n\r\n")).contains("header value"));
    let many = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
    request(many(HEADERS_MAX).as_bytes()).unwrap();
    assert!(wrong(request(many(HEADERS_MAX + 1).as_bytes())).contains("too many"));
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(HEAD_BYTES_MAX));
    assert_eq!(wrong(request(long.as_bytes())), "head: longer than 65536 bytes");
}

#[test]
fn lines_are_read_and_what_is_none_is_refused() {
    assert!(lines(b"").unwrap().is_empty());
    let read = lines(b"Set-Cookie: a=1\r\nset-cookie: b=2\r\n").unwrap();
    assert_eq!(read.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    assert_eq!(wrong(lines(b"a: b\r\n\r\nc: d\r\n")), "lines: an empty line is among them");
    // The end that it lacks would be the one that is appended.
    assert_eq!(wrong(lines(b"a: b")), "lines: the last one has no end");
}

#[test]
fn addresses_are_read_as_application_servers_write_them() {
    for (text, read) in [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:5678", "192.0.2.7"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%eth0]:443", "fe80::1"),
    ] {
        assert_eq!(address(text.as_bytes()).to_string(), read, "{text}");
    }
}

#[test]
fn what_is_no_address_stands_for_clients_that_nobody_knows() {
    for text in
        [&b""[..], b"unknown", b"\xff", b"192.0.2", b"192.0.2.7:http:80", b"[]:80", b"[192.0.2.7", b":80"]
    {
        assert_eq!(address(text).to_string(), "0.0.0.0", "{text:?}");
    }
}

#[test]
fn changes_say_what_to_add_to_set_and_to_take_out() {
    let before =
        lines(b"set-cookie: a=1\r\ncache-control: public\r\nsuimon-session: end\r\nx-same: 1\r\n").unwrap();
    let mut after = before.clone();
    assert_eq!(changes(&before, &after), b"");
    after.append("set-cookie", HeaderValue::from_static("suimon=x"));
    after.insert("cache-control", HeaderValue::from_static("private"));
    after.remove("suimon-session");
    after.insert("server-timing", HeaderValue::from_static("waited"));
    let text = String::from_utf8(changes(&before, &after)).unwrap();
    let mut told: Vec<&str> = text.lines().collect();
    told.sort_unstable();
    assert_eq!(
        told,
        ["+server-timing: waited", "+set-cookie: suimon=x", "-suimon-session", "=cache-control: private"]
    );
    // Another first value: all others of the name go.
    after.insert("set-cookie", HeaderValue::from_static("c=3"));
    after.append("set-cookie", HeaderValue::from_static("d=4"));
    let text = String::from_utf8(changes(&before, &after)).unwrap();
    assert!(text.contains("=set-cookie: c=3\r\n+set-cookie: d=4\r\n"), "{text}");
}

#[test]
fn an_answer_is_whole_and_one_to_head_has_no_body() {
    let answer = Response::builder().status(503).header("retry-after", "2").body("busy".to_owned()).unwrap();
    let text = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\ncontent-length: 4\r\n\r\n";
    assert_eq!(whole(&answer, false), format!("{text}busy").into_bytes());
    assert_eq!(whole(&answer, true), text.as_bytes());
}

proptest! {
    /// Bytes with the marks of a head among them, which chance alone would not find.
    #[test]
    fn any_bytes_are_read_or_refused_and_what_is_read_is_read_again_alike(
        pieces in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..20),
                "(GET|POST|x)? ?(/[a-z%?=&/]{0,9}|\\*|http://a/) ?(HTTP/1\\.[01])?\r?\n".prop_map(String::into_bytes),
                "([a-zA-Z-]{0,9}: ?[ -~]{0,20}\r?\n){0,4}".prop_map(String::into_bytes),
                "\r\n".prop_map(String::into_bytes),
            ],
            0..8,
        ),
    ) {
        let bytes = pieces.concat();
        if let Ok(parts) = request(&bytes) {
            let mut again = format!("{} {} {:?}\r\n", parts.method, parts.uri, parts.version).into_bytes();
            parts.headers.iter().for_each(|(name, value)| line(&mut again, b"", name, Some(value)));
            again.extend_from_slice(b"\r\n");
            let read = request(&again).unwrap();
            prop_assert_eq!((read.method, read.uri, read.headers), (parts.method, parts.uri, parts.headers));
        }
        if let Ok(before) = lines(&bytes) {
            // From nothing to these lines, and back.
            let added = changes(&HeaderMap::new(), &before);
            prop_assert!(added.split_inclusive(|byte| *byte == b'\n').all(|line| line.starts_with(b"+")));
            prop_assert_eq!(changes(&before, &before), b"");
            let gone = changes(&before, &HeaderMap::new());
            prop_assert!(gone.split_inclusive(|byte| *byte == b'\n').all(|line| line.starts_with(b"-")));
        }
        let _ = address(&bytes);
    }
}
