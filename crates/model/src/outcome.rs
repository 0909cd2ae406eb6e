//! How a slot is given back: in exactly one of four ways.

/// How the work behind a slot ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The application answered, not with an error of its own, and the client was there to receive
    /// it.
    Completed,
    /// It answered that it does not do what was asked (a status of 4xx): as much work, of which
    /// nothing follows for the session.
    Declined,
    /// The application did not answer, or answered with an error.
    Failed(Failure),
    /// The client had gone before the answer was ready; the work was done for nobody.
    Abandoned,
}

/// Whose fault a failure was, as far as the gateway can see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// No connection to any node, or it broke before a complete answer.
    Connection,
    /// The application did not answer within a time limit of the gateway.
    Timeout,
    /// The application answered with a status of 500 or above.
    ServerError,
    /// The request itself was broken, found out only while it was being sent on.
    BadRequest,
}
