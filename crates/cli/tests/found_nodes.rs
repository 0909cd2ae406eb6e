//! `suimon serve` that finds its nodes while it runs: in a file, or by their names.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;
#[path = "common/nodes_with_sessions.rs"]
mod nodes_with_sessions;

use common::{Gateway, Load, comes_true, file, get, run, suimon, until};
use nodes_with_sessions::{Crowd, Node, Visitor};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Whom the gate asks to come later says nothing of nodes.
const OPEN: &str = "[gate]\nsession_law = \"open\"\n";

struct Site {
    gateway: Gateway,
    folder: tempfile::TempDir,
}

impl Site {
    /// Starts a gateway before the nodes of a file.
    fn start(nodes: &str, upstream: &str) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let list = file(&folder, "nodes", nodes);
        let settings =
            file(&folder, "suimon.toml", &format!("[upstream]\nnodes_file = {list:?}\n{upstream}"));
        let gateway = Gateway::start(&["--config", &settings, "--learned", "none"]);
        Site { gateway, folder }
    }

    /// Puts another list in the place of the file.
    fn name(&self, nodes: &[&Node]) {
        let list: String = nodes.iter().map(|node| format!("{} # a node\n", node.url())).collect();
        let new = file(&self.folder, "nodes.new", &list);
        std::fs::rename(new, self.folder.path().join("nodes")).unwrap();
    }

    /// Returns the nodes with their states.
    fn nodes(&self) -> Vec<(String, String)> {
        let state: Value = serde_json::from_str(&get(self.gateway.admin, "/api/state").1).unwrap();
        let nodes = state["nodes"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        nodes.map(|node| (text(&node["address"]), text(&node["status"]))).collect()
    }

    fn until_nodes(&self, expected: &[(&Node, &str)]) {
        let mut expected: Vec<_> =
            expected.iter().map(|(node, state)| (node.url(), (*state).to_owned())).collect();
        expected.sort();
        let mut nodes = Vec::new();
        let comes = comes_true(|| {
            nodes = self.nodes();
            nodes.sort();
            nodes == expected
        });
        assert!(comes, "the nodes are {nodes:?} and should be {expected:?}");
    }
}

#[test]
fn a_file_that_changes_again_and_again_costs_no_request() {
    let nodes: Vec<_> = ["a", "b", "c"].iter().map(|name| Node::start(name, "")).collect();
    let [a, b, c] = &nodes[..] else { panic!() };
    let site = Site::start(&format!("{}\n", a.url()), OPEN);
    site.until_nodes(&[(a, "up")]);
    let load = Load::begin(site.gateway.clients, 8, "/");
    let lists: [&[&Node]; 10] =
        [&[a, b], &[b], &[b, c], &[a, b, c], &[c], &[a], &[a, b, c], &[b, c], &[a, c], &[a]];
    for list in lists {
        site.name(list);
        let expected: Vec<_> = list.iter().map(|node| (*node, "up")).collect();
        site.until_nodes(&expected);
        load.until_served(10);
    }
    let (served, failed) = load.end();
    assert_eq!(failed, 0, "of {served}");
}

