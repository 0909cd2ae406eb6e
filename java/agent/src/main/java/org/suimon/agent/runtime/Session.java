package org.suimon.agent.runtime;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;

/** The agent while it is attached: what it holds jobs to, and what it knows of threads. */
public final class Session {
    /** A pause looks as often whether it still should go on. */
    private static final long SLICE = 100_000_000;

    /** Connections that were handed over and that no thread has taken up; of more than that it is not known when. */
    private static final int HANDED_MAX = 10_000;

    /** A thread that may not pause is asked again after this time at first, then twice as late … */
    private static final long ASK_GAP = 5_000_000;
    /** … and after this at the latest. */
    private static final long ASK_GAP_MAX = 40_000_000;

    /** Some JVMs are built without a flight recorder. */
    private static final boolean HAS_RECORDER = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

    private final Limits limits;
    private final double declared;
    private final boolean pausesVirtualThreads;
    private final boolean readsHeader;
    private final boolean tellsSegments;
    private final Map<Object, Long> handed = new ConcurrentHashMap<>();
    private final LockCheck locks;
    private final MethodCounts[] methods;
    private final ThreadLocal<ThreadState> threads = new ThreadLocal<>() {
        @Override
        protected ThreadState initialValue() {
            return new ThreadState(limits);
        }
    };
    private final AtomicReference<Runnable> firstJob = new AtomicReference<>();
    private volatile double toldAll = Double.NaN;

    /**
     * Returns a session that nobody is in yet.
     *
     * @param declared      the ratio of the configuration; NaN: none
     * @param readsHeader   whether requests may tell one
     * @param tellsSegments whether answers tell the segments of jobs
     */
    public Session(
            Limits limits,
            double declared,
            boolean readsHeader,
            boolean tellsSegments,
            List<String> neverIn,
            List<String> requestsBeginAt,
            boolean pausesVirtualThreads,
            List<MethodCounts> methods) {
        this.limits = limits;
        this.declared = declared;
        this.readsHeader = readsHeader;
        this.tellsSegments = tellsSegments;
        this.pausesVirtualThreads = pausesVirtualThreads;
        this.locks = new LockCheck(neverIn, requestsBeginAt, pausesVirtualThreads);
        this.methods = methods.toArray(new MethodCounts[0]);
    }

    /** Takes note that from now on locks are watched: threads that come later have no unknown ones. */
    public void locksAreWatched() {
        locks.watchFrom(LockCheck.idOf(new Thread(() -> { })));
    }

    /** Sets what is done once, when the first job begins. */
    public void onFirstJob(Runnable done) {
        firstJob.set(done);
    }

    /** Returns the ratio that holds for threads that were not told one; NaN: none. */
    public double ratio() {
        double all = toldAll;
        return Double.isNaN(all) ? declared : all;
    }

    boolean isWatched(Thread thread) {
        return pausesVirtualThreads || !LockCheck.isVirtual(thread);
    }

    ThreadState here() {
        return threads.get();
    }

    void tellAll(double ratio) {
        toldAll = ratio;
    }

    void handsOver(Object connection) {
        if (handed.size() < HANDED_MAX) {
            handed.put(connection, System.nanoTime());
        }
    }

    void takesOver(Object connection) {
        here().takesOver(handed.remove(connection));
    }

    void serviceBegins(String header, Class<?> api, Object response) {
        double ratio = header == null || !readsHeader ? Double.NaN : Woven.parse(header);
        boolean isTold = !Double.isNaN(ratio);
        boolean answers = api != null && (isTold || tellsSegments);
        here().serviceBegins(ratio, answers ? new Answer(api, response, isTold, tellsSegments) : null);
    }

