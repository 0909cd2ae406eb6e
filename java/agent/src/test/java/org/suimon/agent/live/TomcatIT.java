package org.suimon.agent.live;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Real Tomcats, one of each servlet API, that are told how long to pause by requests. */
class TomcatIT {
    private static final String OPTIONS = "methods=org.suimon.woven.Work.run@loop;header=true;timings=true";

    @TempDir
    Path folder;

    private final HttpClient client = HttpClient.newHttpClient();

    static Stream<Arguments> homesAndServlets() {
        String tomcat = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(path -> path.contains("tomcat")).collect(Collectors.joining(File.pathSeparator));
        String tomcat9 = Path.of("target/tomcat9").toAbsolutePath() + File.separator + "*";
        return Jvm.homes().flatMap(home -> Stream.of(Arguments.of(home, "org.suimon.woven.JakartaJob", tomcat),
                Arguments.of(home, "org.suimon.woven.JavaxJob", tomcat9)));
    }

    private double get(int port, String how, String... headers) throws Exception {
        return words(ask(port, how, headers))[0];
    }

    private HttpResponse<String> ask(int port, String how, String... headers) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/job?how=" + how));
        if (headers.length > 0) {
            request.headers(headers);
        }
        HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        assertEquals(200, response.statusCode(), response.body());
        return response;
    }

    private static double[] words(HttpResponse<String> answer) {
        return Arrays.stream(answer.body().strip().split(" ")).mapToDouble(Double::parseDouble).toArray();
    }

    /** To whom told a ratio an answer says for how long the job paused, as the job itself saw it. */
    private void answersWhatWasPaused(int port) throws Exception {
        HttpResponse<String> told = ask(port, "plain", "Suimon-Pause", "2");
        double paused = Double.parseDouble(told.headers().firstValue("Suimon-Paused").orElseThrow());
        assertEquals(words(told)[1], paused, 0.05 + 0.1 * paused);
        HttpResponse<String> notAtAll = ask(port, "plain", "Suimon-Pause", "0");
        assertEquals("0.000", notAtAll.headers().firstValue("Suimon-Paused").orElseThrow());
        assertFalse(ask(port, "plain").headers().firstValue("Suimon-Paused").isPresent(), "nobody asked");
        assertFalse(ask(port, "told").headers().firstValue("Suimon-Paused").isPresent(), "nobody asked");
        assertFalse(ask(port, "early", "Suimon-Pause", "2").headers().firstValue("Suimon-Paused").isPresent(), "it was on its way");
    }

    /** The segments of {@code suimon profile}: the server has one thread, so of two requests one waits for it. */
    private void answersTellTheSegments(int port) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/job?how=plain"))
                .headers("Suimon-Pause", "1").build();
        List<CompletableFuture<HttpResponse<String>>> both = List.of(
                client.sendAsync(request, HttpResponse.BodyHandlers.ofString()),
                client.sendAsync(request, HttpResponse.BodyHandlers.ofString()));
        double longest = 0;
        for (CompletableFuture<HttpResponse<String>> one : both) {
            String told = one.get().headers().firstValue("Server-Timing").orElseThrow();
            assertTrue(told.matches("accept;dur=[0-9.]+, job;dur=[0-9.]+, pause;dur=[0-9.]+"), told);
            double[] millis = Arrays.stream(told.split("[^0-9.]+")).filter(word -> !word.isEmpty()).mapToDouble(Double::parseDouble).toArray();
            assertTrue(millis[1] >= 200, "a fifth of a second of work: " + told);
            assertEquals(words(one.get())[1] * 1e3, millis[2], 50 + 0.1 * millis[2], told);
            longest = Math.max(longest, millis[0]);
        }
        assertTrue(longest > 200, "as long as the other one's job: " + longest);
    }

    /** As in {@link Jvm#comesTo}. */
    private void comesTo(double ratio, int port, String how, String... headers) throws Exception {
        double best = get(port, how, headers);
        for (int tries = 1; tries < 3 && Math.abs(best - ratio) > 0.15 * ratio; tries++) {
            double came = get(port, how, headers);
            best = Math.abs(came - ratio) < Math.abs(best - ratio) ? came : best;
        }
        assertEquals(ratio, best, 0.15 * ratio, how);
    }

    @ParameterizedTest
    @MethodSource("homesAndServlets")
    void aRequestTellsItsOwnJobAndNoOther(Path home, String servlet, String tomcat) throws Exception {
        Files.createDirectories(folder.resolve("base"));
        List<String> flags = List.of("-javaagent:" + Jvm.AGENT + "=" + OPTIONS);
        try (Jvm jvm = Jvm.start(home, flags, Jvm.TEST_CLASSES + File.pathSeparator + tomcat, "org.suimon.woven.Server", servlet,
                folder.resolve("base").toString())) {
            int port = Integer.parseInt(jvm.line().replace("listening ", ""));
            get(port, "plain", "Suimon-Pause", "1");
            comesTo(2, port, "plain", "Suimon-Pause", "2");
            comesTo(0.5, port, "plain", "suimon-pause", "0.5");
            answersTellTheSegments(port);
            answersWhatWasPaused(port);
            assertTrue(get(port, "plain") < 0.4, "told nothing");
            comesTo(1, port, "told");
            assertTrue(get(port, "plain") < 0.4, "and not the next request");
            assertTrue(get(port, "synchronized", "Suimon-Pause", "2") < 0.4);
            assertTrue(get(port, "locked", "Suimon-Pause", "2") < 0.4);
            for (String nonsense : new String[] {"-1", "NaN", "two", "1e99", "", "0"}) {
                assertTrue(get(port, "plain", "Suimon-Pause", nonsense) < 0.4, nonsense);
            }
            String status = Jvm.command(home, "status", jvm.pid());
            assertTrue(status.contains("accept ") && !status.contains("accept 0.000000"), status);
            assertTrue(status.contains("lock=1") && status.contains("monitor=1"), status);
            assertEquals("0 detached: 4 classes are as before", Jvm.command(home, "detach", jvm.pid()));
            assertTrue(get(port, "plain", "Suimon-Pause", "2") < 0.4);
        }
    }

    /** Attached while it serves: its threads are older than the agent. */
    @ParameterizedTest
    @MethodSource("homesAndServlets")
    void aServerThatRunsIsAttachedTo(Path home, String servlet, String tomcat) throws Exception {
        Files.createDirectories(folder.resolve("base"));
        try (Jvm jvm = Jvm.start(home, List.of(), Jvm.TEST_CLASSES + File.pathSeparator + tomcat, "org.suimon.woven.Server", servlet,
                folder.resolve("base").toString())) {
            int port = Integer.parseInt(jvm.line().replace("listening ", ""));
            assertTrue(get(port, "plain", "Suimon-Pause", "2") < 0.4);
            String said = Jvm.command(home, "attach", jvm.pid(), OPTIONS);
            assertTrue(said.startsWith("0 ") && said.contains("HttpServlet") && said.contains("CoyoteAdapter"), said);
            get(port, "plain", "Suimon-Pause", "1");
            comesTo(2, port, "plain", "Suimon-Pause", "2");
            assertTrue(get(port, "locked", "Suimon-Pause", "2") < 0.4);
        }
    }
}
