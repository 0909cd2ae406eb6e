package org.suimon.filter.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.ToolProvider;

/** The application of the tests, compiled for the servlet API of a Tomcat. */
final class Application {
    private Application() {}

    static void compile(Tomcat.Kind kind, Path app) throws IOException {
        compile(kind, app, Path.of(System.getProperty("suimon.app")), List.of());
    }

    /** Compiles other sources into the application. */
    static void compile(Tomcat.Kind kind, Path app, Path sources, List<Path> jars) throws IOException {
        Path classes = Files.createDirectories(app.resolve("WEB-INF/classes"));
        Path renamed = Files.createTempDirectory("suimon-app");
        List<Path> files;
        try (Stream<Path> all = Files.walk(sources)) {
            files = all.filter(file -> file.toString().endsWith(".java")).toList();
        }
        StringBuilder path = new StringBuilder(kind.home().resolve("lib/servlet-api.jar").toString());
        jars.forEach(jar -> path.append(':').append(jar));
        List<String> arguments = new ArrayList<>(
                List.of("--release", "17", "-d", classes.toString(), "-classpath", path.toString()));
        for (Path file : files) {
            String text = Files.readString(file);
            Path copy = renamed.resolve(file.getFileName());
            Files.writeString(copy, kind.isJavax() ? text.replace("jakarta.servlet", "javax.servlet") : text);
            arguments.add(copy.toString());
        }
        int result = ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new));
        if (result != 0) {
            throw new AssertionError("the application does not compile");
        }
    }
}
