package org.suimon.replay;

import java.nio.ByteBuffer;

/** Calls of a library in C, whose functions take and return whole numbers and addresses alone. */
interface Calls {
    /** The most arguments of a function. */
    int ARGUMENTS_MAX = 4;

    /** Returns the address of a function. */
    long function(String name);

    /** Calls a function; what it returns is as wide as it is declared. */
    long call(long function, long... arguments);

    /** Returns where C finds a buffer that is not on the heap. */
    long address(ByteBuffer direct);
}
