package org.suimon.filter;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.ServletResponseWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import jakarta.servlet.http.HttpSession;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.function.IntSupplier;

/**
 * The response of a request that has been let in. It notices when the head is about to go out, tells it to the
 * gate, and changes in it what the gate says.
 */
final class GuardedResponse extends HttpServletResponseWrapper {
    private static final String LENGTH = "Content-Length";
    private static final String SET_COOKIE = HeaderChanges.SET_COOKIE;
    private static final String CACHE_CONTROL = HeaderChanges.CACHE_CONTROL;
    private static final List<String> TOLD = List.of(CACHE_CONTROL, SET_COOKIE);
    /** Headers of the gate that stand beside those of the application. Of any other the application's own is enough. */
    private static final List<String> BESIDE = List.of(CACHE_CONTROL, SET_COOKIE, "Server-Timing");
    /** They hold a slot until their head alone, as at a gateway. */
    private static final List<String> STREAMS =
            List.of("text/event-stream", "multipart/x-mixed-replace", "application/grpc");
    /** Of Servlet 6.1; null in an older container. */
    private static final MethodHandle REDIRECT = redirect();

    /** The response as it came, below what includes and forwards put between. */
    private final HttpServletResponse arrived;
    private final GuardedRequest request;
    private final Permit permit;
    private final String sessionCookie;
    /** Of the request: whatever stands around the response, its answer is one. */
    private final KeptHeaders kept;
    private long written;
    private int bufferSize;
    /** Whether the head is told and what was kept of it has gone on: bytes need not be counted any more. */
    private boolean isConcluded;
    private boolean hasSentError;
    private long contentLength = -1;
    private GuardedStream stream;
    private GuardedWriter writer;

    GuardedResponse(HttpServletResponse arrived, GuardedRequest request, Permit permit, String sessionCookie) {
        super(arrived);
        this.arrived = arrived;
        this.request = request;
        this.permit = permit;
        this.sessionCookie = sessionCookie;
        kept = permit.kept();
    }

    /** Returns the guard of a permit's that stands somewhere within a response, else null. */
    static GuardedResponse within(ServletResponse response, Permit permit) {
        for (ServletResponse at = response; at instanceof ServletResponseWrapper outer; at = outer.getResponse()) {
            if (outer instanceof GuardedResponse guarded && guarded.permit == permit) {
                return guarded;
            }
        }
        return null;
    }

    private static MethodHandle redirect() {
        try {
            MethodType type = MethodType.methodType(void.class, String.class, int.class, boolean.class);
            return MethodHandles.publicLookup().findVirtual(HttpServletResponse.class, "sendRedirect", type);
        } catch (ReflectiveOperationException older) {
            return null;
        }
    }

    /** Tells the head to the gate, with this status, unless that is done. After it the head may go out. */
    void conclude(int status) {
        // Whoever comes second, on whichever thread, finds the head as it goes out.
        synchronized (kept) {
            if (permit.isAnswered()) {
                kept.release(HeaderChanges.NONE, arrived::addHeader);
                isConcluded = true;
                return;
            }
            HeaderChanges changes = permit.answer(status, lines());
            if (changes == null) {
                return;
            }
            kept.release(changes, arrived::addHeader);
            apply(changes);
            isConcluded = true;
        }
        if (isStream()) {
            permit.end();
        }
    }

    private void apply(HeaderChanges changes) {
        // Two lines of one name may both be the gate's, so all are looked at before any is added.
        for (HeaderChanges.Change change : changes.changes().stream().filter(this::isDue).toList()) {
            switch (change.deed()) {
                case ADD -> arrived.addHeader(change.name(), change.value());
                case SET -> arrived.setHeader(change.name(), change.value());
                // Null takes it out from Servlet 6.1 on; what the gate takes out is mostly kept here.
                case REMOVE -> arrived.setHeader(change.name(), null);
            }
        }
    }

    private boolean isDue(HeaderChanges.Change change) {
        return change.deed() != HeaderChanges.Deed.ADD
                || BESIDE.stream().anyMatch(change.name()::equalsIgnoreCase)
                || !arrived.containsHeader(change.name());
    }

