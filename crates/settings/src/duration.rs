//! Durations as people write them: `750ms`, `15s`, `1.5m`, `2h`, `7d`.

use suimon_model::Duration;

/// How a duration is written, for messages.
pub const HOW_WRITTEN: &str = "a duration such as \"750ms\", \"15s\" or \"2m\"";

/// The longest duration that can be written: a year.
pub const LONGEST: Duration = Duration::from_secs(366 * 86_400);

const UNITS: [(&str, f64); 7] =
    [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// Returns the seconds that `text` says, below zero where it says so, or `None` if it is no
/// duration or longer than [`LONGEST`]. The caller decides about the sign.
pub fn parse_seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let number_ends = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))?;
    let (number, unit) = text.split_at(number_ends);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    let seconds = number.parse::<f64>().ok()? * factor;
    (seconds.abs() <= LONGEST.as_secs_f64()).then_some(seconds)
}

/// Returns the duration that `text` says, or `None` if it is no duration, negative, or longer than
/// [`LONGEST`].
pub fn parse(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(parse_seconds(text)?).ok()
}

/// Returns the duration as [`parse`] reads it, in the largest unit that leaves a whole number.
pub fn show(duration: Duration) -> String {
    let micros = duration.as_micros();
    let units = [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];
    match units.iter().find(|(_, size)| micros >= *size && micros.is_multiple_of(*size)) {
        Some((unit, size)) => format!("{}{unit}", micros / size),
        None if micros == 0 => "0s".to_owned(),
        None => format!("{micros}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        for (text, ms) in [
            ("750ms", 750.0),
            ("15s", 15e3),
            ("1.5m", 90e3),
            ("2h", 7.2e6),
            ("1d", 86.4e6),
            (" 0s ", 0.0),
            ("3 s", 3e3),
        ] {
            assert_eq!(parse(text), Some(Duration::from_secs_f64(ms / 1e3)), "{text}");
        }
        assert_eq!(parse("250us"), Some(Duration::from_micros(250)));
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in ["", "15", "s", "1x", "1e3s", "--1s", "-1s", "inf s", "nan", "400000h", "1 5s"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse_seconds("-1s"), Some(-1.0));
    }

    #[test]
    fn what_is_shown_can_be_read() {
        for micros in [0, 1, 999, 1_000, 1_500, 1_000_000, 90_000_000, 3_600_000_000, 86_400_000_000] {
            let duration = Duration::from_micros(micros);
            assert_eq!(parse(&show(duration)), Some(duration), "{}", show(duration));
        }
        assert_eq!(show(Duration::from_millis(1500)), "1500ms");
        assert_eq!(show(Duration::from_secs(120)), "2m");
    }
}
