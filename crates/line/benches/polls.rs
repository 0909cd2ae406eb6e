//! What it costs to hear of one who waits, with a million in line.

#![allow(missing_docs, reason = "a benchmark")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail loudly")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use suimon_line::{Lane, Line, Params, Place, Standing};
use suimon_model::{Duration, Instant, Rng};

const PEOPLE: u64 = 1_000_000;

fn million() -> (Line, Instant) {
    let mut now = Instant::ORIGIN;
    let mut line = Line::new(Params::default(), now);
    for _ in 0..PEOPLE {
        line.draw(Lane::Normal).unwrap();
    }
    for _ in 0..20 {
        now += Duration::from_secs(1);
        line.tick(now, Some(50.0), 5.0);
    }
    (0..PEOPLE).for_each(|number| _ = line.contact(now, Place { lane: Lane::Normal, number }));
    (line, now)
}

fn polls(criterion: &mut Criterion) {
    let (mut line, now) = million();
    let mut rng = Rng::stream(1, 1);
    let mut group = criterion.benchmark_group("line");
    group.throughput(Throughput::Elements(1));
    group.bench_function("contact, of a million", |bencher| {
        bencher.iter(|| {
            let number = rng.bits() % PEOPLE;
            let standing = line.contact(now, Place { lane: Lane::Normal, number });
            assert_ne!(black_box(standing), Standing::Closed);
        });
    });
    group.bench_function("tick, of a million", |bencher| {
        let mut at = now;
        bencher.iter(|| {
            at += Duration::from_millis(250);
            line.tick(at, Some(50.0), 5.0);
        });
    });
    group.finish();
}

criterion_group!(benches, polls);
criterion_main!(benches);
