//! An application with a few workers that block, as threads do: a client that is slow to send or to
//! take holds none of them.

use crate::support::{Gateway, Pieces, connect, gateway, params, read_until, soon, until};
use bytes::Bytes;
use http::Request;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener as Listener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use suimon_gate::RouteMode;
use suimon_model::Limit;
use suimon_params::Params;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Time between two pieces of a body that drips.
const DRIP_EVERY: Duration = Duration::from_millis(20);

/// How long `/late` takes: longer than nobody notices.
const LATE: Duration = Duration::from_secs(7);

/// An application whose workers each serve one connection at a time, from the first byte of a
/// request to the last of its answer.
struct Pool {
    address: SocketAddr,
    busy: Arc<AtomicUsize>,
    exports: Arc<Exports>,
}

/// Answers to `/export` that have more to come: those that have begun, those that go on now, and
/// the most that did at once.
#[derive(Default)]
struct Exports {
    begun: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Pool {
    fn new(workers: usize) -> Pool {
        let listener = Arc::new(Listener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        let (busy, exports) = (Arc::new(AtomicUsize::new(0)), Arc::<Exports>::default());
        for _ in 0..workers {
            let (listener, busy, exports) = (Arc::clone(&listener), Arc::clone(&busy), Arc::clone(&exports));
            // It ends with the process.
            std::thread::spawn(move || {
                loop {
                    let (stream, _) = listener.accept().unwrap();
                    busy.fetch_add(1, SeqCst);
                    let _ = serve(stream, &exports);
                    busy.fetch_sub(1, SeqCst);
                }
            });
        }
        Pool { address, busy, exports }
    }

    fn busy(&self) -> usize {
        self.busy.load(SeqCst)
    }

    /// Returns parameters for a gateway in front of it, with more slots than it has workers.
    fn params(&self) -> Params {
        let mut params = params(self.address);
        params.routes.declared.clear();
        params.routes.discovered_mode = RouteMode::Fixed(Limit::of(50));
        params
    }
}

/// Answers one request: with the length and hash of its body, or with as many bytes as its query
/// says; of `/export` a little each millisecond.
fn serve(stream: std::net::TcpStream, exports: &Exports) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length, mut chunked, mut answer) = (String::new(), 0, false, None);
    let (mut is_export, mut is_quick, mut is_late) = (false, false, false);
    while reader.read_line(&mut line)? > 0 && line != "\r\n" {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        is_export |= lower.starts_with("get /export");
        is_quick |= lower.starts_with("get /file");
        is_late |= lower.starts_with("get /late");
        chunked |= lower.starts_with("transfer-encoding:");
        if let Some((_, rest)) = lower.split_once('?') {
            answer = answer.or(rest.split_whitespace().next().and_then(|count| count.parse().ok()));
        }
        line.clear();
    }
    let (mut bytes, mut hash) = (0, blake3::Hasher::new());
    loop {
        if chunked {
            line.clear();
            reader.read_line(&mut line)?;
            length = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        }
        let mut piece = vec![0; 64 << 10];
        while length > 0 {
            let read = reader.read(&mut piece[..length.min(64 << 10)])?;
            if read == 0 {
                return Ok(());
            }
            hash.update(&piece[..read]);
            (bytes, length) = (bytes + read, length - read);
        }
        if !chunked {
            break;
        }
        reader.read_line(&mut line)?;
        if line.starts_with('0') {
            break;
        }
    }
    let answer = match answer {
        Some(count) if is_export || is_quick => vec![b'x'; count],
        Some(count) => pattern(count),
        None => format!("{bytes} {}", hash.finalize()).into_bytes(),
    };
    if is_late {
        std::thread::sleep(LATE);
    }
    let mut stream = stream;
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", answer.len())?;
    if !is_export {
        return stream.write_all(&answer);
    }
    exports.begun.fetch_add(1, SeqCst);
    exports.most.fetch_max(exports.now.fetch_add(1, SeqCst) + 1, SeqCst);
    let (first, last) = answer.split_at(answer.len() - 1);
    let written = first.chunks(16 << 10).try_for_each(|piece| {
        std::thread::sleep(Duration::from_millis(1));
        stream.write_all(piece)
    });
    exports.now.fetch_sub(1, SeqCst);
    written?;
    stream.write_all(last)
}

