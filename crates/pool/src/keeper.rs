//! The keeper: one thread of the operating system that starts, signals, waits for and looks at the
//! workers' processes.
//!
//! - The kernel kills a worker when the *thread* that started it ends (parent-death signal). Threads
//!   of an async runtime come and go; this one lives as long as the pool.
//! - Starting a program, reading what memory it takes and finding out who has a port all block,
//!   which no task of the runtime may.
//!
//! It sleeps in poll(2) until an order comes or a worker ends. A worker that has ended is first
//! looked at without being waited for: its number, which is that of its process group, cannot be
//! used again until the group is killed.

use super::Kept;
use super::back_off::BackOff;
use super::folder::Folder;
use super::guardian::Guardian;
use super::launch::{self, Launch};
use super::memory::no_swap::NoSwap;
use super::memory::{Look, Looks, Roots, Stage};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};
use suimon_fleet::workers::{Exit, WorkerId};
use suimon_params::pool::{PoolParams, WorkerKind};
use suimon_params::upstream::NodeAddress;
use tokio::sync::{mpsc, oneshot};

/// A guardian that ends this soon has failed: the next one is not started at once.
const GUARDIAN_YOUNG: Duration = Duration::from_secs(5);
/// Age from which a worker's memory tells what a worker takes.
const SETTLED: Duration = Duration::from_secs(2);

/// What the keeper is to do.
#[derive(Debug)]
pub(super) enum Order {
    Start(WorkerId),
    /// To run a program once, at this place.
    Run(WorkerId, Box<Launch>),
    Signal(WorkerId, Signal),
    /// To close a connection to a worker, behind the signal that tells it to end. Before it, a worker that
    /// notices the one and then the other may wait for the next connection for ever.
    Close(Kept),
    /// To say whether a worker that is ready listens at its own address, and what its start cost.
    Confirm(WorkerId),
    /// To look at the memory of all.
    Look,
}

/// What has become of it. There are at most four of each worker, one look at a time, and one of the
/// guardian for each delay, so their queue is bounded by the number of workers.
#[derive(Debug)]
pub(super) enum Report {
    Started {
        id: WorkerId,
        pid: u32,
        address: NodeAddress,
        stderr: Option<OwnedFd>,
    },
    Runs {
        id: WorkerId,
        pid: u32,
        stderr: Option<OwnedFd>,
    },
    NotStarted(WorkerId, io::Error),
    Confirmed {
        id: WorkerId,
        is_own: bool,
        cpu: Option<Duration>,
    },
    Ended(WorkerId, Exit),
    Looked(Look),
    /// Why there is no guardian; `None`: there is one again.
    Unguarded(Option<String>),
}

/// The thread, as those see it who give it orders.
pub(super) struct Keeper {
    orders: Option<Sender<Order>>,
    wake: Arc<OwnedFd>,
    ended: oneshot::Receiver<()>,
}

impl Keeper {
    /// Starts the thread, once there is a folder for the sockets.
    ///
    /// # Errors
    /// There is no folder, or no thread.
    pub(super) async fn begin(
        params: Arc<PoolParams>,
    ) -> io::Result<(Keeper, mpsc::UnboundedReceiver<Report>)> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (orders, heard) = channel();
        let (reports, reported) = mpsc::unbounded_channel();
        let (ready, is_ready) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let woken = Arc::clone(&wake);
        thread::Builder::new().name(format!("pool {}", params.name)).spawn(move || {
            let work = Work::begin(params, heard, reports);
            let (work, result) = match work {
                Ok(work) => (Some(work), Ok(())),
                Err(error) => (None, Err(error)),
            };
            let _ = ready.send(result);
            if let Some(work) = work {
                work.run(&woken);
            }
            drop(end);
        })?;
        is_ready.await.map_err(|_| io::Error::other("the pool's thread has ended"))??;
        Ok((Keeper { orders: Some(orders), wake, ended }, reported))
    }

    pub(super) fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // Without the thread there are no workers.
            let _ = orders.send(order);
            self.wake();
        }
    }

    /// Ends the thread, and with it every worker that is left.
    pub(super) async fn end(mut self) {
        self.close();
        // An error is its end.
        let _ = (&mut self.ended).await;
    }

    fn close(&mut self) {
        self.orders = None;
        self.wake();
    }

    fn wake(&self) {
        // It fails where it was woken already.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.close();
    }
}