    /** The same on a thread of the application's, whose container may have ended the request meanwhile. */
    void concludeIfThere(IntSupplier status) {
        if (permit.isOver()) {
            return;
        }
        try {
            conclude(status.getAsInt());
        } catch (IllegalStateException | NullPointerException ended) {
            // Containers take the response back from under its facade.
        }
    }

    private boolean isStream() {
        String type = arrived.getContentType();
        for (String stream : STREAMS) {
            if (type != null && type.regionMatches(true, 0, stream, 0, stream.length())) {
                return true;
            }
        }
        return "no".equalsIgnoreCase(arrived.getHeader("X-Accel-Buffering"));
    }

    /** Returns the lines of the head that the gate asks for: those first that are few and matter most. */
    private byte[] lines() {
        AnswerLines lines = new AnswerLines();
        kept.forEach(lines::add);
        lines.add("Content-Type", arrived.getContentType());
        String begun = null;
        try {
            if (request.hasLostSession()) {
                lines.add("Suimon-Session", "end");
            }
            HttpSession session = request.newSession();
            begun = session == null ? null : session.getId();
        } catch (IllegalStateException over) {
            // A session that has ended meanwhile says nothing.
        }
        TOLD.forEach(name -> arrived.getHeaders(name).forEach(value -> lines.add(name, value)));
        // Some containers write the cookie only later.
        if (begun != null && !lines.contain(sessionCookie + "=")) {
            lines.add("Set-Cookie", sessionCookie + "=" + begun);
        }
        return lines.bytes();
    }

    /** Takes note of bytes that are about to be written, which may fill the buffer. */
    void writes(long bytes) {
        // Some applications write byte by byte.
        if (isConcluded) {
            return;
        }
        if (written == 0) {
            // It stays the same from the first byte on.
            bufferSize = arrived.getBufferSize();
        }
        written += bytes;
        if (written >= bufferSize || contentLength >= 0 && written >= contentLength) {
            conclude(getStatus());
        }
    }

    /** Takes note of the length that the answer will have. Containers take it for complete once so much is written. */
    private void hasLength(long length) {
        contentLength = length;
        if (length > 0 && written >= length) {
            conclude(getStatus());
        }
    }

    private void noteLength(String name, String value) {
        if (LENGTH.equalsIgnoreCase(name)) {
            try {
                hasLength(value == null ? -1 : Long.parseLong(value.strip()));
            } catch (NumberFormatException odd) {
                // The container's to judge.
            }
        }
    }

    /** Takes note that all that was written is about to go out. */
    void flushes() {
        conclude(getStatus());
    }

    /** Takes note that nothing can be written to the client any more. */
    void clientHasLeft() {
        permit.leave();
    }

    @Override
    public ServletOutputStream getOutputStream() throws IOException {
        if (stream == null) {
            stream = new GuardedStream(super.getOutputStream(), this);
        }
        return stream;
    }

    @Override
    public PrintWriter getWriter() throws IOException {
        if (writer == null) {
            writer = new GuardedWriter(super.getWriter(), getCharacterEncoding(), this);
        }
        return writer;
    }

    @Override
    public void flushBuffer() throws IOException {
        flushes();
        try {
            super.flushBuffer();
        } catch (IOException gone) {
            clientHasLeft();
            throw gone;
        }
    }

    @Override
    public void reset() {
        super.reset();
        kept.reset();
        written = 0;
        contentLength = -1;
        stream = null;
        writer = null;
        // Told once, it holds for what comes instead.
        apply(permit.changes());
        if (isSettled(CACHE_CONTROL) && !arrived.containsHeader(CACHE_CONTROL)) {
            // The application had said as much itself, and takes it back.
            arrived.setHeader(CACHE_CONTROL, "private");
        }
    }

    @Override
    public void resetBuffer() {
        super.resetBuffer();
        written = 0;
    }

    /** Returns whether the application has asked its container for an error page. */
    boolean hasSentError() {
        return hasSentError;
    }

    @Override
    public void sendError(int status) throws IOException {
        ends(status);
        super.sendError(status);
        hasSentError |= !isIncluded();
    }

    @Override
    public void sendError(int status, String message) throws IOException {
        ends(status);
        super.sendError(status, message);
        hasSentError |= !isIncluded();
    }

    @Override
    public void sendRedirect(String location) throws IOException {
        ends(SC_FOUND);
        super.sendRedirect(location);
    }

