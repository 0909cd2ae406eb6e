//! Services, as `/api/state` shows them.

use serde::{Deserialize, Serialize};
use suimon_gate::{Amount, ServiceView};

/// One service.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceState {
    /// Its name.
    pub name: String,
    /// Its routes.
    pub routes: Vec<String>,
    /// What the split goes by: `degradation.mode`, the same for all.
    #[serde(default)]
    pub mode: String,
    /// What is wished for it: its weight (modes `shares` and `bands`), floor and ceiling, and how
    /// much it may be slowed relative to the others (mode `slowdown`).
    pub weight: f64,
    /// See `weight`; absent: none.
    pub floor: Option<String>,
    /// See `weight`; absent: none.
    pub ceiling: Option<String>,
    /// See `weight`.
    pub slowdown_wished: f64,
    /// Seconds that a request takes alone, as learned or declared; absent while unknown.
    pub alone_seconds: Option<f64>,
    /// How many times as long as alone a request takes, waiting included; absent while unknown or
    /// idle.
    pub slowdown: Option<f64>,
    /// The work it does, as a share of what the host does at its best.
    pub share: f64,
    /// The work it does, processor seconds per second at most.
    pub effort: f64,
    /// Completions per second.
    pub rate: f64,
    /// The mean number of its requests in the application that it is held to; absent: none.
    pub cap: Option<f64>,
    /// The pause that each request gets, milliseconds: the declared one, and what a cap comes to.
    pub pause_ms: f64,
    /// Where it is taken: `around`, before the request goes to the application, or `inside`, by the
    /// application.
    pub pauses: String,
    /// Seconds that its last requests paused inside for each second of work, as the application says:
    /// 0 where it says nothing. Absent: none was told to pause.
    pub inside_ratio: Option<f64>,
    /// Requests in the application.
    pub in_flight: usize,
    /// Requests in the queues of its routes, or held by the declared pause.
    pub waiting: usize,
    /// What binds it.
    pub binding: String,
    /// The same as a sentence.
    pub explanation: String,
}

/// Returns the state of `service`, whose routes have these names.
pub(crate) fn state_of(service: &ServiceView, routes: Vec<String>) -> ServiceState {
    let amount = |amount: Option<Amount>| {
        amount.map(|amount| match amount {
            Amount::PerSecond(rate) => format!("{rate}/s"),
            Amount::OfHost(share) => format!("{} %", 100.0 * share),
        })
    };
    // JSON has no infinities.
    let number = |value: f64| if value.is_finite() { value } else { 0.0 };
    ServiceState {
        name: service.name.clone(),
        routes,
        mode: service.mode.word().to_string(),
        weight: service.wish.weight,
        floor: amount(service.wish.floor),
        ceiling: amount(service.wish.ceiling),
        slowdown_wished: service.wish.slowdown,
        alone_seconds: service.standing.alone,
        slowdown: service.standing.slowdown.filter(|slowdown| slowdown.is_finite()),
        share: number(service.standing.share),
        effort: number(service.standing.effort),
        rate: number(service.standing.rate),
        cap: service.standing.cap,
        pause_ms: number(1e3 * service.pause_seconds),
        pauses: service.pauses.word().to_string(),
        inside_ratio: service.inside_ratio,
        in_flight: service.in_flight,
        waiting: service.waiting,
        binding: service.standing.binding.word().to_string(),
        explanation: service.standing.binding.means().to_string(),
    }
}
