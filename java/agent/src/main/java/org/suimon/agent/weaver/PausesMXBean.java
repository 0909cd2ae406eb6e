package org.suimon.agent.weaver;

import java.util.List;

/** The agent as {@code org.suimon:type=Pauses}. */
public interface PausesMXBean {
    /** Returns the ratio of threads that were not told one; NaN: none. */
    double getRatio();

    /** Returns the declared methods. */
    List<MethodView> getMethods();

    /** Returns the classes that were woven. */
    List<String> getWovenClasses();

    /** Returns what could not be woven, and other things to know. */
    List<String> getRemarks();
}
