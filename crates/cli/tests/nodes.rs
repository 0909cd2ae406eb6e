//! `suimon serve` that starts and ends nodes: how many there are under a load that comes and goes, and
//! what happens when they die.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, Load, file, get, run, try_get, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};
use suimon_process::{Signal, group};

/// Answers with the number of the node's process, and computes for a while first if it is asked to.
const NODE: &str = r#"
use strict;
use IO::Socket::INET;
use Time::HiRes qw(clock);
# As long as this file is there, no node comes to its start.
select undef, undef, undef, 0.05 while -e $ARGV[1];
# The CPU time of children that are waited for counts as the node's.
$SIG{CHLD} = sub { 1 while waitpid(-1, 1) > 0 };
my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$ARGV[0]", Listen => 99, ReuseAddr => 1) or die $!;
my $node = $$;
while (1) {
    my $stream = $listener->accept or next;
    next if fork;
    close $listener;
    my $line = <$stream>;
    while (my $header = <$stream>) { last if $header eq "\r\n" }
    select undef, undef, undef, $1 / 1000 if $line =~ /rest=(\d+)/;
    if ($line =~ /compute=(\d+)/) { my $until = clock() + $1 / 1000; 1 while clock() < $until; }
    print $stream "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " . length($node) . "\r\n\r\n$node";
    exit;
}
"#;

struct Site {
    gateway: Gateway,
    folder: tempfile::TempDir,
}

impl Site {
    fn start(nodes: &str, other: &str) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let node = file(&folder, "node.pl", NODE);
        let hold = folder.path().join(HOLD).display().to_string();
        let settings = format!(
            "[nodes]\nprovider = \"processes\"\ncommand = [\"perl\", \"{node}\", \"{{port}}\", \"{hold}\"]\nready = \"/ready\"\n{nodes}\n{other}{OPEN}"
        );
        let settings = file(&folder, "suimon.toml", &settings);
        let checked = run(&["check", &settings]);
        assert_eq!(checked.code, Some(0), "{}", checked.out);
        Site { gateway: Gateway::start(&["--config", &settings, "--learned", "none"]), folder }
    }

    fn state(&self) -> Value {
        serde_json::from_str(&get(self.gateway.admin, "/api/state").1).unwrap()
    }

    fn scaling(&self, what: &str) -> u64 {
        self.state()["scaling"][what].as_u64().unwrap_or_else(|| panic!("{what}"))
    }

    /// Waits until so many nodes serve, and returns their processes once all of them have answered.
    fn until_serve(&self, count: usize) -> BTreeSet<u32> {
        let mut seen = BTreeSet::new();
        until("so many nodes serve", || {
            let asked: Vec<_> = (0..2 * count)
                .map(|_| {
                    let clients = self.gateway.clients;
                    thread::spawn(move || try_get(clients, "/?compute=5"))
                })
                .collect();
            for answer in asked {
                if let Ok((200, page)) = answer.join().unwrap() {
                    seen.insert(page.parse().unwrap());
                }
            }
            seen.retain(|process| is_alive(*process));
            seen.len() == count && self.scaling("serving") == count as u64
        });
        seen
    }
}

