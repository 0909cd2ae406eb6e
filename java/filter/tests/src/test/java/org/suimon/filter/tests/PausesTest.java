package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The Java agent behind the filter, in one JVM: the filter says how much is to be paused inside a job. */
@Execution(ExecutionMode.CONCURRENT)
class PausesTest {
    private static final Pattern INSIDE_RATIO = Pattern.compile("\"inside_ratio\":\\s*([0-9.]+)");
    private static final int WORK_MS = 100;

    private static Path settings(Path base, String page) throws IOException {
        return Files.writeString(base.resolve("suimon.toml"), """
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
                [[route]]
                match = "GET %1$s"
                [[service]]
                name = "page"
                routes = ["GET %1$s"]
                pause_ratio = 2.0
                pauses = "inside"
                """.formatted(page));
    }

    private static boolean hasHeardOfPauses(State state) {
        Matcher ratio = INSIDE_RATIO.matcher(state.json);
        return ratio.find() && Math.abs(Double.parseDouble(ratio.group(1)) - 2.0) < 0.3;
    }

    @ParameterizedTest
    @MethodSource("org.suimon.filter.tests.Tomcat#kinds")
    void however_the_application_says_its_pause_the_gate_hears_it_and_nobody_else(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        for (String said : List.of("set", "add", "reset")) {
            Tomcat tomcat = new Tomcat(kind, base.resolve(said));
            tomcat.deploy("shop", Map.of("suimon.config", settings(base, "/shop/pages/paused").toString()));
            try (tomcat) {
                tomcat.start();
                assertEquals("held=-1", tomcat.get("/shop/pages/dates", "Suimon-Held", "Sun, 06 Nov 1994 08:49:37 GMT").body());
                tomcat.await("the gate to hear of the pauses", () -> {
                    HttpResponse<String> answer = tomcat.get("/shop/pages/paused?said=" + said);
                    assertEquals("paused", answer.body());
                    assertTrue(answer.headers().map().keySet().stream().noneMatch(name -> name.startsWith("suimon-")),
                            answer.headers().map().toString());
                    return hasHeardOfPauses(tomcat.state());
                });
            }
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.filter.tests.Tomcat#kinds")
    void the_agent_pauses_as_the_filter_says_and_the_gate_hears_of_it(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Path agent = Files.writeString(base.resolve("agent.toml"), """
                methods = ["org.suimon.app.Pages.sleep@exit"]
                header = true
                pause_max = "1s"
                """);
        Path settings = settings(base, "/shop/pages/slow");
        Tomcat tomcat = new Tomcat(kind, base).withOption("-javaagent:" + System.getProperty("suimon.agent.jar") + "=" + agent);
        Path app = tomcat.deploy("shop", Map.of("suimon.config", settings.toString()));
        Declared.write(app, kind, Declared.errorPage(404, "/pages/work?ms=" + WORK_MS));
        try (tomcat) {
            tomcat.start();
            tomcat.await("the gate to hear of the pauses", () -> {
                assertEquals(200, tomcat.get("/shop/pages/slow?ms=" + WORK_MS).statusCode());
                return hasHeardOfPauses(tomcat.state());
            });
            long begin = System.nanoTime();
            HttpResponse<String> answer = tomcat.get("/shop/pages/slow?ms=" + WORK_MS, "Suimon-Pause", "0");
            double times = (System.nanoTime() - begin) / 1e6 / WORK_MS;
            assertEquals("slow", answer.body());
            assertTrue(times >= 2.9, "one part of work and two of pause, whatever the client says: " + times);
            assertTrue(answer.headers().firstValue("suimon-paused").isEmpty(), "it is no word for clients");

            // The error page of what Tomcat answers itself is of no service: it is not to pause.
            begin = System.nanoTime();
            HttpResponse<String> error = tomcat.get("/shop/WEB-INF/x", "Suimon-Pause", "9");
            times = (System.nanoTime() - begin) / 1e6 / WORK_MS;
            assertEquals("404 slow", error.statusCode() + " " + error.body());
            assertTrue(times < 9, "whatever the client says: " + times);
            assertTrue(error.headers().firstValue("suimon-paused").isEmpty(), error.headers().map().toString());
        }
    }
}
