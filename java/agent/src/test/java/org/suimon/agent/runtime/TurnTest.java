package org.suimon.agent.runtime;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** How often the JVM is asked, on a clock of the test's in microseconds. */
class TurnTest {
    private static final long US = 1_000;

    private final LockCheck.Turn turn = new LockCheck.Turn(100 * US);

    @Test
    void oneAsksAtATimeAndTheNextAfterTwentyTimesAsLong() {
        assertTrue(turn.begin(-5 * US));
        assertFalse(turn.begin(10 * US), "the first one is not answered yet");
        turn.end(-5 * US, 75 * US);
        assertFalse(turn.begin((75 + 1_599) * US));
        assertTrue(turn.begin((75 + 1_600) * US));
    }

    @Test
    void oneThatWaitedForTheProcessorDoesNotKeepAllOthersWaiting() {
        assertTrue(turn.begin(0));
        turn.end(0, 50_000 * US);
        assertFalse(turn.begin((50_000 + 2_499) * US));
        assertTrue(turn.begin((50_000 + 2_500) * US), "a quarter more than before");
    }

    @Test
    void ifAllTakeLongTheyBecomeRare() {
        long now = 0;
        for (int i = 0; i < 40; i++) {
            assertTrue(turn.begin(now));
            turn.end(now, now + 10_000 * US);
            now += (10_000 + 20 * 10_000) * US;
        }
        assertTrue(turn.begin(now));
        turn.end(now, now + 10_000 * US);
        assertFalse(turn.begin(now + (10_000 + 199_999) * US));
    }

    @Test
    void aQuestionThatIsNeverAnsweredDoesNotEndAllOthers() {
        assertTrue(turn.begin(0));
        assertTrue(turn.begin(1_000_000 * US));
    }
}
