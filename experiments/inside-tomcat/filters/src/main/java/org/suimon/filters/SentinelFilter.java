package org.suimon.filters;

import com.alibaba.csp.sentinel.Entry;
import com.alibaba.csp.sentinel.EntryType;
import com.alibaba.csp.sentinel.SphU;
import com.alibaba.csp.sentinel.slots.block.BlockException;
import com.alibaba.csp.sentinel.slots.block.RuleConstant;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRuleManager;
import com.alibaba.csp.sentinel.slots.system.SystemRule;
import com.alibaba.csp.sentinel.slots.system.SystemRuleManager;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.List;

/**
 * Sentinel, a resource for each path; what it blocks is answered 429, as its own adapters do. {@code -Dload}: its system
 * rule, which lets no more in than the best seconds have done once the load average is above that. {@code -Dthreads}: its
 * flow rule for the search, so many at once.
 */
public final class SentinelFilter implements Filter {
    @Override
    public void init(FilterConfig config) {
        if (System.getProperty("load") != null) {
            SystemRule rule = new SystemRule();
            rule.setHighestSystemLoad(Double.parseDouble(System.getProperty("load")));
            SystemRuleManager.loadRules(List.of(rule));
        }
        if (System.getProperty("threads") != null) {
            FlowRule rule = new FlowRule("/search");
            rule.setGrade(RuleConstant.FLOW_GRADE_THREAD);
            rule.setCount(Double.parseDouble(System.getProperty("threads")));
            FlowRuleManager.loadRules(List.of(rule));
        }
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
        try (Entry entry = SphU.entry(((HttpServletRequest) request).getRequestURI(), EntryType.IN)) {
            chain.doFilter(request, response);
        } catch (BlockException blocked) {
            ((HttpServletResponse) response).setStatus(429);
        }
    }
}
