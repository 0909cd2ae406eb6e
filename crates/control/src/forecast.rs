//! How far a forecast of waiting is believed: it is compared with what requests later waited.
//!
//! *Law*. f(t) is the wait predicted at t for a request that arrives at the route δ later, w(t)
//! what requests wait there at t. Then
//!
//! ```text
//! error(t) = max(f(t − δ), 0) − w(t)         bias = mean error, newest weight 1 − e^(−Δt / max(δ, 2 s)), within 0 … 4 δ        (1)
//! ```
//!
//! and f − bias is believed. A forecast that proves wrong loses its influence within about one δ of
//! being proved wrong; one that predicts a flood which is still on its way keeps it as far as δ is
//! right, as it is compared with that flood and not with the calm before. The bias may be more than
//! δ: where sessions differ much, δ is known to no better than a factor of two or three, and f is
//! R/X less δ. *Units*: seconds. *Limits*: at most [`PAST_MAX`] forecasts are remembered, evenly
//! spread over δ. *Source*: ours.

use std::collections::VecDeque;
use suimon_model::Instant;
use suimon_model::real::exp;

/// Forecasts remembered.
const PAST_MAX: usize = 64;
/// The largest bias, times δ: what is beyond it is no error of δ.
const BIAS_MAX: f64 = 4.0;
/// The least time constant of (1), seconds.
const MEMORY_MIN: f64 = 2.0;

/// Forecasts for one route, and their outcomes.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    past: VecDeque<(Instant, f64)>,
    bias: f64,
    ticked: Instant,
}

suimon_model::saved_struct!(Forecast { past, bias, ticked }, |it: &Forecast| it.past.len() <= PAST_MAX);

impl Forecast {
    /// Takes note of what is `foreseen` now for requests that come `delay` seconds later, and of
    /// what requests wait now; both in seconds.
    pub fn tick(&mut self, now: Instant, foreseen: f64, waited: f64, delay: f64) {
        let passed = now.secs_since(self.ticked).min(1.0);
        self.ticked = now;
        let grain = 2.0 * delay / PAST_MAX as f64;
        if self.past.back().is_none_or(|(at, _)| now.secs_since(*at) >= grain) {
            if self.past.len() == PAST_MAX {
                self.past.pop_front();
            }
            self.past.push_back((now, foreseen));
        }
        while self.past.get(1).is_some_and(|(at, _)| now.secs_since(*at) >= delay) {
            self.past.pop_front();
        }
        let Some((at, then)) = self.past.front() else { return };
        if now.secs_since(*at) < delay {
            return;
        }
        let weight = 1.0 - exp(-passed / delay.max(MEMORY_MIN));
        let error = then.max(0.0) - waited;
        self.bias = (self.bias + weight * (error - self.bias)).clamp(0.0, BIAS_MAX * delay);
    }

    /// Returns the seconds by which recent forecasts were too long.
    pub fn bias(&self) -> f64 {
        self.bias
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::{Rng, seconds};

    const TICK: f64 = 0.25;

    /// Plays `secs` from the origin on; `at` returns what is predicted and what is waited. Returns
    /// the bias at every tick.
    fn play(
        forecast: &mut Forecast,
        secs: f64,
        delay: f64,
        mut at: impl FnMut(f64) -> (f64, f64),
    ) -> Vec<f64> {
        let ticks = (secs / TICK) as u32;
        let tick = |n| {
            let now = f64::from(n) * TICK;
            let (foreseen, waited) = at(now);
            forecast.tick(Instant::ORIGIN + seconds(now), foreseen, waited, delay);
            forecast.bias()
        };
        (1..=ticks).map(tick).collect()
    }

    fn highest(biases: &[f64]) -> f64 {
        biases.iter().copied().fold(0.0, f64::max)
    }

    #[test]
    fn forecasts_that_come_true_have_no_bias() {
        for delay in [1.0, 8.0, 40.0] {
            let waits = |now: f64| 5.0 + 3.0 * suimon_model::real::cos(now / 20.0);
            let biases = play(&mut Forecast::default(), 300.0, delay, |now| (waits(now + delay), waits(now)));
            assert!(highest(&biases) < 0.2, "{} at a delay of {delay}", highest(&biases));
        }
    }

    #[test]
    fn forecasts_that_are_right_in_the_mean_have_little_bias() {
        let mut rng = Rng::new(5);
        let biases = play(&mut Forecast::default(), 600.0, 8.0, |_| (6.0 + 2.0 * rng.normal(), 6.0));
        let mean = biases.iter().sum::<f64>() / biases.len() as f64;
        assert!(mean < 0.5, "{mean}");
    }

    #[test]
    fn a_forecast_of_what_never_comes_is_all_bias_two_delays_after_it_is_first_proved_wrong() {
        let delay = 12.0;
        let biases = play(&mut Forecast::default(), 60.0, delay, |_| (10.0, 0.0));
        let after = |delays: f64| biases[(delays * delay / TICK) as usize - 1];
        assert!(after(0.95) == 0.0, "nothing is known before one delay has passed");
        assert!((5.5..7.0).contains(&after(2.0)), "{}", after(2.0));
        assert!((8.3..9.0).contains(&after(3.0)), "{}", after(3.0));
        assert!(after(5.0) > 9.5);
    }

    #[test]
    fn a_forecast_that_comes_true_again_is_believed_again() {
        let mut forecast = Forecast::default();
        let biases =
            play(&mut forecast, 120.0, 10.0, |now| if now < 60.0 { (10.0, 0.0) } else { (10.0, 10.0) });
        assert!(biases[239] > 9.5, "{}", biases[239]);
        assert!(forecast.bias() < 0.1, "{}", forecast.bias());
    }

    #[test]
    fn a_flood_that_is_still_on_its_way_keeps_its_say() {
        let delay = 10.0;
        let foreseen = |now: f64| (now - 20.0).clamp(0.0, 30.0);
        let biases =
            play(&mut Forecast::default(), 90.0, delay, |now| (foreseen(now), foreseen(now - delay)));
        assert!(highest(&biases) < 0.1, "{}", highest(&biases));
    }

    #[test]
    fn a_forecast_that_is_too_long_by_more_than_the_delay_is_corrected_all_the_same() {
        let delay = 3.5;
        let biases = play(&mut Forecast::default(), 30.0, delay, |_| (6.5, 0.1));
        assert!(highest(&biases) > 6.2, "{}", highest(&biases));
    }

    #[test]
    fn whatever_is_foreseen_bias_and_memory_stay_within_their_bounds() {
        for seed in 0..50 {
            let (mut rng, mut forecast, mut now) = (Rng::new(seed), Forecast::default(), 0.0);
            let mut delay = 5.0;
            for _ in 0..2000 {
                if rng.chance(0.02) {
                    delay = if rng.chance(0.1) { 0.0 } else { rng.exponential(20.0) };
                }
                now += rng.exponential(TICK);
                let foreseen = rng.between(-50.0, 200.0);
                forecast.tick(Instant::ORIGIN + seconds(now), foreseen, rng.exponential(10.0), delay);
                let bias = forecast.bias();
                assert!((0.0..=BIAS_MAX * delay).contains(&bias), "seed {seed}: {bias} of {delay}");
                assert!(forecast.past.len() <= PAST_MAX, "seed {seed}");
            }
        }
    }
}
