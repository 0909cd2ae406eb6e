//! A new process takes over: no request fails, sessions and places are kept, and where the new one
//! fails nothing has happened. And what systemd gives and is told.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod common;

use common::{Backend, Gateway, LONG, Running, file, get, suimon, until};
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;
use suimon_process::Signal;

/// One gateway after another, of which each has taken over from the one before.
struct Generations {
    /// The first.
    gateway: Gateway,
    /// The process that is the gateway now.
    now: u32,
    /// How much of what they say was read.
    read: usize,
}

/// Whatever the test comes to, no process is left.
impl Drop for Generations {
    fn drop(&mut self) {
        kill(self.now, Signal::KILL);
    }
}

fn kill(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    // It may have gone.
    let _ = rustix::process::kill_process(pid, signal);
}

impl Generations {
    fn start(args: &[&str]) -> Generations {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        all.extend(args);
        Generations::of(suimon(&all))
    }

    fn of(command: Command) -> Generations {
        let gateway = Gateway::of(command);
        let now = gateway.process.pid();
        Generations { gateway, now, read: 0 }
    }

    fn asks(&self) {
        kill(self.now, Signal::USR2);
    }

    /// Returns the next line with this text, of whichever process.
    fn wait_err(&mut self, what: &str) -> String {
        let mut found = None;
        let began = Instant::now();
        until(what, || {
            assert!(began.elapsed() < LONG / 2, "{what} is not said: {}", self.gateway.process.complained());
            let said = self.gateway.process.complained();
            let mut at = self.read;
            for line in said[at..].split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                at += line.len();
                if line.contains(what) {
                    self.read = at;
                    found = Some(line.trim_end().to_owned());
                    return true;
                }
            }
            false
        });
        found.unwrap()
    }

    /// Has a new process take over, and returns its number.
    fn take_over(&mut self) -> u32 {
        self.asks();
        let said = self.wait_err("takeover: process ");
        let pid = said.split("process ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        std::mem::replace(&mut self.now, pid)
    }

    /// Ends the last one as an operator would.
    fn finish(self) {
        kill(self.now, Signal::TERM);
        until("the last process ends", || !common::runs(self.now));
    }
}

/// What a client has got.
#[derive(Default)]
struct Counts {
    served: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    fn until_served(&self, more: u64) {
        let before = self.served.load(Relaxed);
        until("requests are served", || self.served.load(Relaxed) > before + more);
    }

    /// Sees to it that none has failed.
    fn hold(&self) {
        assert_eq!(self.failed.load(Relaxed), 0, "of {}", self.served.load(Relaxed));
    }
}

/// A connection, encrypted or not.
trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONG))?;
    Ok(stream)
}

/// Asks for a page again and again, each time by a new connection or by the same one as long as it
/// lives, and follows a redirect as browsers do.
fn client(
    connect: impl Fn() -> std::io::Result<Box<dyn Wire>>,
    keeps: bool,
    ends: &AtomicBool,
    counts: &Counts,
) {
    let mut kept: Option<BufReader<Box<dyn Wire>>> = None;
    while !ends.load(Relaxed) {
        match ask(&connect, keeps, &mut kept) {
            Ok(200) => _ = counts.served.fetch_add(1, Relaxed),
            Ok(307) => {}
            other => {
                eprintln!("{other:?}");
                counts.failed.fetch_add(1, Relaxed);
            }
        }
    }
}

fn ask(
    connect: &impl Fn() -> std::io::Result<Box<dyn Wire>>,
    keeps: bool,
    kept: &mut Option<BufReader<Box<dyn Wire>>>,
) -> std::io::Result<u16> {
    let mut stream = match kept.take() {
        Some(stream) => stream,
        None => BufReader::new(connect()?),
    };
    let connection = if keeps { "keep-alive" } else { "close" };
    write!(stream.get_mut(), "GET /page HTTP/1.1\r\nHost: shop.example\r\nConnection: {connection}\r\n\r\n")?;
    let (mut status, mut length, mut closes, mut line) = (0, 0, !keeps, String::new());
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let words = line.to_ascii_lowercase();
        if words.starts_with("http/1.1 ") {
            status = words[9..12].parse().unwrap();
        }
        if let Some(bytes) = words.strip_prefix("content-length: ") {
            length = bytes.trim().parse().unwrap();
        }
        closes |= words.starts_with("connection: close");
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    *kept = (!closes).then_some(stream);
    Ok(status)
}

