//! The gateways that are compared, each with workers of its own.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_process::{Program, Running, free_address, group};

use crate::common::Common;
use crate::cpu::{named_threads_time, threads_time};
use crate::gateways::{DESCRIPTORS, Gateway, find, start_nginx};
use crate::http;
use crate::trouble::{Result, Trouble, While, failed};
use crate::workers::{fpm_name, guardians};
use crate::workspace::{Group, Workspace};

/// How long a gateway and its workers may take until they have answered and rest.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long a page may take that is asked for by itself.
const PAGE_PATIENCE: Duration = Duration::from_secs(10);
/// They rest when they use no more than this in this time.
const REST: Duration = Duration::from_millis(300);
const REST_USES: Duration = Duration::from_millis(10);
/// How often a wait checks its condition.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Answers at once with as many bytes as it is asked for.
const PHP: &str = "<?php
$bytes = (int)$_GET['bytes'];
header(\"Content-Length: $bytes\");
echo str_repeat('x', $bytes);
";
/// The same.
const PYTHON: &str = "\
def application(environ, start_response):
    length = int(environ['QUERY_STRING'].partition('=')[2])
    start_response('200 OK', [('Content-Type', 'text/html'), ('Content-Length', str(length))])
    return [b'x' * length]
";

/// In what a page is written, and so what its workers speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Page {
    /// PHP, over FastCGI.
    Php,
    /// Python under gunicorn, HTTP/1.1 over a Unix socket.
    Python,
}

/// A gateway and its workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Contestant {
    NginxFpm,
    /// With `fastcgi_keep_conn`: each connection occupies one of php-fpm's processes for good.
    NginxFpmKept,
    SuimonFpm,
    /// With both gates off: what is left is what FastCGI costs.
    SuimonFpmUngated,
    SuimonPhpPool,
    NginxGunicorn,
    SuimonGunicorn,
    SuimonGunicornPool,
}

impl Page {
    /// Returns what is compared, nginx first.
    pub(super) const fn contestants(self) -> &'static [Contestant] {
        match self {
            Page::Php => &[
                Contestant::NginxFpm,
                Contestant::NginxFpmKept,
                Contestant::SuimonFpm,
                Contestant::SuimonFpmUngated,
                Contestant::SuimonPhpPool,
            ],
            Page::Python => {
                &[Contestant::NginxGunicorn, Contestant::SuimonGunicorn, Contestant::SuimonGunicornPool]
            }
        }
    }

    /// Returns the target of a request for so many bytes.
    pub(super) fn target(self, bytes: usize) -> String {
        match self {
            Page::Php => format!("/page.php?bytes={bytes}"),
            Page::Python => format!("/page?bytes={bytes}"),
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Page::Php => "PHP, over FastCGI",
            Page::Python => "Python, HTTP/1.1 over a Unix socket",
        }
    }
}

impl Contestant {
    pub(super) const fn page(self) -> Page {
        match self {
            Contestant::NginxFpm
            | Contestant::NginxFpmKept
            | Contestant::SuimonFpm
            | Contestant::SuimonFpmUngated
            | Contestant::SuimonPhpPool => Page::Php,
            Contestant::NginxGunicorn | Contestant::SuimonGunicorn | Contestant::SuimonGunicornPool => {
                Page::Python
            }
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Contestant::NginxFpm => "nginx, php-fpm",
            Contestant::NginxFpmKept => "nginx, php-fpm, connections kept",
            Contestant::SuimonFpm => "suimon, php-fpm attached",
            Contestant::SuimonFpmUngated => "suimon, php-fpm attached, ungated",
            Contestant::SuimonPhpPool => "suimon, pool of php-cgi",
            Contestant::NginxGunicorn => "nginx, gunicorn",
            Contestant::SuimonGunicorn => "suimon, gunicorn attached",
            Contestant::SuimonGunicornPool => "suimon, pool of gunicorn",
        }
    }

    /// Returns whether it is Suimon.
    pub(super) const fn is_suimon(self) -> bool {
        !matches!(self, Contestant::NginxFpm | Contestant::NginxFpmKept | Contestant::NginxGunicorn)
    }

