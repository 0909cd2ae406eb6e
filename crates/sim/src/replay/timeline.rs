//! What happened over time, to be drawn: counts in bins, and the state of the gate at the end of
//! each bin.

mod parts;

pub use parts::{Bin, Change, Moment, RouteLine, TimelineSubject, Visitors};

use parts::{Counted, sum};
use std::collections::BTreeMap;
use suimon_gate::{Arrival, Gate, InLine, Membership, Output};
use suimon_line as line;
use suimon_line::Position;
use suimon_model::{Instant, KindId, Outcome, Reason, Record, RequestId, RouteId, ServiceId, Subject};
use suimon_record::Header;

/// The most bins; one more, and each two are merged. A picture is hardly wider.
const BINS_MAX: usize = 480;
/// Initial length of a bin, seconds.
const WIDTH: f64 = 0.5;
/// The most changes kept; further ones are only counted.
pub const CHANGES_MAX: usize = 10_000;

/// The most positions in line whose waits are measured at once; waits of further ones are unknown.
const PLACES_MAX: usize = 1_000_000;

/// What happened over the time played. The time continues from one run of the gateway to the next,
/// without the gap between them.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Length of a bin, seconds; the last one may be shorter.
    pub width: f64,
    /// The bins, in order of time.
    pub bins: Vec<Bin>,
    /// Every route that ever existed, by name.
    pub routes: Vec<RouteLine>,
    /// Names of the kinds of session.
    pub kinds: Vec<String>,
    /// Names of the services, as they were declared last.
    pub services: Vec<String>,
    /// Changes of limits and intervals, without the windows of trials, up to [`CHANGES_MAX`].
    pub changes: Vec<Change>,
    /// The number of all changes, including the windows of trials.
    pub changed: u64,
    /// The number of changes by reason, for each route and kind.
    pub reasons: BTreeMap<(TimelineSubject, Reason), u64>,
    /// The number of refusals by reason.
    pub refusals: BTreeMap<Reason, u64>,
    /// What happened to visitors: sessions, and the line.
    pub visitors: Visitors,
    /// When runs after the first began, in seconds of the time played.
    pub restarts: Vec<f64>,
    /// Time played, seconds.
    now: f64,
    /// By id in the current run: the index in `routes`.
    route_of: Vec<usize>,
    kind_of: Vec<usize>,
    inside: BTreeMap<RequestId, Inside>,
    /// Positions in line, and since when they wait.
    places: BTreeMap<(KindId, Position), Instant>,
    /// The gate's counts when they were last read.
    counted: Counted,
}

/// A request in the gate.
#[derive(Clone, Copy, Debug)]
struct Inside {
    route: usize,
    started: Option<Instant>,
    left: bool,
    /// For a newcomer: when it arrived, and its position, if it has one.
    newcomer: Option<(Instant, Option<(KindId, Position)>)>,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline {
            width: WIDTH,
            bins: vec![],
            routes: vec![],
            kinds: vec![],
            services: vec![],
            changes: vec![],
            changed: 0,
            reasons: BTreeMap::new(),
            refusals: BTreeMap::new(),
            visitors: Visitors::default(),
            restarts: vec![],
            now: 0.0,
            route_of: vec![],
            kind_of: vec![],
            inside: BTreeMap::new(),
            places: BTreeMap::new(),
            counted: Counted::default(),
        }
    }
}

impl Timeline {
    /// Returns the time played, seconds.
    pub fn seconds(&self) -> f64 {
        self.now
    }

    /// Begins with the gate at the beginning of a run, or of a segment after a gap.
    pub(super) fn enter(&mut self, gate: &Gate, header: &Header, is_first: bool) {
        if !is_first {
            self.restarts.push(self.now);
        }
        let snapshot = gate.snapshot(header.at);
        self.counted = Counted::of(&snapshot);
        self.places.clear();
        (self.route_of, self.kind_of) = (vec![], vec![]);
        for index in 0..snapshot.routes.len() {
            self.add_route(header.routes.get(index).cloned().unwrap_or_else(|| format!("route {index}")));
        }
        self.services = snapshot.services.iter().map(|service| service.name.clone()).collect();
        for index in 0..snapshot.kinds.len() {
            self.add_kind(header.kinds.get(index).cloned().unwrap_or_else(|| format!("kind {index}")));
        }
        self.inside = gate
            .inside()
            .iter()
            .map(|inside| {
                let route = self.route_of[inside.route.index()];
                (inside.request, Inside { route, started: None, left: false, newcomer: None })
            })
            .collect();
    }

