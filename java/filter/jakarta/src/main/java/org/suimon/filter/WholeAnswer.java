package org.suimon.filter;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;

/** An answer of the library: to a request that is refused, or waits in line. */
final class WholeAnswer {
    private static final byte[] END_OF_HEAD = "\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    /** What the container writes for its own connection. */
    private static final Set<String> OF_CONNECTION =
            Set.of("connection", "keep-alive", "transfer-encoding", "date");

    private final byte[] bytes;

    WholeAnswer(byte[] bytes) {
        this.bytes = bytes;
    }

    /** Writes it as it is. */
    void write(HttpServletResponse response) throws IOException {
        int end = endOfHead();
        String[] lines = new String(bytes, 0, end, StandardCharsets.ISO_8859_1).split("\r\n");
        response.resetBuffer();
        response.setStatus(Integer.parseInt(lines[0].split(" ")[1]));
        Set<String> seen = new HashSet<>();
        for (String line : Arrays.asList(lines).subList(1, lines.length)) {
            int colon = line.indexOf(':');
            String name = line.substring(0, colon).toLowerCase(Locale.ROOT);
            String value = line.substring(colon + 1).strip();
            if (OF_CONNECTION.contains(name)) {
                continue;
            }
            if (name.equals("content-type")) {
                response.setContentType(value);
            } else if (seen.add(name) && !name.equals("set-cookie")) {
                response.setHeader(name, value);
            } else {
                response.addHeader(name, value);
            }
        }
        int start = Math.min(end + END_OF_HEAD.length, bytes.length);
        response.getOutputStream().write(bytes, start, bytes.length - start);
        response.flushBuffer();
    }

    private int endOfHead() {
        int at = 0;
        while (at + END_OF_HEAD.length <= bytes.length) {
            if (Arrays.equals(bytes, at, at + END_OF_HEAD.length, END_OF_HEAD, 0, END_OF_HEAD.length)) {
                return at;
            }
            at++;
        }
        throw new IllegalArgumentException("an answer without an end of its head");
    }
}
