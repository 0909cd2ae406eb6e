//! What the gateway has learned outlives the process: restored at the start, written while it runs
//! and at its end.

use crate::backend::Backend;
use crate::gatekeeper::Gatekeeper;
use crate::pipeline::Core;
use crate::telemetry::{Recalled, Telemetry};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use suimon_gate::Knowledge;
use suimon_params::Params;
use suimon_routes::Table;
use suimon_store::remembered::{self, DemandMemory, LoadResult, Remembered, WriteResult};
use suimon_store::whole_file::{SetAside, WriteOrder};

/// How often it is written, if anything was learned.
const EVERY: Duration = Duration::from_secs(60);

/// What a gateway begins with: what was found, the file that it goes on in, and files that were set aside,
/// of whatever it keeps.
#[derive(Debug)]
pub(super) struct StartedWith {
    remembered: Option<Box<Remembered>>,
    file: Option<PathBuf>,
    set_aside: Vec<SetAside>,
}

impl StartedWith {
    /// Takes note of a file that was set aside.
    pub(super) fn add_set_aside(&mut self, set_aside: Option<SetAside>) {
        self.set_aside.extend(set_aside);
    }

    /// Keeps aside what was set aside, as the start has not failed.
    pub(super) fn kept(mut self) -> Self {
        self.set_aside.drain(..).for_each(SetAside::keep);
        self
    }
}

/// Brings back what was learned, if there is a file, and declares the routes that were found. To be
/// called when all else is declared, before anything is recorded and before any request.
pub(super) fn recall(
    params: &Params,
    keeper: &Gatekeeper,
    table: &Table,
    telemetry: &Telemetry,
) -> StartedWith {
    let nothing = |file| StartedWith { remembered: None, file, set_aside: Vec::new() };
    let Some(path) = &params.learned_file else { return nothing(None) };
    let remembered = match remembered::find(path, &nodes(params)) {
        LoadResult::Ours(remembered) => remembered,
        LoadResult::Nothing => {
            tracing::info!("no learned state yet; it will be kept in {}", path.display());
            return nothing(Some(path.clone()));
        }
        LoadResult::SetAside { why, aside } => {
            tracing::warn!(
                "{}: {why}; it is set aside as {}, and the gateway starts with nothing known: to use what is in it, put the right file back under the \
                 old name and restart; else remove it; a gateway for another application needs a file of its own (learned.state)",
                path.display(),
                aside.aside().display()
            );
            return StartedWith { set_aside: vec![aside], ..nothing(Some(path.clone())) };
        }
        LoadResult::InTheWay { why } => {
            tracing::warn!(
                "{}: {why}; the gateway starts with nothing known and keeps nothing it learns: remove the file, make it and its folder readable and \
                 writable for this user, or name another with learned.state",
                path.display()
            );
            return nothing(None);
        }
    };
    let now = now_unix().as_secs();
    for name in remembered.routes_asked_for(now) {
        table.remember(name, |_, pool, name| {
            telemetry.name_route(name, keeper.declare_found(name, pool));
        });
    }
    let kinds: Vec<String> = params.sessions.kinds.iter().map(|kind| kind.name.clone()).collect();
    let age = Duration::from_secs(now.saturating_sub(remembered.written));
    let knowledge = remembered.knowledge_of(&telemetry.route_names(), &kinds);
    keeper.recall(&knowledge, age, remembered.nodes_up);
    let recalled = Recalled {
        age,
        routes: knowledge.routes.iter().filter(|route| route.law.is_some()).count(),
        version: remembered.program.clone(),
    };
    tracing::info!(
        "starting with state learned {} ago: limits of {} routes and the paths of their visitors ({})",
        humantime::format_duration(age),
        recalled.routes,
        path.display()
    );
    if remembered.written > now + 60 {
        tracing::warn!(
            "{}: it says that it was written {} from now: is this machine's clock right?",
            path.display(),
            humantime::format_duration(Duration::from_secs(remembered.written - now))
        );
    }
    telemetry.recalled(recalled);
    StartedWith { remembered: Some(remembered), ..nothing(Some(path.clone())) }
}

/// Writes what is worth remembering.
#[derive(Clone, Debug)]
pub(super) struct LearnedStore {
    backend: Arc<Backend>,
    path: PathBuf,
    /// When this gateway started, nanoseconds since 1970.
    started: u64,
    nodes: Vec<String>,
    kinds: Vec<String>,
    /// Routes that are there from the first: `other` and the declared ones.
    declared: usize,
    memory: DemandMemory,
    written: Option<(Knowledge, BTreeMap<String, u32>)>,
    /// How many resident workers were found best.
    workers: LearnedWorkers,
    /// Whether the file was found to be another gateway's.
    is_given_up: bool,
    order: Arc<WriteOrder>,
}

