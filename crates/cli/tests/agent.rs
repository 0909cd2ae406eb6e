//! `suimon agent`, and a gateway that chooses nodes by what agents report: real processes on loopback.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Gateway, LONG, Running, address_in, file, get, run, suimon, try_get, until};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use suimon_agent::datagram::{DATAGRAM_MAX, Load, Report};
use suimon_agent::keyring::{Keyring, file_text};
use suimon_agent::orca::OrcaReport;
use tempfile::TempDir;

/// A folder with a key, and settings that name it.
struct Place {
    folder: TempDir,
    keys: String,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("agent.keys").to_str().unwrap().to_owned();
        let made = run(&["agent", "--new-key", &keys]);
        assert_eq!(made.code, Some(0), "{made:?}");
        Place { folder, keys }
    }

    fn ring(&self) -> Keyring {
        Keyring::parse(&fs::read_to_string(&self.keys).unwrap()).unwrap()
    }

    /// Starts a gateway before these nodes that chooses among them in this way, and returns it with the
    /// address for load reports.
    fn gateway(&self, nodes: &[String], balance: &str, more: &str) -> (Gateway, SocketAddr) {
        let settings = format!(
            "[upstream]\nnodes = {nodes:?}\nbalance = \"{balance}\"\n[upstream.load_reports]\nlisten = \"127.0.0.1:0\"\nkeys = {:?}\n{more}",
            self.keys
        );
        let settings = file(&self.folder, "suimon.toml", &settings);
        let process = Running::start(&[
            "serve",
            "--config",
            &settings,
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ]);
        let clients = address_in(&process.wait_out("  clients "));
        let reports = process.wait_out("  nodes ");
        let reports = reports.split("udp://").nth(1).unwrap().parse().unwrap();
        let admin = address_in(&process.wait_out("  operator "));
        (Gateway { process, clients, admin }, reports)
    }

    /// Makes a folder that stands for `/proc` of a machine on which so many others than the agent run.
    fn machine(&self, name: &str, tasks: u32) -> Machine {
        let proc = self.folder.path().join(name);
        fs::create_dir_all(proc.join("pressure")).unwrap();
        let machine = Machine { proc };
        machine.runs(tasks);
        machine
    }

    /// Starts an agent of this node on this machine.
    fn agent(&self, machine: &Machine, node: &str, gateway: SocketAddr) -> Running {
        let agent = Running::start(&[
            "agent",
            "--node",
            node,
            "--to",
            &gateway.to_string(),
            "--keys",
            &self.keys,
            "--every",
            "100ms",
            "--processors",
            "1",
            "--proc",
            machine.proc.to_str().unwrap(),
        ]);
        agent.wait_out("reports the load");
        agent
    }
}

/// What stands for a machine.
struct Machine {
    proc: PathBuf,
}

impl Machine {
    fn runs(&self, tasks: u32) {
        // The agent itself is one more. Written whole, then named: it is read all the time.
        let text = format!("0.00 0.00 0.00 {}/4000 1\n", tasks + 1);
        fs::write(self.proc.join("next"), text).unwrap();
        fs::rename(self.proc.join("next"), self.proc.join("loadavg")).unwrap();
    }
}

fn state(gateway: &Gateway) -> Value {
    serde_json::from_str(&get(gateway.admin, "/api/state").1).unwrap()
}

/// Returns a number of the node's last report.
fn reported(gateway: &Gateway, node: usize, what: &str) -> Value {
    state(gateway)["nodes"][node]["report"][what].clone()
}

fn is_current(gateway: &Gateway, node: usize) -> bool {
    reported(gateway, node, "is_current") == true
}

/// Waits until the gateway believes that these nodes have so many tasks each, for longer than a mean
/// is taken over.
fn until_reported(gateway: &Gateway, tasks: &[f64]) {
    until("reports", || {
        tasks.iter().enumerate().all(|(node, tasks)| {
            reported(gateway, node, "run_queue_mean_100ms").as_f64() == Some(*tasks)
                && is_current(gateway, node)
        })
    });
}

