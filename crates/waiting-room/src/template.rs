//! A page with places for values: `{{name}}`, and `{{#name}} … {{/name}}` for what is shown only
//! where there is a value.
//!
//! Values are put into a template that was parsed before, so no value can contain a place. Texts
//! are escaped; HTML of ours is marked as [`Value::Raw`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

/// A parsed template.
#[derive(Clone, Debug)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Place(String),
    Section(String, Template),
}

/// What stands in a place.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    /// To be escaped. Empty: not there.
    Text(Cow<'a, str>),
    /// As it is.
    Raw(Cow<'a, str>),
    /// Whether a section is shown.
    Flag(bool),
    /// A section shown once for each.
    List(Vec<Values<'a>>),
}

/// Values by the names of their places.
pub(crate) type Values<'a> = HashMap<&'a str, Value<'a>>;

impl Template {
    /// Parses `text`. A section that is not closed, or closed wrongly, ends with the text.
    pub(crate) fn new(text: &str) -> Template {
        Template::until(&mut &*text, "")
    }

    fn until(rest: &mut &str, end: &str) -> Template {
        let mut pieces = Vec::new();
        while let Some((before, (name, after))) =
            rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
        {
            *rest = after;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            match (name.strip_prefix('#'), name.strip_prefix('/')) {
                (Some(name), _) => pieces.push(Piece::Section(name.to_owned(), Template::until(rest, name))),
                (None, Some(name)) if name == end => return Template(pieces),
                _ => pieces.push(Piece::Place(name.to_owned())),
            }
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(std::mem::take(rest).to_owned()));
        }
        Template(pieces)
    }

    /// Returns the template with what `values` holds put in; the other places stay.
    pub(crate) fn with(&self, values: &Values<'_>) -> Template {
        let mut pieces: Vec<Piece> = Vec::new();
        for piece in &self.0 {
            let mut text = String::new();
            match piece {
                Piece::Text(own) => text.push_str(own),
                Piece::Place(name) if values.contains_key(name.as_str()) => {
                    values[name.as_str()].write(&mut text);
                }
                Piece::Section(name, inner) if values.contains_key(name.as_str()) => {
                    match &values[name.as_str()] {
                        Value::List(items) => items.iter().for_each(|item| inner.write(item, &mut text)),
                        value if value.is_there() => {
                            inner.with(values).0.into_iter().for_each(|piece| push(&mut pieces, piece));
                            continue;
                        }
                        _ => continue,
                    }
                }
                Piece::Place(_) => {
                    pieces.push(piece.clone());
                    continue;
                }
                Piece::Section(name, inner) => {
                    pieces.push(Piece::Section(name.clone(), inner.with(values)));
                    continue;
                }
            }
            push(&mut pieces, Piece::Text(text));
        }
        Template(pieces)
    }

    /// Returns the page with these values; places without one are left out.
    pub(crate) fn fill(&self, values: &Values<'_>) -> String {
        let mut out = String::with_capacity(16 << 10);
        self.write(values, &mut out);
        out
    }

    fn write(&self, values: &Values<'_>, out: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Place(name) => {
                    if let Some(value) = values.get(name.as_str()) {
                        value.write(out);
                    }
                }
                Piece::Section(name, inner) => match values.get(name.as_str()) {
                    Some(Value::List(items)) => items.iter().for_each(|item| inner.write(item, out)),
                    Some(value) if value.is_there() => inner.write(values, out),
                    _ => {}
                },
            }
        }
    }
}

/// Appends a piece; texts that follow one another become one.
fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), piece) {
        (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
        (_, piece) => pieces.push(piece),
    }
}

impl<'a> Value<'a> {
    /// Returns a text, to be escaped.
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Value::Text(text.into())
    }

    /// Returns what is HTML already.
    pub(crate) fn raw(text: impl Into<Cow<'a, str>>) -> Self {
        Value::Raw(text.into())
    }

    fn is_there(&self) -> bool {
        match self {
            Value::Text(text) | Value::Raw(text) => !text.is_empty(),
            Value::Flag(is_there) => *is_there,
            Value::List(items) => !items.is_empty(),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Value::Text(text) => escape(text, out),
            Value::Raw(text) => out.push_str(text),
            Value::Flag(_) | Value::List(_) => {}
        }
    }
}

/// Appends `text` so that it is nothing but text in HTML, between tags and in quoted attributes.
pub(crate) fn escape(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML cannot hold a NUL.
            '\0' => {
                let _ = write!(out, "{}", char::REPLACEMENT_CHARACTER);
            }
            _ => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values<'a>(pairs: &[(&'a str, Value<'a>)]) -> Values<'a> {
        pairs.iter().cloned().collect()
    }

    #[test]
    fn places_are_filled_and_sections_shown_where_there_is_something() {
        let template = Template::new("a{{x}}{{#y}}[{{x}}{{#z}}!{{/z}}]{{/y}}{{#list}}<{{n}}>{{/list}}");
        let items = vec![values(&[("n", Value::text("1"))]), values(&[("n", Value::text("2"))])];
        let all = values(&[
            ("x", Value::text("<&>")),
            ("y", Value::Flag(true)),
            ("z", Value::text("")),
            ("list", Value::List(items)),
        ]);
        assert_eq!(template.fill(&all), "a&lt;&amp;&gt;[&lt;&amp;&gt;]<1><2>");
        assert_eq!(template.fill(&values(&[("x", Value::raw("<b>"))])), "a<b>");
    }

    proptest! {
        #[test]
        fn values_in_two_goes_are_values_in_one(x in "[a-z{}#/<]{0,9}", y in any::<bool>(), z in "[{}/#z]{0,9}") {
            let template = Template::new("{{x}}{{#y}}({{z}}{{#z}}{{x}}{{/z}}){{/y}}{{z}}");
            let (x, y, z) = (("x", Value::text(x)), ("y", Value::Flag(y)), ("z", Value::text(z)));
            let whole = template.fill(&values(&[x.clone(), y.clone(), z.clone()]));
            prop_assert_eq!(&template.with(&values(std::slice::from_ref(&x))).fill(&values(&[y.clone(), z.clone()])), &whole);
            prop_assert_eq!(&template.with(&values(&[y.clone(), z.clone()])).fill(&values(&[x])), &whole);
        }
    }
}
