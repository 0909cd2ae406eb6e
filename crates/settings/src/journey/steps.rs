//! The steps of a journey: what is asked for, what is expected, what is kept.

use std::collections::{BTreeMap, BTreeSet};

use suimon_workload::{Body, Capture, Expect, Source, Step, Template, VALUES_GIVEN};
use toml::Value;

use super::values::Reader;
use super::{STEPS_MAX, raw};

impl Reader {
    pub(super) fn steps(&mut self, key: &str, raw: &[raw::Step]) -> Vec<Step> {
        if raw.is_empty() || raw.len() > STEPS_MAX {
            let allowed = format!("1 to {STEPS_MAX}");
            self.faults.value(format!("{key}.steps"), format!("{} of them", raw.len()), allowed);
        }
        let mut names = BTreeSet::new();
        let mut captured: BTreeSet<String> = VALUES_GIVEN.iter().map(|&name| name.to_owned()).collect();
        let mut steps = Vec::new();
        for (i, raw) in raw.iter().enumerate() {
            let key = format!("{key}.steps[{i}]");
            let step = self.step(&key, raw);
            if !names.insert(step.name.clone()) {
                self.faults.value(
                    format!("{key}.name"),
                    &step.name,
                    "unlike every other step's of this journey",
                );
            }
            if i == 0 && step.think.is_some() {
                self.faults.value(
                    format!("{key}.think"),
                    "given",
                    "left out: nobody thinks before the first step (see arrivals.closed.pause)",
                );
            }
            for name in placeholders(&step).filter(|name| !captured.contains(*name)) {
                let known = captured.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ");
                self.faults.value(
                    &key,
                    format!("{{{name}}}"),
                    format!("captured by an earlier step (known: {known})"),
                );
            }
            captured.extend(step.captures.iter().map(|capture| capture.name.clone()));
            steps.push(step);
        }
        steps
    }

    fn step(&mut self, key: &str, raw: &raw::Step) -> Step {
        let name = self.wanted_text(&format!("{key}.name"), raw.name.as_ref(), "a name");
        let body = self.body(key, raw);
        let default_method = if body == Body::None { "GET" } else { "POST" };
        let path_key = format!("{key}.path");
        let path = self.wanted_text(&path_key, raw.path.as_ref(), "a path such as \"/search?q=tea\"");
        let fits = path.starts_with('/') && path.chars().all(|c| c.is_ascii_graphic() && c != '#');
        if !fits && raw.path.is_some() {
            self.faults.value(
                path_key,
                format!("{path:?}"),
                "a path beginning with \"/\", percent-encoded, without \"#\"",
            );
        }
        let (think, patience) = (raw.think.as_ref(), raw.patience.as_ref());
        Step {
            name,
            method: self.method(&format!("{key}.method"), raw.method.as_ref(), default_method),
            path: Template::parse(&path),
            body,
            headers: self.headers(&format!("{key}.headers"), &raw.headers),
            expect: self.expect(&format!("{key}.expect"), &raw.expect),
            captures: self.captures(&format!("{key}.capture"), &raw.capture),
            think: think.map(|think| self.think(&format!("{key}.think"), think)),
            patience: patience.map(|patience| self.patience(&format!("{key}.patience"), patience)),
            leave: raw
                .leave
                .as_ref()
                .map(|leave| self.number(&format!("{key}.leave"), leave, 0.0, true, 1.0)),
        }
    }

