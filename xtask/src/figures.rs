//! The experiments' figures: the simulated ones are drawn anew in one go, those that need real
//! servers are measured if asked for.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What is simulated: our laws beside those of others, rules for a line, every figure of the first
/// paper, and those of the second and third.
const SIMULATED: [&str; 7] = [
    "laws",
    "waiting-line",
    "sqs",
    "degradation-papers",
    "workers-papers",
    "cluster-papers",
    "sharing-simulated",
];
/// What pages of the real shop cost, then the paper's figures measured on it; before they are
/// drawn, so that they show it.
const MEASURED: [&str; 2] = ["tomcat-model", "sqs live"];

/// Draws them, and says what was left out. An experiment in which something did not hold is a
/// fault.
pub(crate) fn draw(root: &Path, live: bool) -> Result<Vec<String>, String> {
    let on_servers = on_servers(root)?;
    let mut faults = Vec::new();
    let mut run = |name: &str| -> Result<(), String> {
        println!("== {name}");
        let status = Command::new(root.join("experiments/run"))
            .args(name.split(' '))
            .status()
            .map_err(|error| format!("experiments/run {name}: {error}"))?;
        match status.code() {
            Some(0) => {}
            Some(1) => faults.push(format!("{name}: drawn, but something in it does not hold; see above")),
            _ => return Err(format!("experiments/run {name}: {status}")),
        }
        Ok(())
    };
    if live {
        MEASURED.iter().try_for_each(|name| run(name))?;
    }
    SIMULATED.iter().try_for_each(|name| run(name))?;
    if live {
        on_servers.iter().try_for_each(|name| run(name))?;
    } else {
        println!(
            "skipped, for they need real servers and a quiet machine (--live): {}, {}",
            MEASURED.join(", "),
            on_servers.join(", ")
        );
    }
    Ok(faults)
}

/// Returns the experiments that are measured: every folder with a figure that is not simulated.
fn on_servers(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("experiments");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("figure.svg").is_file())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| !SIMULATED.contains(&name.as_str()))
        .collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_servers_is_told_apart_from_what_is_simulated() {
        let names = on_servers(&crate::root()).unwrap();
        assert!(names.contains(&"sessions-under-overload".to_owned()), "{names:?}");
        assert!(
            !names.iter().any(|name| name.starts_with("sqs")
                || SIMULATED.contains(&name.as_str())
                || name == "harness"),
            "{names:?}"
        );
    }
}
