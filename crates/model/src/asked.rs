//! What is asked of the application's nodes, as the gate sees it.

/// What is asked of the application's nodes: what began and ended since the start, and what there is now.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Asked {
    /// Requests that were let in since the start.
    pub begun: u64,
    /// Requests that ended since the start, those among them whose clients left.
    pub ended: u64,
    /// Of these, those that were answered, well or not.
    pub answered: u64,
    /// Requests in the application.
    pub in_flight: u64,
    /// Requests that wait at routes without a declared limit.
    pub waiting: u64,
    /// By [`KindId`](crate::KindId): newcomers that wait to be let in and would be if more could be served,
    /// those in line among them.
    pub newcomers: Vec<f64>,
    /// How full routes are with a limit that a law holds; `None`: there are none.
    pub fullness: Option<Fullness>,
    /// How full those are whose limit the law has found, or has had to lower.
    pub fullness_found: Option<Fullness>,
}

/// How full routes are.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Fullness {
    /// Requests in the application of the limit, at most 1: the mean, weighted by the requests.
    pub mean: f64,
    /// Whether most requests in the application are at these routes.
    pub is_of_most: bool,
}
