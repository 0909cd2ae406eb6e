//! A private PostgreSQL, with its files in a temporary folder and without any care for what a power
//! cut would leave of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use suimon_process::{Signal, free_address};

use crate::gateways::find;
use crate::trouble::{Result, Trouble, While};
use crate::workspace::{Group, Workspace};

/// How long making it, starting it, and loading it may each take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most workers that may be connected to it at once.
const CONNECTIONS_MAX: u32 = 300;
const USER: &str = "shop";
/// The database that always exists.
const NAME: &str = "postgres";

/// A database server that answers.
pub(crate) struct Database {
    /// `None`: it is stopped.
    server: Option<Group>,
    folder: PathBuf,
    core: usize,
    port: u16,
}

impl Database {
    /// Makes one with this schema, and starts it on `core`.
    pub(crate) fn open(workspace: &Workspace, core: usize, schema: &Path) -> Result<Self> {
        let folder = workspace.fresh("database")?;
        let made = workspace
            .program("initdb", &program("initdb")?)
            .cores(&[core])
            .arg("-D")
            .arg(folder.join("data").display())
            .args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        workspace.run(made, &folder, PATIENCE)?;
        let port = free_address()?.port();
        let mut database = Database { server: None, folder, core, port };
        database.start(workspace)?;
        let loaded = workspace
            .program("psql", &program("psql")?)
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &database.address(), "-f"])
            .arg(schema.display());
        workspace.run(loaded, &database.folder, PATIENCE)?;
        Ok(database)
    }

    /// Starts it again.
    pub(crate) fn start(&mut self, workspace: &Workspace) -> Result<()> {
        let folder = self.folder.display();
        let settings = [
            "listen_addresses=127.0.0.1".to_string(),
            format!("port={}", self.port),
            format!("unix_socket_directories={folder}"),
            format!("max_connections={CONNECTIONS_MAX}"),
            "shared_buffers=32MB".to_string(),
            // Nothing that is left behind elsewhere, and nothing that works by itself.
            "dynamic_shared_memory_type=mmap".to_string(),
            "fsync=off".to_string(),
            "synchronous_commit=off".to_string(),
            "autovacuum=off".to_string(),
            "jit=off".to_string(),
        ];
        let mut server = workspace
            .program("postgres", &program("postgres")?)
            .cores(&[self.core])
            .arg("-D")
            .arg(self.folder.join("data").display())
            .args(settings.into_iter().flat_map(|setting| ["-c".to_string(), setting]));
        server = server.env("LC_ALL", "C");
        let mut server = workspace.start(server, &self.folder)?;
        let ready = |server: &suimon_process::Running| {
            server.complained().contains("ready to accept connections").then_some(())
        };
        server.process.wait_for("readiness", PATIENCE, ready)?;
        self.server = Some(server);
        Ok(())
    }

    /// Stops it, as if its machine had gone: all connections break.
    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end(Signal::QUIT);
        }
    }

    /// Returns how clients of this machine connect: through its Unix socket.
    pub(crate) fn address(&self) -> String {
        format!("host={} port={} dbname={NAME} user={USER}", self.folder.display(), self.port)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the path of one of PostgreSQL's programs. Debian puts those of a server into a folder of
/// their version, which is in nobody's path.
fn program(name: &str) -> Result<PathBuf> {
    let versions = Path::new("/usr/lib/postgresql");
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir(versions).into_iter().flatten() {
        let folder = entry.trouble(versions.display())?.path();
        let version = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
        let path = folder.join("bin").join(name);
        found.extend(version.filter(|_| path.is_file()).map(|version| (version, path)));
    }
    match found.into_iter().max() {
        Some((_, newest)) => Ok(newest),
        None => find(name).map_err(|_| {
            Trouble::Usage(format!(
                "{name} is not installed: ./scripts/setup --experiments installs PostgreSQL"
            ))
        }),
    }
}
