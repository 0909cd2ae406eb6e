//! The pool of workers, and the node that it is.

use crate::Faults;
use crate::program;
use crate::read::{Sections, Values};
use crate::route::pattern;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use suimon_control::{DynamicParams, SizeLawKind};
use suimon_model::PoolId;
use suimon_params::pool::{
    CommandParams, MemoryParams, PoolParams, SizeParams, WorkerKind, WorkerListen, WorkersParams,
};
use suimon_params::upstream::{NodeParams, Scheme, WorkersNodeParams};
use suimon_params::{DeclaredRoute, PoolRoutes, RoutePattern};

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

/// Returns the pools with their places in the file: first the one that takes what no other does,
/// if there is one.
fn in_order(sections: &Sections) -> impl Iterator<Item = (usize, &Values)> {
    let all = || sections.repeated("pool").iter().enumerate();
    let rest = all().filter(|(_, values)| !has_routes(values)).take(1);
    rest.chain(all().filter(|(_, values)| has_routes(values)))
}

fn has_routes(values: &Values) -> bool {
    !values.texts("routes").is_empty()
}

/// Returns what the workers speak that take every request without a pool of its own, if workers do.
pub(crate) fn kind(sections: &Sections) -> Option<WorkerKind> {
    let (_, values) = in_order(sections).next().filter(|(_, values)| !has_routes(values))?;
    Some(values.choice("kind", WorkerKind::of))
}

/// Returns the pools of which a law finds how many workers there are.
pub(crate) fn finds_workers(sections: &Sections) -> Vec<PoolId> {
    let has_rest = kind(sections).is_some();
    let finds = |values: &Values| {
        values.choice("kind", WorkerKind::of) != WorkerKind::Cgi
            && values.choice("size_law", SizeLawKind::of) == SizeLawKind::Measured
    };
    let numbered = (u32::from(!has_rest)..).map(PoolId).zip(in_order(sections));
    numbered.filter(|(_, (_, values))| finds(values)).map(|(id, _)| id).collect()
}

/// Returns the requests that belong to each pool that takes those of some routes, and notes those
/// that belong to two, or to a declared route and a pool in part.
pub(crate) fn routes(
    sections: &Sections,
    declared: &[DeclaredRoute],
    faults: &mut Faults,
) -> Vec<PoolRoutes> {
    let mut pools: Vec<PoolRoutes> = Vec::new();
    for (index, values) in sections.repeated("pool").iter().enumerate() {
        let key = || format!("pool[{index}].routes");
        let patterns: Vec<RoutePattern> = values.texts("routes").iter().map(|text| pattern(text)).collect();
        for own in &patterns {
            let is_shared = |other: &&PoolRoutes| other.patterns.iter().any(|other| other.overlaps(own));
            if let Some(other) = pools.iter().find(is_shared) {
                let allowed = format!("routes that the pool \"{}\" has no part of", other.name);
                faults.value(key(), format!("\"{}\"", own.name()), allowed);
            }
        }
        for route in declared.iter().map(|route| &route.pattern) {
            let is_covered = patterns.iter().any(|own| own.covers(route));
            if let Some(own) = patterns.iter().find(|own| own.overlaps(route)).filter(|_| !is_covered) {
                let allowed = format!(
                    "routes that hold all of the declared route \"{}\", or nothing of it: declare one for the pool alone",
                    route.name()
                );
                faults.value(key(), format!("\"{}\"", own.name()), allowed);
            }
        }
        if let Some(name) = values.given_text("name").filter(|_| !patterns.is_empty()) {
            pools.push(PoolRoutes { name: name.to_owned(), patterns });
        }
    }
    pools
}

/// Notes pools that cannot be told apart, and a second one that would take what no other does.
fn refuse_alike(sections: &Sections, faults: &mut Faults) {
    let mut seen: Vec<&Values> = Vec::new();
    for (index, values) in sections.repeated("pool").iter().enumerate() {
        let name = values.given_text("name");
        if name.is_some() && seen.iter().any(|other| other.given_text("name") == name) {
            let found = format!("{:?}", name.unwrap_or_default());
            faults.value(format!("pool[{index}].name"), found, "unlike that of any other pool");
        }
        if !has_routes(values)
            && let Some(other) = seen.iter().position(|other| !has_routes(other))
        {
            let allowed = format!(
                "given, such as [\"* /reports/*\"]: pool[{other}] has none either, and takes all that no other pool does"
            );
            faults.value(format!("pool[{index}].routes"), "[]", allowed);
        }
        seen.push(values);
    }
}

/// Makes the program that answers every path the command itself.
pub(crate) fn run_itself(command: &mut CommandParams, file: &str) {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.into());
    if command.folder.is_none() {
        command.folder = file.parent().map(Path::to_owned);
    }
    command.program = file;
}

/// What workers there are.
pub(crate) struct Pools {
    /// Those that take what no other pool does, in place of `upstream.nodes`.
    pub(crate) rest: Option<WorkersNodeParams>,
    /// Those that take some routes, in the order of [`routes`].
    pub(crate) of_routes: Vec<WorkersNodeParams>,
}

