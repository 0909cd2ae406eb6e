package org.suimon.woven;

/** Work that knows how long it took: what a thread needs beyond that, it paused. */
public final class Work {
    private static final ThreadLocal<long[]> WORKED = ThreadLocal.withInitial(() -> new long[1]);
    private static volatile long sink;

    private Work() {
    }

    /** What came of some work, in nanoseconds. */
    public record Took(long worked, long paused) {
        /** Returns pauses ÷ work. */
        public double ratio() {
            return (double) paused / worked;
        }

        /** Returns the milliseconds of pauses. */
        public long pausedMs() {
            return paused / 1_000_000;
        }
    }

    /** Returns what this thread worked and paused in the meantime. */
    public static Took measure(Runnable of) {
        long[] worked = WORKED.get();
        worked[0] = 0;
        long began = System.nanoTime();
        of.run();
        return new Took(worked[0], System.nanoTime() - began - worked[0]);
    }

    /** Works in pieces of a millisecond. */
    public static void run(int pieces) {
        for (int i = 0; i < pieces; i++) {
            spin(1_000_000);
        }
    }

    /** Works in one piece. */
    public static void walk(long micros) {
        spin(micros * 1000);
    }

    /** The same, declared at its entry. */
    public static void step(long micros) {
        spin(micros * 1000);
    }

    /** Walks and then throws. */
    public static void fail(long micros) {
        spin(micros * 1000);
        throw new IllegalStateException("as it should");
    }

    /** Walks, and is synchronized itself. */
    public static synchronized void lockedWalk(long micros) {
        spin(micros * 1000);
    }

    private static void spin(long nanos) {
        long began = System.nanoTime();
        long took = 0;
        while (took < nanos) {
            sink++;
            took = System.nanoTime() - began;
        }
        WORKED.get()[0] += took;
    }
}
