//! Pauses inside requests: what the application says it has paused is no work.

use super::Gate;
use crate::requests::Request;
use suimon_control::PauseShare;
use suimon_model::{Duration, Instant, RequestId};

impl Gate {
    /// Takes note that the application says it has paused inside `request` for so long in all. That
    /// time is no work, as far as the ratio explains it that the request was told. Ignored for a
    /// request that never started.
    pub fn handle_paused(&mut self, request: RequestId, paused: Duration) {
        if let Some(entry) = self.requests.get_mut(request).filter(|entry| entry.stage.has_started()) {
            entry.paused = paused;
        }
    }

    /// Returns for how many of the seconds of its stay a request paused that ends now, and takes note
    /// of it where another time was expected.
    pub(super) fn settle_pauses(&mut self, now: Instant, entry: &Request, stay: f64) -> f64 {
        if entry.pause_share == PauseShare::NONE {
            return 0.0;
        }
        let expected = entry.pause_share.share() * stay;
        let paused = entry.paused.as_secs_f64().min(self.pause_max(entry, stay));
        self.services.paused_inside(now, entry.route, entry.pause_share, (stay, paused));
        self.meters[entry.route.index()].paused_more(paused - expected);
        paused
    }

    /// Returns for how many of the seconds of its stay the told ratio explains a pause: for its own
    /// work, and for that of one usual request before it, which may have left its pause to this one.
    /// What is beyond that would be work that nobody sees.
    fn pause_max(&self, entry: &Request, stay: f64) -> f64 {
        let usual = self.routes[entry.route.index()].took.mean().unwrap_or(0.0);
        (entry.pause_share.share() * (stay + usual)).min(stay)
    }
}
