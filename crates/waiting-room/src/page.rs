//! The waiting page: one response, nothing fetched, complete without a script.

use super::error::ErrorPages;
use super::look::Appearance;
use super::notice::{NoticeState, WaitNotice};
use super::strip;
use super::template::{Template, Value, Values, escape};
use super::texts::{self, Texts, marked};
use super::time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use std::borrow::Cow;
use suimon_params::WaitingRoomParams;

const HTML: &str = include_str!("../pages/page.html");
const CSS: &str = include_str!("../pages/page.css");
/// Ours, for sites without a picture of their own.
pub(crate) const ICON: &str = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path stroke='%232f8fb3' stroke-width='2' d='M1 4h14M4 4v11m8-11v11M4 9h8'/></svg>";
const JS: &str = include_str!("../pages/page.js");

/// Where a text names the site.
pub(crate) const SITE: &str = "{site}";

/// The page in all languages.
#[derive(Debug)]
pub struct Pages {
    languages: Vec<Language>,
    tags: Vec<&'static str>,
    site: String,
    /// What stands before the addresses beside the page.
    pub(crate) base: String,
    /// The page's content security policy, and the same where it holds a form that is sent on: the
    /// application may answer that with a redirect elsewhere.
    policy: HeaderValue,
    policy_with_form: HeaderValue,
    pub(crate) errors: ErrorPages,
    /// Whether there are addresses beside the page, where a visitor's choices are taken.
    pub(crate) has_internal_endpoints: bool,
}

#[derive(Debug)]
struct Language {
    words: Texts,
    template: Template,
    /// The script's words, by state: those of the state itself are on the page.
    for_script: Vec<String>,
    /// Where the site has no name but its host's: texts that name it, by their places.
    naming: Vec<(String, String)>,
}

/// What a page says beside the status.
#[derive(Clone, Debug, Default)]
pub struct PageDetails<'a> {
    /// The requested host, and path and query of the page.
    pub host: &'a str,
    /// See `host`.
    pub url: &'a str,
    /// The share of the wait that is over, per cent.
    pub progress: u32,
    /// The form that was sent and is kept in the page: its type, and its fields.
    pub form: Option<&'a Form>,
    /// Whether something was sent that is not kept.
    pub form_lost: bool,
    /// Whether the page may reload by itself where there is no script.
    pub refresh: bool,
    /// A code that was requested without a script.
    pub device_code: &'a str,
    /// Whether the entered code is wrong, or no longer valid.
    pub device_wrong: bool,
    /// The hash of the seed by which lots are drawn at the opening, hexadecimal.
    pub seed_hash: &'a str,
    /// Seconds until it is worth coming back, where no place could be given.
    pub retry_after: u32,
}

/// A form that was sent and could not be admitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// Its fields, in their order.
    pub fields: Vec<(String, String)>,
}

impl Pages {
    /// Returns the pages of a site with the operator's look; `template` in place of our waiting
    /// page.
    pub fn of(params: &WaitingRoomParams, template: Option<String>, has_internal_endpoints: bool) -> Pages {
        Pages::new(&Appearance::of(params, template), has_internal_endpoints)
    }

