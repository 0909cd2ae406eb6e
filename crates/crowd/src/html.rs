//! Reads the value of an HTML `<input>`, and what a page shows to people, and only as much HTML as that takes.

/// Returns the `value` of the first `<input>` named `name`, its character references resolved.
pub(crate) fn input_value(html: &str, name: &str) -> Option<String> {
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        rest = &rest[open + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->")?.1;
            continue;
        }
        let Some(inside) = after_tag_name(rest, "input") else { continue };
        let (attributes, behind) = attributes(inside);
        rest = behind;
        let value_of = |wanted: &str| {
            attributes.iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value)
        };
        if value_of("name").is_some_and(|found| resolve(found) == name) {
            return value_of("value").map(resolve);
        }
    }
    None
}

/// Returns the text that a page shows: all that is in no tag, comment, script or style, with single blanks.
/// A page that is cut off may end anywhere.
pub(crate) fn text(html: &str) -> String {
    let mut shown = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        shown.push_str(before);
        shown.push(' ');
        let unseen = [("!--", "-->"), ("script", "</script>"), ("style", "</style>")];
        rest = match unseen.iter().find(|(begins, _)| tag.starts_with(begins)) {
            Some((_, ends)) => tag.split_once(ends).map_or("", |(_, behind)| behind),
            None => attributes(tag.trim_start_matches(|c: char| c.is_ascii_alphanumeric())).1,
        };
    }
    shown.push_str(rest);
    resolve(&shown).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn after_tag_name<'h>(text: &'h str, name: &str) -> Option<&'h str> {
    let head = text.get(..name.len())?;
    let rest = &text[name.len()..];
    let ends = rest.starts_with(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>');
    (head.eq_ignore_ascii_case(name) && ends).then_some(rest)
}

/// Returns the attributes up to the tag's end, and the text after it.
fn attributes(mut text: &str) -> (Vec<(&str, &str)>, &str) {
    let blank = |c: char| c.is_ascii_whitespace() || c == '/';
    let mut found = Vec::new();
    loop {
        text = text.trim_start_matches(blank);
        if text.is_empty() {
            return (found, text);
        }
        if let Some(behind) = text.strip_prefix('>') {
            return (found, behind);
        }
        // A stray `=` at the beginning belongs to the name, as browsers read it.
        let name_ends = text
            .char_indices()
            .skip(1)
            .find(|(_, c)| blank(*c) || *c == '=' || *c == '>')
            .map_or(text.len(), |(i, _)| i);
        let (name, rest) = text.split_at(name_ends);
        text = rest;
        let mut value = "";
        if let Some(given) = rest.trim_start().strip_prefix('=') {
            (value, text) = attribute_value(given.trim_start());
        }
        found.push((name, value));
    }
}

fn attribute_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    let ends = text.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(text.len());
    text.split_at(ends)
}

/// Resolves the character references that servers write into attribute values. Others are kept.
fn resolve(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match rest[1..].split_once(';').and_then(|(name, behind)| Some((reference(name)?, behind))) {
            Some((character, behind)) => {
                out.push(character);
                rest = behind;
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn reference(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_however_they_are_written() {
        for html in [
            r#"<input type="hidden" name="token" value="a1">"#,
            "<INPUT value='a1'\n NAME=token />",
            "<form><input name=other value=x><input name = \"token\" value = a1></form>",
            "<input disabled name=token value=a1>",
            "<inputs name=token value=x><input name=token value=a1>",
            "<!-- <input name=token value=old> --><input name=token value=a1>",
            "<input title='a > b' name=token value=a1>",
            "1 < 2 <input/name=token value=a1>",
            "<input name=token value=a1",
        ] {
            assert_eq!(input_value(html, "token").as_deref(), Some("a1"), "{html}");
        }
    }

    #[test]
    fn references_are_resolved() {
        let html = r#"<input name="a&amp;b" value="&lt;&quot;&#39;&#x41;&nope;&amp;amp;&">"#;
        assert_eq!(input_value(html, "a&b").as_deref(), Some("<\"'A&nope;&amp;&"));
    }

    #[test]
    fn a_page_shows_what_is_in_no_tag() {
        let page = "<!doctype html><style>p > a { }</style><title>Oh</title><!-- <b>no</b> --><p class='x > y'>It\n  \
                    broke: a&lt;b<script>1 < 2 > 0</script></p><a hr";
        assert_eq!(text(page), "Oh It broke: a<b");
        assert_eq!(text("plain words"), "plain words");
        assert_eq!(text(""), "");
    }

    #[test]
    fn what_is_not_there_is_none() {
        for html in [
            "",
            "<",
            "<input",
            "<input name=token>",
            "<input name=x value=token>",
            "<!-- <input name=token value=1>",
        ] {
            assert_eq!(input_value(html, "token"), None, "{html}");
        }
        assert_eq!(input_value("<input name=token value>", "token").as_deref(), Some(""));
        assert_eq!(input_value("<inpü name=token value=1>", "token"), None);
    }
}
