package org.suimon.agent.runtime;

import java.lang.management.LockInfo;
import java.lang.management.ManagementFactory;
import java.lang.management.MonitorInfo;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Says whether the current thread may pause, which it may not while it holds a lock of the
 * application.
 *
 * <p>Monitors: the JVM is asked, which stops all threads for an instant. So it is asked only when a
 * pause is due, and in all for a twentieth of the time at most. Locks of {@code java.util.concurrent}:
 * {@link HeldLocks}; only for threads that were there before the agent the JVM is asked, once, as it
 * walks the heap for that.
 */
final class LockCheck {
    /** Time between two questions ÷ what one takes. */
    private static final long GAP = 20;
    /** What one takes until that is known, in nanoseconds. */
    private static final long TAKES = 100_000;
    /** What one takes is the least of those before, which grows by a quarter with each: one alone says little. */
    private static final double GROWS = 1.25;
    /** The same for walks through the heap, which are rare. */
    private static final long WALK_TAKES = 10_000_000;

    /** The virtual threads' class; null before Java 19. */
    private static final Class<?> VIRTUAL = virtual();

    private final ThreadMXBean jvm = ManagementFactory.getThreadMXBean();
    private final List<String> neverIn;
    private final List<String> requestsBeginAt;
    private final boolean pausesVirtualThreads;
    /** Threads with ids up to this one were there before locks were watched. */
    private volatile long oldIds = Long.MAX_VALUE;
    private final Turn asks = new Turn(TAKES);
    private final Turn walks = new Turn(WALK_TAKES);

    LockCheck(List<String> neverIn, List<String> requestsBeginAt, boolean pausesVirtualThreads) {
        this.neverIn = neverIn;
        this.requestsBeginAt = requestsBeginAt;
        this.pausesVirtualThreads = pausesVirtualThreads;
    }

    /** Takes note that threads with higher ids than this one came after locks were watched. */
    void watchFrom(long id) {
        oldIds = id;
    }

    static boolean isVirtual(Thread thread) {
        return VIRTUAL != null && VIRTUAL.isInstance(thread);
    }

    /** Returns whether the current thread, whose state this is, may pause. */
    Verdict ask(ThreadState state) {
        Thread thread = Thread.currentThread();
        if (state.held.isAnyHeld()) {
            return Verdict.LOCK;
        }
        boolean isKnown = state.isKnown || state.isInRequest() || idOf(thread) > oldIds;
        if (isVirtual(thread)) {
            // Of these the JVM tells nothing: what can be known is known already, but for the stack.
            return pausesVirtualThreads && isKnown ? stack(Thread.currentThread().getStackTrace()) : Verdict.UNKNOWN;
        }
        long began = System.nanoTime();
        if (!isKnown) {
            return walk(thread, state, began);
        }
        if (!asks.begin(began)) {
            return Verdict.TOO_SOON;
        }
        ThreadInfo info = info(thread, false);
        asks.end(began, System.nanoTime());
        return info == null ? Verdict.UNKNOWN : monitors(info);
    }

    private Verdict walk(Thread thread, ThreadState state, long began) {
        if (!walks.begin(began)) {
            return Verdict.TOO_SOON;
        }
        ThreadInfo info = info(thread, true);
        walks.end(began, System.nanoTime());
        if (info == null) {
            return Verdict.UNKNOWN;
        }
        for (LockInfo lock : info.getLockedSynchronizers()) {
            if (!HeldLocks.isOfPool(lock.getClassName())) {
                return Verdict.LOCK;
            }
        }
        state.isKnown = true;
        return monitors(info);
    }

    private ThreadInfo info(Thread thread, boolean withSynchronizers) {
        return jvm.getThreadInfo(new long[] {idOf(thread)}, true, withSynchronizers)[0];
    }

    /** Lets one thread ask at a time, and the next one only after a while. */
    static final class Turn {
        private static final long LOST = 1_000_000_000L;

        private final AtomicLong mayAt = new AtomicLong(Long.MIN_VALUE);
        // Written by whoever has the turn.
        private volatile long takes;

        Turn(long takes) {
            this.takes = takes;
        }

        boolean begin(long now) {
            long at = mayAt.get();
            return (at == Long.MIN_VALUE || now - at >= 0) && mayAt.compareAndSet(at, now + LOST);
        }

        void end(long began, long now) {
            takes = Math.min((long) (takes * GROWS), Math.max(now - began, 1_000));
            mayAt.set(now + GAP * takes);
        }
    }

    private Verdict monitors(ThreadInfo info) {
        StackTraceElement[] frames = info.getStackTrace();
        int server = serversFrame(frames);
        for (MonitorInfo monitor : info.getLockedMonitors()) {
            // Locked by native code: without a frame.
            if (monitor.getLockedStackDepth() < server) {
                return Verdict.MONITOR;
            }
        }
        return stack(frames);
    }

    /** Returns the outermost frame of the application; all frames from there on are the server's. */
    private int serversFrame(StackTraceElement[] frames) {
        for (int i = frames.length - 1; i >= 0; i--) {
            if (isOneOf(requestsBeginAt, frames[i])) {
                return i;
            }
        }
        return Integer.MAX_VALUE;
    }

    private Verdict stack(StackTraceElement[] frames) {
        for (StackTraceElement frame : frames) {
            if (frame.getMethodName().equals("<clinit>")) {
                return Verdict.CLASS_INIT;
            }
            if (isOneOf(neverIn, frame)) {
                return Verdict.NEVER_IN;
            }
        }
        return Verdict.FREE;
    }

    /** A pattern is {@code class.method}; a star at its end stands for anything. */
    private static boolean isOneOf(List<String> patterns, StackTraceElement frame) {
        for (String pattern : patterns) {
            if (isMatch(pattern, frame.getClassName(), frame.getMethodName())) {
                return true;
            }
        }
        return false;
    }

    static boolean isMatch(String pattern, String className, String methodName) {
        int length = className.length();
        if (pattern.endsWith("*")) {
            String begins = pattern.substring(0, pattern.length() - 1);
            return begins.length() <= length ? className.startsWith(begins) : (className + '.' + methodName).startsWith(begins);
        }
        return pattern.length() == length + 1 + methodName.length() && pattern.startsWith(className)
                && pattern.charAt(length) == '.' && pattern.endsWith(methodName);
    }

    // Its successor came with Java 19.
    @SuppressWarnings("deprecation")
    static long idOf(Thread thread) {
        return thread.getId();
    }

    private static Class<?> virtual() {
        try {
            return Class.forName("java.lang.BaseVirtualThread", false, null);
        } catch (ClassNotFoundException none) {
            return null;
        }
    }
}
