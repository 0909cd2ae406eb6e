package org.suimon.filter;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.StampedLock;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import java.util.function.ToIntFunction;

/**
 * The gate of one web application: the native server, and the thread that hears from it which waiting requests
 * are decided about, unless a thread that ends a request hears it first.
 */
final class Server implements AutoCloseable {
    /** How long the thread waits before it looks whether the server closes. */
    private static final int NEXT_MS = 200;
    /** How long an application that is undeployed may go on with what is under way, as Tomcat's unloadDelay. */
    private static final long DRAIN_MS = 2000;
    /** A thread that has entered a request takes its permit at once; one that never does has died. */
    private static final long CLAIMED_WITHIN_NS = TimeUnit.SECONDS.toNanos(10);
    /** How often it is looked whether the container has forgotten any. */
    private static final long SWEEP_EVERY_NS = TimeUnit.SECONDS.toNanos(1);
    /** Faults that are logged; those after them are not. */
    private static final int FAULTS_LOGGED_MAX = 10;

    private final NativeLibrary library;
    private final long server;
    private final BooleanSupplier isEnding;
    private final BiConsumer<String, Throwable> log;
    /** Every request that has entered and not ended. The library bounds them: {@code limits.connections}. */
    private final Map<Long, Permit> permits = new ConcurrentHashMap<>();
    /** Read while the native server is called, written once, before it goes. */
    private final StampedLock calls = new StampedLock();

    /** Decided about before their own threads knew of them. Only the thread that hears takes out of it. */
    private final ConcurrentLinkedQueue<Unclaimed> unclaimed = new ConcurrentLinkedQueue<>();

    private final Disconnects disconnects;
    private final ReferenceQueue<AsyncEnd> forgotten = new ReferenceQueue<>();
    private final Thread thread = new Thread(this::hear, "suimon-filter");
    private final AtomicBoolean isClosing = new AtomicBoolean();
    private volatile boolean isHearing = true;
    private int faults;
    private long nextSweep = System.nanoTime();
    /** Failures of the thread that hears. Only it counts them. */
    private int failures;

    private record Unclaimed(Permit permit, long since) {}

    /**
     * What became of a request at its arrival.
     *
     * @param permit over, unless it may be worked on or waits
     * @param decision null: it waits
     */
    record Entry(Permit permit, Decision decision, int result) {}

    private Server(
            NativeLibrary library, long server, BooleanSupplier isEnding, BiConsumer<String, Throwable> log) {
        this.library = library;
        this.server = server;
        this.isEnding = isEnding;
        this.log = log;
        disconnects = new Disconnects(log);
        thread.setDaemon(true);
    }

    /**
     * Opens a gate.
     *
     * @param settings TOML, with the names of {@code suimon.toml}
     * @param mountPath what the paths of all requests begin with, as it stands in them; empty: nothing
     * @param isEnding whether nothing can be dispatched to the application any more
     * @param log takes what is wrong while it runs
     * @throws IllegalArgumentException what is wrong with the settings, or with this machine
     */
    static Server open(
            NativeLibrary library, String settings, String mountPath, BooleanSupplier isEnding,
            BiConsumer<String, Throwable> log) {
        byte[] text = settings.getBytes(StandardCharsets.UTF_8);
        Reply error = new Reply(64 << 10);
        long handle = library.openAt(text, mountPath.getBytes(StandardCharsets.US_ASCII), error);
        if (handle == 0) {
            throw new IllegalArgumentException(error.text().strip());
        }
        Server server = new Server(library, handle, isEnding, log);
        try {
            server.thread.start();
        } catch (OutOfMemoryError noThread) {
            library.close(handle);
            throw noThread;
        }
        return server;
    }

    /** Takes in a request. One that waits is decided about later, by {@link Permit#decide}. */
    Entry enter(RequestHead head, String address, boolean isTls) {
        // Some connectors know none of a client that has left: the library takes that for unknown.
        byte[] from = address == null ? new byte[0] : address.getBytes(StandardCharsets.US_ASCII);
        Reply reply = new Reply();
        int result = call(reply, () -> isClosing.get()
                ? NativeLibrary.CLOSED
                : library.enter(server, head.bytes(), head.length(), from, isTls, reply));
        return switch (result) {
            case NativeLibrary.OK -> {
                Permit permit = claim(reply.request);
                Decision decision = new Decision(true, reply.copy());
                permit.decide(decision);
                yield new Entry(permit, decision, result);
            }
            case NativeLibrary.WAITS -> {
                Permit permit = claim(reply.request);
                if (isClosing.get()) {
                    // Who sends all away may have been by already.
                    permit.decide(Decision.CLOSED);
                }
                yield new Entry(permit, null, result);
            }
            case NativeLibrary.ANSWERED -> over(new Decision(false, reply.copy()), result);
            case NativeLibrary.CLOSED -> over(Decision.CLOSED, result);
            // A fault of the client's: the gate counts it.
            case NativeLibrary.INVALID -> over(Decision.UNGATED, result);
            default -> {
                fault("suimon_server_enter", result, reply);
                yield over(Decision.UNGATED, result);
            }
        };
    }

