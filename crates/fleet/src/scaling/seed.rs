//! The papers' rule, (5) and (6).

use super::api::{ScalingMove, ScalingParams, ScalingReason, ScalingSample};

/// Returns the new number of nodes, if it changes. Nodes that start are not counted: the paper's are
/// there within less than an interval.
pub(super) fn decide(
    load_max: f64,
    wanted: u32,
    params: &ScalingParams,
    sample: &ScalingSample,
) -> Option<ScalingMove> {
    let load = sample.load?;
    let to = |wanted, why| Some(ScalingMove { wanted, why, signal: load });
    if load > load_max && wanted < params.most {
        return to(wanted + 1, ScalingReason::Load);
    }
    if load < load_min(load_max, sample.serving) && wanted > params.least {
        return to(wanted - 1, ScalingReason::Enough);
    }
    None
}

/// Returns the load under which `nodes` nodes become one fewer.
pub(super) fn load_min(load_max: f64, nodes: u32) -> f64 {
    let nodes = f64::from(nodes.max(1));
    (nodes - 1.0) * (load_max - 1.0) / nodes
}
