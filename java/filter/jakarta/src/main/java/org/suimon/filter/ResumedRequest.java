package org.suimon.filter;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;

/**
 * A request that has waited without a thread, and begins anew once it is let in.
 *
 * <p>By the servlet specification it comes back with the dispatcher type {@code ASYNC}, and filters mapped to
 * {@code REQUEST} alone, as most are, would be passed over: a login among them. None of them has seen it, so
 * here it says that it is what it is: a request that arrives. Tomcat chooses filters by this attribute.
 */
final class ResumedRequest extends HttpServletRequestWrapper {
    private static final String TYPE_ATTRIBUTE = "org.apache.catalina.core.DISPATCHER_TYPE";

    private final Permit permit;

    ResumedRequest(HttpServletRequest request, Permit permit) {
        super(request);
        this.permit = permit;
    }

    @Override
    public Object getAttribute(String name) {
        Object value = super.getAttribute(name);
        return TYPE_ATTRIBUTE.equals(name) && value instanceof DispatcherType type ? typeOf(type) : value;
    }

    @Override
    public DispatcherType getDispatcherType() {
        return typeOf(super.getDispatcherType());
    }

    /** Once the application itself is asynchronous, its dispatches are its own. */
    private DispatcherType typeOf(DispatcherType type) {
        return type == DispatcherType.ASYNC && !permit.isAsynchronous() ? DispatcherType.REQUEST : type;
    }
}
