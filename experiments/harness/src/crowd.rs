//! A crowd in a separate process.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use suimon_crowd::Report;
use suimon_process::{Program, Running};

use crate::trouble::{Result, While, failed};

/// How long a crowd may take beyond its own time.
const OVERTIME: Duration = Duration::from_secs(30);
/// The longest a crowd that ends by itself may take.
const UNTIL_DONE_MAX: Duration = Duration::from_secs(300);
/// Interval of the caller's looks meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A crowd to be played.
pub(crate) struct Crowd<'a> {
    /// The `suimon` program.
    pub(crate) suimon: &'a Path,
    /// The prefix of its files.
    pub(crate) name: &'a str,
    /// Where journey, report and logs go.
    pub(crate) folder: &'a Path,
    /// The core it runs on.
    pub(crate) core: usize,
    /// What is played: a journey file's text.
    pub(crate) journey: String,
    /// The address of the application or gateway.
    pub(crate) to: SocketAddr,
    /// Time played before counting.
    pub(crate) warmup: Duration,
    /// Time counted; `None`: until all visitors have finished.
    pub(crate) measure: Option<Duration>,
}

/// A crowd that is playing.
pub(crate) struct Playing {
    process: Running,
    report: std::path::PathBuf,
    began: Instant,
    warmup: Duration,
    deadline: Instant,
}

impl Crowd<'_> {
    /// Starts it.
    pub(crate) fn start(&self) -> Result<Playing> {
        let journey = self.folder.join(format!("{}.toml", self.name));
        let report = self.folder.join(format!("{}.json", self.name));
        fs::write(&journey, &self.journey).trouble(journey.display())?;
        // The report of an earlier run must not be taken for this run's.
        let _ = fs::remove_file(&report);
        let mut program = Program::new(self.name, self.suimon)
            .cores(&[self.core])
            .args(["crowd", &journey.to_string_lossy(), "--to", &format!("http://{}", self.to)])
            .args(["--json", &report.to_string_lossy()])
            .args(["--warmup".to_string(), milliseconds(self.warmup)]);
        if let Some(measure) = self.measure {
            program = program.args(["--duration".to_string(), milliseconds(measure)]);
        }
        let process = program.start(self.folder)?;
        let began = Instant::now();
        let longest = self.measure.map_or(UNTIL_DONE_MAX, |measure| self.warmup + measure + OVERTIME);
        Ok(Playing { process, report, began, warmup: self.warmup, deadline: began + longest })
    }

    /// Plays it to its end.
    pub(crate) fn play(&self) -> Result<Report> {
        self.start()?.finish(|_| Ok(()))
    }
}

impl Playing {
    /// Plays on to the end and returns what the visitors saw. Meanwhile calls `look` every tenth of
    /// a second with the time since the start; an error of `look` ends the crowd.
    pub(crate) fn finish(mut self, mut look: impl FnMut(Duration) -> Result<()>) -> Result<Report> {
        let status = loop {
            if let Some(status) = self.process.ended()? {
                break status;
            }
            if Instant::now() > self.deadline {
                return failed(format!("the crowd does not end:\n{}", self.process.last_words()));
            }
            look(self.began.elapsed())?;
            thread::sleep(LOOK_EVERY);
        };
        // A crowd that completed no session exits with 1, but still has a report.
        let text = fs::read_to_string(&self.report).unwrap_or_default();
        if text.is_empty() {
            return failed(format!(
                "the crowd ended ({status}) without a report:\n{}",
                self.process.last_words()
            ));
        }
        serde_json::from_str(&text).trouble(self.report.display())
    }

    /// Returns when counting begins.
    pub(crate) fn measuring_from(&self) -> Instant {
        self.began + self.warmup
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
