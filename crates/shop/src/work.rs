//! How much work a page is.

use std::time::{Duration, Instant};

use crate::catalogue::Catalogue;
use crate::light;
use crate::options::Options;
use crate::search::Search;

/// CPU of a light page at scale 1.
const LIGHT: Duration = Duration::from_millis(30);
/// CPU of a search at scale 1.
const SEARCH: Duration = Duration::from_millis(400);
/// A measurement repeats its work for at least this long, because the kernel counts CPU time in
/// steps of some milliseconds.
const MEASURED: Duration = Duration::from_millis(60);

/// The cost of a page, as counts that were measured once. Pass them as [`Options`] to repeat the
/// same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Renderings of a light page.
    pub light_work: u32,
    /// Shelf lookups of a search after its first walk over all shelves.
    pub search_repeats: u32,
}

impl Work {
    /// Returns the counts the options name, and measures those they leave open. Measuring takes
    /// about half a second of CPU.
    pub(crate) fn prepare(options: &Options, catalogue: &Catalogue, search: &Search) -> Self {
        let light_work = options.light_work.unwrap_or_else(|| {
            let rendering = cost(|times| drop(light::table(catalogue.page(1), times)));
            count(LIGHT.div_f64(options.scale), rendering)
        });
        let search_repeats = options.search_repeats.unwrap_or_else(|| {
            const LOOKS: u32 = 1000;
            let walk = cost(|times| (0..times).for_each(|_| drop(search.find("lantern", 1))));
            let with_looks = cost(|times| (0..times).for_each(|_| drop(search.find("lantern", LOOKS))));
            let look = with_looks.saturating_sub(walk) / LOOKS;
            count(SEARCH.div_f64(options.scale).saturating_sub(walk), look)
        });
        Work { light_work, search_repeats }
    }
}

/// Returns how many repetitions cost `target`; at least one.
fn count(target: Duration, each: Duration) -> u32 {
    let each = each.max(Duration::from_nanos(1));
    (target.as_secs_f64() / each.as_secs_f64()).round().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// Returns the CPU time of one repetition on this thread: the shorter of two measurements, because
/// disturbance only adds time.
fn cost(work: impl Fn(u32)) -> Duration {
    let timed = |times: u32| {
        let before = thread_cpu();
        work(times);
        thread_cpu().saturating_sub(before)
    };
    let mut times = 1;
    let mut taken = timed(times);
    while taken < MEASURED && times <= u32::MAX / 2 {
        times *= 2;
        taken = timed(times);
    }
    taken.min(timed(times)) / times
}

/// Returns the CPU time of this thread, or the clock's time where the kernel does not report it.
fn thread_cpu() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanos.map_or_else(by_the_clock, Duration::from_nanos)
}

fn by_the_clock() -> Duration {
    use std::sync::OnceLock;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_the_target_over_the_cost_and_never_none() {
        let ms = Duration::from_millis;
        assert_eq!(count(ms(30), Duration::from_micros(10)), 3000);
        assert_eq!(count(ms(0), ms(1)), 1);
        assert_eq!(count(ms(1), ms(0)), 1_000_000);
    }
}
