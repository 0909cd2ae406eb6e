package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Many random requests, some of whose clients leave, also while the application is redeployed or while others stand in
 * line: at the end nothing is in flight, and the counts balance.
 */
@Isolated("it uses all of the machine")
class RandomLoadTest {
    private static final String KINDS = "org.suimon.filter.tests.Tomcat#kinds";
    private static final int REQUESTS = Integer.getInteger("suimon.requests");
    private static final int CLIENTS = 24;
    private static final int REDEPLOYMENTS = 3;
    /** For so long nothing more ends by itself, whose longest wait is that of clients who have left: ten seconds. */
    private static final Duration SETTLED = Duration.ofSeconds(15);
    private static final Pattern NOT_ENDED = Pattern.compile("suimon: closed with (\\d+) requests that had not ended");
    private static final String[] PATHS = {
        "/pages/ok", "/pages/ok", "/pages/ok", "/sync/page?q=1", "/pages/forward", "/pages/include", "/pages/exception",
        "/pages/late-exception", "/pages/error?status=404", "/pages/error?status=500", "/pages/status?status=503",
        "/pages/redirect", "/pages/big?kb=40", "/pages/login", "/pages/logout", "/pages/signal?session=end",
        "/pages/async?ms=0", "/pages/async?ms=2", "/pages/async-silent?ms=1", "/pages/async-big?ms=1",
        "/pages/async-dispatch?ms=1", "/pages/async-again", "/pages/async-other", "/pages/async-thread",
        "/pages/async-exception", "/pages/async-timeout?ms=5", "/pages/slow?ms=3", "/pages/none", "/none.css",
        "/pages/unchecked", "/pages/include-error"
    };

