//! Real processes and real sockets for the tests of the command.

#![allow(dead_code, unreachable_pub, reason = "each test file is a crate of its own and uses its part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use suimon_process::{Program, Signal};

/// Far longer than anything here takes, so that a hang fails a test and a slow machine does not.
pub const LONG: Duration = Duration::from_secs(30);

/// Returns the command without those environment variables of this machine that would change its
/// behaviour.
pub fn suimon(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suimon"));
    command.args(args).env_remove("SUIMON_LOG").env_remove("STATE_DIRECTORY");
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command.stdin(Stdio::null());
    command
}

/// Writes a file into a folder and returns its path.
pub fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

/// Runs the command to its end.
pub fn run(args: &[&str]) -> Ran {
    Ran::from(suimon(args).output().unwrap())
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A process that runs beside the test and does not outlive it.
pub struct Running {
    process: RefCell<suimon_process::Running>,
    /// How far its standard output and standard error have been read.
    read: [Cell<usize>; 2],
    _words: tempfile::TempDir,
}

impl Running {
    pub fn start(args: &[&str]) -> Running {
        Running::of(suimon(args))
    }

    pub fn of(command: Command) -> Running {
        let words = tempfile::tempdir().unwrap();
        let process = Program::of("suimon", command).start(words.path()).unwrap();
        Running { process: RefCell::new(process), read: Default::default(), _words: words }
    }

    /// Returns the first line on standard output from here on that contains `what`.
    pub fn wait_out(&self, what: &str) -> String {
        self.wait_for(&self.read[0], suimon_process::Running::said, what)
    }

    /// Returns the first line on standard error from here on that contains `what`.
    pub fn wait_err(&self, what: &str) -> String {
        self.wait_for(&self.read[1], suimon_process::Running::complained, what)
    }

    /// Returns all that was written to standard output so far.
    pub fn said(&self) -> String {
        self.process.borrow().said()
    }

    /// Returns all that was written to standard error so far.
    pub fn complaints(&self) -> String {
        self.process.borrow().complained()
    }

    fn wait_for(
        &self,
        read: &Cell<usize>,
        words: fn(&suimon_process::Running) -> String,
        what: &str,
    ) -> String {
        let line = |process: &suimon_process::Running| {
            let words = words(process);
            let mut at = read.get();
            for line in words[at..].split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                at += line.len();
                if line.contains(what) {
                    read.set(at);
                    return Some(line.trim_end().to_string());
                }
            }
            None
        };
        let mut process = self.process.borrow_mut();
        let found = process.wait_for(what, LONG, line);
        // It may have ended after printing this line.
        found.unwrap_or_else(|error| line(&process).unwrap_or_else(|| panic!("{error}")))
    }

    /// Returns the number of the process.
    pub fn pid(&self) -> u32 {
        self.process.borrow().pid()
    }

    /// Returns all that was written to standard error so far, by the process or one that it has started.
    pub fn complained(&self) -> String {
        self.process.borrow().complained()
    }

    pub fn signal(&self, signal: Signal) {
        self.process.borrow().signal(signal);
    }

    /// Ends the process with SIGTERM, as an operator would, and checks its exit status.
    pub fn finish(self) {
        self.signal(Signal::TERM);
        assert_eq!(self.end().code(), Some(0));
    }

    /// Waits for the end of the process.
    pub fn end(self) -> ExitStatus {
        self.process.borrow_mut().wait(LONG).unwrap()
    }
}

/// A gateway before a backend.
pub struct Gateway {
    pub process: Running,
    pub clients: SocketAddr,
    pub admin: SocketAddr,
}

impl Gateway {
    /// Starts `suimon serve` on free ports, with these additional arguments.
    pub fn start(args: &[&str]) -> Gateway {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        all.extend(args);
        Gateway::of(suimon(&all))
    }

    /// Starts the gateway that a command is.
    pub fn of(command: Command) -> Gateway {
        let process = Running::of(command);
        let clients = address_in(&process.wait_out("  clients "));
        let admin = address_in(&process.wait_out("  operator "));
        Gateway { process, clients, admin }
    }

    pub fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }
}

/// Returns the address in the first URL of a line.
pub fn address_in(line: &str) -> SocketAddr {
    let rest = line.split("http://").nth(1).unwrap_or_else(|| panic!("no address in {line:?}"));
    rest.split([' ', ',', ';']).next().unwrap().parse().unwrap()
}

/// Returns status and body of a GET.
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    try_get(address, path).unwrap()
}

/// Returns status and body of a GET, or an error if there is no response.
pub fn try_get(address: SocketAddr, path: &str) -> std::io::Result<(u16, String)> {
    try_get_at(address, &address.to_string(), path)
}

/// The same of a host, whatever the address.
pub fn try_get_at(address: SocketAddr, host: &str, path: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONG))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_string();
    Ok((status.ok_or(std::io::ErrorKind::UnexpectedEof)?, body))
}

/// Clients that ask for pages until they are told to stop, and count what they get.
pub struct Load {
    ends: Arc<AtomicBool>,
    clients: Vec<thread::JoinHandle<()>>,
    pub served: Arc<AtomicU64>,
    pub failed: Arc<AtomicU64>,
}

