//! What a gateway publishes, as bytes and back. Bytes may be of another version or of anybody: what
//! is not a record is refused.

use suimon_model::persist::{Broken, Persist, Reader, Writer};

/// The most routes in a record; the idle ones are left out first.
pub const ROUTE_RECORDS_MAX: usize = 512;
/// The most kinds of session in a record.
pub const KIND_RECORDS_MAX: usize = 64;
/// The most points by which a lane says where its people stand.
pub const PEOPLE_MAX: usize = 32;
/// The lanes of a line.
const LANES_MAX: usize = 8;
/// Numbers of a line end before this one: a ticket has 48 bits for them.
pub const NUMBERS_END: u64 = 1 << 48;
/// The version of the bytes. Gateways of another one do not share.
const VERSION: u64 = 2;

/// A gateway, by a number that no other of its group has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct GatewayId(pub u64);

/// Requests of a route that ended, ever: sums, so that a lost record loses nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ended {
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

suimon_model::saved_struct!(Ended { progressed, failed, answered, service_seconds, answered_seconds });

impl Ended {
    /// Returns what ended since `earlier`; nothing where `earlier` is of another life.
    pub fn since(&self, earlier: &Ended) -> Ended {
        Ended {
            progressed: self.progressed.saturating_sub(earlier.progressed),
            failed: self.failed.saturating_sub(earlier.failed),
            answered: self.answered.saturating_sub(earlier.answered),
            service_seconds: (self.service_seconds - earlier.service_seconds).max(0.0),
            answered_seconds: (self.answered_seconds - earlier.answered_seconds).max(0.0),
        }
    }

    /// Returns `times` as much, rounded down.
    pub(crate) fn times(&self, times: u64) -> Ended {
        Ended {
            progressed: self.progressed.saturating_mul(times),
            failed: self.failed.saturating_mul(times),
            answered: self.answered.saturating_mul(times),
            service_seconds: self.service_seconds * times as f64,
            answered_seconds: self.answered_seconds * times as f64,
        }
    }

    pub(crate) fn add(&mut self, other: &Ended) {
        self.progressed = self.progressed.saturating_add(other.progressed);
        self.failed = self.failed.saturating_add(other.failed);
        self.answered = self.answered.saturating_add(other.answered);
        self.service_seconds += other.service_seconds;
        self.answered_seconds += other.answered_seconds;
    }
}

/// A route as its gateway reports it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RouteReport {
    /// Its name, by [`crate::key_of`].
    pub key: u64,
    /// Requests in the application.
    pub in_flight: u32,
    /// Requests waiting.
    pub waiting: u32,
    /// The limit that the law of this gateway holds, of all gateways together; 0: none is held.
    pub limit: u32,
    /// Whether it is neither on trial nor still being raised.
    pub is_settled: bool,
    /// Completions per second it can do; 0: unknown.
    pub capacity: f64,
    /// What ended at this gateway.
    pub ended: Ended,
    /// Visits that sessions of this gateway still have to make.
    pub remaining: f64,
}

suimon_model::saved_struct!(RouteReport {
    key,
    in_flight,
    waiting,
    limit,
    is_settled,
    capacity,
    ended,
    remaining
});

/// A route as a gateway publishes it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RouteRecord {
    /// What happens there.
    pub report: RouteReport,
    /// The slots in force at this gateway.
    pub slots: u32,
    /// Milliseconds for which requests have waited there without any slot.
    pub starved_ms: u64,
    /// Progress per second at this gateway, over some seconds.
    pub rate: f64,
}

suimon_model::saved_struct!(RouteRecord { report, slots, starved_ms, rate });

impl RouteRecord {
    /// Returns slots that nobody else may be given: those in force, or taken.
    pub fn holds(&self) -> u32 {
        self.slots.max(self.report.in_flight)
    }

    /// Returns how many slots it could use.
    pub fn wants(&self) -> u32 {
        self.report.in_flight.saturating_add(self.report.waiting)
    }
}

/// One lane of a line as its gateway reports it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaneRecord {
    /// Which lane.
    pub lane: u32,
    /// The first number that this gateway knows to be free.
    pub next: u64,
    /// The first number that is not called.
    pub called: u64,
    /// People called who are expected at the gate.
    pub expected: f64,
    /// Points (number, people who wait here before it), counting up from `called`; at most
    /// [`PEOPLE_MAX`].
    pub people: Vec<(u64, u64)>,
}

