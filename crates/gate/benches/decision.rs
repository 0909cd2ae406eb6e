//! What one request costs the gate: arrive, start, end, with sessions, laws and meters in force.
//!
//! Claim: under a microsecond. `cargo bench -p suimon-gate`.

#![allow(missing_docs)] // criterion's macro writes a public function without one

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use suimon_gate::{Arrival, Gate, KindParams, Membership, Output, Params, RouteMode, Start};
use suimon_model::{Duration, Instant, KindId, Outcome, RouteId, SessionId};

/// A gate with a shop's number of routes and sessions that have been learned from.
struct Bench {
    gate: Gate,
    now: Instant,
    kind: KindId,
    sessions: Vec<SessionId>,
    turn: usize,
}

impl Bench {
    fn new(routes: u32, sessions: usize) -> Self {
        let now = Instant::ORIGIN;
        let mut gate = Gate::new(Params::default(), now);
        (0..routes).for_each(|_| _ = gate.declare_route(now, RouteMode::Enforce));
        let kind = gate.declare_kind(now, KindParams::default());
        let mut bench =
            Bench { gate, now, kind, sessions: (1..=sessions as u64).map(SessionId).collect(), turn: 0 };
        (0..20 * sessions).for_each(|_| bench.request(routes));
        bench
    }

    /// One request of the next session on the next route, from arrival to end.
    fn request(&mut self, routes: u32) {
        self.turn += 1;
        self.now += Duration::from_micros(50);
        let session = self.sessions[self.turn % self.sessions.len()];
        let route = RouteId((self.turn / self.sessions.len()) as u32 % routes);
        let membership = Membership::Member { kind: self.kind, session, leased: true, ends: false };
        self.gate.handle_arrival(self.now, Arrival { route, session: Some(membership) });
        while let Some(output) = self.gate.poll_output() {
            if let Output::Start(Start { permit, .. }) = output {
                self.gate.handle_end(self.now, permit, Outcome::Completed);
            }
        }
        if self.gate.poll_timeout().is_some_and(|due| due <= self.now) {
            self.gate.handle_timeout(self.now);
        }
    }

    /// The decision alone: a newcomer comes to a shut gate and is told how long to stay away.
    fn refusal(&mut self) -> Option<Output> {
        let arrival = Arrival { route: RouteId(0), session: Some(Membership::Newcomer(self.kind)) };
        self.gate.handle_arrival(self.now, arrival);
        self.gate.poll_output()
    }
}

fn decision(criterion: &mut Criterion) {
    for (routes, sessions) in [(5, 100), (50, 10_000)] {
        let mut bench = Bench::new(routes, sessions);
        let name = format!("request through the gate, {routes} routes, {sessions} sessions");
        criterion.bench_function(&name, |b| b.iter(|| bench.request(black_box(routes))));
        bench.gate.drain(bench.now);
        let name = format!("newcomer refused, {routes} routes, {sessions} sessions");
        criterion.bench_function(&name, |b| b.iter(|| black_box(bench.refusal())));
    }
}

criterion_group!(benches, decision);
criterion_main!(benches);
