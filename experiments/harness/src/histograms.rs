//! The gateway's histograms, read from its metrics.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::http;
use crate::trouble::{Result, failed};

/// All histograms at one moment, each summed over its labels: by name, counts at or under each bound.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Histograms(BTreeMap<String, Histogram>);

/// Counts at or under each bound, ascending; the last bound is infinite.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Histogram(Vec<(f64, f64)>);

impl Histograms {
    /// Returns those of the gateway whose operator's listener is at `admin`.
    pub(crate) fn fetch(admin: SocketAddr) -> Result<Self> {
        let answer = http::get(admin, "/metrics", Duration::from_secs(5))?;
        if answer.status != 200 {
            return failed(format!("{admin}/metrics: status {}", answer.status));
        }
        Ok(Histograms::read(&String::from_utf8_lossy(&answer.body)))
    }

    /// Returns those in a text in Prometheus' format.
    pub(crate) fn read(text: &str) -> Self {
        let mut all: BTreeMap<String, Histogram> = BTreeMap::new();
        for line in text.lines() {
            let Some((name, bound, count)) = bucket(line) else { continue };
            let buckets = &mut all.entry(name.to_string()).or_default().0;
            match buckets.iter_mut().find(|(known, _)| known.total_cmp(&bound).is_eq()) {
                Some((_, sum)) => *sum += count,
                None => buckets.push((bound, count)),
            }
        }
        all.values_mut().for_each(|histogram| histogram.0.sort_by(|a, b| a.0.total_cmp(&b.0)));
        Histograms(all)
    }

    /// Returns what was added to the one of this name since `before`; empty if there is none.
    pub(crate) fn since(&self, before: &Histograms, name: &str) -> Histogram {
        let Some(now) = self.0.get(name) else { return Histogram::default() };
        let then = before.0.get(name);
        let counted = |bound: f64| then.map_or(0.0, |histogram| histogram.up_to(bound));
        Histogram(now.0.iter().map(|(bound, count)| (*bound, count - counted(*bound))).collect())
    }
}

impl Histogram {
    /// Returns how many there are.
    pub(crate) fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// Returns how many are at or under `bound`, or the next lower bound there is.
    pub(crate) fn up_to(&self, bound: f64) -> f64 {
        self.0.iter().take_while(|(known, _)| *known <= bound).last().map_or(0.0, |(_, count)| *count)
    }

    /// Returns the bound under which `share` of them lie, in proportion within its bucket; beyond the last finite bound,
    /// that bound; not a number if there are none.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = share * self.count();
        let (mut from, mut below) = (0.0, 0.0);
        for (bound, count) in &self.0 {
            if *count >= rank && *count > below {
                let part = (rank - below) / (count - below);
                return if bound.is_finite() { from + (bound - from) * part } else { from };
            }
            (from, below) = (*bound, *count);
        }
        f64::NAN
    }
}

/// Returns name, bound and count of a line `NAME_bucket{...,le="BOUND"} COUNT`.
fn bucket(line: &str) -> Option<(&str, f64, f64)> {
    let (series, count) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once("_bucket{")?;
    let (_, behind) = labels.rsplit_once("le=\"")?;
    Some((name, behind.split('"').next()?.parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE t_seconds histogram\n\
        t_seconds_bucket{route=\"a\",le=\"0.1\"} 4\nt_seconds_bucket{route=\"a\",le=\"+Inf\"} 6\n\
        t_seconds_bucket{route=\"b\",le=\"0.1\"} 1\nt_seconds_bucket{route=\"b\",le=\"+Inf\"} 4\n\
        t_seconds_sum{route=\"a\"} 9\nt_seconds_count{route=\"a\"} 6\n";

    #[test]
    fn labels_are_summed_and_what_was_before_is_taken_away() {
        let now = Histograms::read(TEXT);
        let all = now.since(&Histograms::default(), "t_seconds");
        assert_eq!(all, Histogram(vec![(0.1, 5.0), (f64::INFINITY, 10.0)]));
        assert!((all.up_to(0.2) - 5.0).abs() < 1e-12 && all.up_to(0.05) < 1e-12);
        assert!(now.since(&now, "t_seconds").count() < 1e-12);
        assert!(now.since(&now, "other").count() < 1e-12);
    }

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let all = Histograms::read(TEXT).since(&Histograms::default(), "t_seconds");
        assert!((all.quantile(0.25) - 0.05).abs() < 1e-12);
        assert!((all.quantile(0.9) - 0.1).abs() < 1e-12);
        assert!(Histogram::default().quantile(0.5).is_nan());
    }
}
