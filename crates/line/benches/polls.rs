//! What it costs to hear of one who waits, with a million in line.

#![allow(missing_docs, reason = "a benchmark")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail loudly")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use suimon_line::{Command, Lane, Line, Params, Position, PositionStatus};
use suimon_model::{Duration, Instant, Rng};

const PEOPLE: u64 = 1_000_000;

/// A million present, of whom few were called.
fn million() -> (Line, Instant) {
    let now = Instant::ORIGIN;
    let mut line = Line::new(Params::default(), now);
    for _ in 0..PEOPLE {
        let position = line.draw(Lane::Normal).unwrap();
        line.contact(now, position);
    }
    let quarters = (1..=120).map(|quarter| now + Duration::from_millis(250 * quarter));
    quarters.for_each(|now| line.tick(now, Some(50.0), 5.0));
    let now = now + Duration::from_secs(30);
    let PositionStatus::Waiting(wait) = line.standing(now, at(PEOPLE - 1)) else {
        panic!("the last one waits")
    };
    assert!(wait.ahead > PEOPLE - 10_000, "{wait:?}");
    (line, now)
}

fn at(number: u64) -> Position {
    Position { lane: Lane::Normal, number }
}

fn polls(criterion: &mut Criterion) {
    let (mut line, now) = million();
    let mut rng = Rng::stream(1, 1);
    let mut group = criterion.benchmark_group("line");
    group.throughput(Throughput::Elements(1));
    group.bench_function("contact, of a million", |bencher| {
        bencher.iter(|| line.contact(now, black_box(at(rng.bits() % PEOPLE))));
    });
    let ticked = |seconds: u64| {
        let line = &line;
        move || (line.clone(), now + Duration::from_secs(seconds))
    };
    let tick = |(mut line, at): (Line, Instant)| {
        line.tick(at, Some(50.0), 5.0);
        line
    };
    group.bench_function("tick, of a million", |bencher| {
        bencher.iter_batched(ticked(0), tick, BatchSize::LargeInput);
    });
    group.bench_function("tick that ends a period, of a million", |bencher| {
        bencher.iter_batched(ticked(60), tick, BatchSize::LargeInput);
    });
    let opens = |mut line: Line| {
        line.tick(now, Some(50.0), 5.0);
        line
    };
    let closed = || {
        let mut line = line.clone();
        line.command(Command::OpenAt { at: now, lots: Some([1, 2]) });
        line
    };
    group.throughput(Throughput::Elements(PEOPLE));
    group.bench_function("lots for a million", |bencher| {
        bencher.iter_batched(closed, opens, BatchSize::LargeInput);
    });
    group.finish();
}

criterion_group!(benches, polls);
criterion_main!(benches);
