//! The workers of a pool beside the gate: the gate is told how many are ready, and the law of the
//! pool's size what they do.

use super::learned::LearnedWorkers;
use crate::backend::Backend;
use std::sync::Arc;
use suimon_control::{DynamicParams, ResidentParams, ResidentSample, SizeLaw, SizeLawKind};
use suimon_model::Instant;
use suimon_params::pool::SizeParams;
use suimon_params::upstream::WorkersNodeParams;
use suimon_pool::PoolSample;
use tokio::time::{Duration, MissedTickBehavior, interval};

/// How often the law looks.
const EVERY: Duration = Duration::from_secs(1);
/// Why the number changes when an operator fixes it, and when they give it back to the law.
const FIXED: &str = "an operator has fixed the number";
const GIVEN_BACK: &str = "an operator has given the number back to its law";

/// Tells the gate how many workers are ready, whenever that changes.
pub(super) async fn tell_gate(backend: Arc<Backend>) {
    let Some(pool) = backend.upstream.pool() else { return };
    let mut gated = pool.watch_gated();
    loop {
        let ready = *gated.borrow_and_update();
        backend.keeper.workers(u32::try_from(ready).unwrap_or(u32::MAX));
        // The pool is the backend's, so it is there.
        if gated.changed().await.is_err() {
            return;
        }
    }
}

/// Keeps the number of workers that the law of the pool's size asks for, or that an operator has
/// fixed. The law begins with the number in `learned`, and leaves there what it finds.
pub(super) async fn keep_size(backend: Arc<Backend>, params: WorkersNodeParams, learned: LearnedWorkers) {
    let Some(pool) = backend.upstream.pool().cloned() else { return };
    let (size, known) = (params.size, learned.get());
    let mut law = law_of(size, size.law, known.unwrap_or(2 * size.cores + 1), known.is_some());
    pool.set_wanted(law.wanted() as usize, "so many are started with");
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (origin, mut before) = (std::time::Instant::now(), ticks.tick().await);
    let mut orders = backend.fixed_size.subscribe();
    if orders.borrow().is_some() {
        orders.mark_changed();
    }
    loop {
        let tick = tokio::select! {
            tick = ticks.tick() => tick,
            // The sender is the backend's, so it is there.
            _ = orders.changed() => {
                let (kind, why) = match *orders.borrow_and_update() {
                    Some(workers) => (SizeLawKind::Fixed(workers), FIXED),
                    None => (going_on_from(law.wanted(), size.law), GIVEN_BACK),
                };
                law = law_of(size, kind, law.wanted(), false);
                pool.set_wanted(law.wanted() as usize, why);
                continue;
            }
        };
        let passed = tick.duration_since(std::mem::replace(&mut before, tick)).as_secs_f64();
        let sample = pool.sample();
        let shortage = backend.keeper.worker_shortage();
        let sample = ResidentSample {
            short: shortage.short,
            held: shortage.held,
            oldest_s: shortage.longest_wait,
            ..counted(&sample)
        };
        let now = Instant::ORIGIN + origin.elapsed();
        if let Some(moved) = law.on_tick(now, passed, &sample) {
            pool.set_wanted(moved.wanted as usize, moved.why.explain());
        }
        if let Some(found) = law.learned() {
            learned.set(found);
        }
    }
}

fn law_of(size: SizeParams, kind: SizeLawKind, initial: u32, is_known: bool) -> SizeLaw {
    let SizeParams { least, most, cores, .. } = size;
    let initial = initial.clamp(least, most);
    SizeLaw::new(kind, ResidentParams { initial, is_known, least, most, cores })
}

/// Returns the law with this number as its first one, if it has any other than its own.
fn going_on_from(workers: u32, kind: SizeLawKind) -> SizeLawKind {
    match kind {
        SizeLawKind::Dynamic(params) => SizeLawKind::Dynamic(DynamicParams { start: workers, ..params }),
        kind => kind,
    }
}

fn counted(sample: &PoolSample) -> ResidentSample {
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    ResidentSample {
        ready: small(sample.ready),
        idle: small(sample.idle),
        starting: small(sample.starting),
        running_max: small(sample.busy_max),
        completed: sample.completed,
        took_s: sample.took_s,
        start_s: sample.start_s,
        fit: sample.fit.map(small),
        is_swapping: sample.is_swapping,
        ..ResidentSample::default()
    }
}