    void begin(int method) {
        if (firstJob.getPlain() != null) {
            firstJob();
        }
        ThreadState here = here();
        long now = System.nanoTime();
        MethodCounts counts = methods[method];
        if (here.depth() == 0) {
            here.debt.begin(now);
            long accept = here.takeAccept(now);
            if (accept >= 0) {
                counts.accepted(accept);
            }
        }
        here.enters(now);
        if (counts.has(MethodCounts.ENTRY)) {
            point(here, counts, now);
        }
    }

    void loop(int method) {
        ThreadState here = here();
        if (here.depth() > 0) {
            point(here, methods[method], System.nanoTime());
        }
    }

    void end(int method) throws ReflectiveOperationException {
        ThreadState here = here();
        if (here.depth() == 0) {
            return;
        }
        MethodCounts counts = methods[method];
        long now = System.nanoTime();
        boolean isJobsEnd = here.depth() == 1;
        boolean mayPause = counts.has(MethodCounts.EXIT) || isJobsEnd && counts.has(MethodCounts.LOOP);
        if (mayPause) {
            now = point(here, counts, now);
        } else if (isJobsEnd) {
            here.debt.work(now, ratio(here));
        }
        long jobPaused = here.pausedInJob();
        long took = here.leaves(now);
        if (took >= 0) {
            counts.called(took);
        }
        if (isJobsEnd) {
            here.debt.end();
            counts.forgiven(here.debt.takeForgiven());
            here.answers(jobPaused, took);
        }
    }

    private void firstJob() {
        Runnable once = firstJob.getAndSet(null);
        if (once != null) {
            once.run();
        }
    }

    private double ratio(ThreadState here) {
        return Double.isNaN(here.told) ? ratio() : here.told;
    }

    /** Takes the pause that is due, if it may be taken here. Returns the time afterwards. */
    private long point(ThreadState here, MethodCounts counts, long now) {
        here.debt.work(now, ratio(here));
        long due = here.debt.due();
        // An interrupted thread is wanted elsewhere.
        if (due == 0 || here.askGap > 0 && now - here.askAt < 0 || Thread.currentThread().isInterrupted()) {
            return now;
        }
        Verdict verdict = locks.ask(here);
        if (verdict != Verdict.FREE) {
            if (here.putOff != verdict && (here.putOff == null || verdict != Verdict.TOO_SOON)) {
                here.putOff = verdict;
                counts.postponed(verdict);
            }
            // A lock that is in the list costs nobody anything, so the next point may ask again.
            if (verdict != Verdict.LOCK) {
                long twice = verdict == Verdict.TOO_SOON ? ASK_GAP : 2 * here.askGap;
                here.askGap = Math.min(Math.max(twice, ASK_GAP), ASK_GAP_MAX);
                here.askAt = now + here.askGap;
            }
            return now;
        }
        here.askGap = 0;
        here.putOff = null;
        long until = now + due;
        long ended = HAS_RECORDER ? recorded(until, counts.name(), here) : pause(until);
        here.debt.paused(now, ended);
        here.paused += ended - now;
        counts.paused(ended - now);
        return ended;
    }

    /** Pauses, and tells the flight recorder, if it records; else that costs some nanoseconds. */
    private long recorded(long until, String job, ThreadState here) {
        PauseEvent event = new PauseEvent(job, ratio(here));
        event.begin();
        long ended = pause(until);
        event.commit();
        return ended;
    }

    /**
     * Sleeps: parking would take a permit that is meant for the application. Returns when it ended:
     * early if the thread is interrupted, the agent is detached, or the ratio is 0 by now.
     */
    private long pause(long until) {
        ThreadState here = here();
        for (long now = System.nanoTime();; now = System.nanoTime()) {
            long left = until - now;
            if (left <= 0 || !Woven.isIn(this) || ratio(here) == 0) {
                return now;
            }
            long slice = Math.min(left, SLICE);
            try {
                Thread.sleep(slice / 1_000_000, (int) (slice % 1_000_000));
            } catch (InterruptedException wanted) {
                Thread.currentThread().interrupt();
                return System.nanoTime();
            }
        }
    }
}
