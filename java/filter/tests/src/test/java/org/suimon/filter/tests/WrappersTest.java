package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What the application lays around requests and responses stays there, and what is said through it arrives. */
@Execution(ExecutionMode.CONCURRENT)
class WrappersTest {
    private static final String KINDS = "org.suimon.filter.tests.Tomcat#kinds";

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_dispatch_keeps_the_request_of_the_application(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            assertEquals("ASYNC yes", tomcat.get("/shop/pages/wrap/dispatch?around=request&name=X-Wrapped").body());
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void inside_wrappers_of_the_application_the_gate_says_and_hears_the_same(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Path settings = Files.writeString(base.resolve("suimon.toml"), """
                [admin]
                listen = "127.0.0.1:0"
                [lease]
                keys = "none"
                [learned]
                state = "none"
                [waiting_room]
                state = "none"
                [degradation]
                mode = "off"
                [gate]
                session_law = "static"
                static_sessions = 1
                [[route]]
                match = "GET /shop/pages/wrap/dispatch"
                [[service]]
                name = "dispatch"
                routes = ["GET /shop/pages/wrap/dispatch"]
                pause_ratio = 2.0
                pauses = "inside"
                """);
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", Map.of("suimon.config", settings.toString()));
        try (tomcat) {
            tomcat.start();
            String path = "/shop/pages/wrap/dispatch?around=both&name=Suimon-Pause";
            String lease = tomcat.get(path).headers().allValues("set-cookie").stream()
                    .filter(line -> line.startsWith("suimon=")).findFirst().orElse("").split(";")[0];
            tomcat.await("a session", () -> tomcat.state().total("sessions_active") == 1);
            tomcat.await("the ratio", () -> tomcat.get(path, "Cookie", lease).body().equals("ASYNC 2"));
            HttpResponse<String> last = tomcat.get(path + "&session=end", "Cookie", lease);
            assertEquals(200, last.statusCode());
            assertTrue(last.headers().firstValue("suimon-session").isEmpty(), last.headers().map().toString());
            tomcat.await("the session's end", () -> tomcat.state().total("sessions_active") == 0);
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void an_error_page_is_told_what_the_page_was(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        Path app = tomcat.deploy("shop", tomcat.settings());
        Declared.write(app, kind, Declared.errorPage(404, "/pages/header?name=X-Request-Id"));
        try (tomcat) {
            tomcat.start();
            HttpResponse<String> answer = tomcat.get("/shop/pages/error?status=404", "X-Request-Id", "of-the-client");
            assertEquals(404, answer.statusCode());
            assertTrue(answer.body().matches("ERROR \\S+"), answer.body());
            assertNotEquals("ERROR of-the-client", answer.body());
        }
    }
}
