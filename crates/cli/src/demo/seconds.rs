//! What happened in each second of a run, as a line of a figure or of the terminal.

/// Sessions and jobs end in bunches; a rate is the mean over this many seconds.
pub(super) const MEAN_OVER_S: usize = 5;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the numbers of the seconds as points of a line, each the mean over the seconds around it.
pub(super) fn smoothed(each: &[f64]) -> Vec<(f64, f64)> {
    let around = |index: usize| {
        let from = index.saturating_sub(MEAN_OVER_S / 2);
        let to = (index + MEAN_OVER_S / 2 + 1).min(each.len());
        each[from..to].iter().sum::<f64>() / (to - from) as f64
    };
    (0..each.len()).map(|index| (index as f64 + 0.5, around(index))).collect()
}

/// Returns how many per second over the last few; `totals` holds how many until the end of each second.
pub(super) fn recently(totals: &[u64]) -> f64 {
    let Some(last) = totals.last() else { return 0.0 };
    let (before, over) = match totals.len() {
        count if count <= MEAN_OVER_S => (0, count),
        count => (totals[count - MEAN_OVER_S - 1], MEAN_OVER_S),
    };
    (last - before) as f64 / over as f64
}

/// Returns a line of at most so many signs for a run of so many seconds; `full` per second is its full
/// height, and `totals` holds how many until the end of each second.
pub(super) fn sparkline(totals: &[u64], full: f64, seconds: f64, signs: usize) -> String {
    let each = (seconds / signs as f64).max(1.0);
    let until = |second: f64| match second as usize {
        0 => 0,
        index => totals[index.min(totals.len()) - 1],
    };
    let count = (totals.len().min(seconds as usize) as f64 / each).floor() as usize;
    let sign = |index: usize| {
        let (from, to) = (index as f64 * each, (index + 1) as f64 * each);
        let height = (until(to) - until(from)) as f64 / each / full.max(1e-9) * (HEIGHTS.len() - 1) as f64;
        HEIGHTS[(height.round() as usize).min(HEIGHTS.len() - 1)]
    };
    (0..count.min(signs)).map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_mean_of_the_seconds_around() {
        let points = smoothed(&[0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 5.0]);
        let close = |index: usize, at: f64, value: f64| {
            (points[index].0 - at).abs() < 1e-9 && (points[index].1 - value).abs() < 1e-9
        };
        assert!(close(0, 0.5, 0.0) && close(2, 2.5, 2.0) && close(5, 5.5, 5.0), "{points:?}");
        assert!(close(7, 7.5, 5.0) && smoothed(&[]).is_empty(), "{points:?}");
    }

    #[test]
    fn the_rate_is_of_the_last_five_seconds() {
        assert!(recently(&[]) < 1e-9);
        assert!((recently(&[2, 4]) - 2.0).abs() < 1e-9);
        assert!((recently(&[100, 100, 101, 102, 103, 104, 105]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_little_picture_is_as_high_as_what_is_full_and_as_long_as_the_run() {
        let steady: Vec<u64> = (1..=38).map(|second| second * 7).collect();
        assert_eq!(sparkline(&steady, 7.0, 38.0, 19), "█".repeat(19));
        assert_eq!(sparkline(&steady, 8.2, 38.0, 19), "▇".repeat(19));
        assert_eq!(sparkline(&steady[..4], 7.0, 38.0, 19), "██");
        assert_eq!(sparkline(&[0; 38], 7.0, 38.0, 19), "▁".repeat(19));
        assert_eq!(sparkline(&[], 7.0, 38.0, 19), "");
        assert_eq!(sparkline(&[1, 2, 3], 1.0, 2.0, 19), "██");
    }
}
