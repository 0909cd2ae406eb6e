//! `suimon serve`: stands in front of an application until told to stop.

mod access_log;
pub(crate) mod admin;
mod descriptors;
mod drain;
mod given;
pub(crate) mod kubernetes;
pub(crate) mod logging;
mod notify;
mod otlp;
mod reload;
mod role;
mod source;
pub(crate) mod state_files;
mod takeover;
mod telemetry;

use crate::args::Serve;
use crate::exit::Exit;
use crate::{interrupt, summary};
use admin::{Bound, Credentials};
use drain::Surroundings;
use given::Given;
use notify::Notifier;
use reload::Adopter;
use serde_json::json;
use source::Process;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use suimon_admin::{AdminListener, Beside};
use suimon_identity::keys::KeysError;
use suimon_params::Recording;
use suimon_params::pool::{PORT_WORD, SOCKET_WORD};
use suimon_params::upstream::{NodeAddress, NodeParams};
use suimon_proxy::{BegunSession, RecordError};
use suimon_proxy::{Observer, Server, StartError};
use suimon_settings::{Faults, MAIN_SITE, Settings, StatePath, text_of};
use takeover::{Predecessor, Successor};
use telemetry::Told;
use tokio::net::{TcpStream, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a node may take to accept a connection at the start before a warning.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// Environment variable with the log filter.
const LOG_VARIABLE: &str = "SUIMON_LOG";

/// Serves until told to stop, and then drains.
pub(crate) fn run(args: &Serve) -> Exit {
    let read = || -> Result<_, Faults> {
        let text = args.config.as_deref().map(text_of).transpose()?;
        let name = args.config.as_ref().map(|path| path.display().to_string());
        let named = name.as_deref().zip(text.as_deref());
        Ok((settings(args, named)?, text.unwrap_or_default()))
    };
    let (mut settings, text) = match read() {
        Ok(read) => read,
        Err(faults) => {
            eprintln!("{faults}");
            return Exit::Usage;
        }
    };
    let log = match log(args, &settings) {
        Ok(log) => log,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Usage;
        }
    };
    drain::tell(&settings, Surroundings::here());
    interrupt::listen();
    let notifier = Notifier::from_environment();
    let named = settings.proxy.listen.plain;
    let given = match given::take(&mut settings) {
        Ok(given) => given,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Usage;
        }
    };
    descriptors::raise(settings.proxy.limits.connections);
    settings.proxy.lease.keys_file = state_files::keys(&settings.lease_keys);
    let listen = &settings.proxy.listen;
    // A port that the system chooses has no files, whoever has opened it.
    let plain = if named.is_some_and(|named| named.port() == 0) { named } else { listen.plain };
    let address = plain.or(listen.tls.as_ref().map(|tls| tls.address));
    state_files::name(&mut settings, address);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("the runtime cannot be started: {error}");
            return Exit::Failed;
        }
    };
    let adopter = |observer, credentials, told| {
        Adopter::new(args.clone(), text, observer, log, credentials, told, notifier.clone())
    };
    let refused = takeover::refusal(&settings.proxy, args.config.as_deref());
    let exit = runtime.block_on(serve(settings, given, refused, &notifier, adopter, args.watch_config));
    // The drain is over, and what it left was cut off, so nothing remains to wait for.
    runtime.shutdown_background();
    exit
}

/// Returns the settings in a file's text, with the file's name, if there is one. The command line
/// overrides the file.
fn settings(args: &Serve, file: Option<(&str, &str)>) -> Result<Settings, Faults> {
    let pool = pool(args);
    let mut settings = match file {
        Some((name, text)) => Settings::of_file(name, &(text.to_owned() + &pool))?,
        None if pool.is_empty() => Settings::default(),
        None => Settings::of_file("the command line", &pool)?,
    };
    let mut faults = Faults::none();
    if !args.to.is_empty() {
        let protocol = settings.proxy.upstream.nodes.first().map(|node| node.protocol).unwrap_or_default();
        let mut nodes: Vec<NodeParams> = Vec::new();
        for url in &args.to {
            match NodeParams::parse(url) {
                Ok(node) => nodes.push(NodeParams { protocol, ..node }),
                Err(why) => faults.other(format!("--to: {why}")),
            }
        }
        (settings.proxy.upstream.nodes, settings.proxy.upstream.workers) = (nodes, None);
        settings.proxy.node_discovery = None;
    }
    if let Some(address) = args.listen {
        settings.proxy.listen.plain = Some(address);
    }
    if let Some(at) = &args.admin {
        settings.admin_listen = at.address();
        settings.admin_access.socket = at.socket().map(Into::into);
    }
    match args.lease_keys.as_ref() {
        None => {}
        Some(path) if path.as_os_str() == "none" => settings.lease_keys = StatePath::Nowhere,
        Some(path) => settings.lease_keys = StatePath::File(path.clone()),
    }
    match args.learned.as_ref() {
        None => {}
        Some(path) if path.as_os_str() == "none" => settings.learned_state = StatePath::Nowhere,
        Some(path) => settings.learned_state = StatePath::File(path.clone()),
    }
    if let Some(bytes_max) = args.record_bytes_max {
        settings.record_bytes_max = bytes_max;
    }
    let recorded = settings.proxy.record.take().map(|recording| recording.file);
    settings.proxy.record =
        args.record.clone().or(recorded).map(|file| Recording { file, bytes_max: settings.record_bytes_max });
    if args.record_bytes_max.is_some() && settings.proxy.record.is_none() {
        faults.other("--record-bytes-max: needs a recording; name its file with --record or record.file");
    }
    drain::choose(&mut settings, Surroundings::here());
    settings.check_addresses(&mut faults);
    state_files::check(&settings, &mut faults);
    faults.into_result(settings)
}

