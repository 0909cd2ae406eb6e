package org.suimon.agent.live;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Pauses in recordings of the JVM. */
class FlightRecorderIT {
    @TempDir
    Path folder;

    @ParameterizedTest
    @MethodSource("org.suimon.agent.live.Jvm#homes")
    void eachPauseIsRecordedWithItsJobItsRatioAndItsTime(Path home) throws Exception {
        Path file = folder.resolve("pauses.jfr");
        List<String> flags = List.of("-javaagent:" + Jvm.AGENT + "=methods=org.suimon.woven.Work.run@loop;ratio=1",
                "-XX:StartFlightRecording=dumponexit=true,filename=" + file);
        try (Jvm jvm = Jvm.start(home, flags, Jvm.TEST_CLASSES, "org.suimon.woven.Subject")) {
            // The recorder says something of its own first.
            for (String said = ""; !said.equals("ready"); said = jvm.line()) {
                assertFalse(said.contains("rror"), said);
            }
            jvm.ask("ratio loop 300");
            String bean = jvm.ask("bean");
            assertEquals(0, jvm.ends());
            List<RecordedEvent> pauses = RecordingFile.readAllEvents(file).stream()
                    .filter(event -> event.getEventType().getName().equals("org.suimon.Pause")).toList();
            assertTrue(!pauses.isEmpty() && bean.contains(" pauses=" + pauses.size() + " "), pauses.size() + " of " + bean);
            for (RecordedEvent pause : pauses) {
                assertEquals("org.suimon.woven.Work.run", pause.getString("job"));
                assertEquals(1.0, pause.getDouble("ratio"));
            }
            // The question before a pause is a part of it, and not of the event.
            long millis = pauses.stream().mapToLong(pause -> pause.getDuration().toMillis()).sum();
            assertTrue(millis > 150, "of a job of 300 ms: " + millis);
        }
    }
}
