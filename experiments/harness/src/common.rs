//! Common parts of all experiments: where they run, and where their files are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cpu::CoreTimes;
use crate::machine::Machine;
use crate::trouble::{Result, Trouble, While};

/// Returns the folder of all experiments.
pub(crate) fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the folder for an experiment's temporary files, which can be inspected after the run.
fn scratch(name: &str) -> Result<PathBuf> {
    let own = env::current_exe().trouble("this program cannot find itself")?;
    Ok(own.parent().unwrap_or(Path::new(".")).join("../experiments").join(name))
}

/// Returns the folder for simulated results: the requested one, or the experiment's own, or with
/// `quick` a temporary one.
pub(crate) fn folder(name: &str, asked_for: Option<PathBuf>, quick: bool) -> Result<PathBuf> {
    match asked_for {
        Some(folder) => Ok(folder),
        None if quick => scratch(name),
        None => Ok(experiments().join(name)),
    }
}

/// Options of every experiment.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonOptions {
    /// Core of the application (or, in proxy-cost, of the proxy).
    #[arg(long, value_name = "CORE", default_value_t = 0)]
    pub(crate) app_core: usize,
    /// Core of everything else.
    #[arg(long, value_name = "CORE", default_value_t = 1)]
    pub(crate) load_core: usize,
    /// The suimon program [default: the one built beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) suimon: Option<PathBuf>,
    /// Folder for data and figure [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of everything random.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// A few short rounds, to see whether everything runs. Its figures have no meaning.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// The checked and prepared form of [`CommonOptions`].
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) app_core: usize,
    pub(crate) load_core: usize,
    pub(crate) suimon: PathBuf,
    pub(crate) seed: u64,
    pub(crate) quick: bool,
    pub(crate) machine: Machine,
    /// Holds `data/` and `figure.svg`.
    pub(crate) out: PathBuf,
    /// Logs, journeys and settings of the run, for inspection; the next run overwrites them.
    pub(crate) scratch: PathBuf,
}

impl CommonOptions {
    /// Checks what exists, makes the folders, and pins this process to the load's core. `name` is
    /// the experiment's.
    pub(crate) fn prepare(&self, name: &str) -> Result<Common> {
        let harness = Path::new(env!("CARGO_MANIFEST_DIR"));
        let machine = Machine::look(harness);
        if self.app_core == self.load_core {
            let why = "--app-core and --load-core must differ: what is measured must not share its core";
            return Err(Trouble::Usage(why.to_string()));
        }
        // Fails if there is no such core.
        CoreTimes::now(self.app_core)?;
        CoreTimes::now(self.load_core)?;
        let own = env::current_exe().trouble("this program cannot find itself")?;
        let beside = own.parent().unwrap_or(Path::new("."));
        let suimon = self.suimon.clone().unwrap_or_else(|| beside.join("suimon"));
        if !suimon.is_file() {
            return Err(Trouble::Usage(format!(
                "{} is not there: cargo build --release -p suimon-cli, or name it with --suimon (./experiments/run does it)",
                suimon.display()
            )));
        }
        let scratch = scratch(name)?;
        let out = folder(name, self.out.clone(), self.quick)?;
        for folder in [&scratch, &out, &out.join("data")] {
            fs::create_dir_all(folder).trouble(format!("{}: cannot be made", folder.display()))?;
        }
        // This process must not disturb the measured one.
        suimon_process::stay_on(&[self.load_core]).map_err(|_| {
            let core = self.load_core;
            Trouble::Usage(format!("core {core} cannot be used: name others with --app-core and --load-core"))
        })?;
        Ok(Common {
            app_core: self.app_core,
            load_core: self.load_core,
            suimon,
            seed: self.seed,
            quick: self.quick,
            machine,
            out,
            scratch,
        })
    }
}
