//! `suimon serve` before nodes that keep sessions in memory: a session stays at its node, until that
//! is gone.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;
#[path = "common/nodes_with_sessions.rs"]
mod nodes_with_sessions;

use common::{Gateway, file, get, run, suimon};
use nodes_with_sessions::{Crowd, Node, Visitor};
use std::collections::BTreeSet;

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
    let mut nodes: Vec<_> = ["a", "b", "c"].iter().map(|name| Node::start(name, "")).collect();
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
    let nodes: Vec<_> = ["a", "b", "c"].iter().map(|name| Node::start(name, "")).collect();
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
    let nodes: Vec<_> = names.iter().map(|name| Node::start(name, &format!(".{name}"))).collect();
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
