package org.suimon.replay;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Calls by JNI. */
final class JniCalls implements Calls {
    private final long library;

    /** Opens the library at {@code path}; {@code functions} is where those between are. */
    JniCalls(String path, String functions) {
        System.load(functions);
        library = open(path);
        if (library == 0) {
            throw new UnsatisfiedLinkError(path);
        }
    }

    @Override
    public long function(String name) {
        return find(library, name);
    }

    @Override
    public long call(long function, long... arguments) {
        return invoke(function, Arrays.copyOf(arguments, ARGUMENTS_MAX));
    }

    @Override
    public long address(ByteBuffer direct) {
        return addressOf(direct);
    }

    private static native long open(String path);

    private static native long find(long library, String name);

    private static native long invoke(long function, long[] arguments);

    private static native long addressOf(ByteBuffer direct);
}
