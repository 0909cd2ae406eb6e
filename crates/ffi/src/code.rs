//! What a function of the interface returns.

use std::borrow::Cow;

/// What has become of a call that was understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    Ok,
    Waits,
    Answered,
    Nothing,
    TooSmall,
}

/// Why a call did nothing.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An argument makes no sense, and which.
    Invalid(Cow<'static, str>),
    /// There is no such request.
    Unknown,
    /// The server is closed.
    Closed,
}

impl Fault {
    /// Returns the fault that an argument is wrong so.
    pub(crate) fn invalid(why: impl Into<Cow<'static, str>>) -> Self {
        Fault::Invalid(why.into())
    }
}
