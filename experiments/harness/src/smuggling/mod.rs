//! `smuggling`: does an application behind the gateway ever see a request whose sender gets no
//! answer to it?
//!
//! Ambiguous messages go through chains of Suimon, nginx and HAProxy to an application that notes
//! every request. If the application sees a request that was hidden in another's body, and its
//! sender gets no answer to it, then another client would get that answer: that is smuggling.

mod cases;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_statistics::table::numbers;

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::data;
use crate::gateways::{Gateway, start_haproxy, start_nginx, start_suimon};
use crate::machine::Machine;
use crate::trouble::{Result, While};
use cases::HIDDEN;

const NAME: &str = "smuggling";
/// If an answer does not begin or continue for this long, it will not come.
const SILENCE: Duration = Duration::from_millis(300);
/// Visitors who follow each message, and might get the answer to a request hidden in it.
const VICTIMS: usize = 2;
/// The longest message that the application reads, and the longest answer that is read from it.
const BYTES_MAX: usize = 1 << 20;

/// Does an application behind the gateway ever see a request whose sender gets no answer to it?
///
/// Some hundred ambiguous messages, each through six chains: Suimon alone, behind and in front of
/// nginx and HAProxy, and behind itself. After each message visitors follow on connections of their
/// own. It holds if no chain with Suimon lets the application see a hidden request that its sender
/// got no answer to, every visitor gets the answer to the visitor's own request, and Suimon tells
/// an application each length once.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run smuggling                 about 8 minutes")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
}

/// The order of the hops, from the client to the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Hop {
    Suimon,
    Nginx,
    Haproxy,
}

const CHAINS: [&[Hop]; 6] = [
    &[Hop::Suimon],
    &[Hop::Nginx, Hop::Suimon],
    &[Hop::Haproxy, Hop::Suimon],
    &[Hop::Suimon, Hop::Nginx],
    &[Hop::Suimon, Hop::Haproxy],
    &[Hop::Suimon, Hop::Suimon],
];

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    chains: Vec<Chain>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Chain {
    hops: Vec<Hop>,
    messages: u64,
    /// Messages that the application did not see.
    refused: u64,
    /// Messages whose hidden request the application saw and its sender got an answer to, as to a
    /// request of its own: pipelining.
    pipelined: u64,
    /// Messages whose hidden request was seen, but not answered to its sender.
    smuggled: Vec<String>,
    /// Visitors who got another client's answer, or none.
    misled: Vec<String>,
    /// Heads that give the length of their body twice, or in a way that two parties might read
    /// differently.
    ambiguous: Vec<String>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let mut chains = Vec::new();
    for hops in CHAINS {
        chains.push(play(&common, hops)?);
        eprintln!("{}", words(hops));
    }
    let mut data =
        Data { experiment: NAME.to_string(), machine: common.machine.clone(), chains, claims: Vec::new() };
    data.claims = judge(&data.chains);
    data::save(&common.out.join("data/result.json"), &data)?;
    print!("{}{}", tables(&data.chains), claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

fn play(common: &Common, hops: &[Hop]) -> Result<Chain> {
    let app = App::start()?;
    let mut to = app.address;
    let mut gateways: Vec<Gateway> = Vec::new();
    for (place, hop) in hops.iter().enumerate().rev() {
        let folder = common.scratch.join(words(hops).replace(' ', "-")).join(place.to_string());
        fs::create_dir_all(&folder).trouble(folder.display())?;
        let gateway = hop.start(common, &folder, to)?;
        to = gateway.address;
        gateways.push(gateway);
    }
    let mut chain = Chain { hops: hops.to_vec(), ..Chain::default() };
    let cases = cases::all();
    let cases = if common.quick { &cases[..10] } else { &cases[..] };
    for (number, message) in cases.iter().enumerate() {
        let shown = || String::from_utf8_lossy(message).escape_debug().to_string();
        app.forget();
        let answers = exchange(to, message);
        let seen = app.seen();
        chain.messages += 1;
        chain.refused += u64::from(seen.is_empty());
        let hidden_seen = seen.iter().filter(|head| path_of(head) == HIDDEN).count();
        let hidden_answered = answers.matches(&answer_to(HIDDEN)).count();
        match hidden_seen {
            0 => {}
            _ if hidden_answered >= hidden_seen => chain.pipelined += 1,
            _ => chain.smuggled.push(shown()),
        }
        // Only the last hop talks to the application.
        if hops.last() == Some(&Hop::Suimon) {
            chain.ambiguous.extend(seen.iter().filter(|head| is_ambiguous(head)).cloned());
        }
        for victim in 0..VICTIMS {
            let path = format!("/visitor/{number}/{victim}");
            let answers = exchange(
                to,
                format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes(),
            );
            if !answers.contains(&answer_to(&path)) {
                chain.misled.push(format!("{path} after {}", shown()));
            }
        }
    }
    Ok(chain)
}

impl Hop {
    fn name(self) -> &'static str {
        match self {
            Hop::Suimon => "Suimon",
            Hop::Nginx => "nginx",
            Hop::Haproxy => "HAProxy",
        }
    }

    fn start(self, common: &Common, folder: &Path, to: SocketAddr) -> Result<Gateway> {
        match self {
            // Requests held at a gate would only be late.
            Hop::Suimon => {
                let settings = "[gate]\nsession_law = \"open\"\n\n[discovery]\nmode = \"off\"\n";
                start_suimon(common, folder, to, Some(settings), common.load_core)
            }
            Hop::Haproxy => start_haproxy(folder, common.load_core, |listen| haproxy(listen, to)),
            Hop::Nginx => start_nginx(folder, common.load_core, |listen| nginx(listen, to)),
        }
    }
}

/// Upstream connections are reused: that is where a smuggled request would wait for its victim.
fn nginx(listen: SocketAddr, to: SocketAddr) -> String {
    format!(
        "    ignore_invalid_headers off;
    upstream next {{ server {to}; keepalive 16; }}
    server {{
        listen {listen};
        location / {{
            proxy_pass http://next;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_request_buffering off;
        }}
    }}
"
    )
}

fn haproxy(listen: SocketAddr, to: SocketAddr) -> String {
    format!(
        "global
    maxconn 1000
    nbthread 1

defaults
    mode http
    timeout connect 3s
    timeout client 20s
    timeout server 20s

frontend visitors
    bind {listen}
    default_backend next

backend next
    http-reuse always
    server next {to}
"
    )
}

/// An application that notes every head.
struct App {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl App {
    fn start() -> Result<App> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).trouble("the application")?;
        let address = listener.local_addr().trouble("the application")?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(std::io::Result::ok) {
                let seen = Arc::clone(&all);
                thread::spawn(move || _ = serve(stream, &seen));
            }
        });
        Ok(App { address, seen })
    }

    fn forget(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads requests as RFC 9112 says, with chunks taking precedence over lengths, and answers each
/// with its own text.
fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let head = loop {
            match bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break bytes.drain(..at + 4).collect::<Vec<u8>>(),
                None if more(&mut stream, &mut bytes)? => {}
                None => return Ok(()),
            }
        };
        let head = String::from_utf8_lossy(&head).into_owned();
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
        let lower = head.to_ascii_lowercase();
        if lower.contains("\r\ntransfer-encoding:") {
            // Up to the end of the last chunk, which does not occur earlier in any body here.
            let end = loop {
                match bytes.windows(5).position(|window| window == b"0\r\n\r\n") {
                    Some(at) => break at + 5,
                    None if more(&mut stream, &mut bytes)? => {}
                    None => return Ok(()),
                }
            };
            bytes.drain(..end);
        } else if let Some(length) = lower.split("\r\ncontent-length:").nth(1) {
            let length: usize = length.split("\r\n").next().unwrap_or_default().trim().parse().unwrap_or(0);
            while bytes.len() < length {
                if !more(&mut stream, &mut bytes)? {
                    return Ok(());
                }
            }
            bytes.drain(..length);
        }
        let body = answer_to(path_of(&head));
        // The answer to HEAD has no body.
        let shown = if head.starts_with("HEAD ") { "" } else { &body };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{shown}",
            body.len()
        )?;
    }
}

fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut piece = [0; 4096];
    let length = stream.read(&mut piece)?;
    bytes.extend_from_slice(&piece[..length]);
    Ok(length > 0 && bytes.len() < BYTES_MAX)
}

fn path_of(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

fn answer_to(path: &str) -> String {
    format!("[answer to {path}]")
}

/// Returns whether a head gives the length of its body more than once.
fn is_ambiguous(head: &str) -> bool {
    let lower = head.to_ascii_lowercase();
    let lines = lower.split("\r\n").skip(1);
    let says = lines.filter(|line| line.contains("content-length") || line.contains("transfer-encoding"));
    says.count() > 1
}

/// Sends a message and returns everything sent back.
fn exchange(to: SocketAddr, message: &[u8]) -> String {
    let Ok(mut stream) = TcpStream::connect(to) else { return String::new() };
    let _ = stream.set_read_timeout(Some(SILENCE));
    let _ = stream.write_all(message);
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while answer.len() < BYTES_MAX {
        match stream.read(&mut piece) {
            Ok(length) if length > 0 => answer.extend_from_slice(&piece[..length]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn words(hops: &[Hop]) -> String {
    let names: Vec<&str> = hops.iter().map(|hop| hop.name()).collect();
    names.join(" to ")
}

fn judge(chains: &[Chain]) -> Vec<Claim> {
    let sum = |of: fn(&Chain) -> &Vec<String>| chains.iter().map(|chain| of(chain).len()).sum::<usize>();
    let (smuggled, misled, ambiguous) =
        (sum(|chain| &chain.smuggled), sum(|chain| &chain.misled), sum(|chain| &chain.ambiguous));
    vec![
        Claim::new(
            format!("no hidden request is seen that its sender was not answered ({smuggled})"),
            smuggled == 0,
        ),
        Claim::new(format!("every visitor gets their own answer ({misled} did not)"), misled == 0),
        Claim::new(
            format!("what Suimon writes tells its length once ({ambiguous} heads did not)"),
            ambiguous == 0,
        ),
    ]
}

fn tables(chains: &[Chain]) -> String {
    let row = |chain: &Chain| {
        vec![
            words(&chain.hops),
            chain.messages.to_string(),
            chain.refused.to_string(),
            chain.pipelined.to_string(),
            chain.smuggled.len().to_string(),
            chain.misled.len().to_string(),
            chain.ambiguous.len().to_string(),
        ]
    };
    let headings = ["chain", "messages", "refused", "pipelined", "smuggled", "misled", "ambiguous"];
    numbers(&headings, &chains.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_application_answers_what_is_pipelined_and_reads_bodies_to_their_end() {
        let app = App::start().unwrap();
        let answers = exchange(
            app.address,
            b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloPOST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /c HTTP/1.1\r\n\r\n",
        );
        assert_eq!(app.seen().iter().map(|head| path_of(head)).collect::<Vec<_>>(), ["/a", "/b", "/c"]);
        assert!(["/a", "/b", "/c"].iter().all(|path| answers.contains(&answer_to(path))), "{answers}");
    }

    #[test]
    fn a_head_that_tells_its_length_twice_is_ambiguous() {
        assert!(is_ambiguous("POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"));
        assert!(!is_ambiguous("POST /content-length HTTP/1.1\r\nContent-Length: 5\r\n\r\n"));
    }
}
