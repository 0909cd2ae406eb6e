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
    /** When what this thread works on was handed to the server's threads, until a request has it. */
    private long handedAt;
    private boolean isHanded;
    private boolean isAccepted;
    /** The time from there to the last job; -1: it is not known. */
    private long accept = -1;
    private int services;
    private double toldBefore = Double.NaN;
    /** Where the request of the servlet is told of pauses; null: it did not ask for any. */
    private Answer answer;
    private long pausedBeforeService;

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

    /** Takes note of when what it begins to work on was handed over; null: it is not known. */
    void takesOver(Long at) {
        isHanded = at != null;
        handedAt = isHanded ? at : 0;
    }

    void requestBegins(long now) {
        if (requests++ == 0) {
            held.requestBegins();
            requestAt = isHanded ? handedAt : now;
            isHanded = false;
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
        accept = requests == 0 || isAccepted ? -1 : now - requestAt;
        isAccepted = true;
        return accept;
    }

    void serviceBegins(double ratio, Answer of) {
        if (services++ == 0) {
            toldBefore = told;
            answer = of;
            pausedBeforeService = paused;
            if (!Double.isNaN(ratio)) {
                told = ratio;
            }
        }
    }

    void serviceEnds() {
        if (services > 0 && --services == 0) {
            told = toldBefore;
            answer = null;
        }
    }

    /** Says in the answer how long the jobs of the request have paused so far, and the segments of the first one. */
    void answers(long jobPaused, long job) throws ReflectiveOperationException {
        if (answer != null) {
            answer.paused(paused - pausedBeforeService);
            answer.segments(accept, job, jobPaused);
        }
    }

    /** Returns how long the job that began at the outside has paused. */
    long pausedInJob() {
        return paused - pausedBefore[0];
    }
}
