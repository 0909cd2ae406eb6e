package org.suimon.filter;

import jakarta.servlet.ServletContext;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** Shows a filter by JMX: {@code org.suimon:type=Filter,server="Catalina/localhost",context="/shop"}. */
final class Management implements SuimonMXBean {
    private final Server server;
    private final ObjectName name;

    private Management(Server server, ObjectName name) {
        this.server = server;
        this.name = name;
    }

    /** Registers the bean of an application. Without it, which is logged, the filter works all the same. */
    static Management register(ServletContext context, Server server) {
        try {
            ObjectName name = new ObjectName("org.suimon:type=Filter,server="
                    + ObjectName.quote(context.getVirtualServerName())
                    + ",context=" + ObjectName.quote(context.getContextPath()));
            Management management = new Management(server, name);
            MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
            if (beans.isRegistered(name)) {
                beans.unregisterMBean(name);
            }
            beans.registerMBean(management, name);
            return management;
        } catch (JMException failure) {
            context.log("suimon: not shown by JMX", failure);
            return null;
        }
    }

    void unregister() {
        try {
            ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
        } catch (JMException gone) {
            // Another one has taken the name.
        }
    }

    @Override
    public String getSituation() {
        return String.valueOf(part(state(), "verdict").get("situation"));
    }

    @Override
    public String getVerdict() {
        return String.valueOf(part(state(), "verdict").get("sentence"));
    }

    @Override
    public int getActiveSessions() {
        return (int) total("sessions_active");
    }

    @Override
    public int getInLine() {
        return (int) total("in_line");
    }

    @Override
    public int getWaiting() {
        Map<?, ?> totals = part(state(), "totals");
        return (int) (number(totals, "held") + number(totals, "queued"));
    }

    @Override
    public int getInFlight() {
        return (int) total("in_flight");
    }

    @Override
    public long getRequests() {
        return total("requests");
    }

    @Override
    public long getRefused() {
        return total("refused");
    }

    @Override
    public Map<String, Integer> getLimits() {
        Map<String, Integer> limits = new LinkedHashMap<>();
        if (state().get("routes") instanceof List<?> routes) {
            for (Object route : routes) {
                if (route instanceof Map<?, ?> one && one.get("limit") instanceof Double limit) {
                    limits.put(String.valueOf(one.get("name")), limit.intValue());
                }
            }
        }
        return limits;
    }

    @Override
    public String getAdmin() {
        return server.admin();
    }

    @Override
    public String getState() {
        return server.state();
    }

    private Map<?, ?> state() {
        String text = server.state();
        return !text.isEmpty() && Json.read(text) instanceof Map<?, ?> map ? map : Map.of();
    }

    private long total(String name) {
        return number(part(state(), "totals"), name);
    }

    private static Map<?, ?> part(Map<?, ?> of, String name) {
        return of.get(name) instanceof Map<?, ?> map ? map : Map.of();
    }

    private static long number(Map<?, ?> of, String name) {
        return of.get(name) instanceof Double number ? number.longValue() : 0;
    }
}
