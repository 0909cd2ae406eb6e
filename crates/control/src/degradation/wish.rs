//! What is wished for: how much each service may be slowed, and what it keeps.

/// An amount of a service: completions per second, or a share of the host's work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Amount {
    /// Completions per second; above 0.
    PerSecond(f64),
    /// Share of the host's work, above 0, at most 1: a floor is of what all services do, a ceiling of
    /// what they do at their best.
    OfHost(f64),
}

suimon_model::saved_enum!(Amount { 0 = PerSecond(value), 1 = OfHost(value) });

/// The wish for one service.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceWish {
    /// Its part of the host's work when that is short, relative to those of the others; above 0.
    pub weight: f64,
    /// What it keeps before the others get anything, as long as it asks for that much.
    pub floor: Option<Amount>,
    /// What it never gets more than.
    pub ceiling: Option<Amount>,
    /// How much it may be slowed, relative to those of the others; above 0.
    pub slowdown: f64,
    /// Seconds that a request takes alone, if declared; else learned.
    pub alone: Option<f64>,
}

suimon_model::saved_struct!(ServiceWish { weight, floor, ceiling, slowdown, alone }, |it: &ServiceWish| {
    let is_good = |value: f64| value.is_finite() && value > 0.0;
    let amount = |amount: &Option<Amount>| match amount {
        None => true,
        Some(Amount::PerSecond(value) | Amount::OfHost(value)) => is_good(*value),
    };
    is_good(it.weight)
        && is_good(it.slowdown)
        && amount(&it.floor)
        && amount(&it.ceiling)
        && it.alone.is_none_or(is_good)
});

impl Default for ServiceWish {
    fn default() -> Self {
        ServiceWish { weight: 1.0, floor: None, ceiling: None, slowdown: 1.0, alone: None }
    }
}

suimon_model::choices! {
    /// What the split of the host's work goes by.
    #[derive(Eq)]
    pub enum DegradationMode {
        /// Nothing is split.
        Off = 0, "off", "services are measured and shown, and nothing but a declared pause slows anybody";
        /// Work in the ratio of the weights; floors that cannot all be had shrink alike.
        Shares = 1, "shares", "work in the ratio of the weights, after the floors; floors that cannot all be had shrink alike";
        /// Relative response times in the ratio of the slowdowns.
        Slowdown = 2, "slowdown", "response times, relative to those alone, in the ratio of the slowdowns";
        /// Floors in the order written, the rest by weight.
        Bands = 3, "bands", "floors in the order the services are written in, each before the next, the rest by weight";
    }
}
