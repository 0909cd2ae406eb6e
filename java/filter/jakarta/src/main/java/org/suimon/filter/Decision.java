package org.suimon.filter;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What became of a request at the gate.
 *
 * @param isAdmitted whether it may be worked on
 * @param bytes lines for the application if it may, else the whole answer; null: there is no answer
 */
record Decision(boolean isAdmitted, byte[] bytes) {
    /** The server is closing, and says nothing any more. */
    static final Decision CLOSED = new Decision(false, null);

    /** Its client has left while it waited. */
    static final Decision LEFT = new Decision(false, null);

    /** A fault of the gate, which is no fault of the visitor: nothing is told. */
    static final Decision UNGATED = new Decision(true, new byte[0]);

    /** Returns whether this says that the client has left. */
    boolean isOfLeft() {
        // Its contents are those of CLOSED.
        return this == LEFT;
    }

    /** Returns what the application is told of the request, by name of header; nothing of one that may not be worked on. */
    Map<String, String> told() {
        Map<String, String> told = new LinkedHashMap<>();
        String lines = isAdmitted ? new String(bytes, StandardCharsets.ISO_8859_1) : "";
        int end;
        for (int begin = 0; (end = lines.indexOf('\n', begin)) > 0; begin = end + 1) {
            int colon = lines.indexOf(':', begin);
            if (colon > begin && colon < end) {
                told.put(lines.substring(begin, colon), lines.substring(colon + 1, end).strip());
            }
        }
        return told;
    }
}