fn picked(gateway: &Gateway) -> Vec<u64> {
    state(gateway)["nodes"].as_array().unwrap().iter().map(|node| node["picked"].as_u64().unwrap()).collect()
}

/// Returns how many of so many requests, one after the other, each node gets.
fn spread(gateway: &Gateway, requests: usize) -> Vec<u64> {
    let before = picked(gateway);
    for _ in 0..requests {
        assert_eq!(get(gateway.clients, "/x").0, 200);
    }
    picked(gateway).iter().zip(before).map(|(after, before)| after - before).collect()
}

/// Returns how many datagrams had this result.
fn datagrams(gateway: &Gateway, result: &str) -> u64 {
    state(gateway)["load_reports"]["datagrams"][result].as_u64().unwrap()
}

#[test]
fn requests_go_where_the_agents_report_less_load_and_to_all_when_they_are_gone() {
    let (place, backends) = (Place::new(), [Backend::start(), Backend::start()]);
    let urls: Vec<String> = backends.iter().map(Backend::url).collect();
    let (gateway, reports) = place.gateway(&urls, "reported", "");
    let machines = [place.machine("a", 40), place.machine("b", 0)];
    let agents = [0, 1].map(|node| place.agent(&machines[node], &urls[node], reports));
    until_reported(&gateway, &[40.0, 0.0]);
    assert_eq!(spread(&gateway, 10), [0, 10]);
    machines[0].runs(0);
    machines[1].runs(40);
    until_reported(&gateway, &[0.0, 40.0]);
    assert_eq!(spread(&gateway, 10), [10, 0]);

    let (_, metrics) = get(gateway.admin, "/metrics");
    for wanted in [
        format!("suimon_node_reported_load_ratio{{node=\"{}\"}} 40\n", urls[1]),
        format!("suimon_node_report_current{{node=\"{}\"}} 1\n", urls[0]),
        "suimon_agent_datagrams_total{result=\"bad_mac\"} 0\n".to_owned(),
    ] {
        assert!(metrics.contains(&wanted), "{wanted}: {metrics}");
    }
    let status = run(&["status", "--admin", &gateway.admin_url()]);
    assert!(status.out.contains("reported load 40.00 per processor"), "{status:?}");

    // One agent ends as an operator ends it. Then its node's load is not known, and shares count.
    let [first, second] = agents;
    second.finish();
    until("the report is too old", || !is_current(&gateway, 1));
    let shared = spread(&gateway, 20);
    assert!(shared.iter().all(|requests| *requests > 0), "{shared:?}");
    // The next run of the agent is believed at once.
    let again = place.agent(&machines[1], &urls[1], reports);
    until_reported(&gateway, &[0.0, 40.0]);
    assert_eq!(spread(&gateway, 10), [10, 0]);
    assert_eq!(datagrams(&gateway, "old_boot"), 0);
    first.finish();
    again.finish();
    gateway.process.finish();
}

#[test]
fn by_the_papers_rule_a_connection_stays_with_the_node_it_began_with() {
    let (place, backends) = (Place::new(), [Backend::start(), Backend::start()]);
    let urls: Vec<String> = backends.iter().map(Backend::url).collect();
    let (gateway, reports) = place.gateway(&urls, "paper", "");
    let machines = [place.machine("a", 5), place.machine("b", 9)];
    let _agents = [0, 1].map(|node| place.agent(&machines[node], &urls[node], reports));
    until_reported(&gateway, &[5.0, 9.0]);
    let mut kept = BufReader::new(TcpStream::connect(gateway.clients).unwrap());
    let mut ask = || {
        write!(kept.get_mut(), "GET /x HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            assert!(kept.read_line(&mut line).unwrap() > 0);
            if let Some(told) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = told.trim().parse().unwrap();
            }
        }
        kept.read_exact(&mut vec![0; length]).unwrap();
    };
    ask();
    assert_eq!(picked(&gateway), [1, 0]);
    machines[0].runs(50);
    until_reported(&gateway, &[50.0, 9.0]);
    for _ in 0..5 {
        ask();
    }
    assert_eq!(picked(&gateway), [6, 0], "the connection stays");
    assert_eq!(spread(&gateway, 5), [0, 5], "new ones go elsewhere");
}

