//! What one process tells another of the sessions that have begun.

/// A session that has begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BegunSession {
    /// The site; `None`: the main one.
    pub site: Option<String>,
    /// The name of its kind.
    pub kind: String,
    /// Its number.
    pub session: u64,
}
