package org.suimon.filter.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.ToolProvider;

/** The application of the tests, compiled for the servlet API of a Tomcat. */
final class Application {
    private Application() {}

    static void compile(Tomcat.Kind kind, Path app) throws IOException {
        Path classes = Files.createDirectories(app.resolve("WEB-INF/classes"));
        Path renamed = Files.createTempDirectory("suimon-app");
        Path sources = Path.of(System.getProperty("suimon.app"));
        List<Path> files;
        try (Stream<Path> all = Files.walk(sources)) {
            files = all.filter(file -> file.toString().endsWith(".java")).toList();
        }
        List<String> arguments = new java.util.ArrayList<>(List.of(
                "--release", "17", "-d", classes.toString(),
                "-classpath", kind.home().resolve("lib/servlet-api.jar") + ":" + kind.home().resolve("lib/annotations-api.jar")));
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
