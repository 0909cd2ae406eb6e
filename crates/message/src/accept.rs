//! The form and language of the answer that a client asks for: `Accept` and `Accept-Language`, by
//! their weights (RFC 9110, sections 12.4.2, 12.5.1 and 12.5.4).

use http::header::{ACCEPT, ACCEPT_LANGUAGE, HeaderMap, HeaderName, HeaderValue};

/// The most entries of such a header that are read, over all its lines. Entries beyond it are
/// ignored.
const ENTRIES_MAX: usize = 32;

/// The form of an answer that the gateway itself writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// HTML, for people.
    Page,
    /// JSON, for programs that ask for it by name.
    Json,
    /// For all others: `application/problem+json`.
    Problem,
}

impl Form {
    /// Returns the form that a client prefers. A page must be asked for by name: `*/*` is what
    /// programs send that do not care.
    pub fn of(headers: &HeaderMap) -> Form {
        let (mut page, mut json, mut problem) = (0, 0, 0);
        for (name, weight) in entries(headers, &ACCEPT) {
            let best = match name {
                b if b.eq_ignore_ascii_case(b"text/html")
                    || b.eq_ignore_ascii_case(b"application/xhtml+xml") =>
                {
                    &mut page
                }
                b if b.eq_ignore_ascii_case(b"application/json") => &mut json,
                b if b.eq_ignore_ascii_case(b"application/problem+json") => &mut problem,
                _ => continue,
            };
            *best = weight.max(*best);
        }
        match (page, json, problem) {
            (0, 0, _) => Form::Problem,
            (page, json, problem) if page >= json && page >= problem => Form::Page,
            (_, json, problem) if json >= problem => Form::Json,
            _ => Form::Problem,
        }
    }
}

/// Returns the headers that tell which answer a client wants, read from the beginning of a head
/// that never arrived whole. `None`: as far as can be seen, no browser asks for a page.
pub fn of_beginning(head: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let wanted = [ACCEPT, ACCEPT_LANGUAGE]
            .into_iter()
            .find(|known| name.eq_ignore_ascii_case(known.as_str().as_bytes()));
        if let (Some(name), Ok(value)) = (wanted, HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    (Form::of(&headers) == Form::Page).then_some(headers)
}

/// Returns the index of the language in `known` that a client prefers; the first if it names none
/// of them. `known` are RFC 5646 tags, the more general before the more special.
pub fn language(headers: &HeaderMap, known: &[&str]) -> usize {
    let mut best = (0, 0);
    for (wanted, weight) in entries(headers, &ACCEPT_LANGUAGE) {
        let Some(index) = matching(wanted, known).filter(|_| weight > best.1) else { continue };
        best = (index, weight);
    }
    best.0
}

/// Returns the known language for a wanted one: the same tag, the longest beginning of it that is
/// known ("lookup", RFC 4647, section 3.4), or one that begins like it.
fn matching(wanted: &[u8], known: &[&str]) -> Option<usize> {
    let begins = |long: &[u8], short: &[u8]| {
        long.len() >= short.len()
            && long[..short.len()].eq_ignore_ascii_case(short)
            && long.get(short.len()).is_none_or(|next| *next == b'-')
    };
    // These regions write Chinese in traditional characters.
    let is_traditional =
        [&b"zh-tw"[..], b"zh-hk", b"zh-mo"].iter().any(|tag| wanted.eq_ignore_ascii_case(tag));
    let wanted = if is_traditional { b"zh-Hant" } else { wanted };
    let fits = known.iter().enumerate().filter(|(_, tag)| begins(wanted, tag.as_bytes()));
    let longest = fits.max_by_key(|(_, tag)| tag.len()).map(|(index, _)| index);
    longest.or_else(|| known.iter().position(|tag| begins(tag.as_bytes(), wanted)))
}

/// Returns the entries of a header with their weights in thousandths. Weight 0 means "refused":
/// such entries are left out.
fn entries<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = (&'a [u8], u16)> {
    let lines = headers.get_all(name).into_iter();
    let all = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    all.take(ENTRIES_MAX).filter_map(|entry| {
        let mut parts = entry.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().filter(|name| !name.is_empty())?;
        let weight = parts
            .find_map(|part| part.strip_prefix(b"q=").or(part.strip_prefix(b"Q=")))
            .map_or(Some(1000), thousandths)?;
        (weight > 0).then_some((name, weight))
    })
}

/// Returns the weight `0.5` as 500; `None` if the text is not a weight.
fn thousandths(text: &[u8]) -> Option<u16> {
    let (whole, rest) = text.split_first()?;
    let digits = match rest {
        [] => &[],
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    let mut value = match whole {
        b'0' => 0,
        b'1' => 1000,
        _ => return None,
    };
    for (digit, place) in digits.iter().zip([100, 10, 1]) {
        value += u16::from(digit.is_ascii_digit().then(|| digit - b'0')?) * place;
    }
    (value <= 1000).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;
    use suimon_testing::headers;

    #[test]
    fn the_form_is_what_is_liked_best_by_name() {
        for (lines, form) in [
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"] as &[&str], Form::Page),
            (&["application/json"], Form::Json),
            (&["application/json, text/plain, */*"], Form::Json),
            (&["text/html;q=0.4, application/json;q=0.5"], Form::Json),
            (&["text/html;q=0.5", "application/json;q=0.4"], Form::Page),
            (&["TEXT/HTML ; q=1.000"], Form::Page),
            (&["text/html;q=0, application/json;q=0.001"], Form::Json),
            (&["application/problem+json, application/json;q=0.9"], Form::Problem),
            (&["*/*"], Form::Problem),
            (&[""], Form::Problem),
            (&[], Form::Problem),
            (&["text/html;q=2", "text/html;q=0.5x"], Form::Problem),
        ] {
            assert_eq!(Form::of(&headers(&ACCEPT, lines)), form, "{lines:?}");
        }
    }

    #[test]
    fn the_language_is_the_best_there_is() {
        let known = ["en", "ja", "pt-BR", "zh", "zh-Hant"];
        for (lines, index) in [
            (&["ja,en-US;q=0.7,en;q=0.3"] as &[&str], 1),
            (&["en-GB, ja;q=0.9"], 0),
            (&["fr, ja;q=0.2"], 1),
            (&["fr"], 0),
            (&[], 0),
            (&["pt"], 2),
            (&["zh-Hant-TW"], 4),
            (&["zh-CN"], 3),
            (&["JA"], 1),
            (&["jav"], 0),
            (&["ja;q=0"], 0),
        ] {
            assert_eq!(language(&headers(&ACCEPT_LANGUAGE, lines), &known), index, "{lines:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_met_without_a_stumble(bytes in proptest::collection::vec(32_u8..=255, 0..200)) {
            let Ok(value) = HeaderValue::from_bytes(&bytes) else { return Ok(()) };
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT, value.clone());
            headers.append(ACCEPT_LANGUAGE, value);
            let _ = Form::of(&headers);
            prop_assert!(language(&headers, &["en", "ja"]) < 2);
        }
    }
}
