//! What a file of settings holds that not everybody who may read settings may know: passwords in
//! URLs, and the environment of programs. Other secrets are named by their paths.

use toml::{Table, Value};

/// What stands in place of a secret.
const HIDDEN: &str = "***";

/// Returns the settings in `text` with their secrets hidden: the same text where it can be, else the
/// same values. A text that is no TOML is hidden whole.
pub fn without_secrets(text: &str) -> String {
    let Ok(table) = text.parse::<Table>() else { return String::new() };
    let mut secrets = Vec::new();
    let mut hidden = Value::Table(table);
    hide(&mut hidden, false, &mut secrets);
    if secrets.is_empty() {
        return text.to_owned();
    }
    // The longest first: one may be a part of another.
    secrets.sort_by_key(|(secret, _): &(String, String)| std::cmp::Reverse(secret.len()));
    let shown = secrets.iter().fold(text.to_owned(), |text, (secret, shown)| text.replace(secret, shown));
    let says_the_same = shown.parse::<Table>().is_ok_and(|table| Value::Table(table) == hidden);
    let tells = secrets.iter().any(|(secret, _)| shown.contains(secret.as_str()));
    if says_the_same && !tells { shown } else { toml::to_string_pretty(&hidden).unwrap_or_default() }
}

/// Returns a value with the secrets in it hidden; of an environment, all values.
pub(crate) fn hidden(value: &Value, is_environment: bool) -> Value {
    let mut value = value.clone();
    hide(&mut value, is_environment, &mut Vec::new());
    value
}

/// Returns a value as it is shown: a password in a URL is hidden.
pub fn without_password(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        out.push_str(before);
        let end =
            after.find(|end: char| end == '/' || end == '"' || end.is_whitespace()).unwrap_or(after.len());
        let authority = &after[..end];
        rest = match authority.rfind('@') {
            Some(at) => {
                let user = authority[..at].split_once(':').map_or("", |(user, _)| user);
                out.push_str(&format!("{user}:{HIDDEN}"));
                &after[at..]
            }
            None => after,
        };
    }
    out + rest
}

fn hide(value: &mut Value, is_environment: bool, secrets: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => {
            let shown = match text.split_once('=') {
                Some((name, _)) if is_environment => format!("{name}={HIDDEN}"),
                _ => without_password(text),
            };
            if shown != *text {
                secrets.push((std::mem::replace(text, shown.clone()), shown));
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| hide(value, is_environment, secrets)),
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                hide(value, is_environment || key == "environment", secrets);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_environments_are_hidden_and_the_rest_is_as_it_was_written() {
        let text = "# ours\n[sharing]\nengine = \"redis://me:s3cret@10.0.0.7:6379/2\"\n\n[[pool]]\nenvironment = [\"A=b\", \"TOKEN=xyz\"] # here\n";
        assert_eq!(
            without_secrets(text),
            "# ours\n[sharing]\nengine = \"redis://me:***@10.0.0.7:6379/2\"\n\n[[pool]]\nenvironment = [\"A=***\", \"TOKEN=***\"] # here\n"
        );
        let plain = "[upstream]\nnodes = [\"http://10.0.0.5:8080\"] # a@b\n";
        assert_eq!(without_secrets(plain), plain);
    }

    #[test]
    fn what_is_written_otherwise_than_it_reads_is_hidden_too() {
        let text = "[sharing]\nengine = \"redis://me:s\\u0033cret@10.0.0.7\"\n";
        let shown = without_secrets(text);
        assert!(!shown.contains("cret") && shown.contains("redis://me:***@10.0.0.7"), "{shown}");
        assert_eq!(without_secrets("[broken"), "");
        // A secret that also stands where it is none must not be told there.
        let text = "# TOKEN=xyz\n[[pool]]\nenvironment = [\"TOKEN=xyz\"]\n";
        assert!(!without_secrets(text).contains("xyz"));
    }

    #[test]
    fn a_password_of_a_url_is_hidden_whatever_is_in_it() {
        for (url, shown) in [
            ("redis://:p@ss@h:1/0", "redis://:***@h:1/0"),
            ("\"redis://u:p@h\" x", "\"redis://u:***@h\" x"),
            ("redis://onlyname@h", "redis://:***@h"),
            ("http://h/a@b", "http://h/a@b"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
