//! Nodes and clients that close, stall or send garbage: which error results, and what is retried.

use super::backend::Backend;
use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Sends `count` requests from each of `clients` at once and returns the errors.
async fn storm(upstream: &Upstream, method: Method, clients: usize, count: usize) -> Vec<UpstreamError> {
    let clients: Vec<_> = (0..clients)
        .map(|_| {
            let (upstream, method) = (upstream.clone(), method.clone());
            tokio::spawn(async move {
                let mut errors = Vec::new();
                for _ in 0..count {
                    let result = match method {
                        Method::POST => post(&upstream, "/", "order").await,
                        _ => get(&upstream, "/").await,
                    };
                    errors.extend(result.err());
                }
                errors
            })
        })
        .collect();
    let mut errors = Vec::new();
    for client in clients {
        errors.extend(client.await.unwrap());
    }
    errors
}

/// Answers four requests of each connection and drops it, unanswered, at the fifth.
async fn drops_every_fifth() -> Backend {
    Backend::talking(|mut talk, _| async move {
        for _ in 0..4 {
            talk.request().await?;
            talk.answer("ok").await?;
        }
        talk.request().await?;
        Some(())
    })
    .await
}

#[tokio::test]
async fn no_get_is_lost_to_a_node_that_drops_every_fifth_request() {
    let backend = drops_every_fifth().await;
    let upstream = upstream(&backend);
    let errors = storm(&upstream, Method::GET, 8, 50).await;
    assert!(errors.is_empty(), "{} of 400, such as {}", errors.len(), errors[0]);
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn no_post_is_sent_twice_to_a_node_that_drops_every_fifth_request() {
    let backend = drops_every_fifth().await;
    let upstream = upstream(&backend);
    let errors = storm(&upstream, Method::POST, 8, 50).await;
    // The fifth request on a connection reached the node, and nobody knows what it did with it.
    assert!(errors.iter().all(|error| error.kind() == UpstreamErrorKind::BrokenBeforeHead));
    assert!(errors.len() >= 60, "only {} of 400 failed", errors.len());
    assert_eq!(backend.requests(), 400, "each was received once");
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn no_get_is_lost_to_a_node_that_closes_right_after_answering() {
    let count = Arc::new(AtomicUsize::new(0));
    let backend = Backend::talking(move |mut talk, _| {
        let count = Arc::clone(&count);
        async move {
            talk.request().await?;
            talk.answer("ok").await?;
            let micros = 50 * (count.fetch_add(1, SeqCst) as u64 % 40);
            tokio::time::sleep(Duration::from_micros(micros)).await;
            Some(())
        }
    })
    .await;
    let upstream = upstream(&backend);
    let errors = storm(&upstream, Method::GET, 4, 250).await;
    assert!(errors.is_empty(), "{} of 1000, such as {}", errors.len(), errors[0]);
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn a_request_that_kills_a_new_connection_is_not_sent_again_to_the_same_node() {
    let backend = Backend::talking(|mut talk, _| async move { talk.request().await.map(|_| ()) }).await;
    let upstream = upstream(&backend);
    assert_eq!(kind(get(&upstream, "/").await), UpstreamErrorKind::BrokenBeforeHead);
    assert_eq!((backend.requests(), in_flight(&upstream)), (1, 0));
}

#[tokio::test]
async fn a_dead_node_s_get_goes_to_the_other_and_its_post_does_not() {
    let dies = Backend::talking(|mut talk, _| async move { talk.request().await.map(|_| ()) }).await;
    let lives = Backend::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let mut params = params(&[dies.address, lives.address]);
    params.ejection.after = 0;
    let upstream = Upstream::new(params).unwrap();
    for _ in 0..40 {
        assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
    }
    let (reached, mut failed) = (dies.requests(), 0);
    assert!(reached > 0);
    for _ in 0..40 {
        failed += usize::from(post(&upstream, "/", "order").await.is_err());
    }
    assert!(failed > 0);
    assert_eq!(dies.requests() - reached, failed, "each POST was sent once");
    assert_eq!(in_flight(&upstream), 0);
}

/// Two nodes that take every request and answer none, and the requests that they got of `count` GETs.
async fn lost_by_all(retry_share: f64, count: usize) -> (Upstream, usize, Vec<UpstreamError>) {
    let dies = || Backend::talking(|mut talk, _| async move { talk.request().await.map(|_| ()) });
    let (one, other) = (dies().await, dies().await);
    let mut params = UpstreamParams { retry_share, ..params(&[one.address, other.address]) };
    params.ejection.after = 0;
    let upstream = Upstream::new(params).unwrap();
    let errors = storm(&upstream, Method::GET, 4, count / 4).await;
    assert_eq!((errors.len(), in_flight(&upstream)), (count, 0));
    assert!(errors.iter().all(|error| error.kind() == UpstreamErrorKind::BrokenBeforeHead));
    (upstream, one.requests() + other.requests(), errors)
}

#[tokio::test]
async fn an_application_that_dies_is_not_asked_for_everything_twice() {
    let (upstream, received, errors) = lost_by_all(0.2, 400).await;
    let counts = upstream.retry_counts();
    assert_eq!((counts.unsent, counts.closed, counts.lost + counts.withheld), (0, 0, 400));
    assert_eq!(received as u64, 400 + counts.lost, "each was received once, or once more if it was granted");
    // However long that took: of each ten seconds a fifth, and the reserve once at its end.
    assert!(counts.lost >= u64::from(suimon_fleet::RETRIES_LEAST) && counts.withheld > 0, "{counts:?}");
    let said = errors.iter().filter(|error| error.to_string().contains("upstream.retry_share")).count();
    assert_eq!(said as u64, counts.withheld, "each says why it was not sent again");
}

#[tokio::test]
async fn with_a_share_of_nothing_no_request_is_sent_twice_and_another_node_still_takes_what_was_not_sent() {
    let (upstream, received, _) = lost_by_all(0.0, 40).await;
    assert_eq!((received, upstream.retry_counts().withheld), (40, 40));

    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let lives = Backend::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let mut params = UpstreamParams { retry_share: 0.0, ..params(&[gone, lives.address]) };
    params.ejection.after = 0;
    let upstream = Upstream::new(params).unwrap();
    assert_eq!(storm(&upstream, Method::POST, 4, 25).await.len(), 0);
    let counts = upstream.retry_counts();
    assert!(counts.unsent > 0 && counts.lost + counts.withheld == 0, "{counts:?}");
}

#[tokio::test]
async fn what_a_node_had_read_counts_and_what_it_had_not_does_not() {
    // The second request of a connection is lost: worked on for a while, or never read.
    for (reads, counted) in [(true, (0, 1)), (false, (1, 0))] {
        let backend = Backend::talking(move |mut talk, _| async move {
            talk.request().await?;
            talk.answer("ok").await?;
            if reads {
                talk.request().await?;
                tokio::time::sleep(2 * crate::send::CLOSES_WITHIN).await;
            } else {
                talk.unread().await?;
            }
            Some(())
        })
        .await;
        let upstream = upstream(&backend);
        assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
        assert_eq!(get(&upstream, "/").await.unwrap(), "ok", "it is sent again on a new connection");
        let counts = upstream.retry_counts();
        assert_eq!(((counts.closed, counts.lost), counts.withheld), (counted, 0), "reads: {reads}");
    }
}

#[tokio::test]
async fn what_has_begun_to_be_answered_is_not_sent_again() {
    for part in ["H", "HTTP/1.1 200 OK\r\nx: ", "HTTP/1.1 103 Early Hints\r\n\r\n"] {
        let backend = Backend::talking(move |mut talk, _| async move {
            talk.request().await?;
            talk.answer("ok").await?;
            talk.request().await?;
            talk.send(part.as_bytes()).await
        })
        .await;
        let upstream = upstream(&backend);
        assert_eq!(get(&upstream, "/").await.unwrap(), "ok");
        let error = get(&upstream, "/").await.expect_err(part);
        assert_eq!(error.kind(), UpstreamErrorKind::BadResponse, "{part:?}: {error}");
        assert_eq!((backend.requests(), in_flight(&upstream)), (2, 0), "{part:?}");
        assert_eq!(upstream.retry_counts(), RetryCounts::default());
    }
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_in_time() {
    let backend = Backend::talking(|mut talk, _| async move {
        talk.request().await?;
        talk.send(b"HTTP/1.1 200 OK\r\nx: ").await?;
        talk.closed().await
    })
    .await;
    let timeout = Duration::from_millis(80);
    let upstream =
        Upstream::new(UpstreamParams { first_byte_timeout: timeout, ..params(&[backend.address]) }).unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(kind(get(&upstream, "/").await), UpstreamErrorKind::FirstByteTimeout);
    assert!(begun.elapsed() >= timeout);
    assert_eq!(kind(post(&upstream, "/", "order").await), UpstreamErrorKind::FirstByteTimeout);
    assert_eq!((backend.requests(), in_flight(&upstream)), (2, 0));
}

#[tokio::test]
async fn a_slow_upload_is_not_a_slow_node() {
    let backend = Backend::talking(|mut talk, _| async move {
        let request = talk.request().await?;
        talk.answer(&request.body.len().to_string()).await
    })
    .await;
    let timeout = Duration::from_millis(60);
    let upstream =
        Upstream::new(UpstreamParams { first_byte_timeout: timeout, ..params(&[backend.address]) }).unwrap();
    let (pieces, body) = piped();
    let request = tokio::spawn(upstream.send(head(Method::POST, "/"), body, None));
    for _ in 0..5 {
        // Longer than the node may take; but it is the client that is waited for.
        tokio::time::sleep(timeout).await;
        pieces.send(Ok(Bytes::from_static(b"piece"))).await.unwrap();
    }
    drop(pieces);
    let response = within(request).await.unwrap().unwrap();
    assert_eq!(text(response).await.unwrap(), "25");
}

#[tokio::test]
async fn a_body_that_stalls_ends_in_time_and_a_slow_reader_does_not_stall_it() {
    let backend = Backend::talking(|mut talk, _| async move {
        talk.request().await?;
        talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst").await?;
        talk.closed().await
    })
    .await;
    let timeout = Duration::from_millis(80);
    let upstream =
        Upstream::new(UpstreamParams { idle_timeout: timeout, ..params(&[backend.address]) }).unwrap();
    let mut body = send(&upstream, Method::GET, "/").await.unwrap().into_body();
    // Nobody reads for longer than the node may be silent: that is not the node's fault.
    tokio::time::sleep(2 * timeout).await;
    assert_eq!(within(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "first");
    tokio::time::sleep(2 * timeout).await;
    let begun = std::time::Instant::now();
    let error = within(body.frame()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), UpstreamErrorKind::IdleTimeout);
    assert!(begun.elapsed() >= timeout, "{:?}", begun.elapsed());
    assert!(within(body.frame()).await.is_none());
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn a_steady_trickle_is_no_stall() {
    let backend = Backend::talking(|mut talk, _| async move {
        talk.request().await?;
        talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n").await?;
        for _ in 0..6 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            talk.send(b".").await?;
        }
        Some(())
    })
    .await;
    let timeout = Duration::from_millis(200);
    let upstream =
        Upstream::new(UpstreamParams { idle_timeout: timeout, ..params(&[backend.address]) }).unwrap();
    assert_eq!(get(&upstream, "/").await.unwrap(), "......");
}

#[tokio::test]
async fn nonsense_from_a_node_is_a_bad_response() {
    let big: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(70_000)).into_boxed_str());
    let many: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(200)).into_boxed_str());
    for nonsense in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 2OO OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\r\n folded\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n",
        big,
        many,
    ] {
        let backend = Backend::answering(nonsense.as_bytes()).await;
        let upstream = upstream(&backend);
        let shown = &nonsense[..nonsense.len().min(60)];
        let error = get(&upstream, "/").await.expect_err(shown);
        assert_eq!(error.kind(), UpstreamErrorKind::BadResponse, "{shown:?}: {error}");
        assert_eq!((error.fault(), error.node()), (Blame::Upstream, Some(NodeId(0))));
        assert_eq!((backend.requests(), in_flight(&upstream), idle(&upstream)), (1, 0, 0), "{shown:?}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_or_is_malformed_is_an_error_and_no_end() {
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst", UpstreamErrorKind::BrokenInBody),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n",
            UpstreamErrorKind::BrokenInBody,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\nxyz\r\n",
            UpstreamErrorKind::BadResponse,
        ),
    ] {
        let backend = Backend::talking(move |mut talk, _| async move {
            talk.request().await?;
            talk.send(answer.as_bytes()).await
        })
        .await;
        let upstream = upstream(&backend);
        let mut body = send(&upstream, Method::GET, "/").await.unwrap().into_body();
        assert_eq!(within(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "first");
        let error = within(body.frame()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), expected, "{answer:?}: {error}");
        assert_eq!((backend.requests(), in_flight(&upstream)), (1, 0));
    }
}

