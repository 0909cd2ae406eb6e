//! Several pools in one gateway: PHP for the pages, Python over HTTP for some routes, CGI for others,
//! and a server of somebody else's beside them.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, Ran, file, get, run, try_get, until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const PAGE: &str = r"<?php
if (isset($_GET['ms'])) usleep(1000 * (int)$_GET['ms']);
echo 'php ', getmypid(), ' ', $_SERVER['REQUEST_URI'];
";

/// Answers at a Unix socket, one request at a time.
const REPORTS: &str = r#"
import http.server, os, socketserver, sys, time, urllib.parse
class Reports(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        time.sleep(int(query.get("ms", ["0"])[0]) / 1000)
        text = f"python {os.getpid()} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(text)
    do_HEAD = do_GET
    def address_string(self):
        return "suimon"
    def log_message(self, *words):
        pass
socketserver.UnixStreamServer(sys.argv[1], Reports).serve_forever()
"#;

const SCRIPT: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\ncgi %s %s' \"$$\" \"$REQUEST_URI\"\n";

struct Site {
    gateway: Gateway,
    folder: tempfile::TempDir,
}

impl Site {
    /// Starts a gateway with PHP for all pages, `reports` workers in Python below `/reports`, and CGI
    /// below `/cgi-bin`. `args`: more of them.
    fn start(reports: &str, args: &[&str]) -> Site {
        let folder = folder();
        let settings = settings(&folder, reports);
        let checked = run(&["check", &settings]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert!(checked.out.contains("pool:reports for * /reports/*"), "{checked:?}");
        let gateway = Gateway::start(&[&["--config", &settings], args].concat());
        Site { gateway, folder }
    }

    fn pool(&self, args: &[&str]) -> Ran {
        run(&[&["pool"], args, &["--admin", &self.gateway.admin_url()]].concat())
    }

    /// Returns what is said of a pool.
    fn state(&self, name: &str) -> Value {
        let state: Value = serde_json::from_str(&get(self.gateway.admin, "/api/state").1).unwrap();
        let pools = state["pools"].as_array().unwrap();
        pools.iter().find(|pool| pool["name"] == name).unwrap_or_else(|| panic!("{pools:?}")).clone()
    }

    fn until_ready(&self, name: &str, workers: u32) {
        until("workers are ready", || {
            self.state(name)["ready"] == workers && self.state(name)["starting"] == 0
        });
    }

    /// Returns the program that a page is of, which is there.
    fn of(&self, path: &str) -> &'static str {
        let (status, page) = get(self.gateway.clients, path);
        assert_eq!(status, 200, "{path}: {page}");
        // That of CGI comes in chunks.
        let is_of = |program: &&str| page.lines().any(|line| line.starts_with(&format!("{program} ")));
        ["php", "python", "cgi"].into_iter().find(is_of).unwrap_or_else(|| panic!("{path}: {page}"))
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // The workers are somebody else.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    file(&folder, "index.php", PAGE);
    file(&folder, "reports.py", REPORTS);
    fs::create_dir(folder.path().join("cgi-bin")).unwrap();
    let script = file(&folder, "cgi-bin/hello.php", SCRIPT);
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Starts a gateway before a server of somebody else's, with a pool for `/reports`. `more`: other
/// settings.
fn beside(node: &str, more: &str) -> Site {
    let folder = folder();
    let path = folder.path().display();
    let user = if suimon_process::user_id() == 0 { "user = \"nobody\"\n" } else { "" };
    let text = format!(
        "[upstream]\nnodes = [\"http://{node}\"]\n{more}[[pool]]\nname = \"reports\"\nroutes = [\"* /reports/*\"]\n\
         command = [\"python3\", \"{path}/reports.py\", \"{{socket}}\"]\nsockets = \"{path}/sockets\"\n{user}"
    );
    let settings = file(&folder, "suimon.toml", &text);
    Site { gateway: Gateway::start(&["--config", &settings, "--learned", "none"]), folder }
}

fn settings(folder: &tempfile::TempDir, reports: &str) -> String {
    let path = folder.path().display();
    let user = if suimon_process::user_id() == 0 { "user = \"nobody\"\n" } else { "" };
    let text = format!(
        "[upstream.fastcgi]\nroot = \"{path}\"\nfallback = \"/index.php\"\n\
         [[pool]]\nname = \"reports\"\nroutes = [\"* /reports/*\"]\ncommand = [\"python3\", \"{path}/reports.py\", \"{{socket}}\"]\n\
         sockets = \"{path}/sockets\"\n{user}{reports}\n\
         [[pool]]\nname = \"pages\"\nkind = \"fastcgi\"\ncommand = [\"php-cgi\"]\nsize_law = \"fixed\"\nworkers = 2\n\
         sockets = \"{path}/sockets\"\n{user}\
         [[pool]]\nname = \"scripts\"\nroutes = [\"* /cgi-bin/*\"]\nkind = \"cgi\"\n{user}"
    );
    file(folder, "suimon.toml", &text)
}

fn fixed(workers: u32) -> String {
    format!("size_law = \"fixed\"\nworkers = {workers}\n")
}

#[test]
fn each_request_goes_to_the_pool_of_its_route() {
    let site = Site::start(&fixed(1), &["--learned", "none"]);
    site.until_ready("reports", 1);
    site.until_ready("pages", 2);
    for (path, program) in [
        ("/", "php"),
        ("/reports", "python"),
        ("/reports/2024/sales?of=7", "python"),
        ("/reports/logo.png", "python"),
        ("/robots.txt", "php"),
        ("/report", "php"),
        ("/cgi-bin/hello.php", "cgi"),
        ("/a/%2e%2e/reports/x", "python"),
    ] {
        // Again once the route is found.
        assert_eq!([(); 3].map(|()| site.of(path)), [program; 3], "{path}");
    }
    let state: Value = serde_json::from_str(&get(site.gateway.admin, "/api/state").1).unwrap();
    let names: Vec<_> =
        state["routes"].as_array().unwrap().iter().filter_map(|route| route["name"].as_str()).collect();
    for name in ["other", "other of reports", "GET /reports/{id}/sales", "GET /cgi-bin/hello.php"] {
        assert!(names.contains(&name), "{name} of {names:?}");
    }
    let pools: Vec<_> = state["pools"].as_array().unwrap().iter().map(|pool| pool["name"].clone()).collect();
    assert_eq!(pools, ["pages", "reports", "scripts"]);
    site.gateway.process.finish();
}

#[test]
fn a_pool_without_free_workers_makes_nobody_else_wait() {
    let site = Site::start(&fixed(1), &["--learned", "none"]);
    site.until_ready("reports", 1);
    site.until_ready("pages", 2);
    let clients = site.gateway.clients;
    let slow: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(move || try_get(clients, "/reports/slow?ms=4000").map(|(status, _)| status))
        })
        .collect();
    until("the only worker is busy", || site.state("reports")["busy"] == 1);
    for _ in 0..20 {
        assert_eq!(site.of("/"), "php");
    }
    assert_eq!(site.state("reports")["busy"], 1, "all this while");
    for answer in slow {
        assert_eq!(answer.join().unwrap().unwrap(), 200, "one after the other");
    }
    site.gateway.process.finish();
}

#[test]
fn a_pool_that_is_down_takes_no_other_with_it() {
    // Else a request waits long for its pool.
    let patience = "[gate]\npatience = \"1s\"\n";
    let site = Site::start(&(fixed(1) + patience), &["--learned", "none"]);
    site.until_ready("pages", 2);
    site.until_ready("reports", 1);
    assert_eq!(site.of("/reports/x"), "python");
    fs::remove_file(site.folder.path().join("reports.py")).unwrap();
    let pool: Value = serde_json::from_str(&site.pool(&["status", "--json"]).out).unwrap();
    let reports = pool["pools"].as_array().unwrap().iter().find(|pool| pool["name"] == "reports").unwrap();
    let pid = i32::try_from(reports["workers"][0]["pid"].as_i64().unwrap()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), suimon_process::Signal::KILL)
        .unwrap();
    until("it is known to be down", || get(site.gateway.clients, "/reports/x").0 == 503);
    for _ in 0..20 {
        assert_eq!(site.of("/"), "php");
    }
    assert_eq!(get(site.gateway.admin, "/readyz").0, 200, "most of the site is there");
    file(&site.folder, "reports.py", REPORTS);
    assert_eq!(site.pool(&["reload", "reports"]).code, Some(0));
    until("it is back", || matches!(try_get(site.gateway.clients, "/reports/x"), Ok((200, _))));
    site.gateway.process.finish();
}

