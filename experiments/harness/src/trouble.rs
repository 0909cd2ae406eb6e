//! What can go wrong, and who caused it.

use std::fmt;

/// Why an experiment ended early.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The command line asks for something impossible.
    Usage(String),
    /// Something failed while running.
    Failed(String),
}

pub(crate) type Result<T> = std::result::Result<T, Trouble>;

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Trouble::Usage(what) | Trouble::Failed(what)) = self;
        f.write_str(what)
    }
}

impl From<suimon_process::ProcessError> for Trouble {
    fn from(error: suimon_process::ProcessError) -> Self {
        Trouble::Failed(error.to_string())
    }
}

/// Adds to a failure what was being done.
pub(crate) trait While<T> {
    /// Returns the value, or the failure with `what` in front of its message.
    fn trouble(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> While<T> for std::result::Result<T, E> {
    fn trouble(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Trouble::Failed(format!("{what}: {error}")))
    }
}

/// Returns a failure that says `what`.
pub(crate) fn failed<T>(what: impl Into<String>) -> Result<T> {
    Err(Trouble::Failed(what.into()))
}