fn is_alive(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// How long all nodes are away.
const AWAY: Duration = Duration::from_secs(11);
/// The file, in the site's folder, that keeps nodes from coming to their start.
const HOLD: &str = "hold";

/// Whom the gate asks to come later says nothing of nodes.
const OPEN: &str = "\n[gate]\nsession_law = \"open\"\n";

const THREE: &str = "law = \"fixed\"\ncount = 3";

#[test]
fn nodes_come_with_the_load_and_go_with_it_and_no_request_is_lost() {
    let site = Site::start("max = 3\nprocessors = 0.1\nstart_within = \"20s\"", "");
    assert_eq!(site.until_serve(1).len(), 1);
    let load = Load::begin(site.gateway.clients, 8, "/?compute=20");
    // No other than the law can have asked for the third one. What it wants a moment later is its own
    // affair: on a crowded machine the same load may look like less.
    let nodes = site.until_serve(3);
    load.until_served(20);
    let (_, failed) = load.end();
    // Requests that look for it would be a load of their own.
    // While they were served, the number may have been one for a moment, too.
    let rests = || site.state()["scaling"]["busy"].as_f64().is_some_and(|busy| busy < 0.1);
    let is = |what: &str, count: u64| site.scaling(what) == count;
    until("one is left", || rests() && is("wanted", 1) && is("serving", 1) && is("draining", 0));
    let alive = || nodes.iter().filter(|node| is_alive(**node)).copied().collect::<Vec<_>>();
    until("the others end", || alive().len() == 1);
    let last = alive()[0];
    assert_eq!(failed, 0);
    let shown = run(&["status", "--admin", &site.gateway.admin_url()]);
    assert!(
        shown.out.contains("1 of 1 wanted nodes serve") && shown.out.contains("fewer nodes are enough"),
        "{}",
        shown.out
    );
    let metrics = get(site.gateway.admin, "/metrics").1;
    assert!(
        metrics.contains("suimon_nodes{state=\"serving\"} 1\n")
            && metrics.contains("suimon_nodes_wanted 1\n")
    );
    site.gateway.process.finish();
    assert!(!is_alive(last), "none outlives the gateway");
}

#[test]
fn a_node_that_is_killed_is_replaced_and_what_may_be_sent_again_is() {
    let site = Site::start(THREE, "");
    let nodes = site.until_serve(3);
    let load = Load::begin(site.gateway.clients, 8, "/?compute=5");
    load.until_served(20);
    let killed = *nodes.first().unwrap();
    group::kill(killed);
    let others = site.until_serve(3);
    assert!(!others.contains(&killed) && others.intersection(&nodes).count() == 2, "{nodes:?} {others:?}");
    load.until_served(20);
    let (_, failed) = load.end();
    assert_eq!(failed, 0);
    site.gateway.process.wait_err("has ended by itself");
}

#[test]
fn a_node_that_is_frozen_gets_nothing_and_is_replaced() {
    let health = "[upstream.health]\npath = \"/ready\"\ninterval = \"300ms\"\n";
    let site = Site::start(THREE, health);
    let nodes = site.until_serve(3);
    let frozen = *nodes.first().unwrap();
    group::signal(frozen, Signal::STOP);
    let others = site.until_serve(3);
    assert!(!others.contains(&frozen) && others.intersection(&nodes).count() == 2, "{nodes:?} {others:?}");
    until("it is ended", || !is_alive(frozen));
    site.gateway.process.wait_err("answers nothing");
}

#[test]
fn all_nodes_may_be_killed_at_once_and_come_back() {
    let site = Site::start(THREE, "");
    let nodes = site.until_serve(3);
    let clients = site.gateway.clients;
    let asked: Vec<_> = (0..6).map(|_| thread::spawn(move || try_get(clients, "/?rest=6000"))).collect();
    until("all are at a node", || site.state()["totals"]["in_flight"] == 6);
    let hold = file(&site.folder, HOLD, "");
    let killed = Instant::now();
    nodes.iter().for_each(|node| group::kill(*node));
    // They wait for a node, and are sent again, also where the start of one takes its time.
    until("it has been down for longer than a start usually takes", || killed.elapsed() > AWAY);
    std::fs::remove_file(hold).unwrap();
    for answer in asked {
        let (status, page) = answer.join().unwrap().unwrap();
        assert!(status == 200 && !nodes.contains(&page.parse().unwrap()), "{status} {page}");
    }
    let others = site.until_serve(3);
    assert!(others.is_disjoint(&nodes));
    site.gateway.process.finish();
}

#[test]
fn settings_of_nodes_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("[nodes]\nprovider = \"processes\"\n", "nodes.command"),
        ("[nodes]\nprovider = \"processes\"\ncommand = [\"node\"]\n", "{port}"),
        ("[nodes]\nlaw = \"fixed\"\n", "nodes.count"),
        ("[nodes]\nmin = 5\nmax = 3\n", "at most nodes.max (3)"),
        (
            "[upstream]\nnodes = [\"http://10.0.0.1:80\", \"http://10.0.0.2:80\"]\n[nodes]\nmax = 1\n",
            "at least 2",
        ),
        ("[[pool]]\nname = \"app\"\ncommand = [\"app\", \"{port}\"]\n[nodes]\n", "no nodes"),
        ("[nodes]\neagerness = 2\n", "from 0 to 1"),
    ] {
        let ran = run(&["check", &file(&folder, "suimon.toml", text)]);
        assert!(ran.code == Some(2) && ran.out.contains(expected), "{text}: {ran:?}");
    }
}

#[test]
fn a_number_that_is_only_observed_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let settings = file(&folder, "suimon.toml", "[nodes]\nmin = 2\nmax = 5\n");
    let gateway = Gateway::start(&["--config", &settings, "--learned", "none"]);
    until("it is published", || get(gateway.admin, "/metrics").1.contains("suimon_nodes_wanted 2\n"));
}
