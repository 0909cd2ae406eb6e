//! What is to be played: scenarios, the laws they are played with, and seeds.

use super::Sim;
use std::path::{Path, PathBuf};
use suimon_control::{RouteLawKind, SessionLawKind};
use suimon_gate::RouteMode;
use suimon_settings::scenario;
use suimon_sim::{Laws, Scenario};

/// The most seeds.
pub(super) const SEEDS_MAX: u64 = 100_000;
/// Stands for every law of the simulator's catalogue.
const ALL: &str = "all";

/// A scenario, and how it is to be played.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// Its file, as it was named; or the name of a generated site.
    pub(super) file: PathBuf,
    /// Whether that is the name of a generated site.
    pub(super) is_site: bool,
    pub(super) scenario: Scenario,
    /// The scenario's own laws first, then those they are compared with.
    pub(super) contenders: Vec<Contender>,
    pub(super) seeds: Vec<u64>,
}

/// Laws under a name.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) laws: Laws,
}

impl Contender {
    /// Returns whether these are the scenario's own: those of which something is expected.
    pub(super) fn is_own(&self) -> bool {
        self.laws == Laws::AS_SET
    }
}

/// Returns what the command line asks for.
///
/// # Errors
/// Returns everything that is wrong with it, a line each.
pub(super) fn questions(args: &Sim) -> Result<Vec<Question>, String> {
    let mut faults = vec![];
    let rivals = rivals(&args.vs, &mut faults);
    let files = files(&args.files, &mut faults);
    let mut questions = vec![];
    for file in files {
        match scenario::load(&file) {
            Ok(scenario) => questions.push(question(args, file, false, scenario, &rivals)),
            Err(found) => faults.push(found.to_string()),
        }
    }
    for site in &args.site {
        questions.push(question(args, PathBuf::from(site.to_string()), true, site.scenario(), &rivals));
    }
    if faults.is_empty() { Ok(questions) } else { Err(faults.join("\n")) }
}

fn question(args: &Sim, file: PathBuf, is_site: bool, scenario: Scenario, rivals: &[Contender]) -> Question {
    let own = Contender { name: own_name(&scenario).to_owned(), laws: Laws::AS_SET };
    let seeds = match (args.seed, args.seeds) {
        (Some(seed), _) => vec![seed],
        (None, Some(last)) => (1..=last).collect(),
        (None, None) => scenario.seeds.clone(),
    };
    let contenders = std::iter::once(own).chain(rivals.iter().cloned()).collect();
    Question { file, is_site, scenario, contenders, seeds }
}

/// Returns what the scenario's own laws are called beside others.
fn own_name(scenario: &Scenario) -> &'static str {
    let params = &scenario.gate.params;
    let laws = params.route_law == RouteLawKind::default() && params.session_law == SessionLawKind::default();
    let limits = scenario.routes.iter().all(|route| route.mode == RouteMode::Enforce);
    if laws && limits { "suimon" } else { "as set" }
}

/// Returns the laws to compare with, each once; the scenario's own are always there.
fn rivals(names: &[String], faults: &mut Vec<String>) -> Vec<Contender> {
    let catalogue = || Laws::catalogue().into_iter().map(|(name, _)| name).collect();
    let named = names.iter().flat_map(|name| match name.trim() {
        ALL => catalogue(),
        name => vec![name.to_owned()],
    });
    let mut rivals: Vec<Contender> = vec![];
    for name in named {
        match Laws::parse(&name) {
            Ok(laws) if laws == Laws::AS_SET || rivals.iter().any(|rival| rival.laws == laws) => {}
            Ok(laws) => rivals.push(Contender { name, laws }),
            Err(why) => faults.push(format!("--vs: {why}")),
        }
    }
    rivals
}

/// Returns the files, those of a folder by name.
fn files(named: &[PathBuf], faults: &mut Vec<String>) -> Vec<PathBuf> {
    let mut files = vec![];
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        match scenarios_in(path) {
            Ok(inside) if inside.is_empty() => {
                faults.push(format!(
                    "{}: holds no scenario: no *.toml whose name does not begin with \"_\"",
                    path.display()
                ));
            }
            Ok(inside) => files.extend(inside),
            Err(error) => faults.push(format!("{}: cannot be read ({error})", path.display())),
        }
    }
    files
}

fn scenarios_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = vec![];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with(['_', '.']));
        if path.is_file() && !hidden && path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_scenarios_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.toml", "a.toml", "_base.toml", "notes.md"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("c.toml")).unwrap();
        let names = scenarios_in(folder.path()).unwrap();
        assert_eq!(names, ["a.toml", "b.toml"].map(|name| folder.path().join(name)));
    }

    #[test]
    fn each_law_is_played_once_and_the_scenarios_own_is_no_rival() {
        let mut faults = vec![];
        let names = ["none", "off+open", "suimon", "fixed:3+open"].map(str::to_owned);
        let rivals = rivals(&names, &mut faults);
        let names: Vec<&str> = rivals.iter().map(|rival| rival.name.as_str()).collect();
        assert_eq!((names, faults.len()), (vec!["none", "fixed:3+open"], 0));
    }

    #[test]
    fn all_is_everything_but_the_scenarios_own() {
        let mut faults = vec![];
        let rivals = rivals(&["all".to_owned()], &mut faults);
        assert_eq!((rivals.len(), faults.len()), (Laws::catalogue().len() - 1, 0));
        assert!(rivals.iter().all(|rival| !rival.is_own()));
    }
}