/// Returns the pools. `cores`: those that the application has.
pub(crate) fn pools(sections: &Sections, cores: u32, faults: &mut Faults) -> Pools {
    refuse_alike(sections, faults);
    let mut pools = Pools { rest: None, of_routes: vec![] };
    for (index, values) in in_order(sections) {
        let Some(pool) = pool(sections, (index, values), cores, faults) else { continue };
        if has_routes(values) {
            pools.of_routes.push(pool);
        } else {
            pools.rest = Some(pool);
        }
    }
    let upstream = sections.once("upstream");
    if running_programs(sections) > 1 {
        let programs = sections.once("upstream.fastcgi");
        if programs.given_path("program").is_some() {
            let allowed = "left out: it would answer every path of all these pools; give each of them its directory instead";
            faults.value("upstream.fastcgi.program", "given", allowed);
        }
        let has_folder = |values: &Values| values.given_path("directory").is_some();
        let use_it = !speaks_fastcgi(&upstream.nodes("nodes")) && own_programs(sections).all(has_folder);
        if programs.given_path("root").is_some() && use_it {
            let allowed = "left out: several pools run programs, each those in its directory";
            faults.value("upstream.fastcgi.root", "given", allowed);
        }
    }
    if pools.rest.is_none() && !pools.of_routes.is_empty() && !upstream.is_given("nodes") {
        let wanted =
            "all pools have routes: name who takes the other requests, here or by a pool without routes";
        faults.missing("upstream.nodes", wanted);
    }
    let nodes = upstream.nodes("nodes");
    if pools.rest.is_some() && nodes != sections.default_nodes() {
        let allowed = "left out: the pool takes all requests, or all that no other pool does";
        faults.value("upstream.nodes", "given", allowed);
    }
    pools
}

/// Returns how many run programs below a folder: pools that do not speak HTTP, and nodes that speak FastCGI.
pub(crate) fn running_programs(sections: &Sections) -> usize {
    let nodes = sections.once("upstream").nodes("nodes");
    own_programs(sections).count() + usize::from(speaks_fastcgi(&nodes))
}

fn own_programs(sections: &Sections) -> impl Iterator<Item = &Values> {
    sections
        .repeated("pool")
        .iter()
        .filter(|values| values.choice("kind", WorkerKind::of) != WorkerKind::Http)
}

fn speaks_fastcgi(nodes: &[NodeParams]) -> bool {
    nodes.iter().any(|node| node.scheme == Scheme::FastCgi)
}

fn pool(
    sections: &Sections,
    (index, values): (usize, &Values),
    cores: u32,
    faults: &mut Faults,
) -> Option<WorkersNodeParams> {
    let name: Arc<str> = values.given_text("name")?.into();
    let kind = values.choice("kind", WorkerKind::of);
    if kind == WorkerKind::Cgi {
        refuse_of_residents(index, values, faults);
    }
    let (least, most) = (values.small("min"), values.small("max"));
    if least > most {
        faults.value(format!("pool[{index}].min"), least, format!("at most pool[{index}].max ({most})"));
    }
    let seed = sections.once("gate").count("seed");
    Some(WorkersNodeParams {
        size: SizeParams { law: size_law(values, kind, cores, most), least: least.min(most), most, cores },
        ready_path: values.given_text("ready").map(str::to_owned),
        pool: PoolParams {
            name,
            kind,
            command: command((index, values), kind, faults)?,
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
fn refuse_of_residents(index: usize, values: &Values, faults: &mut Faults) {
    let law = values.choice("size_law", SizeLawKind::of);
    if values.is_given("size_law") && !matches!(law, SizeLawKind::Fixed(_)) {
        let allowed = "\"fixed\" or left out with kind = \"cgi\": a process runs once for each request, so there is no number of workers to be found";
        faults.value(format!("pool[{index}].size_law"), format!("\"{}\"", law.word()), allowed);
    }
    for key in OF_RESIDENTS {
        if values.is_given(key) {
            let allowed =
                "left out with kind = \"cgi\": a process runs once for each request, and none stays";
            faults.value(format!("pool[{index}].{key}"), "given", allowed);
        }
    }
}

fn command(
    (index, values): (usize, &Values),
    kind: WorkerKind,
    faults: &mut Faults,
) -> Option<CommandParams> {
    let mut words = values.given_texts("command").into_iter();
    let program = match words.next() {
        Some(program) => program,
        // Then the program that a request asks for is run itself.
        None if kind == WorkerKind::Cgi => String::new(),
        None => {
            faults.missing(format!("pool[{index}].command"), "name the program, such as [\"php-cgi\"]");
            return None;
        }
    };
    let mut command = CommandParams {
        program: program.into(),
        arguments: words.collect(),
        environment: program::environment(values, (kind == WorkerKind::FastCgi).then_some(PHP_WITHOUT_END)),
        folder: values.given_path("directory"),
        user: values
            .given_text("user")
            .and_then(|name| program::user(&format!("pool[{index}].user"), name, faults)),
        listen: WorkerListen::StandardInput,
    };
    let (said, by_words) =
        (values.given_text("listen").and_then(WorkerListen::of), command.listen_by_words());
    if kind == WorkerKind::Cgi && by_words.is_some() {
        let allowed = "without {socket} and {port} with kind = \"cgi\": the program reads the request from its environment and its standard input";
        faults.value(format!("pool[{index}].command"), "given", allowed);
    }
    command.listen = said.or(by_words).unwrap_or(WorkerListen::StandardInput);
    Some(command)
}

/// Returns the folder of the sockets where none is said.
fn folder() -> PathBuf {
    match suimon_process::user_id() {
        0 => PathBuf::from("/run/suimon"),
        user => std::env::temp_dir().join(format!("suimon-{user}")),
    }
}