/// An agent's reports for a node, made by hand.
struct Run {
    name: String,
    boot_us: u64,
    began: Instant,
    sequence: u64,
}

impl Run {
    fn of(name: &str) -> Run {
        Run { name: name.to_owned(), boot_us: clock_us(), began: Instant::now(), sequence: 0 }
    }

    fn report(&mut self, tasks: u32) -> Report {
        self.sequence += 1;
        Report {
            name: self.name.clone(),
            boot_us: self.boot_us,
            sequence: self.sequence,
            since_boot: Duration::from_micros(self.began.elapsed().as_micros() as u64),
            clock_us: clock_us(),
            load: Load {
                every: Duration::from_secs(1),
                run_queue: tasks,
                mean_100ms_milli: tasks * 1000,
                mean_1s_milli: tasks * 1000,
                pressure: None,
                in_flight: Some(3),
                processors: 1,
            },
        }
    }
}

fn clock_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

#[test]
fn what_is_forged_repeated_old_or_malformed_is_counted_and_changes_nothing() {
    let (place, backends) = (Place::new(), [Backend::start(), Backend::start()]);
    let urls: Vec<String> = backends.iter().map(Backend::url).collect();
    let (gateway, reports) = place.gateway(&urls, "reported", "");
    let ring = place.ring();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |result: &str, bytes: &[u8]| {
        let before = datagrams(&gateway, result);
        socket.send_to(bytes, reports).unwrap();
        until(result, || datagrams(&gateway, result) == before + 1);
    };
    let mut run = Run::of(&urls[0]);
    run.began -= Duration::from_secs(60);
    run.boot_us -= 60_000_000;
    let mut sealed = |change: &dyn Fn(&mut Report)| {
        let mut report = run.report(1);
        change(&mut report);
        report.encode(&ring).unwrap()
    };
    let first = sealed(&|_| {});
    send("accepted", &first);
    assert_eq!(reported(&gateway, 0, "run_queue"), 1);

    send("replayed", &first);
    send("too_short", &[]);
    send("too_short", &first[..first.len() - 1]);
    send("too_long", &[0; DATAGRAM_MAX + 1]);
    send("too_long", &[7; 9000]);
    send("bad_magic", &[b'x'; 200]);
    let with = |at: usize, value: u8| {
        let mut bytes = first.clone();
        bytes[at] = value;
        bytes
    };
    send("bad_version", &with(4, 9));
    send("unknown_key", &with(5, 9));
    send("bad_mac", &with(47, 99));
    let strangers = Keyring::parse(&file_text(0, &[1; 32])).unwrap();
    send("bad_mac", &Run::of(&urls[0]).report(99).encode(&strangers).unwrap());
    send("unknown_node", &Run::of("http://127.0.0.1:1").report(99).encode(&ring).unwrap());
    // A recording of a run before this one, whose clock is right by chance.
    send("old_boot", &sealed(&|report| report.boot_us -= 1_000_000));
    send("late", &sealed(&|report| report.since_boot -= Duration::from_secs(30)));
    // The first report of a run with a clock of yesterday.
    let mut yesterday = Run::of(&urls[1]);
    let yesterday = Report { clock_us: clock_us() - 86_400_000_000, ..yesterday.report(99) };
    send("clock_skew", &yesterday.encode(&ring).unwrap());

    assert_eq!(datagrams(&gateway, "accepted"), 1);
    assert_eq!(reported(&gateway, 0, "run_queue"), 1, "all of that changed nothing");
    assert_eq!(reported(&gateway, 1, "run_queue"), Value::Null);
    assert_eq!(get(gateway.clients, "/x").0, 200);
    gateway.process.wait_err("a load report is refused");
    // What is genuine is still believed.
    send("accepted", &sealed(&|_| {}));
}

