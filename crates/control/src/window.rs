//! Windows: what happened on a route between two moments.
//!
//! A [`Meter`] only ever counts up. A law that wants a window keeps the [`Reading`] it began with
//! and takes the difference later, so any number of laws can look at the same route without
//! disturbing one another.

use crate::degradation::ServiceSample;
use suimon_model::Instant;

/// Counts up what happens on one route.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    now: Reading,
    in_flight: usize,
    waiting: usize,
    /// How many of those in the application are expected to pause there.
    pausing: f64,
}

suimon_model::saved_struct!(Meter { now, in_flight, waiting, pausing }, |it: &Meter| it.pausing.is_finite());

/// The meter at one moment. All numbers are sums since the meter was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// When it was read.
    pub at: Instant,
    /// Ends that count as progress: completed, or abandoned by the client while the application
    /// worked on.
    pub progressed: u64,
    /// Ends that are no progress: errors. A storm of quick errors must not look like speed.
    pub failed: u64,
    /// Of the progress, requests that were answered with what they asked for, and their seconds in
    /// the application: what says what a request takes.
    pub answered: u64,
    /// See `answered`.
    pub answered_seconds: f64,
    /// Seconds in the application, summed over everything that ended.
    pub service_seconds: f64,
    /// Requests in the application, integrated over time, without those that pause there.
    pub in_flight_seconds: f64,
    /// Seconds during which requests waited.
    pub queued_seconds: f64,
    /// Requests waiting, integrated over time, with those that pause in the application.
    pub waiting_seconds: f64,
}

suimon_model::saved_struct!(Reading {
    at,
    progressed,
    failed,
    answered,
    answered_seconds,
    service_seconds,
    in_flight_seconds,
    queued_seconds,
    waiting_seconds
});

/// Requests that ended at other gateways before the same application.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EndedElsewhere {
    /// Ends that are progress.
    pub progressed: u64,
    /// Ends that are none.
    pub failed: u64,
    /// Answers.
    pub answered: u64,
    /// Seconds in the application of all that ended, ...
    pub service_seconds: f64,
    /// ... and of the answers.
    pub answered_seconds: f64,
}

/// The difference of two readings.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Length in seconds.
    pub seconds: f64,
    /// Ends that count as progress.
    pub progressed: u64,
    /// Ends that are errors.
    pub failed: u64,
    answered: u64,
    answered_seconds: f64,
    service_seconds: f64,
    in_flight_seconds: f64,
    queued_seconds: f64,
    waiting_seconds: f64,
}

impl Meter {
    /// Returns a meter that begins at `now` with nothing in the application.
    pub fn new(now: Instant) -> Self {
        Meter { now: Reading { at: now, ..Reading::default() }, ..Meter::default() }
    }

    /// Takes note of how many are in the application and waiting from `now` on.
    pub fn load(&mut self, now: Instant, in_flight: usize, waiting: usize) {
        self.advance(now);
        self.in_flight = in_flight;
        self.waiting = waiting;
    }

    /// Takes note of how many of those in the application are expected to pause there from `now` on.
    pub fn pausing(&mut self, now: Instant, pausing: f64) {
        self.advance(now);
        self.pausing = pausing;
    }

    /// Takes note that requests paused for so many seconds more than was expected of them.
    pub fn paused_more(&mut self, seconds: f64) {
        self.now.in_flight_seconds -= seconds;
        self.now.waiting_seconds += seconds;
    }

    /// Takes note of an end after `service_seconds` of work in the application.
    pub fn end(&mut self, service_seconds: f64, progress: bool) {
        self.now.service_seconds += service_seconds;
        if progress {
            self.now.progressed += 1;
        } else {
            self.now.failed += 1;
        }
    }

    /// Takes note of what ended at other gateways. What is in the application from there, and what
    /// waits, is told by [`Meter::load`].
    pub fn end_elsewhere(&mut self, ended: &EndedElsewhere) {
        self.now.progressed += ended.progressed;
        self.now.failed += ended.failed;
        self.now.answered += ended.answered;
        self.now.service_seconds += ended.service_seconds;
        self.now.answered_seconds += ended.answered_seconds;
    }

    /// Takes note, beside its [end](Meter::end), that a request was answered with what it asked for.
    pub fn answer(&mut self, service_seconds: f64) {
        self.now.answered += 1;
        self.now.answered_seconds += service_seconds;
    }

