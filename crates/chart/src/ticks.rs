//! Round numbers for an axis.

/// The most ticks an axis has.
const TICKS_MAX: usize = 100;

/// Returns about `wanted` round numbers (1, 2 or 5 × a power of ten apart) that lie from `from` to
/// `to`, in order. An empty or invalid range has none.
pub fn linear(from: f64, to: f64, wanted: usize) -> Vec<f64> {
    let span = to - from;
    if !span.is_finite() || span <= 0.0 {
        return Vec::new();
    }
    let step = step(span, wanted);
    // Whole multiples of the step, so that rounding errors such as 0.30000000000000004 do not add
    // up.
    let first = (from / step - 1e-9).ceil();
    let last = (to / step + 1e-9).floor();
    let count = ((last - first).max(-1.0) + 1.0).min(TICKS_MAX as f64) as usize;
    (0..count).map(|index| clean((first + index as f64) * step, step)).collect()
}

/// Returns 1, 2 and 5 × powers of ten from `from` to `to`, or only the powers if that would be more
/// than `wanted`. An invalid range, or one that is not above 0, has none.
pub fn logarithmic(from: f64, to: f64, wanted: usize) -> Vec<f64> {
    if !(from > 0.0 && to > from && to.is_finite()) {
        return Vec::new();
    }
    let decades = (from.log10() - 1e-9).floor() as i32..=(to.log10() + 1e-9).ceil() as i32;
    let inside = |value: &f64| *value >= from * (1.0 - 1e-9) && *value <= to * (1.0 + 1e-9);
    let at = |factors: &'static [f64]| {
        let powers = decades.clone().map(|power| 10f64.powi(power));
        powers
            .flat_map(|power| factors.iter().map(move |factor| factor * power))
            .filter(inside)
            .take(TICKS_MAX)
    };
    let fine: Vec<f64> = at(&[1.0, 2.0, 5.0]).collect();
    if fine.len() <= wanted { fine } else { at(&[1.0]).collect() }
}

/// Returns the range from the nearest round number below `from` to the nearest above `to`.
pub fn rounded_out(from: f64, to: f64, wanted: usize) -> (f64, f64) {
    let span = to - from;
    if !span.is_finite() || span <= 0.0 {
        return (from, to);
    }
    let step = step(span, wanted);
    (clean((from / step + 1e-9).floor() * step, step), clean((to / step - 1e-9).ceil() * step, step))
}

/// Returns the text of a tick, with as many decimals as the distance between ticks needs and its
/// thousands separated.
pub fn label(value: f64, distance: f64) -> String {
    let digits = if distance > 0.0 && distance < 1.0 {
        (-distance.log10() - 1e-9).ceil().min(9.0) as usize
    } else {
        0
    };
    let text = format!("{value:.digits$}");
    if text.trim_start_matches('-').chars().all(|digit| digit == '0' || digit == '.') {
        return "0".to_owned();
    }
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("\u{2212}", rest));
    let (whole, fraction) = text.split_once('.').map_or((text, ""), |(whole, fraction)| (whole, fraction));
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", thousands(whole))
}

/// Returns the distance between ticks: the 1, 2 or 5 × power of ten that comes nearest to `wanted`
/// ticks.
fn step(span: f64, wanted: usize) -> f64 {
    let rough = span / wanted.max(1) as f64;
    let power = 10f64.powi(rough.log10().floor() as i32);
    let factor = rough / power;
    let nice = if factor < 1.42 {
        1.0
    } else if factor < 3.2 {
        2.0
    } else if factor < 7.1 {
        5.0
    } else {
        10.0
    };
    nice * power
}

/// Returns the value without its rounding error.
fn clean(value: f64, step: f64) -> f64 {
    let digits = 10f64.powi((-step.log10()).ceil().clamp(0.0, 15.0) as i32 + 1);
    let cleaned = (value * digits).round() / digits;
    if cleaned.is_finite() { cleaned + 0.0 } else { value }
}

/// Returns the digits in groups of three where there are more than four.
fn thousands(digits: &str) -> String {
    if digits.len() <= 4 {
        return digits.to_owned();
    }
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(linear(0.0, 7.3, 5), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(linear(0.0, 1.0, 5), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(linear(-3.0, 3.0, 3), [-2.0, 0.0, 2.0]);
        assert_eq!(linear(12.0, 38.0, 5), [15.0, 20.0, 25.0, 30.0, 35.0]);
        assert_eq!(linear(0.0, 0.000_3, 3), [0.0, 0.000_1, 0.000_2, 0.000_3]);
    }

    #[test]
    fn a_range_that_is_none_has_no_ticks() {
        for (from, to) in
            [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (f64::MIN, f64::MAX)]
        {
            assert!(linear(from, to, 5).is_empty(), "{from} to {to}");
            assert!(logarithmic(from, to, 5).is_empty(), "{from} to {to}");
        }
        assert!(logarithmic(0.0, 10.0, 5).is_empty());
    }

    #[test]
    fn there_are_about_as_many_as_wanted_whatever_the_range() {
        for exponent in -12..=12 {
            for mantissa in [1.0, 1.7, 3.3, 4.9, 9.99] {
                let to = mantissa * 10f64.powi(exponent);
                let ticks = linear(0.0, to, 5);
                assert!((3..=9).contains(&ticks.len()), "0 to {to}: {ticks:?}");
                assert!(
                    ticks.iter().all(|tick| *tick >= 0.0 && *tick <= to * (1.0 + 1e-9)),
                    "0 to {to}: {ticks:?}"
                );
            }
        }
    }

    #[test]
    fn logarithmic_ticks_thin_out_over_many_decades() {
        assert_eq!(logarithmic(20.0, 500.0, 8), [20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(logarithmic(1.0, 10_000.0, 8), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn ranges_are_rounded_outwards() {
        assert_eq!(rounded_out(0.0, 7.3, 5), (0.0, 8.0));
        assert_eq!(rounded_out(0.3, 0.92, 4), (0.2, 1.0));
        assert_eq!(rounded_out(0.0, 8.0, 5), (0.0, 8.0));
    }

    #[test]
    fn labels_have_the_digits_the_distance_needs() {
        assert_eq!(label(0.2, 0.2), "0.2");
        assert_eq!(label(1.0, 0.2), "1.0");
        assert_eq!(label(0.0, 0.2), "0");
        assert_eq!(label(-0.5, 0.5), "\u{2212}0.5");
        assert_eq!(label(2000.0, 500.0), "2000");
        assert_eq!(label(120_000.0, 20_000.0), "120\u{202f}000");
        assert_eq!(label(0.05, 0.01), "0.05");
    }
}
