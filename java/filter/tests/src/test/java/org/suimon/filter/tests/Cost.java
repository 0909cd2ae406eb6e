package org.suimon.filter.tests;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a filter costs: processor time of a Tomcat 9 for each request of a page of two bytes, and the time until
 * its answer. One Tomcat for each filter, asked in turns, so that all see the same machine. Writes every round to
 * the file that {@code suimon.cost.data} names, as JSON.
 */
final class Cost {
    private static final int CLIENTS = 4;
    private static final int WARM_UP = 60_000;
    private static final int REQUESTS = 40_000;
    private static final int ROUNDS = 9;
    /** What the others are compared with, round by round. */
    private static final String BASE = "nothing in it";
    private static final List<String> FILTERS = List.of("none", BASE, "concurrency-limits", "suimon");
    /** Of /proc: USER_HZ. */
    private static final double TICK_US = 10_000;

    private Cost() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Tomcat> tomcats = new LinkedHashMap<>();
        Map<String, List<Double>> work = new TreeMap<>();
        Map<String, List<Double>> times = new TreeMap<>();
        Tomcat.Kind kind = Tomcat.kinds().stream().filter(Tomcat.Kind::isJavax).findFirst().orElseThrow();
        try {
            for (String filter : FILTERS) {
                tomcats.put(filter, begin(kind, filter));
                load(tomcats.get(filter).port(), WARM_UP);
            }
            for (int round = 0; round < ROUNDS; round++) {
                for (int turn = 0; turn < FILTERS.size(); turn++) {
                    String filter = FILTERS.get((round + turn) % FILTERS.size());
                    Tomcat tomcat = tomcats.get(filter);
                    double before = ticks(tomcat.pid());
                    double[] took = load(tomcat.port(), REQUESTS);
                    work.computeIfAbsent(filter, key -> new ArrayList<>())
                            .add((ticks(tomcat.pid()) - before) * TICK_US / REQUESTS);
                    times.computeIfAbsent(filter, key -> new ArrayList<>()).add(took[took.length / 2]);
                }
            }
        } finally {
            tomcats.values().forEach(Tomcat::close);
        }
        System.out.printf("%s, %d clients, medians of %d rounds of %d requests (least to most), µs%n",
                kind, CLIENTS, ROUNDS, REQUESTS);
        for (String filter : FILTERS) {
            System.out.printf("%-20s processor %s, beyond a filter with nothing in it %s, to the answer %s%n", filter,
                    spread(work.get(filter)), spread(beyond(work.get(filter), work.get(BASE))), spread(times.get(filter)));
        }
        String data = System.getProperty("suimon.cost.data");
        if (data != null) {
            Files.writeString(Path.of(data), json(kind, work, times));
        }
    }

    private static List<Double> beyond(List<Double> of, List<Double> base) {
        List<Double> beyond = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            beyond.add(of.get(round) - base.get(round));
        }
        return beyond;
    }

    private static String spread(List<Double> of) {
        List<Double> sorted = of.stream().sorted().toList();
        return String.format(Locale.ROOT, "%.1f (%.1f to %.1f)", sorted.get(sorted.size() / 2), sorted.get(0), sorted.get(sorted.size() - 1));
    }

    private static String json(Tomcat.Kind kind, Map<String, List<Double>> work, Map<String, List<Double>> times) {
        List<String> filters = new ArrayList<>();
        for (String filter : FILTERS) {
            filters.add(String.format(Locale.ROOT, "  {\"filter\":\"%s\",\"processor_us\":%s,\n   \"answer_us_p50\":%s}",
                    filter, numbers(work.get(filter)), numbers(times.get(filter))));
        }
        return String.format(Locale.ROOT, "{\n \"clients\":%d,\"requests\":%d,\"tomcat\":\"%s\",\n \"filters\":[\n%s\n ]\n}\n",
                CLIENTS, REQUESTS, kind, String.join(",\n", filters));
    }

    private static String numbers(List<Double> of) {
        return of.stream().map(number -> String.format(Locale.ROOT, "%.2f", number)).toList().toString();
    }

    private static Tomcat begin(Tomcat.Kind kind, String filter) throws IOException {
        // Compiled as in service: tests stop at the quick compiler, with which the filter costs twice as much.
        Tomcat tomcat = new Tomcat(kind, Files.createTempDirectory("suimon-cost")).withOption("-XX:TieredStopAtLevel=4");
        tomcat.connector("maxKeepAliveRequests=\"-1\"");
        boolean isSuimon = filter.equals("suimon");
        Map<String, String> parameters = isSuimon ? tomcat.settings() : new TreeMap<>();
        parameters.put("bench", filter);
        Path app = tomcat.deploy("shop", parameters);
        if (!isSuimon) {
            Files.delete(app.resolve("WEB-INF/lib/suimon-filter.jar"));
        }
        List<Path> jars;
        try (var files = Files.list(Path.of(System.getProperty("suimon.bench.jars")))) {
            jars = files.toList();
        }
        for (Path jar : jars) {
            Files.copy(jar, app.resolve("WEB-INF/lib").resolve(jar.getFileName()));
        }
        Application.compile(kind, app, Path.of(System.getProperty("suimon.bench.app")), jars);
        return tomcat.start();
    }

    /** Sends requests, one after the other on each connection, and returns how long each took, in order, µs. */
    private static double[] load(int port, int requests) throws Exception {
        double[] took = new double[requests];
        List<Thread> clients = new ArrayList<>();
        List<Throwable> failures = new ArrayList<>();
        for (int at = 0; at < CLIENTS; at++) {
            int first = at;
            clients.add(new Thread(() -> {
                try {
                    one(port, took, first);
                } catch (IOException failure) {
                    synchronized (failures) {
                        failures.add(failure);
                    }
                }
            }));
        }
        clients.forEach(Thread::start);
        for (Thread client : clients) {
            client.join();
        }
        if (!failures.isEmpty()) {
            throw new AssertionError(failures.get(0));
        }
        Arrays.sort(took);
        return took;
    }

    private static void one(int port, double[] took, int first) throws IOException {
        byte[] request = ("GET /shop/pages/ok HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
                + "Accept: text/html\r\nAccept-Language: en\r\nCookie: JSESSIONID=0123456789ABCDEF0123456789ABCDE" + first
                + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII);
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setTcpNoDelay(true);
            OutputStream out = socket.getOutputStream();
            InputStream in = new BufferedInputStream(socket.getInputStream());
            for (int at = first; at < took.length; at += CLIENTS) {
                long start = System.nanoTime();
                out.write(request);
                skipAnswer(in);
                took[at] = (System.nanoTime() - start) / 1e3;
            }
        }
    }

    private static void skipAnswer(InputStream in) throws IOException {
        StringBuilder head = new StringBuilder();
        while (head.length() < 4 || head.lastIndexOf("\r\n\r\n") != head.length() - 4) {
            int one = in.read();
            if (one < 0) {
                throw new IOException("cut off after " + head);
            }
            head.append((char) one);
        }
        if (!head.toString().startsWith("HTTP/1.1 200")) {
            throw new IOException(head.toString());
        }
        in.skipNBytes(2);
    }

    private static double ticks(long pid) throws IOException {
        String[] fields = Files.readString(Path.of("/proc/" + pid + "/stat")).replaceAll("^.*\\) ", "").split(" ");
        return Double.parseDouble(fields[11]) + Double.parseDouble(fields[12]);
    }
}
