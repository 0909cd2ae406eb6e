//! Goodput before, during and after a fault, from what was completed in each second.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Seconds over which completions are averaged, for how many means it must be normal in a row, and the share
/// of what was before that is normal.
const WINDOW: usize = 5;
const IN_A_ROW: usize = 6;
pub(crate) const NORMAL: f64 = 0.9;

/// Returns the mean of these seconds.
pub(crate) fn rate(completed: &[u32], seconds: Range<u32>) -> f64 {
    let some = completed.iter().skip(seconds.start as usize).take(seconds.len());
    f64::from(some.sum::<u32>()) / seconds.len() as f64
}

/// What was completed per second around a fault.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Recovery {
    pub(crate) before_per_s: f64,
    pub(crate) during_per_s: f64,
    pub(crate) after_per_s: f64,
    /// From the fault until it is at 0.9 of before for a while, and for good; absent: never.
    pub(crate) normal_after_s: Option<u32>,
    pub(crate) normal_for_good_after_s: Option<u32>,
}

/// Seconds of a load: those that count as before, during and after, and those in which it must be normal again.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    pub(crate) before: Range<u32>,
    pub(crate) during: Range<u32>,
    pub(crate) after: Range<u32>,
    pub(crate) normal: Range<u32>,
}

impl Recovery {
    /// Returns what was `completed` in these spans.
    pub(crate) fn of(completed: &[u32], spans: &Spans) -> Self {
        let before_per_s = rate(completed, spans.before.clone());
        Recovery {
            before_per_s,
            during_per_s: rate(completed, spans.during.clone()),
            after_per_s: rate(completed, spans.after.clone()),
            normal_after_s: normal_after(completed, before_per_s, spans.normal.clone()),
            normal_for_good_after_s: normal_for_good_after(completed, before_per_s, spans.normal.clone()),
        }
    }
}

/// Returns the seconds from the fault until the means of some seconds are normal in a row; `None`: never.
fn normal_after(completed: &[u32], before_per_s: f64, fault: Range<u32>) -> Option<u32> {
    let normal = normal(completed, before_per_s, fault);
    let first = normal.windows(IN_A_ROW).position(|row| row.iter().all(|it| *it))?;
    Some(first as u32)
}

/// Returns the seconds from the fault until the means of some seconds are normal up to the end; `None`: they
/// are not at the end.
fn normal_for_good_after(completed: &[u32], before_per_s: f64, fault: Range<u32>) -> Option<u32> {
    let normal = normal(completed, before_per_s, fault);
    let first = normal.iter().rposition(|it| !it).map_or(0, |last| last + 1);
    (normal.len() - first >= IN_A_ROW).then_some(first as u32)
}

/// Returns for each second from the fault on whether the mean from there is normal, while the load lasts.
fn normal(completed: &[u32], before_per_s: f64, fault: Range<u32>) -> Vec<bool> {
    let seconds = &completed[..completed.len().min(fault.end as usize)];
    let is_normal =
        |some: &[u32]| f64::from(some.iter().sum::<u32>()) / WINDOW as f64 >= NORMAL * before_per_s;
    seconds.get(fault.start as usize..).unwrap_or_default().windows(WINDOW).map(is_normal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type After = fn(&[u32], f64, Range<u32>) -> Option<u32>;

    fn with(after: After, change: fn(&mut Vec<u32>)) -> Option<u32> {
        let mut seconds = vec![5; 40];
        change(&mut seconds);
        after(&seconds, 5.0, 15..40)
    }

    #[test]
    fn it_is_normal_from_where_it_is_so_for_a_while() {
        assert_eq!(with(normal_after, |_| ()), Some(0));
        assert_eq!(with(normal_after, |seconds| seconds[15..20].fill(0)), Some(5));
        assert_eq!(with(normal_after, |seconds| seconds[15..].fill(0)), None);
    }

    #[test]
    fn it_is_normal_for_good_after_the_last_bad_time() {
        assert_eq!(with(normal_for_good_after, |_| ()), Some(0));
        assert_eq!(with(normal_for_good_after, |seconds| seconds[26..28].fill(0)), Some(13));
        assert_eq!(with(normal_for_good_after, |seconds| seconds[35..].fill(0)), None);
    }

    #[test]
    fn a_rate_is_the_mean_of_its_seconds() {
        assert!((rate(&[9, 2, 4, 9], 1..3) - 3.0).abs() < 1e-9);
    }
}
