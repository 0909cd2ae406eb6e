//! What an answer tells of its own making: the header `Server-Timing`, as W3C describes it.

use std::time::Duration;

/// The most metrics that are taken from one answer.
const METRICS_MAX: usize = 16;
/// The longest name that is taken.
const NAME_BYTES_MAX: usize = 32;
/// What says that it took longer is no duration.
const DURATION_MAX: Duration = Duration::from_hours(1);

/// Returns the metrics with a duration in one header line: `db;dur=53.2, app;desc="a, b";dur=7`.
/// What cannot be read is left out.
pub(crate) fn durations(line: &str) -> Vec<(&str, Duration)> {
    split(line, ',').into_iter().filter_map(metric).take(METRICS_MAX).collect()
}

fn metric(text: &str) -> Option<(&str, Duration)> {
    let mut parts = split(text, ';').into_iter().map(str::trim);
    let name = parts.next().filter(|name| is_token(name) && name.len() <= NAME_BYTES_MAX)?;
    let millis = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case("dur").then(|| value.trim().trim_matches('"'))
    })?;
    let time = Duration::try_from_secs_f64(millis.parse::<f64>().ok()? / 1000.0).ok()?;
    (time <= DURATION_MAX).then_some((name, time))
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Returns the parts between separators that stand outside of quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if letter == separator && !quoted => {
                parts.push(&text[from..at]);
                from = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Vec<(&str, u128)> {
        durations(line).into_iter().map(|(name, time)| (name, time.as_micros())).collect()
    }

    #[test]
    fn metrics_are_read_with_their_durations() {
        let line = "accept;dur=1.250, job;desc=\"the job; or, \\\"work\\\"\";DUR=3, miss, cache;desc=hit, total;dur=\"7\"";
        assert_eq!(read(line), [("accept", 1250), ("job", 3000), ("total", 7000)]);
    }

    #[test]
    fn what_is_no_metric_is_left_out() {
        for line in
            ["", ",;,", "a;dur=", "a;dur=x", "a;dur=-1", "a;dur=nan", "a;dur=1e12", "a b;dur=1", ";dur=1"]
        {
            assert_eq!(read(line), [], "{line}");
        }
        assert_eq!(read(&format!("{}{}", "x".repeat(NAME_BYTES_MAX + 1), ";dur=1")), []);
        assert_eq!(read(&"a;dur=1,".repeat(100)).len(), METRICS_MAX);
        assert_eq!(read("open;desc=\"a, b;dur=1"), [], "a quote without an end holds the rest");
    }
}
