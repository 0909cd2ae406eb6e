//! How a gateway shares with others, as a document.

use serde::{Deserialize, Serialize};

/// How a gateway shares with others before the same application.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharingState {
    /// `joining`, `shared`, `last_share` or `safe_share`.
    pub phase: String,
    /// Gateways whose records are exchanged, this one included.
    pub gateways: usize,
    /// The largest membership of the last minute: what a safe share is of.
    pub gateways_max: u32,
    /// This gateway, by its number in the group.
    pub gateway: u64,
    /// Whether it learns the limits.
    pub learns: bool,
    /// Exchanges with the engine that succeeded, ...
    pub exchanges: u64,
    /// ... and that failed, or were not tried after failures.
    pub failures: u64,
    /// Seconds that the last one took.
    pub exchange_seconds: f64,
    /// Records in the last one that could not be read: gateways of another version.
    pub unreadable: usize,
    /// Why the last one failed, if it did.
    pub error: Option<String>,
}

impl SharingState {
    pub(crate) fn of(view: &suimon_proxy::SharingView) -> Self {
        SharingState {
            phase: view.phase.to_owned(),
            gateways: view.gateways,
            gateways_max: view.gateways_max,
            gateway: view.gateway,
            learns: view.learns,
            exchanges: view.exchanges,
            failures: view.failures,
            exchange_seconds: view.exchange_seconds,
            unreadable: view.unreadable,
            error: view.error.clone(),
        }
    }
}
