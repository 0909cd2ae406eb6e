package org.suimon.filter;

import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.nio.charset.IllegalCharsetNameException;
import java.nio.charset.StandardCharsets;
import java.nio.charset.UnsupportedCharsetException;

/** Text of a response, whose bytes are counted before they are written. */
final class GuardedWriter extends PrintWriter {
    private static final int LINE_END_BYTES = 2;
    private static final int ASCII_END = 0x80;

    private final PrintWriter to;
    private final GuardedResponse response;
    private final boolean isUtf8;
    private final double bytesPerChar;
    private final boolean isOfTomcat;

    GuardedWriter(PrintWriter to, String encoding, GuardedResponse response) {
        super(to);
        this.to = to;
        this.response = response;
        isOfTomcat = to.getClass().getName().startsWith("org.apache.catalina.connector.");
        Charset charset = charset(encoding);
        isUtf8 = charset.equals(StandardCharsets.UTF_8);
        bytesPerChar = !isUtf8 && charset.canEncode() ? charset.newEncoder().maxBytesPerChar() : 1;
    }

    private static Charset charset(String encoding) {
        try {
            return encoding == null ? StandardCharsets.ISO_8859_1 : Charset.forName(encoding);
        } catch (IllegalCharsetNameException | UnsupportedCharsetException unknown) {
            return StandardCharsets.ISO_8859_1;
        }
    }

    @Override
    public void write(int one) {
        response.writes(isUtf8 ? utf8((char) one) : most(1));
        to.write(one);
    }

    @Override
    public void write(char[] text, int from, int length) {
        response.writes(isUtf8 ? utf8(text, from, from + length) : most(length));
        to.write(text, from, length);
    }

    @Override
    public void write(String text, int from, int length) {
        long bytes = 0;
        for (int at = from; isUtf8 && at < from + length; at++) {
            bytes += utf8(text.charAt(at));
        }
        response.writes(isUtf8 ? bytes : most(length));
        to.write(text, from, length);
    }

    /** Most text is all ASCII, which is seen many letters at a time. */
    private static long utf8(char[] text, int from, int to) {
        int all = 0;
        for (int at = from; at < to; at++) {
            all |= text[at];
        }
        long bytes = all < ASCII_END ? to - from : 0;
        for (int at = from; all >= ASCII_END && at < to; at++) {
            bytes += utf8(text[at]);
        }
        return bytes;
    }

    /** Returns what a char takes; of a pair each half takes two. */
    private static int utf8(char one) {
        if (one < ASCII_END) {
            return 1;
        }
        return one < 0x800 || Character.isSurrogate(one) ? 2 : 3;
    }

    private long most(int chars) {
        return (long) Math.ceil(chars * bytesPerChar);
    }

    @Override
    public void println() {
        response.writes(LINE_END_BYTES);
        to.println();
    }

    @Override
    public void flush() {
        response.flushes();
        to.flush();
        notice();
    }

    @Override
    public void close() {
        response.flushes();
        to.close();
        notice();
    }

    /** Writers throw nothing where the client has left. Others than Tomcat's may have failed for reasons of their own. */
    private void notice() {
        if (isOfTomcat) {
            checkError();
        }
    }

    @Override
    public boolean checkError() {
        boolean failed = to.checkError();
        if (failed) {
            response.clientHasLeft();
        }
        return failed;
    }
}
