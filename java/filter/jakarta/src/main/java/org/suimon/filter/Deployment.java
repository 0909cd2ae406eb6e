package org.suimon.filter;

import jakarta.servlet.ServletContext;
import java.lang.management.ManagementFactory;
import java.util.Hashtable;
import java.util.Set;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/**
 * Says whether Tomcat is taking the application down. It first stops the servlets, and tells filters last: what is
 * dispatched to the application between the two is answered 404 or 500 by Tomcat. The servlet API has no word for
 * that time, but Tomcat shows its state by JMX.
 */
final class Deployment {
    private static final String VERSION_ATTRIBUTE = "org.apache.catalina.webappVersion";
    /** The states of an application that Tomcat dispatches no request to any more. */
    private static final Set<String> ENDING = Set.of("STOPPING", "STOPPED", "DESTROYING", "DESTROYED", "FAILED");
    /** In this one it lets requests end. It can be dispatched to if it comes back at once, else it has no addresses any more. */
    private static final String BEFORE_ENDING = "STOPPING_PREP";

    /** Null: nothing is shown of the application. */
    private final ObjectName name;

    private Deployment(ObjectName name) {
        this.name = name;
    }

    static Deployment of(ServletContext context) {
        String[] host = context.getVirtualServerName().split("/", 2);
        Object version = context.getAttribute(VERSION_ATTRIBUTE);
        String path = context.getContextPath();
        String called = version == null || version.equals("") ? path : path + "##" + version;
        if (host.length < 2) {
            return new Deployment(null);
        }
        Hashtable<String, String> keys = new Hashtable<>();
        keys.put("j2eeType", "WebModule");
        keys.put("name", "//" + host[1] + (called.startsWith("/") ? "" : "/") + called);
        keys.put("J2EEApplication", "none");
        keys.put("J2EEServer", "none");
        try {
            return new Deployment(new ObjectName(host[0], keys));
        } catch (MalformedObjectNameException unusual) {
            return new Deployment(null);
        }
    }

    /** Returns whether the application is being taken down; false where that cannot be known. */
    boolean isEnding() {
        MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        try {
            return name != null
                    && beans.getAttribute(name, "stateName") instanceof String state
                    && (ENDING.contains(state)
                            || state.equals(BEFORE_ENDING) && Boolean.FALSE.equals(beans.getAttribute(name, "paused")));
        } catch (JMException notShown) {
            // A Tomcat inside another program may show nothing.
            return false;
        }
    }
}
