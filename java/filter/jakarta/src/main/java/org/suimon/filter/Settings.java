package org.suimon.filter;

import jakarta.servlet.FilterConfig;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * The settings of a filter, as TOML: a file, or the parameters of the filter, whose names are those of the
 * settings. The library checks them.
 */
final class Settings {
    /** The parameter, and with a prefix the system property, that names a file. */
    static final String FILE = "config";
    static final String PREFIX = "suimon.";
    private static final Path DEFAULT_FILE = Path.of("/etc/suimon/suimon.toml");
    /** What is TOML as it stands; any other value is text. */
    private static final Pattern LITERAL = Pattern.compile("true|false|[+-]?\\d+(\\.\\d+)?|[\\[{\"'].*", Pattern.DOTALL);
    private static final Pattern KEY = Pattern.compile("[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*");

    private final String toml;

    private Settings(String toml) {
        this.toml = toml;
    }

    String toml() {
        return toml;
    }

    /**
     * Returns the settings of a filter.
     *
     * @throws IllegalArgumentException what is wrong with them
     * @throws IOException if a file that is named cannot be read
     */
    static Settings of(FilterConfig config) throws IOException {
        Map<String, String> parameters = new TreeMap<>();
        for (String name : Collections.list(config.getInitParameterNames())) {
            parameters.put(name, config.getInitParameter(name).strip());
        }
        String file = parameters.remove(FILE);
        if (file != null && !parameters.isEmpty()) {
            throw new IllegalArgumentException("settings are in the file " + file + " or in parameters of the filter, "
                    + "not in both: " + String.join(", ", parameters.keySet()));
        }
        if (!parameters.isEmpty()) {
            return new Settings(toml(parameters));
        }
        String named = file != null ? file : System.getProperty(PREFIX + FILE);
        if (named != null) {
            return read(Path.of(named));
        }
        return ofDefault(DEFAULT_FILE);
    }

    /** Returns the settings of a file that need not be there. One that is there, or may be, and cannot be read is a fault. */
    static Settings ofDefault(Path file) throws IOException {
        return Files.notExists(file) ? new Settings("") : read(file);
    }

    private static Settings read(Path file) throws IOException {
        try {
            return new Settings(Files.readString(file));
        } catch (NoSuchFileException none) {
            throw new IOException("there is no file of settings " + file, none);
        } catch (AccessDeniedException denied) {
            throw new IOException("the file of settings " + file + " cannot be read: permission denied; allow it, or name "
                    + "another one in suimon.config", denied);
        } catch (IOException fault) {
            throw new IOException("the file of settings " + file + " cannot be read: " + fault, fault);
        }
    }

    /** Returns parameters as TOML: {@code gate.session_law} and {@code open} as {@code gate.session_law = "open"}. */
    static String toml(Map<String, String> parameters) {
        StringBuilder toml = new StringBuilder();
        parameters.forEach((name, value) -> {
            if (!KEY.matcher(name).matches()) {
                throw new IllegalArgumentException("no name of a setting: " + name);
            }
            toml.append(name).append(" = ").append(LITERAL.matcher(value).matches() ? value : quoted(value)).append('\n');
        });
        return toml.toString();
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        text.chars().forEach(one -> {
            switch (one) {
                case '"', '\\' -> quoted.append('\\').append((char) one);
                case '\n' -> quoted.append("\\n");
                case '\r' -> quoted.append("\\r");
                case '\t' -> quoted.append("\\t");
                default -> quoted.append((char) one);
            }
        });
        return quoted.append('"').toString();
    }
}
