//! Expectations of a run: bands in which its numbers must lie.

use crate::outcome::{RunResult, Summary};
use crate::services::ServiceFigures;
use std::fmt;

/// A number of a run, and the band it must lie in.
#[derive(Clone, PartialEq, Debug)]
pub struct Band {
    /// The number.
    pub metric: Metric,
    /// The service that it is of, by index and by name; `None`: of the whole run.
    pub service: Option<(usize, String)>,
    /// From and to, in seconds from the start; `None`: the measured time.
    pub between: Option<(f64, f64)>,
    /// Its minimum.
    pub min: Option<f64>,
    /// Its maximum.
    pub max: Option<f64>,
}

macro_rules! metrics {
    (
        run { $($(#[$doc:meta])* $name:ident = $key:literal: $of:expr;)+ }
        service { $($(#[$service_doc:meta])* $service_name:ident = $service_key:literal: $of_service:expr;)+ }
    ) => {
        /// A number of a run for which a band can be given.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Metric { $($(#[$doc])* $name,)+ $($(#[$service_doc])* $service_name,)+ }

        impl Metric {
            /// Every metric of a whole run.
            pub const ALL: &[Metric] = &[$(Metric::$name,)+];
            /// Every metric of a service.
            pub const OF_SERVICE: &[Metric] = &[$(Metric::$service_name,)+];

            /// Returns its name in scenario files and reports.
            pub const fn key(self) -> &'static str {
                match self { $(Metric::$name => $key,)+ $(Metric::$service_name => $service_key,)+ }
            }

            fn of(self, summary: &Summary, outcome: &RunResult, service: &ServiceFigures) -> f64 {
                let of: fn(&Summary, &RunResult, &ServiceFigures) -> f64 = match self {
                    $(Metric::$name => |summary, outcome, _| {
                        let of: fn(&Summary, &RunResult) -> f64 = $of;
                        of(summary, outcome)
                    },)+
                    $(Metric::$service_name => |_, _, service| {
                        let of: fn(&ServiceFigures) -> f64 = $of_service;
                        of(service)
                    },)+
                };
                of(summary, outcome, service)
            }
        }
    };
}

metrics! {
    run {
        /// Completed sessions as a share of what is reachable: of B, or of the demand if that is less.
        GoodputShare = "goodput_share": |s, _| s.goodput_share;
        /// Completed sessions as a share of B.
        BoundShare = "bound_share": |s, _| s.bound_share;
        /// Completed sessions per second.
        SessionsPerSecond = "sessions_per_s": |s, _| s.sessions_per_s;
        /// Completed sessions.
        Completed = "completed": |s, _| s.completed as f64;
        /// Timeouts, errors and refusals after the first page.
        MidSessionFailures = "mid_session_failures": |s, _| s.mid_session_failures as f64;
        /// Mid-session failures per session completed or left.
        MidSessionFailureShare = "mid_session_failure_share": |s, _| s.mid_session_failure_share;
        /// Timeouts and errors at the first page.
        FirstStepFailures = "first_step_failures": |s, _| s.first_step_failures as f64;
        /// Refusals at the first page.
        Refusals = "refusals": |s, _| (s.refusals + s.waiting_pages) as f64;
        /// 95th percentile of the time to the first good answer, seconds.
        WaitP95 = "wait_p95_s": |s, _| s.wait_p95_s;
        /// Work done per core-second in use.
        Efficiency = "efficiency": |s, _| s.efficiency;
        /// Seconds from the start until goodput over 30 s is 0.9 of what is reachable.
        SettledAfter = "settled_after_s": |s, _| s.settled_after_s.unwrap_or(f64::INFINITY);
        /// The highest limit divided by the lowest, of the route where that is most.
        LimitSwing = "limit_swing": |s, _| s.limit_swing;
        /// Windows at a limit under trial.
        TrialWindows = "trial_windows": |_, o| o.trial_windows as f64;
        /// Nodes that were there, on average.
        Nodes = "nodes": |s, _| s.nodes;
        /// Resident workers, on average.
        Residents = "residents": |s, _| s.residents;
        /// Decisions that changed their number.
        ResidentMoves = "resident_moves": |s, _| s.resident_moves as f64;
        /// Length of the measured time, seconds; it ends early if all visitors are done.
        Seconds = "seconds": |_, o| o.counted.1 - o.counted.0;
    }
    service {
        /// Answers per second.
        AnswersPerSecond = "per_s": |s| s.per_s;
        /// Mean response time ÷ mean time alone.
        Slowdown = "slowdown": |s| s.slowdown;
        /// The same ÷ that of the service written first.
        SlowdownRatio = "slowdown_ratio": |s| s.slowdown_ratio;
        /// Processor seconds ÷ those of all services.
        ShareOfServices = "share": |s| s.share;
    }
}

/// A band that a run missed.
#[derive(Clone, PartialEq, Debug)]
pub struct Miss {
    /// The seed.
    pub seed: u64,
    /// The band.
    pub band: Band,
    /// The number's value.
    pub seen: f64,
}

impl Band {
    /// Returns the band's number in `outcome`.
    pub fn value(&self, outcome: &RunResult) -> f64 {
        let summary = match self.between {
            Some((from, to)) => outcome.between(from, to),
            None => outcome.summary,
        };
        let service = self.service.as_ref().map_or(ServiceFigures::default(), |(service, _)| {
            let (from, to) = self.between.unwrap_or(outcome.counted);
            outcome.services.between(from, to).get(*service).copied().unwrap_or_default()
        });
        self.metric.of(&summary, outcome, &service)
    }

    /// Returns whether `value` lies in the band.
    pub fn holds(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }

    /// Returns the miss, if the run misses the band.
    pub fn judge(&self, outcome: &RunResult) -> Option<Miss> {
        let seen = self.value(outcome);
        (!self.holds(seen)).then(|| Miss { seed: outcome.seed, band: self.clone(), seen })
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, name)) = &self.service {
            write!(f, "{name}: ")?;
        }
        f.write_str(self.metric.key())?;
        if let Some((from, to)) = self.between {
            write!(f, " from {from} s to {to} s")?;
        }
        match (self.min, self.max) {
            (Some(min), Some(max)) if min >= max => write!(f, " exactly {min}"),
            (Some(min), Some(max)) => write!(f, " from {min} to {max}"),
            (Some(min), None) => write!(f, " at least {min}"),
            (None, Some(max)) => write!(f, " at most {max}"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {:.4}, expected {}", self.seed, self.seen, self.band)
    }
}