/// Returns `count` bytes of which each piece is unlike the others.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index / 7 * 31 + index % 251) as u8).collect()
}

/// Sends `begin`, and then a little now and then for as long as it is taken.
async fn drip(mut stream: TcpStream, begin: Vec<u8>, piece: &'static [u8]) {
    let mut sent = stream.write_all(&begin).await;
    while sent.is_ok() {
        tokio::time::sleep(DRIP_EVERY).await;
        sent = stream.write_all(piece).await;
    }
}

async fn serves(gateway: &Gateway) {
    for _ in 0..3 {
        assert_eq!(gateway.get("/page").await.status, 200);
    }
}

#[tokio::test]
async fn uploads_that_drip_hold_no_worker_of_the_application() {
    let head = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n";
    let memory = Params::default().limits.buffered_bytes;
    // Too little for a file, and enough for one; and anything is where no memory is left.
    let sorts =
        [(&[b'x'; 1][..], memory, false), (&[b'x'; 8000][..], memory, true), (&[b'x'; 1][..], 0, true)];
    for (piece, buffered_bytes, is_spooled) in sorts {
        let app = Pool::new(4);
        let mut params = app.params();
        params.limits.buffered_bytes = buffered_bytes;
        let gateway = gateway(params);
        let mut drips = JoinSet::new();
        // Just more than is read before the gate is asked.
        let begin = [head.as_bytes(), &[b'x'; 70_000]].concat();
        for _ in 0..8 {
            drips.spawn(drip(connect(gateway.plain).await, begin.clone(), piece));
        }
        until("all have begun, without a slot", || gateway.view().gate.suspended == 8).await;
        until("some of it is in a file", || !is_spooled || gateway.view().spooled_bytes > 0).await;
        assert_eq!(app.busy(), 0, "the application knows of none");
        serves(&gateway).await;
        drop(drips);
        until("nothing is left", || gateway.view().connections_open == 0).await;
        until("nor held", || gateway.view().buffered_bytes == 0 && gateway.view().spooled_bytes == 0).await;
        until("nor counted", || (gateway.in_flight(), gateway.view().gate.suspended) == (0, 0)).await;
    }
}

#[tokio::test]
async fn ungated_uploads_that_drip_hold_no_worker_of_the_application() {
    let declared = "Content-Length: 20000000\r\n\r\n".to_owned();
    let asked_for = format!("Expect: 100-continue\r\n{declared}");
    let chunked = "Transfer-Encoding: chunked\r\n\r\n".to_owned();
    for (head, is_chunked) in [(declared, false), (asked_for, false), (chunked, true)] {
        let app = Pool::new(4);
        let mut params = app.params();
        params.routes.ungated = vec!["/upload".to_owned()];
        let gateway = gateway(params);
        let mut begin = format!("POST /upload HTTP/1.1\r\nHost: a\r\n{head}").into_bytes();
        if is_chunked {
            begin.extend_from_slice(b"11170\r\n");
        }
        begin.extend_from_slice(&[b'x'; 70_000]);
        if is_chunked {
            begin.extend_from_slice(b"\r\n");
        }
        let piece: &[u8] = if is_chunked { b"1\r\nx\r\n" } else { b"x" };
        let mut drips = JoinSet::new();
        for _ in 0..8 {
            drips.spawn(drip(connect(gateway.plain).await, begin.clone(), piece));
        }
        until("all have begun", || {
            gateway.view().requests == 8 && (app.busy() > 0 || gateway.view().buffered_bytes >= 8 * 70_000)
        })
        .await;
        assert_eq!(app.busy(), 0, "the application knows of none");
        serves(&gateway).await;
        drop(drips);
        until("nothing is left", || gateway.view().connections_open == 0).await;
        until("nor held", || gateway.view().buffered_bytes == 0 && gateway.view().spooled_bytes == 0).await;
    }
}

