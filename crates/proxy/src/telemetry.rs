//! What the proxy counts: plain atomics on the request path, gathered into a [`View`] when somebody
//! looks.

mod others;

use crate::liveness::ResponseLiveness;
use crate::sharing_view::SharingView;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use suimon_gate::{KindView, Learned, RouteView, Snapshot};
use suimon_model::{KindId, Reason, RouteId};
use suimon_params::SessionKind;
use suimon_routes::{route_of, row};
use suimon_statistics::Buckets;
use suimon_upstream::RetryCounts;

/// Upper bounds of the histograms' buckets, in seconds; one more bucket holds what is longer.
pub const BUCKETS: [f64; 20] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 20.0, 30.0, 60.0,
];

/// The same for waits in line, which take minutes and hours.
pub const WAIT_BUCKETS: [f64; 20] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 450.0, 600.0, 900.0,
    1200.0, 1800.0, 3600.0, 7200.0,
];

/// The shortest time between two warnings of the same thing.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// A distribution of times.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64; BUCKETS.len()],
    counts: [AtomicU64; BUCKETS.len() + 1],
    nanos: AtomicU64,
}

/// A distribution of times at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Times {
    /// How many fell into each of [`BUCKETS`], or of [`WAIT_BUCKETS`], not cumulated; the last is
    /// for what is longer.
    pub counts: [u64; BUCKETS.len() + 1],
    /// All times together, seconds.
    pub sum_seconds: f64,
}

/// Everything counted.
#[derive(Debug)]
pub(crate) struct Telemetry {
    /// By [`row`]; room for every route there may ever be.
    routes: Vec<RouteCounters>,
    /// By [`row`]. Grows to the length of `routes`.
    names: RwLock<Vec<String>>,
    recalled: OnceLock<Recalled>,
    sharing: Mutex<Option<SharingView>>,
    ungated: RouteCounters,
    kinds: Vec<String>,
    /// By kind.
    lines: Vec<LineCounters>,
    /// By position in [`Reason::ALL`].
    refusals: Vec<AtomicU64>,
    faults: AtomicU64,
    https_redirects: AtomicU64,
    upstream_errors: AtomicU64,
    connections_open: AtomicUsize,
    connections_displaced: Arc<AtomicU64>,
    connections: AtomicU64,
    tunnels: AtomicUsize,
    warned_of_balancer: Mutex<Option<Instant>>,
    requests: AtomicU64,
    disconnects_waiting: AtomicU64,
    disconnects_upstream: AtomicU64,
}

/// What is counted of one route.
#[derive(Debug, Default)]
pub(crate) struct RouteCounters {
    statuses: [AtomicU64; 5],
    waited: Histogram,
    upstream: Histogram,
    added: Histogram,
    liveness: ResponseLiveness,
}

/// What is counted of one kind's line.
#[derive(Debug)]
struct LineCounters {
    told: Histogram,
    waited: Histogram,
    pages: AtomicU64,
    polls: AtomicU64,
    refused: AtomicU64,
}

/// One kind's line: its answers, and the waits that ended with a session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LineCounts {
    /// Waiting pages: answers that show a place in line, as a page or as JSON.
    pub pages: u64,
    /// Polls: requests of waiting pages for the status of their place.
    pub polls: u64,
    /// Requests sent away without a place before the gate was asked: by a closed line, without a
    /// pass, or because their network draws many.
    pub refused: u64,
    /// From the issue of the number to the latest turn predicted; for one told to come later, as of
    /// then.
    pub told: Times,
    /// From the issue of the number to the session.
    pub waited: Times,
}

