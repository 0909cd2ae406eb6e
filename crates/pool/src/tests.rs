//! Pools of real processes: shells, that say that they are ready by making the file `$SOCKET.ready`.

mod faults;
mod launch;
mod life;
mod orphans;

use super::{Lease, Pool, PoolEvent, WorkerCheck};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use suimon_fleet::workers::{WorkersCount, WorkersParams};
use suimon_params::pool::{CommandParams, MemoryParams, PoolParams, WorkerKind, WorkerListen};
use suimon_params::upstream::NodeAddress;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);
/// A worker that is ready, and does nothing.
const READY: &str = "echo $$ >> $FOLDER/own; touch $SOCKET.ready; exec sleep 1000";

struct Running {
    pool: Pool,
    folder: TempDir,
    end: oneshot::Sender<()>,
    supervisor: JoinHandle<()>,
}

/// Returns what a pool of shells with this script is told; `$FOLDER` is this folder.
fn params(script: &str, folder: &Path) -> PoolParams {
    let words = |text: &str| text.to_owned();
    PoolParams {
        name: "shop".into(),
        kind: WorkerKind::Http,
        command: CommandParams {
            program: "/bin/sh".into(),
            arguments: vec![words("-c"), words(script)],
            environment: vec![
                (words("PATH"), words("/usr/bin:/bin")),
                (words("FOLDER"), folder.display().to_string()),
                (words("SOCKET"), words("{socket}")),
            ],
            listen: WorkerListen::Socket,
            ..CommandParams::default()
        },
        workers: WorkersParams {
            starting_cores: 2,
            ready_within: PATIENCE,
            stop_within: Duration::from_secs(1),
            ..WorkersParams::default()
        },
        memory: MemoryParams::default(),
        folder: folder.join("sockets"),
        guardian: None,
    }
}

fn run(script: &str) -> Running {
    run_with(script, |_| {})
}

fn run_with(script: &str, change: impl FnOnce(&mut PoolParams)) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let mut params = params(script, folder.path());
    change(&mut params);
    let pool = Pool::new(Instant::now(), params);
    let (end, ended) = oneshot::channel::<()>();
    let supervised = pool.clone();
    let supervisor = tokio::spawn(async move {
        // An end without a word is one, too.
        supervised.run(is_ready, async { drop(ended.await) }).await;
    });
    Running { pool, folder, end, supervisor }
}

async fn is_ready(address: Arc<NodeAddress>, _check: WorkerCheck) -> bool {
    match &*address {
        NodeAddress::Unix(socket) => ready_file(socket).exists(),
        NodeAddress::Tcp { host, port } => TcpStream::connect((host.as_str(), *port)).is_ok(),
        NodeAddress::Found { .. } | NodeAddress::Workers(_) => panic!("a worker has an address"),
    }
}

/// Returns the file that says that the worker with this socket is ready.
fn ready_file(socket: &Path) -> PathBuf {
    PathBuf::from(format!("{}.ready", socket.display()))
}

fn socket(lease: &Lease) -> PathBuf {
    match &**lease.address() {
        NodeAddress::Unix(socket) => socket.clone(),
        other => panic!("it listens at {other:?}"),
    }
}

impl Running {
    async fn until(&self, what: impl FnMut(&WorkersCount) -> bool) -> WorkersCount {
        let mut counts = self.pool.watch();
        let found = tokio::time::timeout(PATIENCE, counts.wait_for(what)).await;
        match found {
            Ok(count) => *count.expect("the pool is there"),
            Err(_) => panic!("not in time: {:?}\n{:?}", self.pool.status(), self.pool.trace(0)),
        }
    }

    async fn until_event(&self, what: impl Fn(&PoolEvent) -> bool) {
        let found = || self.pool.trace(0).iter().any(|change| what(&change.what));
        until(|| format!("{:?}", self.pool.trace(0)), found).await;
    }

    fn pids(&self) -> Vec<u32> {
        self.pool.status().workers.iter().filter_map(|worker| worker.pid).collect()
    }

    /// Returns the lines that the scripts have written to a file of this name, once there are so many.
    async fn written(&self, name: &str, lines: usize) -> Vec<String> {
        written(&self.folder.path().join(name), lines).await
    }

    async fn end(self) {
        let _ = self.end.send(());
        tokio::time::timeout(PATIENCE, self.supervisor).await.expect("in time").unwrap();
    }
}

async fn written(file: &Path, lines: usize) -> Vec<String> {
    let text = || fs::read_to_string(file).unwrap_or_default();
    until(text, || text().lines().count() >= lines && text().ends_with('\n')).await;
    text().lines().map(str::to_owned).collect()
}

async fn until(seen: impl Fn() -> String, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "it does not come true: {}", seen());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_gone(pids: &[u32]) {
    until(|| format!("{pids:?}"), || !pids.iter().any(|pid| is_there(*pid))).await;
}

/// Returns whether there is such a process, and it has not ended.
fn is_there(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// Returns the state of a process, as the kernel abbreviates it.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim().chars().next()
}

fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

fn numbers(lines: &[String]) -> Vec<u32> {
    lines.iter().flat_map(|line| line.split_whitespace()).map(|word| word.parse().unwrap()).collect()
}
