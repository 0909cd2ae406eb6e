//! The workers of a pool beside the gate: the gate is told how many are ready, and the law of the
//! pool's size what they do.

use super::learned::LearnedWorkers;
use crate::backend::Backend;
use std::collections::VecDeque;
use std::sync::Arc;
use suimon_control::{DynamicParams, ResidentParams, ResidentSample, SizeLaw, SizeLawKind};
use suimon_model::{Instant, PoolId};
use suimon_params::pool::{SizeParams, WorkerKind};
use suimon_params::upstream::WorkersNodeParams;
use suimon_pool::PoolSample;
use tokio::time::{Duration, MissedTickBehavior, interval, sleep};

/// How often the law looks.
const EVERY: Duration = Duration::from_secs(1);
/// Seconds after which a worker counts as held by a stream or by a slow client. Others are about to be
/// free.
const HELD_TICKS: usize = 3;
/// Why the number changes when they become more or fewer.
const HELD: &str = "workers that streams and slow clients hold come on top";
/// Why the number changes when an operator fixes it, and when they give it back to the law.
const FIXED: &str = "an operator has fixed the number";
const GIVEN_BACK: &str = "an operator has given the number back to its law";

/// Tells the gate how many workers of a pool are ready, whenever that changes.
///
/// Nobody waits at the gate for a pool of some routes that is down: its requests are told so. Of the
/// first pool the gate knows that the application is away.
pub(super) async fn tell_gate(backend: Arc<Backend>, id: PoolId) {
    let upstream = backend.upstream(id);
    let Some(pool) = upstream.pool() else { return };
    let (mut gated, mut is_up) = (pool.watch_gated(), upstream.watch_up());
    loop {
        let (ready, is_up_now) = (*gated.borrow_and_update(), *is_up.borrow_and_update());
        let is_waited_for = ready > 0 || id == PoolId(0) || (is_up_now && !pool.is_down());
        let ready = is_waited_for.then(|| u32::try_from(ready).unwrap_or(u32::MAX));
        backend.keeper.workers(id, ready);
        // Both are the backend's, so they are there.
        let changed = tokio::select! {
            changed = gated.changed() => changed,
            changed = is_up.changed() => changed,
            // That no start succeeds is a matter of time, and of no change.
            () = sleep(EVERY), if ready == Some(0) => Ok(()),
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Keeps the number of workers that the law of the pool's size asks for, or that an operator has
/// fixed. The law begins with the number in `learned`, and leaves there what it finds.
pub(super) async fn keep_size(
    backend: Arc<Backend>,
    id: PoolId,
    params: WorkersNodeParams,
    learned: LearnedWorkers,
) {
    let Some(pool) = backend.upstream(id).pool().cloned() else { return };
    let (size, known) = (params.size, learned.get(&params.pool.name));
    let runs_once = params.pool.kind == WorkerKind::Cgi;
    let mut law = law_of(size, size.law, known.unwrap_or(2 * size.cores + 1), known.is_some());
    pool.set_wanted(law.wanted() as usize, "so many are started with");
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (origin, mut before) = (std::time::Instant::now(), ticks.tick().await);
    let mut held = Held::default();
    let mut orders = backend.fixed_size(id).subscribe();
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
                pool.set_wanted(held.beside(law.wanted(), size.most), why);
                continue;
            }
        };
        let passed = tick.duration_since(std::mem::replace(&mut before, tick)).as_secs_f64();
        let sample = pool.sample();
        let load = backend.keeper.worker_load(id);
        let was_held = held.now();
        // Where a process runs for each request, so many run as the settings say, and no more.
        held.see(if runs_once { 0 } else { sample.ungated });
        let sample = ResidentSample {
            short: load.short,
            held: load.held,
            oldest_s: load.longest_wait,
            completed: load.completed,
            took_s: load.took_s,
            failed: load.failed,
            ..counted(&sample, was_held, size.most)
        };
        let now = Instant::ORIGIN + origin.elapsed();
        let moved = law.on_tick(now, passed, &sample);
        if moved.is_some() || held.now() != was_held {
            let why = moved.map_or(HELD, |moved| moved.why.explain());
            pool.set_wanted(held.beside(law.wanted(), size.most), why);
        }
        if let Some(found) = law.learned() {
            learned.set(&params.pool.name, found);
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

/// The workers that have a stream, or wait for a slow client: they need hardly anything of the host, so
/// that the law neither counts nor replaces them, and they come on top of those it asks for.
#[derive(Default)]
struct Held {
    /// By second, how many had such a request.
    ungated: VecDeque<usize>,
}

impl Held {
    fn see(&mut self, ungated: usize) {
        if self.ungated.len() == HELD_TICKS {
            self.ungated.pop_front();
        }
        self.ungated.push_back(ungated);
    }

    /// Returns how many have been held all the time.
    fn now(&self) -> usize {
        let least = self.ungated.iter().min().filter(|_| self.ungated.len() == HELD_TICKS);
        least.copied().unwrap_or_default()
    }

    /// Returns how many workers there should be.
    fn beside(&self, wanted: u32, most: u32) -> usize {
        (wanted as usize + self.now()).min(most as usize)
    }
}

/// Returns what is seen of the workers that the law counts: all but `held`. `most`: see
/// [`SizeParams::most`].
fn counted(sample: &PoolSample, held: usize, most: u32) -> ResidentSample {
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let beside = |count: usize| small(count.saturating_sub(held));
    ResidentSample {
        ready: beside(sample.ready),
        idle: small(sample.idle),
        starting: small(sample.starting),
        running_max: beside(sample.busy_max),
        start_s: sample.start_s,
        starts_at_once: small(sample.starts_at_once),
        fit: Some(beside(sample.fit.unwrap_or(usize::MAX).min(most as usize))),
        is_swapping: sample.is_swapping,
        ..ResidentSample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_for_seconds_comes_on_top_and_what_passes_does_not() {
        let mut held = Held::default();
        for ungated in [4, 0, 5, 3] {
            held.see(ungated);
        }
        assert_eq!((held.now(), held.beside(8, 100)), (0, 8), "they had a moment of rest");
        held.see(4);
        assert_eq!((held.now(), held.beside(8, 100), held.beside(8, 10)), (3, 11, 10));
        let sample = PoolSample { ready: 12, busy_max: 9, fit: Some(20), idle: 3, ..PoolSample::default() };
        let seen = counted(&sample, held.now(), 100);
        assert_eq!((seen.ready, seen.running_max, seen.fit), (9, 6, Some(17)));
        assert_eq!(counted(&sample, held.now(), 16).fit, Some(13));
    }
}
