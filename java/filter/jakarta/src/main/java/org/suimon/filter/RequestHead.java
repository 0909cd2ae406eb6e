package org.suimon.filter;

import jakarta.servlet.http.HttpServletRequest;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.concurrent.Semaphore;

/** The head of a request as bytes, the way a client sends it. */
final class RequestHead {
    private static final int BEGINS_WITH = 1024;
    private static final String HEX = "0123456789ABCDEF";
    /** What stands for itself in a path, beside letters and digits of ASCII: RFC 3986, 3.3, and the slash. */
    private static final String IN_PATHS = "/-._~!$&'()*+,;=:@";
    /** Where a visitor enters the code of a place: the one form that is for the gate. */
    private static final String POSITION = "/.well-known/suimon/position";
    /** A code has some ten characters. */
    private static final int FORM_BYTES_MAX = 1024;
    /** Threads that wait for such a form at a time, at most: its client may send it as slowly as it likes. */
    private static final int FORMS_MAX = 4;
    private static final Semaphore FORMS = new Semaphore(FORMS_MAX);

    private byte[] bytes = new byte[BEGINS_WITH];
    private int length;

    /**
     * Writes the head of a request.
     *
     * @param sessionCookie what the session's cookie is called
     */
    RequestHead(HttpServletRequest request, String sessionCookie) {
        value(request.getMethod());
        add(' ');
        String path = request.getRequestURI();
        boolean hasSessionInPath = request.isRequestedSessionIdFromURL();
        target(hasSessionInPath ? withoutParameter(path, sessionCookie) : path);
        String query = query(request);
        if (query != null) {
            add('?');
            target(query);
        }
        value(" HTTP/1.1");
        newLine();
        boolean hasHost = false;
        for (Enumeration<String> names = request.getHeaderNames(); names.hasMoreElements(); ) {
            String name = names.nextElement();
            hasHost |= name.equalsIgnoreCase("host");
            for (Enumeration<String> values = request.getHeaders(name); values.hasMoreElements(); ) {
                header(name, values.nextElement());
            }
        }
        if (!hasHost) {
            header("host", request.getServerName() + ":" + request.getServerPort());
        }
        if (hasSessionInPath) {
            header("cookie", sessionCookie + "=" + request.getRequestedSessionId());
        }
        newLine();
    }

    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    /** Returns the query. The library reads no bodies: the form that is for it goes there. */
    private static String query(HttpServletRequest request) {
        String path = request.getRequestURI();
        // Not the request's own context path: Tomcat cannot say that of every path.
        boolean isForm = request.getMethod().equals("POST")
                && path.endsWith(POSITION)
                && path.equals(path(request.getServletContext().getContextPath()) + POSITION)
                && isSmall(request.getContentLengthLong());
        String code = isForm && FORMS.tryAcquire() ? codeOf(request) : null;
        return code == null ? request.getQueryString() : "code=" + URLEncoder.encode(code, StandardCharsets.UTF_8);
    }

    private static String codeOf(HttpServletRequest request) {
        try {
            return request.getParameter("code");
        } finally {
            FORMS.release();
        }
    }

    /** Returns whether a body may be read on the thread of its request. Of one without a length that cannot be known. */
    private static boolean isSmall(long length) {
        return length >= 0 && length <= FORM_BYTES_MAX;
    }

    private void header(String name, String value) {
        value(name);
        value(": ");
        value(value);
        newLine();
    }

    private void newLine() {
        add('\r');
        add('\n');
    }

    /** Adds text of one line; what could end the line is a blank. */
    private void value(String text) {
        int end = text.length();
        room(end);
        for (int at = 0; at < end; at++) {
            char one = text.charAt(at);
            boolean endsLine = one == '\r' || one == '\n' || one == 0;
            bytes[length++] = (byte) (endsLine ? ' ' : one > 0xFF ? '?' : one);
        }
    }

    /** Adds a part of the request's target; what no target may have is written by its number. */
    private void target(String text) {
        int end = text.length();
        room(3 * end);
        for (int at = 0; at < end; at++) {
            char one = text.charAt(at);
            if (one > ' ' && one < 0x7F && one != '"' && one != '<' && one != '>') {
                bytes[length++] = (byte) one;
            } else {
                bytes[length++] = '%';
                bytes[length++] = (byte) HEX.charAt(one >> 4 & 0xF);
                bytes[length++] = (byte) HEX.charAt(one & 0xF);
            }
        }
    }

    private void add(char one) {
        room(1);
        bytes[length++] = (byte) one;
    }

    private void room(int more) {
        if (length + more > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, length + more));
        }
    }

    /**
     * Returns a path as it stands in the heads of requests: what it names, each octet of other characters by its number.
     * Not by {@link java.net.URI}: that takes one character for another that looks the same, and they are two paths.
     */
    static String path(String named) {
        StringBuilder path = new StringBuilder(named.length() + 16);
        for (byte octet : named.getBytes(StandardCharsets.UTF_8)) {
            if (standsInPaths((char) (octet & 0xFF))) {
                path.append((char) octet);
            } else {
                path.append('%').append(HEX.charAt(octet >> 4 & 0xF)).append(HEX.charAt(octet & 0xF));
            }
        }
        return path.toString();
    }

    /** Returns whether a character means itself in a path. */
    static boolean standsInPaths(char one) {
        return one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z' || one >= '0' && one <= '9' || IN_PATHS.indexOf(one) >= 0;
    }

    /** Returns the path without the parameter that carries the session, whatever its letters' case. */
    static String withoutParameter(String path, String name) {
        StringBuilder rest = new StringBuilder(path.length());
        int at = 0;
        while (at < path.length()) {
            int end = at + 1;
            while (end < path.length() && path.charAt(end) != ';' && path.charAt(end) != '/') {
                end++;
            }
            boolean isIt = path.charAt(at) == ';'
                    && path.regionMatches(true, at + 1, name, 0, name.length())
                    && at + 1 + name.length() < end
                    && path.charAt(at + 1 + name.length()) == '=';
            if (!isIt) {
                rest.append(path, at, end);
            }
            at = end;
        }
        return rest.toString();
    }
}