/// Returns the section for workers that the command line names, or nothing.
fn pool(args: &Serve) -> String {
    if args.command.is_empty() {
        return String::new();
    }
    let speaks_http = args.command.iter().any(|word| word.contains(SOCKET_WORD) || word.contains(PORT_WORD));
    let kind = if speaks_http { "http" } else { "fastcgi" };
    // Lists and texts are written alike in JSON and TOML.
    let user = args.user.as_ref().map_or(String::new(), |user| format!("user = {}\n", json!(user)));
    format!("\n[[pool]]\nname = \"app\"\nkind = \"{kind}\"\ncommand = {}\n{user}", json!(args.command))
}

/// Begins to log to standard error. The filter is from the flag, else from the environment, else
/// from the file.
fn log(args: &Serve, settings: &Settings) -> Result<logging::Handle, String> {
    let (name, filter) = match (&args.log, std::env::var(LOG_VARIABLE)) {
        (Some(filter), _) => ("--log", filter.clone()),
        (None, Ok(filter)) => (LOG_VARIABLE, filter),
        (None, Err(_)) => ("log.filter", settings.log_filter.clone()),
    };
    let format = settings.telemetry.log_format;
    logging::filter(name, &filter).map(|filter| logging::begin(filter, format))
}

async fn serve(
    mut settings: Settings,
    mut given: Given,
    refused: Option<&'static str>,
    notifier: &Notifier,
    adopter: impl FnOnce(Observer, Credentials, Arc<Told>) -> Adopter,
    watches_config: bool,
) -> Exit {
    // Until it is listened for, the signal would end the process.
    let told_to_hand_over = signal(SignalKind::user_defined2());
    for nodes in settings.proxy.all_sites().filter_map(|site| site.nodes.as_ref()) {
        if let Err(why) = kubernetes::check(nodes).await {
            eprintln!("{why}");
            return Exit::Usage;
        }
    }
    let credentials = match Credentials::load(&settings) {
        Ok(credentials) => credentials,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Usage;
        }
    };
    let takes_over = given.predecessor.is_some();
    let begun = match given.predecessor.as_mut().map(|it| prepared(it, &settings)).transpose() {
        Ok(begun) => begun,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Failed;
        }
    };
    let server = match Server::bind_with(settings.proxy.clone(), given.sockets, begun.as_deref()) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("{error}");
            return exit_of(&error);
        }
    };
    let admin = match credentials.listen(&settings, given.admin, takes_over).await {
        Ok(admin) => admin,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Failed;
        }
    };
    settings.proxy.listen.plain = server.plain_address();
    settings.proxy.upstream.load_reports.listen = server.load_reports_address();
    if let (Some(tls), Some(address)) = (&mut settings.proxy.listen.tls, server.tls_address()) {
        tls.address = address;
    }
    settings.admin_listen = admin.as_ref().and_then(Bound::address);
    let told = match Told::begin(&settings.telemetry) {
        Ok(told) => told,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Failed;
        }
    };
    if let Some(notes) = told.notes(&settings.telemetry) {
        server.note_requests(&notes);
    }
    let adopter = adopter(server.observer(), credentials.clone(), Arc::clone(&told));
    tokio::spawn(adopter.tell_repeats());
    if watches_config {
        tokio::spawn(adopter.clone().watch());
    }
    // Listens before announcing that the gateway runs, so that an immediate SIGHUP is not missed.
    // On a terminal SIGHUP keeps its default: it ends the process when the terminal closes.
    if !io::stderr().is_terminal()
        && let Ok(hangup) = signal(SignalKind::hangup())
    {
        tokio::spawn(adopter.clone().hear(hangup));
    }
    if let Some(Err(why)) = given.predecessor.as_mut().map(Predecessor::ready) {
        eprintln!("{why}");
        return Exit::Failed;
    }
    let admin = match admin.map(Bound::open).transpose() {
        Ok(admin) => admin,
        Err(why) if takes_over => {
            tracing::error!("{why}; the gateway continues without it");
            None
        }
        Err(why) => {
            eprintln!("{why}");
            return Exit::Failed;
        }
    };
    announce(&settings);
    credentials.warn(&settings);
    let nodes = settings.proxy.all_sites().flat_map(|site| site.upstream.nodes.clone());
    tokio::spawn(look_at_nodes(nodes.collect()));

    let draining = Arc::new(AtomicBool::new(false));
    let beside: Arc<dyn Beside> = Arc::new(Process { adopter, told: Arc::clone(&told) });
    let sites = suimon_admin::sites_of(&server.observer(), MAIN_SITE, &draining, &beside);
    let (shown, told_of, access) = (sites.clone(), sites.clone(), Arc::clone(&credentials.access));
    let (handed_over, is_handed_over) = watch::channel(false);
    // The collector takes both processes for one, and the numbers of the other one go on from here.
    told.send_numbers(
        &settings.telemetry,
        move || suimon_admin::metrics_text(&shown, env!("CARGO_PKG_VERSION"), &access),
        once(is_handed_over.clone()),
    );
    let mut successor = JoinSet::new();
    if let Ok(told) = told_to_hand_over {
        let admin = admin.as_ref().and_then(AdminListener::descriptor);
        let hands_over = Successor::new(refused, server.handover(), admin, notifier.clone());
        successor.spawn(async move {
            if hands_over.run(told).await {
                handed_over.send_replace(true);
            }
        });
    }
    if let Some(listener) = admin {
        let params = suimon_admin::Params {
            hosts: settings.admin_hosts,
            version: env!("CARGO_PKG_VERSION").to_string(),
            access: Arc::clone(&credentials.access),
        };
        tokio::spawn(async move {
            // The admin listener answers until the very end, so that operators can watch a drain; unless
            // another process answers there.
            let ended = once(is_handed_over);
            if let Err(error) = suimon_admin::serve(listener, params, sites, ended).await {
                tracing::error!(%error, "the admin listener has failed; the gateway continues without it");
            }
        });
    }
    notifier.ready();
    tokio::spawn(notifier.clone().keep(server.observer(), told_of));
    let told_to_stop = async move {
        interrupt::first().await;
        notifier.stopping();
        draining.store(true, Relaxed);
    };
    server.run(told_to_stop).await;
    // A new process that is not the gateway yet would take our end for a crash, and go on.
    successor.shutdown().await;
    tokio::task::block_in_place(|| told.end());
    tracing::info!("ended");
    Exit::Done
}