#[test]
fn a_gateway_that_starts_anew_believes_the_agent_and_not_its_recordings() {
    let (place, backends) = (Place::new(), [Backend::start(), Backend::start()]);
    let urls: Vec<String> = backends.iter().map(Backend::url).collect();
    let ring = place.ring();
    let mut run = Run::of(&urls[0]);
    // Heard a minute ago, by a gateway that has ended.
    (run.began, run.boot_us) = (run.began - Duration::from_secs(90), run.boot_us - 90_000_000);
    let recording = {
        let mut report = run.report(0);
        report.since_boot -= Duration::from_secs(60);
        report.clock_us -= 60_000_000;
        report.encode(&ring).unwrap()
    };
    let (gateway, reports) = place.gateway(&urls, "reported", "");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&recording, reports).unwrap();
    until("the recording is refused", || datagrams(&gateway, "clock_skew") == 1);
    socket.send_to(&run.report(7).encode(&ring).unwrap(), reports).unwrap();
    until("the agent is believed", || reported(&gateway, 0, "run_queue") == 7);
    socket.send_to(&recording, reports).unwrap();
    until("the recording is refused", || datagrams(&gateway, "replayed") == 1);
    assert_eq!(reported(&gateway, 0, "run_queue"), 7);
}

/// Returns the bytes that a TCP server sends until it closes; `said` is sent to it first.
fn told(address: &str, said: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(said).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn agent_check_is_answered_with_one_line_as_haproxy_reads_it() {
    let place = Place::new();
    let machine = place.machine("a", 8);
    let drain = place.folder.path().join("drain");
    let (proc, drain_file) = (machine.proc.to_str().unwrap(), drain.to_str().unwrap());
    let start = |more: &[&str]| {
        let mut args = vec![
            "agent",
            "--agent-check",
            "127.0.0.1:0",
            "--processors",
            "2",
            "--proc",
            proc,
            "--every",
            "10ms",
        ];
        args.extend(more);
        let agent = Running::start(&args);
        let line = agent.wait_out("answers agent-check on ");
        let address = line.rsplit(' ').next().unwrap().to_owned();
        (agent, address)
    };
    let (agent, address) = start(&[]);
    // Four tasks for each processor: each gets a quarter of one.
    until("the weight", || told(&address, b"") == "25%\n");
    assert_eq!(told(&address, b"backend/server\n"), "25%\n", "whatever agent-send says");
    machine.runs(0);
    until("the weight", || told(&address, b"") == "100%\n");
    agent.finish();

    let (agent, address) = start(&["--drain", drain_file]);
    until("in service", || told(&address, b"") == "ready 100%\n");
    fs::write(&drain, "").unwrap();
    assert_eq!(told(&address, b""), "drain 100%\n");
    fs::remove_file(&drain).unwrap();
    assert_eq!(told(&address, b""), "ready 100%\n");
    agent.finish();
}

#[test]
fn the_load_is_answered_over_http_as_json_and_in_the_header() {
    let place = Place::new();
    let machine = place.machine("a", 3);
    let in_flight = file(&place.folder, "in_flight", "17\n");
    let agent = Running::start(&[
        "agent",
        "--http",
        "127.0.0.1:0",
        "--processors",
        "2",
        "--proc",
        machine.proc.to_str().unwrap(),
        "--in-flight",
        &in_flight,
        "--every",
        "10ms",
    ]);
    let address = address_in(&agent.wait_out("answers http://").replace("/load", " "));
    let is = |report: &OrcaReport| {
        let utilization = report.cpu_utilization;
        (utilization - 1.5).abs() < 1e-9
            && [("run_queue", 3.0), ("processors", 2.0), ("requests_in_flight", 17.0)]
                .iter()
                .all(|(name, value)| report.named_metrics.get(*name) == Some(value))
    };
    let (status, json) = get(address, "/load");
    assert_eq!(status, 200);
    assert!(is(&OrcaReport::parse(format!("JSON {json}").as_bytes()).unwrap()), "{json}");
    let answer = told(&address.to_string(), b"GET /load HTTP/1.1\r\nHost: a\r\n\r\n");
    let header = answer.lines().find_map(|line| line.strip_prefix("endpoint-load-metrics: ")).unwrap();
    assert!(is(&OrcaReport::parse(header.as_bytes()).unwrap()), "{header}");
    assert_eq!(get(address, "/").0, 404);
    let answer = told(&address.to_string(), b"POST /load HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    // Who says nothing, and who says nonsense, does not keep others from an answer.
    let _silent: Vec<_> = (0..10).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(told(&address.to_string(), b"\0\0\0\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert_eq!(get(address, "/load").0, 200);
    agent.finish();
}

#[test]
fn a_load_that_cannot_be_read_any_more_is_not_told() {
    let place = Place::new();
    let machine = place.machine("a", 3);
    let proc = machine.proc.to_str().unwrap();
    let agent = Running::start(&[
        "agent",
        "--http",
        "127.0.0.1:0",
        "--agent-check",
        "127.0.0.1:0",
        "--processors",
        "1",
        "--proc",
        proc,
    ]);
    let line = agent.wait_out("answers agent-check on ");
    let checked = line.rsplit(' ').next().unwrap();
    let address = address_in(&agent.wait_out("answers http://").replace("/load", " "));
    assert_eq!(get(address, "/load").0, 200);
    fs::remove_file(machine.proc.join("loadavg")).unwrap();
    agent.wait_err("cannot be read any more");
    until("it is not known", || get(address, "/load").0 == 503);
    assert_eq!(told(checked, b""), "\n", "HAProxy keeps the weight that it has");
    machine.runs(1);
    until("it is known again", || get(address, "/load").0 == 200);
    agent.finish();
}

#[test]
fn the_real_load_of_this_machine_is_reported() {
    let agent = Running::start(&["agent", "--http", "127.0.0.1:0"]);
    let address = address_in(&agent.wait_out("answers http://").replace("/load", " "));
    let (_, json) = get(address, "/load");
    let report = OrcaReport::parse(format!("JSON {json}").as_bytes()).unwrap();
    let online = thread::available_parallelism().unwrap().get() as f64;
    assert!(report.named_metrics["processors"] >= online, "{json}");
    assert!(report.named_metrics.contains_key("run_queue"), "{json}");
    agent.finish();
}

#[test]
fn what_is_wrong_is_told_with_the_remedy() {
    let place = Place::new();
    let readable = file(&place.folder, "readable", &file_text(0, &[1; 32]));
    fs::set_permissions(&readable, fs::Permissions::from_mode(0o644)).unwrap();
    let mode = fs::metadata(&place.keys).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "a new key is its owner's alone");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let node = ["agent", "--node", "http://127.0.0.1:1", "--to", "127.0.0.1:2"];
    let with = |more: &[&'static str]| [&node[..], more].concat();
    let keys: &str = &place.keys;
    for (args, code, part) in [
        (vec!["agent"], 2, "--agent-check"),
        (with(&[]), 2, "--keys"),
        ([&node[..], &["--keys", "/nowhere/agent.keys"]].concat(), 2, "--new-key"),
        ([&node[..], &["--keys", &readable]].concat(), 2, "chmod 600"),
        ([&node[..], &["--keys", keys, "--every", "5ms"]].concat(), 2, "10ms to 1s"),
        ([&node[..], &["--keys", keys, "--to", "gateway"]].concat(), 2, "HOST:PORT"),
        (vec!["agent", "--node", "127.0.0.1:1", "--to", "127.0.0.1:2", "--keys", keys], 2, "no scheme"),
        (vec!["agent", "--drain", "/x", "--http", "127.0.0.1:0"], 2, "--agent-check"),
        (vec!["agent", "--new-key", keys], 2, "already"),
        (vec!["agent", "--new-key", "/nowhere/agent.keys"], 1, "cannot be written"),
        (vec!["agent", "--agent-check", &taken], 1, "choose another address"),
        (vec!["agent", "--http", "127.0.0.1:0", "--proc", "/nowhere"], 1, "--proc"),
    ] {
        let ran = run(&args);
        assert!(ran.code == Some(code) && ran.err.contains(part), "{args:?}: {ran:?}");
    }
    let help = run(&["agent", "--help"]);
    assert!(help.out.contains("Examples:") && help.out.contains("Exit codes:"), "{help:?}");
    // The gateway is as strict.
    let settings = format!("[upstream.load_reports]\nlisten = \"127.0.0.1:0\"\nkeys = {readable:?}\n");
    let settings = file(&place.folder, "open.toml", &settings);
    for command in ["check", "serve"] {
        let mut args = vec![command];
        args.extend(if command == "serve" { vec!["--config", &*settings] } else { vec![&*settings] });
        let ran = run(&args);
        assert!(ran.code == Some(2) && format!("{ran:?}").contains("chmod 600"), "{command}: {ran:?}");
    }
}

/// Starts a server whose every answer has these headers.
fn backend_with(headers: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                let mut line = String::new();
                while matches!(reader.read_line(&mut line), Ok(1..)) {
                    if line == "\r\n" {
                        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{headers}\r\n");
                        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                    line.clear();
                }
            });
        }
    });
    format!("http://{address}")
}

