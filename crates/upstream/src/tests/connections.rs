//! One request, one connection: reuse, cancelling, streaming, upgrades.

use super::backend::Backend;
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn one_connection_serves_many_requests_in_a_row() {
    let backend = Backend::talking(|mut talk, _| async move {
        loop {
            let request = talk.request().await?;
            match request.head.split(' ').nth(1).unwrap() {
                "/sized" => talk.answer("sized").await?,
                "/chunked" => {
                    talk.send(
                        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nchu\r\n4\r\nnked\r\n",
                    )
                    .await?;
                    talk.send(b"0\r\n\r\n").await?;
                }
                "/none" => talk.send(b"HTTP/1.1 204 No Content\r\n\r\n").await?,
                "/head" => talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await?,
                _ => talk.answer(std::str::from_utf8(&request.body).unwrap()).await?,
            }
        }
    })
    .await;
    let upstream = upstream(&backend);
    for _ in 0..5 {
        assert_eq!(get(&upstream, "/sized").await.unwrap(), "sized");
        assert_eq!(get(&upstream, "/chunked").await.unwrap(), "chunked");
        assert_eq!(get(&upstream, "/none").await.unwrap(), "");
        let response = send(&upstream, Method::HEAD, "/head").await.unwrap();
        assert_eq!(response.headers()["content-length"], "5");
        assert_eq!(text(response).await.unwrap(), "");
        assert_eq!(post(&upstream, "/post", "hello").await.unwrap(), "hello");
    }
    assert_eq!((backend.connections(), backend.requests()), (1, 25));
    assert_eq!((idle(&upstream), in_flight(&upstream)), (1, 0));
}

#[tokio::test]
async fn a_body_that_is_all_there_needs_no_reading_past_its_end() {
    let backend = Backend::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
    let upstream = upstream(&backend);
    let mut body = send(&upstream, Method::GET, "/").await.unwrap().into_body();
    let frame = within(body.frame()).await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "hello");
    // An HTTP/1.1 server stops polling the body once the declared length is reached.
    assert!(body.is_end_stream());
    assert_eq!((idle(&upstream), in_flight(&upstream)), (1, 0));
}

#[tokio::test]
async fn a_connection_that_says_close_is_not_kept() {
    let backend =
        Backend::answering(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok").await;
    let upstream = upstream(&backend);
    for _ in 0..3 {
        assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
    }
    assert_eq!((backend.connections(), idle(&upstream), in_flight(&upstream)), (3, 0, 0));
}

#[tokio::test]
async fn a_restarted_node_s_dead_connections_are_all_seen_through() {
    // More of them than a task may poll in one go.
    const MANY: usize = 300;
    let restart = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let closing = std::sync::Arc::clone(&restart);
    let backend = Backend::talking(move |mut talk, _| {
        let restart = std::sync::Arc::clone(&closing);
        async move {
            talk.request().await?;
            talk.answer("ok").await?;
            restart.acquire().await.ok()?.forget();
            Some(())
        }
    })
    .await;
    let upstream = upstream(&backend);
    let mut answers = Vec::new();
    for _ in 0..MANY {
        answers.push(send(&upstream, Method::GET, "/").await.unwrap());
    }
    for answer in answers {
        assert_eq!(text(answer).await.unwrap(), "ok");
    }
    assert_eq!(idle(&upstream), MANY);
    restart.add_permits(MANY);
    // One reference is this test's, the other is the one that new connections clone.
    until("all are closed", || std::sync::Arc::strong_count(&restart) == 2).await;
    // One more turn, so that the runtime polls its sockets.
    tokio::task::yield_now().await;
    // A POST is sent only once: on a dead connection it would be lost.
    assert_eq!(post(&upstream, "/", "order").await.unwrap(), "ok");
    assert_eq!((backend.connections(), idle(&upstream)), (MANY + 1, 1));
}

#[tokio::test]
async fn bytes_nobody_asked_for_never_become_the_next_answer() {
    let backend = Backend::talking(|mut talk, number| async move {
        loop {
            talk.request().await?;
            let stray = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstray";
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}{stray}");
            talk.send(answer.as_bytes()).await?;
        }
    })
    .await;
    let upstream = upstream(&backend);
    for number in 1..=5 {
        assert_eq!(get(&upstream, "/").await.unwrap(), number.to_string());
    }
}

