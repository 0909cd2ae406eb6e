//! The operator's listener: metrics, state, health.
