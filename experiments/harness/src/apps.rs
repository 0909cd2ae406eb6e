//! The applications under test: the Tomcat shop, and the bundled one.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use suimon_process::{Program, Running, listening_address};

use crate::common::Common;
use crate::trouble::{Result, Trouble, While};

/// The longest time until a shop listens; before that it measures the machine.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// Which shop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShopKind {
    /// apps/tomcat-shop: embedded Tomcat, searches that thrash the collector.
    Tomcat,
    /// `suimon shop`: the same pages in Rust.
    Bundled,
}

/// How the shop is set up.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShopOptions {
    /// Divides the cost of every page, think time and patience.
    #[arg(long, value_name = "X", default_value_t = ShopOptions::DEFAULT.scale)]
    pub(crate) scale: f64,
    /// Heap of the Tomcat shop, MB: small enough that too many searches at once thrash the
    /// collector.
    #[arg(long, value_name = "MB", default_value_t = ShopOptions::DEFAULT.heap_mb)]
    pub(crate) heap_mb: u32,
    /// Requests the Tomcat shop runs at once (its maxThreads).
    #[arg(long, value_name = "N", default_value_t = ShopOptions::DEFAULT.threads)]
    pub(crate) threads: u32,
    /// Connections that it has at once (its maxConnections).
    #[arg(long, value_name = "N", default_value_t = ShopOptions::DEFAULT.max_connections)]
    pub(crate) max_connections: u32,
    /// Connections that wait beyond that (its acceptCount).
    #[arg(long, value_name = "N", default_value_t = ShopOptions::DEFAULT.accept_count)]
    pub(crate) accept_count: u32,
    /// The Fibonacci number that the Tomcat shop's light job computes.
    #[arg(long, value_name = "N", default_value_t = ShopOptions::DEFAULT.fibonacci)]
    pub(crate) fibonacci: u32,
    /// Bytes of the XML file that the Tomcat shop's heavy job reads.
    #[arg(long, value_name = "BYTES", default_value_t = ShopOptions::DEFAULT.heavy_size)]
    pub(crate) heavy_size: u32,
    /// The Tomcat shop's jar [default: apps/tomcat-shop/target/tomcat-shop.jar]
    #[arg(long, value_name = "FILE")]
    pub(crate) jar: Option<PathBuf>,
}

impl ShopOptions {
    pub(crate) const DEFAULT: ShopOptions = ShopOptions {
        scale: 4.0,
        heap_mb: 160,
        threads: 200,
        max_connections: 8192,
        accept_count: 100,
        fibonacci: 25,
        heavy_size: 1_500_000,
        jar: None,
    };
}

/// The work of a page, as counts that the shop found once, so that it is the same in all later
/// starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) light: u32,
    pub(crate) search: u32,
}

/// A shop that can be started any number of times.
pub(crate) struct Shop<'a> {
    pub(crate) kind: ShopKind,
    pub(crate) options: &'a ShopOptions,
    /// The `suimon` program, for the bundled shop.
    pub(crate) suimon: &'a Path,
    pub(crate) core: usize,
    pub(crate) logs: &'a Path,
    /// The work of a page; `None`: the shop finds it at its first start.
    pub(crate) work: Option<Work>,
    /// What is in the Tomcat shop before its pages.
    pub(crate) filter: Option<&'a Filter>,
}

/// A servlet filter of the Tomcat shop.
pub(crate) struct Filter {
    pub(crate) class: &'static str,
    /// Where it is.
    pub(crate) jar: PathBuf,
    /// What it is told: `-Dname=value`.
    pub(crate) properties: Vec<String>,
}

/// A shop that listens.
pub(crate) struct OpenShop {
    pub(crate) process: Running,
    pub(crate) address: SocketAddr,
    pub(crate) work: Work,
}

/// Starts the Tomcat shop on its core and waits until it listens.
pub(crate) fn open_tomcat(common: &Common, options: &ShopOptions, work: Option<Work>) -> Result<OpenShop> {
    let shop = Shop {
        kind: ShopKind::Tomcat,
        options,
        suimon: &common.suimon,
        core: common.app_core,
        logs: &common.scratch,
        work,
        filter: None,
    };
    shop.open()
}

