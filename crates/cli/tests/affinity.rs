//! `suimon serve` before nodes that keep sessions in memory: a session stays at its node, until that
//! is gone.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, LONG, file, get, run, suimon, until};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

/// Keeps sessions in memory. Answers `NODE NUMBER`: its own name, and which request of the session this
/// is. `/leave` ends a session, and `/login` gives it another name.
const NODE: &str = r#"
use strict;
use IO::Socket::INET;
my ($port, $name, $suffix) = @ARGV;
my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$port", Listen => 99, ReuseAddr => 1) or die $!;
my (%sessions, $count);
while (1) {
    my $stream = $listener->accept or next;
    my $line = <$stream> or next;
    my ($path, $id, $set) = (split(/ /, $line))[1];
    while (my $header = <$stream>) {
        last if $header eq "\r\n";
        $id = $1 if $header =~ /^cookie:.*\bSID=([^;\s]+)/i;
    }
    $id = $1 if !defined $id && $path =~ /;sid=([^;\/]+)/;
    if (!defined $id || !exists $sessions{$id}) {
        $id = sprintf("%s-%d-%d", $name, ++$count, rand(1e9)) . $suffix;
        $sessions{$id} = 0;
        $set = "SID=$id; Path=/; HttpOnly";
    }
    my $number = ++$sessions{$id};
    if ($path eq "/login") {
        my $new = "$id-in$suffix";
        $sessions{$new} = delete $sessions{$id};
        $set = "SID=$new; Path=/";
    }
    if ($path eq "/leave") { delete $sessions{$id}; $set = "SID=; Path=/; Max-Age=0"; }
    my $page = "$name $number";
    print $stream "HTTP/1.1 200 OK\r\nConnection: close\r\n" . ($set ? "Set-Cookie: $set\r\n" : "")
        . "Content-Length: " . length($page) . "\r\n\r\n$page";
}
"#;

/// A node that does not outlive the test.
struct Node {
    process: Child,
    address: SocketAddr,
}

impl Node {
    fn start(folder: &tempfile::TempDir, name: &str, suffix: &str) -> Node {
        let program = file(folder, "node.pl", NODE);
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let port = address.port().to_string();
        let mut command = Command::new("perl");
        command.args([&program, &port, name, suffix]).stdin(Stdio::null());
        let process = command.spawn().unwrap();
        until("a node listens", || TcpStream::connect(address).is_ok());
        Node { process, address }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A visitor who keeps cookies.
struct Visitor {
    gateway: SocketAddr,
    cookie: Option<String>,
}

impl Visitor {
    fn of(gateway: SocketAddr) -> Visitor {
        Visitor { gateway, cookie: None }
    }

    /// Returns the name of the node that has answered, and which request of the session it was.
    fn ask(&mut self, path: &str) -> std::io::Result<(String, u32)> {
        let mut stream = TcpStream::connect(self.gateway)?;
        stream.set_read_timeout(Some(LONG))?;
        let cookie = self.cookie.as_ref().map_or(String::new(), |cookie| format!("Cookie: SID={cookie}\r\n"));
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n{cookie}Connection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, page) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(std::io::Error::other(answer));
        }
        let set = head.lines().find_map(|line| line.strip_prefix("set-cookie: SID="));
        if let Some(set) = set.or_else(|| head.lines().find_map(|line| line.strip_prefix("Set-Cookie: SID=")))
        {
            let value = set.split(';').next().unwrap();
            self.cookie = (!value.is_empty()).then(|| value.to_owned());
        }
        let (name, number) = page.split_once(' ').unwrap();
        Ok((name.to_owned(), number.parse().unwrap()))
    }
}

/// What a visitor who asks again and again has seen.
#[derive(Clone, Default)]
struct Seen {
    /// Nodes, in their order.
    nodes: Vec<String>,
    /// Requests answered, ...
    answers: u32,
    /// ... by a node that did not know the session, but for the first.
    begun_anew: u32,
}

