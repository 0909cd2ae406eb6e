//! What to play: scenarios, their laws, and seeds.

use super::{Beyond, Sim};
use std::path::{Path, PathBuf};
use suimon_control::{RouteLawKind, SessionLawKind};
use suimon_gate::RouteMode;
use suimon_settings::scenario;
use suimon_sim::{Laws, Scenario};

/// The most seeds.
pub(super) const SEEDS_MAX: u64 = 100_000;
/// Stands for every law of the simulator's catalogue.
const ALL: &str = "all";

/// A scenario, and how to play it.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// Its file, as the command line names it; or its name there, if it has no file.
    pub(super) file: PathBuf,
    /// The command that plays it, with the scenario's argument.
    pub(super) command: String,
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
    /// Returns whether these are the scenario's own laws, to which its expectations apply.
    pub(super) fn is_own(&self) -> bool {
        self.laws == Laws::AS_SET
    }
}

/// Returns what the command line asks for.
///
/// # Errors
/// Returns everything that is wrong with the command line and the files, a line each.
pub(super) fn questions(args: &Sim, beyond: &Beyond) -> Result<Vec<Question>, String> {
    let mut faults = vec![];
    let rivals = rivals(&args.vs, beyond, &mut faults);
    let files = files(&args.files, &mut faults);
    if files.is_empty() && beyond.scenarios.is_empty() && faults.is_empty() {
        faults.push(format!("name a scenario, or a folder of them; {} --help explains", beyond.command));
    }
    let mut questions = vec![];
    for file in files {
        match scenario::load(&file) {
            Ok(scenario) => {
                let command = format!("{} {}", beyond.command, quoted(&file.display().to_string()));
                questions.push(question(args, file, command, scenario, &rivals));
            }
            Err(found) => faults.push(found.to_string()),
        }
    }
    for (named, scenario) in &beyond.scenarios {
        let command = format!("{} {named}", beyond.command);
        questions.push(question(args, PathBuf::from(&scenario.name), command, scenario.clone(), &rivals));
    }
    if faults.is_empty() { Ok(questions) } else { Err(faults.join("\n")) }
}

fn question(
    args: &Sim,
    file: PathBuf,
    command: String,
    scenario: Scenario,
    rivals: &[Contender],
) -> Question {
    let own = Contender { name: own_name(&scenario).to_owned(), laws: Laws::AS_SET };
    let seeds = match (args.seed, args.seeds) {
        (Some(seed), _) => vec![seed],
        (None, Some(last)) => (1..=last).collect(),
        (None, None) => scenario.seeds.clone(),
    };
    let contenders = std::iter::once(own).chain(rivals.iter().cloned()).collect();
    Question { file, command, scenario, contenders, seeds }
}

/// Returns a word quoted for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the name of the scenario's own laws in comparisons.
fn own_name(scenario: &Scenario) -> &'static str {
    let params = &scenario.gate.params;
    let laws = params.route_law == RouteLawKind::default() && params.session_law == SessionLawKind::default();
    let limits = scenario.routes.iter().all(|route| route.mode == RouteMode::Enforce);
    if laws && limits { "suimon" } else { "as set" }
}

/// Returns the laws to compare, each once. The scenario's own laws are always included.
fn rivals(names: &[String], beyond: &Beyond, faults: &mut Vec<String>) -> Vec<Contender> {
    let catalogue = || beyond.catalogue.iter().map(|(name, _)| name.clone()).collect();
    let named = names.iter().flat_map(|name| match name.trim() {
        ALL => catalogue(),
        name => vec![name.to_owned()],
    });
    let mut rivals: Vec<Contender> = vec![];
    for name in named {
        match (beyond.parse)(&name) {
            Ok(laws) if laws == Laws::AS_SET || rivals.iter().any(|rival| rival.laws == laws) => {}
            Ok(laws) => rivals.push(Contender { name, laws }),
            Err(why) => faults.push(format!("--vs: {why}")),
        }
    }
    rivals
}

/// Returns the files; those of a folder are sorted by name.
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
        let rivals = rivals(&names, &Beyond::nothing(), &mut faults);
        let names: Vec<&str> = rivals.iter().map(|rival| rival.name.as_str()).collect();
        assert_eq!((names, faults.len()), (vec!["none", "fixed:3+open"], 0));
    }

    #[test]
    fn all_is_everything_but_the_scenarios_own() {
        let mut faults = vec![];
        let rivals = rivals(&["all".to_owned()], &Beyond::nothing(), &mut faults);
        assert_eq!((rivals.len(), faults.len()), (Laws::catalogue().len() - 1, 0));
        assert!(rivals.iter().all(|rival| !rival.is_own()));
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let words = ["scenarios/shop-2.toml", "fixed:5+open", "my shop.toml", "it's", ""].map(quoted);
        assert_eq!(words, ["scenarios/shop-2.toml", "fixed:5+open", "'my shop.toml'", r"'it'\''s'", "''"]);
    }
}
