//! What KEDA is told of a wanted number.
//!
//! The metric is the number itself and its target is 1 (type `AverageValue`, KEDA's default), so that the autoscaler's
//! `ceil(metric / target)` is the number. It writes it only if it differs from what is there by more than its
//! tolerance, 10 % unless `behavior.scaleUp.tolerance` and `behavior.scaleDown.tolerance` say 0: with eleven nodes or
//! more, a difference of one is otherwise overlooked.
//!
//! Before a number is known there is no answer: KEDA and its autoscaler then leave the replicas as they are.

/// What is said of the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Published {
    /// Whether KEDA is to keep any node.
    pub(crate) is_active: bool,
    /// The metric.
    pub(crate) value: u32,
}

/// Returns what is said when so many nodes are wanted; `zero`: none at all may be.
pub(crate) fn published(wanted: u32, zero: bool) -> Published {
    let value = if zero { wanted } else { wanted.max(1) };
    Published { is_active: value > 0, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an autoscaler makes of a metric whose target per replica is 1: `GetExternalPerPodMetricReplicas` of
    /// Kubernetes, with its default tolerance or without.
    fn autoscaled(replicas: u32, metric: u32, tolerance: f64) -> u32 {
        let ratio = f64::from(metric) / f64::from(replicas);
        if (1.0 - tolerance..=1.0 + tolerance).contains(&ratio) { replicas } else { metric }
    }

    #[test]
    fn the_autoscaler_arrives_at_the_number_if_it_tolerates_no_difference() {
        for (replicas, wanted) in (1..200).flat_map(|replicas| (1..200).map(move |wanted| (replicas, wanted)))
        {
            assert_eq!(autoscaled(replicas, published(wanted, false).value, 0.0), wanted);
        }
    }

    #[test]
    fn with_the_usual_tolerance_it_overlooks_one_of_eleven() {
        assert_eq!(autoscaled(9, published(10, false).value, 0.1), 10);
        assert_eq!(autoscaled(11, published(12, false).value, 0.1), 11);
        assert_eq!(autoscaled(11, published(10, false).value, 0.1), 11);
    }

    #[test]
    fn the_last_node_goes_only_where_that_is_asked_for() {
        assert_eq!(published(0, false), Published { is_active: true, value: 1 });
        assert_eq!(published(0, true), Published { is_active: false, value: 0 });
        assert_eq!(published(3, true), Published { is_active: true, value: 3 });
    }
}
