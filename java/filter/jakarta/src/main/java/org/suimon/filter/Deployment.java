package org.suimon.filter;

import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.Hashtable;
import java.util.Set;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * What Tomcat knows of the application and the servlet API has no word for: its error pages, and whether it is being
 * taken down. Tomcat first stops the servlets, and tells filters last: what is dispatched to the application between the two is
 * answered 404 or 500 by Tomcat. Tomcat shows by JMX what it manages, and that knows. It is asked directly, as a question
 * by JMX takes 3 µs and comes with each request that has waited.
 */
final class Deployment {
    /** An error page of this status is for each that has none of its own. */
    private static final int EVERY_OTHER = 0;
    private static final String VERSION_ATTRIBUTE = "org.apache.catalina.webappVersion";
    /** The states of an application that Tomcat dispatches no request to any more. */
    private static final Set<String> ENDING = Set.of("STOPPING", "STOPPED", "DESTROYING", "DESTROYED", "FAILED");
    /** In this one it lets requests end. It can be dispatched to if it comes back at once, else it has no addresses any more. */
    private static final String BEFORE_ENDING = "STOPPING_PREP";

    /** What Tomcat manages the application by; null: it does not show it. */
    private final Object managed;
    /** They say in which state it is, and whether it is about to come back. */
    private final Method stateName;
    private final Method paused;
    /** They say which error page there is for a status, or a failure. */
    private final Method pageOfStatus;
    private final Method pageOfFailure;

    private Deployment(
            Object managed, Method stateName, Method paused, Method pageOfStatus, Method pageOfFailure) {
        this.managed = managed;
        this.stateName = stateName;
        this.paused = paused;
        this.pageOfStatus = pageOfStatus;
        this.pageOfFailure = pageOfFailure;
    }

    static Deployment of(ServletContext context) {
        try {
            Object managed = managed(context);
            Class<?> type = managed.getClass();
            return new Deployment(managed, type.getMethod("getStateName"), type.getMethod("getPaused"),
                    errorPage(type, int.class), errorPage(type, Throwable.class));
        } catch (JMException | NoSuchMethodException | RuntimeException notShown) {
            // A Tomcat inside another program may show nothing.
            return new Deployment(null, null, null, null, null);
        }
    }

    /** Returns the method that finds an error page by this; null: this Tomcat has none. */
    private static Method errorPage(Class<?> managed, Class<?> by) {
        try {
            return managed.getMethod("findErrorPage", by);
        } catch (NoSuchMethodException other) {
            return null;
        }
    }

    /** Returns the version of an application of which Tomcat keeps several at once, else an empty text. */
    static String version(ServletContext context) {
        return context.getAttribute(VERSION_ATTRIBUTE) instanceof String version ? version : "";
    }

    private static Object managed(ServletContext context) throws JMException {
        String[] host = context.getVirtualServerName().split("/", 2);
        if (host.length < 2) {
            throw new InstanceNotFoundException();
        }
        String version = version(context);
        String path = context.getContextPath();
        String called = version.isEmpty() ? path : path + "##" + version;
        Hashtable<String, String> keys = new Hashtable<>();
        keys.put("j2eeType", "WebModule");
        keys.put("name", "//" + host[1] + (called.startsWith("/") ? "" : "/") + called);
        keys.put("J2EEApplication", "none");
        keys.put("J2EEServer", "none");
        ObjectName name = new ObjectName(host[0], keys);
        return ManagementFactory.getPlatformMBeanServer().getAttribute(name, "managedResource");
    }

    /** Returns whether Tomcat makes an error page of this status; {@code unknown} where that cannot be known. */
    boolean hasErrorPage(int status, boolean unknown) {
        try {
            return pageOfStatus == null ? unknown
                    : pageOfStatus.invoke(managed, status) != null || pageOfStatus.invoke(managed, EVERY_OTHER) != null;
        } catch (ReflectiveOperationException notTold) {
            return unknown;
        }
    }

    /** Returns whether Tomcat makes an error page of what the application has thrown, which it answers with this status. */
    boolean hasErrorPage(Throwable failure, int status, boolean unknown) {
        try {
            Throwable root = failure instanceof ServletException outer ? outer.getRootCause() : null;
            return pageOfFailure != null && (pageOfFailure.invoke(managed, failure) != null
                    || root != null && pageOfFailure.invoke(managed, root) != null)
                    || hasErrorPage(status, unknown);
        } catch (ReflectiveOperationException notTold) {
            return unknown;
        }
    }

    /** Returns whether the application is being taken down; false where that cannot be known. */
    boolean isEnding() {
        try {
            return managed != null
                    && stateName.invoke(managed) instanceof String state
                    && (ENDING.contains(state)
                            || state.equals(BEFORE_ENDING) && Boolean.FALSE.equals(paused.invoke(managed)));
        } catch (ReflectiveOperationException notTold) {
            return false;
        }
    }
}