impl LearnedStore {
    /// Returns the writer, if there is a file to write.
    pub(super) fn new(core: &Core, begun: StartedWith, workers: LearnedWorkers) -> Option<Self> {
        let params = core.params();
        // Whatever the clocks say: the gateway that wrote what was found had started before this
        // one.
        let before = begun.remembered.as_ref().map_or(0, |remembered| remembered.started);
        let now = u64::try_from(now_unix().as_nanos()).unwrap_or(u64::MAX);
        let started = now.max(before.saturating_add(1));
        Some(LearnedStore {
            backend: Arc::clone(core.backend()),
            path: begun.file?,
            started,
            nodes: nodes(params),
            kinds: params.sessions.kinds.iter().map(|kind| kind.name.clone()).collect(),
            declared: 1 + params.routes.declared.len() + params.routes.pools.len(),
            memory: DemandMemory::new(begun.remembered.as_deref()),
            written: None,
            workers,
            is_given_up: false,
            order: Arc::default(),
        })
    }

    /// Writes each minute in which something was learned. Never returns.
    pub(super) async fn keep(&mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.write().await;
        }
    }

    fn is_written(&self, knowledge: &Knowledge, workers: &BTreeMap<String, u32>) -> bool {
        self.written.as_ref().is_some_and(|(known, found)| known == knowledge && found == workers)
    }

    /// Writes, if anything was learned since the last time.
    pub(super) async fn write(&mut self) {
        let ((knowledge, nodes_up), workers) = (self.backend.keeper.knowledge(), self.workers.all());
        // Without a request nothing was learned: what is in the file is older than its date would
        // say.
        let is_new = knowledge.routes.iter().any(|route| route.came > 0);
        if self.is_given_up || !is_new || self.is_written(&knowledge, &workers) {
            return;
        }
        let routes = self.backend.telemetry.route_names();
        let now = now_unix().as_secs();
        let mut remembered =
            self.memory.remember(knowledge.clone(), &routes, &self.kinds, self.declared, now);
        remembered.nodes.clone_from(&self.nodes);
        remembered.nodes_up = Some(nodes_up);
        env!("CARGO_PKG_VERSION").clone_into(&mut remembered.program);
        remembered.started = self.started;
        remembered.workers.clone_from(&workers);
        let path = self.path.clone();
        let (own, order) = (self.order.begin(), Arc::clone(&self.order));
        let write = move || order.write(own, || remembered::write(&path, &remembered));
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(WriteResult::Done)) => self.written = Some((knowledge, workers)),
            Ok(Ok(WriteResult::BelongsToANewer)) => {
                self.is_given_up = true;
                tracing::warn!(
                    "{}: a gateway that started later, or of a newer version, writes it; this one keeps nothing it learns from now on: if both are \
                     to go on, give each a file of its own with learned.state",
                    self.path.display()
                );
            }
            Ok(Err(error)) => tracing::error!(
                "{}: cannot be written ({error}): if the gateway ended now, it would restart with the state of the last write; make \
                 its folder writable for this user, or name another file with learned.state",
                self.path.display()
            ),
            Err(_) => {}
        }
    }
}

/// By the name of a pool, how many resident workers were found best, in this run or another.
#[derive(Clone, Debug, Default)]
pub(super) struct LearnedWorkers(Arc<Mutex<BTreeMap<String, u32>>>);

impl LearnedWorkers {
    /// Returns what was found before this run, of the pools that there are now.
    pub(super) fn of(begun: &StartedWith, params: &Params) -> Self {
        let mut workers =
            begun.remembered.as_ref().map(|remembered| remembered.workers.clone()).unwrap_or_default();
        let pools = || params.upstreams().filter_map(|upstream| upstream.workers.as_ref());
        workers.retain(|name, _| pools().any(|workers| *workers.pool.name == **name));
        LearnedWorkers(Arc::new(Mutex::new(workers)))
    }

    pub(super) fn get(&self, pool: &str) -> Option<u32> {
        self.lock().get(pool).copied()
    }

    pub(super) fn set(&self, pool: &str, workers: u32) {
        self.lock().insert(pool.to_owned(), workers);
    }

    fn all(&self) -> BTreeMap<String, u32> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u32>> {
        // Each change is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nodes(params: &Params) -> Vec<String> {
    params.upstreams().flat_map(|upstream| &upstream.nodes).map(ToString::to_string).collect()
}

fn now_unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
