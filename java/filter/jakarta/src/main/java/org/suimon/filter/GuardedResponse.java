package org.suimon.filter;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.function.IntSupplier;

/**
 * The response of a request that has been let in. It notices when the head is about to go out, tells it to the
 * gate, and changes in it what the gate says.
 *
 * <p>Headers that the gate may take out are kept here until then, as responses have no way to do that.
 */
final class GuardedResponse extends HttpServletResponseWrapper {
    private static final String SIGNALS = "suimon-";
    private static final List<String> KEPT = List.of("cdn-cache-control", "surrogate-control");
    private static final List<String> TOLD = List.of("Set-Cookie", "Cache-Control");
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
    private final List<Header> kept = new ArrayList<>();
    private long written;
    private long contentLength = -1;
    private GuardedStream stream;
    private GuardedWriter writer;

    private record Header(String name, String value) {}

    GuardedResponse(HttpServletResponse arrived, GuardedRequest request, Permit permit, String sessionCookie) {
        super(arrived);
        this.arrived = arrived;
        this.request = request;
        this.permit = permit;
        this.sessionCookie = sessionCookie;
    }

    private static MethodHandle redirect() {
        try {
            MethodType type = MethodType.methodType(void.class, String.class, int.class, boolean.class);
            return MethodHandles.publicLookup().findVirtual(HttpServletResponse.class, "sendRedirect", type);
        } catch (ReflectiveOperationException older) {
            return null;
        }
    }

    GuardedRequest request() {
        return request;
    }

    /** Tells the head to the gate, with this status, unless that is done. After it the head may go out. */
    void conclude(int status) {
        if (permit.isAnswered()) {
            release(HeaderChanges.NONE);
            return;
        }
        HeaderChanges changes = permit.answer(status, lines());
        if (changes == null) {
            return;
        }
        release(changes);
        for (HeaderChanges.Change change : changes.changes()) {
            switch (change.deed()) {
                case ADD -> arrived.addHeader(change.name(), change.value());
                case SET -> arrived.setHeader(change.name(), change.value());
                // Null takes it out from Servlet 6.1 on; what the gate takes out is mostly kept here.
                case REMOVE -> arrived.setHeader(change.name(), null);
            }
        }
        if (isStream()) {
            permit.end();
        }
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
            if (type != null && type.startsWith(stream)) {
                return true;
            }
        }
        return "no".equalsIgnoreCase(arrived.getHeader("X-Accel-Buffering"));
    }

    /** Returns the lines of the head that the gate asks for. */
    private byte[] lines() {
        StringBuilder lines = new StringBuilder();
        for (String name : TOLD) {
            arrived.getHeaders(name).forEach(value -> line(lines, name, value));
        }
        line(lines, "Content-Type", arrived.getContentType());
        kept.forEach(header -> line(lines, header.name(), header.value()));
        try {
            if (request.hasLostSession()) {
                line(lines, "Suimon-Session", "end");
            }
            // Some containers write the cookie only later.
            var begun = request.newSession();
            if (begun != null && lines.indexOf(sessionCookie + "=") < 0) {
                line(lines, "Set-Cookie", sessionCookie + "=" + begun.getId());
            }
        } catch (IllegalStateException over) {
            // A session that has ended meanwhile says nothing.
        }
        return lines.toString().getBytes(StandardCharsets.ISO_8859_1);
    }

    private static void line(StringBuilder lines, String name, String value) {
        if (value != null) {
            lines.append(name).append(": ").append(value.replace('\r', ' ').replace('\n', ' ')).append("\r\n");
        }
    }

    /** Lets go of what was kept, but for what is said to the gate or taken out by it. */
    private void release(HeaderChanges changes) {
        for (Iterator<Header> headers = kept.iterator(); headers.hasNext(); ) {
            Header header = headers.next();
            headers.remove();
            if (!isSignal(header.name()) && !changes.removes(header.name())) {
                arrived.addHeader(header.name(), header.value());
            }
        }
    }

    /** Takes note of bytes that are about to be written, which may fill the buffer. */
    void writes(long bytes) {
        written += bytes;
        if (written >= arrived.getBufferSize() || contentLength >= 0 && written >= contentLength) {
            conclude(getStatus());
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
        kept.clear();
        written = 0;
        stream = null;
        writer = null;
    }

    @Override
    public void resetBuffer() {
        super.resetBuffer();
        written = 0;
    }

    @Override
    public void sendError(int status) throws IOException {
        conclude(status);
        super.sendError(status);
    }

    @Override
    public void sendError(int status, String message) throws IOException {
        conclude(status);
        super.sendError(status, message);
    }

    @Override
    public void sendRedirect(String location) throws IOException {
        conclude(SC_FOUND);
        super.sendRedirect(location);
    }

    /** Of Servlet 6.1. */
    @SuppressWarnings("all")
    public void sendRedirect(String location, int status, boolean clearBuffer) throws IOException {
        conclude(status);
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
        contentLength = length;
        super.setContentLength(length);
    }

    @Override
    public void setContentLengthLong(long length) {
        contentLength = length;
        super.setContentLengthLong(length);
    }

    @Override
    public void setHeader(String name, String value) {
        if (isKept(name)) {
            kept.removeIf(header -> header.name().equalsIgnoreCase(name));
            keep(name, value);
        } else {
            super.setHeader(name, value);
        }
    }

    @Override
    public void addHeader(String name, String value) {
        if (isKept(name)) {
            keep(name, value);
        } else {
            super.addHeader(name, value);
        }
    }

    private void keep(String name, String value) {
        if (value == null) {
            return;
        }
        if (!permit.isAnswered()) {
            kept.add(new Header(name, value));
        } else if (!isSignal(name)) {
            super.addHeader(name, value);
        }
    }

    private static boolean isKept(String name) {
        if (name == null) {
            return false;
        }
        for (String kept : KEPT) {
            if (kept.equalsIgnoreCase(name)) {
                return true;
            }
        }
        return isSignal(name);
    }

    private static boolean isSignal(String name) {
        return name.regionMatches(true, 0, SIGNALS, 0, SIGNALS.length());
    }

    @Override
    public boolean containsHeader(String name) {
        return !of(name).isEmpty() || super.containsHeader(name);
    }

    @Override
    public String getHeader(String name) {
        List<String> own = of(name);
        return own.isEmpty() ? super.getHeader(name) : own.get(0);
    }

    @Override
    public Collection<String> getHeaders(String name) {
        List<String> own = of(name);
        return own.isEmpty() ? super.getHeaders(name) : own;
    }

    @Override
    public Collection<String> getHeaderNames() {
        if (kept.isEmpty()) {
            return super.getHeaderNames();
        }
        LinkedHashSet<String> names = new LinkedHashSet<>(super.getHeaderNames());
        kept.forEach(header -> names.add(header.name().toLowerCase(Locale.ROOT)));
        return names;
    }

    private List<String> of(String name) {
        if (kept.isEmpty()) {
            return List.of();
        }
        return kept.stream().filter(header -> header.name().equalsIgnoreCase(name)).map(Header::value).toList();
    }
}