    /// Returns the pages of a site that looks like this; `template` in place of ours, if the
    /// operator has one.
    pub fn new(look: &Appearance, has_internal_endpoints: bool) -> Pages {
        let (style, script) = (strip::css(CSS), strip::js(JS));
        let template = look.template.clone().unwrap_or_else(|| strip::html(HTML));
        let template = Template::new(&template);
        let colours = look.style();
        let all = texts::all();
        let names: Vec<(&str, String)> = all.iter().map(|words| (words.tag, words.name.clone())).collect();
        let languages = all.into_iter().map(|words| {
            let listed = names.iter().map(|(tag, name)| {
                Values::from([
                    ("code", Value::text(*tag)),
                    ("name", Value::text(name.as_str())),
                    ("current", Value::Flag(*tag == words.tag)),
                ])
            });
            let mut values = Values::from([
                ("lang", Value::text(words.tag)),
                ("rtl", Value::Flag(words.is_rtl)),
                ("style", Value::raw(style.as_str())),
                ("script", Value::raw(script.as_str())),
                ("colours", Value::raw(colours.as_str())),
                ("base", Value::text(look.base.as_str())),
                // The operator's picture stands for the site; ours stands for none.
                ("icon", look.logo.as_deref().map_or(Value::raw(ICON), Value::text)),
                ("logo", Value::text(look.logo.as_deref().unwrap_or_default())),
                ("languages", Value::List(listed.collect())),
            ]);
            let texts = words
                .page
                .iter()
                .filter_map(|(key, text)| Some((format!("t.{key}"), look.fill(text.as_str()?))));
            let (naming, texts): (Vec<_>, Vec<_>) = texts.partition(|(_, text)| text.contains(SITE));
            values.extend(texts.iter().map(|(key, text)| (key.as_str(), Value::text(text.as_str()))));
            if !look.name.is_empty() {
                values.insert("site_name", Value::text(look.name.as_str()));
            }
            let template = template.with(&values);
            let for_script = NoticeState::ALL.iter().map(|state| for_script(&words, state.name())).collect();
            Language { template, for_script, naming, words }
        });
        let languages: Vec<Language> = languages.collect();
        let policy = |form_action: &str| {
            let own_picture = if look.logo.is_some() { " 'self'" } else { "" };
            let of_colours =
                if colours.is_empty() { String::new() } else { format!(" {}", source_hash(&colours)) };
            let text = format!(
                "default-src 'none'; style-src {}{of_colours}; script-src {}; connect-src 'self'; img-src data:{own_picture}; {form_action}base-uri 'none'; frame-ancestors 'none'",
                source_hash(&style),
                source_hash(&script),
            );
            HeaderValue::try_from(text).expect("hashes and our own words are visible ASCII")
        };
        Pages {
            tags: languages.iter().map(|language| language.words.tag).collect(),
            languages,
            site: look.name.clone(),
            base: look.base.clone(),
            policy: policy("form-action 'self'; "),
            policy_with_form: policy(""),
            errors: ErrorPages::new(look, texts::all(), &style, &colours),
            has_internal_endpoints,
        }
    }

    /// Returns the tags of the languages, by their index.
    pub fn tags(&self) -> &[&'static str] {
        &self.tags
    }

    /// Returns the language of this tag, or that calls itself so.
    pub fn language(&self, name: &str) -> Option<usize> {
        self.languages
            .iter()
            .position(|language| language.words.tag.eq_ignore_ascii_case(name) || language.words.name == name)
    }

    /// Returns the page's content security policy.
    pub fn policy(&self, extras: &PageDetails<'_>) -> HeaderValue {
        if extras.form.is_some() { self.policy_with_form.clone() } else { self.policy.clone() }
    }

