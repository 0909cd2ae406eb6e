package org.suimon.filter.tests;

import com.sun.tools.attach.VirtualMachine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.management.MBeanInfo;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** A Tomcat as it comes in its zip, in a process and a base folder of its own, at a port that is free. */
final class Tomcat implements AutoCloseable {
    static final Duration PATIENCE = Duration.ofSeconds(Long.getLong("suimon.patience", 60));
    private static final Pattern PORT = Pattern.compile("ProtocolHandler \\[\"http-nio-127\\.0\\.0\\.1-auto-\\d+-(\\d+)\"\\]");
    private static final Pattern ADMIN = Pattern.compile("suimon: (http://[0-9.]+:\\d+/) shows");

    /** A Tomcat and a JDK to run it with. */
    record Kind(Path home, Path java) {
        boolean isJavax() {
            return major() == 9;
        }

        int major() {
            return Integer.parseInt(home.getFileName().toString().replaceAll("apache-tomcat-(\\d+)\\..*", "$1"));
        }

        @Override
        public String toString() {
            return home.getFileName() + " on " + java.getFileName();
        }
    }

    final Kind kind;
    final Path base;
    private final HttpClient client = HttpClient.newBuilder().connectTimeout(PATIENCE).build();
    private final List<String> log = new ArrayList<>();
    private boolean isSteady;
    private String option = "";
    private Process process;
    private int port;

    Tomcat(Kind kind, Path base) throws IOException {
        this.kind = kind;
        this.base = base;
        for (String folder : List.of("conf/Catalina/localhost", "logs", "temp", "webapps", "work")) {
            Files.createDirectories(base.resolve(folder));
        }
        Files.copy(kind.home().resolve("conf/web.xml"), base.resolve("conf/web.xml"));
        connector("");
        Files.writeString(base.resolve("conf/tomcat-users.xml"), """
                <tomcat-users>
                  <user username="tester" password="tester" roles="manager-script,manager-jmx"/>
                </tomcat-users>
                """);
        Files.writeString(base.resolve("conf/Catalina/localhost/manager.xml"),
                "<Context docBase=\"${catalina.home}/webapps/manager\" privileged=\"true\"/>");
    }

