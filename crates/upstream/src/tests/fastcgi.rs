//! Workers that speak FastCGI.

use super::backend::{Backend, Talk};
use super::*;
use http::header::CONTENT_LENGTH;
use std::collections::BTreeMap;
use suimon_fastcgi::record::{HEADER, Header, Kind};
use suimon_params::upstream::{FastCgiParams, Mapping};

/// A request as a worker reads it.
struct Asked {
    variables: BTreeMap<String, String>,
    body: Vec<u8>,
    keeps: bool,
}

/// Reads one record.
async fn record(talk: &mut Talk) -> Option<(Kind, Vec<u8>)> {
    let header: [u8; HEADER] = talk.take(HEADER).await?.try_into().unwrap();
    let header = Header::read(header).unwrap();
    let content = talk.take(header.content.into()).await?;
    talk.take(header.padding.into()).await?;
    Some((header.kind, content))
}

/// Reads a request up to its body.
async fn variables(talk: &mut Talk) -> Option<Asked> {
    let (kind, begin) = record(talk).await?;
    assert_eq!((kind, &begin[..2]), (Kind::Begin, &[0, 1][..]));
    let mut pairs = vec![];
    loop {
        match record(talk).await? {
            (Kind::Params, piece) if piece.is_empty() => break,
            (Kind::Params, piece) => pairs.extend(piece),
            (kind, _) => panic!("{kind:?} in the environment"),
        }
    }
    let (mut rest, mut variables) = (&pairs[..], BTreeMap::new());
    while !rest.is_empty() {
        let lengths = [(); 2].map(|()| {
            let (length, after) = rest.split_at(if rest[0] < 128 { 1 } else { 4 });
            rest = after;
            length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)) & 0x7FFF_FFFF
        });
        let [name, value] = lengths.map(|length| {
            let (text, after) = rest.split_at(length);
            rest = after;
            String::from_utf8(text.to_vec()).unwrap()
        });
        variables.insert(name, value);
    }
    Some(Asked { variables, body: vec![], keeps: begin[2] & 1 == 1 })
}

/// Reads a whole request.
async fn asked(talk: &mut Talk) -> Option<Asked> {
    let mut asked = variables(talk).await?;
    loop {
        match record(talk).await? {
            (Kind::Stdin, piece) if piece.is_empty() => return Some(asked),
            (Kind::Stdin, piece) => asked.body.extend(piece),
            (kind, _) => panic!("{kind:?} in the body"),
        }
    }
}

fn says(kind: Kind, content: &[u8]) -> Vec<u8> {
    let padding = 8 - content.len() % 8;
    let header = Header { padding: padding as u8, ..Header::new(kind, content.len() as u16) };
    [&header.bytes()[..], content, &vec![0; padding]].concat()
}

fn end(status: u8) -> Vec<u8> {
    says(Kind::End, &[0, 0, 0, 0, status, 0, 0, 0])
}

/// A worker that answers every request with `answer`, record by record, and closes.
async fn answering(answer: Vec<Vec<u8>>) -> Backend {
    Backend::talking(move |mut talk, _| {
        let answer = answer.clone();
        async move {
            asked(&mut talk).await?;
            for record in answer {
                talk.send(&record).await?;
            }
            Some(())
        }
    })
    .await
}

fn to(backend: &Backend) -> Upstream {
    let mapping = Mapping::Folder {
        root: "/srv".into(),
        suffix: ".php".into(),
        index: "index.php".into(),
        fallback: None,
    };
    let mut params = params(&[backend.address]);
    params.nodes[0].scheme = Scheme::FastCgi;
    params.fastcgi = Some(FastCgiParams { mapping, checks_files: false, status: None });
    Upstream::new(params).unwrap()
}

#[tokio::test]
async fn a_request_and_its_answer_pass_whole() {
    let backend = Backend::talking(|mut talk, _| async move {
        let asked = asked(&mut talk).await?;
        assert!(!asked.keeps, "a kept connection would occupy a worker");
        let told = |name| asked.variables.get(name).cloned().unwrap_or_default();
        let head = format!(
            "Content-Type: text/plain\r\nX-Told: {} {} {} {}\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n",
            told("REQUEST_METHOD"),
            told("SCRIPT_FILENAME"),
            told("PATH_INFO"),
            told("CONTENT_LENGTH"),
        );
        talk.send(&says(Kind::Stderr, b"Notice: slow")).await?;
        talk.send(&says(Kind::Stdout, head.as_bytes())).await?;
        for piece in asked.body.chunks(60_000) {
            talk.send(&says(Kind::Stdout, piece)).await?;
        }
        talk.send(&end(0)).await
    })
    .await;
    let upstream = to(&backend);
    let large: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
    let body = Full::new(Bytes::from(large.clone()));
    let answer = within(upstream.send(head(Method::POST, "/cart.php/add?x=1"), body, None)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["x-told"], "POST /srv/cart.php /add 300000");
    assert_eq!(answer.headers().get_all("set-cookie").iter().count(), 2);
    let body = within(answer.into_body().collect()).await.unwrap().to_bytes();
    assert_eq!(body, large);
    assert_eq!((in_flight(&upstream), backend.connections()), (0, 1));
}

