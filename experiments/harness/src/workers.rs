//! Servers of the pages of `apps/pool-shop` that people use today, each with nginx in front, and
//! what their workers need.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_process::cpu::family_time;
use suimon_process::{free_address, group};

use crate::common::Common;
use crate::cpu::threads_time;
use crate::database::Database;
use crate::gateways::{DESCRIPTORS, Gateway, find, start_nginx};
use crate::http;
use crate::memory::proportional_kb;
use crate::memory_group::MemoryGroup;
use crate::trouble::{Result, Trouble, While, failed};
use crate::workspace::{Group, Workspace};

/// How long a server may take until it answers with a page.
const START_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A server rests that uses no more than this in this time.
const REST: Duration = Duration::from_millis(300);
const REST_USES: Duration = Duration::from_millis(10);
/// How long a page may take that is asked for by itself.
const PAGE_PATIENCE: Duration = Duration::from_secs(10);
/// How often workers are counted, and how often their memory is: the kernel walks through all of it.
const COUNT_EVERY: Duration = Duration::from_millis(250);
const WEIGH_EVERY: Duration = Duration::from_secs(2);
/// The most workers that an operator allows whose server finds the number by itself.
const BUSYNESS_MAX: u32 = 128;

/// In what the page is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Language {
    Php,
    Python,
}

/// A server of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Server {
    /// fcgiwrap: a process per request, so many at once.
    Cgi(u32),
    /// A fixed number of resident workers: php-fpm's `static`, or gunicorn's workers.
    Fixed(u32),
    /// php-fpm with the settings that its package brings.
    FpmPackaged,
    /// php-fpm as a patient operator sets it who knows the best number of workers and how many
    /// requests may wait.
    FpmTuned { workers: u32, backlog: u32 },
    /// gunicorn with two workers per core and one more, as its documentation says.
    GunicornFormula,
    /// uWSGI's `busyness`, with the settings that are most often copied.
    UwsgiBusyness,
    /// Suimon with a pool and no number, from cold or with what an earlier one has learned.
    Suimon { known: bool },
}

impl Server {
    /// Returns its name for people.
    pub(crate) fn words(self, language: Language) -> String {
        match (self, language) {
            (Server::Cgi(most), _) => format!("CGI, {most} at once"),
            (Server::Fixed(workers), Language::Php) => format!("php-fpm static {workers}"),
            (Server::Fixed(workers), Language::Python) => format!("gunicorn {workers}"),
            (Server::FpmPackaged, _) => "php-fpm as packaged".to_string(),
            (Server::FpmTuned { workers, backlog }, _) => {
                format!("php-fpm tuned, {workers}, backlog {backlog}")
            }
            (Server::GunicornFormula, _) => format!("gunicorn formula, {}", gunicorn_formula()),
            (Server::UwsgiBusyness, _) => "uWSGI busyness".to_string(),
            (Server::Suimon { known: false }, _) => "Suimon from cold".to_string(),
            (Server::Suimon { known: true }, _) => "Suimon, number known".to_string(),
        }
    }
}

/// Workers of gunicorn's formula: the application has one core.
const fn gunicorn_formula() -> u32 {
    2 + 1
}

/// What all servers of an experiment share.
pub(crate) struct Site<'a> {
    pub(crate) common: &'a Common,
    pub(crate) workspace: &'a Workspace,
    pub(crate) database: &'a Database,
    /// The copy of `apps/pool-shop` that is served.
    pub(crate) app: PathBuf,
    /// How often a page does its work.
    pub(crate) work: u32,
    /// How long its query waits.
    pub(crate) wait: Duration,
    /// The program of PHP that is asked, in the copy.
    pub(crate) page: &'a str,
    /// What php-fpm is told besides: options of its command line.
    pub(crate) options: &'a [&'a str],
    /// The memory that the server's processes share; `None`: the machine's.
    pub(crate) memory: Option<&'a MemoryGroup>,
}

