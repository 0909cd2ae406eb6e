package org.suimon.agent.runtime;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

/** What is owed, in milliseconds of a clock that only the test knows. */
class DebtTest {
    private static final long MS = 1_000_000;

    private final Debt debt = new Debt(new Limits(10 * MS, 1_000 * MS, 10_000 * MS));

    @Test
    void workIsPaidForInPiecesAndEachIsDueOnlyOnceItIsWorthIt() {
        debt.begin(0);
        debt.work(4 * MS, 2);
        assertEquals(0, debt.due(), "8 ms are not yet 10");
        debt.work(6 * MS, 2);
        assertEquals(12 * MS, debt.due());
        debt.paused(6 * MS, 18 * MS);
        assertEquals(0, debt.due());
        debt.work(20 * MS, 2);
        assertEquals(0, debt.due(), "the pause was no work: 4 ms are owed");
    }

    @Test
    void aPauseThatWasTooLongShortensTheNextOne() {
        debt.begin(0);
        debt.work(20 * MS, 1);
        debt.paused(20 * MS, 70 * MS);
        debt.work(90 * MS, 1);
        assertEquals(0, debt.due(), "50 ms paused, 40 ms worked");
        debt.work(115 * MS, 1);
        assertEquals(15 * MS, debt.due());
    }

    @Test
    void theLongestPauseIsBoundedAndSoIsWhatAJobPausesInAll() {
        debt.begin(0);
        debt.work(3_000 * MS, 1);
        assertEquals(1_000 * MS, debt.due());
        debt.paused(3_000 * MS, 4_000 * MS);
        assertEquals(1_000 * MS, debt.due());
        debt.work(104_000 * MS, 1);
        for (int i = 0; i < 9; i++) {
            assertEquals(1_000 * MS, debt.due(), "piece " + i);
            debt.paused(104_000 * MS, 105_000 * MS);
        }
        assertEquals(0, debt.due(), "ten seconds in all");
        assertEquals((102_000 - 9_000) * MS, debt.takeForgiven());
        debt.work(200_000 * MS, 100);
        assertEquals(0, debt.due());
    }

    @Test
    void whatIsLeftGoesOverToTheNextJobByOnePauseAtMost() {
        debt.begin(0);
        debt.work(5 * MS, 1);
        debt.end();
        debt.begin(1_000 * MS);
        debt.work(1_005 * MS, 1);
        assertEquals(10 * MS, debt.due(), "idle time between jobs is no work");
        debt.work(9_000 * MS, 1);
        debt.end();
        debt.begin(0);
        assertEquals(1_000 * MS, debt.due());
    }

    @Test
    void whoIsToldNothingOrNoneOwesNothingNotEvenOfBefore() {
        for (double ratio : new double[] {0, Double.NaN}) {
            debt.begin(0);
            debt.work(100 * MS, 1);
            assertEquals(100 * MS, debt.due());
            debt.work(200 * MS, ratio);
            assertEquals(0, debt.due());
        }
    }

    @Test
    void noTimeAndNoRatioOverflows() {
        debt.begin(Long.MIN_VALUE);
        debt.work(Long.MAX_VALUE, 100);
        debt.begin(0);
        debt.work(Long.MAX_VALUE, 1e300);
        assertEquals(1_000 * MS, debt.due());
        debt.paused(10, 0);
        debt.work(0, 1);
        assertTrue(debt.due() > 0, "a clock that goes back changes nothing");
    }

    /** Any work, any ratio, pauses that last longer than asked: pauses ÷ work is the ratio. */
    @Test
    void overManyJobsTheRatioHolds() {
        for (long seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            double ratio = Math.exp(random.nextDouble() * 4 - 2);
            Debt debt = new Debt(new Limits(10 * MS, 1_000 * MS, 600_000 * MS));
            long now = 0;
            long worked = 0;
            long paused = 0;
            for (int job = 0; job < 50; job++) {
                debt.begin(now);
                for (int point = 0; point < 40; point++) {
                    long piece = (long) (random.nextDouble() * 20 * MS);
                    worked += piece;
                    now += piece;
                    debt.work(now, ratio);
                    long due = debt.due();
                    if (due > 0 && random.nextInt(3) > 0) {
                        long lasts = due + (long) (random.nextDouble() * 5 * MS);
                        debt.paused(now, now + lasts);
                        now += lasts;
                        paused += lasts;
                    }
                }
                debt.end();
                assertEquals(0, debt.takeForgiven(), "seed " + seed);
                now += random.nextInt(100) * MS;
            }
            assertEquals(ratio, (double) paused / worked, 0.05 * ratio, "seed " + seed);
        }
    }
}