#[tokio::test]
async fn statuses_lengths_and_bodies_nobody_asked_for() {
    for (method, answer, status, body) in [
        (Method::GET, "Status: 404 Not Found\r\n\r\nno", 404, "no"),
        (Method::GET, "Location: /login\n\n", 302, ""),
        (Method::GET, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello", 200, "hello"),
        (Method::HEAD, "Content-Length: 5\r\n\r\nhello", 200, ""),
        (Method::GET, "Status: 204\r\n\r\nnothing?", 204, ""),
        (Method::GET, "Status: 304\r\nContent-Length: 5\r\n\r\n", 304, ""),
    ] {
        let backend = answering(vec![says(Kind::Stdout, answer.as_bytes()), end(0)]).await;
        let upstream = to(&backend);
        let response = send(&upstream, method, "/a.php").await.unwrap();
        assert_eq!(response.status(), status, "{answer}");
        assert!(!response.headers().contains_key("transfer-encoding"));
        assert_eq!(text(response).await.unwrap(), body, "{answer}");
        assert_eq!(in_flight(&upstream), 0);
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_passed_on_is_refused_with_why() {
    let page = b"A: b\r\n\r\nhello";
    for (answer, words) in [
        (vec![end(0)], "no head of a response came: the program ended with exit status 0"),
        (vec![b"HTTP/1.1 200 OK\r\n\r\n".to_vec()], "is it a FastCGI worker?"),
        (vec![says(Kind::Stdout, b"hello\r\n\r\n"), end(0)], "not a header field: \"hello\""),
        (
            vec![says(Kind::Stdout, &[b'a'; 65_000]), says(Kind::Stdout, &[b'a'; 65_000])],
            "more than 65536 bytes",
        ),
        (vec![says(Kind::Stdout, b"Content-Length: 1, 2\r\n\r\n")], "Content-Length is not one number"),
    ] {
        let backend = answering(answer).await;
        let error = send(&to(&backend), Method::GET, "/a.php").await.unwrap_err();
        assert_eq!(error.kind(), UpstreamErrorKind::BadResponse, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    for (head, words) in [("Content-Length: 4", "longer"), ("Content-Length: 6", "shorter")] {
        let page = format!("{head}\r\n\r\nhello");
        let backend = answering(vec![says(Kind::Stdout, page.as_bytes()), end(0)]).await;
        let upstream = to(&backend);
        let error = get(&upstream, "/a.php").await.unwrap_err();
        assert_eq!(error.kind(), UpstreamErrorKind::BadResponse, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(in_flight(&upstream), 0);
    }
    let backend = answering(vec![says(Kind::Stdout, page), says(Kind::Stdin, b"")]).await;
    let error = get(&to(&backend), "/a.php").await.unwrap_err();
    assert!(error.to_string().contains("only a gateway sends"), "{error}");
}

#[tokio::test]
async fn a_request_that_a_worker_refuses_unread_may_go_to_another() {
    for (status, words) in [(1, "busy with another"), (2, "it is overloaded")] {
        let backend = answering(vec![end(status)]).await;
        let error = send(&to(&backend), Method::GET, "/a.php").await.unwrap_err();
        assert_eq!(error.kind(), UpstreamErrorKind::Connect, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_worker_that_goes_away_is_told_from_one_that_answers_badly() {
    let backend = answering(vec![]).await;
    assert_eq!(kind(get(&to(&backend), "/a.php").await), UpstreamErrorKind::BrokenBeforeHead);
    for answer in [
        vec![says(Kind::Stdout, b"A: b\r\n\r\nhel")],
        vec![says(Kind::Stdout, b"A: b\n\nhello"), end(0)[..12].to_vec()],
    ] {
        let backend = answering(answer).await;
        let upstream = to(&backend);
        assert_eq!(kind(get(&upstream, "/a.php").await), UpstreamErrorKind::BrokenInBody);
        assert_eq!(in_flight(&upstream), 0);
    }
}

#[tokio::test]
async fn an_answer_may_come_before_the_end_of_the_request() {
    let backend = Backend::talking(|mut talk, _| async move {
        variables(&mut talk).await?;
        talk.send(&says(Kind::Stdout, b"Status: 413 Too Large\r\n\r\ntoo large")).await?;
        talk.send(&end(0)).await?;
        talk.closed().await
    })
    .await;
    let upstream = to(&backend);
    let (pieces, body) = piped();
    let mut head = head(Method::POST, "/upload.php");
    head.headers.insert(CONTENT_LENGTH, 1_000_000.into());
    let answer = within(upstream.send(head, body, None)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(text(answer).await.unwrap(), "too large");
    drop(pieces);
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn what_no_program_can_answer_reaches_no_worker() {
    let backend = answering(vec![]).await;
    let upstream = to(&backend);
    for path in ["/style.css", "/a/../../etc/a.php", "/%00.php"] {
        assert_eq!(kind(get(&upstream, path).await), UpstreamErrorKind::NoProgram, "{path}");
    }
    let (_pieces, body) = piped();
    let sent = within(upstream.send(head(Method::POST, "/a.php"), body, None)).await;
    assert_eq!(kind(sent), UpstreamErrorKind::GatewayFull);
    assert_eq!((backend.requests(), in_flight(&upstream)), (0, 0));
}

#[tokio::test]
async fn a_silent_worker_ends_in_time() {
    let backend = Backend::talking(|mut talk, _| async move { talk.closed().await }).await;
    let mut params = params(&[backend.address]);
    params.nodes[0].scheme = Scheme::FastCgi;
    params.first_byte_timeout = Duration::from_millis(50);
    params.fastcgi = Some(FastCgiParams {
        mapping: Mapping::Program { file: "/srv/app".into(), root: "/srv".into() },
        checks_files: false,
        status: None,
    });
    let upstream = Upstream::new(params).unwrap();
    assert_eq!(kind(get(&upstream, "/").await), UpstreamErrorKind::FirstByteTimeout);
    assert_eq!(in_flight(&upstream), 0);
}