#[test]
fn a_new_process_takes_over_under_load_and_no_request_fails() {
    let backend = Backend::start();
    let mut generations = Generations::start(&["--to", &backend.url()]);
    let (address, admin) = (generations.gateway.clients, generations.gateway.admin);
    let (ends, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
    let clients: Vec<_> = (0..6)
        .map(|index| {
            let (ends, counts) = (Arc::clone(&ends), Arc::clone(&counts));
            let connect = move || Ok(Box::new(connect(address)?) as Box<dyn Wire>);
            thread::spawn(move || client(connect, index % 2 == 0, &ends, &counts))
        })
        .collect();
    let first = generations.now;
    for _ in 0..4 {
        counts.until_served(50);
        generations.take_over();
        assert_eq!(get(admin, "/healthz").0, 200);
    }
    counts.until_served(50);
    ends.store(true, Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    counts.hold();
    until("the first ends by itself, once nothing is under way", || !common::runs(first));
    generations.finish();
}

/// Asks for a page again and again by one HTTP/2 connection, and by another once that is over.
async fn http2_client(address: SocketAddr, ends: &AtomicBool, counts: &Counts) {
    while !ends.load(Relaxed) {
        let stream = TokioIo::new(tokio::net::TcpStream::connect(address).await.unwrap());
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        let connection = tokio::spawn(connection);
        while !ends.load(Relaxed) && sender.ready().await.is_ok() {
            let request = Request::get(format!("http://{address}/page")).body(Empty::<Bytes>::new());
            match sender.try_send_request(request.unwrap()).await {
                Ok(answer) if answer.status() == 200 => {
                    answer.into_body().collect().await.unwrap();
                    counts.served.fetch_add(1, Relaxed);
                }
                // It is to come again by another connection.
                Ok(answer) if answer.status() == 307 => {}
                // It comes back unsent: the connection was over before it could leave.
                Err(unsent) if unsent.message().is_some() => {}
                other => {
                    eprintln!("HTTP/2: {other:?}");
                    counts.failed.fetch_add(1, Relaxed);
                }
            }
        }
        drop(sender);
        let _ = connection.await;
    }
}

#[test]
fn nor_does_one_by_https_or_by_a_connection_of_http2() {
    let (folder, backend) = (tempfile::tempdir().unwrap(), Backend::start());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [cert, key] = [("cert.pem", made.cert.pem()), ("key.pem", made.signing_key.serialize_pem())]
        .map(|(name, text)| file(&folder, name, &text));
    let tls = format!("[listen.tls]\naddress = \"127.0.0.1:0\"\ncert = \"{cert}\"\nkey = \"{key}\"\n");
    let settings = file(&folder, "suimon.toml", &tls);
    let mut generations = Generations::start(&["--to", &backend.url(), "--config", &settings]);
    let plain = generations.gateway.clients;
    let said = generations.gateway.process.said();
    let secure = said.split("https://").nth(1).unwrap().split([' ', ',']).next().unwrap().parse().unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let (ends, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
    let clients: Vec<_> = (0..4)
        .map(|index| {
            let (ends, counts, config) = (Arc::clone(&ends), Arc::clone(&counts), Arc::clone(&config));
            let connect = move || {
                let session = ClientConnection::new(Arc::clone(&config), "localhost".try_into().unwrap());
                Ok(Box::new(StreamOwned::new(session.unwrap(), connect(secure)?)) as Box<dyn Wire>)
            };
            thread::spawn(move || client(connect, index % 2 == 0, &ends, &counts))
        })
        .collect();
    let http2 = Arc::new(Counts::default());
    let multiplexed = {
        let (ends, http2) = (Arc::clone(&ends), Arc::clone(&http2));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        thread::spawn(move || runtime.block_on(http2_client(plain, &ends, &http2)))
    };
    for _ in 0..3 {
        counts.until_served(30);
        http2.until_served(30);
        generations.take_over();
    }
    counts.until_served(30);
    http2.until_served(30);
    ends.store(true, Relaxed);
    clients.into_iter().chain([multiplexed]).for_each(|client| client.join().unwrap());
    counts.hold();
    http2.hold();
    generations.finish();
}

#[test]
fn what_is_under_way_is_answered_by_the_old_process() {
    let backend = Backend::start();
    let mut generations = Generations::start(&["--to", &backend.url()]);
    let address = generations.gateway.clients;
    let held = thread::spawn(move || get(address, "/held"));
    backend.wait_for("/held");
    let old = generations.take_over();
    assert_eq!(get(address, "/").0, 200, "the new one serves");
    assert!(common::runs(old), "the old one waits for what it has");
    backend.let_go();
    assert_eq!(held.join().unwrap().0, 200);
    until("the old one ends", || !common::runs(old));
    generations.finish();
}

#[test]
fn a_takeover_brings_another_site_and_keeps_the_sessions_of_those_there_are() {
    let (folder, shop, tickets) = (tempfile::tempdir().unwrap(), Backend::start(), Backend::start());
    let state = folder.path().join("learned.json");
    let site = |name: &str| {
        format!(
            "[[site]]\nname = \"{name}\"\nhosts = [\"{name}.example\"]\n[site.upstream]\nnodes = [\"{}\"]\n",
            tickets.url()
        )
    };
    let one = format!("[learned]\nstate = \"{}\"\n{}", state.display(), site("tickets"));
    let settings = file(&folder, "suimon.toml", &one);
    let mut generations = Generations::start(&["--to", &shop.url(), "--config", &settings]);
    let (clients, operator) = (generations.gateway.clients, generations.gateway.admin_url());
    let ask = |host: &str| common::try_get_at(clients, host, "/page").unwrap().0;
    assert_eq!((ask("shop.example"), ask("tickets.example")), (200, 200));
    shop.wait_for("/page");
    tickets.wait_for("/page");
    let sessions = |site: &str| {
        let ran = common::run(&["status", "--site", site, "--json", "--admin", &operator]);
        let state: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        state["kinds"][0]["remembered"].as_u64().unwrap()
    };
    assert_eq!((sessions("main"), sessions("tickets")), (1, 1));
    // Another number of sites takes a restart; a takeover is one.
    std::fs::write(&settings, format!("{one}{}", site("other"))).unwrap();
    generations.take_over();
    assert_eq!((sessions("main"), sessions("tickets"), sessions("other")), (1, 1, 0));
    assert_eq!(ask("other.example"), 200);
    tickets.wait_for("/page");
    generations.finish();
}

#[test]
fn a_new_process_that_cannot_start_leaves_the_old_one_as_it_was() {
    let (folder, backend) = (tempfile::tempdir().unwrap(), Backend::start());
    let state = folder.path().join("learned.json");
    let good = format!("[learned]\nstate = \"{}\"\n", state.display());
    let settings = file(&folder, "suimon.toml", &good);
    let mut generations = Generations::start(&["--to", &backend.url(), "--config", &settings]);
    let (clients, first) = (generations.gateway.clients, generations.now);
    for (bad, why) in [
        ("[gate]\nnonsense = 1\n", "has ended"),
        ("[listen]\ntls = { address = \"127.0.0.1:0\", cert = \"/none\", key = \"/none\" }\n", "has ended"),
    ] {
        std::fs::write(&settings, bad).unwrap();
        generations.asks();
        let said = generations.wait_err("the takeover has failed");
        assert!(said.contains("this process goes on") && said.contains(why), "{said}");
        assert_eq!(get(clients, "/").0, 200);
    }
    std::fs::write(&settings, good).unwrap();
    assert_eq!(generations.take_over(), first, "it was the first all the time");
    assert_eq!(get(clients, "/").0, 200);
    generations.finish();
}

#[test]
fn a_new_process_that_fails_with_the_state_in_hand_leaves_all_to_the_old_one() {
    let (folder, backend) = (tempfile::tempdir().unwrap(), Backend::start());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let good = "[learned]\nstate = \"none\"\n";
    let settings = file(&folder, "suimon.toml", good);
    let operator = format!("unix:{}", path("admin.sock"));
    // A port that the system chooses has no files.
    let clients = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (listen, url, recording) = (clients.to_string(), backend.url(), path("gate.rec"));
    let args = ["serve", "--listen", &listen, "--admin", &operator, "--to", &url, "--config", &settings];
    let mut command = suimon(&[&args[..], &["--record", &recording]].concat());
    command.env("STATE_DIRECTORY", folder.path());
    let process = Running::of(command);
    process.wait_out(&operator);
    let now = process.pid();
    let gateway = Gateway { process, clients, admin: clients };
    let mut generations = Generations { gateway, now, read: 0 };
    let over = |args: &[&str]| {
        let ran = common::run(&[&["override"], args, &["--admin", &operator]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    over(&["open", "--who", "anna"]);
    // It is opened when the state was read; that its folder is not there does not show before.
    std::os::unix::fs::symlink("/nowhere/log", path("log")).unwrap();
    let bad = format!("{good}[log]\naccess = \"json\"\naccess_file = \"{}\"\n", path("log"));
    for round in ["ben", "carl"] {
        std::fs::write(&settings, &bad).unwrap();
        generations.asks();
        generations.wait_err("still overridden, from before the start");
        generations.wait_err("the takeover has failed");
        until("overrides are taken again", || {
            common::run(&["override", "open", "--who", round, "--admin", &operator]).code == Some(0)
        });
    }
    let said = generations.gateway.process.complained();
    assert!(!said.contains("the recording has ended"), "{said}");
    std::fs::write(&settings, good).unwrap();
    generations.take_over();
    assert!(over(&["list"]).contains("carl"), "the new one has what the old one was told last");
    generations.finish();
}

#[test]
fn who_is_told_to_stop_leaves_no_new_process_behind() {
    let (folder, backend) = (tempfile::tempdir().unwrap(), Backend::start());
    let settings = file(&folder, "suimon.toml", "[learned]\nstate = \"none\"\n");
    let generations = Generations::start(&["--to", &backend.url(), "--config", &settings]);
    // The new process waits for its settings.
    std::fs::remove_file(&settings).unwrap();
    assert!(Command::new("mkfifo").arg(&settings).status().unwrap().success());
    let (is_read, reads) = std::sync::mpsc::channel();
    thread::spawn(move || is_read.send(std::fs::File::options().write(true).open(settings)));
    generations.asks();
    let mut pipe = reads.recv_timeout(LONG).unwrap().unwrap();
    pipe.write_all(b"# a word\n").unwrap();
    kill(generations.now, Signal::TERM);
    until("the old one ends", || !common::runs(generations.now));
    let said = pipe.write_all(b"# another word\n").unwrap_err();
    assert_eq!(said.kind(), std::io::ErrorKind::BrokenPipe, "nobody is there to read it");
}

/// A collector of metrics. Returns when whoever sends them has begun, once for each time.
fn collector() -> (SocketAddr, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, (sender, begun)) = (listener.local_addr().unwrap(), std::sync::mpsc::channel());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (mut reader, mut length) = (BufReader::new(&stream), 0);
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                reader.read_line(&mut line).unwrap();
                if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                    length = bytes.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            // Who hands over stops in the middle.
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let _ = write!(&stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}");
            let body = String::from_utf8(body).unwrap();
            let since = body.split("\"startTimeUnixNano\":\"").nth(1).unwrap().split('"').next().unwrap();
            let _ = sender.send(since.to_owned());
        }
    });
    (address, begun)
}

#[test]
fn who_has_handed_over_sends_no_metrics_while_it_drains() {
    let (folder, backend) = (tempfile::tempdir().unwrap(), Backend::start());
    let (collector, begun) = collector();
    let text = format!(
        "[telemetry]\notlp_endpoint = \"http://{collector}\"\nmetrics_every = \"1s\"\ntrace_ratio = 0.0\n[learned]\nstate = \"none\"\n"
    );
    let settings = file(&folder, "suimon.toml", &text);
    let mut generations = Generations::start(&["--to", &backend.url(), "--config", &settings]);
    let address = generations.gateway.clients;
    let held = thread::spawn(move || get(address, "/held"));
    backend.wait_for("/held");
    let of_old = begun.recv_timeout(LONG).unwrap();
    let old = generations.take_over();
    let from = begun.iter().find(|it| *it != of_old);
    // One of the old one may have been on its way.
    let late = begun.iter().take(4).filter(|it| Some(it) != from.as_ref()).count();
    assert!(late <= 1, "{late} of 4 are of the one that drains");
    assert!(common::runs(old));
    backend.let_go();
    assert_eq!(held.join().unwrap().0, 200);
    generations.finish();
}

/// A visitor with a browser and cookies of its own.
struct Visitor {
    browser: String,
    cookies: Vec<String>,
}

impl Visitor {
    fn new(browser: &str) -> Visitor {
        Visitor { browser: browser.to_owned(), cookies: Vec::new() }
    }

    /// Asks for a page, or polls; returns the status and the place in line, if there is one.
    fn ask(&mut self, gateway: SocketAddr, polls: bool) -> (u16, Option<u64>) {
        let mut stream = TcpStream::connect(gateway).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let poll = if polls { "Suimon-Poll: waiting\r\n" } else { "" };
        write!(
            stream,
            "GET /page HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\nUser-Agent: {}\r\nCookie: {}\r\n{poll}Connection: close\r\n\r\n",
            self.browser,
            self.cookies.join("; ")
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let set = head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
        self.cookies.extend(set.filter_map(|value| Some(value.split(';').next()?.to_owned())));
        let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        (head[9..12].parse().unwrap(), json["position"].as_u64())
    }
}

#[test]
fn sessions_and_places_are_those_of_the_new_process() {
    let (folder, backend) = (tempfile::tempdir().unwrap(), Backend::start());
    let state = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = format!(
        "[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n[waiting_room]\nstate = \"{}\"\n[lease]\nkeys = \"{}\"\n[learned]\nstate = \"none\"\n",
        state("room.json"),
        state("lease.keys")
    );
    let settings = file(&folder, "suimon.toml", &text);
    let mut generations = Generations::start(&["--to", &backend.url(), "--config", &settings]);
    let gateway = generations.gateway.clients;
    let mut inside = Visitor::new("inside");
    assert_eq!(inside.ask(gateway, false).0, 200);
    let mut waiting: Vec<Visitor> = (0..5).map(|number| Visitor::new(&format!("waits {number}"))).collect();
    let places: Vec<u64> = waiting.iter_mut().map(|it| it.ask(gateway, false).1.unwrap()).collect();
    // Others wait by now, and so it gets a lease.
    assert_eq!(inside.ask(gateway, false).0, 200);
    for round in 0..3 {
        generations.take_over();
        let mut newcomer = Visitor::new(&format!("new {round}"));
        let (status, place) = newcomer.ask(gateway, false);
        assert_eq!(status, 503, "the one session there may be is under way, as the new process knows");
        assert!(place.unwrap() > *places.last().unwrap());
        assert_eq!(inside.ask(gateway, false).0, 200);
    }
    for (visitor, place) in waiting.iter_mut().zip(&places) {
        let mut told = (429, None);
        until("a poll is not too early", || {
            told = visitor.ask(gateway, true);
            told.0 != 429
        });
        assert_eq!(told.1, Some(*place));
    }
    generations.finish();
}

/// Starts a command as systemd does: with these sockets, and their names.
fn activated(command: &Command, sockets: Vec<OwnedFd>, names: &str) -> Command {
    // Only the process itself knows its number.
    // Other shells know no descriptor of two digits.
    let mut shell = Command::new("bash");
    let count = sockets.len();
    let moves: String = sockets
        .iter()
        .enumerate()
        .map(|(index, socket)| format!(" {}<&{}", index + 3, suimon_process::inherited::number_of(socket)))
        .collect();
    let script = format!(
        "LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES={names}; export LISTEN_PID LISTEN_FDS LISTEN_FDNAMES; exec \"$@\"{moves}"
    );
    shell.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    suimon_process::inherited::hand_down(&mut shell, sockets);
    shell
}

#[test]
fn sockets_that_systemd_has_opened_are_used_by_name_or_address() {
    let backend = Backend::start();
    let listeners: Vec<TcpListener> = (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let at: Vec<SocketAddr> = listeners.iter().map(|it| it.local_addr().unwrap()).collect();
    let early = thread::spawn({
        let address = at[0];
        move || get(address, "/")
    });
    let sockets = || listeners.iter().map(|it| it.try_clone().unwrap().into()).collect();
    let named = suimon(&["serve", "--to", &backend.url()]);
    let gateway = Gateway::of(activated(&named, sockets(), "http:admin"));
    assert_eq!((gateway.clients, gateway.admin), (at[0], at[1]));
    assert_eq!(early.join().unwrap().0, 200, "it waited in the socket until the gateway was there");
    assert_eq!(get(at[1], "/healthz").0, 200);
    gateway.process.finish();

    let (listen, admin) = (at[0].to_string(), at[1].to_string());
    let addressed = suimon(&["serve", "--to", &backend.url(), "--listen", &listen, "--admin", &admin]);
    let gateway = Gateway::of(activated(&addressed, sockets(), "suimon.socket:suimon.socket"));
    assert_eq!((gateway.clients, gateway.admin), (at[0], at[1]));
    assert_eq!(get(at[0], "/").0, 200);
    // The sockets stay open in between: nobody is refused.
    gateway.process.finish();
    let waits = thread::spawn({
        let address = at[0];
        move || get(address, "/")
    });
    let gateway = Gateway::of(activated(&addressed, sockets(), "suimon.socket:suimon.socket"));
    assert_eq!(waits.join().unwrap().0, 200);
    gateway.process.finish();

    let useless = suimon(&["serve", "--to", &backend.url(), "--listen", "127.0.0.1:0", "--admin", "off"]);
    let refused = common::Ran::from(activated(&useless, sockets(), "suimon.socket").output().unwrap());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("is for nothing here"), "{refused:?}");
}

#[test]
fn systemd_is_told_of_the_start_a_reload_a_takeover_and_the_end() {
    let (folder, backend) = (tempfile::tempdir().unwrap(), Backend::start());
    let path = folder.path().join("notify");
    let heard = UnixDatagram::bind(&path).unwrap();
    heard.set_read_timeout(Some(LONG)).unwrap();
    let settings = file(&folder, "suimon.toml", "[learned]\nstate = \"none\"\n");
    let args = ["serve", "--listen", "127.0.0.1:0", "--admin", "off", "--to"];
    let url = backend.url();
    let mut command = suimon(&[&args[..], &[url.as_str(), "--config", settings.as_str()]].concat());
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "1000000");
    let process = Running::of(command);
    let began = Instant::now();
    let until_told = |what: &str| loop {
        assert!(began.elapsed() < 4 * LONG, "{what} is never told");
        let mut bytes = [0; 4096];
        let length = heard.recv(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if let Some(line) = text.lines().find(|line| line.starts_with(what)) {
            return line.to_owned();
        }
    };
    until_told("READY=1");
    until_told("WATCHDOG=1");
    process.signal(Signal::HUP);
    until_told("RELOADING=1");
    until_told("READY=1");
    process.signal(Signal::USR2);
    let told = until_told("MAINPID=");
    let pid: u32 = told["MAINPID=".len()..].parse().unwrap();
    until_told("READY=1");
    until_told("STATUS=");
    until_told("WATCHDOG=1");
    kill(pid, Signal::TERM);
    until_told("STOPPING=1");
    assert_eq!(process.end().code(), Some(0));
    until("the new one ends", || !common::runs(pid));
}
