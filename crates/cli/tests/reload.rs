//! SIGHUP: `suimon serve` reads its settings file again, and adopts all of it or nothing.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Gateway, file, get};
use std::fs;
use std::thread;
use suimon_process::Signal;

/// A gateway with a settings file that a test can rewrite.
struct Configured {
    gateway: Gateway,
    backend: Backend,
    folder: tempfile::TempDir,
}

impl Configured {
    /// Starts a gateway whose file has `text` and names its application.
    fn start(text: &str) -> Configured {
        Configured::start_with(&[], text)
    }

    /// Starts one with these arguments besides.
    fn start_with(args: &[&str], text: &str) -> Configured {
        let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
        let path = file(&folder, "suimon.toml", &settings(&backend, text));
        let args = [&["--config", &path], args].concat();
        Configured { gateway: Gateway::start(&args), backend, folder }
    }

    /// Rewrites the file, sends SIGHUP, and returns the log line that contains `said`.
    fn reload(&self, text: &str, said: &str) -> String {
        fs::write(self.folder.path().join("suimon.toml"), settings(&self.backend, text)).unwrap();
        self.gateway.process.signal(Signal::HUP);
        self.gateway.process.wait_err(said)
    }

    fn status_of_a_long_url(&self) -> u16 {
        get(self.gateway.clients, &format!("/{}", "x".repeat(2000))).0
    }
}

fn settings(backend: &Backend, text: &str) -> String {
    format!("{text}\n[upstream]\nnodes = [\"{}\"]\n", backend.url())
}

#[test]
fn what_the_file_says_then_is_adopted_and_whoever_waits_for_it_goes_on_at_once() {
    let route = |mode: u32| format!("[[route]]\nmatch = \"GET /held\"\nmode = {mode}\n");
    let site = Configured::start(&route(1));
    let clients = site.gateway.clients;
    let visits: Vec<_> = (0..2).map(|_| thread::spawn(move || get(clients, "/held").0)).collect();
    site.backend.wait_for("/held");

    let said = site.reload(&route(2), "settings reloaded");
    assert!(said.contains("1 → 2") && said.contains("route[0].mode"), "{said}");
    // The other request, which was queued for the only slot.
    site.backend.wait_for("/held");
    site.backend.let_go();
    assert_eq!(visits.into_iter().map(|visit| visit.join().unwrap()).collect::<Vec<_>>(), [200, 200]);

    assert_eq!(site.status_of_a_long_url(), 200);
    site.reload(&format!("{}[limits]\nurl_bytes = 1024\n", route(2)), "settings reloaded");
    assert_eq!(site.status_of_a_long_url(), 414);
    site.reload(&format!("{}[limits]\nurl_bytes = \"1KiB\"\n", route(2)), "no setting is different");
    site.gateway.process.finish();
}

#[test]
fn a_file_that_is_wrong_or_takes_a_restart_changes_nothing_and_is_told() {
    let site = Configured::start("");
    let said = site.reload("[limits]\nurl_bytes = 1024\nhead_bytes = 7\n", "settings not reloaded");
    assert!(said.contains("limits.head_bytes"), "{said}");
    assert_eq!(site.status_of_a_long_url(), 200, "not one of them is adopted");
    let said = site.reload(
        "[limits]\nurl_bytes = 1024\nconnections = 77\n[[session]]\nkind = \"shopping\"\n",
        "settings not reloaded",
    );
    assert!(
        said.contains("take a restart: session: 0 of them → 1 of them; limits.connections: 9000 → 77"),
        "{said}"
    );
    assert_eq!(site.status_of_a_long_url(), 200);
    site.reload("[limits]\nurl_bytes = 1024\n", "settings reloaded");
    assert_eq!(site.status_of_a_long_url(), 414, "what was refused is not in the way of what is right");
}

#[test]
fn what_is_said_to_those_who_wait_and_what_is_logged_changes_too() {
    let site = Configured::start("[log]\nfilter = \"info\"\n");
    site.reload(
        "[log]\nfilter = \"info,suimon_proxy=debug\"\n[waiting_room]\nmessage = \"Soon\"\n",
        "settings reloaded",
    );
    let (status, lines) = get(site.gateway.admin, "/api/waiting-room");
    assert_eq!(status, 200);
    assert!(lines.contains("Soon"), "{lines}");
    let now = "[log]\nfilter = \"info,suimon_proxy=debug\"\n[waiting_room]\nmessage = \"Later\"\n";
    let said = site.reload(now, "settings reloaded");
    assert!(
        said.contains("waiting_room.message: \"Soon\" → \"Later\"") && !said.contains("log.filter"),
        "{said}"
    );
    site.reload("[log]\nfilter = \"info,suimon_proxy=loud\"\n", "log.filter");
}

#[test]
fn a_filter_that_the_command_line_stands_in_for_is_in_the_way_of_nothing() {
    let text = "[log]\nfilter = \"loud\"\n";
    let site = Configured::start_with(&["--log", "info"], text);
    assert_eq!(site.status_of_a_long_url(), 200);
    let said = site.reload(&format!("{text}[limits]\nurl_bytes = 1024\n"), "settings ");
    assert!(said.contains("settings reloaded") && said.contains("limits.url_bytes"), "{said}");
    assert_eq!(site.status_of_a_long_url(), 414);
}
