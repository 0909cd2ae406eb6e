//! Windows, statistics and the control laws, one file a law.