/// A server that answers, and what is in front of it.
pub(crate) struct Open {
    /// Dropped first: nobody asks any more when the workers end.
    pub(crate) front: Gateway,
    /// The server's first process, which has started all others.
    pub(crate) root: u32,
    /// Of what it has started, and itself, those that are no workers, where they are known.
    pub(crate) besides: BTreeSet<u32>,
    #[allow(dead_code, reason = "it is held until everything is to end")]
    server: Option<Group>,
}

/// The folder of the application.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/pool-shop")
}

/// Returns the versions of these programs, as they report them with an option each.
pub(crate) fn versions(asked: &[(&str, &str)]) -> Vec<String> {
    let said = |name: &str, option: &str| {
        let output = Command::new(find(name).ok()?).arg(option).output().ok()?;
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let words = text.split(|c: char| c.is_whitespace() || c == '/' || c == '-');
        let version = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        version
            .filter(|word| word.contains('.'))
            .map(|version| format!("{name} {}", version.trim_end_matches(')')))
            .next()
    };
    asked.iter().filter_map(|(name, option)| said(name, option)).collect()
}

/// Returns the processes beneath a gateway that end its workers if it is killed.
pub(crate) fn guardians(gateway: u32) -> Result<Vec<u32>> {
    let is_guardian =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it == "sh\n");
    Ok(group::tree(gateway).trouble("the workers")?.into_iter().filter(is_guardian).collect())
}

