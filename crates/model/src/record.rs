//! A decision as it is shown: what was decided about what, why, and the signals it rests on.
//!
//! Metrics, traces, the status page and the simulator show this same struct, so a figure and a log
//! line can never disagree.

use crate::{Instant, KindId, RouteId, ServiceId};

/// What a decision is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// A route's gate.
    Route(RouteId),
    /// The session gate of a kind.
    Kind(KindId),
    /// A service.
    Service(ServiceId),
}

/// Which number of the subject was decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Quantity {
    /// Requests of a route in the application at once.
    Limit,
    /// Seconds between two session starts of a kind; 0 = open.
    Interval,
    /// Whether anybody of a kind is admitted at all: 1, or 0 while the application does not answer.
    Moving,
    /// Requests of a service in the application on average, at most; 0: it has no cap.
    Cap,
}

impl Quantity {
    /// Returns the name used in metrics, JSON and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Limit => "limit",
            Quantity::Interval => "interval",
            Quantity::Moving => "moving",
            Quantity::Cap => "cap",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $why:literal;)+) => {
        /// Why something was decided, or why a request was refused.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Reason { $($(#[$doc])* $name,)+ }

        impl Reason {
            /// Every reason there is.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// Returns the short name used in metrics, headers and JSON; it never changes.
            pub const fn code(self) -> &'static str {
                match self { $(Reason::$name => $code,)+ }
            }

            /// Returns the reason as a sentence for people.
            pub const fn explain(self) -> &'static str {
                match self { $(Reason::$name => $why,)+ }
            }
        }
    };
}

reasons! {
    /// Service times are not inflated and requests wait.
    SlowStart = "slow_start", "requests wait and service times are not inflated, so the limit can safely be raised";
    /// The last raise of fast-up brought nothing.
    SlowStartOver = "slow_start_over", "the last raise only made requests wait for each other in the application";
    /// Paired windows: the new limit did better by more than one standard error.
    TrialBetter = "trial_better", "paired windows favour the new limit by more than their standard error, so the search goes on from there";
    /// Paired windows could not tell, and the new limit is the one to prefer: the lower, or the
    /// higher where requests are quick.
    TrialEqual = "trial_equal", "paired windows show no difference between the two limits; the lower one is taken (the higher one if requests are quick)";
    /// Paired windows: the tried limit did not do better by more than one standard error, or did
    /// worse.
    TrialWorse = "trial_worse", "paired windows do not favour the tried limit by more than their standard error, so the old one stays";
    /// A trial window begins at the limit under trial.
    TrialWindow = "trial_window", "a window at the limit under trial begins";
    /// A trial window begins at the base limit.
    BaseWindow = "base_window", "a window at the base limit begins";
    /// A trial lasted too long, or its route went idle.
    TrialDropped = "trial_dropped", "the trial was dropped because its route went idle or it took too long";
    /// Requests stay far too long in the application.
    Backoff = "backoff", "requests stay in the application too long, so the limit backs off at once";
    /// Useful work moved away from what the limit was found at.
    Drift = "drift", "useful work changed by more than noise, so the search starts anew";
    /// A light route that cannot be probed gets room.
    Headroom = "headroom", "the route is too light to be probed and its queue is kept short";
    /// The paper's rule: throughput did not fall, one step on.
    StepOn = "step_on", "throughput did not fall, so one step further in the same direction";
    /// The paper's rule: throughput fell, one step back.
    StepBack = "step_back", "throughput fell, so one step in the other direction";
    /// The admission rate follows the measured capacity.
    Capacity = "capacity", "the rate follows what the slowest route can do";
    /// No session has finished yet.
    ColdStart = "cold_start", "too few sessions have ended to know what one costs, so the rate starts low and grows";
    /// The paper's rule: queues at or over the threshold.
    QueuesLong = "queues_long", "the mean route queue is at or over the threshold";
    /// The paper's rule: queues under the threshold.
    QueuesShort = "queues_short", "the mean route queue is under the threshold";
    /// Nobody waits and the work under way leaves room.
    GateOpen = "gate_open", "nobody waits, and the work of active sessions leaves capacity";
    /// Admitted sessions already hold as much coming work as can be served in time.
    WorkToCome = "work_to_come", "admitted sessions will need all the capacity for now";
    /// No node of the application answers. Also refused: it did not come back while the request
    /// waited for it.
    ApplicationDown = "application_down", "the application does not answer, so nobody is admitted until it does";
    /// A node of the application answers again.
    ApplicationUp = "application_up", "the application answers again, so visitors are admitted again, at the rate measured before";
    /// Refused: the wait would be longer than the visitor would stay.
    WaitTooLong = "predicted_wait_too_long", "the predicted wait is longer than most visitors would stay";
    /// Refused: a bound of the gateway itself is reached.
    GatewayFull = "gateway_full", "the gateway already holds the maximum number of waiting requests";
    /// Refused: waited as long as is worth it, and was not let in.
    WaitedTooLong = "hold_expired", "the wait took longer than predicted";
    /// Refused: the gateway is shutting down.
    ShuttingDown = "shutting_down", "the gateway is shutting down";
    /// A law of others that the simulator races against; its signals say the rest.
    Rival = "rival", "decided by a third-party law that the simulator runs for comparison";
    /// A fixed number of sessions is allowed, and somebody waits for one of them to end.
    SessionsFull = "sessions_full", "the maximum number of sessions is active; the next one is admitted when one ends";
    /// Nobody waits for a session to end any more.
    SessionsFree = "sessions_free", "nobody waits, and fewer than the maximum number of sessions are active";
    /// Told to come again: the line is closed.
    LineClosed = "line_closed", "the line is closed and takes no more visitors";
    /// Told to come again: its network has drawn many places just now.
    NetworkDrawsMany = "network_over_quota", "the client's network has used up its tickets for now; it can get another one a little later";
    /// Told to get a pass of the application's first.
    PassNeeded = "pass_required", "a ticket is issued only with a pass from the application";
    /// A service gives way to one that is further behind its wish.
    CapLowered = "cap_lowered", "another service is further behind its wish, so this one gives way";
    /// A service gets back some of what it gave.
    CapRaised = "cap_raised", "this service is further behind its wish than another, or none is, so it gets more";
    /// No cap is needed any more.
    CapGone = "cap_gone", "the service has all it asks for, so its cap is gone";
    /// A service is held to its ceiling.
    CapCeiling = "cap_ceiling", "the service is held to its ceiling";
    /// A wish is out of reach: who waits for this service would not be served in time.
    CapPatience = "cap_patience", "those who wait for this service must be served in time, so another service's wish is out of reach";
    /// Slowing this service made no other faster.
    CapNoEffect = "cap_no_effect", "slowing this service made no other faster, so it is not slowed for now";
    /// The application is late to take in requests.
    CapLag = "cap_lag", "the application is late to take in requests, so the heaviest service gives way";
    /// The application has more nodes than before, or fewer.
    Nodes = "nodes", "the application has another number of nodes, so the limit follows in proportion";
}

