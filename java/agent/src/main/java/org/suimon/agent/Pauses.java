package org.suimon.agent;

import org.suimon.agent.runtime.Woven;

/**
 * Tells jobs how long to pause, from inside the application. A ratio of 2 is two seconds of pause
 * for each second of work; 0 is none. Without the agent every call does nothing, so it may be left
 * in. A ratio that makes no sense (negative, infinite, none) changes nothing; one above
 * {@link #RATIO_MAX} counts as that.
 */
public final class Pauses {
    /** The highest ratio. */
    public static final double RATIO_MAX = 100;

    private Pauses() {
    }

    /** Returns whether the agent is there. */
    public static boolean isPresent() {
        return Woven.isAttached();
    }

    /**
     * Tells the jobs of the current thread. It holds until {@link #forget}, and goes before what is
     * told to all. Returns whether it was taken.
     */
    public static boolean tell(double ratio) {
        return Woven.tellThread(ratio);
    }

    /** Takes back what the current thread was told. */
    public static void forget() {
        Woven.forgetThread();
    }

    /**
     * Tells all jobs but those of threads that were told themselves. It holds until {@link
     * #forgetAll}, and goes before the configuration. Returns whether it was taken.
     */
    public static boolean tellAll(double ratio) {
        return Woven.tellAll(ratio);
    }

    /** Takes back what all were told: the configuration counts again. */
    public static void forgetAll() {
        Woven.forgetAll();
    }
}
