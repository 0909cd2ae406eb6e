package org.suimon.filter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.servlet.FilterConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SettingsTest {
    private static FilterConfig config(Map<String, String> parameters) {
        return Stub.of(FilterConfig.class, (method, arguments) -> switch (method) {
            case "getInitParameterNames" -> Collections.enumeration(parameters.keySet());
            case "getInitParameter" -> parameters.get(arguments[0]);
            default -> throw new AssertionError(method);
        });
    }

    @Test
    void parameters_are_toml_of_the_same_names() {
        Map<String, String> parameters = new TreeMap<>(Map.of(
                "gate.session_law", "open",
                "limits.connections", "100",
                "session", "[{ kind = \"shopping\" }]",
                "lease.keys", "C:\\keys \"1\"\n",
                "https.redirect", " true "));
        String expected = """
                gate.session_law = "open"
                https.redirect = true
                lease.keys = "C:\\\\keys \\\"1\\\""
                limits.connections = 100
                session = [{ kind = "shopping" }]
                """;
        assertEquals(expected, toml(parameters));
    }

    private static String toml(Map<String, String> parameters) {
        try {
            return Settings.of(config(parameters)).toml();
        } catch (IOException none) {
            throw new AssertionError(none);
        }
    }

    @Test
    void a_name_cannot_bring_another_setting_with_it() {
        var fault = assertThrows(IllegalArgumentException.class, () -> toml(Map.of("a = 1\nb", "2")));
        assertTrue(fault.getMessage().startsWith("no name of a setting"));
    }

    @Test
    void the_file_that_need_not_be_there_is_read_or_says_why_not(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("suimon.toml");
        assertEquals("", Settings.ofDefault(file).toml());
        // It leads to itself: nobody can read it.
        Files.createSymbolicLink(file, file);
        IOException fault = assertThrows(IOException.class, () -> Settings.ofDefault(file));
        assertTrue(fault.getMessage().startsWith("the file of settings " + file + " cannot be read"), fault.getMessage());
        Files.delete(file);
        Files.writeString(file, "[gate]\n");
        assertEquals("[gate]\n", Settings.ofDefault(file).toml());
    }

    @Test
    void a_file_is_read_and_stands_alone(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("suimon.toml"), "[gate]\n");
        assertEquals("[gate]\n", toml(Map.of("config", file.toString())));
        var both = Map.of("config", file.toString(), "gate.mode", "off");
        assertTrue(assertThrows(IllegalArgumentException.class, () -> toml(both)).getMessage().contains("gate.mode"));
        var none = config(Map.of("config", folder.resolve("none").toString()));
        assertTrue(assertThrows(IOException.class, () -> Settings.of(none)).getMessage().startsWith("there is no file"));
    }
}
