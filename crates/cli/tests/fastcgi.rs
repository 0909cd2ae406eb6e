//! `suimon serve` before real workers that speak FastCGI: php-cgi, php-fpm, and Perl.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, file, get, run};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;
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

/// Sends back what comes, as it comes.
const STREAM: &str = r"<?php
while (ob_get_level()) ob_end_flush();
header('Content-Length: ' . $_SERVER['CONTENT_LENGTH']);
$in = fopen('php://input', 'rb');
while (!feof($in)) { echo fread($in, 8192); flush(); }
";

/// Answers without a look at the body.
const EARLY: &str = r"<?php
while (ob_get_level()) ob_end_flush();
http_response_code(422);
header('Content-Length: 5');
echo 'early';
flush();
";

/// Tells its process, once a file called `go` is there.
const HELD: &str = r"<?php
while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); }
echo getmypid();
";

/// Counts its requests, and tells what it knows of each.
const PERL: &str = r#"
use strict;
use warnings;
use CGI::Fast;

my $served = 0;
while (my $request = CGI::Fast->new) {
    $served++;
    my $body = $request->param('POSTDATA') // '';
    if ($request->path_info eq '/echo') {
        print $request->header(-type => 'application/octet-stream', -content_length => length $body), $body;
        next;
    }
    if ($request->path_info eq '/broken') {
        print STDERR "no coffee left
";
        print $request->header(-status => '503 No coffee', -type => 'text/plain'), "none
";
        next;
    }
    print $request->header(-type => 'text/plain', -cookie => [$request->cookie('a', 1), $request->cookie('b', 2)]);
    print join(' ', $$, $served, $request->request_method, $request->path_info, $request->param('colour') // ''), "
";
}
"#;

/// A worker that tells on which of its connections a request came, the how many-th it was there, and
/// whether the connection is to be kept. With an argument it closes it all the same.
const COUNTING: &str = r#"
use strict;
use warnings;
open(my $listener, '+<&=', 0) or die $!;

sub take {
    my ($stream, $length) = @_;
    my $bytes = '';
    while (length $bytes < $length) {
        sysread($stream, $bytes, $length - length $bytes, length $bytes) or return undef;
    }
    return $bytes;
}

my $connections = 0;
while (accept(my $stream, $listener)) {
    $connections++;
    my ($served, $keeps) = (0, 0);
    while (defined(my $header = take($stream, 8))) {
        my (undef, $kind, $request, $length, $padding) = unpack('CCnnC', $header);
        my $content = take($stream, $length);
        take($stream, $padding);
        my $say = sub { syswrite($stream, pack('CCnnCC', 1, $_[0], $request, length $_[1], 0, 0) . $_[1]) };
        (undef, $keeps) = unpack('nC', $content) if $kind == 1;
        $say->(10, '') if $kind == 9;
        next if $kind != 5 || $length > 0;
        $served++;
        $say->(6, "Content-Type: text/plain\r\n\r\n$connections $served $keeps");
        $say->(3, pack('NCxxx', 0, 0));
        last if !$keeps || @ARGV;
    }
    close $stream;
}
"#;

/// PHP, a folder of programs, and a gateway before it.
struct Site {
    gateway: Gateway,
    folder: tempfile::TempDir,
    _php: Family,
}

/// PHP's first process and its children, which would outlive it: it is killed, and they as well.
struct Family(Running);

impl Drop for Family {
    fn drop(&mut self) {
        suimon_process::group::kill(self.0.pid());
    }
}

impl Site {
    /// Starts php-cgi with one worker on a port.
    fn with_php_cgi() -> Self {
        let folder = programs();
        let address = free_address().unwrap();
        let php =
            Program::new("php", "php-cgi").args(["-b", &address.to_string(), "-d", "cgi.fix_pathinfo=0"]);
        let mut php = php.start(folder.path()).unwrap();
        php.wait_for_listener(address, LONG).unwrap();
        Site::before(php, &format!("fastcgi://{address}"), folder, "")
    }

    /// Starts php-fpm with so many children on a socket.
    fn with_php_fpm(children: u32, other: &str) -> Self {
        let folder = programs();
        let socket = folder.path().join("fpm.sock");
        let user = if suimon_process::user_id() == 0 { "user = nobody\n" } else { "" };
        let text = format!(
            "[global]\ndaemonize = no\nerror_log = {}\n[shop]\n{user}listen = {}\npm = static\npm.max_children = {children}\npm.status_path = /status\n",
            folder.path().join("fpm.log").display(),
            socket.display(),
        );
        let settings = file(&folder, "fpm.conf", &text);
        // Without the machine's settings.
        let php = Program::new("php", php_fpm()).args(["-n", "--nodaemonize", "--fpm-config", &settings]);
        let mut php = php.start(folder.path()).unwrap();
        php.wait_for("its socket", LONG, |_| socket.exists().then_some(())).unwrap();
        Site::before(php, &format!("fastcgi:{}", socket.display()), folder, other)
    }

    fn before(php: Running, node: &str, folder: tempfile::TempDir, other: &str) -> Self {
        let settings = format!(
            "[upstream]\nnodes = [\"{node}\"]\n[upstream.fastcgi]\nroot = \"{}\"\n{other}",
            folder.path().display()
        );
        let settings = file(&folder, "suimon.toml", &settings);
        assert_eq!(run(&["check", &settings]).code, Some(0), "{}", run(&["check", &settings]).out);
        let gateway = Gateway::start(&["--config", &settings, "--learned", "none"]);
        Site { gateway, folder, _php: Family(php) }
    }
}

/// Returns a folder of programs that everybody may read: workers may be somebody else.
fn programs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    file(&folder, "index.php", ECHO);
    file(
        &folder,
        "redirect.php",
        "<?php setcookie('a', '1'); setcookie('b', '2'); header('Location: /index.php');",
    );
    file(&folder, "broken.php", "<?php error_log('no coffee left'); http_response_code(503);");
    file(&folder, "afterwards.php", AFTERWARDS);
    file(&folder, "secret.txt", "no program");
    file(&folder, "stream.php", STREAM);
    file(&folder, "early.php", EARLY);
    file(&folder, "held.php", HELD);
    folder
}

