//! Finds a shop's knee: searches completed per second at 1, 2, 4, ... searches at once.
//!
//! `knee URL PID [SECONDS [MOST]]`: each step keeps n visitors searching and lets each of them
//! finish one search. It then measures for SECONDS (30) and at least n searches, but never longer
//! than six times SECONDS. The last step has MOST (64) visitors. Works with either shop. PID is the
//! shop's process: the efficiency is searches per second of *its* CPU time (Linux), so other work
//! on the machine hardly disturbs it. Pin the shop to one core and this program to another, and
//! give the shop `--scale 4`, so that a step sees many searches.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, process, ..] = arguments.as_slice() else {
        eprintln!("usage: knee URL PID [SECONDS [MOST]]");
        return ExitCode::from(2);
    };
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let number = |index: usize, default: u64| arguments.get(index).map_or(Ok(default), |text| text.parse());
    let (Ok(seconds), Ok(most)) = (number(2, 30), number(3, 64)) else {
        eprintln!("knee: SECONDS and MOST must be whole numbers");
        return ExitCode::from(2);
    };

    println!(
        "{:>9} {:>12} {:>18} {:>11} {:>8}",
        "at once", "searches/s", "searches/CPU s", "efficiency", "failed"
    );
    let mut alone = 0.0;
    let mut visitors = 1;
    while visitors <= most {
        let Step { seconds, cpu_seconds, completed, failed } =
            step(address, process, visitors, Duration::from_secs(seconds));
        let (rate, worth) = (f64::from(completed) / seconds, f64::from(completed) / cpu_seconds);
        if visitors == 1 {
            alone = worth;
        }
        println!("{visitors:>9} {rate:>12.2} {worth:>18.2} {:>10.0}% {failed:>8}", 100.0 * worth / alone);
        visitors *= 2;
    }
    ExitCode::SUCCESS
}

struct Step {
    seconds: f64,
    cpu_seconds: f64,
    completed: u32,
    failed: u32,
}

/// Returns the CPU time the process has used so far, in seconds. A clock tick is 1/100 s on every
/// Linux we know.
fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>()
        / 100.0
}

/// Keeps `visitors` visitors searching and counts the searches they complete.
fn step(address: &str, process: &str, visitors: u64, measured: Duration) -> Step {
    let over = AtomicBool::new(false);
    let (completed, failed) = (AtomicU32::new(0), AtomicU32::new(0));
    let done = || completed.load(Ordering::Relaxed) + failed.load(Ordering::Relaxed);
    let wait = |searches: u32, most: Duration| {
        let begun = Instant::now();
        while done() < searches && begun.elapsed() < most {
            thread::sleep(Duration::from_millis(20));
        }
    };
    let visitors = visitors.min(10_000) as u32;
    let mut counted = (0, 0);
    let (mut seconds, mut cpu) = (0.0, 0.0);
    thread::scope(|scope| {
        for visitor in 0..visitors {
            let (over, completed, failed) = (&over, &completed, &failed);
            scope.spawn(move || {
                // Spread the starts, or all visitors would begin and finish together.
                thread::sleep(measured.mul_f64(f64::from(visitor) / f64::from(visitors) / 3.0));
                let mut client = None;
                while !over.load(Ordering::Relaxed) {
                    let done = search(&mut client, address);
                    if done.is_ok_and(|done| done) {
                        completed.fetch_add(1, Ordering::Relaxed);
                    } else {
                        failed.fetch_add(1, Ordering::Relaxed);
                        client = None;
                        thread::sleep(Duration::from_millis(100));
                    }
                }
            });
        }
        wait(visitors.max(10), measured * 3);
        let before = (completed.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
        let (begun, cpu_before) = (Instant::now(), cpu_seconds(process));
        thread::sleep(measured);
        wait(before.0 + before.1 + visitors, measured * 5);
        seconds = begun.elapsed().as_secs_f64();
        cpu = cpu_seconds(process) - cpu_before;
        counted = (completed.load(Ordering::Relaxed) - before.0, failed.load(Ordering::Relaxed) - before.1);
        over.store(true, Ordering::Relaxed);
    });
    Step { seconds, cpu_seconds: cpu, completed: counted.0, failed: counted.1 }
}

/// One visitor's connection, logged in.
struct Client {
    stream: BufReader<TcpStream>,
    cookie: String,
}

/// Logs in first if needed, and searches once. Returns whether the results came.
fn search(client: &mut Option<Client>, address: &str) -> io::Result<bool> {
    let mut visitor = match client.take() {
        Some(visitor) => visitor,
        None => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            let mut visitor = Client { stream: BufReader::new(stream), cookie: String::new() };
            let form = "user=knee&password=knee";
            let head = format!(
                "POST /login HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}",
                form.len()
            );
            let answer = exchange(&mut visitor.stream, &head)?;
            if answer.status != 200 {
                return Ok(false);
            }
            visitor.cookie = answer.cookie;
            visitor
        }
    };
    let head =
        format!("GET /search?q=lantern HTTP/1.1\r\nHost: {address}\r\nCookie: {}\r\n\r\n", visitor.cookie);
    let answer = exchange(&mut visitor.stream, &head)?;
    if !answer.last {
        *client = Some(visitor);
    }
    Ok(answer.status == 200)
}

struct Answer {
    status: u16,
    /// The cookie that the response sets, or empty.
    cookie: String,
    /// The server closes the connection after this response.
    last: bool,
}

/// Sends a request and reads the whole response.
fn exchange(stream: &mut BufReader<TcpStream>, request: &str) -> io::Result<Answer> {
    stream.get_mut().write_all(request.as_bytes())?;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status =
        line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let (mut length, mut cookie, mut last) = (0, String::new(), false);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let (name, value) = line.trim_end().split_once(':').ok_or(io::ErrorKind::InvalidData)?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        } else if name.eq_ignore_ascii_case("set-cookie") {
            cookie = value.trim().split(';').next().unwrap_or_default().to_owned();
        } else if name.eq_ignore_ascii_case("connection") {
            last = value.trim().eq_ignore_ascii_case("close");
        }
    }
    io::copy(&mut stream.by_ref().take(length), &mut io::sink())?;
    Ok(Answer { status, cookie, last })
}
