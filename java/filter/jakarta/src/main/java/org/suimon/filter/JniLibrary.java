package org.suimon.filter;

/** The native library by JNI: for Java 17 to 21. */
final class JniLibrary implements NativeLibrary {
    /**
     * Opens the library at {@code path}. The functions between have been loaded.
     *
     * @throws UnsatisfiedLinkError if it cannot be opened, or is another version
     */
    JniLibrary(String path) {
        String fault = bind(path);
        if (fault != null) {
            throw new UnsatisfiedLinkError(fault);
        }
    }

    @Override
    public long openAt(byte[] settings, byte[] mountPath, Reply error) {
        long[] numbers = new long[2];
        long server = serverOpenAt(settings, mountPath, error.bytes, numbers);
        note(error, numbers);
        return server;
    }

    @Override
    public int enter(long server, byte[] head, int headLength, byte[] address, boolean isTls, Reply reply) {
        long[] numbers = new long[2];
        int result = serverEnter(server, head, headLength, address, isTls, reply.bytes, numbers);
        return noted(result, reply, numbers);
    }

    @Override
    public int next(long server, int timeoutMs, Reply reply) {
        long[] numbers = new long[2];
        return noted(serverNext(server, timeoutMs, reply.bytes, numbers), reply, numbers);
    }

    @Override
    public int result(long server, long request, Reply reply) {
        long[] numbers = new long[2];
        return noted(serverResult(server, request, reply.bytes, numbers), reply, numbers);
    }

    @Override
    public int leave(long server, long request) {
        return serverLeave(server, request);
    }

    @Override
    public int answer(long server, long request, int status, byte[] lines, Reply reply) {
        long[] numbers = new long[2];
        return noted(serverAnswer(server, request, status, lines, reply.bytes, numbers), reply, numbers);
    }

    @Override
    public int end(long server, long request) {
        return serverEnd(server, request);
    }

    @Override
    public int endAndNext(long server, long request, Reply reply) {
        long[] numbers = new long[2];
        return noted(serverEndAndNext(server, request, reply.bytes, numbers), reply, numbers);
    }

    @Override
    public int fail(long server, long request) {
        return serverFail(server, request);
    }

    @Override
    public int state(long server, Reply reply) {
        long[] numbers = new long[2];
        return noted(serverState(server, reply.bytes, numbers), reply, numbers);
    }

    @Override
    public int admin(long server, Reply reply) {
        long[] numbers = new long[2];
        return noted(serverAdmin(server, reply.bytes, numbers), reply, numbers);
    }

    @Override
    public void close(long server) {
        serverClose(server);
    }

    private static int noted(int result, Reply reply, long[] numbers) {
        note(reply, numbers);
        return result;
    }

    private static void note(Reply reply, long[] numbers) {
        reply.request = numbers[0];
        reply.length = Math.toIntExact(numbers[1]);
    }

    private static native String bind(String path);

    private static native long serverOpenAt(byte[] settings, byte[] mountPath, byte[] to, long[] numbers);

    private static native int serverEnter(
            long server, byte[] head, int headLength, byte[] address, boolean isTls, byte[] to, long[] numbers);

    private static native int serverNext(long server, int timeoutMs, byte[] to, long[] numbers);

    private static native int serverResult(long server, long request, byte[] to, long[] numbers);

    private static native int serverLeave(long server, long request);

    private static native int serverAnswer(
            long server, long request, int status, byte[] lines, byte[] to, long[] numbers);

    private static native int serverEnd(long server, long request);

    private static native int serverEndAndNext(long server, long request, byte[] to, long[] numbers);

    private static native int serverFail(long server, long request);

    private static native int serverState(long server, byte[] to, long[] numbers);

    private static native int serverAdmin(long server, byte[] to, long[] numbers);

    private static native void serverClose(long server);
}