#[test]
fn reports_in_responses_are_used_and_taken_out_only_where_that_is_asked_for() {
    const BUSY: &str = "endpoint-load-metrics: TEXT cpu_utilization=0.9\r\n";
    const IDLE: &str =
        "endpoint-load-metrics-bin: CZqZmZmZmbk/MQAAAAAAAABA\r\nendpoint-load-metrics: nonsense\r\n";
    let nodes = [backend_with(BUSY), backend_with(IDLE)];
    let folder = tempfile::tempdir().unwrap();
    let start = |balance: &str, orca: bool| {
        let settings = format!(
            "[upstream]\nnodes = {nodes:?}\nbalance = \"{balance}\"\n[upstream.load_reports]\norca = {orca}\n"
        );
        let settings = file(&folder, &format!("{balance}.toml"), &settings);
        Gateway::start(&["--config", &settings])
    };
    let ask = |gateway: &Gateway| {
        let request = b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        told(&gateway.clients.to_string(), request).to_ascii_lowercase()
    };
    let off = start("shares", false);
    assert!(ask(&off).contains("endpoint-load-metrics"), "it is none of the gateway's business");
    let seen = state(&off);
    assert_eq!((&seen["load_reports"], &seen["nodes"][0]["report"]), (&Value::Null, &Value::Null));
    assert!(!get(off.admin, "/metrics").1.contains("suimon_orca_responses_total{"));

    let on = start("reported", true);
    // Until both have answered, shares choose; they take turns.
    until("both have reported", || {
        assert!(!ask(&on).contains("endpoint-load-metrics"));
        (0..2).all(|node| reported(&on, node, "source") == "response" && is_current(&on, node))
    });
    let busy = reported(&on, 0, "load").as_f64().unwrap();
    assert!((busy - 0.9).abs() < 1e-9, "{busy}");
    // The report of the busy one must be young for that, so the whole is tried until it was.
    until("the idle one gets all", || {
        let before = picked(&on);
        for _ in 0..5 {
            ask(&on);
        }
        let after = picked(&on);
        after[0] == before[0] && after[1] == before[1] + 5
    });
    assert!(state(&on)["load_reports"]["responses"]["accepted"].as_u64().unwrap() > 5);
}

