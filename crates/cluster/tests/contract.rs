//! What every provider that starts nodes must do, with real processes.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;
use suimon_cluster::{Hook, NodeEvent, NodeWord, Processes, Provided, Provider, ProviderView};
use suimon_params::nodes::{HookParams, LifecycleParams, ProcessesParams};
use suimon_params::pool::CommandParams;
use suimon_params::upstream::{NodeAddress, NodeParams};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// Long enough for a busy machine, short enough for a person: anything slower hangs.
const HANGS: Duration = Duration::from_secs(30);

/// A web server that answers its path `/ready` with success.
const SERVER: &str = r#"
use strict;
use IO::Socket::INET;
my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$ARGV[0]", Listen => 9, ReuseAddr => 1) or die $!;
while (my $stream = $listener->accept) {
    my $line = <$stream>;
    print $stream "HTTP/1.1 " . (defined $line && $line =~ m{/ready} ? 200 : 404) . " x\r\nContent-Length: 0\r\n\r\n";
    close $stream;
}
"#;

/// Starts servers that go on when it ends, with their numbers in files.
const HOOK: &str = r#"#!/bin/sh
set -e
cd "$(dirname "$0")"
case "$1" in
start)
    port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(LocalAddr=>"127.0.0.1:0",Listen=>1)->sockport')
    perl server.pl "$port" >/dev/null 2>&1 &
    echo $! > "node-$port"
    echo "it is started"
    echo "http://127.0.0.1:$port" ;;
stop)
    kill -9 "$(cat "node-${2##*:}")"
    rm "node-${2##*:}" ;;
list)
    for file in node-*; do if [ -e "$file" ]; then echo "http://127.0.0.1:${file#node-}"; fi; done ;;
esac
"#;

struct Site {
    folder: TempDir,
}

impl Site {
    fn new() -> Site {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("server.pl"), SERVER).unwrap();
        fs::write(folder.path().join("hook.sh"), HOOK).unwrap();
        Site { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn processes(&self) -> Box<dyn Provider> {
        self.processes_of(&["perl", &self.path("server.pl"), "{port}"], "/ready")
    }

    fn processes_of(&self, words: &[&str], ready: &str) -> Box<dyn Provider> {
        self.processes_with(words, Some(ready.to_owned()))
    }

    fn processes_with(&self, words: &[&str], ready_path: Option<String>) -> Box<dyn Provider> {
        let params = ProcessesParams {
            command: command(words),
            ready_path,
            stop_within: Duration::from_secs(5),
            output: Some(self.folder.path().join("output")),
        };
        Box::new(Processes::new(params, lifecycle()))
    }

    fn hook(&self) -> Box<dyn Provider> {
        let ready_path = Some("/ready".to_owned());
        let command = command(&["sh", &self.path("hook.sh")]);
        Box::new(Hook::new(HookParams { command, ready_path, within: HANGS }, lifecycle()))
    }
}

/// What the program does in a test, before it does its work: `start` waits until there is a file `go`.
const WAITS: &str = r#"
if [ "$1" = start ]; then touch begun; while [ ! -e go ]; do sleep 0.02; done; fi
"#;

impl Site {
    /// A program that does this first, and writes down each run and how it ended.
    fn hook_that(&self, first: &str, lifecycle: LifecycleParams) -> Box<dyn Provider> {
        self.hook_within(HANGS, first, lifecycle)
    }

    fn hook_within(&self, within: Duration, first: &str, lifecycle: LifecycleParams) -> Box<dyn Provider> {
        let (head, work) = HOOK.split_once("case").unwrap();
        let text =
            format!("{head}echo \"$1\" >> runs\ntrap 'echo \"$1 $?\" >> ends' EXIT\n{first}\ncase{work}");
        fs::write(self.folder.path().join("hook.sh"), text).unwrap();
        let command = command(&["sh", &self.path("hook.sh")]);
        let ready_path = Some("/ready".to_owned());
        Box::new(Hook::new(HookParams { command, ready_path, within }, lifecycle))
    }