/// Everything that can be seen of the proxy at one moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Time since the start.
    pub uptime: Duration,
    /// Connections of clients open now.
    pub connections_open: usize,
    /// Connections that were closed to make room for others.
    pub connections_displaced: u64,
    /// Connections of clients ever accepted.
    pub connections: u64,
    /// Of those open, the ones that have switched to another protocol, as a WebSocket does.
    pub tunnels: usize,
    /// Requests whose head was read, good or bad.
    pub requests: u64,
    /// Requests answered as bad (status 4xx of our own).
    pub faults: u64,
    /// Requests by plain HTTP that were sent to HTTPS.
    pub https_redirects: u64,
    /// Requests answered 502 to 504 because of the application or the way to it.
    pub upstream_errors: u64,
    /// Requests whose first try got no answer, by what became of them.
    pub retries: RetryCounts,
    /// Client disconnects while the request was held or queued.
    pub disconnects_waiting: u64,
    /// Client disconnects while the request was in the application.
    pub disconnects_upstream: u64,
    /// Bytes of responses held for slow clients now.
    pub buffered_bytes: usize,
    /// Bytes of bodies of slow clients in files.
    pub spooled_bytes: u64,
    /// How many were refused, and why; reasons never used are left out.
    pub refusals: Vec<(Reason, u64)>,
    /// Every gated route; the first is `other`.
    pub routes: Vec<RouteReport>,
    /// Static assets, health checks and whatever else passes ungated, all together.
    pub ungated: RouteReport,
    /// Every kind of session, by name.
    pub kinds: Vec<(String, KindView)>,
    /// By position in `kinds`: its line. All zero where there is none.
    pub lines: Vec<LineCounts>,
    /// The knowledge it began with; `None`: none.
    pub recalled: Option<Recalled>,
    /// Whether what happens to the gate is still recorded; `None`: it was never asked for.
    pub recording: Option<bool>,
    /// How it shares with other gateways; `None`: it is alone.
    pub sharing: Option<SharingView>,
    /// The rest of what the gate shows: totals and last decisions. Its routes and kinds are in the
    /// two lists above; records name routes by [`RouteReport::id`] and kinds by position. A number
    /// without a report belongs to a share of `other`.
    pub gate: Snapshot,
}

/// What a gateway began with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recalled {
    /// How old it was then.
    pub age: Duration,
    /// Routes with a limit that was known.
    pub routes: usize,
    /// The version of the program that learned it.
    pub version: String,
}

/// What was learned of the application and its visitors, and the names of it.
#[derive(Clone, Debug)]
pub struct LearnedView {
    /// Time since the start.
    pub uptime: Duration,
    /// Every gated route's name and the gate's number for it; the first is `other`.
    pub routes: Vec<(String, RouteId)>,
    /// The kinds of session as they were set, in the order of their numbers.
    pub kinds: Vec<SessionKind>,
    /// What the gate has learned.
    pub gate: Learned,
}

/// One route at one moment.
#[derive(Clone, Debug, Default)]
pub struct RouteReport {
    /// `GET /items/{id}`, `other` or `ungated`.
    pub name: String,
    /// The gate's number for it; `None` if ungated.
    pub id: Option<RouteId>,
    /// Responses by first digit of their status, 1xx to 5xx, those of the waiting room left out.
    pub statuses: [u64; 5],
    /// Time held waiting, of those that were.
    pub waited: Times,
    /// Time from sending to the application's being done.
    pub upstream: Times,
    /// Time the proxy itself added: all until the response's head, less waiting and application.
    pub added: Times,
    /// What the gate shows of it.
    pub gate: RouteView,
}

/// A connection that has switched to another protocol.
#[derive(Debug)]
pub(crate) struct Tunnel(Arc<Telemetry>);

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.0.tunnels.fetch_sub(1, Relaxed);
    }
}