/// Visitors who ask again and again.
struct Crowd {
    ends: Arc<AtomicBool>,
    failed: Arc<AtomicU32>,
    seen: Arc<Mutex<Vec<Seen>>>,
    visitors: Vec<thread::JoinHandle<()>>,
}

impl Crowd {
    fn begin(gateway: SocketAddr, count: usize) -> Crowd {
        let (ends, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let seen = Arc::new(Mutex::new(vec![Seen::default(); count]));
        let visitors = (0..count).map(|index| {
            let (ends, failed, seen) = (Arc::clone(&ends), Arc::clone(&failed), Arc::clone(&seen));
            thread::spawn(move || {
                let mut visitor = Visitor::of(gateway);
                while !ends.load(Relaxed) {
                    let Ok((node, number)) = visitor.ask("/") else {
                        failed.fetch_add(1, Relaxed);
                        continue;
                    };
                    let mut seen = seen.lock().unwrap();
                    let seen = &mut seen[index];
                    seen.begun_anew += u32::from(number == 1 && seen.answers > 0);
                    seen.answers += 1;
                    if seen.nodes.last() != Some(&node) {
                        seen.nodes.push(node);
                    }
                }
            })
        });
        Crowd { visitors: visitors.collect(), ends, failed, seen }
    }

    /// Waits until each visitor was answered so many times more.
    fn until_answered(&self, more: u32) {
        let before = self.seen();
        until("all visitors are answered", || {
            let seen = self.seen();
            seen.iter().zip(&before).all(|(seen, before)| seen.answers >= before.answers + more)
        });
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns what they have seen, and how many requests failed.
    fn end(self) -> (Vec<Seen>, u32) {
        self.ends.store(true, Relaxed);
        self.visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
        let seen = self.seen.lock().unwrap().clone();
        (seen, self.failed.load(Relaxed))
    }
}

fn gateway(folder: &tempfile::TempDir, text: &str) -> Gateway {
    let settings = file(folder, "suimon.toml", text);
    let checked = run(&["check", &settings]);
    assert_eq!(checked.code, Some(0), "{}", checked.out);
    Gateway::start(&["--config", &settings, "--learned", "none"])
}

fn urls(nodes: &[Node]) -> String {
    let urls: Vec<String> = nodes.iter().map(|node| format!("{:?}", node.url())).collect();
    urls.join(", ")
}

fn metric(gateway: &Gateway, name: &str, node: &Node) -> u32 {
    let metrics = get(gateway.admin, "/metrics").1;
    let begin = format!("{name}{{node=\"{}\"}} ", node.url());
    let line = metrics.lines().find_map(|line| line.strip_prefix(&begin));
    line.unwrap_or_else(|| panic!("{begin}")).parse().unwrap()
}

#[test]
fn sessions_stay_at_their_nodes_and_only_those_of_a_node_that_is_killed_go_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut nodes: Vec<_> = ["a", "b", "c"].iter().map(|name| Node::start(&folder, name, "")).collect();
    let gateway = gateway(&folder, &format!("[upstream]\nnodes = [{}]\naffinity = \"SID\"\n", urls(&nodes)));
    let crowd = Crowd::begin(gateway.clients, 15);
    crowd.until_answered(20);
    let before = crowd.seen();
    assert!(before.iter().all(|seen| seen.nodes.len() == 1 && seen.begun_anew == 0));
    let homes: BTreeSet<_> = before.iter().map(|seen| seen.nodes[0].clone()).collect();
    // Whichever has the most: what was begun at once need not be at all of them.
    let count = |name: &str| before.iter().filter(|seen| seen.nodes[0] == name).count();
    let killed = homes.iter().max_by_key(|name| count(name)).unwrap().clone();
    let index = ["a", "b", "c"].iter().position(|name| *name == killed).unwrap();
    assert_eq!(metric(&gateway, "suimon_node_sessions", &nodes[index]), count(&killed) as u32);
    nodes[index].kill();
    crowd.until_answered(20);
    let (after, failed) = crowd.end();
    assert_eq!(failed, 0);
    for (before, after) in before.iter().zip(&after) {
        let moved = u32::from(before.nodes[0] == killed);
        assert_eq!(after.nodes.len() as u32, 1 + moved, "{:?}", after.nodes);
        assert_eq!(after.begun_anew, moved, "once, and never again");
    }
    gateway.process.wait_err("sessions that were at a node go elsewhere");
    assert_eq!(metric(&gateway, "suimon_node_released_sessions_total", &nodes[index]), count(&killed) as u32);
    let others = (0..3).filter(|other| *other != index);
    let lost: u32 =
        others.map(|other| metric(&gateway, "suimon_node_released_sessions_total", &nodes[other])).sum();
    assert_eq!(lost, 0);
    let shown = run(&["status", "--admin", &gateway.admin_url()]);
    assert!(shown.out.contains("sessions at it"), "{}", shown.out);
}

#[test]
fn a_session_keeps_its_node_over_a_log_in_and_without_cookies_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let nodes: Vec<_> = ["a", "b", "c"].iter().map(|name| Node::start(&folder, name, "")).collect();
    let gateway = gateway(&folder, &format!("[upstream]\nnodes = [{}]\naffinity = \"SID\"\n", urls(&nodes)));
    for _ in 0..5 {
        let mut visitor = Visitor::of(gateway.clients);
        let (home, _) = visitor.ask("/").unwrap();
        let first = visitor.cookie.clone();
        assert_eq!(visitor.ask("/login").unwrap(), (home.clone(), 2));
        assert_ne!(visitor.cookie, first);
        assert_eq!(visitor.ask("/").unwrap(), (home.clone(), 3));
        let id = visitor.cookie.take().unwrap();
        assert_eq!(visitor.ask(&format!("/page;sid={id}")).unwrap(), (home.clone(), 4));
        visitor.cookie = Some(id);
        assert_eq!(visitor.ask("/leave").unwrap(), (home, 5));
        assert_eq!(visitor.cookie, None);
    }
}