/// Named numbers a decision rests on; at most [`Signals::MAX`], kept without allocation.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Signals {
    entries: [(&'static str, f64); Signals::MAX],
    len: u8,
}

impl Signals {
    /// The most signals one decision carries.
    pub const MAX: usize = 6;

    /// Returns no signals.
    pub fn none() -> Self {
        Signals::default()
    }

    /// Returns these signals and one more. Past [`Signals::MAX`] the new one is dropped.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        if let Some(entry) = self.entries.get_mut(usize::from(self.len)) {
            *entry = (name, value);
            self.len += 1;
        }
        self
    }

    /// Returns names and values in the order they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.entries[..usize::from(self.len)].iter().copied()
    }
}

/// One decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record {
    /// When it was made.
    pub at: Instant,
    /// What it is about.
    pub subject: Subject,
    /// Which of the subject's numbers.
    pub quantity: Quantity,
    /// The value before.
    pub old: f64,
    /// The value from now on.
    pub new: f64,
    /// Why.
    pub reason: Reason,
    /// What it rests on.
    pub signals: Signals,
}

/// A running hash of a stream of records: equal streams, equal hashes. (FNV-1a, 64 bits.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHash(u64);

/// Its bits look random, so a fixed length is the shortest.
impl crate::persist::Persist for TraceHash {
    fn save(&self, out: &mut crate::persist::Writer) {
        out.raw(&self.0.to_le_bytes());
    }

    fn load(from: &mut crate::persist::Reader<'_>) -> Result<Self, crate::persist::Broken> {
        Ok(TraceHash(u64::from_le_bytes(from.array()?)))
    }
}

impl Default for TraceHash {
    fn default() -> Self {
        TraceHash(0xCBF2_9CE4_8422_2325)
    }
}

impl TraceHash {
    /// Folds in one record.
    pub fn record(&mut self, record: &Record) {
        let subject = match record.subject {
            Subject::Route(route) => u64::from(route.0) << 1,
            Subject::Kind(kind) => u64::from(kind.0) << 1 | 1,
            Subject::Service(service) => u64::from(service.0) << 1 | 1 << 40,
        };
        self.word(record.at.as_nanos());
        self.word(subject);
        self.word(record.quantity as u64);
        self.word(record.old.to_bits());
        self.word(record.new.to_bits());
        self.word(record.reason as u64);
        for (_, value) in record.signals.iter() {
            self.word(value.to_bits());
        }
    }

    /// Folds in one number.
    pub fn word(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    /// Returns the hash of everything folded in so far.
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_code_of_its_own() {
        let mut codes: Vec<_> = Reason::ALL.iter().map(|r| r.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Reason::ALL.len());
    }

    #[test]
    fn a_trial_that_was_won_promises_no_more_than_a_standard_error() {
        // A trial of two equally good limits is won in three or four of ten.
        for reason in [Reason::TrialBetter, Reason::TrialWorse] {
            let why = reason.explain();
            assert!(!why.contains("useful work") && why.contains("standard error"), "{why}");
        }
    }

    #[test]
    fn signals_past_the_bound_are_dropped() {
        let signals = (0..10).fold(Signals::none(), |s, i| s.with("x", f64::from(i)));
        assert_eq!(signals.iter().count(), Signals::MAX);
    }

    #[test]
    fn order_changes_the_trace_hash() {
        let mut forward = TraceHash::default();
        let mut backward = TraceHash::default();
        forward.word(1);
        forward.word(2);
        backward.word(2);
        backward.word(1);
        assert_ne!(forward, backward);
    }
}
