//! Pauses inside requests: what a ratio of pause and work makes of a request's time.

/// The most seconds of pause for each second of work.
pub const PAUSE_RATIO_MAX: f64 = 100.0;

const MILLION: f64 = 1e6;

/// The share of its time in the application for which a request is expected to pause. In millionths,
/// so that those of many requests are added, and taken off again, without a remainder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PauseShare {
    millionths: u32,
}

suimon_model::saved_struct!(PauseShare { millionths }, |it: &PauseShare| f64::from(it.millionths) < MILLION);

impl PauseShare {
    /// Of a request that nobody told to pause.
    pub const NONE: PauseShare = PauseShare { millionths: 0 };

    /// Returns the share of a request that is told `ratio`, seconds of pause for each second of work.
    pub fn of(ratio: f64) -> Self {
        let ratio = ratio.clamp(0.0, PAUSE_RATIO_MAX);
        // Rounded up: by a millionth too little, requests that pause as told would run into debt.
        PauseShare { millionths: (MILLION * ratio / (1.0 + ratio)).ceil() as u32 }
    }

    /// Returns the share, 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.millionths) / MILLION
    }

    /// Returns it as a number to be added to others.
    pub fn millionths(self) -> u64 {
        u64::from(self.millionths)
    }

    /// Returns how many requests a sum of shares comes to.
    pub fn sum(millionths: u64) -> f64 {
        millionths as f64 / MILLION
    }
}
