//! The machine on which a figure was measured: without it, nobody can judge the figure.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde::{Deserialize, Serialize};

/// Facts about this machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Processor, as it names itself.
    pub(crate) processor: String,
    /// Cores this process could use.
    pub(crate) cores: usize,
    /// Memory, GB.
    pub(crate) memory_gb: f64,
    /// System and the first two numbers of its version.
    pub(crate) system: String,
    /// Compiler of this harness and, usually, of the gateway.
    pub(crate) rust: String,
    /// Version of the sources, and whether they were changed since.
    pub(crate) sources: String,
}

impl Machine {
    /// Returns the facts; unknown ones are "unknown".
    pub(crate) fn look(sources: &Path) -> Machine {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_string();
        let kib = field(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        let release = read("/proc/sys/kernel/osrelease");
        let version: Vec<&str> = release.trim().split('.').take(2).collect();
        Machine {
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            cores: thread::available_parallelism().map_or(0, usize::from),
            memory_gb: kib.map_or(0.0, |kib| (kib / 104_857.6).round() / 10.0),
            system: format!("Linux {}", version.join(".")),
            rust: said(Command::new("rustc").arg("--version")).unwrap_or_else(unknown),
            sources: version_of(sources).unwrap_or_else(unknown),
        }
    }
}

fn field(text: &str, name: &str) -> Option<String> {
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_string())
}

/// What experiments measure, and what they measure it with.
const MEASURED: [&str; 4] = ["crates", "apps", "java", "experiments/harness"];

fn version_of(sources: &Path) -> Option<String> {
    let git = |words: &[&str]| said(Command::new("git").arg("-C").arg(sources).args(words));
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let status = ["status", "--porcelain", "--untracked-files=no"];
    let changed = git(&[&status[..], &MEASURED[..]].concat())?;
    Some(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "MemTotalX: 1\nMemTotal:   2048 kB\n";
        assert_eq!(field(text, "MemTotal").as_deref(), Some("2048 kB"));
        assert_eq!(field(text, "Mem"), None);
    }
}
