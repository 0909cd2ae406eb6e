package org.suimon.woven;

/** A program that needs nothing but the JDK's base. */
public final class Small {
    private Small() {
    }

    /** Runs, and says so. */
    public static void main(String[] arguments) {
        run(10);
        System.out.println("done");
    }

    private static void run(int pieces) {
        for (int i = 0; i < pieces; i++) {
            Thread.onSpinWait();
        }
    }
}
