package org.suimon.filter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
    @Test
    void every_kind_of_value_is_read() {
        Object expected = Map.of("a", Arrays.asList(1.0, -2.5e3, true, false, null), "b", Map.of("c\"\u00E9\n", List.of()));
        assertEquals(expected, Json.read(" {\"a\": [1, -2.5e3, true, false, null], \"b\":{\"c\\\"\\u00e9\\n\":[ ]}} "));
    }

    @Test
    void what_is_cut_off_or_goes_on_is_no_json() {
        for (String text : List.of("", "{", "[1", "\"a", "{\"a\"}", "1 2", "[1 2]", "tru", "-", "{\"a\":1,,}")) {
            assertThrows(IllegalArgumentException.class, () -> Json.read(text), text);
        }
    }
}
