//! What starts, watches and ends the [`Runs`](super::runs) of a pool, by way of the
//! [`Keeper`](super::keeper).

use super::keeper::{Keeper, Order, Report};
use super::launch::{Launch, Program};
use super::runs::{Run, RunEnd};
use super::standard_error::{self, LINES_MAX, LineBudget};
use super::trace::PoolEvent;
use super::{Lease, Pool, State};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{self, pipe};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use suimon_fleet::workers::{Exit, Release, WorkerId, WorkersOutput};
use suimon_model::Instant;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

impl Lease {
    /// Starts a program at the place that this is. A lease runs one program.
    ///
    /// # Errors
    /// It cannot be started; nothing of it has run.
    pub async fn run(&self, program: Program) -> io::Result<Run> {
        let (stdin, body) = if program.has_body {
            let (read, write) = pipe()?;
            (Some(OwnedFd::from(read)), Some(Sender::from_owned_fd(write.into())?))
        } else {
            (None, None)
        };
        let (read, write) = pipe()?;
        let answer = Receiver::from_owned_fd(read.into())?;
        let launch = Box::new(Launch { program, stdin, stdout: write.into() });
        let (starter, started) = oneshot::channel();
        let (pool, place) = (self.pool(), self.worker());
        pool.change(|state, now| {
            if let Some(runs) = &mut state.runs {
                runs.begin(now, place, starter, launch);
            }
        });
        let gone = |_| io::Error::other("the pool has ended");
        let end = started.await.map_err(gone)??;
        Ok(Run { body, answer, end })
    }
}

impl State {
    /// Takes a place, or a worker, back whose lease has ended.
    pub(super) fn release(&mut self, now: Instant, place: WorkerId, how: Release) {
        let Some(runs) = &mut self.runs else { return self.workers.release(now, place, how) };
        let Some(running) = runs.by_place.get_mut(&place) else { return self.free(now, place, how) };
        running.released = Some(how);
        match how {
            Release::Done => {
                running.kill_at = now + runs.ends_within;
                // Nobody counts its request any more.
                self.workers.ungate(place);
            }
            Release::Cancelled | Release::Stuck => runs.kill(place),
        }
    }

    /// Gives a place to others, at which nothing runs any more.
    fn free(&mut self, now: Instant, place: WorkerId, how: Release) {
        if how == Release::Done {
            return self.workers.release(now, place, how);
        }
        self.workers.release(now, place, Release::Cancelled);
        self.workers.handle_ready(now, place);
    }

    /// Notes that a program has ended, or was not started.
    fn end_run(&mut self, pool: &str, now: Instant, place: WorkerId, how: Result<Exit, io::Error>) {
        let Some(runs) = &mut self.runs else { return };
        let Some(running) = runs.by_place.remove(&place) else { return };
        let is_closing = runs.closing.remove(&place);
        let event = match how {
            Ok(exit) if running.is_killed || is_closing || exit == Exit::Code(0) => None,
            Ok(exit) => {
                runs.totals.failures += 1;
                Some(PoolEvent::Failed(place, exit))
            }
            Err(error) => {
                runs.totals.failed_starts += 1;
                let event = PoolEvent::NotStarted(place, error.to_string());
                if let Some(starter) = running.starter {
                    // Without a receiver, nobody waits for it.
                    let _ = starter.send(Err(error));
                }
                Some(event)
            }
        };
        let may_tell = event.is_some() && runs.told.take() <= LINES_MAX;
        if let Some(event) = event.filter(|_| may_tell) {
            self.note(pool, now, event);
        }
        if is_closing {
            return self.workers.handle_exit(now, place, Exit::Code(0));
        }
        if let Some(how) = running.released {
            self.free(now, place, how);
        }
    }
}

impl Pool {
    /// Runs what requests ask for, until `shutdown` is done and all have ended, or until something
    /// fails that all depends on. `ends`: whether `shutdown` is done.
    pub(super) async fn supervise_runs(
        &self,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
        ends: &mut bool,
    ) -> io::Result<()> {
        let (keeper, mut reports) = Keeper::begin(Arc::clone(&self.shared.params)).await?;
        self.note_able();
        let mut watch = Watch { pool: self, keeper, exits: BTreeMap::new(), tasks: JoinSet::new() };
        loop {
            while let Some(output) = self.next_output() {
                watch.follow(&output);
            }
            watch.pass_on_orders();
            let (due, count) = self.fall_asleep();
            if *ends && count == 0 {
                break;
            }
            tokio::select! {
                () = shutdown.as_mut(), if !*ends => {
                    *ends = true;
                    self.change(|state, now| state.workers.end_all(now));
                }
                report = reports.recv() => match report {
                    Some(report) => watch.note_report(report),
                    None => return Err(io::Error::other("the pool's thread has ended")),
                },
                Some(_) = watch.tasks.join_next() => {}
                () = self.shared.hurry.notified() => {}
                () = sleep(due) => self.change(|state, now| {
                    state.workers.handle_timeout(now);
                    if let Some(runs) = &mut state.runs {
                        runs.kill_overdue(now);
                    }
                }),
            }
        }
        watch.keeper.end().await;
        Ok(())
    }
}

