//! Where it happens: the application with its database, and a gateway with a pool of its workers.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use suimon_admin::{POOL_PATH, PoolAnswer, PoolDetails, State};
use suimon_process::{Signal, free_address, group};

use crate::common::Common;
use crate::database::Database;
use crate::gateways::DESCRIPTORS;
use crate::http;
use crate::memory_group::MemoryGroup;
use crate::trouble::{Result, Trouble, While, failed};
use crate::workers::Site;
use crate::workspace::{Group, Workspace};

/// How often a page does its work, and how long its query waits: as in `workers-real`.
pub(super) const WORK: u32 = 300;
pub(super) const WAIT: Duration = Duration::from_millis(150);
/// What lets a page of PHP call the C library.
pub(super) const FFI: [&str; 2] = ["-d", "ffi.enable=1"];
/// How long a gateway may take until all its workers are ready, and until it has ended.
const START_PATIENCE: Duration = Duration::from_secs(30);
const END_PATIENCE: Duration = Duration::from_secs(15);
/// How long one question to a gateway may take.
const ASK_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// In the environment of every worker, and of all that it starts, so that they can be found.
const MARK: &str = "SUIMON_EXPERIMENT";

/// The application, and what it needs.
pub(super) struct Place<'a> {
    pub(super) common: &'a Common,
    pub(super) workspace: &'a Workspace,
    pub(super) database: Database,
    /// The copy of `apps/pool-shop` that is served.
    pub(super) app: PathBuf,
}

/// How a gateway is to run.
#[derive(Clone, Default)]
pub(super) struct Wishes<'a> {
    /// The one program that answers every path; `None`: each path has its own.
    pub(super) program: Option<&'a str>,
    /// Settings of the pool, and other sections before it.
    pub(super) pool: String,
    pub(super) others: String,
    /// Workers that must be ready before it counts as started.
    pub(super) workers: usize,
    pub(super) memory: Option<&'a MemoryGroup>,
}

/// A gateway that runs.
pub(super) struct Serving {
    group: Group,
    pub(super) address: SocketAddr,
    pub(super) admin: SocketAddr,
}

impl Place<'_> {
    /// Returns it as the servers of others need it.
    pub(super) fn site<'s>(&'s self, page: &'s str, memory: Option<&'s MemoryGroup>) -> Site<'s> {
        Site {
            common: self.common,
            workspace: self.workspace,
            database: &self.database,
            app: self.app.clone(),
            work: WORK,
            wait: WAIT,
            page,
            options: &FFI,
            memory,
        }
    }

    /// Returns the file that keeps workers from starting while it is there.
    pub(super) fn broken(&self) -> PathBuf {
        self.app.join("broken")
    }

    /// Writes the program of the workers.
    pub(super) fn write_program(&self) -> Result<()> {
        let (program, broken) = (self.program(), self.broken());
        let core = self.common.app_core;
        let text = format!(
            "#!/bin/sh\nif [ -e {} ]; then echo 'the new version is broken' >&2; exit 3; fi\n\
             exec taskset -c {core} php-cgi {}\n",
            broken.display(),
            FFI.join(" ")
        );
        fs::write(&program, text).trouble(program.display())?;
        self.workspace.hand_over(&program)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).trouble(program.display())
    }

    fn program(&self) -> PathBuf {
        self.app.join("worker")
    }

    fn mark(&self) -> String {
        format!("{MARK}={}", self.workspace.path().display())
    }

    /// Starts a gateway, again at `at` if there was one, and waits until its workers are ready. `folder`
    /// takes its settings and sockets, `logs` what it writes.
    pub(super) fn serve(
        &self,
        folder: &Path,
        logs: &Path,
        wishes: &Wishes<'_>,
        at: Option<(SocketAddr, SocketAddr)>,
    ) -> Result<Serving> {
        let mut serving = self.start(folder, logs, wishes, at)?;
        serving.until_ready(wishes.workers)?;
        Ok(serving)
    }

    /// Starts a gateway and waits until it listens.
    pub(super) fn start(
        &self,
        folder: &Path,
        logs: &Path,
        wishes: &Wishes<'_>,
        at: Option<(SocketAddr, SocketAddr)>,
    ) -> Result<Serving> {
        let settings = folder.join("suimon.toml");
        let text = settings_text(wishes, &self.app, &self.program(), folder, &self.environment());
        fs::write(&settings, text).trouble(settings.display())?;
        let (address, admin) = match at {
            Some(both) => both,
            None => (free_address()?, free_address()?),
        };
        let mut program = self
            .workspace
            .program("suimon", &self.common.suimon)
            .cores(&[self.common.load_core])
            .args(["serve", "--lease-keys", "none", "--learned", "none", "--config"])
            .arg(settings.display())
            .args(["--listen".to_string(), address.to_string(), "--admin".to_string(), admin.to_string()])
            .env("STATE_DIRECTORY", folder)
            .descriptors(DESCRIPTORS);
        if let Some(memory) = wishes.memory {
            program = program.control_group(memory.processes()?);
        }
        let mut group = self.workspace.start(program, logs)?;
        for address in [address, admin] {
            group.process.wait_for_listener(address, START_PATIENCE)?;
        }
        Ok(Serving { group, address, admin })
    }

    fn environment(&self) -> Vec<String> {
        let site = self.site("page.php", None);
        let shop = site.environment().map(|(name, value)| format!("{name}={value}"));
        // The pool replaces workers itself; it says so only to programs that it knows as PHP.
        shop.into_iter().chain(["PHP_FCGI_MAX_REQUESTS=0".to_string(), self.mark()]).collect()
    }

    /// Returns all workers of this experiment that live, and all that they have started, whoever
    /// their parent is.
    pub(super) fn marked(&self) -> Vec<u32> {
        let mark = self.mark();
        let carries = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(carries).collect()
    }
}