#[tokio::test]
async fn a_client_s_broken_body_is_the_client_s_fault() {
    let backend = Backend::talking(|mut talk, _| async move { talk.closed().await }).await;
    let upstream = upstream(&backend);
    let (pieces, body) = piped();
    pieces.send(Ok(Bytes::from_static(b"piece"))).await.unwrap();
    let request = tokio::spawn(upstream.send(head(Method::POST, "/"), body, None));
    pieces.send(Err(io::Error::other("bad chunk"))).await.unwrap();
    let error = within(request).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.fault()), (UpstreamErrorKind::RequestBody, Blame::Client));
    // The downstream side finds its own error again, to distinguish a body that is too large from
    // one that ended early.
    assert_eq!(error.find::<io::Error>().unwrap().to_string(), "bad chunk");
    assert_eq!((in_flight(&upstream), upstream.view()[0].failures_in_a_row), (0, 0));
}

#[tokio::test]
async fn a_body_shorter_than_declared_is_the_client_s_fault() {
    let backend = Backend::talking(|mut talk, _| async move { talk.closed().await }).await;
    let upstream = upstream(&backend);
    let (pieces, body) = piped();
    let mut head = head(Method::POST, "/");
    head.headers.insert("content-length", HeaderValue::from_static("10"));
    pieces.send(Ok(Bytes::from_static(b"piece"))).await.unwrap();
    drop(pieces);
    let error = within(upstream.send(head, body, None)).await.unwrap_err();
    assert_eq!(error.kind(), UpstreamErrorKind::RequestBody, "{error}");
    assert_eq!(in_flight(&upstream), 0);
}

#[tokio::test]
async fn a_client_s_body_that_breaks_behind_the_answer_s_head_is_the_client_s_fault() {
    let backend = Backend::talking(|mut talk, _| async move {
        talk.head().await?;
        talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst").await?;
        talk.closed().await
    })
    .await;
    let upstream = upstream(&backend);
    let (pieces, body) = piped();
    let response = within(upstream.send(head(Method::POST, "/"), body, None)).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(within(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "first");
    pieces.send(Err(io::Error::other("bad chunk"))).await.unwrap();
    let error = within(body.frame()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), UpstreamErrorKind::RequestBody, "{error}");
    assert_eq!(in_flight(&upstream), 0);
}