impl Shop<'_> {
    /// Returns its jar; fails if it does not exist.
    fn jar(&self) -> Result<PathBuf> {
        let built =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/tomcat-shop/target/tomcat-shop.jar");
        let jar = self.options.jar.clone().unwrap_or(built);
        if jar.is_file() {
            return Ok(jar);
        }
        Err(Trouble::Usage(
            "the Tomcat shop is not built: mvn -q -f apps/tomcat-shop/pom.xml package -DskipTests, or name its jar \
             with --jar (./experiments/run does it)"
                .to_string(),
        ))
    }

    /// Returns an empty folder for Tomcat's files. Tomcat is killed, so it cannot clean up itself.
    fn fresh_folder(&self) -> Result<PathBuf> {
        let folder = self.logs.join("tomcat");
        // A missing file counts as an empty one.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).trouble(folder.display())?;
        Ok(folder)
    }

    /// Starts it on a free port and waits until it listens.
    pub(crate) fn open(&self) -> Result<OpenShop> {
        let mut process = self.start(0)?;
        let what = "line with its address and one with the work of its pages";
        let (address, work) = process.wait_for(what, START_PATIENCE, |shop| {
            let said = shop.said();
            let work = self.work.or_else(|| work_told(&(said.clone() + &shop.complained())));
            listening_address(&said).zip(work)
        })?;
        Ok(OpenShop { process, address, work })
    }

    /// Returns the jar as `java` is told it, with the filter if there is one.
    fn what_to_run(&self) -> Result<Vec<String>> {
        let jar = self.jar()?.display().to_string();
        let Some(filter) = self.filter else { return Ok(vec!["-jar".to_string(), jar]) };
        let classes = format!("{jar}:{}", filter.jar.display());
        let mut words = filter.properties.clone();
        words.extend(["-cp", &classes, "org.suimon.shop.Main", "--filter", filter.class].map(str::to_string));
        Ok(words)
    }

    /// Starts it on `port`, without waiting.
    pub(crate) fn start(&self, port: u16) -> Result<Running> {
        let program = match self.kind {
            ShopKind::Tomcat => Program::new("shop", "java")
                .cores(&[self.core])
                .arg(format!("-Djava.io.tmpdir={}", self.fresh_folder()?.display()))
                .args(["-XX:+UseSerialGC".to_string(), format!("-Xms{}m", self.options.heap_mb)])
                .arg(format!("-Xmx{}m", self.options.heap_mb))
                .args(self.what_to_run()?)
                .args(["--threads".to_string(), self.options.threads.to_string()])
                .args(["--max-connections".to_string(), self.options.max_connections.to_string()])
                .args(["--accept-count".to_string(), self.options.accept_count.to_string()])
                .args(["--fibonacci".to_string(), self.options.fibonacci.to_string()])
                .args(["--heavy-size".to_string(), self.options.heavy_size.to_string()]),
            ShopKind::Bundled => Program::new("shop", self.suimon).cores(&[self.core]).arg("shop"),
        };
        let mut program = program
            .args(["--port".to_string(), port.to_string()])
            .args(["--scale".to_string(), self.options.scale.to_string()]);
        if let Some(work) = self.work {
            program = program
                .args(["--light-work".to_string(), work.light.to_string()])
                .args(["--search-repeats".to_string(), work.search.to_string()]);
        }
        Ok(program.start(self.logs)?)
    }
}

/// Reads the counts from `--light-work N --search-repeats N` (Tomcat) or `Work { light_work: N,
/// search_repeats: N }` (bundled).
fn work_told(said: &str) -> Option<Work> {
    let number_behind = |name: &str| -> Option<u32> {
        let behind = &said[said.find(name)? + name.len()..];
        let number = behind.trim_start_matches([':', ' ']).split(|c: char| !c.is_ascii_digit()).next()?;
        number.parse().ok()
    };
    let said_either = |tomcat, bundled| number_behind(tomcat).or_else(|| number_behind(bundled));
    Some(Work {
        light: said_either("--light-work", "light_work")?,
        search: said_either("--search-repeats", "search_repeats")?,
    })
}

/// Accepts connections, reads everything, and sends nothing.
pub(crate) fn silent() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).trouble("the backend")?;
    let address = listener.local_addr().trouble("the backend")?;
    thread::spawn(move || {
        // The connections are one request, and the gateway's checks, which it closes itself.
        for stream in listener.incoming().map_while(std::io::Result::ok) {
            thread::spawn(move || {
                let mut stream = stream;
                let mut bytes = [0; 1024];
                while stream.read(&mut bytes).is_ok_and(|length| length > 0) {}
            });
        }
    });
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_read_from_what_either_shop_says() {
        let tomcat = "work: --light-work 3750 --search-repeats 33 --search-held 1 (catalogue 665886 bytes)\n";
        assert_eq!(work_told(tomcat), Some(Work { light: 3750, search: 33 }));
        let bundled = "listening on http://127.0.0.1:1\nWork { light_work: 12, search_repeats: 7 }\n";
        assert_eq!(work_told(bundled), Some(Work { light: 12, search: 7 }));
        assert_eq!(work_told("work: much\n"), None);
    }
}
