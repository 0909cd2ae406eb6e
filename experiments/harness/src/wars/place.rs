//! Where a war is deployed: Tomcats as they are unpacked, each with a folder of its own for what it writes.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use suimon_process::{Program, Running, free_address};

use super::visit::{PATIENCE_S, War};
use super::{Way, is_compiler};
use crate::common::{Common, experiments};
use crate::cpu::pin_named_threads;
use crate::gateways::{Gateway, start_suimon};
use crate::http;
use crate::trouble::{Result, Trouble, While, failed};

/// How long a Tomcat may take to deploy a war, which it may have to convert first, and to answer.
const DEPLOY_PATIENCE: Duration = Duration::from_secs(180);
/// How long one answer may take meanwhile.
const ASK_PATIENCE: Duration = Duration::from_secs(60);
/// The wiki's pages: this many lines each.
const LINES: u32 = 40;
/// The wiki writes its last saves to disk at each save, by default 2,048 of them. That becomes 85 % of its work, more with
/// each save, and no two turns have the same wiki.
const SAVES_RETAINED: u32 = 16;

/// A Tomcat, unpacked from its archive.
#[derive(Clone, Debug)]
pub(super) struct Tomcat {
    pub(super) version: String,
    home: PathBuf,
}

/// A JDK.
#[derive(Clone, Debug)]
pub(super) struct Jdk {
    pub(super) version: u32,
    pub(super) home: PathBuf,
}

/// The versions of Tomcat that the filter is made for.
const TOMCATS: [&str; 3] = ["9.", "10.1.", "11."];
/// The oldest Java that it is made for.
const JAVA_MIN: u32 = 17;
/// The first Java that warns of native code.
const JAVA_WARNS: u32 = 24;

impl Tomcat {
    /// Returns those that the filter's tests have fetched, the oldest one first.
    pub(super) fn all() -> Result<Vec<Tomcat>> {
        let folder = experiments().join("../java/filter/tests/target/tomcats");
        TOMCATS.iter().map(|wanted| Tomcat::find(&folder, wanted)).collect()
    }

    fn find(folder: &Path, wanted: &str) -> Result<Tomcat> {
        let start = format!("apache-tomcat-{wanted}");
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        found.retain(|name| name.starts_with(&start));
        let name = found.into_iter().max().ok_or_else(|| missing(&folder.join(start + "*")))?;
        let home = folder.canonicalize().trouble(folder.display())?.join(&name);
        Ok(Tomcat { version: name.trim_start_matches("apache-tomcat-").to_string(), home })
    }

    /// Returns whether its servlets are `javax`.
    fn is_javax(&self) -> bool {
        self.version.starts_with(TOMCATS[0])
    }

    fn filter(&self) -> Result<PathBuf> {
        let jar = if self.is_javax() {
            "javax/target/suimon-filter-javax.jar"
        } else {
            "jakarta/target/suimon-filter.jar"
        };
        existing(&experiments().join("../java/filter").join(jar))
    }
}

impl Jdk {
    /// Returns those of this machine that are new enough, or those in `homes`; the oldest one first.
    pub(super) fn all(homes: &[PathBuf]) -> Result<Vec<Jdk>> {
        let mut all: Vec<Jdk> = if homes.is_empty() {
            let here = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
            // A link is another name for one that is there.
            let here = here.filter(|entry| !entry.path().is_symlink());
            here.filter_map(|entry| Jdk::at(&entry.path())).collect()
        } else {
            let no = |home: &PathBuf| {
                Trouble::Usage(format!("{}: no Java of {JAVA_MIN} or later", home.display()))
            };
            homes.iter().map(|home| Jdk::at(home).ok_or_else(|| no(home))).collect::<Result<_>>()?
        };
        all.sort_by_key(|jdk| jdk.version);
        if all.is_empty() {
            return Err(Trouble::Usage(format!(
                "no Java of {JAVA_MIN} or later in /usr/lib/jvm: name one with --java"
            )));
        }
        Ok(all)
    }

    fn at(home: &Path) -> Option<Jdk> {
        let release = fs::read_to_string(home.join("release")).ok()?;
        let version = release.split("JAVA_VERSION=\"").nth(1)?;
        let version = version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        (version >= JAVA_MIN && home.join("bin/java").is_file())
            .then(|| Jdk { version, home: home.to_path_buf() })
    }
}

fn existing(file: &Path) -> Result<PathBuf> {
    file.canonicalize().map_err(|_| missing(file))
}

