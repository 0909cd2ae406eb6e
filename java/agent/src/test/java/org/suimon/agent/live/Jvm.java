package org.suimon.agent.live;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.sun.tools.attach.VirtualMachine;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** A JVM of its own, with what it says line by line. */
final class Jvm implements AutoCloseable {
    /** The agent as it is handed out. */
    static final Path AGENT = Path.of(System.getProperty("suimon.agent.jar")).toAbsolutePath();
    static final String TEST_CLASSES = Path.of("target/test-classes").toAbsolutePath().toString();
    private static final long SECONDS_MAX = 120;
    private static final String END = "the end of what it says";

    private final Process process;
    private final BlockingQueue<String> out = new LinkedBlockingQueue<>();
    private final Path errors;

    private Jvm(Process process, Path errors) {
        this.process = process;
        this.errors = errors;
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
                in.lines().forEach(out::add);
            } catch (IOException | java.io.UncheckedIOException closed) {
                // It has ended.
            }
            out.add(END);
        });
        reader.setDaemon(true);
        reader.start();
    }

    /** Returns the JDKs to test with: a property names them, or it is this one. */
    static Stream<Path> homes() {
        String named = System.getProperty("suimon.java.homes", "");
        String all = named.isBlank() || named.startsWith("$") ? System.getProperty("java.home") : named;
        return Arrays.stream(all.split(File.pathSeparator)).map(Path::of);
    }

    /** Returns the same, without those before 21. */
    static Stream<Path> homesWithVirtualThreads() {
        return homes().filter(home -> feature(home) >= 21);
    }

    private static int feature(Path home) {
        try {
            String version = Files.readAllLines(home.resolve("release")).stream()
                    .filter(line -> line.startsWith("JAVA_VERSION=")).findFirst().orElse("JAVA_VERSION=\"0\"");
            return Integer.parseInt(version.replaceAll("[^0-9.]", "").split("\\.")[0]);
        } catch (IOException unreadable) {
            throw new AssertionError(home + " is no JDK", unreadable);
        }
    }

    static Jvm start(Path home, List<String> flags, String classPath, String main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(home.resolve("bin/java").toString(), "-Xmx256m", "-XX:TieredStopAtLevel=1"));
        command.addAll(flags);
        command.addAll(List.of("-cp", classPath, main));
        command.addAll(List.of(arguments));
        Path errors = Files.createTempFile("suimon-agent", ".err");
        errors.toFile().deleteOnExit();
        return new Jvm(new ProcessBuilder(command).redirectError(errors.toFile()).start(), errors);
    }

    /** Starts the subject of these tests, with an agent of these options. */
    static Jvm subject(Path home, String options) throws Exception {
        Jvm jvm = start(home, List.of("-javaagent:" + AGENT + "=" + options), TEST_CLASSES, "org.suimon.woven.Subject");
        jvm.reads("ready");
        return jvm;
    }

    /** Returns a jar that makes the witness an agent. */
    static Path witness(Path folder) throws IOException {
        Path jar = folder.resolve("witness.jar");
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(new Attributes.Name("Agent-Class"), "org.suimon.woven.Witness");
        manifest.getMainAttributes().put(new Attributes.Name("Can-Retransform-Classes"), "true");
        try (OutputStream file = Files.newOutputStream(jar)) {
            new JarOutputStream(file, manifest).close();
        }
        return jar;
    }

    /** Runs the agent's command; returns its exit code and what it says. */
    static String command(Path home, String... words) throws Exception {
        List<String> command = new ArrayList<>(List.of(home.resolve("bin/java").toString(), "-jar", AGENT.toString()));
        command.addAll(List.of(words));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        return process.waitFor() + " " + said;
    }

    /**
     * Returns a class as it runs now, seen by a witness that comes after all other agents. The JVM tells
     * methods and constants in another order than the file, and each time in another one.
     */
    SortedMap<String, String> methods(Path folder, String name) throws Exception {
        VirtualMachine it = VirtualMachine.attach(pid());
        try {
            it.loadAgent(witness(folder).toString(), folder + "," + name);
        } finally {
            it.detach();
        }
        return methods(Files.readAllBytes(folder.resolve(name)));
    }

    /** Returns the methods of a class by their names, each with its bytes, but for what only debuggers read. */
    static SortedMap<String, String> methods(byte[] bytes) {
        SortedMap<String, String> methods = new TreeMap<>();
        new ClassReader(bytes).accept(new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
                ClassWriter alone = new ClassWriter(0);
                alone.visit(Opcodes.V17, 0, "Alone", null, "java/lang/Object", null);
                return new MethodVisitor(Opcodes.ASM9, alone.visitMethod(access, name, descriptor, signature, thrown)) {
                    @Override
                    public void visitEnd() {
                        super.visitEnd();
                        methods.put(name + descriptor, HexFormat.of().formatHex(alone.toByteArray()));
                    }
                };
            }
        }, ClassReader.SKIP_DEBUG);
        return methods;
    }

    String pid() {
        return String.valueOf(process.pid());
    }

    /** Returns the next line. */
    String line() throws InterruptedException {
        String line = out.poll(SECONDS_MAX, TimeUnit.SECONDS);
        if (line == null || line.equals(END)) {
            fail((line == null ? "silent" : "ended") + "; errors: " + errors());
        }
        return line;
    }

    void reads(String line) throws InterruptedException {
        assertEquals(line, line());
    }

    /** Asks, and returns the answer. */
    String ask(String line) throws Exception {
        say(line);
        return line();
    }

    void say(String line) throws IOException {
        process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
        process.getOutputStream().flush();
    }

    /** Returns what it has said on standard error. */
    String errors() {
        try {
            return Files.readString(errors);
        } catch (IOException unreadable) {
            return unreadable.toString();
        }
    }

    /**
     * Asks for a ratio and holds it to 15 %. The machine may take the processor from a job for a while,
     * which the job cannot tell from a pause: so the best of three counts.
     */
    double comesTo(double ratio, String question) throws Exception {
        double best = Double.parseDouble(ask(question));
        for (int tries = 1; tries < 3 && Math.abs(best - ratio) > 0.15 * ratio; tries++) {
            double came = Double.parseDouble(ask(question));
            best = Math.abs(came - ratio) < Math.abs(best - ratio) ? came : best;
        }
        assertEquals(ratio, best, 0.15 * ratio, question);
        return best;
    }

    /** Asks for a ratio, which must be none: what the machine takes from a job is less than any that is played here. */
    void comesToNone(String question) throws Exception {
        double came = Double.parseDouble(ask(question));
        assertTrue(came < 0.4, question + ": " + came);
    }

    /** Waits for its end; returns the exit code. */
    int ends() throws Exception {
        process.getOutputStream().close();
        if (!process.waitFor(SECONDS_MAX, TimeUnit.SECONDS)) {
            fail("it does not end; errors: " + errors());
        }
        return process.exitValue();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
