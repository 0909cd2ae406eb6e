//! The gateway's histograms, read from its metrics.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use suimon_statistics::Buckets;

use crate::http;
use crate::trouble::{Result, failed};

/// All histograms at one moment, by name, each summed over its labels.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Histograms(BTreeMap<String, Buckets>);

impl Histograms {
    /// Returns the histograms of the gateway with its admin listener at `admin`.
    pub(crate) fn fetch(admin: SocketAddr) -> Result<Self> {
        let answer = http::get(admin, "/metrics", Duration::from_secs(5))?;
        if answer.status != 200 {
            return failed(format!("{admin}/metrics: status {}", answer.status));
        }
        Ok(Histograms::read(&String::from_utf8_lossy(&answer.body)))
    }

    /// Returns the histograms in a text in Prometheus' format.
    pub(crate) fn read(text: &str) -> Self {
        let mut all: BTreeMap<String, Buckets> = BTreeMap::new();
        for (name, bound, count) in text.lines().filter_map(bucket) {
            all.entry(name.to_string()).or_default().add(bound, count);
        }
        Histograms(all)
    }

    /// Returns what was added to the histogram `name` since `before`; empty if there is none.
    pub(crate) fn since(&self, before: &Histograms, name: &str) -> Buckets {
        let of = |all: &Histograms| all.0.get(name).cloned().unwrap_or_default();
        of(self).since(&of(before))
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
        assert_eq!(all, Buckets::new(&[0.1], &[5, 5]));
        assert!(now.since(&now, "t_seconds").count() < 1e-12);
        assert!(now.since(&now, "other").count() < 1e-12);
    }
}
