package org.suimon.filter;

import static org.junit.jupiter.api.Assertions.assertEquals;

import jakarta.servlet.ServletContext;
import jakarta.servlet.http.HttpServletRequest;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class RequestHeadTest {
    private static String head(String uri, String query, Map<String, List<String>> headers, String idInPath) {
        return head("GET", uri, query, headers, idInPath);
    }

    private static String head(
            String verb, String uri, String query, Map<String, List<String>> headers, String idInPath) {
        HttpServletRequest request = Stub.of(HttpServletRequest.class, (method, arguments) -> switch (method) {
            case "getMethod" -> verb;
            case "getParameter" -> "K7M 2QX&";
            case "getRequestURI" -> uri;
            case "getServletContext" -> Stub.of(ServletContext.class, (asked, nothing) -> "/shop");
            case "getContentLengthLong" ->
                headers.containsKey("content-length") ? Long.parseLong(headers.get("content-length").get(0)) : -1L;
            case "getQueryString" -> query;
            case "isRequestedSessionIdFromURL" -> idInPath != null;
            case "getRequestedSessionId" -> idInPath;
            case "getHeaderNames" -> Collections.enumeration(headers.keySet());
            case "getHeaders" -> Collections.enumeration(headers.get(arguments[0]));
            case "getServerName" -> "shop";
            case "getServerPort" -> 80;
            default -> throw new AssertionError(method);
        });
        RequestHead head = new RequestHead(request, "JSESSIONID");
        return new String(head.bytes(), 0, head.length(), StandardCharsets.ISO_8859_1);
    }

    @Test
    void each_value_of_a_header_is_a_line() {
        Map<String, List<String>> headers = new TreeMap<>(Map.of("host", List.of("a"), "x", List.of("1", "2")));
        assertEquals("GET /p?q=1 HTTP/1.1\r\nhost: a\r\nx: 1\r\nx: 2\r\n\r\n", head("/p", "q=1", headers, null));
    }

    @Test
    void a_session_in_the_path_is_a_cookie_and_no_part_of_the_route() {
        assertEquals(
                "GET /a;v=1/b HTTP/1.1\r\nhost: shop:80\r\ncookie: JSESSIONID=7F\r\n\r\n",
                head("/a;v=1/b;jsessionid=7F", null, Map.of(), "7F"));
    }

    @Test
    void no_character_of_a_value_ends_a_line() {
        Map<String, List<String>> headers = Map.of("x", List.of("1\r\ny: 2\u010D\u010A"));
        assertEquals("GET / HTTP/1.1\r\nx: 1  y: 2??\r\nhost: shop:80\r\n\r\n", head("/", null, headers, null));
    }

    @Test
    void what_no_target_may_have_is_written_by_its_number() {
        String first = head("/caf\u00E9 \r", "a=\"<\u00FF>\"", Map.of(), null).lines().findFirst().orElseThrow();
        assertEquals("GET /caf%E9%20%0D?a=%22%3C%FF%3E%22 HTTP/1.1", first);
    }

    @Test
    void the_code_of_a_place_is_in_the_query_and_no_other_form_is_read() {
        String position = "/shop/.well-known/suimon/position";
        Map<String, List<String>> small = Map.of("content-length", List.of("14"));
        String first = head("POST", position, null, small, null).lines().findFirst().orElseThrow();
        assertEquals("POST /shop/.well-known/suimon/position?code=K7M+2QX%26 HTTP/1.1", first);
        for (String other : List.of("GET " + position, "POST /shop/.well-known/suimon/code", "POST /shop/login",
                "POST /shop/pages/.well-known/suimon/position")) {
            String[] parts = other.split(" ");
            String line = head(parts[0], parts[1], "a=1", small, null).lines().findFirst().orElseThrow();
            assertEquals(other + "?a=1 HTTP/1.1", line);
        }
        for (Map<String, List<String>> large : List.of(
                Map.<String, List<String>>of(), Map.of("content-length", List.of("100000")))) {
            String line = head("POST", position, null, large, null).lines().findFirst().orElseThrow();
            assertEquals("POST " + position + " HTTP/1.1", line);
        }
    }

    @Test
    void a_path_is_written_as_it_stands_in_a_head() {
        assertEquals("", RequestHead.path(""));
        assertEquals("/shop/de", RequestHead.path("/shop/de"));
        assertEquals("/my%20shop%25/caf%C3%A9", RequestHead.path("/my shop%/caf\u00E9"));
        assertEquals("/-._~!$&'()*+,;=:@%3F%23%5B", RequestHead.path("/-._~!$&'()*+,;=:@?#["));
        // Characters that look the same are not the same.
        assertEquals("/%E2%84%AA/a%CC%88", RequestHead.path("/\u212A/a\u0308"));
    }

    @Test
    void only_the_parameter_of_the_session_is_taken_out() {
        assertEquals("/a/b;c=1", RequestHead.withoutParameter("/a;JSESSIONID=1/b;c=1;jsessionid=2", "JSESSIONID"));
        assertEquals("/a;jsessionid", RequestHead.withoutParameter("/a;jsessionid", "JSESSIONID"));
        assertEquals("/a;jsessionids=1", RequestHead.withoutParameter("/a;jsessionids=1", "JSESSIONID"));
        assertEquals("", RequestHead.withoutParameter("", "JSESSIONID"));
    }
}
