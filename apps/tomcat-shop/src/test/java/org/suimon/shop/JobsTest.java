package org.suimon.shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The papers' jobs over real sockets: what they answer, where they pause, what they tell. */
class JobsTest {
    private static final Logger TOMCAT_LOG = Logger.getLogger("org.apache");
    private static Shop shop;

    @BeforeAll
    static void open() throws Exception {
        TOMCAT_LOG.setLevel(Level.WARNING);
        shop = Shop.open(Options.parse(
                "--port", "0", "--light-work=1", "--search-repeats", "2", "--catalogue-size", "20000", "--heavy-size", "20000"));
    }

    @AfterAll
    static void close() {
        shop.close();
    }

    private final HttpClient client = HttpClient.newHttpClient();

    private HttpResponse<String> get(String target, String... headers) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + shop.port() + target));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    /** Returns the segments by name, in milliseconds. */
    private static Map<String, Double> segments(String serverTiming) {
        Map<String, Double> segments = new HashMap<>();
        for (String metric : serverTiming.split(", ")) {
            String[] parts = metric.split(";dur=");
            segments.put(parts[0], Double.valueOf(parts[1]));
        }
        return segments;
    }

    private static Map<String, Double> segments(HttpResponse<String> response) {
        assertEquals(200, response.statusCode(), response.body());
        return segments(response.headers().firstValue("server-timing").orElseThrow());
    }

    private static long nowMicros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    private HttpResponse<String> post(String target) throws Exception {
        URI uri = URI.create("http://127.0.0.1:" + shop.port() + target);
        return client.send(HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.noBody()).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void theHeavyJobIsDoneAsOftenAsWasSaid() throws Exception {
        for (String wrong : new String[] {"", "?times=0", "?times=101", "?times=x"}) {
            assertEquals(400, post("/jobs/heavy" + wrong).statusCode(), wrong);
        }
        String once = get("/jobs/heavy").body();
        assertEquals(200, post("/jobs/heavy?times=100").statusCode());
        try {
            HttpResponse<String> often = get("/jobs/heavy");
            assertEquals(once, often.body());
            double many = segments(often).get("job");
            assertEquals(200, post("/jobs/heavy?times=1").statusCode());
            double one = segments(get("/jobs/heavy")).get("job");
            assertTrue(many > 10 * one, many + " ms for a hundred, " + one + " ms for one");
        } finally {
            post("/jobs/heavy?times=1");
        }
    }

    @Test
    void theLightJobIsAFibonacciNumberAndTheHeavyOneAHundredWalks() throws Exception {
        assertEquals("fibonacci(25) = 75025\n", get("/jobs/light").body());
        String first = get("/jobs/heavy").body();
        assertTrue(first.startsWith("100 walks of "), first);
        assertEquals(first, get("/jobs/heavy?pause=0s&where=inside").body(), "the same work each time");
    }

    @Test
    void aPauseIsHeldWhereItWasAskedForAndToldApartFromTheJob() throws Exception {
        for (String where : new String[] {"before", "after", "around", "inside"}) {
            Map<String, Double> segments = segments(get("/jobs/heavy?pause=300ms&where=" + where));
            assertTrue(segments.get("pause") >= 300, where + ": " + segments);
            assertTrue(segments.get("job") > 0, where + ": " + segments);
        }
        for (String where : new String[] {"&where=before", "&where=after", "&where=around", ""}) {
            Map<String, Double> segments = segments(get("/jobs/light?pause=100ms" + where));
            assertTrue(segments.get("pause") >= 100, where + ": " + segments);
            assertTrue(segments.get("job") < segments.get("pause"), where + ": " + segments);
        }
        assertEquals(0, segments(get("/jobs/light")).get("pause"));
    }

    @Test
    void aPauseBeforeAndAfterIsTwoHalves() throws Exception {
        Pause around = Pause.parse("100ms", null, false);
        for (long half : new long[] {around.before(), around.after()}) {
            assertTrue(half >= 50_000_000 && half < 100_000_000, half + " ns");
        }
        assertEquals(0, around.between());
        Pause inside = Pause.parse("1s", "inside", true);
        assertTrue(inside.between() >= 10_000_000, "a hundredth");
        assertEquals(0, inside.before() + inside.after());
    }

    @Test
    void aQueryThatMakesNoSenseIsAnsweredWithWhatIsAllowed() throws Exception {
        for (String time : new String[] {"4", "-1s", "11s", "10001ms", "4m", "", "1.5s", "99999s"}) {
            HttpResponse<String> answer = get("/jobs/heavy?pause=" + time);
            assertEquals(400, answer.statusCode(), time);
            assertEquals("pause=" + time + ": must be a time from 0s to 10s, such as 4s or 250ms\n", answer.body());
        }
        HttpResponse<String> where = get("/jobs/heavy?pause=1s&where=Between");
        assertEquals(400, where.statusCode());
        assertEquals("where=Between: must be one of before, after, around, inside\n", where.body());
        HttpResponse<String> inside = get("/jobs/light?pause=1s&where=inside");
        assertEquals(400, inside.statusCode());
        assertTrue(inside.body().contains("no pieces"), inside.body());
        assertEquals(10_000, Pause.parse("10s", "after", false).millis(), "the longest there is");
    }

    @Test
    void whenItWasSentIsBelievedUnlessItCannotBe() throws Exception {
        String secondAgo = "t=" + (nowMicros() - 1_000_000);
        double sent = segments(get("/jobs/light", Segments.SENT, secondAgo)).get("sent");
        assertTrue(sent >= 1_000 && sent < 30_000, sent + " ms");
        for (String odd : new String[] {"t=" + (nowMicros() + 60_000_000), "t=0", "t=x", "yesterday", "t=99999999999999999"}) {
            assertFalse(segments(get("/jobs/light", Segments.SENT, odd)).containsKey("sent"), odd);
        }
        assertFalse(segments(get("/jobs/light")).containsKey("sent"));
    }

    /** A client that is silent for a while after it has connected, and before it asks again. */
    @Test
    void theFirstRequestCountsFromItsConnectionAndALaterOneFromItsOwnBytes() throws Exception {
        long silentMs = 250;
        try (Socket socket = new Socket("127.0.0.1", shop.port())) {
            BufferedReader answers = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            Thread.sleep(silentMs);
            double first = ask(socket, answers).get("accept");
            assertTrue(first >= silentMs, first + " ms");
            Thread.sleep(silentMs);
            double second = ask(socket, answers).get("accept");
            assertTrue(second < silentMs, second + " ms");
        }
    }

    /** Two requests in one write: the second is there before the first is answered. */
    @Test
    void aRequestThatFollowsAtOnceHasATimeOfItsOwn() throws Exception {
        try (Socket socket = new Socket("127.0.0.1", shop.port())) {
            BufferedReader answers = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            socket.getOutputStream().write((request("/jobs/light?pause=300ms") + request("/jobs/light")).getBytes(StandardCharsets.US_ASCII));
            Map<String, Double> first = read(answers);
            Map<String, Double> second = read(answers);
            assertNotEquals(first, second);
            assertTrue(first.get("pause") >= 300 && second.get("pause") == 0, first + ", " + second);
            assertTrue(second.get("accept") < 300, "from when its thread read it: " + second);
        }
    }

    private static String request(String target) {
        return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    }

    private static Map<String, Double> ask(Socket socket, BufferedReader answers) throws IOException {
        socket.getOutputStream().write(request("/jobs/light").getBytes(StandardCharsets.US_ASCII));
        return read(answers);
    }

    private static Map<String, Double> read(BufferedReader answers) throws IOException {
        Map<String, Double> segments = null;
        for (String line = answers.readLine(); !line.isEmpty(); line = answers.readLine()) {
            if (line.toLowerCase(java.util.Locale.ROOT).startsWith("server-timing: ")) {
                segments = segments(line.substring("server-timing: ".length()));
            }
        }
        // The body is one line.
        answers.readLine();
        return segments;
    }
}
