package org.suimon.filter;

import jakarta.servlet.ServletRequestEvent;
import jakarta.servlet.ServletRequestListener;

/**
 * Ends the permits of requests that may have had an error page, which containers make after all filters. Of a request that
 * has waited Tomcat says the end before that page: there the filter takes it from the page itself.
 */
final class RequestEnd implements ServletRequestListener {
    private final String attribute;

    /** {@code attribute}: of a request, which is its permit. */
    RequestEnd(String attribute) {
        this.attribute = attribute;
    }

    @Override
    public void requestDestroyed(ServletRequestEvent event) {
        if (event.getServletRequest().getAttribute(attribute) instanceof Permit permit
                && permit.awaitsErrorPage() && permit.parked() == null) {
            permit.end();
        }
    }
}