#[test]
fn without_reports_nothing_is_said_of_them() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    assert_eq!(get(gateway.clients, "/x").0, 200);
    let (_, metrics) = get(gateway.admin, "/metrics");
    assert!(!metrics.contains("suimon_agent_datagrams_total{"), "{metrics}");
    let seen = state(&gateway);
    assert_eq!((&seen["load_reports"], &seen["nodes"][0]["report"]), (&Value::Null, &Value::Null));
}

/// A real HAProxy, ended with the test.
struct HaProxy {
    process: Child,
    socket: PathBuf,
}

impl HaProxy {
    /// Starts it before a server whose agent listens there.
    fn start(place: &Place, agent_port: &str) -> HaProxy {
        let socket = place.folder.path().join("haproxy.sock");
        let settings = format!(
            "global\n stats socket {} mode 600 level admin\n\
             defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
             frontend f\n bind unix@{}\n default_backend b\n\
             backend b\n server a 127.0.0.1:9 weight 100 agent-check agent-addr 127.0.0.1 agent-port {agent_port} agent-inter 50ms agent-send b/a\\n\n",
            socket.display(),
            place.folder.path().join("clients.sock").display()
        );
        let settings = file(&place.folder, "haproxy.cfg", &settings);
        // Daemons live where an ordinary user's PATH does not look.
        let path = format!("{}:/usr/local/sbin:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f", &settings]).env("PATH", path).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("haproxy is not installed: scripts/setup");
        HaProxy { process, socket }
    }

    /// Returns a field of its server in `show stat`.
    fn server(&self, field: &str) -> Option<String> {
        let mut stream = std::os::unix::net::UnixStream::connect(&self.socket).ok()?;
        stream.write_all(b"show stat\n").ok()?;
        let mut table = String::new();
        stream.read_to_string(&mut table).ok()?;
        let names = table.lines().next()?.trim_start_matches("# ").split(',');
        let server = table.lines().find(|line| line.starts_with("b,a,"))?.split(',');
        names.zip(server).find(|(name, _)| *name == field).map(|(_, value)| value.to_owned())
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_real_haproxy_takes_weight_and_state_from_the_agent() {
    let place = Place::new();
    let machine = place.machine("a", 4);
    let drain = place.folder.path().join("drain");
    let mut command =
        suimon(&["agent", "--agent-check", "127.0.0.1:0", "--processors", "1", "--every", "10ms"]);
    command.args(["--proc", machine.proc.to_str().unwrap(), "--drain", drain.to_str().unwrap()]);
    let agent = Running::of(command);
    let line = agent.wait_out("answers agent-check on ");
    let haproxy = HaProxy::start(&place, line.rsplit(':').next().unwrap());
    let is = |field: &str, value: &str| haproxy.server(field).as_deref() == Some(value);
    until("a weight of a quarter", || is("weight", "25"));
    machine.runs(2);
    until("a weight of a half", || is("weight", "50"));
    fs::write(&drain, "").unwrap();
    until("it drains", || haproxy.server("status").is_some_and(|status| status.starts_with("DRAIN")));
    fs::remove_file(&drain).unwrap();
    machine.runs(0);
    until("it is back in service", || {
        is("weight", "100") && haproxy.server("status").is_some_and(|status| !status.starts_with("DRAIN"))
    });
    agent.finish();
}

#[test]
fn a_gateway_that_is_not_there_yet_is_told_once_it_is() {
    let (place, backend) = (Place::new(), Backend::start());
    let other = Backend::start();
    // The port is free, and stays so as nothing else binds UDP here.
    let reports = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let machine = place.machine("a", 6);
    let agent = place.agent(&machine, &backend.url(), reports);
    let settings = format!(
        "[upstream]\nnodes = {:?}\n[upstream.load_reports]\nlisten = \"{reports}\"\nkeys = {:?}\n",
        [backend.url(), other.url()],
        place.keys
    );
    let settings = file(&place.folder, "later.toml", &settings);
    let gateway = Gateway::start(&["--config", &settings]);
    until("it is told", || reported(&gateway, 0, "run_queue") == 6);
    // Chosen by shares: the report is shown, and no more.
    assert!(spread(&gateway, 10).iter().all(|requests| *requests > 0));
    assert!(try_get(gateway.admin, "/readyz").is_ok());
    agent.finish();
}
