//! Which node a request goes to: in-flight counts, health, ejection.
