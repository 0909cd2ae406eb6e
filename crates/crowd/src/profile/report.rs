//! The numbers of a degradation scheme. Times are in seconds.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use suimon_model::Instant;
use suimon_statistics::Histogram;

use super::books::{PointBooks, Segment, ServiceBooks};
use super::plan::{Plan, Point, Role};
use super::stop::StopRule;
use crate::quantiles::Quantiles;

/// Bins to each doubling in a distribution: 64 ÷ 8 = 8.
const BINS_MERGED: usize = 8;

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProfileReport {
    /// The version of the program that measured.
    pub version: String,
    /// Where the requests went.
    pub target: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: f64,
    /// The light service.
    pub light: String,
    /// The heavy service.
    pub heavy: String,
    /// Whether each request came over a connection of its own.
    pub new_connections: bool,
    /// How long one answer was waited for.
    pub timeout_s: f64,
    /// The share of a service's requests that may fail.
    pub errors_max: f64,
    /// Points that were planned.
    pub points_planned: usize,
    /// Why it ended.
    pub ended: Ended,
    /// The same in a sentence, if not all was measured.
    pub why: Option<String>,
    /// What was measured, in the order in which it was; also a point that was stopped in the
    /// middle.
    pub points: Vec<PointReport>,
    /// Every second of the run, warm-ups and the time between points included.
    pub series: Vec<Second>,
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All points were measured.
    AllPoints,
    /// Too much failed.
    Errors,
    /// It was interrupted.
    Interrupted,
}

/// What was measured with so many requests of each service in flight.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PointReport {
    /// Light requests that were to be in flight.
    pub light_in_flight: u32,
    /// Heavy requests that were to be in flight.
    pub heavy_in_flight: u32,
    /// Whether it was one request at a time of one service, to compare the others with.
    pub alone: bool,
    /// When the point began, in seconds since the run began.
    pub from_s: f64,
    /// When its measuring began.
    pub measured_from_s: f64,
    /// When its measuring ended.
    pub to_s: f64,
    /// The light service, if it was asked for.
    pub light: Option<ServiceReport>,
    /// The heavy service, if it was asked for.
    pub heavy: Option<ServiceReport>,
    /// The measuring program's own CPU time ÷ time: above 0.8 or so it was the bottleneck.
    pub client_cpu_share: f64,
}

/// One service at one point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ServiceReport {
    /// Requests that were in flight, as a mean over the measured time.
    pub in_flight_mean: f64,
    /// Requests that were answered well.
    pub completed: u64,
    /// The same, per second.
    pub per_second: f64,
    /// Response times, from when the client began to ask to the last byte.
    pub response: Quantiles,
    /// Mean response time ÷ that of the service alone.
    pub slowdown: Option<f64>,
    /// Requests that failed, within the measured time.
    pub errors: u64,
    /// Their share of all that ended.
    pub error_share: f64,
    /// Them by kind.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Parts of the response time as the client saw them: `connect`, `write`, `first byte`, `last
    /// byte`.
    pub segments: BTreeMap<String, Quantiles>,
    /// Parts that the application told of, by `Server-Timing`; of the answers that told.
    pub told: BTreeMap<String, Quantiles>,
    /// Response times, in bins.
    pub distribution: Vec<DistributionBin>,
}

/// How many response times were within bounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct DistributionBin {
    /// The lowest of the bin.
    pub from_s: f64,
    /// The first above it.
    pub to_s: f64,
    /// How many.
    pub count: u64,
}

/// Requests that were answered well in one second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Light ones.
    pub light: u32,
    /// Heavy ones.
    pub heavy: u32,
}

impl PointReport {
    /// Returns the service, if it was asked for.
    pub const fn service(&self, role: Role) -> Option<&ServiceReport> {
        match role {
            Role::Light => self.light.as_ref(),
            Role::Heavy => self.heavy.as_ref(),
        }
    }

