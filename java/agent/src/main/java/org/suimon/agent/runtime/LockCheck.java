package org.suimon.agent.runtime;

import java.lang.management.LockInfo;
import java.lang.management.ManagementFactory;
import java.lang.management.MonitorInfo;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Says whether the current thread may pause, which it may not while it holds a lock of the
 * application.
 *
 * <p>Monitors: the JVM is asked, which stops all threads for an instant, and where many threads want
 * few processors the answer is long in coming. So it is asked only when a pause is due, in all for a
 * twentieth of the time at most, and for some time not again of threads at the same {@link Path}. Locks of {@code java.util.concurrent}:
 * {@link HeldLocks}; only for threads that were there before the agent the JVM is asked, once, as it
 * walks the heap for that.
 */
final class LockCheck {
    /** Time between two questions ÷ what one costs. */
    private static final long GAP = 20;
    /** What one takes at least, in nanoseconds: with many threads it costs each of them a change of the processor, too. */
    private static final long TAKES = 100_000;
    /** What one is taken to cost changes by a quarter with each: one alone says little. */
    private static final double GROWS = 1.25;
    /** The same for walks through the heap, which are rare. */
    private static final long WALK_TAKES = 10_000_000;

    /** Paths that are known; more are forgotten all at once. */
    private static final int PATHS_MAX = 1024;
    /** What was found at a path holds for so long, in nanoseconds: another agent may change its code. */
    private static final long HOLDS_FOR = 10_000_000_000L;

    /** The virtual threads' class; null before Java 19. */
    private static final Class<?> VIRTUAL = virtual();

    private final ThreadMXBean jvm = ManagementFactory.getThreadMXBean();
    private final List<String> neverIn;
    private final List<String> requestsBeginAt;
    private final boolean pausesVirtualThreads;
    /** Threads with ids up to this one were there before locks were watched. */
    private volatile long oldIds = Long.MAX_VALUE;
    private final Turn asks = new Turn(TAKES);
    /** Paths at which a thread held nothing, and when it was asked. */
    private final Map<Path, Long> free = new ConcurrentHashMap<>();
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
        Path path = Path.here(requestsBeginAt);
        if (isFree(path, began)) {
            return Verdict.FREE;
        }
        if (!asks.begin(began)) {
            return Verdict.TOO_SOON;
        }
        ThreadInfo info = info(thread, asks, false);
        Verdict verdict = info == null ? Verdict.UNKNOWN : monitors(info);
        if (verdict == Verdict.FREE && path != null) {
            if (free.size() >= PATHS_MAX) {
                free.clear();
            }
            free.put(path, began);
        }
        return verdict;
    }

    /** Returns whether a thread at this path held nothing a while ago. */
    private boolean isFree(Path path, long now) {
        Long asked = path == null ? null : free.get(path);
        return asked != null && now - asked < HOLDS_FOR;
    }

    private Verdict walk(Thread thread, ThreadState state, long began) {
        if (!walks.begin(began)) {
            return Verdict.TOO_SOON;
        }
        ThreadInfo info = info(thread, walks, true);
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

    private ThreadInfo info(Thread thread, Turn turn, boolean withSynchronizers) {
        long delayed = RunDelay.now();
        long began = System.nanoTime();
        ThreadInfo info = jvm.getThreadInfo(new long[] {idOf(thread)}, true, withSynchronizers)[0];
        long ended = System.nanoTime();
        // Until the two have the processor again others have it: that stops nobody.
        turn.end(ended, ended - began - (RunDelay.now() - delayed));
        return info;
    }

    /** Lets one thread ask at a time, as the JVM answers one at a time, and the next one only after a while. */
    static final class Turn {
        private static final long LOST = 1_000_000_000L;

        private final AtomicLong mayAt = new AtomicLong(Long.MIN_VALUE);
        private final long least;
        private volatile long takes;

        Turn(long least) {
            this.least = least;
            this.takes = least;
        }

        boolean begin(long now) {
            long at = mayAt.get();
            return (at == Long.MIN_VALUE || now - at >= 0) && mayAt.compareAndSet(at, now + LOST);
        }

        void end(long now, long took) {
            takes = Math.max(Math.min(Math.max(took, (long) (takes / GROWS)), (long) (takes * GROWS)), least);
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
        return isOneOf(patterns, frame.getClassName(), frame.getMethodName());
    }

    static boolean isOneOf(List<String> patterns, String className, String methodName) {
        for (String pattern : patterns) {
            if (isMatch(pattern, className, methodName)) {
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
