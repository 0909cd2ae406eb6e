//! What runs beside requests: it does what the pure machine asks for, by way of the
//! [`Keeper`](super::keeper), and tells the machine what became of that.

use super::back_off::BackOff;
use super::keeper::{Keeper, Order, Report};
use super::memory::pace::Pace;
use super::standard_error::{self, LineBudget};
use super::trace::PoolEvent;
use super::{Pool, Process};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};
use suimon_fleet::workers::{Exit, WorkerEvent, WorkerId, WorkersOutput};
use suimon_model::Instant;
use suimon_params::upstream::NodeAddress;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

/// Delays between questions whether a worker is ready: the first, and the longest.
const ASK_AFTER: Duration = Duration::from_millis(5);
const ASK_EVERY: Duration = Duration::from_millis(200);
/// A pool that has run for so long could run: its next failure is a first one.
const COULD_RUN: Duration = Duration::from_secs(60);
/// The longest that the supervisor sleeps when nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// What has happened to a worker, other than what the keeper sees.
enum Event {
    Ready(WorkerId),
    Idle(WorkerId),
    /// It ends before it has said that it is ready.
    NeverReady,
    /// The last of what one wrote that has ended.
    Wrote(WorkerId, String),
}

/// How far a worker's process is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Phase {
    Runs,
    Ends,
    Ended,
}

/// What a worker is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerCheck {
    /// Whether it takes requests, after its start.
    Ready,
    /// Whether it is idle, after a request was cancelled.
    Idle,
}

impl Pool {
    /// Starts, watches, replaces and ends workers until `shutdown` is done and all have ended. Run
    /// it once, beside the requests. `is_ready` checks a worker at its address, and is asked again
    /// until it says yes. It must wait for an *answer* of the worker: a
    /// connection alone shows nothing, as the kernel opens it while the worker is busy.
    ///
    /// Where the pool cannot run (there is no folder for the sockets, no descriptor, no thread), it
    /// says why and is tried again, ever later, and at once after a [`Pool::reload`].
    ///
    /// If this is dropped, all workers are killed.
    pub async fn run<C, R>(&self, is_ready: C, shutdown: impl Future<Output = ()>)
    where
        C: Fn(Arc<NodeAddress>, WorkerCheck) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = bool> + Send + 'static,
    {
        tokio::pin!(shutdown);
        let _left = Left(self);
        let mut back_off = BackOff::new(self.shared.params.workers.back_off);
        let mut ends = false;
        loop {
            let begun = Clock::now();
            let ended = if self.state().runs.is_some() {
                self.supervise_runs(shutdown.as_mut(), &mut ends).await
            } else {
                self.supervise(is_ready.clone(), shutdown.as_mut(), &mut ends).await
            };
            let Err(error) = ended else { return };
            if begun.elapsed() >= COULD_RUN {
                back_off.succeed();
            }
            let delay = back_off.fail();
            let generation = self.state().workers.generation();
            self.change(|state, now| {
                state.workers.suspend(now);
                state.forget_processes();
                let why = error.to_string();
                state.note(&self.shared.params.name, now, PoolEvent::Unable(why.clone()));
                (state.unable, state.unguarded) = (Some(why), None);
            });
            if ends {
                return;
            }
            let is_reloaded = async {
                while self.state().workers.generation() == generation {
                    self.shared.hurry.notified().await;
                }
            };
            tokio::select! {
                () = shutdown.as_mut() => return,
                () = sleep(delay) => {}
                () = is_reloaded => {}
            }
        }
    }

