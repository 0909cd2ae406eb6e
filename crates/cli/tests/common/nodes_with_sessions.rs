//! Nodes that keep sessions in memory, and visitors who have some.

#![allow(dead_code, unreachable_pub, reason = "each test file is a crate of its own and uses its part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

use crate::common::{LONG, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

/// Keeps sessions in memory. Answers `NODE NUMBER`: its own name, and which request of the session this
/// is. `/leave` ends a session, and `/login` gives it another name.
const NODE: &str = r#"
use strict;
use IO::Socket::INET;
$SIG{PIPE} = "IGNORE";
my ($name, $suffix) = @ARGV;
my $listener = IO::Socket::INET->new_from_fd(0, "+<") or die $!;
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
pub struct Node {
    process: Child,
    pub address: SocketAddr,
}

impl Node {
    pub fn start(name: &str, suffix: &str) -> Node {
        Node::start_with(name, "127.0.0.1:0", suffix)
    }

    /// Starts a node at an address; port 0 takes a free one.
    pub fn start_at(name: &str, address: &str) -> Node {
        Node::start_with(name, address, "")
    }

    fn start_with(name: &str, address: &str, suffix: &str) -> Node {
        // It is handed on as standard input, and never free: another test would take it.
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let mut command = Command::new("perl");
        command.args(["-e", NODE, name, suffix]).stdin(OwnedFd::from(listener));
        Node { process: command.spawn().unwrap(), address }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // What a test says of nodes that are away is of no use if one has died.
        if let Ok(Some(status)) = self.process.try_wait()
            && thread::panicking()
        {
            eprintln!("the node at {} has ended: {status}", self.address);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A visitor who keeps cookies.
pub struct Visitor {
    pub gateway: SocketAddr,
    pub cookie: Option<String>,
}

impl Visitor {
    pub fn of(gateway: SocketAddr) -> Visitor {
        Visitor { gateway, cookie: None }
    }

    /// Returns the name of the node that has answered, and which request of the session it was.
    pub fn ask(&mut self, path: &str) -> std::io::Result<(String, u32)> {
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
pub struct Seen {
    /// Nodes, in their order.
    pub nodes: Vec<String>,
    /// Requests answered, ...
    pub answers: u32,
    /// ... by a node that did not know the session, but for the first.
    pub begun_anew: u32,
}

/// Visitors who ask again and again.
pub struct Crowd {
    ends: Arc<AtomicBool>,
    failed: Arc<AtomicU32>,
    seen: Arc<Mutex<Vec<Seen>>>,
    visitors: Vec<thread::JoinHandle<()>>,
}

impl Crowd {
    pub fn begin(gateway: SocketAddr, count: usize) -> Crowd {
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
    pub fn until_answered(&self, more: u32) {
        let before = self.seen();
        until("all visitors are answered", || {
            let seen = self.seen();
            seen.iter().zip(&before).all(|(seen, before)| seen.answers >= before.answers + more)
        });
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns what they have seen, and how many requests failed.
    pub fn end(self) -> (Vec<Seen>, u32) {
        self.ends.store(true, Relaxed);
        self.visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
        let seen = self.seen.lock().unwrap().clone();
        (seen, self.failed.load(Relaxed))
    }
}
