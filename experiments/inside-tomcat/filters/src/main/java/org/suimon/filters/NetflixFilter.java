package org.suimon.filters;

import com.netflix.concurrency.limits.Limit;
import com.netflix.concurrency.limits.Limiter;
import com.netflix.concurrency.limits.limit.AIMDLimit;
import com.netflix.concurrency.limits.limit.Gradient2Limit;
import com.netflix.concurrency.limits.limit.VegasLimit;
import com.netflix.concurrency.limits.limiter.SimpleLimiter;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Optional;

/**
 * Netflix' limits, as their own servlet filter uses them: one limit for all requests, what is beyond it is refused with
 * 429, and what throws counts for nothing. Theirs is for javax alone. {@code -Dlimit} names the law.
 */
public final class NetflixFilter implements Filter {
    private final Limiter<Void> limiter = SimpleLimiter.newBuilder().limit(limit(System.getProperty("limit", "vegas"))).build();

    private static Limit limit(String name) {
        return switch (name) {
            case "vegas" -> VegasLimit.newDefault();
            case "gradient2" -> Gradient2Limit.newDefault();
            case "aimd" -> AIMDLimit.newBuilder().build();
            default -> throw new IllegalArgumentException("-Dlimit: vegas, gradient2 or aimd, not " + name);
        };
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
        Optional<Limiter.Listener> permit = limiter.acquire(null);
        if (permit.isEmpty()) {
            ((HttpServletResponse) response).setStatus(429);
            return;
        }
        try {
            chain.doFilter(request, response);
            permit.get().onSuccess();
        } catch (IOException | ServletException | RuntimeException failure) {
            permit.get().onIgnore();
            throw failure;
        }
    }
}
