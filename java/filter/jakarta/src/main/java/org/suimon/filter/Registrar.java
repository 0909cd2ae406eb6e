package org.suimon.filter;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContainerInitializer;
import jakarta.servlet.ServletContext;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Puts the filter before all others of an application that has this jar and declares none itself.
 *
 * <p>Where the jar is shared by all applications of a server, those get the filter that have a parameter of the
 * context which begins with {@code suimon.}; {@code suimon.filter = off} keeps it from any.
 */
public final class Registrar implements ServletContainerInitializer {
    private static final String NAME = "suimon";
    private static final String SWITCH = "filter";

    /** Is called by the container. */
    public Registrar() {}

    @Override
    public void onStartup(Set<Class<?>> classes, ServletContext context) {
        Map<String, String> parameters = new TreeMap<>();
        for (String name : Collections.list(context.getInitParameterNames())) {
            if (name.startsWith(Settings.PREFIX)) {
                parameters.put(name.substring(Settings.PREFIX.length()), context.getInitParameter(name));
            }
        }
        boolean isOwn = Registrar.class.getClassLoader() == context.getClassLoader();
        boolean isWanted = isOwn || !parameters.isEmpty();
        if (!isWanted || "off".equals(parameters.remove(SWITCH)) || isDeclared(context)) {
            return;
        }
        FilterRegistration.Dynamic filter = context.addFilter(NAME, new SuimonFilter());
        if (filter == null) {
            context.log("suimon: no gate, as the application has another filter named " + NAME);
            return;
        }
        filter.setInitParameters(parameters);
        filter.setAsyncSupported(true);
        // What is included is a part of a request that is here.
        EnumSet<DispatcherType> types = EnumSet.complementOf(EnumSet.of(DispatcherType.INCLUDE));
        filter.addMappingForUrlPatterns(types, false, "/*");
        // A forward to a servlet's name has no path.
        filter.addMappingForServletNames(EnumSet.of(DispatcherType.FORWARD), false, "*");
    }

    private static boolean isDeclared(ServletContext context) {
        return context.getFilterRegistrations().values().stream()
                .anyMatch(filter -> isGate(filter.getClassName(), context.getClassLoader()));
    }

    /** Returns whether it is the filter, or a class of the application that extends it. */
    private static boolean isGate(String name, ClassLoader loader) {
        try {
            return SuimonFilter.class.isAssignableFrom(Class.forName(name, false, loader));
        } catch (ClassNotFoundException | LinkageError unusable) {
            // The container says so when it makes the filter.
            return false;
        }
    }
}