    /// Returns the page, in the language of this index.
    pub fn render(&self, language: usize, notice: &WaitNotice, extras: &PageDetails<'_>) -> String {
        let Language { words, template, for_script, naming } =
            &self.languages[language.min(self.languages.len() - 1)];
        let state = notice.state;
        let site = if self.site.is_empty() { extras.host } else { &self.site };
        let (heading, mut lead) = words.state(state.name());
        let heading = heading.replace(SITE, site);
        let full;
        let (mut big, mut brief, mut sub) = (String::new(), String::new(), String::new());
        match state {
            NoticeState::Opening => {
                if let Some(at) = notice.opens_at {
                    (big, sub) = (time::clock(at), time::day(at));
                    brief.clone_from(&big);
                }
                // Without lots people are admitted in the order they came.
                if extras.seed_hash.is_empty() {
                    lead =
                        words.page.get("opening_in_turn").and_then(serde_json::Value::as_str).unwrap_or(lead);
                }
            }
            NoticeState::Full => {
                full = lead.replace("{n}", &extras.retry_after.max(2).to_string());
                lead = &full;
            }
            NoticeState::Waiting
            | NoticeState::Soon
            | NoticeState::Next
            | NoticeState::Paused
            | NoticeState::ApplicationDown => {
                if let Some((low, high)) = notice.eta {
                    (big, brief) = words.wait(low, high);
                }
                if let Some(ahead) = notice.ahead {
                    sub = words.say("ahead").replace("{n}", &words.number(ahead));
                }
            }
            NoticeState::YourTurn | NoticeState::Closed | NoticeState::Pass => {}
        }
        let title = match brief.as_str() {
            "" => format!("{heading} – {site}"),
            brief => format!("({brief}) {site}"),
        };
        let go = match state {
            NoticeState::YourTurn => words.say("enter"),
            NoticeState::Pass => {
                words.page.get("pass_go").and_then(serde_json::Value::as_str).unwrap_or_default()
            }
            _ => words.say("check"),
        };
        let index = NoticeState::ALL.iter().position(|other| *other == state).unwrap_or_default();
        // A page that answers a form has no link that would lose what was sent.
        let has_form = extras.form.is_some();
        let mut values = Values::from([
            ("site_name", Value::text(site)),
            ("state", Value::text(state.name())),
            ("words", Value::raw(with_now(&for_script[index], notice, site))),
            ("title", Value::text(title)),
            ("heading", Value::text(heading.as_str())),
            ("lead", Value::text(lead)),
            ("big", Value::raw(marked(&big))),
            ("sub", Value::text(sub)),
            ("notes", Value::text(if notice.is_slower { words.say("slower") } else { "" })),
            ("message", Value::text(notice.message.as_str())),
            ("progress", Value::text(extras.progress.min(100).to_string())),
            ("updated", Value::text(time::clock(notice.updated_at))),
            ("url", Value::text(notice.pass_url.as_deref().unwrap_or(extras.url))),
            ("go", Value::text(go)),
            ("seed_hash", Value::text(if state == NoticeState::Opening { extras.seed_hash } else { "" })),
            ("post", Value::Flag(has_form)),
            ("post_type", Value::text("application/x-www-form-urlencoded")),
            ("post_fields", Value::raw(extras.form.map_or(Cow::Borrowed(""), |form| form.html().into()))),
            ("post_lost", Value::Flag(extras.form_lost)),
            ("device_code", Value::text(extras.device_code)),
            ("device_wrong", Value::Flag(extras.device_wrong)),
            ("device_open", Value::Flag(extras.device_wrong || !extras.device_code.is_empty())),
            ("link", Value::Flag(!has_form)),
            ("switch", Value::Flag(!has_form)),
            ("device", Value::Flag(!has_form)),
            ("refresh", Value::Flag(extras.refresh && !has_form)),
            ("refresh_after", Value::raw(if state == NoticeState::Next { "10" } else { "60" })),
            (
                "placed",
                Value::Flag(!matches!(state, NoticeState::Full | NoticeState::Closed | NoticeState::Pass)),
            ),
        ]);
        values.extend(naming.iter().map(|(key, text)| (key.as_str(), Value::text(text.replace(SITE, site)))));
        template.fill(&values)
    }
}

/// Fields of a form that are kept; one with more is not.
const FIELDS_MAX: usize = 500;

impl Form {
    /// Returns the form that was sent as `application/x-www-form-urlencoded`; `None`: sending it
    /// again would not reproduce it.
    pub fn parse(sent: &[u8]) -> Option<Form> {
        let fields: Vec<(String, String)> =
            form_urlencoded::parse(sent).into_owned().take(FIELDS_MAX + 1).collect();
        let is_text = |text: &str| !text.contains(['\u{fffd}', '\0']);
        (fields.len() <= FIELDS_MAX && fields.iter().all(|(name, text)| is_text(name) && is_text(text)))
            .then_some(Form { fields })
    }

    /// Returns the fields as hidden ones: text areas, which keep line ends.
    fn html(&self) -> String {
        let mut out = String::new();
        for (name, text) in &self.fields {
            out.push_str("<textarea hidden name=\"");
            escape(name, &mut out);
            // The first line end after the tag is HTML's own.
            out.push_str("\">\n");
            escape(text, &mut out);
            out.push_str("</textarea>");
        }
        out
    }
}

/// Returns the script's texts for states other than this one, as JSON that can stand inside of
/// `<script>`.
fn for_script(words: &Texts, state: &str) -> String {
    let mut others = words.script.clone();
    others.remove(state);
    serde_json::Value::Object(others).to_string().replace('<', "\\u003c")
}

/// Returns the script's words, with the site's name in them, and the status when the page is
/// written, so that it need not poll first.
fn with_now(words: &str, notice: &WaitNotice, site: &str) -> String {
    let site = serde_json::Value::from(site).to_string().replace('<', "\\u003c");
    // Within a text, whose quotes are there.
    let words = words.replace(SITE, &site[1..site.len() - 1]);
    format!(
        "{{\"now\":{},{}",
        notice.json().replace('<', "\\u003c"),
        words.strip_prefix('{').unwrap_or_default()
    )
}