suimon_model::saved_struct!(LaneRecord { lane, next, called, expected, people }, |it: &LaneRecord| {
    it.people.len() <= PEOPLE_MAX
        && it.called <= it.next
        && it.next <= NUMBERS_END
        && (0.0..1e12).contains(&it.expected)
        && it.people.is_sorted()
        && it.people.first().is_none_or(|(number, _)| *number >= it.called)
});

/// A kind of session as its gateway reports it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KindReport {
    /// Its name, by [`crate::key_of`].
    pub key: u64,
    /// Newcomers who could begin: those who came in the last seconds, who are held, or called.
    pub wants: f64,
    /// Newcomers per second.
    pub came: f64,
    /// Sessions begun per second.
    pub begun: f64,
    /// Newcomers held or waiting in line.
    pub waiting: u32,
    /// Sessions per second that the law of this gateway would admit at all gateways together, and
    /// how many at once; 0: it does not say.
    pub rate: f64,
    /// See `rate`.
    pub depth: f64,
    /// Whether that is a guess, as this gateway has not seen enough of what sessions do.
    pub is_cold: bool,
    /// Sessions of this gateway that have begun and are not known to have ended.
    pub active: u32,
    /// Its line, lane by lane.
    pub lanes: Vec<LaneRecord>,
}

suimon_model::saved_struct!(
    KindReport { key, wants, came, begun, waiting, rate, depth, is_cold, active, lanes },
    |it: &KindReport| {
        let amounts = [it.wants, it.came, it.begun, it.rate, it.depth];
        it.lanes.len() <= LANES_MAX && amounts.iter().all(|amount| (0.0..1e12).contains(amount))
    }
);

/// A kind of session as a gateway publishes it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KindRecord {
    /// What happens there.
    pub report: KindReport,
    /// The portion of what begins that is in force at this gateway, 0 to 1.
    pub portion: f64,
}

suimon_model::saved_struct!(KindRecord { report, portion }, |it: &KindRecord| {
    (0.0..=1.0).contains(&it.portion)
});

/// What a gateway has to say of itself.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Its routes.
    pub routes: Vec<RouteReport>,
    /// Its kinds of session.
    pub kinds: Vec<KindReport>,
}

/// What a gateway publishes once per period.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Record {
    /// Counts up with each record of one process.
    pub number: u64,
    /// Differs from process to process: sums begin anew.
    pub life: u64,
    /// Whether it learns the limits.
    pub learns: bool,
    /// Its routes.
    pub routes: Vec<RouteRecord>,
    /// Its kinds of session.
    pub kinds: Vec<KindRecord>,
}

impl Record {
    /// Returns it as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        VERSION.save(&mut out);
        self.number.save(&mut out);
        self.life.save(&mut out);
        self.learns.save(&mut out);
        self.routes.save(&mut out);
        self.kinds.save(&mut out);
        out.into_bytes()
    }

    /// Returns the record that `bytes` are.
    ///
    /// # Errors
    /// Returns where, and why, they are none.
    pub fn of_bytes(bytes: &[u8]) -> Result<Record, Broken> {
        let mut from = Reader::new(bytes);
        if u64::load(&mut from)? != VERSION {
            return Err(from.broken("a record of another version"));
        }
        let record = Record {
            number: Persist::load(&mut from)?,
            life: Persist::load(&mut from)?,
            learns: Persist::load(&mut from)?,
            routes: Persist::load(&mut from)?,
            kinds: Persist::load(&mut from)?,
        };
        from.finish()?;
        if record.routes.len() > ROUTE_RECORDS_MAX || record.kinds.len() > KIND_RECORDS_MAX {
            return Err(from.broken("more routes or kinds than a record has"));
        }
        let is_amount = |amount: f64| (0.0..1e15).contains(&amount);
        let is_sound = |route: &RouteReport, rate: f64| {
            let ended = &route.ended;
            [route.capacity, route.remaining, rate, ended.service_seconds, ended.answered_seconds]
                .into_iter()
                .all(is_amount)
        };
        if !record.routes.iter().all(|route| is_sound(&route.report, route.rate)) {
            return Err(from.broken("an amount that is none"));
        }
        Ok(record)
    }

    /// Returns what it says of the route with that key.
    pub fn route(&self, key: u64) -> Option<&RouteRecord> {
        self.routes.iter().find(|route| route.report.key == key)
    }

    /// Returns what it says of the kind with that key.
    pub fn kind(&self, key: u64) -> Option<&KindRecord> {
        self.kinds.iter().find(|kind| kind.report.key == key)
    }
}
