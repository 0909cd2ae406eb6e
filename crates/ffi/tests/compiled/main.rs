//! Programs in C, compiled with the header and run with the library: a careless process of eight threads, and the
//! replay of recordings, which decides as the same in Rust does, bit for bit.

#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use serde_json::Value;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use suimon_record::Segment;
use suimon_sim::replay::Replay;

/// Requests of the process.
const REQUESTS: u64 = 100_000;
/// The same where memory is watched, which takes many times as long.
const REQUESTS_WATCHED: u64 = 8_000;

/// What stands above the traces that are kept.
const TRACES: &str =
    "# Each recording, and the hash of all its decisions (suimon_gate_trace, hexadecimal).\n";

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program that is killed if its test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Compiles a program of `tests/c` or `examples`, and returns what runs it.
fn compiled(source: &str, folder: &Path, more: &[&str]) -> Command {
    // The library is built beside the test.
    let library = env::current_exe().unwrap().parent().unwrap().to_owned();
    let program = folder.join(Path::new(source).file_stem().unwrap());
    let said = Command::new("cc")
        .args([
            "-std=c99",
            "-D_POSIX_C_SOURCE=200809L",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-g",
            "-O1",
        ])
        .args(more)
        .arg("-I")
        .arg(here().join("include"))
        .arg(here().join(source))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg("-lsuimon")
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", &library);
    command
}

fn said(command: &mut Command) -> String {
    let said = command.output().unwrap();
    assert!(said.status.success(), "{:?}\n{}", said.status, String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap()
}

/// Settings under which some requests wait for a slot, some for their session, and some are refused.
fn crowded(recording: &Path) -> String {
    format!(
        "lease.keys = \"none\"\nlearned.state = \"none\"\nadmin.listen = \"off\"\nlog.filter = \"warn\"\n\
         record.file = \"{}\"\n[[route]]\nmatch = \"GET /hold/{{n}}\"\nmode = 2\n[[session]]\nkind = \"shopping\"\n\
         [gate]\nsession_law = \"static\"\nstatic_sessions = 950\n",
        recording.display()
    )
}

/// Holds what a process's gateway says of itself when all is over.
fn balances(state: &str, requests: u64) {
    let state: Value = serde_json::from_str(state).unwrap();
    let sum = |what: &str| -> u64 {
        let routes = state["routes"].as_array().unwrap();
        routes.iter().map(|route| route[what].as_u64().unwrap()).sum()
    };
    let [offered, completed, failed, abandoned, refused, pages] =
        ["offered", "completed", "failed", "abandoned", "refused", "waiting_pages"].map(sum);
    assert_eq!(offered, completed + failed + abandoned + refused + pages, "{state:#}");
    assert_eq!(sum("in_flight") + sum("queued") + sum("suspended"), 0);
    assert_eq!(state["totals"]["requests"], requests);
    println!(
        "{offered} offered: {completed} completed, {failed} failed, {abandoned} abandoned, {refused} refused, {pages} shown a position"
    );
    let some = requests / 100;
    assert!(
        offered > requests / 2 && completed > some && failed > some / 2 && abandoned > some && refused > some
    );
}

/// Replays files of a recording in Rust and in C, and returns the trace.
fn replays_alike(files: &[PathBuf], replay: &mut Command) -> u64 {
    let mut played = Replay::new();
    for file in files {
        let bytes = fs::read(file).unwrap();
        played.play(&Segment::read(&bytes).unwrap()).unwrap();
    }
    assert!(played.divergence.is_none(), "{:?}", played.divergence);
    let text = said(replay.args(files));
    let number = |line: &str, of: &str| -> u64 {
        let words: Vec<&str> = line.split([' ', ',']).collect();
        words[words.iter().position(|word| *word == of).unwrap() - 1].parse().unwrap()
    };
    let sum = |of: &str| -> u64 { text.lines().map(|line| number(line, of)).sum() };
    assert_eq!((sum("events"), sum("marks")), (played.events, played.marks), "{text}");
    assert!(sum("started") > 0, "{text}");
    let last = text.lines().last().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(u64::from_str_radix(last, 16).unwrap(), played.trace);
    println!("{text}");
    played.trace
}

/// Returns the files of a recording, the oldest first.
fn files_of(recording: &Path) -> Vec<PathBuf> {
    let named = recording.file_name().unwrap().to_str().unwrap().to_owned() + ".";
    let entries = fs::read_dir(recording.parent().unwrap()).unwrap();
    let aside = entries.map(|entry| entry.unwrap().path());
    let is_aside = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&named);
    let mut files: Vec<_> = aside.filter(is_aside).collect();
    files.sort();
    files.push(recording.to_owned());
    files
}

