//! What a pool of resident workers is told before it starts.

use std::path::PathBuf;
use std::sync::Arc;
use suimon_control::SizeLawKind;
pub use suimon_fleet::workers::{WORKERS_MAX, WorkersParams};

/// The most pools of one gateway. The gate counts what belongs to no pool as one more.
pub const POOLS_MAX: usize = suimon_gate::POOLS_MAX - 1;

/// What stands for the path of a worker's socket in the words of its command.
pub const SOCKET_WORD: &str = "{socket}";
/// What stands for a worker's TCP port there.
pub const PORT_WORD: &str = "{port}";

/// Everything a pool is told before it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolParams {
    /// Its name: letters, digits, `-` and `_`, and unlike any other pool's.
    pub name: Arc<str>,
    /// What its workers speak.
    pub kind: WorkerKind,
    /// What a worker runs.
    pub command: CommandParams,
    /// When workers are started, replaced and ended.
    pub workers: WorkersParams,
    /// How much memory they may take.
    pub memory: MemoryParams,
    /// The folder in which the pool makes one for its sockets. It is made if it is not there; nobody
    /// but the gateway's user may write there.
    pub folder: PathBuf,
    /// The program that ends what is left if the gateway is killed. `None`: the system's shell.
    pub guardian: Option<GuardianParams>,
}

/// How many workers a pool has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SizeParams {
    /// How the number is found.
    pub law: SizeLawKind,
    /// The fewest, although they are idle.
    pub least: u32,
    /// The most.
    pub most: u32,
    /// Processor cores that the workers have.
    pub cores: u32,
}

/// What a worker runs. In words and values of the environment [`SOCKET_WORD`] stands for the path of
/// the worker's socket, and [`PORT_WORD`] for a free TCP port of the loopback interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommandParams {
    /// The program: a path, or a name that is looked for in the `PATH` of `environment`. Empty, with
    /// [`WorkerKind::Cgi`] only: the program that the request asks for.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Its working directory; `None`: the gateway's.
    pub folder: Option<PathBuf>,
    /// Whose rights it has; `None`: the gateway's.
    pub user: Option<User>,
    /// Where it takes requests.
    pub listen: WorkerListen,
}

impl CommandParams {
    /// Returns how a worker listens, as the words of its command say; `None`: they do not say.
    pub fn listen_by_words(&self) -> Option<WorkerListen> {
        let mentions = |what: &str| {
            let values = self.environment.iter().map(|(_, value)| value);
            self.arguments.iter().chain(values).any(|word| word.contains(what))
        };
        match (mentions(SOCKET_WORD), mentions(PORT_WORD)) {
            (true, _) => Some(WorkerListen::Socket),
            (false, true) => Some(WorkerListen::Port),
            (false, false) => None,
        }
    }
}

suimon_model::choices! {
    /// What workers speak.
    #[derive(Eq)]
    pub enum WorkerKind {
        /// FastCGI.
        FastCgi = 0, "fastcgi", "FastCGI; [upstream.fastcgi] says which program answers a path";
        /// HTTP/1.1.
        Http = 1, "http", "HTTP/1.1, one request a connection";
        /// CGI/1.1: a process for each request.
        Cgi = 2, "cgi", "CGI/1.1: no worker stays, a process is started for each request; [upstream.fastcgi] says which program answers a path";
    }
}

suimon_model::choices! {
    /// Where a worker takes requests.
    #[derive(Eq)]
    pub enum WorkerListen {
        /// At its standard input, a Unix socket that the gateway has opened (FastCGI
        /// specification, 2.2).
        StandardInput = 0, "stdin", "FastCGI programs: php-cgi, and those of Perl, Python and Ruby";
        /// At descriptor 3, a Unix socket that the gateway has opened, with `LISTEN_FDS` and
        /// `LISTEN_PID` (`sd_listen_fds(3)`).
        Descriptor3 = 1, "systemd", "programs that systemd can start with a socket, such as gunicorn";
        /// At the Unix socket `{socket}`, which it opens.
        Socket = 2, "socket", "programs that are given the path {socket} of a Unix socket";
        /// At the TCP port `{port}` of the loopback interface, which it opens.
        Port = 3, "port", "programs that are given a {port} of the loopback interface";
    }
}

/// A user of the system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// The user's number.
    pub id: u32,
    /// The number of the user's group.
    pub group: u32,
    /// The user's other groups. A worker is in no others.
    pub groups: Vec<u32>,
}

/// How much memory the workers of a pool may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryParams {
    /// Bytes that all workers together may take; `None`: what the machine and its control groups
    /// have left.
    pub budget: Option<u64>,
    /// Bytes that are left to others; `None`: a tenth of what the machine or the control group has.
    pub reserve: Option<u64>,
}

/// A program that ends what is left if the gateway is killed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuardianParams {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}
