package org.suimon.agent.runtime;

/** What is known of one thread: the job it does, what it owes, which locks it holds. */
final class ThreadState {
    /** Declared methods within one another that are timed; those deeper are not counted. */
    static final int DEPTH_MAX = 64;

    final Debt debt;
    final HeldLocks held = new HeldLocks();
    /** What this thread was told; NaN: nothing. */
    double told = Double.NaN;
    /** All locks that it holds are in the list, though it is older than the list. */
    boolean isKnown;
    /** It is not asked again before. */
    long askAt;
    /** Time until it is asked again, 0: it was free. */
    long askGap;
    /** Why the pause that is due was put off; null: it was not. */
    Verdict putOff;
    /** Pauses of this thread ever, in nanoseconds. */
    long paused;

    private int depth;
    // Most threads only take locks.
    private long[] beganAt;
    private long[] pausedBefore;
    private int requests;
    private long requestAt;
    private boolean isAccepted;
    private int services;
    private double toldBefore = Double.NaN;

    ThreadState(Limits limits) {
        debt = new Debt(limits);
    }

    int depth() {
        return depth;
    }

    void enters(long now) {
        if (beganAt == null) {
            beganAt = new long[DEPTH_MAX];
            pausedBefore = new long[DEPTH_MAX];
        }
        if (depth < DEPTH_MAX) {
            beganAt[depth] = now;
            pausedBefore[depth] = paused;
        }
        depth++;
    }

    /** Returns what the call took, without pauses; -1 if it was too deep. */
    long leaves(long now) {
        depth--;
        return depth < DEPTH_MAX ? now - beganAt[depth] - (paused - pausedBefore[depth]) : -1;
    }

    void requestBegins(long now) {
        if (requests++ == 0) {
            held.requestBegins();
            requestAt = now;
            isAccepted = false;
        }
    }

    void requestEnds() {
        if (requests > 0 && --requests == 0) {
            held.requestEnds();
        }
    }

    boolean isInRequest() {
        return requests > 0;
    }

    /** Returns the time since the request's beginning, for its first job; -1 for any other. */
    long takeAccept(long now) {
        if (requests == 0 || isAccepted) {
            return -1;
        }
        isAccepted = true;
        return now - requestAt;
    }

    void serviceBegins(double ratio) {
        if (services++ == 0) {
            toldBefore = told;
            if (!Double.isNaN(ratio)) {
                told = ratio;
            }
        }
    }

    void serviceEnds() {
        if (services > 0 && --services == 0) {
            told = toldBefore;
        }
    }
}
