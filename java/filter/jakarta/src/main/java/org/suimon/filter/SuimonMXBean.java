package org.suimon.filter;

import java.util.Map;

/** What the filter of an application does right now, for JMX; terms as in docs/glossary.md. */
public interface SuimonMXBean {
    /** Returns how things stand, in one word: {@code idle}, {@code open}, {@code holding}, {@code line} and others. */
    String getSituation();

    /** Returns the same in one sentence. */
    String getVerdict();

    /** Returns how many sessions are active. */
    int getActiveSessions();

    /** Returns how many visitors are in line, those held included. */
    int getInLine();

    /** Returns how many requests are held or queued. */
    int getWaiting();

    /** Returns how many requests the application works on with a slot. */
    int getInFlight();

    /** Returns how many requests came. */
    long getRequests();

    /** Returns how many of them were refused. */
    long getRefused();

    /** Returns how many requests of a route the application may work on at once, by route. */
    Map<String, Integer> getLimits();

    /** Returns the address of the admin listener; empty without one. */
    String getAdmin();

    /** Returns all that {@code GET /api/state} answers, as JSON. */
    String getState();
}
