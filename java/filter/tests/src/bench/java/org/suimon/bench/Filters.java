package org.suimon.bench;

import com.netflix.concurrency.limits.limit.Gradient2Limit;
import com.netflix.concurrency.limits.servlet.ConcurrencyLimitServletFilter;
import com.netflix.concurrency.limits.servlet.ServletLimiterBuilder;
import java.io.IOException;
import java.util.EnumSet;
import javax.servlet.DispatcherType;
import javax.servlet.Filter;
import javax.servlet.FilterChain;
import javax.servlet.FilterConfig;
import javax.servlet.ServletContext;
import javax.servlet.ServletContextEvent;
import javax.servlet.ServletContextListener;
import javax.servlet.ServletException;
import javax.servlet.ServletRequest;
import javax.servlet.ServletResponse;
import javax.servlet.annotation.WebListener;

/** Puts the filter before the application that the parameter {@code bench} names. */
@WebListener
public class Filters implements ServletContextListener {
    @Override
    public void contextInitialized(ServletContextEvent event) {
        ServletContext context = event.getServletContext();
        Filter filter = switch (context.getInitParameter("bench")) {
            case "nothing in it" -> new Nothing();
            case "concurrency-limits" -> new ConcurrencyLimitServletFilter(
                    new ServletLimiterBuilder().limit(Gradient2Limit.newDefault()).build());
            default -> null;
        };
        if (filter != null) {
            context.addFilter("bench", filter)
                    .addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), false, "/*");
        }
    }

    @Override
    public void contextDestroyed(ServletContextEvent event) {}

    /** Passes requests on. */
    private static final class Nothing implements Filter {
        @Override
        public void init(FilterConfig config) {}

        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            chain.doFilter(request, response);
        }

        @Override
        public void destroy() {}
    }
}
