//! Numbers that cannot be taken for one another.

/// A route (method + path template); an index into the table of the code that declared it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouteId(pub u32);

/// A kind of session; an index into the table of the code that declared it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KindId(pub u32);

/// A service: a group of routes; an index into the table of the code that declared it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServiceId(pub u32);

/// A pool of workers; an index into the table of the code that declared it. The first one takes
/// what no other does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PoolId(pub u32);

/// A session that was admitted. Unique among the sessions of a gateway's life, and carried by its
/// lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub u64);

/// A request inside the gate: slot index and generation, so that a stale id is known as stale.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub u64);

/// An application server; an index into the table of the code that declared it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

impl RouteId {
    /// Returns the id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl KindId {
    /// Returns the id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ServiceId {
    /// Returns the id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PoolId {
    /// Returns the id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    /// Returns the id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