    /// Does what [`Pool::run`] says, until something fails that all depends on. `ends`: whether
    /// `shutdown` is done.
    async fn supervise<C, R>(
        &self,
        is_ready: C,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
        ends: &mut bool,
    ) -> io::Result<()>
    where
        C: Fn(Arc<NodeAddress>, WorkerCheck) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = bool> + Send + 'static,
    {
        let (keeper, mut reports) = Keeper::begin(Arc::clone(&self.shared.params)).await?;
        self.note_able();
        let (phases, tasks) = (BTreeMap::new(), JoinSet::new());
        let pace = Pace::new(Clock::now());
        let mut supervisor = Supervisor { pool: self, keeper, is_ready, phases, tasks, pace };
        loop {
            while let Some(output) = self.next_output() {
                supervisor.follow(output);
            }
            let (due, count) = self.fall_asleep();
            let look_at = supervisor.pace.due().map(tokio::time::Instant::from_std);
            if *ends && count == 0 {
                break;
            }
            tokio::select! {
                () = shutdown.as_mut(), if !*ends => {
                    *ends = true;
                    self.change(|state, now| state.workers.end_all(now));
                }
                report = reports.recv() => match report {
                    Some(report) => supervisor.note_report(report),
                    None => return Err(io::Error::other("the pool's thread has ended")),
                },
                Some(event) = supervisor.tasks.join_next() => match event {
                    Ok(event) => supervisor.note(event),
                    Err(error) => tracing::error!(pool = %self.shared.params.name, "a worker's watch ended: {error}"),
                },
                () = self.shared.hurry.notified() => {}
                () = sleep(due) => self.change(|state, now| state.workers.handle_timeout(now)),
                () = sleep_until(look_at.unwrap_or_else(tokio::time::Instant::now)), if look_at.is_some() => {
                    supervisor.look();
                }
            }
        }
        let Supervisor { keeper, mut tasks, .. } = supervisor;
        keeper.end().await;
        while let Some(event) = tasks.join_next().await {
            if let Ok(Event::Wrote(id, words)) = event {
                self.note_words(id, words);
            }
        }
        Ok(())
    }

    /// Lets workers be started, as the pool can run.
    pub(super) fn note_able(&self) {
        self.change(|state, now| {
            if state.unable.take().is_some() {
                state.note(&self.shared.params.name, now, PoolEvent::Able);
            }
            state.workers.resume(now);
        });
    }

    /// Notes why there is no guardian; `None`: there is one again.
    pub(super) fn note_unguarded(&self, why: Option<String>) {
        self.change(|state, now| {
            if let Some(why) = &why {
                state.note(&self.shared.params.name, now, PoolEvent::Unguarded(why.clone()));
            }
            state.unguarded = why;
        });
    }

    pub(super) fn next_output(&self) -> Option<WorkersOutput> {
        self.state().workers.poll_output()
    }

    /// Returns for how long nothing is due, and how many workers there are. Whoever brings that
    /// forward wakes the supervisor.
    pub(super) fn fall_asleep(&self) -> (Duration, usize) {
        let now = self.now();
        let mut state = self.state();
        state.sleeps_until = state.due().unwrap_or(Instant::FAR_FUTURE);
        (state.sleeps_until.since(now).min(IDLE), state.workers.count().all())
    }

    fn note_words(&self, id: WorkerId, words: String) {
        if words.is_empty() {
            return;
        }
        let now = self.now();
        let mut state = self.state();
        state.last_words.clone_from(&words);
        state.note(&self.shared.params.name, now, PoolEvent::Wrote(id, words));
    }
}

/// Lets the machine know, if nobody supervises it any more, that its workers are gone.
struct Left<'a>(&'a Pool);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.change(|state, now| {
            state.workers.end_all(now);
            let left: Vec<WorkerId> = state.workers.views().map(|worker| worker.id).collect();
            for id in left {
                state.workers.handle_exit(now, id, Exit::Signal(9));
            }
            state.forget_processes();
            while state.workers.poll_output().is_some() {}
        });
    }
}

struct Supervisor<'a, C> {
    pool: &'a Pool,
    keeper: Keeper,
    is_ready: C,
    phases: BTreeMap<WorkerId, watch::Sender<Phase>>,
    tasks: JoinSet<Event>,
    pace: Pace,
}

