package org.suimon.agent.runtime;

/**
 * Bounds of pauses, in nanoseconds.
 *
 * @param pauseLeast    what is owed is collected until it is as much
 * @param pauseMax      the longest single pause
 * @param pauseTotalMax the longest that one job pauses in all; what it owes beyond that is forgiven
 */
public record Limits(long pauseLeast, long pauseMax, long pauseTotalMax) {
}