    /** Takes note that the answer is about to end with this status. */
    private void ends(int status) {
        if (!isIncluded()) {
            conclude(status);
        }
    }

    /** Returns whether the application writes a part of a page, of which containers take no status. */
    private boolean isIncluded() {
        return request.getDispatcherType() == DispatcherType.INCLUDE;
    }

    /** Of Servlet 6.1, as the next two. */
    @SuppressWarnings("all")
    public void sendRedirect(String location, int status) throws IOException {
        sendRedirect(location, status, true);
    }

    @SuppressWarnings("all")
    public void sendRedirect(String location, boolean clearBuffer) throws IOException {
        sendRedirect(location, SC_FOUND, clearBuffer);
    }

    @SuppressWarnings("all")
    public void sendRedirect(String location, int status, boolean clearBuffer) throws IOException {
        ends(status);
        try {
            REDIRECT.invokeExact((HttpServletResponse) getResponse(), location, status, clearBuffer);
        } catch (IOException | RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public void setContentLength(int length) {
        hasLength(length);
        super.setContentLength(length);
    }

    @Override
    public void setContentLengthLong(long length) {
        hasLength(length);
        super.setContentLengthLong(length);
    }

    @Override
    public void setHeader(String name, String value) {
        if (KeptHeaders.isKept(name)) {
            kept.remove(name);
            keep(name, value);
        } else if (!isSettled(name)) {
            noteLength(name, value);
            super.setHeader(name, value);
            if (SET_COOKIE.equalsIgnoreCase(name)) {
                permit.changes().forEachCookie(cookie -> arrived.addHeader(SET_COOKIE, cookie));
            }
        }
    }

    @Override
    public void addHeader(String name, String value) {
        if (KeptHeaders.isKept(name)) {
            keep(name, value);
        } else if (!isSettled(name)) {
            noteLength(name, value);
            super.addHeader(name, value);
        }
    }

    @Override
    public void setIntHeader(String name, int value) {
        if (KeptHeaders.isKept(name)) {
            setHeader(name, Integer.toString(value));
        } else {
            noteLength(name, Integer.toString(value));
            super.setIntHeader(name, value);
        }
    }

    @Override
    public void addIntHeader(String name, int value) {
        if (KeptHeaders.isKept(name)) {
            addHeader(name, Integer.toString(value));
        } else {
            noteLength(name, Integer.toString(value));
            super.addIntHeader(name, value);
        }
    }

    @Override
    public void setDateHeader(String name, long date) {
        if (KeptHeaders.isKept(name)) {
            setHeader(name, asText(date));
        } else {
            super.setDateHeader(name, date);
        }
    }

    @Override
    public void addDateHeader(String name, long date) {
        if (KeptHeaders.isKept(name)) {
            addHeader(name, asText(date));
        } else {
            super.addDateHeader(name, date);
        }
    }

    private static String asText(long date) {
        return DateTimeFormatter.RFC_1123_DATE_TIME.format(Instant.ofEpochMilli(date).atOffset(ZoneOffset.UTC));
    }

    private void keep(String name, String value) {
        if (value == null) {
            return;
        }
        if (!permit.isAnswered()) {
            kept.add(name, value);
        } else if (!Signals.isOne(name) && !isSettled(CACHE_CONTROL)) {
            // They tell caches what Cache-Control tells.
            super.addHeader(name, value);
        }
    }

    /** Returns whether the gate has said what becomes of this header: a lease is not to lie in a cache of others. */
    private boolean isSettled(String name) {
        return permit.changes().settles(name);
    }

    @Override
    public boolean containsHeader(String name) {
        return !kept.of(name).isEmpty() || super.containsHeader(name);
    }

    @Override
    public String getHeader(String name) {
        List<String> own = kept.of(name);
        return own.isEmpty() ? super.getHeader(name) : own.get(0);
    }

    @Override
    public Collection<String> getHeaders(String name) {
        List<String> own = kept.of(name);
        return own.isEmpty() ? super.getHeaders(name) : own;
    }

    @Override
    public Collection<String> getHeaderNames() {
        if (kept.isEmpty()) {
            return super.getHeaderNames();
        }
        LinkedHashSet<String> names = new LinkedHashSet<>(super.getHeaderNames());
        kept.addNamesTo(names);
        return names;
    }
}