/// Waits until it is so, maybe for ever.
async fn once(mut is_so: watch::Receiver<bool>) {
    if is_so.wait_for(|is| *is).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Says that what can be checked is right, and waits for the state of the gateway that hands over.
/// Returns the sessions that have begun there.
fn prepared(predecessor: &mut Predecessor, settings: &Settings) -> Result<Vec<BegunSession>, String> {
    match Server::check(&settings.proxy).into_iter().next() {
        Some((_, error)) => Err(error.to_string()),
        None => predecessor.prepared(),
    }
}

/// Prints a summary on standard output, with the ports that are really in use.
fn announce(settings: &Settings) {
    let lines = summary::of_settings(settings);
    let text = format!("suimon {}\n{}", env!("CARGO_PKG_VERSION"), summary::aligned(&lines));
    // The process that started the gateway may not read its output; the gateway serves anyway.
    let _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
}

/// Warns about nodes that do not answer yet. They may start later, so the gateway starts anyway.
async fn look_at_nodes(nodes: Vec<NodeParams>) {
    for node in nodes {
        let look = async {
            match &node.address {
                NodeAddress::Tcp { host, port } => TcpStream::connect((host.as_str(), *port)).await.map(drop),
                NodeAddress::Found { address, .. } => TcpStream::connect(address).await.map(drop),
                NodeAddress::Unix(path) => UnixStream::connect(path).await.map(drop),
                // The gateway starts them itself.
                NodeAddress::Workers(_) => Ok(()),
            }
        };
        let why = match tokio::time::timeout(FIRST_LOOK, look).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", FIRST_LOOK.as_secs()),
        };
        tracing::warn!(
            "{node} cannot be reached ({why}): visitors get an error until it can; start the application, or correct --to or upstream.nodes"
        );
    }
}

/// Returns the exit code: wrong settings, or a failure while running.
fn exit_of(error: &StartError) -> Exit {
    match error {
        StartError::Listen(_, error) | StartError::LoadReports(_, error)
            if error.kind() == io::ErrorKind::AddrNotAvailable =>
        {
            Exit::Usage
        }
        StartError::Listen(..)
        | StartError::LoadReports(..)
        | StartError::Keys(KeysError::Io(..) | KeysError::Random)
        | StartError::Record(RecordError::Io(..)) => Exit::Failed,
        StartError::Params(_)
        | StartError::LoadReportKeys(_)
        | StartError::Tls(_)
        | StartError::Keys(_)
        | StartError::Record(_)
        | StartError::WaitingRoom(_) => Exit::Usage,
    }
}