impl Histogram {
    /// Counts one time.
    pub(crate) fn record(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn reset(&self) {
        self.counts.iter().for_each(|count| count.store(0, Relaxed));
        self.nanos.store(0, Relaxed);
    }

    fn read(&self) -> Times {
        Times {
            counts: std::array::from_fn(|at| self.counts[at].load(Relaxed)),
            sum_seconds: self.nanos.load(Relaxed) as f64 * 1e-9,
        }
    }
}

impl Histogram {
    fn new(bounds: &'static [f64; BUCKETS.len()]) -> Self {
        Histogram { bounds, counts: std::array::from_fn(|_| AtomicU64::new(0)), nanos: AtomicU64::new(0) }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new(&BUCKETS)
    }
}

impl LineCounters {
    fn new() -> Self {
        LineCounters {
            told: Histogram::new(&WAIT_BUCKETS),
            waited: Histogram::new(&WAIT_BUCKETS),
            pages: AtomicU64::new(0),
            polls: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    fn read(&self) -> LineCounts {
        LineCounts {
            pages: self.pages.load(Relaxed),
            polls: self.polls.load(Relaxed),
            refused: self.refused.load(Relaxed),
            told: self.told.read(),
            waited: self.waited.read(),
        }
    }
}

impl LineCounts {
    /// Of a kind without a line.
    pub const NONE: LineCounts =
        LineCounts { pages: 0, polls: 0, refused: 0, told: Times::NONE, waited: Times::NONE };
}

impl Times {
    /// None at all.
    pub const NONE: Times = Times { counts: [0; BUCKETS.len() + 1], sum_seconds: 0.0 };

    /// Returns how many times were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the time below which `share` of all were: times in a bucket are assumed to lie
    /// evenly, and those beyond the last bound at that bound.
    pub fn quantile(&self, bounds: &[f64], share: f64) -> Option<f64> {
        (self.count() > 0).then(|| Buckets::new(bounds, &self.counts).quantile(share))
    }
}

impl RouteCounters {
    /// Counts a response.
    pub(crate) fn answered(&self, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        self.statuses[class].fetch_add(1, Relaxed);
    }

    /// Returns how many responses report success, or redirect.
    pub(crate) fn good_answers(&self) -> u64 {
        self.statuses[1].load(Relaxed) + self.statuses[2].load(Relaxed)
    }

    fn reset(&self) {
        self.statuses.iter().for_each(|count| count.store(0, Relaxed));
        [&self.waited, &self.upstream, &self.added].into_iter().for_each(Histogram::reset);
        self.liveness.reset();
    }

    /// Counts a time in the application.
    pub(crate) fn served(&self, upstream: Duration) {
        self.upstream.record(upstream);
    }

    /// Returns how its answers come.
    pub(crate) fn liveness(&self) -> &ResponseLiveness {
        &self.liveness
    }

    /// Counts a time held waiting, if there was any, and the time added otherwise.
    pub(crate) fn passed(&self, waited: Duration, added: Duration) {
        if !waited.is_zero() {
            self.waited.record(waited);
        }
        self.added.record(added);
    }

    fn report(&self, name: String, id: Option<RouteId>, gate: RouteView) -> RouteReport {
        RouteReport {
            name,
            id,
            statuses: std::array::from_fn(|at| self.statuses[at].load(Relaxed)),
            waited: self.waited.read(),
            upstream: self.upstream.read(),
            added: self.added.read(),
            gate,
        }
    }
}

impl Telemetry {
    /// Returns counters at zero for at most `routes_max` routes and for the kinds of these names.
    pub(crate) fn new(routes_max: usize, kinds: Vec<String>) -> Self {
        Telemetry {
            routes: std::iter::repeat_with(RouteCounters::default).take(routes_max).collect(),
            names: RwLock::new(Vec::new()),
            recalled: OnceLock::new(),
            sharing: Mutex::default(),
            ungated: RouteCounters::default(),
            lines: kinds.iter().map(|_| LineCounters::new()).collect(),
            kinds,
            refusals: Reason::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            faults: AtomicU64::new(0),
            https_redirects: AtomicU64::new(0),
            upstream_errors: AtomicU64::new(0),
            connections_open: AtomicUsize::new(0),
            connections_displaced: Arc::default(),
            connections: AtomicU64::new(0),
            tunnels: AtomicUsize::new(0),
            warned_of_balancer: Mutex::default(),
            requests: AtomicU64::new(0),
            disconnects_waiting: AtomicU64::new(0),
            disconnects_upstream: AtomicU64::new(0),
        }
    }

    /// Returns the names of the kinds of session, by number.
    pub(crate) fn kind_names(&self) -> &[String] {
        &self.kinds
    }

    /// Shows how it shares with other gateways.
    pub(crate) fn show_sharing(&self, view: SharingView) {
        *self.sharing.lock().unwrap_or_else(PoisonError::into_inner) = Some(view);
    }

    /// Names the next route; routes are named in their order.
    pub(crate) fn name_route(&self, name: &str, route: RouteId) {
        let mut names = self.names.write().expect("nobody panics while holding the names");
        debug_assert_eq!(names.len(), row(route), "the gate and the table count routes alike");
        names.push(name.to_owned());
    }

    /// Replaces one route by another, and returns the name of the old one: from here on it is
    /// counted anew.
    pub(crate) fn rename_route(&self, route: RouteId, name: &str) -> String {
        self.route(Some(route)).reset();
        let mut names = self.names.write().expect("nobody panics while holding the names");
        names.get_mut(row(route)).map(|own| std::mem::replace(own, name.to_owned())).unwrap_or_default()
    }

    /// Takes note of what the gateway begins with.
    pub(crate) fn recalled(&self, recalled: Recalled) {
        // It begins once.
        let _ = self.recalled.set(recalled);
    }

    /// Returns every route's name and the gate's number for it.
    pub(crate) fn route_names(&self) -> Vec<(String, RouteId)> {
        let names = self.names.read().expect("nobody panics while holding the names");
        names.iter().enumerate().map(|(row, name)| (name.clone(), route_of(row))).collect()
    }

    /// Returns the name of a route, or of what is ungated.
    pub(crate) fn name_of(&self, route: Option<RouteId>) -> String {
        let Some(route) = route else { return "ungated".to_owned() };
        let names = self.names.read().expect("nobody panics while holding the names");
        names.get(row(route)).cloned().unwrap_or_else(|| "other".to_owned())
    }

    /// Returns the counters of a route, or of all that is ungated.
    pub(crate) fn route(&self, route: Option<RouteId>) -> &RouteCounters {
        route.and_then(|route| self.routes.get(row(route))).unwrap_or(&self.ungated)
    }

    /// Returns how answers of all routes come.
    pub(crate) fn liveness_of_routes(&self) -> impl Iterator<Item = &ResponseLiveness> {
        self.routes.iter().map(RouteCounters::liveness)
    }

    pub(crate) fn note_request(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_fault(&self) {
        self.faults.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_https_redirect(&self) {
        self.https_redirects.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_upstream_error(&self) {
        self.upstream_errors.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_refusal(&self, reason: Reason) {
        if let Some(at) = Reason::ALL.iter().position(|other| *other == reason) {
            self.refusals[at].fetch_add(1, Relaxed);
        }
    }

    /// Counts an answer that shows a place in the line of `kind`.
    pub(crate) fn note_waiting_page(&self, kind: KindId) {
        if let Some(line) = self.lines.get(kind.index()) {
            line.pages.fetch_add(1, Relaxed);
        }
    }

    /// Counts a question of a waiting page. One that is of no kind counts with the first.
    pub(crate) fn note_poll(&self, kind: Option<KindId>) {
        if let Some(line) = self.lines.get(kind.map_or(0, KindId::index)) {
            line.polls.fetch_add(1, Relaxed);
        }
    }

    /// Counts a request that the waiting room has sent away without a place.
    pub(crate) fn note_refusal_in_line(&self, kind: KindId, reason: Reason) {
        self.note_refusal(reason);
        if let Some(line) = self.lines.get(kind.index()) {
            line.refused.fetch_add(1, Relaxed);
        }
    }

    /// Counts a wait in the line of `kind` that has ended with a session, and the predicted wait,
    /// if there was one.
    pub(crate) fn note_line_wait(&self, kind: KindId, told: Option<Duration>, waited: Duration) {
        let Some(line) = self.lines.get(kind.index()) else { return };
        line.waited.record(waited);
        if let Some(told) = told {
            line.told.record(told);
        }
    }

    /// Returns where displaced connections are counted.
    pub(crate) fn connections_displaced(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.connections_displaced)
    }

    pub(crate) fn note_disconnect_waiting(&self) {
        self.disconnects_waiting.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_disconnect_upstream(&self) {
        self.disconnects_upstream.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_connection_opened(&self) {
        self.connections.fetch_add(1, Relaxed);
        self.connections_open.fetch_add(1, Relaxed);
    }

    /// Returns whether to log that a balancer says nothing of its client: not more often than each
    /// [`WARN_EVERY`].
    pub(crate) fn is_to_warn_of_balancer(&self) -> bool {
        let mut warned = self.warned_of_balancer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_to = warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if is_to {
            *warned = Some(Instant::now());
        }
        is_to
    }

    pub(crate) fn note_connection_closed(&self) {
        self.connections_open.fetch_sub(1, Relaxed);
    }

    /// Counts a connection that has switched to another protocol, until what is returned is
    /// dropped.
    pub(crate) fn tunnel(self: &Arc<Self>) -> Tunnel {
        self.tunnels.fetch_add(1, Relaxed);
        Tunnel(Arc::clone(self))
    }

    /// Returns how many connections of clients are open.
    pub(crate) fn connections_open(&self) -> usize {
        self.connections_open.load(Relaxed)
    }

    pub(crate) fn view(&self, uptime: Duration, buffered_bytes: usize, mut gate: Snapshot) -> View {
        others::show_as_one(&mut gate.routes);
        let reports = self.route_names().into_iter().zip(&self.routes).map(|((name, id), counters)| {
            let view = gate.routes.get(id.index()).cloned().unwrap_or_default();
            counters.report(name, Some(id), view)
        });
        let routes = reports.collect();
        let kinds = self.kinds.iter().cloned().zip(std::mem::take(&mut gate.kinds)).collect();
        gate.routes.clear();
        let refusals =
            Reason::ALL.iter().zip(&self.refusals).map(|(reason, count)| (*reason, count.load(Relaxed)));
        View {
            uptime,
            recalled: self.recalled.get().cloned(),
            recording: None,
            sharing: self.sharing.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            connections_open: self.connections_open.load(Relaxed),
            connections_displaced: self.connections_displaced.load(Relaxed),
            connections: self.connections.load(Relaxed),
            tunnels: self.tunnels.load(Relaxed),
            requests: self.requests.load(Relaxed),
            faults: self.faults.load(Relaxed),
            https_redirects: self.https_redirects.load(Relaxed),
            upstream_errors: self.upstream_errors.load(Relaxed),
            // The upstream side counts them.
            retries: RetryCounts::default(),
            disconnects_waiting: self.disconnects_waiting.load(Relaxed),
            disconnects_upstream: self.disconnects_upstream.load(Relaxed),
            buffered_bytes,
            spooled_bytes: 0,
            refusals: refusals.filter(|(_, count)| *count > 0).collect(),
            routes,
            ungated: self.ungated.report("ungated".to_owned(), None, RouteView::default()),
            kinds,
            lines: self.lines.iter().map(LineCounters::read).collect(),
            gate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_line_are_counted_in_buckets_of_their_own() {
        let telemetry = Telemetry::new(1, vec!["visit".to_owned()]);
        telemetry.note_line_wait(KindId(0), Some(Duration::from_secs(400)), Duration::from_secs(500));
        telemetry.note_line_wait(KindId(0), None, Duration::from_secs(40));
        let LineCounts { told, waited, .. } = telemetry.lines[0].read();
        assert_eq!((told.count(), waited.count()), (1, 2));
        assert_eq!((told.counts[13], waited.counts[14], waited.counts[7]), (1, 1, 1));
    }

    #[test]
    fn a_time_falls_into_the_bucket_that_bounds_it() {
        let histogram = Histogram::default();
        for micros in [0, 50, 51, 1_000_000, 100_000_000] {
            histogram.record(Duration::from_micros(micros));
        }
        let times = histogram.read();
        assert_eq!((times.counts[0], times.counts[1], times.counts[13], times.counts[20]), (2, 1, 1, 1));
        assert_eq!(times.count(), 5);
        assert!((times.sum_seconds - 101.000_101).abs() < 1e-9);
    }

    fn times(entries: &[(usize, u64)]) -> Times {
        let mut times = Times::NONE;
        for (bucket, count) in entries {
            times.counts[*bucket] = *count;
        }
        times
    }

    #[test]
    fn quantiles_lie_in_the_bucket_that_holds_them() {
        // 90 between 5 and 10 ms, 10 between 0.1 and 0.25 s.
        let times = times(&[(7, 90), (11, 10)]);
        let p50 = times.quantile(&BUCKETS, 0.5).unwrap();
        let p99 = times.quantile(&BUCKETS, 0.99).unwrap();
        assert!((0.005..=0.01).contains(&p50), "{p50}");
        assert!((0.1..=0.25).contains(&p99), "{p99}");
    }

    #[test]
    fn nothing_counted_has_no_quantile_and_what_is_too_long_is_at_least_the_last_bound() {
        assert_eq!(Times::NONE.quantile(&BUCKETS, 0.5), None);
        assert_eq!(times(&[(BUCKETS.len(), 3)]).quantile(&BUCKETS, 0.5), Some(60.0));
    }
}
