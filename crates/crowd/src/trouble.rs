//! What went wrong with a request, by kind.

use std::fmt;

use suimon_workload::StepOutcome;

/// Why a request did not get a good response.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Trouble {
    /// The visitor's patience ended.
    TimedOut,
    /// A 503 or 429 with a time to retry.
    Refused,
    /// A waiting page with a position in line.
    InLine,
    /// A status that is not among the expected ones.
    Status(u16),
    /// A text that must appear does not.
    TextMissing,
    /// A value that later steps need is not in the response.
    ValueMissing,
    /// A captured value cannot be sent in a request, for example because it contains a line break.
    Unaskable,
    /// Nobody accepted the connection.
    NotConnected,
    /// This machine has no port or descriptor left. The crowd's own fault, not the server's.
    OutOfPorts,
    /// The connection broke before the response was complete.
    ConnectionLost,
    /// The response is not HTTP.
    BadAnswer,
    /// The body is longer than the crowd reads.
    AnswerTooLong,
}

impl Trouble {
    /// Returns the outcome for the visitor. `retry_after` is the time to retry of a 503 or 429, if
    /// it has one.
    pub(crate) const fn outcome(self, retry_after: Option<std::time::Duration>) -> StepOutcome {
        match self {
            Trouble::TimedOut => StepOutcome::TimedOut,
            // The wait in line is over: ask again at once.
            Trouble::InLine => StepOutcome::InLine { again_after: std::time::Duration::ZERO },
            Trouble::Refused | Trouble::Status(503 | 429) => StepOutcome::Refused { retry_after },
            Trouble::NotConnected | Trouble::OutOfPorts | Trouble::ConnectionLost => {
                StepOutcome::Disconnected
            }
            Trouble::Status(_)
            | Trouble::TextMissing
            | Trouble::ValueMissing
            | Trouble::Unaskable
            | Trouble::BadAnswer
            | Trouble::AnswerTooLong => StepOutcome::Failed,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::TimedOut => f.write_str("timeout"),
            Trouble::Refused => f.write_str("refused"),
            Trouble::InLine => f.write_str("in_line"),
            Trouble::Status(status) => write!(f, "status_{status}"),
            Trouble::TextMissing => f.write_str("text_missing"),
            Trouble::ValueMissing => f.write_str("value_missing"),
            Trouble::Unaskable => f.write_str("unaskable"),
            Trouble::NotConnected => f.write_str("not_connected"),
            Trouble::OutOfPorts => f.write_str("out_of_ports"),
            Trouble::ConnectionLost => f.write_str("connection_lost"),
            Trouble::BadAnswer => f.write_str("bad_answer"),
            Trouble::AnswerTooLong => f.write_str("answer_too_long"),
        }
    }
}
