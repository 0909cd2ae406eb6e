package org.suimon.agent.runtime;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A pause in a recording of the JVM's flight recorder; its duration is how long it was. */
@Name("org.suimon.Pause")
@Label("Pause")
@Category("Suimon")
@Description("A pause inside a job, by the Java agent")
@StackTrace(false)
final class PauseEvent extends Event {
    @Label("Job")
    @Description("The declared method that paused")
    private final String job;
    @Label("Ratio")
    @Description("Seconds of pause for each second of work that it was told")
    private final double ratio;

    PauseEvent(String job, double ratio) {
        this.job = job;
        this.ratio = ratio;
    }
}