struct Process {
    pid: Pid,
    descriptor: OwnedFd,
    /// Where it listens, and what is there in the file system; `None`: it runs once, and does not.
    listens: Option<(NodeAddress, PathBuf)>,
    started: Instant,
    is_ready: bool,
}

impl Process {
    fn stage(&self) -> Stage {
        if !self.is_ready {
            Stage::Starts
        } else if self.started.elapsed() < SETTLED {
            Stage::Fresh
        } else {
            Stage::Settled
        }
    }
}

/// What the thread has.
struct Work {
    params: Arc<PoolParams>,
    orders: Receiver<Order>,
    reports: mpsc::UnboundedSender<Report>,
    /// `None`: nobody listens.
    folder: Option<Folder>,
    no_swap: Option<NoSwap>,
    guardian: Option<Guardian>,
    guarding: Guarding,
    processes: BTreeMap<WorkerId, Process>,
    looks: Looks,
}

/// The attempts to have a guardian.
struct Guarding {
    back_off: BackOff,
    /// When the last one was started, and when the next one is, if there is none.
    started: Instant,
    next: Instant,
    /// Whether it was told that there is none.
    is_missed: bool,
}

impl Work {
    fn begin(
        params: Arc<PoolParams>,
        orders: Receiver<Order>,
        reports: mpsc::UnboundedSender<Report>,
    ) -> io::Result<Self> {
        let listens = params.kind != WorkerKind::Cgi;
        let folder = listens
            .then(|| Folder::make(&params.folder, &params.name, params.command.user.as_ref()))
            .transpose()?;
        let no_swap = NoSwap::make(&params.name);
        match &no_swap {
            Ok(_) => tracing::info!(pool = %params.name, "workers are kept from being swapped"),
            Err(why) => tracing::info!(pool = %params.name, "workers may be swapped: {why}"),
        }
        let now = Instant::now();
        let back_off = BackOff::new(params.workers.back_off);
        let mut work = Work {
            guarding: Guarding { back_off, started: now, next: now, is_missed: false },
            params,
            orders,
            reports,
            folder,
            no_swap: no_swap.ok(),
            guardian: None,
            processes: BTreeMap::new(),
            looks: Looks::default(),
        };
        work.start_guardian();
        Ok(work)
    }

    /// Does what it is told, until nobody is left to tell it.
    fn run(mut self, wake: &OwnedFd) {
        loop {
            let mut drained = [0; 8];
            // It fails where nobody has woken us.
            let _ = rustix::io::read(wake, &mut drained);
            loop {
                match self.orders.try_recv() {
                    Ok(order) => self.follow(order),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.end(),
                }
            }
            let (ended, is_alone) = self.wait(wake);
            if is_alone {
                self.replace_guardian("it has ended");
            } else if self.guardian.is_none() && Instant::now() >= self.guarding.next {
                self.start_guardian();
            }
            for id in ended {
                self.take_leave(id);
            }
        }
    }

