//! What is sent, and for how long.

use std::fmt;
use std::time::Duration;

use http::Method;
use http::uri::PathAndQuery;

/// The most requests of one service that are in flight at once.
pub const IN_FLIGHT_MAX: u32 = 1000;
/// The most numbers of heavy requests that are tried.
pub const POINTS_MAX: usize = 20;
/// The longest that a point is measured, seconds.
pub const SECONDS_MAX: u32 = 3600;
/// The shortest that a point is measured.
const MEASURE_MIN: Duration = Duration::from_millis(100);
/// A service alone answers alike all the time, so that it is measured for this part of a point.
const ALONE_PART: u32 = 4;

/// One of the two services.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// The one that has always as many requests in flight.
    Light,
    /// The one that has more from point to point.
    Heavy,
}

impl Role {
    /// Both.
    pub const ALL: [Role; 2] = [Role::Light, Role::Heavy];
}

/// What is asked for: a method and a path, without a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Service {
    pub(crate) method: Method,
    pub(crate) path: PathAndQuery,
}

impl Service {
    /// Returns the service that is written as `GET /path?query`; without a method, GET.
    ///
    /// # Errors
    /// Fails with a sentence that says what to write instead.
    pub fn parse(text: &str) -> Result<Service, String> {
        let wrong = || format!("{text:?}: write a method and a path, such as 'GET /quote?item=7'");
        let mut words = text.split_whitespace();
        let (method, path) = match (words.next(), words.next(), words.next()) {
            (Some(path), None, None) => ("GET", path),
            (Some(method), Some(path), None) => (method, path),
            _ => return Err(wrong()),
        };
        if !path.starts_with('/') || path.contains('#') {
            return Err(wrong());
        }
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| wrong())?;
        if method == Method::CONNECT {
            return Err(format!("{text:?}: CONNECT asks for no page"));
        }
        Ok(Service { method, path: path.parse().map_err(|_| wrong())? })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// What is to be measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The light service.
    pub light: Service,
    /// The heavy service.
    pub heavy: Service,
    /// Light requests in flight, at each point; 1 to [`IN_FLIGHT_MAX`].
    pub light_in_flight: u32,
    /// Heavy requests in flight, point by point; at most [`POINTS_MAX`], each at most
    /// [`IN_FLIGHT_MAX`]. None only if each service is measured alone.
    pub heavy_in_flight: Vec<u32>,
    /// Time of each point that is played but not measured.
    pub warmup: Duration,
    /// Time of each point that is measured.
    pub measure: Duration,
    /// How long one answer is waited for.
    pub timeout: Duration,
    /// The share of a service's requests that may fail, 0 to 1.
    pub errors_max: f64,
    /// Whether each request comes over a connection of its own.
    pub new_connections: bool,
    /// Whether each service is measured alone first; without that there are no slowdowns.
    pub alone: bool,
}

/// So many requests of each service in flight, for a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Light requests in flight.
    pub light: u32,
    /// Heavy requests in flight.
    pub heavy: u32,
    /// Whether this is one request at a time of one service: what the others are compared with.
    pub alone: bool,
    /// Time that is not measured, at the beginning.
    pub warmup: Duration,
    /// Time that is.
    pub measure: Duration,
}

impl Point {
    /// Returns how many requests of the service are in flight.
    pub const fn in_flight(&self, role: Role) -> u32 {
        match role {
            Role::Light => self.light,
            Role::Heavy => self.heavy,
        }
    }
}

impl Plan {
    /// Returns the service that plays the role.
    pub const fn service(&self, role: Role) -> &Service {
        match role {
            Role::Light => &self.light,
            Role::Heavy => &self.heavy,
        }
    }