fn missing(file: &Path) -> Trouble {
    Trouble::Usage(format!(
        "{} is not there: ./experiments/run wars builds and fetches what is missing",
        file.display()
    ))
}

/// A war that a Tomcat serves, and what protects it.
pub(super) struct Place {
    pub(super) tomcat: Running,
    /// Where visitors go.
    pub(super) gateway: Gateway,
    /// The name of the form's field, if there is one, that is another one after each start.
    pub(super) field: String,
}

/// What a place is to be.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) common: &'a Common,
    pub(super) tomcat: &'a Tomcat,
    pub(super) jdk: &'a Jdk,
    pub(super) war: War,
}

impl Plan<'_> {
    /// Returns the folder of the Tomcat that is protected in this way; all JDKs share it, one after another.
    pub(super) fn base(&self, way: Way) -> PathBuf {
        let name = format!("{}-tomcat-{}-{}", self.war.name(), self.tomcat.version, way.word());
        self.common.scratch.join(name)
    }

    /// Starts a Tomcat, with what is in front of it, and waits until visitors get pages.
    pub(super) fn open(&self, way: Way) -> Result<Place> {
        let base = self.base(way);
        if !base.is_dir() {
            self.furnish(&base)?;
        }
        let (address, admin) = (free_address()?, free_address()?);
        self.set(&base, way, address, admin)?;
        let mut tomcat = self.start(&base)?;
        tomcat.wait_for_listener(address, DEPLOY_PATIENCE)?;
        self.set_compilers_apart(tomcat.pid())?;
        let (path, text) = self.war.ready();
        tomcat.wait_for("page with the text wanted", DEPLOY_PATIENCE, |_| {
            let answer = http::get(address, path, ASK_PATIENCE).ok()?;
            (answer.status == 200 && String::from_utf8_lossy(&answer.body).contains(text)).then_some(())
        })?;
        let common = self.common;
        let gateway = match way.core(common) {
            None if way == Way::Alone => Gateway { process: None, address, admin: None },
            None => {
                let gateway = Gateway { process: None, address, admin: Some(admin) };
                // Without this a Tomcat that has not found the filter would be taken for one that has.
                if gateway.state().is_none() {
                    return failed(format!("the filter is not in it:\n{}", tomcat.last_words()));
                }
                gateway
            }
            Some(core) => start_suimon(common, &base, address, Some(&gate()), core)?,
        };
        let field = self.field(address)?;
        Ok(Place { tomcat, gateway, field })
    }

    /// Makes the folder: settings of Tomcat's archive, the war, and the wiki's pages.
    fn furnish(&self, base: &Path) -> Result<()> {
        let folders =
            ["conf/Catalina/localhost", "logs", "temp", "webapps", "webapps-javaee", "work", "pages", "wiki"];
        for folder in folders.map(|name| base.join(name)) {
            fs::create_dir_all(&folder).trouble(folder.display())?;
        }
        copy(&self.tomcat.home.join("conf/web.xml"), &base.join("conf/web.xml"))?;
        let wars = experiments().join("wars/target");
        match self.war {
            War::Examples => Ok(()),
            War::Jspwiki => self.furnish_wiki(base, &existing(&wars.join("jspwiki.war"))?),
            War::Shop => {
                let war = if self.tomcat.is_javax() { "shop-javax/shop-javax.war" } else { "shop/shop.war" };
                copy(&existing(&wars.join(war))?, &base.join("webapps/shop.war"))
            }
        }
    }

    fn furnish_wiki(&self, base: &Path, war: &Path) -> Result<()> {
        for name in ["Main", "Tea", "Coffee", "LeftMenu", "PageHeader"] {
            let line = |n| format!("* Line {n} of __{name}__ tells of ''lanterns'' and [Tea].\n");
            let text: String = (1..=LINES).map(line).collect();
            write(&base.join(format!("pages/{name}.txt")), &format!("!!{name}\n{text}"))?;
        }
        write(&base.join("pages/Find.txt"), "!!Find\n[{Search query='lanterns' max='20'}]\n")?;
        if self.tomcat.is_javax() {
            return copy(war, &base.join("webapps/jspwiki.war"));
        }
        // What a Tomcat of this version has converted serves the others of this version, too.
        let converted = Way::ALL.map(|way| self.base(way).join("webapps/jspwiki.war"));
        match converted.iter().find(|war| war.is_file()) {
            Some(war) => copy(war, &base.join("webapps/jspwiki.war")),
            None => copy(war, &base.join("webapps-javaee/jspwiki.war")),
        }
    }

    /// Writes what is another one at each start: addresses, and whether the filter is there.
    fn set(&self, base: &Path, way: Way, address: SocketAddr, admin: SocketAddr) -> Result<()> {
        let server = format!(
            r#"<Server port="-1">
  <Service name="Catalina">
    <Connector address="{}" port="{}"/>
    <Engine name="Catalina" defaultHost="localhost">
      <Host name="localhost" autoDeploy="false"/>
    </Engine>
  </Service>
</Server>
"#,
            address.ip(),
            address.port()
        );
        write(&base.join("conf/server.xml"), &server)?;
        let at = match self.war {
            War::Examples => format!(" docBase=\"{}\"", self.tomcat.home.join("webapps/examples").display()),
            War::Jspwiki | War::Shop => String::new(),
        };
        let inside = if way == Way::Inside {
            let (settings, jar) = (base.join("suimon.toml"), self.tomcat.filter()?);
            let text = format!(
                "{}\n[admin]\nlisten = \"{admin}\"\n\n[lease]\nkeys = \"none\"\n\n[learned]\nstate = \"none\"\n",
                gate()
            );
            write(&settings, &text)?;
            let name = jar.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!(
                r#"  <Resources>
    <PostResources className="org.apache.catalina.webresources.FileResourceSet"
                   base="{}" webAppMount="/WEB-INF/lib/{name}"/>
  </Resources>
  <Parameter name="suimon.config" value="{}"/>
"#,
                jar.display(),
                settings.display()
            )
        } else {
            String::new()
        };
        let context = base.join(format!("conf/Catalina/localhost/{}.xml", self.war.name()));
        write(&context, &format!("<Context{at}>\n{inside}</Context>\n"))
    }

    /// Starts Tomcat as its script does, on its core.
    fn start(&self, base: &Path) -> Result<Running> {
        let (home, folder) = (self.tomcat.home.display(), base.display());
        let heap = self.war.heap_mb();
        let mut java = Program::new("tomcat", self.jdk.home.join("bin/java"))
            .cores(&[self.common.app_core])
            .args(["-XX:+UseSerialGC".to_string(), format!("-Xms{heap}m"), format!("-Xmx{heap}m")])
            .arg(format!("-Dcatalina.home={home}"))
            .arg(format!("-Dcatalina.base={folder}"))
            .arg(format!("-Djava.io.tmpdir={folder}/temp"));
        if self.jdk.version >= JAVA_WARNS {
            java = java.arg("--enable-native-access=ALL-UNNAMED");
        }
        if self.war == War::Jspwiki {
            java = java
                .arg(format!("-Djspwiki.fileSystemProvider.pageDir={folder}/pages"))
                .arg(format!("-Djspwiki.basicAttachmentProvider.storageDir={folder}/pages"))
                .arg(format!("-Djspwiki.workDir={folder}/wiki"))
                .arg("-Djspwiki.lucene.initialdelay=1")
                .arg(format!("-Djspwiki.workflow.completed.retain={SAVES_RETAINED}"));
        }
        let java = java
            .args(["-cp".to_string(), format!("{home}/bin/bootstrap.jar:{home}/bin/tomcat-juli.jar")])
            .args(["org.apache.catalina.startup.Bootstrap", "start"]);
        Ok(java.start(base)?)
    }

    /// Gives Java's compilers the other core. They need minutes of one that is used up, and whoever is ahead with them
    /// completes more, compiles more, and stays ahead.
    fn set_compilers_apart(&self, pid: u32) -> Result<()> {
        match pin_named_threads(pid, is_compiler, self.common.load_core)? {
            0 => failed("this Java has no compilers that are known by name"),
            _ => Ok(()),
        }
    }

    fn field(&self, address: SocketAddr) -> Result<String> {
        let Some((path, before)) = self.war.form() else { return Ok(String::new()) };
        let form = http::get(address, path, ASK_PATIENCE)?;
        let body = String::from_utf8_lossy(&form.body);
        let name = body.split(before).nth(1).and_then(|behind| behind.split('\'').next());
        name.map(str::to_string).ok_or_else(|| Trouble::Failed(format!("{path}: there is no form")))
    }
}

/// Returns what the gate is told, in front and inside: refused visitors come back, nothing is kept, and how long visitors
/// wait. It would learn that from the ends of the turns, at which all leave at once.
fn gate() -> String {
    format!("[[session]]\nkind = \"visit\"\nwaiting_room = false\npatience = \"{PATIENCE_S}s\"\n")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).trouble(from.display())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).trouble(path.display())
}
