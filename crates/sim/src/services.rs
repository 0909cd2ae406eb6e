//! What was done for each service, second by second.

use serde::Serialize;
use suimon_gate::Services;
use suimon_model::{Duration, Instant, RouteId};

/// What was answered in one second, of one service.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct ServiceSecond {
    /// Requests answered.
    pub answered: u32,
    /// Seconds from request to answer, of all of them together.
    pub response_s: f64,
    /// Seconds that they would have taken alone, as declared, else on processors of speed 1.
    pub alone_s: f64,
    /// Processor seconds that they took.
    pub work_s: f64,
}

impl ServiceSecond {
    fn add(&mut self, other: &ServiceSecond) {
        self.answered += other.answered;
        self.response_s += other.response_s;
        self.alone_s += other.alone_s;
        self.work_s += other.work_s;
    }
}

/// A service over some time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct ServiceFigures {
    /// Answers per second.
    pub per_s: f64,
    /// Mean response time ÷ mean time alone; 0 where nothing was answered.
    pub slowdown: f64,
    /// The same ÷ that of the service written first; 0 where either is unknown.
    pub slowdown_ratio: f64,
    /// Processor seconds ÷ those of all services.
    pub share: f64,
}

/// The services of a run. Empty where none is declared.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ServiceSeries {
    /// By service: its name.
    pub names: Vec<String>,
    /// By service, then by second from the start.
    pub seconds: Vec<Vec<ServiceSecond>>,
    /// By route: its service; and by service: the seconds that a request takes alone, if declared.
    #[serde(skip)]
    of: Vec<Option<usize>>,
    #[serde(skip)]
    alone: Vec<Option<f64>>,
}

impl ServiceSeries {
    /// Returns nothing yet of these services on so many routes.
    pub(crate) fn new(Services { services, .. }: &Services, routes: usize) -> Self {
        let of = |route| services.iter().position(|service| service.routes.contains(&RouteId(route)));
        ServiceSeries {
            names: services.iter().map(|service| service.name.clone()).collect(),
            seconds: vec![vec![]; services.len()],
            alone: services.iter().map(|service| service.wish.alone).collect(),
            of: (0..routes as u32).map(of).collect(),
        }
    }

    /// Takes note of an answer to a request that takes `alone` seconds alone if nothing else was
    /// declared, `work` of them on a processor.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        route: RouteId,
        took: Duration,
        (alone, work): (f64, f64),
    ) {
        let Some(service) = self.of.get(route.index()).copied().flatten() else { return };
        let (seconds, second) = (&mut self.seconds[service], now.as_secs_f64() as usize);
        if seconds.len() <= second {
            seconds.resize(second + 1, ServiceSecond::default());
        }
        seconds[second].add(&ServiceSecond {
            answered: 1,
            response_s: took.as_secs_f64(),
            alone_s: self.alone[service].unwrap_or(alone),
            work_s: work,
        });
    }

    /// Returns each service's figures from `from` to `to`, seconds from the start, in whole
    /// seconds.
    pub fn between(&self, from: f64, to: f64) -> Vec<ServiceFigures> {
        let (from, to) = (from.round().max(0.0) as usize, to.round().max(0.0) as usize);
        let sum = |seconds: &Vec<ServiceSecond>| {
            let mut sum = ServiceSecond::default();
            let last = to.min(seconds.len());
            seconds[from.min(last)..last].iter().for_each(|second| sum.add(second));
            sum
        };
        let sums: Vec<ServiceSecond> = self.seconds.iter().map(sum).collect();
        let ratio = |of: f64, to: f64| if to > 0.0 { of / to } else { 0.0 };
        let work: f64 = sums.iter().map(|sum| sum.work_s).sum();
        let slowdown = |sum: &ServiceSecond| ratio(sum.response_s, sum.alone_s);
        let first = sums.first().map_or(0.0, slowdown);
        let figures = |sum: &ServiceSecond| ServiceFigures {
            per_s: ratio(sum.answered.into(), to.saturating_sub(from) as f64),
            slowdown: slowdown(sum),
            slowdown_ratio: ratio(slowdown(sum), first),
            share: ratio(sum.work_s, work),
        };
        sums.iter().map(figures).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(answered: u32, response_s: f64, alone_s: f64, work_s: f64) -> ServiceSecond {
        ServiceSecond { answered, response_s, alone_s, work_s }
    }

    #[test]
    fn figures_are_of_the_time_that_is_asked_for_and_relative_to_the_first_service() {
        let series = ServiceSeries {
            names: vec!["light".into(), "heavy".into()],
            seconds: vec![
                vec![second(9, 9.0, 0.9, 0.9), second(4, 0.8, 0.4, 0.4), second(4, 0.8, 0.4, 0.4)],
                vec![second(0, 0.0, 0.0, 0.0), second(1, 8.0, 1.0, 1.2)],
            ],
            ..ServiceSeries::default()
        };
        let [light, heavy] = series.between(1.0, 3.0)[..] else { panic!("two services") };
        assert!((light.per_s - 4.0).abs() < 1e-9 && (heavy.per_s - 0.5).abs() < 1e-9);
        assert!((light.slowdown - 2.0).abs() < 1e-9 && (heavy.slowdown - 8.0).abs() < 1e-9);
        assert!((heavy.slowdown_ratio - 4.0).abs() < 1e-9 && (heavy.share - 0.6).abs() < 1e-9);
        assert_eq!(series.between(7.0, 9.0)[1], ServiceFigures::default(), "nothing was answered then");
    }
}
