package org.suimon.agent.weaver;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.suimon.agent.Pauses;
import org.suimon.agent.runtime.Limits;
import org.suimon.agent.runtime.MethodCounts;

/**
 * What the agent is told before it begins. All faults are told together, each with key, value and
 * what is allowed.
 *
 * @param methods         points by {@code class.method}: bits of {@link MethodCounts}
 * @param ratio           seconds of pause for each of work; NaN: idle until a ratio is told
 * @param header          whether requests may tell one
 * @param timings         whether answers tell the segments of jobs
 * @param neverIn         methods during which nothing pauses
 * @param requestsBeginAt methods in which a server hands a request to the application
 * @param virtualThreads  whether virtual threads pause, of which nobody knows the monitors
 * @param limits          bounds of pauses
 */
public record Options(
        Map<String, Integer> methods,
        double ratio,
        boolean header,
        boolean timings,
        List<String> neverIn,
        List<String> requestsBeginAt,
        boolean virtualThreads,
        Limits limits) {

    /** Methods that may be declared, and patterns in a list. */
    static final int DECLARED_MAX = 256;
    /** Bytes of a file of options. */
    static final int FILE_MAX = 64 * 1024;

    private static final String KEYS = "methods, ratio, header, timings, never_in, requests_begin_at, virtual_threads, pause_least, "
            + "pause_max, pause_total_max";
    private static final String NAME = "[^\\s.;\\[/<>@:,*\"]+";
    private static final Pattern METHOD = Pattern.compile("((?:" + NAME + "\\.)+" + NAME + ")@(entry|loop|exit)");
    private static final Pattern PLAIN = Pattern.compile("(?:" + NAME + "\\.)+" + NAME);
    private static final Pattern STARRED = Pattern.compile("(?:" + NAME + "\\.)+(?:" + NAME + ")?\\*?");
    private static final Pattern NOT_OURS = Pattern.compile("(?:java|jdk|sun|com\\.sun|org\\.suimon\\.agent)\\..*");
    private static final Pattern TIME = Pattern.compile("([0-9]{1,6})(ms|s|m)");
    private static final long MILLI = 1_000_000;

    /** Options that make no sense; the message has a line for each fault. */
    public static final class FaultsException extends Exception {
        private static final long serialVersionUID = 1L;

        FaultsException(List<String> faults) {
            super(String.join("\n", faults));
        }
    }

    /** Returns the options in the file of this path, or those that the text itself says. */
    public static Options read(String said) throws FaultsException {
        try {
            return new Reader(raw(said.trim())).options();
        } catch (RawOptions.SyntaxException wrong) {
            throw new FaultsException(List.of(wrong.getMessage()));
        }
    }

    /** Returns what they come to, in a few words. */
    public String summary() {
        String jobs = methods.size() + (methods.size() == 1 ? " method" : " methods");
        String unless = header ? "ratio told by requests" : "idle until a ratio is told";
        return jobs + ", " + (Double.isNaN(ratio) ? unless : "ratio " + ratio);
    }

    private static Map<String, RawOptions.Value> raw(String said) throws FaultsException, RawOptions.SyntaxException {
        Path path;
        try {
            path = Path.of(said);
        } catch (InvalidPathException noPath) {
            return RawOptions.ofArguments(said);
        }
        if (said.isEmpty() || !Files.isRegularFile(path)) {
            return RawOptions.ofArguments(said);
        }
        try {
            if (Files.size(path) > FILE_MAX) {
                throw new FaultsException(List.of(said + ": must have at most " + FILE_MAX + " bytes"));
            }
            return RawOptions.ofToml(Files.readString(path, StandardCharsets.UTF_8));
        } catch (RawOptions.SyntaxException wrong) {
            throw new RawOptions.SyntaxException(said + ", " + wrong.getMessage());
        } catch (IOException unreadable) {
            throw new FaultsException(List.of(said + ": cannot be read: " + unreadable));
        }
    }

    /** Turns words into options, and collects what is wrong with them. */
    private static final class Reader {
        private final Map<String, RawOptions.Value> raw;
        private final List<String> faults = new ArrayList<>();

        Reader(Map<String, RawOptions.Value> raw) {
            this.raw = new LinkedHashMap<>(raw);
        }

        Options options() throws FaultsException {
            Map<String, Integer> methods = methods();
            double ratio = ratio();
            boolean header = flag("header");
            boolean timings = flag("timings");
            List<String> neverIn = patterns("never_in", STARRED, "class.method, or a beginning of that and *", List.of());
            List<String> begin = patterns("requests_begin_at", PLAIN, "class.method",
                    List.of("org.apache.catalina.connector.CoyoteAdapter.service",
                            "org.apache.catalina.connector.CoyoteAdapter.asyncDispatch"));
            boolean virtual = flag("virtual_threads");
            long least = time("pause_least", 10 * MILLI, MILLI, 1_000 * MILLI, "from 1ms to 1s");
            boolean saysMost = raw.containsKey("pause_max");
            long said = time("pause_max", 5_000 * MILLI, MILLI, 60_000 * MILLI, "from 1ms to 1m");
            long total = time("pause_total_max", 10_000 * MILLI, MILLI, 600_000 * MILLI, "from 1ms to 10m");
            long most = saysMost ? said : Math.min(said, total);
            if (faults.isEmpty() && least > most) {
                faults.add("pause_least = " + least / MILLI + "ms: must not exceed pause_max (" + most / MILLI + "ms)");
            }
            if (faults.isEmpty() && most > total) {
                faults.add("pause_max = " + most / MILLI + "ms: must not exceed pause_total_max (" + total / MILLI + "ms)");
            }
            raw.keySet().forEach(key -> faults.add(key + ": no such key; there are " + KEYS));
            if (!faults.isEmpty()) {
                throw new FaultsException(faults);
            }
            return new Options(methods, ratio, header, timings, neverIn, begin, virtual, new Limits(least, most, total));
        }

        private Map<String, Integer> methods() {
            Map<String, Integer> methods = new LinkedHashMap<>();
            for (String word : words("methods", List.of())) {
                Matcher method = METHOD.matcher(word);
                if (!method.matches()) {
                    wrong("methods", word, "must be class.method@entry, @loop or @exit");
                } else if (NOT_OURS.matcher(word).matches()) {
                    wrong("methods", word, "must be the application's, not the JDK's or the agent's");
                } else {
                    int point = switch (method.group(2)) {
                        case "entry" -> MethodCounts.ENTRY;
                        case "loop" -> MethodCounts.LOOP;
                        default -> MethodCounts.EXIT;
                    };
                    methods.merge(method.group(1), point, (before, more) -> before | more);
                }
            }
            return methods;
        }

        private double ratio() {
            RawOptions.Value value = raw.remove("ratio");
            if (value == null) {
                return Double.NaN;
            }
            String word = value.word();
            if (word != null && value.isQuoted() != Boolean.TRUE && word.matches("[0-9]{1,6}(\\.[0-9]{1,9})?")
                    && Double.parseDouble(word) <= Pauses.RATIO_MAX) {
                return Double.parseDouble(word);
            }
            wrong("ratio", value.shown(), "must be a number from 0 to " + (int) Pauses.RATIO_MAX);
            return Double.NaN;
        }

        private boolean flag(String key) {
            RawOptions.Value value = raw.remove(key);
            if (value == null) {
                return false;
            }
            String word = value.isQuoted() == Boolean.TRUE ? null : value.word();
            if (!"true".equals(word) && !"false".equals(word)) {
                wrong(key, value.shown(), "must be true or false");
            }
            return "true".equals(word);
        }

        private long time(String key, long unless, long least, long most, String allowed) {
            RawOptions.Value value = raw.remove(key);
            if (value == null) {
                return unless;
            }
            Matcher time = TIME.matcher(value.word() == null || value.isQuoted() == Boolean.FALSE ? "" : value.word());
            if (time.matches()) {
                long unit = switch (time.group(2)) {
                    case "ms" -> MILLI;
                    case "s" -> 1_000 * MILLI;
                    default -> 60_000 * MILLI;
                };
                long nanos = Long.parseLong(time.group(1)) * unit;
                if (nanos >= least && nanos <= most) {
                    return nanos;
                }
            }
            wrong(key, value.shown(), "must be a time " + allowed + ", such as \"20ms\"");
            return unless;
        }

        private List<String> patterns(String key, Pattern allowed, String said, List<String> unless) {
            List<String> words = words(key, unless);
            for (String word : words) {
                if (!allowed.matcher(word).matches()) {
                    wrong(key, word, "must be " + said);
                }
            }
            return List.copyOf(words);
        }

        private List<String> words(String key, List<String> unless) {
            RawOptions.Value value = raw.remove(key);
            if (value == null) {
                return unless;
            }
            List<String> words = value.words();
            if (words == null) {
                wrong(key, value.shown(), "must be a list of \"words\"");
                return unless;
            }
            if (words.size() > DECLARED_MAX) {
                faults.add(key + ": must have at most " + DECLARED_MAX + " entries, has " + words.size());
                return unless;
            }
            return words.stream().map(String::trim).filter(word -> !word.isEmpty()).toList();
        }

        private void wrong(String key, String value, String what) {
            String shown = value.length() <= 200 ? value : value.substring(0, 200) + "...";
            faults.add(key + " = " + shown + ": " + what);
        }
    }
}
