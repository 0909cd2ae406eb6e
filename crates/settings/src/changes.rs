//! What a file of settings says otherwise than before, and what of it a running gateway can adopt.

use crate::Faults;
use crate::read::{self, default, find, seen};
use crate::schema::{self, DefaultValue, Form, Key, SECTIONS, SITE, Section, own_table};
use crate::secrets::hidden;
use std::fmt;
use toml::{Table, Value};

/// One setting that is another than before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Its full name, such as `limits.head_bytes` or `route[2].mode`.
    pub key: String,
    /// The value it had, as it was written, with its secrets hidden; or its default.
    pub before: String,
    /// The value it has.
    pub now: String,
    /// Whether it takes effect at the next start only.
    pub takes_restart: bool,
}

/// Returns every setting that differs between two files, `before` and `now`, that were found right:
/// values, not spellings, are compared, and one that is left out has its default.
///
/// # Errors
/// Where a text is no TOML.
pub fn changes(before: &str, now: &str) -> Result<Vec<Change>, Faults> {
    let (before, now) = (read::parse("before", before)?, read::parse("now", now)?);
    let mut changes = Vec::new();
    of_file(&before, &now, &mut changes);
    Ok(changes)
}

fn of_file(before: &Table, now: &Table, changes: &mut Vec<Change>) {
    for section in SECTIONS {
        let (before, now) = (find(before, section.path), find(now, section.path));
        match section.form {
            Form::Repeated(_) => of_entries(section, before, now, changes),
            Form::Optional if before.is_some() != now.is_some() => {
                let there = |value: Option<&Value>| if value.is_some() { "there" } else { "not there" };
                changes.push(Change {
                    key: section.path.to_owned(),
                    before: there(before).to_owned(),
                    now: there(now).to_owned(),
                    takes_restart: schema::takes_restart(section.path, ""),
                });
            }
            Form::Table | Form::Optional => {
                of_keys(section, section.path, table(before), table(now), changes);
            }
        }
    }
}

/// A site has all sections of a file below it.
fn of_site(path: &str, before: &Table, now: &Table, changes: &mut Vec<Change>) {
    let mut own = Vec::new();
    of_file(&own_table(before), &own_table(now), &mut own);
    changes.extend(own.into_iter().map(|change| Change { key: format!("{path}.{}", change.key), ..change }));
}

fn table(value: Option<&Value>) -> Option<&Table> {
    value.and_then(Value::as_table)
}

/// What is known of an entry is known by its place: another number of them takes a restart.
fn of_entries(section: &Section, before: Option<&Value>, now: Option<&Value>, changes: &mut Vec<Change>) {
    let entries = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (before, now) = (entries(before), entries(now));
    if before.len() != now.len() {
        let count = |entries: &[Value]| format!("{} of them", entries.len());
        return changes.push(Change {
            key: section.path.to_owned(),
            before: count(&before),
            now: count(&now),
            takes_restart: true,
        });
    }
    for (index, (before, now)) in before.iter().zip(&now).enumerate() {
        let path = format!("{}[{index}]", section.path);
        of_keys(section, &path, before.as_table(), now.as_table(), changes);
        if let (SITE, Some(before), Some(now)) = (section.path, before.as_table(), now.as_table()) {
            of_site(&path, before, now, changes);
        }
    }
}

fn of_keys(
    section: &Section,
    path: &str,
    before: Option<&Table>,
    now: Option<&Table>,
    changes: &mut Vec<Change>,
) {
    for key in section.keys {
        let value = |table: Option<&Table>| table.and_then(|table| table.get(key.name)).cloned();
        let (before, now) = (value(before), value(now));
        let checked = |value: &Option<Value>| {
            value.as_ref().and_then(|value| key.shape.check(value).ok()).or_else(|| default(key))
        };
        if checked(&before) != checked(&now) {
            changes.push(Change {
                key: format!("{path}.{}", key.name),
                before: written(key, before),
                now: written(key, now),
                takes_restart: schema::takes_restart(section.path, key.name),
            });
        }
    }
}

