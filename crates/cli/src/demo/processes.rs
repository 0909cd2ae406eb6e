//! The processes of a demo: an application on a core of its own, and gateways in front of it.

use super::Outcome;
use crate::interrupt;
use std::time::Duration;
use std::{env, thread};
use suimon_process::{Program, Running, cpu};

/// The longest a process may take to become ready. The shop measures its own work at start, which
/// takes seconds, and longer on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How often the demo checks its processes.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Most progress reports of a load that wait to be shown; further ones are dropped.
pub(super) const PROGRESS_MAX: usize = 64;
/// What is said after a signal.
pub(super) const INTERRUPTED: &str = "interrupted; nothing was left running and no report was written";

/// Where the demo's processes run, and where their output goes.
pub(super) struct Processes {
    pub(super) cores: Cores,
    folder: tempfile::TempDir,
}

/// The application's cores.
pub(super) struct Cores {
    /// Its own core; `None`: it runs on any core.
    own: Option<usize>,
    /// How many cores it can use at once.
    pub(super) count: usize,
}

/// A gateway that has been started.
pub(super) struct Gateway {
    pub(super) process: Running,
    pub(super) url: String,
    pub(super) admin: String,
}

impl Cores {
    /// Gives the application one core, and the others to this thread and all it starts. Needs two
    /// or more cores, and a system that allows pinning.
    fn share_out() -> Cores {
        let count = thread::available_parallelism().map_or(1, usize::from);
        match suimon_process::allowed_cores().as_deref() {
            Ok([own, others @ ..]) if !others.is_empty() && suimon_process::stay_on(others).is_ok() => {
                Cores { own: Some(*own), count: 1 }
            }
            _ => Cores { own: None, count },
        }
    }

    /// Describes where the application, named `it`, runs.
    pub(super) fn describe(&self, it: &str) -> String {
        match (self.own, self.count) {
            (Some(_), _) => format!("{it} has one core to itself"),
            (None, 1) => format!("{it}, gateway and crowd share one core"),
            (None, _) => format!("{it}, gateway and crowd share all cores"),
        }
    }

    /// Returns so far, in seconds, the CPU time of the application and the busy time of its own
    /// core, stolen time included.
    pub(super) fn used(&self, application: &Running) -> [Option<f64>; 2] {
        let core = self.own.and_then(|core| cpu::core_time(core).ok()?);
        let busy = core.map(|core| core.busy + core.stolen);
        [cpu::process_time(application.pid()).ok(), busy].map(|time| Some(time?.as_secs_f64()))
    }

    /// Returns the program as one that runs on the application's cores.
    pub(super) fn application(&self, program: Program) -> Program {
        match self.own {
            Some(core) => program.cores(&[core]),
            None => program,
        }
    }
}

impl Processes {
    pub(super) fn new() -> Outcome<Self> {
        Ok(Processes { cores: Cores::share_out(), folder: tempfile::tempdir()? })
    }

    /// Of a demo in which no application is to have a core for itself.
    pub(super) fn together() -> Outcome<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        Ok(Processes { cores: Cores { own: None, count }, folder: tempfile::tempdir()? })
    }

    /// Returns the folder for what processes write.
    pub(super) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Starts a gateway in front of `to`; `looked` is called while it is waited for.
    pub(super) fn gateway(&self, to: &str, arguments: &[String], looked: impl FnMut()) -> Outcome<Gateway> {
        let arguments = [&["--to".to_owned(), to.to_owned()][..], arguments].concat();
        self.serve(&arguments, looked)
    }

    /// Starts a gateway; its application is among the arguments.
    pub(super) fn serve(&self, arguments: &[String], looked: impl FnMut()) -> Outcome<Gateway> {
        let program = suimon("serve")?.args(["--listen", "127.0.0.1:0"]).args(arguments);
        let program = program.args(["--admin", "127.0.0.1:0", "--lease-keys", "none", "--learned", "none"]);
        let (process, [clients, operator]) = self.start(program, ["  clients ", "  operator "], looked)?;
        Ok(Gateway { url: url_in(&clients)?, admin: url_in(&operator)?, process })
    }

    /// Starts it and returns the lines containing each of `wanted`, on either stream.
    pub(super) fn start<const N: usize>(
        &self,
        program: Program,
        wanted: [&str; N],
        mut looked: impl FnMut(),
    ) -> Outcome<(Running, [String; N])> {
        let mut process = program.start(self.folder.path())?;
        let told = process.wait_for("word of being ready", READY_WITHIN, |process| {
            looked();
            let said = process.said() + &process.complained();
            let whole = |line: &&str| line.ends_with('\n');
            let line = |wanted: &str| {
                said.split_inclusive('\n').filter(whole).find(|line| line.contains(wanted)).map(str::to_owned)
            };
            let told: Vec<String> = wanted.iter().filter_map(|wanted| line(wanted)).collect();
            if interrupt::asked() { Some(None) } else { <[String; N]>::try_from(told).ok().map(Some) }
        })?;
        Ok((process, told.ok_or(INTERRUPTED)?))
    }
}

/// Returns a command of this binary.
pub(super) fn suimon(command: &str) -> Outcome<Program> {
    // The demo shows Suimon's defaults, independent of the user's environment.
    Ok(Program::new(format!("suimon {command}"), env::current_exe()?).without_env("SUIMON_LOG").arg(command))
}

/// Returns the URL in a line of a process's output.
pub(super) fn url_in(line: &str) -> Outcome<String> {
    let at = line.find("http://").ok_or_else(|| format!("there is no address in {line:?}"))?;
    let end = line[at..].find([' ', ',', ';', '\n']).map_or(line.len(), |length| at + length);
    Ok(line[at..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_runs_on_the_application_s_core() {
        let cores = Cores::share_out();
        assert!(cores.count >= 1);
        if let Some(own) = cores.own {
            let others = suimon_process::allowed_cores().unwrap();
            assert!(!others.is_empty() && !others.contains(&own), "{own} of {others:?}");
        }
    }
}
