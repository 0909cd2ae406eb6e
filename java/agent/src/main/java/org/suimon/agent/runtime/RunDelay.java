package org.suimon.agent.runtime;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * How long those who take part in a question to the JVM were ready to run and had no processor: the
 * current thread, and the one of the JVM that answers. Linux tells; elsewhere it counts as none.
 */
final class RunDelay {
    private static final String THIS = "/proc/thread-self/schedstat";
    private static final File THREADS = new File("/proc/self/task");
    private static final String ANSWERS = "VM Thread";
    /** Three numbers: nanoseconds on a processor, nanoseconds waiting for one, turns. */
    private static final int LENGTH_MAX = 64;

    /** Where the JVM's thread is told of; empty: nowhere. */
    private static volatile String answers;

    private RunDelay() {
    }

    /** Returns the nanoseconds of both since they began; 0 where nobody tells. */
    static long now() {
        String other = answers;
        if (other == null) {
            other = find();
            answers = other;
        }
        return other.isEmpty() ? 0 : waited(read(THIS)) + waited(read(other));
    }

    private static String find() {
        File[] threads = THREADS.listFiles();
        for (File thread : threads == null ? new File[0] : threads) {
            if (new String(read(thread + "/comm"), StandardCharsets.US_ASCII).strip().equals(ANSWERS)) {
                return thread + "/schedstat";
            }
        }
        return "";
    }

    private static byte[] read(String file) {
        try (FileInputStream in = new FileInputStream(file)) {
            return in.readNBytes(LENGTH_MAX);
        } catch (IOException | SecurityException none) {
            return new byte[0];
        }
    }

    /** Returns the second number; 0 if there is none. */
    static long waited(byte[] text) {
        int at = 0;
        while (at < text.length && text[at] != ' ') {
            at++;
        }
        long number = 0;
        for (at++; at < text.length && text[at] >= '0' && text[at] <= '9'; at++) {
            number = number * 10 + text[at] - '0';
        }
        return number;
    }
}
