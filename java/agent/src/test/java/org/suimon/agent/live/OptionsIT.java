package org.suimon.agent.live;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Whatever the agent is told, the application starts. */
class OptionsIT {
    @TempDir
    Path folder;

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void theApplicationStartsWithWhateverOptions(Path home) throws Exception {
        Path binary = folder.resolve("binary.toml");
        Files.write(binary, new byte[] {(byte) 0xff, (byte) 0xfe, 0, 1, 2, 3});
        Path wrong = folder.resolve("wrong.toml");
        Files.writeString(wrong, "methods = [\"org.suimon.woven.Work.run@loop\"]\nratio = -2\npause = \"1s\"\n");
        Map<String, String> saidTo = new LinkedHashMap<>();
        saidTo.put("", "no methods declared: nothing is woven");
        saidTo.put("ratio=2", "no methods declared: nothing is woven");
        saidTo.put("/no/such/file", "refused, the application runs on without the agent:\n  '/no/such/file': must be key=value");
        saidTo.put(folder.toString(), "must be key=value, or the path of a file that exists");
        saidTo.put(binary.toString(), "cannot be read: ");
        saidTo.put(wrong.toString(), "  ratio = -2: must be a number from 0 to 100\n  pause: no such key; there are methods, ");
        saidTo.put("methods=java.lang.Object.wait@exit", "must be the application's, not the JDK's or the agent's");
        saidTo.put("methods=org.suimon.woven.Work.<init>@exit", "must be class.method@entry, @loop or @exit");
        saidTo.put("methods=" + "x.y@exit,".repeat(300), "methods: must have at most 256 entries");
        saidTo.put("ratio=NaN;methods=a.b@exit", "ratio = NaN: must be a number from 0 to 100");
        saidTo.put("pause_max=-1s", "pause_max = -1s: must be a time from 1ms to 1m");
        saidTo.put("detach", "not attached");
        saidTo.put("methods=org.suimon.woven.Work.none@exit;ratio=1", "org.suimon.woven.Work.none: no such method with code");
        saidTo.put("methods=org.suimon.woven.Work.lockedWalk@exit;ratio=1", "lockedWalk is synchronized: inside it nothing ever pauses");
        for (Map.Entry<String, String> one : saidTo.entrySet()) {
            try (Jvm jvm = Jvm.subject(home, one.getKey())) {
                assertTrue(Double.parseDouble(jvm.ask("ratio loop 50")) < 0.5, one.getKey());
                assertEquals(0, jvm.ends(), one.getKey());
                assertTrue(jvm.errors().contains(one.getValue()), one.getKey() + ": " + jvm.errors());
            }
        }
    }

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void aRuntimeWithoutManagementRunsTheApplicationAllTheSame(Path home) throws Exception {
        List<String> flags = List.of("-javaagent:" + Jvm.AGENT + "=methods=org.suimon.woven.Small.run@loop;ratio=1",
                "--limit-modules", "java.base,java.instrument");
        try (Jvm jvm = Jvm.start(home, flags, Jvm.TEST_CLASSES, "org.suimon.woven.Small")) {
            assertEquals("done", jvm.line());
            assertEquals(0, jvm.ends());
            assertTrue(jvm.errors().contains("the application runs on without the agent"), jvm.errors());
        }
    }
}
