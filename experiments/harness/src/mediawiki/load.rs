//! The crowd: three in four read three pages, the fourth logs in, writes a page and looks at it.

use super::wiki::{EDITOR, PASSWORD};

/// How often a session is of each kind.
const READERS: u32 = 3;
const EDITORS: u32 = 1;
/// The most visitors at once.
const USERS_MAX: u32 = 5000;

/// How visitors come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Arrivals {
    /// So many at once, one session after another and without thinking: nothing ever rests.
    Closed(u32),
    /// So many sessions per second begin at random, whatever became of others.
    Open(f64),
}

/// Returns the journey file. A visitor whose request fails leaves; who has to wait, waits.
pub(super) fn journey(seed: u64, arrivals: Arrivals, patience_s: u32) -> String {
    let (arrivals, think) = match arrivals {
        Arrivals::Closed(users) => {
            (format!("[arrivals.closed]\nusers = {users}\nstart_over = \"1s\"\n"), "\"0ms\"".to_string())
        }
        Arrivals::Open(per_s) => (
            format!(
                "[arrivals.open]\nrate_per_s = {per_s:.4}\nspacing = \"poisson\"\nusers_max = {USERS_MAX}\n"
            ),
            "{ mean = \"1s\", shape = \"exponential\" }".to_string(),
        ),
    };
    format!(
        r#"seed = {seed}

{arrivals}
[visitor]
think = {think}
patience = "{patience_s}s"
returning = false

[visitor.on_failure]
retries_max = 0

[visitor.on_refusal]
retries_max = 1000

[[journey]]
name = "reads"
weight = {READERS}

[[journey.steps]]
name = "main"
path = "/index.php/Main_Page"
expect = {{ status = 200, text = "MediaWiki has been installed" }}

[[journey.steps]]
name = "page-1"
path = "/index.php/Page_1"
expect = {{ status = 200, text = "Line 40 of page 1 tells" }}

[[journey.steps]]
name = "page-2"
path = "/index.php/Page_2"
expect = {{ status = 200, text = "Line 40 of page 2 tells" }}

[[journey]]
name = "edits"
weight = {EDITORS}

[[journey.steps]]
name = "main"
path = "/index.php/Main_Page"
expect = {{ status = 200, text = "MediaWiki has been installed" }}

[[journey.steps]]
name = "log-in-form"
path = "/index.php?title=Special:UserLogin"
expect = {{ status = 200 }}
capture = {{ login = {{ input = "wpLoginToken" }} }}

[[journey.steps]]
name = "log-in"
path = "/index.php?title=Special:UserLogin"
form = {{ wpName = "{EDITOR}", wpPassword = "{PASSWORD}", wploginattempt = "Log in", authAction = "login", wpEditToken = "+\\", wpLoginToken = "{{login}}" }}
expect = {{ status = 302 }}

[[journey.steps]]
name = "edit-form"
path = "/index.php?title=Note_{{user}}_{{session}}&action=edit"
expect = {{ status = 200 }}
capture = {{ edit = {{ input = "wpEditToken" }}, check = {{ input = "wpUnicodeCheck" }}, from = {{ input = "wpStarttime" }}, at = {{ input = "wpEdittime" }} }}

[[journey.steps]]
name = "save"
path = "/index.php?title=Note_{{user}}_{{session}}&action=submit"
form = {{ wpUnicodeCheck = "{{check}}", wpStarttime = "{{from}}", wpEdittime = "{{at}}", wpEditToken = "{{edit}}", wpTextbox1 = "Visitor {{user}} was here. See [[Page 1]].", wpSummary = "a note", wpUltimateParam = "1", model = "wikitext", format = "text/x-wiki", wpSave = "Save page" }}
expect = {{ status = 302 }}

[[journey.steps]]
name = "look"
path = "/index.php/Note_{{user}}_{{session}}"
expect = {{ status = 200, text = "was here" }}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journey_is_one_the_crowd_understands() {
        for arrivals in [Arrivals::Closed(8), Arrivals::Open(6.25)] {
            let text = journey(1, arrivals, 15);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journey.toml");
            std::fs::write(&path, &text).unwrap();
            let workload =
                suimon_settings::journey::load(&path).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
            assert_eq!(workload.kinds.iter().map(|kind| kind.steps.len()).collect::<Vec<_>>(), [3, 6]);
        }
    }
}