    /// Sleeps until something happens. Returns which workers have ended, and whether the guardian
    /// has.
    fn wait(&self, wake: &OwnedFd) -> (Vec<WorkerId>, bool) {
        let ids: Vec<WorkerId> = self.processes.keys().copied().collect();
        let descriptors =
            self.processes.values().map(|process| PollFd::new(&process.descriptor, PollFlags::IN));
        let mut polled: Vec<PollFd<'_>> = descriptors.collect();
        polled.push(PollFd::new(wake, PollFlags::IN));
        let guardian = self.guardian.as_ref().map(Guardian::process);
        polled.extend(guardian.map(|process| PollFd::from_borrowed_fd(process, PollFlags::IN)));
        let until_next = self.guarding.next.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(until_next).ok().filter(|_| self.guardian.is_none());
        match poll(&mut polled, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::error!(pool = %self.params.name, "workers cannot be waited for: {error}");
                thread::sleep(Duration::from_secs(1));
            }
        }
        let has_ended = |polled: &PollFd<'_>| !polled.revents().is_empty();
        let ended = ids.iter().zip(&polled).filter(|(_, it)| has_ended(it)).map(|(id, _)| *id).collect();
        (ended, polled.get(ids.len() + 1).is_some_and(has_ended))
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Start(id) => {
                let report = self.start(id).unwrap_or_else(|error| Report::NotStarted(id, error));
                self.report(report);
            }
            Order::Run(id, launch) => {
                let report = self.run_once(id, *launch).unwrap_or_else(|error| Report::NotStarted(id, error));
                self.report(report);
            }
            Order::Signal(id, signal) => {
                if let Some(process) = self.processes.get(&id) {
                    self.signal(process.pid, signal);
                }
            }
            Order::Close(kept) => drop(kept),
            Order::Confirm(id) => {
                let is_own = self.processes.get(&id).is_some_and(|process| self.is_own(process));
                if let Some(process) = self.processes.get_mut(&id) {
                    process.is_ready = is_own;
                    let pid = process.pid.as_raw_pid().cast_unsigned();
                    let cpu = suimon_process::cpu::group_time(pid).ok();
                    self.report(Report::Confirmed { id, is_own, cpu });
                }
            }
            Order::Look => {
                let pids = self
                    .processes
                    .iter()
                    .map(|(id, process)| (*id, process.pid.as_raw_pid().cast_unsigned(), process.stage()));
                let roots = Roots { proc: Path::new("/proc"), cgroup: Path::new("/sys/fs/cgroup") };
                let look = self.looks.look(&roots, &self.params.memory, pids);
                self.report(Report::Looked(look));
            }
        }
    }

    fn report(&self, report: Report) {
        // Without anybody to report to, the next order is to end.
        let _ = self.reports.send(report);
    }

    fn start(&mut self, id: WorkerId) -> io::Result<Report> {
        let folder =
            self.folder.as_ref().ok_or_else(|| io::Error::other("the pool has no workers that stay"))?;
        let socket = folder.path().join(format!("{}.sock", id.0));
        let control_group = self.no_swap.as_ref().map(|it| &it.processes);
        let started = launch::start(&self.params.command, &socket, self.guardian.as_ref(), control_group);
        let (mut child, address) = self.or_unannounced(started)?;
        let stderr = child.stderr.take().map(OwnedFd::from);
        let pid = child.id();
        self.keep(id, child, Some((address.clone(), socket)))?;
        Ok(Report::Started { id, pid, address, stderr })
    }

    fn run_once(&mut self, id: WorkerId, launch: Launch) -> io::Result<Report> {
        let control_group = self.no_swap.as_ref().map(|it| &it.processes);
        let started = launch::run(&self.params.command, launch, self.guardian.as_ref(), control_group);
        let mut child = self.or_unannounced(started)?;
        let stderr = child.stderr.take().map(OwnedFd::from);
        let pid = child.id();
        self.keep(id, child, None)?;
        Ok(Report::Runs { id, pid, stderr })
    }

    /// Returns what was started. One that was not may have announced itself before it failed.
    fn or_unannounced<T>(&mut self, started: io::Result<T>) -> io::Result<T> {
        if started.is_err() {
            self.tell_guardian(|guardian, groups| guardian.know_only(groups));
        }
        started
    }

    /// Watches a process from now on.
    fn keep(
        &mut self,
        id: WorkerId,
        mut child: Child,
        listens: Option<(NodeAddress, PathBuf)>,
    ) -> io::Result<()> {
        let pid = Pid::from_child(&child);
        let descriptor = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(error) => {
                self.signal(pid, Signal::KILL);
                let _ = child.wait();
                return Err(error.into());
            }
        };
        let process = Process { pid, descriptor, listens, started: Instant::now(), is_ready: false };
        self.processes.insert(id, process);
        Ok(())
    }

    /// Returns whether a worker is the one that listens at its address.
    fn is_own(&self, process: &Process) -> bool {
        // Nobody else can open a socket in our folder.
        let Some((NodeAddress::Tcp { port, .. }, _)) = process.listens else { return true };
        let group = process.pid.as_raw_pid().cast_unsigned();
        suimon_process::port_owner::is_of_group(port, group).unwrap_or_else(|error| {
            tracing::error!(pool = %self.params.name, "who listens at port {port} is not known: {error}");
            false
        })
    }

    fn signal(&self, group: Pid, signal: Signal) {
        match kill_process_group(group, signal) {
            // It has ended already.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => {
                let number = group.as_raw_pid();
                tracing::error!(pool = %self.params.name, "process group {number} cannot be sent {signal:?}: {error}");
            }
        }
    }

    /// Ends all that a worker that has ended has left.
    fn take_leave(&mut self, id: WorkerId) {
        let Some(process) = self.processes.remove(&id) else { return };
        let looked = waitid(
            WaitId::PidFd(process.descriptor.as_fd()),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG,
        );
        let exit = match looked {
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Exit::Code(code),
                (None, Some(signal)) => Exit::Signal(signal),
                (None, None) => Exit::NotStarted,
            },
            Ok(None) => {
                // It was no end.
                self.processes.insert(id, process);
                return;
            }
            Err(error) => {
                tracing::error!(pool = %self.params.name, worker = id.0, "how it ended is not known: {error}");
                Exit::NotStarted
            }
        };
        self.signal(process.pid, Signal::KILL);
        self.tell_guardian(|guardian, _| guardian.forget(process.pid.as_raw_pid().cast_unsigned()));
        let _ = waitid(WaitId::PidFd(process.descriptor.as_fd()), WaitIdOptions::EXITED);
        if let Some((_, socket)) = &process.listens
            && let Err(error) = launch::remove(socket)
        {
            tracing::error!(pool = %self.params.name, "{}: {error}", socket.display());
        }
        self.report(Report::Ended(id, exit));
    }

    fn tell_guardian(
        &mut self,
        tell: impl FnOnce(&Guardian, &mut dyn Iterator<Item = u32>) -> io::Result<()>,
    ) {
        let mut groups = self.processes.values().map(|process| process.pid.as_raw_pid().cast_unsigned());
        let told = self.guardian.as_ref().map(|guardian| tell(guardian, &mut groups));
        if let Some(Err(error)) = told {
            self.replace_guardian(&format!("it does not listen: {error}"));
        }
    }

    fn replace_guardian(&mut self, why: &str) {
        tracing::warn!(pool = %self.params.name, "the pool gets a new guardian: {why}");
        if let Some(guardian) = self.guardian.take() {
            guardian.kill();
        }
        if self.guarding.started.elapsed() < GUARDIAN_YOUNG {
            self.miss_guardian(why);
            return;
        }
        self.guarding.back_off.succeed();
        self.start_guardian();
    }

    fn start_guardian(&mut self) {
        let groups = self.processes.values().map(|process| process.pid.as_raw_pid().cast_unsigned());
        match Guardian::start(self.params.guardian.as_ref(), groups) {
            Ok(guardian) => {
                (self.guardian, self.guarding.started) = (Some(guardian), Instant::now());
                if std::mem::take(&mut self.guarding.is_missed) {
                    self.report(Report::Unguarded(None));
                }
            }
            Err(error) => self.miss_guardian(&format!("it cannot be started: {error}")),
        }
    }

    /// Goes on without a guardian for a while.
    fn miss_guardian(&mut self, why: &str) {
        let delay = self.guarding.back_off.fail();
        (self.guarding.next, self.guarding.is_missed) = (Instant::now() + delay, true);
        self.report(Report::Unguarded(Some(why.to_owned())));
    }

    /// Ends all that is left.
    fn end(mut self) {
        for process in self.processes.values() {
            self.signal(process.pid, Signal::KILL);
        }
        let left: Vec<WorkerId> = self.processes.keys().copied().collect();
        for id in left {
            if let Some(process) = self.processes.get(&id) {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                let _ = waitid(WaitId::PidFd(process.descriptor.as_fd()), options);
            }
            self.take_leave(id);
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.end();
        }
    }
}