/// Returns the path of php-fpm. Debian names it by its version.
fn php_fpm() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let is_fpm = |file: &PathBuf| {
        file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("php-fpm"))
    };
    let files = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let found = files.map(|entry| entry.path()).filter(is_fpm).max();
    found.expect("php-fpm is not installed: ./scripts/setup installs it")
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
fn pages_bodies_and_statuses_pass_between_browsers_and_php_cgi() {
    pages_bodies_and_statuses_pass(Site::with_php_cgi());
}

#[test]
fn pages_bodies_and_statuses_pass_between_browsers_and_php_fpm() {
    pages_bodies_and_statuses_pass(Site::with_php_fpm(1, ""));
}

fn pages_bodies_and_statuses_pass(site: Site) {
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
    let site = Site::with_php_cgi();
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

/// Neither is kept until it is whole.
const UNSPOOLED: &str = "[spool]\nbytes_max = \"0B\"\n";

#[test]
fn a_body_and_its_answer_stream_both_ways_at_once() {
    let site = Site::with_php_fpm(1, UNSPOOLED);
    let body: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    let (first, rest) = body.split_at(400_000);
    let mut stream = put(site.gateway.clients, "/stream.php", body.len(), first);
    let mut answer = vec![];
    // What comes back of the first part comes before the second is sent.
    read_until(&mut stream, &mut answer, |answer| body_of(answer).is_some_and(|echo| echo.len() > 100_000));
    let mut sends = stream.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| sends.write_all(rest).unwrap());
        stream.read_to_end(&mut answer).unwrap();
    });
    let head = String::from_utf8_lossy(&answer[..60]);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(body_of(&answer) == Some(&body[..]), "what came back is what was sent");
    site.gateway.process.finish();
}

#[test]
fn an_answer_comes_before_the_end_of_its_request() {
    let site = Site::with_php_fpm(1, UNSPOOLED);
    let body = vec![b'x'; 1_000_000];
    let (first, rest) = body.split_at(400_000);
    let mut stream = put(site.gateway.clients, "/early.php", body.len(), first);
    let mut answer = vec![];
    read_until(&mut stream, &mut answer, |answer| body_of(answer) == Some(&b"early"[..]));
    let head = String::from_utf8_lossy(&answer);
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
    // Nobody is obliged to take the rest.
    let _ = stream.write_all(rest);
    drop(stream);
    assert_eq!(
        get(site.gateway.clients, "/early.php"),
        (422, "early".to_owned()),
        "the worker is free again"
    );
    site.gateway.process.finish();
}

