//! How a worker is started, and how it gets its socket.
//!
//! Where the program can take a socket that is open already, the gateway opens it before the start:
//! then nobody else can have the address, and a connection that comes early waits in the kernel
//! until the worker takes it. Other programs are told a path in a folder that only they and the
//! gateway can use, or a free port, of which [`port_owner`](suimon_process::port_owner) shows who has it.
//!
//! A worker leads a process group of its own, so that stopping it stops what it has started, too.

use super::guardian::{Guardian, SHELL};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use suimon_params::pool::{CommandParams, PORT_WORD, SOCKET_WORD, User, WorkerListen};
use suimon_params::upstream::NodeAddress;
use suimon_process::{Preparation, Rights};

/// Moves the socket from descriptor 0 to 3 and says so, as systemd does. Only the process itself
/// knows its number, so a shell says it and then becomes the program.
const AT_DESCRIPTOR_3: &str =
    r#"LISTEN_FDS=1 LISTEN_PID=$$; export LISTEN_FDS LISTEN_PID; exec "$@" 3<&0 </dev/null"#;

/// Starts a worker. `socket` is a path where nothing is, or something that is of no use any more.
///
/// # Errors
/// The socket cannot be opened, or the program cannot be run.
pub(super) fn start(
    params: &CommandParams,
    socket: &Path,
    guardian: Option<&Guardian>,
    control_group: Option<&File>,
) -> io::Result<(Child, NodeAddress)> {
    remove(socket)?;
    let at_socket = || NodeAddress::Unix(socket.to_owned());
    let open = || UnixListener::bind(socket).map(|listener| Stdio::from(OwnedFd::from(listener)));
    let (stdin, address) = match params.listen {
        WorkerListen::StandardInput | WorkerListen::Descriptor3 => (open()?, at_socket()),
        WorkerListen::Socket => (Stdio::null(), at_socket()),
        WorkerListen::Port => (Stdio::null(), free_port()?),
    };
    let mut command = filled(params, socket, &address);
    command.stdin(stdin).stdout(Stdio::null());
    if let Some(folder) = &params.folder {
        command.current_dir(folder);
    }
    match spawn(command, params, guardian, control_group) {
        Ok(child) => Ok((child, address)),
        Err(error) => {
            let _ = remove(socket);
            Err(error)
        }
    }
}

/// What a request runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The program that answers it, run itself if the pool's command names none. Then its folder is
    /// the working folder, unless the pool has one.
    pub script: PathBuf,
    /// Its environment, beside what the pool's command has.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether a body comes to its standard input.
    pub has_body: bool,
}

/// A program that is to run once, with its ends of the pipes.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: Program,
    /// `None`: there is nothing to read.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
}

/// Runs a program once.
///
/// # Errors
/// It cannot be run.
pub(super) fn run(
    params: &CommandParams,
    launch: Launch,
    guardian: Option<&Guardian>,
    control_group: Option<&File>,
) -> io::Result<Child> {
    let Launch { program: Program { script, environment, .. }, stdin, stdout } = launch;
    let runs_script = params.program.as_os_str().is_empty();
    let mut command = Command::new(if runs_script { &script } else { &params.program });
    command
        .args(&params.arguments)
        .env_clear()
        .envs(params.environment.iter().map(|(name, value)| (name, value)))
        .envs(environment)
        .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(stdout);
    // As RFC 3875, section 7.2, recommends.
    let own = script.parent().filter(|_| runs_script);
    if let Some(folder) = params.folder.as_deref().or(own) {
        command.current_dir(folder);
    }
    spawn(command, params, guardian, control_group)
}

/// Starts a process of the pool: in a process group of its own, as the pool's user, known to the
/// guardian.
fn spawn(
    mut command: Command,
    params: &CommandParams,
    guardian: Option<&Guardian>,
    control_group: Option<&File>,
) -> io::Result<Child> {
    command.stderr(Stdio::piped()).process_group(0);
    let preparation = Preparation {
        rights: params.user.as_ref().and_then(other_rights),
        has_descriptors_of_our_start: true,
        announced_to: guardian.map(Guardian::pipe).transpose()?,
        control_group: control_group.map(File::try_clone).transpose()?.map(OwnedFd::from),
        ..Preparation::default()
    };
    preparation.apply(&mut command);
    command.spawn()
}

/// Removes what is at this path, if anything is.
pub(super) fn remove(socket: &Path) -> io::Result<()> {
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the command with its words filled in.
fn filled(params: &CommandParams, socket: &Path, address: &NodeAddress) -> Command {
    let path = socket.to_string_lossy();
    let port = match address {
        NodeAddress::Tcp { port, .. } => port.to_string(),
        NodeAddress::Found { .. } | NodeAddress::Unix(_) | NodeAddress::Workers(_) => String::new(),
    };
    let fill = |word: &String| word.replace(SOCKET_WORD, &path).replace(PORT_WORD, &port);
    let mut words: Vec<OsString> = vec![params.program.clone().into()];
    words.extend(params.arguments.iter().map(|word| fill(word).into()));
    if params.listen == WorkerListen::Descriptor3 {
        let shell = [SHELL, "-c", AT_DESCRIPTOR_3, "sh"];
        words.splice(..0, shell.map(OsString::from));
    }
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env_clear()
        .envs(params.environment.iter().map(|(name, value)| (name, fill(value))));
    command
}

/// Returns the rights to take on; `None`: we have them. Only root may take on any, even the same.
fn other_rights(user: &User) -> Option<Rights> {
    let is_root = rustix::process::geteuid().is_root();
    let are_ours = rustix::process::geteuid().as_raw() == user.id;
    (is_root || !are_ours).then(|| Rights { user: user.id, group: user.group, groups: user.groups.clone() })
}

/// Returns an address that nobody listens at.
fn free_port() -> io::Result<NodeAddress> {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    Ok(NodeAddress::Tcp { host: address.ip().to_string(), port: address.port() })
}
