//! A private MariaDB, with its files in a temporary folder and without any care for what a power cut
//! would leave of them.

use std::path::PathBuf;
use std::time::Duration;

use suimon_process::Signal;

use crate::gateways::find;
use crate::trouble::{Result, Trouble};
use crate::workspace::{Group, Workspace};

/// How long making it and starting it may each take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most clients that may be connected to it at once.
const CONNECTIONS_MAX: u32 = 300;
/// Memory for its pages: more than what an experiment stores.
const BUFFER: &str = "128M";

/// A database server that answers, on a Unix socket only. Its `root` has no password.
pub(crate) struct MariaDb {
    /// `None`: it is stopped.
    server: Option<Group>,
    folder: PathBuf,
    core: usize,
}

impl MariaDb {
    /// Makes an empty one and starts it on `core`.
    pub(crate) fn open(workspace: &Workspace, core: usize) -> Result<Self> {
        let folder = workspace.fresh("mariadb")?;
        // A user's or the machine's own settings must not reach it.
        let made = workspace
            .program("mariadb-install", &program("mariadb-install-db")?)
            .cores(&[core])
            .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
            .arg(format!("--datadir={}", folder.join("data").display()));
        workspace.run(made, &folder, PATIENCE)?;
        let mut database = MariaDb { server: None, folder, core };
        database.start(workspace)?;
        Ok(database)
    }

    /// Starts it again.
    pub(crate) fn start(&mut self, workspace: &Workspace) -> Result<()> {
        let server = workspace
            .program("mariadbd", &program("mariadbd")?)
            .cores(&[self.core])
            .args(["--no-defaults".to_string(), "--skip-networking".to_string()])
            .arg(format!("--datadir={}", self.folder.join("data").display()))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", self.folder.join("pid").display()))
            .arg(format!("--max-connections={CONNECTIONS_MAX}"))
            .arg(format!("--innodb-buffer-pool-size={BUFFER}"))
            .args(["--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite", "--sync-binlog=0"]);
        let mut server = workspace.start(server, &self.folder)?;
        let ready = |server: &suimon_process::Running| {
            server.complained().contains("ready for connections").then_some(())
        };
        server.process.wait_for("readiness", PATIENCE, ready)?;
        self.server = Some(server);
        Ok(())
    }

    /// Stops it. A graceful end may take its time, and nobody needs what it would save.
    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end(Signal::KILL);
        }
    }

    /// Returns the path of its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Fails if it has ended by itself.
    pub(crate) fn must_run(&mut self) -> Result<()> {
        Ok(self.server.as_mut().map_or(Ok(()), |server| server.process.must_run())?)
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.stop();
    }
}

fn program(name: &str) -> Result<PathBuf> {
    find(name).map_err(|_| {
        Trouble::Usage(format!("{name} is not installed: ./scripts/setup --experiments installs MariaDB"))
    })
}
