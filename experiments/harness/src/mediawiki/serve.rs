//! What serves the wiki: Suimon with a pool of `php-cgi`, or nginx with php-fpm behind it.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_process::{Program, free_address, group};

use super::wiki::{HOST, Wiki, root};
use crate::common::Common;
use crate::gateways::{DESCRIPTORS, Gateway, find, start_nginx};
use crate::http;
use crate::trouble::{Result, Trouble, While, failed};
use crate::workers::fpm_name;
use crate::workspace::{Group, Workspace};

/// How long a server may take until it answers with a page: a worker's first one takes seconds.
const START_PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The greatest upload that nginx takes; Suimon's default is greater.
const UPLOAD_MAX: &str = "20m";

/// A server of the wiki.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Server {
    /// A pool without a number, from cold.
    Suimon(Told),
    /// php-fpm with the settings that its package brings, behind nginx.
    FpmPackaged,
    /// So many children, always.
    FpmStatic(u32),
}

impl Server {
    pub(super) fn words(self) -> String {
        match self {
            Server::Suimon(Told::Nothing) => "Suimon".to_string(),
            Server::Suimon(Told::Route) => "Suimon, pages are one route".to_string(),
            Server::Suimon(Told::Open) => "Suimon, any number of sessions".to_string(),
            Server::FpmPackaged => "php-fpm as packaged".to_string(),
            Server::FpmStatic(children) => format!("php-fpm static {children}"),
        }
    }
}

/// What Suimon is told beside the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Told {
    Nothing,
    /// That all pages are one route, whatever their titles.
    Route,
    /// That any number of sessions may come, to find out how many can be served.
    Open,
}

/// A server that answers.
pub(super) struct Open {
    /// Dropped first: nobody asks any more when the workers end.
    pub(super) front: Gateway,
    /// The process that has started all workers.
    pub(super) root: u32,
    /// Of what it has started, and itself, those that are no workers.
    pub(super) besides: BTreeSet<u32>,
    server: Group,
}

