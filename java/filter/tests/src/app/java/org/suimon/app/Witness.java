package org.suimon.app;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.annotation.WebFilter;
import java.io.IOException;

/** Stands for a login: mapped as most filters are, and not declared fit for asynchronous requests. */
@WebFilter(urlPatterns = "/sync/*")
public class Witness implements Filter {
    @Override
    public void init(FilterConfig config) {}

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        request.setAttribute("witness", "yes");
        chain.doFilter(request, response);
    }

    @Override
    public void destroy() {}
}
