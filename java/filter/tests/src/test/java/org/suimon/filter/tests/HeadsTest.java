package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What the gate has to say is in the head, whatever makes the container take an answer for complete. */
@Execution(ExecutionMode.CONCURRENT)
class HeadsTest {
    private static final String KINDS = "org.suimon.filter.tests.Tomcat#kinds";

    private static boolean hasLease(HttpResponse<String> answer) {
        return answer.headers().allValues("set-cookie").stream().anyMatch(line -> line.startsWith("suimon="));
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_lease_is_in_the_head_of_every_kind_of_page(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings("lease.issued", "always"));
        try (tomcat) {
            tomcat.start();
            for (String page : List.of("/forward", "/forward?to=/sync/page", "/forward-by-name",
                    "/forward-captured",
                    "/length?how=set", "/length?how=add", "/length?how=set-int", "/length?how=add-int",
                    "/length?how=after", "/length?how=after-long", "/length?how=after-set", "/begun-anew", "/private-anew",
                    "/cookie-late")) {
                HttpResponse<String> answer = tomcat.get("/shop/pages" + page);
                // Tomcat 11 ends all of an answer with a forward.
                boolean goesOn = page.contains("captured") && !kind.home().getFileName().toString().contains("tomcat-11");
                assertEquals(goesOn ? 201 : 200, answer.statusCode(), page + ": " + answer.body());
                assertTrue(hasLease(answer), page + ": " + answer.headers().map());
                assertEquals(page.equals("/cookie-late"), answer.headers().allValues("set-cookie").contains("own=1"), page);
                assertEquals("private", answer.headers().firstValue("cache-control").orElse(""), page);
                assertTrue(answer.headers().firstValue("cdn-cache-control").isEmpty(), page + ": " + answer.headers().map());
            }
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_lease_is_not_for_caches_where_an_error_page_says_so(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", tomcat.settings("lease.issued", "always"));
        Declared.write(app, kind, Declared.errorPage(404, "/pages/lost"));
        try (tomcat) {
            tomcat.start();
            HttpResponse<String> answer = tomcat.get("/shop/pages/error?status=404");
            assertEquals("404 lost", answer.statusCode() + " " + answer.body());
            assertTrue(hasLease(answer), answer.headers().map().toString());
            assertEquals(List.of("private"), answer.headers().allValues("cache-control"));
            assertTrue(answer.headers().firstValue("cdn-cache-control").isEmpty(), answer.headers().map().toString());
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_declared_header_does_not_stand_beside_the_application_s_own(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings("response.headers", "[\"X-Frame-Options: DENY\"]"));
        try (tomcat) {
            tomcat.start();
            assertEquals(List.of("SAMEORIGIN"), tomcat.get("/shop/pages/framed").headers().allValues("x-frame-options"));
            assertEquals(List.of("DENY"), tomcat.get("/shop/pages/ok").headers().allValues("x-frame-options"));
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void what_was_kept_of_the_head_goes_on_where_a_page_forwards(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            HttpResponse<String> answer = tomcat.get("/shop/pages/forward?to=/pages/signal&session=checkout");
            assertEquals("signal", answer.body());
            assertEquals("max-age=60", answer.headers().firstValue("cdn-cache-control").orElse(""));
            assertTrue(answer.headers().firstValue("suimon-session").isEmpty(), answer.headers().map().toString());
        }
    }
}
