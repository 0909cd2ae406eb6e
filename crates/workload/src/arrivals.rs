//! When users start: a closed crowd that is present from the beginning, or an open stream with a
//! rate.

use suimon_model::{Duration, Instant, Rng, seconds};

use crate::Think;

/// How users arrive.
#[derive(Clone, PartialEq, Debug)]
pub enum Arrivals {
    /// A fixed number of users, each playing one session after another.
    Closed {
        /// The number of users.
        users: u32,
        /// The time over which the first sessions are spread.
        start_over: Duration,
        /// How they are spread.
        spacing: Spacing,
        /// Sessions each user plays; `None` = one after another without end.
        sessions_each: Option<u32>,
        /// Time between the end of a user's session and the user's next one.
        pause: Think,
    },
    /// New users at a rate, one session each, whatever happens to earlier users.
    Open {
        /// Phases, one after another; no user arrives after the last.
        phases: Vec<Phase>,
        /// How they are spread.
        spacing: Spacing,
        /// The most users at once; further ones are not started, only counted.
        users_max: u32,
    },
}

/// A span of time in which the arrival rate changes linearly.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Phase {
    /// Its length; `Duration::MAX` for ever (then both rates are the same).
    pub lasts: Duration,
    /// Sessions per second at its beginning, at or above 0.
    pub from_per_s: f64,
    /// Sessions per second at its end, at or above 0.
    pub to_per_s: f64,
}

/// How starts are spread in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spacing {
    /// At equal intervals.
    Even,
    /// As a Poisson process: independently of each other.
    Poisson,
}

impl Arrivals {
    /// Returns the most users there can be at once.
    pub const fn users_max(&self) -> u32 {
        match self {
            Arrivals::Closed { users, .. } => *users,
            Arrivals::Open { users_max, .. } => *users_max,
        }
    }

    /// Returns whether new sessions begin for ever.
    pub fn is_endless(&self) -> bool {
        match self {
            Arrivals::Closed { sessions_each, .. } => sessions_each.is_none(),
            Arrivals::Open { phases, .. } => phases.iter().any(|phase| phase.lasts == Duration::MAX),
        }
    }

    pub(crate) fn faster_by(self, divisor: f64) -> Self {
        match self {
            Arrivals::Closed { users, start_over, spacing, sessions_each, pause } => Arrivals::Closed {
                users,
                start_over: start_over.div_f64(divisor),
                spacing,
                sessions_each,
                pause: pause.divided_by(divisor),
            },
            Arrivals::Open { phases, spacing, users_max } => Arrivals::Open {
                phases: phases.into_iter().map(|phase| phase.faster_by(divisor)).collect(),
                spacing,
                users_max,
            },
        }
    }
}

impl Phase {
    fn faster_by(self, divisor: f64) -> Self {
        let endless = self.lasts == Duration::MAX;
        Phase {
            lasts: if endless { self.lasts } else { self.lasts.div_f64(divisor) },
            from_per_s: self.from_per_s * divisor,
            to_per_s: self.to_per_s * divisor,
        }
    }
}

/// A user starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// The user's number, from 0.
    pub user: u32,
    /// When the user's first session begins.
    pub at: Instant,
}

/// The starts of all users, in order of time. The iterator ends after the last.
#[derive(Clone, Debug)]
pub struct Starts {
    user: u32,
    plan: Plan,
}

#[derive(Clone, Debug)]
enum Plan {
    /// Starts that are known from the beginning, the last first.
    Listed(Vec<Instant>),
    Stream {
        phases: Vec<Phase>,
        spacing: Spacing,
        rng: Rng,
        /// The current phase, when it began, and the seconds of it that have passed.
        phase: usize,
        phase_began: f64,
        into_phase: f64,
    },
}

impl Starts {
    /// Returns the starts of `arrivals`, counted from the origin; equal seeds give equal starts.
    pub fn new(arrivals: &Arrivals, seed: u64) -> Self {
        // No user's stream may be that of the arrivals, whatever the user's number (32 bits).
        let mut rng = Rng::stream(seed, u64::MAX);
        let plan = match arrivals {
            Arrivals::Closed { users, start_over, spacing, .. } => {
                let spread = start_over.as_secs_f64();
                let mut times: Vec<f64> = match spacing {
                    Spacing::Even => (0..*users).map(|i| spread * f64::from(i) / f64::from(*users)).collect(),
                    Spacing::Poisson => (0..*users).map(|_| rng.between(0.0, spread)).collect(),
                };
                times.sort_by(|a, b| b.total_cmp(a));
                Plan::Listed(times.into_iter().map(|at| Instant::ORIGIN + seconds(at)).collect())
            }
            Arrivals::Open { phases, spacing, .. } => Plan::Stream {
                phases: phases.clone(),
                spacing: *spacing,
                rng,
                phase: 0,
                phase_began: 0.0,
                into_phase: 0.0,
            },
        };
        Starts { user: 0, plan }
    }
}

impl Iterator for Starts {
    type Item = Start;

    fn next(&mut self) -> Option<Start> {
        let at = match &mut self.plan {
            Plan::Listed(times) => times.pop()?,
            Plan::Stream { phases, spacing, rng, phase, phase_began, into_phase } => {
                // A stream of varying rate is a stream of rate 1, on a clock whose speed is the
                // rate.
                let mut ahead = match spacing {
                    Spacing::Even => 1.0,
                    Spacing::Poisson => rng.exponential(1.0),
                };
                loop {
                    let current = phases.get(*phase)?;
                    match reach(current, *into_phase, ahead) {
                        Ok(reached) => {
                            *into_phase = reached;
                            break Instant::ORIGIN + seconds(*phase_began + reached);
                        }
                        Err(left) => {
                            ahead = left;
                            *phase += 1;
                            *phase_began += current.lasts.as_secs_f64();
                            *into_phase = 0.0;
                        }
                    }
                }
            }
        };
        let user = self.user;
        self.user = self.user.checked_add(1)?;
        Some(Start { user, at })
    }
}