#[tokio::test]
async fn dropping_the_body_early_closes_the_connection() {
    let (closed, mut was_closed) = mpsc::channel(1);
    let backend = Backend::talking(move |mut talk, _| {
        let closed = closed.clone();
        async move {
            talk.request().await?;
            talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nbegin").await?;
            talk.closed().await?;
            closed.send(()).await.ok()
        }
    })
    .await;
    let upstream = upstream(&backend);
    let mut body = send(&upstream, Method::GET, "/").await.unwrap().into_body();
    assert_eq!(within(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "begin");
    assert_eq!(in_flight(&upstream), 1);
    drop(body);
    assert_eq!((idle(&upstream), in_flight(&upstream)), (0, 0));
    within(was_closed.recv()).await.unwrap();
}

#[tokio::test]
async fn dropping_a_waiting_request_closes_the_connection() {
    let (seen, mut was_seen) = mpsc::channel(2);
    let backend = Backend::talking(move |mut talk, _| {
        let seen = seen.clone();
        async move {
            talk.request().await?;
            seen.send("asked").await.ok()?;
            talk.closed().await?;
            seen.send("closed").await.ok()
        }
    })
    .await;
    let upstream = upstream(&backend);
    let request = upstream.send(head(Method::GET, "/"), Empty::<Bytes>::new(), None);
    let request = tokio::spawn(request);
    assert_eq!(within(was_seen.recv()).await, Some("asked"));
    assert_eq!(in_flight(&upstream), 1);
    request.abort();
    assert_eq!(within(was_seen.recv()).await, Some("closed"));
    until("the place in the node is given back", || in_flight(&upstream) == 0).await;
}

#[tokio::test]
async fn a_large_body_arrives_whole_both_ways() {
    let backend = Backend::talking(|mut talk, _| async move {
        loop {
            let request = talk.request().await?;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", request.body.len());
            talk.send(head.as_bytes()).await?;
            talk.send(&request.body).await?;
        }
    })
    .await;
    let upstream = upstream(&backend);
    let sent: Vec<u8> = (0..3_000_000u32).map(|i| ((i * 31) >> 3) as u8).collect();
    for _ in 0..2 {
        let body = Full::new(Bytes::from(sent.clone()));
        let response = within(upstream.send(head(Method::PUT, "/"), body, None)).await.unwrap();
        let received = within(response.into_body().collect()).await.unwrap().to_bytes();
        assert!(received == sent, "{} bytes came back otherwise", received.len());
    }
    assert_eq!((backend.connections(), in_flight(&upstream)), (1, 0));
}

#[tokio::test]
async fn an_answer_may_come_while_the_request_is_still_being_sent() {
    let backend = Backend::talking(|mut talk, _| async move {
        talk.head().await?;
        // Chunked: size line, five bytes, line end.
        talk.take(10).await?;
        talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst").await?;
        talk.take(10).await?;
        talk.send(b"again").await?;
        talk.closed().await
    })
    .await;
    let upstream = upstream(&backend);
    let (pieces, body) = piped();
    pieces.send(Ok(Bytes::from_static(b"piece"))).await.unwrap();
    let response = within(upstream.send(head(Method::POST, "/"), body, None)).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(within(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "first");
    pieces.send(Ok(Bytes::from_static(b"piece"))).await.unwrap();
    assert_eq!(within(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "again");
    assert!(body.is_end_stream());
    // The request was never finished, so the connection must not be used again.
    assert_eq!((idle(&upstream), in_flight(&upstream)), (0, 0));
}

#[tokio::test]
async fn nobody_follows_a_body_that_a_node_may_not_have_read() {
    for method in [Method::GET, Method::HEAD, Method::DELETE, Method::OPTIONS] {
        let backend = Backend::answering(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        let upstream = upstream(&backend);
        let body = Full::new(Bytes::from_static(b"GET /next HTTP/1.1\r\n\r\n"));
        let response = within(upstream.send(head(method.clone(), "/"), body, None)).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "");
        assert_eq!(idle(&upstream), 0, "{method}");
        send(&upstream, method.clone(), "/").await.unwrap();
        assert_eq!(idle(&upstream), 1, "{method} without a body is as any other");
    }
    // The answer precedes the whole body; all of the body is sent before the answer ends.
    let backend = Backend::talking(|mut talk, _| async move {
        talk.head().await?;
        talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await?;
        talk.take(15).await?;
        talk.send(b"early").await?;
        talk.closed().await
    })
    .await;
    let upstream = upstream(&backend);
    let (pieces, body) = piped();
    let response = within(upstream.send(head(Method::POST, "/"), body, None)).await.unwrap();
    pieces.send(Ok(Bytes::from_static(b"piece"))).await.unwrap();
    drop(pieces);
    assert_eq!(text(response).await.unwrap(), "early");
    assert_eq!((idle(&upstream), in_flight(&upstream)), (0, 0));
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_a_large_upload_arrives() {
    // The node stops reading and closes: the sender sees the connection close right after the
    // answer.
    let backend = Backend::talking(|mut talk, _| async move {
        talk.head().await?;
        talk.send(b"HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 8\r\n\r\ntoo much")
            .await
    })
    .await;
    let upstream = upstream(&backend);
    for _ in 0..30 {
        let body = Full::new(Bytes::from(vec![b'x'; 4_000_000]));
        let response = within(upstream.send(head(Method::POST, "/"), body, None)).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(text(response).await.unwrap(), "too much");
    }
    assert_eq!((idle(&upstream), in_flight(&upstream)), (0, 0));
}

#[tokio::test]
async fn expect_continue_passes_through() {
    let backend = Backend::talking(|mut talk, _| async move {
        let head = talk.head().await?;
        assert!(head.to_lowercase().contains("expect: 100-continue"), "{head}");
        talk.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        let body = talk.take(5).await?;
        talk.answer(std::str::from_utf8(&body).unwrap()).await
    })
    .await;
    let upstream = upstream(&backend);
    let mut head = head(Method::POST, "/");
    head.headers.insert("expect", HeaderValue::from_static("100-continue"));
    let response = within(upstream.send(head, Full::new(Bytes::from_static(b"hello")), None)).await.unwrap();
    assert_eq!(text(response).await.unwrap(), "hello");
}

#[tokio::test]
async fn an_upgraded_connection_carries_anything_both_ways() {
    let backend = Backend::talking(|mut talk, _| async move {
        let head = talk.head().await?;
        assert!(head.to_lowercase().contains("upgrade: websocket"), "{head}");
        // Bytes of the new protocol right behind the head must not be lost.
        talk.send(
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nearly",
        )
        .await?;
        loop {
            let bytes = talk.take(4).await?;
            talk.send(&bytes).await?;
        }
    })
    .await;
    let upstream = upstream(&backend);
    let mut head = head(Method::GET, "/socket");
    head.headers.insert("connection", HeaderValue::from_static("upgrade"));
    head.headers.insert("upgrade", HeaderValue::from_static("websocket"));
    let response = within(upstream.send(head, Empty::<Bytes>::new(), None)).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut io = response.into_body().into_upgraded().unwrap();
    let mut early = [0; 5];
    within(io.read_exact(&mut early)).await.unwrap();
    assert_eq!(&early, b"early");
    for word in [b"ping", b"pong"] {
        let mut back = [0; 4];
        within(io.write_all(word)).await.unwrap();
        within(io.read_exact(&mut back)).await.unwrap();
        assert_eq!(&back, word);
    }
    assert_eq!(in_flight(&upstream), 1);
    drop(io);
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn a_refused_upgrade_is_an_ordinary_answer() {
    let backend = Backend::answering(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno").await;
    let upstream = upstream(&backend);
    let mut head = head(Method::GET, "/socket");
    head.headers.insert("connection", HeaderValue::from_static("upgrade"));
    head.headers.insert("upgrade", HeaderValue::from_static("websocket"));
    let response = within(upstream.send(head, Empty::<Bytes>::new(), None)).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(text(response).await.unwrap(), "no");
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn idle_connections_are_bounded_in_number_and_age() {
    let (release, gate) = tokio::sync::watch::channel(false);
    let backend = Backend::talking(move |mut talk, _| {
        let mut gate = gate.clone();
        async move {
            loop {
                talk.request().await?;
                gate.wait_for(|open| *open).await.ok()?;
                talk.answer("ok").await?;
            }
        }
    })
    .await;
    let age = Duration::from_millis(300);
    let upstream =
        Upstream::new(UpstreamParams { pool_idle_max: 3, pool_idle_age: age, ..params(&[backend.address]) })
            .unwrap();
    let requests: Vec<_> = (0..5)
        .map(|_| {
            let upstream = upstream.clone();
            tokio::spawn(async move { get(&upstream, "/").await })
        })
        .collect();
    until("all five are there at once", || backend.requests() == 5).await;
    release.send(true).unwrap();
    for request in requests {
        assert_eq!(within(request).await.unwrap().unwrap(), "ok");
    }
    assert_eq!((backend.connections(), in_flight(&upstream)), (5, 0));
    assert!(idle(&upstream) <= 3);
    let sweeper = upstream.clone();
    let sweeper = tokio::spawn(async move { sweeper.run(std::future::pending()).await });
    until("the idle ones are closed", || idle(&upstream) == 0).await;
    sweeper.abort();
}

#[tokio::test]
async fn a_connection_is_given_up_before_the_node_said_it_would_close_it() {
    let backend =
        Backend::answering(b"HTTP/1.1 200 OK\r\nkeep-alive: timeout=1, max=100\r\ncontent-length: 0\r\n\r\n")
            .await;
    let upstream = upstream(&backend);
    let begun = std::time::Instant::now();
    get(&upstream, "/").await.unwrap();
    assert_eq!(idle(&upstream), 1);
    let sweeper = upstream.clone();
    let sweeper = tokio::spawn(async move { sweeper.run(std::future::pending()).await });
    until("it is given up", || idle(&upstream) == 0).await;
    assert!(begun.elapsed() >= Duration::from_millis(500) && begun.elapsed() < Duration::from_secs(10));
    sweeper.abort();
}

#[tokio::test]
async fn what_waits_is_small() {
    let backend = Backend::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let upstream = upstream(&backend);
    let sending = upstream.send(head(Method::GET, "/"), Empty::<Bytes>::new(), None);
    assert!(size_of_val(&sending) <= 16, "{}", size_of_val(&sending));
    assert!(size_of::<UpstreamBody>() <= 256, "{}", size_of::<UpstreamBody>());
    let future = size_of_val(&*sending);
    assert!(future <= 3072, "{future}");
}
