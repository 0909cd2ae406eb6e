package org.suimon.filter.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Recordings of a gateway, replayed by the library of the jar as Java calls it. */
class ReplayTest {
    private static final Path SOURCES = Path.of(System.getProperty("suimon.replay"));
    private static final Path VECTORS = Path.of(System.getProperty("suimon.vectors"));
    private static final String LIBRARY = System.getProperty("suimon.native");

    static List<Path> homes() {
        return Tomcat.kinds().stream().map(Tomcat.Kind::java).distinct().toList();
    }

    @ParameterizedTest
    @MethodSource("homes")
    void recordings_have_the_hashes_that_rust_and_c_find(Path home, @TempDir Path folder) throws Exception {
        compile(folder, "17", "java");
        Path functions = folder.resolve("calls.so");
        // A home may be one that runs programs and builds none.
        Path headers = Path.of(System.getProperty("java.home"), "include");
        said(System.getProperty("suimon.compiler"), "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
                "-I" + headers, "-I" + headers.resolve("linux"),
                "-o", functions.toString(), SOURCES.resolve("native/calls.c").toString(), "-ldl");
        holds(home, folder, List.of("JniCalls", LIBRARY, functions.toString()));
        if (Tomcat.hasForeignFunctions(home)) {
            compile(folder, "22", "java22");
            holds(home, folder, List.of("ForeignCalls", LIBRARY));
        }
    }

    private static void holds(Path home, Path folder, List<String> calls) throws Exception {
        List<String> traces = Files.readAllLines(VECTORS.resolve("traces.txt")).stream()
                .filter(line -> !line.startsWith("#")).toList();
        assertTrue(traces.size() > 1, traces.toString());
        for (String trace : traces) {
            List<String> command = new ArrayList<>(List.of(home.resolve("bin/java").toString(), "-cp", folder.toString(),
                    "org.suimon.replay.Replay"));
            command.addAll(calls);
            command.addAll(List.of("--", VECTORS.resolve(trace.split(" ")[0]).toString()));
            String said = said(command.toArray(String[]::new));
            System.out.printf("%s, %s: %s: %s%n", home.getFileName(), calls.get(0), trace.split(" ")[0], said);
            assertEquals(trace.split(" ")[1], said.substring(said.lastIndexOf(' ') + 1), trace);
        }
    }

    private static void compile(Path folder, String release, String sources) throws IOException {
        List<String> arguments = new ArrayList<>(
                List.of("--release", release, "-d", folder.toString(), "-classpath", folder.toString()));
        try (Stream<Path> all = Files.walk(SOURCES.resolve(sources))) {
            all.filter(file -> file.toString().endsWith(".java")).forEach(file -> arguments.add(file.toString()));
        }
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)));
    }

    /** Runs a command, and returns what it says. */
    private static String said(String... command) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        Process process = builder.start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        assertTrue(process.waitFor(Tomcat.PATIENCE.toSeconds(), TimeUnit.SECONDS) && process.exitValue() == 0,
                Arrays.toString(command));
        return said;
    }
}
