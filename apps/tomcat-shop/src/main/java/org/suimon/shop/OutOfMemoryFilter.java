package org.suimon.shop;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A request the heap has no room for fails with 500, and only that request. Left to itself Tomcat hands the error to
 * the thread, which ends, and the client waits for nothing.
 */
final class OutOfMemoryFilter implements Filter {
    private final AtomicLong failed = new AtomicLong();

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
        try {
            chain.doFilter(request, response);
        } catch (OutOfMemoryError error) {
            // Here the search's documents are already unreachable.
            long count = failed.incrementAndGet();
            if (Long.bitCount(count) == 1) {
                // The 1st, 2nd, 4th, 8th...: enough to see it, too little to drown in.
                System.err.println("out of memory: " + count + " requests failed so far");
            }
            if (!response.isCommitted()) {
                response.reset();
                ((HttpServletResponse) response).setStatus(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
                response.setContentLength(0);
            }
        }
    }
}