impl Serving {
    /// Returns what the gateway says of its pool.
    pub(super) fn pool(&self) -> Result<PoolDetails> {
        let answer = http::get(self.admin, POOL_PATH, ASK_PATIENCE)?;
        let answer: PoolAnswer = serde_json::from_slice(&answer.body).trouble(POOL_PATH)?;
        answer.pools.into_iter().next().ok_or_else(|| Trouble::Failed("the gateway has no pool".to_string()))
    }

    pub(super) fn state(&self) -> Result<State> {
        http::gateway_state(self.admin)
    }

    pub(super) fn pid(&self) -> u32 {
        self.group.process.pid()
    }

    pub(super) fn must_run(&mut self) -> Result<()> {
        Ok(self.group.process.must_run()?)
    }

    pub(super) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.group.process.ended()?.is_some())
    }

    /// Returns all that it has started.
    pub(super) fn family(&self) -> Result<Vec<u32>> {
        group::tree(self.pid()).trouble("the gateway's processes")
    }

    /// Kills it alone, with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.group.process.signal(Signal::KILL);
        self.group.process.wait(END_PATIENCE)?;
        Ok(())
    }

    /// Ends it as an operator does.
    pub(super) fn end(mut self) -> Result<()> {
        self.group.process.terminate(END_PATIENCE)?;
        Ok(())
    }

    fn until_ready(&mut self, workers: usize) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let pool = self.pool()?.pool;
            if pool.ready >= workers && is_complete(&pool) {
                return Ok(());
            }
            self.must_run()?;
            if Instant::now() > deadline {
                return failed(format!(
                    "{} of {} workers are ready:\n{}",
                    pool.ready,
                    pool.wanted,
                    self.group.process.last_words()
                ));
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Returns whether a pool has the workers that it should have, and no others.
pub(super) fn is_complete(pool: &suimon_admin::PoolState) -> bool {
    pool.ready == pool.wanted && pool.starting + pool.stopping + pool.unsure == 0
}

/// Returns whether a process lives: one that nobody has waited for does not.
pub(super) fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn settings_text(
    wishes: &Wishes<'_>,
    app: &Path,
    program: &Path,
    folder: &Path,
    environment: &[String],
) -> String {
    let (app, sockets) = (app.display(), folder.join("sockets"));
    let answers = match wishes.program {
        Some(program) => format!("program = \"{app}/{program}\""),
        None => format!("root = \"{app}\""),
    };
    let environment: Vec<String> = environment.iter().map(|it| format!("{it:?}")).collect();
    format!(
        "[gate]\ncores = 1\nsession_law = \"open\"\n{}[upstream.fastcgi]\n{answers}\n[[pool]]\nname = \"shop\"\n\
         kind = \"fastcgi\"\nlisten = \"stdin\"\ncommand = [\"{}\"]\nenvironment = [{}]\nsockets = \"{}\"\n\
         directory = \"{app}\"\n{}",
        wishes.others,
        program.display(),
        environment.join(", "),
        sockets.display(),
        wishes.pool
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers_faults::fault::Fault;

    #[test]
    fn every_settings_file_is_one_suimon_understands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suimon.toml");
        let environment = ["SHOP_DATABASE=host=/x dbname=y".to_string()];
        let kept = Wishes { program: Some("kept.php"), ..Wishes::default() };
        for wishes in Fault::ALL.map(Fault::wishes).into_iter().chain([kept]) {
            let text =
                settings_text(&wishes, folder.path(), Path::new("/bin/sh"), folder.path(), &environment);
            // The workers of the experiment are whose the gateway is, which is not root.
            let text = if suimon_process::user_id() == 0 { text + "user = \"nobody\"\n" } else { text };
            fs::write(&path, &text).unwrap();
            suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        }
    }

    #[test]
    fn a_process_that_has_ended_does_not_live() {
        assert!(lives(std::process::id()));
        assert!(!lives(u32::MAX));
    }
}
