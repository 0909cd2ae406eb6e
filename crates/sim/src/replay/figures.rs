//! Results of a gate's run for the visitors, counted while it runs.

use super::timeline::Timeline;
use suimon_gate::{Gate, Output};
use suimon_model::{Duration, Instant, Quantity, RouteId, Subject};
use suimon_record::Header;
use suimon_statistics::Histogram;

/// Results of a run for the visitors.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Requests that arrived.
    pub offered: u64,
    /// Requests that were admitted to the application.
    pub admitted: u64,
    /// Requests that were refused, without a position in line.
    pub refused: u64,
    /// Requests answered with a position in line, or that began the session of their position.
    pub waiting_pages: u64,
    /// Requests abandoned while they waited: their clients disconnected.
    pub abandoned: u64,
    /// In a what-if only: requests that did not arrive, or not before the end, because their
    /// session was turned away or late.
    pub not_come: u64,
    /// Mean wait of the admitted requests.
    pub wait_mean: Duration,
    /// Their wait's 95th percentile.
    pub wait_p95: Duration,
    /// Every route, in the order of ids.
    pub routes: Vec<RouteFigures>,
}

/// The results of one route.
#[derive(Clone, Debug)]
pub struct RouteFigures {
    /// Its name in metrics.
    pub name: String,
    /// Mean limit over time; `None` if it had none.
    pub limit_mean: Option<f64>,
}

/// Counts [`Figures`].
#[derive(Debug, Default)]
pub(super) struct Counter {
    counts: Figures,
    waits: Histogram,
    limits: Vec<Limit>,
    /// Also records a timeline, if there is one.
    pub(super) timeline: Option<Timeline>,
}

/// A route's limit, summed over time.
#[derive(Debug)]
struct Limit {
    name: String,
    now: Option<f64>,
    since: Instant,
    /// Limit times seconds, and seconds.
    sum: f64,
    seconds: f64,
}

impl Counter {
    /// Begins with the gate as it is at the beginning of a segment.
    pub(super) fn enter(&mut self, gate: &Gate, header: &Header) {
        // Another run may have other routes: those with the same name and index continue.
        for (index, route) in gate.snapshot(header.at).routes.iter().enumerate() {
            let name = header.routes.get(index).cloned().unwrap_or_else(|| format!("route {index}"));
            match self.limits.get_mut(index).filter(|limit| limit.name == name) {
                Some(limit) => limit.set(header.at, route.limit.map(f64::from)),
                None => {
                    self.limits.truncate(index);
                    self.limits.push(Limit::new(name, header.at, route.limit.map(f64::from)));
                }
            }
        }
    }

    /// Adds the route that was declared last.
    pub(super) fn declare(&mut self, now: Instant, gate: &Gate, name: String) {
        let snapshot = gate.snapshot(now);
        let limit = snapshot.routes.last().and_then(|route| route.limit);
        self.limits.truncate(snapshot.routes.len() - 1);
        self.limits.push(Limit::new(name, now, limit.map(f64::from)));
    }

    /// Notes that the number of `route` now belongs to another route.
    pub(super) fn renew(&mut self, now: Instant, gate: &Gate, route: RouteId, name: String) {
        if let Some(limit) = self.limits.get_mut(route.index()) {
            *limit = Limit::new(name, now, gate.limit(route).map(f64::from));
        }
    }

    pub(super) fn offered(&mut self) {
        self.counts.offered += 1;
    }

    pub(super) fn left(&mut self) {
        self.counts.abandoned += 1;
    }

    pub(super) fn answered(&mut self, now: Instant, output: &Output) {
        match output {
            Output::Start(start) => {
                self.counts.admitted += 1;
                self.waits.record(start.waited);
            }
            Output::Refuse(_) => self.counts.refused += 1,
            Output::Wait(_) => self.counts.waiting_pages += 1,
            Output::Resumed(_) => {}
            Output::Decided(record) => {
                if let (Subject::Route(route), Quantity::Limit) = (record.subject, record.quantity)
                    && let Some(limit) =
                        self.limits.get_mut(route.index()).filter(|limit| limit.now.is_some())
                {
                    limit.advance(now);
                    limit.now = Some(record.new);
                }
            }
        }
    }

    /// Notes that limits were in force until `now`.
    pub(super) fn until(&mut self, now: Instant) {
        self.limits.iter_mut().for_each(|limit| limit.advance(now));
    }

    /// Ends a run; the next one has a clock of its own.
    pub(super) fn leave(&mut self, now: Instant) {
        self.until(now);
    }

    pub(super) fn figures(&self) -> Figures {
        let route = |limit: &Limit| RouteFigures {
            name: limit.name.clone(),
            limit_mean: limit
                .now
                .map(|now| if limit.seconds > 0.0 { limit.sum / limit.seconds } else { now }),
        };
        Figures {
            wait_mean: self.waits.mean().unwrap_or_default(),
            wait_p95: self.waits.quantile(0.95).unwrap_or_default(),
            routes: self.limits.iter().map(route).collect(),
            ..self.counts.clone()
        }
    }
}

impl Limit {
    fn new(name: String, since: Instant, now: Option<f64>) -> Self {
        Limit { name, now, since, sum: 0.0, seconds: 0.0 }
    }

    fn set(&mut self, now: Instant, limit: Option<f64>) {
        self.now = limit;
        self.since = now;
    }

    fn advance(&mut self, now: Instant) {
        let seconds = now.secs_since(self.since);
        self.sum += self.now.unwrap_or(0.0) * seconds;
        self.seconds += seconds;
        self.since = self.since.max(now);
    }
}
