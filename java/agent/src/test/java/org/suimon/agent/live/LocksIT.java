package org.suimon.agent.live;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Nobody pauses in a lock. A pause lasts a tenth of a second here at least, so that what a busy
 * machine takes from a thread is not taken for one.
 */
class LocksIT {
    private static final String OPTIONS = "methods=org.suimon.woven.Work.walk@exit,org.suimon.woven.Work.lockedWalk@exit;"
            + "pause_least=100ms;never_in=org.suimon.woven.Locks$Transaction.*;ratio=";

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void aPauseWaitsUntilTheLockIsGivenBack(Path home) throws Exception {
        try (Jvm jvm = Jvm.subject(home, OPTIONS + "4")) {
            String[] all = jvm.ask("locks").split(";");
            assertEquals(14, all.length);
            for (String one : all) {
                String[] words = one.split(" ");
                long locked = Long.parseLong(words[1]);
                long after = Long.parseLong(words[2]);
                if (words[0].equals("pool")) {
                    assertTrue(locked >= 300, "a pool's worker is no lock: " + one);
                } else {
                    assertTrue(locked < 90, "paused in a lock: " + one);
                    assertTrue(after >= 300, "three times 30 ms of work, ratio 4, are still owed: " + one);
                }
            }
            String bean = jvm.ask("bean");
            for (String why : new String[] {"monitor=", "lock=", "never_in=1", "class_init=1"}) {
                assertTrue(bean.contains(why), why + " of " + bean);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void amongManyThreadsAndLocksNobodyPausesInOne(Path home) throws Exception {
        try (Jvm jvm = Jvm.subject(home, OPTIONS + "1")) {
            long seed = System.nanoTime() % 1_000_000;
            String[] said = jvm.ask("random-locks " + seed + " 6").split(" ");
            assertTrue(Long.parseLong(said[0]) < 90, "seed " + seed + ": the longest pause in a lock: " + said[0] + " ms");
            assertTrue(Long.parseLong(said[1]) >= 4, "seed " + seed + ": pauses outside: " + said[1]);
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void anInterruptedThreadDoesNotPause(Path home) throws Exception {
        try (Jvm jvm = Jvm.subject(home, OPTIONS + "10;pause_max=20s;pause_total_max=20s")) {
            String[] said = jvm.ask("interrupted").split(" ");
            assertTrue(Long.parseLong(said[0]) < 90 && said[1].equals("true"), String.join(" ", said));
            assertTrue(Long.parseLong(said[2]) < 5_000 && said[3].equals("true"), String.join(" ", said));
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homesWithVirtualThreads")
    void aVirtualThreadPausesOnlyIfThatWasSaidAndNotInALock(Path home) throws Exception {
        try (Jvm jvm = Jvm.subject(home, OPTIONS + "4")) {
            assertTrue(Long.parseLong(jvm.ask("virtual free").split(" ")[0]) < 90);
            assertTrue(jvm.ask("bean").contains("unknown=1"), jvm.ask("bean"));
        }
        try (Jvm jvm = Jvm.subject(home, OPTIONS + "4;virtual_threads=true")) {
            assertTrue(Long.parseLong(jvm.ask("virtual free").split(" ")[0]) >= 300);
            String[] locked = jvm.ask("virtual locked").split(" ");
            assertTrue(Long.parseLong(locked[0]) < 90, locked[0]);
            assertTrue(Long.parseLong(locked[1]) >= 300, locked[1]);
        }
    }
}