    /// Returns the report of a point that began at `began` and was measured until `now`; `cpu` is
    /// what this program used meanwhile.
    pub(crate) fn new(
        point: &Point,
        books: &PointBooks,
        began: Instant,
        now: Instant,
        cpu: Duration,
        before: &[PointReport],
    ) -> Self {
        let window = books.window;
        let to = window.to.min(now).max(began);
        let measured_s = to.secs_since(window.from);
        let service = |role: Role| {
            let alone = before.iter().filter(|point| point.alone).find_map(|point| point.service(role));
            let alone = alone.filter(|alone| alone.completed > 0).map(|alone| alone.response.mean_s);
            (point.in_flight(role) > 0).then(|| ServiceReport::new(books.service(role), measured_s, alone))
        };
        let mut report = PointReport {
            light_in_flight: point.light,
            heavy_in_flight: point.heavy,
            alone: point.alone,
            from_s: began.as_secs_f64(),
            measured_from_s: window.from.min(to).as_secs_f64(),
            to_s: to.as_secs_f64(),
            light: service(Role::Light),
            heavy: service(Role::Heavy),
            client_cpu_share: cpu.as_secs_f64() / to.secs_since(began).max(1e-9),
        };
        if point.alone {
            for service in [&mut report.light, &mut report.heavy].into_iter().flatten() {
                service.slowdown = (service.completed > 0).then_some(1.0);
            }
        }
        report
    }
}

impl ServiceReport {
    fn new(books: &ServiceBooks, measured_s: f64, alone_s: Option<f64>) -> Self {
        let completed = books.response.count();
        let errors: u64 = books.errors.values().sum();
        let response = Quantiles::of(&books.response);
        let slowdown = alone_s.filter(|_| completed > 0).map(|alone| response.mean_s / alone.max(1e-9));
        let segments = Segment::ALL.iter().zip(&books.segments);
        ServiceReport {
            in_flight_mean: books.in_flight.as_secs_f64() / measured_s.max(1e-9),
            completed,
            per_second: completed as f64 / measured_s.max(1e-9),
            response,
            slowdown,
            errors,
            error_share: errors as f64 / (completed + errors).max(1) as f64,
            errors_by_kind: books.errors.iter().map(|(kind, count)| (kind.to_string(), *count)).collect(),
            segments: segments
                .map(|(segment, times)| (segment.name().to_owned(), Quantiles::of(times)))
                .collect(),
            told: books.told.iter().map(|(name, times)| (name.clone(), Quantiles::of(times))).collect(),
            distribution: bins(&books.response),
        }
    }
}

fn bins(times: &Histogram) -> Vec<DistributionBin> {
    let bin = |bin: suimon_statistics::Bin| DistributionBin {
        from_s: bin.from.as_secs_f64(),
        to_s: bin.to.as_secs_f64(),
        count: bin.count,
    };
    times.bins(BINS_MERGED).into_iter().map(bin).collect()
}

