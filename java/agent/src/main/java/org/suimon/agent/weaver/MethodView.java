package org.suimon.agent.weaver;

import java.util.Arrays;
import org.suimon.agent.runtime.MethodCounts;

/**
 * What is known of one declared method. Segments have the names of {@code suimon profile}: accept
 * is from when the server took up the request to the job, pause and job are apart.
 */
public final class MethodView {
    private final MethodCounts of;
    private final boolean isWoven;
    private final long postponed;
    private final String postponedWhy;

    MethodView(MethodCounts of, boolean isWoven, long postponed, String postponedWhy) {
        this.of = of;
        this.isWoven = isWoven;
        this.postponed = postponed;
        this.postponedWhy = postponedWhy;
    }

    /** Returns its name. */
    public String getName() {
        return of.name();
    }

    /** Returns whether it was found in a class. */
    public boolean isWoven() {
        return isWoven;
    }

    /** Returns the calls that have ended. */
    public long getCalls() {
        return of.calls();
    }

    /** Returns the jobs whose request's beginning is known. */
    public long getAccepts() {
        return of.accepts();
    }

    /** Returns the seconds from the beginnings of these requests to the jobs. */
    public double getAcceptSeconds() {
        return of.acceptSeconds();
    }

    /** Returns the seconds of all calls, without pauses. */
    public double getJobSeconds() {
        return of.jobSeconds();
    }

    /** Returns how many calls took up to 1, 2, 4 … µs, without pauses; the last number is of all that took longer. */
    public long[] getJobDistribution() {
        return Arrays.copyOf(of.distribution(), MethodCounts.BUCKETS);
    }

    /** Returns the pauses. */
    public long getPauses() {
        return of.pauses();
    }

    /** Returns the seconds of all pauses. */
    public double getPauseSeconds() {
        return of.pauseSeconds();
    }

    /** Returns the seconds owed beyond a bound, and not taken. */
    public double getForgivenSeconds() {
        return of.forgivenSeconds();
    }

    /** Returns how often a due pause was put off because of what the thread held or might hold. */
    public long getPostponed() {
        return postponed;
    }

    /** Returns these by reason. */
    public String getPostponedWhy() {
        return postponedWhy;
    }
}