    static List<Kind> kinds() {
        List<Kind> kinds = new ArrayList<>();
        String homes = System.getProperty("suimon.java.homes", "");
        try (Stream<Path> tomcats = Files.list(Path.of(System.getProperty("suimon.tomcats")))) {
            for (Path tomcat : tomcats.filter(home -> home.getFileName().toString().startsWith("apache-tomcat-")).sorted().toList()) {
                for (String home : (homes.isEmpty() ? System.getProperty("java.home") : homes).split(":")) {
                    kinds.add(new Kind(tomcat, Path.of(home)));
                }
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        return kinds;
    }

    /** Returns whether a JDK is of 22 or later. */
    static boolean hasForeignFunctions(Path home) {
        Matcher version;
        try {
            version = Pattern.compile("JAVA_VERSION=\"(\\d+)").matcher(Files.readString(home.resolve("release")));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        return version.find() && Integer.parseInt(version.group(1)) >= 22;
    }

    /** Writes the server's own file; {@code attributes} are those of its connector, beside address and port. */
    void connector(String attributes) throws IOException {
        connector(attributes, "");
    }

    /** The same with another element before the connector. */
    void connector(String attributes, String before) throws IOException {
        Files.writeString(base.resolve("conf/server.xml"), """
                <Server port="-1">
                  <Listener className="org.apache.catalina.core.ThreadLocalLeakPreventionListener"/>
                  <GlobalNamingResources>
                    <Resource name="UserDatabase" auth="Container" type="org.apache.catalina.UserDatabase"
                              factory="org.apache.catalina.users.MemoryUserDatabaseFactory"
                              pathname="conf/tomcat-users.xml"/>
                  </GlobalNamingResources>
                  <Service name="Catalina">
                    %s
                    <Connector port="0" address="127.0.0.1" protocol="org.apache.coyote.http11.Http11NioProtocol" %s/>
                    <Engine name="Catalina" defaultHost="localhost">
                      <Realm className="org.apache.catalina.realm.UserDatabaseRealm" resourceName="UserDatabase"/>
                      <Host name="localhost" appBase="webapps" autoDeploy="false"/>
                    </Engine>
                  </Service>
                </Server>
                """.formatted(before, attributes));
    }

    Path filterJar() {
        return Path.of(System.getProperty(kind.isJavax() ? "suimon.filter.javax.jar" : "suimon.filter.jar"));
    }

    /** Lays out the tests' application, with the filter's jar and parameters of its context. */
    Path deploy(String name, Map<String, String> parameters) throws IOException {
        Path app = base.resolve("webapps").resolve(name);
        Application.compile(kind, app);
        Files.createDirectories(app.resolve("WEB-INF/lib"));
        Files.copy(filterJar(), app.resolve("WEB-INF/lib/suimon-filter.jar"));
        Files.createDirectories(app.resolve("META-INF"));
        StringBuilder context = new StringBuilder("<Context>\n");
        parameters.forEach((key, value) -> context.append("  <Parameter name=\"").append(key).append("\" value=\"")
                .append(value.replace("&", "&amp;").replace("\"", "&quot;").replace("<", "&lt;"))
                .append("\" override=\"false\"/>\n"));
        Files.writeString(app.resolve("META-INF/context.xml"), context.append("</Context>\n"));
        return app;
    }

    /** Returns parameters of a context that keep all files in the base folder and the admin listener at a free port. */
    Map<String, String> settings(String... more) {
        Map<String, String> settings = new TreeMap<>();
        settings.put("suimon.admin.listen", "127.0.0.1:0");
        settings.put("suimon.lease.keys", base.resolve("lease.keys").toString());
        settings.put("suimon.waiting_room.state", "none");
        settings.put("suimon.learned.state", "none");
        for (int at = 0; at < more.length; at += 2) {
            settings.put("suimon." + more[at], more[at + 1]);
        }
        return settings;
    }

    /** Lets what the process holds grow by what is kept alone: all of its heap is there. */
    Tomcat withSteadyMemory() {
        isSteady = true;
        return this;
    }

    /** Starts its JVM with one more option, without blanks. */
    Tomcat withOption(String option) {
        this.option = " " + option;
        return this;
    }

    Tomcat start() throws IOException {
        ProcessBuilder builder = new ProcessBuilder("sh", kind.home().resolve("bin/catalina.sh").toString(), "run");
        Map<String, String> environment = builder.environment();
        environment.put("JAVA_HOME", kind.java().toString());
        environment.remove("JRE_HOME");
        environment.put("CATALINA_HOME", kind.home().toString());
        environment.put("CATALINA_BASE", base.toString());
        // Most tests end before the slower compiler has done anything for them.
        environment.put("CATALINA_OPTS", "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
                + " --add-opens=java.base/java.lang=ALL-UNNAMED"
                + (hasForeignFunctions(kind.java()) ? " --enable-native-access=ALL-UNNAMED" : "") + option);
        if (isSteady) {
            environment.put("JAVA_OPTS", "-Xms256m -XX:+AlwaysPreTouch");
            environment.put("MALLOC_ARENA_MAX", "1");
        }
        process = builder.redirectErrorStream(true).start();
        Thread reader = new Thread(this::read, "log of " + kind);
        reader.setDaemon(true);
        reader.start();
        // A test that is stopped leaves no Tomcat behind.
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        await("the start", () -> has("Server startup in"));
        port = Integer.parseInt(find(PORT));
        return this;
    }

    private void read() {
        try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                synchronized (log) {
                    log.add(line);
                }
            }
        } catch (IOException ended) {
            // With its process.
        }
    }

    /** Returns all lines that the process and its applications have logged. */
    List<String> log() {
        List<String> all;
        synchronized (log) {
            all = new ArrayList<>(log);
        }
        return all;
    }

    boolean has(String text) {
        return log().stream().anyMatch(line -> line.contains(text));
    }

    private String find(Pattern pattern) {
        return log().stream().map(pattern::matcher).filter(Matcher::find).reduce((first, last) -> last)
                .orElseThrow(() -> new AssertionError(pattern + " is in no line of\n" + String.join("\n", log())))
                .group(1);
    }

    /** Waits until a condition holds. */
    void await(String what, BooleanSupplier condition) {
        long until = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > until || process != null && !process.isAlive()) {
                throw new AssertionError("waited in vain for " + what + "\n" + String.join("\n", log()));
            }
            try {
                Thread.sleep(10);
            } catch (InterruptedException interrupted) {
                throw new AssertionError(interrupted);
            }
        }
    }

    /** Returns what comes back, however it is cut off. Clients that know HTTP ask again if nothing does. */
    String answerOnce(String asked, String headers) throws IOException {
        try (Socket client = ask(asked, headers)) {
            return answer(client);
        }
    }

    /** Returns the connection by which something was asked. */
    Socket ask(String asked, String headers) throws IOException {
        Socket client = new Socket("127.0.0.1", port);
        client.setSoTimeout((int) PATIENCE.toMillis());
        client.getOutputStream().write((asked + " HTTP/1.1\r\nHost: a\r\n" + headers + "Connection: close\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII));
        return client;
    }

    /** Returns all that comes back by a connection. */
    static String answer(Socket client) throws IOException {
        return new String(client.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    int port() {
        return port;
    }

    long pid() {
        return process.pid();
    }

    URI uri(String path) {
        return URI.create("http://127.0.0.1:" + port + path);
    }

    HttpRequest.Builder request(String path, String... headers) {
        HttpRequest.Builder request = HttpRequest.newBuilder(uri(path)).timeout(PATIENCE);
        for (int at = 0; at < headers.length; at += 2) {
            request.header(headers[at], headers[at + 1]);
        }
        return request;
    }

    HttpResponse<String> get(String path, String... headers) {
        return send(request(path, headers).build());
    }

    CompletableFuture<HttpResponse<String>> getLater(String path, String... headers) {
        return client.sendAsync(request(path, headers).build(), HttpResponse.BodyHandlers.ofString());
    }

    HttpResponse<String> send(HttpRequest request) {
        try {
            return client.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (IOException failure) {
            throw new UncheckedIOException(request + "\n" + String.join("\n", log()), failure);
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }

    /** Asks Tomcat's manager. */
    String manage(String path) {
        String credentials = Base64.getEncoder().encodeToString("tester:tester".getBytes(StandardCharsets.US_ASCII));
        return get("/manager/" + path, "Authorization", "Basic " + credentials).body();
    }

    /** Gives the JVM a command of jcmd's, and returns what it says. */
    String command(String command) {
        try {
            Process asked = new ProcessBuilder(kind.java().resolve("bin/jcmd").toString(), Long.toString(pid()), command)
                    .redirectErrorStream(true).start();
            String said = new String(asked.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (asked.waitFor() != 0) {
                throw new AssertionError(said);
            }
            return said;
        } catch (IOException | InterruptedException failure) {
            throw new AssertionError(failure);
        }
    }

    /** Returns how many instances of a class are in use. */
    long instances(String type) {
        Matcher count = Pattern.compile("(?m)^\\s*\\d+:\\s+(\\d+)\\s+\\d+\\s+" + Pattern.quote(type) + "(\\s|$)")
                .matcher(command("GC.class_histogram"));
        return count.find() ? Long.parseLong(count.group(1)) : 0;
    }

    /** Returns the address of the admin listener that an application has opened last. */
    String admin() {
        return find(ADMIN);
    }

    /** Returns the manager's path to an attribute of an application's filter. */
    static String bean(String context, String attribute) {
        return "jmxproxy/?get=org.suimon:type=Filter,server=%22Catalina/localhost%22,context=%22/" + context + "%22&att=" + attribute;
    }

    /** Returns what a console is told of an application's filter. */
    MBeanInfo described(String context) throws Exception {
        VirtualMachine jvm = VirtualMachine.attach(Long.toString(pid()));
        try (JMXConnector console = JMXConnectorFactory.connect(new JMXServiceURL(jvm.startLocalManagementAgent()))) {
            return console.getMBeanServerConnection().getMBeanInfo(
                    new ObjectName("org.suimon:type=Filter,server=\"Catalina/localhost\",context=\"/" + context + "\""));
        } finally {
            jvm.detach();
        }
    }

    /** Returns the state of an application's gate, by JMX: some applications log elsewhere. */
    State stateOf(String context) {
        String said = manage(bean(context, "State"));
        return new State(said.substring(said.indexOf('{')));
    }

    /** Returns the state of the gate that was opened last. */
    State state() {
        return new State(send(HttpRequest.newBuilder(URI.create(admin() + "api/state")).timeout(PATIENCE).build()).body());
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new AssertionError("Tomcat does not end\n" + String.join("\n", log()));
            }
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            throw new AssertionError(interrupted);
        }
    }
}