pub(crate) fn source_hash(text: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    format!("'sha256-{}'", STANDARD.encode(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The maximum size of a page: with its head it comes with the first ten packets, which a
    /// server sends without waiting for an acknowledgement.
    const BYTES_MAX: usize = 14_000;

    fn notice(state: NoticeState) -> WaitNotice {
        let waits = matches!(
            state,
            NoticeState::Waiting
                | NoticeState::Soon
                | NoticeState::Next
                | NoticeState::Paused
                | NoticeState::ApplicationDown
        );
        WaitNotice {
            state,
            position: Some(1310),
            ahead: waits.then_some(1204),
            eta: matches!(state, NoticeState::Waiting | NoticeState::Soon | NoticeState::Next)
                .then_some((372, 538)),
            is_slower: false,
            poll_after: 12,
            updated_at: 1_752_238_722,
            opens_at: (state == NoticeState::Opening).then_some(1_752_300_000),
            expires_at: (state == NoticeState::Next).then_some(1_752_239_000),
            pass_url: (state == NoticeState::Pass).then(|| "/human?back=%2F".to_owned()),
            message: String::new(),
        }
    }

    fn look() -> Appearance {
        Appearance { name: "Riverside Tickets".to_owned(), ..Appearance::default() }
    }

    #[test]
    fn every_state_is_told_in_every_language_in_one_small_page_without_a_place_left() {
        let pages = Pages::new(&look(), true);
        for state in NoticeState::ALL {
            for (index, tag) in pages.tags().iter().enumerate() {
                let extras = PageDetails {
                    url: "/concerts/42?seats=2",
                    progress: 38,
                    refresh: true,
                    ..PageDetails::default()
                };
                let page = pages.render(index, &notice(state), &extras);
                assert!(page.len() < BYTES_MAX, "{tag} {state:?}: {}", page.len());
                assert!(page.contains(&format!("<html lang={tag}")), "{page}");
                let script = strip::js(JS);
                assert!(!page.replace(&script, "").contains("{{"), "{page}");
                let (heading, _) = pages.languages[index].words.state(state.name());
                let heading = heading.replace(SITE, "Riverside Tickets");
                assert!(page.contains(&format!("<h1 id=heading>{heading}</h1>")), "{tag} {state:?}: {page}");
            }
        }
    }

    #[test]
    fn all_own_addresses_of_a_page_stand_below_its_base_path() {
        let addresses = |base: &str| {
            let look = Appearance { base: base.to_owned(), ..look() };
            let page = Pages::new(&look, true).render(
                0,
                &notice(NoticeState::Waiting),
                &PageDetails { refresh: true, ..PageDetails::default() },
            );
            let own = page.split('"').filter(|text| text.contains("/.well-known/")).map(str::to_owned);
            own.collect::<Vec<_>>()
        };
        let names = ["language", "refresh?off", "code", "position"];
        assert_eq!(addresses(""), names.map(|name| format!("/.well-known/suimon/{name}")));
        assert_eq!(addresses("/shop"), names.map(|name| format!("/shop/.well-known/suimon/{name}")));
    }

    #[test]
    fn whatever_was_sent_or_asked_for_is_text_and_nothing_else() {
        let evil = "\"><script>alert(1)</script>{{style}}";
        let form = Form { fields: vec![(evil.to_owned(), format!("\n{evil}</textarea>"))] };
        let extras = PageDetails { url: evil, form: Some(&form), ..PageDetails::default() };
        let mut notice = notice(NoticeState::Waiting);
        notice.message = evil.to_owned();
        let page =
            Pages::new(&Appearance { name: evil.to_owned(), ..look() }, true).render(0, &notice, &extras);
        assert!(!page.contains("<script>alert"), "{page}");
        assert_eq!(page.matches("</textarea>").count(), 1, "{page}");
    }

    #[test]
    fn the_policy_knows_what_is_on_the_page_by_its_hash() {
        let pages = Pages::new(&look(), true);
        let policy = pages.policy(&PageDetails::default());
        let page = pages.render(0, &notice(NoticeState::Waiting), &PageDetails::default());
        for (begin, end) in [("<style>", "</style>"), ("<script>", "</script>")] {
            let text = page.split(begin).nth(1).unwrap().split(end).next().unwrap();
            assert!(policy.to_str().unwrap().contains(&source_hash(text)), "{begin}");
        }
    }
}
