//! What a declared route asks of a query, in addition to its path.
//!
//! Applications behind a front controller have one path, and the query tells their pages apart. A
//! query is read once per request, however many routes name parameters, and not at all if no route
//! of the path does.
//!
//! It is read as browsers write it and nearly all applications read it: `&` between parameters,
//! names and values decoded once, so that `?%73=x` cannot disguise `?s=x`. Some applications alone
//! read other forms: `s[]`, `;` between parameters, a form sent with POST; PHP also a name with a
//! space before it, a NUL in it, or `.` for `_`. Here such a form is another parameter, or none,
//! and the request belongs to the route of its path.

use crate::spelling::encoded_byte;
use std::collections::{BTreeMap, BTreeSet};

/// Query parameters that requests of a declared route must have: `s`, `page=search`, or both as
/// `s&page=search`.
///
/// Two patterns are equal if they ask the same, however they are written.
#[derive(Clone, Debug)]
pub struct QueryPattern {
    written: String,
    /// In order of their names.
    conditions: Vec<Condition>,
}

/// A parameter that a query must have. Its text is decoded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Condition {
    name: Box<[u8]>,
    /// `None`: any.
    value: Option<Box<[u8]>>,
}

impl PartialEq for QueryPattern {
    fn eq(&self, other: &Self) -> bool {
        self.conditions == other.conditions
    }
}

impl Eq for QueryPattern {}

impl QueryPattern {
    /// The most parameters that one route may name.
    pub const PARAMETERS_MAX: usize = 8;
    /// The most bytes of a pattern as written: it is part of every name of its route.
    pub const WRITTEN_MAX: usize = 512;
    /// The most bytes of a name or a value, decoded.
    pub const BYTES_MAX: usize = 128;
    /// The most conditions of all routes together, each counted once. Any beyond it are never met.
    pub const ALL_MAX: usize = 1024;

    /// Returns the pattern that `text` describes, which is what follows the `?`. A parameter
    /// without `=` may have any value. Names and values are decoded.
    ///
    /// # Errors
    /// What the text would have to be; continues the words "must be".
    pub fn parse(text: &str) -> Result<QueryPattern, String> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err("a route with a query as it stands in a URL: other signs are written as % and two hexadecimal digits".to_owned());
        }
        if text.contains(['*', '{', '}']) {
            return Err(
                "a route without *, { or } in its query: a parameter without a value, such as \"GET /?s\", stands for any value (the signs \
                 themselves are written %2A, %7B and %7D)"
                    .to_owned(),
            );
        }
        if text.len() > Self::WRITTEN_MAX {
            return Err(format!("a route with a query of at most {} bytes", Self::WRITTEN_MAX));
        }
        let mut conditions = Vec::new();
        for parameter in text.split('&') {
            conditions.push(Condition::parse(parameter)?);
        }
        if conditions.len() > Self::PARAMETERS_MAX {
            return Err(format!("a route with at most {} parameters in its query", Self::PARAMETERS_MAX));
        }
        conditions.sort();
        if let Some(twice) = conditions.windows(2).find(|pair| pair[0].name == pair[1].name) {
            let name = String::from_utf8_lossy(&twice[0].name);
            return Err(format!(
                "a route that names each parameter of its query once ({name} is there twice)"
            ));
        }
        Ok(QueryPattern { written: text.to_owned(), conditions })
    }

    /// Returns the text that it was read from.
    pub fn as_written(&self) -> &str {
        &self.written
    }

    /// Returns how much it asks: the number of parameters, and how many of them have a value.
    pub(super) fn rank(&self) -> (usize, usize) {
        let with_value = self.conditions.iter().filter(|condition| condition.value.is_some());
        (self.conditions.len(), with_value.count())
    }

    /// Returns how many different conditions these patterns have together; [`Self::ALL_MAX`] is its
    /// bound.
    pub fn count<'a>(patterns: impl Iterator<Item = &'a QueryPattern>) -> usize {
        patterns.flat_map(|pattern| &pattern.conditions).collect::<BTreeSet<_>>().len()
    }
}

impl Condition {
    fn parse(parameter: &str) -> Result<Condition, String> {
        let (name, value) = match parameter.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (parameter, None),
        };
        if name.is_empty() {
            return Err(
                "a route whose query names parameters, with & between them, such as \"GET /?s\" or \"GET /index.php?page=search\"".to_owned()
            );
        }
        Ok(Condition { name: read(name)?, value: value.map(read).transpose()? })
    }
}

/// Returns a name or a value of a pattern, decoded.
fn read(text: &str) -> Result<Box<[u8]>, String> {
    if bytes(text.as_bytes()).any(|byte| byte.is_none()) {
        return Err(
            "a route with two hexadecimal digits behind each % in its query (the sign itself is %25)"
                .to_owned(),
        );
    }
    let text: Vec<u8> = bytes(text.as_bytes()).flatten().collect();
    if text.len() > QueryPattern::BYTES_MAX {
        return Err(format!(
            "a route with names and values of at most {} bytes in its query",
            QueryPattern::BYTES_MAX
        ));
    }
    Ok(text.into())
}