#[test]
fn a_careless_process_leaves_nothing_behind_and_its_recording_replays_alike_in_c() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("gate.rec");
    let mut crowd = compiled("tests/c/crowd.c", folder.path(), &[]);
    balances(&said(crowd.arg(crowded(&recording)).arg(REQUESTS.to_string())), REQUESTS);
    let mut replay = compiled("tests/c/replay.c", folder.path(), &[]);
    replays_alike(&files_of(&recording), &mut replay);
}

#[test]
fn a_careless_process_touches_no_memory_that_is_not_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("gate.rec");
    // Leaks are looked for, too.
    let mut crowd =
        compiled("tests/c/crowd.c", folder.path(), &["-fsanitize=address", "-fno-omit-frame-pointer"]);
    crowd.env("ASAN_OPTIONS", "detect_leaks=1");
    let told = said(crowd.arg(crowded(&recording)).arg(REQUESTS_WATCHED.to_string()));
    balances(&told, REQUESTS_WATCHED);
    let mut replay = compiled("tests/c/replay.c", folder.path(), &["-fsanitize=address"]);
    replays_alike(&files_of(&recording), &mut replay);
}

#[test]
fn the_example_answers_two_requests_of_which_one_waits() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = compiled("examples/server.c", folder.path(), &["-fsanitize=address"]);
    let settings = "lease.keys = \"none\"\nadmin.listen = \"off\"\nlog.filter = \"warn\"\n[[route]]\nmatch = \"GET /\"\nmode = 1\n";
    let mut server = Running(server.args(["0", settings]).stdout(Stdio::piped()).spawn().unwrap());
    let mut url = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().trim_end_matches('/');
    let ask = || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nhost: shop\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answers = thread::scope(|scope| {
        let other = scope.spawn(ask);
        [ask(), other.join().unwrap()]
    });
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 200 ")), "{answers:?}");
    let held = answers.iter().filter(|answer| answer.contains("\nsuimon-held: ")).count();
    assert_eq!(held, 1, "{answers:?}");
    let pid = server.0.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn recordings_of_a_gateway_replay_alike_in_c_with_the_hash_that_is_kept_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = here().join("tests/vectors");
    let mut traces = String::from(TRACES);
    for name in ["line.rec", "shop.rec"] {
        let recorded = fs::read(vectors.join(name)).unwrap();
        let read = Segment::read(&recorded).map(drop);
        assert_eq!(read, Ok(()), "{name}: scripts/make-vectors records it anew");
        let mut replay = compiled("tests/c/replay.c", folder.path(), &[]);
        let trace = replays_alike(&[vectors.join(name)], &mut replay);
        traces += &format!("{name} {trace:016x}\n");
    }
    let kept = vectors.join("traces.txt");
    if env::var_os("SUIMON_REDRAW").is_some() {
        fs::write(&kept, &traces).unwrap();
    }
    assert_eq!(fs::read_to_string(kept).unwrap(), traces, "scripts/make-vectors records them anew");
}

#[test]
fn bytes_that_are_no_recording_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(here().join("tests/vectors/shop.rec")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let path = folder.path().join("damaged.rec");
    fs::write(&path, bytes).unwrap();
    let mut replay = compiled("tests/c/replay.c", folder.path(), &["-fsanitize=address"]);
    let told = replay.arg(path).output().unwrap();
    assert_eq!(told.status.code(), Some(1));
    let why = String::from_utf8(told.stderr).unwrap();
    assert!(why.contains("at byte ") && why.contains("the checksum is wrong"), "{why}");
}
