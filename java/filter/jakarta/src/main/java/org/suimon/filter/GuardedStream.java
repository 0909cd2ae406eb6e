package org.suimon.filter;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import java.io.IOException;

/** Bytes of a response, counted before they are written. */
final class GuardedStream extends ServletOutputStream {
    private final ServletOutputStream to;
    private final GuardedResponse response;

    GuardedStream(ServletOutputStream to, GuardedResponse response) {
        this.to = to;
        this.response = response;
    }

    @Override
    public void write(int one) throws IOException {
        response.writes(1);
        try {
            to.write(one);
        } catch (IOException gone) {
            response.clientHasLeft();
            throw gone;
        }
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
        response.writes(length);
        noticed(() -> to.write(bytes, from, length));
    }

    @Override
    public void flush() throws IOException {
        response.flushes();
        noticed(to::flush);
    }

    @Override
    public void close() throws IOException {
        response.flushes();
        noticed(to::close);
    }

    @Override
    public boolean isReady() {
        return to.isReady();
    }

    @Override
    public void setWriteListener(WriteListener listener) {
        to.setWriteListener(listener);
    }

    private interface Writing {
        void carryOut() throws IOException;
    }

    private void noticed(Writing writing) throws IOException {
        try {
            writing.carryOut();
        } catch (IOException gone) {
            response.clientHasLeft();
            throw gone;
        }
    }
}
