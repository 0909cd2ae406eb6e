package org.suimon.agent.runtime;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** What is counted of one declared method. */
public final class MethodCounts {
    /** Bounds of the distribution: 1, 2, 4 … µs, up to 67 s; the last one is open. */
    public static final int BUCKETS = 28;

    /** Where the method has points: bits of {@link #flags}. */
    public static final int ENTRY = 1;
    /** See {@link #ENTRY}. */
    public static final int LOOP = 2;
    /** See {@link #ENTRY}. */
    public static final int EXIT = 4;

    private final String name;
    private final int flags;
    private final LongAdder calls = new LongAdder();
    private final LongAdder jobNanos = new LongAdder();
    private final LongAdder accepts = new LongAdder();
    private final LongAdder acceptNanos = new LongAdder();
    private final LongAdder pauses = new LongAdder();
    private final LongAdder pauseNanos = new LongAdder();
    private final LongAdder forgivenNanos = new LongAdder();
    private final Map<Verdict, LongAdder> postponed = new EnumMap<>(Verdict.class);
    private final LongAdder[] distribution = new LongAdder[BUCKETS];

    /** Returns counts of nothing. */
    public MethodCounts(String name, int flags) {
        this.name = name;
        this.flags = flags;
        for (Verdict verdict : Verdict.values()) {
            postponed.put(verdict, new LongAdder());
        }
        for (int i = 0; i < BUCKETS; i++) {
            distribution[i] = new LongAdder();
        }
    }

    boolean has(int point) {
        return (flags & point) != 0;
    }

    void called(long nanos) {
        calls.increment();
        jobNanos.add(nanos);
        long micros = Math.max(nanos, 0) / 1000;
        distribution[Math.min(Long.SIZE - Long.numberOfLeadingZeros(micros), BUCKETS - 1)].increment();
    }

    void accepted(long nanos) {
        accepts.increment();
        acceptNanos.add(nanos);
    }

    void paused(long nanos) {
        pauses.increment();
        pauseNanos.add(nanos);
    }

    void postponed(Verdict why) {
        postponed.get(why).increment();
    }

    void forgiven(long nanos) {
        if (nanos > 0) {
            forgivenNanos.add(nanos);
        }
    }

    /** Returns the method's name, {@code class.method}. */
    public String name() {
        return name;
    }

    /** Returns how many calls have ended. */
    public long calls() {
        return calls.sum();
    }

    /** Returns the seconds that calls took, without pauses. */
    public double jobSeconds() {
        return jobNanos.sum() / 1e9;
    }

    /** Returns how many jobs began in a request whose beginning is known. */
    public long accepts() {
        return accepts.sum();
    }

    /** Returns the seconds from when the server took up those requests to when the jobs began. */
    public double acceptSeconds() {
        return acceptNanos.sum() / 1e9;
    }

    /** Returns how many pauses were taken. */
    public long pauses() {
        return pauses.sum();
    }

    /** Returns how long they were, in seconds. */
    public double pauseSeconds() {
        return pauseNanos.sum() / 1e9;
    }

    /** Returns the seconds of pause that were owed beyond a bound, and not taken. */
    public double forgivenSeconds() {
        return forgivenNanos.sum() / 1e9;
    }

    /** Returns how often a pause was due and not taken, for this reason. */
    public long postponedFor(Verdict why) {
        return postponed.get(why).sum();
    }

    /** Returns how many calls took up to 1, 2, 4 … µs, without pauses. */
    public long[] distribution() {
        long[] counts = new long[BUCKETS];
        for (int i = 0; i < BUCKETS; i++) {
            counts[i] = distribution[i].sum();
        }
        return counts;
    }
}
