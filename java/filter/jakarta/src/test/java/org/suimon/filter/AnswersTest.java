package org.suimon.filter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class AnswersTest {
    @Test
    void changes_are_read_line_by_line() {
        HeaderChanges changes = HeaderChanges.parse("+set-cookie: a=b; Path=/\r\n=cache-control: private\r\n-Suimon-Line\r\n");
        assertEquals(
                List.of(
                        new HeaderChanges.Change(HeaderChanges.Deed.ADD, "set-cookie", "a=b; Path=/"),
                        new HeaderChanges.Change(HeaderChanges.Deed.SET, "cache-control", "private"),
                        new HeaderChanges.Change(HeaderChanges.Deed.REMOVE, "Suimon-Line", "")),
                changes.changes());
        assertTrue(changes.removes("suimon-line"));
        assertFalse(changes.removes("cache-control"));
        assertEquals(List.of(), HeaderChanges.parse("").changes());
    }

    @Test
    void what_the_library_does_not_read_is_left_out() {
        AnswerLines lines = new AnswerLines();
        lines.add("Set-Cookie", "a=b");
        lines.add("Set-Cookie", "odd=\u0001");
        lines.add("Suimon-Odd Name", "x");
        lines.add("Suimon-Session", null);
        lines.add("Cache-Control", "public,\r\n\tmax-age=1\u00E9");
        assertEquals("Set-Cookie: a=b\r\nCache-Control: public,  \tmax-age=1\u00E9\r\n",
                new String(lines.bytes(), StandardCharsets.ISO_8859_1));
        assertTrue(lines.contain("a="));
    }

    @Test
    void what_is_too_much_for_the_library_is_left_out() {
        AnswerLines many = new AnswerLines();
        AnswerLines large = new AnswerLines();
        for (int at = 0; at < 300; at++) {
            many.add("A", "b");
            large.add("A", "b".repeat(1000));
        }
        assertEquals("A: b\r\n".repeat(256), new String(many.bytes(), StandardCharsets.ISO_8859_1));
        assertEquals(("A: " + "b".repeat(1000) + "\r\n").repeat(65), new String(large.bytes(), StandardCharsets.ISO_8859_1));
    }

    @Test
    void a_whole_answer_is_written_as_it_is() throws IOException {
        List<String> calls = new ArrayList<>();
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        HttpServletResponse response = Stub.of(HttpServletResponse.class, (method, arguments) -> {
            if (method.equals("getOutputStream")) {
                return to(body);
            }
            calls.add(method + Arrays.toString(arguments));
            return null;
        });
        String answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/html\r\nretry-after: 5\r\n"
                + "set-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 4\r\nconnection: close\r\n\r\n\u00E9\r\n\r";
        new WholeAnswer(answer.getBytes(StandardCharsets.ISO_8859_1)).write(response);
        assertEquals(
                List.of("resetBuffer[]", "setStatus[503]", "setContentType[text/html]", "setHeader[retry-after, 5]",
                        "addHeader[set-cookie, a=1]", "addHeader[set-cookie, b=2]", "setHeader[content-length, 4]", "flushBuffer[]"),
                calls);
        assertEquals("\u00E9\r\n\r", body.toString(StandardCharsets.ISO_8859_1));
    }

    private static ServletOutputStream to(ByteArrayOutputStream body) {
        return new ServletOutputStream() {
            @Override
            public void write(int one) {
                body.write(one);
            }

            @Override
            public boolean isReady() {
                return true;
            }

            @Override
            public void setWriteListener(WriteListener listener) {
                throw new UnsupportedOperationException();
            }
        };
    }
}
