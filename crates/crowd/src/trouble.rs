//! What went wrong with a request, by kind.

use std::fmt;

use suimon_workload::StepOutcome;

/// Why a request did not pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Trouble {
    /// The visitor's patience ended.
    TimedOut,
    /// A 503 or 429 that says when to come again.
    Refused,
    /// A place in a waiting room.
    InLine,
    /// A status that is not among the expected ones.
    Status(u16),
    /// A text that must appear does not.
    TextMissing,
    /// A value that later steps need is not in the answer.
    ValueMissing,
    /// A captured value makes no request: it has a line break in it, or the like.
    Unaskable,
    /// Nobody accepted the connection.
    NotConnected,
    /// This machine has no port or descriptor left. The crowd's own fault, not the server's.
    OutOfPorts,
    /// The connection broke before a whole answer.
    ConnectionLost,
    /// What came is not HTTP.
    BadAnswer,
    /// The body is longer than the crowd reads.
    AnswerTooLong,
}

impl Trouble {
    /// Returns what it means to the visitor. `retry_after` belongs to a refusal, and to 503 and 429
    /// without one.
    pub(crate) const fn outcome(self, retry_after: Option<std::time::Duration>) -> StepOutcome {
        match self {
            Trouble::TimedOut => StepOutcome::TimedOut,
            // Waited for already: it is time to ask again.
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
