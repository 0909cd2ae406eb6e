//! An open connection that is left with an idle worker.

use std::any::Any;
use std::fmt;

/// An open connection to a worker, of whatever kind its user makes them.
pub struct Kept(Box<dyn Any + Send>);

impl Kept {
    /// Returns what may be left with a worker.
    pub fn new<T: Any + Send>(connection: Box<T>) -> Self {
        Kept(connection)
    }

    /// Returns the connection; `None`: it is of another kind.
    pub fn into_connection<T: Any>(self) -> Option<Box<T>> {
        self.0.downcast().ok()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a connection")
    }
}
