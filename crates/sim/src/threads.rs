//! What a number of threads, or workers, allows at most.

use crate::node::Machine;

/// The most threads for which the bound is computed one by one: more hardly ever limit.
const THREADS_LOOKED_AT: u32 = 400;

/// Returns the sessions per second that `threads` allow at the best concurrency. Each session needs
/// a thread for `rest` seconds without the processor and for `cpu` seconds of work on it.
///
/// With k threads in use, n of them on the processor have the weight p(n) = restᵏ⁻ⁿ / (k − n)!
/// · cpuⁿ / Π work(i), and complete work(n) / cpu sessions per second. This holds for any
/// distribution of the times (a product form).
pub(crate) fn through(machine: &Machine, threads: u32, cpu: f64, rest: f64, memory: f64) -> f64 {
    let most = threads.min(THREADS_LOOKED_AT) as usize;
    let work: Vec<f64> = (0..=most).map(|n| machine.work_per_second(n, n as f64 * memory)).collect();
    let of = |k: usize| {
        // p(n + 1) / p(n) = (k − n) / rest · cpu / work(n + 1); scaled in each step, so that
        // nothing overflows.
        let (mut weight, mut all, mut done) = (1.0_f64, 1.0, 0.0);
        for n in 0..k {
            weight *= (k - n) as f64 / rest * cpu / work[n + 1].max(1e-12);
            (all, done) = (all + weight, done + weight * work[n + 1] / cpu);
            if weight > 1e100 {
                (weight, all, done) = (1.0, all / weight, done / weight);
            }
        }
        done / all
    };
    (1..=most).map(of).fold(0.0, f64::max)
}