    pub(super) fn add_route(&mut self, name: String) {
        let line = self.line_of(name);
        self.route_of.push(line);
    }

    pub(super) fn renew_route(&mut self, route: RouteId, name: String) {
        self.route_of[route.index()] = self.line_of(name);
    }

    fn line_of(&mut self, name: String) -> usize {
        let known = self.routes.iter().position(|route| route.name == name);
        known.unwrap_or_else(|| {
            self.routes.push(RouteLine { name, ..RouteLine::default() });
            self.routes.len() - 1
        })
    }

    pub(super) fn add_kind(&mut self, name: String) {
        let known = self.kinds.iter().position(|kind| *kind == name);
        self.kind_of.push(known.unwrap_or(self.kinds.len()));
        if known.is_none() {
            self.kinds.push(name);
        }
    }

    /// Advances the time played to `played` seconds; `gate` is in its state until then.
    pub(super) fn pass(&mut self, played: f64, now: Instant, gate: &Gate) {
        self.now = played;
        while played >= self.width * (self.bins.len() as f64) {
            if self.bins.len() == BINS_MAX {
                self.halve();
                continue;
            }
            self.look(now, gate);
            self.bins.push(Bin::default());
        }
    }

    /// Notes the state of the gate at the end of the last bin.
    pub(super) fn look(&mut self, now: Instant, gate: &Gate) {
        let Some(bin) = self.bins.last_mut() else { return };
        let snapshot = gate.snapshot(now);
        let counted = Counted::of(&snapshot);
        let Counted { newcomers, began, ends, issued, admitted } = counted.since(&self.counted);
        self.counted = counted;
        bin.began += began;
        bin.ends = sum(bin.ends, ends);
        let visitors = &mut self.visitors;
        visitors.newcomers += newcomers;
        visitors.began += began;
        visitors.ends = sum(visitors.ends, ends);
        visitors.issued += issued;
        visitors.admitted += admitted;
        let there = |line: &line::View| line.present + line.provisional;
        visitors.still_waiting = snapshot.kinds.iter().filter_map(|kind| kind.line.as_ref()).map(there).sum();
        let in_line = |kind: &suimon_gate::KindView| {
            kind.line.as_ref().map_or(0, |line| line.waiting).max(kind.waiting as u64)
        };
        let in_line = snapshot.kinds.iter().map(in_line).sum();
        visitors.in_line_max = visitors.in_line_max.max(in_line);
        let mut moment = Moment {
            limits: vec![None; self.routes.len()],
            intervals: vec![f64::NAN; self.kinds.len()],
            held: snapshot.kinds.iter().map(|kind| kind.waiting).sum(),
            in_line,
            sessions: snapshot.kinds.iter().map(|kind| kind.active).sum(),
            queued: snapshot.routes.iter().map(|route| route.waiting).sum(),
            in_flight: snapshot.in_flight,
            pools: snapshot.pools,
        };
        for (route, position) in snapshot.routes.iter().zip(&self.route_of) {
            moment.limits[*position] = route.limit;
        }
        for (kind, position) in snapshot.kinds.iter().zip(&self.kind_of) {
            moment.intervals[*position] = kind.interval_seconds;
        }
        bin.gate = moment;
    }

    /// Merges each two bins.
    fn halve(&mut self) {
        self.width *= 2.0;
        let mut bins = std::mem::take(&mut self.bins).into_iter();
        while let Some(mut first) = bins.next() {
            if let Some(second) = bins.next() {
                first.came += second.came;
                first.let_in += second.let_in;
                first.refused += second.refused;
                first.waiting_pages += second.waiting_pages;
                first.began += second.began;
                first.ends = sum(first.ends, second.ends);
                first.entries.merge(&second.entries);
                first.abandoned += second.abandoned;
                first.waits.merge(&second.waits);
                first.gate = second.gate;
            }
            self.bins.push(first);
        }
    }

    pub(super) fn came(&mut self, now: Instant, request: RequestId, arrival: &Arrival) {
        let route = self.route_of[arrival.route.index()];
        self.routes[route].came += 1;
        let newcomer = match arrival.session {
            Some(Membership::Placed { kind, position, .. } | Membership::Entering { kind, position, .. }) => {
                Some((now, Some((kind, position))))
            }
            Some(Membership::Newcomer(_) | Membership::Drawing { .. } | Membership::WithoutLine(_)) => {
                Some((now, None))
            }
            Some(Membership::Member { .. }) | None => None,
        };
        self.inside.insert(request, Inside { route, started: None, left: false, newcomer });
        self.bin().came += 1;
    }

