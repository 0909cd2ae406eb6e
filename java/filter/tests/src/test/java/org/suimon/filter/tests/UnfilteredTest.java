package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What Tomcat answers before any filter: the pages that it takes for that come to the gate, and to nobody past it. */
@Execution(ExecutionMode.CONCURRENT)
class UnfilteredTest {
    private static final String KINDS = "org.suimon.filter.tests.Tomcat#kinds";
    private static final String[] FORGED = {"Suimon-Pause", "9", "Suimon-Held", "5", "X-Request-Id", "mine"};
    private static final String LOG_IN = """
            <security-constraint>
              <web-resource-collection>
                <web-resource-name>closed</web-resource-name>
                <url-pattern>/pages/user</url-pattern>
              </web-resource-collection>
              <auth-constraint><role-name>manager-script</role-name></auth-constraint>
            </security-constraint>
            <login-config>
              <auth-method>FORM</auth-method>
              <form-login-config>
                <form-login-page>/pages/seen</form-login-page>
                <form-error-page>/pages/seen</form-error-page>
              </form-login-config>
            </login-config>
            <security-role><role-name>manager-script</role-name></security-role>
            """;

    @ParameterizedTest
    @MethodSource(KINDS)
    void an_error_page_that_no_filter_was_asked_for_waits_its_turn(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", tomcat.settings("route", "[{ match = \"GET /shop/pages/slow\", mode = 1 }]"));
        Declared.write(app, kind, Declared.errorPage(404, "/pages/slow?ms=300"));
        try (tomcat) {
            tomcat.start();
            List<CompletableFuture<HttpResponse<String>>> all = new ArrayList<>();
            for (int at = 0; at < 4; at++) {
                all.add(tomcat.getLater("/shop/WEB-INF/x", FORGED));
            }
            tomcat.await("a queue", () -> tomcat.state().total("queued") > 1);
            for (CompletableFuture<HttpResponse<String>> one : all) {
                assertEquals("404 slow", one.join().statusCode() + " " + one.join().body());
            }
            State state = tomcat.state();
            assertTrue(state.isIdle() && state.sums().balance(), state.json);
            assertEquals(4, state.route("GET /shop/pages/slow", "completed"), state.json);
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_log_in_page_comes_to_the_gate_and_sees_nothing_forged(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", tomcat.settings());
        Declared.write(app, kind, LOG_IN);
        try (tomcat) {
            tomcat.start();
            HttpResponse<String> page = tomcat.get("/shop/pages/user", FORGED);
            assertEquals("FORWARD waiting=null held=null pause=null witness=null", page.body());
            State state = tomcat.state();
            assertTrue(state.isIdle() && state.sums().balance(), state.json);
            assertEquals(1, state.sums().offered(), state.json);
            // A forward within a request is a part of it.
            assertEquals("ok", tomcat.get("/shop/pages/forward").body());
            assertEquals(2, tomcat.state().sums().offered());
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void no_error_page_sees_what_is_forged(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.connector("maxHeaderCount=\"1000\" maxHttpHeaderSize=\"65536\"");
        Path app = tomcat.deploy("shop", tomcat.settings());
        Declared.write(app, kind, Declared.errorPage(400, "/pages/seen") + Declared.errorPage(404, "/pages/seen"));
        try (tomcat) {
            tomcat.start();
            List<String> many = new ArrayList<>(List.of(FORGED));
            for (int at = 0; at < 300; at++) {
                many.addAll(List.of("X-" + at, "x"));
            }
            String seen = "ERROR waiting=null held=null pause=null witness=null";
            // Tomcat's own answer and the application's have a page. The gate's to what it cannot read has none: the page
            // would be worked on without a slot.
            assertEquals("404 " + seen, said(tomcat.get("/shop/WEB-INF/x", FORGED)));
            assertEquals("400 ", said(tomcat.get("/shop/pages/ok", many.toArray(String[]::new))));
            assertEquals("404 " + seen, said(tomcat.get("/shop/pages/error?status=404", FORGED)));
            // All but the one that the gate cannot read.
            tomcat.await("the end", () -> tomcat.state().isIdle());
            assertEquals(2, tomcat.state().sums().offered(), tomcat.state().json);
        }
    }

    private static String said(HttpResponse<String> answer) {
        return answer.statusCode() + " " + answer.body();
    }
}
