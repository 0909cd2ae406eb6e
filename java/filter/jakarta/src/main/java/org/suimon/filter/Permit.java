package org.suimon.filter;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpSession;
import java.lang.ref.ReferenceQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;

/**
 * One request at the gate, from its arrival to its end, as an attribute of the request. It ends once, whatever
 * happens and on whichever threads.
 *
 * <p>A request of which the gate has nothing to hear any more has one, too, which is over.
 */
final class Permit {
    private static final long NO_NUMBER = 0;
    /** A container that does within so long nothing of what it was asked for has forgotten it. */
    private static final long CONTAINER_WITHIN_NS = TimeUnit.SECONDS.toNanos(30);
    /** An error page begins at once on the thread of its request; where the end would not be told, it is not waited for longer. */
    private static final long PAGE_WITHIN_NS = TimeUnit.SECONDS.toNanos(2);

    private final Server server;
    private final long number;
    private final AtomicBoolean isAnswered = new AtomicBoolean();
    private final AtomicBoolean hasLeft = new AtomicBoolean();
    private final AtomicBoolean isOver = new AtomicBoolean();
    /** Of its answer, through whatever response the application writes it. */
    private final KeptHeaders kept = new KeptHeaders();
    /** Once it is there, the request waits no longer. */
    private Decision decision;
    /** Waits in the place of a thread. */
    private AsyncContext parked;

    /** At most two: of the request that was parked, and of that with which the application goes on. */
    private final List<AsyncEnd.Forgotten> watches = new ArrayList<>(1);

    private boolean isResumed;
    /** Since when the container is to run the request, or its error page, and has not begun; 0: it is not. */
    private volatile long containerSince;
    private boolean isForgotten;
    /** Whether the application is done but for an error page. */
    private volatile boolean awaitsErrorPage;
    private volatile boolean hasFailed;
    private volatile Connection connection;
    private volatile boolean isClaimed;
    private final AtomicBoolean isAsynchronous = new AtomicBoolean();
    /** Whether the thread that began the work has returned, and the application goes on by dispatches of its own. */
    private volatile boolean goesOn;
    /** Of the head of its answer, whatever response the application writes it to. */
    private volatile HeaderChanges changes = HeaderChanges.NONE;
    /** The session that the application has asked for last. */
    private volatile HttpSession session;

    Permit(Server server, long number) {
        this.server = server;
        this.number = number;
    }

    /** Returns the permit of a request that the gate has decided about, and hears no more of. */
    static Permit over(Server server, Decision decision) {
        Permit permit = new Permit(server, NO_NUMBER);
        permit.isOver.set(true);
        permit.isAnswered.set(true);
        permit.decide(decision);
        return permit;
    }

    long number() {
        return number;
    }

    /** Takes note that the request's own thread knows of it. */
    void claim() {
        isClaimed = true;
    }

    boolean isClaimed() {
        return isClaimed;
    }

    /** Takes note of what became of the request, and sends it on its way if it is parked. */
    void decide(Decision decision) {
        AsyncContext waits;
        synchronized (this) {
            if (this.decision != null) {
                return;
            }
            this.decision = decision;
            waits = parked;
            notifyAll();
        }
        if (waits != null) {
            resume(waits);
        }
    }

    /** Takes note of the connection by which the request has come, which waits. */
    void waitsBy(Connection connection) {
        this.connection = connection;
    }

    /** Returns the connection of a request that has waited, else null. */
    Connection connection() {
        return connection;
    }

    /** Lets the request wait without a thread until it is decided about. */
    void park(AsyncContext waits) {
        synchronized (this) {
            parked = waits;
            if (decision == null) {
                return;
            }
        }
        resume(waits);
    }

    private void resume(AsyncContext waits) {
        try {
            if (decision.bytes() == null || server.isEnding()) {
                sendAway(waits);
                return;
            }
            containerSince = now();
            try {
                waits.dispatch();
            } catch (UnsupportedOperationException gone) {
                // Tomcat finds nothing to dispatch to: mostly as the application has just been undeployed.
                sendAway(waits);
            }
        } catch (IllegalStateException | NullPointerException over) {
            // Mostly its container has ended it meanwhile, and takes it apart, perhaps at this moment.
            giveUp(waits);
        } catch (RuntimeException | Error failure) {
            giveUp(waits);
            throw failure;
        }
    }

    /** Answers a request that cannot be dispatched, if it is there: parked it has no time-out, and nobody else would. */
    private void giveUp(AsyncContext waits) {
        try {
            SuimonFilter.sayGone((HttpServletResponse) waits.getResponse());
            waits.complete();
        } catch (IllegalStateException | NullPointerException over) {
            // Its container has ended it.
        } finally {
            leave();
            endAlone();
        }
    }

    private void sendAway(AsyncContext waits) {
        SuimonFilter.sayNothing(decision, (HttpServletResponse) waits.getResponse());
        leave();
        waits.complete();
        endAlone();
    }

