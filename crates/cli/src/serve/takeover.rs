//! SIGUSR2: a new process of the same program goes on where this one stops.
//!
//! The new one gets the listening sockets and a line to talk by, and both speak in turn:
//!
//! | the new one | this one | by then |
//! |---|---|---|
//! | `prepared` | | its settings are right; it has written nothing and accepts nothing |
//! | | `state`, and the sessions that have begun | this one takes no newcomers, and all other state is in the files |
//! | `ready` | | it has read them |
//! | | `accept` | it is the gateway now; this one drains |
//!
//! If the new one ends or says nothing for too long before the last word, this one goes on, and so it is
//! if this one is told to stop: the new one is killed. If this one crashes before that, the new one goes
//! on.

use super::notify::Notifier;
use super::role::Role;
use crate::interrupt;
use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use suimon_params::Params;
use suimon_params::nodes::ProviderParams;
use suimon_process::inherited;
use suimon_proxy::{BegunSession, HandedOver, Handover, Sockets};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::signal::unix::Signal;

/// The variable in which the new process finds what it was handed down: words `NAME=NUMBER`.
const VARIABLE: &str = "SUIMON_TAKEOVER";
/// What the line to talk by is called there.
const TALK: &str = "talk";
/// Variables that are about this process alone.
const OF_THIS_PROCESS: [&str; 5] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID", VARIABLE];

/// More sessions than a gateway remembers.
const SESSIONS_MAX: usize = 1 << 24;
/// How long the new process may take to read its settings and certificates, ...
const PREPARES_WITHIN: Duration = Duration::from_secs(30);
/// ... and to read the state, while newcomers wait.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long it waits for us: longer than anything here may take.
const WAITS_FOR: Duration = Duration::from_secs(60);

/// The gateway that hands over to this process.
#[derive(Debug)]
pub(super) struct Predecessor {
    talk: BufReader<UnixStream>,
}

/// What a gateway hands down.
#[derive(Debug)]
pub(super) struct HandedDown {
    pub(super) sockets: Vec<(Role, OwnedFd)>,
    pub(super) predecessor: Predecessor,
}

/// Returns what another gateway has handed down to this process, if one has.
pub(super) fn handed_down() -> Result<Option<HandedDown>, String> {
    let Some(text) = env::var_os(VARIABLE) else { return Ok(None) };
    let text = text.to_string_lossy();
    let fault = || format!("{VARIABLE} = {text:?}: a running gateway sets it for the one that takes over");
    let (mut sockets, mut talk) = (Vec::new(), None);
    for word in text.split_whitespace() {
        let (name, number) = word.split_once('=').ok_or_else(fault)?;
        let number: RawFd = number.parse().map_err(|_| fault())?;
        let descriptor = inherited::take_over(number).map_err(|error| format!("{}; {error}", fault()))?;
        match Role::of(name) {
            Some(role) => sockets.push((role, descriptor)),
            None if name == TALK => talk = Some(descriptor),
            None => return Err(fault()),
        }
    }
    let talk = UnixStream::from(talk.ok_or_else(fault)?);
    talk.set_read_timeout(Some(WAITS_FOR)).map_err(|error| error.to_string())?;
    Ok(Some(HandedDown { sockets, predecessor: Predecessor { talk: BufReader::new(talk) } }))
}

impl Predecessor {
    /// Says that all that can be checked is right, and waits until the state is in the files. Returns
    /// the sessions that have begun.
    pub(super) fn prepared(&mut self) -> Result<Vec<BegunSession>, String> {
        self.exchange("prepared", "state")?;
        let mut sessions = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.talk.read_line(&mut line);
            // Whoever ends in the middle has written the files before.
            match line.trim_end() {
                session if !session.is_empty() && read.is_ok() && sessions.len() < SESSIONS_MAX => {
                    sessions.push(begun(session).ok_or_else(|| format!("a session is {session:?}"))?);
                }
                _ => return Ok(sessions),
            }
        }
    }

    /// Says that the state was read, and waits until this process is the gateway.
    pub(super) fn ready(&mut self) -> Result<(), String> {
        self.exchange("ready", "accept")
    }

    fn exchange(&mut self, word: &str, expected: &str) -> Result<(), String> {
        // Whether it is there shows below.
        let _ = writeln!(self.talk.get_mut(), "{word}");
        let mut heard = String::new();
        match self.talk.read_line(&mut heard) {
            Ok(_) if heard.trim_end() == expected => Ok(()),
            // Whoever gives up a takeover kills the one that takes over.
            Ok(0) => {
                tracing::warn!("the gateway that was handing over has ended; this one goes on without it");
                Ok(())
            }
            Ok(_) => Err(format!("the gateway that hands over says {heard:?}")),
            Err(error) => Err(format!("the gateway that hands over says nothing: {error}")),
        }
    }
}