/// The conditions of all declared routes, by number.
#[derive(Default, Debug)]
pub(super) struct Conditions {
    names: BTreeMap<Box<[u8]>, Named>,
    count: usize,
}

/// The conditions on parameters of one name.
#[derive(Default, Debug)]
struct Named {
    /// The number of the condition that the parameter is present.
    any: Option<usize>,
    /// The number of the condition for each value.
    values: BTreeMap<Box<[u8]>, usize>,
}

impl Conditions {
    /// Returns the number of each condition of `pattern`; new conditions get new numbers.
    pub(super) fn add(&mut self, pattern: &QueryPattern) -> Vec<usize> {
        let mut add = |condition: &Condition| {
            let named = self.names.entry(condition.name.clone()).or_default();
            let known = match &condition.value {
                None => named.any.get_or_insert(self.count),
                Some(value) => named.values.entry(value.clone()).or_insert(self.count),
            };
            self.count += usize::from(*known == self.count);
            *known
        };
        pattern.conditions.iter().map(&mut add).collect()
    }

    /// Returns which conditions a query meets. One parameter of a name is enough, whichever it is.
    pub(super) fn met_by(&self, query: &str) -> ConditionsMet {
        let mut met = ConditionsMet::default();
        let (mut name_room, mut value_room) = ([0; QueryPattern::BYTES_MAX], [0; QueryPattern::BYTES_MAX]);
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let named = decoded(name, &mut name_room).and_then(|name| self.names.get(name));
            let Some(named) = named else { continue };
            // Whatever its value: an invalid one must not let a request escape its route.
            if let Some(number) = named.any {
                met.note(number);
            }
            if !named.values.is_empty()
                && let Some(number) =
                    decoded(value, &mut value_room).and_then(|value| named.values.get(value))
            {
                met.note(*number);
            }
        }
        met
    }
}

/// The conditions that a query meets, by number.
#[derive(Default)]
pub(super) struct ConditionsMet([u64; QueryPattern::ALL_MAX / 64]);

impl ConditionsMet {
    fn note(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    /// Returns whether all of these conditions are met.
    pub(super) fn has_all(&self, numbers: &[usize]) -> bool {
        numbers
            .iter()
            .all(|number| self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1))
    }
}

/// Returns a name or a value of a request, decoded, in `waiting_room` if need be. `None`: an escape
/// is invalid, or it is longer than any pattern's may be.
fn decoded<'a>(text: &'a str, waiting_room: &'a mut [u8; QueryPattern::BYTES_MAX]) -> Option<&'a [u8]> {
    let text = text.as_bytes();
    if memchr::memchr2(b'%', b'+', text).is_none() {
        return Some(text);
    }
    let mut length = 0;
    for byte in bytes(text) {
        *waiting_room.get_mut(length)? = byte?;
        length += 1;
    }
    Some(&waiting_room[..length])
}

