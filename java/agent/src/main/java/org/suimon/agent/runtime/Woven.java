package org.suimon.agent.runtime;

import org.suimon.agent.Pauses;

/**
 * What woven code calls. Every class of the application finds it, as it is a class of the bootstrap
 * loader. Nothing that is thrown here reaches the application; without an agent each call returns at
 * once.
 */
public final class Woven {
    /** The agent that is attached. */
    private static volatile Session session;
    /** The same, from when somebody has said a ratio or may say one with a request. */
    private static volatile Session active;
    private static volatile Throwable failure;

    private Woven() {
    }

    /** A declared method begins. */
    public static void begin(int method) {
        Session now = active;
        if (now != null) {
            try {
                now.begin(method);
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** A loop of a declared method goes round. */
    public static void loop(int method) {
        Session now = active;
        if (now != null) {
            try {
                now.loop(method);
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** A declared method ends, in whichever way. */
    public static void end(int method) {
        Session now = active;
        if (now != null) {
            try {
                now.end(method);
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** An exclusive synchronizer of {@code java.util.concurrent} gets an owner, or none. */
    public static void owner(Object lock, Thread owner) {
        Session now = session;
        if (now != null && now.isWatched(Thread.currentThread())) {
            try {
                HeldLocks held = now.here().held;
                if (owner == null) {
                    held.gaveBack(lock);
                } else {
                    held.took(lock);
                }
            } catch (Throwable fault) {
                lost(now, fault);
            }
        }
    }

    /** A server found that a connection has something to read, and hands this to its threads. */
    public static void handsOver(Object connection) {
        Session now = session;
        if (now != null) {
            try {
                now.handsOver(connection);
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** A thread of the server begins with what was handed over. */
    public static void takesOver(Object connection) {
        Session now = session;
        if (now != null) {
            try {
                now.takesOver(connection);
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** A server hands a request to the application. */
    public static void requestBegins() {
        Session now = session;
        if (now != null) {
            try {
                now.here().requestBegins(System.nanoTime());
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** The application has returned. */
    public static void requestEnds() {
        Session now = session;
        if (now != null) {
            try {
                now.here().requestEnds();
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** A servlet begins; the request says this in its header, or nothing. {@code response} has the methods of {@code api}. */
    public static void serviceBegins(String header, Class<?> api, Object response) {
        Session now = session;
        if (now != null) {
            try {
                now.serviceBegins(header, api, response);
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** A servlet ends. */
    public static void serviceEnds() {
        Session now = session;
        if (now != null) {
            try {
                now.here().serviceEnds();
            } catch (Throwable fault) {
                failed(fault);
            }
        }
    }

    /** See {@link Pauses#tell}. */
    public static boolean tellThread(double ratio) {
        Session now = session;
        double told = checked(ratio);
        if (now == null || Double.isNaN(told)) {
            return false;
        }
        now.here().told = told;
        active = now;
        return true;
    }

    /** See {@link Pauses#forget}. */
    public static void forgetThread() {
        Session now = session;
        if (now != null) {
            now.here().told = Double.NaN;
        }
    }

    /** See {@link Pauses#tellAll}. */
    public static boolean tellAll(double ratio) {
        Session now = session;
        double told = checked(ratio);
        if (now == null || Double.isNaN(told)) {
            return false;
        }
        now.tellAll(told);
        active = now;
        return true;
    }

    /** See {@link Pauses#forgetAll}. */
    public static void forgetAll() {
        Session now = session;
        if (now != null) {
            now.tellAll(Double.NaN);
        }
    }

    /** Begins to note which locks threads take. */
    public static void attach(Session begun) {
        session = begun;
    }

    /** Begins to measure and to pause, but for {@code isIdle}: only once a ratio is told. */
    public static void activate(Session begun, boolean isIdle) {
        failure = null;
        active = isIdle ? null : begun;
    }

    /** Ends both. Pauses under way end within a tenth of a second. */
    public static void detach() {
        active = null;
        session = null;
    }

    /** Returns whether an agent is attached. */
    public static boolean isAttached() {
        return session != null;
    }

    /** Returns the first fault since the beginning; null: none. */
    public static Throwable failure() {
        return failure;
    }

    static boolean isIn(Session asked) {
        return session == asked;
    }

    /** Returns the ratio that a header says; NaN: none. */
    static double parse(String header) {
        String said = header.trim();
        // Digits and a point: no names of numbers, no hexadecimal ones, and no long ones.
        if (said.isEmpty() || said.length() > 16 || !said.chars().allMatch(c -> c >= '0' && c <= '9' || c == '.')) {
            return Double.NaN;
        }
        try {
            return checked(Double.parseDouble(said));
        } catch (NumberFormatException points) {
            return Double.NaN;
        }
    }

    private static double checked(double ratio) {
        return ratio >= 0 && ratio < Double.POSITIVE_INFINITY ? Math.min(ratio, Pauses.RATIO_MAX) : Double.NaN;
    }

    private static void lost(Session now, Throwable fault) {
        try {
            failed(fault);
            now.here().held.lose();
        } catch (Throwable again) {
            // Not even that: nobody pauses any more.
            active = null;
        }
    }

    private static void failed(Throwable fault) {
        if (failure == null) {
            failure = fault;
        }
    }
}