    @ParameterizedTest
    @MethodSource(KINDS)
    void every_slot_comes_back(Tomcat.Kind kind, @TempDir Path base) throws Exception {
        play(kind, base, REQUESTS, 0, "gate.session_law", "open");
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void every_slot_comes_back_while_the_application_is_redeployed(Tomcat.Kind kind, @TempDir Path base) throws Exception {
        Played played = play(kind, base, REQUESTS, REDEPLOYMENTS, "gate.session_law", "open");
        // One that is under way when its gate is closed is cut off: at most one of each client.
        assertTrue(played.notEnded() <= REDEPLOYMENTS * CLIENTS, played.toString());
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void every_slot_comes_back_where_visitors_stand_in_line(Tomcat.Kind kind, @TempDir Path base) throws Exception {
        Played played = play(kind, base, Math.max(REQUESTS / 5, 3_000), 0,
                "gate.session_law", "static", "gate.static_sessions", "20",
                "session", "[{ kind = \"visit\", hold = \"20ms\" }]");
        assertTrue(played.sums().refused() + played.sums().waitingPages() > 0, played.toString());
    }

    /** What has been played: requests sent, clients that left, all counts, and requests that had not ended at a redeployment. */
    private record Played(long sent, long left, State.Sums sums, long notEnded) {}

    /** Plays random requests, and returns what was seen once all clients are gone and nothing is under way. */
    private static Played play(Tomcat.Kind kind, Path base, int requests, int redeployments, String... settings)
            throws Exception {
        long seed = Long.getLong("suimon.seed", System.nanoTime());
        // Compiled as in service.
        Tomcat tomcat = new Tomcat(kind, base).withOption("-XX:TieredStopAtLevel=4");
        tomcat.connector("maxThreads=\"12\" maxKeepAliveRequests=\"-1\"");
        Map<String, String> all = tomcat.settings(settings);
        all.put("suimon.gate.session_idle", "1s");
        // Routes where nearly all wait, so that clients leave there, and requests fail after they have waited.
        all.put("suimon.route", "[{ match = \"GET /shop/pages/slow\", mode = 1 }, { match = \"GET /shop/sync/page\", mode = 2 },"
                + " { match = \"GET /shop/pages/unchecked\", mode = 1 }, { match = \"GET /shop/pages/error\", mode = 1 }]");
        Path app = tomcat.deploy("shop", all);
        Declared.write(app, kind, Declared.errorPage(404, "/pages/slow?ms=1")
                + Declared.errorPage(500, "/pages/slow?ms=1")
                + Declared.errorPage(IllegalArgumentException.class, "/pages/error-page?of=exception"));
        AtomicLong sent = new AtomicLong();
        AtomicLong left = new AtomicLong();
        AtomicLong unanswered = new AtomicLong();
        try (tomcat) {
            tomcat.start();
            List<Thread> clients = new ArrayList<>();
            for (int at = 0; at < CLIENTS; at++) {
                int each = (requests + CLIENTS - 1) / CLIENTS;
                Client client = new Client(tomcat.port(), new Random(seed + at), each, sent, left, unanswered);
                clients.add(new Thread(client, "client " + at));
            }
            long start = System.nanoTime();
            clients.forEach(Thread::start);
            long before = 0;
            for (int at = 1; at <= redeployments; at++) {
                long until = (long) requests * at / (redeployments + 1);
                while (sent.get() < until) {
                    long seen = sent.get();
                    tomcat.await("more requests", () -> sent.get() > seen);
                }
                State.Sums sums = tomcat.state().sums();
                assertTrue(sums.balance(), sums.toString());
                // A slot that Tomcat has forgotten, as its client left, comes back with the next collection.
                tomcat.command("GC.run");
                String said = tomcat.manage("text/reload?path=/shop");
                assertTrue(said.startsWith("OK"), said);
                before = sent.get();
            }
            for (Thread client : clients) {
                client.join();
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            long forgotten = inFlightWithoutCollection(tomcat);
            tomcat.command("GC.run");
            tomcat.await("quiet", () -> tomcat.state().isIdle());
            State state = tomcat.state();
            State.Sums sums = state.sums();
            long notEnded = tomcat.log().stream().map(NOT_ENDED::matcher).filter(Matcher::find)
                    .mapToLong(closed -> Long.parseLong(closed.group(1))).sum();
            System.out.printf("%s: seed %d, %d requests in %.0f s, %d clients left, %s; %d slots came back by a collection; "
                    + "%d had not ended at %d redeployments%n",
                    kind, seed, sent.get(), seconds, left.get(), sums, forgotten, notEnded, redeployments);
            assertEquals(0, unanswered.get());
            // Tomcat forgets none but those whose client has left.
            assertTrue(forgotten <= left.get(), forgotten + " slots came back by a collection alone");
            assertEquals(0, sums.inside(), state.json);
            assertTrue(sums.balance(), sums.toString());
            assertEquals(state.total("requests"), sums.offered() + state.ungated() + state.total("bad_requests"), state.json);
            // The gate of the last redeployment has seen what was sent since.
            assertTrue(state.total("requests") > (sent.get() - before) * 9 / 10, "sent " + sent + ", " + state.json);
            assertFalse(tomcat.has("suimon_server_"), "a fault of the library is in the log");
            tomcat.await("the sessions' end", () -> tomcat.manage(Tomcat.bean("shop", "ActiveSessions")).strip().endsWith("= 0"));
            return new Played(sent.get(), left.get(), sums, notEnded);
        }
    }

    /** Returns how many requests are still in flight once nothing more ends by itself: Tomcat has forgotten them. */
    private static long inFlightWithoutCollection(Tomcat tomcat) {
        long[] last = {Long.MAX_VALUE, System.nanoTime()};
        tomcat.await("the end of all that ends by itself", () -> {
            long now = tomcat.state().total("in_flight");
            if (now < last[0]) {
                last[0] = now;
                last[1] = System.nanoTime();
            }
            return now == 0 || System.nanoTime() - last[1] > SETTLED.toNanos();
        });
        return last[0];
    }

    /** One client: connections that are kept, closed in the middle of an answer, or before it. */
    private record Client(int port, Random random, int requests, AtomicLong sent, AtomicLong left, AtomicLong unanswered)
            implements Runnable {
        @Override
        public void run() {
            int done = 0;
            while (done < requests) {
                try (Socket socket = new Socket("127.0.0.1", port)) {
                    socket.setTcpNoDelay(true);
                    socket.setSoTimeout((int) Tomcat.PATIENCE.toMillis());
                    boolean goesOn = true;
                    while (goesOn && done < requests) {
                        done++;
                        goesOn = one(socket);
                    }
                } catch (SocketTimeoutException lost) {
                    unanswered.incrementAndGet();
                } catch (IOException gone) {
                    // Tomcat has closed the connection, as after a late exception.
                }
            }
        }

        private boolean one(Socket socket) throws IOException {
            String path = PATHS[random.nextInt(PATHS.length)];
            OutputStream out = socket.getOutputStream();
            String head = "GET /shop" + path + " HTTP/1.1\r\nHost: shop\r\nUser-Agent: " + random.nextInt(50)
                    + "\r\nCookie: JSESSIONID=" + Long.toHexString(random.nextInt(50) * 0x123456789ABCDL) + "\r\n\r\n";
            out.write(head.getBytes(StandardCharsets.US_ASCII));
            sent.incrementAndGet();
            if (random.nextInt(40) == 0) {
                left.incrementAndGet();
                socket.setSoLinger(random.nextBoolean(), 0);
                return false;
            }
            return read(socket.getInputStream());
        }

        /** Reads one answer, and returns whether another may follow on the connection. */
        private boolean read(InputStream in) throws IOException {
            StringBuilder head = new StringBuilder();
            while (head.indexOf("\r\n\r\n") < 0) {
                int one = in.read();
                if (one < 0) {
                    return false;
                }
                head.append((char) one);
            }
            String lines = head.toString().toLowerCase(java.util.Locale.ROOT);
            if (lines.contains("transfer-encoding: chunked")) {
                while (true) {
                    int size = Integer.parseInt(line(in), 16);
                    in.skipNBytes(size + 2L);
                    if (size == 0) {
                        break;
                    }
                }
            } else {
                int at = lines.indexOf("content-length:");
                if (at >= 0) {
                    in.skipNBytes(Long.parseLong(lines.substring(at + 15, lines.indexOf("\r\n", at)).strip()));
                }
            }
            return !lines.contains("connection: close");
        }

        private static String line(InputStream in) throws IOException {
            StringBuilder line = new StringBuilder();
            for (int one = in.read(); one != '\n'; one = in.read()) {
                if (one < 0) {
                    throw new IOException("cut off");
                }
                if (one != '\r') {
                    line.append((char) one);
                }
            }
            return line.toString();
        }
    }
}
