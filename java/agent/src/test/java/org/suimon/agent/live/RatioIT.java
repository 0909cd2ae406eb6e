package org.suimon.agent.live;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Pauses ÷ work, measured by the application itself. */
class RatioIT {
    private static final String METHODS = "methods=org.suimon.woven.Work.run@loop,org.suimon.woven.Work.walk@exit,"
            + "org.suimon.woven.Work.step@entry,org.suimon.woven.Work.fail@exit";

    static Stream<Arguments> homesAndRatios() {
        return Jvm.homes().flatMap(home -> Stream.of(0.5, 1.0, 2.0, 4.0).map(ratio -> Arguments.of(home, ratio)));
    }

    @ParameterizedTest
    @MethodSource("homesAndRatios")
    void theDeclaredRatioHoldsForLoopsAndMethods(Path home, double ratio) throws Exception {
        try (Jvm jvm = Jvm.subject(home, METHODS + ";ratio=" + ratio)) {
            // What is done once: the first job shows the bean, and the main thread is older than the agent.
            jvm.ask("ratio loop 50");
            for (String how : new String[] {"loop", "exit", "entry", "thrown", "threads"}) {
                double came = jvm.comesTo(ratio, "ratio " + how + " " + (how.equals("threads") ? 1000 : 500));
                System.out.printf("%s, ratio %s, %s: %.3f%n", home.getFileName(), ratio, how, came);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void whatTheApplicationTellsHoldsAtOnce(Path home) throws Exception {
        try (Jvm jvm = Jvm.subject(home, METHODS)) {
            jvm.comesToNone("ratio loop 100");
            assertEquals("none", jvm.ask("bean"), "idle: not even counted");
            assertEquals("false", jvm.ask("tell-all -1"));
            assertEquals("false", jvm.ask("tell-all NaN"));
            assertEquals("true", jvm.ask("tell-all 1"));
            jvm.ask("ratio loop 50");
            jvm.comesTo(1, "ratio loop 400");
            assertEquals("true", jvm.ask("tell 3"));
            jvm.comesTo(3, "ratio loop 400"); // the thread's own goes first
            jvm.comesTo(1, "ratio threads 1000"); // other threads have that of all
            assertEquals("forgot", jvm.ask("forget"));
            assertEquals("true", jvm.ask("tell-all 0"));
            jvm.comesToNone("ratio loop 200");
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void pausesAreBoundedAndCounted(Path home) throws Exception {
        try (Jvm jvm = Jvm.subject(home, METHODS + ";ratio=100;pause_max=50ms;pause_total_max=200ms")) {
            jvm.ask("ratio loop 50");
            double came = Double.parseDouble(jvm.ask("ratio loop 400"));
            assertTrue(came > 0.05 && came < 1, "200 ms in all at most for a job of 400, not a hundred times as long: " + came);
            String bean = jvm.ask("bean");
            assertTrue(bean.contains("org.suimon.woven.Work.run woven=true calls=3 "), bean);
            assertTrue(bean.contains("distribution=3"), bean);
        }
    }
}