    private Entry over(Decision decision, int result) {
        return new Entry(Permit.over(this, decision), decision, result);
    }

    /** Returns the permit of a request. Who asks first makes it: its own thread, or the one that hears. */
    private Permit permit(long number) {
        return permits.computeIfAbsent(number, key -> new Permit(this, key));
    }

    private Permit claim(long number) {
        Permit permit = permit(number);
        permit.claim();
        return permit;
    }

    /** See {@link Permit#answer}. */
    HeaderChanges answer(long number, int status, byte[] lines) {
        Reply reply = new Reply();
        int result = call(reply, () -> library.answer(server, number, status, lines, reply));
        if (result == NativeLibrary.OK) {
            return reply.length == 0 ? HeaderChanges.NONE : HeaderChanges.parse(reply.head());
        }
        if (result != NativeLibrary.UNKNOWN && result != NativeLibrary.CLOSED) {
            fault("suimon_server_answer", result, reply);
        }
        return HeaderChanges.NONE;
    }

    /** See {@link Permit#leave}. */
    void leave(long number) {
        guarded(() -> library.leave(server, number));
    }

    /** See {@link Permit#end}. Sends on its way who gets the slot: no other thread need be woken for that. */
    void endAndNext(Permit permit) {
        Reply reply = new Reply();
        over(permit, () -> {
            int result = whole(library.endAndNext(server, permit.number(), reply), reply);
            if (result == NativeLibrary.OK || result == NativeLibrary.ANSWERED) {
                decide(reply, result);
            }
            return result;
        });
    }

    /** See {@link Permit#endAlone}. */
    void end(Permit permit) {
        over(permit, () -> library.end(server, permit.number()));
    }

    /** See {@link Permit#fail}. */
    void fail(Permit permit) {
        over(permit, () -> library.fail(server, permit.number()));
    }

    private void over(Permit permit, Call ending) {
        permits.remove(permit.number());
        try {
            guarded(ending);
        } finally {
            if (isClosing.get()) {
                synchronized (permits) {
                    permits.notifyAll();
                }
            }
        }
    }

    /** Returns whether nothing can be dispatched to the application any more. */
    boolean isEnding() {
        return isEnding.getAsBoolean();
    }

    /** Returns what {@code GET /api/state} of the admin listener answers. */
    String state() {
        return text(reply -> library.state(server, reply));
    }

    /** Returns the address of the admin listener; empty without one. */
    String admin() {
        return text(reply -> library.admin(server, reply));
    }

    private String text(ToIntFunction<Reply> what) {
        Reply reply = new Reply(16 << 10);
        int result = guarded(() -> what.applyAsInt(reply));
        while (result == NativeLibrary.TOO_SMALL) {
            reply.grow();
            result = guarded(() -> what.applyAsInt(reply));
        }
        return result == NativeLibrary.OK ? reply.text() : "";
    }

    /** Calls the library, and fetches what did not fit into the reply. */
    private int call(Reply reply, Call what) {
        return guarded(() -> whole(what.carryOut(), reply));
    }

    private int whole(int first, Reply reply) {
        int result = first;
        while (result == NativeLibrary.TOO_SMALL) {
            reply.grow();
            result = library.result(server, reply.request, reply);
        }
        return result;
    }

    /** A call of the native server. */
    private interface Call {
        int carryOut();
    }

    /** Calls the native server, unless it is gone. */
    private int guarded(Call what) {
        long stamp = calls.tryReadLock();
        if (stamp == 0) {
            return NativeLibrary.CLOSED;
        }
        try {
            return what.carryOut();
        } finally {
            calls.unlockRead(stamp);
        }
    }

    /** Hears which waiting requests are decided about, until the server closes. */
    private void hear() {
        Reply reply = new Reply(32 << 10);
        boolean goesOn = true;
        while (goesOn && isHearing) {
            try {
                goesOn = hearOnce(reply);
            } catch (RuntimeException | Error failure) {
                goOn(failure);
            }
        }
    }

