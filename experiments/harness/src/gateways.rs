//! What is between crowd and application: nothing, Suimon under one of its laws, or HAProxy.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_process::{Program, Running, free_address};

use crate::common::Common;
use crate::http;
use crate::trouble::{Result, Trouble, While};

/// How long a gateway may take to listen.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long a graceful shutdown may take.
const END_PATIENCE: Duration = Duration::from_secs(60);
/// Descriptors of a gateway: as many as most machines allow.
pub(crate) const DESCRIPTORS: u32 = 20_000;

/// A setup between crowd and application.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Control {
    /// Nothing.
    None,
    /// Routes have limits, sessions are not limited.
    RoutesOnly,
    /// This many sessions at once; routes have no limits.
    Static(u32),
    /// The paper's two rules.
    Paper(PaperSettings),
    /// The paper's page rule alone, from this limit.
    PageOnly(u32),
    /// The paper's two rules in the paper's times; newcomers wait in line for as long as visitors
    /// wait for an answer.
    Sqs(SqsSettings),
    /// Suimon without settings.
    Suimon,
    /// HAProxy with this many requests at once at the server, the rest in its queue.
    Haproxy(u32),
}

/// The numbers of the paper's rules that the paper leaves to the operator.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct PaperSettings {
    /// The route limit to start from.
    pub(crate) initial: u32,
    /// Mean queue length above which the admission interval grows.
    pub(crate) threshold: f64,
    /// The step of the interval up and down, milliseconds.
    pub(crate) step_ms: u32,
}

/// The same with a separate step in each direction. Times are divided by the scale.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SqsSettings {
    pub(crate) initial: u32,
    pub(crate) threshold: f64,
    pub(crate) up_ms: u32,
    pub(crate) down_ms: u32,
}

/// A gateway that listens, or none.
pub(crate) struct Gateway {
    /// The gateway's process, if there is one.
    pub(crate) process: Option<Running>,
    /// The address for visitors.
    pub(crate) address: SocketAddr,
    /// The address of Suimon's admin listener.
    pub(crate) admin: Option<SocketAddr>,
}

impl Control {
    /// Returns its numbers in words; empty if there are none.
    pub(crate) fn setting(self) -> String {
        match self {
            Control::None | Control::RoutesOnly | Control::Suimon => String::new(),
            Control::Static(sessions) => format!("{sessions} sessions"),
            Control::Paper(PaperSettings { initial, threshold, step_ms }) => {
                format!("initial {initial}, threshold {threshold}, step {step_ms} ms")
            }
            Control::Haproxy(maxconn) => format!("maxconn {maxconn}"),
            Control::PageOnly(initial) => format!("initial {initial}"),
            Control::Sqs(SqsSettings { initial, threshold, up_ms, down_ms }) => {
                format!("initial {initial}, threshold {threshold}, up {up_ms} ms, down {down_ms} ms")
            }
        }
    }

