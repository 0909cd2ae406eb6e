//! How fast a core is: what a fixed piece of work costs there, again and again.
//!
//! On shared hardware it changes while nothing on this machine does: other machines have the other
//! half of the same core, and its caches. Thirty clients of the light job got 150 to 310 answers in
//! single seconds within a minute and a half, and the logarithm of that followed the logarithm of
//! what this work cost with a correlation of −0.95 (loops that do nothing but wait for their own
//! last result cost the same all the time: they leave the core half empty anyway).

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use suimon_process::{cpu, stay_on};

use crate::trouble::{Result, Trouble, While};

/// The Fibonacci number that is computed: about a millisecond.
const WORK: u32 = 26;
/// How long it rests in between: the core has 2 % less for what is measured.
const REST: Duration = Duration::from_millis(40);

/// The work, done in a thread of its own until this is ended.
#[derive(Debug)]
pub(super) struct Yardstick {
    is_over: Arc<AtomicBool>,
    worker: JoinHandle<std::io::Result<Vec<f64>>>,
}

impl Yardstick {
    /// Begins on `core`.
    pub(super) fn start(core: usize) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let worker = thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                stay_on(&[core])?;
                Ok(second_by_second(&is_over))
            }
        });
        Yardstick { is_over, worker }
    }

    /// Ends, and returns for each whole second since the start what the work cost: processor
    /// seconds, the mean.
    pub(super) fn end(self) -> Result<Vec<f64>> {
        self.is_over.store(true, Ordering::Relaxed);
        let seconds = self.worker.join().map_err(|_| Trouble::Failed("the yardstick panicked".into()))?;
        seconds.trouble("yardstick")
    }
}

fn second_by_second(is_over: &AtomicBool) -> Vec<f64> {
    let (began, mut seconds, mut costs) = (Instant::now(), vec![], vec![]);
    while !is_over.load(Ordering::Relaxed) {
        let before = cpu::thread_time();
        black_box(fibonacci(black_box(WORK)));
        costs.push(cpu::thread_time().saturating_sub(before).as_secs_f64());
        if began.elapsed().as_secs() > seconds.len() as u64 {
            seconds.push(suimon_statistics::mean(&costs));
            costs.clear();
        }
        thread::sleep(REST);
    }
    seconds
}

#[inline(never)]
fn fibonacci(number: u32) -> u64 {
    if number < 2 { u64::from(number) } else { fibonacci(number - 1) + fibonacci(number - 2) }
}
