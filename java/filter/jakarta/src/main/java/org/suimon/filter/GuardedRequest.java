package org.suimon.filter;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpSession;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A request that has been let in, as the application sees it. */
final class GuardedRequest extends HttpServletRequestWrapper {
    private final HttpServletRequest arrived;
    private final Permit permit;
    /** Of the gate, for the application. */
    private final Map<String, String> told;
    private GuardedResponse response;

    GuardedRequest(HttpServletRequest arrived, Permit permit) {
        super(arrived);
        this.arrived = arrived;
        this.permit = permit;
        told = permit.told();
    }

    private GuardedRequest(GuardedRequest same) {
        super(same.arrived instanceof ResumedRequest resumed ? resumed.anew() : same.arrived);
        arrived = (HttpServletRequest) getRequest();
        permit = same.permit;
        told = same.told;
        response = same.response;
    }

    /** Returns the guard of a permit's that stands somewhere within a request, else null. */
    static GuardedRequest within(ServletRequest request, Permit permit) {
        for (ServletRequest at = request; at instanceof ServletRequestWrapper outer; at = outer.getRequest()) {
            if (outer instanceof GuardedRequest guarded && guarded.permit == permit) {
                return guarded;
            }
        }
        return null;
    }

    /** Takes note of the response that belongs to this request. */
    void answeredBy(GuardedResponse response) {
        this.response = response;
    }

    /** Returns whether the application has had a session of this request that is there no more. */
    boolean hasLostSession() {
        return permit.session() != null && arrived.getSession(false) == null;
    }

    /** Returns the session if this request has begun it, else null. */
    HttpSession newSession() {
        HttpSession known = permit.session() == null ? null : arrived.getSession(false);
        return known != null && known.isNew() ? known : null;
    }

    @Override
    public HttpSession getSession() {
        return noted(super.getSession());
    }

    @Override
    public HttpSession getSession(boolean create) {
        return noted(super.getSession(create));
    }

    private HttpSession noted(HttpSession known) {
        if (known != null) {
            permit.hasSession(known);
        }
        return known;
    }

    @Override
    public String getHeader(String name) {
        String own = own(name);
        if (own != null) {
            return own.isEmpty() ? null : own;
        }
        return super.getHeader(name);
    }

    @Override
    public Enumeration<String> getHeaders(String name) {
        String own = own(name);
        if (own != null) {
            return own.isEmpty() ? Collections.emptyEnumeration() : Collections.enumeration(List.of(own));
        }
        return super.getHeaders(name);
    }

    @Override
    public int getIntHeader(String name) {
        String own = own(name);
        if (own != null) {
            return own.isEmpty() ? -1 : Integer.parseInt(own);
        }
        return super.getIntHeader(name);
    }

    @Override
    public long getDateHeader(String name) {
        String own = own(name);
        if (own == null) {
            return super.getDateHeader(name);
        }
        if (own.isEmpty()) {
            return -1;
        }
        throw new IllegalArgumentException("no date: " + own);
    }

    @Override
    public Enumeration<String> getHeaderNames() {
        List<String> names = new ArrayList<>(told.keySet());
        for (Enumeration<String> all = super.getHeaderNames(); all.hasMoreElements(); ) {
            String name = all.nextElement();
            if (own(name) == null) {
                names.add(name);
            }
        }
        return Collections.enumeration(names);
    }

    @Override
    public Map<String, String> getTrailerFields() {
        Map<String, String> fields = new HashMap<>(super.getTrailerFields());
        fields.keySet().removeIf(Signals::isOne);
        return fields;
    }

    /** Returns what the gate says of a header: empty if nobody may say it, null if it is the client's. */
    private String own(String name) {
        for (Map.Entry<String, String> entry : told.entrySet()) {
            if (entry.getKey().equalsIgnoreCase(name)) {
                return entry.getValue();
            }
        }
        // What only the gate may say: a client's own is not passed on.
        return Signals.isOne(name) ? "" : null;
    }

    @Override
    public AsyncContext startAsync() {
        // Without a request named, the container takes the one below this, whose answer nobody would notice. A
        // forward has moved the path of this one, not that of a new one.
        return watched(arrived.startAsync(new GuardedRequest(this), response), true);
    }

    @Override
    public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
        return watched(super.startAsync(request, response), false);
    }

    private AsyncContext watched(AsyncContext context, boolean isOriginal) {
        if (permit.becomesAsynchronous()) {
            context.addListener(AsyncEnd.of(permit, response));
        }
        return new GuardedAsync(context, permit, response, isOriginal);
    }

    @Override
    public AsyncContext getAsyncContext() {
        AsyncContext context = super.getAsyncContext();
        return new GuardedAsync(context, permit, response, context.hasOriginalRequestAndResponse());
    }
}
