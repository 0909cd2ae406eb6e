package org.suimon.shop;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * How long a job stands still, and where, as its query says: {@code ?pause=4s&where=around}.
 *
 * @param millis all of the pause together, 0 to {@link #MILLIS_MAX}
 * @param where  where it stands still
 */
record Pause(int millis, Where where) {
    /** The longest pause, in milliseconds; the papers' longest. */
    static final int MILLIS_MAX = 10_000;

    /** Pieces of a job, with a pause after each where it pauses inside. */
    static final int PIECES = 100;

    private static final Pattern TIME = Pattern.compile("([0-9]{1,5})(ms|s)");

    /** Where a job may stand still. */
    enum Where {
        /** All of it before the job. */
        BEFORE,
        /** All of it after the job, before its answer. */
        AFTER,
        /** Half before, half after; what is meant if nothing is said. */
        AROUND,
        /** A hundredth after each piece of the job. */
        INSIDE;

        private String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** The query cannot be understood; the message says what is wrong and what is allowed. */
    static final class BadQueryException extends Exception {
        private static final long serialVersionUID = 1L;

        BadQueryException(String message) {
            super(message);
        }
    }

    /**
     * Returns what the two parameters say, each of which may be null.
     *
     * @param hasPieces whether the job can stand still inside
     */
    static Pause parse(String time, String where, boolean hasPieces) throws BadQueryException {
        int millis = time == null ? 0 : millis(time);
        Where there = where == null ? Where.AROUND : where(where);
        if (there == Where.INSIDE && !hasPieces) {
            throw new BadQueryException("where=inside: this job has no pieces to pause between; before, after and around can be had");
        }
        return new Pause(millis, there);
    }

    private static int millis(String time) throws BadQueryException {
        Matcher parts = TIME.matcher(time);
        if (parts.matches()) {
            long millis = Long.parseLong(parts.group(1)) * (parts.group(2).equals("s") ? 1_000 : 1);
            if (millis <= MILLIS_MAX) {
                return (int) millis;
            }
        }
        throw new BadQueryException("pause=" + time + ": must be a time from 0s to 10s, such as 4s or 250ms");
    }

    private static Where where(String word) throws BadQueryException {
        Optional<Where> found = Arrays.stream(Where.values()).filter(where -> where.word().equals(word)).findFirst();
        if (found.isEmpty()) {
            String all = Arrays.stream(Where.values()).map(Where::word).collect(Collectors.joining(", "));
            throw new BadQueryException("where=" + word + ": must be one of " + all);
        }
        return found.get();
    }

    /** Stands still before the job, and returns for how long, in nanoseconds. */
    long before() throws InterruptedException {
        return switch (where) {
            case BEFORE -> sleep(millis * 1_000L);
            case AROUND -> sleep(millis * 500L);
            case AFTER, INSIDE -> 0;
        };
    }

    /** Stands still after one of the {@link #PIECES} pieces; returns how long, in nanoseconds. */
    long between() throws InterruptedException {
        return where == Where.INSIDE ? sleep(millis * 1_000L / PIECES) : 0;
    }

    /** Stands still after the job, and returns for how long, in nanoseconds. */
    long after() throws InterruptedException {
        return switch (where) {
            case AFTER -> sleep(millis * 1_000L);
            case AROUND -> sleep(millis * 500L);
            case BEFORE, INSIDE -> 0;
        };
    }

    /** Returns how long it really was: a thread that is woken still waits for its turn. */
    private static long sleep(long micros) throws InterruptedException {
        if (micros == 0) {
            return 0;
        }
        long began = System.nanoTime();
        Thread.sleep(micros / 1_000, (int) (micros % 1_000) * 1_000);
        return System.nanoTime() - began;
    }
}