impl Site<'_> {
    /// Starts a server with nginx in front and waits until it has answered with a page. `name`
    /// names its folder.
    pub(crate) fn open(&self, language: Language, server: Server, name: &str) -> Result<Open> {
        if let Server::Suimon { known } = server {
            return self.open_suimon(language, known, name);
        }
        let folder = self.workspace.fresh(name)?;
        let socket = folder.join("socket");
        let (program, front) = self.planned(language, server, &folder, &socket)?;
        let group = self.workspace.start(program, &folder)?;
        let root = group.process.pid();
        let front = start_nginx(&folder, self.common.load_core, |listen| {
            format!(
                "    server {{\n        listen {listen};\n        location / {{\n{front}        }}\n    }}\n"
            )
        })?;
        let mut open = Open { front, root, besides: BTreeSet::new(), server: Some(group) };
        open.until_it_answers()?;
        if let Server::Fixed(workers) = server {
            open.until_there_are(workers)?;
        }
        open.until_it_rests()?;
        Ok(open)
    }

    /// Starts Suimon on the load's core, its workers on the application's. `known`: it begins with
    /// what such ones before it have learned, if there were any, and leaves what it learns.
    fn open_suimon(&self, language: Language, known: bool, name: &str) -> Result<Open> {
        let folder = self.workspace.fresh(name)?;
        let kept = self.workspace.path().join(format!("learned-{language:?}.json"));
        let learned = if known { kept.display().to_string() } else { "none".to_string() };
        let settings = folder.join("suimon.toml");
        fs::write(&settings, self.pool(language, &folder)).trouble(settings.display())?;
        let (listen, admin) = (free_address()?, free_address()?);
        let program = self
            .workspace
            .program("suimon", &self.common.suimon)
            .cores(&[self.common.load_core])
            .args(["serve", "--lease-keys", "none", "--config"])
            .arg(settings.display())
            .args(["--learned".to_string(), learned])
            .args(["--listen".to_string(), listen.to_string(), "--admin".to_string(), admin.to_string()])
            .env("STATE_DIRECTORY", &folder)
            .descriptors(DESCRIPTORS);
        let mut group = self.workspace.start(program, &folder)?;
        for address in [listen, admin] {
            group.process.wait_for_listener(address, START_PATIENCE)?;
        }
        let root = group.process.pid();
        let front = Gateway { process: None, address: listen, admin: Some(admin) };
        let mut open = Open { front, root, besides: [root].into(), server: Some(group) };
        open.until_it_answers()?;
        open.until_all_are_ready(admin)?;
        open.until_it_rests()?;
        open.besides.extend(guardians(root)?);
        Ok(open)
    }

    /// Returns the settings of a pool whose number nobody says.
    fn pool(&self, language: Language, folder: &Path) -> String {
        let (app, page, core) = (self.app.display(), self.page, self.common.app_core);
        let (kind, command) = match language {
            Language::Php => ("fastcgi", "\"php-cgi\"".to_string()),
            Language::Python => {
                ("http", format!("\"/usr/bin/python3\", \"{app}/worker_http.py\", \"{{socket}}\""))
            }
        };
        let environment =
            self.environment().map(|(name, value)| format!("{:?}", format!("{name}={value}"))).join(", ");
        format!(
            "[gate]\ncores = 1\nsession_law = \"open\"\n[upstream.fastcgi]\nprogram = \"{app}/{page}\"\n[[pool]]\nname = \"shop\"\nkind = \"{kind}\"\n\
             command = [\"taskset\", \"-c\", \"{core}\", {command}]\nenvironment = [{environment}]\n\
             sockets = \"{}\"\ndirectory = \"{app}\"\nready = \"/?page=1\"\n",
            folder.join("sockets").display()
        )
    }

    /// Returns the server as a program, and what nginx does with a request for it.
    fn planned(
        &self,
        language: Language,
        server: Server,
        folder: &Path,
        socket: &Path,
    ) -> Result<(suimon_process::Program, String)> {
        let (app, at) = (self.app.display(), socket.display());
        let unix = format!("unix:{at}");
        let (program, front) = match (server, language) {
            (Server::Cgi(most), _) => {
                let script = if language == Language::Php { "page.cgi" } else { "page_cgi.py" };
                let wrap = self.program("fcgiwrap", "fcgiwrap")?;
                let wrap = wrap.args(["-c".to_string(), most.to_string(), "-s".to_string(), unix.clone()]);
                (wrap, fastcgi(&unix, &self.app.join(script)))
            }
            (Server::Fixed(workers), Language::Php) => {
                let manager = format!("pm = static\npm.max_children = {workers}\n");
                (self.fpm(folder, socket, &manager)?, fastcgi(&unix, &self.app.join(self.page)))
            }
            (Server::FpmPackaged, _) => {
                // As in Debian 12's www.conf.
                let manager = "pm = dynamic\npm.max_children = 5\npm.start_servers = 2\n\
                               pm.min_spare_servers = 1\npm.max_spare_servers = 3\n";
                (self.fpm(folder, socket, manager)?, fastcgi(&unix, &self.app.join(self.page)))
            }
            (Server::FpmTuned { workers, backlog }, _) => {
                let (least, start, most) = (workers.div_ceil(4), workers.div_ceil(2), workers.div_ceil(2));
                let manager = format!(
                    "pm = dynamic\npm.max_children = {workers}\npm.start_servers = {start}\n\
                     pm.min_spare_servers = {least}\npm.max_spare_servers = {most}\nlisten.backlog = {backlog}\n"
                );
                (self.fpm(folder, socket, &manager)?, fastcgi(&unix, &self.app.join(self.page)))
            }
            (Server::UwsgiBusyness, _) => {
                let settings = folder.join("uwsgi.ini");
                fs::write(&settings, uwsgi(&self.app, socket)).trouble(settings.display())?;
                let program = self.program("uwsgi", "uwsgi")?.arg("--ini").arg(settings.display());
                (program, format!("{}            uwsgi_pass {unix};\n", params("uwsgi_param")))
            }
            (Server::Suimon { .. }, _) => return failed("Suimon has nothing in front"),
            (Server::Fixed(_) | Server::GunicornFormula, _) => {
                let workers = if let Server::Fixed(workers) = server { workers } else { gunicorn_formula() };
                let program = self
                    .program("gunicorn", "gunicorn")?
                    .args(["--workers".to_string(), workers.to_string()])
                    .args(["--bind".to_string(), unix.clone(), "--chdir".to_string(), app.to_string()])
                    // Its workers tell that they live by a file, which should not be on a disk.
                    .args(["--worker-tmp-dir", "/dev/shm", "page:application"]);
                let pass =
                    "            proxy_set_header Host $http_host;\n            proxy_http_version 1.1;\n";
                (program, format!("{pass}            proxy_pass http://{unix}:/;\n"))
            }
        };
        Ok((program, front))
    }

    /// Returns a system program on the application's core, with what the page needs in its
    /// environment.
    fn program(&self, name: &str, program: &str) -> Result<suimon_process::Program> {
        let path = find(program).map_err(|_| {
            Trouble::Usage(format!("{program} is not installed: ./scripts/setup --experiments installs it"))
        })?;
        let mut program = self.workspace.program(name, &path).cores(&[self.common.app_core]);
        for (name, value) in self.environment() {
            program = program.env(name, value);
        }
        if let Some(group) = self.memory {
            program = program.control_group(group.processes()?);
        }
        Ok(program)
    }

    /// Returns what a page needs in its environment.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("SHOP_DATABASE", self.database.address()),
            ("SHOP_WORK", self.work.to_string()),
            ("SHOP_WAIT_MS", self.wait.as_millis().to_string()),
        ]
    }

    fn fpm(&self, folder: &Path, socket: &Path, manager: &str) -> Result<suimon_process::Program> {
        let settings = folder.join("fpm.conf");
        let text = format!(
            "[global]\ndaemonize = no\nerror_log = {}\n\n[shop]\nlisten = {}\nclear_env = no\n{manager}",
            folder.join("fpm.log").display(),
            socket.display()
        );
        fs::write(&settings, text).trouble(settings.display())?;
        let name = fpm_name().unwrap_or_else(|| "php-fpm".to_string());
        let program = self.program("php-fpm", &name)?.args(self.options);
        Ok(program.args(["--nodaemonize", "--fpm-config"]).arg(settings.display()))
    }
}

