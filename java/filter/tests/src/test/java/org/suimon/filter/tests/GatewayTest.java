package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A real gateway before the filter, with the same keys. */
@Execution(ExecutionMode.CONCURRENT)
class GatewayTest {
    private static final String[] FULL = {"gate.session_law", "static", "gate.static_sessions", "1", "lease.issued", "always"};

    @ParameterizedTest
    @MethodSource("org.suimon.filter.tests.Tomcat#kinds")
    void leases_and_tickets_of_one_are_good_at_the_other(Tomcat.Kind kind, @TempDir Path base) throws Exception {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings(FULL));
        // What stands behind the gateway holds nobody back itself: the gateway takes the lease out of a request.
        tomcat.deploy("open", tomcat.settings("gate.session_law", "open", "listen.trusted_proxies", "[\"127.0.0.1\"]"));
        try (tomcat) {
            tomcat.start();
            try (Gateway gateway = new Gateway(base, tomcat.port())) {
                // The filter admits its only session.
                HttpResponse<String> first = tomcat.get("/shop/pages/ok", "User-Agent", "first", "Accept", "text/html");
                assertEquals(200, first.statusCode());
                String lease = cookie(first, "suimon=");
                HttpResponse<String> page = tomcat.get("/shop/pages/ok", "User-Agent", "second", "Accept", "text/html");
                assertEquals(503, page.statusCode());
                String ticket = cookie(page, "suimon-ticket-");
                assertEquals(200, tomcat.get("/shop/pages/ok", "User-Agent", "third", "Cookie", lease).statusCode());

                // The gateway admits the lease, and so is full for others: they get the same page.
                assertEquals(200, gateway.get("/open/pages/login", "first", lease).statusCode());
                HttpResponse<String> same = gateway.get("/open/pages/ok", "fifth", "a=b");
                assertEquals(503, same.statusCode());
                assertEquals(withoutNumbers(page.body()), withoutNumbers(same.body()));
                assertEquals(page.headers().map().keySet(), same.headers().map().keySet());
                keepsItsPlace(gateway.get("/open/pages/ok", "second", ticket), ticket);
            }
            // And the other way round: one that has admitted nobody yet, and the filter, which is full.
            try (Gateway gateway = new Gateway(base, tomcat.port())) {
                String lease = cookie(gateway.get("/open/pages/ok", "sixth", "a=b"), "suimon=");
                String ticket = cookie(gateway.get("/open/pages/ok", "seventh", "a=b"), "suimon-ticket-");
                assertEquals(200, tomcat.get("/shop/pages/ok", "User-Agent", "sixth", "Cookie", lease).statusCode());
                keepsItsPlace(tomcat.get("/shop/pages/ok", "User-Agent", "seventh", "Cookie", ticket, "Accept", "text/html"), ticket);
            }
            tomcat.await("quiet", () -> tomcat.state().isIdle());
            assertTrue(tomcat.state().sums().balance(), tomcat.state().json);
        }
    }

    /** Holds that a visitor with a ticket has its place: no new one is drawn. */
    private static void keepsItsPlace(HttpResponse<String> again, String ticket) {
        assertEquals(503, again.statusCode());
        assertTrue(again.headers().allValues("set-cookie").stream().noneMatch(line -> line.startsWith("suimon-ticket-")
                && !line.startsWith(ticket.substring(0, ticket.indexOf('=')))), again.headers().map().toString());
    }

    private static String withoutNumbers(String page) {
        return page.replace("/open/", "/shop/").replaceAll("\\d+", "N").replaceAll("[A-Za-z0-9+/=_-]{20,}", "S");
    }

    private static String cookie(HttpResponse<String> answer, String name) {
        return answer.headers().allValues("set-cookie").stream().filter(line -> line.startsWith(name)).findFirst()
                .orElseThrow(() -> new AssertionError("no " + name + " in " + answer.headers().map()))
                .split(";")[0];
    }

    /** {@code suimon serve}, in a process of its own. */
    private static final class Gateway implements AutoCloseable {

        private final HttpClient client = HttpClient.newHttpClient();
        private final Process process;
        private final Path output;
        private final int port;

        Gateway(Path base, int to) throws IOException, InterruptedException {
            output = base.resolve("gateway.log");
            int free;
            try (java.net.ServerSocket socket = new java.net.ServerSocket(0)) {
                free = socket.getLocalPort();
            }
            port = free;
            Path settings = Files.writeString(base.resolve("gateway.toml"), """
                    [listen]
                    http = "127.0.0.1:%d"
                    [upstream]
                    nodes = ["http://127.0.0.1:%d"]
                    [admin]
                    listen = "127.0.0.1:0"
                    [gate]
                    session_law = "static"
                    static_sessions = 1
                    [lease]
                    keys = "%s"
                    issued = "always"
                    [learned]
                    state = "none"
                    [waiting_room]
                    state = "none"
                    base_path = "/shop"
                    """.formatted(port, to, base.resolve("lease.keys")));
            process = new ProcessBuilder(System.getProperty("suimon.command"), "serve", "--config", settings.toString())
                    .redirectErrorStream(true).redirectOutput(output.toFile()).start();
            long until = System.nanoTime() + Tomcat.PATIENCE.toNanos();
            while (!isOpen()) {
                if (!process.isAlive() || System.nanoTime() > until) {
                    throw new AssertionError("no gateway: " + Files.readString(output));
                }
                Thread.sleep(20);
            }
        }

        private boolean isOpen() {
            try (java.net.Socket socket = new java.net.Socket("127.0.0.1", port)) {
                return socket.isConnected();
            } catch (IOException notYet) {
                return false;
            }
        }

        HttpResponse<String> get(String path, String browser, String cookie) throws IOException, InterruptedException {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                    .header("User-Agent", browser).header("Cookie", cookie).header("Accept", "text/html")
                    .timeout(Tomcat.PATIENCE).build();
            return client.send(request, HttpResponse.BodyHandlers.ofString());
        }

        @Override
        public void close() {
            process.destroy();
            try {
                if (!process.waitFor(20, TimeUnit.SECONDS)) {
                    process.destroyForcibly();
                }
            } catch (InterruptedException interrupted) {
                process.destroyForcibly();
                throw new AssertionError(interrupted);
            }
        }
    }
}
