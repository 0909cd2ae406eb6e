package org.suimon.filter;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.concurrent.ConcurrentLinkedQueue;

/** The native library by the Foreign Function API: from Java 22 on. */
@SuppressWarnings("restricted")
final class ForeignLibrary implements NativeLibrary {
    private final ConcurrentLinkedQueue<Scratch> free = new ConcurrentLinkedQueue<>();
    private final MethodHandle serverOpenAt;
    private final MethodHandle serverEnter;
    private final MethodHandle serverNext;
    private final MethodHandle serverResult;
    private final MethodHandle serverLeave;
    private final MethodHandle serverAnswer;
    private final MethodHandle serverEnd;
    private final MethodHandle serverEndAndNext;
    private final MethodHandle serverFail;
    private final MethodHandle serverState;
    private final MethodHandle serverAdmin;
    private final MethodHandle serverClose;

    /**
     * Opens the library at {@code path}, for as long as the process lives.
     *
     * @throws UnsatisfiedLinkError if it is another version
     */
    ForeignLibrary(String path) {
        SymbolLookup library = SymbolLookup.libraryLookup(path, Arena.global());
        serverOpenAt = find(library, "open_at", FunctionDescriptor.of(
                ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS));
        serverEnter = find(library, "enter", FunctionDescriptor.of(
                JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_INT, ADDRESS, ADDRESS));
        serverNext = find(library, "next", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, ADDRESS));
        serverResult = find(library, "result", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS));
        serverLeave = find(library, "leave", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG));
        serverAnswer = find(library, "answer", FunctionDescriptor.of(
                JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS));
        serverEnd = find(library, "end", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG));
        serverEndAndNext = find(library, "end_and_next", FunctionDescriptor.of(
                JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS));
        serverFail = find(library, "fail", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG));
        serverState = find(library, "state", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
        serverAdmin = find(library, "admin", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
        serverClose = find(library, "close", FunctionDescriptor.ofVoid(ADDRESS));
    }

    private static MethodHandle find(SymbolLookup library, String name, FunctionDescriptor shape) {
        MemorySegment function = library.find("suimon_server_" + name)
                .orElseThrow(() -> new UnsatisfiedLinkError("no suimon_server_" + name + " in the native library"));
        return Linker.nativeLinker().downcallHandle(function, shape);
    }

    @Override
    public long openAt(byte[] settings, byte[] mountPath, Reply error) {
        return with(scratch -> {
            MemorySegment text = scratch.input(settings, settings.length, mountPath.length);
            MemorySegment path = text.asSlice(settings.length, mountPath.length);
            MemorySegment.copy(mountPath, 0, path, JAVA_BYTE, 0, mountPath.length);
            MemorySegment buffer = scratch.buffer(error);
            MemorySegment server = (MemorySegment) serverOpenAt.invokeExact(
                    text, (long) settings.length, path, (long) mountPath.length, buffer);
            scratch.hand(error, 0);
            return server.address();
        });
    }

    @Override
    public int enter(long server, byte[] head, int headLength, byte[] address, boolean isTls, Reply reply) {
        return (int) with(scratch -> {
            MemorySegment text = scratch.input(head, headLength, address.length);
            MemorySegment client = text.asSlice(headLength, address.length);
            MemorySegment.copy(address, 0, client, JAVA_BYTE, 0, address.length);
            MemorySegment buffer = scratch.buffer(reply);
            int result = (int) serverEnter.invokeExact(MemorySegment.ofAddress(server), text, (long) headLength,
                    client, (long) address.length, isTls ? 1 : 0, scratch.request, buffer);
            scratch.hand(reply, scratch.request.get(JAVA_LONG, 0));
            return result;
        });
    }

    @Override
    public int next(long server, int timeoutMs, Reply reply) {
        return (int) with(scratch -> {
            MemorySegment buffer = scratch.buffer(reply);
            int result = (int) serverNext.invokeExact(
                    MemorySegment.ofAddress(server), timeoutMs, scratch.request, buffer);
            scratch.hand(reply, scratch.request.get(JAVA_LONG, 0));
            return result;
        });
    }

    @Override
    public int result(long server, long request, Reply reply) {
        return (int) with(scratch -> {
            MemorySegment buffer = scratch.buffer(reply);
            int result = (int) serverResult.invokeExact(MemorySegment.ofAddress(server), request, buffer);
            scratch.hand(reply, request);
            return result;
        });
    }

    @Override
    public int leave(long server, long request) {
        return (int) with(scratch -> (int) serverLeave.invokeExact(MemorySegment.ofAddress(server), request));
    }

    @Override
    public int answer(long server, long request, int status, byte[] lines, Reply reply) {
        return (int) with(scratch -> {
            MemorySegment said = scratch.input(lines, lines.length, 0);
            MemorySegment buffer = scratch.buffer(reply);
            int result = (int) serverAnswer.invokeExact(
                    MemorySegment.ofAddress(server), request, status, said, (long) lines.length, buffer);
            scratch.hand(reply, request);
            return result;
        });
    }

    @Override
    public int end(long server, long request) {
        return (int) with(scratch -> (int) serverEnd.invokeExact(MemorySegment.ofAddress(server), request));
    }

    @Override
    public int endAndNext(long server, long request, Reply reply) {
        return (int) with(scratch -> {
            MemorySegment buffer = scratch.buffer(reply);
            int result = (int) serverEndAndNext.invokeExact(
                    MemorySegment.ofAddress(server), request, scratch.request, buffer);
            scratch.hand(reply, scratch.request.get(JAVA_LONG, 0));
            return result;
        });
    }

    @Override
    public int fail(long server, long request) {
        return (int) with(scratch -> (int) serverFail.invokeExact(MemorySegment.ofAddress(server), request));
    }

    @Override
    public int state(long server, Reply reply) {
        return tell(serverState, server, reply);
    }

    @Override
    public int admin(long server, Reply reply) {
        return tell(serverAdmin, server, reply);
    }

    @Override
    public void close(long server) {
        with(scratch -> {
            serverClose.invokeExact(MemorySegment.ofAddress(server));
            return 0;
        });
    }

    private int tell(MethodHandle what, long server, Reply reply) {
        return (int) with(scratch -> {
            MemorySegment buffer = scratch.buffer(reply);
            int result = (int) what.invokeExact(MemorySegment.ofAddress(server), buffer);
            scratch.hand(reply, 0);
            return result;
        });
    }

    /** A call, and what it needs beside the heap. */
    private interface Call {
        long with(Scratch scratch) throws Throwable;
    }

    /** Carries out a call. There are as many pieces of scratch memory as calls have ever been at once. */
    private long with(Call call) {
        Scratch kept = free.poll();
        Scratch scratch = kept != null ? kept : new Scratch();
        try {
            return call.with(scratch);
        } catch (RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new IllegalStateException(impossible);
        } finally {
            if (scratch.isSmall()) {
                free.add(scratch);
            }
        }
    }

    /** Memory that C can read and write; it goes with the collector, when this loader does. */
    private static final class Scratch {
        /** Above it, memory is not kept for the next call. */
        private static final long KEPT_MAX = 64 << 10;

        private static final MemoryLayout BUFFER = MemoryLayout.structLayout(ADDRESS, JAVA_LONG, JAVA_LONG);
        private static final long CAPACITY_AT = ADDRESS.byteSize();
        private static final long LENGTH_AT = CAPACITY_AT + JAVA_LONG.byteSize();

        private final Arena arena = Arena.ofAuto();
        final MemorySegment request = arena.allocate(JAVA_LONG);
        private final MemorySegment buffer = arena.allocate(BUFFER);
        private MemorySegment input = arena.allocate(4096);
        private MemorySegment output = arena.allocate(4096);

        /** Copies {@code bytes} to where C reads them, with room for {@code more} behind them. */
        MemorySegment input(byte[] bytes, int length, int more) {
            if (input.byteSize() < (long) length + more) {
                input = Arena.ofAuto().allocate((long) length + more);
            }
            MemorySegment.copy(bytes, 0, input, JAVA_BYTE, 0, length);
            return input;
        }

        /** Returns a buffer as large as the reply. */
        MemorySegment buffer(Reply reply) {
            if (output.byteSize() < reply.bytes.length) {
                output = Arena.ofAuto().allocate(reply.bytes.length);
            }
            request.set(JAVA_LONG, 0, 0);
            buffer.set(ADDRESS, 0, output);
            buffer.set(JAVA_LONG, CAPACITY_AT, reply.bytes.length);
            buffer.set(JAVA_LONG, LENGTH_AT, 0);
            return buffer;
        }

        /** Hands over what was written, as far as it fits. */
        void hand(Reply reply, long number) {
            reply.request = number;
            reply.length = Math.toIntExact(buffer.get(JAVA_LONG, LENGTH_AT));
            if (reply.length <= reply.bytes.length) {
                MemorySegment.copy(output, JAVA_BYTE, 0, reply.bytes, 0, reply.length);
            }
        }

        boolean isSmall() {
            return input.byteSize() <= KEPT_MAX && output.byteSize() <= KEPT_MAX;
        }
    }
}
