package org.suimon.filter;

import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;

/**
 * Ends the permit of a request when its container is done with it.
 *
 * <p>A container may forget a request whose client has left without telling anybody. It forgets this listener,
 * too: once nobody can reach it any more, {@link Forgotten} says so.
 */
final class AsyncEnd implements AsyncListener {
    /** Is loaded with this class: an application that has stopped loads none, and its requests time out after that. */
    static final Class<?> LOADED_EARLY = AsyncEvent.class;

    private final Permit permit;
    /** Null while the request is only parked. */
    private final GuardedResponse response;

    private AsyncEnd(Permit permit, GuardedResponse response) {
        this.permit = permit;
        this.response = response;
    }

    /** Returns the listener of a request with which the application goes on. */
    static AsyncEnd of(Permit permit, GuardedResponse response) {
        AsyncEnd end = new AsyncEnd(permit, response);
        permit.watch(queue -> new Forgotten(end, permit, false, queue));
        return end;
    }

    /** Returns the listener of a request that waits without a thread. */
    static AsyncEnd ofParked(Permit permit) {
        AsyncEnd end = new AsyncEnd(permit, null);
        permit.watch(queue -> new Forgotten(end, permit, true, queue));
        return end;
    }

    /** What is left of a listener that its container has let go. */
    static final class Forgotten extends PhantomReference<AsyncEnd> {
        private final Permit permit;
        private final boolean isParked;

        private Forgotten(AsyncEnd end, Permit permit, boolean isParked, ReferenceQueue<AsyncEnd> queue) {
            super(end, queue);
            this.permit = permit;
            this.isParked = isParked;
        }

        /** Ends the permit if its end was never told. */
        void end() {
            // One that was parked and has gone on is none of this listener's business any more.
            if (!isParked || !permit.isResumed() || permit.awaitsErrorPage() && !permit.isAsynchronous()) {
                permit.leave();
                permit.end();
            }
        }
    }

    @Override
    public void onComplete(AsyncEvent event) {
        if (response != null) {
            try {
                response.concludeIfThere(response::getStatus);
            } finally {
                permit.end();
            }
        } else if (!permit.isAsynchronous() && !permit.awaitsErrorPage()) {
            // Tomcat says this before it makes an error page.
            permit.end();
        }
    }

    @Override
    public void onTimeout(AsyncEvent event) {
        // The application's, or that of a connector that stops. What follows is an error page, and then onComplete.
    }

    @Override
    public void onError(AsyncEvent event) {
        if (event.getThrowable() instanceof IOException) {
            permit.leave();
        } else if (response != null) {
            response.concludeIfThere(() -> HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
        }
        if (response != null) {
            // Whoever still works on it cannot answer any more; and onComplete does not always follow.
            permit.fail();
        }
    }

    @Override
    public void onStartAsync(AsyncEvent event) {
        // Parked it is only once; the listener of what the application goes on with stays, however often it does.
        if (response != null) {
            event.getAsyncContext().addListener(this);
        }
    }
}
