package org.suimon.filter;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** What a call of the native library has written. */
final class Reply {
    /** Enough for what an admitted request is told. */
    private static final int CAPACITY = 1024;

    byte[] bytes;
    int length;
    long request;

    Reply() {
        this(CAPACITY);
    }

    Reply(int capacity) {
        bytes = new byte[capacity];
    }

    /** Makes room for what did not fit: {@link #length} says how much it is. */
    void grow() {
        bytes = new byte[Math.max(length, bytes.length)];
    }

    /** Returns the bytes themselves, a copy. */
    byte[] copy() {
        return Arrays.copyOf(bytes, Math.min(length, bytes.length));
    }

    /** Returns the lines of a head. */
    String head() {
        return new String(bytes, 0, Math.min(length, bytes.length), StandardCharsets.ISO_8859_1);
    }

    /** Returns text. */
    String text() {
        return new String(bytes, 0, Math.min(length, bytes.length), StandardCharsets.UTF_8);
    }
}