/// Returns the bytes that a part of a query stands for; `None` for a percent sign that does not
/// begin an escape.
fn bytes(mut rest: &[u8]) -> impl Iterator<Item = Option<u8>> {
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let byte = match first {
            b'%' => encoded_byte(rest),
            b'+' => Some(b' '),
            plain => Some(plain),
        };
        rest = &rest[if first == b'%' && byte.is_some() { 3 } else { 1 }..];
        Some(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meets(pattern: &str, query: &str) -> bool {
        let mut conditions = Conditions::default();
        let asks = conditions.add(&QueryPattern::parse(pattern).unwrap());
        conditions.met_by(query).has_all(&asks)
    }

    #[test]
    fn a_parameter_is_found_wherever_and_however_it_is_written() {
        for (pattern, query) in [
            ("s", "s=x"),
            ("s", "s"),
            ("s", "s="),
            ("s", "%73=x"),
            ("s", "a=1&b&s=x"),
            ("s", "&&s=x&"),
            ("s", "s=%zz"),
            ("s", "s=100%"),
            ("page=search", "page=search"),
            ("page=search", "p%61ge=%73earch"),
            ("page=search", "page=home&page=search"),
            ("page=search", "page=search&page=home"),
            ("a+b=c%20d", "a%20b=c+d"),
            ("a=%26%3d", "a=%26="),
            ("a=", "a"),
            ("%73", "s=x"),
            ("a&b=2", "b=2&c&a=9"),
            ("q=%C3%A9", "q=%c3%a9"),
        ] {
            assert!(meets(pattern, query), "{pattern} in {query}");
        }
    }

    #[test]
    fn what_is_not_that_parameter_does_not_meet_it() {
        for (pattern, query) in [
            ("s", ""),
            ("s", "S=x"),
            ("s", "ss=x"),
            ("s", "x=s"),
            ("s", "?s=x"),
            ("s", "%2573=x"),
            ("s", "s%=x"),
            ("s", "s%00=x"),
            ("s", "a=1;s=x"),
            ("s", "s%3Dx"),
            ("page=search", "page"),
            ("page=search", "page=Search"),
            ("page=search", "page=search%"),
            ("page=search", "page=%2573earch"),
            ("page=search", "search=page"),
            ("a=", "a=1"),
            ("a&b=2", "b=2"),
            ("a&b=2", "a&b=3"),
        ] {
            assert!(!meets(pattern, query), "{pattern} in {query}");
        }
        let long = format!("s{}=x", "%20".repeat(5000));
        assert!(!meets("s", &long) && meets("s", &format!("{long}&s")), "what is too long is passed over");
    }

    #[test]
    fn patterns_are_equal_if_they_ask_the_same() {
        let parse = |text| QueryPattern::parse(text).unwrap();
        assert_eq!(parse("a&b=%20"), parse("b=+&%61"));
        assert_ne!(parse("a"), parse("a="));
        assert_eq!(parse("b=+&%61").as_written(), "b=+&%61");
        assert_eq!(QueryPattern::count([parse("a&b"), parse("b&a=1"), parse("a")].iter()), 3);
    }

    #[test]
    fn a_pattern_that_is_none_says_what_it_must_be() {
        let nine = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].join("&");
        let long = "x".repeat(QueryPattern::BYTES_MAX + 1);
        for (text, wanted) in [
            ("", "names parameters"),
            ("=x", "names parameters"),
            ("a&&b", "names parameters"),
            ("a&", "names parameters"),
            ("s&s=x", "(s is there twice)"),
            ("s=x&%73=y", "(s is there twice)"),
            ("s=%", "two hexadecimal digits"),
            ("s%zz", "two hexadecimal digits"),
            ("page=*", "stands for any value"),
            ("page={name}", "stands for any value"),
            ("a#b", "as it stands in a URL"),
            ("a b", "as it stands in a URL"),
            ("é", "as it stands in a URL"),
            (&nine, "at most 8 parameters"),
            (&long, "at most 128 bytes"),
            (&[&long[1..]; 4].join("&"), "a query of at most 512 bytes"),
        ] {
            let fault = QueryPattern::parse(text).unwrap_err();
            assert!(fault.starts_with("a route ") && fault.contains(wanted), "{text}: {fault}");
        }
    }

    #[test]
    fn what_is_asked_beyond_the_bound_is_never_met() {
        let mut conditions = Conditions::default();
        let asks: Vec<_> = (0..=QueryPattern::ALL_MAX)
            .map(|number| conditions.add(&QueryPattern::parse(&format!("p={number}")).unwrap()))
            .collect();
        let met = |number: usize| conditions.met_by(&format!("p={number}")).has_all(&asks[number]);
        assert!(met(0) && met(QueryPattern::ALL_MAX - 1));
        assert!(!met(QueryPattern::ALL_MAX));
    }

    /// A text, each byte of it as it is or encoded.
    fn written(text: &str, encode: &[bool]) -> String {
        let encoded = |(at, byte): (usize, u8)| {
            let must = !byte.is_ascii_graphic() || b"&=#%+".contains(&byte);
            let is_encoded = must || encode.get(at).copied().unwrap_or(false);
            if is_encoded { format!("%{byte:02X}") } else { char::from(byte).to_string() }
        };
        text.bytes().enumerate().map(encoded).collect()
    }

    proptest! {
        #[test]
        fn no_writing_takes_a_query_out_of_its_pattern(
            name in "[a-z+&=% ]{1,6}",
            value in "[a-z+&=% é]{0,6}",
            encode in prop::collection::vec(any::<bool>(), 16),
            around in prop::collection::vec("[a-z=%+]{0,5}", 0..6),
            at in any::<prop::sample::Index>(),
        ) {
            let own = format!("{}={}", written(&name, &encode), written(&value, &encode));
            let mut query = around;
            query.insert(at.index(query.len() + 1), own);
            let query = query.join("&");
            prop_assert!(meets(&written(&name, &[true; 6]), &query), "{}", query);
            let exact = format!("{}={}", written(&name, &[]), written(&value, &[]));
            prop_assert!(meets(&exact, &query), "{}", query);
        }

        #[test]
        fn a_query_is_read_as_browsers_write_it(pairs in prop::collection::vec(("[ab%+é ]{1,3}", "[ab%+é ]{0,2}"), 0..4)) {
            let text: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
            for (name, value) in [("a", "b"), ("b", ""), ("a ", "a"), ("%", "é")] {
                let pattern = format!("{}={}", written(name, &[]), written(value, &[]));
                let is_there = pairs.iter().any(|pair| pair.0 == name && pair.1 == value);
                prop_assert_eq!(meets(&pattern, &text), is_there, "{}", text);
                let is_named = pairs.iter().any(|pair| pair.0 == name);
                prop_assert_eq!(meets(&written(name, &[]), &text), is_named, "{}", text);
            }
        }
    }
}
