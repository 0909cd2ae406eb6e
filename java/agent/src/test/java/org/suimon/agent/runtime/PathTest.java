package org.suimon.agent.runtime;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PathTest {
    private static final String ALL = PathTest.class.getName();

    private static Path of(String end) {
        return Path.here(List.of(ALL + "." + end));
    }

    private static Path through(int depth, String end) {
        return depth == 0 ? of(end) : through(depth - 1, end);
    }

    @Test
    void oneWhoComesByAgainIsAtTheSamePlaceAndWhoStandsElsewhereIsNot() {
        List<Path> paths = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            paths.add(of("oneWhoComesByAgainIsAtTheSamePlaceAndWhoStandsElsewhereIsNot"));
        }
        assertEquals(paths.get(0), paths.get(1));
        assertEquals(paths.get(0).hashCode(), paths.get(1).hashCode());
        assertNotEquals(paths.get(0), of("oneWhoComesByAgainIsAtTheSamePlaceAndWhoStandsElsewhereIsNot"));
        assertNotEquals(through(1, "through"), through(2, "no method"));
    }

    @Test
    void whatIsBeyondTheServersFrameDoesNotMatter() {
        List<Path> paths = new ArrayList<>();
        for (int depth = 1; depth < 3; depth++) {
            paths.add(through(depth, "of"));
        }
        assertEquals(paths.get(0), paths.get(1));
    }

    @Test
    void aPathThatIsTooLongIsNotKnown() {
        assertNotNull(through(100, "no method"));
        assertNull(through(2 * Path.FRAMES_MAX, "no method"));
    }
}
