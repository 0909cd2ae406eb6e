package org.suimon.agent.runtime;

/**
 * The exclusive synchronizers of {@code java.util.concurrent} that one thread holds, in the order in
 * which it took them. Those it held when a server handed it a request are the server's own.
 *
 * <p>The JVM knows these, too, but finds them by walking the whole heap while everything stands
 * still. Where this list and the JVM could differ, more counts as held: a lock that another thread
 * gives back stays in the list of the one that took it.
 */
final class HeldLocks {
    /** Locks that are told apart; a thread that takes more counts as holding one for good. */
    static final int HELD_MAX = 64;

    private Object[] held = new Object[4];
    private int size;
    private int mark;
    private boolean isLost;

    /** Takes note that the thread took a lock. */
    void took(Object lock) {
        if (size == HELD_MAX) {
            isLost = true;
            return;
        }
        if (size == held.length) {
            held = java.util.Arrays.copyOf(held, Math.min(2 * size, HELD_MAX));
        }
        held[size++] = lock;
    }

    /** Takes note that the thread gave one back. One that it is not known to hold is no matter. */
    void gaveBack(Object lock) {
        for (int i = size - 1; i >= 0; i--) {
            if (held[i] == lock) {
                System.arraycopy(held, i + 1, held, i, size - i - 1);
                held[--size] = null;
                if (i < mark) {
                    mark--;
                }
                return;
            }
        }
    }

    /** Takes note that from here on the application runs: what is held now is the server's. */
    void requestBegins() {
        mark = size;
    }

    /** Takes note that the application has returned. */
    void requestEnds() {
        mark = 0;
    }

    /** Takes note that a lock may have escaped. */
    void lose() {
        isLost = true;
    }

    /** Returns whether one is held that is not the server's own. */
    boolean isAnyHeld() {
        for (int i = mark; i < size; i++) {
            if (!isOfPool(held[i].getClass().getName())) {
                return true;
            }
        }
        return isLost;
    }

    /** A thread of a pool holds its worker while it works: that is how the pool knows it is busy. */
    static boolean isOfPool(String className) {
        return className.endsWith(".ThreadPoolExecutor$Worker");
    }
}
