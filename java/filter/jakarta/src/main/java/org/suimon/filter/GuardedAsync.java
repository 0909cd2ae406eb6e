package org.suimon.filter;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;

/**
 * The asynchronous side of a request that has been let in, as the application sees it: once it says that the
 * request is complete, the slot comes back, whatever the container makes of it.
 */
final class GuardedAsync implements AsyncContext {
    private final AsyncContext to;
    private final Permit permit;
    private final GuardedResponse response;
    private final boolean isOriginal;

    /** {@code isOriginal}: the application has named neither request nor response. */
    GuardedAsync(AsyncContext to, Permit permit, GuardedResponse response, boolean isOriginal) {
        this.to = to;
        this.permit = permit;
        this.response = response;
        this.isOriginal = isOriginal;
    }

    @Override
    public void complete() {
        try {
            // Tomcat 9 gives the response of one that is gone to the next request.
            if (isThere()) {
                response.concludeIfThere(response::getStatus);
            }
            to.complete();
        } catch (RuntimeException | Error failure) {
            // One that was dispatched before is worked on.
            if (!isThere()) {
                permit.end();
            }
            throw failure;
        }
        permit.end();
    }

    /** Returns whether the container still has the request. */
    private boolean isThere() {
        try {
            to.getTimeout();
            return true;
        } catch (IllegalStateException gone) {
            return false;
        }
    }

    @Override
    public ServletRequest getRequest() {
        return to.getRequest();
    }

    @Override
    public ServletResponse getResponse() {
        return to.getResponse();
    }

    @Override
    public boolean hasOriginalRequestAndResponse() {
        return isOriginal || to.hasOriginalRequestAndResponse();
    }

    @Override
    public void dispatch() {
        dispatched(to::dispatch);
    }

    @Override
    public void dispatch(String path) {
        dispatched(() -> to.dispatch(path));
    }

    @Override
    public void dispatch(ServletContext context, String path) {
        dispatched(() -> to.dispatch(context, path));
    }

    private void dispatched(Runnable dispatch) {
        try {
            dispatch.run();
        } catch (IllegalStateException over) {
            if (!isThere()) {
                // The container has ended the request: its client has left.
                permit.leave();
                permit.end();
            }
            throw over;
        }
    }

    @Override
    public void start(Runnable run) {
        to.start(run);
    }

    @Override
    public void addListener(AsyncListener listener) {
        to.addListener(listener);
    }

    @Override
    public void addListener(AsyncListener listener, ServletRequest request, ServletResponse response) {
        to.addListener(listener, request, response);
    }

    @Override
    public <T extends AsyncListener> T createListener(Class<T> type) throws ServletException {
        return to.createListener(type);
    }

    @Override
    public void setTimeout(long timeout) {
        to.setTimeout(timeout);
    }

    @Override
    public long getTimeout() {
        return to.getTimeout();
    }
}