/// Returns the line that tells of a session: kind, number, and the site where it is not the main one.
fn line_of(begun: &BegunSession) -> String {
    let site = begun.site.as_ref().map_or(String::new(), |site| format!(" {site}"));
    format!("{} {}{site}\n", begun.kind, begun.session)
}

fn begun(line: &str) -> Option<BegunSession> {
    // None of these names has a space in it.
    let mut words = line.split(' ');
    let (kind, session) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    Some(BegunSession { site: words.next().map(str::to_owned), kind, session })
}

/// What starts a new process, and hands over to it.
pub(super) struct Successor {
    /// Why this gateway cannot be taken over, if it cannot.
    pub(super) refused: Option<&'static str>,
    /// The program, as it was called at the start: another file may be at its path by now.
    program: io::Result<PathBuf>,
    handover: Handover,
    admin: Option<OwnedFd>,
    notifier: Notifier,
}

impl Successor {
    /// Returns what hands a gateway over that listens for operators at `admin`.
    pub(super) fn new(
        refused: Option<&'static str>,
        handover: Handover,
        admin: Option<OwnedFd>,
        notifier: Notifier,
    ) -> Self {
        Successor { refused, program: env::current_exe(), handover, admin, notifier }
    }

    /// Hands over when it is told to. Returns whether another process is the gateway; if not, this one
    /// was told to stop, and what was under way is given up.
    pub(super) async fn run(self, mut told: Signal) -> bool {
        let takes_over = async {
            while told.recv().await.is_some() {
                match self.hand_over().await {
                    Ok(()) => return,
                    Err(why) => tracing::error!("the takeover has failed, and this process goes on: {why}"),
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = interrupt::first() => false,
            () = takes_over => true,
        }
    }

    async fn hand_over(&self) -> Result<(), String> {
        if let Some(why) = self.refused {
            return Err(why.to_owned());
        }
        let program = self.program.as_ref().map_err(|error| format!("our own path is not known: {error}"))?;
        tracing::info!("handing over to a new process of {}", program.display());
        let no_descriptors = |error: io::Error| format!("no descriptors for the new process: {error}");
        let (ours, theirs) = UnixStream::pair().map_err(no_descriptors)?;
        ours.set_nonblocking(true).map_err(no_descriptors)?;
        let ours = tokio::net::UnixStream::from_std(ours).map_err(no_descriptors)?;
        let mut descriptors = vec![(TALK, OwnedFd::from(theirs))];
        let Sockets { plain, tls, load_reports } =
            self.handover.listening().descriptors().map_err(no_descriptors)?;
        let admin = self.admin.as_ref().map(OwnedFd::try_clone).transpose().map_err(no_descriptors)?;
        descriptors.extend(
            [
                (Role::Http, plain.map(OwnedFd::from)),
                (Role::Tls, tls.map(OwnedFd::from)),
                (Role::Admin, admin),
                (Role::LoadReports, load_reports.map(OwnedFd::from)),
            ]
            .into_iter()
            .filter_map(|(role, descriptor)| Some((role.name(), descriptor?))),
        );
        let child = start(program.into(), descriptors);
        let child = child.map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        let talk = tokio::io::BufStream::new(ours);
        let mut trial = Trial { child, handed_over: None, talk, has_succeeded: false };
        match self.talk(&mut trial).await {
            Ok(()) => Ok(()),
            Err(why) => {
                // Before the wait, as a shutdown does not wait for other threads.
                trial.kill();
                let ended = tokio::task::spawn_blocking(move || trial.child.wait()).await;
                let status = ended.ok().and_then(Result::ok).map(|status| status.to_string());
                Err(format!("{why} ({})", status.unwrap_or("how it ended is not known".to_owned())))
            }
        }
    }

    async fn talk(&self, trial: &mut Trial) -> Result<(), String> {
        let (pid, talk) = (trial.child.id(), &mut trial.talk);
        hear(talk, "prepared", PREPARES_WITHIN).await?;
        let handed_over = self.handover.begin().await.ok_or("this one is shutting down")?;
        let handed_over = trial.handed_over.insert(handed_over);
        let sessions: Vec<String> = handed_over.sessions.iter().map(line_of).collect();
        // An empty line ends them.
        say(talk, &format!("state\n{}", sessions.concat())).await?;
        hear(talk, "ready", READY_WITHIN).await?;
        // From here on nothing can fail: should the new one have ended at this very moment, the service
        // manager is who starts another.
        self.notifier.main_process(pid);
        say(talk, "accept").await?;
        trial.has_succeeded = true;
        // With nothing under way this process ends right after the next line.
        tracing::info!("process {pid} has taken over");
        if let Some(handed_over) = trial.handed_over.take() {
            handed_over.succeeds();
        }
        Ok(())
    }
}

/// A new process that is not the gateway yet. Dropped before it is, as when this process is told to
/// stop, it is killed.
struct Trial {
    child: Child,
    /// Goes on only when the new process is no more: until then that one has the recording's lock, and
    /// may write.
    handed_over: Option<HandedOver>,
    /// Ends last: one that finds that nobody talks to it any more goes on alone.
    talk: Talk,
    has_succeeded: bool,
}

impl Trial {
    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if !self.has_succeeded {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns why a gateway with these settings, read from this file, cannot be taken over, if it cannot.
pub(super) fn refusal(params: &Params, config: Option<&Path>) -> Option<&'static str> {
    let owns = |params: &Params| {
        params.nodes.as_ref().is_some_and(|nodes| !matches!(nodes.provider, ProviderParams::Observe))
    };
    let owns_nodes = params.all_sites().any(owns);
    if std::process::id() == 1 {
        return Some(
            "this is process 1, with which its container ends: replace the container (docs/restarts.md)",
        );
    }
    if owns_nodes {
        return Some(
            "it has nodes started and ended (nodes.provider), and two processes would do so at once: restart it",
        );
    }
    let is_once =
        |path: &Path| path.as_os_str() == "-" || std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    config
        .is_some_and(is_once)
        .then_some("its settings came from standard input or a pipe, which cannot be read twice: name a file")
}

fn start(program: OsString, descriptors: Vec<(&str, OwnedFd)>) -> io::Result<Child> {
    let words: Vec<String> = descriptors
        .iter()
        .map(|(name, descriptor)| format!("{name}={}", inherited::number_of(descriptor)))
        .collect();
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).stdin(Stdio::null());
    for variable in OF_THIS_PROCESS {
        command.env_remove(variable);
    }
    command.env(VARIABLE, words.join(" "));
    inherited::hand_down(&mut command, descriptors.into_iter().map(|(_, descriptor)| descriptor).collect());
    command.spawn()
}

type Talk = tokio::io::BufStream<tokio::net::UnixStream>;

async fn say(talk: &mut Talk, word: &str) -> Result<(), String> {
    let said = async {
        talk.write_all(format!("{word}\n").as_bytes()).await?;
        talk.flush().await
    };
    said.await.map_err(|error| format!("the new process does not listen: {error}"))
}

async fn hear(talk: &mut Talk, word: &str, within: Duration) -> Result<(), String> {
    let mut heard = String::new();
    match tokio::time::timeout(within, talk.read_line(&mut heard)).await {
        Ok(Ok(_)) if heard.trim_end() == word => Ok(()),
        Ok(Ok(0) | Err(_)) => Err("the new process has ended; what it says of that stands above".to_owned()),
        Ok(Ok(_)) => {
            Err(format!("the new process says {heard:?} in place of {word:?}: is it another program?"))
        }
        Err(_) => Err(format!("the new process is not {word} within {} s", within.as_secs())),
    }
}
