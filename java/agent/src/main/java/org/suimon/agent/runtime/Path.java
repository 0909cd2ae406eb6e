package org.suimon.agent.runtime;

import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * Where a thread is: its frames, from the innermost to that in which the server handed it the request,
 * each with the place in its code. Java code takes monitors and gives them back in pairs, so a thread
 * that is at the same places holds as many as the one before it.
 */
final class Path implements Consumer<StackWalker.StackFrame> {
    /** Frames of a path; what is deeper is not known. */
    static final int FRAMES_MAX = 512;

    private static final StackWalker WALKER = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
    /** Native code may hold monitors anywhere, but for the JDK's that only calls. */
    private static final List<String> CALLERS =
            List.of("jdk.internal.reflect.", "java.lang.reflect.", "java.lang.invoke.", "java.security.AccessController");

    private final List<String> ends;
    private String[] names = new String[64];
    private int[] places = new int[64];
    private int size;
    private boolean isOver;
    private boolean isUnknown;

    private Path(List<String> ends) {
        this.ends = ends;
    }

    /** Returns that of the current thread, to a frame of one of these methods; null: it cannot be known. */
    static Path here(List<String> ends) {
        Path path = new Path(ends);
        WALKER.forEach(path);
        return path.isUnknown ? null : path;
    }

    @Override
    public void accept(StackWalker.StackFrame frame) {
        if (isOver || isUnknown) {
            return;
        }
        String type = frame.getClassName();
        if (size / 2 == FRAMES_MAX || frame.isNativeMethod() && !isCaller(type)) {
            isUnknown = true;
            return;
        }
        if (size == names.length) {
            names = Arrays.copyOf(names, 2 * size);
            places = Arrays.copyOf(places, 2 * size);
        }
        names[size] = type;
        // Two applications may have classes of one name.
        places[size] = System.identityHashCode(frame.getDeclaringClass());
        names[size + 1] = frame.getMethodName();
        places[size + 1] = frame.getByteCodeIndex();
        size += 2;
        isOver = LockCheck.isOneOf(ends, type, frame.getMethodName());
    }

    private static boolean isCaller(String type) {
        for (String caller : CALLERS) {
            if (type.startsWith(caller)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Path path && Arrays.equals(places, 0, size, path.places, 0, path.size)
                && Arrays.equals(names, 0, size, path.names, 0, path.size);
    }

    @Override
    public int hashCode() {
        int hash = size;
        for (int i = 0; i < size; i++) {
            hash = 31 * hash + places[i];
        }
        return hash;
    }
}