/// Returns the seconds into the phase at which `ahead` further arrivals are due, from `into`
/// seconds on. If the phase ends before that, returns how many of the arrivals are left.
fn reach(phase: &Phase, into: f64, ahead: f64) -> Result<f64, f64> {
    let lasts = phase.lasts.as_secs_f64();
    let slope = (phase.to_per_s - phase.from_per_s) / lasts.max(f64::MIN_POSITIVE);
    let rate = phase.from_per_s + slope * into;
    let rest = (lasts - into).max(0.0);
    let due_in_rest = (rate + slope * rest / 2.0) * rest;
    if due_in_rest < ahead {
        return Err(ahead - due_in_rest);
    }
    // The root of rate·x + slope·x²/2 = ahead, in the form that stays exact for a slope near 0.
    let root = (rate * rate + 2.0 * slope * ahead).max(0.0).sqrt();
    Ok(into + (2.0 * ahead / (rate + root)).min(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(phases: &[(f64, f64, f64)], spacing: Spacing) -> Arrivals {
        let phases = phases
            .iter()
            .map(|&(lasts, from_per_s, to_per_s)| Phase {
                lasts: if lasts.is_finite() { seconds(lasts) } else { Duration::MAX },
                from_per_s,
                to_per_s,
            })
            .collect();
        Arrivals::Open { phases, spacing, users_max: 1000 }
    }

    fn closed(users: u32, spacing: Spacing) -> Arrivals {
        Arrivals::Closed {
            users,
            start_over: Duration::from_secs(1),
            spacing,
            sessions_each: Some(1),
            pause: Think::Constant(Duration::ZERO),
        }
    }

    fn times(arrivals: &Arrivals, seed: u64) -> Vec<f64> {
        Starts::new(arrivals, seed).map(|start| start.at.as_secs_f64()).collect()
    }

    #[test]
    fn a_closed_crowd_starts_within_its_spread_and_in_order() {
        for spacing in [Spacing::Even, Spacing::Poisson] {
            let times = times(&closed(400, spacing), 7);
            assert_eq!(times.len(), 400);
            assert!(times.is_sorted());
            assert!(times[0] >= 0.0 && times[399] < 1.0);
            let mean = times.iter().sum::<f64>() / 400.0;
            assert!((mean - 0.5).abs() < 0.06, "{spacing:?} {mean}");
        }
    }

    #[test]
    fn even_spacing_keeps_its_distance() {
        let times = times(&open(&[(10.0, 2.0, 2.0)], Spacing::Even), 1);
        assert_eq!(times.len(), 20);
        assert!(times.windows(2).all(|pair| (pair[1] - pair[0] - 0.5).abs() < 1e-6));
    }

    #[test]
    fn poisson_arrivals_have_the_declared_rate_and_exponential_gaps() {
        let times = times(&open(&[(2000.0, 10.0, 10.0)], Spacing::Poisson), 3);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 0.1).abs() < 0.003, "mean gap {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.04, "cv {}", variance.sqrt() / mean);
    }

    #[test]
    fn a_ramp_fills_its_triangle_and_a_step_its_rectangle() {
        // Ramp 0 → 10/s over 100 s: 500 arrivals, a quarter of them in the first half. Then 5/s for
        // 100 s.
        for spacing in [Spacing::Even, Spacing::Poisson] {
            let arrivals = open(&[(100.0, 0.0, 10.0), (50.0, 0.0, 0.0), (100.0, 5.0, 5.0)], spacing);
            let times = times(&arrivals, 9);
            let within =
                |low: f64, high: f64| times.iter().filter(|t| (low..high).contains(*t)).count() as f64;
            assert!((within(0.0, 50.0) - 125.0).abs() < 45.0, "{}", within(0.0, 50.0));
            assert!((within(50.0, 100.0) - 375.0).abs() < 75.0);
            assert!(within(100.0, 150.0) <= 1.0, "nobody comes at rate 0");
            assert!((within(150.0, 250.0) - 500.0).abs() < 80.0);
            assert!(times.is_sorted());
        }
    }

    #[test]
    fn a_falling_ramp_ends_where_it_ends() {
        let times = times(&open(&[(100.0, 10.0, 0.0)], Spacing::Even), 9);
        assert!((499..=500).contains(&times.len()), "{}", times.len());
        assert!(times.iter().all(|t| *t <= 100.0));
    }

    #[test]
    fn an_endless_phase_never_ends() {
        let arrivals = open(&[(f64::INFINITY, 3.0, 3.0)], Spacing::Poisson);
        assert!(arrivals.is_endless());
        assert_eq!(Starts::new(&arrivals, 1).take(10_000).count(), 10_000);
    }

    #[test]
    fn equal_seeds_start_equally() {
        let arrivals = open(&[(100.0, 5.0, 5.0)], Spacing::Poisson);
        assert_eq!(times(&arrivals, 4), times(&arrivals, 4));
        assert_ne!(times(&arrivals, 4), times(&arrivals, 5));
    }

    #[test]
    fn a_faster_world_has_the_same_starts_sooner() {
        let arrivals = open(&[(10.0, 2.0, 8.0)], Spacing::Even);
        let (slow, fast) = (times(&arrivals, 1), times(&arrivals.clone().faster_by(4.0), 1));
        assert_eq!(slow.len(), fast.len());
        assert!(slow.iter().zip(&fast).all(|(slow, fast)| (slow / 4.0 - fast).abs() < 1e-6));
    }
}
