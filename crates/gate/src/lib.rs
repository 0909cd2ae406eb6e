//! The gate machine: session gate, route queues, slots; told the time, returns what should happen.
