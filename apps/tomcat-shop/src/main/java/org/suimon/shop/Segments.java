package org.suimon.shop;

import jakarta.servlet.http.HttpServletRequest;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Locale;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where the time of a request went before its job started.
 *
 * @param sentToAccepted    from when the client says it began to ask until the request was
 *                          accepted, in nanoseconds; empty if it did not say
 * @param acceptedToStarted from there to the start of the job, in nanoseconds
 */
record Segments(OptionalLong sentToAccepted, long acceptedToStarted) {
    /**
     * When the client began to ask, as microseconds since 1970: what load balancers send, and agents
     * that measure queues read.
     */
    static final String SENT = "X-Request-Start";

    private static final Pattern SENT_TIME = Pattern.compile("t=([0-9]{1,16})");
    /** What says that it took longer is by another clock. */
    private static final long SENT_NANOS_MAX = 3_600_000_000_000L;

    /** Returns those of a request whose job started then, by {@link System#nanoTime}. */
    static Segments of(HttpServletRequest request, long started) {
        long accepted = (Long) request.getAttribute(AcceptedEndpoint.ACCEPTED);
        return new Segments(sentToAccepted(request.getHeader(SENT), accepted), started - accepted);
    }

    private static OptionalLong sentToAccepted(String header, long accepted) {
        Matcher sent = SENT_TIME.matcher(header == null ? "" : header);
        if (!sent.matches()) {
            return OptionalLong.empty();
        }
        long ago = System.nanoTime() - accepted;
        long now = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
        long nanos = (now - Long.parseLong(sent.group(1))) * 1_000 - ago;
        // Two clocks are read one after the other: what is accepted at once may seem to be accepted
        // a little before it was sent.
        return nanos < -1_000_000 || nanos > SENT_NANOS_MAX ? OptionalLong.empty() : OptionalLong.of(Math.max(0, nanos));
    }

    /**
     * Returns the value of {@code Server-Timing}, in milliseconds as it must be; the job's time and
     * the pause's are in nanoseconds.
     */
    String told(long job, long paused) {
        String sent = sentToAccepted.isPresent() ? metric("sent", sentToAccepted.getAsLong()) + ", " : "";
        return sent + metric("accept", acceptedToStarted) + ", " + metric("job", job) + ", " + metric("pause", paused);
    }

    private static String metric(String name, long nanos) {
        return String.format(Locale.ROOT, "%s;dur=%.3f", name, nanos / 1e6);
    }
}
