package org.suimon.filter;

import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import java.io.IOException;

/** Ends the permit of a request when its container is done with it. */
final class AsyncEnd implements AsyncListener {
    private final Permit permit;
    /** Null while the request is only parked. */
    private final GuardedResponse response;

    AsyncEnd(Permit permit, GuardedResponse response) {
        this.permit = permit;
        this.response = response;
    }

    @Override
    public void onComplete(AsyncEvent event) {
        if (response != null) {
            response.conclude(response.getStatus());
        }
        permit.end();
    }

    @Override
    public void onTimeout(AsyncEvent event) {
        // What follows is an error page, and then onComplete.
    }

    @Override
    public void onError(AsyncEvent event) {
        if (event.getThrowable() instanceof IOException) {
            permit.leave();
        }
    }

    @Override
    public void onStartAsync(AsyncEvent event) {
        event.getAsyncContext().addListener(this);
    }
}
