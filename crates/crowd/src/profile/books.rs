//! What is counted of one point.

use std::collections::BTreeMap;
use std::time::Duration;

use suimon_model::Instant;
use suimon_statistics::Histogram;
use suimon_workload::Window;

use super::plan::Role;
use super::stop::StopRule;
use crate::trouble::Trouble;

/// The most names of an application's own segments that are kept of a service.
const NAMES_MAX: usize = 12;

/// A part of a response time, as the client sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Until the connection was open; nothing on a kept one.
    Connect,
    /// Until the request was given to the kernel.
    Write,
    /// Until the first byte of the answer.
    FirstByte,
    /// Until the last byte of the answer.
    LastByte,
}

impl Segment {
    /// All of them, in their order; together they are the response time.
    pub const ALL: [Segment; 4] = [Segment::Connect, Segment::Write, Segment::FirstByte, Segment::LastByte];

    /// Returns what it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Segment::Connect => "connect",
            Segment::Write => "write",
            Segment::FirstByte => "first byte",
            Segment::LastByte => "last byte",
        }
    }
}

/// A request that was answered.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Answered {
    /// In the order of [`Segment::ALL`].
    pub(crate) segments: [Duration; 4],
    /// What the application told of its own segments.
    pub(crate) told: Vec<(String, Duration)>,
}

/// What is counted of one service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceBooks {
    /// Response times of those that were answered within the window.
    pub(crate) response: Histogram,
    pub(crate) segments: [Histogram; 4],
    pub(crate) told: BTreeMap<String, Histogram>,
    /// Those that failed within the window, by kind.
    pub(crate) errors: BTreeMap<Trouble, u64>,
    /// Time in flight within the window, of all requests together.
    pub(crate) in_flight: Duration,
    /// Since the beginning of the point.
    pub(crate) ended_ever: u64,
    pub(crate) errors_ever: u64,
    pub(crate) kinds_ever: BTreeMap<Trouble, u64>,
}

/// What is counted of one point.
#[derive(Clone, Debug)]
pub(crate) struct PointBooks {
    pub(crate) window: Window,
    services: [ServiceBooks; 2],
}

impl PointBooks {
    pub(crate) fn new(window: Window) -> Self {
        PointBooks { window, services: Default::default() }
    }

    pub(crate) const fn service(&self, role: Role) -> &ServiceBooks {
        match role {
            Role::Light => &self.services[0],
            Role::Heavy => &self.services[1],
        }
    }

    /// Notes the end of a request that was sent at `began`.
    pub(crate) fn ended(
        &mut self,
        role: Role,
        began: Instant,
        now: Instant,
        outcome: Result<Answered, Trouble>,
    ) {
        let window = self.window;
        let books = match role {
            Role::Light => &mut self.services[0],
            Role::Heavy => &mut self.services[1],
        };
        books.ended_ever += 1;
        if let Err(trouble) = &outcome {
            books.errors_ever += 1;
            *books.kinds_ever.entry(*trouble).or_default() += 1;
        }
        books.in_flight += now.min(window.to).since(began.max(window.from));
        if now < window.from || now >= window.to {
            return;
        }
        match outcome {
            Ok(answered) => books.answered(answered),
            Err(trouble) => *books.errors.entry(trouble).or_default() += 1,
        }
    }

    /// Returns the service of which too many requests have failed, if there is one.
    pub(crate) fn broken(&self, rule: StopRule) -> Option<Role> {
        Role::ALL.into_iter().find(|role| {
            let books = self.service(*role);
            rule.is_broken(books.errors_ever, books.ended_ever)
        })
    }
}

impl ServiceBooks {
    fn answered(&mut self, answered: Answered) {
        self.response.record(answered.segments.iter().sum());
        for (histogram, time) in self.segments.iter_mut().zip(answered.segments) {
            histogram.record(time);
        }
        for (name, time) in answered.told {
            if self.told.len() < NAMES_MAX || self.told.contains_key(&name) {
                self.told.entry(name).or_default().record(time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn books() -> PointBooks {
        PointBooks::new(Window { from: at(1000), to: at(3000) })
    }

    fn answered(ms: u64, told: &[&str]) -> Result<Answered, Trouble> {
        let segments = [0, 0, ms, 0].map(Duration::from_millis);
        Ok(Answered {
            segments,
            told: told.iter().map(|name| ((*name).to_owned(), Duration::ZERO)).collect(),
        })
    }

    #[test]
    fn what_ends_within_the_window_counts_and_what_is_in_flight_within_it_is_in_flight() {
        let mut books = books();
        for (began, ended) in [(0, 999), (500, 1500), (1500, 2999), (2500, 3000), (500, 4000)] {
            books.ended(Role::Light, at(began), at(ended), answered(ended - began, &[]));
        }
        let light = books.service(Role::Light);
        assert_eq!((light.response.count(), light.ended_ever), (2, 5));
        assert_eq!(light.in_flight.as_millis(), 500 + 1499 + 500 + 2000);
        assert_eq!(books.service(Role::Heavy).ended_ever, 0);
    }

    #[test]
    fn in_a_closed_loop_completions_times_their_mean_are_the_time_in_flight() {
        let mut books = books();
        for client in 0..7 {
            for request in 0..40 {
                let began = client * 13 + request * 100;
                books.ended(Role::Heavy, at(began), at(began + 100), answered(100, &[]));
            }
        }
        let heavy = books.service(Role::Heavy);
        let product = heavy.response.mean().unwrap().as_secs_f64() * heavy.response.count() as f64;
        assert!((product - 7.0 * 2.0).abs() <= 0.7, "{product}");
        assert_eq!(heavy.in_flight.as_millis(), 14_000);
    }

    #[test]
    fn a_service_whose_requests_fail_is_named_and_the_other_does_not_hide_it() {
        let mut books = books();
        let rule = StopRule::new(0.1);
        for _ in 0..1000 {
            books.ended(Role::Light, at(1500), at(1501), answered(1, &[]));
        }
        for _ in 0..2 {
            books.ended(Role::Heavy, at(1500), at(1501), Err(Trouble::Status(503)));
        }
        assert_eq!(books.broken(rule), None);
        books.ended(Role::Heavy, at(500), at(501), Err(Trouble::TimedOut));
        assert_eq!(books.broken(rule), Some(Role::Heavy), "those of the warm-up count, too");
        assert_eq!(books.service(Role::Heavy).errors, BTreeMap::from([(Trouble::Status(503), 2)]));
    }

    #[test]
    fn an_application_with_ever_new_names_fills_nothing() {
        let mut books = books();
        for name in 0..100 {
            books.ended(Role::Light, at(1500), at(1501), answered(1, &["job", &format!("n{name}")]));
        }
        let told = &books.service(Role::Light).told;
        assert_eq!((told.len(), told["job"].count()), (NAMES_MAX, 100));
    }
}
