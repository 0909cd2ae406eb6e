//! A process that leads a group, and the thread that starts such processes.
//!
//! That thread lives as long as any of them: the kernel ends a process with the thread that started it, so
//! none outlives the gateway, in whatever way that ends. Another thread waits for each: until it has, the
//! number of the process, which is that of its group, cannot be used again.

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use suimon_process::{Preparation, Rights, Signal, group};
use tokio::sync::oneshot;

/// A process that leads a group. Dropping it kills the group.
pub(crate) struct Leader {
    number: u32,
    is_over: IsOver,
    end: oneshot::Receiver<ExitStatus>,
}

/// Whether the process was waited for, and its number may be somebody else's.
#[derive(Clone, Default)]
struct IsOver(Arc<Mutex<bool>>);

impl Leader {
    fn of(mut child: Child) -> io::Result<Self> {
        let number = child.id();
        let (ended, end) = oneshot::channel();
        let leader = Leader { number, is_over: IsOver::default(), end };
        let (pid, is_over) = (Pid::from_child(&child), leader.is_over.clone());
        let waits = move || {
            let looked = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            // A signal interrupts it; anything else is the end.
            while matches!(looked(), Err(Errno::INTR)) {}
            let mut is_over = is_over.lock();
            // What it has started ends with it.
            group::kill(number);
            let status = child.wait();
            *is_over = true;
            // The receiver may be dropped: then nobody asks.
            let _ = status.map(|status| ended.send(status));
        };
        // If it cannot be watched, it is dropped, and killed.
        thread::Builder::new().name("node-end".to_owned()).spawn(waits)?;
        Ok(leader)
    }

    /// Returns the number of the process, which is that of its group.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Sends a signal to the group, unless the process has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let is_over = self.is_over.lock();
        if !*is_over {
            group::signal_all(self.number, signal);
        }
    }

    /// Waits until it has ended, and returns how.
    pub(crate) async fn ended(&mut self) -> String {
        let status = (&mut self.end).await;
        status.map_or_else(|_| "unknown".to_owned(), |status| status.to_string())
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl IsOver {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that starts processes. It ends when this is dropped, and so do they.
pub(crate) struct Starter(mpsc::Sender<Order>);

struct Order {
    command: Command,
    rights: Option<Rights>,
    started: oneshot::Sender<io::Result<Leader>>,
}

impl Starter {
    pub(crate) fn new() -> Self {
        let (orders, ordered) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for Order { mut command, rights, started } in ordered {
                let preparation =
                    Preparation { has_descriptors_of_our_start: true, rights, ..Preparation::default() };
                preparation.apply(&mut command);
                // One that nobody wants any more is dropped, on whichever side, and killed.
                let _ = started.send(command.spawn().and_then(Leader::of));
            }
        });
        Starter(orders)
    }

    /// Starts a program that leads a group of its own.
    pub(crate) async fn start(&self, command: Command, rights: Option<Rights>) -> io::Result<Leader> {
        let (started, leader) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts nodes has ended");
        self.0.send(Order { command, rights, started }).map_err(|_| gone())?;
        leader.await.map_err(|_| gone())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::process::CommandExt;
    use std::time::{Duration, Instant};

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            thread::yield_now();
        }
    }

    /// Orders a process, and returns its number and what will be sent of it, once it was sent.
    fn ordered(starter: &Starter) -> (u32, oneshot::Receiver<io::Result<Leader>>) {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("number");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo $$ > {}; exec sleep 1000", mark.display())]).process_group(0);
        let (started, leader) = oneshot::channel();
        starter.0.send(Order { command, rights: None, started }).unwrap();
        until("it starts", || !leader.is_empty());
        let number = || fs::read_to_string(&mark).ok().and_then(|number| number.trim().parse().ok());
        until("it writes its number", || number().is_some());
        (number().unwrap(), leader)
    }

    fn lives(number: u32) -> bool {
        fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn one_that_nobody_takes_is_killed() {
        let starter = Starter::new();
        let (number, leader) = ordered(&starter);
        assert!(lives(number));
        // It was sent, and is never received.
        drop(leader);
        until("it ends", || !lives(number));
        let (number, mut leader) = ordered(&starter);
        drop(leader.try_recv().unwrap().unwrap());
        until("it ends", || !lives(number));
    }

    #[tokio::test]
    async fn one_that_ends_says_how_and_takes_what_it_has_started_with_it() {
        let starter = Starter::new();
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("child");
        let mut command = Command::new("sh");
        let script = format!("sleep 1000 & echo $! > {}; exit 3", mark.display());
        command.args(["-c", &script]).process_group(0);
        let mut leader = starter.start(command, None).await.unwrap();
        assert_eq!(leader.ended().await, "exit status: 3");
        let child = fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
        until("its child ends", || !lives(child));
    }
}
