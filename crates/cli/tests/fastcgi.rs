//! `suimon serve` before real PHP, which speaks FastCGI.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, file, get, run};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use suimon_process::{Program, Running, free_address};

const LONG: Duration = Duration::from_secs(30);

/// What PHP knows of a request, and of its body.
const ECHO: &str = r#"<?php
header('Content-Type: application/json');
$body = file_get_contents('php://input');
$server = array_filter($_SERVER, fn($value) => is_string($value));
echo json_encode(['server' => $server, 'length' => strlen($body), 'md5' => md5($body), 'post' => $_POST]);
"#;

/// Answers, and goes on until a file called `go` is there.
const AFTERWARDS: &str = r#"<?php
header('Content-Length: 5');
echo 'hello';
while (ob_get_level()) ob_end_flush();
flush();
while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); }
file_put_contents(__DIR__ . '/done', connection_status());
"#;

/// PHP with one worker, a folder of programs, and a gateway before it.
struct Site {
    gateway: Gateway,
    folder: tempfile::TempDir,
    _php: Running,
}

fn site() -> Site {
    let folder = tempfile::tempdir().unwrap();
    file(&folder, "index.php", ECHO);
    file(
        &folder,
        "redirect.php",
        "<?php setcookie('a', '1'); setcookie('b', '2'); header('Location: /index.php');",
    );
    file(&folder, "broken.php", "<?php error_log('no coffee left'); http_response_code(503);");
    file(&folder, "afterwards.php", AFTERWARDS);
    file(&folder, "secret.txt", "no program");
    let address = free_address().unwrap();
    let php = Program::new("php", "php-cgi").args(["-b", &address.to_string(), "-d", "cgi.fix_pathinfo=0"]);
    let mut php = php.start(folder.path()).unwrap();
    php.wait_for_listener(address, LONG).unwrap();
    let settings = format!(
        "[upstream]\nnodes = [\"fastcgi://{address}\"]\n[upstream.fastcgi]\nroot = \"{}\"\n",
        folder.path().display()
    );
    let settings = file(&folder, "suimon.toml", &settings);
    assert_eq!(run(&["check", &settings]).code, Some(0));
    Site { gateway: Gateway::start(&["--config", &settings]), folder, _php: php }
}

/// Sends `request` as it is, and returns the answer.
fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn json(answer: &str) -> Value {
    serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn pages_bodies_and_statuses_pass_between_browsers_and_php() {
    let site = site();
    let clients = site.gateway.clients;
    for (path, script, path_info, query) in [
        ("/", "/index.php", Value::Null, ""),
        ("/index.php/chairs/7?colour=red%20wine", "/index.php", "/chairs/7".into(), "colour=red%20wine"),
    ] {
        let (status, page) = get(clients, path);
        assert_eq!(status, 200, "{page}");
        let server = &json(&page)["server"];
        assert_eq!(server["SCRIPT_NAME"], script);
        assert_eq!(server["SCRIPT_FILENAME"], format!("{}{script}", site.folder.path().display()));
        assert_eq!(server["PATH_INFO"].as_str().unwrap_or_default(), path_info.as_str().unwrap_or_default());
        assert_eq!((&server["QUERY_STRING"], &server["REQUEST_URI"]), (&query.into(), &path.into()));
        assert_eq!(
            (&server["REMOTE_ADDR"], &server["HTTP_HOST"]),
            (&"127.0.0.1".into(), &clients.to_string().into())
        );
    }

    let form = "name=Anna&wish=caf%C3%A9";
    let head = "POST /index.php HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let answer = ask(clients, format!("{head}Content-Length: {}\r\n\r\n{form}", form.len()).as_bytes());
    let page = json(answer.split_once("\r\n\r\n").unwrap().1);
    assert_eq!((&page["post"]["name"], &page["post"]["wish"]), (&"Anna".into(), &"café".into()));

    let body: Vec<u8> = (0..3_000_000_u32).map(|number| (number * 7) as u8).collect();
    let known = |length: u64| format!("Content-Length: {length}\r\n\r\n").into_bytes();
    let head = "POST /index.php HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n";
    let whole = [head.as_bytes(), &known(body.len() as u64), &body].concat();
    let mut chunked = [head.as_bytes(), b"Transfer-Encoding: chunked\r\n\r\n"].concat();
    for chunk in body.chunks(100_000) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let told = [whole, chunked].map(|request| {
        let answer = ask(clients, &request);
        let page = json(answer.split_once("\r\n\r\n").unwrap().1);
        assert_eq!(page["length"], body.len(), "a chunked body has a length for PHP, too");
        page["md5"].as_str().unwrap().to_owned()
    });
    assert_eq!(told[0], told[1]);

    let redirect = ask(clients, b"GET /redirect.php HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
    assert!(redirect.starts_with("HTTP/1.1 302 "), "{redirect}");
    assert!(redirect.contains("set-cookie: a=1") && redirect.contains("set-cookie: b=2"), "{redirect}");
    let head = ask(clients, b"HEAD /index.php HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");

    assert_eq!(get(clients, "/broken.php").0, 503);
    site.gateway.process.wait_err("no coffee left");
    for path in ["/secret.txt", "/nowhere.php", "/secret.txt/x.php", "/../secret.txt"] {
        assert_eq!(get(clients, path).0, 404, "{path}");
    }
    site.gateway.process.finish();
}

#[test]
fn an_answer_does_not_wait_for_what_its_worker_does_afterwards() {
    let site = site();
    assert_eq!(get(site.gateway.clients, "/afterwards.php"), (200, "hello".to_owned()));
    let state = || -> Value {
        let (_, text) = get(site.gateway.admin, "/api/state");
        serde_json::from_str(&text).unwrap()
    };
    let in_flight = |state: &Value| state["totals"]["in_flight"].as_u64();
    assert_eq!(in_flight(&state()), Some(1), "the worker is not free");
    file(&site.folder, "go", "");
    let began = Instant::now();
    while in_flight(&state()) != Some(0) {
        assert!(began.elapsed() < LONG, "{}", state());
    }
    let done = std::fs::read_to_string(site.folder.path().join("done")).unwrap();
    assert_eq!(done, "0", "its connection was kept until its end");
    site.gateway.process.finish();
}

#[test]
fn settings_without_a_program_are_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let none = file(&folder, "none.toml", "[upstream]\nnodes = [\"fastcgi:/run/php.sock\"]\n");
    let ran = run(&["check", &none]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.out.contains("upstream.fastcgi.root"), "{ran:?}");
    let missing = format!("{}/nowhere", folder.path().display());
    let text = format!(
        "[upstream]\nnodes = [\"fastcgi:/run/php.sock\"]\n[upstream.fastcgi]\nroot = \"{missing}\"\n"
    );
    let ran = run(&["check", &file(&folder, "missing.toml", &text)]);
    assert!(ran.out.contains("check_files = false"), "{ran:?}");
    let text = format!("{text}check_files = false\n");
    assert_eq!(run(&["check", &file(&folder, "elsewhere.toml", &text)]).code, Some(0));
}