#[tokio::test]
async fn an_ungated_upload_without_a_length_arrives_as_it_was_sent() {
    let app = Pool::new(1);
    let body = pattern(1_000_000);
    let hash = blake3::hash(&body);
    let mut params = app.params();
    params.routes.ungated = vec!["/upload".to_owned()];
    // Of the second a part is kept, and the rest sent on as it comes; of the third nothing.
    for (body_bytes_max, bytes_max) in [(256 << 20, 4 << 30), (300 << 10, 4 << 30), (1 << 20, 0)] {
        (params.spool.body_bytes_max, params.spool.bytes_max) = (body_bytes_max, bytes_max);
        let gateway = gateway(params.clone());
        let mut stream = connect(gateway.plain).await;
        stream
            .write_all(b"POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            .await
            .unwrap();
        for piece in body.chunks(body.len() / 20) {
            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
            stream.write_all(piece).await.unwrap();
            stream.write_all(b"\r\n").await.unwrap();
            tokio::time::sleep(DRIP_EVERY).await;
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
        let answer = read_until(&mut stream, &hash.to_string()).await;
        assert!(answer.contains("1000000 "), "{answer}");
        drop(stream);
        until("nothing is held", || gateway.view().buffered_bytes == 0 && gateway.view().spooled_bytes == 0)
            .await;
    }
}

#[tokio::test]
async fn streams_of_uploads_that_drip_over_http2_hold_no_worker_of_the_application() {
    let app = Pool::new(4);
    let gateway = gateway(app.params());
    let stream = hyper_util::rt::TokioIo::new(connect(gateway.plain).await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
    let mut all = JoinSet::new();
    all.spawn(async move { _ = connection.await });
    for _ in 0..24 {
        let (pieces, body) = mpsc::channel(1);
        let request = Request::post("http://a/upload").header("content-length", "2000000");
        let answer = sender.send_request(request.body(Pieces(body)).unwrap());
        all.spawn(async move { _ = answer.await });
        all.spawn(async move {
            let mut piece = Bytes::from(vec![b'x'; 70_000]);
            while pieces.send(piece).await.is_ok() {
                tokio::time::sleep(DRIP_EVERY).await;
                piece = Bytes::from_static(b"x");
            }
        });
    }
    until("all have begun, without a slot", || gateway.view().gate.suspended == 24).await;
    assert_eq!(app.busy(), 0, "the application knows of none");
    serves(&gateway).await;
}

/// Sends a body in pieces, a while after each of the first ones.
async fn send_slowly(gateway: &Gateway, head: &str, body: &[u8], pieces: usize) -> TcpStream {
    let mut stream = connect(gateway.plain).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    for piece in body.chunks(body.len().div_ceil(pieces)) {
        stream.write_all(piece).await.unwrap();
        tokio::time::sleep(DRIP_EVERY).await;
    }
    stream
}

#[tokio::test]
async fn a_slow_upload_arrives_as_it_was_sent() {
    let app = Pool::new(1);
    let body = pattern(3_000_000);
    let hash = blake3::hash(&body);
    let mut params = app.params();
    // Of the second a part is kept, and the rest sent on as it comes.
    for body_bytes_max in [256 << 20, 1 << 20] {
        params.spool.body_bytes_max = body_bytes_max;
        for expects in ["", "Expect: 100-continue\r\n"] {
            let gateway = gateway(params.clone());
            let head = format!(
                "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n{expects}\r\n",
                body.len()
            );
            let mut stream = send_slowly(&gateway, &head, &body, 30).await;
            let answer = read_until(&mut stream, &hash.to_string()).await;
            assert!(answer.contains("3000000 "), "{answer}");
            drop(stream);
            until("nothing is held", || {
                gateway.view().buffered_bytes == 0 && gateway.view().spooled_bytes == 0
            })
            .await;
        }
    }
}

#[tokio::test]
async fn answers_that_nobody_takes_leave_slow_uploads_their_half_of_the_files() {
    const LENGTH: usize = 600_000;
    let app = Pool::new(4);
    let mut params = app.params();
    params.spool.bytes_max = 8 << 20;
    let gateway = gateway(params);
    let _reader = asks_at(gateway.plain, "/file", 40_000_000).await;
    until("there are as many of it as may be", || gateway.view().spooled_bytes > 3 << 20).await;
    let head = format!("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
    let mut upload = send_slowly(&gateway, &head, &[b'x'; LENGTH - 1], 50).await;
    assert_eq!(app.busy(), 1, "it is kept");
    upload.write_all(b"x").await.unwrap();
    read_until(&mut upload, "600000 ").await;
}

const CHUNKED: &str = "POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const DECLARED: &str = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n";

/// Returns what an upload with this head begins with, and what it drips.
fn drops(head: &str, count: usize) -> (Vec<u8>, &'static [u8]) {
    let begin = vec![b'x'; count];
    if head == CHUNKED {
        let size = format!("{count:x}\r\n");
        return ([head.as_bytes(), size.as_bytes(), &begin, b"\r\n"].concat(), b"1\r\nx\r\n");
    }
    ([head.as_bytes(), &begin].concat(), b"x")
}

/// Lets the gateway know how long a page takes.
async fn serves_often(gateway: &Gateway) {
    for _ in 0..7 {
        serves(gateway).await;
    }
}

/// Asks for two pages at once, which are to be answered.
async fn serves_two(gateway: &Gateway) {
    let (one, other) = tokio::join!(gateway.get("/page"), gateway.get("/page"));
    assert_eq!((one.status, other.status), (200, 200));
}

#[tokio::test]
async fn uploads_that_cannot_be_kept_go_once_others_wait_for_the_application() {
    for (head, kept, ungated) in
        [(CHUNKED, true, false), (DECLARED, false, false), (CHUNKED, false, true), (DECLARED, false, true)]
    {
        // Of those that could be kept only a few are sent on.
        let workers = if kept { 4 } else { 8 };
        let app = Pool::new(workers);
        let mut params = app.params();
        if !kept {
            params.spool.bytes_max = 0;
        }
        params.routes.ungated = ungated.then(|| "/upload".to_owned()).into_iter().collect();
        let gateway = gateway(params);
        serves_often(&gateway).await;
        let (begin, piece) = drops(head, 70_000);
        let mut drips = JoinSet::new();
        for _ in 0..20 {
            drips.spawn(drip(connect(gateway.plain).await, begin.clone(), piece));
        }
        until("all workers wait for clients", || app.busy() == workers).await;
        until("none holds a slot", || gateway.in_flight() == 0).await;
        assert_eq!(drips_left(&mut drips), 20, "nobody misses the workers");
        serves_two(&gateway).await;
        until("some were broken off for them", || drips_left(&mut drips) < 20).await;
    }
}

#[tokio::test]
async fn bodies_that_nobody_would_stream_are_kept_and_of_others_all_but_a_few() {
    let app = Pool::new(20);
    let gateway = gateway(app.params());
    for (head, most) in [(CHUNKED.replace("POST", "GET"), 0), (CHUNKED.to_owned(), 4)] {
        let (_, piece) = drops(CHUNKED, 0);
        let begin = [head.as_bytes(), b"30d40\r\n", &[b'x'; 200_000], b"\r\n"].concat();
        let mut drips = JoinSet::new();
        for _ in 0..12 {
            drips.spawn(drip(connect(gateway.plain).await, begin.clone(), piece));
        }
        until("all are there", || gateway.view().gate.suspended == 12).await;
        assert_eq!(app.busy(), most, "{head}");
        drips.shutdown().await;
        until("nothing is left", || gateway.view().connections_open == 0 && app.busy() == 0).await;
    }
}

#[tokio::test]
async fn a_body_that_came_quickly_and_then_drips_holds_no_worker_that_is_missed_and_not_twice() {
    for head in [CHUNKED, DECLARED] {
        let app = Pool::new(4);
        let gateway = gateway(app.params());
        serves_often(&gateway).await;
        let (begin, piece) = drops(head, 320 << 10);
        let mut drips = JoinSet::new();
        for _ in 0..4 {
            drips.spawn(drip(connect(gateway.plain).await, begin.clone(), piece));
        }
        until("all workers wait for clients", || app.busy() == 4).await;
        serves_two(&gateway).await;
        until("it was broken off for them", || drips_left(&mut drips) < 4).await;
        drips.shutdown().await;
        until("nothing is left", || gateway.view().connections_open == 0 && app.busy() == 0).await;
        for _ in 0..4 {
            drips.spawn(drip(connect(gateway.plain).await, begin.clone(), piece));
        }
        until("they are kept", || gateway.view().gate.suspended == 4).await;
        assert_eq!(app.busy(), 0, "the application knows of none");
        serves(&gateway).await;
        assert_eq!(drips_left(&mut drips), 4);
    }
}

#[tokio::test]
async fn slow_uploads_are_broken_off_by_nobody_who_waits_for_something_else() {
    let app = Pool::new(20);
    let gateway = gateway(app.params());
    serves_often(&gateway).await;
    let (begin, piece) = drops(CHUNKED, 70_000);
    let mut slow = connect(gateway.plain).await;
    slow.write_all(&begin).await.unwrap();
    let mut drips = JoinSet::new();
    for _ in 0..12 {
        drips.spawn(drip(connect(gateway.plain).await, begin.clone(), piece));
    }
    until("all are there", || gateway.view().gate.suspended == 13).await;
    // A page that takes long for once, and nobody else who asks; and others who are answered.
    assert_eq!(gateway.get("/late").await.status, 200);
    serves(&gateway).await;
    slow.write_all(b"0\r\n\r\n").await.unwrap();
    read_until(&mut slow, "70000 ").await;
    assert_eq!(drips_left(&mut drips), 12);
}

#[tokio::test]
async fn a_body_whose_end_has_come_waits_for_no_slot_of_those_who_wait_for_its_worker() {
    let app = Pool::new(2);
    let mut params = app.params();
    params.routes.discovered_mode = RouteMode::Fixed(Limit::of(3));
    let gateway = gateway(params);
    let (begin, _) = drops(CHUNKED, 70_000);
    let mut uploads = vec![];
    for _ in 0..2 {
        let mut upload = connect(gateway.plain).await;
        upload.write_all(&begin).await.unwrap();
        uploads.push(upload);
    }
    until("both have a worker and no slot", || gateway.view().gate.suspended == 2 && app.busy() == 2).await;
    // Of the same route, which they then have all slots of.
    let mut others = vec![];
    for _ in 0..6 {
        let mut other = connect(gateway.plain).await;
        other.write_all(b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nshort").await.unwrap();
        others.push(other);
    }
    until("others have the slots", || gateway.in_flight() == 3).await;
    for mut upload in uploads {
        upload.write_all(b"0\r\n\r\n").await.unwrap();
        read_until(&mut upload, "70000 ").await;
    }
    for mut other in others {
        read_until(&mut other, "5 ").await;
    }
    until("all slots are free", || (gateway.in_flight(), gateway.view().gate.suspended) == (0, 0)).await;
}

#[tokio::test]
async fn answers_that_cannot_be_kept_go_once_others_wait_for_the_application() {
    let app = Pool::new(4);
    let mut params = app.params();
    params.spool.bytes_max = 0;
    let gateway = gateway(params);
    serves_often(&gateway).await;
    let mut slow = vec![];
    for _ in 0..4 {
        slow.push(asks_for(gateway.plain, 32 << 20).await);
    }
    until("all workers wait for clients", || app.busy() == 4 && gateway.in_flight() == 0).await;
    serves_two(&gateway).await;
    drop(slow);
    until("nothing is left", || gateway.view().connections_open == 0 && app.busy() == 0).await;
}

/// Returns how many go on.
fn drips_left(drips: &mut JoinSet<()>) -> usize {
    while drips.try_join_next().is_some() {}
    drips.len()
}

/// Asks for `count` bytes, with next to no buffer on the way.
async fn asks_for(address: SocketAddr, count: usize) -> TcpStream {
    asks_at(address, "/big", count).await
}

async fn asks_at(address: SocketAddr, path: &str, count: usize) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(format!("GET {path}?{count} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
    stream
}

/// Reads an answer to its end, and returns its body.
async fn read_all(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let (mut answer, mut piece) = (Vec::new(), vec![0; 256 << 10]);
    loop {
        let head = answer.windows(4).take(1000).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if head.is_some_and(|head| answer.len() >= head + count) {
            return answer.split_off(head.unwrap());
        }
        let read = soon(stream.read(&mut piece)).await.unwrap();
        assert!(read > 0, "closed after {} bytes", answer.len());
        answer.extend_from_slice(&piece[..read]);
    }
}

#[tokio::test]
async fn whoever_takes_nothing_of_a_long_answer_holds_no_worker_of_the_application() {
    const LENGTH: usize = 20_000_000;
    let app = Pool::new(4);
    for ungated in [vec![], vec!["/big".to_owned()]] {
        let mut params = app.params();
        params.routes.ungated = ungated;
        let gateway = gateway(params);
        let mut readers = Vec::new();
        for _ in 0..8 {
            readers.push(asks_for(gateway.plain, LENGTH).await);
        }
        until("all are answered, and every worker is free", || {
            gateway.view().spooled_bytes > 8 * (LENGTH as u64 - (8 << 20)) && app.busy() == 0
        })
        .await;
        serves(&gateway).await;
        let wanted = pattern(LENGTH);
        for reader in readers.iter_mut().take(2) {
            assert!(read_all(reader, LENGTH).await == wanted, "and what is read is what was written");
        }
        drop(readers);
        until("nothing is held", || gateway.view().buffered_bytes == 0 && gateway.view().spooled_bytes == 0)
            .await;
    }
}

#[tokio::test]
async fn an_application_that_goes_on_for_a_slow_client_keeps_its_slot_until_it_is_done() {
    const LENGTH: usize = 5_000_000;
    let app = Pool::new(6);
    let mut params = app.params();
    params.routes.discovered_mode = RouteMode::Fixed(Limit::of(1));
    let gateway = gateway(params);
    let mut readers = Vec::new();
    for _ in 0..6 {
        readers.push(asks_at(gateway.plain, "/export", LENGTH).await);
    }
    until("all are answered", || {
        app.exports.begun.load(SeqCst) == 6 && (app.busy(), gateway.in_flight()) == (0, 0)
    })
    .await;
    assert!(
        gateway.view().spooled_bytes > 6 * (LENGTH as u64 - (4 << 20)),
        "though nobody has taken any of it"
    );
    // On a machine that stands still for a moment the file is what was waited for.
    let most = app.exports.most.load(SeqCst);
    assert!(most <= 2, "{most} at once, of one that may be");
}

#[tokio::test]
async fn an_application_that_waits_for_files_to_be_filled_holds_no_slot_for_it() {
    // All together take some ten seconds to fill their files: nobody is done before the last has
    // begun.
    const LENGTH: usize = 80_000_000;
    let app = Pool::new(8);
    let mut params = app.params();
    params.routes.discovered_mode = RouteMode::Fixed(Limit::of(1));
    let gateway = gateway(params);
    let mut readers = Vec::new();
    for _ in 0..8 {
        readers.push(asks_at(gateway.plain, "/file", LENGTH).await);
    }
    until("all have begun", || (app.busy(), gateway.in_flight()) == (8, 0)).await;
    let spooled = gateway.view().spooled_bytes;
    assert!(spooled < 4 * LENGTH as u64, "while most is still to come: {spooled}");
}

#[tokio::test]
async fn an_answer_that_a_file_cannot_hold_is_whole() {
    const LENGTH: usize = 20_000_000;
    let app = Pool::new(1);
    let wanted = pattern(LENGTH);
    for (bytes_max, body_bytes_max) in [(4 << 30, 2 << 20), (1 << 20, 256 << 20), (0, 256 << 20)] {
        let mut params = app.params();
        (params.spool.bytes_max, params.spool.body_bytes_max) = (bytes_max, body_bytes_max);
        let gateway = gateway(params);
        let mut reader = asks_for(gateway.plain, LENGTH).await;
        until("its client is waited for", || app.busy() == 1 && gateway.in_flight() == 0).await;
        assert!(read_all(&mut reader, LENGTH).await == wanted);
        drop(reader);
        until("nothing is held", || gateway.view().buffered_bytes == 0 && gateway.view().spooled_bytes == 0)
            .await;
    }
}

#[tokio::test]
async fn an_answer_must_be_taken_at_a_pace() {
    const LENGTH: usize = 60_000_000;
    let app = Pool::new(1);
    let mut params = app.params();
    params.timeouts.body_write = Duration::from_secs(3);
    params.limits.body_rate_min = 100_000_000;
    let gateway = gateway(params);
    let mut stream = asks_for(gateway.plain, LENGTH).await;
    let (mut taken, mut piece) = (0, vec![0; 64 << 10]);
    // It never pauses for long, and takes too little.
    while let Ok(read @ 1..) = soon(stream.read(&mut piece)).await {
        taken += read;
        assert!(taken < LENGTH, "it could go on for as long as it liked");
        tokio::time::sleep(DRIP_EVERY).await;
    }
    until("nothing is held", || gateway.view().buffered_bytes == 0 && gateway.view().spooled_bytes == 0)
        .await;
    assert!(read_all(&mut asks_for(gateway.plain, 3_000_000).await, 3_000_000).await == pattern(3_000_000));
}