impl<C, R> Supervisor<'_, C>
where
    C: Fn(Arc<NodeAddress>, WorkerCheck) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = bool> + Send + 'static,
{
    fn follow(&mut self, output: WorkersOutput) {
        match output {
            WorkersOutput::Start(id) => {
                self.phases.insert(id, watch::Sender::new(Phase::Runs));
                self.keeper.order(Order::Start(id));
            }
            WorkersOutput::Ask(id) => {
                let address = self.pool.state().processes.get(&id).map(|it| Arc::clone(&it.address));
                if let Some(address) = address {
                    self.ask(id, address, Event::Idle(id));
                }
            }
            WorkersOutput::Stop(id) => self.end(id, Signal::TERM),
            WorkersOutput::Kill(id) => self.end(id, Signal::KILL),
            WorkersOutput::Changed(change) => {
                let what = PoolEvent::Worker(change.worker, change.what);
                self.pool.state().note(&self.pool.shared.params.name, change.at, what);
            }
        }
    }

    fn end(&self, id: WorkerId, signal: Signal) {
        if let Some(phase) = self.phases.get(&id) {
            phase.send_replace(Phase::Ends);
        }
        self.keeper.order(Order::Signal(id, signal));
        // One that waits for its next request there ends only then.
        let kept = self.pool.state().processes.get_mut(&id).and_then(|process| process.kept.take());
        if let Some(kept) = kept {
            self.keeper.order(Order::Close(kept));
        }
    }

    /// Asks a worker until it answers, which is the event `then`.
    fn ask(&mut self, id: WorkerId, address: Arc<NodeAddress>, then: Event) {
        if let Some(phase) = self.phases.get(&id) {
            self.tasks.spawn(until_ready(address, self.is_ready.clone(), phase.subscribe(), then));
        }
    }

    fn look(&mut self) {
        self.pace.begin();
        self.keeper.order(Order::Look);
    }

    fn note_report(&mut self, report: Report) {
        let name = &self.pool.shared.params.name;
        match report {
            Report::Started { id, pid, address, stderr } => {
                let address = Arc::new(address);
                let process = Process { pid, address: Arc::clone(&address), memory: None, kept: None };
                self.pool.state().processes.insert(id, process);
                self.listen_to(id, stderr);
                self.ask(id, address, Event::Ready(id));
            }
            Report::NotStarted(id, error) => {
                self.phases.remove(&id);
                self.pool.change(|state, now| {
                    state.last_words = error.to_string();
                    state.note(name, now, PoolEvent::NotStarted(id, error.to_string()));
                    state.workers.handle_exit(now, id, Exit::NotStarted);
                });
            }
            Report::Confirmed { id, is_own: true, cpu } => {
                self.pace.hurry();
                self.pool.change(|state, now| {
                    if let Some(cpu) = cpu {
                        state.workers.handle_start_cost(cpu.as_secs_f64());
                    }
                    state.workers.handle_ready(now, id);
                });
            }
            Report::Confirmed { id, is_own: false, .. } => {
                self.pool.change(|state, now| state.workers.handle_squatted(now, id));
            }
            Report::Ended(id, exit) => {
                if let Some(phase) = self.phases.remove(&id) {
                    phase.send_replace(Phase::Ended);
                }
                self.pool.change(|state, now| {
                    // Nobody may be given a worker whose address is not known.
                    state.workers.handle_exit(now, id, exit);
                    state.processes.remove(&id);
                });
            }
            Report::Looked(look) => {
                self.pace.end(Clock::now(), look.cost);
                self.pool.change(|state, now| {
                    for (id, memory) in &look.workers {
                        if let Some(process) = state.processes.get_mut(id) {
                            process.memory = Some(*memory);
                            state.workers.handle_memory(now, *id, memory.bytes);
                        }
                    }
                    if let Some(room) = look.room {
                        state.workers.set_room(now, room);
                    }
                    state.look = look;
                    state.note_room(name, now);
                });
            }
            Report::Unguarded(why) => self.pool.note_unguarded(why),
            // Of programs that run once.
            Report::Runs { .. } => {}
        }
    }

    /// Reads what a worker writes to its standard error.
    fn listen_to(&mut self, id: WorkerId, stderr: Option<OwnedFd>) {
        let name = Arc::clone(&self.pool.shared.params.name);
        let (Some(phase), Some(stderr)) = (self.phases.get(&id), stderr) else { return };
        match pipe::Receiver::from_owned_fd(stderr) {
            Ok(stderr) => {
                let mut phase = phase.subscribe();
                let ended = async move {
                    // An error is the end, too.
                    let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
                };
                self.tasks.spawn(async move {
                    let log = LineBudget::default();
                    Event::Wrote(id, standard_error::read(name, id, stderr, ended, &log).await)
                });
            }
            Err(error) => {
                tracing::error!(pool = %name, worker = id.0, "what it writes cannot be read: {error}");
            }
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Ready(id) => self.keeper.order(Order::Confirm(id)),
            Event::Idle(id) => self.pool.change(|state, now| state.workers.handle_ready(now, id)),
            Event::NeverReady => {}
            Event::Wrote(id, words) => self.pool.note_words(id, words),
        }
    }
}