/// Sends the head of a request with a body of `length` bytes, and these first ones of them.
fn put(address: SocketAddr, path: &str, length: usize, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // PHP keeps the body of a POST until it is whole.
    let head =
        format!("PUT {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), first].concat()).unwrap();
    stream
}

fn read_until(stream: &mut TcpStream, answer: &mut Vec<u8>, enough: impl Fn(&[u8]) -> bool) {
    let mut piece = vec![0; 64 << 10];
    while !enough(answer) {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "it ends early: {}", String::from_utf8_lossy(answer));
        answer.extend_from_slice(&piece[..read]);
    }
}

/// Returns what there is of an answer's body; `None`: its head is incomplete.
fn body_of(answer: &[u8]) -> Option<&[u8]> {
    answer.windows(4).position(|window| window == b"\r\n\r\n").map(|end| &answer[end + 4..])
}

#[test]
fn what_php_fpm_has_no_children_for_waits_in_the_gateway() {
    let site = Site::with_php_fpm(2, "[discovery]\nmode = 2\n");
    let clients = site.gateway.clients;
    let asked: Vec<_> = (0..8).map(|_| thread::spawn(move || get(clients, "/held.php"))).collect();
    let state = || -> Value { serde_json::from_str(&get(site.gateway.admin, "/api/state").1).unwrap() };
    let counts = |state: &Value| (state["totals"]["in_flight"].as_u64(), state["totals"]["queued"].as_u64());
    let began = Instant::now();
    while counts(&state()) != (Some(2), Some(6)) {
        assert!(began.elapsed() < LONG, "{}", state());
    }
    file(&site.folder, "go", "");
    let answers = asked.into_iter().map(|it| it.join().unwrap());
    let mut children: Vec<String> = answers
        .map(|(status, page)| {
            assert_eq!(status, 200, "{page}");
            page
        })
        .collect();
    children.sort_unstable();
    children.dedup();
    assert_eq!(children.len(), 2, "{children:?}");
    site.gateway.process.finish();
}

#[test]
fn more_requests_than_children_of_php_fpm_are_all_answered_without_settings() {
    let site = Site::with_php_fpm(2, "");
    let clients = site.gateway.clients;
    let ask = move || (0..5).for_each(|_| assert_eq!(get(clients, "/index.php").0, 200));
    let asked: Vec<_> = (0..12).map(|_| thread::spawn(ask)).collect();
    asked.into_iter().for_each(|it| it.join().unwrap());
    site.gateway.process.finish();
}

/// Starts a gateway with a pool of one worker in Perl, which gets these arguments.
fn with_perl(program: &str, arguments: &str) -> (Gateway, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let worker = file(&folder, "worker.pl", program);
    let path = folder.path().display();
    let user = if suimon_process::user_id() == 0 { "user = \"nobody\"\n" } else { "" };
    let settings = format!(
        "[upstream.fastcgi]\nprogram = \"{worker}\"\n[[pool]]\nname = \"perl\"\nkind = \"fastcgi\"\n\
         command = [\"perl\", \"{worker}\"{arguments}]\nsize_law = \"fixed\"\nworkers = 1\nsockets = \"{path}/sockets\"\n{user}"
    );
    let settings = file(&folder, "suimon.toml", &settings);
    (Gateway::start(&["--config", &settings, "--learned", "none"]), folder)
}