    const fn has_pool(self) -> bool {
        matches!(self, Contestant::SuimonPhpPool | Contestant::SuimonGunicornPool)
    }
}

/// Where all of them live.
pub(super) struct Place<'a> {
    common: &'a Common,
    workspace: &'a Workspace,
    /// The folder of the pages.
    app: PathBuf,
    /// Workers of each.
    workers: u32,
}

/// A gateway that answers.
pub(super) struct Standing {
    pub(super) contestant: Contestant,
    pub(super) address: SocketAddr,
    gateway: u32,
    guardians: Vec<u32>,
    /// The first process of workers that the gateway has not started.
    server: Option<u32>,
    #[allow(dead_code, reason = "they are held until everything is to end, the gateway first")]
    held: (Held, Option<Group>),
}

#[allow(dead_code, reason = "it is held until everything is to end")]
enum Held {
    Nginx(Running),
    Suimon(Group),
}

/// Processor time until now.
pub(super) struct Used {
    /// Of the gateway's process and its guardian.
    pub(super) gateway: Duration,
    /// Of it, by what starts and watches workers.
    pub(super) keeper: Duration,
    workers: BTreeMap<u32, Duration>,
}

impl Used {
    /// Returns what the workers have used since `before`; nothing of those that have ended.
    pub(super) fn workers_since(&self, before: &Used) -> Duration {
        let since = |(pid, now): (&u32, &Duration)| {
            now.saturating_sub(before.workers.get(pid).copied().unwrap_or_default())
        };
        self.workers.iter().map(since).sum()
    }

    fn all(&self) -> Duration {
        self.gateway + self.workers.values().sum::<Duration>()
    }
}

impl<'a> Place<'a> {
    /// Writes the pages.
    pub(super) fn new(common: &'a Common, workspace: &'a Workspace, workers: u32) -> Result<Self> {
        let app = workspace.fresh("app")?;
        for (name, text) in [("page.php", PHP), ("page.py", PYTHON)] {
            fs::write(app.join(name), text).trouble(name)?;
        }
        Ok(Place { common, workspace, app, workers })
    }

    /// Starts workers on the load's core and their gateway on the other, and waits until it answers
    /// and all of them rest.
    pub(super) fn open(&self, contestant: Contestant, number: usize) -> Result<Standing> {
        // Short: it is a part of the paths of sockets.
        let folder = self.workspace.fresh(&format!("c{number}"))?;
        let socket = folder.join("socket");
        let server = match contestant.page() {
            _ if contestant.has_pool() => None,
            Page::Php => Some(self.fpm(&folder, &socket)?),
            Page::Python => Some(self.gunicorn(&socket)?),
        };
        let server = server.map(|server| self.workspace.start(server, &folder)).transpose()?;
        let (held, gateway, address) = if contestant.is_suimon() {
            self.suimon(contestant, &folder, &socket)?
        } else {
            let settings = |listen| self.nginx(contestant, listen, &socket);
            let Gateway { process, address, .. } = start_nginx(&folder, self.common.app_core, settings)?;
            let process = process.ok_or("has no process").trouble(contestant.name())?;
            let pid = process.pid();
            (Held::Nginx(process), pid, address)
        };
        let root = server.as_ref().map(|server| server.process.pid());
        let mut standing =
            Standing { contestant, address, gateway, guardians: vec![], server: root, held: (held, server) };
        standing.until_it_answers()?;
        standing.until_there_are(self.workers)?;
        standing.until_it_rests()?;
        standing.guardians = guardians(gateway)?;
        Ok(standing)
    }

    fn suimon(
        &self,
        contestant: Contestant,
        folder: &Path,
        socket: &Path,
    ) -> Result<(Held, u32, SocketAddr)> {
        let settings = folder.join("suimon.toml");
        let text = suimon(contestant, &self.app, socket, self.common.load_core, self.workers);
        fs::write(&settings, text).trouble(settings.display())?;
        let (listen, admin) = (free_address()?, free_address()?);
        let program = self
            .workspace
            .program("suimon", &self.common.suimon)
            .cores(&[self.common.app_core])
            .args(["serve", "--lease-keys", "none", "--learned", "none", "--config"])
            .arg(settings.display())
            .args(["--listen".to_string(), listen.to_string(), "--admin".to_string(), admin.to_string()])
            .env("STATE_DIRECTORY", folder)
            .descriptors(DESCRIPTORS);
        let mut group = self.workspace.start(program, folder)?;
        group.process.wait_for_listener(listen, START_PATIENCE)?;
        let pid = group.process.pid();
        Ok((Held::Suimon(group), pid, listen))
    }

