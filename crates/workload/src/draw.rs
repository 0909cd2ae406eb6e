//! The two random times of a visitor: think time, and patience with one answer.

use suimon_model::{Duration, Rng, seconds};

/// The time between an answer and the next request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Think {
    /// Always the same.
    Constant(Duration),
    /// Exponential with this mean.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Lognormal with this mean and coefficient of variation.
    Lognormal {
        /// The mean.
        mean: Duration,
        /// Standard deviation ÷ mean, at or above 0.
        cv: f64,
    },
}

impl Think {
    /// Returns one think time.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        match *self {
            Think::Constant(time) => time,
            Think::Exponential { mean } => seconds(rng.exponential(mean.as_secs_f64())),
            Think::Lognormal { mean, cv } => seconds(rng.lognormal(mean.as_secs_f64(), cv)),
        }
    }

    /// Returns the mean.
    pub const fn mean(&self) -> Duration {
        match *self {
            Think::Constant(mean) | Think::Exponential { mean } | Think::Lognormal { mean, .. } => mean,
        }
    }

    /// Returns the same shape with its mean divided by `divisor`.
    #[must_use]
    pub fn divided_by(self, divisor: f64) -> Self {
        match self {
            Think::Constant(time) => Think::Constant(time.div_f64(divisor)),
            Think::Exponential { mean } => Think::Exponential { mean: mean.div_f64(divisor) },
            Think::Lognormal { mean, cv } => Think::Lognormal { mean: mean.div_f64(divisor), cv },
        }
    }
}

/// How long a visitor waits for one whole answer before giving up the request.
#[derive(Clone, PartialEq, Debug)]
pub enum Patience {
    /// For ever.
    Endless,
    /// Always this long.
    Constant(Duration),
    /// One of several, by weight: `(weight, time)`.
    Mixture(Vec<(f64, Duration)>),
}

impl Patience {
    /// Returns one visitor's patience; `None`: waits for ever.
    pub fn draw(&self, rng: &mut Rng) -> Option<Duration> {
        match self {
            Patience::Endless => None,
            Patience::Constant(time) => Some(*time),
            Patience::Mixture(parts) => {
                let mut left = rng.uniform() * parts.iter().map(|(weight, _)| weight).sum::<f64>();
                let picked = parts.iter().find(|(weight, _)| {
                    left -= weight;
                    left < 0.0
                });
                picked.or(parts.last()).map(|(_, time)| *time)
            }
        }
    }

    /// Returns the same patience with every time divided by `divisor`.
    #[must_use]
    pub fn divided_by(self, divisor: f64) -> Self {
        match self {
            Patience::Endless => Patience::Endless,
            Patience::Constant(time) => Patience::Constant(time.div_f64(divisor)),
            Patience::Mixture(parts) => {
                Patience::Mixture(parts.into_iter().map(|(w, time)| (w, time.div_f64(divisor))).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 50_000;

    fn mean_and_cv(think: Think) -> (f64, f64) {
        let mut rng = Rng::new(3);
        let times: Vec<f64> = (0..DRAWS).map(|_| think.draw(&mut rng).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / f64::from(DRAWS);
        let variance = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / f64::from(DRAWS);
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn think_times_have_their_declared_mean_and_spread() {
        let mean = Duration::from_secs(3);
        for (think, cv) in [
            (Think::Constant(mean), 0.0),
            (Think::Exponential { mean }, 1.0),
            (Think::Lognormal { mean, cv: 0.5 }, 0.5),
        ] {
            let (seen_mean, seen_cv) = mean_and_cv(think);
            assert!((seen_mean - 3.0).abs() < 0.06, "{think:?}: mean {seen_mean}");
            assert!((seen_cv - cv).abs() < 0.03, "{think:?}: cv {seen_cv}");
        }
    }

    #[test]
    fn a_mixture_of_patience_is_drawn_by_its_weights() {
        let (short, long) = (Duration::from_secs(30), Duration::from_secs(60));
        let patience = Patience::Mixture(vec![(1.0, short), (3.0, long)]);
        let mut rng = Rng::new(5);
        let shorts = (0..DRAWS).filter(|_| patience.draw(&mut rng) == Some(short)).count();
        let share = shorts as f64 / f64::from(DRAWS);
        assert!((share - 0.25).abs() < 0.01, "{share}");
    }

    #[test]
    fn the_endless_wait_for_ever() {
        assert_eq!(Patience::Endless.draw(&mut Rng::new(1)), None);
    }
}