#[test]
fn requests_pass_between_browsers_and_a_worker_in_perl() {
    let (gateway, _folder) = with_perl(PERL, "");
    let clients = gateway.clients;

    let first =
        ask(clients, b"GET /chairs/7?colour=red%20wine HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    assert!(first.contains("set-cookie: a=1") && first.contains("set-cookie: b=2"), "{first}");
    assert!(first.contains(" 1 GET /chairs/7 red wine\n"), "{first}");
    let head = ask(clients, b"HEAD / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(get(clients, "/broken").0, 503);
    gateway.process.wait_err("no coffee left");

    let body = "coffee ".repeat(150_000);
    let head = "POST /echo HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Type: application/octet-stream\r\n";
    let answer = ask(clients, format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    assert!(answer.split_once("\r\n\r\n").unwrap().1 == body, "what came back is what was sent");

    let (_, last) = get(clients, "/");
    let process = |page: &str| page.lines().last().unwrap().split(' ').next().unwrap().to_owned();
    assert_eq!(process(&last), process(&first), "one process answers all");
    assert!(last.contains(" 5 GET /"), "{last}");
    gateway.process.finish();
}

/// What the counting worker tells of the connection of this request.
///
/// It names no length, so by HTTP/1.0 the end of the connection ends the page: nothing of it depends on how
/// much of the page the gateway has read when it answers.
fn counted(clients: SocketAddr, method: &str, headers: &str, body: &str) -> String {
    let answer = ask(clients, format!("{method} / HTTP/1.0\r\nHost: shop\r\n{headers}\r\n{body}").as_bytes());
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn connections_to_own_workers_are_kept_for_what_may_be_sent_again() {
    let (gateway, _folder) = with_perl(COUNTING, "");
    let page = || counted(gateway.clients, "GET", "", "");
    // The first one is that of the ready check.
    assert_eq!([page(), page(), page()], ["2 1 1", "2 2 1", "2 3 1"]);
    let posted = counted(gateway.clients, "POST", "Content-Length: 2\r\n", "hi");
    assert_eq!(posted, "3 1 0", "it may not be sent again, and may be left unread");
    assert_eq!([page(), page()], ["4 1 1", "4 2 1"]);
    let long = format!("Cookie: a={}\r\n", "1".repeat(9000));
    assert_eq!(counted(gateway.clients, "GET", &long, ""), "4 3 0", "its end may be left unread");
    assert_eq!(page(), "5 1 1");
    gateway.process.finish();
}

#[test]
fn a_worker_that_closes_its_connections_is_soon_not_asked_to_keep_them() {
    let (gateway, _folder) = with_perl(COUNTING, ", \"closes\"");
    let mut asked = 0;
    loop {
        let page = counted(gateway.clients, "GET", "", "");
        if page.ends_with(" 1 0") {
            break;
        }
        asked += 1;
        assert!(asked < 20, "{page}");
    }
    gateway.process.finish();
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

#[test]
fn the_children_of_php_fpm_are_shown() {
    let site = Site::with_php_fpm(3, "status = \"/status\"\n");
    let state = || json(&get(site.gateway.admin, "/api/state").1);
    let began = Instant::now();
    let php = loop {
        let php = state()["nodes"][0]["php"].clone();
        if !php.is_null() {
            break php;
        }
        assert!(began.elapsed() < LONG, "nothing is known of them");
        thread::sleep(Duration::from_millis(10));
    };
    // One of them answers the question.
    assert_eq!((&php["total"], &php["active"], &php["idle"]), (&3.into(), &1.into(), &2.into()), "{php}");
    assert_eq!((&php["listen_queue"], &php["max_children_reached"]), (&0.into(), &0.into()), "{php}");
    let metrics = get(site.gateway.admin, "/metrics").1;
    assert!(
        metrics.contains("suimon_node_php_children{node=\"fastcgi:") && metrics.contains("state=\"idle\"} 2")
    );
    let shown = run(&["status", "--admin", &site.gateway.admin_url()]);
    assert!(shown.out.contains("php-fpm: 1 of 3 children busy"), "{shown:?}");
    assert_eq!(get(site.gateway.clients, "/status").0, 404, "it is not for visitors");
}

#[test]
fn a_status_page_that_php_fpm_does_not_know_is_told_once() {
    let site = Site::with_php_fpm(1, "status = \"/other\"\n");
    let told = site.gateway.process.wait_err("status page");
    assert!(told.contains("does not know its path (pm.status_path)"), "{told}");
    assert!(json(&get(site.gateway.admin, "/api/state").1)["nodes"][0]["php"].is_null());
    assert_eq!(get(site.gateway.clients, "/").0, 200);
}