    /** Returns whether there will be more to hear. */
    private boolean hearOnce(Reply reply) {
        endUnclaimed();
        endForgotten();
        endLeft();
        endWhatTheContainerForgot();
        int result = whole(library.next(server, NEXT_MS, reply), reply);
        switch (result) {
            case NativeLibrary.OK, NativeLibrary.ANSWERED -> decide(reply, result);
            case NativeLibrary.NOTHING, NativeLibrary.UNKNOWN -> { }
            case NativeLibrary.CLOSED -> {
                return false;
            }
            default -> fault("suimon_server_next", result, reply);
        }
        return true;
    }

    /** Survives what went wrong, which may be that memory was short: without this thread all that waits would wait for ever. */
    private void goOn(Throwable failure) {
        try {
            if (failures < FAULTS_LOGGED_MAX) {
                failures++;
                log.accept("suimon: the thread that hears what becomes of waiting requests goes on after a failure", failure);
            }
        } catch (RuntimeException | Error again) {
            // There is no memory for words either.
        }
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(NEXT_MS));
    }

    private void decide(Reply reply, int result) {
        Permit permit = permit(reply.request);
        if (!permit.isClaimed()) {
            unclaimed.add(new Unclaimed(permit, System.nanoTime()));
        }
        try {
            permit.decide(new Decision(result == NativeLibrary.OK, reply.copy()));
        } catch (RuntimeException | LinkageError failure) {
            // It must not disturb whoever ends another request on this thread.
            log.accept("suimon: a waiting request could not be resumed", failure);
        }
    }

    /** Ends what was decided about after its thread had given it up. */
    private void endUnclaimed() {
        while (!unclaimed.isEmpty() && System.nanoTime() - unclaimed.peek().since() > CLAIMED_WITHIN_NS) {
            Permit permit = unclaimed.remove().permit();
            if (!permit.isClaimed()) {
                permit.end();
            }
        }
    }

    /** Ends what waits for nobody any more. */
    private void endLeft() {
        try {
            disconnects.look(permits.values());
        } catch (RuntimeException | LinkageError failure) {
            // The container's, of one request; the next look finds the others.
            log.accept("suimon: a request whose client has left could not be ended", failure);
        }
    }

    /** Ends what containers have let go without a word. */
    private void endForgotten() {
        for (Reference<?> one = forgotten.poll(); one != null; one = forgotten.poll()) {
            ((AsyncEnd.Forgotten) one).end();
        }
    }

    /** Ends what the container was asked to run and does not. */
    private void endWhatTheContainerForgot() {
        long now = System.nanoTime();
        if (now - nextSweep < 0) {
            return;
        }
        nextSweep = now + SWEEP_EVERY_NS;
        for (Permit permit : permits.values()) {
            if (permit.forget(now)) {
                if (!permit.awaitsErrorPage()) {
                    fault("a request that was let in was not run by its container, which keeps its connection:"
                            + " are its threads too few, with a bounded queue?");
                    permit.leave();
                }
                permit.end();
            }
        }
    }

    /** Returns where listeners turn up that nobody can call any more. */
    ReferenceQueue<AsyncEnd> forgotten() {
        return forgotten;
    }

    private void fault(String function, int result, Reply reply) {
        fault(function + " returned " + result + (reply.length > 0 ? ": " + reply.text() : ""));
    }

    private synchronized void fault(String what) {
        faults++;
        if (faults <= FAULTS_LOGGED_MAX) {
            log.accept("suimon: " + what, null);
        }
    }

    /**
     * Refuses newcomers, sends waiting requests away, gives those under way two seconds to end, and ends the native
     * server with all its threads.
     */
    @Override
    public void close() {
        if (!isClosing.compareAndSet(false, true)) {
            return;
        }
        for (Permit permit : permits.values()) {
            if (permit.isWaiting()) {
                permit.leave();
                sendAway(permit);
            }
        }
        drain();
        if (!permits.isEmpty()) {
            log.accept("suimon: closed with " + permits.size() + " requests that had not ended", null);
        }
        isHearing = false;
        join();
        for (Permit permit : permits.values()) {
            sendAway(permit);
            permit.end();
        }
        calls.writeLock();
        library.close(server);
    }

    private void sendAway(Permit permit) {
        try {
            permit.decide(Decision.CLOSED);
        } catch (RuntimeException | LinkageError failure) {
            // The others are sent away all the same.
            log.accept("suimon: a waiting request could not be sent away", failure);
        }
    }

    private void drain() {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(DRAIN_MS);
        synchronized (permits) {
            long left = DRAIN_MS;
            while (!permits.isEmpty() && left > 0) {
                try {
                    permits.wait(left);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    return;
                }
                left = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime());
            }
        }
    }

    private void join() {
        boolean wasInterrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException interrupted) {
                wasInterrupted = true;
            }
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
