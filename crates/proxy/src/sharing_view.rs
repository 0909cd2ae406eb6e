//! How a gateway shares with others, as reports show it.

use suimon_sharing::Phase;

/// How this gateway shares, for reports.
#[derive(Clone, PartialEq, Debug)]
pub struct SharingView {
    /// `joining`, `shared`, `last_share` or `safe_share`.
    pub phase: &'static str,
    /// Gateways whose records are exchanged, this one included.
    pub gateways: usize,
    /// The largest membership of the last minute: what a safe share is of.
    pub gateways_max: u32,
    /// This gateway, by the number that it has in its group.
    pub gateway: u64,
    /// Whether it learns the limits.
    pub learns: bool,
    /// Exchanges that succeeded, ...
    pub exchanges: u64,
    /// ... and that failed or were not tried.
    pub failures: u64,
    /// Seconds that the last exchange took.
    pub exchange_seconds: f64,
    /// Records of other versions, or of nobody, in the last exchange.
    pub unreadable: usize,
    /// Why the last exchange failed.
    pub error: Option<String>,
}

impl Default for SharingView {
    fn default() -> Self {
        SharingView {
            phase: Phase::Joining.name(),
            gateways: 0,
            gateways_max: 0,
            gateway: 0,
            learns: false,
            exchanges: 0,
            failures: 0,
            exchange_seconds: 0.0,
            unreadable: 0,
            error: None,
        }
    }
}
