package org.suimon.shop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.CookieManager;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The shop over real sockets, with next to no work to do. */
class ShopTest {
    private static final Logger TOMCAT_LOG = Logger.getLogger("org.apache");
    private static Shop shop;

    @BeforeAll
    static void open() throws Exception {
        TOMCAT_LOG.setLevel(Level.WARNING);
        shop = Shop.open(Options.parse("--port", "0", "--light-work=1", "--search-repeats", "2", "--catalogue-size", "20000"));
    }

    @AfterAll
    static void close() {
        shop.close();
    }

    /** Somebody with a browser: cookies are kept. */
    private static final class Visitor {
        private final HttpClient client = HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

        HttpResponse<String> get(String target) throws Exception {
            return send(target, HttpRequest.newBuilder().GET());
        }

        HttpResponse<String> post(String target, String form) throws Exception {
            return send(target, HttpRequest.newBuilder()
                    .header("Content-Type", "application/x-www-form-urlencoded")
                    .POST(HttpRequest.BodyPublishers.ofString(form)));
        }

        HttpResponse<String> logIn() throws Exception {
            return post("/login", "user=ann&password=secret");
        }

        private HttpResponse<String> send(String target, HttpRequest.Builder request) throws Exception {
            URI address = URI.create("http://127.0.0.1:" + shop.port() + target);
            return client.send(request.uri(address).build(), HttpResponse.BodyHandlers.ofString());
        }
    }

    private static String token(HttpResponse<String> page) {
        Matcher field = Pattern.compile("<input type=\"hidden\" name=\"token\" value=\"([^\"]+)\">").matcher(page.body());
        assertTrue(field.find(), page.body());
        return field.group(1);
    }

    private static void assertPage(int status, String text, HttpResponse<String> page) {
        assertEquals(status, page.statusCode(), page.body());
        assertTrue(page.body().contains(text), page.body());
    }

    @Test
    void aVisitorLogsInBrowsesSearchesBuysAndLeaves() throws Exception {
        Visitor visitor = new Visitor();
        HttpResponse<String> welcome = visitor.logIn();
        assertPage(200, "Welcome, ann", welcome);
        assertTrue(welcome.headers().firstValue("set-cookie").orElse("").startsWith("JSESSIONID="));
        for (int page = 1; page <= 3; page++) {
            assertPage(200, "Catalogue page " + page, visitor.get("/browse?page=" + page));
        }
        HttpResponse<String> results = visitor.get("/search?q=lantern");
        assertPage(200, "Results for lantern", results);
        assertPage(200, "Thank you, order ", visitor.post("/buy", "item=1&token=" + token(results)));
        assertPage(200, "Goodbye", visitor.post("/logout", ""));
        assertPage(403, "Please log in", visitor.get("/browse?page=1"));
    }

    @Test
    void withoutALoginNothingIsShownAndNothingSold() throws Exception {
        Visitor stranger = new Visitor();
        assertPage(403, "Please log in", stranger.get("/browse?page=1"));
        assertPage(403, "Please log in", stranger.get("/search?q=silk"));
        assertPage(403, "Please log in", stranger.post("/buy", "item=1&token=x"));
        assertPage(403, "Please log in", stranger.post("/logout", ""));
        assertPage(400, "user", stranger.post("/login", "password=secret"));
        assertPage(200, "The shop", stranger.get("/"));
        assertPage(200, "ok", stranger.get("/healthz"));
    }

    @Test
    void anOrderNeedsAFullCartAndTheTokenOfTheSearch() throws Exception {
        Visitor visitor = new Visitor();
        visitor.logIn();
        assertPage(409, "empty", visitor.post("/buy", "item=1&token=x"));
        String token = token(visitor.get("/search?q=silk"));
        assertPage(403, "Wrong token", visitor.post("/buy", "item=1&token=forged"));
        assertPage(403, "Wrong token", visitor.post("/buy", "item=1"));
        assertPage(409, "one line", visitor.post("/buy", "item=7&token=" + token));
        assertPage(200, "Thank you", visitor.post("/buy", "item=1&token=" + token));
        assertPage(409, "empty", visitor.post("/buy", "item=1&token=" + token));
    }

    @Test
    void whatThereIsNotIsSaidWithTheRightStatus() throws Exception {
        Visitor visitor = new Visitor();
        visitor.logIn();
        assertEquals(404, visitor.get("/nowhere").statusCode());
        assertEquals(404, visitor.get("/browse?page=4").statusCode());
        assertEquals(400, visitor.get("/browse").statusCode());
        assertEquals(400, visitor.get("/search?q=").statusCode());
        assertEquals(405, visitor.get("/login").statusCode());
        assertEquals(405, visitor.post("/browse?page=1", "").statusCode());
        assertFalse(visitor.get("/search?q=%3Cscript%3E").body().contains("<script>"));
    }

    @Test
    void aSlowAnswerWaitsAndComesInParts() throws Exception {
        Visitor visitor = new Visitor();
        long began = System.nanoTime();
        HttpResponse<String> answer = visitor.post("/ask?ms=200&pages=1&parts=4", "");
        assertPage(200, "part 3", answer);
        assertTrue(System.nanoTime() - began >= 200_000_000L, "it waits as long as it was asked to");
        assertPage(200, "part 0", visitor.get("/slow?ms=0&pages=0&parts=1"));
        assertEquals(405, visitor.get("/ask?ms=1&pages=1&parts=1").statusCode());
        for (String wrong : new String[] {"", "?ms=60001&pages=1&parts=1", "?ms=1&pages=1&parts=0", "?ms=x&pages=1&parts=1"}) {
            assertEquals(400, visitor.get("/slow" + wrong).statusCode(), wrong);
        }
    }

    @Test
    void theBestMatchComesFirstAndAWordNobodySellsStillOffersSomething() {
        CatalogueSearch search = new CatalogueSearch(Catalogue.generate(1, 60_000).xml(), 1);
        List<CatalogueSearch.Match> found = search.search("Lantern", 3);
        assertTrue(found.get(0).matches() >= 1);
        assertEquals(found.stream().sorted((a, b) -> b.matches() - a.matches()).toList(), found);
        assertEquals(0, search.search("zeppelin", 1).get(0).matches());
    }

    @Test
    void theSameSeedGivesTheSameCatalogueOfAboutTheSizeAskedFor() {
        byte[] xml = Catalogue.generate(7, 650 * 1024).xml();
        assertArrayEquals(xml, Catalogue.generate(7, 650 * 1024).xml());
        assertEquals(650 * 1024, xml.length, 1_024);
    }

    @Test
    void aFlagThatMakesNoSenseIsSaidByName() {
        for (String[] wrong : new String[][] {{"--port"}, {"--port", "x"}, {"--scale", "0"}, {"--colour", "red"}, {"8080"}}) {
            String message = assertThrows(Options.UsageException.class, () -> Options.parse(wrong)).getMessage();
            assertTrue(message.startsWith(wrong[0]), message);
        }
    }
}
