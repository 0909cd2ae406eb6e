//! The workers of a pool beside the gate: the gate is told how many are ready, and the law of the
//! pool's size what they do.

use super::learned::LearnedWorkers;
use crate::backend::Backend;
use std::sync::Arc;
use suimon_control::{ResidentParams, ResidentSample, SizeLaw};
use suimon_model::Instant;
use suimon_params::upstream::WorkersNodeParams;
use suimon_pool::{Pool, PoolSample};
use tokio::time::{Duration, MissedTickBehavior, interval};

/// How often the law looks.
const EVERY: Duration = Duration::from_secs(1);

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

/// Keeps the number of workers that the law of the pool's size asks for, begins with the number in
/// `learned`, and leaves there what it finds.
pub(super) async fn keep_size(backend: Arc<Backend>, params: WorkersNodeParams, learned: LearnedWorkers) {
    let Some(pool) = backend.upstream.pool().cloned() else { return };
    let size = params.size;
    let known = learned.get();
    let initial = known.unwrap_or(2 * size.cores + 1);
    let mut law = SizeLaw::new(
        size.law,
        ResidentParams {
            initial: initial.clamp(size.least, size.most),
            is_known: known.is_some(),
            least: size.least,
            most: size.most,
            cores: size.cores,
        },
    );
    pool.set_wanted(law.wanted() as usize, "so many are started with");
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (origin, mut before, mut served) = (std::time::Instant::now(), ticks.tick().await, requests(&pool));
    loop {
        let tick = ticks.tick().await;
        let passed = tick.duration_since(std::mem::replace(&mut before, tick)).as_secs_f64();
        let sample = pool.sample();
        let shortage = backend.keeper.worker_shortage();
        let completed = requests(&pool);
        let sample = ResidentSample {
            short: shortage.short,
            held: shortage.held,
            oldest_s: shortage.longest_wait,
            completed: completed - std::mem::replace(&mut served, completed),
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

fn requests(pool: &Pool) -> u64 {
    pool.totals().requests
}

fn counted(sample: &PoolSample) -> ResidentSample {
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    ResidentSample {
        ready: small(sample.ready),
        idle: small(sample.idle),
        starting: small(sample.starting),
        running_max: small(sample.busy_max),
        start_s: sample.start_s,
        fit: sample.fit.map(small),
        is_swapping: sample.is_swapping,
        ..ResidentSample::default()
    }
}