/// Asks a worker whether it is ready, until it is, or is to end, or has ended.
async fn until_ready<C, R>(
    address: Arc<NodeAddress>,
    is_ready: C,
    mut phase: watch::Receiver<Phase>,
    then: Event,
) -> Event
where
    C: Fn(Arc<NodeAddress>, WorkerCheck) -> R,
    R: Future<Output = bool>,
{
    let answers = async {
        let check = if matches!(then, Event::Idle(_)) { WorkerCheck::Idle } else { WorkerCheck::Ready };
        let mut delay = ASK_AFTER;
        while !is_ready(Arc::clone(&address), check).await {
            sleep(delay).await;
            delay = (2 * delay).min(ASK_EVERY);
        }
    };
    tokio::select! {
        () = answers => then,
        _ = phase.wait_for(|phase| *phase != Phase::Runs) => Event::NeverReady,
    }
}

impl super::State {
    /// Logs and keeps a change.
    pub(super) fn note(&mut self, pool: &str, at: Instant, what: PoolEvent) {
        let worker = what.worker().map(|id| id.0);
        match &what {
            PoolEvent::Worker(_, WorkerEvent::Ready) => tracing::debug!(%pool, worker, "{what}"),
            PoolEvent::Worker(_, WorkerEvent::Ends(why) | WorkerEvent::Replaced(why)) => {
                tracing::info!(%pool, worker, reason = why.code(), "{what}");
            }
            PoolEvent::Wanted { .. } | PoolEvent::Reload | PoolEvent::Able => tracing::info!(%pool, "{what}"),
            PoolEvent::NoRoom(_) => tracing::warn!(%pool, "{what}"),
            PoolEvent::NotStarted(..) => tracing::error!(%pool, worker, "{what}"),
            PoolEvent::Unable(_) | PoolEvent::Unguarded(_) => tracing::error!(%pool, "{what}"),
            PoolEvent::Worker(..) | PoolEvent::Wrote(..) | PoolEvent::Failed(..) => {
                tracing::warn!(%pool, worker, "{what}");
            }
        }
        self.trace.note(at, what);
    }

    /// Says that memory keeps workers from starting, once as long as it does.
    fn note_room(&mut self, pool: &str, now: Instant) {
        // Before one has run for a while, it is not known what fits.
        let room = self.look.fit.and(self.look.room).filter(|_| self.workers.lacks_room());
        if let Some(room) = room.filter(|_| !self.lacks_room) {
            self.note(pool, now, PoolEvent::NoRoom(room));
        }
        self.lacks_room = room.is_some();
    }
}