    pub(super) fn departed(&mut self, request: RequestId) {
        let Some(inside) = self.inside.get_mut(&request).filter(|inside| !inside.left) else { return };
        inside.left = true;
        let route = inside.route;
        if inside.started.is_none() {
            self.inside.remove(&request);
        }
        self.routes[route].abandoned += 1;
        self.bin().abandoned += 1;
    }

    pub(super) fn ended(&mut self, now: Instant, request: RequestId, outcome: Outcome) {
        let Some(inside) = self.inside.remove(&request) else { return };
        let route = &mut self.routes[inside.route];
        if let Some(started) = inside.started {
            route.services.record(now.since(started));
        }
        match outcome {
            _ if inside.left => {}
            Outcome::Completed | Outcome::Declined => route.completed += 1,
            Outcome::Failed(_) => route.failed += 1,
            Outcome::Abandoned => {
                route.abandoned += 1;
                self.bin().abandoned += 1;
            }
        }
    }

    pub(super) fn answered(&mut self, now: Instant, output: &Output) {
        match output {
            Output::Start(start) => {
                if let Some(inside) = self.inside.get_mut(&start.request) {
                    inside.started = Some(now);
                    self.routes[inside.route].waits.record(start.waited);
                    let newcomer = inside.newcomer;
                    self.begins(now, newcomer);
                }
                let bin = self.bin();
                bin.let_in += 1;
                bin.waits.record(start.waited);
            }
            Output::Refuse(refusal) => {
                if let Some(inside) = self.inside.remove(&refusal.request) {
                    self.routes[inside.route].refused += 1;
                }
                *self.refusals.entry(refusal.reason).or_insert(0) += 1;
                self.bin().refused += 1;
            }
            Output::Wait(wait) => self.waits(now, wait),
            Output::Resumed(_) => {}
            Output::Decided(record) => self.decided(record),
        }
    }

    /// Notes an answer that shows a position, or that its session has begun.
    fn waits(&mut self, now: Instant, wait: &InLine) {
        let inside = self.inside.remove(&wait.request);
        if let Some(inside) = inside {
            self.routes[inside.route].waiting_pages += 1;
        }
        self.visitors.waiting_pages += 1;
        self.bin().waiting_pages += 1;
        let since = inside.and_then(|inside| inside.newcomer).map_or(now, |(since, _)| since);
        let Some(position) = wait.position.map(|position| (wait.kind, position)) else { return };
        if wait.begun.is_some() {
            self.begins(now, Some((since, Some(position))));
        } else if self.places.len() < PLACES_MAX {
            self.places.entry(position).or_insert(since);
        }
    }

    /// Notes a poll by a waiting page.
    pub(super) fn polled(&mut self) {
        self.visitors.polls += 1;
    }

    /// Notes that the session of a newcomer begins. If its position has already begun one, there is
    /// no wait to record.
    fn begins(&mut self, now: Instant, newcomer: Option<(Instant, Option<(KindId, Position)>)>) {
        let since = match newcomer {
            Some((_, Some(position))) => self.places.remove(&position),
            Some((since, None)) => Some(since),
            None => None,
        };
        if let Some(since) = since {
            self.visitors.waits.record(now.since(since));
            self.bin().entries.record(now.since(since));
        }
    }

    fn decided(&mut self, record: &Record) {
        let of = match record.subject {
            Subject::Route(RouteId(id)) => {
                self.route_of.get(id as usize).map(|position| TimelineSubject::Route(*position))
            }
            Subject::Service(ServiceId(id)) => Some(TimelineSubject::Service(id as usize)),
            Subject::Kind(KindId(id)) => {
                self.kind_of.get(id as usize).map(|position| TimelineSubject::Kind(*position))
            }
        };
        let Some(of) = of.filter(|_| record.old.to_bits() != record.new.to_bits()) else { return };
        self.changed += 1;
        *self.reasons.entry((of, record.reason)).or_insert(0) += 1;
        // Windows of trials change every few seconds; the result of a trial is noted when it ends.
        let is_window = matches!(record.reason, Reason::TrialWindow | Reason::BaseWindow);
        if !is_window && self.changes.len() < CHANGES_MAX {
            self.changes.push(Change { at: self.now, of, record: *record });
        }
    }

    fn bin(&mut self) -> &mut Bin {
        if self.bins.is_empty() {
            self.bins.push(Bin::default());
        }
        self.bins.last_mut().expect("one was made if there was none")
    }
}
