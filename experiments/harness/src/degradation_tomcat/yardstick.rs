//! How fast a core is: what a fixed piece of work costs there, again and again.
//!
//! On shared hardware it changes while nothing on this machine does: caches, and perhaps the other
//! half of the core, belong to other machines. Loops that only wait for their own last result cost
//! the same all the time, and so tell nothing of it.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use suimon_process::{cpu, stay_on};

use crate::trouble::{Result, Trouble, While};

/// The Fibonacci number that is computed: about half a millisecond.
const WORK: u32 = 26;
/// How long it rests in between: the core has about a hundredth less for what is measured.
const REST: Duration = Duration::from_millis(40);

/// The work, done in a thread of its own until this is dropped.
#[derive(Debug)]
pub(super) struct Yardstick {
    is_over: Arc<AtomicBool>,
    worker: Option<JoinHandle<std::io::Result<Vec<f64>>>>,
}

impl Yardstick {
    /// Begins on `core`.
    pub(super) fn start(core: usize) -> Self {
        Yardstick::begin(core, REST)
    }

    /// Keeps `core` busy.
    pub(super) fn without_rest(core: usize) -> Self {
        Yardstick::begin(core, Duration::ZERO)
    }

    fn begin(core: usize, rest: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let worker = thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                stay_on(&[core])?;
                Ok(second_by_second(&is_over, rest))
            }
        });
        Yardstick { is_over, worker: Some(worker) }
    }

    /// Ends, and returns for each whole second since the start what the work cost: processor
    /// seconds, the mean.
    pub(super) fn end(mut self) -> Result<Vec<f64>> {
        self.is_over.store(true, Ordering::Relaxed);
        let Some(worker) = self.worker.take() else { return Ok(vec![]) };
        let seconds = worker.join().map_err(|_| Trouble::Failed("the yardstick panicked".into()))?;
        seconds.trouble("yardstick")
    }
}

impl Drop for Yardstick {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn second_by_second(is_over: &AtomicBool, rest: Duration) -> Vec<f64> {
    let (began, mut seconds, mut costs) = (Instant::now(), vec![], vec![]);
    while !is_over.load(Ordering::Relaxed) {
        let before = cpu::thread_time();
        black_box(fibonacci(black_box(WORK)));
        costs.push(cpu::thread_time().saturating_sub(before).as_secs_f64());
        if began.elapsed().as_secs() > seconds.len() as u64 {
            seconds.push(suimon_statistics::mean(&costs));
            costs.clear();
        }
        thread::sleep(rest);
    }
    seconds
}

#[inline(never)]
fn fibonacci(number: u32) -> u64 {
    if number < 2 { u64::from(number) } else { fibonacci(number - 1) + fibonacci(number - 2) }
}