    /// Returns the reading at `now`.
    pub fn read(&self, now: Instant) -> Reading {
        let mut copy = self.clone();
        copy.advance(now);
        copy.now
    }

    /// Returns what happened from `begin` to `now`.
    pub fn since(&self, begin: &Reading, now: Instant) -> Window {
        self.read(now).since(begin)
    }

    /// Returns how many are in the application.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns how many wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    fn advance(&mut self, now: Instant) {
        let seconds = now.secs_since(self.now.at);
        self.now.in_flight_seconds += (self.in_flight as f64 - self.pausing) * seconds;
        self.now.waiting_seconds += (self.waiting as f64 + self.pausing) * seconds;
        if self.waiting > 0 {
            self.now.queued_seconds += seconds;
        }
        self.now.at = self.now.at.max(now);
    }
}

impl Reading {
    /// Returns what happened from `begin` to this reading.
    pub fn since(&self, begin: &Reading) -> Window {
        Window {
            seconds: self.at.secs_since(begin.at),
            progressed: self.progressed.saturating_sub(begin.progressed),
            failed: self.failed.saturating_sub(begin.failed),
            answered: self.answered.saturating_sub(begin.answered),
            answered_seconds: self.answered_seconds - begin.answered_seconds,
            service_seconds: self.service_seconds - begin.service_seconds,
            // What was paused is known at a request's end, and may be of an earlier window.
            in_flight_seconds: (self.in_flight_seconds - begin.in_flight_seconds).max(0.0),
            queued_seconds: self.queued_seconds - begin.queued_seconds,
            waiting_seconds: (self.waiting_seconds - begin.waiting_seconds).max(0.0),
        }
    }
}