    fn fpm(&self, folder: &Path, socket: &Path) -> Result<Program> {
        let settings = folder.join("fpm.conf");
        let text = format!(
            "[global]\ndaemonize = no\nerror_log = {}\n\n[pages]\nlisten = {}\npm = static\npm.max_children = {}\n",
            folder.join("fpm.log").display(),
            socket.display(),
            self.workers
        );
        fs::write(&settings, text).trouble(settings.display())?;
        let program = self.program(&fpm_name().unwrap_or_else(|| "php-fpm".to_string()))?;
        Ok(program.args(["--nodaemonize", "--fpm-config"]).arg(settings.display()))
    }

    fn gunicorn(&self, socket: &Path) -> Result<Program> {
        let program = self.program("gunicorn")?.args(["--workers".to_string(), self.workers.to_string()]);
        Ok(program
            .args(["--bind".to_string(), format!("unix:{}", socket.display())])
            .args(["--chdir".to_string(), self.app.display().to_string()])
            // Its workers tell that they live by a file, which should not be on a disk.
            .args(["--worker-tmp-dir", "/dev/shm", "page:application"]))
    }

    /// Returns a system program on the load's core.
    fn program(&self, name: &str) -> Result<Program> {
        let path = find(name).map_err(|_| {
            Trouble::Usage(format!("{name} is not installed: ./scripts/setup --experiments installs it"))
        })?;
        Ok(self.workspace.program("server", &path).cores(&[self.common.load_core]))
    }

    /// Returns the `http` block of nginx. For PHP it does what Debian's snippet for it does: it finds
    /// the program in the path, looks whether its file is there, and tells all of `fastcgi.conf`.
    fn nginx(&self, contestant: Contestant, listen: SocketAddr, socket: &Path) -> String {
        let (app, at) = (self.app.display(), socket.display());
        let kept = contestant == Contestant::NginxFpmKept;
        let keepalive = if kept {
            format!("keepalive {}; keepalive_requests 1000000; ", self.workers)
        } else {
            String::new()
        };
        let location = match contestant.page() {
            Page::Php => format!(
                "        location ~ [^/]\\.php(/|$) {{
            fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
            try_files $fastcgi_script_name =404;
            set $path_info $fastcgi_path_info;
            fastcgi_param PATH_INFO $path_info;
            fastcgi_index index.php;
            include /etc/nginx/fastcgi.conf;
            fastcgi_param HTTP_X_FORWARDED_FOR $proxy_add_x_forwarded_for;
            fastcgi_param HTTP_X_FORWARDED_PROTO $scheme;
            fastcgi_param HTTP_X_FORWARDED_HOST $http_host;
            fastcgi_buffers 32 4k;
            fastcgi_keep_conn {};
            fastcgi_pass pages;
        }}
",
                if kept { "on" } else { "off" }
            ),
            Page::Python => "        location / {
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $http_host;
            proxy_buffers 32 4k;
            proxy_pass http://pages;
        }
"
            .to_string(),
        };
        format!(
            "    keepalive_requests 1000000;
    upstream pages {{ server unix:{at}; {keepalive}}}
    server {{
        listen {listen};
        root {app};
{location}    }}
"
        )
    }
}

/// Without any gate.
const UNGATED: &str = "[gate]\nsession_law = \"open\"\n[discovery]\nmode = \"off\"\n";

