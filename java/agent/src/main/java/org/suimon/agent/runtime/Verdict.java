package org.suimon.agent.runtime;

/** Whether a thread may pause where it is, and why not. */
public enum Verdict {
    /** It may. */
    FREE("free"),
    /** It holds a monitor: it is in {@code synchronized}. */
    MONITOR("monitor"),
    /** It holds a lock of {@code java.util.concurrent}. */
    LOCK("lock"),
    /** It is in a method of {@code never_in}. */
    NEVER_IN("never_in"),
    /** It initializes a class, which others may wait for. */
    CLASS_INIT("class_init"),
    /** Nobody knows what it holds. */
    UNKNOWN("unknown"),
    /** The JVM was asked a moment ago; asking it too often would slow everybody. */
    TOO_SOON("too_soon");

    private final String word;

    Verdict(String word) {
        this.word = word;
    }

    /** Returns the word by which it is counted. */
    public String word() {
        return word;
    }
}
