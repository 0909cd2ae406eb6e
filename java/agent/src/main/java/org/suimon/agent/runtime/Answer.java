package org.suimon.agent.runtime;

import java.util.Locale;

/**
 * A response, in which is said how long jobs paused, so that who told the ratio does not take that
 * for work; and the segments of its first job, if they are asked for. Once its head is on its way
 * nothing more is said.
 */
final class Answer {
    /** Seconds. */
    private static final String PAUSED = "Suimon-Paused";
    private static final String SEGMENTS = "Server-Timing";

    private final Class<?> api;
    private final Object response;
    private final boolean isTold;
    private boolean tellsSegments;

    /**
     * Returns the answer to one request.
     *
     * @param api           the interface that has the methods of a response
     * @param isTold        whether the request told a ratio
     * @param tellsSegments whether segments are asked for
     */
    Answer(Class<?> api, Object response, boolean isTold, boolean tellsSegments) {
        this.api = api;
        this.response = response;
        this.isTold = isTold;
        this.tellsSegments = tellsSegments;
    }

    /** Says how long jobs have paused so far. */
    void paused(long nanos) throws ReflectiveOperationException {
        if (isTold) {
            call("setHeader", PAUSED, String.format(Locale.ROOT, "%.3f", nanos / 1e9));
        }
    }

    /** Says the segments of a job, of the first one alone; {@code accept} is below 0 where it is not known. */
    void segments(long accept, long job, long pause) throws ReflectiveOperationException {
        if (tellsSegments) {
            tellsSegments = false;
            String before = accept < 0 ? "" : metric("accept", accept) + ", ";
            call("addHeader", SEGMENTS, before + metric("job", job) + ", " + metric("pause", pause));
        }
    }

    private void call(String method, String name, String value) throws ReflectiveOperationException {
        api.getMethod(method, String.class, String.class).invoke(response, name, value);
    }

    /** In milliseconds, as it must be. */
    private static String metric(String name, long nanos) {
        return String.format(Locale.ROOT, "%s;dur=%.3f", name, nanos / 1e6);
    }
}
