package org.suimon.filter;

import java.nio.charset.StandardCharsets;

/**
 * The lines of an answer's head that the gate is told. The library takes all of them or none: one that it cannot read,
 * or that is too much, is left out.
 */
final class AnswerLines {
    /** What the library takes, of {@code suimon_server_answer} in {@code suimon.h}. */
    private static final int LINES_MAX = 256;
    private static final int BYTES_MAX = 64 << 10;
    private static final String TOKEN = "!#$%&'*+-.^_`|~";

    private final StringBuilder lines = new StringBuilder();
    private int count;

    /** Adds a header, unless its value is null. */
    void add(String name, String value) {
        if (value == null || !isName(name)) {
            return;
        }
        String line = name + ": " + value.replace('\r', ' ').replace('\n', ' ') + "\r\n";
        if (count < LINES_MAX && lines.length() + line.length() <= BYTES_MAX && isValue(value)) {
            lines.append(line);
            count++;
        }
    }

    private static boolean isName(String name) {
        return !name.isEmpty()
                && name.chars().allMatch(one -> one < 0x80 && Character.isLetterOrDigit(one) || TOKEN.indexOf(one) >= 0);
    }

    private static boolean isValue(String value) {
        return value.chars().noneMatch(one -> one < ' ' && one != '\t' && one != '\r' && one != '\n' || one == 0x7F);
    }

    /** Returns whether a text is in them. */
    boolean contain(String text) {
        return lines.indexOf(text) >= 0;
    }

    byte[] bytes() {
        return lines.toString().getBytes(StandardCharsets.ISO_8859_1);
    }
}