impl Open {
    /// Starts it, its workers on the application's core and all else on the load's, and waits until
    /// it has answered with a page.
    pub(super) fn start(
        common: &Common,
        workspace: &Workspace,
        wiki: &Wiki<'_>,
        server: Server,
    ) -> Result<Self> {
        let folder = workspace.fresh("server")?;
        let started = match server {
            Server::Suimon(told) => suimon(common, workspace, wiki, &folder, told),
            Server::FpmPackaged => {
                // As in Debian 12's www.conf.
                let manager = "pm = dynamic\npm.max_children = 5\npm.start_servers = 2\n\
                               pm.min_spare_servers = 1\npm.max_spare_servers = 3\n";
                fpm(common, workspace, wiki, &folder, manager)
            }
            Server::FpmStatic(children) => {
                let manager = format!("pm = static\npm.max_children = {children}\n");
                fpm(common, workspace, wiki, &folder, &manager)
            }
        };
        let mut open = started?;
        open.until_it_answers()?;
        if matches!(server, Server::Suimon(_)) {
            // The one that ends the workers if the gateway is killed.
            let is_guardian =
                |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it == "sh\n");
            open.besides
                .extend(group::tree(open.root).trouble("the workers")?.iter().filter(|pid| is_guardian(pid)));
        }
        Ok(open)
    }

    /// Returns the address for visitors.
    pub(super) fn address(&self) -> SocketAddr {
        self.front.address
    }

    /// Fails if the server or what is in front of it has ended.
    pub(super) fn must_run(&mut self) -> Result<()> {
        self.server.process.must_run()?;
        self.front.must_run()
    }

    fn until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let answer = http::ask(self.address(), HOST, "/index.php/Main_Page", &[], None, START_PATIENCE);
            let status = answer.as_ref().map_or(0, |answer| answer.status);
            if status == 200 {
                return Ok(());
            }
            self.must_run()?;
            if Instant::now() > deadline {
                let words = self.server.process.last_words();
                return failed(format!("no page is answered, the last status was {status}:\n{words}"));
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn suimon(
    common: &Common,
    workspace: &Workspace,
    wiki: &Wiki<'_>,
    folder: &Path,
    told: Told,
) -> Result<Open> {
    let settings = folder.join("suimon.toml");
    fs::write(&settings, pool(common.app_core, wiki, &folder.join("sockets"), told))
        .trouble(settings.display())?;
    let (listen, admin) = (free_address()?, free_address()?);
    let program = workspace
        .program("suimon", &common.suimon)
        .cores(&[common.load_core])
        .args(["serve", "--lease-keys", "none", "--learned", "none", "--config"])
        .arg(settings.display())
        .args(["--listen".to_string(), listen.to_string(), "--admin".to_string(), admin.to_string()])
        .env("STATE_DIRECTORY", folder)
        .descriptors(DESCRIPTORS);
    let mut server = workspace.start(program, folder)?;
    for address in [listen, admin] {
        server.process.wait_for_listener(address, START_PATIENCE)?;
    }
    let root = server.process.pid();
    let front = Gateway { process: None, address: listen, admin: Some(admin) };
    Ok(Open { front, root, besides: [root].into(), server })
}

/// Returns the settings: the wiki's folder, its front controller, and a command without a number.
fn pool(core: usize, wiki: &Wiki<'_>, sockets: &Path, told: Told) -> String {
    let root = root().display();
    let environment =
        wiki.environment().map(|(name, value)| format!("{:?}", format!("{name}={value}"))).join(", ");
    let (law, route) = match told {
        Told::Nothing => ("", ""),
        Told::Open => ("session_law = \"open\"\n", ""),
        Told::Route => ("", "\n[[route]]\nmatch = \"GET /index.php/{title}\"\n"),
    };
    format!(
        "[gate]\ncores = 1\n{law}\n[upstream.fastcgi]\nroot = \"{root}\"\nfallback = \"/index.php\"\n\n\
         [[pool]]\nname = \"wiki\"\nkind = \"fastcgi\"\ncommand = [\"taskset\", \"-c\", \"{core}\", \"php-cgi\"]\n\
         environment = [{environment}]\ndirectory = \"{root}\"\nready = \"/index.php/Main_Page\"\nsockets = \"{}\"\n{route}",
        sockets.display()
    )
}

fn fpm(
    common: &Common,
    workspace: &Workspace,
    wiki: &Wiki<'_>,
    folder: &Path,
    manager: &str,
) -> Result<Open> {
    let (settings, socket) = (folder.join("fpm.conf"), folder.join("socket"));
    let text = format!(
        "[global]\ndaemonize = no\nerror_log = {}\n\n[wiki]\nlisten = {}\nclear_env = no\n{manager}",
        folder.join("fpm.log").display(),
        socket.display()
    );
    fs::write(&settings, text).trouble(settings.display())?;
    let name = fpm_name().unwrap_or_else(|| "php-fpm".to_string());
    let mut program = with_environment(workspace.program("php-fpm", &installed(&name)?), wiki);
    program = program.cores(&[common.app_core]).args(["--nodaemonize", "--fpm-config"]);
    let server = workspace.start(program.arg(settings.display()), folder)?;
    let front = start_nginx(folder, common.load_core, |listen| nginx(listen, &socket))?;
    Ok(Open { front, root: server.process.pid(), besides: BTreeSet::new(), server })
}

fn with_environment(mut program: Program, wiki: &Wiki<'_>) -> Program {
    for (name, value) in wiki.environment() {
        program = program.env(name, value);
    }
    program
}

fn installed(name: &str) -> Result<std::path::PathBuf> {
    find(name).map_err(|_| {
        Trouble::Usage(format!("{name} is not installed: ./scripts/setup --experiments installs it"))
    })
}

/// Returns nginx's server as MediaWiki's manual has it: programs with their `PATH_INFO`, and the
/// front controller for all else.
fn nginx(listen: SocketAddr, socket: &Path) -> String {
    let pass = |script: &str, info: &str| {
        let all = [
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("SERVER_SOFTWARE", "nginx"),
            ("SERVER_PROTOCOL", "$server_protocol"),
            ("SERVER_NAME", "$host"),
            ("SERVER_PORT", "$server_port"),
            ("SERVER_ADDR", "$server_addr"),
            ("REMOTE_ADDR", "$remote_addr"),
            ("REMOTE_PORT", "$remote_port"),
            ("REQUEST_SCHEME", "$scheme"),
            ("REQUEST_METHOD", "$request_method"),
            ("REQUEST_URI", "$request_uri"),
            ("QUERY_STRING", "$query_string"),
            ("CONTENT_TYPE", "$content_type"),
            ("CONTENT_LENGTH", "$content_length"),
            ("DOCUMENT_ROOT", "$document_root"),
            ("DOCUMENT_URI", "$document_uri"),
            ("REDIRECT_STATUS", "200"),
            ("SCRIPT_NAME", script),
            ("SCRIPT_FILENAME", &format!("$document_root{script}")),
            ("PATH_INFO", info),
        ];
        let line = |(name, value): (&str, &str)| format!("            fastcgi_param {name} \"{value}\";\n");
        let lines: String = all.into_iter().map(line).collect();
        format!("{lines}            fastcgi_pass unix:{};\n", socket.display())
    };
    format!(
        "    server {{
        listen {listen};
        root {};
        client_max_body_size {UPLOAD_MAX};
        location ~ ^/[a-z_]+\\.php(/|$) {{
            fastcgi_split_path_info ^(/[a-z_]+\\.php)(/.*)?$;
{}        }}
        location / {{
{}        }}
    }}
",
        root().display(),
        pass("$fastcgi_script_name", "$fastcgi_path_info"),
        pass("/index.php", "")
    )
}
