//! What is asked of the application, as its gate sees it.

/// What is asked of the application: what began and ended since the start, and what there is now.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Asked {
    /// Requests that were let in since the start.
    pub begun: u64,
    /// Requests that ended in the application since the start.
    pub ended: u64,
    /// Requests in the application.
    pub in_flight: u64,
    /// Requests that wait for it at a gate.
    pub waiting: u64,
    /// By [`KindId`](crate::KindId): newcomers that wait to be let in, those in line among them.
    pub newcomers: Vec<f64>,
    /// How full the fullest route is: requests in the application of its limit, 0 to 1. `None`: no route
    /// has a limit.
    pub fullness: Option<f64>,
    /// The same, of those routes alone whose limit a law has found.
    pub fullness_found: Option<f64>,
}
