package org.suimon.filter;

/** The functions of {@code suimon.h}, one method each, with the same results. */
interface NativeLibrary {
    int OK = 0;
    int WAITS = 1;
    int ANSWERED = 2;
    int NOTHING = 3;
    int INVALID = -1;
    int UNKNOWN = -2;
    int TOO_SMALL = -3;
    int PANICKED = -4;
    int CLOSED = -5;

    /** Returns 0 on failure; the reply says why. */
    long openAt(byte[] settings, byte[] mountPath, Reply error);

    int enter(long server, byte[] head, int headLength, byte[] address, boolean isTls, Reply reply);

    int next(long server, int timeoutMs, Reply reply);

    int result(long server, long request, Reply reply);

    int leave(long server, long request);

    int answer(long server, long request, int status, byte[] lines, Reply reply);

    int end(long server, long request);

    int endAndNext(long server, long request, Reply reply);

    int fail(long server, long request);

    int state(long server, Reply reply);

    int admin(long server, Reply reply);

    void close(long server);
}
