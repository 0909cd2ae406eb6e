package org.suimon.replay;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * Plays files of a recording to a gate, and holds it to every mark: replay.c in Java.
 *
 * <p>Prints a line for each file, as that one does. Arguments: {@code JniCalls}, the library and the functions
 * between, or {@code ForeignCalls} and the library; {@code --}; the files.
 */
public final class Replay {
    /** As in suimon.h. */
    private static final int OK = 0;
    private static final int NOTHING = 3;
    private static final int EVENT = 1;
    private static final int MARK = 2;
    private static final int START = 1;

    /** Fields of {@code suimon_recording_part}. */
    private static final int WHAT = 0;
    private static final int AT = 8;
    private static final int TRACE = 16;
    private static final int ANSWERS = 24;

    /** Of {@code suimon_buffer}: where its length stands. */
    private static final int LENGTH = 16;
    private static final int EVENT_BYTES = 1 << 18;
    /** More than {@code suimon_output} has. */
    private static final int OUTPUT_BYTES = 256;

    private final Calls calls;
    private final ByteBuffer part = memory(32);
    private final ByteBuffer output = memory(OUTPUT_BYTES);
    private final ByteBuffer number = memory(8);
    private final ByteBuffer bytes = memory(EVENT_BYTES);
    private final ByteBuffer buffer = memory(24);

    private Replay(Calls calls) {
        this.calls = calls;
        buffer.putLong(0, calls.address(bytes)).putLong(8, EVENT_BYTES);
    }

    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        int files = Arrays.asList(arguments).indexOf("--");
        Object[] of = Arrays.copyOfRange(arguments, 1, files);
        Constructor<?> made = Class.forName("org.suimon.replay." + arguments[0]).getDeclaredConstructors()[0];
        Replay replay = new Replay((Calls) made.newInstance(of));
        for (String file : Arrays.asList(arguments).subList(files + 1, arguments.length)) {
            System.out.println(replay.play(Path.of(file)));
        }
    }

    private String play(Path file) throws IOException {
        byte[] whole = Files.readAllBytes(file);
        ByteBuffer given = memory(whole.length).put(0, whole);
        long recording = call("recording_open", calls.address(given), whole.length, calls.address(buffer));
        long gate = call("gate_restore", calls.address(given), whole.length, calls.address(buffer));
        if (recording == 0 || gate == 0) {
            throw new IllegalArgumentException(file + ": " + text());
        }
        long events = 0;
        long marks = 0;
        long started = 0;
        long trace = 0;
        int told = (int) call("recording_next", recording, calls.address(part), calls.address(buffer));
        while (told == OK) {
            if (part.getInt(WHAT) == EVENT) {
                long taken = call("gate_apply", gate, part.getLong(AT), calls.address(bytes), buffer.getLong(LENGTH));
                if ((int) taken != OK) {
                    throw new IllegalStateException(file + ": event " + events + " is not taken");
                }
                started += settle(gate);
                events++;
            } else if (part.getInt(WHAT) == MARK) {
                trace = number("gate_trace", gate);
                if (trace != part.getLong(TRACE) || number("gate_answers", gate) != part.getLong(ANSWERS)) {
                    throw new IllegalStateException(file + ": other decisions before event " + events);
                }
                marks++;
            }
            told = (int) call("recording_next", recording, calls.address(part), calls.address(buffer));
        }
        if (told != NOTHING) {
            throw new IllegalStateException(file + ": " + text());
        }
        call("gate_close", gate);
        call("recording_close", recording);
        return String.format("%d events, %d marks, %d started, trace %016x", events, marks, started, trace);
    }

    /** Polls until there is nothing more, and returns how many requests were started. */
    private long settle(long gate) {
        long started = 0;
        while ((int) call("gate_poll", gate, calls.address(output)) == OK) {
            started += output.getInt(WHAT) == START ? 1 : 0;
        }
        return started;
    }

    private long number(String what, long gate) {
        call(what, gate, calls.address(number));
        return number.getLong(0);
    }

    private long call(String name, long... arguments) {
        long function = calls.function("suimon_" + name);
        if (function == 0) {
            throw new UnsatisfiedLinkError("suimon_" + name);
        }
        return calls.call(function, arguments);
    }

    private String text() {
        byte[] text = new byte[(int) Math.min(buffer.getLong(LENGTH), EVENT_BYTES)];
        bytes.get(0, text);
        return new String(text, StandardCharsets.UTF_8);
    }

    private static ByteBuffer memory(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }
}
