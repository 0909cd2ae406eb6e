//! Text with `{placeholders}`. A placeholder is a name in braces; other braces stay as they are, so
//! that JSON needs no escapes. `{{` stands for one `{`, for a literal name in braces.

use std::fmt;

/// Text with placeholders, parsed once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Value(String),
}

/// A placeholder without a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingValue(
    /// The placeholder's name.
    pub String,
);

impl fmt::Display for MissingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no value for {{{}}}: no earlier answer gave one", self.0)
    }
}

impl std::error::Error for MissingValue {}

impl Template {
    /// Returns `text` parsed. Every text is a template; whatever is not a placeholder stays text.
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(brace) = rest.find('{') {
            plain.push_str(&rest[..brace]);
            let after = &rest[brace + 1..];
            if let Some(escaped) = after.strip_prefix('{') {
                plain.push('{');
                rest = escaped;
                continue;
            }
            match after.split_once('}').filter(|(name, _)| is_name(name)) {
                Some((name, behind)) => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::Value(name.to_owned()));
                    rest = behind;
                }
                None => {
                    plain.push('{');
                    rest = after;
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Template { parts }
    }

    /// Returns the names of the placeholders, in order and with repetitions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(name) => Some(name.as_str()),
        })
    }

    /// Returns the text with each placeholder replaced by its value, encoded by `encode`.
    ///
    /// # Errors
    /// Fails with the first placeholder for which `value_of` has no value.
    pub fn fill<'a>(
        &self,
        value_of: impl Fn(&str) -> Option<&'a str>,
        encode: impl Fn(&str, &mut String),
    ) -> Result<String, MissingValue> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value(name) => {
                    encode(value_of(name).ok_or_else(|| MissingValue(name.clone()))?, &mut out);
                }
            }
        }
        Ok(out)
    }
}

impl From<&str> for Template {
    fn from(text: &str) -> Self {
        Template::parse(text)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Value(name) => write!(f, "{{{name}}}")?,
            }
        }
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, MissingValue> {
        let value_of = |name: &str| match name {
            "user" => Some("17"),
            "token" => Some("a&b"),
            _ => None,
        };
        Template::parse(text).fill(value_of, |value, out| out.push_str(value))
    }

    #[test]
    fn placeholders_are_replaced_and_the_rest_stays() {
        assert_eq!(fill("/buy?u={user}&t={token}!").unwrap(), "/buy?u=17&t=a&b!");
        assert_eq!(fill("").unwrap(), "");
        assert_eq!(fill("plain").unwrap(), "plain");
    }

    #[test]
    fn json_is_no_placeholder() {
        let json = r#"{"a": {"b": 1}, "c": {}, "u": "{user}"}"#;
        assert_eq!(fill(json).unwrap(), r#"{"a": {"b": 1}, "c": {}, "u": "17"}"#);
    }

    #[test]
    fn a_doubled_brace_is_one_brace() {
        assert_eq!(fill("{{user}").unwrap(), "{user}");
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_it() {
        assert_eq!(fill("x{other}"), Err(MissingValue("other".into())));
    }

    #[test]
    fn unfinished_braces_are_text() {
        for text in ["{", "a{user", "{user-name}", "}{"] {
            assert_eq!(fill(text).unwrap(), text);
        }
    }

    #[test]
    fn values_are_encoded_and_text_is_not() {
        let filled = Template::parse("a&{token}")
            .fill(|_| Some("x&y"), |value, out| out.push_str(&value.replace('&', "%26")));
        assert_eq!(filled.unwrap(), "a&x%26y");
    }
}
