//! `suimon demo`: the same load, without Suimon and with it. Shows what happens and writes a report.
//!
//! Of sessions: one crowd, one shop, twice. Of degradation (`degradation`): a light service beside a
//! heavy one, on a real Tomcat. Of a cluster (`cluster`): nodes that come and go with the load.
//!
//! Shop and gateway are separate processes of this binary, on free ports of 127.0.0.1; this process
//! plays the crowd. The demo first measures the most the shop can do (the bound). Then the same
//! crowd visits a fresh shop directly, and then another fresh one through a gateway without any
//! settings. Where possible the shop has a core of its own, so that gateway and crowd take no CPU
//! time from it.
//!
//! Map: `processes` the application and the gateways; `canvas` what is drawn over on the terminal.
//! Of sessions: `stage` the three acts; `outcome` their results; `live` and `comparison` for the
//! terminal; `report` (with `figures`) for the browser.

mod canvas;
mod cluster;
mod comparison;
mod degradation;
mod figures;
mod live;
mod outcome;
mod processes;
mod report;
mod seconds;
mod stage;

use crate::exit::Exit;
use crate::interrupt;
use crate::terminal;
use crate::whole_file;
use clap::Args;
use stage::Stage;
use std::error::Error;
use std::path::{Path, PathBuf};

/// A value, or a sentence that says why there is none and what may help.
type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  suimon demo
  suimon demo --clients 400 --seconds 60 --json demo.json
  suimon demo --of cluster
  suimon demo --of degradation

Takes about two minutes and leaves a report, suimon-demo.html. Everything happens on this machine, on 127.0.0.1.

--of cluster needs nothing else, too: a load that triples, before a gateway that starts and ends its nodes; one of them is killed.

--of degradation needs Java 17 and the Tomcat shop (mvn -q -f apps/tomcat-shop/pom.xml package -DskipTests). Thirty clients ask for a short
computation and twenty for a report, on one core: without Suimon, then with two services declared: the report may be slowed twice as much,
and the computation keeps a floor.

Exit codes: 0 Suimon held: no session it let in failed, and more were finished than without it; of degradation: both wishes were kept;
of a cluster: nodes came and went, the killed one was replaced, and no session was lost;
1 it did not, or something failed while running; 2 wrong usage.")]
pub(crate) struct Demo {
    /// What to show: `sessions`: a crowd at a shop; `degradation`: a light service beside a heavy one;
    /// `cluster`: nodes that come and go.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Of::Sessions)]
    pub(crate) of: Of,
    /// Of sessions: visitors at once, each playing one session after another.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) clients: u32,
    /// Of sessions: divides all times: costs of pages, think times and patience; from 0.1 to 100.
    #[arg(long, value_name = "N", default_value_t = 4.0, value_parser = scale)]
    pub(crate) scale: f64,
    /// Of sessions and of a cluster: seed of all random choices; the same for both runs.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How long each run lasts; of degradation: for how long each is measured. [default: 60; of degradation 16; of a
    /// cluster 90, all of it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=3600))]
    pub(crate) seconds: Option<u32>,
    /// Of degradation: the Tomcat shop.
    #[arg(long, value_name = "FILE", default_value = "apps/tomcat-shop/target/tomcat-shop.jar")]
    pub(crate) jar: PathBuf,
    /// The report, a page for the browser.
    #[arg(long, value_name = "FILE", default_value = "suimon-demo.html")]
    pub(crate) report: PathBuf,
    /// Write all numbers to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the first chart to this file, as an SVG picture of its own.
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
}

fn scale(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value
        .filter(|value| (0.1..=100.0).contains(value))
        .ok_or_else(|| "must be a number from 0.1 to 100".to_owned())
}

/// What a demo shows.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// A crowd at a shop.
    Sessions,
    /// A light service beside a heavy one.
    Degradation,
    /// Nodes that come and go with the load.
    Cluster,
}

/// What came of a demo.
struct Told {
    holds: bool,
    /// For the terminal.
    words: String,
    page: String,
    json: String,
    picture: String,
}

/// Plays the demo, shows it, and writes what was asked for.
pub(crate) fn run(args: &Demo) -> Exit {
    let files = [
        ("--report", Some(&args.report)),
        ("--json", args.json.as_ref()),
        ("--picture", args.picture.as_ref()),
    ];
    for (flag, path) in files {
        if let Some(Err(error)) = path.map(|path| whole_file::try_writing(path)) {
            eprintln!(
                "{flag}: {}: cannot be written: {error}",
                path.map_or("".into(), |path| path.display().to_string())
            );
            return Exit::Usage;
        }
    }
    if args.of == Of::Degradation && !args.jar.is_file() {
        eprintln!(
            "--jar: {}: there is no such file. Build the Tomcat shop (mvn -q -f apps/tomcat-shop/pom.xml package -DskipTests, \
             in the project's folder), or name its jar",
            args.jar.display()
        );
        return Exit::Usage;
    }
    interrupt::listen();
    let told = match args.of {
        Of::Sessions => sessions(args),
        Of::Degradation => degradation::play(args),
        Of::Cluster => cluster::play(args),
    };
    let outcome = told.and_then(|told| {
        print!("{}", terminal::paragraphs(&told.words, terminal::columns()));
        write(args, &told).map(|()| told.holds)
    });
    match outcome {
        Ok(holds) => {
            println!("\nReport: {}", args.report.display());
            if holds { Exit::Done } else { Exit::Failed }
        }
        Err(why) => {
            eprintln!("{why}");
            Exit::Failed
        }
    }
}

fn sessions(args: &Demo) -> Outcome<Told> {
    let outcome = Stage::new(args)?.play()?;
    let caution = outcome.caution().map(|caution| caution + "\n").unwrap_or_default();
    Ok(Told {
        holds: outcome.holds,
        words: format!("{}\n{}\n{caution}", comparison::table(&outcome), outcome.verdict()),
        page: report::page(&outcome),
        json: serde_json::to_string_pretty(&outcome)? + "\n",
        picture: figures::picture(&outcome),
    })
}

fn write(args: &Demo, told: &Told) -> Outcome<()> {
    let put = |path: &Path, text: &str| {
        whole_file::write(path, text)
            .map_err(|error| format!("{}: could not be written: {error}", path.display()))
    };
    put(&args.report, &told.page)?;
    if let Some(path) = &args.json {
        put(path, &told.json)?;
    }
    if let Some(path) = &args.picture {
        put(path, &told.picture)?;
    }
    Ok(())
}

impl Demo {
    /// Returns how long each run of sessions lasts, seconds.
    fn seconds(&self) -> u32 {
        self.seconds.unwrap_or(60)
    }
}
