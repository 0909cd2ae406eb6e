package org.suimon.filter;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.util.regex.Pattern;

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
    /** Paths that mean what they say: no escapes, no empty segment, none that begins with a dot. */
    private static final Pattern PLAIN = Pattern.compile("(/[\\w!$&'()*+,;=:@~-][\\w.!$&'()*+,;=:@~-]*)+/?|/");

    private final Permit permit;
    private final String arrivedUri;
    private final String contextPath;
    private final String dispatchedUri;

    ResumedRequest(HttpServletRequest request, Permit permit) {
        super(request);
        this.permit = permit;
        arrivedUri = request.getRequestURI();
        // The request's own is a piece of its URI, whatever that looks like.
        contextPath = RequestHead.path(request.getServletContext().getContextPath());
        boolean isPlain = arrivedUri.startsWith(contextPath)
                && PLAIN.matcher(arrivedUri).region(contextPath.length(), arrivedUri.length()).matches();
        dispatchedUri = isPlain ? arrivedUri : contextPath + foundPath(request);
    }

    /** Returns the path by which Tomcat has found the page. */
    private static String foundPath(HttpServletRequest request) {
        String info = request.getPathInfo();
        String path = request.getServletPath() + (info == null ? "" : info);
        // What follows a semicolon would be a parameter.
        return path.isEmpty() ? "/" : RequestHead.path(path).replace(";", "%3B");
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
        return isParked() ? contextPath : super.getContextPath();
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
