//! How far a service is from its wish.

/// Where a service is with its wish, in a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// Its index.
    pub(super) service: u32,
    /// The share of what is known of it that the last window told.
    pub(super) told: f64,
    /// D, and e of (4) or (5).
    pub(super) slowdown: f64,
    /// Seconds from arrival to the end, by Little's law, and completions per second.
    pub(super) response: f64,
    pub(super) rate: f64,
    /// Time in the application ÷ the same alone.
    pub(super) stretch: f64,
    pub(super) error: f64,
    /// Whether it is slowed at all.
    pub(super) is_behind: bool,
    /// Whether it has a cap.
    pub(super) is_capped: bool,
    /// Whether the service that is looked at has given up helping this one.
    pub(super) is_given_up: bool,
    /// Its floor as effort, none: 0; what is to be aimed at ÷ that, if there is room, and what is
    /// aimed at; its ceiling, none: infinite.
    pub(super) wished_floor: f64,
    pub(super) floor_aim: f64,
    pub(super) floor: f64,
    pub(super) ceiling: f64,
    pub(super) effort: f64,
}
