package org.suimon.shop;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;

/**
 * What the command line may ask for. A work count of zero means: measure this machine once, at start.
 *
 * @param port          port on 127.0.0.1, 0 for any free one
 * @param scale         divides the CPU cost of every page; above 0
 * @param threads       most requests the server runs at once (Tomcat's maxThreads)
 * @param acceptCount   connections the kernel keeps while all are busy (Tomcat's acceptCount)
 * @param maxConnections most connections it has at once (Tomcat's maxConnections)
 * @param lightWork     renderings a light page takes, 0 to calibrate
 * @param searchRepeats catalogues a search parses and walks, 0 to calibrate
 * @param searchHeld    of those, how many stay in memory until the search is over; at least 1
 * @param catalogueSize bytes of XML in the catalogue, about
 * @param fibonacci     which Fibonacci number the light job computes
 * @param heavySize     bytes of the XML file that the heavy job parses, about
 * @param seed          seed of the contents of both
 * @param filter        class of a servlet filter before all others, of the class path; empty for none
 */
record Options(
        int port,
        double scale,
        int threads,
        int acceptCount,
        int maxConnections,
        int lightWork,
        int searchRepeats,
        int searchHeld,
        int catalogueSize,
        int fibonacci,
        int heavySize,
        long seed,
        String filter) {

    static final Options DEFAULT = new Options(8080, 1.0, 200, 100, 8192, 0, 0, 1, 650 * 1024, 25, 1_500_000, 1, "");

    static final String USAGE = """
            usage: java -XX:+UseSerialGC -Xms160m -Xmx160m -jar tomcat-shop.jar [flags]
              --port N            port on 127.0.0.1; 0 takes a free one (8080)
              --scale X           divide the cost of every page by X (1: light 30 ms, search 400 ms of CPU)
              --threads N         requests run at once, Tomcat's maxThreads (200)
              --accept-count N    connections kept waiting beyond --max-connections, Tomcat's acceptCount (100)
              --max-connections N  connections at once, Tomcat's maxConnections (8192)
              --light-work N      renderings of a light page; 0 measures this machine at start (0)
              --search-repeats N  catalogues a search parses and walks; 0 measures this machine at start (0)
              --search-held N     parsed catalogues a search keeps until it ends (1)
              --catalogue-size N  bytes of XML in the catalogue (665600)
              --fibonacci N       which Fibonacci number GET /jobs/light computes (25)
              --heavy-size N      bytes of the XML file that GET /jobs/heavy parses (1500000)
              --seed N            seed of the contents of both (1)
              --filter CLASS      a servlet filter of the class path, before all others
            """;

    /** The command line could not be understood; the message says what to change. */
    static final class UsageException extends Exception {
        private static final long serialVersionUID = 1L;

        UsageException(String message) {
            super(message);
        }
    }

    /** Returns the options named in the arguments, as {@code --name value} or {@code --name=value}. */
    static Options parse(String... arguments) throws UsageException {
        Options options = DEFAULT;
        List<String> words = Arrays.stream(arguments)
                .flatMap(argument -> argument.startsWith("--")
                        ? Arrays.stream(argument.split("=", 2))
                        : Arrays.stream(new String[] {argument}))
                .toList();
        for (Iterator<String> rest = words.iterator(); rest.hasNext();) {
            String name = rest.next();
            if (!name.startsWith("--")) {
                throw new UsageException(name + ": not a flag; flags begin with --");
            }
            if (!rest.hasNext()) {
                throw new UsageException(name + ": a value must follow");
            }
            options = options.with(name, rest.next());
        }
        return options;
    }

    private Options with(String name, String value) throws UsageException {
        int p = port, t = threads, a = acceptCount, m = maxConnections;
        int l = lightWork, r = searchRepeats, h = searchHeld, c = catalogueSize;
        int b = heavySize, f = fibonacci;
        double s = scale;
        long g = seed;
        String e = filter;
        switch (name) {
            case "--port" -> p = whole(name, value, 0, 65_535);
            case "--scale" -> s = scale(value);
            case "--threads" -> t = whole(name, value, 1, 10_000);
            case "--accept-count" -> a = whole(name, value, 1, 65_535);
            case "--max-connections" -> m = whole(name, value, 1, 1_000_000);
            case "--light-work" -> l = whole(name, value, 0, 1_000_000);
            case "--search-repeats" -> r = whole(name, value, 0, 1_000_000);
            case "--search-held" -> h = whole(name, value, 1, 1_000);
            case "--catalogue-size" -> c = whole(name, value, 20_000, 100_000_000);
            case "--fibonacci" -> f = whole(name, value, 1, 40);
            case "--heavy-size" -> b = whole(name, value, 20_000, 100_000_000);
            case "--seed" -> g = whole(name, value, 0, Integer.MAX_VALUE);
            case "--filter" -> e = value;
            default -> throw new UsageException(name + ": no such flag");
        }
        return new Options(p, s, t, a, m, l, r, h, c, f, b, g, e);
    }

    private static int whole(String name, String value, int least, int most) throws UsageException {
        try {
            int number = Integer.parseInt(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // Said below, together with what is allowed.
        }
        throw new UsageException(name + " " + value + ": must be a whole number from " + least + " to " + most);
    }

    private static double scale(String value) throws UsageException {
        try {
            double number = Double.parseDouble(value);
            if (number >= 0.01 && number <= 1_000) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // Said below, together with what is allowed.
        }
        throw new UsageException("--scale " + value + ": must be a number from 0.01 to 1000");
    }
}