    private static long now() {
        // Never 0.
        return System.nanoTime() | 1;
    }

    /**
     * Forgets a request whose container has forgotten what it was asked for, and returns whether that is so. Tomcat does
     * where the threads of its connector have a queue with a bound, which is full: it logs that, and nobody else hears of it.
     */
    boolean forget(long now) {
        long since = containerSince;
        if (since == 0 || now - since < PAGE_WITHIN_NS) {
            return false;
        }
        synchronized (this) {
            // Perhaps it has begun meanwhile.
            since = containerSince;
            long within = awaitsErrorPage && parked != null ? PAGE_WITHIN_NS : CONTAINER_WITHIN_NS;
            if (since != 0 && now - since > within) {
                containerSince = 0;
                isForgotten = true;
            }
            return isForgotten;
        }
    }

    /** Returns whether its slot was given back as its container did not run it. */
    synchronized boolean isForgotten() {
        return isForgotten;
    }

    synchronized boolean isResumed() {
        return isResumed;
    }

    /** Keeps what says that a listener of this request was forgotten, as long as the request is there. */
    void watch(Function<ReferenceQueue<AsyncEnd>, AsyncEnd.Forgotten> watch) {
        AsyncEnd.Forgotten watched = watch.apply(server.forgotten());
        synchronized (this) {
            watches.add(watched);
        }
    }

    /** Waits on this thread until the request is decided about. */
    Decision await() throws InterruptedException {
        synchronized (this) {
            while (decision == null) {
                wait();
            }
            return decision;
        }
    }

    /** Returns what became of the request that was parked, the first time it is asked after that. */
    synchronized Decision takeResumed() {
        if (parked == null || decision == null || isResumed) {
            return null;
        }
        isResumed = true;
        containerSince = 0;
        return decision;
    }

    /** Returns whether the request still waits to be decided about. */
    synchronized boolean isWaiting() {
        return decision == null;
    }

    /** Returns what the application is told of the request, by name of header. */
    synchronized Map<String, String> told() {
        return decision == null ? Map.of() : decision.told();
    }

    /** Returns the headers of the answer that are kept until its head goes out. */
    KeptHeaders kept() {
        return kept;
    }

    /** Returns the parked request, if it waits in the place of a thread. */
    synchronized AsyncContext parked() {
        return parked;
    }

    /**
     * Takes note that the application goes on with the request after its thread has returned, and returns whether it
     * does so for the first time.
     */
    boolean becomesAsynchronous() {
        return isAsynchronous.compareAndSet(false, true);
    }

    boolean isAsynchronous() {
        return isAsynchronous.get();
    }

    /** Takes note that from now on dispatches are the application's. */
    void goOn() {
        goesOn = true;
    }

    boolean goesOn() {
        return goesOn;
    }

    /** Takes note of the session that the application has been given. */
    void hasSession(HttpSession given) {
        session = given;
    }

    HttpSession session() {
        return session;
    }

    /** Tells the head of the answer, once, and returns what to change in it, else null. */
    HeaderChanges answer(int status, byte[] lines) {
        if (isOver.get() || !isAnswered.compareAndSet(false, true)) {
            return null;
        }
        changes = server.answer(number, status, lines);
        return changes;
    }

    /** Returns what the gate has changed in the head of the answer; nothing as long as it was not asked. */
    HeaderChanges changes() {
        return changes;
    }

    boolean isAnswered() {
        return isAnswered.get();
    }

    /** Takes note that the client has gone. What works on the request goes on. */
    void leave() {
        if (!isOver.get() && hasLeft.compareAndSet(false, true)) {
            server.leave(number);
        }
    }

    boolean hasLeft() {
        return hasLeft.get();
    }

    /** Gives the slot back, and sends the next request on its way. */
    void end() {
        if (hasFailed && !hasLeft()) {
            fail();
        } else if (isOver.compareAndSet(false, true)) {
            server.endAndNext(this);
        }
    }

    /** Keeps the slot for the error page that may follow; who ends it then need not know whether the work has failed. */
    void endAfterErrorPage(boolean hasFailed) {
        this.hasFailed = hasFailed;
        awaitsErrorPage = true;
        containerSince = now();
    }

    boolean awaitsErrorPage() {
        return awaitsErrorPage;
    }

    /** Takes note that the error page for which it has kept its slot is being made. */
    synchronized void errorPageBegins() {
        containerSince = 0;
    }

    /** Gives the slot back, and no more: many that have left could follow each other, each from within the last. */
    private void endAlone() {
        if (isOver.compareAndSet(false, true)) {
            server.end(this);
        }
    }

    /**
     * Gives the slot back where the work has failed, perhaps in the middle of its answer. Once the client has
     * left, work may fail for that alone, and ends like any other.
     */
    void fail() {
        if (hasLeft()) {
            end();
        } else if (isOver.compareAndSet(false, true)) {
            server.fail(this);
        }
    }

    boolean isOver() {
        return isOver.get();
    }
}
