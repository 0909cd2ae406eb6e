//! The same work for each of many jobs, on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns the results of `of` for all jobs, in their order.
pub(crate) fn map<J: Sync, R: Send>(jobs: &[J], of: impl Fn(&J) -> R + Sync) -> Vec<R> {
    map_on(thread::available_parallelism().map_or(1, usize::from), jobs, of)
}

/// The same with this many `workers` at once.
pub(crate) fn map_on<J: Sync, R: Send>(workers: usize, jobs: &[J], of: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            let made = of(job);
            done.lock().expect("nobody panics with the lock").push((index, made));
        }
    };
    thread::scope(|scope| {
        (0..workers).for_each(|_| _ = scope.spawn(work));
    });
    let mut done = done.into_inner().expect("all workers have ended");
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        assert_eq!(map(&jobs, |job| job * 2), jobs.iter().map(|job| job * 2).collect::<Vec<_>>());
        assert!(map(&[] as &[u64], |job| *job).is_empty());
    }
}
