//! Plays a workload over real HTTP and measures as the visitor sees it.
