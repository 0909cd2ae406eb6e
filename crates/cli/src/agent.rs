//! `suimon agent`: tells how busy this machine is, until told to stop.

mod answer;
mod measure;
mod send;

use crate::args::Agent;
use crate::exit::{Exit, with_runtime};
use crate::interrupt;
use answer::Answers;
use measure::Measure;
use send::Sender;
use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use suimon_agent::keyring::file_text;
use suimon_agent::{GATEWAYS_MAX, NAMES_MAX};
use suimon_identity::keys::fill_random;
use suimon_params::upstream::NodeParams;
use suimon_settings::duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often the run queue is looked at.
const LOOKS_EVERY: Duration = Duration::from_millis(10);

/// Runs until told to stop.
pub(crate) fn run(args: &Agent) -> Exit {
    if let Some(path) = &args.new_key {
        return new_key(path);
    }
    let names = match names(args) {
        Ok(names) => names,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Usage;
        }
    };
    interrupt::listen();
    with_runtime(tell(args, names))
}

/// Returns the names of the nodes, as gateways spell them.
fn names(args: &Agent) -> Result<Vec<String>, String> {
    if args.to.is_empty() && args.agent_check.is_none() && args.http.is_none() {
        return Err("nobody would be told anything: name a gateway with --to (and --node, --keys), or answer HAProxy with --agent-check, or anybody with --http; see suimon agent --help".to_owned());
    }
    for (what, count, most) in [("--to", args.to.len(), GATEWAYS_MAX), ("--node", args.node.len(), NAMES_MAX)]
    {
        if count > most {
            return Err(format!("{what}: there are {count} of them; at most {most} are allowed"));
        }
    }
    let name = |url: &String| {
        let name = NodeParams::parse(url).map_err(|why| format!("--node: {why}"))?.to_string();
        let is_name = suimon_agent::datagram::is_name(&name);
        is_name.then_some(name).ok_or_else(|| {
            format!("--node {url:?}: must be at most 255 letters of ASCII without blanks, to be reported")
        })
    };
    args.node.iter().map(name).collect()
}

async fn tell(args: &Agent, names: Vec<String>) -> Exit {
    let mut measure = match Measure::begin(args) {
        Ok(measure) => measure,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Failed;
        }
    };
    let mut sender = match Sender::open(args, names) {
        Ok(sender) => sender,
        Err((why, exit)) => {
            eprintln!("{why}");
            return exit;
        }
    };
    let (told, load) = watch::channel(measure.load(args.every));
    let mut listeners = Vec::new();
    for (what, address) in [("--agent-check", args.agent_check), ("--http", args.http)] {
        match listen(what, address).await {
            Ok(listener) => listeners.push(listener),
            Err(why) => {
                eprintln!("{why}");
                return Exit::Failed;
            }
        }
    }
    let http = listeners.pop().flatten();
    let agent_check = listeners.pop().flatten();
    announce(args, &sender, agent_check.as_ref(), http.as_ref());
    let answers = Answers { load, drain: args.drain.clone() };
    if let Some(listener) = agent_check {
        tokio::spawn(answer::agent_check(listener, answers.clone()));
    }
    if let Some(listener) = http {
        tokio::spawn(answer::http(listener, answers));
    }
    let reports = async {
        let mut ticks = tokio::time::interval(LOOKS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due = tokio::time::Instant::now();
        loop {
            let now = ticks.tick().await;
            measure.look();
            if now < due {
                continue;
            }
            // A tick that is a little late does not put off all that follow.
            due = (due + args.every).max(now);
            let load = measure.load(args.every);
            match load {
                Some(load) => sender.send(load).await,
                // Once, until it is known again.
                None if told.borrow().is_some() => {
                    eprintln!("{}: cannot be read any more: nothing is reported", measure.path().display());
                }
                None => {}
            }
            told.send_replace(load);
        }
    };
    tokio::select! {
        () = reports => Exit::Failed,
        () = interrupt::first() => Exit::Done,
    }
}

/// Returns a listener on the address, if there is one.
async fn listen(what: &str, address: Option<SocketAddr>) -> Result<Option<TcpListener>, String> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    listener
        .map(Some)
        .map_err(|error| format!("{what} cannot listen on {address}: {error}; choose another address"))
}

/// Says what is told to whom, with the ports that are really in use.
fn announce(args: &Agent, sender: &Sender, agent_check: Option<&TcpListener>, http: Option<&TcpListener>) {
    let address = |listener: &TcpListener| listener.local_addr().ok();
    let mut text = String::new();
    if !args.to.is_empty() {
        let (nodes, gateways) = (sender.names().join(", "), args.to.join(", "));
        text += &format!("reports the load of {nodes} to {gateways} every {}\n", duration::show(args.every));
    }
    if let Some(address) = agent_check.and_then(address) {
        text += &format!("answers agent-check on {address}\n");
    }
    if let Some(address) = http.and_then(address) {
        text += &format!("answers http://{address}/load\n");
    }
    // Whoever started it may not read its output; it runs anyway.
    let _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
}

/// Makes a file with a new key, which must not exist.
fn new_key(path: &Path) -> Exit {
    let mut secret = [0; 32];
    if let Err(error) = fill_random(&mut secret) {
        eprintln!("{error}");
        return Exit::Failed;
    }
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(file_text(0, &secret).as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => {
            println!(
                "{}: made; copy it to every gateway and node, readable for their users alone",
                path.display()
            );
            Exit::Done
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            eprintln!("{}: there is such a file already, and it stays as it is", path.display());
            Exit::Usage
        }
        Err(error) => {
            eprintln!("{}: cannot be written: {error}", path.display());
            Exit::Failed
        }
    }
}