/// Returns the settings of Suimon: where the application is, and nothing else.
fn suimon(contestant: Contestant, app: &Path, socket: &Path, core: usize, workers: u32) -> String {
    let (app, at) = (app.display(), socket.display());
    let pool = |kind, command, listen| {
        format!(
            "[[pool]]\nname = \"pages\"\nkind = \"{kind}\"\nsize_law = \"fixed\"\nworkers = {workers}\n\
             command = [\"taskset\", \"-c\", \"{core}\", {command}]\nlisten = \"{listen}\"\n\
             directory = \"{app}\"\nsockets = \"{at}s\"\n"
        )
    };
    let root = format!("[upstream.fastcgi]\nroot = \"{app}\"\n");
    let attached = format!("[upstream]\nnodes = [\"fastcgi:{at}\"]\n{root}");
    match contestant {
        Contestant::SuimonFpm => attached,
        Contestant::SuimonFpmUngated => attached + UNGATED,
        Contestant::SuimonPhpPool => root + &pool("fastcgi", "\"php-cgi\"", "stdin"),
        Contestant::SuimonGunicornPool => {
            let command = "\"gunicorn\", \"--workers\", \"1\", \"--worker-tmp-dir\", \"/dev/shm\", \"page:application\"";
            pool("http", command, "systemd") + "ready = \"/page?bytes=1\"\n"
        }
        _ => format!("[upstream]\nnodes = [\"unix:{at}\"]\n"),
    }
}

impl Standing {
    /// Returns the processor time that all of it has used.
    pub(super) fn used(&self) -> Result<Used> {
        let mut workers = group::tree(self.server.unwrap_or(self.gateway)).trouble("the workers")?;
        workers.retain(|pid| *pid != self.gateway && !self.guardians.contains(pid));
        // A process that has just ended has no time any more.
        let timed = |pid: u32| Some((pid, threads_time(pid).ok()?));
        let guardians: Duration = self.guardians.iter().filter_map(|pid| threads_time(*pid).ok()).sum();
        let keeps = |thread: &str| thread.starts_with("pool ");
        Ok(Used {
            gateway: threads_time(self.gateway)? + guardians,
            keeper: named_threads_time(self.gateway, keeps)? + guardians,
            workers: workers.into_iter().filter_map(timed).collect(),
        })
    }

    /// Fails if the gateway or the workers' first process has ended.
    fn must_run(&mut self) -> Result<()> {
        let (front, server) = &mut self.held;
        match front {
            Held::Nginx(process) => process.must_run()?,
            Held::Suimon(group) => group.process.must_run()?,
        }
        if let Some(server) = server {
            server.process.must_run()?;
        }
        Ok(())
    }

    fn until_it_answers(&mut self) -> Result<()> {
        let target = self.contestant.page().target(1);
        self.until("answers no page", |standing| {
            Ok(http::get(standing.address, &target, PAGE_PATIENCE).is_ok_and(|answer| answer.status == 200))
        })
    }

    fn until_there_are(&mut self, workers: u32) -> Result<()> {
        let least = workers as usize + usize::from(self.server.is_some());
        self.until("has not all of its workers", |standing| Ok(standing.used()?.workers.len() >= least))
    }

    /// Waits until it has nothing to do: whoever is starting takes the processor from those that are
    /// measured.
    fn until_it_rests(&mut self) -> Result<()> {
        let mut before = self.used()?.all();
        self.until("does not come to rest", |standing| {
            thread::sleep(REST);
            let now = standing.used()?.all();
            let used = now.saturating_sub(before);
            before = now;
            Ok(used <= REST_USES)
        })
    }

    fn until(&mut self, not: &str, mut done: impl FnMut(&Self) -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        while !done(self)? {
            self.must_run()?;
            if Instant::now() > deadline {
                let words = match &self.held.0 {
                    Held::Nginx(process) => process.last_words(),
                    Held::Suimon(group) => group.process.last_words(),
                };
                return failed(format!("{} {not}\n{words}", self.contestant.name()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_ones_suimon_understands() {
        let folder = tempfile::tempdir().unwrap();
        let app = folder.path();
        for contestant in [Page::Php, Page::Python].map(Page::contestants).concat() {
            if !contestant.is_suimon() {
                continue;
            }
            let path = app.join("suimon.toml");
            let text = suimon(contestant, app, &app.join("socket"), 1, 3);
            fs::write(&path, &text).unwrap();
            suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        }
    }
}
