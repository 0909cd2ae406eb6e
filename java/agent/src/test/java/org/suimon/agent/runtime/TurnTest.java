package org.suimon.agent.runtime;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** How often the JVM is asked, on a clock of the test's in microseconds. */
class TurnTest {
    private static final long US = 1_000;

    private final LockCheck.Turn turn = new LockCheck.Turn(100 * US);

    @Test
    void oneAsksAtATimeAndTheNextAfterTwentyTimesAsLong() {
        assertTrue(turn.begin(-5 * US));
        assertFalse(turn.begin(10 * US), "the first one is not answered yet");
        turn.end(75 * US, 120 * US);
        assertFalse(turn.begin((75 + 2_399) * US));
        assertTrue(turn.begin((75 + 2_400) * US));
    }

    @Test
    void oneThatCostsMuchByItselfDoesNotKeepAllOthersWaiting() {
        assertTrue(turn.begin(0));
        turn.end(50_000 * US, 50_000 * US);
        assertFalse(turn.begin((50_000 + 2_499) * US));
        assertTrue(turn.begin((50_000 + 2_500) * US), "a quarter more than before");
    }

    @Test
    void theyAreNeverMoreFrequentThanTheLeastAllows() {
        assertTrue(turn.begin(0));
        turn.end(200 * US, -50_000 * US);
        assertFalse(turn.begin(2_199 * US));
        assertTrue(turn.begin(2_200 * US));
    }

    @Test
    void ifAllCostMuchTheyBecomeRareAndIfNoneDoesFrequentAgain() {
        long now = 0;
        for (int i = 0; i < 40; i++) {
            assertTrue(turn.begin(now));
            turn.end(now + 10_000 * US, 10_000 * US);
            now += (10_000 + 20 * 10_000) * US;
        }
        assertTrue(turn.begin(now));
        turn.end(now, 10_000 * US);
        assertFalse(turn.begin(now + 199_999 * US));
        for (int i = 0; i < 40; i++) {
            now += 200_000 * US;
            assertTrue(turn.begin(now));
            turn.end(now, 50 * US);
        }
        assertTrue(turn.begin(now + 2_000 * US));
    }

    @Test
    void aQuestionThatIsNeverAnsweredDoesNotEndAllOthers() {
        assertTrue(turn.begin(0));
        assertTrue(turn.begin(1_000_000 * US));
    }

    @Test
    void theWaitForTheProcessorIsTheSecondOfTheKernelsNumbers() {
        assertEquals(3_578_646, RunDelay.waited("186856 3578646 2\n".getBytes(StandardCharsets.US_ASCII)));
        assertEquals(0, RunDelay.waited("186856".getBytes(StandardCharsets.US_ASCII)));
        assertEquals(0, RunDelay.waited(new byte[0]));
    }
}
