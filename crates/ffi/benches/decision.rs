//! What it costs a process to ask: enter, answer and end of a request that need not wait, as C does it; beside the
//! gate alone, by the same interface, and in Rust.
//!
//! Claim: a few microseconds, of which the gate itself is a small part. `cargo bench -p suimon-ffi`.

#![allow(missing_docs)] // criterion's macro writes a public function without one
#![expect(unsafe_code, reason = "what is measured takes pointers")]

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::ptr;
use suimon::c::*;
use suimon_gate::{Arrival, Gate, Membership, Output, Params, RouteMode};
use suimon_model::{Duration, Instant, KindId, Outcome, RouteId, SessionId};

const SETTINGS: &str =
    "lease.keys = \"none\"\nlearned.state = \"none\"\nadmin.listen = \"off\"\nlog.filter = \"warn\"\n";
const HEAD: &str = "GET /items/7?from=mail HTTP/1.1\r\nhost: shop.example\r\nuser-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\naccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\naccept-language: en-GB,en;q=0.5\r\naccept-encoding: gzip, deflate, br, zstd\r\ncookie: JSESSIONID=0123456789ABCDEF0123456789ABCDEF\r\nsec-fetch-dest: document\r\nsec-fetch-mode: navigate\r\n\r\n";
const ADDRESS: &str = "192.0.2.7";
const LINES: &str = "content-type: text/html\r\n";

struct Caller {
    server: *mut ServerHandle,
    room: Vec<u8>,
}

// SAFETY, in all of this file: handles that are open, texts with their lengths, and places of the function's own.
impl Caller {
    fn new() -> Self {
        let server = unsafe { suimon_server_open(SETTINGS.as_ptr(), SETTINGS.len(), ptr::null_mut()) };
        assert!(!server.is_null());
        let mut caller = Caller { server, room: vec![0; 1 << 16] };
        // It becomes a route of its own, and its visitor is known.
        (0..1000).for_each(|_| {
            let request = caller.enter();
            caller.answer(
                request,
                "content-type: text/html\r\nset-cookie: JSESSIONID=0123456789ABCDEF0123456789ABCDEF\r\n",
            );
            caller.end(request);
        });
        caller
    }

    fn enter(&mut self) -> u64 {
        let mut request = 0;
        let mut out = Buffer { data: self.room.as_mut_ptr(), capacity: self.room.len(), length: 0 };
        let told = unsafe {
            suimon_server_enter(
                self.server,
                HEAD.as_ptr(),
                HEAD.len(),
                ADDRESS.as_ptr(),
                ADDRESS.len(),
                1,
                &raw mut request,
                &raw mut out,
            )
        };
        assert_eq!(told, SUIMON_OK);
        request
    }

    fn answer(&mut self, request: u64, lines: &str) {
        let mut out = Buffer { data: self.room.as_mut_ptr(), capacity: self.room.len(), length: 0 };
        let told = unsafe {
            suimon_server_answer(self.server, request, 200, lines.as_ptr(), lines.len(), &raw mut out)
        };
        assert_eq!(told, SUIMON_OK);
    }

    fn end(&self, request: u64) {
        assert_eq!(unsafe { suimon_server_end(self.server, request) }, SUIMON_OK);
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        unsafe { suimon_server_close(self.server) };
    }
}

fn inside_a_process(criterion: &mut Criterion) {
    let mut caller = Caller::new();
    criterion.bench_function("server: enter, end", |b| {
        b.iter(|| {
            let request = caller.enter();
            caller.end(black_box(request));
        });
    });
    criterion.bench_function("server: enter, answer, end", |b| {
        b.iter(|| {
            let request = caller.enter();
            caller.answer(request, LINES);
            caller.end(black_box(request));
        });
    });
}

fn gate_alone(criterion: &mut Criterion) {
    let gate = unsafe { suimon_gate_open(ptr::null(), 0, 0, ptr::null_mut()) };
    let (mut route, mut kind, mut now) = (0, 0, 0);
    unsafe {
        suimon_gate_route(gate, 0, SUIMON_ENFORCE, &raw mut route);
        suimon_gate_kind(gate, 0, 0, 0, &raw mut kind);
    }
    let arrival = GateArrival { route, membership: SUIMON_MEMBER, kind, flags: SUIMON_LEASED, session: 7 };
    criterion.bench_function("gate by C: arrive, poll, end", |b| {
        b.iter(|| {
            now += 50_000;
            let (mut request, mut output) = (0, GateOutput::default());
            unsafe {
                suimon_gate_arrive(gate, now, &raw const arrival, &raw mut request);
                while suimon_gate_poll(gate, &raw mut output) == SUIMON_OK {}
                suimon_gate_end(gate, now, request, SUIMON_COMPLETED);
                let mut due = u64::MAX;
                suimon_gate_next_timeout(gate, &raw mut due);
                if due <= now {
                    suimon_gate_tick(gate, now);
                }
            }
        });
    });
    unsafe { suimon_gate_close(gate) };

    let mut now = Instant::ORIGIN;
    let mut gate = Gate::new(Params::default(), now);
    gate.declare_route(now, RouteMode::Enforce);
    gate.declare_kind(now, suimon_gate::KindParams::default());
    let session = Membership::Member { kind: KindId(0), session: SessionId(7), leased: true, ends: false };
    criterion.bench_function("gate in Rust: arrive, poll, end", |b| {
        b.iter(|| {
            now += Duration::from_micros(50);
            gate.handle_arrival(now, Arrival { route: RouteId(0), session: Some(session) });
            while let Some(output) = gate.poll_output() {
                if let Output::Start(start) = output {
                    gate.handle_end(now, start.permit, Outcome::Completed);
                }
            }
            if gate.poll_timeout().is_some_and(|due| due <= now) {
                gate.handle_timeout(now);
            }
        });
    });
}

criterion_group!(benches, inside_a_process, gate_alone);
criterion_main!(benches);