/// Returns the name of php-fpm, which Debian names by its version.
pub(crate) fn fpm_name() -> Option<String> {
    let names = fs::read_dir("/usr/sbin").ok()?.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("php-fpm")).max()
}

fn params(word: &str) -> String {
    [
        ("QUERY_STRING", "$query_string"),
        ("REQUEST_METHOD", "$request_method"),
        ("CONTENT_TYPE", "$content_type"),
        ("CONTENT_LENGTH", "$content_length"),
        ("REQUEST_URI", "$request_uri"),
        ("PATH_INFO", "$document_uri"),
        ("SERVER_PROTOCOL", "$server_protocol"),
        ("REMOTE_ADDR", "$remote_addr"),
        ("SERVER_NAME", "localhost"),
        ("SERVER_PORT", "$server_port"),
    ]
    .iter()
    .map(|(name, value)| format!("            {word} {name} {value};\n"))
    .collect()
}

fn fastcgi(unix: &str, script: &Path) -> String {
    format!(
        "{}            fastcgi_param GATEWAY_INTERFACE CGI/1.1;\n            fastcgi_param REDIRECT_STATUS 200;\n            \
         fastcgi_param SCRIPT_NAME /;\n            fastcgi_param SCRIPT_FILENAME {};\n            fastcgi_pass {unix};\n",
        params("fastcgi_param"),
        script.display()
    )
}

/// As in the production guide that most people copy from, and in uWSGI's own documentation.
fn uwsgi(app: &Path, socket: &Path) -> String {
    format!(
        "[uwsgi]
plugins = python3,cheaper_busyness
chdir = {}
module = page:application
socket = {}
strict = true
master = true
lazy-apps = true
single-interpreter = true
enable-threads = true
vacuum = true
die-on-term = true
need-app = true
disable-logging = true
no-orphans = true
harakiri = 60
processes = {BUSYNESS_MAX}
cheaper-algo = busyness
cheaper = 8
cheaper-initial = 16
cheaper-overload = 1
cheaper-step = 16
cheaper-busyness-multiplier = 30
cheaper-busyness-min = 20
cheaper-busyness-max = 70
cheaper-busyness-backlog-alert = 16
cheaper-busyness-backlog-step = 2
",
        app.display(),
        socket.display()
    )
}

