package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Requests that wait. */
@Isolated("it counts who waits while others pass")
class HoldTest {
    private static final String KINDS = "org.suimon.filter.tests.Tomcat#kinds";
    /** Waits for its whole body. */
    private static final String BODY = "POST /shop/pages/body";
    private static final int THREADS = 6;
    private static final int REQUESTS = 30;

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_request_that_waits_holds_no_thread_and_then_passes_every_filter(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.connector("maxThreads=\"" + THREADS + "\" minSpareThreads=\"1\"");
        tomcat.deploy("shop", tomcat.settings("route", "[{ match = \"GET /shop/sync/slow\", mode = 1 }]"));
        try (tomcat) {
            tomcat.start();
            assertEquals("200 REQUEST /page a b+c", answer(tomcat.get("/shop/sync/page?q=a%20b%2Bc")).split(" held")[0]);
            List<CompletableFuture<HttpResponse<String>>> waiting = new ArrayList<>();
            for (int at = 0; at < REQUESTS; at++) {
                waiting.add(tomcat.getLater("/shop/sync/slow?ms=100&q=%C3%A9%20" + at));
            }
            tomcat.await("a queue", () -> tomcat.state().total("queued") > 2 * THREADS);
            // More wait than there are threads, and others pass.
            assertEquals(200, tomcat.get("/shop/pages/ok").statusCode());
            assertTrue(tomcat.state().total("queued") > THREADS, tomcat.state().json);
            for (int at = 0; at < REQUESTS; at++) {
                String said = answer(waiting.get(at).join());
                assertTrue(said.matches("200 REQUEST /slow \u00E9 " + at + " held=(null|\\d+) witness=yes"), said);
            }
            State state = tomcat.state();
            assertTrue(state.isIdle() && state.sums().balance(), state.json);
            assertEquals(REQUESTS, state.route("GET /shop/sync/slow", "completed"), state.json);
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_request_that_waits_is_answered_whatever_its_path_looks_like(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings("discovery.mode", "1"));
        try (tomcat) {
            tomcat.start();
            for (String path : List.of("/shop/sync/slow;v=1", "//shop/sync/slow", "/shop//sync/slow", "/shop/./sync/slow",
                    "/shop/x/../sync/slow", "/shop/sync/%73low", "/shop/x/%2E%2E/sync/slow", "/shop/sync/%C3%A4%20;%3B%3F",
                    "/shop;v=1/sync/slow", "///shop/sync/.slow", "/%73hop/sync/slow", "/shop/sync/a%CC%88/%E2%84%AA",
                    "/shop/sync" + "/a".repeat(3000))) {
                assertEquals(seen(tomcat, path, true), seen(tomcat, path, false), path);
            }
            // Tomcat itself cannot say what application this is of, so the application would fail as well.
            assertTrue(seen(tomcat, "//////shop/sync/slow", true).startsWith("HTTP/1.1 503"), "answered");
            assertTrue(tomcat.state().isIdle(), tomcat.state().json);
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_request_that_waited_finds_no_page_that_it_had_not_found_at_once(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", tomcat.settings("route", "[{ match = \"GET /shop/*\", mode = 1 }]"));
        Path context = app.resolve("META-INF/context.xml");
        // So Tomcat decodes what it is to dispatch before it looks what is a parameter.
        Files.writeString(context,
                Files.readString(context).replace("<Context>", "<Context dispatchersUseEncodedPaths=\"false\">"));
        Declared.write(app, kind, """
                <security-constraint>
                  <web-resource-collection>
                    <web-resource-name>nobody's</web-resource-name>
                    <url-pattern>/Kelvin/*</url-pattern>
                  </web-resource-collection>
                  <auth-constraint/>
                </security-constraint>
                """);
        try (tomcat) {
            tomcat.start();
            // The second has a sign that looks like a K, and is another path; the third a semicolon in a name.
            for (Map.Entry<String, String> path : Map.of("/shop/Kelvin/x", "403 403", "/shop/%E2%84%AAelvin/x", "404 404",
                    "/shop/Kelvin%3Bx/x", "404 503", "/shop/pages/forward-async", "200 found 200 found").entrySet()) {
                String atOnce = answer(tomcat.get(path.getKey()));
                CompletableFuture<HttpResponse<String>> first = tomcat.getLater("/shop/sync/slow?ms=500");
                tomcat.await("the work before " + path, () -> tomcat.state().total("in_flight") == 1);
                CompletableFuture<HttpResponse<String>> second = tomcat.getLater(path.getKey());
                first.join();
                String both = atOnce + " " + answer(second.join());
                assertEquals(path.getValue(), both.replaceAll("(?s)(40[34]) <!doctype.*?</html>", "$1").strip(), path.getKey());
                tomcat.await("the end of " + path, () -> tomcat.state().isIdle());
            }
        }
    }

    /** Returns what a page sees of its path, which waits behind another of the same or works at once. */
    private static String seen(Tomcat tomcat, String path, boolean waits) throws IOException {
        try (Socket first = ask(tomcat, path)) {
            tomcat.await("the work for " + path, () -> tomcat.state().total("in_flight") == 1);
            try (Socket second = ask(tomcat, path)) {
                tomcat.await("a queue for " + path, () -> tomcat.state().total("queued") == 1);
                String atOnce = Tomcat.answer(first);
                String later = Tomcat.answer(second);
                tomcat.await("the end of " + path, () -> tomcat.state().isIdle());
                return lines(waits ? later : atOnce);
            }
        }
    }

    private static Socket ask(Tomcat tomcat, String path) throws IOException {
        return tomcat.ask("GET " + path + "?ms=300&uri=yes", "");
    }

    /** Returns the first and the last line of an answer: its status and its body, but for how long it was held. */
    private static String lines(String answer) {
        String body = answer.substring(answer.lastIndexOf('\n') + 1).replaceAll(" held=\\w+", "");
        return answer.substring(0, answer.indexOf('\r')) + " " + body;
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void without_asynchronous_support_a_request_waits_on_its_thread_and_the_log_says_so(
            Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", java.util.Map.of());
        Declared.write(app, kind, false,
                "admin.listen", "127.0.0.1:0",
                "lease.keys", "none",
                "learned.state", "none",
                "waiting_room.state", "none",
                "route", "[{ match = \"GET /shop/sync/slow\", mode = 1 }]");
        try (tomcat) {
            tomcat.start();
            List<CompletableFuture<HttpResponse<String>>> waiting = new ArrayList<>();
            for (int at = 0; at < 5; at++) {
                waiting.add(tomcat.getLater("/shop/sync/slow?ms=50&q=" + at));
            }
            for (int at = 0; at < 5; at++) {
                assertTrue(answer(waiting.get(at).join()).startsWith("200 REQUEST /slow " + at), "in turn");
            }
            assertEquals(1, tomcat.log().stream().filter(line -> line.contains("keep their threads")).count());
            assertTrue(tomcat.state().isIdle());
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void clients_that_leave_while_they_wait_are_let_go(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings("route", "[{ match = \"" + BODY + "\", mode = 1 }]"));
        leaveAndStay(tomcat);
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void clients_that_leave_let_their_threads_go(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Declared.write(tomcat.deploy("shop", java.util.Map.of()), kind, false,
                "admin.listen", "127.0.0.1:0",
                "lease.keys", "none",
                "learned.state", "none",
                "waiting_room.state", "none",
                "route", "[{ match = \"" + BODY + "\", mode = 1 }]");
        leaveAndStay(tomcat);
    }

    /** Three wait behind one whose body never seems to end: one closes its connection, one resets it, one stays. */
    private static void leaveAndStay(Tomcat tomcat) throws IOException {
        try (tomcat) {
            tomcat.start();
            try (Socket works = send(tomcat)) {
                tomcat.await("its work", () -> tomcat.state().total("in_flight") == 1);
                Socket resets = send(tomcat);
                try (Socket stays = send(tomcat)) {
                    Socket closes = send(tomcat);
                    tomcat.await("a queue", () -> tomcat.state().total("queued") == 3);
                    closes.close();
                    tomcat.await("the end of one", () -> tomcat.state().total("queued") == 2);
                    // It was found open by then.
                    resets.setSoLinger(true, 0);
                    resets.close();
                    tomcat.await("the end of another", () -> tomcat.state().total("queued") == 1);
                    assertEquals(0, tomcat.state().route(BODY, "completed"), "nobody was worked for meanwhile");
                    assertTrue(answer(works).startsWith("HTTP/1.1 200"), "the one that works");
                    assertTrue(answer(stays).startsWith("HTTP/1.1 200"), "the one that stays");
                }
            }
            tomcat.await("the end of all", () -> tomcat.state().isIdle());
            State state = tomcat.state();
            assertEquals(2, state.total("disconnects_waiting"), state.json);
            assertEquals(2, state.route(BODY, "completed"), state.json);
            assertEquals(0, state.sums().failed(), state.json);
            assertTrue(state.sums().balance(), state.sums().toString());
        }
    }

    /** Sends a request but for half of its body. */
    private static Socket send(Tomcat tomcat) throws IOException {
        Socket client = new Socket("127.0.0.1", tomcat.port());
        String head = BODY + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 8\r\n\r\n";
        client.getOutputStream().write((head + "half").getBytes(StandardCharsets.US_ASCII));
        return client;
    }

    private static String answer(Socket client) throws IOException {
        client.getOutputStream().write("half".getBytes(StandardCharsets.US_ASCII));
        return new String(client.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
    }

    private static String answer(HttpResponse<String> answer) {
        return answer.statusCode() + " " + answer.body();
    }
}
