package org.suimon.agent.runtime;

/**
 * What the jobs of one thread owe: {@code ratio} seconds of pause for each second of work. It is
 * told the time, in nanoseconds, and says how long to pause; it knows no clock.
 *
 * <p>What is left at the end of a job goes over to the next one of the thread, by one pause at most.
 * So do pauses that were longer than they should be: the next one is shorter.
 */
final class Debt {
    /** The most that is added at once, so that no sum overflows: years. */
    private static final double OWED_MAX = 1e18;

    private final Limits limits;
    private long owed;
    private long workedFrom;
    private long pausedInJob;
    private long forgiven;

    Debt(Limits limits) {
        this.limits = limits;
    }

    /** Begins a job. */
    void begin(long now) {
        workedFrom = now;
        pausedInJob = 0;
    }

    /** Adds the work since the beginning or the last call. Whom nobody tells a ratio (NaN) owes nothing, not even of before. */
    void work(long now, double ratio) {
        long worked = Math.max(now - workedFrom, 0);
        workedFrom = now;
        if (!(ratio > 0)) {
            owed = Math.min(owed, 0);
            return;
        }
        owed += (long) Math.min(worked * ratio, OWED_MAX);
        forgive(limits.pauseTotalMax() - pausedInJob);
    }

    /** Returns how long to pause now; 0: not yet. */
    long due() {
        return owed < limits.pauseLeast() ? 0 : Math.min(owed, limits.pauseMax());
    }

    /** Takes note of a pause. */
    void paused(long from, long to) {
        long lasted = Math.max(to - from, 0);
        owed = Math.max(owed - lasted, -limits.pauseMax());
        pausedInJob += lasted;
        workedFrom = to;
    }

    /** Ends a job. */
    void end() {
        forgive(limits.pauseMax());
    }

    /** Returns what was forgiven since the last call. */
    long takeForgiven() {
        long told = forgiven;
        forgiven = 0;
        return told;
    }

    private void forgive(long most) {
        long beyond = owed - Math.max(most, 0);
        if (beyond > 0) {
            owed -= beyond;
            forgiven += beyond;
        }
    }
}
