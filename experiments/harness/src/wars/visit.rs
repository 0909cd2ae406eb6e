//! What is deployed, and what a visitor does there.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::journey::STEPS;

/// The longest a visitor waits for one answer, seconds.
pub(super) const PATIENCE_S: u32 = 15;

/// An application that knows nothing of us.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum War {
    /// Tomcat's own examples.
    Examples,
    /// A wiki from Maven Central, made for `javax`.
    Jspwiki,
    /// The papers' shop.
    Shop,
}

impl War {
    pub(super) const fn name(self) -> &'static str {
        match self {
            War::Examples => "examples",
            War::Jspwiki => "jspwiki",
            War::Shop => "shop",
        }
    }

    /// Returns the heap that its Tomcat gets, MB: the shop's is so small that many searches at once thrash the collector.
    pub(super) const fn heap_mb(self) -> u32 {
        match self {
            War::Examples | War::Jspwiki => 512,
            War::Shop => 160,
        }
    }

    /// Returns whether a page that says this is the application's: an answer of its own, good or not, and none that the
    /// gate or the container gives.
    pub(super) fn has_said(self, said: &str) -> bool {
        match self {
            // In the title of each of its pages.
            War::Jspwiki => said.starts_with("JSPWiki:"),
            War::Examples | War::Shop => false,
        }
    }

    /// Returns how long a turn counts, seconds: long enough for some hundred sessions.
    pub(super) const fn measured_s(self) -> u64 {
        match self {
            War::Examples => 10,
            War::Jspwiki | War::Shop => 20,
        }
    }

    /// Returns the page that says that it is there, and what is in it.
    pub(super) const fn ready(self) -> (&'static str, &'static str) {
        match self {
            War::Examples => ("/examples/servlets/servlet/SessionExample", "Session"),
            // The wiki's search finds what its index has, which it makes some time after its start.
            War::Jspwiki => ("/jspwiki/Wiki.jsp?page=Find", "page=Coffee\">Coffee</a></td>"),
            War::Shop => ("/shop/", "The shop"),
        }
    }

    /// Returns a page whose form has a field of a name that is another one after each start, and what stands before
    /// that name.
    pub(super) const fn form(self) -> Option<(&'static str, &'static str)> {
        match self {
            War::Examples | War::Shop => None,
            War::Jspwiki => Some(("/jspwiki/Edit.jsp?page=Note0", "/>\n<input type='hidden' name='")),
        }
    }

    /// Returns the mean think time: short enough that the crowd asks for more than one core can do.
    const fn think_ms(self) -> u32 {
        match self {
            War::Examples => 10,
            War::Jspwiki | War::Shop => 200,
        }
    }

    fn steps(self) -> String {
        match self {
            War::Examples => EXAMPLES.to_string(),
            War::Jspwiki => JSPWIKI.to_string(),
            War::Shop => STEPS.replace("path = \"/", "path = \"/shop/"),
        }
    }

    /// Returns for how long a visitor thinks between the pages of a session, seconds, on average. All journeys of a war
    /// have as many pages.
    pub(super) fn thinking_s(self) -> f64 {
        let steps = self.steps();
        let pages = steps.matches("[[journey.steps]]").count() / steps.matches("[[journey]]").count();
        f64::from(self.think_ms()) / 1e3 * (pages.saturating_sub(1)) as f64
    }

    /// Returns the journey file of so many `users` at once. A visitor whose request fails leaves; who is refused at the first page comes back.
    /// `field` is the name of the form's field, if it has one, that is another one after each start.
    pub(super) fn journey(self, seed: u64, users: u32, field: &str) -> String {
        let think = self.think_ms();
        let steps = self.steps().replace("FIELD", field);
        format!(
            "seed = {seed}

[arrivals.closed]
users = {users}
start_over = \"1s\"

[visitor]
think = {{ mean = \"{think}ms\", shape = \"exponential\" }}
patience = \"{PATIENCE_S}s\"
returning = false

[visitor.on_failure]
retries_max = 0

[visitor.on_refusal]
retries_max = 1000
{steps}"
        )
    }
}

/// The session servlet, the cart, and pages of other kinds.
const EXAMPLES: &str = r#"
[[journey]]
name = "examples"

[[journey.steps]]
name = "session"
path = "/examples/servlets/servlet/SessionExample"
expect = { status = 200, text = "Session" }

[[journey.steps]]
name = "remember"
path = "/examples/servlets/servlet/SessionExample"
form = { dataname = "visitor", datavalue = "number-{user}" }
expect = { status = 200, text = "visitor = number-" }

[[journey.steps]]
name = "put-in-cart"
path = "/examples/jsp/sessions/carts.jsp?itemId=1&submit=add"
expect = { status = 200, text = "<li> X-files movie" }

[[journey.steps]]
name = "products"
path = "/examples/jsp/jsp2/tagfiles/products.jsp"
expect = { status = 200, text = "Products" }

[[journey.steps]]
name = "functions"
path = "/examples/jsp/jsp2/el/functions.jsp?foo=tea"
expect = { status = 200, text = "aet" }

[[journey.steps]]
name = "put-more"
path = "/examples/jsp/sessions/carts.jsp?itemId=2&submit=add"
expect = { status = 200, text = "<li> X-files movie" }

[[journey.steps]]
name = "recall"
path = "/examples/servlets/servlet/SessionExample"
expect = { status = 200, text = "visitor = number-" }
"#;

/// Nine of ten visitors read and search. The tenth writes a note as well: one for each visitor, so that the wiki does not
/// grow for ever. Where all write, the wiki itself fails now and then: its saves get in each other's way.
const JSPWIKI: &str = r#"
[[journey]]
name = "read"
weight = 9

[[journey.steps]]
name = "main"
path = "/jspwiki/Wiki.jsp?page=Main"
expect = { status = 200, text = "Line 40 of <b>Main</b>" }

[[journey.steps]]
name = "tea"
path = "/jspwiki/Wiki.jsp?page=Tea"
expect = { status = 200, text = "Line 40 of <b>Tea</b>" }

[[journey.steps]]
name = "search"
path = "/jspwiki/Wiki.jsp?page=Find"
expect = { status = 200, text = "page=Coffee\">Coffee</a></td>" }

[[journey.steps]]
name = "coffee"
path = "/jspwiki/Wiki.jsp?page=Coffee"
expect = { status = 200, text = "Line 40 of <b>Coffee</b>" }

[[journey.steps]]
name = "history"
path = "/jspwiki/PageInfo.jsp?page=Coffee"
expect = { status = 200 }

[[journey.steps]]
name = "main-again"
path = "/jspwiki/Wiki.jsp?page=Main"
expect = { status = 200, text = "Line 40 of <b>Main</b>" }

[[journey]]
name = "write"
weight = 1

[[journey.steps]]
name = "main"
path = "/jspwiki/Wiki.jsp?page=Main"
expect = { status = 200, text = "Line 40 of <b>Main</b>" }

[[journey.steps]]
name = "tea"
path = "/jspwiki/Wiki.jsp?page=Tea"
expect = { status = 200, text = "Line 40 of <b>Tea</b>" }

[[journey.steps]]
name = "search"
path = "/jspwiki/Wiki.jsp?page=Find"
expect = { status = 200, text = "page=Coffee\">Coffee</a></td>" }

[[journey.steps]]
name = "edit-form"
path = "/jspwiki/Edit.jsp?page=Note{user}"
expect = { status = 200 }
capture = { check = { input = "FIELD" } }

[[journey.steps]]
name = "save"
path = "/jspwiki/Edit.jsp?page=Note{user}"
content_type = "application/x-www-form-urlencoded"
body = "page=Note{user}&action=save&encodingcheck=%E3%81%81&FIELD={check}&submit_auth=&ok=Save&changenote=&_editedtext=Visit+{session}+was+here.+See+%5BTea%5D."
expect = { status = 302 }

[[journey.steps]]
name = "look"
path = "/jspwiki/Wiki.jsp?page=Note{user}"
expect = { status = 200, text = "was here" }
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journey_is_one_the_crowd_understands() {
        for (war, steps) in [(War::Examples, 7), (War::Jspwiki, 6), (War::Shop, 7)] {
            let text = war.journey(1, 150, "dqkahd");
            let workload =
                suimon_settings::journey::read(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
            assert!(workload.kinds.iter().all(|kind| kind.steps.len() == steps), "{text}");
            let of_one = f64::from(war.think_ms()) / 1e3;
            assert_eq!((war.thinking_s() / of_one).round() as usize, steps - 1);
        }
    }
}