#[test]
fn a_gateway_that_never_saw_a_session_goes_by_the_name_of_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c"];
    let nodes: Vec<_> = names.iter().map(|name| Node::start(&folder, name, &format!(".{name}"))).collect();
    let settings = format!("[upstream]\nnodes = [{}]\naffinity = \"SID\"\n", urls(&nodes));
    let (one, other) = (gateway(&folder, &settings), gateway(&folder, &settings));
    // It learns the names from sessions of its own.
    let mut begun = [0; 3];
    while begun.iter().any(|begun| *begun < 3) {
        let (home, _) = Visitor::of(other.clients).ask("/").unwrap();
        begun[names.iter().position(|name| *name == home).unwrap()] += 1;
    }
    for _ in 0..10 {
        let mut visitor = Visitor::of(one.clients);
        let (home, _) = visitor.ask("/").unwrap();
        visitor.gateway = other.clients;
        assert_eq!(visitor.ask("/").unwrap(), (home, 2));
    }
}

#[test]
fn what_cannot_be_a_cookie_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("[upstream]\naffinity = \"a=b\"\n", "the name of a cookie"),
        ("[upstream]\naffinity = \"\"\n", "upstream.affinity"),
        ("[upstream]\naffinity = \"SID\"\naffinity_idle = \"1ms\"\n", "upstream.affinity_idle"),
        (
            "[upstream]\naffinity = \"SID\"\n[[pool]]\nname = \"app\"\ncommand = [\"app\", \"{port}\"]\n",
            "upstream.affinity",
        ),
    ] {
        let ran = run(&["check", &file(&folder, "suimon.toml", text)]);
        assert!(ran.code == Some(2) && ran.out.contains(expected), "{text}: {ran:?}");
    }
    let ran = suimon(&["check", &file(&folder, "suimon.toml", "[upstream]\naffinity = \"SID\"\n")]).output();
    let said = String::from_utf8(ran.unwrap().stdout).unwrap();
    assert!(said.contains("sessions stay at theirs by the cookie SID"), "{said}");
}
