package org.suimon.filter;

import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.suimon.filter.Connection.Found;

/**
 * Finds the clients that have left while their requests wait.
 *
 * <p>A container reads nothing from a connection whose request is under way, so it hears that the client has closed it
 * when it writes the answer. By then the application has worked for nobody, and the gate has learned how long visitors
 * wait from a time at which this one had long gone. The kernel knows at once: a connection that the client has closed is
 * in CLOSE_WAIT, and one that was reset is no longer in its tables.
 *
 * <p>Behind a proxy it is the proxy's connection that is looked at. Requests that share one (HTTP/2) leave when it is
 * closed.
 */
final class Disconnects {
    /** The kernel's tables. A socket of Java is in the first one, unless this machine has no IPv6. */
    private static final List<Path> TABLES = List.of(Path.of("/proc/self/net/tcp6"), Path.of("/proc/self/net/tcp"));
    /** From this age on the gate learns from clients that leave. */
    private static final long AGE_MIN_NS = TimeUnit.MILLISECONDS.toNanos(500);
    private static final long LOOK_EVERY_NS = TimeUnit.SECONDS.toNanos(1);
    /** Where there are many connections the tables are long: reading them takes half a percent of a core ... */
    private static final int REST_PER_LOOK = 200;
    /** ... unless nobody would be found for this long. */
    private static final long LOOK_AFTER_MAX_NS = TimeUnit.SECONDS.toNanos(10);
    private static final long AFTER_FAILURE_NS = TimeUnit.MINUTES.toNanos(1);
    /**
     * A client is taken for gone after as many looks in a row. The kernel writes its tables in pieces, between which a
     * connection can be lost; and a client that closes its own direction alone gets a second, as at the gateway.
     */
    private static final int LOOKS = 2;

    private final BiConsumer<String, Throwable> log;
    private final ThreadMXBean clock = ManagementFactory.getThreadMXBean();
    private long nextLook = System.nanoTime();
    private boolean hasFailed;

    Disconnects(BiConsumer<String, Throwable> log) {
        this.log = log;
    }

    /** Lets go the requests whose clients have left, if it is time to look. Is called by one thread. */
    void look(Collection<Permit> permits) {
        long now = System.nanoTime();
        if (now - nextLook < 0) {
            return;
        }
        nextLook = now + LOOK_EVERY_NS;
        List<Permit> waiting = waiting(permits, now);
        if (waiting.isEmpty()) {
            return;
        }
        Map<String, Found> wanted = new HashMap<>();
        try {
            long began = clock.getCurrentThreadCpuTime();
            for (Permit permit : waiting) {
                wanted.put(permit.connection().wholeName(), new Found());
                wanted.put(permit.connection().shortName(), new Found());
            }
            for (Path table : TABLES) {
                if (Files.exists(table) && !wanted.values().stream().allMatch(Found::isOpen)) {
                    read(table, wanted);
                }
            }
            long rest = REST_PER_LOOK * (clock.getCurrentThreadCpuTime() - began);
            nextLook = now + Math.min(Math.max(rest, LOOK_EVERY_NS), LOOK_AFTER_MAX_NS);
        } catch (IOException | RuntimeException failure) {
            nextLook = now + AFTER_FAILURE_NS;
            if (!hasFailed) {
                log.accept("suimon: clients that leave while they wait are not found: " + TABLES + " cannot be read", failure);
            }
            hasFailed = true;
            return;
        }
        for (Permit permit : waiting) {
            Connection connection = permit.connection();
            Found byWhole = wanted.get(connection.wholeName());
            Found byShort = wanted.get(connection.shortName());
            if (permit.isWaiting() && connection.isGone(byWhole, byShort, LOOKS)) {
                permit.leave();
                permit.decide(Decision.LEFT);
            }
        }
    }

    private static List<Permit> waiting(Collection<Permit> permits, long now) {
        List<Permit> waiting = new ArrayList<>();
        for (Permit permit : permits) {
            Connection connection = permit.connection();
            if (connection != null && connection.age(now) >= AGE_MIN_NS && permit.isWaiting()) {
                waiting.add(permit);
            }
        }
        return waiting;
    }

    private static void read(Path table, Map<String, Found> wanted) throws IOException {
        try (BufferedReader lines = Files.newBufferedReader(table, StandardCharsets.US_ASCII)) {
            // What the columns are called.
            lines.readLine();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String state = Connection.state(line);
                if (state != null) {
                    String name = Connection.wholeName(line);
                    note(wanted.get(name), state);
                    note(wanted.get(Connection.shortName(name)), state);
                }
            }
        }
    }

    private static void note(Found found, String state) {
        if (found != null) {
            found.note(state);
        }
    }
}
