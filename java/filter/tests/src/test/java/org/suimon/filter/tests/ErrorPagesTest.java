package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Pages that the container makes of errors, which it does after all filters. */
@Execution(ExecutionMode.CONCURRENT)
class ErrorPagesTest {
    private static final String KINDS = "org.suimon.filter.tests.Tomcat#kinds";
    /** Longer than a container is waited for that does nothing. */
    private static final Duration LONG = Duration.ofSeconds(33);

    @ParameterizedTest
    @MethodSource(KINDS)
    void an_error_page_is_made_in_the_slot_of_its_request(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", tomcat.settings("route", "[{ match = \"GET /shop/pages/*\", mode = 1 }]"));
        Declared.write(app, kind, Declared.errorPage(404, "/pages/alone?ms=100") + Declared.errorPage(500, "/pages/alone?ms=100"));
        try (tomcat) {
            tomcat.start();
            List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
            for (int at = 0; at < 4; at++) {
                answers.add(tomcat.getLater("/shop/pages/error?status=404"));
                answers.add(tomcat.getLater("/shop/pages/exception"));
            }
            for (CompletableFuture<HttpResponse<String>> answer : answers) {
                assertEquals("at most 1", answer.join().body());
            }
            tomcat.await("the end", () -> tomcat.state().isIdle());
            State state = tomcat.state();
            assertEquals(8, state.sums().offered(), state.json);
            assertEquals(4, state.sums().failed(), state.json);
            assertTrue(state.sums().balance(), state.json);
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void an_error_page_keeps_its_slot_however_long_it_takes(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", tomcat.settings());
        Declared.write(app, kind, Declared.errorPage(404, "/pages/alone?ms=" + LONG.toMillis()));
        try (tomcat) {
            tomcat.start();
            long begun = System.nanoTime();
            CompletableFuture<HttpResponse<String>> answer = tomcat.getLater("/shop/pages/error?status=404");
            tomcat.await("its work", () -> tomcat.state().total("in_flight") == 1);
            tomcat.await("most of it", () -> {
                assertEquals(1, tomcat.state().total("in_flight"), "its slot has come back");
                return System.nanoTime() - begun > LONG.minusSeconds(1).toNanos();
            });
            assertEquals("at most 1", answer.join().body());
            tomcat.await("the end", () -> tomcat.state().isIdle());
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_request_that_waited_fails_as_one_that_did_not(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", tomcat.settings("route", "[{ match = \"GET /shop/*\", mode = 1 }]"));
        Declared.write(app, kind, Declared.errorPage(400, "/pages/error-page?of=400")
                + Declared.errorPage(404, "/pages/error-page?of=404")
                + Declared.errorPage(500, "/pages/error-page?of=500")
                + Declared.errorPage(IllegalArgumentException.class, "/pages/error-page?of=exception"));
        try (tomcat) {
            tomcat.start();
            for (String path : List.of("unchecked", "exception", "error?status=404", "parameter?a=%zz", "include-error")) {
                String asked = "GET /shop/pages/" + path;
                String atOnce = lines(tomcat.answerOnce(asked, ""));
                CompletableFuture<HttpResponse<String>> first = tomcat.getLater("/shop/sync/slow?ms=500");
                tomcat.await("the work before " + path, () -> tomcat.state().total("in_flight") == 1);
                try (Socket second = tomcat.ask(asked, "")) {
                    tomcat.await("a queue", () -> tomcat.state().total("queued") == 1);
                    first.join();
                    assertEquals(atOnce, lines(Tomcat.answer(second)), path);
                }
                assertTrue(atOnce.contains(switch (path) {
                    case "unchecked" -> " exception for 500 class java.lang.IllegalArgumentException";
                    case "exception" -> " 500 for 500 ";
                    case "include-error" -> " 200  before and after";
                    default -> " ";
                }), atOnce);
                tomcat.await("the end of " + path, () -> tomcat.state().isIdle());
            }
            State state = tomcat.state();
            assertEquals(4, state.sums().failed(), "two pages fail, twice: " + state.json);
            assertEquals(kind.major() < 11 ? 2 : 4, state.route("GET /shop/*", "4xx"), "one page is not there: " + state.json);
            assertTrue(state.sums().balance(), state.json);
        }
    }

    /** Returns the first and the last line of an answer. */
    private static String lines(String answer) {
        return answer.substring(0, answer.indexOf('\r')) + " " + answer.substring(answer.lastIndexOf('\n') + 1);
    }
}