impl Window {
    /// Returns progress per second; 0 for an empty window.
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.progressed as f64 / self.seconds } else { 0.0 }
    }

    /// Returns progress per second with unfinished work: `before` and `after` are the ages, in
    /// seconds, of what was in the application at the beginning and at the end, and each counts as
    /// done by its age ÷ the mean service time.
    pub fn throughput_with_parts(
        &self,
        before: impl Iterator<Item = f64>,
        after: impl Iterator<Item = f64>,
    ) -> f64 {
        let Some(mean) = self.mean_service().filter(|mean| *mean > 0.0 && self.seconds > 0.0) else {
            return self.throughput();
        };
        let part = |age: f64| (age / mean).min(1.0);
        let gained: f64 = after.map(part).sum::<f64>() - before.map(part).sum::<f64>();
        let progressing = self.progressed as f64 / (self.progressed + self.failed) as f64;
        (self.progressed as f64 + progressing * gained).max(0.0) / self.seconds
    }

    /// Returns the mean time in the application of what ended, in seconds, or `None` if nothing
    /// did.
    pub fn mean_service(&self) -> Option<f64> {
        let ended = self.progressed + self.failed;
        (ended > 0).then(|| self.service_seconds / ended as f64)
    }

    /// Returns the mean time in the application of what was answered, in seconds: quick errors and refusals would look
    /// like speed. `None` with fewer than `least` answers.
    pub fn mean_answer(&self, least: u64) -> Option<f64> {
        (self.answered >= least.max(1)).then(|| self.answered_seconds / self.answered as f64)
    }

    /// Returns the mean number in the application over the time of the window.
    pub fn mean_in_flight(&self) -> f64 {
        if self.seconds > 0.0 { self.in_flight_seconds / self.seconds } else { 0.0 }
    }

    /// Returns what the split is told of it, for requests that take `alone` seconds alone, `work`
    /// of the processor. What a request takes is told by those that were answered: quick errors and
    /// refusals, and requests whose clients went before the application had them, would look like
    /// speed.
    pub fn sample(&self, alone: Option<f64>, work: Option<f64>) -> ServiceSample {
        let answered = self.answered as f64;
        let known = |value: f64| if alone.is_some() { value } else { 0.0 };
        ServiceSample {
            seconds: self.seconds,
            inside_seconds: self.in_flight_seconds,
            waiting_seconds: self.waiting_seconds,
            ended: (self.progressed + self.failed) as f64,
            spent_seconds: self.service_seconds,
            answered,
            answered_seconds: self.answered_seconds,
            known: known(answered),
            known_seconds: known(self.answered_seconds),
            alone_seconds: answered * alone.unwrap_or(0.0),
            work_seconds: work.map_or(self.answered_seconds, |work| answered * work),
        }
    }

    /// Returns the share of the time during which requests waited, 0 to 1.
    pub fn queued_share(&self) -> f64 {
        if self.seconds > 0.0 { (self.queued_seconds / self.seconds).clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    fn at(secs: f64) -> Instant {
        Instant::ORIGIN + seconds(secs)
    }

    #[test]
    fn a_window_is_the_difference_of_two_readings() {
        let mut meter = Meter::new(at(0.0));
        meter.load(at(1.0), 2, 1);
        let begin = meter.read(at(2.0));
        meter.load(at(3.0), 1, 0);
        meter.end(0.5, true);
        meter.end(1.5, false);
        let window = meter.since(&begin, at(4.0));
        assert_eq!((window.progressed, window.failed), (1, 1));
        assert!((window.mean_in_flight() - 1.5).abs() < 1e-9);
        assert!((window.queued_share() - 0.5).abs() < 1e-9);
        assert_eq!(window.mean_service(), Some(1.0));
        assert!((window.throughput() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn who_pauses_in_the_application_waits() {
        let mut meter = Meter::new(at(0.0));
        let begin = meter.read(at(0.0));
        meter.load(at(0.0), 2, 0);
        meter.pausing(at(0.0), 1.5);
        meter.pausing(at(4.0), 0.0);
        meter.load(at(4.0), 0, 0);
        let sample = meter.since(&begin, at(4.0)).sample(None, None);
        assert_eq!((sample.inside_seconds, sample.waiting_seconds), (2.0, 6.0));
        assert!(meter.since(&begin, at(4.0)).queued_share() <= 0.0, "nobody waits for a slot");
        meter.paused_more(-6.0);
        let sample = meter.since(&begin, at(4.0)).sample(None, None);
        assert_eq!((sample.inside_seconds, sample.waiting_seconds), (8.0, 0.0), "nobody has paused");
    }

    #[test]
    fn what_is_half_done_counts_half() {
        let mut meter = Meter::new(at(0.0));
        let begin = meter.read(at(0.0));
        (0..4).for_each(|_| meter.end(2.0, true));
        let window = meter.since(&begin, at(10.0));
        let with_parts = |before: &[f64], after: &[f64]| {
            10.0 * window.throughput_with_parts(before.iter().copied(), after.iter().copied())
        };
        assert!((with_parts(&[], &[]) - 4.0).abs() < 1e-9);
        assert!((with_parts(&[1.0], &[]) - 3.5).abs() < 1e-9, "half of one was done before");
        assert!((with_parts(&[1.0], &[0.5, 1.0]) - 4.25).abs() < 1e-9);
        assert!((with_parts(&[], &[60.0]) - 5.0).abs() < 1e-9, "nobody is more than done");
        assert!(with_parts(&[9.0; 8], &[]) >= 0.0);
    }

    #[test]
    fn only_what_was_answered_says_what_a_request_takes() {
        let mut meter = Meter::new(at(0.0));
        let begin = meter.read(at(0.0));
        for (number, seconds, is_answer, progress) in
            [(90, 0.001, false, false), (90, 0.001, false, true), (10, 0.35, true, true)]
        {
            for _ in 0..number {
                meter.end(seconds, progress);
                if is_answer {
                    meter.answer(seconds);
                }
            }
        }
        let sample = meter.since(&begin, at(1.0)).sample(Some(0.3), Some(0.3));
        let near = |value: f64, other: f64| (value - other).abs() < 1e-9;
        assert!(near(sample.answered, 10.0) && near(sample.answered_seconds, 3.5), "{sample:?}");
        assert!(near(sample.spent_seconds, 3.68) && near(sample.work_seconds, 3.0), "{sample:?}");
        let unknown = meter.since(&begin, at(1.0)).sample(None, None);
        assert!(near(unknown.known, 0.0) && near(unknown.work_seconds, 3.5), "work at most: {unknown:?}");
    }

    #[test]
    fn an_empty_window_divides_by_nothing() {
        let meter = Meter::new(at(5.0));
        let window = meter.since(&meter.read(at(5.0)), at(5.0));
        assert_eq!((window.throughput(), window.mean_in_flight(), window.queued_share()), (0.0, 0.0, 0.0));
        assert_eq!(window.throughput_with_parts([1.0].into_iter(), [2.0].into_iter()).to_bits(), 0);
        assert_eq!(window.mean_service(), None);
    }
}