    /// Returns the plan with all times of its points multiplied.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Plan {
        self.warmup = self.warmup.mul_f64(factor);
        self.measure = self.measure.mul_f64(factor);
        self
    }

    /// Looks whether the plan can be played.
    ///
    /// # Errors
    /// Fails with a sentence that says what is wrong and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.heavy_in_flight.is_empty() && !self.alone || self.heavy_in_flight.len() > POINTS_MAX {
            let count = self.heavy_in_flight.len();
            return Err(format!("{count} numbers of heavy requests; 1 to {POINTS_MAX} can be tried"));
        }
        let most = self.heavy_in_flight.iter().max().copied().unwrap_or_default();
        if most > IN_FLIGHT_MAX {
            return Err(format!("{most} heavy requests in flight; at most {IN_FLIGHT_MAX}"));
        }
        if self.light_in_flight == 0 || self.light_in_flight > IN_FLIGHT_MAX {
            return Err(format!("{} light requests in flight; 1 to {IN_FLIGHT_MAX}", self.light_in_flight));
        }
        if !(0.0..=1.0).contains(&self.errors_max) {
            return Err(format!("a share of {} may fail; 0 to 1", self.errors_max));
        }
        if self.measure < MEASURE_MIN || self.measure > Duration::from_secs(SECONDS_MAX.into()) {
            return Err(format!(
                "each point is measured for {:?}; {MEASURE_MIN:?} to {SECONDS_MAX} s",
                self.measure
            ));
        }
        if self.timeout.is_zero() {
            return Err("no answer can come within a timeout of 0".to_owned());
        }
        Ok(())
    }

    /// Returns the points in the order in which they are played: each service alone, if that is
    /// wanted, then one for each number of heavy requests.
    pub fn points(&self) -> Vec<Point> {
        let measure = (self.measure / ALONE_PART).max(MEASURE_MIN);
        let alone = |light, heavy| Point { light, heavy, alone: true, warmup: self.warmup, measure };
        let together = self.heavy_in_flight.iter().map(|heavy| Point {
            light: self.light_in_flight,
            heavy: *heavy,
            alone: false,
            warmup: self.warmup,
            measure: self.measure,
        });
        let first = if self.alone { &[(1, 0), (0, 1)][..] } else { &[] };
        first.iter().map(|(light, heavy)| alone(*light, *heavy)).chain(together).collect()
    }

    /// Returns how long all points take, without the last answers of each, for which
    /// [`timeout`](Plan::timeout) is waited at most.
    pub fn lasts(&self) -> Duration {
        self.points().iter().map(|point| point.warmup + point.measure).sum()
    }

    /// Returns the most requests that are in flight at once.
    pub fn in_flight_max(&self) -> u32 {
        self.points().iter().map(|point| point.light + point.heavy).max().unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan() -> Plan {
        Plan {
            light: Service::parse("GET /quote").unwrap(),
            heavy: Service::parse("POST /report?of=all").unwrap(),
            light_in_flight: 30,
            heavy_in_flight: vec![0, 1, 40],
            warmup: Duration::from_secs(10),
            measure: Duration::from_secs(60),
            timeout: Duration::from_secs(30),
            errors_max: 0.1,
            new_connections: false,
            alone: true,
        }
    }

    #[test]
    fn each_service_is_alone_first_and_then_the_heavy_one_grows() {
        let plan = plan();
        let points = plan.points();
        let played: Vec<_> = points.iter().map(|point| (point.light, point.heavy, point.alone)).collect();
        let wanted = [(1, 0, true), (0, 1, true), (30, 0, false), (30, 1, false), (30, 40, false)];
        assert_eq!(played, wanted);
        assert_eq!((points[0].measure.as_secs(), points[2].measure.as_secs()), (15, 60));
        assert_eq!(plan.lasts().as_secs(), 5 * 10 + 2 * 15 + 3 * 60);
        assert_eq!(plan.in_flight_max(), 70);
        let points = Plan { alone: false, ..plan.clone() }.points();
        assert_eq!(points.iter().map(|point| point.heavy).collect::<Vec<_>>(), [0, 1, 40]);
        assert!(!points.iter().any(|point| point.alone));
        let points = Plan { heavy_in_flight: vec![], alone: true, ..plan }.points();
        assert!(points.len() == 2 && points.iter().all(|point| point.alone));
    }

    #[test]
    fn a_scale_shortens_the_points_and_nothing_else() {
        let scaled = plan().scaled(0.1);
        assert_eq!((scaled.warmup.as_millis(), scaled.measure.as_millis()), (1000, 6000));
        assert_eq!(scaled.timeout, plan().timeout);
        assert_eq!(scaled.lasts().as_millis(), plan().lasts().as_millis() / 10);
    }

    #[test]
    fn what_cannot_be_played_says_what_is_allowed() {
        assert_eq!(plan().check(), Ok(()));
        let faults = [
            (Plan { heavy_in_flight: vec![], alone: false, ..plan() }, "1 to 20"),
            (Plan { heavy_in_flight: vec![1; 21], ..plan() }, "21 numbers"),
            (Plan { heavy_in_flight: vec![0, 1001], ..plan() }, "at most 1000"),
            (Plan { light_in_flight: 0, ..plan() }, "1 to 1000"),
            (Plan { light_in_flight: 1001, ..plan() }, "1 to 1000"),
            (Plan { errors_max: f64::NAN, ..plan() }, "0 to 1"),
            (Plan { errors_max: 1.5, ..plan() }, "0 to 1"),
            (Plan { timeout: Duration::ZERO, ..plan() }, "timeout"),
            (plan().scaled(0.001), "100ms to 3600 s"),
            (plan().scaled(100.0), "3600 s"),
        ];
        for (plan, wanted) in faults {
            let message = plan.check().unwrap_err();
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn a_service_is_a_method_and_a_path() {
        for (text, wanted) in [
            ("GET /quote", "GET /quote"),
            ("/quote", "GET /quote"),
            (" POST  /a?b=c ", "POST /a?b=c"),
            ("HEAD /", "HEAD /"),
        ] {
            assert_eq!(Service::parse(text).unwrap().to_string(), wanted);
        }
        for text in
            ["", "GET", "quote", "GET quote", "GET http://x/y", "GET /a b", "G@T /a", "GET /a#b", "CONNECT /"]
        {
            assert!(Service::parse(text).is_err(), "{text}");
        }
    }
}
