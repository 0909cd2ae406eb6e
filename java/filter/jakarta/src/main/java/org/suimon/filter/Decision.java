package org.suimon.filter;

/**
 * What became of a request at the gate.
 *
 * @param isAdmitted whether it may be worked on
 * @param bytes lines for the application if it may, else the whole answer; null: there is no answer
 */
record Decision(boolean isAdmitted, byte[] bytes) {
    /** The server is closing, and says nothing any more. */
    static final Decision CLOSED = new Decision(false, null);
}