impl Open {
    /// Returns the address for visitors.
    pub(crate) fn address(&self) -> SocketAddr {
        self.front.address
    }

    /// Waits until a page was answered.
    fn until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let answer = http::get(self.address(), "/?page=1", PAGE_PATIENCE);
            let status = answer.as_ref().map_or(0, |answer| answer.status);
            if status == 200 {
                return Ok(());
            }
            self.must_run()?;
            if Instant::now() > deadline {
                let words = self.server.as_ref().map_or(String::new(), |server| server.process.last_words());
                return failed(format!("no page is answered, the last status was {status}:\n{words}"));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until so many workers are started.
    fn until_there_are(&mut self, workers: u32) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        while group::tree(self.root).trouble("the workers")?.len() <= workers as usize {
            self.must_run()?;
            if Instant::now() > deadline {
                return failed(format!("not all of the {workers} workers are started"));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits until a pool has all the workers that it begins with.
    fn until_all_are_ready(&mut self, admin: SocketAddr) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        while !http::gateway_state(admin)?
            .pools
            .iter()
            .all(|pool| pool.starting == 0 && pool.ready >= pool.wanted)
        {
            self.must_run()?;
            if Instant::now() > deadline {
                return failed("not all workers of the pool are started");
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits until the server has nothing to do: a worker that is starting takes the processor from
    /// those that are measured.
    fn until_it_rests(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        let mut before = self.used()?;
        loop {
            thread::sleep(REST);
            let now = self.used()?;
            if now.saturating_sub(before) <= REST_USES {
                return Ok(());
            }
            self.must_run()?;
            if Instant::now() > deadline {
                return failed("the server does not come to rest");
            }
            before = now;
        }
    }

    /// Returns the processor time of all living processes of the server.
    fn used(&self) -> Result<Duration> {
        let processes = group::tree(self.root).trouble("the workers")?;
        // A process that has just ended has no time any more.
        Ok(processes.into_iter().filter_map(|pid| threads_time(pid).ok()).sum())
    }

    /// Fails if the server or what is in front of it has ended.
    pub(crate) fn must_run(&mut self) -> Result<()> {
        if let Some(server) = &mut self.server {
            server.process.must_run()?;
        }
        self.front.must_run()
    }

    /// Returns the processor time of one page that is asked for by itself, in all living processes
    /// of the server; `None` if each page has processes of its own, which have ended.
    pub(crate) fn page_cost(&self, pages: u32) -> Result<Duration> {
        let before = self.used()?;
        for number in 0..pages {
            let answer = http::get(self.address(), &format!("/?page={}", 1 + number % 100), PAGE_PATIENCE)?;
            if answer.status != 200 {
                return failed(format!("a page by itself: status {}", answer.status));
            }
        }
        Ok(self.used()?.saturating_sub(before) / pages.max(1))
    }
}

/// Watches how many workers a server has, and how much memory.
pub(crate) struct Watch {
    root: u32,
    besides: BTreeSet<u32>,
    /// What is seen earlier counts only as starts.
    from: Instant,
    counted: Option<Instant>,
    weighed: Option<Instant>,
    known: BTreeSet<u32>,
    starts: u32,
    counts: Vec<u32>,
    memory_kb: Vec<u64>,
    /// When, and the processor time until then: the first and the last that were seen.
    used: Option<[(Instant, Duration); 2]>,
}

/// What was seen of the workers.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Mean and greatest number of processes, without the server's first one.
    pub(crate) workers_mean: f64,
    pub(crate) workers_max: u32,
    /// Processes started since it was watched. Those that lived for less than a quarter of a second
    /// may be missing.
    pub(crate) starts: u32,
    /// Proportional set size of all of them, and of the first one; mean and greatest, MB (2^20).
    pub(crate) memory_mb_mean: f64,
    pub(crate) memory_mb_max: f64,
    /// Processor time of all of them ÷ time, with those that have ended and were waited for: not that
    /// of CGI, because fcgiwrap does not wait.
    pub(crate) cpu_share: f64,
}

impl Watch {
    /// Returns a watch of all that `root` has started. What is seen in the first `warm_up` counts
    /// only as starts.
    pub(crate) fn begin(root: u32, besides: BTreeSet<u32>, warm_up: Duration) -> Result<Self> {
        Ok(Watch {
            root,
            besides,
            from: Instant::now() + warm_up,
            counted: None,
            weighed: None,
            known: group::tree(root).trouble("the workers")?.into_iter().collect(),
            starts: 0,
            counts: Vec::new(),
            memory_kb: Vec::new(),
            used: None,
        })
    }

    /// Looks, if it is time to.
    pub(crate) fn look(&mut self) -> Result<()> {
        let now = Instant::now();
        let due = |last: Option<Instant>, every| last.is_none_or(|last| now.duration_since(last) >= every);
        if !due(self.counted, COUNT_EVERY) {
            return Ok(());
        }
        self.counted = Some(now);
        let mut processes = group::tree(self.root).trouble("the workers")?;
        processes.retain(|pid| !self.besides.contains(pid));
        let others = usize::from(self.besides.is_empty());
        self.starts += processes.iter().filter(|pid| self.known.insert(**pid)).count() as u32;
        if now < self.from {
            return Ok(());
        }
        self.counts.push(processes.len().saturating_sub(others) as u32);
        let used = (now, processes.iter().filter_map(|pid| family_time(*pid).ok()).sum());
        self.used = Some([self.used.map_or(used, |[first, _]| first), used]);
        if due(self.weighed, WEIGH_EVERY) {
            self.weighed = Some(now);
            self.memory_kb.push(processes.into_iter().filter_map(proportional_kb).sum());
        }
        Ok(())
    }

    /// Returns what was seen.
    pub(crate) fn seen(&self) -> Seen {
        let mean = |sum: f64, count: usize| sum / count.max(1) as f64;
        let mb = |kb: f64| kb / 1024.0;
        let cpu_share = self.used.map_or(0.0, |[(from, before), (to, after)]| {
            after.saturating_sub(before).as_secs_f64() / to.duration_since(from).as_secs_f64().max(1e-9)
        });
        Seen {
            workers_mean: mean(self.counts.iter().map(|count| f64::from(*count)).sum(), self.counts.len()),
            workers_max: self.counts.iter().copied().max().unwrap_or(0),
            starts: self.starts,
            memory_mb_mean: mb(mean(self.memory_kb.iter().sum::<u64>() as f64, self.memory_kb.len())),
            memory_mb_max: mb(self.memory_kb.iter().copied().max().unwrap_or(0) as f64),
            cpu_share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_sees_who_was_started_and_how_many_there_are() {
        let logs = tempfile::tempdir().unwrap();
        let shell = suimon_process::Program::new("family", "sh").args(["-c", "sleep 30 & sleep 30 & wait"]);
        let shell = shell.start(logs.path()).unwrap();
        let mut watch = Watch::begin(shell.pid(), BTreeSet::new(), Duration::ZERO).unwrap();
        watch.known = [shell.pid()].into();
        let deadline = Instant::now() + Duration::from_secs(10);
        while watch.starts < 2 || watch.counts.last() != Some(&2) {
            assert!(Instant::now() < deadline, "only {} starts are seen", watch.starts);
            watch.look().unwrap();
        }
        let seen = watch.seen();
        assert_eq!((seen.starts, seen.workers_max), (2, 2));
        assert!(seen.memory_mb_max > 0.0, "{seen:?}");
    }
}
