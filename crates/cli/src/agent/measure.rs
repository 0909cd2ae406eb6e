//! What the kernel and the application say of the load.

use crate::args::Agent;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use suimon_agent::datagram::{Load, RUN_QUEUE_MAX};
use suimon_agent::procfs::{self, TEXT_MAX};
use suimon_agent::samples::{PAST, Samples};

/// How often pressure is looked at. Over a second that is often enough.
const PRESSURE_EVERY: Duration = Duration::from_millis(100);
/// Looks at pressure that are kept: a second, and the one before it.
const PRESSURES_MAX: usize = 11;
/// A run queue that was not read for so long is not known any more.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// The processors that are online.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// What is read, and what was read over the past second.
pub(super) struct Measure {
    loadavg: PathBuf,
    pressure: PathBuf,
    in_flight: Option<PathBuf>,
    processors: u16,
    origin: Instant,
    samples: Samples,
    looked: Instant,
    /// For how long some task had waited for a processor, in microseconds, and when.
    waited: VecDeque<(Instant, u64)>,
}

impl Measure {
    /// Returns one that has looked once.
    ///
    /// # Errors
    /// A sentence if the run queue cannot be read here.
    pub(super) fn begin(args: &Agent) -> Result<Measure, String> {
        let loadavg = args.proc.join("loadavg");
        let first = read(&loadavg).map_err(|error| {
            format!(
                "{}: cannot be read: {error}; the agent needs Linux's /proc, or --proc",
                loadavg.display()
            )
        })?;
        if procfs::run_queue(&first).is_none() {
            return Err(format!("{}: has no run queue in it: {first:?}", loadavg.display()));
        }
        let online = || read(Path::new(ONLINE)).ok().and_then(|text| procfs::processors(&text));
        let known = || std::thread::available_parallelism().ok().and_then(|it| u16::try_from(it.get()).ok());
        let mut measure = Measure {
            pressure: args.pressure.clone().unwrap_or_else(|| args.proc.join("pressure/cpu")),
            in_flight: args.in_flight.clone(),
            processors: args.processors.or_else(online).or_else(known).unwrap_or(1),
            loadavg,
            origin: Instant::now(),
            samples: Samples::default(),
            looked: Instant::now(),
            waited: VecDeque::new(),
        };
        measure.look();
        Ok(measure)
    }

    /// Returns the file with the run queue.
    pub(super) fn path(&self) -> &Path {
        &self.loadavg
    }

    /// Looks at the run queue, and at pressure if it is time. What cannot be read now is left out.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        if let Some(tasks) = read(&self.loadavg).ok().and_then(|text| procfs::run_queue(&text)) {
            // The one that reads the file is among them.
            let others = tasks.saturating_sub(1).min(RUN_QUEUE_MAX);
            self.samples.push(suimon_model::Instant::ORIGIN + (now - self.origin), others);
            self.looked = now;
        }
        let is_due = self.waited.back().is_none_or(|(at, _)| now - *at >= PRESSURE_EVERY);
        if is_due && let Some(waited) = read(&self.pressure).ok().and_then(|text| procfs::waited_us(&text)) {
            self.waited.push_back((now, waited));
            while self.waited.len() > PRESSURES_MAX {
                self.waited.pop_front();
            }
        }
    }

    /// Returns the load; the next one will be asked for after `every`. `None`: the run queue could not be
    /// read for some time, so it is not known.
    pub(super) fn load(&self, every: Duration) -> Option<Load> {
        if self.looked.elapsed() > KNOWN_FOR {
            return None;
        }
        let in_flight = self.in_flight.as_ref().and_then(|path| read(path).ok());
        Some(Load {
            every: Duration::from_micros(u64::try_from(every.as_micros()).unwrap_or(u64::MAX)),
            run_queue: self.samples.last(),
            mean_100ms_milli: self.samples.mean_milli(Duration::from_millis(100)),
            mean_1s_milli: self.samples.mean_milli(PAST),
            pressure: self.pressure(),
            in_flight: in_flight.and_then(|text| procfs::in_flight(&text)),
            processors: self.processors,
        })
    }

    /// Returns the share of about the past second for which some task waited, in hundredths of a per
    /// cent. `None`: this kernel does not say, or it is too early.
    fn pressure(&self) -> Option<u16> {
        let ((began, before), (ended, after)) = (self.waited.front()?, self.waited.back()?);
        let (lasted, waited) = ((*ended - *began).as_secs_f64(), after.saturating_sub(*before) as f64 / 1e6);
        // A conversion from float saturates.
        (lasted > 0.0).then(|| ((1e4 * waited / lasted).round() as u16).min(10_000))
    }
}

/// Returns the beginning of a file.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TEXT_MAX as u64).read_to_string(&mut text)?;
    Ok(text)
}