    /// Returns Suimon's settings file; `None`: it is not Suimon. Refused visitors return after a
    /// while, as with the other gateways; `flash-crowd` shows visitors in line.
    fn settings(self, patience_s: f64, scale: f64) -> Option<String> {
        // An operator who tunes by hand knows where a session begins and ends, and how long
        // visitors wait.
        let kind = format!(
            "[[session]]\nkind = \"shopping\"\nbegins = [\"POST /login\"]\nends = [\"POST /logout\"]\n\
             app_cookie = \"JSESSIONID\"\npatience = \"{:.0}ms\"\nwaiting_room = false\n",
            patience_s * 1000.0
        );
        match self {
            Control::None | Control::Haproxy(_) => None,
            Control::Suimon => Some("[[session]]\nkind = \"visit\"\nwaiting_room = false\n".to_string()),
            Control::RoutesOnly => Some("[gate]\nsession_law = \"open\"\n".to_string()),
            Control::Static(sessions) => Some(format!(
                "[gate]\nsession_law = \"static\"\nstatic_sessions = {sessions}\n\n[discovery]\nmode = \"off\"\n\n{kind}"
            )),
            Control::Paper(PaperSettings { initial, threshold, step_ms }) => {
                // The paper's periods suit its own times; those of this shop are divided by the
                // scale.
                let (route_ms, session_ms) = (2000.0 / scale, 1000.0 / scale);
                Some(format!(
                    "[gate]\nroute_law = \"paper\"\nsession_law = \"paper\"\norder = \"fifo\"\n\n\
                     [gate.paper_route]\ninitial = {initial}\nperiod = \"{route_ms:.0}ms\"\n\n\
                     [gate.paper_session]\nthreshold = {threshold:.1}\nup = \"{step_ms}ms\"\ndown = \"{step_ms}ms\"\n\
                     period = \"{session_ms:.0}ms\"\n\n{kind}"
                ))
            }
            Control::PageOnly(initial) => Some(format!(
                "[gate]\nroute_law = \"paper\"\nsession_law = \"open\"\norder = \"fifo\"\n\n\
                 [gate.paper_route]\ninitial = {initial}\nperiod = \"{:.0}ms\"\n\n{kind}",
                2000.0 / scale
            )),
            Control::Sqs(SqsSettings { initial, threshold, up_ms, down_ms }) => {
                let ms = |time: f64| format!("\"{:.0}ms\"", (time / scale).max(1.0));
                let (up, down) = (ms(f64::from(up_ms)), ms(f64::from(down_ms)));
                let (route, session, hold) = (ms(2000.0), ms(1000.0), ms(patience_s * scale * 1000.0));
                Some(format!(
                    "[gate]\nroute_law = \"paper\"\nsession_law = \"paper\"\norder = \"fifo\"\n\n\
                     [gate.paper_route]\ninitial = {initial}\nperiod = {route}\n\n\
                     [gate.paper_session]\nthreshold = {threshold:.1}\nup = {up}\ndown = {down}\nperiod = {session}\n\n\
                     {kind}hold = {hold}\n"
                ))
            }
        }
    }

    /// Starts it in front of the application at `app`. `folder` takes its settings and logs.
    pub(crate) fn start(
        self,
        common: &Common,
        folder: &Path,
        app: SocketAddr,
        patience_s: f64,
        scale: f64,
    ) -> Result<Gateway> {
        match self {
            Control::None => Ok(Gateway { process: None, address: app, admin: None }),
            Control::Haproxy(maxconn) => {
                let settings = |listen| haproxy(listen, app, maxconn, patience_s);
                start_haproxy(folder, common.load_core, settings)
            }
            _ => {
                let settings = self.settings(patience_s, scale);
                start_suimon(common, folder, app, settings.as_deref(), common.load_core)
            }
        }
    }
}

impl Gateway {
    /// Returns its process id, if it is a process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Running::pid)
    }

    /// Returns Suimon's state; `None` if it is not Suimon or does not answer.
    pub(crate) fn state(&self) -> Option<suimon_admin::State> {
        http::gateway_state(self.admin?).ok()
    }

    /// Returns the end of what it has written, for messages.
    pub(crate) fn last_words(&self) -> String {
        self.process.as_ref().map(Running::last_words).unwrap_or_default()
    }

    /// Ends it, by SIGTERM or SIGKILL. Nothing listens afterwards.
    pub(crate) fn end(mut self, in_peace: bool) -> Result<()> {
        match &mut self.process {
            Some(process) if in_peace => Ok(process.terminate(END_PATIENCE).map(drop)?),
            _ => Ok(()),
        }
    }

    /// Fails if it has ended by itself.
    pub(crate) fn must_run(&mut self) -> Result<()> {
        Ok(self.process.as_mut().map_or(Ok(()), Running::must_run)?)
    }
}