#[test]
fn what_takes_the_rest_is_the_application() {
    // Nobody listens there.
    let site = beside("127.0.0.1:1", "[upstream.health]\ninterval = \"1s\"\ndown_after = 1\n");
    until("a pool has workers", || site.state("reports")["ready"].as_u64() > Some(0));
    until("the gateway is not ready", || get(site.gateway.admin, "/readyz").0 == 503);
    assert!(site.state("reports")["ready"].as_u64() > Some(0), "it has them still");
    site.gateway.process.finish();
}

#[test]
fn a_command_is_for_the_pool_that_it_names() {
    let site = Site::start(&fixed(1), &["--learned", "none"]);
    site.until_ready("reports", 1);
    site.until_ready("pages", 2);
    assert_eq!(site.pool(&["resize", "3", "reports"]).code, Some(0), "{:?}", site.pool(&["--help"]));
    site.until_ready("reports", 3);
    assert_eq!(site.state("pages")["wanted"], 2);
    let unknown = site.pool(&["reload", "shop"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.err.contains("pages, reports, scripts"), "{unknown:?}");
    let shown = site.pool(&["status"]);
    for name in ["pages", "reports", "scripts"] {
        assert!(shown.out.contains(name), "{shown:?}");
    }
    let status = run(&["status", "--admin", &site.gateway.admin_url()]);
    for name in ["pages", "reports", "scripts"] {
        assert!(status.out.contains(name), "{status:?}");
    }
    site.gateway.process.finish();
}

#[test]
fn each_pool_begins_with_the_number_that_was_found_for_it() {
    let folder = folder();
    let settings = settings(&folder, "");
    let learned = folder.path().join("learned.json");
    let begin = || {
        let gateway = Gateway::start(&["--config", &settings, "--learned", learned.to_str().unwrap()]);
        until("it answers", || matches!(try_get(gateway.clients, "/"), Ok((200, _))));
        gateway
    };
    begin().process.finish();
    let text = fs::read_to_string(&learned).unwrap();
    assert!(text.contains("\"workers\": {},\n"), "nothing was found in so short a time: {text}");
    let known = text.split_once('\n').unwrap().1.replace("\"workers\": {}", "\"workers\": {\"reports\":4}");
    let remembered = suimon_store::remembered::Remembered::parse(known.as_bytes()).unwrap();
    fs::remove_file(&learned).unwrap();
    suimon_store::remembered::write(&learned, &remembered).unwrap();
    let gateway = begin();
    gateway.process.wait_err("4 workers are wanted");
    gateway.process.finish();
    assert!(fs::read_to_string(&learned).unwrap().contains("\"workers\": {\"reports\":4},\n"), "it is kept");
}

#[test]
fn a_pool_stands_beside_a_server_of_somebody_else() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                use std::io::{Read, Write};
                let mut head = [0; 4096];
                if stream.read(&mut head).unwrap_or(0) > 0 {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nnode 1";
                    stream.write_all(answer).unwrap();
                }
            });
        }
    });
    let site = beside(&address.to_string(), "");
    until("both answer", || {
        let begins = |path, word| matches!(try_get(site.gateway.clients, path), Ok((200, page)) if page.starts_with(word));
        begins("/", "node") && begins("/reports/x", "python")
    });
    site.gateway.process.finish();
}