    fn touch(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    fn has(&self, name: &str) -> bool {
        fs::exists(self.path(name)).unwrap()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn nodes(&self) -> usize {
        let files = fs::read_dir(self.folder.path()).unwrap().flatten();
        files.filter(|file| file.file_name().to_string_lossy().starts_with("node-")).count()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for file in fs::read_dir(self.folder.path()).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("node-") {
                let pid = fs::read_to_string(file.path()).unwrap();
                let _ = std::process::Command::new("kill").args(["-KILL", pid.trim()]).status();
            }
        }
    }
}

fn command(words: &[&str]) -> CommandParams {
    CommandParams {
        program: PathBuf::from(words[0]),
        arguments: words[1..].iter().map(ToString::to_string).collect(),
        environment: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
        ..CommandParams::default()
    }
}

fn lifecycle() -> LifecycleParams {
    LifecycleParams { parked: 0, most: 8, start_within: HANGS, drain_within: HANGS }
}

/// A provider under test, and the nodes that it says serve.
struct Seen {
    provided: Provided,
    serving: Vec<NodeParams>,
}

impl Seen {
    fn of(provider: Box<dyn Provider>, wanted: u32) -> Seen {
        Seen { provided: provider.begin(wanted), serving: vec![] }
    }

    async fn next(&mut self) -> NodeEvent {
        let event = timeout(HANGS, self.provided.events.recv()).await.expect("it says nothing").unwrap();
        match &event {
            NodeEvent::Ready(node) => self.serving.push(node.clone()),
            NodeEvent::Draining(node) | NodeEvent::Gone(node) => self.serving.retain(|it| it != node),
        }
        event
    }

    async fn until_serving(&mut self, count: usize) {
        while self.serving.len() != count {
            self.next().await;
        }
    }

    async fn say(&self, word: NodeWord) {
        self.provided.words.send(word).await.unwrap();
    }

    /// Waits until it has heard every word so far.
    async fn until_heard(&self) {
        until(|| self.provided.words.capacity() == self.provided.words.max_capacity()).await;
    }

    async fn until_view(&mut self, is_meant: impl Fn(&ProviderView) -> bool) -> ProviderView {
        timeout(HANGS, self.provided.view.wait_for(is_meant))
            .await
            .expect("it never shows that")
            .unwrap()
            .clone()
    }

