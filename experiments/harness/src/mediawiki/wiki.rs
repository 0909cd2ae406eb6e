//! A wiki made by MediaWiki's own installer and maintenance scripts, in a folder of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use suimon_process::Program;

use crate::gateways::find;
use crate::mariadb::MariaDb;
use crate::trouble::{Result, Trouble, While};
use crate::workspace::Workspace;

/// Where the package puts MediaWiki.
const PACKAGE: &str = "/usr/share/mediawiki";
/// The name under which visitors know the wiki.
pub(super) const HOST: &str = "wiki.example";
/// The password of all its users: long enough for MediaWiki.
pub(super) const PASSWORD: &str = "open-the-floodgate-7";
/// Who edits in the crowd.
pub(super) const EDITOR: &str = "Editor";
/// Pages that are read.
const PAGES: u32 = 20;
/// Lines of text of a page, and links on it.
const PAGE_LINES: u32 = 40;
const PAGE_LINKS: u32 = 8;
/// How long a maintenance script may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// A wiki with pages and users.
pub(super) struct Wiki<'a> {
    workspace: &'a Workspace,
    core: usize,
    /// Its own files: settings, uploads, caches.
    folder: PathBuf,
}

impl<'a> Wiki<'a> {
    /// Installs one into the database, with these `users` beside the editor. The scripts run on
    /// `core`.
    pub(super) fn install(
        workspace: &'a Workspace,
        core: usize,
        database: &MariaDb,
        users: &[&str],
    ) -> Result<Self> {
        if !root().join("index.php").is_file() {
            let why = "MediaWiki is not installed: ./scripts/setup --experiments installs it";
            return Err(Trouble::Usage(why.to_string()));
        }
        let folder = workspace.fresh("wiki")?;
        for name in ["images", "cache", "texts"] {
            workspace.fresh(&format!("wiki/{name}"))?;
        }
        let wiki = Wiki { workspace, core, folder };
        let server = format!("http://{HOST}");
        let socket = format!("localhost:{}", database.socket().display());
        let folder = wiki.folder.display().to_string();
        let installed = wiki.script("install.php")?.args([
            "--dbtype",
            "mysql",
            "--dbname",
            "wiki",
            "--dbuser",
            "root",
            "--dbpass",
            "",
            "--dbserver",
            &socket,
            "--server",
            &server,
            "--scriptpath",
            "",
            "--lang",
            "en",
            "--confpath",
            &folder,
            "--pass",
            PASSWORD,
            "Wiki",
            "Admin",
        ]);
        wiki.run(installed)?;
        wiki.add_settings()?;
        wiki.run(wiki.configured("rebuildLocalisationCache.php")?.args(["--lang", "en"]))?;
        for user in users.iter().chain([&EDITOR]) {
            wiki.run(wiki.configured("createAndPromote.php")?.args([user, &PASSWORD]))?;
        }
        let texts = wiki.write_texts()?;
        let import = wiki.configured("importTextFiles.php")?.args(["--user", "Admin", "--overwrite"]);
        wiki.run(import.args(texts.iter().map(|text| text.display())))?;
        Ok(wiki)
    }

    /// Returns the settings file.
    pub(super) fn settings(&self) -> PathBuf {
        self.folder.join("LocalSettings.php")
    }

    /// Returns what its programs need in their environment.
    pub(super) fn environment(&self) -> [(&'static str, String); 1] {
        [("MW_CONFIG_FILE", self.settings().display().to_string())]
    }

    /// Adds to what the installer has written.
    fn add_settings(&self) -> Result<()> {
        let path = self.settings();
        let mut text = fs::read_to_string(&path).trouble(path.display())?;
        let folder = self.folder.display();
        let _ = write!(
            text,
            "
# Pages are found by PATH_INFO.
$wgUsePathInfo = true;
$wgArticlePath = '/index.php/$1';
# Uploads are sent by a program: a pool of workers sends no files.
$wgEnableUploads = true;
$wgUploadDirectory = '{folder}/images';
$wgUploadPath = '/img_auth.php';
$wgUseImageMagick = false;
# The texts of the interface, which would be in the database otherwise.
$wgCacheDirectory = '{folder}/cache';
# All visitors of the crowd come from one address, and its editors have one account.
$wgRateLimits = [];
$wgPasswordAttemptThrottle = [];
$wgShowExceptionDetails = true;
"
        );
        fs::write(&path, text).trouble(path.display())
    }

    fn write_texts(&self) -> Result<Vec<PathBuf>> {
        let mut texts = vec![("Old name".to_string(), "#REDIRECT [[Page 1]]\n".to_string())];
        texts.extend((1..=PAGES).map(|number| (format!("Page {number}"), page(number))));
        let written = texts.into_iter().map(|(title, text)| {
            let path = self.folder.join("texts").join(format!("{title}.txt"));
            fs::write(&path, text).trouble(path.display())?;
            Ok(path)
        });
        written.collect()
    }

    fn configured(&self, name: &str) -> Result<Program> {
        Ok(self.script(name)?.arg("--conf").arg(self.settings().display()))
    }

    fn script(&self, name: &str) -> Result<Program> {
        let php = find("php").map_err(|_| {
            Trouble::Usage("php is not installed: ./scripts/setup --experiments installs it".to_string())
        })?;
        let script = root().join("maintenance").join(name);
        Ok(self.workspace.program("maintenance", &php).cores(&[self.core]).arg(script.display()))
    }

    fn run(&self, script: Program) -> Result<()> {
        self.workspace.run(script, &self.folder, PATIENCE)
    }
}

/// Returns the folder of MediaWiki's programs.
pub(super) fn root() -> &'static Path {
    Path::new(PACKAGE)
}

/// Returns the text of a page: a few sections, a table and links to others.
fn page(number: u32) -> String {
    let mut text = format!("This is '''page {number}''' of the wiki.\n\n");
    for line in 1..=PAGE_LINES {
        if line % 10 == 1 {
            let _ = write!(text, "\n== Section {} ==\n", line / 10 + 1);
        }
        let _ = write!(
            text,
            "Line {line} of page {number} tells about the ''gates'' of a river, and when they are opened. "
        );
    }
    text += "\n\n== Others ==\n";
    for link in 1..=PAGE_LINKS {
        let _ = writeln!(text, "* [[Page {}]]", (number + link * 3) % PAGES + 1);
    }
    text += "\n{| class=\"wikitable\"\n! Day !! Water\n";
    for day in 1..=PAGE_LINKS {
        let _ = writeln!(text, "|-\n| {day} || {}", day * number);
    }
    text + "|}\n"
}
