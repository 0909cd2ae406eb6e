package org.suimon.replay;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** Calls by the Foreign Function API: from Java 22 on. */
final class ForeignCalls implements Calls {
    private static final FunctionDescriptor SHAPE =
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    private final SymbolLookup library;
    private final MethodHandle call = Linker.nativeLinker().downcallHandle(SHAPE);

    /** Opens the library at {@code path}. */
    ForeignCalls(String path) {
        library = SymbolLookup.libraryLookup(path, Arena.global());
    }

    @Override
    public long function(String name) {
        return library.find(name).orElse(MemorySegment.NULL).address();
    }

    @Override
    public long call(long function, long... arguments) {
        long[] four = Arrays.copyOf(arguments, ARGUMENTS_MAX);
        try {
            return (long) call.invokeExact(MemorySegment.ofAddress(function), four[0], four[1], four[2], four[3]);
        } catch (Throwable impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public long address(ByteBuffer direct) {
        return MemorySegment.ofBuffer(direct).address();
    }
}
