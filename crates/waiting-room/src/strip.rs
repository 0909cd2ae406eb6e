//! The sources of the waiting page without comments and other parts for readers. Done once, when
//! the process starts.
//!
//! `minifier` knows styles and scripts; it does not rename, and our templates are not HTML yet, so
//! that is here. These rules hold for these sources, not for any: double quotes are around whole
//! strings of the script.

use std::collections::{HashMap, HashSet};

/// Names that the script gives to things of its own, for which a letter does, or two: a thousand
/// bytes of the page, which languages need whose letters have three. What is named on the page
/// stays, and what the browser's test calls from outside: `state now slow take poll`.
const OWN_NAMES: &str = "words high answer turn reply pressed locale fewest sound heard show passed misses left least channel rest name title others first \
    enters enter crowd began text step part store shown opens later going fresh clock ahead root asks tabs asked tone seconds timer short press early chime waited \
    unit told said range gone gain from event calm call";
/// Line ends before these have no meaning either.
const BLOCKS: [&str; 23] = [
    "html", "meta", "title", "link", "style", "script", "noscript", "header", "main", "div", "p", "h1", "h2",
    "form", "select", "ul", "li", "details", "summary", "svg", "progress", "body", "head",
];

/// Returns a style sheet without comments and meaningless spaces.
pub(crate) fn css(text: &str) -> String {
    let style = minifier::css::minify(text).expect("it is our own style sheet");
    style.to_string().replace(";}", "}").trim().to_owned()
}

/// Returns a script without comments, indentation, meaningless spaces and line ends, and with
/// letters for its own names.
pub(crate) fn js(text: &str) -> String {
    with_letters(&minifier::js::minify(text).to_string().replace(";}", "}"))
}

/// Returns the script with a letter for each of its own names, the same one wherever it stands for
/// a thing and not for a part of one: `.name`, `{name:`.
fn with_letters(script: &str) -> String {
    let is_inside = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$';
    let taken: HashSet<&str> = script.split(|letter| !is_inside(letter)).collect();
    let ours =
        ('a'..='z').chain('A'..='Z').map(String::from).chain(('a'..='z').map(|letter| format!("a{letter}")));
    let free = ours.filter(|letters| !taken.contains(letters.as_str()));
    let mut letters: HashMap<&str, String> = OWN_NAMES.split_whitespace().zip(free).collect();
    letters.insert("const", "let".to_owned());
    let mut out = String::with_capacity(script.len());
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => rest[1..].find('"').map(|end| end + 2),
            first if is_inside(first) => rest.find(|letter| !is_inside(letter)),
            first => Some(first.len_utf8()),
        };
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        let is_part = out.ends_with('.') && !out.ends_with("...")
            || out.ends_with(['{', ',']) && after.starts_with(':');
        let letter = letters.get(piece).filter(|_| !is_part);
        out.push_str(letter.map_or(piece, String::as_str));
        rest = after;
    }
    out
}

/// Returns a template without indentation, quotes around plain attributes, and line ends that say
/// nothing.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = unquote(line);
        let tag =
            line.trim_start_matches(['<', '/']).split(|letter: char| !letter.is_ascii_alphanumeric()).next();
        let is_block = line.starts_with('<') && tag.is_some_and(|tag| BLOCKS.contains(&tag));
        if !(out.is_empty() || is_block || ends_with_lone_mark(&out)) {
            out.push('\n');
        }
        out.push_str(&line);
    }
    out.push('\n');
    out
}

/// Returns the line with `="word"` as `=word`.
fn unquote(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("=\"") {
        out.push_str(before);
        out.push('=');
        match after.split_once('"') {
            Some((value, after)) if is_plain(value) => {
                out.push_str(value);
                rest = after;
            }
            Some((value, after)) => {
                out.extend(["\"", value, "\""]);
                rest = after;
            }
            None => {
                out.push('"');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
}

/// Returns whether the last line holds only marks of sections, whose line end belongs to nothing.
fn ends_with_lone_mark(out: &str) -> bool {
    let last = out.rsplit('\n').next().unwrap_or_default();
    last.starts_with("{{")
        && last.ends_with("}}")
        && last.split("}}").all(|part| part.is_empty() || part.starts_with("{{#") || part.starts_with("{{/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_sheet_keeps_what_it_says() {
        let text = "/* note */\n.a, b > c {\n  color: var(--x, #fff);\n  font: 1rem/1.6 a, b;\n}\n.a :is(#b, c) { content: \"a ; b\" }\n";
        assert_eq!(css(text), ".a,b>c{color:var(--x,#fff);font:1rem/1.6 a,b}.a :is(#b,c){content:\"a ; b\"}");
    }

    #[test]
    fn a_script_keeps_what_it_says() {
        let text = "// note\nlet a = 1, b = \"x = y\";\nfunction f(a) {\n  return a ?\n    `a + b` : b;\n}\n";
        assert_eq!(js(text), "let a=1,b=\"x = y\";function f(a){return a?`a + b`:b}");
    }

    #[test]
    fn a_script_keeps_the_names_that_others_know() {
        let text = "let high = words.high, a = [...words];\nshow({ high: high ? turn : reply }, \"high\", high_s, `${high}`);\n";
        assert_eq!(js(text), "let c=b.high,a=[...b];l({high:c?e:f},\"high\",high_s,`${c}`);");
    }

    #[test]
    fn no_name_of_the_script_is_one_of_the_page() {
        let page = include_str!("../pages/page.html");
        for name in OWN_NAMES.split_whitespace() {
            assert!(!page.contains(&format!("id=\"{name}\"")), "{name}");
            assert!(!page.contains(&format!("name=\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn a_template_keeps_what_it_says() {
        let text =
            "<p id=\"big\" class=\"a b\">\n  {{big}}\n</p>\n{{#post}}\n<b>x</b>\n{{/post}}\n<b>y</b>\n";
        assert_eq!(
            html(text),
            "<p id=big class=\"a b\">\n{{big}}</p>\n{{#post}}<b>x</b>\n{{/post}}<b>y</b>\n"
        );
    }
}
