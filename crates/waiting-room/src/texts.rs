//! The languages of the waiting page, and how each of them writes numbers and times.

use super::template::escape;
use serde_json::{Map, Value};

/// The languages' files: their tags, and what is in them. English, the fallback for all others, is
/// the first; the more general before the more special. A new language is a file beside these, and
/// its row here.
const FILES: &[(&str, &str)] = &[
    ("en", include_str!("../pages/languages/en.json")),
    ("ja", include_str!("../pages/languages/ja.json")),
    ("ar", include_str!("../pages/languages/ar.json")),
    ("de", include_str!("../pages/languages/de.json")),
    ("es", include_str!("../pages/languages/es.json")),
    ("fr", include_str!("../pages/languages/fr.json")),
    ("he", include_str!("../pages/languages/he.json")),
    ("hi", include_str!("../pages/languages/hi.json")),
    ("id", include_str!("../pages/languages/id.json")),
    ("it", include_str!("../pages/languages/it.json")),
    ("ko", include_str!("../pages/languages/ko.json")),
    ("nl", include_str!("../pages/languages/nl.json")),
    ("pl", include_str!("../pages/languages/pl.json")),
    ("pt-BR", include_str!("../pages/languages/pt-BR.json")),
    ("ru", include_str!("../pages/languages/ru.json")),
    ("th", include_str!("../pages/languages/th.json")),
    ("tr", include_str!("../pages/languages/tr.json")),
    ("vi", include_str!("../pages/languages/vi.json")),
    ("zh-Hans", include_str!("../pages/languages/zh-Hans.json")),
    ("zh-Hant", include_str!("../pages/languages/zh-Hant.json")),
];

/// Longer waits are shown in hours, seconds.
const HOURS_ABOVE: u32 = 5400;
/// Up to here minutes are shown one by one, above by fives, seconds.
const FIVES_ABOVE: u32 = 900;

/// One language.
#[derive(Debug)]
pub(crate) struct Texts {
    /// Its tag (RFC 5646).
    pub tag: &'static str,
    /// Its own name for itself.
    pub name: String,
    pub(crate) is_rtl: bool,
    thousands: String,
    thousands_from: u64,
    decimal: String,
    /// Texts that the page's script uses, too.
    pub(crate) script: Map<String, Value>,
    /// Texts of the page only.
    pub(crate) page: Map<String, Value>,
    /// Texts where the application gives no page.
    error: Map<String, Value>,
}

/// Returns all languages.
pub(crate) fn all() -> Vec<Texts> {
    FILES.iter().map(|&(tag, text)| Texts::read(tag, text)).collect()
}

impl Texts {
    fn read(tag: &'static str, text: &str) -> Texts {
        let Ok(Value::Object(mut file)) = serde_json::from_str(text) else {
            panic!("the words of {tag} are ours: an object, as a test has seen")
        };
        let mut part = |name: &str| match file.remove(name) {
            Some(Value::Object(part)) => part,
            _ => Map::new(),
        };
        let (script, page, error) = (part("script"), part("page"), part("error"));
        let text = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Texts {
            tag,
            name: text("name"),
            is_rtl: text("dir") == "rtl",
            thousands: text("thousands"),
            thousands_from: file.get("thousands_from").and_then(Value::as_u64).unwrap_or(u64::MAX),
            decimal: text("decimal"),
            script,
            page,
            error,
        }
    }

