package org.suimon.filter.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A web.xml: one that declares the filter, or one of the application's own. */
final class Declared {
    private Declared() {}

    static void write(Path app, Tomcat.Kind kind, boolean isAsync, String... parameters) throws IOException {
        StringBuilder all = new StringBuilder();
        for (int at = 0; at < parameters.length; at += 2) {
            all.append("<init-param><param-name>").append(parameters[at]).append("</param-name><param-value>")
                    .append(parameters[at + 1].replace("&", "&amp;").replace("<", "&lt;"))
                    .append("</param-value></init-param>\n");
        }
        write(app, kind, """
                  <filter>
                    <filter-name>gate</filter-name>
                    <filter-class>org.suimon.filter.SuimonFilter</filter-class>
                    <async-supported>%s</async-supported>
                    %s
                  </filter>
                  <filter-mapping>
                    <filter-name>gate</filter-name>
                    <url-pattern>/*</url-pattern>
                    <servlet-name>*</servlet-name>
                    <dispatcher>REQUEST</dispatcher>
                    <dispatcher>FORWARD</dispatcher>
                    <dispatcher>ASYNC</dispatcher>
                    <dispatcher>ERROR</dispatcher>
                  </filter-mapping>
                """.formatted(isAsync, all));
    }

    /** Writes what stands in a web.xml. */
    static void write(Path app, Tomcat.Kind kind, String elements) throws IOException {
        String head = kind.isJavax()
                ? "<web-app xmlns=\"http://xmlns.jcp.org/xml/ns/javaee\" version=\"4.0\">"
                : "<web-app xmlns=\"https://jakarta.ee/xml/ns/jakartaee\" version=\"6.0\">";
        Files.writeString(app.resolve("WEB-INF/web.xml"), head + "\n" + elements + "</web-app>\n");
    }

    /** Returns the element of an error page. */
    static String errorPage(int status, String location) {
        return errorPage("error-code", String.valueOf(status), location);
    }

    /** Returns the element of an error page of an exception. */
    static String errorPage(Class<? extends Throwable> of, String location) {
        return errorPage("exception-type", of.getName(), location);
    }

    private static String errorPage(String by, String of, String location) {
        return "<error-page><%s>%s</%s><location>%s</location></error-page>\n".formatted(by, of, by, location);
    }
}