    /// Lets it go, and waits until it has ended.
    async fn end(self) {
        drop(self.provided.wanted);
        timeout(HANGS, self.provided.task).await.expect("it does not end").unwrap();
    }
}

fn is_there(node: &NodeParams) -> bool {
    let NodeAddress::Tcp { host, port } = &node.address else { panic!("{node}") };
    TcpStream::connect((host.as_str(), *port)).is_ok()
}

fn ask(node: &NodeParams) {
    let NodeAddress::Tcp { host, port } = &node.address else { panic!("{node}") };
    let Ok(mut stream) = TcpStream::connect((host.as_str(), *port)) else { return };
    let _ = stream.write_all(b"GET /ready HTTP/1.1\r\n\r\n").and_then(|()| stream.read_to_end(&mut vec![]));
}

fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn until_gone(node: &NodeParams) {
    until(|| !is_there(node)).await;
}

async fn until(is_so: impl Fn() -> bool) {
    let becomes = async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(HANGS, becomes).await.expect("that never comes");
}

/// Plays what every provider must do.
async fn keeps_the_contract(provider: Box<dyn Provider>, outlive: bool) {
    let mut seen = Seen::of(provider, 2);
    seen.until_serving(2).await;
    assert!(seen.serving.iter().all(is_there), "what is ready can be reached");

    // Fewer: one drains, and ends once it has nothing left.
    seen.provided.wanted.send_replace(1);
    let NodeEvent::Draining(drained) = seen.next().await else { panic!("nothing drains") };
    assert!(is_there(&drained), "its requests go on");
    seen.say(NodeWord::Empty(drained.clone())).await;
    assert_eq!(seen.next().await, NodeEvent::Gone(drained.clone()));
    until_gone(&drained).await;

    // More, and back before the one that drains has ended.
    seen.provided.wanted.send_replace(2);
    seen.until_serving(2).await;
    seen.provided.wanted.send_replace(1);
    let NodeEvent::Draining(drained) = seen.next().await else { panic!("nothing drains") };
    seen.provided.wanted.send_replace(2);
    assert_eq!(seen.next().await, NodeEvent::Ready(drained), "it comes back");

    // One that is down goes first, however old it is.
    let down = seen.serving[0].clone();
    seen.say(NodeWord::Down(down.clone())).await;
    seen.until_heard().await;
    seen.provided.wanted.send_replace(1);
    assert_eq!(seen.next().await, NodeEvent::Draining(down.clone()));
    seen.say(NodeWord::Empty(down.clone())).await;
    assert_eq!(seen.next().await, NodeEvent::Gone(down));
    seen.provided.wanted.send_replace(2);
    seen.until_serving(2).await;

    // One that answers nothing is replaced.
    let lost = seen.serving[0].clone();
    seen.say(NodeWord::Lost(lost.clone())).await;
    assert_eq!(seen.next().await, NodeEvent::Gone(lost.clone()));
    seen.until_serving(2).await;
    until_gone(&lost).await;
    let view = seen.until_view(|view| view.starting == 0 && view.start_s.is_some()).await;
    assert_eq!((view.parked, view.found, view.trouble), (0, Some(0), None));

    let all = seen.serving.clone();
    seen.end().await;
    for node in &all {
        if outlive {
            assert!(is_there(node), "it goes on");
        } else {
            until_gone(node).await;
        }
    }
}

#[tokio::test]
async fn processes_keep_the_contract() {
    let site = Site::new();
    keeps_the_contract(site.processes(), false).await;
}

#[tokio::test]
async fn a_program_that_starts_nodes_keeps_the_contract() {
    let site = Site::new();
    keeps_the_contract(site.hook(), true).await;
}

#[tokio::test]
async fn a_process_that_is_killed_is_replaced_and_its_cpu_time_counted() {
    let site = Site::new();
    let mut seen = Seen::of(site.processes(), 2);
    seen.until_serving(2).await;
    let NodeAddress::Tcp { port, .. } = seen.serving[0].address else { panic!() };
    let found = std::process::Command::new("pkill")
        .args(["-KILL", "-f", &format!("{} {port}$", site.path("server.pl"))])
        .status()
        .unwrap();
    assert!(found.success());
    let dead = seen.serving[0].clone();
    assert_eq!(seen.next().await, NodeEvent::Gone(dead));
    seen.until_serving(2).await;
    let has_worked = |seen: &Seen| seen.provided.view.borrow().cpu_s.is_some_and(|cpu| cpu > 0.0);
    let works = async {
        while !has_worked(&seen) {
            seen.serving.iter().for_each(ask);
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(HANGS, works).await.expect("its CPU time is never counted");
    seen.end().await;
}

#[tokio::test]
async fn a_program_that_ends_at_once_is_told_with_its_last_words() {
    let site = Site::new();
    let mut seen =
        Seen::of(site.processes_of(&["sh", "-c", "echo no beans for {port}; exit 3"], "/never"), 1);
    let view = seen.until_view(|view| view.trouble.is_some()).await;
    let trouble = view.trouble.unwrap();
    assert!(trouble.contains("exit status: 3") && trouble.contains("no beans for "), "{trouble}");
    seen.end().await;
    let site = Site::new();
    let mut seen = Seen::of(site.processes_of(&["/no/such/program"], "/never"), 1);
    let trouble = seen.until_view(|view| view.trouble.is_some()).await.trouble.unwrap();
    assert!(trouble.contains("/no/such/program cannot be started"), "{trouble}");
    seen.end().await;
}

#[tokio::test]
async fn a_start_that_is_not_wanted_any_more_leaves_nothing() {
    let site = Site::new();
    let marked = site.path("slow");
    // It has a child of its own, which must end, too.
    let slow = format!("sleep 1000 & echo $! > {marked}; wait");
    let mut seen = Seen::of(site.processes_of(&["sh", "-c", &slow], "/never"), 1);
    seen.until_view(|view| view.starting == 1).await;
    let child = timeout(HANGS, async {
        loop {
            if let Some(pid) =
                fs::read_to_string(&marked).ok().and_then(|text| text.trim().parse::<u32>().ok())
            {
                return pid.to_string();
            }
            sleep(Duration::from_millis(5)).await;
        }
    });
    let child = child.await.unwrap();
    seen.provided.wanted.send_replace(0);
    until(|| !is_alive(&child)).await;
    seen.end().await;
}

#[tokio::test]
async fn who_answers_at_a_nodes_port_without_being_of_it_is_no_node() {
    let site = Site::new();
    // The child listens, in a group of its own, for as long as its parent lives.
    let other = "if (fork) { sleep 1000 } else { my $parent = getppid; setpgrp; \
        my $all = IO::Socket::INET->new(LocalAddr => qq(127.0.0.1:$ARGV[0]), Listen => 9, ReuseAddr => 1, Timeout => 1); \
        while (getppid == $parent) { $all->accept } }";
    let words = ["perl", "-MIO::Socket::INET", "-e", other, "{port}"];
    let mut seen = Seen::of(site.processes_with(&words, None), 1);
    let trouble = seen.until_view(|view| view.trouble.is_some()).await.trouble.unwrap();
    assert!(trouble.contains("somebody else answers at port"), "{trouble}");
    assert!(seen.provided.events.try_recv().is_err(), "none is ready");
    seen.end().await;
}

#[tokio::test]
async fn nodes_that_a_program_has_started_before_go_on() {
    let site = Site::new();
    let started = std::process::Command::new("sh").args([&site.path("hook.sh"), "start"]).output().unwrap();
    let said = String::from_utf8(started.stdout).unwrap();
    let before = NodeParams::parse(said.lines().last().unwrap()).unwrap();
    until(|| is_there(&before)).await;
    let mut seen = Seen::of(site.hook(), 0);
    let view = seen.until_view(|view| view.found.is_some()).await;
    assert_eq!(view.found, Some(1));
    assert_eq!(seen.next().await, NodeEvent::Ready(before.clone()));
    seen.end().await;
    assert!(is_there(&before));
}

#[tokio::test]
async fn of_nodes_that_ran_before_as_many_are_parked_as_are_to_be() {
    let site = Site::new();
    for _ in 0..3 {
        let started = std::process::Command::new("sh").args([&site.path("hook.sh"), "start"]).status();
        assert!(started.unwrap().success());
    }
    let one = LifecycleParams { parked: 1, ..lifecycle() };
    let mut seen = Seen::of(site.hook_that("", one), 1);
    let view = seen.until_view(|view| view.found.is_some()).await;
    assert_eq!((view.found, view.parked, view.starting), (Some(2), 1, 0));
    seen.end().await;
    // Where there are as many as may be, which of them served is not known.
    let three = LifecycleParams { most: 3, ..one };
    let mut seen = Seen::of(site.hook_that("", three), 1);
    let view = seen.until_view(|view| view.found.is_some()).await;
    assert_eq!((view.found, view.parked, view.starting), (Some(3), 0, 0));
    seen.end().await;
    assert_eq!(site.lines("runs"), ["list", "list"], "none is started");
}

#[tokio::test]
async fn what_is_wrong_with_a_program_is_said_with_its_name() {
    let site = Site::new();
    let hook = |text: &str| -> Box<dyn Provider> {
        fs::write(site.path("hook.sh"), text).unwrap();
        site.hook()
    };
    for (text, expected) in [
        ("[ $1 = list ] || { echo no credit >&2; exit 7; }", "no credit"),
        ("[ $1 = list ] || echo ftp://x", "is no address such as"),
        ("[ $1 = list ] || true", "has written no address"),
        ("[ $1 = list ] && echo nonsense", "is no address such as"),
    ] {
        let mut seen = Seen::of(hook(text), 1);
        let trouble = seen.until_view(|view| view.trouble.is_some()).await.trouble.unwrap();
        assert!(trouble.contains("nodes.command") && trouble.contains(expected), "{text}: {trouble}");
        seen.end().await;
    }
}

#[tokio::test]
async fn what_a_start_that_is_not_wanted_any_more_starts_is_stopped() {
    let site = Site::new();
    let mut seen = Seen::of(site.hook_that(WAITS, lifecycle()), 1);
    until(|| site.has("begun")).await;
    seen.provided.wanted.send_replace(0);
    seen.until_view(|view| view.starting == 0).await;
    site.touch("go");
    until(|| site.lines("ends").contains(&"stop 0".to_owned())).await;
    assert_eq!(
        (site.lines("runs"), site.nodes()),
        (["list", "start", "stop"].map(str::to_owned).to_vec(), 0)
    );
    seen.end().await;
}

#[tokio::test]
async fn what_a_start_that_takes_too_long_starts_is_stopped_and_another_one_tried() {
    let site = Site::new();
    // The first one takes as long as it likes, each further one no time.
    let first =
        "if [ $1 = start ] && ! [ -e begun ]; then touch begun; while [ ! -e go ]; do sleep 0.02; done; fi";
    let brief = LifecycleParams { start_within: Duration::from_secs(5), ..lifecycle() };
    let mut seen = Seen::of(site.hook_that(first, brief), 1);
    let trouble = seen.until_view(|view| view.trouble.is_some()).await.trouble.unwrap();
    assert!(trouble.contains("`start` did not end within 5 s"), "{trouble}");
    site.touch("go");
    until(|| site.lines("ends").contains(&"stop 0".to_owned())).await;
    seen.until_serving(1).await;
    until(|| site.nodes() == 1).await;
    seen.end().await;
}

#[tokio::test]
async fn a_child_that_holds_the_output_of_its_start_does_not_hold_it_up() {
    let site = Site::new();
    // Its number is where others are ended from when the test is over.
    let first = "if [ $1 = start ]; then sleep 1000 & echo $! > node-child; fi";
    let brief = LifecycleParams { start_within: Duration::from_secs(15), ..lifecycle() };
    let mut seen = Seen::of(site.hook_that(first, brief), 1);
    seen.until_serving(1).await;
    assert_eq!(site.lines("ends"), ["list 0", "start 0"], "at the first try");
    seen.end().await;
}

#[tokio::test]
async fn what_a_program_has_started_that_is_killed_ends_with_it() {
    let site = Site::new();
    // As a client that waits for an interface that does not answer.
    let hangs = "if [ $1 = list ] && ! [ -e mended ]; then sleep 1000 & echo $! >> children; wait; fi";
    let mut seen = Seen::of(site.hook_within(Duration::from_secs(1), hangs, lifecycle()), 0);
    until(|| site.lines("children").len() == 2).await;
    site.touch("mended");
    seen.until_view(|view| view.found.is_some()).await;
    for child in site.lines("children") {
        until(|| !is_alive(&child)).await;
    }
    seen.end().await;
}

#[tokio::test]
async fn a_node_whose_stop_fails_is_stopped_again() {
    let site = Site::new();
    let mut seen = Seen::of(site.hook_that("[ $1 != stop ] || [ -e mended ]", lifecycle()), 1);
    seen.until_serving(1).await;
    let node = seen.serving[0].clone();
    seen.say(NodeWord::Lost(node.clone())).await;
    let trouble = seen.until_view(|view| view.trouble.is_some()).await.trouble.unwrap();
    assert!(trouble.contains("stop") && is_there(&node), "{trouble}");
    site.touch("mended");
    until_gone(&node).await;
    seen.until_view(|view| view.trouble.is_none()).await;
    seen.end().await;
}

#[tokio::test]
async fn nodes_that_cannot_be_stopped_count_among_the_most_that_there_may_be() {
    let site = Site::new();
    let two = LifecycleParams { most: 2, ..lifecycle() };
    let mut seen = Seen::of(site.hook_that("[ $1 != stop ] || [ -e mended ]", two), 1);
    let mut starting = 0;
    for stuck in 1..=3 {
        seen.until_serving(1).await;
        let node = seen.serving[0].clone();
        seen.say(NodeWord::Lost(node.clone())).await;
        assert_eq!(seen.next().await, NodeEvent::Gone(node));
        starting = seen.until_view(|view| view.stuck == stuck).await.starting;
    }
    // The third one was started before the second one could not be stopped.
    assert_eq!((site.nodes(), seen.serving.len(), starting), (3, 0, 0), "no fourth one");
    site.touch("mended");
    seen.until_serving(1).await;
    seen.until_view(|view| view.stuck == 0).await;
    until(|| site.nodes() == 1).await;
    seen.end().await;
}

#[tokio::test]
async fn nothing_is_started_until_it_is_known_what_runs() {
    let site = Site::new();
    let provider = site.hook_that("[ $1 != list ] || [ -e mended ]", lifecycle());
    let started = std::process::Command::new("sh").args([&site.path("hook.sh"), "start"]).status().unwrap();
    assert!(started.success());
    let mut seen = Seen::of(provider, 1);
    let view = seen.until_view(|view| view.trouble.is_some()).await;
    assert_eq!((view.found, view.starting), (None, 0));
    site.touch("mended");
    let view = seen.until_view(|view| view.found.is_some()).await;
    assert_eq!((view.found, view.trouble), (Some(1), None));
    seen.until_serving(1).await;
    seen.end().await;
    let runs = site.lines("runs");
    assert!(runs.len() > 2 && runs[1..].iter().all(|run| run == "list"), "one node is enough: {runs:?}");
}

#[tokio::test]
async fn a_provider_that_is_let_go_waits_for_what_it_has_begun_and_for_nothing_else() {
    let site = Site::new();
    let slow = "if [ $1 = start ]; then touch begun; while [ ! -e go ]; do sleep 0.02; done; sleep 0.3; fi";
    let seen = Seen::of(site.hook_that(slow, lifecycle()), 1);
    until(|| site.has("begun")).await;
    let end = tokio::spawn(seen.end());
    site.touch("go");
    end.await.unwrap();
    assert_eq!((site.lines("ends"), site.nodes()), (["list 0", "start 0"].map(str::to_owned).to_vec(), 1));
    // While it is not known what runs, nothing has begun.
    let site = Site::new();
    let mut seen = Seen::of(site.hook_that("[ $1 != list ]", lifecycle()), 1);
    seen.until_view(|view| view.trouble.is_some()).await;
    seen.end().await;
}
