package org.suimon.filter;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;

/**
 * A request that has waited without a thread, and begins anew once it is let in.
 *
 * <p>By the servlet specification it comes back with the dispatcher type {@code ASYNC}, and filters mapped to
 * {@code REQUEST} alone, as most are, would be passed over: a login among them. None of them has seen it, so
 * here it says that it is what it is: a request that arrives. Tomcat chooses filters by this attribute.
 *
 * <p>Tomcat looks for its page again, by the text of its URI, and does not find every page by the URI that led there
 * first: not with two slashes in a row, with dots between slashes, or with octets that are not UTF-8. Such a request is
 * dispatched by the path that Tomcat made of its URI. The application sees the URI as it came.
 */
final class ResumedRequest extends HttpServletRequestWrapper {
    private static final String TYPE_ATTRIBUTE = "org.apache.catalina.core.DISPATCHER_TYPE";
    private final HttpServletRequest arrived;
    private final Permit permit;
    private final String arrivedUri;
    /** The piece of that URI; null where Tomcat itself cannot say what that is. */
    private final String arrivedContextPath;
    private final String foundPath;
    private final String contextPath;
    private final String dispatchedUri;

    ResumedRequest(HttpServletRequest request, Permit permit) {
        super(request);
        arrived = request;
        this.permit = permit;
        arrivedUri = request.getRequestURI();
        arrivedContextPath = contextPathOf(request);
        foundPath = foundPath(request);
        contextPath = RequestHead.path(request.getServletContext().getContextPath());
        boolean isPlain = arrivedUri.startsWith(contextPath) && isPlain(arrivedUri, contextPath.length());
        // What follows a semicolon would be a parameter.
        dispatchedUri = isPlain ? arrivedUri : contextPath + RequestHead.path(foundPath).replace(";", "%3B");
    }

    private ResumedRequest(ResumedRequest same) {
        super(same.arrived);
        arrived = same.arrived;
        permit = same.permit;
        arrivedUri = same.arrivedUri;
        arrivedContextPath = same.arrivedContextPath;
        foundPath = same.foundPath;
        contextPath = same.contextPath;
        dispatchedUri = same.dispatchedUri;
    }

    /** Returns one that stands where this one has arrived: Tomcat puts what dispatches and forwards change below it. */
    ResumedRequest anew() {
        return new ResumedRequest(this);
    }

    /**
     * Returns whether a request that was resumed is at the page for which it has arrived. Who may see a page is judged by
     * the path of its arrival alone, so no other page may be found by the path of its dispatch.
     */
    static boolean isWhereItArrived(HttpServletRequest resumed) {
        for (ServletRequest at = resumed; at instanceof ServletRequestWrapper outer; at = outer.getRequest()) {
            if (outer instanceof ResumedRequest it) {
                return it.foundPath.equals(foundPath(resumed));
            }
        }
        return true;
    }

    /** Returns the path by which Tomcat has found the page. */
    private static String foundPath(HttpServletRequest request) {
        String info = request.getPathInfo();
        String path = request.getServletPath() + (info == null ? "" : info);
        return path.isEmpty() ? "/" : path;
    }

    private static String contextPathOf(HttpServletRequest request) {
        try {
            return request.getContextPath();
        } catch (RuntimeException tooManySlashes) {
            return null;
        }
    }

    /** Returns whether the path from there on means what it says: no escapes, no empty segment, none that begins with a dot. */
    private static boolean isPlain(String uri, int from) {
        for (int at = from; at < uri.length(); at++) {
            char one = uri.charAt(at);
            boolean begins = at > from && uri.charAt(at - 1) == '/';
            if (!RequestHead.standsInPaths(one) || begins && (one == '/' || one == '.')) {
                return false;
            }
        }
        return from < uri.length() && uri.charAt(from) == '/';
    }

    @Override
    public String getRequestURI() {
        if (isParked()) {
            // Only Tomcat asks, to dispatch it.
            return dispatchedUri;
        }
        return isAsItArrived() ? arrivedUri : super.getRequestURI();
    }

    @Override
    public StringBuffer getRequestURL() {
        StringBuffer url = super.getRequestURL();
        if (isAsItArrived()) {
            url.replace(url.length() - super.getRequestURI().length(), url.length(), arrivedUri);
        }
        return url;
    }

    @Override
    public String getContextPath() {
        if (isParked()) {
            return contextPath;
        }
        return isAsItArrived() && arrivedContextPath != null ? arrivedContextPath : super.getContextPath();
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

    private boolean isParked() {
        return super.getDispatcherType() == DispatcherType.REQUEST;
    }

    /** Returns whether it is at the page that it has arrived for: no forward, and no dispatch of the application's. */
    private boolean isAsItArrived() {
        return getDispatcherType() == DispatcherType.REQUEST;
    }

    /** Once the application goes on asynchronously, dispatches are its own. */
    private DispatcherType typeOf(DispatcherType type) {
        return type == DispatcherType.ASYNC && !permit.goesOn() ? DispatcherType.REQUEST : type;
    }
}