    fn method(&mut self, key: &str, value: Option<&Value>, default: &str) -> String {
        let Some(value) = value else { return default.to_owned() };
        let method = value.as_str().unwrap_or_default();
        if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase()) || method == "CONNECT" {
            self.faults.value(key, value, "a method in capitals, such as \"GET\" or \"POST\" (not CONNECT)");
        }
        method.to_owned()
    }

    fn body(&mut self, key: &str, raw: &raw::Step) -> Body {
        if let (Some(_), Some(body)) = (&raw.form, &raw.body) {
            self.faults.value(format!("{key}.body"), body, "left out where there is a form");
        }
        if let (Some(content_type), None) = (&raw.content_type, &raw.body) {
            self.faults.value(format!("{key}.content_type"), content_type, "left out where there is no body");
        }
        if let Some(fields) = &raw.form {
            let field = |(name, value): (&String, &Value)| {
                let text = match value {
                    Value::Integer(number) => number.to_string(),
                    _ => self.text(&format!("{key}.form.{name}"), value).unwrap_or_default().to_owned(),
                };
                (name.clone(), Template::parse(&text))
            };
            return Body::Form(fields.iter().map(field).collect());
        }
        let Some(body) = &raw.body else { return Body::None };
        let text = Template::parse(self.text(&format!("{key}.body"), body).unwrap_or_default());
        let type_key = format!("{key}.content_type");
        let content_type = self.wanted_text(&type_key, raw.content_type.as_ref(), "the type of the body");
        if !content_type.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
            self.faults.value(type_key, format!("{content_type:?}"), "such as \"application/json\"");
        }
        Body::Raw { content_type, text }
    }

    fn headers(&mut self, key: &str, raw: &BTreeMap<String, Value>) -> Vec<(String, Template)> {
        /// What the crowd writes itself; a second one would make another request of it.
        const OURS: [&str; 6] =
            ["connection", "content-length", "content-type", "cookie", "host", "transfer-encoding"];
        let mut headers = Vec::new();
        for (name, value) in raw {
            let key = format!("{key}.{name}");
            let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if name.is_empty() || !name.bytes().all(is_token) {
                self.faults.value(&key, name, "a header's name: letters, digits and hyphens");
            }
            if OURS.contains(&name.to_ascii_lowercase().as_str()) {
                self.faults.value(&key, value, "left out: the crowd writes this header itself");
            }
            let text = self.text(&key, value).unwrap_or_default();
            if text.chars().any(char::is_control) {
                self.faults.value(&key, value, "one line");
            }
            headers.push((name.clone(), Template::parse(text)));
        }
        headers
    }

    fn expect(&mut self, key: &str, raw: &raw::Expect) -> Expect {
        let mut expect =
            Expect { texts: self.texts(&format!("{key}.text"), raw.text.as_ref()), ..Expect::default() };
        if let Some(status) = &raw.status {
            let parts = status.as_array().map_or(std::slice::from_ref(status), Vec::as_slice);
            expect.statuses =
                parts.iter().map(|part| self.statuses(&format!("{key}.status"), part)).collect();
            if parts.is_empty() {
                self.faults.value(format!("{key}.status"), "[]", "at least one status");
            }
        }
        expect
    }

    /// Reads `200` or `"200-299"`.
    fn statuses(&mut self, key: &str, value: &Value) -> (u16, u16) {
        let number = |text: &str| text.trim().parse::<u16>().ok();
        let range = match value {
            Value::Integer(status) => u16::try_from(*status).ok().map(|status| (status, status)),
            Value::String(text) => {
                text.split_once('-').and_then(|(low, high)| Some((number(low)?, number(high)?)))
            }
            _ => None,
        };
        range.filter(|(low, high)| (200..=599).contains(low) && low <= high && *high <= 599).unwrap_or_else(
            || {
                self.faults.value(key, value, "a status from 200 to 599, or a range such as \"200-299\"");
                (200, 399)
            },
        )
    }

    fn captures(&mut self, key: &str, raw: &BTreeMap<String, raw::Capture>) -> Vec<Capture> {
        let capture = |(name, raw): (&String, &raw::Capture)| {
            let key = format!("{key}.{name}");
            if Template::parse(&format!("{{{name}}}")).names().next() != Some(name) {
                self.faults.value(&key, name, "a name of letters, digits and underscores");
            }
            if VALUES_GIVEN.contains(&name.as_str()) {
                self.faults.value(
                    &key,
                    name,
                    format!("another name: {} are given", VALUES_GIVEN.join(" and ")),
                );
            }
            Capture { name: name.clone(), source: self.source(&key, raw) }
        };
        raw.iter().map(capture).collect()
    }

    fn source(&mut self, key: &str, raw: &raw::Capture) -> Source {
        match (&raw.input, &raw.header, &raw.between) {
            (Some(input), None, None) => {
                Source::Input(self.wanted_text(&format!("{key}.input"), Some(input), "an input's name"))
            }
            (None, Some(header), None) => {
                Source::Header(self.wanted_text(&format!("{key}.header"), Some(header), "a header's name"))
            }
            (None, None, Some(between)) => {
                let key = format!("{key}.between");
                match self.texts(&key, Some(between)).as_slice() {
                    [after, before] if !after.is_empty() && !before.is_empty() => {
                        Source::Between { after: after.clone(), before: before.clone() }
                    }
                    _ => {
                        self.faults.value(
                            key,
                            between,
                            "two texts: what comes before the value, and what behind it",
                        );
                        Source::Between { after: String::new(), before: String::new() }
                    }
                }
            }
            _ => {
                self.faults.missing(key, "exactly one of input, header and between");
                Source::Input(String::new())
            }
        }
    }
}

fn placeholders(step: &Step) -> impl Iterator<Item = &str> {
    let body: Vec<&Template> = match &step.body {
        Body::None => Vec::new(),
        Body::Form(fields) => fields.iter().map(|(_, value)| value).collect(),
        Body::Raw { text, .. } => vec![text],
    };
    let headers = step.headers.iter().map(|(_, value)| value);
    std::iter::once(&step.path).chain(body).chain(headers).flat_map(Template::names)
}