impl Load {
    pub fn begin(address: SocketAddr, clients: usize, path: &'static str) -> Self {
        let (ends, served, failed) = <(Arc<AtomicBool>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let client = || {
            let (ends, served, failed) = (Arc::clone(&ends), Arc::clone(&served), Arc::clone(&failed));
            thread::spawn(move || {
                while !ends.load(Relaxed) {
                    match try_get(address, path) {
                        Ok((200, _)) => served.fetch_add(1, Relaxed),
                        answer => {
                            eprintln!("not served: {answer:?}");
                            failed.fetch_add(1, Relaxed)
                        }
                    };
                }
            })
        };
        let clients = (0..clients).map(|_| client()).collect();
        Load { clients, ends, served, failed }
    }

    /// Waits until so many more were served.
    pub fn until_served(&self, more: u64) {
        let before = self.served.load(Relaxed);
        until("requests are served", || self.served.load(Relaxed) >= before + more);
    }

    /// Returns how many were served and failed.
    pub fn end(self) -> (u64, u64) {
        self.ends.store(true, Relaxed);
        for client in self.clients {
            client.join().unwrap();
        }
        (self.served.load(Relaxed), self.failed.load(Relaxed))
    }
}
/// The bundled shop with a gateway in front of it.
pub struct Site {
    pub gateway: Gateway,
    shop: Running,
    url: String,
}

impl Site {
    /// Starts both; `args` are additional arguments of `suimon serve`.
    pub fn start(args: &[&str]) -> Site {
        let shop = Running::start(&["shop", "--port", "0", "--light-work", "20", "--search-repeats", "2"]);
        let url = format!("http://{}", address_in(&shop.wait_out("listening on")));
        Site::before(shop, url, args)
    }

    /// Ends the gateway as an operator would, and starts another one before the same shop.
    pub fn restart(self, args: &[&str]) -> Site {
        let Site { gateway, shop, url } = self;
        gateway.process.finish();
        Site::before(shop, url, args)
    }

    fn before(shop: Running, url: String, args: &[&str]) -> Site {
        // Refused visitors retry within a second, so that a run of some seconds has hundreds of
        // newcomers.
        let folder = tempfile::tempdir().unwrap();
        let settings = file(&folder, "suimon.toml", "[[session]]\nkind = \"visit\"\nwaiting_room = false\n");
        let gateway = Gateway::start(&[&["--to", &url, "--config", &settings], args].concat());
        Site { gateway, shop, url }
    }

    /// Plays `users` impatient visitors for `duration`. Each requests `pages` one after the other:
    /// "login", "browse", "browse-2", "search", "logout".
    pub fn visit(&self, users: u32, pages: &[&str], duration: &str) {
        let folder = tempfile::tempdir().unwrap();
        let steps: String = pages.iter().map(|page| step(page)).collect();
        let journey = format!(
            "seed = 7\n[arrivals.closed]\nusers = {users}\n[visitor]\nthink = \"20ms\"\npatience = \"2s\"\n\
             [visitor.on_refusal]\nwait_max = \"1s\"\n[[journey]]\nname = \"shopping\"\n{steps}"
        );
        let to = format!("http://{}", self.gateway.clients);
        let crowd =
            run(&["crowd", &file(&folder, "crowd.toml", &journey), "--to", &to, "--duration", duration]);
        assert_eq!(crowd.code, Some(0), "{crowd:?}");
    }

    /// Ends the gateway as an operator would.
    pub fn end(self) {
        self.gateway.process.finish();
    }
}

/// Records two runs of a gateway to the same file, with one session in the first and two in the
/// second. Returns the file; the first run's recording is renamed and stays in the same folder.
pub fn record_two_runs(folder: &Path) -> PathBuf {
    let recording = folder.join("gate.rec");
    let backend = Backend::start();
    for run in 0..2 {
        let gateway = Gateway::start(&["--to", &backend.url(), "--record", recording.to_str().unwrap()]);
        (0..=run).for_each(|item| assert_eq!(get(gateway.clients, &format!("/items/{item}")).0, 200));
        gateway.process.finish();
    }
    recording
}

fn step(page: &str) -> String {
    let asks = match page {
        "login" => "path = \"/login\"\nform = { user = \"user{user}\", password = \"secret\" }",
        "browse" => "path = \"/browse?page=1\"",
        "browse-2" => "path = \"/browse?page=2\"",
        "search" => "path = \"/search?q=chair\"",
        "logout" => "method = \"POST\"\npath = \"/logout\"",
        other => panic!("the shop has no page {other}"),
    };
    format!("[[journey.steps]]\nname = \"{page}\"\n{asks}\n")
}

/// A tiny application. It answers every GET with its path, and `/held` only after
/// [`Backend::let_go`].
pub struct Backend {
    pub address: SocketAddr,
    gate: Arc<(Mutex<bool>, Condvar)>,
    arrived: Receiver<String>,
}

impl Backend {
    pub fn start() -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (sender, arrived) = channel();
        let shared = Arc::clone(&gate);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (gate, sender) = (Arc::clone(&shared), sender.clone());
                thread::spawn(move || answer_all(&stream, &gate, &sender));
            }
        });
        Backend { address, gate, arrived }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until a request for `path` is in the application.
    pub fn wait_for(&self, path: &str) {
        while self.arrived.recv_timeout(LONG).expect("the request never arrived") != path {}
    }

    /// Answers all held requests.
    pub fn let_go(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }
}

fn answer_all(stream: &TcpStream, gate: &(Mutex<bool>, Condvar), arrived: &Sender<String>) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line == "\r\n" => break,
                Ok(_) => head.push_str(&line),
            }
        }
        let path = head.split(' ').nth(1).unwrap_or("").to_string();
        let _ = arrived.send(path.clone());
        if path == "/held" {
            let mut open = gate.0.lock().unwrap();
            while !*open {
                open = gate.1.wait(open).unwrap();
            }
        }
        let body = format!("you asked for {path}\n");
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
        if writer.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

/// Waits until this holds, however often it must be looked at.
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(comes_true(condition), "{what}: it does not come true");
}

/// Waits until this holds, and returns whether it does.
pub fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() >= LONG {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Returns whether a process runs: one that nobody has waited for does not.
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
