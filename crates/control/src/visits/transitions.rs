//! Where the sessions that stand at one place went on to, and how many of the silent come back.
//! Formulas are numbered as in `visits.rs`.

/// Stages of the silence that ends a session.
pub const STAGES: usize = 5;
/// The quantiles of the think times at which the next stage begins.
pub(super) const STAGE_QUANTILES: [f64; STAGES - 1] = [0.5, 0.8, 0.92, 0.98];
/// Weight of a newly observed return, or of its absence, in h of (4), and how many are needed for
/// it to be believed.
const RETURN_WEIGHT: f64 = 0.01;
const RETURNS_MIN: u64 = 8;
/// Weight of sessions of which that is unknown, as of ones that did not come back.
const OPEN_SHARE: f64 = 0.5;

/// What is known of the sessions at one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Transitions {
    /// By stage of silence.
    pub(super) sessions_here: [u32; STAGES],
    pub(super) ended: u64,
    /// (1), by route.
    pub(super) further: Vec<f64>,
    /// (5), by route.
    pub(super) next: Vec<f64>,
    /// By stage: h of (4).
    pub(super) returned: [ReturnShare; STAGES],
    pub(super) entered: ReturnCounts,
}

/// Sessions that began at one place: how many may still come back for another page, how many are
/// decided, and how many of those came back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReturnCounts {
    pub(super) open: u64,
    pub(super) known: u64,
    pub(super) came_back: u64,
}

impl ReturnCounts {
    pub(super) fn note(&mut self, news: bool, came_back: bool, remembered: u64) {
        self.open = self.open.saturating_sub(u64::from(news));
        self.known += u64::from(news);
        self.came_back += u64::from(came_back);
        if self.known > remembered {
            (self.known, self.came_back) = (self.known / 2, self.came_back / 2);
        }
    }

    /// Returns how many undecided sessions will come back, judged by the others. Half of the
    /// undecided count as if they did not: they have not so far.
    pub(super) fn will_come_back(&self) -> f64 {
        let open = self.open as f64;
        open * self.came_back as f64 / (self.known as f64 + OPEN_SHARE * open).max(1.0)
    }
}

/// An average of ones and zeros.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReturnShare {
    pub(super) count: u64,
    pub(super) share: f64,
}

impl ReturnShare {
    pub(super) fn fold(&mut self, came_back: bool) {
        self.count += 1;
        let weight = RETURN_WEIGHT.max(1.0 / self.count as f64);
        self.share += weight * (f64::from(u8::from(came_back)) - self.share);
    }
}

impl Transitions {
    /// Returns V of (4).
    pub(super) fn worth(&self, stage: usize) -> f64 {
        if stage == 0 {
            return 1.0;
        }
        let all = self.comes_back(0);
        if all > 0.0 { (self.comes_back(stage) / all).min(1.0) } else { 0.0 }
    }

    /// Returns P of (4): the share of sessions in `stage` of silence that come back.
    ///
    /// The end of the last stage is far off at first. Until it has been seen, visitors who come
    /// back are taken to think as long as all visitors do, and the rest, known from the first
    /// stages, are taken to have gone.
    pub(super) fn comes_back(&self, stage: usize) -> f64 {
        let stays_away =
            |returned: &[ReturnShare]| returned.iter().map(|returns| 1.0 - returns.share).product::<f64>();
        if self.returned[stage..].iter().all(|returns| returns.count >= RETURNS_MIN) {
            return 1.0 - stays_away(&self.returned[stage..]);
        }
        let known =
            self.returned.iter().take_while(|returns| returns.count >= RETURNS_MIN).count().min(STAGES - 1);
        if known == 0 {
            return 1.0;
        }
        let seen = 1.0 - stays_away(&self.returned[..known]);
        let come = (seen / STAGE_QUANTILES[known - 1]).min(1.0);
        let still_thinking = come * (1.0 - if stage == 0 { 0.0 } else { STAGE_QUANTILES[stage - 1] });
        still_thinking / (still_thinking + 1.0 - come).max(1e-9)
    }
}

suimon_model::saved_struct!(Transitions { sessions_here, ended, further, next, returned, entered });
suimon_model::saved_struct!(ReturnCounts { open, known, came_back });
suimon_model::saved_struct!(ReturnShare { count, share });
