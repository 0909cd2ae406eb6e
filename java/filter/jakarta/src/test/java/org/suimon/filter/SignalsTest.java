package org.suimon.filter;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class SignalsTest {
    @Test
    void signals_have_their_prefix_in_any_case_and_with_any_sign_for_the_hyphen() {
        for (String name : List.of("suimon-pause", "SUIMON-Session", "Suimon_Pause", "suimon.held", "suimon-")) {
            assertTrue(Signals.isOne(name), name);
        }
        for (String name : List.of("suimon", "suimonpause", "Suimon1-Pause", "x-suimon-pause", "")) {
            assertFalse(Signals.isOne(name), name);
        }
        assertFalse(Signals.isOne(null));
    }
}
