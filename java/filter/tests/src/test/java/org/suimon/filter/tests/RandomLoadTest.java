package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Many random requests, some of whose clients leave, while the application is redeployed: at the end nothing is in
 * flight, and the counts balance.
 */
@Isolated("it uses all of the machine")
class RandomLoadTest {
    private static final int CLIENTS = 24;
    private static final int REDEPLOYMENTS = 3;
    private static final Pattern NOT_ENDED = Pattern.compile("suimon: closed with (\\d+) requests that had not ended");
    private static final String[] PATHS = {
        "/pages/ok", "/pages/ok", "/pages/ok", "/sync/page?q=1", "/pages/forward", "/pages/include", "/pages/exception",
        "/pages/late-exception", "/pages/error?status=404", "/pages/error?status=500", "/pages/status?status=503",
        "/pages/redirect", "/pages/big?kb=40", "/pages/login", "/pages/logout", "/pages/signal?session=end",
        "/pages/async?ms=0", "/pages/async?ms=2", "/pages/async-silent?ms=1", "/pages/async-big?ms=1",
        "/pages/async-dispatch?ms=1", "/pages/async-again", "/pages/async-other", "/pages/async-thread",
        "/pages/async-exception", "/pages/async-timeout?ms=5", "/pages/slow?ms=3", "/pages/none", "/none.css"
    };

    @ParameterizedTest
    @MethodSource("org.suimon.filter.tests.Tomcat#kinds")
    void every_slot_comes_back(Tomcat.Kind kind, @TempDir Path base) throws Exception {
        int requests = Integer.getInteger("suimon.requests");
        long seed = Long.getLong("suimon.seed", System.nanoTime());
        // Compiled as in service.
        Tomcat tomcat = new Tomcat(kind, base).withOption("-XX:TieredStopAtLevel=4");
        tomcat.connector("maxThreads=\"12\" maxKeepAliveRequests=\"-1\"");
        // One route where nearly all wait, so that clients leave there, too.
        tomcat.deploy("shop", tomcat.settings(
                "route", "[{ match = \"GET /shop/pages/slow\", mode = 1 }, { match = \"GET /shop/sync/page\", mode = 2 }]",
                "gate.session_law", "open"));
        AtomicLong sent = new AtomicLong();
        AtomicLong left = new AtomicLong();
        try (tomcat) {
            tomcat.start();
            List<Thread> clients = new ArrayList<>();
            for (int at = 0; at < CLIENTS; at++) {
                Client client = new Client(tomcat.port(), new Random(seed + at), (requests + CLIENTS - 1) / CLIENTS, sent, left);
                clients.add(new Thread(client, "client " + at));
            }
            long start = System.nanoTime();
            clients.forEach(Thread::start);
            long before = 0;
            for (int at = 1; at <= REDEPLOYMENTS; at++) {
                long until = (long) requests * at / (REDEPLOYMENTS + 1);
                while (sent.get() < until) {
                    long seen = sent.get();
                    tomcat.await("more requests", () -> sent.get() > seen);
                }
                State.Sums sums = tomcat.state().sums();
                assertTrue(sums.balance(), sums.toString());
                String said = tomcat.manage("text/reload?path=/shop");
                assertTrue(said.startsWith("OK"), said);
                before = sent.get();
            }
            for (Thread client : clients) {
                client.join();
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            // A slot that Tomcat has forgotten comes back with the next collection.
            tomcat.command("GC.run");
            tomcat.await("quiet", () -> tomcat.state().isIdle());
            State state = tomcat.state();
            State.Sums sums = state.sums();
            // What Tomcat has forgotten when its client left had no time to be collected. Else all had ended.
            long notEnded = tomcat.log().stream().map(NOT_ENDED::matcher).filter(Matcher::find)
                    .mapToLong(closed -> Long.parseLong(closed.group(1))).sum();
            System.out.printf("%s: seed %d, %d requests in %.0f s, %d clients left, %s; %d had not ended at redeployments%n",
                    kind, seed, sent.get(), seconds, left.get(), sums, notEnded);
            assertEquals(0, sums.inside(), state.json);
            assertTrue(sums.balance(), sums.toString());
            assertEquals(state.total("requests"), sums.offered() + state.ungated() + state.total("bad_requests"), state.json);
            // The gate of the last redeployment has seen what was sent since.
            assertTrue(state.total("requests") > (sent.get() - before) * 9 / 10, "sent " + sent + ", " + state.json);
            assertTrue(notEnded <= left.get(), notEnded + " had not ended, " + left + " clients left");
            assertFalse(tomcat.has("suimon_server_"), "a fault of the library is in the log");
        }
    }

    /** One client: connections that are kept, closed in the middle of an answer, or before it. */
    private record Client(int port, Random random, int requests, AtomicLong sent, AtomicLong left) implements Runnable {
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