/// Starts Suimon on `core`, without settings only with the application's address. It saves nothing.
pub(crate) fn start_suimon(
    common: &Common,
    folder: &Path,
    app: SocketAddr,
    settings: Option<&str>,
    core: usize,
) -> Result<Gateway> {
    let (listen, admin) = (free_address()?, free_address()?);
    let to = format!("http://{app}");
    Served { to: &to, listen, admin, learned: "none", keys: "none" }.start(common, folder, settings, core)
}

/// A `suimon serve` to be started.
pub(crate) struct Served<'a> {
    /// The application.
    pub(crate) to: &'a str,
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// Name of the file for what is learned, in the folder; or "none".
    pub(crate) learned: &'a str,
    /// Name of the file for the lease keys, likewise.
    pub(crate) keys: &'a str,
}

impl Served<'_> {
    /// Starts it on `core`, with its files in `folder`.
    pub(crate) fn start(
        &self,
        common: &Common,
        folder: &Path,
        settings: Option<&str>,
        core: usize,
    ) -> Result<Gateway> {
        let file = |name: &str| match name {
            "none" => name.to_string(),
            _ => folder.join(name).display().to_string(),
        };
        let mut program = Program::new("gateway", &common.suimon)
            .cores(&[core])
            .args(["serve".to_string(), "--lease-keys".to_string(), file(self.keys)])
            .args(["--learned".to_string(), file(self.learned)])
            .args(["--to", self.to])
            .args(["--listen".to_string(), self.listen.to_string()])
            .args(["--admin".to_string(), self.admin.to_string()])
            // Everything else that it saves for its next start.
            .env("STATE_DIRECTORY", folder)
            .descriptors(DESCRIPTORS);
        if let Some(settings) = settings {
            let path = folder.join("gateway.toml");
            fs::write(&path, settings).trouble(path.display())?;
            program = program.args(["--config", &path.to_string_lossy()]);
        }
        let mut process = program.start(folder)?;
        process.wait_for_listener(self.listen, START_PATIENCE)?;
        process.wait_for_listener(self.admin, START_PATIENCE)?;
        Ok(Gateway { process: Some(process), address: self.listen, admin: Some(self.admin) })
    }
}

/// Starts Suimon on `cores` with settings that name the application. It saves no leases, and what it learns in
/// the file `learned`, if there is one. With `names` it looks host names up in that file, and not in the machine's.
pub(crate) fn start_configured(
    common: &Common,
    folder: &Path,
    settings: &str,
    cores: &[usize],
    learned: Option<&Path>,
    names: Option<&Path>,
) -> Result<Gateway> {
    let path = folder.join("gateway.toml");
    fs::write(&path, settings).trouble(path.display())?;
    let (listen, admin) = (free_address()?, free_address()?);
    let program = match names {
        None => Program::new("gateway", &common.suimon),
        Some(names) => with_names(Program::new("gateway", "unshare"), names).arg(common.suimon.display()),
    };
    let mut process = program
        .cores(cores)
        .args(["serve", "--lease-keys", "none", "--config", &path.to_string_lossy()])
        .args(["--learned".to_owned(), learned.map_or("none".to_owned(), |file| file.display().to_string())])
        .args(["--listen".to_owned(), listen.to_string(), "--admin".to_owned(), admin.to_string()])
        .env("STATE_DIRECTORY", folder)
        .descriptors(DESCRIPTORS)
        .start(folder)?;
    process.wait_for_listener(listen, START_PATIENCE)?;
    process.wait_for_listener(admin, START_PATIENCE)?;
    Ok(Gateway { process: Some(process), address: listen, admin: Some(admin) })
}

/// Returns whether a process may be given a file of names of its own here.
pub(crate) fn may_have_names(folder: &Path, names: &Path) -> bool {
    let tried = with_names(Program::new("names", "unshare"), names).arg("true").start(folder);
    tried.and_then(|mut tried| tried.wait(START_PATIENCE)).is_ok_and(|status| status.success())
}