impl ProfileReport {
    /// Returns a report of nothing yet.
    pub(crate) fn new(target: &str, plan: &Plan, started: SystemTime) -> Self {
        ProfileReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: target.to_owned(),
            started_unix_s: started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            light: plan.light.to_string(),
            heavy: plan.heavy.to_string(),
            new_connections: plan.new_connections,
            timeout_s: plan.timeout.as_secs_f64(),
            errors_max: plan.errors_max,
            points_planned: plan.points().len(),
            ended: Ended::AllPoints,
            why: None,
            points: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Returns what the role's service is called.
    pub fn name(&self, role: Role) -> &str {
        match role {
            Role::Light => &self.light,
            Role::Heavy => &self.heavy,
        }
    }

    /// Returns the points with light requests in flight and heavy ones beside them: the degradation
    /// scheme.
    pub fn together(&self) -> impl Iterator<Item = &PointReport> {
        self.points.iter().filter(|point| !point.alone)
    }

    /// Says why it ended before all was measured, if it did.
    pub(crate) fn end(&mut self, ended: Ended, plan: &Plan, point: &Point, books: &PointBooks) {
        self.ended = ended;
        let at = format!("{} light and {} heavy requests in flight", point.light, point.heavy);
        self.why = match ended {
            Ended::AllPoints => None,
            Ended::Interrupted => Some(format!("Interrupted with {at}.")),
            Ended::Errors => books.broken(StopRule::new(plan.errors_max)).map(|role| {
                let service = books.service(role);
                // As it was written: 7 %, not 7.000000000000001 %.
                let per_cent = (plan.errors_max * 1e6).round() / 1e4;
                format!(
                    "Stopped with {at}: {} of {} requests for {} failed{}, and {per_cent} % may.",
                    service.errors_ever,
                    service.ended_ever,
                    plan.service(role),
                    kinds(service)
                )
            }),
        };
    }
}

/// Returns how requests failed, the most frequent kind first, in brackets.
fn kinds(service: &ServiceBooks) -> String {
    let mut kinds: Vec<_> = service.kinds_ever.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let all: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::super::books::Answered;
    use super::super::plan::tests::plan;
    use super::*;
    use crate::trouble::Trouble;
    use suimon_workload::Window;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn answered(ms: u64) -> Result<Answered, Trouble> {
        let segments = [1, 0, ms - 1, 0].map(Duration::from_millis);
        Ok(Answered { segments, told: vec![("job".to_owned(), Duration::from_millis(ms / 2))] })
    }

    /// A point of two seconds with one answer a tenth of a second, each after `ms`.
    fn report(point: &Point, ms: u64, before: &[PointReport]) -> PointReport {
        let mut books = PointBooks::new(Window { from: at(1000), to: at(3000) });
        for role in Role::ALL.into_iter().filter(|role| point.in_flight(*role) > 0) {
            for end in (1000..3000).step_by(100) {
                books.ended(role, at(end - ms), at(end), answered(ms));
            }
        }
        PointReport::new(point, &books, at(500), at(3000), Duration::from_millis(250), before)
    }

    #[test]
    fn slowdown_is_against_the_service_alone() {
        let points = plan().points();
        let mut reports = vec![];
        for (point, ms) in points.iter().zip([10, 100, 50, 200, 400]) {
            let next = report(point, ms, &reports);
            reports.push(next);
        }
        let slowdowns = |role| -> Vec<_> {
            reports.iter().map(|point| point.service(role).and_then(|service| service.slowdown)).collect()
        };
        assert_eq!(slowdowns(Role::Light), [Some(1.0), None, Some(5.0), Some(20.0), Some(40.0)]);
        assert_eq!(slowdowns(Role::Heavy), [None, Some(1.0), None, Some(2.0), Some(4.0)]);
    }

    #[test]
    fn a_point_counts_its_measured_time() {
        let point = report(&plan().points()[2], 50, &[]);
        let light = point.light.as_ref().unwrap();
        assert_eq!((light.completed, light.errors, point.heavy.is_none()), (20, 0, true));
        assert!((light.per_second - 10.0).abs() < 1e-9, "{}", light.per_second);
        assert!((light.in_flight_mean - 0.475).abs() < 1e-9, "{}", light.in_flight_mean);
        assert!((point.client_cpu_share - 0.1).abs() < 1e-9);
        assert!((light.segments["connect"].mean_s - 0.001).abs() < 1e-9);
        assert!((light.told["job"].mean_s - 0.025).abs() < 1e-9);
        assert_eq!(light.distribution.iter().map(|bin| bin.count).sum::<u64>(), 20);
        assert_eq!(light.slowdown, None, "nobody knows what it is alone");
    }

    #[test]
    fn a_point_that_was_stopped_in_its_warm_up_has_measured_nothing() {
        let books = PointBooks::new(Window { from: at(1000), to: at(3000) });
        let point = PointReport::new(&plan().points()[2], &books, at(500), at(700), Duration::ZERO, &[]);
        let light = point.light.unwrap();
        assert_eq!((light.completed, light.slowdown), (0, None));
        assert!(light.per_second.abs() < 1e-9 && light.in_flight_mean.is_finite());
        assert!((point.to_s - 0.7).abs() < 1e-9 && (point.measured_from_s - 0.7).abs() < 1e-9);
    }

    #[test]
    fn who_stopped_it_is_said_with_why() {
        let plan = plan();
        let mut books = PointBooks::new(Window { from: at(0), to: at(3000) });
        for (count, trouble) in [(1, Trouble::TimedOut), (5, Trouble::Status(503))] {
            for _ in 0..count {
                books.ended(Role::Heavy, at(100), at(200), Err(trouble));
            }
        }
        let mut report = ProfileReport::new("http://x", &plan, SystemTime::now());
        report.end(Ended::Errors, &plan, &plan.points()[4], &books);
        assert_eq!(
            report.why.unwrap(),
            "Stopped with 30 light and 40 heavy requests in flight: 6 of 6 requests for POST /report?of=all \
             failed (status_503 5, timeout 1), and 10 % may."
        );
    }
}
