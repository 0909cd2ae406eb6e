//! The pool of workers, and the node that it is.

use crate::Faults;
use crate::read::{Sections, Values};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use suimon_control::{DynamicParams, SizeLawKind};
use suimon_params::pool::{
    CommandParams, MemoryParams, PoolParams, SizeParams, User, WorkerKind, WorkerListen, WorkersParams,
};
use suimon_params::upstream::{NodeParams, WorkersNodeParams};

/// What makes php-cgi serve until it is told to end; others do not know it.
const PHP_WITHOUT_END: (&str, &str) = ("PHP_FCGI_MAX_REQUESTS", "0");
/// What is said of workers that stay only.
const OF_RESIDENTS: [&str; 10] = [
    "listen",
    "sockets",
    "min",
    "memory",
    "memory_reserve",
    "ready",
    "ready_within",
    "requests_max",
    "age_max",
    "worker_memory_max",
];
/// The `PATH` of workers where the gateway has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns what the workers of the pool speak, if there is one.
pub(crate) fn kind(sections: &Sections) -> Option<WorkerKind> {
    Some(sections.repeated("pool").first()?.choice("kind", WorkerKind::of))
}

/// Returns whether a law finds how many workers there are.
pub(crate) fn finds_workers(values: &Values) -> bool {
    values.choice("kind", WorkerKind::of) != WorkerKind::Cgi
        && values.choice("size_law", SizeLawKind::of) == SizeLawKind::Measured
}

/// Makes the program that answers every path the command itself.
pub(crate) fn run_itself(command: &mut CommandParams, file: &str) {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.into());
    if command.folder.is_none() {
        command.folder = file.parent().map(Path::to_owned);
    }
    command.program = file;
}

/// Returns the pool, if there is one, and puts it in place of `nodes`. `cores`: those that the
/// application has.
pub(crate) fn pool(
    sections: &Sections,
    cores: u32,
    nodes: &mut Vec<NodeParams>,
    faults: &mut Faults,
) -> Option<WorkersNodeParams> {
    let values = sections.repeated("pool").first()?;
    let name: Arc<str> = values.given_text("name")?.into();
    if *nodes != sections.default_nodes() {
        faults.value("upstream.nodes", "given", "left out: the pool takes all requests");
    }
    let kind = values.choice("kind", WorkerKind::of);
    *nodes = vec![NodeParams::of_workers(Arc::clone(&name), kind != WorkerKind::Http)];
    if kind == WorkerKind::Cgi {
        refuse_of_residents(values, faults);
    }
    let (least, most) = (values.small("min"), values.small("max"));
    if least > most {
        faults.value("pool[0].min", least, format!("at most pool[0].max ({most})"));
    }
    let seed = sections.once("gate").count("seed");
    Some(WorkersNodeParams {
        size: SizeParams { law: size_law(values, kind, cores, most), least: least.min(most), most, cores },
        ready_path: values.given_text("ready").map(str::to_owned),
        pool: PoolParams {
            name,
            kind,
            command: command(values, kind, faults)?,
            workers: WorkersParams {
                starting_cores: (cores / 2).max(1) as usize,
                ready_within: values.time("ready_within"),
                stop_within: values.time("stop_within"),
                requests_max: Some(values.count("requests_max")).filter(|count| *count > 0),
                age_max: Some(values.time("age_max")).filter(|age| !age.is_zero()),
                memory_max: values.given_count("worker_memory_max"),
                seed,
                ..WorkersParams::default()
            },
            memory: MemoryParams {
                budget: values.given_count("memory"),
                reserve: values.given_count("memory_reserve"),
            },
            folder: values.given_path("sockets").unwrap_or_else(folder),
            guardian: None,
        },
    })
}

fn size_law(values: &Values, kind: WorkerKind, cores: u32, most: u32) -> SizeLawKind {
    let workers = values.given_count("workers").and_then(|count| u32::try_from(count).ok());
    match values.choice("size_law", SizeLawKind::of) {
        _ if kind == WorkerKind::Cgi => {
            let most = values.is_given("max").then_some(most);
            SizeLawKind::Fixed(workers.or(most).unwrap_or(2 * cores + 1))
        }
        SizeLawKind::Dynamic(_) => SizeLawKind::Dynamic(DynamicParams { most, ..DynamicParams::default() }),
        SizeLawKind::Fixed(_) => SizeLawKind::Fixed(workers.unwrap_or(2 * cores + 1)),
        law => law,
    }
}

/// Notes what says something of workers that stay, where none does.
fn refuse_of_residents(values: &Values, faults: &mut Faults) {
    let law = values.choice("size_law", SizeLawKind::of);
    if values.is_given("size_law") && !matches!(law, SizeLawKind::Fixed(_)) {
        let allowed = "\"fixed\" or left out with kind = \"cgi\": a process runs once for each request, so there is no number of workers to be found";
        faults.value("pool[0].size_law", format!("\"{}\"", law.word()), allowed);
    }
    for key in OF_RESIDENTS {
        if values.is_given(key) {
            let allowed =
                "left out with kind = \"cgi\": a process runs once for each request, and none stays";
            faults.value(format!("pool[0].{key}"), "given", allowed);
        }
    }
}

fn command(values: &Values, kind: WorkerKind, faults: &mut Faults) -> Option<CommandParams> {
    let mut words = values.given_texts("command").into_iter();
    let program = match words.next() {
        Some(program) => program,
        // Then the program that a request asks for is run itself.
        None if kind == WorkerKind::Cgi => String::new(),
        None => {
            faults.missing("pool[0].command", "name the program, such as [\"php-cgi\"]");
            return None;
        }
    };
    let mut environment =
        vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_else(|_| PATH.to_owned()))];
    if kind == WorkerKind::FastCgi {
        let (name, value) = PHP_WITHOUT_END;
        environment.push((name.to_owned(), value.to_owned()));
    }
    for entry in values.texts("environment") {
        let (name, value) = entry.split_once('=').expect("the schema takes nothing else");
        environment.retain(|(other, _)| other != name);
        environment.push((name.to_owned(), value.to_owned()));
    }
    let mut command = CommandParams {
        program: program.into(),
        arguments: words.collect(),
        environment,
        folder: values.given_path("directory"),
        user: values.given_text("user").and_then(|name| user(name, faults)),
        listen: WorkerListen::StandardInput,
    };
    let (said, by_words) =
        (values.given_text("listen").and_then(WorkerListen::of), command.listen_by_words());
    if kind == WorkerKind::Cgi && by_words.is_some() {
        let allowed = "without {socket} and {port} with kind = \"cgi\": the program reads the request from its environment and its standard input";
        faults.value("pool[0].command", "given", allowed);
    }
    command.listen = said.or(by_words).unwrap_or(WorkerListen::StandardInput);
    Some(command)
}

fn user(name: &str, faults: &mut Faults) -> Option<User> {
    match suimon_process::find_user(name) {
        Ok(Some(rights)) => Some(User { id: rights.user, group: rights.group, groups: rights.groups }),
        Ok(None) => {
            faults.value("pool[0].user", format!("{name:?}"), "a user of this machine");
            None
        }
        Err(error) => {
            let allowed = format!("a user of this machine, and whether it is cannot be found out: {error}");
            faults.value("pool[0].user", format!("{name:?}"), allowed);
            None
        }
    }
}

/// Returns the folder of the sockets where none is said.
fn folder() -> PathBuf {
    match suimon_process::user_id() {
        0 => PathBuf::from("/run/suimon"),
        user => std::env::temp_dir().join(format!("suimon-{user}")),
    }
}
