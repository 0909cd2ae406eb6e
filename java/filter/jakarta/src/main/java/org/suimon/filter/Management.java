package org.suimon.filter;

import jakarta.servlet.ServletContext;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;

/**
 * Shows a filter by JMX: {@code org.suimon:type=Filter,server="Catalina/localhost",context="/shop"}, with a version where
 * several of an application are there at once.
 */
final class Management extends StandardMBean implements SuimonMXBean {
    private final Server server;
    private final ObjectName name;

    private Management(Server server, ObjectName name) {
        super(SuimonMXBean.class, true);
        this.server = server;
        this.name = name;
    }

    /** Registers the bean of an application. Without it, which is logged, the filter works all the same. */
    static Management register(ServletContext context, Server server) {
        String version = Deployment.version(context);
        try {
            ObjectName name = new ObjectName("org.suimon:type=Filter,server="
                    + ObjectName.quote(context.getVirtualServerName())
                    + ",context=" + ObjectName.quote(context.getContextPath())
                    + (version.isEmpty() ? "" : ",version=" + ObjectName.quote(version)));
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
    protected String getDescription(MBeanInfo bean) {
        return "What the filter of an application does right now";
    }

    @Override
    protected String getDescription(MBeanAttributeInfo attribute) {
        return switch (attribute.getName()) {
            case "Situation" -> "How things stand, in one word: idle, open, holding, line and others";
            case "Verdict" -> "How things stand, in one sentence";
            case "ActiveSessions" -> "Number of active sessions";
            case "InLine" -> "Number of visitors in line, those held included";
            case "Waiting" -> "Number of requests that are held or queued";
            case "InFlight" -> "Number of requests that the application works on with a slot";
            case "Requests" -> "Number of requests since the start of the filter";
            case "Refused" -> "Number of requests that were refused since the start of the filter";
            case "Limits" -> "Concurrency limit of each route: number of requests in the application at once";
            case "Admin" -> "Address of the admin listener, host:port; empty without one";
            case "State" -> "All that GET /api/state answers, as JSON; times in it are seconds";
            default -> super.getDescription(attribute);
        };
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
