//! What a recording costs: per request, the same requests without and with one; and per segment,
//! writing down all of a gate's state once.
//!
//! Claim: under a hundred nanoseconds per request; under half a millisecond per thousand sessions
//! under way. `cargo bench -p suimon-record`.

#![allow(missing_docs)] // criterion's macro writes a public function without one

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use suimon_gate::{Arrival, Gate, KindParams, Membership, Output, Params, RouteMode};
use suimon_model::{Duration, Instant, KindId, Outcome, RouteId, SessionId};
use suimon_record::{Encoder, Event};

const ROUTES: u32 = 5;

/// A gate that has learned from sessions, with a recording as the gateway has it, or with none.
struct Bench {
    gate: Gate,
    recorder: Option<Encoder>,
    buffer: Vec<u8>,
    now: Instant,
    kind: KindId,
    sessions: u64,
    turn: u64,
}

impl Bench {
    fn new(sessions: u64, recorder: Option<Encoder>) -> Self {
        let now = Instant::ORIGIN;
        let mut gate = Gate::new(Params::default(), now);
        (0..ROUTES).for_each(|_| _ = gate.declare_route(now, RouteMode::Enforce));
        let kind = gate.declare_kind(now, KindParams::default());
        let mut bench = Bench { gate, recorder, buffer: Vec::new(), now, kind, sessions, turn: 0 };
        (0..20 * sessions).for_each(|_| bench.request());
        bench
    }

    /// One request of the next session on the next route, from arrival to end.
    fn request(&mut self) {
        self.turn += 1;
        self.now += Duration::from_micros(50);
        let session = SessionId((self.turn % self.sessions).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let route = RouteId((self.turn / self.sessions) as u32 % ROUTES);
        let member = Membership::Member { kind: self.kind, session, leased: true, ends: false };
        let arrival = Arrival { route, session: Some(member) };
        self.note(|| Event::Arrival(arrival));
        self.gate.handle_arrival(self.now, arrival);
        while let Some(output) = self.gate.poll_output() {
            if let Some(recorder) = &mut self.recorder {
                recorder.answer(&output);
            }
            if let Output::Start(start) = output {
                self.note(|| Event::End(start.request, Outcome::Completed));
                self.gate.handle_end(self.now, start.permit, Outcome::Completed);
            }
        }
        if self.gate.poll_timeout().is_some_and(|due| due <= self.now) {
            self.note(|| Event::Timeout);
            self.gate.handle_timeout(self.now);
        }
        if let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.is_full()) {
            let buffer = std::mem::take(&mut self.buffer);
            self.buffer = recorder.seal(self.gate.trace(), buffer);
        }
    }

    fn note(&mut self, event: impl FnOnce() -> Event) {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(self.now, &event());
        }
    }
}

fn recording(criterion: &mut Criterion) {
    for sessions in [100, 10_000] {
        let mut off = Bench::new(sessions, None);
        let name = format!("request, {sessions} sessions, not recorded");
        criterion.bench_function(&name, |b| b.iter(|| off.request()));
        let mut on = Bench::new(sessions, Some(Encoder::default()));
        let name = format!("request, {sessions} sessions, recorded");
        criterion.bench_function(&name, |b| b.iter(|| on.request()));
        let name = format!("state of a gate, {sessions} sessions");
        criterion.bench_function(&name, |b| b.iter(|| black_box(on.gate.save())));
    }
}

criterion_group!(benches, recording);
criterion_main!(benches);