fn written(key: &Key, value: Option<Value>) -> String {
    match (value, key.default) {
        (Some(value), _) => seen(&hidden(&value, key.name == "environment")),
        (None, DefaultValue::Is(literal)) => literal.to_owned(),
        (None, DefaultValue::Unset { .. } | DefaultValue::Required { .. }) => "not set".to_owned(),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} → {}", self.key, self.before, self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;
    use crate::{Settings, duration, example_file, parse_size};

    fn told(before: &str, now: &str) -> Vec<String> {
        changes(before, now).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn no_change_tells_a_secret() {
        let pool = |own: &str| format!("[[pool]]\nname = \"app\"\nenvironment = [{own}]\n");
        assert_eq!(
            told(&pool("\"DB_PASSWORD=s3cret\""), &pool("")),
            ["pool[0].environment: [\"DB_PASSWORD=***\"] → []"]
        );
        // Cut before it is hidden, the first part of a long password would be seen.
        let long = "s3cret".repeat(20);
        let engine = format!("[sharing]\nengine = \"redis://me:{long}@10.0.0.7:6379\"\n");
        let both = told(&engine, "").concat();
        assert!(!both.contains("s3cret") && both.contains("redis://me:***@10.0.0.7"), "{both}");
    }

    #[test]
    fn values_are_compared_and_not_how_they_are_written() {
        assert_eq!(told("", &example_file()), [""; 0], "the example says nothing but the defaults");
        assert_eq!(told("[limits]\nhead_bytes = 65536", "[limits]\nhead_bytes = \"64KiB\""), [""; 0]);
        assert_eq!(
            told("[limits]\nhead_bytes = \"32KiB\"", "[gate]\npatience = \"30s\"\n"),
            ["gate.patience: \"1m\" → \"30s\"", "limits.head_bytes: \"32KiB\" → \"64KiB\""]
        );
        assert_eq!(told("", "[limits]\nbody_bytes = 5"), ["limits.body_bytes: not set → 5"]);
    }

    #[test]
    fn what_a_site_says_otherwise_is_told_with_its_place() {
        let of = |own: &str| format!("[[site]]\nname = \"b\"\nhosts = [\"b\"]\n{own}");
        let (before, now) = (
            of("[site.gate]\npatience = \"30s\""),
            of("[site.upstream]\nnodes = [\"http://127.0.0.1:1\"]\n[[site.route]]\nmatch = \"GET /a\""),
        );
        let changes = changes(&before, &now).unwrap();
        let told: Vec<_> = changes.iter().map(|it| (it.key.as_str(), it.takes_restart)).collect();
        let expected =
            [("site[0].upstream.nodes", true), ("site[0].route", true), ("site[0].gate.patience", false)];
        assert_eq!(told, expected);
    }

    #[test]
    fn entries_are_told_by_their_place_and_their_number_takes_a_restart() {
        let (one, other) = ("[[route]]\nmatch = \"GET /a\"\n", "[[route]]\nmatch = \"GET /a\"\nmode = 7\n");
        let [change] = &changes(one, other).unwrap()[..] else { panic!("one") };
        assert_eq!(
            (change.to_string().as_str(), change.takes_restart),
            ("route[0].mode: \"enforce\" → 7", false)
        );
        let two = format!("{one}[[route]]\nmatch = \"GET /b\"\n");
        let [change] = &changes(one, &two).unwrap()[..] else { panic!("one") };
        assert_eq!(
            (change.to_string().as_str(), change.takes_restart),
            ("route: 1 of them → 2 of them", true)
        );
    }

    #[test]
    fn what_is_bound_or_opened_at_the_start_takes_a_restart() {
        let takes = |now: &str| {
            changes("", now).unwrap().iter().map(|change| change.takes_restart).collect::<Vec<_>>()
        };
        assert_eq!(takes("[listen]\nhttp = \"127.0.0.1:1\"\ntrusted_proxies = [\"::1\"]"), [true, false]);
        assert_eq!(takes("[listen.tls]\naddress = \"127.0.0.1:1\"\ncert = \"c\"\nkey = \"k\""), [true]);
        assert_eq!(takes("[upstream]\nnodes = [\"http://127.0.0.1:1\"]\nvia = true"), [true, false]);
    }

    /// What a value may be instead of `default`, as it is written in a file.
    fn another(key: &Key) -> String {
        let default = match key.default {
            DefaultValue::Is(literal) => literal,
            // The example may be what this machine has.
            DefaultValue::Unset { .. } if key.name == "cores" => {
                return (Settings::default().proxy.gate.cores + 1).to_string();
            }
            DefaultValue::Unset { example, .. } | DefaultValue::Required { example } => {
                return example.to_owned();
            }
        };
        let unlike = |candidates: &[String]| {
            candidates.iter().find(|it| *it != default).cloned().expect("one differs")
        };
        match key.shape {
            Shape::Flag => unlike(&["true".to_owned(), "false".to_owned()]),
            // The next one, which no other setting is in the way of.
            Shape::Count(_, most) => next(default.parse().expect("a number"), most).to_string(),
            Shape::Size(_, most) => {
                let bytes = parse_size(default.trim_matches('"')).expect("a size");
                next(bytes, most).to_string()
            }
            Shape::Number(least, most) => unlike(&[format!("{most:?}"), format!("{least:?}")]),
            Shape::Time(_, most) => {
                let time = duration::parse(default.trim_matches('"')).expect("a time");
                format!("\"{}ms\"", next(time.as_millis() as u64, most))
            }
            Shape::Word(choices) | Shape::WordOrCount(choices, ..) => {
                unlike(&choices.iter().map(|choice| format!("\"{}\"", choice.word)).collect::<Vec<_>>())
            }
            Shape::AddressOrOff | Shape::AddressSocketOrOff => "\"127.0.0.1:9\"".to_owned(),
            Shape::Name => "\"other\"".to_owned(),
            Shape::Text => "\"warn\"".to_owned(),
            Shape::List(of, _) => match of {
                Shape::Node => "[\"http://127.0.0.1:9\"]".to_owned(),
                Shape::Network => "[\"10.0.0.0/8\"]".to_owned(),
                Shape::Word(choices) => format!("[\"{}\"]", choices[0].word),
                Shape::Route => "[\"GET /other\"]".to_owned(),
                Shape::UrlPath => "[\"/other\"]".to_owned(),
                Shape::Variable => "[\"OTHER=1\"]".to_owned(),
                Shape::Header => "[\"X-Frame-Options: DENY\"]".to_owned(),
                _ => "[\"other\"]".to_owned(),
            },
            other => panic!("a default of {other:?}"),
        }
    }

    fn next(number: u64, most: u64) -> u64 {
        if number < most { number + 1 } else { number - 1 }
    }

    /// What the settings of [degradation] are about.
    const SERVICE: &str = "[upstream.health]\npath = \"/health\"\n[[service]]\nname = \"a\"\nroutes = [\"GET /a\"]\nfloor = \"9/s\"\n";

    /// A file in which `key` of `section` is `value` and all else that must be there is there.
    fn file(section: &Section, key: &Key, value: &str) -> String {
        let heading = match section.form {
            Form::Repeated(_) => format!("[[{}]]", section.path),
            Form::Table | Form::Optional => format!("[{}]", section.path),
        };
        // The law whose number it is, without which it changes nothing.
        let (before, beside) = match (section.path, key.name) {
            ("gate", "static_sessions") => ("", "session_law = \"static\"\n"),
            ("gate.paper_route", _) => ("[gate]\nroute_law = \"paper\"\n", ""),
            ("gate.paper_session", _) => ("[gate]\nsession_law = \"paper\"\n", ""),
            ("degradation", _) => (SERVICE, ""),
            ("nodes", "count") => ("", "law = \"fixed\"\n"),
            ("upstream", "discover") => ("", "nodes = [\"http://shop.internal\"]\n"),
            ("upstream", "discover_every") => {
                ("", "nodes = [\"http://shop.internal\"]\ndiscover = \"dns\"\n")
            }
            ("upstream", "drain_within") => ("", "nodes_file = \"/etc/suimon/nodes\"\n"),
            ("upstream", "affinity_idle") => ("", "affinity = \"JSESSIONID\"\n"),
            ("upstream", "balance") => ("[upstream.load_reports]\norca = true\n", ""),
            // Else nobody would be known to use HTTPS.
            ("https", _) => ("[listen]\ntrusted_proxies = [\"10.0.0.0/8\"]\n", ""),
            // Somebody takes the other requests.
            ("site", "cert" | "key") => ("[listen.tls]\ncert = \"c\"\nkey = \"k\"\n", ""),
            ("pool", "routes") if value != "[]" => ("[upstream]\nnodes = [\"http://127.0.0.1:9000\"]\n", ""),
            _ => ("", ""),
        };
        let mut text = format!("{before}{heading}\n{} = {value}\n{beside}", key.name);
        for other in section.keys.iter().filter(|other| other.name != key.name) {
            let goes_together = matches!(
                (section.path, key.name, other.name),
                ("waiting_room", "colour", "colour_dark")
                    | ("waiting_room", "colour_dark", "colour")
                    | ("waiting_room", "pass_for", "pass_page")
                    | ("gate", "session_law", "static_sessions")
                    | ("pool", _, "command")
                    | ("nodes", "law", "count")
                    | ("nodes", _, "command" | "provider")
                    | ("upstream.load_reports", "listen", "keys")
                    | ("site", "name" | "cert" | "key", "hosts" | "paths")
                    | ("site", "cert", "key")
                    | ("site", "key", "cert")
                    | ("https", "hsts_subdomains", "hsts")
                    | ("https", "hsts_preload", "hsts" | "hsts_subdomains")
            );
            let is_needed = goes_together || matches!(other.default, DefaultValue::Required { .. });
            if is_needed {
                text += &format!("{} = {}\n", other.name, another(other));
            }
        }
        text
    }

    #[test]
    fn each_setting_takes_a_restart_or_is_adopted_and_no_other_is() {
        let mut elsewhere = Vec::new();
        for section in SECTIONS {
            for key in section.keys {
                let name = format!("{}.{}", section.path, key.name);
                // Of two files that differ in this key alone the second is adopted.
                let default = match key.default {
                    DefaultValue::Is(literal) => file(section, key, literal),
                    DefaultValue::Unset { .. } => {
                        let is_needed = |key: &&Key| matches!(key.default, DefaultValue::Required { .. });
                        section.keys.iter().find(is_needed).map_or_else(
                            || if section.path == "degradation" { SERVICE.to_owned() } else { String::new() },
                            |needed| file(section, needed, &another(needed)),
                        )
                    }
                    DefaultValue::Required { .. } => continue,
                };
                let parse = |text: &str| {
                    Settings::parse(&name, text).unwrap_or_else(|faults| panic!("{text}: {faults}"))
                };
                let (before, now) = (parse(&default), parse(&file(section, key, &another(key))));
                let (was, wanted) = (format!("{:?}", before.proxy), format!("{:?}", now.proxy));
                let adopted = format!("{:?}", before.proxy.adopting(now.proxy.clone()));
                if was == wanted && !schema::takes_restart(section.path, key.name) {
                    elsewhere.push(name.clone());
                }
                if schema::takes_restart(section.path, key.name) {
                    assert_eq!(adopted, was, "{name} takes a restart, and is adopted");
                } else {
                    assert_eq!(adopted, wanted, "{name} takes no restart, and is not adopted");
                }
            }
        }
        // What is no part of the parameters cannot be adopted with them.
        assert_eq!(elsewhere, ["log.filter"], "these take no restart, and change nothing");
    }
}
