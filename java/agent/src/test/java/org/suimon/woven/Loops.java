package org.suimon.woven;

/** A class with loops of every kind; what it computes is known. */
public final class Loops {
    private Loops() {
    }

    /** Returns 0 + 1 + … + (n − 1), thrice over, by three kinds of loop. */
    public static long run(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i;
        }
        int j = 0;
        do {
            sum += j;
            if (j % 2 == 0) {
                j++;
                continue;
            }
            j++;
        } while (j < n);
        int k = 0;
        while (true) {
            if (k == n) {
                return sum;
            }
            sum += k++;
        }
    }

    /** Throws what it is given. */
    public static void fail(RuntimeException thrown) {
        throw thrown;
    }
}