    /// Returns the words for `key` that the script says, too.
    pub(crate) fn say(&self, key: &str) -> &str {
        self.script.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the text for `key` where the application gives no page: of texts in two parts, the
    /// one of this index.
    pub(crate) fn error(&self, key: &str, index: usize) -> &str {
        let text = self.error.get(key);
        text.and_then(|text| text.get(index).unwrap_or(text).as_str()).unwrap_or_default()
    }

    /// Returns the name of a state, and the line below.
    pub(crate) fn state(&self, state: &str) -> (&str, &str) {
        let words = self.script.get(state).or_else(|| self.page.get(state));
        let at = |index| words.and_then(|pair| pair.get(index)).and_then(Value::as_str).unwrap_or_default();
        (at(0), at(1))
    }

    /// Returns a whole number with this language's separators.
    pub(crate) fn number(&self, number: u64) -> String {
        let digits = number.to_string();
        if number < self.thousands_from {
            return digits;
        }
        let mut out = String::with_capacity(digits.len() * 2);
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                out.push_str(&self.thousands);
            }
            out.push(digit);
        }
        out
    }

    /// Returns how a wait between `low` and `high` seconds is shown: on the page, and in its title.
    /// The page's script has the same rule.
    pub(crate) fn wait(&self, low: u32, high: u32) -> (String, String) {
        let (from, to) = rounded(low, high);
        let unit = if high > HOURS_ABOVE { 3600 } else { 60 };
        let words = self.script.get(if unit == 3600 { "3600" } else { "60" });
        let at = |index| words.and_then(|pair| pair.get(index)).and_then(Value::as_str).unwrap_or_default();
        let (text, short) = (at(0), at(1));
        if high <= 60 {
            return (self.say("minute").to_owned(), format!("<1{short}"));
        }
        let (a, b) = (self.units(from, unit), self.units(to, unit));
        (text.replace("{a}", &a).replace("{b}", &b), format!("{a}–{b}{short}"))
    }

    /// Returns `seconds` in units: whole ones, or halves.
    fn units(&self, seconds: u32, unit: u32) -> String {
        let whole = self.number(u64::from(seconds / unit));
        if seconds.is_multiple_of(unit) { whole } else { format!("{whole}{}5", self.decimal) }
    }
}

/// Returns a wait between `low` and `high` seconds as it is shown, seconds.
///
/// Minutes up to 15, fives up to 90, then half hours; the lower end is rounded down, the upper one
/// up, so that the range shown is never narrower than the known one.
pub(crate) fn rounded(low: u32, high: u32) -> (u32, u32) {
    let step = match high {
        high if high > HOURS_ABOVE => 1800,
        high if high > FIVES_ABOVE => 300,
        _ => 60,
    };
    let from = low / step * step;
    (from, high.div_ceil(step).saturating_mul(step).max(from + step))
}

/// Returns `text` as HTML in which each number stands out.
pub(crate) fn marked(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        escape(&rest[..at], &mut out);
        let end = rest[at..].find(|letter: char| !(letter.is_ascii_digit() || ".,:".contains(letter)));
        let (number, after) = rest[at..].split_at(end.unwrap_or(rest.len() - at));
        out.extend(["<b>", number, "</b>"]);
        rest = after;
    }
    escape(rest, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_language_has_every_word_and_no_other() {
        let languages = all();
        let english = &languages[0];
        for (words, (tag, text)) in languages.iter().zip(FILES) {
            assert!(serde_json::from_str::<Value>(text).unwrap().is_object(), "{tag}");
            assert!(
                !words.name.is_empty() && words.thousands_from >= 1000 && !words.decimal.is_empty(),
                "{tag}"
            );
            for (own, known) in [
                (&words.script, &english.script),
                (&words.page, &english.page),
                (&words.error, &english.error),
            ] {
                assert!(own.keys().eq(known.keys()), "{tag}: {:?}", own.keys().collect::<Vec<_>>());
                for (key, value) in own {
                    assert_eq!(placeholders(value), placeholders(&known[key]), "{tag}: {key}");
                }
            }
        }
    }

    #[test]
    fn every_file_of_a_language_has_its_row() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("pages/languages");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let mut rows: Vec<&str> = FILES.iter().map(|(tag, _)| *tag).collect();
        files.sort();
        rows.sort_unstable();
        assert_eq!(files, rows);
    }

    fn placeholders(value: &Value) -> Vec<String> {
        let text = value.to_string();
        let mut found: Vec<String> =
            text.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0.to_owned())).collect();
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn what_is_told_is_never_narrower_than_what_is_known() {
        let english = &all()[0];
        for (low, high, text, short) in [
            (0, 60, "less than a minute left", "<1 min"),
            (0, 61, "0 to 2 minutes left", "0–2 min"),
            (372, 538, "6 to 9 minutes left", "6–9 min"),
            (540, 540, "9 to 10 minutes left", "9–10 min"),
            (1320, 2050, "20 to 35 minutes left", "20–35 min"),
            (8200, 11_900, "2 to 3.5 hours left", "2–3.5 h"),
        ] {
            assert_eq!(english.wait(low, high), (text.to_owned(), short.to_owned()), "{low} {high}");
        }
        assert_eq!(english.number(1_234_567), "1,234,567");
        assert_eq!(marked("6 to 9 <minutes>"), "<b>6</b> to <b>9</b> &lt;minutes&gt;");
    }
}