/// Completes an `unshare` that runs what is added with `names` in place of `/etc/hosts`. It needs no rights
/// beyond those of a user, where the kernel lets users have namespaces.
fn with_names(unshare: Program, names: &Path) -> Program {
    let script = format!("mount --bind '{}' /etc/hosts && exec \"$@\"", names.display());
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"])
}

/// Starts HAProxy on `core`, with the settings for its listening address.
pub(crate) fn start_haproxy(
    folder: &Path,
    core: usize,
    settings: impl FnOnce(SocketAddr) -> String,
) -> Result<Gateway> {
    let program = find("haproxy")?;
    let listen = free_address()?;
    let path = folder.join("haproxy.cfg");
    fs::write(&path, settings(listen)).trouble(path.display())?;
    let mut process = Program::new("haproxy", program)
        .cores(&[core])
        .args(["-db", "-f"])
        .arg(path.display())
        .descriptors(DESCRIPTORS)
        .start(folder)?;
    process.wait_for_listener(listen, START_PATIENCE)?;
    Ok(Gateway { process: Some(process), address: listen, admin: None })
}

/// Starts nginx on `core`, as one process without an access log, which writes only into `folder`.
/// `inside` returns its `http` block for its listening address.
pub(crate) fn start_nginx(
    folder: &Path,
    core: usize,
    inside: impl FnOnce(SocketAddr) -> String,
) -> Result<Gateway> {
    let (program, listen) = (find("nginx")?, free_address()?);
    let settings = format!(
        "daemon off;
master_process off;
worker_processes 1;
pid nginx.pid;
error_log stderr;
events {{ worker_connections 9000; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
{}}}
",
        inside(listen)
    );
    let path = folder.join("nginx.conf");
    fs::write(&path, settings).trouble(path.display())?;
    let mut process = Program::new("nginx", program)
        .cores(&[core])
        .args(["-p".to_string(), folder.display().to_string()])
        .args(["-c".to_string(), "nginx.conf".to_string(), "-e".to_string(), "stderr".to_string()])
        .descriptors(DESCRIPTORS)
        .start(folder)?;
    process.wait_for_listener(listen, START_PATIENCE)?;
    Ok(Gateway { process: Some(process), address: listen, admin: None })
}

/// Returns the path of a system program; the folders for administrators are searched, too.
pub(crate) fn find(name: &str) -> Result<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin".into(), "/usr/local/sbin".into()];
    let found =
        std::env::split_paths(&path).chain(usual).map(|folder| folder.join(name)).find(|p| p.is_file());
    found.ok_or_else(|| {
        Trouble::Usage(format!("{name} is not installed: ./scripts/setup installs what is needed"))
    })
}

/// How each HAProxy of an experiment begins.
pub(crate) const HAPROXY: &str = "global
    maxconn 9000
    nbthread 1

defaults
    mode http
    timeout connect 3s
    timeout client 75s
";

/// As an experienced operator would set it: requests stay queued for as long as visitors wait, and
/// those of clients that have left are not served.
fn haproxy(listen: SocketAddr, app: SocketAddr, maxconn: u32, patience_s: f64) -> String {
    format!(
        "{HAPROXY}    timeout server 60s
    timeout queue {:.0}ms
    option abortonclose
    option forwardfor

frontend visitors
    bind {listen}
    default_backend shop

backend shop
    http-reuse always
    server shop {app} maxconn {maxconn}
",
        patience_s * 1000.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_settings_file_is_one_suimon_understands() {
        let paper = PaperSettings { initial: 2, threshold: 1.0, step_ms: 12 };
        for control in [
            Control::Suimon,
            Control::RoutesOnly,
            Control::Static(20),
            Control::Paper(paper),
            Control::PageOnly(2),
            Control::Sqs(SqsSettings { initial: 2, threshold: 3.0, up_ms: 500, down_ms: 200 }),
        ] {
            let text = control.settings(15.0, 4.0).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("gateway.toml");
            fs::write(&path, &text).unwrap();
            suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        }
    }
}
