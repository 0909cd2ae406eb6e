package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Sessions of the gate are those of the application. */
@Execution(ExecutionMode.CONCURRENT)
class SessionsTest {
    private static final String KINDS = "org.suimon.filter.tests.Tomcat#kinds";
    private static final String[] FULL = {"gate.session_law", "static", "gate.static_sessions", "1"};

    private static String cookie(HttpResponse<String> answer, String name) {
        return answer.headers().allValues("set-cookie").stream().filter(line -> line.startsWith(name)).findFirst()
                .orElseThrow(() -> new AssertionError("no " + name + " in " + answer.headers().map() + answer.body()))
                .split(";")[0];
    }

    /** Returns the address in quotes that stands behind a text in a page. */
    private static String link(HttpResponse<String> page, String before) {
        return match(page, Pattern.quote(before) + "\"([^\"]+)\"");
    }

    private static String match(HttpResponse<String> answer, String pattern) {
        Matcher match = Pattern.compile(pattern).matcher(answer.body());
        assertTrue(match.find(), answer.body());
        return match.group(1);
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void who_is_logged_in_stays_in_and_who_logs_out_makes_room(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings(FULL));
        try (tomcat) {
            tomcat.start();
            String session = cookie(tomcat.get("/shop/pages/login", "User-Agent", "first"), "JSESSIONID=");
            tomcat.await("the session", () -> tomcat.state().total("sessions_active") == 1);
            HttpResponse<String> page = tomcat.get("/shop/pages/ok", "User-Agent", "second", "Accept", "text/html");
            assertEquals(503, page.statusCode(), page.body());
            assertTrue(page.headers().firstValue("content-type").orElse("").startsWith("text/html"));
            assertTrue(page.headers().firstValue("retry-after").isPresent(), page.headers().map().toString());
            assertEquals("no-store", page.headers().firstValue("cache-control").orElse(""));
            String ticket = cookie(page, "suimon-ticket-");

            // The application knows the first visitor by cookie or by path, and so does the gate.
            assertEquals("somebody", tomcat.get("/shop/pages/user", "Cookie", session, "User-Agent", "third").body());
            String inPath = "/shop/pages/user;jsessionid=" + session.substring("JSESSIONID=".length());
            assertEquals("somebody", tomcat.get(inPath, "User-Agent", "fourth").body());

            assertEquals(302, tomcat.get("/shop/pages/logout", "Cookie", session, "User-Agent", "first").statusCode());
            tomcat.await("the second visitor's turn", () -> tomcat
                    .get("/shop/pages/ok", "User-Agent", "second", "Accept", "text/html", "Cookie", ticket).statusCode() == 200);
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void what_the_waiting_page_links_to_stands_below_the_path_of_its_application(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        for (String name : List.of("shop", "my shop")) {
            Tomcat tomcat = new Tomcat(kind, base.resolve(name.replace(' ', '-')));
            tomcat.deploy(name, tomcat.settings(FULL));
            try (tomcat) {
                tomcat.start();
                String path = "/" + name.replace(" ", "%20");
                String wanted = path + "/pages/ok?a=1";
                tomcat.get(path + "/pages/login", "User-Agent", "first");
                tomcat.await("the session", () -> tomcat.state().total("sessions_active") == 1);
                HttpResponse<String> page = tomcat.get(wanted, "User-Agent", "second", "Accept", "text/html");
                assertEquals(503, page.statusCode(), page.body());
                String ticket = cookie(page, "suimon-ticket-");

                HttpResponse<String> chosen = tomcat.get(link(page, "<form action=") + "?to=de", "User-Agent", "second",
                        "Accept", "text/html", "Cookie", ticket, "Referer", tomcat.uri(wanted).toString());
                assertEquals(303, chosen.statusCode(), chosen.body());
                assertEquals(wanted, chosen.headers().firstValue("location").orElse(""));
                String both = ticket + "; " + cookie(chosen, "suimon-language=");
                String german = tomcat.get(wanted, "User-Agent", "second", "Accept", "text/html", "Cookie", both).body();
                assertTrue(german.contains("<html lang=de"), german);

                HttpResponse<String> stopped = tomcat.get(link(page, "<noscript><a href="), "User-Agent", "second");
                assertEquals(204, stopped.statusCode(), stopped.body());
                assertEquals("suimon-refresh=off", cookie(stopped, "suimon-refresh="));
            }
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_place_goes_to_another_device_by_a_code_that_is_entered_there(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings(FULL));
        try (tomcat) {
            tomcat.start();
            tomcat.get("/shop/pages/login", "User-Agent", "first");
            tomcat.await("the session", () -> tomcat.state().total("sessions_active") == 1);
            HttpResponse<String> page = tomcat.get("/shop/pages/ok", "User-Agent", "second", "Accept", "text/html");
            String ticket = cookie(page, "suimon-ticket-");
            String code = match(post(tomcat, link(page, "<form id=give method=post action="), "", "Accept",
                    "application/json", "Cookie", ticket), "\"code\":\"([^\"]+)\"");

            String entry = link(page, "<form method=post action=");
            HttpResponse<String> wrong = post(tomcat, entry, "code=ZZZ-999", "Accept", "text/html");
            assertEquals("suimon-code=wrong", cookie(wrong, "suimon-code="));
            HttpResponse<String> moved = post(tomcat, entry, "code=" + code, "Accept", "text/html");
            assertEquals(303, moved.statusCode(), moved.body());
            String there = cookie(moved, "suimon-ticket-");
            String position = "\"position\":(\\d+)";
            assertEquals("1", match(tomcat.get("/shop/pages/ok", "Accept", "application/json", "Cookie", there), position));
            assertEquals("2", match(tomcat.get("/shop/pages/ok", "Accept", "application/json", "Cookie", ticket), position));
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void the_body_of_no_other_form_is_read(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings());
        try (tomcat) {
            tomcat.start();
            String path = "/shop/pages/echo/.well-known/suimon/position";
            assertEquals("code=ABC-123", post(tomcat, path, "code=ABC-123").body());
        }
    }

    private static HttpResponse<String> post(Tomcat tomcat, String path, String form, String... headers) {
        return tomcat.send(tomcat.request(path, headers).header("Content-Type", "application/x-www-form-urlencoded")
                .POST(HttpRequest.BodyPublishers.ofString(form)).build());
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void the_gate_hears_of_a_session_that_begins_late_and_of_one_in_another_thread(Tomcat.Kind kind, @TempDir Path base)
            throws IOException {
        for (String page : List.of("/shop/pages/late-login", "/shop/pages/async-login")) {
            Tomcat tomcat = new Tomcat(kind, base.resolve(page.substring(page.lastIndexOf('/') + 1)));
            tomcat.deploy("shop", tomcat.settings(FULL));
            try (tomcat) {
                tomcat.start();
                String session = cookie(tomcat.get(page, "User-Agent", "first"), "JSESSIONID=");
                tomcat.await("its end", () -> tomcat.state().isIdle());
                assertEquals(503, tomcat.get("/shop/pages/user", "User-Agent", "other", "Accept", "text/html").statusCode());
                assertEquals("somebody", tomcat.get("/shop/pages/user", "Cookie", session, "User-Agent", "new").body(), page);
            }
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_redirect_carries_the_lease_in_whatever_way_it_is_sent(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings("lease.issued", "always"));
        try (tomcat) {
            tomcat.start();
            for (String page : List.of("redirect", "redirect-by?how=status", "redirect-by?how=buffer")) {
                HttpResponse<String> answer = tomcat.get("/shop/pages/" + page, "User-Agent", page);
                assertEquals("/shop/pages/ok", answer.headers().firstValue("location").orElse(""), page);
                assertTrue(!cookie(answer, "suimon=").isEmpty(), page);
                assertEquals("private", answer.headers().firstValue("cache-control").orElse(""), page);
            }
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void a_line_that_the_gate_cannot_read_is_left_out(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings("lease.issued", "always"));
        try (tomcat) {
            tomcat.start();
            for (String cookies : List.of("0", "300")) {
                HttpResponse<String> answer = tomcat.get("/shop/pages/odd-head?cookies=" + cookies, "User-Agent", cookies);
                assertEquals("200 odd", answer.statusCode() + " " + answer.body());
                assertTrue(!cookie(answer, "suimon=").isEmpty(), "it is admitted all the same");
                assertEquals(Integer.parseInt(cookies) + 2, answer.headers().allValues("set-cookie").size());
            }
            tomcat.await("the end", () -> tomcat.state().isIdle());
            assertEquals(0, tomcat.state().sums().failed(), tomcat.state().json);
            assertEquals(2, tomcat.state().sums().completed(), tomcat.state().json);
        }
    }

    @ParameterizedTest
    @MethodSource(KINDS)
    void what_the_application_says_to_the_gate_stays_between_them(Tomcat.Kind kind, @TempDir Path base) throws IOException {
        Tomcat tomcat = new Tomcat(kind, base);
        tomcat.deploy("shop", tomcat.settings("lease.issued", "always"));
        try (tomcat) {
            tomcat.start();
            HttpResponse<String> answer = tomcat.get("/shop/pages/signal?session=checkout");
            assertEquals("signal", answer.body());
            assertTrue(answer.headers().firstValue("suimon-session").isEmpty(), answer.headers().map().toString());
            assertEquals("max-age=60", answer.headers().firstValue("cdn-cache-control").orElse(""));
            assertEquals("public, max-age=60", answer.headers().firstValue("cache-control").orElse(""));

            HttpResponse<String> ok = tomcat.get("/shop/pages/ok");
            String lease = cookie(ok, "suimon=");
            assertEquals("private", ok.headers().firstValue("cache-control").orElse(""));
            HttpResponse<String> seen =
                    tomcat.get("/shop/pages/seen", "Cookie", lease, "Suimon-Held", "5", "Suimon-Waiting", "7", "Suimon-Pause", "9");
            assertEquals("", tomcat.get("/shop/pages/names", "Cookie", lease, "Suimon_Pause", "1", "Suimon-Session", "end",
                    "SUIMON_HELD", "1", "suimon.waiting", "1").body());
            // Nobody waits, it was not held, and is not to pause: what the client says of that is not passed on.
            assertEquals("REQUEST waiting=null held=null pause=null witness=null", seen.body());
        }
    }
}