/// What runs beside requests.
struct Watch<'a> {
    pool: &'a Pool,
    keeper: Keeper,
    /// By place, where the end of the program is told.
    exits: BTreeMap<WorkerId, watch::Sender<Option<Exit>>>,
    /// What reads the programs' standard errors: one for each, for a second longer than it runs.
    tasks: JoinSet<()>,
}

impl Watch<'_> {
    /// Does what the machine of the workers asks for: a place needs no start, and ends with the
    /// program that runs there.
    fn follow(&self, output: &WorkersOutput) {
        self.pool.change(|state, now| {
            let Some(runs) = &mut state.runs else { return };
            match *output {
                WorkersOutput::Start(place) => state.workers.handle_ready(now, place),
                WorkersOutput::Stop(place) if runs.by_place.contains_key(&place) => {
                    runs.closing.insert(place);
                    runs.orders.push(Order::Signal(place, Signal::TERM));
                }
                WorkersOutput::Stop(place) => state.workers.handle_exit(now, place, Exit::Code(0)),
                WorkersOutput::Kill(place) => runs.kill(place),
                WorkersOutput::Ask(_) | WorkersOutput::Changed(_) => {}
            }
        });
    }

    fn pass_on_orders(&self) {
        let orders = self.pool.state().runs.as_mut().map(|runs| std::mem::take(&mut runs.orders));
        for order in orders.into_iter().flatten() {
            self.keeper.order(order);
        }
    }

    fn note_report(&mut self, report: Report) {
        let name = &self.pool.shared.params.name;
        match report {
            Report::Runs { id, pid, stderr } => self.note_start(id, pid, stderr),
            Report::NotStarted(id, error) => {
                self.pool.change(|state, now| state.end_run(name, now, id, Err(error)));
            }
            Report::Ended(id, exit) => {
                if let Some(told) = self.exits.remove(&id) {
                    told.send_replace(Some(exit));
                }
                self.pool.change(|state, now| state.end_run(name, now, id, Ok(exit)));
            }
            Report::Unguarded(why) => self.pool.note_unguarded(why),
            // Of workers that stay.
            Report::Started { .. } | Report::Confirmed { .. } | Report::Looked(_) => {}
        }
    }

    fn note_start(&mut self, place: WorkerId, pid: u32, stderr: Option<OwnedFd>) {
        let (told, exit) = watch::channel(None);
        self.exits.insert(place, told);
        let (end, ended) = oneshot::channel();
        let mut log = None;
        self.pool.change(|state, now| {
            let Some(runs) = &mut state.runs else { return };
            log = Some(Arc::clone(&runs.log));
            let Some(running) = runs.by_place.get_mut(&place) else { return };
            running.pid = Some(pid);
            runs.start.extend([now.secs_since(running.since)]);
            let starter = running.starter.take();
            let is_awaited = starter.is_some_and(|starter| starter.send(Ok(ended)).is_ok());
            if !is_awaited || running.released.is_some() {
                runs.kill(place);
            }
        });
        let name = Arc::clone(&self.pool.shared.params.name);
        let stderr = stderr.map(Receiver::from_owned_fd).and_then(Result::ok);
        self.tasks.spawn(listen(name, place, stderr, log.unwrap_or_default(), exit, end));
    }
}

/// Reads what a program writes to its standard error, and tells how it has ended.
async fn listen(
    pool: Arc<str>,
    place: WorkerId,
    stderr: Option<Receiver>,
    log: Arc<LineBudget>,
    exit: watch::Receiver<Option<Exit>>,
    end: oneshot::Sender<RunEnd>,
) {
    let ended = || {
        let mut exit = exit.clone();
        async move {
            let exit = exit.wait_for(Option::is_some).await.ok();
            // Without a word of it, its keeper has ended, and all programs with it.
            exit.and_then(|exit| *exit).unwrap_or(Exit::Signal(9))
        }
    };
    let words = match stderr {
        Some(stderr) => {
            let ended = async { _ = ended().await };
            standard_error::read(pool, place, stderr, ended, &log).await
        }
        None => String::new(),
    };
    // Without a receiver, nobody asks.
    let _ = end.send(RunEnd { exit: ended().await, words });
}
