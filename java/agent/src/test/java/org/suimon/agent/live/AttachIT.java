package org.suimon.agent.live;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SortedMap;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Into a JVM that runs, and out of it again. */
class AttachIT {
    private static final String OPTIONS = "methods=org.suimon.woven.Work.run@loop,org.suimon.woven.Work.walk@exit;ratio=2;pause_least=20ms";

    private static final String WORK = "org.suimon.woven.Work";
    private static final String LOCK = "java.util.concurrent.locks.AbstractOwnableSynchronizer";

    @TempDir
    Path folder;

    private Jvm subject(Path home) throws Exception {
        Jvm jvm = Jvm.start(home, List.of(), Jvm.TEST_CLASSES, "org.suimon.woven.Subject");
        jvm.reads("ready");
        return jvm;
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void whatIsDetachedIsAsItWasBefore(Path home) throws Exception {
        try (Jvm jvm = subject(home)) {
            // The first bean brings threads of the JVM's own.
            assertEquals("weaver=0 loaders=0", jvm.ask("classes"));
            SortedMap<String, String> file = Jvm.methods(Files.readAllBytes(Path.of(Jvm.TEST_CLASSES, "org/suimon/woven/Work.class")));
            SortedMap<String, String> lock = jvm.methods(folder, LOCK);
            assertEquals(file, jvm.methods(folder, WORK));
            String threads = jvm.ask("threads");
            jvm.comesToNone("ratio loop 200");
            for (int time = 0; time < 3; time++) {
                assertEquals("0 ok: 2 methods, ratio 2.0\nattached: 2 methods, ratio 2.0; woven: org.suimon.woven.Work",
                        Jvm.command(home, "attach", jvm.pid(), OPTIONS).replace(System.lineSeparator(), "\n"));
                jvm.ask("ratio loop 50");
                jvm.comesTo(2, "ratio loop 400");
                jvm.comesTo(2, "ratio exit 400");
                assertNotEquals(file, jvm.methods(folder, WORK));
                assertNotEquals(lock, jvm.methods(folder, LOCK));
                assertTrue(jvm.ask("classes").matches("weaver=[1-9][0-9]* loaders=[1-9].*"), jvm.ask("classes"));
                assertTrue(jvm.ask("bean").contains("Work.run woven=true calls="), jvm.ask("bean"));
                String status = Jvm.command(home, "status", jvm.pid());
                assertTrue(status.startsWith("0 ratio 2.0") && status.contains("org.suimon.woven.Work.run: calls "), status);
                assertTrue(Jvm.command(home, "attach", jvm.pid(), OPTIONS).endsWith("refused: already attached; detach first"));

                assertEquals("0 detached: 1 class is as before", Jvm.command(home, "detach", jvm.pid()));
                assertEquals(file, jvm.methods(folder, WORK), "what is woven out is the file's");
                assertEquals(lock, jvm.methods(folder, LOCK));
                jvm.comesToNone("ratio loop 200");
                jvm.comesToNone("ratio exit 200");
                assertEquals("none", jvm.ask("bean"));
                assertEquals(threads, jvm.ask("threads"));
                awaitUnloaded(jvm);
                assertEquals("1 not attached", Jvm.command(home, "detach", jvm.pid()));
            }
            assertEquals(0, jvm.ends());
        }
    }

    /** A loader goes with a collection; what keeps it from going for a moment is not ours to know. */
    private static void awaitUnloaded(Jvm jvm) throws Exception {
        String left = jvm.ask("classes");
        for (int tries = 0; tries < 20 && !left.equals("weaver=0 loaders=0"); tries++) {
            left = jvm.ask("classes");
        }
        assertEquals("weaver=0 loaders=0", left);
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void aLockThatWasTakenBeforeIsKnownToBeHeld(Path home) throws Exception {
        try (Jvm jvm = subject(home)) {
            assertEquals("it holds", jvm.ask("old-thread"));
            String said = Jvm.command(home, "attach", jvm.pid(), OPTIONS.replace("20ms", "100ms").replace("ratio=2", "ratio=4"));
            assertTrue(said.contains("attached: "), said);
            // The first job shows the bean, which takes a while.
            jvm.ask("ratio exit 10");
            String[] paused = jvm.ask("old-thread-works").split(" ");
            assertTrue(Long.parseLong(paused[0]) < 90, "in the lock: " + paused[0] + " ms");
            assertTrue(Long.parseLong(paused[1]) >= 300, "afterwards: " + paused[1] + " ms");
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void detachingEndsAPauseUnderWay(Path home) throws Exception {
        try (Jvm jvm = subject(home)) {
            Jvm.command(home, "attach", jvm.pid(), OPTIONS.replace("ratio=2", "ratio=50;pause_max=50s;pause_total_max=50s"));
            assertEquals("it pauses", jvm.ask("long-pause"));
            assertEquals("0 detached: 1 class is as before", Jvm.command(home, "detach", jvm.pid()));
            String said = jvm.line();
            assertTrue(said.startsWith("paused for ") && Long.parseLong(said.substring(11)) < 20_000, said);
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void optionsThatMakeNoSenseAreRefusedBeforeAnythingIsTouched(Path home) throws Exception {
        try (Jvm jvm = subject(home)) {
            assertEquals("2 ratio = 1000: must be a number from 0 to 100", Jvm.command(home, "attach", jvm.pid(), "ratio=1000"));
            assertTrue(Jvm.command(home, "attach", "1", "x").startsWith("2 "));
            assertTrue(Jvm.command(home).startsWith("2 usage: "));
            assertTrue(Jvm.command(home, "attach", "999999999", OPTIONS).contains("999999999: cannot be attached to: "));
            assertEquals("none", jvm.ask("bean"));
            assertEquals("", jvm.errors().replaceAll(".*warning.*\n", ""));
        }
    }
}