#[test]
fn a_node_that_is_named_no_longer_keeps_its_sessions_until_they_end() {
    let nodes: Vec<_> = ["a", "b", "c"].iter().map(|name| Node::start(name, "")).collect();
    let [a, b, c] = &nodes[..] else { panic!() };
    let list: String = nodes.iter().map(|node| node.url() + "\n").collect();
    let site = Site::start(&list, "affinity = \"SID\"\ndrain_within = \"1h\"\n");
    site.until_nodes(&[(a, "up"), (b, "up"), (c, "up")]);
    let mut at_a = loop {
        let mut visitor = Visitor::of(site.gateway.clients);
        let home = visitor.ask("/").unwrap().0;
        if home == "a" {
            break visitor;
        }
        visitor.ask("/leave").unwrap();
    };
    let crowd = Crowd::begin(site.gateway.clients, 9);
    crowd.until_answered(3);
    site.name(&[b, c]);
    site.until_nodes(&[(a, "draining"), (b, "up"), (c, "up")]);
    crowd.until_answered(10);
    // Whoever comes now is served by the others.
    for _ in 0..20 {
        let mut visitor = Visitor::of(site.gateway.clients);
        assert_ne!(visitor.ask("/").unwrap().0, "a");
        visitor.ask("/leave").unwrap();
    }
    assert_eq!(at_a.ask("/").unwrap(), ("a".to_owned(), 2));
    let (seen, failed) = crowd.end();
    assert_eq!(failed, 0);
    assert!(seen.iter().all(|seen| seen.nodes.len() == 1 && seen.begun_anew == 0), "none has moved");
    // It is named again before they have ended.
    site.name(&[a, b, c]);
    site.until_nodes(&[(a, "up"), (b, "up"), (c, "up")]);
    assert_eq!(at_a.ask("/").unwrap(), ("a".to_owned(), 3));
}

#[test]
fn a_node_ends_with_its_last_session_or_when_its_time_is_over() {
    let nodes: Vec<_> = ["a", "b"].iter().map(|name| Node::start(name, "")).collect();
    let [a, b] = &nodes[..] else { panic!() };
    // It is silent for so long, or has so long.
    for (idle, drain_within) in [("2s", "1h"), ("1h", "1s")] {
        let site = Site::start(
            &format!("{}\n", a.url()),
            &format!("affinity = \"SID\"\naffinity_idle = {idle:?}\ndrain_within = {drain_within:?}\n"),
        );
        site.until_nodes(&[(a, "up")]);
        let mut visitor = Visitor::of(site.gateway.clients);
        assert_eq!(visitor.ask("/").unwrap(), ("a".to_owned(), 1));
        site.name(&[b]);
        site.until_nodes(&[(b, "up")]);
        assert_eq!(visitor.ask("/").unwrap(), ("b".to_owned(), 1));
        if drain_within == "1s" {
            site.gateway.process.wait_err("sessions that were at a node go elsewhere");
        }
    }
}

#[test]
fn a_file_that_cannot_be_taken_holds_what_is_there() {
    let node = Node::start("a", "");
    let site = Site::start(&format!("# shop\n{}\n", node.url()), "drain_within = \"1s\"\n");
    site.until_nodes(&[(&node, "up")]);
    for (text, said) in [
        ("http://127.0.0.1:1\nhttp//127.0.0.1:2\n", "line 2: \"http//127.0.0.1:2\": no scheme"),
        ("\n", "has no nodes; write the word none to mean that"),
    ] {
        file(&site.folder, "nodes", text);
        let line = site.gateway.process.wait_err(said);
        assert!(line.contains("the nodes that are there stay"), "{line}");
        assert_eq!(site.nodes(), [(node.url(), "up".to_owned())]);
    }
    std::fs::remove_file(site.folder.path().join("nodes")).unwrap();
    site.gateway.process.wait_err("cannot be read: ");
    assert_eq!(get(site.gateway.clients, "/").0, 200);
    file(&site.folder, "nodes", "none\n");
    site.gateway.process.wait_err("nodes are found again");
    site.until_nodes(&[]);
    site.name(&[&node]);
    site.until_nodes(&[(&node, "up")]);
    until("it serves", || get(site.gateway.clients, "/").0 == 200);
}

