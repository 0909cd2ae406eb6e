package org.suimon.app;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.annotation.WebFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;

/** Lays wrappers of the application's around requests, or around requests and responses, as frameworks do. */
@WebFilter(urlPatterns = "/pages/wrap/*", asyncSupported = true)
public class Wrapping implements Filter {
    @Override
    public void init(FilterConfig config) {}

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        boolean isBoth = "both".equals(request.getParameter("around"));
        chain.doFilter(new Wrapped((HttpServletRequest) request),
                isBoth ? new HttpServletResponseWrapper((HttpServletResponse) response) : response);
    }

    /** Says what no client has said. */
    private static final class Wrapped extends HttpServletRequestWrapper {
        Wrapped(HttpServletRequest request) {
            super(request);
        }

        @Override
        public String getHeader(String name) {
            return name.equals("X-Wrapped") ? "yes" : super.getHeader(name);
        }
    }

    @Override
    public void destroy() {}
}
