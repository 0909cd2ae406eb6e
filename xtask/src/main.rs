//! Workspace chores.

fn main() {}