#[test]
fn what_is_found_is_said_and_what_does_not_go_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let list = file(&folder, "nodes", "http://10.0.0.1:80\nhttp://10.0.0.2:80\n");
    let check = |text: &str| run(&["check", &file(&folder, "suimon.toml", text)]);
    let ran = check(&format!("[upstream]\nnodes_file = {list:?}\n"));
    assert!(ran.code == Some(0) && ran.out.contains("http://10.0.0.1:80, http://10.0.0.2:80"), "{ran:?}");
    let ran = check("[upstream]\nnodes = [\"http://localhost:9\"]\ndiscover = \"dns\"\n");
    assert!(ran.code == Some(0) && ran.out.contains("localhost: http://"), "{ran:?}");
    let bad = file(&folder, "bad", "http://10.0.0.1:80\nhttp://10.0.0.1:80\n");
    for (text, expected) in [
        (
            format!("[upstream]\nnodes_file = {bad:?}\n"),
            "bad line 2: http://10.0.0.1:80 is in line 1 already",
        ),
        ("[upstream]\nnodes_file = \"/nowhere/nodes\"\n".to_owned(), "/nowhere/nodes cannot be read"),
        (
            format!("[upstream]\nnodes = [\"http://a:80\"]\nnodes_file = {list:?}\ndiscover = \"dns\"\n"),
            "left out with upstream.discover",
        ),
        ("[upstream]\ndiscover = \"dns\"\n".to_owned(), "has no host name"),
        (
            format!(
                "[upstream]\nnodes_file = {list:?}\n[nodes]\nprovider = \"command\"\ncommand = [\"x\"]\n"
            ),
            "left out where nodes.provider starts nodes",
        ),
        (
            format!(
                "[upstream]\nnodes_file = {list:?}\n[[pool]]\nname = \"app\"\ncommand = [\"app\", \"{{port}}\"]\n"
            ),
            "its workers are no nodes",
        ),
    ] {
        let ran = check(&text);
        assert!(ran.code == Some(2) && ran.out.contains(expected), "{text}: {ran:?}");
    }
}

/// Returns whether this process may give a child names of its own.
fn may_have_own_names() -> bool {
    let unshared = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    unshared.is_ok_and(|status| status.success())
}

#[test]
fn a_name_that_gets_other_addresses_leads_to_other_nodes() {
    if !may_have_own_names() {
        eprintln!("left out: a child cannot be given names of its own here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Two nodes at one port of two addresses.
    let a = Node::start_at("a", "127.0.0.1:0");
    let b = Node::start_at("b", &format!("127.0.0.2:{}", a.address.port()));
    let names = |text: &str| file(&folder, "hosts", text);
    let hosts = names("127.0.0.1 shop.internal\n");
    let settings = format!(
        "[upstream]\nnodes = [\"http://shop.internal:{}\"]\ndiscover = \"dns\"\ndiscover_every = \"1s\"\n{OPEN}",
        a.address.port()
    );
    let settings = file(&folder, "suimon.toml", &settings);
    let serve = suimon(&[]);
    let program = serve.get_program().to_str().unwrap().to_owned();
    let script = format!(
        "mount --bind {hosts} /etc/hosts && exec {program} serve --config {settings} --learned none --listen 127.0.0.1:0 --admin 127.0.0.1:0"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]);
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let gateway = Gateway::of(command);
    let site = Site { gateway, folder };
    site.until_nodes(&[(&a, "up")]);
    let load = Load::begin(site.gateway.clients, 4, "/");
    load.until_served(5);
    let rewrite = |text: &str| std::fs::write(&hosts, text).unwrap();
    rewrite("127.0.0.1 shop.internal\n127.0.0.2 shop.internal\n");
    site.until_nodes(&[(&a, "up"), (&b, "up")]);
    load.until_served(5);
    rewrite("127.0.0.2 shop.internal\n");
    site.until_nodes(&[(&b, "up")]);
    load.until_served(5);
    // A name that is known no longer has the addresses it had.
    rewrite("127.0.0.9 other.internal\n");
    site.gateway.process.wait_err("shop.internal cannot be looked up");
    site.until_nodes(&[(&b, "up")]);
    load.until_served(5);
    let (_, failed) = load.end();
    assert_eq!(failed, 0);
    site.gateway.process.finish();
}
