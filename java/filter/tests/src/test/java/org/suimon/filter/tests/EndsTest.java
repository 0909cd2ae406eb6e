package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** However a request ends, it ends once, and the application works as without the filter. */
@Execution(ExecutionMode.CONCURRENT)
class EndsTest {
    private static final String KINDS = "org.suimon.filter.tests.Tomcat#kinds";

    @ParameterizedTest
    @MethodSource(KINDS)
    void every_way_to_end_gives_the_slot_back(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Map<String, String> pages = new LinkedHashMap<>();
        pages.put("/pages/ok", "200 ok");
        pages.put("/pages/exception", "500");
        pages.put("/pages/error?status=404", "404");
        pages.put("/pages/error?status=503", "503");
        pages.put("/pages/status?status=204", "204");
        pages.put("/pages/redirect", "302");
        pages.put("/pages/forward", "200 ok");
        pages.put("/pages/include", "200 before INCLUDE");
        pages.put("/pages/big?kb=100", "200");
        pages.put("/pages/login", "200 in");
        pages.put("/pages/none", "404");
        pages.put("/none.html", "404");
        pages.put("/pages/async?ms=20", "200 later");
        pages.put("/pages/async?ms=0", "200 later");
        pages.put("/pages/async-silent?ms=5", "200");
        pages.put("/pages/async-big?ms=5", "200");
        pages.put("/pages/async-dispatch?ms=5", "200 dispatched ASYNC");
        pages.put("/pages/async-again", "200 round 3");
        pages.put("/pages/async-other", "200 ok");
        pages.put("/pages/async-twice", "200 once");
        pages.put("/pages/async-thread", "200 thread");
        pages.put("/pages/async-timeout?ms=50", "500");
        pages.put("/sync/page?q=1", "200 REQUEST /page 1");
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            long requests = 0;
            for (Map.Entry<String, String> page : pages.entrySet()) {
                HttpResponse<String> answer = tomcat.get("/shop" + page.getKey());
                String said = answer.statusCode() + (page.getValue().length() > 3 ? " " + answer.body() : "");
                assertTrue(said.startsWith(page.getValue()), page + ": " + said);
                requests++;
                tomcat.await("the end of " + page.getKey(), () -> tomcat.state().isIdle());
                State state = tomcat.state();
                assertEquals(requests, state.total("requests"), page.getKey());
                assertTrue(state.sums().balance(), page.getKey() + " " + state.sums() + state.json);
                assertEquals(requests, state.sums().offered(), page.getKey() + state.json);
                assertEquals(0, state.total("disconnects_upstream"), page.getKey() + " has lost nobody: " + state.json);
            }
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void work_that_throws_has_failed_even_if_its_head_has_gone_out(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            long requests = 0;
            for (String page : new String[] {"/exception", "/broken", "/async-exception", "/async-broken"}) {
                String answer = tomcat.answerOnce("GET /shop/pages" + page, "");
                assertTrue(!page.contains("broken") || answer.contains("half a page"), page + ": " + answer);
                requests++;
                long sent = requests;
                tomcat.await("the end of " + page, () -> tomcat.state().total("requests") == sent && tomcat.state().isIdle());
                State state = tomcat.state();
                assertEquals(requests, state.sums().failed(), page + " " + state.sums() + state.json);
                assertTrue(state.sums().balance(), page + " " + state.sums());
            }
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_slot_comes_back_of_a_request_that_the_container_lets_in_and_does_not_run(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.connector("executor=\"few\"", "<Executor name=\"few\" maxThreads=\"2\" minSpareThreads=\"2\" maxQueueSize=\"1\"/>");
        tomcat.deploy("shop", tomcat.settings("route", "[{ match = \"GET /shop/sync/slow\", mode = 1 }]"));
        try (tomcat) {
            tomcat.start();
            CompletableFuture<HttpResponse<String>> first = tomcat.getLater("/shop/sync/slow?ms=3000");
            tomcat.await("the first", () -> tomcat.state().total("in_flight") == 1);
            try (Socket second = new Socket("127.0.0.1", tomcat.port())) {
                second.getOutputStream().write("GET /shop/sync/slow HTTP/1.1\r\nHost: a\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
                tomcat.await("the second", () -> tomcat.state().total("queued") == 1);
                CompletableFuture<HttpResponse<String>> third = tomcat.getLater("/shop/pages/slow?ms=6000");
                tomcat.await("the third", () -> tomcat.state().total("in_flight") == 2);
                // It waits for a thread until one of the others is done, and has the only place to wait.
                CompletableFuture<HttpResponse<String>> fourth = tomcat.getLater("/shop/pages/ok");
                assertEquals(200, first.join().statusCode());
                assertEquals(200, third.join().statusCode());
                assertEquals(200, fourth.join().statusCode());
                assertEquals(1, tomcat.state().total("in_flight"), "Tomcat has run the second: " + tomcat.state().json);
                tomcat.await("the second's slot", () -> tomcat.state().isIdle());
            }
            assertTrue(tomcat.has("was not run by its container"), "nothing is in the log");
            assertTrue(tomcat.state().sums().balance(), tomcat.state().json);
            assertEquals(200, tomcat.get("/shop/sync/slow").statusCode());
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_post_is_answered_whatever_its_path_looks_like(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            for (String path : List.of("/shop/pages/ok", "//////shop/pages/ok", "//////shop/.well-known/suimon/position")) {
                String answer = tomcat.answerOnce("POST " + path, "Content-Length: 0\r\n");
                assertTrue(answer.startsWith("HTTP/1.1 " + (path.endsWith("ok") ? 200 : 404)), path + ": " + answer);
            }
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void clients_that_leave_give_their_slots_back_when_the_work_ends(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            long noticed = 0;
            for (String asked : new String[] {
                "GET /shop/pages/big?kb=100000", "GET /shop/pages/big-text?kb=100000", "GET /shop/pages/async-big?ms=1000", "GET /shop/pages/slow?ms=1000",
                "POST /shop/pages/body"
            }) {
                try (Socket client = new Socket("127.0.0.1", tomcat.port())) {
                    OutputStream out = client.getOutputStream();
                    // A part of the body is there.
                    String body = asked.startsWith("POST") ? "Content-Length: 100\r\n\r\npart" : "\r\n";
                    out.write((asked + " HTTP/1.1\r\nHost: a\r\n" + body).getBytes(StandardCharsets.US_ASCII));
                    tomcat.await("its work", () -> tomcat.state().total("in_flight") == 1);
                    client.setSoLinger(true, 0);
                }
                tomcat.await("the end of " + asked, () -> tomcat.state().isIdle());
                if (asked.contains("/big")) {
                    noticed++;
                    assertEquals(noticed, tomcat.state().total("disconnects_upstream"), asked);
                }
            }
            State state = tomcat.state();
            assertEquals(0, state.sums().failed(), state.json);
            assertTrue(state.sums().balance(), state.sums().toString());
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_request_that_goes_on_many_times_is_watched_once(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            CompletableFuture<HttpResponse<String>> rounds = tomcat.getLater("/shop/pages/async-rounds?rounds=50");
            tomcat.await("its last round", () -> tomcat.get("/shop/pages/async-waits").body().equals("true"));
            assertEquals(1, tomcat.instances("org.suimon.filter.AsyncEnd"));
            assertEquals(1, tomcat.instances("org.suimon.filter.AsyncEnd$Forgotten"));
            assertEquals(1, tomcat.state().total("in_flight"));
            assertEquals("gone on", tomcat.get("/shop/pages/async-go-on").body());
            assertEquals(200, rounds.join().statusCode());
            tomcat.await("the end", () -> tomcat.state().isIdle());
            assertTrue(tomcat.state().sums().balance(), tomcat.state().json);
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void an_event_stream_holds_its_slot_until_its_head_alone(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            CompletableFuture<HttpResponse<String>> stream = tomcat.getLater("/shop/pages/stream?ms=1500");
            tomcat.await("the stream", () -> tomcat.state().total("requests") == 1 && tomcat.state().isIdle());
            assertFalse(stream.isDone());
            assertEquals("data: one\n\ndata: two\n\n", stream.join().body());
        }
    }
}
