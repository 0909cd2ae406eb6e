//! The pool of workers, and the node that it is.

use crate::Faults;
use crate::read::{Sections, Values};
use std::path::PathBuf;
use std::sync::Arc;
use suimon_control::{DynamicParams, SizeLawKind};
use suimon_params::pool::{
    CommandParams, MemoryParams, PoolParams, SizeParams, User, WorkerKind, WorkerListen, WorkersParams,
};
use suimon_params::upstream::{NodeParams, WorkersNodeParams};

/// What makes php-cgi serve until it is told to end; others do not know it.
const PHP_WITHOUT_END: (&str, &str) = ("PHP_FCGI_MAX_REQUESTS", "0");
/// The `PATH` of workers where the gateway has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

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
    *nodes = vec![NodeParams::of_workers(Arc::clone(&name), kind == WorkerKind::FastCgi)];
    let (least, most) = (values.small("min"), values.small("max"));
    if least > most {
        faults.value("pool[0].min", least, format!("at most pool[0].max ({most})"));
    }
    let seed = sections.once("gate").count("seed");
    Some(WorkersNodeParams {
        size: SizeParams { law: size_law(values, cores, most), least: least.min(most), most, cores },
        ready_path: values.given_text("ready").map(str::to_owned),
        pool: PoolParams {
            name,
            command: command(values, kind, faults)?,
            workers: WorkersParams {
                starting_max: (cores / 2).max(1) as usize,
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

fn size_law(values: &Values, cores: u32, most: u32) -> SizeLawKind {
    match values.choice("size_law", SizeLawKind::of) {
        SizeLawKind::Dynamic(_) => SizeLawKind::Dynamic(DynamicParams { most, ..DynamicParams::default() }),
        SizeLawKind::Fixed(_) => {
            let workers = values.given_count("workers").and_then(|count| u32::try_from(count).ok());
            SizeLawKind::Fixed(workers.unwrap_or(2 * cores + 1))
        }
        law => law,
    }
}

fn command(values: &Values, kind: WorkerKind, faults: &mut Faults) -> Option<CommandParams> {
    let mut words = values.given_texts("command").into_iter();
    let Some(program) = words.next() else {
        faults.missing("pool[0].command", "name the program, such as [\"php-cgi\"]");
        return None;
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
    let said = values.given_text("listen").and_then(WorkerListen::of);
    command.listen = said.or(command.listen_by_words()).unwrap_or(WorkerListen::StandardInput);
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
